"""Find a C compiler on this machine."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Compiler:
    """A C compiler: the command that starts it and what it calls itself."""

    command: tuple[str, ...]
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Flags for shared objects that run on this machine only."""
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
    try:
        run = subprocess.run(
            [*command, "--version"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return run.stdout.splitlines()[0] if run.returncode == 0 and run.stdout else None
