"""Where gains and offsets may be, and places all over it to begin a search from."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.structure import Structure
from armwise.errors import ArgumentError
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike


# A place in the space of what sensors may be.


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


# Where gains and offsets may be, and places all over it to begin a search from.

_SMALLEST_TURN = 0.1
"""Angle in [rad] (or [m]) a joint moved by at least, when nothing else is known."""

_LARGEST_TURN = 2.0 * np.pi
"""Angle in [rad] a joint without limits moved by at most."""


@dataclass(frozen=True, eq=False)
class Domain:
    """Gains and offsets that are possible.

    Attributes:
        guess: What the user thinks, or the middle.
        low, high: Smallest and largest |α| of each joint.
        offset_range: How far offsets may be from the guess in [rad].
        span: Range of each sensor's readings.
        is_blind: Whether signs of gains are unknown, too.
    """

    guess: Point
    low: Float[np.ndarray, " dof"]
    high: Float[np.ndarray, " dof"]
    offset_range: float
    span: Float[np.ndarray, " dof"]
    is_blind: bool

    @classmethod
    def of(
        cls,
        structure: Structure,
        sensed: Samples,
        alpha: ArrayLike | None = None,
        beta: ArrayLike | None = None,
        gain_range: float | None = None,
        offset_range: float = np.pi,
    ) -> Domain:
        """Put together what is believed and what joints can do.

        Args:
            structure: The arm, whose limits bound the gains.
            sensed: Samples in the sensors' units.
            alpha, beta: The guess, if there is one.
            gain_range: Factor between the guess and the gain.
            offset_range: Distance between the guess and the offset in [rad].
        """
        if (gain_range or 1.0) < 1.0 or offset_range < 0.0:
            raise ArgumentError(
                "gain_range must be at least 1 and offset_range positive."
            )
        n, span = structure.arm.dof, np.maximum(np.ptp(sensed.q, axis=0), 1e-9)
        offsets = np.zeros(n) if beta is None else _joint_numbers(beta, n, "beta")
        low, high = _SMALLEST_TURN / span, _largest_turn(structure) / span
        if alpha is None and not structure.gains_known:
            return cls(
                Point(np.sqrt(low * high), offsets), low, high, offset_range, span, True
            )
        gains = _joint_numbers(1.0 if alpha is None else alpha, n, "alpha")
        if not np.all(gains):
            raise ArgumentError("A sensor's gain alpha cannot be zero.")
        factor = 1.0 if structure.gains_known else gain_range or 1.3
        size = np.abs(gains)
        if factor > 2.0:  # a wild guess: what the joints can do says more
            low, high = np.maximum(low, size / factor), np.minimum(high, size * factor)
        else:
            low, high = size / factor, size * factor
        return cls(Point(gains, offsets), low, high, offset_range, span, False)

    def points(self, count: int, seed: int) -> list[Point]:
        """The guess, then points spread evenly; of either sign if it is blind."""
        gains, turns, coins = self._spread(count, seed)
        sides = np.where(coins < 0.5, -1.0, 1.0) if self.is_blind else 1.0
        gains = gains * sides * np.sign(self.guess.alpha)
        spread = zip(gains, self.guess.beta + turns, strict=True)
        return [self.guess, *(Point(a, b) for a, b in spread)]

    def reversed_points(self, count: int, seed: int) -> list[Point]:
        """Points with one sensor that counts backwards, then any number of them."""
        gains, turns, coins = self._spread(count, seed)
        n, signs = self.span.size, np.sign(self.guess.alpha)
        made = []
        for k, (gain, turn) in enumerate(zip(gains, turns, strict=True)):
            sides = np.where(coins[k] < 0.5, -1.0, 1.0)
            if k % 2:
                sides = np.ones(n)
                sides[(k // 2) % n] = -1.0
            made.append(Point(gain * sides * signs, self.guess.beta + turn))
        return made

    def images(self, point: Point) -> list[Point]:
        """Where gravity looks the same or nearly so: joints turned half round or over.

        An arm that hangs where it should stand, or is seen in a mirror, is explained by
        bodies that cannot exist; the arm itself is then one of these.
        """
        n = point.beta.size
        ways = [np.ones(n), -np.ones(n), *(1.0 - 2.0 * np.eye(n))]
        turns = [np.zeros(n), *np.eye(n)]
        turns += [turns[i] + turns[j] for j in range(1, n + 1) for i in range(1, j)]
        return [
            Point(point.alpha * way, point.beta * way + np.pi * turn)
            for way in ways
            for turn in turns
        ]

    def defect(self, point: Point) -> str | None:
        """Say why a point is not possible, if it is not."""
        size = np.abs(point.alpha)
        turn = np.abs(np.angle(np.exp(1j * (point.beta - self.guess.beta))))
        if self.offset_range < np.pi and np.any(turn > 1.5 * self.offset_range + 0.1):
            return "an offset would be far beyond its range"
        if np.any(size < self.low / 1.5):
            return "a joint would hardly turn at all"
        if np.any(size > 1.5 * self.high):
            return "a joint would turn beyond all its limits"
        return None

    def _spread(self, count: int, seed: int) -> tuple[np.ndarray, ...]:
        """|α|, turns from the guess, and a coin to toss, each (count, dof)."""
        from scipy.stats import qmc

        n, size = self.span.size, max(1, count)
        power = int(np.ceil(np.log2(size)))
        unit = qmc.Sobol(3 * n, seed=seed).random_base2(power)[:size]
        gains = self.low * (self.high / self.low) ** unit[:, :n]
        turns = (2.0 * unit[:, n : 2 * n] - 1.0) * self.offset_range
        return gains, turns, unit[:, 2 * n :]


def _largest_turn(structure: Structure) -> Float[np.ndarray, " dof"]:
    """The most a joint can have moved in [rad] or [m]: half as far again as limited."""
    arm = structure.arm
    reach = 1.5 * (arm.limits("upper") - arm.limits("lower"))
    return np.where(np.isfinite(reach) & (reach > 0.0), reach, _LARGEST_TURN)


def _joint_numbers(given: ArrayLike, n: int, name: str) -> np.ndarray:
    values = np.asarray(given, dtype=float)
    if values.ndim > 1 or values.size not in (1, n) or not np.isfinite(values).all():
        raise ArgumentError(f"{name} needs {n} finite numbers, one for each joint.")
    return np.broadcast_to(values, (n,)).copy()
