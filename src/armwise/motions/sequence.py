"""Motions one after another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError
from armwise.motions.motion import Motion, MotionSample, at_rest_outside, inside

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Sequence:
    """Motions joined end to end; each begins where the one before it ended.

    Attributes:
        motions: In order.
        tolerance: Largest jump in [rad] or [m] allowed where two of them meet
            (sigmoids never quite arrive: give theirs).
    """

    motions: tuple[Motion, ...]
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "motions", tuple(self.motions))
        if not self.motions:
            raise ArgumentError("A sequence needs at least one motion.")
        for i, (before, after) in enumerate(
            zip(self.motions[:-1], self.motions[1:], strict=True), start=1
        ):
            _check_joint(i, before, after, self.tolerance)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.motions[0].dof

    @cached_property
    def starts(self) -> Float[np.ndarray, " motions"]:
        """When each motion begins in [s]."""
        lengths = [motion.duration for motion in self.motions]
        return np.concatenate([[0.0], np.cumsum(lengths)[:-1]])

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return float(self.starts[-1] + self.motions[-1].duration)

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        flat = times.reshape(-1)
        which = np.searchsorted(self.starts, flat, side="right") - 1
        parts = [np.empty((flat.size, self.dof)) for _ in range(3)]
        for i, motion in enumerate(self.motions):
            chosen = which == i
            if chosen.any():
                since = np.minimum(flat[chosen] - self.starts[i], motion.duration)
                for part, values in zip(parts, motion.sample(since), strict=True):
                    part[chosen] = values
        q, qd, qdd = (part.reshape(*times.shape, self.dof) for part in parts)
        return at_rest_outside(q, qd, qdd, moving)


def _check_joint(i: int, before: Motion, after: Motion, tolerance: float) -> None:
    if before.dof != after.dof:
        raise ArgumentError(
            f"Motion {i} moves {before.dof} joints, motion {i + 1} moves {after.dof}."
        )
    jump = after.sample(0.0).q - before.sample(before.duration).q
    worst = int(np.argmax(np.abs(jump)))
    if abs(jump[worst]) > tolerance:
        raise ArgumentError(
            f"Joint {worst + 1} jumps by {jump[worst]:.6g} between motions {i} and "
            f"{i + 1}. Put a Quintic between them, or raise the tolerance."
        )
