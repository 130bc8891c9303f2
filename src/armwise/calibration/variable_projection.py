"""Variable projection: torques over gains and offsets, linear unknowns eliminated.

With x = (α, β, flaws) the torques are τ = Y(x) π. For each x the best π is a linear
problem; its residual, ρ(x) = (I − Y Y⁺) τ, depends on x alone (separable nonlinear
least squares: Golub and Pereyra 1973; the Jacobian after Kaufman 1975). One triangular
factor of [Y, ∂τ/∂x, τ], summed block by block, holds a point's whole problem, so that
memory does not grow with the recording.

Sums, solving, and friction's direction are those of `regression`. Its accumulator is
not: that holds columns of a motion that is known, once, while here Y depends on the
unknowns x, and hundreds of points are tried; one Gram matrix of all joints is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.structure import Straightener, Structure
from armwise.recordings import Samples
from armwise.regression import (
    SETTLED_DIRECTION,
    GramSum,
    friction_direction,
    solve_system,
)

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_BLOCK = 500
"""Samples whose columns are computed together: some hundred kilobytes, that stay in
cache with the columns of the derivatives beside them."""

_STEP = 1e-5
"""Step of central differences in [rad], and relative for gains: near the cube root of
the rounding error, where truncation and cancellation are equally small."""

_REMEMBERED = 4000
"""Samples whose columns are kept for the next use of the same point: some megabytes."""

Block = tuple[np.ndarray, np.ndarray, slice]
"""Columns, torques and rows."""

_SLOW = 0.1
"""Fraction of a joint's top speed (90th percentile) below which it may stick or creep;
a tenth masks a few per cent of a triangular wave and all of its turning points."""


@dataclass(frozen=True, eq=False)
class SensorPoint:
    """Gains and offsets to try, joint by joint: θ = α s + β.

    Attributes:
        alpha, beta: Gains and offsets.
        flaws: Small flaws, in the order of the structure's; none when empty.
    """

    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    flaws: Float[np.ndarray, " flaws"] = field(default_factory=lambda: np.zeros(0))

    def moved(self, step: Float[np.ndarray, " unknowns"]) -> SensorPoint:
        """Gains change by a fraction of themselves, offsets in [rad], flaws last.

        A step without a number for each gain does not change the gains.
        """
        n, last = self.beta.size, step.size - self.flaws.size
        gains = step[: last - n] if last > n else 0.0
        return SensorPoint(
            self.alpha * (1.0 + gains),
            self.beta + step[last - n : last],
            self.flaws + step[last:],
        )

    def held(
        self, other: SensorPoint, is_free: Bool[np.ndarray, " unknowns"]
    ) -> SensorPoint:
        """This point, with the gains and offsets that are not free of another."""
        n = self.beta.size
        gains = is_free[:-n] if is_free.size > n else np.zeros(n, dtype=bool)
        return replace(
            self,
            alpha=np.where(gains, self.alpha, other.alpha),
            beta=np.where(is_free[-n:], self.beta, other.beta),
        )

    def difference(self, other: SensorPoint) -> Float[np.ndarray, " all"]:
        """From another point to this: relative gains, offsets, flaws."""
        gains = self.alpha / other.alpha - 1.0
        turns = self.beta - other.beta
        return np.concatenate([gains, turns, self.flaws - other.flaws])


@dataclass(frozen=True, eq=False)
class ProjectedProblem:
    """The least-squares problem at one point, compressed to a triangle.

    Attributes:
        point: Gains, offsets and flaws.
        values: Best base parameters there, and the torques' delay in [s] last.
        factor: R of [Y, ∂τ/∂x, τ], rows divided by the torque noise.
        rows: Number of torques used.
        linear: Number of linear unknowns.
    """

    point: SensorPoint
    values: Float[np.ndarray, " linear"]
    factor: Float[np.ndarray, "width width"]
    rows: int
    linear: int

    @property
    def cost(self) -> float:
        """‖ρ‖², what no parameters explain."""
        return float(np.sum(self.factor[self.linear :, -1] ** 2))

    @property
    def mean_cost(self) -> float:
        """Cost per torque used: one where residuals are as large as expected."""
        return self.cost / max(self.rows, 1)

    @property
    def jacobian(self) -> Float[np.ndarray, "rows unknowns"]:
        """∂ρ/∂x up to an orthogonal factor, the linear part projected out."""
        return self.factor[self.linear :, self.linear : -1]

    @property
    def residual(self) -> Float[np.ndarray, " rows"]:
        """ρ up to the same factor."""
        return self.factor[self.linear :, -1]


class Projector:
    """Poses the problem of one set of samples at any point.

    Args:
        structure: What is known of the arm.
        sensed: Samples in the sensors' units.
        torque_std: Expected error of each joint's torque in [N m] or [N].
        ends: Fraction of a joint's top speed in a segment below which its torques are
            not used there, where that is more than what rests are told by.
    """

    def __init__(
        self,
        structure: Structure,
        sensed: Samples,
        torque_std: Float[np.ndarray, " dof"],
        ends: float = 0.0,
    ) -> None:
        self.structure = structure
        self.sensed = sensed
        self.torque_std = torque_std
        self.indices = list(structure.base.indices)
        self.mask = FrictionMask.from_samples(sensed, structure.drive_weights, ends)
        self.torque_rate = _rates(sensed)
        self._straighten = Straightener.over(sensed.q)
        self._last: tuple[SensorPoint, list[Block]] | None = None

    def weighted(self, torque_std: Float[np.ndarray, " dof"]) -> Projector:
        """The same samples with another expectation of the torques' errors."""
        other = copy(self)
        other.torque_std = torque_std
        return other

    def over(self, sensed: Samples, torque_std: Float[np.ndarray, " dof"]) -> Projector:
        """Other samples, seen through the same sensors: ranges stay those of these."""
        other = Projector(self.structure, sensed, torque_std)
        other._straighten = self._straighten
        return other

    def thinned(self, step: int) -> Projector:
        """Every n-th of the same samples; filters and ranges stay those of all."""
        other = copy(self)
        other._last = None
        other.sensed = replace(self.sensed[::step], preparation=self.sensed.preparation)
        other.torque_rate = self.torque_rate[::step]
        other.mask = self.mask.thinned(step)
        return other

    @property
    def linear(self) -> int:
        """Number of linear unknowns: base parameters, and the torques' delay."""
        return len(self.indices) + 1

    def at(self, point: SensorPoint) -> ProjectedProblem:
        """Solve for the linear part at a point, and linearise there."""
        values = self._solve(self._linear_factor(point))
        parameters = self.structure.parameters(values[:-1])
        gram = GramSum()
        for Y, tau, rows in self.blocks(point):
            J = self.slopes(parameters, point, rows)
            gram.add(np.concatenate([Y, J, tau[:, :, None]], axis=2))
        used = self.mask.row_counts(len(self.sensed)).sum()
        return ProjectedProblem(point, values, gram.factor(), int(used), self.linear)

    def cost(self, point: SensorPoint) -> float:
        """‖ρ‖² at a point, without its derivatives."""
        factor = self._linear_factor(point)
        return float(np.sum(factor[self.linear :, -1] ** 2))

    def residual_std(self, solution: ProjectedProblem) -> Float[np.ndarray, " dof"]:
        """Root mean square residual of each joint's torque in [N m] or [N]."""
        total = np.zeros(self.sensed.dof)
        for Y, tau, _ in self.blocks(solution.point):
            residual = tau - Y @ solution.values
            total += np.sum(residual**2, axis=0)
        count = self.mask.row_counts(len(self.sensed))
        std = np.sqrt(total / np.maximum(count, 1.0)) * self.torque_std
        # Never zero, even in noise-free simulation: rows are divided by it.
        return np.maximum(std, 1e-9 * max(float(self.torque_rms.max()), 1e-12))

    @property
    def torque_rms(self) -> Float[np.ndarray, " dof"]:
        """Root mean square of each joint's torque in [N m] or [N]."""
        return np.sqrt(np.mean(self.sensed.tau**2, axis=0))

    @property
    def drive_loads(self) -> Float[np.ndarray, " drives"]:
        """Torque that each motor works against, root mean square."""
        return np.asarray(np.abs(self.structure.drive_weights) @ self.torque_rms)

    def blocks(
        self, point: SensorPoint, parts: Sequence[slice] | None = None
    ) -> Iterator[Block]:
        """Yield Y, τ (known parts subtracted) and rows, divided by the noise.

        Args:
            point: Gains, offsets and flaws.
            parts: Rows to take together; all, in blocks, when not given.
        """
        if parts is None and self._last is not None and self._last[0] is point:
            blocks: Iterable[Block] = self._last[1]
        else:
            blocks = self._plain_blocks(point, parts or list(self.block_rows()))
            # A step is tried, solved and linearised at one point, one after another.
            if parts is None and len(self.sensed) <= _REMEMBERED:
                blocks = list(blocks)
                self._last = (point, blocks)
        for columns, tau, rows in blocks:
            weight = self.mask.weights(rows) / self.torque_std
            yield columns * weight[:, :, None], tau * weight, rows

    def _plain_blocks(
        self, point: SensorPoint, parts: Sequence[slice]
    ) -> Iterator[Block]:
        """The same before they are divided by the noise, rests included."""
        constants = self.structure.known_values
        for rows in parts:
            Y, tau = self.regressor(point, rows), self.sensed.tau[rows]
            if constants.any():
                tau = tau - Y @ constants
            columns = np.empty((*tau.shape, self.linear))
            np.take(Y, self.indices, axis=2, out=columns[:, :, :-1])
            # τ(t) = Y π − delay · dτ/dt: a common delay is one more linear unknown.
            columns[:, :, -1] = -self.torque_rate[rows]
            yield columns, tau, rows

    def block_rows(self) -> Iterator[slice]:
        """Rows whose columns are computed together."""
        for start in range(0, len(self.sensed), _BLOCK):
            yield slice(start, min(start + _BLOCK, len(self.sensed)))

    def regressor(
        self, point: SensorPoint, rows: slice
    ) -> Float[np.ndarray, "samples dof parameters"]:
        """Y of all parameters for recorded torques, were a point true."""
        Y = self.structure.dynamics.regressor(*self.motion(point, rows))
        structure, coulomb = self.structure, self.structure.arm.layout.drive("coulomb")
        slow = structure.flaws.part("slow_friction", point.flaws, point.beta.size)
        self.mask.set_coulomb(Y, rows, np.sign(point.alpha), coulomb, slow)
        Y *= self.torque_scale(point)[:, None]
        return Y

    def motion(
        self, point: SensorPoint, rows: slice
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd of some samples, were a point true."""
        s, alpha = self._straight(point, rows), point.alpha
        return s[0] * alpha + point.beta, s[1] * alpha, s[2] * alpha

    def _straight(
        self, point: SensorPoint, rows: slice
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Readings and their derivatives, bow and S of a point taken out."""
        sensed, n = self.sensed, point.beta.size
        s = sensed.q[rows], sensed.qd[rows], sensed.qdd[rows]
        bow, bend = (
            self.structure.flaws.part(kind, point.flaws, n) for kind in ("bow", "s")
        )
        if bow is None or bend is None:
            return s
        return self._straighten(*s, bow, bend)

    def slopes(
        self,
        parameters: Float[np.ndarray, " parameters"],
        point: SensorPoint,
        rows: slice,
    ) -> Float[np.ndarray, "samples dof unknowns"]:
        """∂τ/∂x of an arm with fixed parameters, divided by the noise.

        Kaufman's approximation: the derivative of Y⁺ is left out. It is multiplied by
        the residual, and so vanishes to second order near a solution.
        """
        structure, n = self.structure, point.beta.size
        coulomb = structure.arm.layout.drive("coulomb")
        dry, parameters = parameters[coulomb], parameters.copy()
        # Coulomb friction depends on the direction alone, which readings tell.
        parameters[coulomb] = 0.0
        motion = np.stack(self.motion(point, rows))
        changes = self._motion_slopes(point, rows)
        # All at once, both sides: each unknown moves one joint, or scales one torque.
        ends = np.repeat(motion[:, None], 2 * len(changes), axis=1)
        for k, (j, change) in enumerate(changes):
            ends[:, 2 * k, :, j] += _STEP * change
            ends[:, 2 * k + 1, :, j] -= _STEP * change
        torque = structure.dynamics.inverse_dynamics_of(
            parameters, *ends.reshape(3, -1, n)
        ).reshape(len(changes), 2, -1, n)
        moved = (torque[:, 0] - torque[:, 1]) * (self.torque_scale(point) / 2 / _STEP)
        J = np.moveaxis(moved, 0, 2)
        last, scaled = len(structure.unknowns), []
        if structure.flaws.part("torque_gain", point.flaws, n) is not None:
            tau = structure.dynamics.inverse_dynamics_of(parameters, *motion)
            gains = np.zeros((*tau.shape, n))
            gains[:, range(n), range(n)] = tau
            scaled.append(gains)
        if structure.flaws.part("slow_friction", point.flaws, n) is not None:
            more = self.mask.slow_columns(rows, np.sign(point.alpha), dry)
            scaled.append(more * self.torque_scale(point)[:, None])
        J = np.concatenate([J[:, :, :last], *scaled, J[:, :, last:]], axis=2)
        weight = self.mask.weights(rows) / self.torque_std
        return np.asarray(J * weight[:, :, None])

    def _motion_slopes(
        self, point: SensorPoint, rows: slice
    ) -> list[tuple[int, Float[np.ndarray, "3 samples"]]]:
        """Per unknown that moves a joint: which, and its q, qd, qdd by the unknown."""
        n, alpha, flaws = point.beta.size, point.alpha, self.structure.flaws
        changes = []
        if not self.structure.gains_known:
            gains = np.stack(self._straight(point, rows)) * alpha
            changes += [gains[:, :, j] for j in range(n)]
        turn = np.zeros((3, rows.stop - rows.start))
        turn[0] = 1.0
        changes += [turn] * n
        if flaws.part("bow", point.flaws, n) is not None:
            sensed, unit, none = self.sensed, np.ones(n), np.zeros(n)
            s = sensed.q[rows], sensed.qd[rows], sensed.qdd[rows]
            for bow, bend in ((unit, none), (none, unit)):
                # Linear in both: what one of each adds to the readings.
                straight = self._straighten(*s, bow, bend)
                bent = (np.stack(straight) - np.stack(s)) * alpha
                changes += [bent[:, :, j] for j in range(n)]
        return [(k % n, change) for k, change in enumerate(changes)]

    def model(self, solution: ProjectedProblem) -> Float[np.ndarray, " parameters"]:
        """The arm's parameters at a solution."""
        return self.structure.parameters(solution.values[:-1])

    def _solve(self, factor: np.ndarray) -> Float[np.ndarray, " linear"]:
        """Best linear unknowns; zero along directions that no data determine."""
        system = factor[: self.linear]
        return solve_system(system, np.zeros(self.linear), self.torque_std).values

    def _linear_factor(self, point: SensorPoint) -> np.ndarray:
        gram = GramSum()
        for Y, tau, _ in self.blocks(point):
            gram.add(np.concatenate([Y, tau[:, :, None]], axis=2))
        return gram.factor()

    def torque_scale(self, point: SensorPoint) -> Float[np.ndarray, " dof"]:
        """Recorded over true torque, joint by joint."""
        n = point.beta.size
        error = self.structure.flaws.part("torque_gain", point.flaws, n)
        return np.ones(n) if error is None else 1.0 + error


def _rates(sensed: Samples) -> np.ndarray:
    """dτ/dt, segment by segment, in [N m/s] or [N/s]."""
    rates = np.zeros(sensed.tau.shape)
    for rows in sensed.segments:
        if rows.stop - rows.start > 2:
            rates[rows] = np.gradient(sensed.tau[rows], sensed.time[rows], axis=0)
    return rates


# Rows that are used: those of joints that slide, whose dry friction has a direction.

_RARELY_MOVING = 0.1
"""Fraction of samples in which a joint must slide for its rests to be masked: one that
moves less is calibrated from its rests rather than from next to nothing."""

SETTLING = 3.0
"""Time that a low-pass forwards and backwards is disturbed by a step, in periods of its
cut-off: a Butterworth filter's response has then decayed below a per cent."""


@dataclass(frozen=True, eq=False)
class FrictionMask:
    """Directions of motors as the torques' low-pass shows them, in the sensors' sense.

    Attributes:
        directions: One column per motor; None for samples that were not filtered.
        is_used: Torques that are used: those of joints that slide.
        drive_weights: How far each coordinate turns each motor.
        slowness: Usual speed of each motor over its speed, less one: what friction
            that rises towards rest, as Stribeck's, is proportional to about there.
    """

    directions: Float[np.ndarray, "samples motors"] | None
    is_used: Bool[np.ndarray, "samples dof"] | None
    drive_weights: Float[np.ndarray, "motors dof"]
    slowness: Float[np.ndarray, "samples motors"] | None = None

    @classmethod
    def from_samples(
        cls,
        sensed: Samples,
        drive_weights: Float[np.ndarray, "motors dof"],
        ends: float = 0.0,
    ) -> FrictionMask:
        """Tell sliding from sticking.

        Identification only masks rows in which friction reverses. Here rests are masked
        too: a joint at rest holds whatever friction allows, and one that creeps
        stretches its transmission, which gravity, the only signal, would be blamed for.
        """
        resolution = np.asarray(sensed.preparation.speed_resolution)
        if not resolution.size:
            return cls(None, None, drive_weights)
        least = _SLOW * np.percentile(np.abs(sensed.qd), 90, axis=0)
        least = np.maximum(resolution, least)
        direction = _direction(sensed, least)
        is_settled = np.ones(direction.shape, dtype=bool)
        if ends > 0.0:
            for rows in sensed.segments:
                part = sensed[rows]
                top = np.percentile(np.abs(part.qd), 90, axis=0)
                direction[rows] = _direction(part, np.maximum(least, ends * top))
                is_settled[rows] = _is_settled(part, least)
        slides = np.abs(direction) > SETTLED_DIRECTION
        is_rare = slides.mean(axis=0) < _RARELY_MOVING
        is_used = (slides & is_settled) | is_rare
        directions = friction_direction(sensed, drive_weights)
        slowness = _slowness(np.abs(sensed.qd @ drive_weights.T), directions)
        return cls(directions, is_used, drive_weights, slowness)

    def thinned(self, step: int) -> FrictionMask:
        """Every n-th sample."""
        if self.directions is None or self.is_used is None:
            return self
        slowness = None if self.slowness is None else self.slowness[::step]
        return replace(
            self,
            directions=self.directions[::step],
            is_used=self.is_used[::step],
            slowness=slowness,
        )

    def row_counts(self, samples: int) -> Float[np.ndarray, " dof"]:
        """How many of so many samples' torques are used, joint by joint."""
        return np.asarray(self.weights(slice(0, samples)).sum(axis=0))

    def weights(self, rows: slice) -> Float[np.ndarray, "samples dof"]:
        """One for torques that are used, zero for the others."""
        if self.is_used is None:
            shape = (rows.stop - rows.start, self.drive_weights.shape[1])
            return np.ones(shape)
        return self.is_used[rows].astype(float)

    def set_coulomb(
        self,
        Y: np.ndarray,
        rows: slice,
        signs: Float[np.ndarray, " dof"],
        columns: np.ndarray,
        slow: Float[np.ndarray, " dof"] | None = None,
    ) -> None:
        """Show dry friction in a regressor as it looks through the torque's filter.

        Args:
            Y: Regressor of these rows, changed in place.
            rows: Which samples.
            signs: Of the sensors' gains.
            columns: Of the drives' Coulomb friction.
            slow: What friction rises by towards rest, as a fraction, per coordinate.
        """
        if self.directions is None:
            return
        for k, w in enumerate(self.drive_weights):
            # A motor turns with its main coordinate; so does a reversed sensor's sign.
            main = np.argmax(np.abs(w))
            column = signs[main] * self.directions[rows, k]
            if slow is not None and self.slowness is not None:
                column = column * (1.0 + slow[main] * self.slowness[rows, k])
            Y[:, :, columns[k]] = column[:, None] * w

    def slow_columns(
        self,
        rows: slice,
        signs: Float[np.ndarray, " dof"],
        dry: Float[np.ndarray, " motors"],
    ) -> Float[np.ndarray, "samples dof dof"]:
        """What each joint's torque gains by each coordinate's `slow`, in [N m].

        Args:
            rows: Which samples.
            signs: Of the sensors' gains.
            dry: Coulomb friction of each motor in [N m].
        """
        n = self.drive_weights.shape[1]
        total = np.zeros((rows.stop - rows.start, n, n))
        if self.directions is None or self.slowness is None:
            return total
        for k, w in enumerate(self.drive_weights):
            main = np.argmax(np.abs(w))
            more = dry[k] * signs[main] * self.directions[rows, k]
            total[:, :, main] += (more * self.slowness[rows, k])[:, None] * w
        return total


def _slowness(
    speed: Float[np.ndarray, "samples motors"],
    directions: Float[np.ndarray, "samples motors"],
) -> Float[np.ndarray, "samples motors"]:
    """Usual speed over speed, less one; zero for motors that hardly move."""
    slides = np.abs(directions) > SETTLED_DIRECTION
    slowness = np.zeros_like(speed)
    for k in np.flatnonzero(slides.mean(axis=0) >= _RARELY_MOVING):
        typical = np.median(speed[slides[:, k], k])
        # Three times: slower torques are hardly used.
        ratio = np.minimum(typical / np.maximum(speed[:, k], 1e-12), 3.0)
        slowness[:, k] = ratio - 1.0
    return slowness


def _is_settled(
    sensed: Samples, least: Float[np.ndarray, " dof"]
) -> Bool[np.ndarray, "samples dof"]:
    """Where the torques' low-pass has forgotten a joint's last reversal, and the next.

    How friction goes through zero, sticking or creeping, is nobody's to know. What it
    differs by from a step rings on in the low-pass, by some thousandths of it, always
    at the same readings: gains would be a ten-thousandth off, without any scatter.
    Beyond a segment's ends a joint may reverse at once.
    """
    bandwidth = sensed.preparation.torque_bandwidth_hz
    reach = 0 if bandwidth is None else round(SETTLING / bandwidth * sensed.rate_hz)
    around = ((reach + 1, reach), (0, 0))
    slow = np.pad(np.abs(sensed.qd) < least, around, constant_values=True)
    total = np.cumsum(slow, axis=0)
    return np.asarray(total[2 * reach + 1 :] == total[: -2 * reach - 1])


def _direction(
    sensed: Samples, least: Float[np.ndarray, " dof"]
) -> Float[np.ndarray, "samples dof"]:
    """Directions as the torques' low-pass shows them, none below a speed."""
    dead_band = tuple(float(x) for x in least)
    preparation = replace(sensed.preparation, speed_resolution=dead_band)
    return friction_direction(replace(sensed, preparation=preparation))
