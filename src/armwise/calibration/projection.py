"""Torques as functions of sensor gains and offsets, the linear part eliminated.

With x = (α, β) the torques are τ = Y(x) π. For each x the best π is a linear problem;
what is left, ρ(x) = (I − Y Y⁺) τ, depends on x alone (variable projection, Golub and
Pereyra 1973; its Jacobian after Kaufman 1975). One triangular factor of [Y, ∂τ/∂x, τ],
summed block by block, holds all of it: memory does not grow with the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.sensed import in_angles
from armwise.calibration.structure import Structure
from armwise.dynamics import Dynamics
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

_BLOCK = 500
"""Samples whose columns are made together."""

_STEP = 1e-5
"""Step of central differences in [rad], and relative for gains."""


@dataclass(frozen=True, eq=False)
class Point:
    """Gains and offsets to try, joint by joint: θ = α s + β."""

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]

    def moved(self, step: Float[np.ndarray, " unknowns"]) -> Point:
        """Gains change by a fraction of themselves, offsets in [rad].

        A step with one number per joint moves offsets only.
        """
        n = self.beta.size
        gains = step[:-n] if step.size > n else np.zeros(n)
        return Point(self.alpha * (1.0 + gains), self.beta + step[-n:])


@dataclass(frozen=True, eq=False)
class Projected:
    """One point's problem, compressed.

    Attributes:
        point: Where.
        values: Best base parameters there, and the torques' delay in [s] last.
        factor: R of [Y, ∂τ/∂x, τ], rows divided by the torque noise.
        rows: How many torques went in.
        linear: Number of linear unknowns.
    """

    point: Point
    values: Float[np.ndarray, " linear"]
    factor: Float[np.ndarray, "width width"]
    rows: int
    linear: int

    @property
    def cost(self) -> float:
        """‖ρ‖², what no parameters explain."""
        return float(np.sum(self.factor[self.linear :, -1] ** 2))

    @property
    def jacobian(self) -> Float[np.ndarray, "rows unknowns"]:
        """∂ρ/∂x up to an orthogonal factor, the linear part projected out."""
        return self.factor[self.linear :, self.linear : -1]

    @property
    def residual(self) -> Float[np.ndarray, " rows"]:
        """ρ up to the same factor."""
        return self.factor[self.linear :, -1]


class Projector:
    """Makes `Projected` problems of one set of samples.

    Args:
        structure: What is known of the arm.
        sensed: Samples in the sensors' units.
        torque_std: Expected error of each joint's torque in [N m] or [N].
    """

    def __init__(
        self,
        structure: Structure,
        sensed: Samples,
        torque_std: Float[np.ndarray, " dof"],
    ) -> None:
        self.structure = structure
        self.sensed = sensed
        self.torque_std = torque_std
        self.indices = list(structure.base.indices)
        self.directions = _directions(structure, sensed)
        self.torque_rate = _rates(sensed)
        self._moving_share = np.ones(sensed.dof)
        if self.directions is not None:
            own = np.abs(self.directions[:, : sensed.dof]) > 0.9
            self._moving_share = own.mean(axis=0)

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
        if self.directions is not None:
            other.directions = self.directions[::step]
        return other

    @property
    def linear(self) -> int:
        """Number of linear unknowns: base parameters, and the torques' delay."""
        return len(self.indices) + 1

    def at(self, point: Point) -> Projected:
        """Solve for the linear part at a point, and linearise there."""
        values = solve_linear(self._linear_factor(point), self.linear)
        model = self._model(values)
        gram = _Gram()
        for Y, tau, rows in self.blocks(point):
            J = self.slopes(model, point, rows)
            gram.add(np.concatenate([Y, J, tau[:, :, None]], axis=2))
        size = len(self.sensed) * self.sensed.dof
        return Projected(point, values, gram.factor(), size, self.linear)

    def cost(self, point: Point) -> float:
        """‖ρ‖² at a point, without its derivatives."""
        factor = self._linear_factor(point)
        return float(np.sum(factor[self.linear :, -1] ** 2))

    def blocks(self, point: Point) -> Iterator[tuple[np.ndarray, np.ndarray, slice]]:
        """Yield Y, τ (known parts taken out) and rows, divided by the noise."""
        data = in_angles(self.sensed, point.alpha, point.beta)
        dynamics, known = self.structure.dynamics, self.structure.known_values
        signs = np.sign(point.alpha)
        for start in range(0, len(data), _BLOCK):
            rows = slice(start, min(start + _BLOCK, len(data)))
            Y = dynamics.regressor(data.q[rows], data.qd[rows], data.qdd[rows])
            self._set_coulomb(Y, rows, signs)
            tau = data.tau[rows] - Y @ known
            # τ(t) = Y π − delay · dτ/dt: a common delay is one more linear unknown.
            rate = self.torque_rate[rows, :, None]
            columns = np.concatenate([Y[:, :, self.indices], -rate], axis=2)
            weight = self._weights(rows)
            yield columns * weight[:, :, None], tau * weight, rows

    def slopes(
        self, model: Dynamics, point: Point, rows: slice
    ) -> Float[np.ndarray, "samples dof unknowns"]:
        """∂τ/∂x of a model with fixed parameters, divided by the noise."""
        sensed, n = self.sensed, point.beta.size
        s = [sensed.q[rows], sensed.qd[rows], sensed.qdd[rows]]
        unknowns = len(self.structure.unknowns)
        J = np.empty((s[0].shape[0], n, unknowns))
        for k in range(unknowns):
            step = np.zeros(unknowns)
            step[k] = _STEP
            ends = [_torque(model, s, point.moved(side * step)) for side in (1, -1)]
            J[:, :, k] = (ends[0] - ends[1]) / (2.0 * _STEP)
        J *= self._weights(rows)[:, :, None]
        return J

    def _weights(self, rows: slice) -> Float[np.ndarray, "samples dof"]:
        """One over the noise; nothing where a joint rests and friction is in doubt."""
        weight = np.ones((rows.stop - rows.start, self.torque_std.size))
        if self.directions is not None:
            moving = np.abs(self.directions[rows, : weight.shape[1]]) > 0.9
            # A joint that hardly ever moves is better heard at rest than not at all.
            weight *= moving | (self._moving_share < 0.1)
        return weight / self.torque_std

    def model(self, projected: Projected) -> Dynamics:
        """The arm with the parameters found at a point, without dry friction."""
        return self._model(projected.values)

    def _model(self, values: np.ndarray) -> Dynamics:
        parameters = self.structure.parameters(values[:-1])
        # Coulomb friction depends on the direction alone, which x does not change.
        parameters[10 * len(self.structure.arm.links) + 2 :: 4] = 0.0
        return Dynamics(self.structure.arm.with_parameters(parameters))

    def _linear_factor(self, point: Point) -> np.ndarray:
        gram = _Gram()
        for Y, tau, _ in self.blocks(point):
            gram.add(np.concatenate([Y, tau[:, :, None]], axis=2))
        return gram.factor()

    def _set_coulomb(self, Y: np.ndarray, rows: slice, signs: np.ndarray) -> None:
        """Show dry friction as it looks through the torque's filter."""
        if self.directions is None:
            return
        first = 10 * len(self.structure.arm.links) + 2
        weights = self.structure.drive_weights
        for k, w in enumerate(weights):
            turned = signs[np.argmax(np.abs(w))]
            column = turned * self.directions[rows, k]
            Y[:, :, first + 4 * k] = column[:, None] * w


def solve_linear(factor: np.ndarray, count: int) -> Float[np.ndarray, " base"]:
    """Best parameters from an R factor; what the data do not show stays zero."""
    left, right = factor[:count, :count], factor[:count, -1]
    size = np.linalg.norm(left, axis=0)
    size[size == 0.0] = 1.0
    scaled = np.linalg.lstsq(left / size, right, rcond=1e-10)[0]
    return np.asarray(scaled / size)


def _torque(model: Dynamics, s: list[np.ndarray], point: Point) -> np.ndarray:
    alpha = point.alpha
    return model.inverse_dynamics(s[0] * alpha + point.beta, s[1] * alpha, s[2] * alpha)


class _Gram:
    """Sums AᵀA over blocks, and factors it.

    Columns are scaled to one first, and a trace of noise (1e-13) is added to their
    squares: what is smaller than 3e-7 of a column cannot be told from nothing.
    """

    def __init__(self) -> None:
        self._sum: np.ndarray | float = 0.0

    def add(self, block: Float[np.ndarray, "samples dof width"]) -> None:
        """Add the rows of a block."""
        rows = block.reshape(-1, block.shape[-1])
        self._sum = self._sum + rows.T @ rows

    def factor(self) -> Float[np.ndarray, "width width"]:
        """Upper triangular R with RᵀR = AᵀA."""
        gram = np.asarray(self._sum)
        size = np.sqrt(np.diag(gram))
        size[size == 0.0] = 1.0
        scaled = gram / np.outer(size, size)
        scaled[np.diag_indices_from(scaled)] += 1e-13
        R: np.ndarray = np.linalg.cholesky(scaled).T * size
        return R


def _rates(sensed: Samples) -> np.ndarray:
    """dτ/dt, segment by segment, in [N m/s] or [N/s]."""
    rates = np.zeros(sensed.tau.shape)
    for rows in sensed.segments:
        if rows.stop - rows.start > 2:
            rates[rows] = np.gradient(sensed.tau[rows], sensed.time[rows], axis=0)
    return rates


def _directions(structure: Structure, sensed: Samples) -> np.ndarray | None:
    """Directions of the motors in the sensors' sense; None if samples are bare."""
    if not sensed.preparation.speed_resolution:
        return None
    return sensed.direction(structure.drive_weights)
