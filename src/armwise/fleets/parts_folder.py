"""Finished parts on disk: private, verified, and there again after a crash."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from zipfile import BadZipFile

from armwise.errors import FileError
from armwise.files import write_atomically
from armwise.fleets.part import Part

_MARK = b"armwise part 1\n"
_DIGEST = hashlib.sha256().digest_size


class PartsFolder:
    """Parts under the names of what made them.

    A part is used only if it lies in a folder of ours that no one else can write to,
    and still has the bytes that were written; anything else is made again.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self.path.lstat()
        except OSError as error:
            raise FileError(f"{path} cannot hold parts: {error.strerror}.") from error
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
            raise FileError(f"{path} is not a folder of yours. Name another for parts.")
        if found.st_mode & 0o077:
            self.path.chmod(0o700)

    def write(self, key: str, data: bytes) -> None:
        """Keep a part; it appears whole or not at all."""
        write_atomically(self._file(key), _MARK + _sealed(key, data) + data)

    def read(self, key: str) -> Part | None:
        """Return a part, or None if there is none that is sound."""
        try:
            content = self._file(key).read_bytes()
        except OSError:
            return None
        body = content[len(_MARK) + _DIGEST :]
        if not content.startswith(_MARK + _sealed(key, body)):
            return None
        try:
            return Part.from_bytes(body)
        except (KeyError, ValueError, BadZipFile):
            return None

    def __contains__(self, key: str) -> bool:
        return self.read(key) is not None

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.part"


def _sealed(key: str, data: bytes) -> bytes:
    return hashlib.sha256(key.encode() + data).digest()
