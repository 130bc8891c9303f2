"""Output-error fit of one servo: robust Gauss-Newton on batched free runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.servos.model import PARAMETERS, decode, encode, table_of, units_of
from armwise.servos.rollout import Roller, ServoMotion, ServoTable

if TYPE_CHECKING:
    from jaxtyping import Float

Values = Mapping[str, float]

_DAMPINGS = (0.0, 0.03, 0.3, 3.0)
"""Levenberg-Marquardt damping, of the diagonal, tried at once in one batch."""

_DRAWS = 24
"""Points drawn along the valley where Gauss-Newton finds no way down."""

_WIDTHS = (0.4, 2.0)
"""Widths of differences, of the first, tried before a fit ends."""

# Judgement: errors of a free run are alike for about half a second.
CORRELATION_S = 0.5
"""Time in [s] over which errors count as one."""


@dataclass(frozen=True, eq=False)
class ServoFit:
    """A servo fitted to one joint of some motions.

    Attributes:
        values: Every parameter.
        names: Those that were fitted.
        cost: Mean robust cost, in [rad].
        total: Robust cost of independent errors and of the prior, in units of half a
            squared standard deviation.
        information: Of the fitted coordinates, prior included.
        scores: Gradient of every motion, for the scatter between motions.
    """

    values: dict[str, float]
    names: tuple[str, ...]
    cost: float
    total: float
    information: Float[np.ndarray, "names names"]
    scores: Float[np.ndarray, "motions names"]


@dataclass(frozen=True, eq=False)
class Prior:
    """What servos of one type share: mean and scatter of fitted coordinates.

    Attributes:
        mean: Parameter → coordinate of a usual servo.
        std: Parameter → how far servos differ; others are not shared.
    """

    mean: Mapping[str, float]
    std: Mapping[str, float]


# Judgement: servos of one type agree in what their firmware does, within 4 ms in when
# they are written to. Torques only within a factor of e: those of a joint without
# gravity are in units of its inertia, and friction depends on the gears' age.
_SCATTER = {
    "stiffness": 1.0, "damping": 1.0, "armature": 1.0, "delay": 0.2,
    "acceleration": 0.15, "slew": 0.15, "stribeck_speed": 1.0,
}  # fmt: skip


def shared_values(fits: Sequence[ServoFit]) -> Prior:
    """Return what servos have in common: a weighted median of each parameter.

    A servo counts as much as its own motions say about the parameter.
    """
    names = [name for name in fits[0].names if name in _SCATTER]
    mean, std = {}, {}
    for name in names:
        rows = []
        for fit in fits:
            k = fit.names.index(name)
            x = encode(fit.values, [name], units_of(fit.values))[0]
            variance = np.linalg.pinv(fit.information)[k, k]
            rows.append((x, 1.0 / (max(variance, 0.0) + _SCATTER[name] ** 2)))
        rows.sort()
        x, weight = np.array(rows).T
        # Judgement: where no servo is known to a factor of e, nothing is shared.
        if weight.max() < 0.5:
            continue
        mean[name] = float(x[np.searchsorted(np.cumsum(weight), 0.5 * weight.sum())])
        std[name] = _SCATTER[name]
    return Prior(mean, std)


def standard_deviations(fit: ServoFit) -> dict[str, float]:
    """Return standard deviations of the values; infinite where data say nothing."""
    if not fit.names:
        return {}
    # In units of each parameter's own information, so that one tolerance suits all.
    size = np.sqrt(np.diag(fit.information))
    unit = np.where(size > 1e-12 * size.max(), size, np.inf)
    values, vectors = np.linalg.eigh(fit.information / np.outer(unit, unit))
    is_known = values > 1e-10
    # What lies in a direction without information is not known, whatever the others
    # say; a pseudo-inverse alone would give it no variance at all.
    is_open = np.isinf(unit) | (np.abs(vectors[:, ~is_known]) > 1e-3).any(axis=1)
    half = vectors[:, is_known] / np.sqrt(values[is_known]) / unit[:, None]
    inverse = half @ half.T
    count = len(fit.scores)
    scatter = fit.scores.T @ fit.scores * count / max(count - 1, 1)
    # The scatter between motions knows of model errors that the noise does not; the
    # larger of the two is used, for few motions scatter little by chance.
    robust = np.diag(inverse @ scatter @ inverse)
    spread = np.sqrt(np.maximum(np.maximum(robust, np.diag(inverse)), 0.0))
    # Few motions: a normal's two standard deviations are Student's some more.
    from scipy.stats import t

    spread *= t.ppf(0.975, max(count - 1, 2)) / 1.96
    spread = np.where(is_open, np.inf, spread)
    units = units_of(fit.values)
    result = {}
    for name, s in zip(fit.names, spread, strict=True):
        is_log = PARAMETERS[name].scale == "log"
        # Judgement: known to no better than a factor of e is not known.
        if is_log and (s > 1.0 or s == 0.0):
            result[name] = np.inf
        else:
            result[name] = float(s * (fit.values[name] if is_log else units[name]))
    return result


def fit_alike(
    roller: Roller,
    motions: Sequence[ServoMotion],
    start: Values,
    names: Sequence[str],
    iterations: int,
    prior: Prior,
) -> ServoFit:
    """Fit a servo that others are like, from its own values and from their timing."""
    units = units_of(start)
    timing = [n for n in ("delay", "acceleration", "slew") if n in prior.mean]
    means = np.array([prior.mean[name] for name in timing])
    fits = [
        fit_servo(roller, motions, values, names, iterations=iterations, prior=prior)
        for values in (start, decode(start, timing, means, units))
    ]
    return min(fits, key=lambda fit: fit.total)


def undetermined(
    roller: Roller, motions: Sequence[ServoMotion], fit: ServoFit
) -> set[str]:
    """Return the positive parameters that a factor of e hardly changes the errors by.

    Differences ripple with stick and slip, and such noise looks like information.
    """
    logs = [name for name in fit.names if PARAMETERS[name].scale == "log"]
    units = units_of(fit.values)
    x = encode(fit.values, fit.names, units)
    points = [x]
    for name in logs:
        for sign in (1.0, -1.0):
            y = x.copy()
            y[fit.names.index(name)] += sign
            points.append(y)
    scale = _scale_of(roller, motions, fit.values)
    costs = np.array(
        costs_of(roller, motions, fit.values, fit.names, points, scale)
    ) * (effective_rows(motions) / scale)
    rise = (costs[1:] - costs[0]).reshape(-1, 2).min(axis=1)
    # Half: one standard deviation, whatever the other parameters do.
    return {name for name, r in zip(logs, rise, strict=True) if r < 0.5}


def fit_servo(
    roller: Roller,
    motions: Sequence[ServoMotion],
    start: Values,
    names: Sequence[str],
    *,
    iterations: int = 12,
    prior: Prior | None = None,
) -> ServoFit:
    """Fit some parameters of one servo to its measured positions.

    Args:
        roller: Of single joints.
        motions: One joint each.
        start: Every parameter to begin with.
        names: Those to fit.
        iterations: At most.
        prior: Shared with servos of the same type.
    """
    names = tuple(names)
    units = units_of(start)
    x = encode(start, names, units)
    steps = first_steps = np.array([PARAMETERS[name].step for name in names])
    means, weights = _prior_rows(prior, names)
    best: ServoFit | None = None
    failures = 0
    random = np.random.default_rng(0)
    for _ in range(max(iterations, 1)):
        # Away from a bound at zero, where the difference would be one-sided anyway.
        trials = [x, *(x + np.diag(steps))]
        runs = roller.run(motions, _tables(start, names, trials, units, len(motions)))
        errors = [run[..., 0] - m.q[:, 0] for run, m in zip(runs, motions, strict=True)]
        scale = _scale(errors, motions)
        H, scores, cost = _normal(errors, motions, steps, scale)
        # A servo may differ after all: the prior's pull ends at some scatters.
        pull = weights / np.sqrt(1.0 + weights * (x - means) ** 2)
        gradient = scores.sum(0) + pull * (x - means)
        H = H + np.diag(pull)
        nexts = [x - _solve(H, gradient, damping) for damping in _DAMPINGS]
        nexts += [x + 0.3 * (nexts[0] - x)]
        if failures:
            nexts += _along_valley(H, x, random)
        costs = costs_of(roller, motions, start, names, nexts, scale)
        penalty = [
            float(np.sum(np.sqrt(1.0 + weights * (y - means) ** 2) - 1.0))
            for y in [x, *nexts]
        ]
        count = effective_rows(motions)
        # In units of squared errors, as the prior's.
        pairs = zip([cost, *costs], penalty, strict=True)
        total = [c * count / scale + p for c, p in pairs]
        values = decode(start, names, x, units)
        best = ServoFit(values, names, cost, total[0], H, scores)
        k = int(np.nanargmin(total[1:]))
        # Judgement: far less than halves of the data differ by.
        if total[k + 1] < total[0] * (1.0 - 2e-4):
            x, failures = _within(nexts[k], names), 0
            continue
        # Stick and slip make the error ripple: differences of other widths, and points
        # along the valley, may show a way down that these did not.
        failures += 1
        if failures > len(_WIDTHS):
            break
        steps = first_steps * _WIDTHS[failures - 1]
    assert best is not None
    return best


def _along_valley(
    H: np.ndarray, x: np.ndarray, random: np.random.Generator
) -> list[np.ndarray]:
    """Draw points where the information allows the farthest steps."""
    values, vectors = np.linalg.eigh(H)
    # Judgement: three standard deviations, half a coordinate at most.
    reach = 3.0 / np.sqrt(np.maximum(values, 36.0))
    draws = random.normal(size=(_DRAWS, len(x))) * reach
    return list(x + draws @ vectors.T)


def _within(x: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Bring coordinates back to what can exist: nothing below zero."""
    lowest = [0.0 if PARAMETERS[n].scale == "linear" else -np.inf for n in names]
    return np.maximum(x, lowest)


def _prior_rows(
    prior: Prior | None, names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray]:
    if prior is None:
        return np.zeros(len(names)), np.zeros(len(names))
    means = np.array([prior.mean.get(n, 0.0) for n in names])
    weights = np.array([prior.std.get(n, np.inf) for n in names]) ** -2.0
    return means, weights


def _tables(
    start: Values,
    names: Sequence[str],
    points: Sequence[np.ndarray],
    units: Mapping[str, float],
    count: int,
) -> list[list[ServoTable]]:
    return [[table_of([decode(start, names, x, units)]) for x in points]] * count


def _solve(H: np.ndarray, gradient: np.ndarray, damping: float) -> np.ndarray:
    diagonal = np.maximum(np.diag(H), 1e-9 * np.diag(H).max() + 1e-300)
    step = np.linalg.lstsq(H + damping * np.diag(diagonal), gradient, rcond=1e-10)[0]
    # Judgement: beyond a factor of three the linear picture says nothing.
    return np.clip(step, -1.1, 1.1)


def robust(errors: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Pseudo-Huber cost in [rad]: square below the scale, absolute beyond."""
    return scale * (np.sqrt(1.0 + (errors / scale) ** 2) - 1.0)


def _scale(errors: Sequence[np.ndarray], motions: Sequence[ServoMotion]) -> float:
    """Return where squares end: the median error, never below an encoder's step."""
    sizes = [np.abs(e[0][m.mask[:, 0]]) for e, m in zip(errors, motions, strict=True)]
    joined = np.concatenate(sizes)
    median = float(np.nanmedian(joined)) if len(joined) else np.nan
    # Judgement: a milliradian is half a step of a usual servo's encoder.
    return max(median, 1e-3) if np.isfinite(median) else 1e-2


def _scale_of(roller: Roller, motions: Sequence[ServoMotion], values: Values) -> float:
    runs = roller.run(motions, [[table_of([values])]] * len(motions))
    return _scale(
        [run[..., 0] - m.q[:, 0] for run, m in zip(runs, motions, strict=True)], motions
    )


def effective_rows(motions: Sequence[ServoMotion]) -> float:
    """Return how many independent errors the motions hold."""
    total = 0.0
    for m in motions:
        period = float(np.median(np.diff(m.time)))
        total += float(m.mask.sum()) * min(period / CORRELATION_S, 1.0)
    return total


def _normal(
    errors: Sequence[np.ndarray],
    motions: Sequence[ServoMotion],
    steps: np.ndarray,
    scale: float,
) -> tuple[np.ndarray, np.ndarray, float]:
    """Return information, the motions' gradients and the mean cost."""
    count = len(steps)
    H, scores = np.zeros((count, count)), np.zeros((len(motions), count))
    total, rows = 0.0, 0
    for k, (e, m) in enumerate(zip(errors, motions, strict=True)):
        used = m.mask[:, 0]
        r = e[0][used]
        J = ((e[1:, used] - r) / steps[:, None]).T
        good = np.isfinite(r) & np.isfinite(J).all(1)
        r, J = r[good], J[good]
        w = 1.0 / np.sqrt(1.0 + (r / scale) ** 2) / scale**2
        # Errors repeat themselves: each counts for its fraction of a correlation time.
        period = float(np.median(np.diff(m.time)))
        w *= min(period / CORRELATION_S, 1.0)
        H += (J * w[:, None]).T @ J
        scores[k] = J.T @ (w * r)
        total += float(robust(r, scale).sum()) + 1e3 * float((~good).sum())
        rows += len(good)
    return H, scores, total / max(rows, 1)


def costs_of(
    roller: Roller,
    motions: Sequence[ServoMotion],
    start: Values,
    names: Sequence[str],
    points: Sequence[np.ndarray],
    scale: float,
) -> list[float]:
    """Return the mean robust cost of several points at once."""
    points = [_within(x, names) for x in points]
    runs = roller.run(
        motions, _tables(start, names, points, units_of(start), len(motions))
    )
    total, rows = np.zeros(len(points)), 0
    for run, m in zip(runs, motions, strict=True):
        used = m.mask[:, 0]
        e = run[:, used, 0] - m.q[used, 0]
        total += np.where(np.isfinite(e), robust(e, scale), 1e3).sum(1)
        rows += int(used.sum())
    return [float(t) for t in total / max(rows, 1)]


def mean_errors(
    roller: Roller, motions: Sequence[ServoMotion], values: Values
) -> Float[np.ndarray, " motions"]:
    """Return the mean absolute error in [rad] of every motion's rows that count."""
    runs = roller.run(motions, [[table_of([values])]] * len(motions))
    means = []
    for run, m in zip(runs, motions, strict=True):
        e = np.abs(run[0, m.mask[:, 0], 0] - m.q[m.mask[:, 0], 0])
        means.append(float(np.mean(e)) if len(e) else np.nan)
    return np.array(means)


# Starting points, drawn in dimensionless numbers: no servo's size is built in.

_DELAYS = (0.0, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.06)
_ACCELERATIONS = (np.inf, 160.0, 80.0, 40.0, 20.0, 10.0)
_SLEWS = (np.inf, np.inf, np.inf, 0.7, 0.5, 0.35, 0.25)
"""Of the fastest command; most servos are fast enough."""


@dataclass(frozen=True)
class StartRange:
    """What starting points of one joint are drawn around.

    Attributes:
        inertia: Of the links at the joint, in [kg m²].
        gain: A usual one.
        fastest: Speed of the fastest command in [rad/s].
        coasts: Whether motors are off at times.
    """

    inertia: float
    gain: float
    fastest: float
    coasts: bool


def drawn_starts(
    around: StartRange, base: Values, random: np.random.Generator, count: int
) -> list[dict[str, float]]:
    """Draw servos: natural frequency, damping ratio, friction angle, rotor inertia.

    Args:
        around: Sizes of this joint.
        base: The parameters that are not drawn.
        random: Generator.
        count: How many.
    """
    starts = []
    for _ in range(count):
        total = around.inertia * (1.0 + 10.0 ** random.uniform(-1.0, 1.5))
        omega, ratio = 10.0 ** random.uniform(0.8, 1.8), 10.0 ** random.uniform(-0.7, 1)
        stiffness = omega**2 * total
        drawn = {
            "stiffness": stiffness / around.gain,
            "armature": max(total - around.inertia, 1e-3 * total),
            "damping": 2.0 * ratio * omega * total,
            "coulomb": 10.0 ** random.uniform(-3.0, -1.2) * stiffness,
            "delay": float(random.choice(_DELAYS)),
            "acceleration": float(random.choice(_ACCELERATIONS)),
            "slew": float(random.choice(_SLEWS)) * around.fastest,
        }
        if around.coasts:
            drawn["coasting"] = 10.0 ** random.uniform(-2.0, 0.0)
            drawn["release"] = float(random.choice(_DELAYS[:5]))
        starts.append(dict(base) | drawn)
    return starts


def best_starts(
    roller: Roller,
    motions: Sequence[ServoMotion],
    starts: Sequence[Values],
    count: int,
) -> list[dict[str, float]]:
    """Return those starts whose free runs are nearest, best first."""
    tables = [[table_of([s]) for s in starts]] * len(motions)
    runs = roller.run(motions, tables)
    total = np.zeros(len(starts))
    for run, m in zip(runs, motions, strict=True):
        e = np.abs(run[:, m.mask[:, 0], 0] - m.q[m.mask[:, 0], 0])
        # Judgement: beyond 0.1 rad one start is as wrong as another.
        total += np.where(np.isfinite(e), np.minimum(e, 0.1), 1.0).sum(1)
    return [dict(starts[k]) for k in np.argsort(total)[:count]]


def element_starts(
    values: Values, added: Sequence[str], windows: Sequence[ServoMotion]
) -> list[dict[str, float]]:
    """Return values with an element at several sizes, or on a grid of limits."""
    units = units_of(values)
    starts = []
    for factor in (0.1, 0.3, 1.0, 3.0):
        start = dict(values)
        for name in added:
            start[name] = factor * units[name]
        starts.append(start)
    if added == ("acceleration",):
        grid = np.geomspace(5.0, 320.0, 13)
        delays = values["delay"] + np.array([-0.02, -0.01, -0.005, 0.0, 0.005])
        return [
            dict(values) | {"acceleration": float(a), "delay": float(max(d, 0.0))}
            for a in grid
            for d in delays
        ]
    if added == ("slew",):
        speed = max(fastest(w) for w in windows)
        return [dict(values) | {"slew": float(f * speed)}
                for f in np.geomspace(0.1, 1.0, 12)]  # fmt: skip
    if added == ("saturation",):
        effort = max(_effort(w) for w in windows) * values["stiffness"]
        return [dict(values) | {"saturation": float(f * effort)}
                for f in np.geomspace(0.02, 1.0, 16)]  # fmt: skip
    if "stribeck_speed" in added:
        return [dict(start) | {"stribeck_speed": speed}
                for start in starts for speed in (0.03, 0.1, 0.3, 1.0)]  # fmt: skip
    if added == ("offset",) or added == ("zero",):
        more = [dict(values) | {added[0]: -s[added[0]]} for s in starts]
        starts += more
    return starts


def fastest(motion: ServoMotion) -> float:
    """Return the fastest speed in [rad/s] of the commands over 0.1 s."""
    period = float(np.median(np.diff(motion.time)))
    lag = max(1, round(0.1 / period))
    if len(motion.time) <= lag:
        return 1.0
    moved = np.abs(motion.goals[lag:] - motion.goals[:-lag]).max()
    return max(float(moved) / (lag * period), 1e-2)


def _effort(motion: ServoMotion) -> float:
    """Return the largest error in [rad] while the motor is on, times the gain."""
    rows = motion.mask[:, 0] & (motion.powered > 0.5)
    errors = np.abs(motion.goals[rows, 0] - motion.q[rows, 0])
    return float(errors.max(initial=1e-3)) * motion.gain


def without(values: Values, names: Sequence[str]) -> dict[str, float]:
    """Return values with what is not among the names left out."""
    return {
        name: value if name in names else PARAMETERS[name].absent
        for name, value in values.items()
    }
