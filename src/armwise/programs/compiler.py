"""C compilation with a private cache, and calls of compiled functions through ctypes.

An entry of the cache is a shared object named by the hash of everything that made it,
beside a file with the hash of its bytes. It is loaded only when the folder and the file
belong to this user, no one else can write them, and the bytes still have that hash;
anything else is rebuilt. Entries appear by rename, so processes may race freely.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.util
import os
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from armwise.errors import ArgumentError, ArmwiseError, FileError
from armwise.files import scratch_folder

_LEAST_ROOM = 16 * 2**20
"""Bytes that must be free for compiling: a large program and its text take some."""

_PROBE = "int armwise_probe(void) { return 0; }\n"


@dataclass(frozen=True)
class Compiler:
    """A C compiler: the command that starts it and what it calls itself."""

    command: tuple[str, ...]
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags for shared objects that run on this machine only."""
        # Without errno and trapping semantics sqrt and comparisons vectorise. Not
        # -ffast-math: it may reorder sums and drop the tests for finite numbers.
        return ("-std=gnu11", "-O2", "-march=native", "-fPIC", "-shared",
                "-fno-math-errno", "-fno-trapping-math", "-fno-semantic-interposition",
                "-w")  # fmt: skip


@cache
def find_compiler() -> Compiler | None:
    """Return the first that works of $CC, cc, gcc, clang and the ziglang wheel.

    Setting ARMWISE_NO_COMPILER=1 hides every compiler.
    """
    if os.environ.get("ARMWISE_NO_COMPILER"):
        return None
    candidates: list[tuple[str, ...]] = []
    if os.environ.get("CC"):
        candidates.append(tuple(os.environ["CC"].split()))
    candidates += [(name,) for name in ("cc", "gcc", "clang")]
    if importlib.util.find_spec("ziglang") is not None:
        candidates.append((sys.executable, "-m", "ziglang", "cc"))
    for command in candidates:
        if shutil.which(command[0]) and (version := _version(command)):
            return Compiler(command, version)
    return None


def _version(command: tuple[str, ...]) -> str | None:
    # 20 s (judgement): far beyond a slow start, and a command that hangs must not hang
    # everything.
    try:
        run = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.splitlines()[0] if run.returncode == 0 and run.stdout else None


_C_TYPES: dict[str, Any] = {
    "l": ctypes.c_long,
    "d": ctypes.c_double,
    "p": ctypes.c_void_p,
}


def compiled_library(source: str, *flags: str) -> ctypes.CDLL:
    """Compile C text, or take it from the cache, and load it.

    Args:
        source: The C text.
        flags: Further compiler flags, such as "-O1" where compiling takes long.
    """
    compiler = find_compiler()
    if compiler is None:
        raise ArgumentError("No C compiler was found.")
    return ctypes.CDLL(str(cached_object(source, compiler, flags)))


def c_function(
    library: ctypes.CDLL, name: str, arguments: str | None = None
) -> Callable[..., int]:
    """Return a function of a library that gives a long.

    Args:
        library: A compiled library; the function keeps it loaded.
        name: Name of the function in C.
        arguments: One letter each: l for long, d for double, p for a pointer. If None,
            the function takes values of ctypes only: each call then saves checking
            them, a quarter of the time of a call on one sample.
    """
    function = library[name]
    function.restype = ctypes.c_long
    if arguments is not None:
        function.argtypes = [_C_TYPES[letter] for letter in arguments]
    return function


def addresses(arrays: Sequence[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    """Return where arrays begin, as a C array of pointers; it keeps no array alive."""
    return _array_type("p", len(arrays))(*[a.ctypes.data for a in arrays])


def longs(values: Sequence[int]) -> ctypes.Array[ctypes.c_long]:
    """Return whole numbers as a C array."""
    return _array_type("l", len(values))(*values)


@cache
def _array_type(letter: str, size: int) -> Any:
    # C has no arrays of no elements.
    return _C_TYPES[letter] * max(1, size)


def cache_folder() -> Path:
    """Return the folder of compiled programs, made private if new."""
    root = os.environ.get("ARMWISE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "armwise"
    )
    folder = Path(root)
    try:
        # Whoever can write here can run code as this user: private from the start.
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise FileError(
            f"The compile cache {folder} cannot be made: {problem.strerror}. Set "
            "ARMWISE_CACHE to a folder of yours."
        ) from problem
    return folder


@cache
def _problem_of(folder: str) -> str:
    path = Path(folder)
    compiler = find_compiler()
    if compiler is None:
        return ""
    try:
        room = os.statvfs(path) if hasattr(os, "statvfs") else None
        if not os.access(path, os.W_OK):
            return f"The compile cache {folder} cannot be written."
        if room is not None and room.f_bavail * room.f_frsize < _LEAST_ROOM:
            return f"The disk of the compile cache {folder} is full."
        # Loaded, not only written: a file system may forbid executing.
        ctypes.CDLL(str(cached_object(_PROBE, compiler)))
    except OSError as problem:
        reason = problem.strerror or str(problem)
        return f"The compile cache {folder} cannot be used: {reason}."
    return ""


def cache_problem() -> str:
    """Why nothing can be compiled into the cache and loaded from it; "" if it can."""
    try:
        return _problem_of(str(cache_folder()))
    except FileError as problem:
        return str(problem)


def cached_object(source: str, compiler: Compiler, extra: tuple[str, ...] = ()) -> Path:
    """Return the shared object of a C source, compiling it if it is not there.

    Args:
        source: The C text.
        compiler: What to compile it with.
        extra: Further compiler flags.
    """
    flags = (*compiler.flags, *extra)
    text = "\0".join([source, compiler.version, _machine(), *compiler.command, *flags])
    # 160 bits of everything that decides on the object, processor included.
    key = hashlib.sha256(text.encode()).hexdigest()[:40]
    folder = cache_folder()
    _require_private(folder)
    path = folder / f"{key}.so"
    if not _is_trustworthy(path):
        try:
            _build(source, path, compiler, flags)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise FileError(
                f"The compile cache {folder} cannot be written: {reason}. Set "
                "ARMWISE_CACHE to a folder of yours with room, or "
                "ARMWISE_NO_COMPILER=1 to go on without compiling."
            ) from problem
    return path


def _require_private(folder: Path) -> None:
    # lstat: a symbolic link to someone else's folder must not pass.
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise ArmwiseError(
            f"The cache folder {folder} is not a folder of yours. "
            "Set ARMWISE_CACHE to one that is."
        )
    if status.st_mode & 0o077:
        folder.chmod(0o700)


def _is_trustworthy(path: Path) -> bool:
    """Whether the entry is ours alone and is what was compiled."""
    try:
        # Owner, mode and content of one open file; that the folder is private keeps
        # others from swapping it before it is loaded by name.
        with open(path, "rb", opener=_open_no_link) as file:
            status = os.fstat(file.fileno())
            body = file.read()
        recorded = path.with_suffix(".sha256").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return False
    is_private = status.st_uid == os.getuid() and not status.st_mode & 0o022
    return is_private and hashlib.sha256(body).hexdigest() == recorded


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def _build(source: str, path: Path, compiler: Compiler, flags: tuple[str, ...]) -> None:
    with scratch_folder(path.parent, "build-") as scratch:
        text, product = Path(scratch, "program.c"), Path(scratch, "program.so")
        text.write_text(source, encoding="utf-8")
        command = [*compiler.command, *flags, "-o", str(product), str(text), "-lm"]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            first = (run.stderr.strip() or "no message").splitlines()[0]
            raise ArmwiseError(
                f"{compiler.command[0]} could not compile a generated program: {first} "
                'Use Dynamics(arm, backend="numpy"), or set CC to another compiler.'
            )
        product.chmod(0o700)
        digest = Path(scratch, "program.sha256")
        digest.write_text(hashlib.sha256(product.read_bytes()).hexdigest(), "ascii")
        # Atomic renames: processes that compile the same program at once overwrite each
        # other with equal files. A digest of another build only means building again.
        os.replace(product, path)
        os.replace(digest, path.with_suffix(".sha256"))


@cache
def _machine() -> str:
    """Name the processor, since -march=native code runs on its like only."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() + platform.machine()
    lines = text.split("\n\n")[0].splitlines()
    fields = ("model name", "flags", "Features", "CPU part")
    return "|".join(line for line in lines if line.startswith(fields))
