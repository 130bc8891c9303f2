"""Model-reference adaptive control of a first-order plant, one input, one output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import Adaptation
from armwise.control.gains import feedback_gain
from armwise.control.update_law import UpdateLaw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float


class ModelReference:
    """u = â_r r + â_y y, â' = −P (r, y) e, e = y − y_m, y_m' = a_m (r − y_m).

    What Rohrs' example breaks: perfect on the first-order plant k/(s + a) it was
    derived for, undone by a little of everything that plant leaves out.

    Args:
        rate: a_m of the reference model in [rad/s].
        law: How the error moves the two gains; its dead-band is on e.
        initial: First (â_r, â_y).
    """

    def __init__(
        self, rate: float, law: UpdateLaw, initial: Sequence[float] = (0.0, 0.0)
    ) -> None:
        feedback_gain(rate, "rate")
        self.rate = rate
        self.adaptation = Adaptation(law, np.array(initial, dtype=float))
        self.wanted = 0.0

    @property
    def estimate(self) -> Float[np.ndarray, " 2"]:
        """(â_r, â_y) as they are now."""
        return self.adaptation.parameters

    def input(self, command: float, output: float, dt: float) -> float:
        """Return the plant's input for the next dt [s], and learn."""
        regressor = np.array([[command, output]])
        u = float(regressor[0] @ self.estimate)
        self.adaptation.track(regressor, np.array([output - self.wanted]), dt)
        self.wanted += (1.0 - np.exp(-self.rate * dt)) * (command - self.wanted)
        return u
