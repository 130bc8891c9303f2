"""Protocols of plants and controllers, and the measurement between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from armwise.errors import ArgumentError
from armwise.motions import MotionSample

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

    from armwise.plants.simulation_loop import SampleLog


class Measurement(NamedTuple):
    """What a controller sees at one instant: None where no sensor measures it.

    The first axis is the plant (one of a batch), the second the joint. Slow sensors
    hold their last value.

    Attributes:
        q: Joint positions by encoder in [rad] or [m].
        qd: Joint velocities by tachometer in [rad/s] or [m/s].
        tau: Joint torques in [N m] or [N].
        wrench: Force [N] and torque [N m] that the arm exerts on what is beyond the
            wrist sensor, in its axes: (fx, fy, fz, tx, ty, tz).
        volts: Analog joint sensors in [V].
        current: Motor currents in [A].
    """

    q: Float[np.ndarray, "batch dof"] | None = None
    qd: Float[np.ndarray, "batch dof"] | None = None
    tau: Float[np.ndarray, "batch dof"] | None = None
    wrench: Float[np.ndarray, "batch 6"] | None = None
    volts: Float[np.ndarray, "batch dof"] | None = None
    current: Float[np.ndarray, "batch dof"] | None = None

    def need(self, name: str) -> Float[np.ndarray, "batch width"]:
        """Return one signal; say which sensor is missing if it is not measured."""
        value: np.ndarray | None = getattr(self, name)
        if value is None:
            measured = [key for key in self._fields if getattr(self, key) is not None]
            raise ArgumentError(
                f"This needs {name!r}, but the plant only measures "
                f"{', '.join(measured) or 'nothing'}. Give it another sensor."
            )
        return value


@runtime_checkable
class Controller(Protocol):
    """Decides on torques from what is wanted and what is measured.

    Everything has the plant of the batch as its first axis, so one controller serves
    one plant (B = 1) or two hundred. References have one row per plant too, or a
    single row when all plants follow the same motion.
    """

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        ...

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        ...


@runtime_checkable
class Plant(Protocol):
    """An arm, or a batch of arms side by side, that takes torques and measures."""

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        ...

    @property
    def batch(self) -> int:
        """Number of arms side by side."""
        ...

    @property
    def control_period(self) -> float:
        """Time between two torques in [s]."""
        ...

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the coordinates, in order."""
        ...

    @property
    def time(self) -> float:
        """Time since the last reset in [s]."""
        ...

    @property
    def diverged(self) -> Bool[np.ndarray, " batch"]:
        """Which arms have run away; they stand still from then on."""
        ...

    @property
    def logs(self) -> dict[str, SampleLog]:
        """What every sensor measured since the last reset, and the truth."""
        ...

    def reset(self, q: ArrayLike, qd: ArrayLike | None = None) -> Measurement:
        """Put every arm in a posture, at a velocity (rest if not given), at t = 0."""
        ...

    def step(self, tau: Float[np.ndarray, "batch dof"]) -> Measurement:
        """Hold torques for one control period, then measure."""
        ...
