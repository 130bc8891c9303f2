"""Small flaws of sensors and motors that would otherwise pass for gains and offsets."""

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

    Two motors whose torque constants differ by half a percent weigh one link
    differently, and a bent sensor bends gravity's cosine: both would be taken for
    turned sensors. Given a size here they are found along with the calibration.

    Attributes:
        torque_gain: Standard deviation of each motor's torque constant, relative.
        bend: Standard deviation of each sensor's S-shaped deviation from its best
            line at the ends of the range it visits, relative to half that range.
    """

    torque_gain: float = 0.0
    bend: float = 0.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.torque_gain < 1.0 and 0.0 <= self.bend < 1.0):
            raise ArgumentError("Flaws are shares of one: at least 0 and less than 1.")

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those that are looked for."""
        return tuple(k for k in ("torque_gain", "bend") if getattr(self, k) > 0.0)

    def names(self, joints: tuple[str, ...]) -> tuple[str, ...]:
        """Names such as `joint_1.bend`, in the order of a point's flaws."""
        return tuple(f"{joint}.{kind}" for kind in self.kinds for joint in joints)

    def std(self, dof: int) -> Float[np.ndarray, " flaws"]:
        """What is believed of each beforehand."""
        return np.repeat([getattr(self, kind) for kind in self.kinds], dof)

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
    """Takes the S out of readings: s̃ = s + b h P₃(z) with z = (s − m)/h.

    Legendre's P₃ is orthogonal to every straight line over the range, so that gain and
    offset stay those of the best line.

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
        bend: Float[np.ndarray, " dof"],
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Straight readings and their derivatives."""
        z = (s - self.middle) / self.half
        slope = 1.0 + bend * (7.5 * z**2 - 1.5)
        curvature = bend * 15.0 * z / self.half
        straight = s + bend * self.half * (2.5 * z**3 - 1.5 * z)
        return straight, slope * sd, slope * sdd + curvature * sd**2
