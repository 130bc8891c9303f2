"""Torques as functions of sensor gains and offsets, the linear part eliminated.

With x = (α, β) and small flaws the torques are τ = Y(x) π. For each x the best π is a
linear problem; what is left, ρ(x) = (I − Y Y⁺) τ, depends on x alone (variable
projection, Golub and Pereyra 1973; its Jacobian after Kaufman 1975). One triangular
factor of [Y, ∂τ/∂x, τ], summed block by block, holds all of it: memory does not grow
with the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.carried import Carried
from armwise.calibration.flaws import Straightener
from armwise.calibration.gram import Gram, solve_linear
from armwise.calibration.point import Point
from armwise.calibration.projected import Projected
from armwise.calibration.sliding import Sliding
from armwise.calibration.structure import Structure
from armwise.dynamics import Dynamics
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

_BLOCK = 500
"""Samples whose columns are made together."""

_STEP = 1e-5
"""Step of central differences in [rad], and relative for gains."""


class Projector:
    """Makes `Projected` problems of one set of samples.

    Args:
        structure: What is known of the arm.
        sensed: Samples in the sensors' units.
        torque_std: Expected error of each joint's torque in [N m] or [N].
        carried: A known body that some of the samples were taken with.
    """

    def __init__(
        self,
        structure: Structure,
        sensed: Samples,
        torque_std: Float[np.ndarray, " dof"],
        carried: Carried | None = None,
    ) -> None:
        self.structure = structure
        self.sensed = sensed
        self.torque_std = torque_std
        self.indices = list(structure.base.indices)
        self.sliding = Sliding.of(sensed, structure.drive_weights)
        self.torque_rate = _rates(sensed)
        self.carried = carried
        self._straighten = Straightener.over(sensed.q)

    def weighted(self, torque_std: Float[np.ndarray, " dof"]) -> Projector:
        """The same samples with another expectation of the torques' errors."""
        other = copy(self)
        other.torque_std = torque_std
        return other

    def thinned(self, step: int) -> Projector:
        """Every so manieth of the same samples."""
        other = copy(self)
        kept = self.sensed[::step]
        other.sensed = replace(kept, preparation=self.sensed.preparation)
        other.torque_rate = self.torque_rate[::step]
        other.sliding = self.sliding.thinned(step)
        other.carried = None if self.carried is None else self.carried.thinned(step)
        return other

    @property
    def linear(self) -> int:
        """Number of linear unknowns: base parameters, and the torques' delay."""
        return len(self.indices) + 1

    def at(self, point: Point) -> Projected:
        """Solve for the linear part at a point, and linearise there."""
        values = solve_linear(self._linear_factor(point), self.linear)
        model = self._model(values)
        gram = Gram()
        for Y, tau, rows in self.blocks(point):
            J = self.slopes(model, point, rows)
            gram.add(np.concatenate([Y, J, tau[:, :, None]], axis=2))
        heard = self.sliding.heard(len(self.sensed)).sum()
        return Projected(point, values, gram.factor(), int(heard), self.linear)

    def cost(self, point: Point) -> float:
        """‖ρ‖² at a point, without its derivatives."""
        factor = self._linear_factor(point)
        return float(np.sum(factor[self.linear :, -1] ** 2))

    def blocks(
        self, point: Point, parts: Sequence[slice] | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray, slice]]:
        """Yield Y, τ (known parts taken out) and rows, divided by the noise.

        Args:
            point: Where.
            parts: Rows to take together; all, in handy pieces, when not given.
        """
        for rows in parts if parts is not None else self.stretches():
            Y = self.regressor(point, rows)
            tau = self.sensed.tau[rows] - Y @ self.structure.known_values
            if self.carried is not None:
                tau -= self.carried.torque(Y, rows)
            # τ(t) = Y π − delay · dτ/dt: a common delay is one more linear unknown.
            rate = self.torque_rate[rows, :, None]
            columns = np.concatenate([Y[:, :, self.indices], -rate], axis=2)
            weight = self.sliding.weights(rows) / self.torque_std
            yield columns * weight[:, :, None], tau * weight, rows

    def stretches(self) -> Iterator[slice]:
        """Rows whose columns are made together."""
        for start in range(0, len(self.sensed), _BLOCK):
            yield slice(start, min(start + _BLOCK, len(self.sensed)))

    def regressor(
        self, point: Point, rows: slice
    ) -> Float[np.ndarray, "samples dof parameters"]:
        """Y of all parameters for recorded torques, were a point true."""
        Y = self.structure.dynamics.regressor(*self.motion(point, rows))
        first = 10 * len(self.structure.arm.links) + 2
        self.sliding.set_coulomb(Y, rows, np.sign(point.alpha), first)
        Y *= self.torque_scale(point)[:, None]
        return Y

    def motion(
        self, point: Point, rows: slice
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd of some samples, were a point true."""
        sensed, alpha = self.sensed, point.alpha
        s = sensed.q[rows], sensed.qd[rows], sensed.qdd[rows]
        bow, bend = (
            self.structure.flaws.part(kind, point.flaws, alpha.size)
            for kind in ("bow", "s")
        )
        if bow is not None and bend is not None:
            s = self._straighten(*s, bow, bend)
        return s[0] * alpha + point.beta, s[1] * alpha, s[2] * alpha

    def slopes(
        self, model: Dynamics, point: Point, rows: slice
    ) -> Float[np.ndarray, "samples dof unknowns"]:
        """∂τ/∂x of a model with fixed parameters, divided by the noise."""
        unknowns = len(self.structure.unknowns) + point.flaws.size
        J = np.empty((rows.stop - rows.start, point.beta.size, unknowns))
        for k in range(unknowns):
            step = np.zeros(unknowns)
            step[k] = _STEP
            ends = [self._torque(model, point.moved(side * step), rows)
                    for side in (1, -1)]  # fmt: skip
            J[:, :, k] = (ends[0] - ends[1]) / (2.0 * _STEP)
        weight = self.sliding.weights(rows) / self.torque_std
        J *= weight[:, :, None]
        return J

    def model(self, projected: Projected) -> Dynamics:
        """The arm with the parameters found at a point, without dry friction."""
        return self._model(projected.values)

    def _model(self, values: np.ndarray) -> Dynamics:
        parameters = self.structure.parameters(values[:-1])
        # Coulomb friction depends on the direction alone, which x does not change.
        parameters[10 * len(self.structure.arm.links) + 2 :: 4] = 0.0
        return Dynamics(self.structure.arm.with_parameters(parameters))

    def _linear_factor(self, point: Point) -> np.ndarray:
        gram = Gram()
        for Y, tau, _ in self.blocks(point):
            gram.add(np.concatenate([Y, tau[:, :, None]], axis=2))
        return gram.factor()

    def _torque(self, model: Dynamics, point: Point, rows: slice) -> np.ndarray:
        motion = self.motion(point, rows)
        torque = model.inverse_dynamics(*motion)
        if self.carried is not None:
            Y = self.structure.dynamics.regressor(*motion)
            torque = torque + self.carried.torque(Y, rows)
        return torque * self.torque_scale(point)

    def torque_scale(self, point: Point) -> Float[np.ndarray, " dof"]:
        """What is recorded of a torque of one, joint by joint."""
        n = point.beta.size
        wrong = self.structure.flaws.part("torque_gain", point.flaws, n)
        return np.ones(n) if wrong is None else 1.0 + wrong


def _rates(sensed: Samples) -> np.ndarray:
    """dτ/dt, segment by segment, in [N m/s] or [N/s]."""
    rates = np.zeros(sensed.tau.shape)
    for rows in sensed.segments:
        if rows.stop - rows.start > 2:
            rates[rows] = np.gradient(sensed.tau[rows], sensed.time[rows], axis=0)
    return rates
