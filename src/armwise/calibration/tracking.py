"""Gains, offsets and parameters followed through time, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.calibration.calibration import Calibration
    from armwise.calibration.structure import Structure
    from armwise.calibration.weighing import Weighed

_BELIEVED = {"gain": 0.02, "offset": np.deg2rad(2.0), "parameter": 0.1}
"""How far values may have moved since the calibration: the pull back to it."""

_REPEATED = 8.0
"""Filtered torques repeat themselves: so many readings count as one."""


class Tracked(NamedTuple):
    """Values as they seem to be now.

    Attributes:
        alpha, beta: Gains and offsets.
        alpha_std, beta_std: Their standard deviations.
        parameters: Base parameters, in the order of the structure's base.
        parameters_std: Their standard deviations.
        load: Mass in the hand in [kg] beyond the usual.
    """

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    alpha_std: Float[np.ndarray, " dof"]
    beta_std: Float[np.ndarray, " dof"]
    parameters: Float[np.ndarray, " base"]
    parameters_std: Float[np.ndarray, " base"]
    load: float


class Tracker:
    """Least squares with forgetting around a calibration, and what has moved since.

    Args:
        structure: What is known of the arm.
        calibration: Where everything was.
        forgetting: Share of the information that is forgotten each epoch.

    Attributes:
        alpha, beta: Gains and offsets around which it looks.
    """

    def __init__(
        self, structure: Structure, calibration: Calibration, forgetting: float
    ) -> None:
        self.alpha, self.beta = calibration.alpha.copy(), calibration.beta.copy()
        self._jumped = np.zeros(self.beta.size)
        self._sensors = len(structure.unknowns)
        self._keep = 1.0 - forgetting
        values = structure.base.values(
            np.where(structure.is_free, calibration.parameters, 0.0)
        )
        kinds = [name.rsplit(".", 1)[1] for name in structure.unknowns]
        usual = np.maximum(np.abs(values), 0.01 * np.abs(values).max(initial=1e-9))
        scale = [*(_BELIEVED[k] for k in kinds), *(_BELIEVED["parameter"] * usual)]
        self._prior = np.diag(1.0 / np.square(scale))
        self.restart(values)

    def restart(self, values: Float[np.ndarray, " base"]) -> None:
        """Forget everything but where to begin from."""
        self._values, self._load = values, 0.0
        self._gram = np.zeros((len(self._prior) + 1, len(self._prior) + 1))
        self._count = 1e-9

    def add(self, weighed: Weighed) -> None:
        """Take an epoch in; what was known before fades a little."""
        self._gram = self._keep * self._gram + weighed.gram
        self._count = self._keep * self._count + float(weighed.heard.sum())
        self._load = weighed.load

    def fit(self, weighed: Sequence[Weighed]) -> Float[np.ndarray, " base"]:
        """Begin from parameters that explain epochs, the sensors as they are.

        Returns:
            By how much they differ from those before.
        """
        self._gram = np.sum([x.gram for x in weighed], axis=0)
        self._count = float(sum(x.heard.sum() for x in weighed)) + 1e-9
        first = self._sensors
        precision = self._gram[first:-1, first:-1] / self._noise
        pull = self._gram[first:-1, -1] / self._noise
        step = np.linalg.solve(precision + self._prior[first:, first:], pull)
        self.restart(self._values + step)
        return np.asarray(step)

    def jump(self, joint: int, size: float, std: float) -> None:
        """A reading is too large by so much from now on."""
        self.beta[joint] -= size
        self._jumped[joint] = np.hypot(self._jumped[joint], std)

    def shift(self, unknown: int, size: float) -> None:
        """A gain, relative to itself, or an offset is another one from now on."""
        joint = unknown - (self._sensors - self.beta.size)
        if joint >= 0:
            self.beta[joint] += size
        else:
            self.alpha[unknown] *= 1.0 + size
        self.restart(self._values)

    @property
    def _noise(self) -> float:
        return float(_REPEATED * max(self._gram[-1, -1] / self._count, 1e-12))

    def now(self) -> Tracked:
        """Solve for what has changed since the calibration."""
        inverse = np.linalg.inv(self._gram[:-1, :-1] / self._noise + self._prior)
        moved = inverse @ (self._gram[:-1, -1] / self._noise)
        std = np.sqrt(np.diag(inverse))
        n, sensors = self.beta.size, self._sensors
        change = np.zeros((2, n))
        if sensors > n:
            change = np.array([moved[: sensors - n], std[: sensors - n]])
        return Tracked(
            alpha=self.alpha * (1.0 + change[0]),
            beta=self.beta + moved[sensors - n : sensors],
            alpha_std=np.abs(self.alpha) * change[1],
            beta_std=np.hypot(std[sensors - n : sensors], self._jumped),
            parameters=self._values + moved[sensors:],
            parameters_std=std[sensors:],
            load=self._load,
        )
