"""Optimal filtering with noise on both motion and wrench (`atkeson1986` ch. 5).

The thesis designs the filter for one mass and asks for the same on the ten parameters:
both are here. Raw positions are differentiated without any low-pass, every frequency of
every channel is weighted by the spectrum of its whole error (wrench noise, drift, and
the motion's noise as the parameters pass it on), and the bias that noise in the
regressor causes is removed by total least squares with the noise's full covariance. The
spectrum depends on the parameters, so the two are estimated in turn.

One mass: f = m dv/dt with noise on both. Differentiating the velocity amplifies its
noise at high frequency, integrating the force amplifies bias and drift at low
frequency. With the noise spectra known, the error m A − F has the spectrum
m² S_na + S_nf, S_na = ω² S_nv, and weighting by its inverse decides at each frequency:
the same filter 1/√(m² S_na + S_nf) on both signals, then total least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import HeldBody
from armwise.errors import ArgumentError, RecordingError
from armwise.loads.generalized_least_squares import (
    LoadSolution,
    common_bias,
    residual_bias,
    solve_generalized,
)
from armwise.loads.noise_spectrum import (
    Coefficients,
    cosine_coefficients,
    fit_mixtures,
    fit_noise,
    non_negative,
)
from armwise.loads.problem import WrenchProblem
from armwise.recordings import NoiseSpectra, Samples, differentiate

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


_ITERATIONS = 4
"""Times that spectrum and parameters are estimated in turn; the spectrum depends on the
parameters only weakly, so that a few suffice."""

_EDGE_SAMPLES = 4
"""Samples at either end of a segment whose derivatives are one-sided differences."""

_SIGNAL_OVER_NOISE = 3.0
"""Power of the noisy regressor over that of its noise at which the motion's band ends:
below, the noise is half as strong as the motion or more, and correcting for it costs
more than these frequencies give."""

_WINDOW_POWER = 0.375
"""Mean square of Hann's window."""

_WINDOW_LEAK = 1.944
"""Frequencies of a Hann-windowed record per independent one: neighbours correlate."""


@dataclass(frozen=True)
class OptimalFilter:
    """Total least squares, prefiltered as the noise demands.

    Samples must hold positions as they were measured, not low-passed ones. Where
    velocities were measured as well nothing needs to be known of the noise: it is what
    they and the differentiated positions disagree in (`redundant_noise`), and both
    make up the velocity, each where it is the quieter.

    Attributes:
        position_std: Noise of the positions in [rad] or [m], one number or one per
            joint; an encoder's count divided by √12. None: from measured velocities.
        velocity_std: Noise of measured velocities in [rad/s] or [m/s]; None when
            velocities are differentiated positions.
        draws: Simulated noise records by which its effect is estimated.
        seed: Of those.
    """

    position_std: ArrayLike | None = None
    velocity_std: ArrayLike | None = None
    draws: int = 3
    seed: int = 0

    @classmethod
    def from_resolution(cls, resolution: float) -> OptimalFilter:
        """For an encoder of some count [rad], whose rounding noise is count/√12."""
        return cls(resolution / np.sqrt(12.0))

    def solve(self, problem: WrenchProblem) -> LoadSolution:
        """Estimate the noise's spectrum and the parameters in turn."""
        body, samples = problem.joint_motion("OptimalFilter")
        if samples.preparation.cutoff_hz is not None:
            raise ArgumentError(
                "OptimalFilter filters by itself: give samples as they were measured, "
                "prepare(recording, cutoff_hz=inf), not low-passed ones."
            )
        if self.position_std is None:
            position, velocity = redundant_noise(samples)
            sensors = replace(self, position_std=position, velocity_std=velocity)
            return sensors.solve(problem)
        parts = tuple(problem.rows().segments)
        measured = self._motion(samples.q, samples.qd, parts, problem.rate_hz)
        exact = replace(problem, frame_motion=body.motion(*measured))
        changes = self._regressor_noise(exact, body, samples)
        inner = _inner_rows(parts)
        exact = _select_rows(exact, inner, parts)
        changes = [change[inner] for change in changes]
        # Above the motion's band the regressor is noise, and noise carries no inertia.
        limited = replace(exact, highest_hz=_motion_band_hz(exact, changes))
        start = solve_generalized(limited.rows(), problem.bias, problem.has_drift)
        return _total_least_squares(limited, start, changes)

    def _motion(
        self, q: np.ndarray, qd: np.ndarray, parts: tuple[slice, ...], rate_hz: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Differentiate, segment by segment, without any filter."""
        speed, rate = np.array(qd), np.empty_like(q)
        for part in parts:
            slope = _slope(q[part], rate_hz)
            if self.velocity_std is None:
                speed[part] = slope
            else:
                # Their difference is noise alone: no motion is filtered.
                noise = qd[part] - slope
                speed[part] = slope + self._of_velocity(noise, rate_hz)
            rate[part] = _slope(speed[part], rate_hz)
        return q, speed, rate

    def _of_velocity(
        self, difference: Float[np.ndarray, "samples dof"], rate_hz: float
    ) -> Float[np.ndarray, "samples dof"]:
        """Part of measured less differentiated velocity that belongs to the motion.

        Wiener's filter: differentiating multiplies white noise of positions by |D|²,
        which is nothing at low frequencies and much at high ones.
        """
        from scipy.fft import dct, idct

        gain = _difference_gain(len(difference), rate_hz)
        position = gain[:, None] ** 2 * np.square(np.asarray(self.position_std))
        whole = position + np.square(np.asarray(self.velocity_std))
        # 1e-300: two signals without noise agree, whichever is used.
        passed = position / np.maximum(whole, 1e-300)
        spectrum = dct(difference, type=2, norm="ortho", axis=0)
        return np.asarray(idct(passed * spectrum, type=2, norm="ortho", axis=0))

    def _regressor_noise(
        self, problem: WrenchProblem, body: HeldBody, samples: Samples
    ) -> list[Float[np.ndarray, "samples 6 10"]]:
        """What the noise of the motion adds to the regressor, drawn a few times.

        Drawn rather than derived: the regressor is not linear in the positions.
        """
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


def redundant_noise(
    samples: Samples,
) -> tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]]:
    """White noise of positions and of velocities that were both measured.

    Measured less differentiated velocity is n_v − D n_q, without any motion. Its
    spectrum S_nv + |D|² S_nq is flat where the velocity's noise prevails and rises
    where the position's does; both levels are fitted by maximum likelihood. The noises
    are taken as independent: a velocity that the robot itself differentiates from the
    same encoder has some of the position's noise, and both then come out too small.

    Returns:
        Standard deviations of the positions in [rad] or [m] and of the velocities per
        [s], one per joint.

    Raises:
        RecordingError: If the velocities are no measurement of their own.
    """
    from scipy.fft import dct

    rate, powers, shapes = samples.rate_hz, [], []
    for part in samples.segments:
        # The ends' differences are one-sided, and louder.
        inner = slice(_EDGE_SAMPLES, -_EDGE_SAMPLES)
        noise = (samples.qd[part] - _slope(samples.q[part], rate))[inner]
        if not len(noise):
            continue
        # Not the mean: a tachometer's zero is no noise.
        powers.append(dct(noise, type=2, norm="ortho", axis=0)[1:] ** 2)
        shapes.append(_difference_gain(len(noise), rate)[1:] ** 2)
    power = np.concatenate(powers) if powers else np.zeros((0, samples.dof))
    if not len(power):
        raise ArgumentError("OptimalFilter needs segments of 24 samples or more.")
    # Rounding of numbers, not of encoders, is all that derived velocities differ by.
    is_derived = power.mean(axis=0) < 1e-18 * np.mean(samples.qd**2, axis=0)
    is_moving = np.ptp(samples.q, axis=0) > 0.0
    if samples.preparation.velocity == "position" or np.any(is_derived & is_moving):
        raise RecordingError(
            "Velocities were not measured beside positions, or do not fit them, so "
            "that the noise of neither is known: give the encoders' count, "
            "OptimalFilter.from_resolution(count) or --resolution."
        )
    rising = np.concatenate(shapes)
    unit = np.stack([np.ones_like(rising), rising])
    levels = fit_mixtures(power.T, unit, np.ones_like(rising))
    velocity, position = np.sqrt(levels.T)
    return position, velocity


def _difference_gain(count: int, rate_hz: float) -> Float[np.ndarray, " count"]:
    """Gain of `differentiate`, five points, at the cosine transform's frequencies."""
    turn = np.pi * np.arange(count) / count
    return np.asarray(rate_hz * (8.0 * np.sin(turn) - np.sin(2.0 * turn)) / 6.0)


def _inner_rows(parts: tuple[slice, ...]) -> np.ndarray:
    """Rows whose derivatives are central differences twice over."""
    rows = [np.arange(p.start + _EDGE_SAMPLES, p.stop - _EDGE_SAMPLES) for p in parts]
    if min(r.size for r in rows) < 16:
        raise ArgumentError("OptimalFilter needs segments of 24 samples or more.")
    return np.concatenate(rows)


def _select_rows(
    problem: WrenchProblem, rows: np.ndarray, parts: tuple[slice, ...]
) -> WrenchProblem:
    sizes = [p.stop - p.start - 2 * _EDGE_SAMPLES for p in parts]
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

    Power that returns above it (a shaking machine) is not used: sensors bend there.
    """
    whole = cosine_coefficients(problem.rows())
    noise = [cosine_coefficients(problem.rows(c)).regressor for c in changes]
    turning = slice(4, 10)  # the inertia's columns are the noisiest
    power = np.sum(whole.regressor[:, :, turning] ** 2, axis=(1, 2))
    squares = [np.sum(n[:, :, turning] ** 2, axis=(1, 2)) for n in noise]
    edges = np.arange(1.0, problem.rate_hz / 2.0, 1.0)  # in bands of 1 Hz
    band = np.searchsorted(edges, whole.frequency)
    total = np.bincount(band, power)
    noisy = np.bincount(band, np.mean(squares, axis=0))
    ends = np.flatnonzero(total < _SIGNAL_OVER_NOISE * noisy)
    last = int(ends[0]) if ends.size else len(edges) - 1
    return float(edges[min(max(last, 1), len(edges) - 1)])


def _total_least_squares(
    problem: WrenchProblem, start: LoadSolution, changes: list[np.ndarray]
) -> LoadSolution:
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
    for _ in range(_ITERATIONS):
        weight = 1.0 / model.variance(data)
        H, h, power = _moments(data, weight)
        B = np.mean([_gram(n, weight) for n in noises], axis=0)
        # In units of the noise the whole error has one per row; the wrench's own part
        # is what the regressor's noise does not account for.
        own = max(1.0, data.target.size - float(values @ B @ values))
        values = _eigenvector_solution(H, h, power, B, own)
        error = data.target - data.regressor @ values
        model = fit_noise(data, error**2, problem.has_drift)
    # The correction multiplies the estimate by (H − B)⁻¹ H, and its errors as well.
    gain = np.linalg.solve(H - B, H)[:10, :10]
    bias = residual_bias(problem.rows(), problem.bias, values[:10])
    if problem.bias == "common":  # it was a column of the regression
        bias = np.tile(values[10:], (len(bias), 1))
    return replace(
        start,
        values=values[:10],
        covariance=gain @ start.covariance @ gain.T,
        noise=model,
        bias=bias,
    )


def _coefficients(
    problem: WrenchProblem, changes: list[np.ndarray]
) -> tuple[Coefficients, list[np.ndarray]]:
    """Cosine coefficients of the data and of the noise, common zeros as columns."""
    means, rows = problem.bias != "segment", problem.rows()
    noises = [cosine_coefficients(problem.rows(c), means).regressor for c in changes]
    if problem.bias == "common":
        rows = rows.with_columns(common_bias(len(rows), len(rows.channels)))
        wider = ((0, 0), (0, 0), (0, len(rows.channels)))
        noises = [np.pad(n, wider) for n in noises]
    return cosine_coefficients(rows, means), noises


def _eigenvector_solution(
    H: np.ndarray, h: np.ndarray, power: float, B: np.ndarray, own: float
) -> Float[np.ndarray, " parameters"]:
    """Smallest eigenvector (φ, −1) of [[H, h], [hᵀ, power]] against diag(B, own).

    Its first rows say (H − λB) φ = h, and λ is the quotient of the two forms: a few
    exchanges between them settle both. (A library's eigensolver would not do: B is
    singular where zeros of the sensor are columns.)
    """
    values = np.linalg.solve(H, h)
    for _ in range(20):
        error = power - 2.0 * h @ values + values @ H @ values
        ratio = max(float(error), 0.0) / float(own + values @ B @ values)
        renewed = np.linalg.solve(H - ratio * B, h)
        change = np.abs(renewed - values).max()
        values = renewed
        if change < 1e-12 * np.abs(values).max():
            break
    return np.asarray(values)


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


# One mass, from force and velocity.


@dataclass(frozen=True, eq=False)
class MassEstimate:
    """A mass and the filters it was estimated with.

    Attributes:
        mass: In [kg].
        std: Its standard deviation in [kg].
        frequency: In [Hz].
        force_filter: Gain on the force at those frequencies.
        velocity_filter: Gain on the velocity: the same, times ω.
        iterations: Times the filter was redesigned for a better mass.
    """

    mass: float
    std: float
    frequency: Float[np.ndarray, " frequencies"]
    force_filter: Float[np.ndarray, " frequencies"]
    velocity_filter: Float[np.ndarray, " frequencies"]
    iterations: int


def mass_by_differentiation(
    force: Float[np.ndarray, " samples"],
    velocity: Float[np.ndarray, " samples"],
    rate_hz: float,
) -> float:
    """Differentiate the velocity, then least squares: m = a·f / a·a.

    Noise on the velocity makes it too small, by Σ|A|² / (Σ|A|² + Σ ω²|N_v|²).
    """
    a, f, _ = _spectra(force, velocity, rate_hz)
    return float(np.real(np.vdot(a, f)) / np.real(np.vdot(a, a)))


def mass_by_integration(
    force: Float[np.ndarray, " samples"],
    velocity: Float[np.ndarray, " samples"],
    rate_hz: float,
) -> float:
    """Integrate the force, then least squares against the velocity.

    Noise on the velocity makes it too small, by Σ|V|² / (Σ|V|² + Σ|N_v|²).
    """
    a, f, omega = _spectra(force, velocity, rate_hz)
    v, momentum = a / (1j * omega), f / (1j * omega)
    return float(np.real(np.vdot(v, momentum)) / np.real(np.vdot(v, v)))


def mass_by_optimal_filter(
    force: Float[np.ndarray, " samples"],
    velocity: Float[np.ndarray, " samples"],
    rate_hz: float,
    noise: NoiseSpectra,
    iterations: int = 50,
) -> MassEstimate:
    """Filter both signals optimally, then total least squares; iterate.

    Minimises Σ |m A − F|² / (m² S_na + S_nf), the maximum of the likelihood. For a
    given filter that is an eigenvalue problem (Koopmans 1937); the filter depends on
    the mass, so the two are found in turn until the mass stays.

    Args:
        force: In [N].
        velocity: In [m/s], evenly spaced like the force.
        rate_hz: Their rate in [Hz].
        noise: Spectra of the noise on velocity (first) and force (second), as from
            `noise_spectra` on a run with a known mass.
        iterations: At most.
    """
    a, f, omega = _spectra(force, velocity, rate_hz)
    frequency = omega / (2.0 * np.pi)
    noise_v = _smooth(noise.frequency, noise.first_noise, noise.first, frequency)
    noise_f = _smooth(noise.frequency, noise.second_noise, noise.second, frequency)
    noise_a = omega**2 * noise_v
    mass = mass_by_integration(force, velocity, rate_hz)
    step = 0
    while step < iterations:
        step += 1
        weight = 1.0 / (mass**2 * noise_a + noise_f)
        renewed = _mass_by_eigenvector(a, f, weight, noise_a, noise_f, mass)
        change = abs(renewed - mass)
        mass = renewed
        if change < 1e-9 * abs(mass):
            break
    gain = np.sqrt(1.0 / (mass**2 * noise_a + noise_f))
    gain = gain / gain.max()
    density = 2.0 / (rate_hz * len(force) * _WINDOW_POWER)
    # Noise carries no information on the mass: only the power above it counts.
    signal = np.maximum(np.abs(a) ** 2 * density - noise_a, 0.0)
    information = 2.0 * np.sum(signal / (mass**2 * noise_a + noise_f)) / _WINDOW_LEAK
    std = float(1.0 / np.sqrt(max(information, 1e-300)))
    return MassEstimate(mass, std, frequency, gain, gain * omega, step)


def _mass_by_eigenvector(
    a: np.ndarray,
    f: np.ndarray,
    weight: np.ndarray,
    noise_a: np.ndarray,
    noise_f: np.ndarray,
    mass: float,
) -> float:
    """Smallest eigenvector of the filtered data's matrix against the noise's own.

    Frequencies whose error is larger than expected hold back, as the likelihood says:
    their noise is weighted by the squared error they show.
    """
    error = np.abs(mass * a - f) ** 2
    expected = np.sum(error * weight) / len(a)
    relative = error * weight / expected
    M = np.array(
        [
            [np.sum(weight * np.abs(a) ** 2), np.sum(weight * np.real(np.conj(a) * f))],
            [0.0, np.sum(weight * np.abs(f) ** 2)],
        ]
    )
    M[1, 0] = M[0, 1]
    root = np.sqrt([np.sum(weight * n * relative) for n in (noise_a, noise_f)])
    values, vectors = np.linalg.eigh(M / np.outer(root, root))
    v = vectors[:, int(np.argmin(values))] / root
    return float(-v[0] / v[1])


def _spectra(
    force: np.ndarray, velocity: np.ndarray, rate_hz: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return spectra of acceleration and force, and ω, without zero and Nyquist."""
    if force.shape != velocity.shape or force.ndim != 1 or force.size < 16:
        raise ArgumentError(
            f"Force and velocity must be two signals of one length, not "
            f"{force.shape} and {velocity.shape}."
        )
    window = 0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(force.size) / force.size)
    turn = 2.0 * np.pi / force.size
    slope = 0.5 * turn * np.sin(turn * np.arange(force.size)) * rate_hz
    inner = slice(1, (force.size - 1) // 2)
    omega = 2.0 * np.pi * np.fft.rfftfreq(force.size, 1.0 / rate_hz)[inner]
    # (window · v)' = window · a + window' · v, so the window costs no accuracy.
    v = velocity - velocity.mean()
    a = 1j * omega * np.fft.rfft(window * v)[inner] - np.fft.rfft(slope * v)[inner]
    f = np.fft.rfft(window * force)[inner]
    return a, f, omega


def _smooth(
    frequency: np.ndarray, density: np.ndarray, total: np.ndarray, at: np.ndarray
) -> Float[np.ndarray, " at"]:
    """Fit a drift and a white part to a noise spectrum that redundant sensors gave.

    Where the signal is strong its noise is a small difference of large numbers: those
    frequencies count by the inverse square of the whole spectrum.
    """
    slowest = float(frequency[0])

    def unit(f: np.ndarray) -> np.ndarray:
        return np.stack([(slowest / f) ** 2, np.ones_like(f)])

    shapes = unit(frequency)
    weighted = shapes / np.maximum(total, 1e-12 * float(total.max())) ** 2
    M, v = weighted @ shapes.T, weighted @ density
    strengths = non_negative(M[None], v[None])[0]
    floor = 1e-6 * float(np.mean(total)) + 1e-300
    return np.maximum(strengths @ unit(at), floor)
