"""One point's problem, compressed to a triangle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.point import Point

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Projected:
    """One point's problem, compressed.

    Attributes:
        point: Where.
        values: Best base parameters there, and the torques' delay in [s] last.
        factor: R of [Y, ∂τ/∂x, τ], rows divided by the torque noise.
        rows: How many torques counted.
        linear: Number of linear unknowns.
    """

    point: Point
    values: Float[np.ndarray, " linear"]
    factor: Float[np.ndarray, "width width"]
    rows: int
    linear: int

    @property
    def cost(self) -> float:
        """‖ρ‖², what no parameters explain."""
        return float(np.sum(self.factor[self.linear :, -1] ** 2))

    @property
    def share(self) -> float:
        """Cost per torque that counts."""
        return self.cost / max(self.rows, 1)

    @property
    def jacobian(self) -> Float[np.ndarray, "rows unknowns"]:
        """∂ρ/∂x up to an orthogonal factor, the linear part projected out."""
        return self.factor[self.linear :, self.linear : -1]

    @property
    def residual(self) -> Float[np.ndarray, " rows"]:
        """ρ up to the same factor."""
        return self.factor[self.linear :, -1]
