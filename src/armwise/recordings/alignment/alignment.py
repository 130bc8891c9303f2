"""Selection of cut-off, lag, velocity source and decimation, from the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings.alignment.lag import (
    LagFit,
    explained_band,
    find_bandwidth,
    find_lag,
    fit_lag,
    lag_beside_hysteresis,
)
from armwise.recordings.samples import (
    LEAST_KNOWN_LAG,
    LONGEST_LAG,
    UNKNOWN_LAG,
    Preparation,
    Samples,
)
from armwise.recordings.smoothing import shifted, smooth
from armwise.recordings.spectra import LONGEST, Band, band_powers, motion_band
from armwise.recordings.stretches import motions_between_rests, speed_resolution
from armwise.regression import (
    Columns,
    TorqueProjection,
    TorqueScale,
    accumulate_folds,
    consistent_scale,
    even_stretches,
    few_threads,
    held_joints,
)

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings.stretches import Stretch

ROWS = 3000
"""Samples that are enough to find a lag and a band: a lag's error is then a hundredth
of a sample, and no drive is steady enough to make use of more."""

ProjectionFor = Callable[[Preparation], TorqueProjection | None]
"""Gives what the motion explains of the torque after a preparation."""


def choose(
    parts: Sequence[Stretch],
    settings: Preparation | None,
    arm: Arm | None,
    lag: float | None,
) -> Preparation:
    """Fill in what was not asked for, from the longest stretch of the most joints.

    Args:
        parts: The stretches of a recording.
        settings: Settings with a cut-off that was asked for; None to find one.
        arm: The arm, to explain its torques.
        lag: Delay of the torque in [s]; None to find it.
    """
    # Threads cost more than they give on matrices this small.
    with few_threads():
        # Time from zero: large stamps would cost digits of the sampling rate.
        longest = replace(_richest(parts), start=0.0)
        choice, scale = _choose(longest, settings, arm, lag)
        if scale is None or arm is None:
            return choice
        # Lag and cut-off anew, by torques that no longer contradict each other.
        pairs = zip(scale.factors, longest.tau, strict=True)
        tau = tuple(factor * torque for factor, torque in pairs)
        choice, _ = _choose(replace(longest, tau=tau), settings, arm, lag)
        return replace(
            choice,
            torque_scale=tuple(map(float, scale.factors)),
            torque_scale_std=tuple(map(float, scale.std)),
        )


def _choose(
    longest: Stretch, settings: Preparation | None, arm: Arm | None, lag: float | None
) -> tuple[Preparation, TorqueScale | None]:
    """Decide one thing after the other, from one stretch.

    Also returns what torques that contradict each other must be multiplied by.
    """
    rate = longest.rate_hz
    columns = None if arm is None else Columns(arm)

    @cache  # the same preparation is tried for the velocity and for the lag
    def problem(preparation: Preparation) -> TorqueProjection | None:
        part = _window(longest, preparation.low_pass_hz)
        return torque_problem(part, preparation, columns)

    band = motion_band(_positions(longest), rate)
    first = settings or Preparation(cutoff_hz=band.most).settings
    # An octave above the usable band: with more, noise would decide between the two
    # velocities.
    trial = min(first.low_pass_hz, 2.0 * band.most)
    choice = with_velocity(
        _window(longest, trial), replace(first, cutoff_hz=trial), problem
    )
    if choice.velocity == "measured":
        # A measured velocity may show motion that noise hides in the position's
        # derivative, hence the wider of the two bands.
        other = motion_band(_integrated(longest), rate)
        band = Band(max(band.least, other.least), max(band.most, other.most))
    cutoff = first.low_pass_hz if settings else band.most
    choice = replace(choice, cutoff_hz=min(cutoff, band.most))
    if lag is not None:
        choice = replace(choice, lag=lag, wrench_lag=lag)
    if longest.tau:
        if columns is not None and lag is None:
            choice = replace(choice, lag=_rough_lag(problem, choice, rate))
        least = None if settings else band.least
        choice = _with_torque(problem, choice, least)
    if settings:
        early = choice.torque_bandwidth_hz
        # A filter above our own leaves no trace in the torque.
        if early is not None and early >= choice.low_pass_hz:
            early = None
        choice = replace(
            choice, cutoff_hz=settings.cutoff_hz, torque_bandwidth_hz=early
        )
    scale = None
    if longest.tau and columns is not None:
        choice, scale = _with_lag(problem, choice, columns, rate, lag is None)
    thin = decimation_for(choice, rate)
    return replace(choice, decimation=thin, sample_rate_hz=rate), scale


def _richest(parts: Sequence[Stretch]) -> Stretch:
    """The longest of the stretches in which most joints move.

    A sweep of one joint may last longer than the motion of all, and shows a delay and a
    scale of that joint alone.
    """
    ranges = np.array([[np.ptp(signal) for signal in part.q] for part in parts])
    # Judgement: a tenth of the farthest that a joint goes in any of them.
    moving = np.sum(ranges > 0.1 * ranges.max(axis=0), axis=1)
    best = max(range(len(parts)), key=lambda k: (moving[k], len(parts[k])))
    return parts[best]


def _positions(stretch: Stretch) -> np.ndarray:
    return np.stack([signal[:LONGEST] for signal in stretch.q])


def _integrated(stretch: Stretch) -> np.ndarray:
    speeds = np.stack([signal[:LONGEST] for signal in stretch.qd])
    return np.cumsum(speeds, axis=1) / stretch.rate_hz


def _window(stretch: Stretch, cutoff_hz: float) -> Stretch:
    """Cut the middle of a stretch, long enough for what has to be found."""
    thin = stretch.rate_hz / min(10.0 * cutoff_hz, stretch.rate_hz)
    # Twice the rows that are needed: edges and rests are still to be cut off.
    spare = max(len(stretch) - int(2 * ROWS * thin), 0)
    return stretch.window(spare // 2, len(stretch) - (spare - spare // 2))


def decimation_for(preparation: Preparation, rate_hz: float) -> int:
    """Keep ten samples a period of the cut-off: more say nothing new."""
    cutoff = preparation.low_pass_hz
    if not np.isfinite(cutoff):
        return 1
    half = int(rate_hz / (20.0 * cutoff))
    # Even, so that half of it can be done before the filter.
    return 2 * half if half else max(1, int(rate_hz / (10.0 * cutoff)))


# What the motion of a stretch explains of its torque.


def torque_problem(
    stretch: Stretch, preparation: Preparation, columns: Columns | None
) -> TorqueProjection | None:
    """Set up the projection of the torque; None if there is too little to go by."""
    if not stretch.tau:
        return None
    thin = decimation_for(preparation, stretch.rate_hz)
    samples = smooth(stretch, replace(preparation, decimation=thin))
    part = None if samples is None else _longest_motion(samples, stretch.rate_hz / thin)
    if part is None:
        return None
    projection = TorqueProjection.of(part, columns)
    # Five torques a column at least, or the residual would not show a misfit.
    return projection if projection.rank * 5 <= part.tau.size else None


def _longest_motion(samples: Samples, rate_hz: float) -> Samples | None:
    """Return the middle of the longest motion between two rests."""
    motions = motions_between_rests(samples.qd, rate_hz)
    if not motions:
        return None
    first, stop = max(motions, key=lambda rows: rows[1] - rows[0])
    spare = max(stop - first - ROWS, 0) // 2
    part = samples[first + spare : stop - spare]
    # The jackknife's ten blocks need a handful of samples each.
    if len(part) < 64:
        return None
    resolution = tuple(map(float, speed_resolution(part.qd)))
    preparation = replace(part.preparation, speed_resolution=resolution)
    return replace(part, preparation=preparation)


# Judgement: a twelfth of friction. Below it, what differs is how a joint sticks; above,
# its friction at low speed is a property of its own, and part of what is to be learnt.
_SLOW_FRICTION = 0.08
"""Friction where a joint hardly moves, beyond friction where it moves and as a fraction
of it, from which on such rows are learnt from as well."""


def _rough_lag(problem: ProjectionFor, choice: Preparation, rate_hz: float) -> float:
    """Find the lag to a few milliseconds: enough to choose a cut-off by."""
    # A tenth of the rate: cubic interpolation is exact to a thousandth only there.
    # White noise above would make every lag of half a sample look better than none.
    band = min(choice.low_pass_hz, 0.1 * rate_hz)
    trial = replace(choice, cutoff_hz=band, lag=0.0, wrench_lag=0.0, notes=())
    projection = problem(trial)
    return 0.0 if projection is None else find_lag(projection, band)


def _with_lag(
    problem: ProjectionFor,
    choice: Preparation,
    columns: Columns,
    rate_hz: float,
    is_open: bool,
) -> tuple[Preparation, TorqueScale | None]:
    """Fit the lag beside all parameters, and see how friction is at low speed.

    Also returns what torques must be multiplied by, as `consistent_scale` has it.
    """
    every = (True,) * columns.arm.dof
    trial = replace(choice, lag=0.0, wrench_lag=0.0, notes=(), ignores_slow=every)
    # Friction as the torque shows it, through the narrower of its own filter and ours.
    seen_hz = min(choice.torque_bandwidth_hz or np.inf, choice.low_pass_hz)
    shown = seen_hz if np.isfinite(seen_hz) else None
    projection = problem(replace(trial, torque_bandwidth_hz=shown))
    if projection is None:
        return replace(choice, lag_doubt=np.inf) if is_open else choice, None
    samples = projection.signals
    assert isinstance(samples, Samples)
    fit = fit_lag(samples, columns, choice.lag, is_open)
    fast = _fast_lag(fit)
    lag, std = fast or (fit.seconds, fit.std)
    # A torque that was low-passed within the motion's band before it was logged lacks
    # what the motion has: no delay explains that, and the best one means little.
    is_known = std < LEAST_KNOWN_LAG and seen_hz > 0.5 * choice.low_pass_hz
    is_known &= abs(lag) <= _longest(samples)
    # A torque that hardly changes fits best wherever the search ends.
    is_known &= abs(lag) < 0.9 * LONGEST_LAG
    if is_open and is_known and (fast or fit.is_fragile):
        # Not fitted again beside all parameters: slow rows and those near a reversal,
        # which are, would spoil it; so would friction of the load and elastic joints,
        # which are not.
        choice = replace(choice, lag=lag, lag_doubt=std)
    elif is_open and is_known:
        choice = replace(choice, lag=lag, lag_std=std)
    elif is_open:
        lag, doubt, note = _doubtful_lag(samples, columns, fit, rate_hz)
        notes = (*choice.notes, note)
        choice = replace(choice, lag=lag, lag_doubt=doubt, notes=notes)
        # Friction at low speed with the delay that is used.
        fit = fit_lag(samples, columns, lag, is_open=False)
    # NaN, of a joint without such rows or without friction, is not below any bound.
    ignored = tuple(map(bool, np.abs(fit.slow_friction) < _SLOW_FRICTION))
    # A thousand rows in ten stretches: what is looked for is far larger than noise.
    cut, step = even_stretches(len(samples), 10), -(-len(samples) // 1000)
    folds, _ = accumulate_folds(columns, samples, cut, step)
    scale = consistent_scale(folds, columns.support)
    return replace(choice, ignores_slow=ignored), _of_moving(scale, samples)


def _of_moving(scale: TorqueScale | None, samples: Samples) -> TorqueScale | None:
    """Without joints that were held: brakes and friction carry their load."""
    if scale is None:
        return None
    moves = ~held_joints([samples])
    if np.all(scale.factors[moves] == 1.0):
        return None
    return scale._replace(factors=np.where(moves, scale.factors, 1.0))


# Two standard errors of ten blocks differ by a half in one log of a hundred or so; by a
# quarter, in every sixth, and the smaller would be too small.
_FAR_SURER = 0.5
"""Standard error by some rows, as a fraction of that by all, from which on the latter
must be spoilt by the others."""


def _fast_lag(fit: LagFit) -> tuple[float, float] | None:
    """The delay as fast motion shows it and its standard error, where that is surer.

    Friction that falls with speed looks like a delay, whether the slowest rows are
    fitted or not. Short of Coulomb's, as where a joint sticks or winds up, it does so
    too, but real logs were predicted no better for it.
    """
    if fit.fast is None:
        return None
    std = fit.fast[1]
    is_stribeck = np.any(fit.slow_friction >= _SLOW_FRICTION)
    is_surer = std < (LEAST_KNOWN_LAG if is_stribeck else _FAR_SURER * fit.std)
    return fit.fast if is_surer else None


def _longest(samples: Samples) -> float:
    """Delay in [s] beyond which a log is too short to tell it from other parameters."""
    # Judgement: a twentieth; in a third of a second any torque fits with some delay.
    return 0.05 * len(samples) / samples.rate_hz


def _doubtful_lag(
    samples: Samples, columns: Columns, fit: LagFit, rate_hz: float
) -> tuple[float, float, str]:
    """Decide about a delay that is hardly determined: its value, doubt, and a note.

    Fitted beside the parameters it would be traded against friction, and predictions
    would be worse for it. So it is not fitted; but what it may be widens intervals.
    """
    seconds, std = fit.seconds, fit.std
    # Three standard errors and one sample: less is not worth a correction.
    if abs(seconds) > max(3.0 * std, 1.0 / rate_hz):
        # What friction with a memory explains as well is no delay.
        seconds, std = lag_beside_hysteresis(samples, columns, seconds)
    is_sure = abs(seconds) > max(3.0 * std, 1.0 / rate_hz)
    is_sure &= abs(seconds) <= min(_longest(samples), 0.9 * LONGEST_LAG)
    lag = seconds if is_sure else 0.0
    # Its second moment about what is taken.
    doubt = min(float(np.hypot(std, seconds - lag)), UNKNOWN_LAG)
    note = (
        f"The torque's delay is hardly determined ({1e3 * seconds:.1f} ± "
        f"{1e3 * std:.1f} ms) and taken for {1e3 * lag:.1f} ms; intervals are wider "
        "for it. Give it, if it is known (--lag)."
    )
    return lag, doubt, note


def _with_torque(
    problem: ProjectionFor, choice: Preparation, least_hz: float | None
) -> Preparation:
    """Find the band in which motion explains torque, and earlier filters."""
    # Without its lag, which is taken out below, and once only.
    projection = problem(replace(choice, lag=0.0, wrench_lag=0.0, notes=()))
    if projection is None:
        note = "Too little motion to find a lag or a cut-off from the torque."
        return replace(choice, notes=(*choice.notes, note))
    rate, cutoff = projection.signals.rate_hz, choice.low_pass_hz
    torque = shifted(projection.signals.tau, choice.lag * rate)
    # 0.45 of the rate: where `low_pass` leaves a signal alone.
    early = find_bandwidth(projection, torque, min(cutoff, 0.45 * rate))
    if least_hz is not None:
        # What a joint that sticks is held by says nothing of the motion's band either.
        seen = projection.without_sticking()
        residual = seen.residuals(torque, early) / np.sqrt(seen.fractions)
        # Never below the motion's own band, however noisy the torque.
        cutoff = max(least_hz, explained_band(residual, torque, rate, cutoff))
    return replace(choice, cutoff_hz=cutoff, torque_bandwidth_hz=min(early, cutoff))


# Which velocity to use: the measured one, or the derivative of position.


def with_velocity(
    stretch: Stretch, settings: Preparation, problem: ProjectionFor
) -> Preparation:
    """Take the measured velocity if it agrees with the position and is better.

    Better is what explains the torque with a smaller residual; without a torque, what
    has less noise.
    """
    if not stretch.qd or settings.derivatives == "spline":
        return settings
    measured, note = _aligned(stretch, settings)
    if note:
        return replace(settings, notes=(*settings.notes, note))
    residuals = [_log_residual(problem, choice) for choice in (settings, measured)]
    if residuals[0] is not None and residuals[1] is not None:
        # Two per cent of torque power: less may be chance, and position is exact.
        return measured if residuals[1] < residuals[0] - 0.02 else settings
    thin = decimation_for(settings, stretch.rate_hz)
    choices = (settings, measured)
    data = [smooth(stretch, replace(choice, decimation=thin)) for choice in choices]
    if data[0] is None or data[1] is None:
        return settings
    # A fifth less noise outweighs the risk of a sensor with a delay of its own.
    quieter = _noise(data[1], settings) < 0.8 * _noise(data[0], settings)
    return measured if quieter else settings


def _aligned(stretch: Stretch, settings: Preparation) -> tuple[Preparation, str]:
    """Find how late the measured velocity is; also a note if it does not fit at all."""
    derived = smooth(stretch, settings)
    measured = smooth(stretch, replace(settings, velocity="measured"))
    if derived is None or measured is None:
        return settings, ""
    slope, rate = derived.qdd, stretch.rate_hz
    # Least squares for the delay in q̇(t − d) ≈ q̇ − d q̈.
    # 1e-300: an arm that stands still has no delay instead of a division by zero.
    late = -np.sum((measured.qd - derived.qd) * slope) / max(np.sum(slope**2), 1e-300)
    # Below a quarter of a sample, interpolation would cost more than it mends.
    late = float(late) if abs(late) * rate > 0.25 else 0.0
    aligned = shifted(measured.qd, late * rate)
    scale = float(np.sum(aligned * derived.qd) / max(np.sum(derived.qd**2), 1e-300))
    # Another scale is another unit or a tachometer out of calibration.
    # Judgement: 3 % and 50 ms are more than a sensor and its bus are off by.
    if not 0.97 < scale < 1.03 or abs(late) > 0.05:
        return settings, (
            f"The measured velocity does not fit the position (scale {scale:.3g}, "
            f"{1e3 * late:.1f} ms late); velocity is made from position."
        )
    return replace(settings, velocity="measured", velocity_lag=late), ""


def _log_residual(problem: ProjectionFor, settings: Preparation) -> float | None:
    """Mean log fraction of torque power that the motion leaves, over the joints."""
    projection = problem(settings)
    if projection is None:
        return None
    shown = min(settings.low_pass_hz, 0.45 * projection.signals.rate_hz)
    residual = projection.residuals(projection.signals.tau, shown)
    # Logarithms, so that a difference is a ratio of powers whatever the joint; 1e-300
    # for a residual that is exactly zero.
    return float(np.log(np.maximum((residual**2).sum(axis=0), 1e-300)).mean())


def _noise(samples: Samples, settings: Preparation) -> float:
    """Return how strong accelerations are in the last octave below the cut-off."""
    cutoff, powers = settings.low_pass_hz, []
    for column in samples.qdd.T:
        centres, power = band_powers(column, samples.rate_hz)
        last = (centres > 0.5 * cutoff) & (centres < cutoff)
        # The octave below the cut-off is where noise is strongest and motion least.
        powers.append(float(power[last].mean()) if last.any() else 0.0)
    # The geometric mean: every joint counts alike, whatever its units and size.
    return float(np.exp(np.mean(np.log(np.maximum(powers, 1e-300)))))
