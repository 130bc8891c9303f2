"""Gains, offsets and parameters followed through time, with their uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration.calibration import Calibration
from armwise.calibration.projection import Point
from armwise.calibration.structure import Structure
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

_BELIEVED = {"gain": 0.02, "offset": np.deg2rad(2.0), "parameter": 0.1}
"""How far values may have moved since the calibration: the pull back to it."""


class Tracked(NamedTuple):
    """Values as they seem to be now.

    Attributes:
        alpha, beta: Gains and offsets.
        alpha_std, beta_std: Their standard deviations.
        parameters: Base parameters, in the order of the structure's base.
        parameters_std: Their standard deviations.
    """

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    alpha_std: Float[np.ndarray, " dof"]
    beta_std: Float[np.ndarray, " dof"]
    parameters: Float[np.ndarray, " base"]
    parameters_std: Float[np.ndarray, " base"]


class Tracker:
    """Least squares with forgetting around a calibration.

    Args:
        structure: What is known of the arm.
        calibration: Where everything was.
        forgetting: Share of the information that is forgotten each epoch.
    """

    def __init__(
        self, structure: Structure, calibration: Calibration, forgetting: float
    ) -> None:
        self._structure, self._calibration = structure, calibration
        self._keep = 1.0 - forgetting
        self._indices = list(structure.base.indices)
        values = structure.base.values(
            np.where(structure.is_free, calibration.parameters, 0.0)
        )
        self._values = values
        kinds = [name.rsplit(".", 1)[1] for name in structure.unknowns]
        usual = np.maximum(np.abs(values), 0.01 * np.abs(values).max(initial=1e-9))
        scale = [*(_BELIEVED[k] for k in kinds), *(_BELIEVED["parameter"] * usual)]
        self._prior = np.diag(1.0 / np.square(scale))
        self._information = np.zeros_like(self._prior)
        self._pull = np.zeros(len(scale))
        self._left, self._count = 0.0, 1e-9

    def add(
        self, data: Samples, J: np.ndarray, r: np.ndarray, std: np.ndarray, point: Point
    ) -> None:
        """Take samples in: slopes J by gains and offsets, residuals r."""
        Y = self._structure.dynamics.regressor(
            data.q * point.alpha + point.beta,
            data.qd * point.alpha,
            data.qdd * point.alpha,
        )[:, :, self._indices]
        A = np.concatenate([J, Y / std[:, None]], axis=2)
        A = np.where((r == 0.0)[:, :, None], 0.0, A).reshape(-1, A.shape[2])
        self._information += A.T @ A
        self._pull += A.T @ r.ravel()
        self._left += float(np.sum(r**2))
        self._count += r.size

    def parameters_alone(self) -> Float[np.ndarray, " base"]:
        """Parameters that explain the samples so far with the sensors as they are."""
        first = len(self._structure.unknowns)
        noise = 8.0 * max(self._left / self._count, 1e-12)
        precision = self._information[first:, first:] / noise
        precision = precision + self._prior[first:, first:]
        return self._values + np.linalg.solve(precision, self._pull[first:] / noise)

    def restart(self, values: Float[np.ndarray, " base"]) -> None:
        """Forget everything but other parameters to begin from."""
        self._values = values
        self._information[:] = 0.0
        self._pull[:] = 0.0
        self._left, self._count = 0.0, 1e-9

    def close(self) -> None:
        """Forget a little."""
        self._information *= self._keep
        self._pull *= self._keep
        self._left *= self._keep
        self._count *= self._keep

    def now(self) -> Tracked:
        """Solve for what has changed since the calibration."""
        # Filtered torques repeat themselves: eight readings count as one.
        noise = 8.0 * max(self._left / self._count, 1e-12)
        precision = self._information / noise + self._prior
        inverse = np.linalg.inv(precision)
        moved, std = inverse @ (self._pull / noise), np.sqrt(np.diag(inverse))
        n, sensors = self._calibration.beta.size, len(self._structure.unknowns)
        gains = slice(0, sensors - n)
        change = np.zeros((2, n))
        if sensors > n:
            change = np.array([moved[gains], std[gains]])
        alpha = self._calibration.alpha
        return Tracked(
            alpha=alpha * (1.0 + change[0]),
            beta=self._calibration.beta + moved[sensors - n : sensors],
            alpha_std=np.abs(alpha) * change[1],
            beta_std=std[sensors - n : sensors],
            parameters=self._values + moved[sensors:],
            parameters_std=std[sensors:],
        )
