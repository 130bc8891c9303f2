"""What workers do: read a piece, prepare it, and send back nothing but its sums.

An encoder that reads q_i + δ makes the arm's torque look like τ(q) at another place;
to first order the measured motion explains it up to −δ ∂τ/∂q_i. Unlike every other
column this one depends on the parameters, so it belongs to a second look.
"""

from __future__ import annotations

import hashlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArmwiseError, RecordingError, WorkerError
from armwise.fleets.chunks import Piece, Reading, read_piece
from armwise.programs import core_source
from armwise.recordings import prepare
from armwise.regression import BLOCK, Accumulator, Block, Columns, triangle
from armwise.version import __version__

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.recordings import Preparation, Samples
    from armwise.regression import FrictionTerm


# A part: all that a fleet's estimates need of one piece of a log.


@dataclass(frozen=True, eq=False)
class Part:
    """R factors of [columns, torque], stretch by stretch.

    Stretches stay apart because their scatter tells how far to trust the sum.

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

    def to_bytes(self) -> bytes:
        """Write as an NPZ archive: numbers only."""
        arrays = {f"joint_{j}": block for j, block in enumerate(self.factors)}
        for name in ("samples", "trusted", "torque"):
            arrays[name] = getattr(self, name)
        archive = io.BytesIO()
        np.savez(archive, allow_pickle=False, rows=np.array(self.rows), **arrays)
        return archive.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> Part:
        """Read what `to_bytes` wrote; pickled objects are never loaded."""
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            trusted, torque = archive["trusted"], archive["torque"]
            joints = range(torque.shape[1])
            factors = tuple(archive[f"joint_{j}"] for j in joints)
            rows = int(archive["rows"])
            return cls(archive["samples"], trusted, factors, torque, rows)


# What a slipped encoder does to the torque: one more column per joint, ∂τ/∂q_i.

_STEP = 1e-3
"""Step of the central differences in [rad] or [m]."""


@dataclass(frozen=True, eq=False)
class SlipColumns:
    """Columns of an arm, followed by −∂τ/∂q_i of every joint i, then the torque."""

    columns: Columns

    def blocks(self, data: Sequence[Samples]) -> Iterator[Block]:
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


# From the samples of a piece to its part: one R factor per joint and stretch.

_LONG = 3 * BLOCK
"""Samples of a stretch from which on Cholesky-QR is faster than Householder's."""


def sum_up(columns: Columns | SlipColumns, samples: Samples, stretches: int) -> Part:
    """Turn samples into factors, one per stretch of equal length.

    Args:
        columns: What explains the torque.
        samples: One piece of a log.
        stretches: How many stretches to keep apart.
    """
    count = min(stretches, len(samples))
    edges = np.linspace(0, len(samples), count + 1).astype(int)
    is_long = len(samples) > _LONG * count
    sums: list[_Stretch] = []
    for block in columns.blocks([samples]):
        for k, part in _split(block, edges):
            if k == len(sums):
                sums.append(_Stretch(columns, part, is_long))
            sums[k].add(part)
    factors = zip(*(one.factors() for one in sums), strict=True)
    return Part(
        samples=np.diff(edges).astype(float),
        trusted=np.array([one.trusted for one in sums]),
        factors=tuple(np.stack(joint) for joint in factors),
        torque=np.array([one.torque for one in sums]),
        rows=samples.preparation.rows_read or len(samples),
    )


def _split(block: Block, edges: np.ndarray) -> Iterator[tuple[int, Block]]:
    """Cut a block where stretches end: (number of the stretch, its share)."""
    begin, end = block.rows.start, block.rows.stop
    first = int(np.searchsorted(edges, begin, side="right")) - 1
    last = int(np.searchsorted(edges, end, side="left"))
    for k in range(first, last):
        part = slice(max(edges[k] - begin, 0), min(edges[k + 1], end) - begin)
        yield (
            k,
            replace(
                block,
                rows=slice(begin + part.start, begin + part.stop),
                joints=tuple(matrix[:, part] for matrix in block.joints),
                trust=None if block.trust is None else block.trust[part],
            ),
        )


class _Stretch:
    """Adds up the blocks of one stretch."""

    def __init__(
        self, columns: Columns | SlipColumns, like: Block, is_long: bool
    ) -> None:
        plain = columns.columns if isinstance(columns, SlipColumns) else columns
        zeros = [np.zeros((len(matrix), len(matrix))) for matrix in like.joints]
        self._sum = Accumulator(plain, factors=zeros)
        self._is_long = is_long
        self.trusted, self.torque = np.zeros((2, len(zeros)))

    def add(self, block: Block) -> None:
        """Add a block; what is not trusted counts for nothing."""
        if block.trust is None:
            self.trusted += block.rows.stop - block.rows.start
        else:
            self.trusted += block.trust.sum(axis=0)
            pairs = zip(block.joints, block.trust.T, strict=True)
            block = replace(block, joints=tuple(m * w for m, w in pairs), trust=None)
        self.torque += [matrix[-1].sum() for matrix in block.joints]
        if self._is_long:
            self._sum.add_block(block)
            return
        pairs = zip(self._sum.factors, block.joints, strict=True)
        self._sum.factors = [triangle(np.vstack([R, m.T])) for R, m in pairs]

    def factors(self) -> list[np.ndarray]:
        """Return the R factor of every joint."""
        self._sum.settle()
        return self._sum.factors


# What workers do: read a piece, prepare it, and send back nothing but its sums.

_FORMAT = 1
"""Raised when parts of the same name would hold something else."""


@dataclass(frozen=True, eq=False)
class Order:
    """What is done to every piece; with the piece itself, all that travels.

    Attributes:
        arm: The description.
        preparation: How samples are made, the same for the whole fleet.
        friction: Friction terms beyond viscous, Coulomb and offset.
        reading: How logs are understood.
        with_slips: Whether to add what slipped encoders would do to this arm.
        key: Name of all of this together.
    """

    arm: Arm
    preparation: Preparation
    friction: tuple[FrictionTerm, ...]
    reading: Reading
    with_slips: bool
    key: str

    @classmethod
    def of(
        cls,
        arm: Arm,
        preparation: Preparation,
        friction: Sequence[FrictionTerm],
        reading: Reading,
        with_slips: bool = False,
    ) -> Order:
        """Write an order, named by the program and all the choices behind its sums."""
        choices = (preparation, tuple(friction), reading, with_slips)
        program = core_source(Columns(arm).dynamics.program("grouped_rows"))
        numbers = arm.parameters.tolist() if with_slips else None
        text = repr((__version__, _FORMAT, program, numbers, choices))
        return cls(arm, *choices, key=hashlib.sha256(text.encode()).hexdigest())

    def seeking_slips(self, arm: Arm) -> Order:
        """Return the same order for a second look, at an arm with known parameters."""
        return Order.of(arm, self.preparation, self.friction, self.reading, True)

    def part_key(self, piece: Piece) -> str:
        """Name the part that a piece becomes, by everything it is made of."""
        return hashlib.sha256(f"{self.key} {piece!r}".encode()).hexdigest()[:40]

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Order) and self.key == other.key


@dataclass(frozen=True)
class Done:
    """What came of a piece.

    Attributes:
        part: Its sums, as bytes; empty if it could not be used.
        problem: Why it could not be used; empty if it could.
        peak_memory: Most memory its worker has held so far, in [bytes].
    """

    part: bytes
    problem: str
    peak_memory: int


def carry_out(order: Order, piece: Piece) -> Done:
    """Turn one piece into a part; what is wrong with it is told, not raised.

    Raises:
        WorkerError: If there is not enough memory for it.
    """
    try:
        part = _part(order, piece).to_bytes()
    except (ArmwiseError, OSError) as error:
        return Done(b"", _named(piece, str(error)), peak_memory())
    except MemoryError:
        raise WorkerError(
            f"{piece} needs more memory than its worker has. Use fewer workers "
            "(--workers 1), give them more memory, or write that log as Parquet, which "
            "is read piece by piece."
        ) from None
    return Done(part, "", peak_memory())


def _part(order: Order, piece: Piece) -> Part:
    recording = read_piece(piece, order.arm, order.reading)
    if order.preparation.velocity == "measured" and "qd_1" not in recording:
        raise RecordingError(
            f"{piece.log.path} has no velocity (no column qd_1), unlike other logs of "
            "the fleet. Record it, or identify such logs by themselves."
        )
    skip = order.reading.skip_bad_rows
    samples = prepare(recording, like=order.preparation, skip_bad_rows=skip)
    return sum_up(_columns(order), samples, piece.stretches)


@lru_cache(maxsize=4)
def _columns(order: Order) -> Columns | SlipColumns:
    """Trace an arm once per worker, not once per piece."""
    plain = Columns(order.arm, order.friction)
    return SlipColumns(plain) if order.with_slips else plain


def _named(piece: Piece, message: str) -> str:
    """Make sure that a message names the file."""
    path = str(piece.log.path)
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
