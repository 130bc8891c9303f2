"""What a calibration found, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.evidence import Evidence
from armwise.calibration.observability import Observability
from armwise.calibration.structure import Structure, as_structure
from armwise.recordings.sensor_calibration import SensorCalibration

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Calibration:
    """Joint sensors θ = α s + β, found against gravity.

    Attributes:
        joint_names: Names of the joints.
        alpha: α in [rad] (or [m]) per unit of the sensor.
        beta: β in [rad] or [m], between −π and π.
        alpha_std, beta_std: Their standard deviations; infinite where not calibrated.
        covariance: Of the sought unknowns (α relative, β in [rad], flaws), in the
            order of `unknowns`; NaN elsewhere.
        unknowns: Names of the unknowns, and of the flaws found along with them.
        flaws: Sizes of the flaws, in the order of their names.
        parameters: The arm's parameters found along with it; only combinations that
            motion reveals have a meaning.
        torque_std: What is left of each joint's torque in [N m] or [N].
        observability: What could be told beforehand.
        evidence: What it explains, for reports; None for one that was given.
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
    flaws: Float[np.ndarray, " flaws"]
    parameters: Float[np.ndarray, " parameters"]
    torque_std: Float[np.ndarray, " dof"]
    observability: Observability
    evidence: Evidence | None = None
    notes: tuple[str, ...] = ()
    method: str = "separable least squares"

    @classmethod
    def given(
        cls,
        structure: Structure | Arm,
        alpha: ArrayLike = 1.0,
        beta: ArrayLike = 0.0,
        torque_std: ArrayLike = 1.0,
    ) -> Calibration:
        """A calibration known from elsewhere, with the arm's own parameters.

        Args:
            structure: The arm.
            alpha, beta: Gains and offsets, one number or one per joint.
            torque_std: Error to be expected of each joint's torque in [N m] or [N].
        """
        known = as_structure(structure)
        n, unknowns = known.arm.dof, known.unknowns
        numbers = (np.broadcast_to(np.asarray(x, float), (n,)).copy()
                   for x in (alpha, beta, torque_std))  # fmt: skip
        gains, offsets, errors = numbers
        return cls(
            joint_names=known.arm.coordinate_names,
            alpha=gains,
            beta=offsets,
            alpha_std=np.zeros(n),
            beta_std=np.zeros(n),
            covariance=np.zeros((len(unknowns), len(unknowns))),
            unknowns=unknowns,
            flaws=np.zeros(0),
            parameters=known.arm.parameters.copy(),
            torque_std=errors,
            observability=Observability(()),
            method="given",
        )

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
