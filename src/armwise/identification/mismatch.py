"""Model mismatch: columns the residual still follows, and their effect on intervals.

A jackknife knows of noise and its correlation, not of a model that is wrong: what every
stretch of a log shows alike is in no scatter. So the residual is asked what it follows:
each joint's load, speed, direction, position, acceleration, delay and time enter the
regression as further columns, one beside another, while a score test over the stretches
calls for more (forward selection). How far those that are found move the parameters is
known (H⁻¹ Aᵀ z γ), and widens their intervals; friction that one joint shows is
expected of the others. Torque gains are unknowns with a standard deviation that is
assumed, or the larger one that the joints show among themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.errors import EstimateWarning
from armwise.identification.remainder import (
    GAIN_EVIDENCE,
    ROWS_TRIED,
    GainsShown,
    Remainder,
    gains_shown,
    joint_coefficients,
    lag_doubt,
    orthonormal_fit,
    own_coefficients,
    reached_by_chance,
    second_moment,
)
from armwise.identification.sampled_rows import (
    FEWEST,
    WhitenedRows,
)
from armwise.identification.validation import TorqueLag
from armwise.regression import (
    STRETCHES,
    friction_direction,
    heat_coefficients,
    torque_rate,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.estimate import Estimate

# Student's t of 39 degrees of freedom: 3 in 10,000 for one column. Wider intervals that
# chance asks for do little harm; words are said beyond `reached_by_chance` only.
_SURE = 4.0
"""Standard errors from zero at which a column widens the intervals."""

# Judgement: 2 % of a column's power after the others.
_OWN_PART = 0.02
"""Fraction of a column that others must leave over for its coefficient to be known."""

# Between a tenth of the top speed and all of it, a straight line leaves 0.2 % of √q̇.
_BENT_PART = 1e-4
"""Likewise, of friction that is expected to bend with speed as other joints' does: the
line that explains nearly all of it is Coulomb and viscous friction."""

_MOST = 20
"""Columns beyond which no more are added: the model is plainly another."""

_FEWEST = 3.0
"""Stretches that a column must live in, as many alike as would have its scatter."""

# Judgement: an interval is 2 standard deviations wide; half of that is seen.
_MATTERS = 1.0
"""Standard deviations that a mismatch moves a parameter by from which on it counts."""

# Judgement: rounding, interpolation and filters leave this much in simulated logs.
_LEAST_TORQUE = 1e-3
"""Fraction of a joint's torque below which what is found is not worth a word."""

# In sound simulated logs with friction, ur5's and ur10's, up to 2.1e-3 of a joint's
# torque goes as its own slope or second derivative, and 3e-4 as anything else.
# Torques that elastic joints, friction of the load and Stribeck's leave are 3.2e-3 and
# more by the former, 9e-4 and more by the latter (an elastic joint's own column among
# them).
_LEAST_BENT, _LEAST_SEEN = 2.5e-3, 5e-4
"""Fraction of a joint's torque below which what the parameters leave of a column is
not worth a word: of its slope and second derivative, and of others."""

_LONGEST_LAG = 0.1
"""Delay in [s] beyond which what a joint's slope explains is no delay."""

# Judgement: in simulated logs with Stribeck friction one of the two reached 5.7, beside
# mostly 0.6 or less of the other; of gains 3 % off both mostly showed 1.2 and more.
_GAIN_HINT = 1.0
"""Gain in log-likelihood below which gains do not show at all."""

# Judgement: torque constants are known to about this; a sign that is wrong, or columns
# that were exchanged, look like gains that differ by more.
_FAR_GAIN = 0.1
"""Standard deviation of gains from which on columns may not be what they are called."""


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
    # Where a joint sticks softly its friction bends alike: not found by itself, but
    # expected where friction follows the speed in another way.
    "thinning": _Kind(
        "residual-follows-speed",
        "speed",
        "viscous friction that thins",
        is_friction=True,
    ),
    # Links load a gear, and its rotor does not: torques that do not tell the two apart
    # leave friction of the load in doubt. Not found by itself, and not said.
    "rotor": _Kind(
        "residual-follows-load", "load", "a rotor of another inertia than estimated"
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

_OF_FRICTION = frozenset(k.code for k in _KINDS.values() if k.is_friction) - {
    k.code for k in _KINDS.values() if not k.is_friction
}
"""Codes of warnings about friction alone."""

_KIND_OF = {
    **dict.fromkeys(("load", "load_driving", "load_back_driven"), "load"),
    **dict.fromkeys(("stribeck", "root", "quadratic"), "speed"),
    "asymmetric": "direction",
}
"""What a residual would follow without a friction term, by its form."""

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
        same_effects: What of the covariance a torque by the same drives and sensors
            does not feel, as in `Estimate`.
        warnings: What was found, in words.
    """

    covariance: Float[np.ndarray, "base base"]
    lag_variance: float
    doubt: float | None
    joint_lags: tuple[tuple[str, float, float], ...]
    gain_std: Float[np.ndarray, " dof"]
    same_effects: Float[np.ndarray, "base effects"]
    warnings: tuple[EstimateWarning, ...]

    @property
    def is_large(self) -> bool:
        """Whether it moves a good part of all parameters, or gains are far off.

        Friction alone, whatever it moves, is no sign of data that were read wrongly.
        """
        codes = {warning.code for warning in self.warnings}
        are_far = "torque-gains-differ" in codes and self.gain_std.max() > _FAR_GAIN
        others = codes - _OF_FRICTION - {"model-mismatch"}
        return are_far or ("model-mismatch" in codes and bool(others))

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
        before = estimate.same_effects
        effects = [self.same_effects] if before is None else [before, self.same_effects]
        return replace(
            estimate,
            base_covariance=estimate.base_covariance + self.covariance,
            torque_lag=lag,
            gain_std=self.gain_std,
            same_effects=np.hstack(effects),
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
    trials = _trials(rows, is_tested and count >= FEWEST)
    findings, gains = _search_beside_gains(rows, trials, gain_std)
    effects = trials.effects[:, findings.columns] @ findings.root
    doubt, late = lag_doubt(rows, bool(trials.labels))
    every = np.vstack([effects.T, gains.effects.T, late])
    is_known = np.isfinite(rows.estimate.base_std)
    every[:, ~np.append(is_known, True)] = 0.0
    total = every.T @ every
    names = rows.problem.columns.arm.coordinate_names
    sure = zip(findings.columns, findings.sizes, findings.std, strict=False)
    return Mismatch(
        total[:-1, :-1],
        float(total[-1, -1]),
        doubt,
        tuple(
            (names[trials.labels[k].joint], float(size), float(std))
            for k, size, std in sure
            if trials.labels[k].kind == "delay" and abs(size) < _LONGEST_LAG
        ),
        gains.std,
        np.hstack([gains.effects, effects])[:-1] * is_known[:, None],
        _warnings(rows, trials, findings, gains),
    )


# Columns that may be missing, at some rows.


_COMPLIANCE = -1
"""Form of an elastic joint's column, which all joints' torques are part of."""


class _Label(NamedTuple):
    """What a column is: its kind, its joint, and which function of the motion."""

    kind: str
    joint: int
    form: int


def _own_columns(
    rows: WhitenedRows, step: int
) -> tuple[list[str], Float[np.ndarray, "dof forms samples"]]:
    """Torques of one joint that may be missing: their kinds, and their values.

    Args:
        rows: Rows of the data.
        step: One in so many is wanted.
    """
    motion, arm = rows.motion, rows.problem.columns.arm
    load, slope, bend = rows.link_torque
    static = rows.static_torque
    if rows.problem.columns.has_lags:
        # As the fit's own column of the lag, which these add up to.
        slope = np.vstack([torque_rate(run)[index] for run, index in rows.samples])
    direction = np.vstack([friction_direction(x)[index] for x, index in rows.samples])
    top = np.maximum(np.percentile(np.abs(motion.qd), 99.5, axis=0), 1e-9)
    time = (2.0 * rows.stretch / (STRETCHES - 1) - 1.0)[::step]
    weight = (rows.trust / rows.std)[::step].T
    loaded = _load_friction(rows)
    kinds: list[str] = []
    columns = []
    for j, index in enumerate(arm.coordinates):
        q, d = motion.q[::step, j], direction[::step, j]
        v = motion.qd[::step, j] / top[j]
        if not arm.joints[index].is_revolute:
            # A sliding joint's range counts as half a turn.
            q = np.pi * (q - q.mean()) / max(float(np.ptp(q)), 1e-9)
        own = [
            ("load", np.abs(load[::step, j]) * d),
            # Of what the links take while they are not accelerated: fast changes of a
            # load need not show in friction.
            ("load", np.abs(static[::step, j]) * d),
            # What a rotor that is heavier takes off the load that friction follows.
            (
                "rotor",
                -loaded[j] * np.sign(load[::step, j]) * motion.qdd[::step, j] * d,
            ),
            ("place", np.sin(q) * d),
            ("place", np.cos(q) * d),
            ("position", np.sin(q)),
            ("position", np.cos(q)),
            ("position", np.sin(2.0 * q)),
            ("position", np.cos(2.0 * q)),
            ("speed", v * np.abs(v)),
            # Viscous friction that thins: steepest at low speed.
            ("thinning", np.sqrt(np.abs(v)) * d),
            # Friction's fall at low speed: a tenth of the top one, and below.
            ("speed", np.exp(-((v / 0.1) ** 2)) * d),
            ("speed", np.exp(-((v / 0.03) ** 2)) * d),
            # Coulomb friction that differs between the two ways is an offset.
            ("direction", np.abs(v)),
            ("phase", bend[::step, j]),
            ("delay", -slope[::step, j]),
            ("time", time),
            ("warming", time * d),
        ]
        kinds = [kind for kind, _ in own]
        columns.append(np.stack([column for _, column in own]) * weight[j])
    return kinds, np.stack(columns)


def _load_friction(rows: WhitenedRows) -> Float[np.ndarray, " dof"]:
    """Friction of each joint per load, by the estimate's terms; 0: none."""
    arm = rows.problem.columns.arm
    friction = np.zeros(arm.dof)
    for term, size in rows.estimate.friction:
        if _KIND_OF.get(term.form) == "load" and term.joint in arm.coordinates:
            friction[arm.coordinates.index(term.joint)] += size
    return friction


@dataclass(frozen=True, eq=False)
class _Trials:
    """Columns that may be missing, and what the fit leaves over of each.

    Attributes:
        labels: What each column that is tried is; the gains follow them.
        remainder: What is left of those, of the gains and of the torque.
        power: Squared size of the columns before that, gains' included.
        effects: What a unit of each column moves the parameters by, the lag last.
    """

    labels: tuple[_Label, ...]
    remainder: Remainder
    power: Float[np.ndarray, " columns"]
    effects: Float[np.ndarray, "base+1 columns"]

    @property
    def gains(self) -> slice:
        """Which columns are the torque gains."""
        return slice(len(self.labels), self.power.size)

    def without_gains(self) -> Remainder:
        """What the gains leave as well."""
        remainder = self.remainder
        for k in range(self.gains.start, self.gains.stop):
            if remainder.squares[:, k].sum() > _OWN_PART * self.power[k]:
                remainder = remainder.without(k)
        return remainder


def _trials(rows: WhitenedRows, is_tested: bool) -> _Trials:
    """Evaluate what is tried at some rows, and take out of it what the fit explains."""
    dof = rows.torque.shape[0]
    step = max(1, rows.log.size // ROWS_TRIED)
    # Samples first, so that a stretch is in one piece.
    torque = rows.torque[:, ::step].T
    explained = (rows.torque.reshape(-1) - rows.residual).reshape(dof, -1)[:, ::step]
    labels: list[_Label] = []
    # A gain multiplies what one joint's torque should be.
    own = explained[:, None]
    bent = np.zeros((0, *torque.shape))
    if is_tested:
        kinds, columns = _own_columns(rows, step)
        labels += [
            _Label(kind, j, form) for j in range(dof) for form, kind in enumerate(kinds)
        ]
        labels += [_Label("phase", j, _COMPLIANCE) for j in range(dof)]
        bent = rows.compliances[:, ::step]
        own = np.concatenate([columns, own], axis=1)
    basis, root = orthonormal_fit(rows, step)
    forms, count = own.shape[1], dof * own.shape[1] + len(bent) + 1
    # Of the joints' own columns first; gains are moved behind the others at the end.
    projected = np.empty((root.shape[1], count))
    for j in range(dof):
        projected[:, j * forms : (j + 1) * forms] = basis[:, j].T @ own[j].T
    dense = np.concatenate([bent, torque[None]])
    flat = basis.reshape(-1, basis.shape[2])
    projected[:, dof * forms :] = flat.T @ dense.reshape(len(dense), -1).T
    values = ((-projected.T) @ flat.T).reshape(count, *torque.shape)
    for j in range(dof):
        values[j * forms : (j + 1) * forms, :, j] += own[j]
    values[dof * forms :] += dense
    squares = np.concatenate(
        [(own**2).sum(axis=2).reshape(-1), (dense**2).sum(axis=(1, 2))]
    )
    # A joint's gain is the last of its own columns.
    gains = np.arange(forms - 1, dof * forms, forms)
    order = np.concatenate([np.setdiff1d(np.arange(count - 1), gains), gains, [-1]])
    edges = dof * np.searchsorted(rows.stretch[::step], np.arange(STRETCHES + 1))
    return _Trials(
        tuple(labels),
        Remainder.of(values.reshape(count, -1)[order], edges),
        squares[order][:-1],
        root @ projected[:, order[:-1]],
    )


# The search.


@dataclass(frozen=True, eq=False)
class _Findings:
    """Columns that count, and by how much.

    Attributes:
        columns: Which of those that were tried, the sure ones first.
        sure: How many of them are surely there; the others are expected, as another
            joint has them.
        sizes: Coefficients of the sure ones, all of them in one regression.
        root: Of the second moment of all coefficients: what they are, and how uncertain
            that is.
        std: Standard errors of the sure ones when they were findings.
        beyond: Whether chance would hardly reach each of the sure ones.
    """

    columns: list[int]
    sure: int
    sizes: np.ndarray
    root: Float[np.ndarray, "columns effects"]
    std: np.ndarray
    beyond: tuple[bool, ...] = ()


_NOTHING = _Findings([], 0, np.zeros(0), np.zeros((0, 0)), np.zeros(0))


def _search_beside_gains(
    rows: WhitenedRows, trials: _Trials, gain_std: Float[np.ndarray, " dof"]
) -> tuple[_Findings, GainsShown]:
    """Look for columns, and for gains beside them.

    Friction of another shape looks like gains that differ, too, and so does what its
    columns leave of it: gains must show in both, with and without these columns, and
    surely in one. Columns are then looked for once more, in what the gains leave.
    """

    def shown(remainder: Remainder, least: float = GAIN_EVIDENCE) -> GainsShown:
        own = trials.effects[:, trials.gains]
        return gains_shown(remainder, trials.gains, own, gain_std, least)

    if not trials.labels:
        return _NOTHING, shown(trials.remainder)
    findings, beside = _search(rows, trials, trials.remainder)
    both = [shown(one, _GAIN_HINT) for one in (trials.remainder, beside)]
    gains = max(both, key=lambda one: one.evidence)
    if gains.evidence <= GAIN_EVIDENCE or not all(one.is_seen for one in both):
        return findings, shown(trials.remainder, np.inf)
    return _search(rows, trials, trials.without_gains())[0], gains


def _search(
    rows: WhitenedRows, trials: _Trials, start: Remainder
) -> tuple[_Findings, Remainder]:
    """Add the column that the residual follows most surely, until none is sure.

    Args:
        rows: Rows of the data.
        trials: Columns that may be missing.
        start: What is left of them.

    Returns:
        What was found, and what is left beside that.
    """
    count, remainder = len(trials.labels), start
    first = start.squares[:, :count].sum(axis=0)
    # Of a column that lives in a stretch or two no scatter is known.
    lives = first**2 > _FEWEST * np.sum(start.squares[:, :count] ** 2, axis=0)
    # What bends the other way is no joint; its own second derivative may have any sign.
    bends = np.array([label.form == _COMPLIANCE for label in trials.labels])
    is_silent = np.array(
        [label.kind in ("thinning", "rotor") for label in trials.labels]
    )
    selection: list[int] = []
    errors: list[float] = []
    beyond: list[bool] = []
    while True:
        squares, scores = remainder.squares[:, :count], remainder.scores[:, :count]
        value, std, is_known = own_coefficients(squares, scores)
        # What the fit itself explains, and what the others do, is not tried.
        is_known &= lives & (first > 1e-6 * trials.power[:count])
        is_known &= squares.sum(axis=0) > _OWN_PART * first
        sureness = np.where(is_known & (std > 0.0), np.abs(value), 0.0)
        sureness /= np.where(std > 0.0, std, 1.0)
        sureness[selection] = 0.0
        sureness[is_silent | (bends & (value < 0.0))] = 0.0
        best = int(np.argmax(sureness))
        if sureness[best] < _SURE or len(selection) >= _MOST:
            break
        selection.append(best)
        errors.append(float(std[best]))
        chance = reached_by_chance(squares[:, is_known], scores[:, is_known])
        beyond.append(bool(sureness[best] > chance[is_known[:best].sum()]))
        remainder = remainder.without(best)
    kinds = [label.kind for label in trials.labels]
    is_bent = np.isin(kinds, ["speed", "thinning"])
    part = np.where(is_bent, _BENT_PART, _OWN_PART)
    std = np.where(is_known & (first > part * trials.power[:count]), std, np.inf)
    sizes, scatter = joint_coefficients(start, selection)
    others, expected = _expected(rows, trials.labels, (selection, sizes), (value, std))
    rotors = _rotors_in_doubt(rows)
    for k, (kind, joint, _) in enumerate(trials.labels):
        if kind == "rotor" and rotors[joint]:
            others.append(k)
            expected.append(second_moment(value[k], std[k], rotors[joint]))
    # What the columns of one joint do together; joints' errors have nothing to do with
    # each other, so that it is no merit if they cancel.
    owners = np.array([trials.labels[k].joint for k in selection], dtype=int)
    together = sizes[:, None] * (owners[:, None] == np.unique(owners))
    sure = np.hstack([together, scatter])
    root = np.zeros((len(sure) + len(others), sure.shape[1] + len(others)))
    root[: len(sure), : sure.shape[1]] = sure
    root[len(sure) :, sure.shape[1] :] = np.diag(expected)
    columns = [*selection, *others]
    findings = _Findings(
        columns, len(selection), sizes, root, np.array(errors), tuple(beyond)
    )
    return findings, remainder


def _expected(
    rows: WhitenedRows,
    labels: Sequence[_Label],
    shown: tuple[Sequence[int], np.ndarray],
    own: tuple[np.ndarray, np.ndarray],
) -> tuple[list[int], list[float]]:
    """Friction that is expected of a joint because another shows it, and its size.

    Of each column its second moment: its coefficient, and how uncertain that is. A load
    that hardly changes looks like Coulomb friction, so that its own coefficient says
    nothing; but it is a number without a unit, which joints of an arm have alike.
    Shapes of one kind explain the same residual, and are averaged: one of them is
    there, not all, and where the residual says which, it is not expected but sure.

    Args:
        rows: Rows of the data.
        labels: What the columns are.
        shown: Columns that the residual follows, and their coefficients.
        own: Each column's coefficient beside those, and its standard error; infinite
            where others explain the column.
    """
    selection, sizes = shown
    arm, friction = rows.problem.columns.arm, _friction_torque(rows)
    forms = {labels[k].form for k in selection}
    # Friction brakes: what falls with the load is something else.
    loads = [
        size
        for k, size in zip(selection, sizes, strict=True)
        if labels[k].kind == "load" and size > 0.0
    ]
    kinds, has = set(), set()
    for term, size in rows.estimate.friction:
        kind = _KIND_OF.get(term.form, "")
        kinds.add(kind)
        loads += [size] if kind == "load" else []
        if term.joint in arm.coordinates:
            has.add((kind, arm.coordinates.index(term.joint)))
    if "speed" in kinds | {labels[k].kind for k in selection}:
        kinds.add("thinning")
    root_mean_square = float(np.sqrt(np.mean(np.square(loads)))) if loads else 0.0
    shapes: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for k, label in enumerate(labels):
        if k in selection or not (label.form in forms or label.kind in kinds):
            continue
        is_shown = bool(np.isfinite(own[1][k]))
        if label.kind == "load" and (is_shown or label[:2] not in has):
            # Zero, give or take what joints that show it have, before the data.
            size = second_moment(own[0][k], own[1][k], root_mean_square)
        elif is_shown and _KINDS[label.kind].is_friction:
            # However it bends, it is no more than all of a joint's friction.
            size = min(float(np.hypot(own[0][k], own[1][k])), friction[label.joint])
        else:
            continue
        # Sine and cosine of a place are no alternatives; thinning is one of speed.
        kind = {"place": f"place {k}", "thinning": "speed"}.get(label.kind, label.kind)
        shapes.setdefault((kind, label.joint), []).append((k, size))
    columns = [k for group in shapes.values() for k, _ in group]
    expected = [
        size / np.sqrt(len(group)) for group in shapes.values() for _, size in group
    ]
    late, spread = _delays_expected(labels, selection, own)
    return [*columns, *late], [*expected, *[spread] * len(late)]


def _rotors_in_doubt(rows: WhitenedRows) -> Float[np.ndarray, " dof"]:
    """What a rotor's inertia may be off by where friction follows the load, else 0.

    Its standard deviation; or where torques do not tell it from the links, what these
    have about its axis: bodies that can exist share that in some way.
    """
    arm, motion = rows.problem.columns.arm, rows.motion
    std = rows.estimate.std[arm.layout.drive("rotor_inertia")][list(arm.coordinates)]
    for j in np.flatnonzero(_load_friction(rows)):
        unit = np.zeros(motion.q.shape)
        unit[:, j] = 1.0
        links = rows.acceleration_torque(unit)[:, j]
        std[j] = min(std[j], float(np.mean(links)))
    return np.where(_load_friction(rows) != 0.0, std, 0.0)


def _friction_torque(rows: WhitenedRows) -> Float[np.ndarray, " dof"]:
    """Coulomb and viscous friction of each joint at its top speed in [N m]."""
    arm = rows.problem.columns.arm
    dry, viscous = heat_coefficients(arm, rows.estimate.all_parameters)
    own = list(arm.coordinates)
    top = np.percentile(np.abs(rows.motion.qd), 99.5, axis=0)
    return np.asarray(dry[own] + viscous[own] * top)


def _delays_expected(
    labels: Sequence[_Label],
    selection: Sequence[int],
    own: tuple[np.ndarray, np.ndarray],
) -> tuple[list[int], float]:
    """Delays of their own that no joint shows surely, but all together do.

    Their deviation is a random effect's (DerSimonian and Laird 1986).
    """
    late = [k for k, label in enumerate(labels) if label.kind == "delay"]
    late = [k for k in late if k not in selection and np.isfinite(own[1][k])]
    excess = np.sum((own[0][late] / own[1][late]) ** 2) - len(late)
    # χ² of n has the mean n and the variance 2 n; four of its deviations, as stretches
    # that differ make its tails longer.
    if excess <= 4.0 * np.sqrt(2.0 * len(late)):
        return [], 0.0
    return late, float(np.sqrt(excess / np.sum(own[1][late] ** -2.0)))


# What to say.


def _warnings(
    rows: WhitenedRows,
    trials: _Trials,
    findings: _Findings,
    gains: GainsShown,
) -> tuple[EstimateWarning, ...]:
    """Name what matters: moves a parameter, and is more than rounding."""
    names = rows.problem.columns.arm.coordinate_names
    std = rows.estimate.base_std
    is_finite = np.isfinite(std) & (std > 0.0)
    sure = findings.columns[: findings.sure]
    effects = trials.effects[:-1, sure] * findings.sizes
    effects = effects[is_finite] / std[is_finite, None]
    moves = np.abs(effects)
    torque = np.sqrt(np.mean(rows.torque**2, axis=1)) * np.sqrt(rows.log.size)
    named = []
    for k, column in enumerate(sure):
        kind, joint, form = trials.labels[column]
        size = abs(findings.sizes[k]) * np.sqrt(trials.power[column])
        is_large = findings.beyond[k] and size > _LEAST_TORQUE * torque[joint]
        power = trials.remainder.squares[:, column].sum()
        remainder_size = abs(findings.sizes[k]) * np.sqrt(power)
        is_bent = kind in ("phase", "delay") and form != _COMPLIANCE
        is_large &= (
            remainder_size > (_LEAST_BENT if is_bent else _LEAST_SEEN) * torque[joint]
        )
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
    if gains.is_sure:
        percent = 100.0 * float(gains.std.max())
        warnings.append(
            EstimateWarning(
                "torque-gains-differ",
                f"The joints' torques disagree as if their gains were off by "
                f"{percent:.1f} % each, more than was assumed. Intervals are wider "
                "for it. Calibrate them (armwise calibrate-torques).",
            )
        )
    # Of what was found: what is only expected widens intervals and accuses nobody.
    total = np.abs(effects.sum(axis=1))
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
