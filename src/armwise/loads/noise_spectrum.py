"""Noise spectrum of regression rows over time: drift, white and rough parts.

Each segment goes through a cosine transform (DCT-II), which keeps white noise white and
turns a random walk with an unknown start into independent coefficients: exactly what a
drifting bias is. Coefficients then differ only in their variance S(f), and weighting
them by 1/√S is the optimal prefilter of `atkeson1986` ch. 5 on both sides of the
equation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


STEP_TOLERANCE = 0.02
"""Fraction by which steps of a time base may differ and still count as even: time
stamps jitter by a few per cent without the samples having moved, while a sample lost
doubles a step."""


@dataclass(frozen=True, eq=False)
class RegressionRows:
    """Rows target = regressor · φ + bias + noise on an even time base.

    Attributes:
        regressor: Y, one row per sample and channel.
        target: What Y φ should explain, in the channels' units.
        starts: First row of every uninterrupted segment.
        rate_hz: Rows per second in [Hz].
        channels: Names of the channels, such as fx or a joint's.
        highest_hz: Frequencies above were filtered away and are not used, in [Hz].
        prior_std: Standard deviation about zero that is known of every unknown before
            the rows; infinite where nothing is. None: of no unknown.
        size: Root mean square of what the largest channel measures, of which the target
            may be a small difference.
    """

    regressor: Float[np.ndarray, "rows channels parameters"]
    target: Float[np.ndarray, "rows channels"]
    starts: tuple[int, ...]
    rate_hz: float
    channels: tuple[str, ...]
    highest_hz: float = np.inf
    prior_std: Float[np.ndarray, " parameters"] | None = None
    size: float = 0.0

    def __len__(self) -> int:
        return int(self.target.shape[0])

    @property
    def segments(self) -> tuple[slice, ...]:
        """Rows of every uninterrupted stretch."""
        return tuple(slice(a, b) for a, b in pairwise((*self.starts, len(self))))

    def with_columns(
        self, columns: Float[np.ndarray, "rows channels more"]
    ) -> RegressionRows:
        """Return the same rows with further unknowns, of which nothing is known."""
        prior = self.prior_std
        if prior is not None:
            prior = np.concatenate([prior, np.full(columns.shape[2], np.inf)])
        return replace(
            self,
            regressor=np.concatenate([self.regressor, columns], axis=2),
            prior_std=prior,
        )

    def select(self, channels: tuple[str, ...]) -> RegressionRows:
        """Return only some of the channels."""
        columns = [self.channels.index(name) for name in channels]
        return replace(
            self,
            regressor=self.regressor[:, columns],
            target=self.target[:, columns],
            channels=channels,
        )


def even_rate_hz(time: Float[np.ndarray, " rows"], starts: tuple[int, ...]) -> float:
    """Return the rate [Hz] of an even time base.

    Raises:
        ArgumentError: If the steps within the segments differ.
    """
    steps = np.delete(np.diff(time), [s - 1 for s in starts[1:]])
    if steps.size == 0:
        raise ArgumentError("A single sample per segment has no time base.")
    median = float(np.median(steps))
    worst = int(np.argmax(np.abs(steps - median)))
    if abs(steps[worst] - median) > STEP_TOLERANCE * median:
        raise ArgumentError(
            f"The time base is not even: steps of {median:.6g} s, but "
            f"{steps[worst]:.6g} s near t = {time[worst]:.6g} s. Use prepare(), which "
            "resamples and cuts at gaps."
        )
    return 1.0 / median


# Cosine coefficients and their spectrum.

MEDIAN_SQUARE = 0.455
"""Median of χ² with one degree of freedom, the square of a standard normal variable.
A median of squares divided by it is a variance that outlying frequencies (a shaking
machine, mains hum) do not raise."""

_BANDS_PER_OCTAVE = 6
"""Fine enough to follow a resonance, coarse enough for several coefficients a band."""

_PRIOR_COEFFICIENTS = 6.0
"""Weight of the smooth spectrum against a band's own power, in coefficients: a band of
six is trusted half. Without it a band of one or two coefficients, of low power by
chance, would be given all the weight."""

_LOG_BINS = 200
"""Bins in log frequency for the fit of the smooth spectrum: its cost then does not grow
with the log, and three slopes need no finer grid."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Rows as cosine coefficients: one row per frequency of every segment.

    Attributes:
        regressor, target: As in `RegressionRows`.
        frequency: In [Hz].
        chord: λ = 2 − 2 cos(2π f / rate): the power gain of a first difference.
        rate_hz: Of the rows in [Hz].
        size: As in `RegressionRows`.
    """

    regressor: Float[np.ndarray, "frequencies channels parameters"]
    target: Float[np.ndarray, "frequencies channels"]
    frequency: Float[np.ndarray, " frequencies"]
    chord: Float[np.ndarray, " frequencies"]
    rate_hz: float
    size: float = 0.0


def cosine_coefficients(rows: RegressionRows, has_means: bool = False) -> Coefficients:
    """Transform every segment; without its mean if each has a bias of its own."""
    from scipy.fft import dct

    regressors, targets, frequencies = [], [], []
    for part in rows.segments:
        size = part.stop - part.start
        frequency = np.arange(size) * rows.rate_hz / (2.0 * size)
        is_used = frequency <= rows.highest_hz
        is_used[0] = has_means
        options = {"type": 2, "norm": "ortho", "axis": 0}
        regressors.append(dct(rows.regressor[part], **options)[is_used])
        targets.append(dct(rows.target[part], **options)[is_used])
        frequencies.append(frequency[is_used])
    f = np.concatenate(frequencies)
    chord = 2.0 - 2.0 * np.cos(2.0 * np.pi * f / rows.rate_hz)
    return Coefficients(
        np.concatenate(regressors),
        np.concatenate(targets),
        f,
        chord,
        rows.rate_hz,
        rows.size,
    )


def shapes(chord: Float[np.ndarray, " frequencies"]) -> Float[np.ndarray, "3 _"]:
    """Unit spectra at some frequencies: random walk, white, twice differentiated.

    Drift of a sensor's zero, its own noise, and what differentiating positions twice
    makes of theirs.
    """
    # At zero frequency a random walk has no bound; the mean is as uncertain as the
    # slowest coefficient, not infinitely so.
    safe = np.maximum(chord, np.min(chord[chord > 0], initial=4.0))
    return np.stack([1.0 / safe, np.ones_like(chord), chord**2])


@dataclass(frozen=True, eq=False)
class NoiseModel:
    """Spectrum of the noise on every channel.

    Attributes:
        strengths: Variance of the drift's steps, of the white noise, and of the noise
            that is differentiated twice; one row per channel.
        edges: Upper ends of frequency bands in [Hz].
        corrections: Power of each band over that of the three parts.
        rate_hz: Of the rows in [Hz].
    """

    strengths: Float[np.ndarray, "channels 3"]
    edges: Float[np.ndarray, " bands"]
    corrections: Float[np.ndarray, "channels bands"]
    rate_hz: float

    @classmethod
    def white(
        cls, variance: Float[np.ndarray, " channels"], rate_hz: float
    ) -> NoiseModel:
        """White noise of some variance on every channel."""
        zero = np.zeros_like(variance)
        strengths = np.column_stack([zero, variance, zero])
        band = np.array([rate_hz / 2])
        return cls(strengths, band, np.ones((len(variance), 1)), rate_hz)

    @property
    def white_std(self) -> Float[np.ndarray, " channels"]:
        """Standard deviation of the white noise, in the channels' units."""
        return np.sqrt(self.strengths[:, 1])

    @property
    def drift_rate(self) -> Float[np.ndarray, " channels"]:
        """Standard deviation of the drift after 1 s, in units per √s."""
        return np.sqrt(self.strengths[:, 0] * self.rate_hz)

    def variance(self, coefficients: Coefficients) -> Float[np.ndarray, "_ channels"]:
        """Variance of every coefficient's noise."""
        smooth = self.strengths @ shapes(coefficients.chord)
        band = np.searchsorted(self.edges[:-1], coefficients.frequency)
        return (smooth * self.corrections[:, band]).T


def flat_noise(coefficients: Coefficients) -> Float[np.ndarray, "_ channels"]:
    """White noise to start from: the level of the upper half of the frequencies.

    A load moves slowly, so there the target is mostly noise.
    """
    upper = coefficients.frequency >= 0.5 * coefficients.frequency.max()
    power = coefficients.target**2
    level = np.median(power[upper], axis=0) / MEDIAN_SQUARE
    # Simulated data may be exact: a floor keeps the weights finite.
    level = np.maximum(level, 1e-20 + 1e-12 * power.mean(axis=0))
    return np.broadcast_to(level, power.shape)


def fit_noise(
    coefficients: Coefficients,
    power: Float[np.ndarray, "frequencies channels"],
    has_drift: bool = True,
    start: NoiseModel | None = None,
) -> NoiseModel:
    """Fit the spectrum to squared residuals, already corrected for leverage.

    From the spectrum of nearly the same residuals, if there is one.
    """
    fine = _bins(coefficients.frequency, _LOG_BINS)
    count = np.bincount(fine).astype(float)
    unit = shapes(coefficients.chord)
    binned = np.stack([np.bincount(fine, g) for g in unit]) / count
    means = np.stack([np.bincount(fine, p) for p in power.T]) / count
    allowed = [0, 1, 2] if has_drift else [1, 2]
    strengths = np.zeros((power.shape[1], 3))
    near = None if start is None else start.strengths[:, allowed]
    strengths[:, allowed] = fit_mixtures(means, binned[allowed], count, near)
    return _with_bands(coefficients, power, strengths)


def _with_bands(
    coefficients: Coefficients, power: np.ndarray, strengths: np.ndarray
) -> NoiseModel:
    """Correct each sixth of an octave by its own power, shrunk towards the smooth fit.

    The corrected factor is the posterior mean of a gamma prior on the band's power.
    """
    f = coefficients.frequency
    lowest, highest = float(f[f > 0].min()), float(f.max())
    count = max(1, int(np.ceil(_BANDS_PER_OCTAVE * np.log2(highest / lowest))))
    edges = lowest * 2.0 ** (np.arange(1, count + 1) / _BANDS_PER_OCTAVE)
    band = np.searchsorted(edges[:-1], f)
    ratio = power / (strengths @ shapes(coefficients.chord)).T
    size = np.bincount(band, minlength=count)
    sums = np.stack([np.bincount(band, r, minlength=count) for r in ratio.T])
    corrections = (sums + _PRIOR_COEFFICIENTS) / (size + _PRIOR_COEFFICIENTS)
    return NoiseModel(strengths, edges, corrections, coefficients.rate_hz)


def _bins(frequency: np.ndarray, count: int) -> np.ndarray:
    """Number the frequencies by bins that are even in the logarithm and not empty."""
    f = np.maximum(frequency, np.min(frequency[frequency > 0]))
    position = np.log(f / f.min()) / max(1e-12, float(np.log(f.max() / f.min())))
    return np.unique(np.floor(position * count), return_inverse=True)[1]


def fit_mixtures(
    power: Float[np.ndarray, "channels bins"],
    unit: Float[np.ndarray, "parts bins"],
    count: Float[np.ndarray, " bins"],
    start: Float[np.ndarray, "channels parts"] | None = None,
    iterations: int = 30,
) -> Float[np.ndarray, "channels parts"]:
    """Maximum likelihood of non-negative strengths, by reweighted least squares.

    The Whittle likelihood Σ log S + power / S; its Fisher scoring is least squares of
    the power with weights 1/S².
    """
    # Exact data have no noise at some frequency, and 1/S² no bound.
    floor = (1e-10 * power @ count / count.sum() + 1e-30)[:, None]
    strengths = start
    if strengths is None:
        strengths = np.median(power[:, None] / unit, axis=2) / len(unit)
    spectrum = strengths @ unit + floor
    for step in range(iterations):
        weight = count / spectrum**2
        M = (unit[None] * weight[:, None]) @ unit.T
        strengths = non_negative(M, (weight * power) @ unit.T)
        renewed = strengths @ unit + floor
        change = float(np.max(np.abs(np.log(renewed / spectrum))))
        # The first guess may be off by decades, and full steps would overshoot in turn:
        # halve the first ones in the logarithm. A start is nearer.
        halves = step < 3 and (start is None or change > 0.5)
        spectrum = np.sqrt(spectrum * renewed) if halves else renewed
        if change < 1e-3:  # 0.1 % of a variance, far below its own uncertainty
            break
    return strengths + floor * (unit == 1.0).all(axis=1)  # to the white part


def non_negative(
    M: Float[np.ndarray, "problems n n"], v: Float[np.ndarray, "problems n"]
) -> Float[np.ndarray, "problems n"]:
    """Minimise θᵀMθ − 2vᵀθ over θ ≥ 0, trying every set of positive ones.

    With two or three unknowns the seven sets are fewer steps than any active-set
    method takes, and all problems are solved at once.
    """
    size = v.shape[1]
    scale = np.sqrt(np.array([M[:, i, i] for i in range(size)]))
    # Over a narrow band the unit spectra are nearly proportional; the ridge keeps their
    # pair solvable without moving either by more than 1e-12 of itself.
    ridge = 1.0 + 1e-12
    right = v.T / scale
    cosine: dict[tuple[int, ...], np.ndarray] = {
        (i, j): M[:, i, j] / (scale[i] * scale[j])
        for i, j in combinations(range(size), 2)
    }
    best, minimum = np.zeros(len(v)), np.zeros(right.shape)
    for count in range(1, size + 1):
        for positive in combinations(range(size), count):
            # By Cramer's rule: a library call costs twenty times as much.
            b = right[list(positive)]
            if count == 1:
                theta = b / ridge
            elif count == 2:
                c = cosine[positive]
                theta = (ridge * b - c * b[::-1]) / (ridge * ridge - c * c)
            else:
                x, y, z = cosine[0, 1], cosine[0, 2], cosine[1, 2]
                a = ridge * ridge
                off = y * z - ridge * x, x * z - ridge * y, x * y - ridge * z
                theta = np.array([
                    (a - z * z) * b[0] + off[0] * b[1] + off[1] * b[2],
                    off[0] * b[0] + (a - y * y) * b[1] + off[2] * b[2],
                    off[1] * b[0] + off[2] * b[1] + (a - x * x) * b[2],
                ])  # fmt: skip
                theta /= ridge * (a - z * z) + x * off[0] + y * off[1]
            value = -(b * theta).sum(axis=0)
            better = (theta >= 0.0).all(axis=0) & (value < best)
            if better.any():
                best = np.where(better, value, best)
                full = np.zeros(right.shape)
                full[list(positive)] = theta
                minimum = np.where(better, full, minimum)
    return np.asarray((minimum / scale).T)


# The covariance of parameters whose noise was estimated from the same data.


def small_sample_covariance(
    regressor: Float[np.ndarray, "frequencies channels parameters"],
    coefficients: Coefficients,
    variance: Float[np.ndarray, "frequencies channels"],
    covariance: Float[np.ndarray, "parameters parameters"],
) -> tuple[
    Float[np.ndarray, "parameters parameters"], Float[np.ndarray, " parameters"]
]:
    """Widen the covariance for the noise being estimated; return degrees of freedom.

    Kenward and Roger's correction (1997) is simple here: with independent coefficients
    every matrix in it is a weighted sum over frequencies. The degrees of freedom are
    Satterthwaite's, 2 c² / var(c) of each variance c, for Student's t.
    """
    unit = shapes(coefficients.chord)
    widening = np.zeros_like(covariance)
    spread = np.zeros(len(covariance))
    for channel in range(regressor.shape[1]):
        s, Y = variance[:, channel], regressor[:, channel]
        relative = unit / s
        # Covariance of the strengths: inverse Fisher information of the spectrum.
        strength = np.linalg.pinv(0.5 * relative @ relative.T, rcond=1e-10)
        P = [(Y * (g / s)[:, None]).T @ Y for g in relative]
        slopes = np.stack([np.diag(covariance @ p @ covariance) for p in P])
        spread += np.einsum("jp,jl,lp->p", slopes, strength, slopes)
        for i, gi in enumerate(relative):
            for j, gj in enumerate(relative):
                Q = (Y * (gi * gj / s)[:, None]).T @ Y
                widening += strength[i, j] * (Q - P[i] @ covariance @ P[j])
    widened = covariance + 2.0 * covariance @ widening @ covariance
    # Estimating the noise never makes a parameter better known: rounding and the
    # expansion's higher orders may say so.
    floor = np.diag(covariance) / np.maximum(np.diag(widened), 1e-300)
    stretch = np.sqrt(np.maximum(floor, 1.0))
    freedom = 2.0 * np.diag(covariance) ** 2 / np.maximum(spread, 1e-300)
    # Below two degrees of freedom Student's t has no variance.
    return widened * np.outer(stretch, stretch), np.maximum(freedom, 2.0)
