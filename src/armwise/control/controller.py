"""What every controller here can do beyond deciding on torques."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


@runtime_checkable
class ResumableController(Protocol):
    """A controller whose whole state can be taken out, stored, and put back."""

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        ...

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        ...

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        ...
