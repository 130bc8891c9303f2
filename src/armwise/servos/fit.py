"""Output-error fit of one servo: robust Gauss-Newton on batched free runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.servos.model import (
    FALLS,
    LIMITS,
    PARAMETERS,
    Values,
    decode,
    encode,
    stacked,
    tables_of,
    units_of,
)
from armwise.servos.rollout import (
    Roller,
    ServoMotion,
    ServoTables,
    rounding_of,
)

if TYPE_CHECKING:
    from jaxtyping import Float

_DAMPINGS = (0.0, 0.1, 3.0)
"""Levenberg-Marquardt damping, of the diagonal, tried at once in one batch: with a
shorter step four, as many as are rolled out together. The largest is a small step for
where none of the others goes down."""

_DRAWS = 24
"""Points drawn along the valley where Gauss-Newton finds no way down."""

# Where a joint sticks and slips the error ripples, and only wide differences see past
# that; where it does not, narrow ones are Gauss-Newton's own and converge in few steps.
_WIDTHS = (1.0, 0.1)
"""Widths of differences, of each parameter's step, taken in turn."""

# Judgement: Student's factor is then below 1.5.
_MANY = 5
"""Motions whose scatter tells how much their errors say."""

_FAILURES = 3
"""Steps in a row that lead nowhere, until a fit ends."""


@dataclass(frozen=True, eq=False)
class ServoFit:
    """A servo fitted to one joint of some motions.

    Attributes:
        values: Every parameter.
        names: Those that were fitted.
        cost: Mean robust cost, in [rad].
        scale: Where squares of its errors end, in [rad].
        information: Of the fitted coordinates, prior included.
        scores: Gradient of every motion, for the scatter between motions.
    """

    values: dict[str, float]
    names: tuple[str, ...]
    cost: float
    scale: float
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
# they are written to. Torques only within half of a factor of e: those of a joint
# without gravity are in units of its inertia, and friction depends on the gears' age.
SCATTER = {
    "stiffness": 0.5, "damping": 0.5, "armature": 1.0, "delay": 0.2,
    "acceleration": 0.15, "slew": 0.15, "stribeck_speed": 1.0,
}  # fmt: skip
"""How far servos of one type differ, in fitted coordinates."""


TORQUES = ("stiffness", "damping", "armature")
"""Shared parameters that gravity gives their size."""


def shared_values(
    fits: Sequence[ServoFit], among: Sequence[str] = tuple(SCATTER)
) -> Prior:
    """Return what servos have in common: a weighted median of each parameter.

    A servo counts as much as its own motions say about the parameter.

    Args:
        fits: Of servos of one type.
        among: Parameters that may be shared.
    """
    mean, std = {}, {}
    for name in among:
        rows = []
        for fit in fits:
            if name not in fit.names:
                continue
            k = fit.names.index(name)
            x = encode(stacked([fit.values]), [name])[0, 0]
            variance = np.linalg.pinv(fit.information, hermitian=True)[k, k]
            rows.append((x, 1.0 / (max(variance, 0.0) + SCATTER[name] ** 2)))
        if not rows:
            continue
        rows.sort()
        x, weight = np.array(rows).T
        # Judgement: where no servo is known to a factor of e, nothing is shared.
        if weight.max() < 0.5:
            continue
        mean[name] = float(x[np.searchsorted(np.cumsum(weight), 0.5 * weight.sum())])
        std[name] = SCATTER[name]
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
    own = np.diag(inverse @ _between_motions(fit) @ inverse)
    factor = _excess(fit, inverse, int(is_known.sum()))
    variance = np.maximum(own, factor * np.diag(inverse))
    spread = np.sqrt(np.maximum(variance, 0.0)) * _few_motions(fit)
    spread = np.where(is_open, np.inf, spread)
    units = units_of(stacked([fit.values]), fit.names)
    result = {}
    for name, s in zip(fit.names, spread, strict=True):
        is_log = PARAMETERS[name].scale == "log"
        # Judgement: known to no better than a factor of e is not known.
        if is_log and (s > 1.0 or s == 0.0):
            result[name] = np.inf
        else:
            result[name] = float(s * (fit.values[name] if is_log else units[name][0]))
    return result


# Judgement: servos' clocks tick at 1 kHz or faster: up to half of a millisecond, all
# as likely.
_HOLD_S = 0.5e-3 / np.sqrt(3.0)
"""How late in [s] held torques may be, as a standard deviation."""

# Judgement: so far do integrators, and friction of other shapes near rest, move the
# values of servos that move alike.
_FORM = 0.005
"""How far values are off, as a fraction, for a servo is only like its model."""


def widen_by_clock(
    values: Mapping[str, np.ndarray],
    std: dict[str, np.ndarray],
    inertia: Float[np.ndarray, " dof"],
) -> None:
    """Widen intervals by what a servo's clock does, which no log shows.

    Torque held from tick to tick comes half a tick late: commands do, stiffness
    then lessens damping, and damping inertia, but where a limit of torque has ended
    it. Limits of a set-point that steps bring it up to a tick ahead.

    Args:
        values: Parameter → one number per joint.
        std: Their standard deviations, which change.
        inertia: Of the links at each joint, in [kg m²].
    """
    fitted = std["delay"] > 0.0
    steps = np.isfinite(values["acceleration"]) | np.isfinite(values["slew"])
    late = np.where(steps, np.hypot(_HOLD_S, 2.0 * _HOLD_S), _HOLD_S)
    std["delay"] = np.hypot(std["delay"], np.where(fitted, late, 0.0))
    lost = _HOLD_S * np.where(fitted, values["damping"], 0.0)
    std["armature"] = np.hypot(std["armature"], lost)
    damping = _HOLD_S * np.where(fitted, values["stiffness"], 0.0)
    std["damping"] = np.hypot(std["damping"], damping)
    part = values["limited_damping"] * lost / (inertia + values["armature"])
    is_limited = (std["saturation"] > 0.0) & np.isfinite(values["saturation"])
    off = np.where(is_limited, values["saturation"], 0.0) * part
    std["saturation"] = np.hypot(std["saturation"], off)
    for name in (n for n in PARAMETERS if PARAMETERS[n].scale == "log"):
        form = np.where(std[name] > 0.0, _FORM * values[name], 0.0)
        std[name] = np.hypot(std[name], form)


def _between_motions(fit: ServoFit) -> Float[np.ndarray, "names names"]:
    """Scatter of the motions' gradients."""
    count = len(fit.scores)
    return np.asarray(fit.scores.T @ fit.scores * count / max(count - 1, 1))


def _excess(fit: ServoFit, inverse: np.ndarray, known: int) -> float:
    """How much more motions differ than the information says, as a ratio of variances.

    The scatter between motions knows of model errors that the noise does not, and of
    how long errors are alike, which the information only takes to be half a second: its
    mean over all parameters scales the information, for that of a single one is small
    by chance. Few motions do not tell.
    """
    ratio = float(np.trace(inverse @ _between_motions(fit))) / max(known, 1)
    return ratio if len(fit.scores) >= _MANY else 1.0


def _few_motions(fit: ServoFit) -> float:
    """Few motions: a normal's two standard deviations are Student's some more."""
    from scipy.stats import t

    return float(t.ppf(0.975, max(len(fit.scores) - 1, 2)) / 1.96)


_OPEN = {"log": 0.5, "linear": 1.0, "signed": 1.0}
"""How far a servo may be off in a coordinate that its motions say nothing of: half of
a factor of e, as servos of one type differ; its usual size."""


def coordinate_covariance(
    fit: ServoFit, alternatives: Sequence[Mapping[str, float]]
) -> Float[np.ndarray, "names names"]:
    """Return the covariance of the fitted coordinates, to draw servos from.

    Args:
        fit: A servo that was fitted.
        alternatives: Half of the way to other servos that motions do not tell from it,
            such as the fits of both halves of the motions: they know of other valleys,
            and of directions in which servos are alike.
    """
    prior = np.diag([_OPEN[PARAMETERS[name].scale] ** -2.0 for name in fit.names])
    inverse = np.linalg.inv(fit.information + prior)
    factor = _excess(fit, inverse, len(fit.names)) * _few_motions(fit) ** 2
    # Not surer than the information has it, if motions are alike by chance.
    information = fit.information / max(factor, 1.0)
    rows = [[one.get(name, 0.0) for name in fit.names] for one in alternatives]
    ways = np.array(rows).reshape(len(rows), len(fit.names))
    return np.asarray(np.linalg.inv(information + prior) + ways.T @ ways)


def fit_alike(
    roller: Roller,
    motions: Sequence[ServoMotion],
    start: Values,
    names: Sequence[str],
    iterations: int,
    prior: Prior,
) -> ServoFit:
    """Fit a servo that others are like, from its own values and from theirs."""
    starts = [dict(start)]
    for group in (("delay", *LIMITS), TORQUES):
        shared = [n for n in group if n in prior.mean and n in names]
        if shared:
            means = np.array([[prior.mean[name] for name in shared]])
            moved = decode(stacked([start]), shared, means)
            starts.append({name: float(x[0]) for name, x in moved.items()})
            # Friction goes with the torques: what holds a stiff servo stops a soft one.
            starts[-1]["coulomb"] *= starts[-1]["stiffness"] / start["stiffness"]
    fits = fit_servos(
        roller, motions, starts, names, iterations=iterations, prior=prior
    )
    return ranked(roller, motions, fits, prior)[0]


def ranked(
    roller: Roller,
    motions: Sequence[ServoMotion],
    fits: Sequence[ServoFit],
    prior: Prior | None = None,
) -> list[ServoFit]:
    """Return fits to the same motions, the best first.

    Their own costs are each in units of its own errors, and the worst has the largest.
    """
    if len(fits) < 2:
        return list(fits)
    tables = tables_of(stacked([fit.values for fit in fits]))
    # Beyond half a step of the encoder absolute errors are compared.
    costs = roller.costs(motions, tables, np.full(len(fits), rounding_of(motions)))
    totals = costs * effective_rows(motions) / min(fit.scale for fit in fits)
    for k, fit in enumerate(fits):
        rows = _prior_rows(prior, fit.names)
        totals[k] += _penalty(encode(stacked([fit.values]), fit.names)[0], rows)
    order = np.argsort(totals, kind="stable")
    return [replace(fits[k], cost=float(costs[k])) for k in order]


def undetermined(
    roller: Roller, motions: Sequence[ServoMotion], fit: ServoFit
) -> set[str]:
    """Return the positive parameters that a factor of e hardly changes the errors by.

    Differences ripple with stick and slip, and such noise looks like information.
    """
    logs = [name for name in fit.names if PARAMETERS[name].scale == "log"]
    values = stacked([fit.values])
    x = encode(values, fit.names)[0]
    points = [x]
    for name in logs:
        for sign in (1.0, -1.0):
            y = x.copy()
            y[fit.names.index(name)] += sign
            points.append(y)
    nothing = np.zeros((1, 0))
    scale = roller.normals(motions, tables_of(values), nothing).scale[0]
    repeated = {name: np.repeat(v, len(points)) for name, v in values.items()}
    tables = tables_of(decode(repeated, fit.names, np.array(points)))
    costs = roller.costs(motions, tables, np.full(len(points), scale))
    costs *= effective_rows(motions) / scale
    rise = (costs[1:] - costs[0]).reshape(-1, 2).min(axis=1)
    # Half: one standard deviation, whatever the other parameters do.
    return {name for name, r in zip(logs, rise, strict=True) if r < 0.5}


def idle(
    roller: Roller,
    motions: Sequence[ServoMotion],
    values: Values,
    names: Sequence[str],
) -> dict[str, float]:
    """Return the parameters that free runs are the same without, and what that costs.

    A limit that no motion meets is one of them, and friction of no size. The cost is in
    half squared deviations, the least first.
    """
    names = [name for name in names if name not in FALLS]
    servos = [dict(values)]
    servos += [dict(values) | {name: PARAMETERS[name].absent} for name in names]
    scale = np.full(len(servos), rounding_of(motions))
    costs = roller.costs(motions, tables_of(stacked(servos)), scale)
    costs *= effective_rows(motions) / scale
    pairs = sorted(zip((costs[1:] - costs[0]).tolist(), names, strict=True))
    # Half: one standard deviation, as for what is not determined.
    return {name: rise for rise, name in pairs if rise < 0.5}


# Judgement: a third more or less; gravity's sag is still all but linear in that.
_SCALE_STEP = 0.3
"""Difference of the scale of all torques, as a logarithm."""


def resolved(
    roller: Roller, motions: Sequence[ServoMotion], fit: ServoFit, prior: Prior | None
) -> ServoFit:
    """Return a fit with its information by wide differences, torques moved together.

    Where the error ripples, as it does with stick and slip, narrow differences look
    like information. What all torques together do is the small rest of large effects of
    each, and moved together it shows as such.
    """
    values, names = stacked([fit.values]), fit.names
    x = encode(values, names)[0]
    directions = np.eye(len(names))
    steps = np.array([[PARAMETERS[name].step for name in names]])
    if "stiffness" in names:
        at = names.index("stiffness")
        directions[at] = [scale_slope(n, y) for n, y in zip(names, x, strict=True)]
        steps[0, at] = _SCALE_STEP
    highest = _bounds(names)[1]
    steps = np.where(x + steps > highest, -steps, steps)
    trials = x + np.vstack([np.zeros(len(names)), steps.T * directions])
    tables = _tables(values, names, trials[None], np.arange(1))
    sums = roller.normals(motions, tables, steps)
    inverse = np.linalg.inv(directions)
    information = inverse @ sums.information[0] @ inverse.T
    pull = _pulled(x[None], np.zeros((1, len(names))), _prior_rows(prior, names))[1][0]
    low, high = _bounds(names)
    # What lies between two bounds is not less known than anything between them.
    pull = pull + 12.0 / (high - low) ** 2
    return replace(
        fit,
        information=information + np.diag(pull),
        scores=sums.scores[0] @ inverse.T,
    )


def scale_slope(name: str, coordinate: float) -> float:
    """Return how a coordinate grows with the logarithm of all torques together."""
    parameter = PARAMETERS[name]
    if parameter.unit.startswith(("N m", "kg m²")):
        return 1.0 if parameter.scale == "log" else coordinate
    return -coordinate if parameter.unit.startswith("1/(N") else 0.0


def restricted(fit: ServoFit, names: Sequence[str]) -> ServoFit:
    """Return a fit of some of its parameters, the others absent."""
    at = [fit.names.index(name) for name in names]
    absent = {n: PARAMETERS[n].absent for n in fit.names if n not in names}
    return replace(
        fit,
        values=dict(fit.values) | absent,
        names=tuple(names),
        information=fit.information[np.ix_(at, at)],
        scores=fit.scores[:, at],
    )


def is_shown(fit: ServoFit, names: Sequence[str]) -> bool:
    """Return whether some linear parameters are surely not all zero."""
    from scipy.stats import chi2

    at = [fit.names.index(name) for name in names]
    inverse = np.linalg.pinv(fit.information, hermitian=True)
    factor = max(_excess(fit, inverse, len(fit.names)), 1.0) * _few_motions(fit) ** 2
    x = encode(stacked([fit.values]), names)[0]
    square = x @ np.linalg.pinv(factor * inverse[np.ix_(at, at)], hermitian=True) @ x
    return bool(square > chi2.ppf(0.95, len(names)))


def fit_servo(
    roller: Roller,
    motions: Sequence[ServoMotion],
    start: Values,
    names: Sequence[str],
    *,
    iterations: int = 12,
    prior: Prior | None = None,
) -> ServoFit:
    """Fit some parameters of one servo to its measured positions: see fit_servos."""
    fits = fit_servos(
        roller, motions, [start], names, iterations=iterations, prior=prior
    )
    return fits[0]


def fit_servos(
    roller: Roller,
    motions: Sequence[ServoMotion],
    starts: Sequence[Values],
    names: Sequence[str],
    *,
    iterations: int = 12,
    prior: Prior | None = None,
) -> list[ServoFit]:
    """Fit some parameters of one servo to its measured positions, from many starts.

    All starts take their steps together: free runs of every start, parameter moved and
    motion are one batch.

    Args:
        roller: Of single joints.
        motions: One joint each.
        starts: Every parameter to begin with.
        names: Those to fit.
        iterations: At most.
        prior: Shared with servos of the same type.
    """
    names = tuple(names)
    values = stacked(starts)
    x = encode(values, names)
    prior_rows = _prior_rows(prior, names)
    effective = effective_rows(motions)
    widths = np.array([PARAMETERS[name].step for name in names])
    highest = _bounds(names)[1]
    count, size = x.shape
    failures, cost, scales = np.zeros(count, int), np.zeros(count), np.zeros(count)
    information = np.zeros((count, size, size))
    scores = np.zeros((count, len(motions), size))
    active = np.arange(count)
    for iteration in range(max(iterations, 1)):
        steps = np.tile(widths * _WIDTHS[iteration % len(_WIDTHS)], (len(active), 1))
        # Away from a bound, where the difference would be one-sided anyway.
        steps = np.where(x[active] + steps > highest, -steps, steps)
        around = np.concatenate([np.zeros((1, size)), np.eye(size)])
        trials = x[active, None] + around * steps[:, None]
        tables = _tables(values, names, trials, active)
        sums = roller.normals(motions, tables, steps)
        gradient, pull = _pulled(x[active], sums.scores.sum(1), prior_rows)
        H = sums.information + pull[:, :, None] * np.eye(size)
        information[active], scores[active] = H, sums.scores
        nexts = np.stack([x[active] - _solve(H, gradient, d) for d in _DAMPINGS], 1)
        shorter = x[active, None] + 0.3 * (nexts[:, :1] - x[active, None])
        batches = [(np.arange(len(active)), np.concatenate([nexts, shorter], axis=1))]
        stuck = np.flatnonzero(failures[active])
        if len(stuck):
            batches.append(
                (stuck, _along_valley(H[stuck], x[active[stuck]], iteration))
            )
        batches = [(rows, _within(y, names)) for rows, y in batches]
        flat = [_tables(values, names, y, active[rows]) for rows, y in batches]
        joined = {name: np.concatenate([f[name] for f in flat]) for name in values}
        scale = np.concatenate(
            [np.repeat(sums.scale[rows], y.shape[1]) for rows, y in batches]
        )
        costs = roller.costs(motions, joined, scale)
        cost[active] = sums.cost
        # In units of squared errors, as the prior's.
        before = sums.cost * effective / sums.scale + _penalty(x[active], prior_rows)
        scales[active] = sums.scale
        first = 0
        is_better, reached = np.zeros(len(active), bool), before.copy()
        for rows, y in batches:
            own = costs[first : first + y[..., 0].size].reshape(y.shape[:2])
            first += own.size
            totals = own * effective / sums.scale[rows, None]
            totals += _penalty(y, prior_rows)
            best = np.argmin(totals, axis=1)
            lowest = np.take_along_axis(totals, best[:, None], 1)[:, 0]
            # Judgement: far less than halves of the data differ by.
            good = lowest < np.minimum(before[rows] * (1.0 - 2e-4), reached[rows])
            k, point = rows[good], best[good]
            x[active[k]], is_better[k] = y[good, point], True
            cost[active[k]], reached[k] = own[good, point], lowest[good]
        # Differences of the other width, and points along the valley, may show a way
        # down that these did not.
        failures[active] = np.where(is_better, 0, failures[active] + 1)
        active = active[failures[active] < _FAILURES]
        if not len(active):
            break
    ends = decode(values, names, x)
    return [
        ServoFit(
            {name: float(v[s]) for name, v in ends.items()}, names, float(cost[s]),
            float(scales[s]), information[s], scores[s],
        )
        for s in range(count)
    ]  # fmt: skip


PriorRows = tuple[np.ndarray, np.ndarray]
"""Means and weights of the fitted coordinates."""


def _pulled(
    x: np.ndarray, gradient: np.ndarray, prior: PriorRows
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient and the diagonal of the information that a prior adds."""
    means, weights = prior
    # A servo may differ after all: the prior's pull ends at some scatters.
    pull = weights / np.sqrt(1.0 + weights * (x - means) ** 2)
    return gradient + pull * (x - means), pull


def _along_valley(
    H: Float[np.ndarray, "starts names names"], x: np.ndarray, seed: int
) -> Float[np.ndarray, "starts draws names"]:
    """Draw points where the information allows the farthest steps."""
    values, vectors = np.linalg.eigh(H)
    # Judgement: three standard deviations, half a coordinate at most.
    reach = 3.0 / np.sqrt(np.maximum(values, 36.0))
    normal = np.random.default_rng(seed).normal(size=(_DRAWS, x.shape[1]))
    draws = normal * reach[:, None]
    return x[:, None] + draws @ vectors.transpose(0, 2, 1)


def _within(x: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """Bring coordinates back to what can exist."""
    return np.clip(x, *_bounds(names))


def _bounds(names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the largest coordinates that can exist."""
    # Of torques, whose unit is the servo's own, only zero is a bound.
    every = [
        (PARAMETERS[n].least / PARAMETERS[n].start,
         PARAMETERS[n].most / PARAMETERS[n].start)
        if PARAMETERS[n].scale == "linear"
        else (-np.inf, np.inf)
        for n in names
    ]  # fmt: skip
    low, high = np.array(every).reshape(-1, 2).T
    return low, high


def _prior_rows(prior: Prior | None, names: Sequence[str]) -> PriorRows:
    if prior is None:
        return np.zeros(len(names)), np.zeros(len(names))
    means = np.array([prior.mean.get(n, 0.0) for n in names])
    weights = np.array([prior.std.get(n, np.inf) for n in names]) ** -2.0
    return means, weights


def _penalty(x: np.ndarray, prior: PriorRows) -> np.ndarray:
    """Return what the prior asks of points, in half squared deviations."""
    means, weights = prior
    return np.sum(np.sqrt(1.0 + weights * (x - means) ** 2) - 1.0, axis=-1)


def _tables(
    values: Mapping[str, np.ndarray],
    names: Sequence[str],
    points: Float[np.ndarray, "starts points names"],
    starts: np.ndarray,
) -> ServoTables:
    """Return the tables of points, each beside the other values of its start."""
    owners = np.repeat(starts, points.shape[1])
    flat = points.reshape(len(owners), len(names))
    return tables_of(
        decode({name: v[owners] for name, v in values.items()}, names, flat)
    )


def _solve(
    H: Float[np.ndarray, "starts names names"], gradient: np.ndarray, damping: float
) -> Float[np.ndarray, "starts names"]:
    own = np.diagonal(H, axis1=1, axis2=2)
    least = 1e-9 * own.max(axis=1, initial=0.0, keepdims=True) + 1e-300
    damped = H + damping * np.maximum(own, least)[:, :, None] * np.eye(H.shape[1])
    inverse = np.linalg.pinv(damped, rcond=1e-10, hermitian=True)
    step = (inverse @ gradient[..., None])[..., 0]
    # Judgement: beyond a factor of three the linear picture says nothing.
    return np.clip(step, -1.1, 1.1)


def effective_rows(motions: Sequence[ServoMotion]) -> float:
    """Return how many independent errors the motions hold."""
    return sum(float(m.mask.sum()) * m.weight for m in motions)


def mean_errors(
    roller: Roller, motions: Sequence[ServoMotion], values: Values
) -> Float[np.ndarray, " motions"]:
    """Return the mean absolute error in [rad] of every motion's rows that count."""
    return errors_together(roller, motions, [values])[0]


def errors_together(
    roller: Roller, motions: Sequence[ServoMotion], servos: Sequence[Values]
) -> Float[np.ndarray, "servos motions"]:
    """Return `mean_errors` of several servos: up to four take no longer than one."""
    runs = roller.run(motions, tables_of(stacked(servos)))
    means = []
    for run, m in zip(runs, motions, strict=True):
        used = m.mask[:, 0]
        e = np.abs(run[:, used, 0] - m.q[used, 0])
        means.append(e.mean(axis=1) if used.any() else np.full(len(servos), np.nan))
    return np.array(means).reshape(-1, len(servos)).T


def doubt(saved: Float[np.ndarray, " windows"]) -> float:
    """Return the standard error of the mean of what windows save."""
    saved = saved[np.isfinite(saved)]
    return float(np.std(saved, ddof=1) / np.sqrt(len(saved))) if len(saved) > 1 else 0.0


def standing(saved: Float[np.ndarray, " windows"]) -> float:
    """Return the mean of what windows save, in its standard errors."""
    return float(np.nanmean(saved)) / max(doubt(saved), 1e-12)
