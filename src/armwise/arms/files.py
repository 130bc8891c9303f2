"""Write a file so that it is either the old one or the whole new one."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from armwise.errors import ArmError


def write_atomically(path: Path, data: bytes) -> None:
    """Write to a temporary name in the same folder, then rename."""
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp makes private files; the user's umask decides for the finished one.
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except OSError as problem:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        reason = problem.strerror or str(problem)
        raise ArmError(f"{path} cannot be written: {reason}.") from problem


def _mode(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
