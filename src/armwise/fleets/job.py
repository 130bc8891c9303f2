"""Job of a worker, from a chunk of a log to sums, and the results of all of them."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np

from armwise.errors import ArmwiseError, RecordingError, WorkerError
from armwise.fleets.chunks import LogChunk, LogReading, RobotLog, read_chunk
from armwise.jobs import JobRunner, ResultFolder, digest
from armwise.programs import core_source
from armwise.progress import Progress
from armwise.recordings import prepare
from armwise.regression import Accumulator, Block, Columns, accumulate_stretches
from armwise.version import __version__

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.recordings import Preparation, Samples
    from armwise.regression import ColumnSource, FrictionTerm, Signals

_FORMAT = 1
"""Raised when sums of the same name would hold something else."""


@dataclass(frozen=True, eq=False)
class Job:
    """What is done to every chunk; with the chunk itself, all that travels.

    Attributes:
        arm: The description.
        preparation: How samples are made, the same for the whole fleet.
        friction: Friction terms beyond viscous, Coulomb and offset.
        reading: How logs are understood.
        with_slips: Whether to add what slipped encoders would do to this arm.
        key: Digest of all of this together.
        lags: Robots whose torque lags by another time than the preparation's, in [s].
    """

    arm: Arm
    preparation: Preparation
    friction: tuple[FrictionTerm, ...]
    reading: LogReading
    with_slips: bool
    key: str
    lags: tuple[tuple[str, float], ...] = ()

    @classmethod
    def describe(
        cls,
        arm: Arm,
        preparation: Preparation,
        friction: Sequence[FrictionTerm],
        reading: LogReading,
        with_slips: bool = False,
        lags: tuple[tuple[str, float], ...] = (),
    ) -> Job:
        """Describe a job, named by the program and all the settings behind its sums."""
        settings = (preparation, tuple(friction), reading, with_slips)
        # The generated C text stands for geometry and equations: whatever changes the
        # columns changes it.
        program = core_source(Columns(arm).dynamics.program("grouped_rows"))
        # Only slip columns depend on the parameters: without them, sums survive a
        # change of the arm's numbers.
        numbers = arm.parameters.tolist() if with_slips else None
        key = digest(__version__, _FORMAT, program, numbers, settings)
        # Not part of the key: another robot's lag leaves the sums of this one valid.
        return cls(arm, *settings, key=key, lags=lags)

    def seeking_slips(self, arm: Arm) -> Job:
        """Return the same job for a second look, at an arm with mean parameters."""
        settings = self.preparation, self.friction, self.reading
        return Job.describe(arm, *settings, with_slips=True, lags=self.lags)

    def chunk_key(self, chunk: LogChunk) -> str:
        """Name the sums of a chunk by everything they are made of."""
        # 160 bits: no accidental collision, and a file name of modest length.
        return digest(self.key, chunk, self.lag_of(chunk))[:40]

    def lag_of(self, chunk: LogChunk) -> float:
        """Lag of a chunk's torque behind its motion in [s]."""
        return dict(self.lags).get(chunk.log.robot, self.preparation.lag)

    # Workers remember the columns of a job (`lru_cache`), and jobs arrive as copies.
    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and self.key == other.key


@dataclass(frozen=True)
class JobResult:
    """What came of a chunk.

    Attributes:
        sums: Its sums, as bytes; empty if it could not be used.
        problem: Why it could not be used; empty if it could.
        peak_memory: Most memory its worker has held so far, in [bytes].
    """

    sums: bytes
    problem: str
    peak_memory: int


def run_job(job: Job, chunk: LogChunk) -> JobResult:
    """Turn one chunk into sums; what is wrong with it is returned, not raised.

    Raises:
        WorkerError: If there is not enough memory for it.
    """
    try:
        sums = _sum_chunk(job, chunk).to_bytes()
    except (ArmwiseError, OSError) as error:
        return JobResult(b"", _naming_file(chunk, str(error)), peak_memory())
    except MemoryError:
        raise WorkerError(
            f"{chunk} needs more memory than its worker has. Use fewer workers "
            "(--workers 1), give them more memory, or write that log as Parquet, which "
            "is read chunk by chunk."
        ) from None
    return JobResult(sums, "", peak_memory())


def _sum_chunk(job: Job, chunk: LogChunk) -> ChunkSums:
    recording = read_chunk(chunk, job.arm, job.reading)
    if job.preparation.velocity == "measured" and "qd_1" not in recording:
        raise RecordingError(
            f"{chunk.log.path} has no velocity (no column qd_1), unlike other logs of "
            "the fleet. Record it, or identify such logs by themselves."
        )
    skip = job.reading.skip_bad_rows
    own = replace(job.preparation, lag=job.lag_of(chunk))
    samples = prepare(recording, like=own, skip_bad_rows=skip)
    return sum_samples(_columns(job), samples, chunk.stretches)


# A worker meets two jobs per fleet, with and without slips; four also serve a second
# fleet in the same process.
@lru_cache(maxsize=4)
def _columns(job: Job) -> Columns | SlipColumns:
    """Trace an arm once per worker, not once per chunk."""
    plain = Columns(job.arm, job.friction)
    return SlipColumns(plain) if job.with_slips else plain


def _naming_file(chunk: LogChunk, message: str) -> str:
    """Make sure that a message names the file."""
    path = str(chunk.log.path)
    return message if path in message else f"{path}: {message}"


def peak_memory() -> int:
    """Return the most memory this process has held, in [bytes]."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else 1024 * peak
    # On Linux ru_maxrss is inherited from the parent; this is the process's own.
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


# The sums of a chunk: all that a fleet's estimates need of it.


@dataclass(frozen=True, eq=False)
class ChunkSums:
    """R factors of [columns, torque], stretch by stretch, as arrays that travel.

    Stretches stay apart for the jackknife.

    Attributes:
        samples: Samples of every stretch.
        trusted: How many of them each joint is learnt from: not those in which its
            friction reverses.
        factors: For each joint an upper triangular matrix per stretch, over its columns
            and its torque.
        torque: Sum of every joint's torque in [N m], per stretch.
        rows: Rows of the log that went in.
    """

    samples: Float[np.ndarray, " stretches"]
    trusted: Float[np.ndarray, "stretches joints"]
    factors: tuple[Float[np.ndarray, "stretches width width"], ...]
    torque: Float[np.ndarray, "stretches joints"]
    rows: int

    @classmethod
    def of_stretches(cls, stretches: Sequence[Accumulator], rows: int) -> ChunkSums:
        """Stack the accumulators of stretches."""
        factors = zip(*(one.factors for one in stretches), strict=True)
        return cls(
            samples=np.array([one.samples for one in stretches]),
            trusted=np.array([one.trusted for one in stretches]),
            factors=tuple(np.stack(joint) for joint in factors),
            torque=np.array([one.torque for one in stretches]),
            rows=rows,
        )

    def stretches(self, columns: ColumnSource) -> list[Accumulator]:
        """Return the accumulator of every stretch."""
        factors = (list(joints) for joints in zip(*self.factors, strict=True))
        sums = zip(
            self.samples.tolist(), factors, self.trusted, self.torque, strict=True
        )
        return [Accumulator(columns, *one) for one in sums]

    def to_bytes(self) -> bytes:
        """Write as an NPZ archive: numbers only."""
        arrays = {f"joint_{j}": block for j, block in enumerate(self.factors)}
        for name in ("samples", "trusted", "torque"):
            arrays[name] = getattr(self, name)
        archive = io.BytesIO()
        np.savez(archive, allow_pickle=False, rows=np.array(self.rows), **arrays)
        return archive.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> ChunkSums:
        """Read what `to_bytes` wrote; pickled objects are never loaded."""
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            trusted, torque = archive["trusted"], archive["torque"]
            joints = range(torque.shape[1])
            factors = tuple(archive[f"joint_{j}"] for j in joints)
            rows = int(archive["rows"])
            return cls(archive["samples"], trusted, factors, torque, rows)


def sum_samples(columns: ColumnSource, samples: Samples, stretches: int) -> ChunkSums:
    """Turn samples into factors, one per stretch of equal length.

    Args:
        columns: What explains the torque.
        samples: One chunk of a log.
        stretches: How many stretches to keep apart.
    """
    rows = samples.preparation.rows_read or len(samples)
    sums = accumulate_stretches(columns, samples, stretches)
    return ChunkSums.of_stretches(sums, rows)


# Slipped encoders: one more column per joint, −∂τ/∂q_i.

_STEP = 1e-3
"""Step of the central differences in [rad] or [m]: the cube root of rounding would be
6e-6, but torques are smooth over a milliradian and slips are larger."""


@dataclass(frozen=True, eq=False)
class SlipColumns:
    """Columns of an arm, followed by −∂τ/∂q_i of every joint i, then the torque.

    An encoder that reads q_i + δ makes the arm's torque look like τ(q) at another
    position; to first order the measured motion explains it up to −δ ∂τ/∂q_i. Unlike
    every other column this one depends on the parameters, so it belongs to a second
    look.
    """

    columns: Columns

    @property
    def support(self) -> tuple[np.ndarray, ...]:
        """For each joint, its own columns and those of every slip."""
        slips = self.columns.count + np.arange(self.columns.arm.dof)
        return tuple(np.append(own, slips) for own in self.columns.support)

    def blocks(self, data: Sequence[Signals]) -> Iterator[Block]:
        """Yield the widened columns of recorded samples, block by block."""
        for block in self.columns.blocks(data):
            slopes = self._slopes(block)
            joints = tuple(
                np.vstack([matrix[:-1], -slopes[:, :, j], matrix[-1:]])
                for j, matrix in enumerate(block.joints)
            )
            yield replace(block, joints=joints)

    def _slopes(self, block: Block) -> Float[np.ndarray, "turned samples joints"]:
        """Return ∂τ/∂q_i in [N m/rad], for each joint i that is turned."""
        samples, rows = block.samples, block.rows
        q, qd, qdd = samples.q[rows], samples.qd[rows], samples.qdd[rows]
        torque = self.columns.dynamics.inverse_dynamics
        slopes = []
        for step in _STEP * np.eye(samples.dof):
            rise = torque(q + step, qd, qdd) - torque(q - step, qd, qdd)
            slopes.append(rise / (2.0 * _STEP))
        return np.stack(slopes)


def join(several: Sequence[ChunkSums]) -> ChunkSums:
    """Put the stretches of several chunks one after the other."""
    return ChunkSums(
        np.concatenate([one.samples for one in several]),
        np.concatenate([one.trusted for one in several]),
        tuple(
            np.concatenate(blocks)
            for blocks in zip(*(one.factors for one in several), strict=True)
        ),
        np.concatenate([one.torque for one in several]),
        sum(one.rows for one in several),
    )


# Results of a fleet's job, computed now or reused from an earlier run.


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
