"""Methods of load identification from a wrench.

Each one sets up its own regression on the ten parameters: with accelerations, by plain
least squares, over integral windows, by the rate of momentum, or at rest in several
poses. Optimal filtering is in `optimal_filter`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.errors import ArgumentError, NotIdentifiable
from armwise.loads.estimate import SCALE
from armwise.loads.generalized_least_squares import (
    LoadSolution,
    common_bias,
    nonzero_columns,
    residual_bias,
    solve_generalized,
    weighted_fit,
    with_unused,
)
from armwise.loads.noise_spectrum import NoiseModel, RegressionRows
from armwise.loads.problem import WrenchProblem
from armwise.recordings import WRENCH_NAMES, differentiate, low_pass

if TYPE_CHECKING:
    from jaxtyping import Float


class LoadMethod(Protocol):
    """A way to find the ten parameters of a load from its wrench."""

    def solve(self, problem: WrenchProblem) -> LoadSolution:
        """Return the parameters, their covariance and the noise."""
        ...


@dataclass(frozen=True)
class Accelerations:
    """General motion with measured or differentiated accelerations (`aah1986` Eq. 9).

    Every frequency is weighted by its own noise: little where differentiated
    acceleration is noisy, little where the sensor drifts.

    Attributes:
        highest_hz: Frequencies above are not used, in [Hz]: those at which a machine
            shakes and its sensor bends. None uses all that were not filtered away.
        inertia: False: find mass and centre only, as slow turning shows no more.
    """

    highest_hz: float | None = None
    inertia: bool = True

    def solve(self, problem: WrenchProblem) -> LoadSolution:
        """Solve w = A φ + bias."""
        rows = problem.rows()
        if not self.inertia:
            A = rows.regressor.copy()
            A[:, :, _STATIC:] = 0.0
            rows = replace(rows, regressor=A)
        if self.highest_hz is not None:
            rows = replace(rows, highest_hz=min(rows.highest_hz, self.highest_hz))
        return solve_generalized(rows, problem.bias, problem.has_drift)


@dataclass(frozen=True)
class LeastSquares:
    """Plain least squares, every row alike (`aah1986` Eq. 9 as printed).

    For comparison: forces and torques count the same, noise is assumed white, and so
    its standard deviations are too small where it is not.
    """

    def solve(self, problem: WrenchProblem) -> LoadSolution:
        """Solve w = A φ, with the mean of each segment as its bias if unknown."""
        rows = problem.rows()
        Y, w = rows.regressor.copy(), rows.target.copy()
        # Centring both sides eliminates an unknown constant exactly.
        parts = {"segment": rows.segments, "common": (slice(0, len(rows)),), "none": ()}
        for part in parts[problem.bias]:
            Y[part] -= Y[part].mean(axis=0)
            w[part] -= w[part].mean(axis=0)
        used = nonzero_columns(Y)
        fit = weighted_fit(Y[:, :, used], w, np.ones(w.shape[1]))
        residual = w - Y[:, :, used] @ fit.values
        freedom = max(1, w.size - int(used.sum()))
        variance = float(np.sum(residual**2)) / freedom
        values = with_unused(fit.values, used)
        white = np.mean(residual**2, axis=0)
        bias = residual_bias(rows, problem.bias, values)
        return LoadSolution(
            values=values,
            covariance=with_unused(variance * fit.covariance, used),
            degrees_of_freedom=np.where(used, float(freedom), np.nan),
            noise=NoiseModel.white(white, rows.rate_hz),
            bias=bias,
            bias_std=np.tile(np.sqrt(white / len(rows)), (len(bias), 1)),
            condition_number=fit.condition_number,
        )


@dataclass(frozen=True)
class IntegralWindows:
    """The integral form over windows, without accelerations (`aah1986` Eq. 25–27).

    ∫ w dt = [B]φ + ∫ V dt φ, with the momentum B φ at the two ends of the window.

    Attributes:
        window: Length of a window in [s].
    """

    window: float = 0.1

    def solve(self, problem: WrenchProblem) -> LoadSolution:
        """Solve the integrated equation over windows that follow each other."""
        body, samples = problem.joint_motion("IntegralWindows")
        length = round(self.window * problem.rate_hz)
        if length < 2:
            raise ArgumentError(
                f"A window of {self.window:g} s holds {length} samples at "
                f"{problem.rate_hz:g} Hz; use a longer one."
            )
        momentum = body.momentum_regressor(samples.q, samples.qd)
        velocity = body.velocity_regressor(samples.q, samples.qd)
        windows = [
            _windows(
                momentum[part], velocity[part], problem.wrench[part], length,
                problem.rate_hz,
            )
            for part in problem.rows().segments
        ]  # fmt: skip
        counts = [len(target) for _, target in windows]
        if not sum(counts):
            raise ArgumentError(
                f"No segment is as long as one window of {self.window:g} s."
            )
        starts = np.cumsum([0, *counts[:-1]])[np.array(counts) > 0]
        rows = RegressionRows(
            np.concatenate([regressor for regressor, _ in windows]),
            np.concatenate([target for _, target in windows]),
            tuple(starts.tolist()),
            problem.rate_hz / length,
            WRENCH_NAMES,
        )
        return solve_generalized(
            rows.select(problem.channels), problem.bias, problem.has_drift
        )


def _windows(
    momentum: np.ndarray,
    velocity: np.ndarray,
    wrench: np.ndarray,
    length: int,
    rate_hz: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the regressor of the mean wrench over each window, and that mean."""
    count = (len(wrench) - 1) // length
    weights = np.full(length + 1, 1.0 / length)
    weights[[0, -1]] *= 0.5  # the trapezoidal rule
    regressors = np.empty((count, *velocity.shape[1:]))
    targets = np.empty((count, wrench.shape[1]))
    for k in range(count):
        window = slice(k * length, (k + 1) * length + 1)
        change = momentum[window.stop - 1] - momentum[window.start]
        regressors[k] = change * rate_hz / length
        regressors[k] += np.tensordot(weights, velocity[window], axes=1)
        targets[k] = weights @ wrench[window]
    return regressors, targets


@dataclass(frozen=True)
class MomentumRate:
    """The momentum form: w = dB/dt φ + V φ, low-passed, without accelerations.

    Attributes:
        cutoff_hz: Zero-phase low-pass on both sides in [Hz].
    """

    cutoff_hz: float = 10.0

    def solve(self, problem: WrenchProblem) -> LoadSolution:
        """Solve the low-passed equation."""
        body, samples = problem.joint_motion("MomentumRate")
        momentum = body.momentum_regressor(samples.q, samples.qd)
        velocity = body.velocity_regressor(samples.q, samples.qd)
        regressor, target = np.empty_like(velocity), np.empty_like(problem.wrench)
        for part in problem.rows().segments:
            smooth = self._smooth(momentum[part], problem.rate_hz)
            rate = np.apply_along_axis(differentiate, 0, smooth, 1.0 / problem.rate_hz)
            # Filtering is linear, so both sides may pass the same low-pass.
            regressor[part] = rate + self._smooth(velocity[part], problem.rate_hz)
            target[part] = self._smooth(problem.wrench[part], problem.rate_hz)
        rows = problem.rows(regressor, target)
        # Above the cut-off both sides are near zero, and so is their noise.
        limited = replace(rows, highest_hz=min(rows.highest_hz, self.cutoff_hz))
        return solve_generalized(limited, problem.bias, problem.has_drift)

    def _smooth(self, signals: np.ndarray, rate_hz: float) -> np.ndarray:
        return np.apply_along_axis(low_pass, 0, signals, self.cutoff_hz, rate_hz)


# Static poses.

_STATIC = 4
"""Parameters that show at rest: mass and the three first moments."""

_WORST_POSES = 1e-2
"""Smallest over largest singular value of the poses' regressor, in typical sizes of the
parameters: below, a bias of a hundredth of the wrench could pass for mass or centre."""

_TYPICAL_TORQUE = 0.05
"""Noise of a torque [N m] beside one of force [N] to start the weights from: that of a
wrist sensor some centimetres wide. Three rounds forget it."""


@dataclass(frozen=True)
class StaticPoses:
    """Mass and centre from the mean wrench at rest in several poses (`aah1986` Eq. 21).

    f = −m g and n = −m c × g: mass and centre only. With six unknown zeros of the
    sensor at least three poses that differ in two directions are needed.

    Attributes:
        still: Angular velocity [rad/s] below which the load is at rest; and five times
            that, in [m/s²], for the deviation of the acceleration from its median.
        shortest: Poses held for less than this are not used, in [s].
    """

    still: float = 0.02
    shortest: float = 0.1

    def solve(self, problem: WrenchProblem) -> LoadSolution:
        """Solve for m, m c and, unless it is zero, one bias of each channel."""
        poses = self._poses(problem)
        motion = problem.frame_motion.copy()
        motion[:, 1:] = 0.0  # at rest, measured turning is noise
        rows = replace(problem, frame_motion=motion).rows()
        Y = np.stack([rows.regressor[p].mean(axis=0)[:, :_STATIC] for p in poses])
        w = np.stack([rows.target[p].mean(axis=0) for p in poses])
        if problem.bias != "none":
            Y = np.concatenate([Y, common_bias(*w.shape)], axis=2)
        used = nonzero_columns(Y)
        _require_poses(Y, used)
        std = _channel_std(Y[:, :, used], w, problem.channels)
        fit = weighted_fit(Y[:, :, used], w, std)
        values = with_unused(fit.values, used)
        covariance = with_unused(fit.covariance, used)
        load = np.arange(10) < _STATIC
        bias, bias_std = np.zeros(w.shape[1]), np.zeros(w.shape[1])
        if problem.bias != "none":
            bias, bias_std = values[_STATIC:], np.sqrt(np.diag(covariance)[_STATIC:])
        ten = with_unused(values[:_STATIC], load)
        freedom = max(1.0, float(w.size - used.sum()))
        # Noise within the poses; the fit is weighted by the scatter between them.
        white = np.mean([rows.target[p].var(axis=0) for p in poses], axis=0)
        return LoadSolution(
            values=ten,
            covariance=with_unused(covariance[:_STATIC, :_STATIC], load),
            degrees_of_freedom=np.where(np.isfinite(ten), freedom, np.nan),
            noise=NoiseModel.white(white, problem.rate_hz),
            bias=np.tile(bias, (len(problem.starts), 1)),
            bias_std=np.tile(bias_std, (len(problem.starts), 1)),
            condition_number=fit.condition_number,
        )

    def _poses(self, problem: WrenchProblem) -> list[slice]:
        """Stretches at rest, by angular velocity and by acceleration.

        Both are averaged over the shortest pose, so that an arm that shakes in place is
        still at rest.
        """
        from scipy.ndimage import uniform_filter1d

        size = max(1, round(self.shortest * problem.rate_hz))
        motion = uniform_filter1d(problem.frame_motion, size, axis=0, mode="nearest")
        turning = np.linalg.norm(motion[:, 1], axis=1)
        pull = np.linalg.norm(motion[:, 0], axis=1)
        deviation = np.abs(pull - float(np.median(pull)))
        still = (turning < self.still) & (deviation < 5.0 * self.still)
        poses = []
        for part in problem.rows().segments:
            padded = np.concatenate([[False], still[part], [False]])
            edges = part.start + np.flatnonzero(np.diff(padded.astype(int)))
            poses += [slice(a, b) for a, b in edges.reshape(-1, 2).tolist()]
        poses = [
            p for p in poses if (p.stop - p.start) / problem.rate_hz >= self.shortest
        ]
        if not poses:
            raise NotIdentifiable(
                f"The load never stands still for {self.shortest:g} s (turning slower "
                f"than {self.still:g} rad/s). Hold several poses, or use "
                "method=Accelerations()."
            )
        return poses


def _require_poses(Y: np.ndarray, used: np.ndarray) -> None:
    """Refuse poses that leave mass, centre or bias undetermined."""
    count, _, unknowns = Y.shape
    sizes = np.concatenate([SCALE[:_STATIC], np.ones(unknowns - _STATIC)])
    rows = (Y * sizes)[:, :, used].reshape(-1, int(used.sum()))
    singular = np.linalg.svd(rows, compute_uv=False)
    if singular.size < used.sum() or singular[-1] < _WORST_POSES * singular[0]:
        raise NotIdentifiable(
            f"The load was held in {count} pose{'s' if count > 1 else ''} that point "
            "gravity in too few directions: mass, centre and the sensor's zero cannot "
            "be separated. Hold it in at least four poses, turned about two axes by "
            "30° or more; or say bias='none' if the sensor was tared."
        )


def _channel_std(
    Y: np.ndarray, w: np.ndarray, channels: tuple[str, ...]
) -> Float[np.ndarray, " channels"]:
    """Scatter of the poses' means: one number for forces, one for torques.

    A handful of poses does not give six variances, but two.
    """
    is_force = np.array([name in WRENCH_NAMES[:3] for name in channels])
    std = np.where(is_force, 1.0, _TYPICAL_TORQUE)
    for _ in range(3):
        fit = weighted_fit(Y, w, std)
        residual = w - Y @ fit.values
        for kind in (is_force, ~is_force):
            if kind.any():
                freedom = max(1.0, float(np.sum(1.0 - fit.leverage[:, kind])))
                level = float(np.sqrt(np.sum(residual[:, kind] ** 2) / freedom))
                std[kind] = max(level, 1e-9)  # exact data still need a weight
    return std
