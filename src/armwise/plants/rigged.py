"""What every plant on a rig offers, whoever simulates its arms."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.plants.protocol import Measurement
from armwise.plants.rig import Rig
from armwise.plants.state import State

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

    from armwise.plants.log import Log


class RiggedPlant:
    """A batch of arms with actuators and sensors; `_rig` is set by who inherits."""

    _rig: Rig

    @property
    def batch(self) -> int:
        """Number of arms side by side."""
        return len(self.state.q)

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.state.q.shape[1])

    @property
    def control_period(self) -> float:
        """Time between two torques in [s]."""
        return self._rig.clock.control_period

    @property
    def plant_period(self) -> float:
        """Step of the plant in [s]."""
        return self._rig.clock.tick

    @property
    def time(self) -> float:
        """Time since the last reset in [s]."""
        return self.state.time

    @property
    def diverged(self) -> Bool[np.ndarray, " batch"]:
        """Which arms have run away; they stand still from then on."""
        return self.state.diverged

    @property
    def state(self) -> State:
        """The truth at this instant; its arrays are updated in place."""
        return self._rig.engine.state

    @property
    def logs(self) -> dict[str, Log]:
        """What every sensor measured since the last reset, and the truth."""
        return self._rig.logs

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> Measurement:
        """Put every arm in a posture, at a velocity (rest if not given), at t = 0."""
        return self._rig.reset(q, qd)

    def step(self, tau: Float[np.ndarray, "batch dof"]) -> Measurement:
        """Hold torques for one control period, then measure."""
        return self._rig.step(tau)
