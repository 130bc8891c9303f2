"""Results of a fleet's job, computed now or reused from an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from zipfile import BadZipFile

from armwise.errors import RecordingError
from armwise.fleets.chunks import LogChunk, RobotLog
from armwise.fleets.hierarchy import join
from armwise.fleets.job import ChunkSums, Job, run_job
from armwise.jobs import JobRunner, ResultFolder
from armwise.progress import Progress


@dataclass(frozen=True)
class BadLog:
    """A log that was left out, and why."""

    path: Path
    problem: str


@dataclass(frozen=True, eq=False)
class FleetResults:
    """Sums of a fleet's chunks, on disk.

    Attributes:
        job: What they were made by.
        folder: The folder that holds them.
        chunks: What they were made of, in the order of robots and time.
        bad_logs: What was left out.
        reused: How many sums an earlier run had finished.
        peak_memory: Most memory that a worker held, in [bytes].
    """

    job: Job
    folder: ResultFolder
    chunks: tuple[LogChunk, ...]
    bad_logs: tuple[BadLog, ...]
    reused: int
    peak_memory: int

    @cached_property
    def _by_robot(self) -> dict[str, list[LogChunk]]:
        groups: dict[str, list[LogChunk]] = {}
        for chunk in self.chunks:
            groups.setdefault(chunk.log.robot, []).append(chunk)
        return groups

    @property
    def robots(self) -> tuple[str, ...]:
        """Robots with at least one good log, in order."""
        return tuple(self._by_robot)

    def sums_of(self, robot: str) -> ChunkSums:
        """Return all stretches of one robot, in the order of its logs and time."""
        return join([self._sums(chunk) for chunk in self._by_robot[robot]])

    def _sums(self, chunk: LogChunk) -> ChunkSums:
        sums = read_sums(self.folder, self.job.chunk_key(chunk))
        if sums is None:
            raise RecordingError(
                f"The part of {chunk} has vanished from {self.folder.path} or was "
                "changed there. Run the same command again."
            )
        return sums


def read_sums(folder: ResultFolder, key: str) -> ChunkSums | None:
    """Return the sums of a chunk, or None if there are none that are sound."""
    data = folder.read(key)
    try:
        return None if data is None else ChunkSums.from_bytes(data)
    # A damaged or foreign file counts as missing: its chunk is simply done again.
    except (KeyError, ValueError, BadZipFile):
        return None


def run_chunks(
    job: Job,
    chunks: Sequence[LogChunk],
    folder: ResultFolder,
    runner: JobRunner,
    *,
    skip_bad_logs: bool = False,
    progress: Progress | None = None,
) -> FleetResults:
    """Make the sums that are not there yet.

    Args:
        job: What to do with every chunk.
        chunks: The chunks, in the order of robots and time.
        folder: Where sums are remembered.
        runner: Who does it.
        skip_bad_logs: Leave out, and name, logs that cannot be used.
        progress: Called with what is being done and how much of it is done.

    Raises:
        RecordingError: If a log cannot be used and none may be skipped.
    """
    report = progress or (lambda step, fraction: None)
    # Read, not only listed: a damaged file is made again.
    missing = [c for c in chunks if read_sums(folder, job.chunk_key(c)) is None]
    reused, peak = len(chunks) - len(missing), 0
    bad: dict[Path, str] = {}
    work = partial(run_job, job)
    for count, (number, result) in enumerate(runner.run(work, missing), start=1):
        chunk = missing[number]
        if result.problem:
            refuse(result.problem, skip_bad_logs)
            bad[chunk.log.path] = result.problem
        else:
            folder.write(job.chunk_key(chunk), result.sums)
        peak = max(peak, result.peak_memory)
        done = reused + count
        report(f"{done} of {len(chunks)} chunks", done / len(chunks))
    # One bad chunk condemns its log: part of one would pass for a shorter log.
    good = tuple(chunk for chunk in chunks if chunk.log.path not in bad)
    left_out = tuple(BadLog(path, bad[path]) for path in sorted(bad))
    return FleetResults(job, folder, good, left_out, reused, peak)


def refuse(problem: str, skip_bad_logs: bool) -> None:
    """Stop at a bad log, unless such logs may be left out."""
    if not skip_bad_logs:
        raise RecordingError(
            f"{problem.rstrip('.')}. Repair or remove that log, or leave out bad ones "
            "with --skip-bad-logs."
        )


def separate_unreadable(
    logs: Sequence[RobotLog], skip_bad_logs: bool
) -> tuple[list[RobotLog], list[BadLog]]:
    """Separate logs that could be opened from those that could not."""
    unreadable = [BadLog(log.path, log.problem) for log in logs if log.problem]
    for one in unreadable:
        refuse(one.problem, skip_bad_logs)
    return [log for log in logs if not log.problem], unreadable
