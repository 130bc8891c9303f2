"""Mismatch: what the residual still follows, and what that does to the intervals.

A jackknife knows of noise and its correlation, not of a model that is wrong: what every
stretch of a log shows alike is in no scatter. So the residual is asked what it follows:
each joint's load, speed, direction, position, acceleration, delay and time enter the
regression as further columns, one beside another, while a score test over the stretches
calls for more. How far those that are found move the parameters is known (H⁻¹ Aᵀ z γ),
and widens their intervals; friction that one joint shows is expected of the others.
Torque gains are unknowns with a deviation that is assumed, or the larger one that the
joints show among themselves; so is a delay that could not be fitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.errors import EstimateWarning
from armwise.identification.estimate import Estimate
from armwise.identification.sampled_rows import (
    FEWEST,
    WhitenedRows,
)
from armwise.identification.validation import TorqueLag
from armwise.regression import STRETCHES, friction_direction, torque_rate

if TYPE_CHECKING:
    from jaxtyping import Float

# Student's t of 39 degrees of freedom: 3 in 10,000 for one column, and for all 130 of
# seven joints a false alarm in 25 logs.
_SURE = 4.0
"""Standard errors from zero at which the residual surely follows a column."""

# Judgement: 2 % of a column's power after the others.
_OWN_PART = 0.02
"""Fraction of a column that others must leave over for its coefficient to be known."""

_MOST = 20
"""Columns beyond which no more are added: the model is plainly another."""

_ROWS = 1000
"""Samples from which on every other is left out."""

# Judgement: an interval is 2 standard deviations wide; half of that is seen.
_MATTERS = 1.0
"""Standard deviations that a mismatch moves a parameter by from which on it counts."""

# Judgement: rounding, interpolation and filters leave this much in simulated logs.
_LEAST_TORQUE = 1e-3
"""Fraction of a joint's torque below which what is found is not worth a word."""

_LONGEST_LAG = 0.1
"""Delay in [s] beyond which what a joint's slope explains is no delay."""

_GAIN_FACTORS = np.array([1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32])
"""Multiples of the assumed gain deviation that are compared."""

# A likelihood ratio of e² is χ² = 4 of one degree of freedom: 1 in 20 by chance.
_GAIN_EVIDENCE = 2.0
"""Gain in log-likelihood from which on a larger deviation of gains is believed."""


@dataclass(frozen=True)
class _Kind:
    """Something that a residual may follow.

    Attributes:
        code: Of the warning.
        follows: What, in words.
        cause: What that is mostly, and what to do.
        is_friction: Whether other joints have it as well if one has.
    """

    code: str
    follows: str
    cause: str
    is_friction: bool = False


_KINDS = {
    "load": _Kind(
        "residual-follows-load",
        "load",
        "friction that depends on load",
        is_friction=True,
    ),
    "speed": _Kind(
        "residual-follows-speed",
        "speed",
        "friction that is neither viscous nor Coulomb's, or a joint that sticks",
        is_friction=True,
    ),
    "direction": _Kind(
        "residual-follows-direction",
        "direction of motion",
        "friction that differs between the two ways",
        is_friction=True,
    ),
    "place": _Kind(
        "residual-follows-position",
        "position and direction",
        "friction that depends on position",
        is_friction=True,
    ),
    "warming": _Kind(
        "residual-follows-time",
        "friction over time",
        "friction that changes as gears warm up",
        is_friction=True,
    ),
    "position": _Kind(
        "residual-follows-position",
        "position",
        "a cable, a spring, cogging, or geometry that is off",
    ),
    "phase": _Kind(
        "residual-follows-acceleration",
        "changes of acceleration and load",
        "an elastic joint, or torque and position that were filtered differently",
    ),
    "delay": _Kind(
        "residual-follows-delay", "torque's slope", "a delay that other joints have not"
    ),
    "time": _Kind("residual-follows-time", "time", "an offset that drifts"),
}

MISMATCH = frozenset(
    {kind.code for kind in _KINDS.values()} | {"torque-gains-differ", "model-mismatch"}
)
"""Codes of warnings about a model that is not quite the arm's."""

# Judgement: with a tenth of all intervals moved by as much as their own deviation,
# others that no test sees may be wrong as well.
_MUCH = 0.2
"""Fraction of the combinations that a mismatch moves from which on it is large."""


@dataclass(frozen=True, eq=False)
class Mismatch:
    """What a model leaves over, as it counts in an estimate.

    Attributes:
        covariance: What is added to the covariance of the base parameters.
        lag_variance: What is added to the variance of the torque's delay in [s²].
        doubt: What is left of the doubt about a delay that was not fitted in [s]: None
            if it was, or was given.
        joint_lags: Joints whose torque is later than others', as in `TorqueLag`.
        gain_std: Standard deviation of each joint's torque gain that is part of it.
        warnings: What was found, in words.
    """

    covariance: Float[np.ndarray, "base base"]
    lag_variance: float
    doubt: float | None
    joint_lags: tuple[tuple[str, float, float], ...]
    gain_std: Float[np.ndarray, " dof"]
    warnings: tuple[EstimateWarning, ...]

    @property
    def is_large(self) -> bool:
        """Whether a good part of all parameters is moved by it."""
        return any(warning.code == "model-mismatch" for warning in self.warnings)

    def counted_in(self, estimate: Estimate) -> Estimate:
        """The estimate with intervals that know of it."""
        lag = estimate.torque_lag
        if lag is not None:
            std = float(np.sqrt(lag.std**2 + self.lag_variance))
            lag = TorqueLag(lag.seconds, std, self.joint_lags)
        elif self.doubt is not None:
            # Of several runs the mean of what was taken.
            taken = np.mean([run.preparation.lag for run in estimate.samples])
            lag = TorqueLag(float(taken), self.doubt, self.joint_lags)
        return replace(
            estimate,
            base_covariance=estimate.base_covariance + self.covariance,
            torque_lag=lag,
            gain_std=self.gain_std,
        )


def find_mismatch(
    rows: WhitenedRows, gain_std: Float[np.ndarray, " dof"], is_tested: bool = True
) -> Mismatch:
    """Ask what the residual of an estimate follows.

    Args:
        rows: Some rows of its data.
        gain_std: Standard deviation assumed of each joint's torque gain.
        is_tested: Whether all parameters are free: what fixed ones would explain looks
            like a mismatch else. Gains are part of the intervals in any case.
    """
    count = sum(len(run) for run in rows.problem.data)
    sums = _sums(rows, is_tested and count >= FEWEST)
    gains = _gains(sums, gain_std)
    findings = _search(sums.without_gains(gains)) if sums.labels else _NOTHING
    effects = sums.effects[:, findings.columns] * findings.sizes
    doubt = _lag_doubt(rows, sums)
    every = np.vstack([effects.T, gains.effects.T])
    if doubt is not None and np.isfinite(doubt):
        every = np.vstack([every, doubt * sums.effects[:, len(sums.labels)]])
    every[:, ~np.append(np.isfinite(rows.estimate.base_std), True)] = 0.0
    total = every.T @ every
    names = rows.problem.columns.arm.coordinate_names
    sure = zip(findings.columns, findings.sizes, findings.std, strict=False)
    return Mismatch(
        total[:-1, :-1],
        float(total[-1, -1]),
        doubt,
        tuple(
            (names[sums.labels[k].joint], float(size), float(std))
            for k, size, std in sure
            if sums.labels[k].kind == "delay" and abs(size) < _LONGEST_LAG
        ),
        gains.std,
        _warnings(rows, sums, findings, effects, gains),
    )


def _lag_doubt(rows: WhitenedRows, sums: _Sums) -> float | None:
    """What a delay that was not fitted may be off by, after a look at the residual."""
    before = max(run.preparation.lag_doubt or 0.0 for run in rows.problem.data)
    if not before or rows.problem.columns.has_lags:
        return None
    # All of the log and the friction that was chosen may say more than a part and plain
    # friction did. Its mean is not taken, so that it is part of the doubt.
    k = len(sums.labels)
    value, std, is_known = (x[k] for x in _coefficients(sums.products, k + 1))
    if not (is_known and std > 0.0 and sums.labels):
        return before
    variance = 1.0 / (1.0 / std**2 + 1.0 / before**2)
    return float(np.hypot(np.sqrt(variance), variance / std**2 * value))


# Columns that may be missing, at some rows.


class _Label(NamedTuple):
    """What a column is: its kind, its joint, and which function of the motion."""

    kind: str
    joint: int
    form: int


def _columns(rows: WhitenedRows) -> Iterator[tuple[_Label, np.ndarray]]:
    """Everything that is tried, and its whitened torque (dof, samples)."""
    motion, arm = rows.motion, rows.problem.columns.arm
    load, slope, bend = rows.link_torque
    if rows.problem.columns.has_lags:
        # As the fit's own column of the lag, which these add up to.
        slope = np.vstack([torque_rate(run)[index] for run, index in rows.samples])
    direction = np.vstack([friction_direction(x)[index] for x, index in rows.samples])
    top = np.maximum(np.percentile(np.abs(motion.qd), 99.5, axis=0), 1e-9)
    time = 2.0 * rows.stretch / (STRETCHES - 1) - 1.0
    weight = (rows.trust / rows.std).T
    slopes = rows.slopes.reshape(arm.dof, -1, arm.dof)
    for j, index in enumerate(arm.coordinates):
        q, v, d = motion.q[:, j], motion.qd[:, j] / top[j], direction[:, j]
        if not arm.joints[index].is_revolute:
            # A sliding joint's range counts as half a turn.
            q = np.pi * (q - q.mean()) / max(float(np.ptp(q)), 1e-9)
        # In units of its usual size, so that columns are of one order.
        heavy = load[:, j] / max(float(np.sqrt(np.mean(load[:, j] ** 2))), 1e-12)
        own = [
            ("load", np.abs(heavy) * d),
            ("place", np.sin(q) * d),
            ("place", np.cos(q) * d),
            ("position", np.sin(q)),
            ("position", np.cos(q)),
            ("position", np.sin(2.0 * q)),
            ("position", np.cos(2.0 * q)),
            ("speed", v * np.abs(v)),
            # Friction's fall at low speed: a tenth of the top one, and below.
            ("speed", np.exp(-((v / 0.1) ** 2)) * d),
            # Coulomb friction that differs between the two ways is an offset.
            ("direction", np.abs(v)),
            ("phase", bend[:, j]),
            ("delay", -slope[:, j]),
            ("time", time),
            ("warming", time * d),
        ]
        for form, (kind, column) in enumerate(own):
            torque = np.zeros(weight.shape)
            torque[j] = column * weight[j]
            yield _Label(kind, j, form), torque
        # An elastic joint: its link lies behind its encoder, in proportion to the load.
        yield _Label("phase", j, len(own)), slopes[:, :, j] * load[:, j]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Inner products, stretch by stretch, of columns that the fit leaves over.

    Attributes:
        labels: What each column that is tried is; −dτ/dt of all joints, for a delay
            that was not fitted, and the gains follow them.
        products: Per stretch [z, −dτ/dt, gains, e]ᵀ times the same, the fit projected
            out.
        power: Squared size of the columns before that, all but e.
        effects: What a unit of each column moves the parameters by, the lag last.
    """

    labels: tuple[_Label, ...]
    products: Float[np.ndarray, "stretches columns columns"]
    power: Float[np.ndarray, " columns"]
    effects: Float[np.ndarray, "base+1 columns"]

    @property
    def gains(self) -> slice:
        """Which columns are the torque gains."""
        return slice(len(self.labels) + 1, self.products.shape[1] - 1)

    def without_gains(self, gains: _Gains) -> _Sums:
        """The same with the gains fitted as well, if they differ more than assumed."""
        if not gains.is_seen:
            return self
        products = self.products
        for k in range(self.gains.start, self.gains.stop):
            if products[:, k, k].sum() > _OWN_PART * self.power[k]:
                products = _deflated(products, k)
        return replace(self, products=products)


def _sums(rows: WhitenedRows, is_tested: bool) -> _Sums:
    dof = rows.torque.shape[0]
    step = max(1, rows.log.size // _ROWS)
    columns = list(_columns(rows)) if is_tested else []
    torque = [column[:, ::step] for _, column in columns]
    torque.append(_late(rows)[:, ::step])
    explained = (rows.torque.reshape(-1) - rows.residual).reshape(dof, -1)[:, ::step]
    # A gain multiplies what one joint's torque should be.
    torque += [
        np.where(np.arange(dof)[:, None] == j, explained, 0.0) for j in range(dof)
    ]
    every = np.stack(torque, axis=2)
    fitted = rows.regressor[:, ::step]
    if rows.problem.columns.has_lags:
        fitted = np.concatenate([fitted, torque[-dof - 1][..., None]], axis=2)
    else:
        fitted = np.concatenate([fitted, np.zeros((*fitted.shape[:2], 1))], axis=2)
    flat = fitted.reshape(-1, fitted.shape[2])
    size = np.linalg.norm(flat, axis=0)
    scale = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh((flat / scale).T @ (flat / scale))
    # Half the digits are lost in the products: below that a direction is rounding.
    is_there = values > 1e-10 * max(values[-1], 1e-300)
    root = vectors[:, is_there] / np.sqrt(values[is_there]) / scale[:, None]
    basis = flat @ root
    both = np.concatenate([every, rows.torque[:, ::step, None]], axis=2)
    both = both.reshape(-1, both.shape[2])
    projected = basis.T @ both
    power = np.einsum("rk,rk->k", both, both)[:-1]
    unexplained = (both - basis @ projected).reshape(*every.shape[:2], -1)
    edges = np.searchsorted(rows.stretch[::step], np.arange(STRETCHES + 1))
    parts = [
        unexplained[:, a:b].reshape(-1, unexplained.shape[2])
        for a, b in pairwise(edges.tolist())
    ]
    return _Sums(
        tuple(label for label, _ in columns),
        np.stack([part.T @ part for part in parts]),
        power,
        root @ projected[:, :-1],
    )


def _late(rows: WhitenedRows) -> Float[np.ndarray, "dof samples"]:
    """What torques change by if they are read a second earlier, whitened."""
    # Of the links' torque where the delay was not fitted: the measured one's slope may
    # be noise, which would show a delay of nothing.
    rate = rows.link_torque[1]
    if rows.problem.columns.has_lags:
        rate = np.vstack([torque_rate(run)[index] for run, index in rows.samples])
    return np.asarray((-rate * rows.trust / rows.std).T)


def _deflated(products: np.ndarray, k: int) -> np.ndarray:
    """Inner products of what a column leaves of all columns."""
    total = products.sum(axis=0)
    fraction = total[k] / total[k, k]
    row = products[:, k, :]
    cross = fraction[:, None] * row[:, None, :]
    own = np.outer(fraction, fraction) * row[:, k, None, None]
    return np.asarray(products - cross - cross.transpose(0, 2, 1) + own)


# Torque gains: unknowns that are known beforehand.


@dataclass(frozen=True, eq=False)
class _Gains:
    """Torque gains as the joints show them.

    Attributes:
        std: Standard deviation that is counted with, per joint.
        is_seen: Whether the joints differ by more than was assumed.
        effects: Columns whose outer products add up to the parameters' covariance due
            to gains, the lag last.
    """

    std: Float[np.ndarray, " dof"]
    is_seen: bool
    effects: Float[np.ndarray, "base+1 dof"]


def _gains(sums: _Sums, assumed: Float[np.ndarray, " dof"]) -> _Gains:
    """Gains after a look at how far the joints' torques agree.

    A link moves several joints, so that gains can be compared; what all gains have in
    common no torque shows. Scores u = Gᵀ e have the covariance B + K S K with S that of
    the gains, K = Gᵀ G and B the scatter over stretches: their likelihood says whether
    S is as assumed; mean and covariance of the gains given u then follow.
    """
    own = sums.effects[:, sums.gains]
    if not assumed.any():
        return _Gains(assumed, False, np.zeros(own.shape))
    products = sums.products[:, sums.gains, sums.gains]
    scores = sums.products[:, sums.gains, -1]
    information, score = products.sum(axis=0), scores.sum(axis=0)
    fit = np.linalg.pinv(information, rcond=1e-6, hermitian=True) @ score
    scatter = scores - products @ fit
    noise = scatter.T @ scatter * STRETCHES / (STRETCHES - 1)
    # A millionth of its mean keeps what gains have in common, where both are zero,
    # from being divided by.
    floor = 1e-6 * max(float(np.trace(noise)), 1e-300) / len(fit)
    noise += floor * np.eye(len(fit))
    likelihood = []
    for factor in _GAIN_FACTORS:
        spread = information * (factor * assumed) ** 2 @ information + noise
        size = np.linalg.slogdet(spread)[1]
        likelihood.append(-0.5 * (size + score @ np.linalg.solve(spread, score)))
    best = int(np.argmax(likelihood))
    # With few samples scatter says nothing.
    is_known = len(np.flatnonzero(np.abs(scores).sum(axis=1))) > 2 * len(fit)
    is_seen = is_known and likelihood[best] > likelihood[0] + _GAIN_EVIDENCE
    std = assumed * (_GAIN_FACTORS[best] if is_seen else 1.0)
    second = np.diag(std**2)
    if is_known:
        # (S⁻¹ + K B⁻¹ K)⁻¹ without S⁻¹, which a gain that is exact has not.
        expected = information @ np.linalg.solve(noise, information)
        after = np.linalg.solve(np.eye(len(fit)) + second @ expected, second)
        mean = after @ (information @ np.linalg.solve(noise, score))
        second = after + np.outer(mean, mean)
    values, vectors = np.linalg.eigh(0.5 * (second + second.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return _Gains(std, bool(is_seen), own @ root)


# The search.


@dataclass(frozen=True, eq=False)
class _Findings:
    """Columns that count, and by how much.

    Attributes:
        columns: Which of those that were tried, the sure ones first.
        sure: How many of them are surely there; the others are expected, as another
            joint has them.
        sizes: Their coefficients; of those expected, the size they may well have.
        std: Standard errors of the sure ones when they were findings.
    """

    columns: list[int]
    sure: int
    sizes: np.ndarray
    std: np.ndarray


_NOTHING = _Findings([], 0, np.zeros(0), np.zeros(0))


def _search(sums: _Sums) -> _Findings:
    """Add the column that the residual follows most surely, until none is sure."""
    count = len(sums.labels)
    products = sums.products
    first = np.diagonal(products.sum(axis=0))[:count].copy()
    selection: list[int] = []
    errors: list[float] = []
    while True:
        value, std, is_known = _coefficients(products, count)
        # What the fit itself explains, and what the others do, is not tried.
        is_known &= first > 1e-6 * sums.power[:count]
        is_known &= np.diagonal(products.sum(axis=0))[:count] > _OWN_PART * first
        sureness = np.where(is_known & (std > 0.0), np.abs(value), 0.0)
        sureness /= np.where(std > 0.0, std, 1.0)
        sureness[selection] = 0.0
        best = int(np.argmax(sureness))
        if sureness[best] < _SURE or len(selection) >= _MOST:
            break
        selection.append(best)
        errors.append(float(std[best]))
        products = _deflated(products, best)
    if not selection:
        return _NOTHING
    total = sums.products.sum(axis=0)
    sizes = np.linalg.lstsq(
        total[np.ix_(selection, selection)], total[selection, -1], rcond=1e-9
    )[0]
    forms = {sums.labels[k].form for k in selection}
    others = [
        k
        for k, label in enumerate(sums.labels)
        if label.form in forms
        and _KINDS[label.kind].is_friction
        and is_known[k]
        and k not in selection
    ]
    # The second moment of what it may be: its estimate, and how uncertain that is.
    expected = np.sqrt(value[others] ** 2 + std[others] ** 2)
    return _Findings(
        [*selection, *others],
        len(selection),
        np.concatenate([sizes, expected]),
        np.array(errors),
    )


def _coefficients(
    products: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each column's own coefficient, its jackknife, and whether it is one at all."""
    squares = np.diagonal(products, axis1=1, axis2=2)[:, :count]
    scores = products[:, :count, -1]
    total = squares.sum(axis=0)
    is_known = total > 0.0
    power = np.where(is_known, total, 1.0)
    value = np.where(is_known, scores.sum(axis=0) / power, 0.0)
    # As in `jackknife_covariance`, of one unknown; 0.95 there and here.
    moves = (scores - squares * value) / (power - 0.95 * squares)
    std = np.sqrt(np.sum(moves**2, axis=0) * (STRETCHES - 1) / STRETCHES)
    return value, std, is_known


# What to say.


def _warnings(
    rows: WhitenedRows,
    sums: _Sums,
    findings: _Findings,
    effects: Float[np.ndarray, "base+1 columns"],
    gains: _Gains,
) -> tuple[EstimateWarning, ...]:
    """Name what matters: moves a parameter, and is more than rounding."""
    names = rows.problem.columns.arm.coordinate_names
    std = rows.estimate.base_std
    is_finite = np.isfinite(std) & (std > 0.0)
    moves = np.abs(effects[:-1][is_finite]) / std[is_finite, None]
    torque = np.sqrt(np.mean(rows.torque**2, axis=1)) * np.sqrt(rows.log.size)
    named = []
    for k, column in enumerate(findings.columns[: findings.sure]):
        kind, joint, _ = sums.labels[column]
        size = abs(findings.sizes[k]) * np.sqrt(sums.power[column])
        is_large = size > _LEAST_TORQUE * torque[joint]
        if is_large and moves[:, k].max(initial=0.0) > _MATTERS:
            named.append((kind, joint, k))
    warnings = []
    for kind, group in groupby(sorted(named), key=lambda one: one[0]):
        items = list(group)
        joints = sorted({joint for _, joint, _ in items})
        whose = ", ".join(names[j] for j in joints)
        text = f"The residual of {whose} follows its {_KINDS[kind].follows}: "
        text += f"{_KINDS[kind].cause}"
        if kind == "delay":
            each = [
                f"{1e3 * findings.sizes[k]:+.2f} ± {1e3 * findings.std[k]:.2f} ms"
                for _, _, k in items
            ]
            text += f" ({', '.join(each)})"
        text += ". Intervals are wider for it."
        warnings.append(EstimateWarning(_KINDS[kind].code, text))
    if gains.is_seen:
        percent = 100.0 * float(gains.std.max())
        warnings.append(
            EstimateWarning(
                "torque-gains-differ",
                f"The joints' torques disagree as if their gains were off by "
                f"{percent:.1f} % each, more than was assumed. Intervals are wider "
                "for it. Calibrate them (armwise calibrate-torques).",
            )
        )
    total = np.sqrt(np.sum(moves**2, axis=1))
    fraction = float(np.mean(total > _MATTERS)) if total.size else 0.0
    if warnings and fraction > _MUCH:
        warnings.append(
            EstimateWarning(
                "model-mismatch",
                f"What the model does not describe moves {100 * fraction:.0f} % of the "
                "combinations by more than their standard deviation. Intervals are "
                "wider for it, but values are not to be trusted to a digit more.",
            )
        )
    return tuple(warnings)
