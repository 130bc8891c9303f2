"""One point's problem, compressed to a triangle.

With x = (α, β) and small flaws the torques are τ = Y(x) π. For each x the best π is a
linear problem; what is left, ρ(x) = (I − Y Y⁺) τ, depends on x alone (variable
projection, Golub and Pereyra 1973; its Jacobian after Kaufman 1975). One triangular
factor of [Y, ∂τ/∂x, τ], summed block by block, holds all of it: memory does not grow
with the recording.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.search_region import Point
from armwise.calibration.sensor_flaws import Straightener
from armwise.calibration.structure import Carried, Structure
from armwise.dynamics import Dynamics
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@dataclass(frozen=True, eq=False)
class Projected:
    """One point's problem, compressed.

    Attributes:
        point: Where.
        values: Best base parameters there, and the torques' delay in [s] last.
        factor: R of [Y, ∂τ/∂x, τ], rows divided by the torque noise.
        rows: How many torques counted.
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
    def share(self) -> float:
        """Cost per torque that counts."""
        return self.cost / max(self.rows, 1)

    @property
    def jacobian(self) -> Float[np.ndarray, "rows unknowns"]:
        """∂ρ/∂x up to an orthogonal factor, the linear part projected out."""
        return self.factor[self.linear :, self.linear : -1]

    @property
    def residual(self) -> Float[np.ndarray, " rows"]:
        """ρ up to the same factor."""
        return self.factor[self.linear :, -1]


# Least squares summed block by block: one triangular factor holds all of it.


class Gram:
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


def solve_linear(factor: np.ndarray, count: int) -> Float[np.ndarray, " count"]:
    """Best linear unknowns from an R factor; what data do not show stays zero."""
    left, right = factor[:count, :count], factor[:count, -1]
    size = np.linalg.norm(left, axis=0)
    size[size == 0.0] = 1.0
    scaled = np.linalg.lstsq(left / size, right, rcond=1e-10)[0]
    return np.asarray(scaled / size)


# Which way joints slide, and when they do not: what dry friction looks like.

_SLOW = 0.1
"""Share of a joint's usual top speed below which it may stick or creep."""

_SURELY = 0.9
"""How much of a filter's window must see one direction."""


@dataclass(frozen=True, eq=False)
class Sliding:
    """Directions of motors as the torques' low-pass shows them, in the sensors' sense.

    Attributes:
        directions: One column per motor; None for samples that were built by hand.
        is_heard: Torques that count: those of joints that surely slide.
        drive_weights: How far each coordinate turns each motor.
    """

    directions: Float[np.ndarray, "samples motors"] | None
    is_heard: np.ndarray | None
    drive_weights: Float[np.ndarray, "motors dof"]

    @classmethod
    def of(
        cls, sensed: Samples, drive_weights: Float[np.ndarray, "motors dof"]
    ) -> Sliding:
        """Tell sliding from sticking.

        A joint at rest holds whatever friction lets it, and one that creeps stretches
        its transmission: such torques say nothing of gravity.
        """
        resolution = np.asarray(sensed.preparation.speed_resolution)
        if not resolution.size:
            return cls(None, None, drive_weights)
        slow = _SLOW * np.percentile(np.abs(sensed.qd), 90, axis=0)
        dead_band = tuple(float(x) for x in np.maximum(resolution, slow))
        preparation = replace(sensed.preparation, speed_resolution=dead_band)
        judged = replace(sensed, preparation=preparation)
        slides = np.abs(judged.direction()) > _SURELY
        # A joint that hardly ever moves is better heard at rest than not at all.
        heard = slides | (slides.mean(axis=0) < 0.1)
        return cls(sensed.direction(drive_weights), heard, drive_weights)

    def thinned(self, step: int) -> Sliding:
        """Every so manieth sample."""
        if self.directions is None or self.is_heard is None:
            return self
        return replace(
            self, directions=self.directions[::step], is_heard=self.is_heard[::step]
        )

    def heard(self, samples: int) -> Float[np.ndarray, " dof"]:
        """How many of so many samples' torques count, joint by joint."""
        return np.asarray(self.weights(slice(0, samples)).sum(axis=0))

    def weights(self, rows: slice) -> Float[np.ndarray, "samples dof"]:
        """One for torques that count, zero for the others."""
        if self.is_heard is None:
            shape = (rows.stop - rows.start, self.drive_weights.shape[1])
            return np.ones(shape)
        return self.is_heard[rows].astype(float)

    def set_coulomb(
        self,
        Y: np.ndarray,
        rows: slice,
        signs: Float[np.ndarray, " dof"],
        columns: Int[np.ndarray, " drives"],
    ) -> None:
        """Show dry friction in a regressor as it looks through the torque's filter.

        Args:
            Y: Regressor of these rows, changed in place.
            rows: Which samples.
            signs: Of the sensors' gains.
            columns: Of the drives' Coulomb friction.
        """
        if self.directions is None:
            return
        for k, w in enumerate(self.drive_weights):
            turned = signs[np.argmax(np.abs(w))]
            column = turned * self.directions[rows, k]
            Y[:, :, columns[k]] = column[:, None] * w


# Torques as functions of sensor gains and offsets, the linear part eliminated.

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
        coulomb = self.structure.arm.layout.drive("coulomb")
        self.sliding.set_coulomb(Y, rows, np.sign(point.alpha), coulomb)
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
        parameters[self.structure.arm.layout.drive("coulomb")] = 0.0
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
