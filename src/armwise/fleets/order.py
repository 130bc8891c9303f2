"""What workers do: read a piece, prepare it, and send back nothing but its sums."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from armwise.errors import ArmwiseError, RecordingError, WorkerError
from armwise.fleets.part import Part
from armwise.fleets.pieces import Piece, Reading, read_piece
from armwise.fleets.slips import SlipColumns
from armwise.fleets.sums import sum_up
from armwise.identification.columns import Columns
from armwise.programs.c_source import core_source
from armwise.recordings import prepare
from armwise.version import __version__

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.identification.friction import FrictionTerm
    from armwise.recordings.preparation import Preparation

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
    if order.preparation.derivatives.startswith("measured") and "qd_1" not in recording:
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
