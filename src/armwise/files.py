"""Atomic writing of files: after a failure the old file is there, whole.

What is unfinished lies in a scratch folder that its process holds a lock on. A process
that was killed holds none, so the next one that writes there removes what it left.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from armwise.errors import FileError

try:
    import fcntl
except ImportError:  # not on Windows: nothing is locked there, nor removed
    fcntl = None  # type: ignore[assignment]

SCRATCH = ".armwise-"
"""How names of scratch folders begin."""


def write_atomically(path: str | Path, data: bytes | str) -> None:
    """Write bytes, or text as UTF-8, under a temporary name, then rename."""
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def json_text(data: Any, margin: str = "") -> str:
    """Write plain values as JSON: a key a line, numbers of an array on one.

    Floats are written by repr, so that they are read back bit by bit; one that is not
    finite is refused with a ValueError.
    """
    inner = margin + " "
    if isinstance(data, dict) and data:
        lines = [
            f"{_on_one_line(str(k))}: {json_text(v, inner)}" for k, v in data.items()
        ]
        return "{\n" + ",\n".join(inner + line for line in lines) + f"\n{margin}}}"
    if isinstance(data, list | tuple) and any(isinstance(v, dict) for v in data):
        lines = [json_text(value, inner) for value in data]
        return "[\n" + ",\n".join(inner + line for line in lines) + f"\n{margin}]"
    return _on_one_line(data)


# Python's own encoder indents item by item, in Python: ten times slower.
_on_one_line = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a name in the same folder to write to; it takes the real one at the end.

    If anything goes wrong, or the user stops it, the old file stays as it was.

    Raises:
        FileError: If the file cannot be written.
    """
    target = Path(path)
    try:
        str(target).encode()  # undecodable bytes in a name would fail halfway
        with scratch_folder(target.parent) as folder:
            temporary = folder / target.name
            yield temporary
            # Temporary files may be private; the umask decides for the finished one.
            os.chmod(temporary, _mode(target))
            os.replace(temporary, target)
    except UnicodeEncodeError:
        raise FileError(f"{target} cannot be written: name it in UTF-8.") from None
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise FileError(f"{target} cannot be written: {reason}.") from problem


@contextmanager
def scratch_folder(parent: Path, prefix: str = SCRATCH) -> Iterator[Path]:
    """Make a folder to write in, and take it away whatever happens.

    Args:
        parent: Where; on the same file system as what will be replaced.
        prefix: How its name begins. What killed processes left under the same prefix
            is removed.
    """
    _sweep(parent, prefix)
    folder, lock = _locked_folder(parent, prefix)
    try:
        yield folder
    finally:
        try:
            _remove(folder)
        finally:
            if lock is not None:
                os.close(lock)


def _remove(folder: Path) -> None:
    """Remove a folder and all in it, even if Ctrl-C is pressed meanwhile."""
    try:
        shutil.rmtree(folder, ignore_errors=True)
    # Ctrl-C between rmtree's closing a descriptor and its noting that makes it close
    # the descriptor twice: an OSError, which it lets through for no other reason.
    except (KeyboardInterrupt, OSError):
        shutil.rmtree(folder, ignore_errors=True)
        raise KeyboardInterrupt from None


def _locked_folder(parent: Path, prefix: str) -> tuple[Path, int | None]:
    while True:
        folder = Path(tempfile.mkdtemp(dir=parent, prefix=prefix))
        lock = _lock(folder)
        # Between the two lines above another process may have taken it for abandoned.
        if fcntl is None or lock is not None:
            return folder, lock


def _lock(folder: Path) -> int | None:
    """Lock a folder for as long as this process lives; None if another holds it."""
    if fcntl is None:
        return None
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
    try:
        descriptor = os.open(folder, flags)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Still the folder of that name, not one removed meanwhile.
        if os.fstat(descriptor).st_ino == os.stat(folder).st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _sweep(parent: Path, prefix: str) -> None:
    """Remove this user's scratch folders that no living process holds."""
    if fcntl is None:
        return
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(prefix):
                continue
            state = entry.stat(follow_symlinks=False)
            is_own = stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid()
            lock = _lock(Path(entry.path)) if is_own else None
            if lock is not None:
                _remove(Path(entry.path))
                os.close(lock)


def exchange(one: Path, other: Path) -> bool:
    """Let two paths swap names in one step; False where the system cannot."""
    import ctypes
    import sys

    if not sys.platform.startswith("linux"):
        return False
    here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError):
        return False
    first, second = os.fsencode(one), os.fsencode(other)
    return bool(rename(here, first, here, second, swap) == 0)


def _mode(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return 0o666 & ~mask
