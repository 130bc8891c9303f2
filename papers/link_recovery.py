"""The links of the MIT direct-drive arm, identified from simulated recordings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.control import ComputedTorque
from armwise.dynamics import Dynamics
from armwise.identification import Estimate, WeightedLeastSquares, identify
from armwise.motions import Quintic
from armwise.plants import Encoder, SimulatedArm, Tachometer, TorqueSensor, run
from armwise.recordings import Samples, prepare

if TYPE_CHECKING:
    from jaxtyping import Float

SAMPLES = 200
"""Samples of each motion in the paper."""

RIDGE = 10.0
"""d of the paper's ridge regression."""


def motions() -> tuple[Quintic, ...]:
    """The three quintics of the paper, 1.3 s each."""
    ends = (
        ((330.0, 289.1, 230.0), (80.0, 39.1, -10.0)),
        ((330.0, 269.1, -30.0), (80.0, 19.1, 220.0)),
        ((80.0, 269.1, -30.0), (330.0, 19.1, 220.0)),
    )
    return tuple(Quintic(np.deg2rad(a), np.deg2rad(b), 1.3) for a, b in ends)


def other_motion() -> Quintic:
    """The first motion backwards: not among those that were fitted."""
    first = motions()[0]
    return replace(first, start=first.end, end=first.start)


@dataclass(frozen=True, eq=False)
class Recovery:
    """The paper's arm, identified from simulated recordings of itself.

    Attributes:
        truth: The arm that was simulated.
        estimate: What was found.
        fitted: The samples it was found from.
        other: Samples of a motion left out.
    """

    truth: Arm
    estimate: Estimate
    fitted: Samples
    other: Samples

    def combination(self, weights: dict[str, float]) -> tuple[float, float, float]:
        """Value, standard deviation and true value of a sum of parameters."""
        names = self.truth.parameter_names
        c = np.zeros(len(self.estimate.base.names))
        for name, weight in weights.items():
            c[names.index(name)] = weight
        # c is identifiable, so c = Kᵀ w with w its entries at the leading parameters.
        w = c[list(self.estimate.base.indices)]
        value = float(w @ self.estimate.base_values)
        variance = float(w @ self.estimate.base_covariance @ w)
        true = float(c[: len(names)] @ self.truth.parameters)
        return value, float(np.sqrt(variance)), true

    def normalised_errors(self) -> Float[np.ndarray, " base"]:
        """Error of each base parameter over its standard deviation."""
        truth = self.estimate.base.values(self.truth.parameters)
        return np.asarray((self.estimate.base_values - truth) / self.estimate.base_std)


@cache
def recover(seed: int = 0) -> Recovery:
    """Simulate with resolvers, tachometers and motor currents; identify.

    Accelerations come from tachometers differentiated through 30 Hz, as in the paper.
    """
    truth = load_arm("ddarm_identified")
    sensors = (
        Encoder(resolution=2 * np.pi / 2**16),
        Tachometer(noise_std=0.005),
        TorqueSensor(noise_std=[2.0, 1.0, 0.5]),
    )
    plant = SimulatedArm(truth, sensors=sensors, seed=seed)
    controller = ComputedTorque(load_arm("ddarm"), 400.0, 40.0)
    recordings = [run(plant, controller, motion) for motion in motions()]
    fitted = prepare(recordings, 30.0, velocity="measured", lag=0.0)
    other = prepare(run(plant, controller, other_motion()), like=fitted)
    estimate = identify(
        truth, fitted, WeightedLeastSquares(), terms=("links",), friction="linear"
    )
    return Recovery(truth, estimate, fitted, other)


def nominal_regressor() -> Float[np.ndarray, "rows 30"]:
    """K of the three motions as planned, 200 samples each."""
    dynamics = Dynamics(load_arm("ddarm"))
    parts = [
        dynamics.regressor(*m.sample(np.linspace(0.0, m.duration, SAMPLES)))
        for m in motions()
    ]
    return np.concatenate([Y.reshape(-1, Y.shape[-1]) for Y in parts])[:, :30]


def ridge_split() -> Float[np.ndarray, " 30"]:
    """What ridge regression with d = 10 makes of Table 4's parameters."""
    K = nominal_regressor()
    known = load_arm("ddarm_identified").parameters[:30]
    gram = K.T @ K
    return np.asarray(np.linalg.solve(gram + RIDGE * np.eye(30), gram @ known))


def prediction_errors(
    found: Recovery,
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
    """Root-mean-square torque error [N m], motion left out: estimated and CAD model."""
    data = found.other
    cad = Dynamics(load_arm("ddarm")).inverse_dynamics(data.q, data.qd, data.qdd)
    estimated = found.estimate.predict(data)
    return _rms(data.tau - estimated), _rms(data.tau - cad)


def _rms(error: np.ndarray) -> Float[np.ndarray, " joints"]:
    return np.asarray(np.sqrt(np.mean(error**2, axis=0)))
