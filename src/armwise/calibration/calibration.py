"""What a calibration found, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.observability import Observability
from armwise.recordings.sensor_calibration import SensorCalibration

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Calibration:
    """Joint sensors θ = α s + β, found against gravity.

    Attributes:
        joint_names: Names of the joints.
        alpha: α in [rad] (or [m]) per unit of the sensor.
        beta: β in [rad] or [m], between −π and π.
        alpha_std, beta_std: Their standard deviations; infinite where not calibrated.
        covariance: Of the sought unknowns (α relative, β in [rad]), in the order of
            `unknowns`; NaN elsewhere.
        unknowns: Names of the unknowns.
        parameters: The arm's parameters found along with it; only combinations that
            motion reveals have a meaning.
        torque_std: What is left of each joint's torque in [N m] or [N].
        observability: What could be told beforehand.
        notes: What the user should know.
        method: How it was found.
    """

    joint_names: tuple[str, ...]
    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    alpha_std: Float[np.ndarray, " dof"]
    beta_std: Float[np.ndarray, " dof"]
    covariance: Float[np.ndarray, "unknowns unknowns"]
    unknowns: tuple[str, ...]
    parameters: Float[np.ndarray, " parameters"]
    torque_std: Float[np.ndarray, " dof"]
    observability: Observability
    notes: tuple[str, ...] = ()
    method: str = "separable least squares"

    @property
    def not_calibrated(self) -> tuple[str, ...]:
        """Names of the unknowns that keep the values they were given."""
        return self.observability.hidden

    @property
    def sensors(self) -> SensorCalibration:
        """What `read_recording` applies."""
        return SensorCalibration(
            self.joint_names,
            tuple(map(float, self.alpha)),
            tuple(map(float, self.beta)),
        )

    def angles(
        self, readings: Float[np.ndarray, "... dof"]
    ) -> Float[np.ndarray, "... dof"]:
        """Turn sensor readings into joint positions in [rad] or [m]."""
        return np.asarray(readings) * self.alpha + self.beta


def wrapped(angle: Float[np.ndarray, " dof"]) -> Float[np.ndarray, " dof"]:
    """The same angles between −π and π."""
    return np.asarray(np.angle(np.exp(1j * angle)))
