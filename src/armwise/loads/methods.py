"""Ways to set up the regression: with accelerations, over windows, or by momentum."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.errors import ArgumentError, NotIdentifiable
from armwise.loads.generalized import WORST_CONDITION, Solution, solve_generalized
from armwise.loads.noise_spectrum import NoiseModel, Rows
from armwise.loads.problem import WrenchProblem
from armwise.recordings import differentiate, low_pass

if TYPE_CHECKING:
    from jaxtyping import Float


# Plain least squares, and the shape of its answer.


def solve_plain(
    problem: WrenchProblem,
    regressor: Float[np.ndarray, "rows channels 10"],
    target: Float[np.ndarray, "rows channels"],
) -> Solution:
    """Minimise the sum of all squared errors.

    Args:
        problem: Where the rows come from.
        regressor, target: Its rows, unknown biases already taken out.

    Raises:
        NotIdentifiable: If columns of the regressor depend on each other.
    """
    flat, right = regressor.reshape(-1, 10), target.reshape(-1)
    scale = np.linalg.norm(flat, axis=0)
    seen = scale > 1e-9 * max(float(scale.max()), 1e-300)
    Q, R = np.linalg.qr(flat[:, seen] / scale[seen])
    condition = float(np.linalg.cond(R))
    if condition > WORST_CONDITION:
        raise NotIdentifiable(
            f"The motion does not tell {int(seen.sum())} parameters apart (condition "
            f"number {condition:.1e}). Turn the load about every axis."
        )
    inverse = np.linalg.inv(R) / scale[seen][:, None]
    found = inverse @ (Q.T @ right)
    left = right - flat[:, seen] @ found
    freedom = max(1, right.size - int(seen.sum()))
    variance = float(left @ left) / freedom
    values, covariance = np.full(10, np.nan), np.full((10, 10), np.nan)
    values[seen] = found
    covariance[np.ix_(seen, seen)] = variance * inverse @ inverse.T
    return _solution(problem, values, covariance, freedom, condition)


def _solution(
    problem: WrenchProblem,
    values: np.ndarray,
    covariance: np.ndarray,
    freedom: int,
    condition: float,
) -> Solution:
    rows = problem.rows()
    known = np.isfinite(values)
    residual = rows.target - rows.regressor[:, :, known] @ values[known]
    shape = (len(rows.starts), len(rows.channels))
    bias = np.zeros(shape)
    if problem.bias == "segment":
        bias = np.stack([residual[part].mean(axis=0) for part in rows.segments])
    elif problem.bias == "common":
        bias = np.tile(residual.mean(axis=0), (shape[0], 1))
    for part, offset in zip(rows.segments, bias, strict=True):
        residual[part] -= offset
    white = np.mean(residual**2, axis=0)
    noise = NoiseModel(
        np.column_stack([0 * white, white, 0 * white]),
        np.array([rows.rate_hz / 2]),
        np.ones((shape[1], 1)),
        rows.rate_hz,
    )
    information = np.zeros((10, 10))
    inner = np.ix_(known, known)
    information[inner] = np.linalg.pinv(covariance[inner])
    return Solution(
        values=values,
        covariance=covariance,
        degrees_of_freedom=np.where(known, float(freedom), np.nan),
        noise=noise,
        residual=residual,
        bias=bias,
        bias_std=np.tile(np.sqrt(white / len(rows)), (shape[0], 1)),
        condition_number=condition,
        information=information,
    )


# Ways to set up the regression: with accelerations, over windows, or by momentum.


class LoadMethod(Protocol):
    """A way to find the ten parameters of a load from its wrench."""

    def solve(self, problem: WrenchProblem) -> Solution:
        """Return the parameters, their covariance and the noise."""
        ...


@dataclass(frozen=True)
class Accelerations:
    """General motion with measured or differentiated accelerations (`aah1986` Eq. 9).

    Every frequency is weighed by its own noise: where differentiated acceleration is
    noisy it counts for little, where the sensor drifts it counts for little.

    Attributes:
        highest_hz: Frequencies above are left out, in [Hz]: those at which a machine
            shakes and its sensor bends. None uses all that were not filtered away.
    """

    highest_hz: float | None = None

    def solve(self, problem: WrenchProblem) -> Solution:
        """Solve w = A φ + bias."""
        rows = problem.rows()
        if self.highest_hz is not None:
            rows = replace(rows, highest_hz=min(rows.highest_hz, self.highest_hz))
        return solve_generalized(rows, problem.bias, problem.has_drift)


@dataclass(frozen=True)
class LeastSquares:
    """Plain least squares, every row alike (`aah1986` Eq. 9 as printed).

    For comparison: forces and torques count the same, noise is taken to be white, and
    so its standard deviations are too small where it is not.
    """

    def solve(self, problem: WrenchProblem) -> Solution:
        """Solve w = A φ, with the mean of each segment as its bias if unknown."""
        rows = problem.rows()
        Y, w = rows.regressor.copy(), rows.target.copy()
        if problem.bias != "none":
            whole = (
                (slice(0, len(rows)),) if problem.bias == "common" else rows.segments
            )
            for part in whole:
                Y[part] -= Y[part].mean(axis=0)
                w[part] -= w[part].mean(axis=0)
        return solve_plain(problem, Y, w)


@dataclass(frozen=True)
class IntegralWindows:
    """The integral form over windows, without accelerations (`aah1986` Eq. 25–27).

    ∫ w dt = [B]φ + ∫ V dt φ, with the momentum B φ at the two ends of the window.

    Attributes:
        window: Length of a window in [s].
    """

    window: float = 0.1

    def solve(self, problem: WrenchProblem) -> Solution:
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
        rows = problem.rows()
        left: list[np.ndarray] = []
        right: list[np.ndarray] = []
        starts: list[int] = []
        for part in rows.segments:
            starts.append(sum(len(x) for x in right))
            regressors, targets = _windows(
                momentum[part], velocity[part], problem.wrench[part], length,
                problem.rate_hz,
            )  # fmt: skip
            left.append(regressors)
            right.append(targets)
        if not sum(len(x) for x in right):
            raise ArgumentError(
                f"No segment is as long as one window of {self.window:g} s."
            )
        kept = [s for s, x in zip(starts, right, strict=True) if len(x)]
        windows = Rows(
            np.concatenate(left), np.concatenate(right), tuple(kept),
            problem.rate_hz / length, _ALL,
        )  # fmt: skip
        return solve_generalized(
            windows.choose(problem.channels), problem.bias, problem.has_drift
        )


@dataclass(frozen=True)
class MomentumRate:
    """The momentum form: w = dB/dt φ + V φ, low-passed, without accelerations.

    Attributes:
        cutoff_hz: Zero-phase low-pass on both sides in [Hz].
    """

    cutoff_hz: float = 10.0

    def solve(self, problem: WrenchProblem) -> Solution:
        """Solve the low-passed equation."""
        body, samples = problem.joint_motion("MomentumRate")
        momentum = body.momentum_regressor(samples.q, samples.qd)
        velocity = body.velocity_regressor(samples.q, samples.qd)
        regressor, target = np.empty_like(velocity), np.empty_like(problem.wrench)
        for part in problem.rows().segments:
            smooth = self._smooth(momentum[part], problem.rate_hz)
            rate = np.apply_along_axis(differentiate, 0, smooth, 1.0 / problem.rate_hz)
            regressor[part] = rate + self._smooth(velocity[part], problem.rate_hz)
            target[part] = self._smooth(problem.wrench[part], problem.rate_hz)
        rows = problem.rows(regressor, target)
        limited = replace(rows, highest_hz=min(rows.highest_hz, self.cutoff_hz))
        return solve_generalized(limited, problem.bias, problem.has_drift)

    def _smooth(self, signals: np.ndarray, rate_hz: float) -> np.ndarray:
        return np.apply_along_axis(low_pass, 0, signals, self.cutoff_hz, rate_hz)


_ALL = ("fx", "fy", "fz", "tx", "ty", "tz")


def _windows(
    momentum: np.ndarray,
    velocity: np.ndarray,
    wrench: np.ndarray,
    length: int,
    rate_hz: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean wrench over each window, and the regressor that explains it."""
    ends = np.arange(0, len(wrench), length)
    weights = np.full(length + 1, 1.0 / length)
    weights[[0, -1]] *= 0.5  # the trapezoidal rule
    span = length / rate_hz
    pieces = [slice(a, a + length + 1) for a in ends if a + length < len(wrench)]
    targets = [weights @ wrench[p] for p in pieces]
    regressors = [
        (momentum[p.stop - 1] - momentum[p.start]) / span
        + np.tensordot(weights, velocity[p], axes=1)
        for p in pieces
    ]
    shape = (0, *velocity.shape[1:])
    return (
        np.stack(regressors) if pieces else np.zeros(shape),
        np.stack(targets) if pieces else np.zeros((0, 6)),
    )
