"""Filtering, differentiation and decimation of one uninterrupted stretch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.filters import differentiate, smoothing_spline, thinned
from armwise.recordings.samples import Samples
from armwise.recordings.stretches import standstill, sticking
from armwise.regression import low_pass

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.recordings.samples import Preparation
    from armwise.recordings.stretches import Stretch


def smooth(stretch: Stretch, preparation: Preparation) -> Samples | None:
    """Filter, differentiate, align, trim the edges and thin out one stretch.

    Long before the cut-off matters, fast recordings are thinned out to twenty samples
    a period of it. Returns None when the edges leave nothing.
    """
    early = early_decimation(preparation, stretch.rate_hz)
    ignored = dict(enumerate(preparation.ignores_slow))
    pauses = {
        j: standstill(signal, stretch.rate_hz)
        for j, signal in enumerate(stretch.q)
        if ignored.get(j)
    }
    sticks = [sticking(signal, stretch.rate_hz) for signal in stretch.q]
    stretch = stretch.thinned(early)
    trim = edge(preparation, stretch.rate_hz, len(stretch))
    rows = slice(trim, len(stretch) - trim, preparation.decimation // early)
    count = len(range(len(stretch))[rows])
    # Four samples are the least that cubic interpolation and differences can use.
    if count < 4:
        return None
    n = len(stretch.q)
    q, qd, qdd = (np.empty((count, n)) for _ in range(3))
    for j in range(n):
        motion = _motion(stretch, j, preparation)
        for signal, out in zip(motion, (q, qd, qdd), strict=True):
            out[:, j] = signal[rows]
    jitter = np.stack([signal[rows] for signal in stretch.q], axis=1) - q
    still = np.zeros((count, n))
    seen_hz = min(preparation.torque_bandwidth_hz or np.inf, preparation.low_pass_hz)
    for j, pause in pauses.items():
        weight = thinned(pause, early)
        still[:, j] = low_pass(weight, seen_hz, stretch.rate_hz, "constant")[rows]
    stuck = np.zeros((count, n))
    for j, pause in enumerate(sticks):
        if pause.any():
            weight = thinned(pause, early)
            stuck[:, j] = _envelope(weight, seen_hz, stretch.rate_hz)[rows]
    forces = []
    lags = (preparation.lag, preparation.wrench_lag)
    for signals, lag in zip((stretch.tau, stretch.wrench), lags, strict=True):
        block = np.empty((count, len(signals)))
        for j, signal in enumerate(signals):
            filtered = low_pass(signal, preparation.low_pass_hz, stretch.rate_hz)
            block[:, j] = shifted(filtered, lag * stretch.rate_hz)[rows]
        forces.append(block)
    tau, wrench = forces
    if preparation.torque_scale and stretch.tau:
        tau = tau * preparation.torque_scale
    return Samples(
        time=stretch.time[rows],
        q=q,
        qd=qd,
        qdd=qdd,
        tau=tau,
        wrench=wrench if stretch.wrench else None,
        still=still if pauses else None,
        stuck=stuck,
        jitter=jitter,
        temperature=(
            np.stack([signal[rows] for signal in stretch.temperature], axis=1)
            if stretch.temperature
            else None
        ),
        reference=(
            np.stack(
                [
                    low_pass(signal, preparation.low_pass_hz, stretch.rate_hz)[rows]
                    for signal in stretch.reference
                ],
                axis=1,
            )
            if stretch.reference
            else None
        ),
        preparation=preparation,
    )


# Judgement: clean ends are worth a tenth of a stretch, not more.
_MOST_TRIMMED = 0.05
"""Fraction of a stretch that is cut off at each end, at most, because of a low-pass
that the torque went through before it was logged."""


def _envelope(
    weight: Float[np.ndarray, " samples"], seen_hz: float, rate_hz: float
) -> Float[np.ndarray, " samples"]:
    """How much moments matter in a low-passed signal, however it rings about them."""
    # Half a period of what rings: it passes zero there, which is no calm.
    reach = round(0.25 * rate_hz / seen_hz)
    shown = np.pad(np.abs(low_pass(weight, seen_hz, rate_hz, "constant")), reach)
    # Running maximum by doubling; SciPy's would take a tenth of a second to import.
    span = 1
    while span < 2 * reach + 1:
        step = min(span, 2 * reach + 1 - span)
        shown = np.maximum(shown[:-step], shown[step:])
        span += step
    return shown


def edge(preparation: Preparation, rate_hz: float, count: int) -> int:
    """Return how many of so many samples are not to be trusted at each end."""
    cutoff = preparation.low_pass_hz
    # The low-pass continues the signal beyond its ends: two periods are its guess.
    # 0.45: where `low_pass` leaves a signal alone, and has no edges either.
    filtering = 0.0 if cutoff >= 0.45 * rate_hz else 2.0 / cutoff
    # An earlier one saw motion that was not logged. A period away, friction that turned
    # over there is a fiftieth of its size.
    early = 1.0 / min(preparation.torque_bandwidth_hz or np.inf, cutoff)
    early = min(early, _MOST_TRIMMED * count / rate_hz)
    lags = (preparation.lag, preparation.wrench_lag, preparation.velocity_lag)
    longest = max(filtering, early, *map(abs, lags))
    # Four more for twice two-sided differences.
    return int(np.ceil(longest * rate_hz)) + 4


def early_decimation(preparation: Preparation, rate_hz: float) -> int:
    """Return the largest divisor of the decimation that leaves the band untouched."""
    # At twenty samples a period the filter of `thinned`, flat to a tenth of the new
    # rate, is flat to twice the cut-off.
    most = int(rate_hz / (20.0 * preparation.low_pass_hz))
    divisors = [d for d in range(1, most + 1) if preparation.decimation % d == 0]
    return max(divisors, default=1)


def shifted(
    signal: Float[np.ndarray, "samples ..."], samples: float
) -> Float[np.ndarray, "samples ..."]:
    """Read an even signal, or columns of them, so many samples later.

    By cubic interpolation; within that distance of the ends the result is held and
    means nothing.
    """
    if samples == 0.0:
        return signal
    whole = int(np.floor(samples))
    u = samples - whole
    # Lagrange's weights of the four neighbours at −1, 0, 1, 2.
    weights = (
        -u * (u - 1.0) * (u - 2.0) / 6.0,
        (u + 1.0) * (u - 1.0) * (u - 2.0) / 2.0,
        -(u + 1.0) * u * (u - 2.0) / 2.0,
        (u + 1.0) * u * (u - 1.0) / 6.0,
    )
    reach = abs(whole) + 2
    first, last = np.repeat(signal[[0, -1]][:, None], reach, axis=1)
    padded = np.concatenate([first, signal, last])
    result = np.zeros_like(signal)
    for k, weight in enumerate(weights):
        start = reach + whole + k - 1
        result += weight * padded[start : start + len(signal)]
    return result


def _motion(
    stretch: Stretch, j: int, preparation: Preparation
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return position, velocity and acceleration of one joint over a stretch."""
    rate, cutoff = stretch.rate_hz, preparation.low_pass_hz
    # Without a cut-off there is no distance between knots.
    if preparation.derivatives == "spline" and cutoff < 0.45 * rate:
        q, qd, qdd = smoothing_spline(stretch.q[j], cutoff, rate)
        return q, qd, qdd
    q = low_pass(stretch.q[j], cutoff, rate)
    if preparation.velocity == "measured":
        measured = low_pass(stretch.qd[j], cutoff, rate)
        qd = shifted(measured, preparation.velocity_lag * rate)
    else:
        qd = differentiate(q, 1.0 / rate)
    # Used where it was measured: differentiating twice amplifies noise by ω².
    if stretch.qdd:
        return q, qd, low_pass(stretch.qdd[j], cutoff, rate)
    return q, qd, differentiate(qd, 1.0 / rate)
