"""Optimal filtering of the whole load problem: noise on the motion and on the wrench.

`atkeson1986` ch. 5 designs the filter for one mass and asks for the same on the ten
parameters. Here it is: raw positions are differentiated without any low-pass, every
frequency of every channel is weighed by the spectrum of its whole error (wrench noise,
drift, and what the motion's noise does through the parameters), and the bias that noise
in the regressor causes is taken out by total least squares with the noise's full
covariance. The spectrum depends on the parameters, so the two alternate.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import HeldBody
from armwise.errors import ArgumentError
from armwise.loads.generalized import Solution, common_bias, solve_generalized
from armwise.loads.noise_spectrum import Coefficients, cosine_coefficients, fit_noise
from armwise.loads.problem import WrenchProblem
from armwise.recordings import Samples, differentiate

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


_ROUNDS = 4
_EDGE = 4


@dataclass(frozen=True)
class OptimalFilter:
    """Total least squares, prefiltered as the noise demands.

    Samples must hold positions as they were measured, not low-passed ones.

    Attributes:
        position_std: Noise of the positions in [rad] or [m], one number or one per
            joint; an encoder's count divided by √12.
        velocity_std: Noise of measured velocities in [rad/s] or [m/s]; None when
            velocities are to be made from positions.
        draws: Simulated noise records from which its effect is told.
        seed: Of those.
    """

    position_std: ArrayLike
    velocity_std: ArrayLike | None = None
    draws: int = 3
    seed: int = 0

    def solve(self, problem: WrenchProblem) -> Solution:
        """Alternate between the noise's spectrum and the parameters."""
        body, samples = problem.joint_motion("OptimalFilter")
        if samples.preparation.cutoff_hz is not None:
            raise ArgumentError(
                "OptimalFilter filters by itself: give samples as they were measured, "
                "prepare(recording, cutoff_hz=inf), not low-passed ones."
            )
        parts = tuple(problem.rows().segments)
        measured = self._motion(samples.q, samples.qd, parts, problem.rate_hz)
        exact = replace(problem, frame_motion=body.motion(*measured))
        changes = self._regressor_noise(exact, body, samples)
        inner = _inner_rows(parts)
        exact = _chosen(exact, inner, parts)
        changes = [change[inner] for change in changes]
        # Beyond the motion's band the regressor is noise, and noise tells no inertia.
        limited = replace(exact, highest_hz=_motion_band_hz(exact, changes))
        start = solve_generalized(limited.rows(), problem.bias, problem.has_drift)
        return _total_least_squares(limited, start, changes)

    def _motion(
        self, q: np.ndarray, qd: np.ndarray, parts: tuple[slice, ...], rate_hz: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Differentiate, segment by segment, without any filter."""
        speed, rate = np.array(qd), np.empty_like(q)
        for part in parts:
            if self.velocity_std is None:
                speed[part] = _slope(q[part], rate_hz)
            rate[part] = _slope(speed[part], rate_hz)
        return q, speed, rate

    def _regressor_noise(
        self, problem: WrenchProblem, body: HeldBody, samples: Samples
    ) -> list[Float[np.ndarray, "samples 6 10"]]:
        """What the noise of the motion adds to the regressor, drawn a few times."""
        random = np.random.default_rng(self.seed)
        parts = tuple(problem.rows().segments)
        size = samples.q.shape
        drawn = []
        for _ in range(self.draws):
            q = samples.q + random.normal(size=size) * np.asarray(self.position_std)
            qd = samples.qd
            if self.velocity_std is not None:
                qd = qd + random.normal(size=size) * np.asarray(self.velocity_std)
            motion = self._motion(q, qd, parts, problem.rate_hz)
            noisy = replace(problem, frame_motion=body.motion(*motion))
            drawn.append(noisy.regressor - problem.regressor)
        return drawn


def _inner_rows(parts: tuple[slice, ...]) -> np.ndarray:
    """Rows whose derivatives are central differences twice over."""
    rows = [np.arange(p.start + _EDGE, p.stop - _EDGE) for p in parts]
    if min(r.size for r in rows) < 16:
        raise ArgumentError("OptimalFilter needs segments of 24 samples or more.")
    return np.concatenate(rows)


def _chosen(
    problem: WrenchProblem, rows: np.ndarray, parts: tuple[slice, ...]
) -> WrenchProblem:
    sizes = [p.stop - p.start - 2 * _EDGE for p in parts]
    starts = tuple(int(s) for s in np.cumsum([0, *sizes[:-1]]))
    return replace(
        problem,
        time=problem.time[rows],
        wrench=problem.wrench[rows],
        frame_motion=problem.frame_motion[rows],
        starts=starts,
    )


def _slope(x: np.ndarray, rate_hz: float) -> np.ndarray:
    slopes = [differentiate(np.ascontiguousarray(c), 1.0 / rate_hz) for c in x.T]
    return np.stack(slopes, axis=1)


def _motion_band_hz(problem: WrenchProblem, changes: list[np.ndarray]) -> float:
    """Frequency at which the regressor first holds little more than noise, in [Hz].

    What comes back above it (a shaking machine) is left out: sensors bend there.
    """
    whole = cosine_coefficients(problem.rows())
    noise = [cosine_coefficients(problem.rows(c)).regressor for c in changes]
    turning = slice(4, 10)  # the inertia's columns are the noisiest
    power = np.sum(whole.regressor[:, :, turning] ** 2, axis=(1, 2))
    blur = sum(np.sum(n[:, :, turning] ** 2, axis=(1, 2)) for n in noise) / len(noise)
    edges = np.arange(1.0, problem.rate_hz / 2.0, 1.0)
    band = np.searchsorted(edges, whole.frequency)
    total, lost = np.bincount(band, power), np.bincount(band, blur)
    blurred = np.flatnonzero(total < 3.0 * lost)
    last = int(blurred[0]) if blurred.size else len(edges) - 1
    return float(edges[min(max(last, 1), len(edges) - 1)])


def _total_least_squares(
    problem: WrenchProblem, start: Solution, changes: list[np.ndarray]
) -> Solution:
    """Correct weighted least squares for noise in the regressor (Koopmans 1937).

    (φ, −1) is the generalised eigenvector of the smallest eigenvalue of the filtered
    data's matrix against that of the filtered noise. The filter is designed anew for
    every φ.
    """
    if not np.all(np.isfinite(start.values)):
        raise ArgumentError("OptimalFilter needs all ten parameters to be determined.")
    data, noises = _coefficients(problem, changes)
    values = np.zeros(data.regressor.shape[2])
    values[:10], model = start.values, start.noise
    for _ in range(_ROUNDS):
        weight = 1.0 / model.variance(data)
        H, h, power = _moments(data, weight)
        B = np.mean([_gram(n, weight) for n in noises], axis=0)
        left = max(1.0, data.target.size - float(values @ B @ values))
        values = _eigenvector_solution(H, h, power, B, left)
        error = data.target - data.regressor @ values
        model = fit_noise(data, error**2, problem.has_drift)
    bend = np.linalg.solve(H - B, H)[:10, :10]
    solution = replace(
        start,
        values=values[:10],
        covariance=bend @ start.covariance @ bend.T,
        noise=model,
    )
    return _with_residual(problem, solution, values[10:])


def _coefficients(
    problem: WrenchProblem, changes: list[np.ndarray]
) -> tuple[Coefficients, list[np.ndarray]]:
    """Cosine coefficients of the data and of the noise, common zeros as columns."""
    keep, rows = problem.bias != "segment", problem.rows()
    noises = [
        cosine_coefficients(problem.rows(c), keep_means=keep).regressor for c in changes
    ]
    if problem.bias == "common":
        rows = rows.with_columns(common_bias(rows))
        wider = ((0, 0), (0, 0), (0, len(rows.channels)))
        noises = [np.pad(n, wider) for n in noises]
    return cosine_coefficients(rows, keep_means=keep), noises


def _eigenvector_solution(
    H: np.ndarray, h: np.ndarray, power: float, B: np.ndarray, left: float
) -> Float[np.ndarray, " parameters"]:
    """Smallest eigenvector (φ, −1) of [[H, h], [hᵀ, power]] against diag(B, left).

    Its first rows say (H − λB) φ = h, and λ is the quotient of the two forms: a few
    exchanges between them settle both.
    """
    values = np.linalg.solve(H, h)
    for _ in range(20):
        error = power - 2.0 * h @ values + values @ H @ values
        ratio = max(float(error), 0.0) / float(left + values @ B @ values)
        renewed = np.linalg.solve(H - ratio * B, h)
        moved = np.abs(renewed - values).max()
        values = renewed
        if moved < 1e-12 * np.abs(values).max():
            break
    return np.asarray(values)


def _with_residual(
    problem: WrenchProblem, solution: Solution, zeros: np.ndarray
) -> Solution:
    rows = problem.rows()
    residual = rows.target - rows.regressor @ solution.values
    bias = np.zeros_like(solution.bias)
    for k, part in enumerate(rows.segments):
        if problem.bias == "segment":
            bias[k] = residual[part].mean(axis=0)
        elif problem.bias == "common":
            bias[k] = zeros
        residual[part] -= bias[k]
    return replace(solution, residual=residual, bias=bias)


def _moments(
    data: Coefficients, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    flat = data.regressor.reshape(-1, data.regressor.shape[2])
    w, y = weight.reshape(-1), data.target.reshape(-1)
    return (flat * w[:, None]).T @ flat, flat.T @ (w * y), float(y @ (w * y))


def _gram(noise: np.ndarray, weight: np.ndarray) -> np.ndarray:
    flat = noise.reshape(-1, noise.shape[2])
    gram: np.ndarray = (flat * weight.reshape(-1)[:, None]).T @ flat
    return gram
