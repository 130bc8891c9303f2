"""Atomic writing of files: after a failure the old file is there, whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from armwise.errors import FileError


def write_atomically(path: str | Path, data: bytes | str) -> None:
    """Write bytes, or text as UTF-8, under a temporary name, then rename."""
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


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
        with _folder_beside(target) as folder:
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
def _folder_beside(target: Path) -> Iterator[Path]:
    """Make a folder to write in, and take it away whatever happens."""
    folder = tempfile.TemporaryDirectory(dir=target.parent, prefix=".armwise-")
    try:
        yield Path(folder.name)
    finally:
        try:
            folder.cleanup()
        except KeyboardInterrupt:  # Ctrl-C while tidying up: tidy up all the same
            folder.cleanup()
            raise


def _mode(path: Path) -> int:
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)  # the only way to read it is to set it
    os.umask(mask)
    return 0o666 & ~mask
