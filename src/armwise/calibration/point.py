"""A place in the space of what sensors may be."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass(frozen=True, eq=False)
class Point:
    """Gains and offsets to try, joint by joint: θ = α s + β.

    Attributes:
        alpha, beta: Gains and offsets.
        flaws: Small flaws, in the order of the structure's; none when empty.
    """

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    flaws: Float[np.ndarray, " flaws"] = field(default_factory=lambda: np.zeros(0))

    def moved(self, step: Float[np.ndarray, " unknowns"]) -> Point:
        """Gains change by a fraction of themselves, offsets in [rad], flaws last.

        A step without a number for each gain leaves the gains alone.
        """
        n, last = self.beta.size, step.size - self.flaws.size
        gains = step[: last - n] if last > n else 0.0
        return Point(
            self.alpha * (1.0 + gains),
            self.beta + step[last - n : last],
            self.flaws + step[last:],
        )

    def held(self, other: Point, is_free: Bool[np.ndarray, " unknowns"]) -> Point:
        """This point, with the gains and offsets that are not free of another."""
        n = self.beta.size
        gains = is_free[:-n] if is_free.size > n else np.zeros(n, dtype=bool)
        return replace(
            self,
            alpha=np.where(gains, self.alpha, other.alpha),
            beta=np.where(is_free[-n:], self.beta, other.beta),
        )

    def away(self, other: Point) -> Float[np.ndarray, " all"]:
        """How far this is from another: relative gains, offsets, flaws."""
        gains = self.alpha / other.alpha - 1.0
        turns = self.beta - other.beta
        return np.concatenate([gains, turns, self.flaws - other.flaws])
