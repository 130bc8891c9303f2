"""A known body that an arm carries for a while."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Carried:
    """A known body that some samples were taken with.

    Attributes:
        parameters: What it adds to the arm's parameters.
        share: One for samples with it, zero for those without.
    """

    parameters: Float[np.ndarray, " parameters"]
    share: Float[np.ndarray, " samples"]

    def torque(self, Y: np.ndarray, rows: slice) -> Float[np.ndarray, "samples dof"]:
        """What it adds to the torques of some samples."""
        return np.asarray(self.share[rows, None] * (Y @ self.parameters))

    def thinned(self, step: int) -> Carried:
        """For every so manieth sample."""
        return replace(self, share=self.share[::step])
