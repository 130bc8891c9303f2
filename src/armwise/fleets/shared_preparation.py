"""One way to prepare the logs of a whole fleet, so that robots can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from armwise.errors import ArmwiseError, RecordingError
from armwise.fleets.chunks import Piece, Reading, read_piece
from armwise.fleets.engines import Engine
from armwise.recordings import prepare

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings import Preparation


_ASKED = 3
"""Robots whose first piece has a say."""

_GLANCE = 40_000
"""Rows of it that are looked at."""


@dataclass(frozen=True, eq=False)
class Look:
    """How a first look at a log is taken; with a piece, all that travels.

    Attributes:
        arm: The arm, to find lag and cut-off by its own dynamics.
        reading: How logs are understood.
        cutoff_hz: Low-pass in [Hz]; chosen when None.
    """

    arm: Arm
    reading: Reading
    cutoff_hz: float | None = None

    def at(self, piece: Piece) -> Preparation | str:
        """Return how a piece would best be prepared, or why it cannot be."""
        rows = None if piece.rows is None else min(piece.rows, _GLANCE)
        glance = replace(piece, rows=rows)
        try:
            seen = read_piece(glance, self.arm, self.reading)
            skip = self.reading.skip_bad_rows
            samples = prepare(seen, self.cutoff_hz, arm=self.arm, skip_bad_rows=skip)
        except (ArmwiseError, OSError) as error:
            return str(error)
        return samples.preparation


def choose_treatment(
    look: Look, pieces: Sequence[Piece], engine: Engine
) -> Preparation:
    """Choose cut-off, lag and velocity: those of the middle one of a few robots.

    Args:
        look: How they are asked.
        pieces: The pieces, in order.
        engine: Who looks.

    Raises:
        RecordingError: If no log can be used.
    """
    found: list[Preparation] = []
    problem = ""
    candidates = _candidates(pieces)
    while len(found) < _ASKED:
        asked = list(islice(candidates, _ASKED - len(found)))
        if not asked:
            break
        for _, answer in sorted(engine.run(look.at, asked), key=lambda pair: pair[0]):
            if isinstance(answer, str):
                problem = problem or f" The first of them: {answer}"
            else:
                found.append(answer)
    if not found:
        raise RecordingError(f"No log can be used.{problem}")
    ranked = sorted(found, key=lambda one: one.cutoff_hz or float("inf"))
    return ranked[len(ranked) // 2]


def _candidates(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Pieces in the order they are asked: robots from all over the fleet first."""
    firsts: dict[str, Piece] = {}
    for piece in pieces:
        firsts.setdefault(piece.log.robot, piece)
    order = list(firsts.values())
    step = max(1, len(order) // _ASKED)
    chosen = [piece for k in range(step) for piece in order[k::step]]
    yield from chosen
    yield from (piece for piece in pieces if firsts[piece.log.robot] is not piece)
