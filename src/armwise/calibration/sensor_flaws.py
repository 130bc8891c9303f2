"""Small flaws of sensors and motors: torque gains and nonlinearity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Flaws:
    """How far the hardware may be from what its data sheet says; zero: not at all.

    Two motors whose torque constants differ by half a percent measure different weights
    of one link, and a bent sensor bends gravity's cosine: both would bias the offsets.
    With a size here they are estimated along with the calibration.

    Attributes:
        torque_gain: Standard deviation of each motor's torque constant, relative.
        bend: Standard deviation of each sensor's deviation from its best line at the
            ends of the range it visits, relative to half that range; estimated in two
            parts, a bow and an S.
        slow_friction: Standard deviation of what dry friction rises by towards rest
            (Stribeck's curve), at half of a joint's usual speed, relative.
    """

    torque_gain: float = 0.0
    bend: float = 0.0
    slow_friction: float = 0.0

    def __post_init__(self) -> None:
        sizes = (self.torque_gain, self.bend, self.slow_friction)
        if not all(0.0 <= size < 1.0 for size in sizes):
            raise ArgumentError(
                "Flaws are fractions of one: at least 0 and less than 1."
            )

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those that are estimated."""
        return tuple(kind for kind, size in self._sizes.items() if size > 0.0)

    @property
    def _sizes(self) -> dict[str, float]:
        return {
            "torque_gain": self.torque_gain,
            "slow_friction": self.slow_friction,
            "bow": self.bend,
            "s": self.bend,
        }

    def names(self, joints: tuple[str, ...]) -> tuple[str, ...]:
        """Names such as `joint_1.bow`, in the order of a point's flaws."""
        return tuple(f"{joint}.{kind}" for kind in self.kinds for joint in joints)

    def std(self, dof: int) -> Float[np.ndarray, " flaws"]:
        """Prior standard deviation of each."""
        return np.repeat([self._sizes[kind] for kind in self.kinds], dof)

    def part(
        self, kind: str, values: Float[np.ndarray, " flaws"], dof: int
    ) -> Float[np.ndarray, " dof"] | None:
        """One kind's values, joint by joint; None where there are none."""
        if kind not in self.kinds or not values.size:
            return None
        first = self.kinds.index(kind) * dof
        return values[first : first + dof]


@dataclass(frozen=True, eq=False)
class Straightener:
    """Takes bow and S out of readings: s̃ = s + h (b₂ P₂(z) + b₃ P₃(z)), z = (s − m)/h.

    Legendre's P₂ and P₃ are orthogonal to every straight line over the range, so that
    gain and offset stay those of the best line.

    Attributes:
        middle: m of each sensor's range.
        half: h, half its range.
    """

    middle: Float[np.ndarray, " dof"]
    half: Float[np.ndarray, " dof"]

    @classmethod
    def over(cls, readings: Float[np.ndarray, "samples dof"]) -> Straightener:
        """For the range these readings visit."""
        low, high = readings.min(axis=0), readings.max(axis=0)
        return cls(0.5 * (low + high), np.maximum(0.5 * (high - low), 1e-12))

    def __call__(
        self,
        s: Float[np.ndarray, "samples dof"],
        sd: Float[np.ndarray, "samples dof"],
        sdd: Float[np.ndarray, "samples dof"],
        bow: Float[np.ndarray, " dof"],
        bend: Float[np.ndarray, " dof"],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Straight readings and their derivatives, for b₂ and b₃ of every joint."""
        z = (s - self.middle) / self.half
        slope = 1.0 + bow * 3.0 * z + bend * (7.5 * z**2 - 1.5)
        curvature = (bow * 3.0 + bend * 15.0 * z) / self.half
        deviation = bow * (1.5 * z**2 - 0.5) + bend * (2.5 * z**3 - 1.5 * z)
        straight = s + self.half * deviation
        return straight, slope * sd, slope * sdd + curvature * sd**2
