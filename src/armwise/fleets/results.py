"""Gather the parts of all pieces: made now, or found from an earlier run."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from zipfile import BadZipFile

from armwise.errors import FileError, RecordingError
from armwise.files import write_atomically
from armwise.fleets.chunks import Log, Piece
from armwise.fleets.engines import Engine
from armwise.fleets.job import Order, Part, carry_out
from armwise.fleets.robot import joined
from armwise.progress import Progress

# Finished parts on disk: private, verified, and there again after a crash.

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


# Gather the parts of all pieces: made now, or found from an earlier run.


@dataclass(frozen=True)
class BadLog:
    """A log that was left out, and why."""

    path: Path
    problem: str


@dataclass(frozen=True, eq=False)
class Harvest:
    """Parts of a fleet, on disk.

    Attributes:
        order: What they were made by.
        folder: Where they are.
        pieces: What they were made of, in the order of robots and time.
        bad_logs: What was left out.
        found: How many parts an earlier run had finished.
        peak_memory: Most memory that a worker held, in [bytes].
    """

    order: Order
    folder: PartsFolder
    pieces: tuple[Piece, ...]
    bad_logs: tuple[BadLog, ...]
    found: int
    peak_memory: int

    @cached_property
    def _by_robot(self) -> dict[str, list[Piece]]:
        groups: dict[str, list[Piece]] = {}
        for piece in self.pieces:
            groups.setdefault(piece.log.robot, []).append(piece)
        return groups

    @property
    def robots(self) -> tuple[str, ...]:
        """Robots with at least one good log, in order."""
        return tuple(self._by_robot)

    def of(self, robot: str) -> Part:
        """Return all stretches of one robot, in the order of its logs and time."""
        return joined([self._part(piece) for piece in self._by_robot[robot]])

    def _part(self, piece: Piece) -> Part:
        part = self.folder.read(self.order.part_key(piece))
        if part is None:
            raise RecordingError(
                f"The part of {piece} has vanished from {self.folder.path} or was "
                "changed there. Run the same command again."
            )
        return part


def gather(
    order: Order,
    pieces: Sequence[Piece],
    folder: PartsFolder,
    engine: Engine,
    *,
    skip_bad_logs: bool = False,
    progress: Progress | None = None,
) -> Harvest:
    """Make the parts that are not there yet.

    Args:
        order: What to do with every piece.
        pieces: The pieces, in the order of robots and time.
        folder: Where parts are kept.
        engine: Who does it.
        skip_bad_logs: Leave out, and name, logs that cannot be used.
        progress: Called with what is being done and how much of it is done.

    Raises:
        RecordingError: If a log cannot be used and none may be skipped.
    """
    tell = progress or (lambda what, share: None)
    missing = [p for p in pieces if order.part_key(p) not in folder]
    found, peak = len(pieces) - len(missing), 0
    bad: dict[Path, str] = {}
    work = partial(carry_out, order)
    for count, (number, done) in enumerate(engine.run(work, missing), start=1):
        piece = missing[number]
        if done.problem:
            refuse(done.problem, skip_bad_logs)
            bad[piece.log.path] = done.problem
        else:
            folder.write(order.part_key(piece), done.part)
        peak = max(peak, done.peak_memory)
        tell(f"{found + count} of {len(pieces)} pieces", (found + count) / len(pieces))
    kept = tuple(piece for piece in pieces if piece.log.path not in bad)
    left_out = tuple(BadLog(path, bad[path]) for path in sorted(bad))
    return Harvest(order, folder, kept, left_out, found, peak)


def refuse(problem: str, skip_bad_logs: bool) -> None:
    """Stop at a bad log, unless such logs may be left out."""
    if not skip_bad_logs:
        raise RecordingError(
            f"{problem.rstrip('.')}. Repair or remove that log, or leave out bad ones "
            "with --skip-bad-logs."
        )


def without_closed(
    logs: Sequence[Log], skip_bad_logs: bool
) -> tuple[list[Log], list[BadLog]]:
    """Part logs that could be opened from those that could not."""
    closed = [BadLog(log.path, log.problem) for log in logs if log.problem]
    for one in closed:
        refuse(one.problem, skip_bad_logs)
    return [log for log in logs if not log.problem], closed
