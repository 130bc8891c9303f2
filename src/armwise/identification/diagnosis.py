"""Warnings about the data: what residuals, uncertainty and description reveal.

Every warning has a code that does not change; programs go by that, people by the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import EstimateWarning
from armwise.identification.other_readings import (
    other_load,
    pushed_along,
    stride_over,
)
from armwise.identification.validation import (
    REVERSAL,
    Agreement,
    Validation,
    block_masks,
    compare_description,
    predicted_block,
)

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from armwise.arms import Arm
    from armwise.identification.estimate import Estimate
    from armwise.recordings import Samples

# A count of a 13-bit encoder is 0.8e-3 rad; of 17 bits, 5e-5 rad.
_LEAST_MOTION = 1e-3
"""Range in [rad] or [m] below which a joint stood still: a few counts of an encoder."""

# Schröer's rule of thumb is 100; the report's verdicts use the same two numbers.
_LARGEST_CONDITION = 300.0
"""Condition number from which on a direction is named as weak: textbooks ask for about
100 of an exciting motion; a factor of three is left to real ones."""

# One-sided z-test of each coefficient: 0.13 % if it truly is zero. Were all twelve of
# six joints zero, one log in some sixty would warn in vain.
_SURELY_NEGATIVE = 3.0
"""Standard deviations below zero at which friction is surely negative (one in a
thousand by chance)."""

# Judgement, in amplitude. Real arms with plain friction reach 0.2 on a light joint.
_POOR_FIT = 0.25
"""Relative error above which too much of a joint's torque is unexplained."""

_STANDS = 0.2
"""Fraction of a log in which a joint may stand still before it is said."""

_STILL = 0.005
"""Fraction of its top speed below which a joint stands still."""

_LEAST_TORQUE = 0.1
"""Joints with less than this fraction of the largest described torque are mostly
friction, which descriptions rarely hold: they are not compared."""

# Judgement, as are the two cosines below: angles of 143°, 26° and 60°.
_OPPOSITE = -0.8
"""Cosine between described and measured torque below which signs differ: friction and
wrong inertias turn a torque by far less than a right angle."""

_ALIKE = 0.9
"""Cosine above which two torques have the same course."""

_UNLIKE = 0.5
"""Cosine below which they have not."""

# Judgement: gear ratios and per cent usually lie far beyond; a factor such as 1.36 (lbf
# ft) cannot be distinguished from wrong inertias.
_UNIT_FACTORS = (0.2, 5.0)
"""Ratios of links found to those described that wrong inertias may explain; beyond them
it is a unit, a gear ratio or a torque constant."""

# Judgement: another motion at other speeds easily doubles the error.
_WORSE = 3.0
"""Validation over fit error from which on the fit saw too little motion."""

# Judgement: no motion is a hundred times as rich as another.
_UNRELATED = 100.0
"""Factor from which on fit and validation cannot be of the same arm."""

_SMALL_ERROR = 0.01
"""Fit errors below 1 % are as good as this: three times nothing is no warning."""


def diagnose(
    estimate: Estimate, agreement: Agreement | None = None
) -> tuple[EstimateWarning, ...]:
    """Say what looks wrong with an estimate and its data, and what to check.

    Args:
        estimate: The estimate; checks of the data need its `samples`, the check for
            too little motion its `validation`.
        agreement: The description's torques beside those measured, if a pass over the
            data has compared them already.
    """
    warnings = [
        *_unexcited(estimate),
        *_driving_friction(estimate),
        *_scaled(estimate),
    ]
    if estimate.samples:
        warnings += _one_motion(estimate.prior_arm, estimate.samples)
    if agreement is None and estimate.samples:
        agreement = compare_description(estimate.columns, estimate.samples)
    if agreement is not None:
        warnings += _compare_with_description(estimate.prior_arm, agreement)
    pushed = [] if not estimate.samples else pushed_along(estimate, _POOR_FIT)
    # What a column of the wrong sign leaves says nothing of where friction is wrong.
    loaded = [] if pushed else other_load(estimate)
    # Nor does another load.
    where = [] if loaded else _concentrated(estimate)
    warnings += pushed or [*_unexplained(estimate), *loaded, *where]
    # Validation that another load explains needs no other reason.
    warnings += [] if loaded else _overfitted(estimate)
    return (*warnings, *_extrapolates(estimate))


def _unexcited(estimate: Estimate) -> list[EstimateWarning]:
    """Joints that stood still, and combinations that are not determined."""
    arm = estimate.prior_arm
    warnings = []
    if estimate.samples:
        lowest = np.min([run.q.min(axis=0) for run in estimate.samples], axis=0)
        highest = np.max([run.q.max(axis=0) for run in estimate.samples], axis=0)
        moved = highest - lowest
        names = arm.coordinate_names
        still = [
            name for name, x in zip(names, moved, strict=True) if x < _LEAST_MOTION
        ]
        turns = [arm.joints[i].is_revolute for i in arm.coordinates]
        few = min(_LITTLE_MOTION, _LITTLE_BESIDE * float(np.median(moved)))
        hardly = [
            f"{name} ({x:.2g} rad)"
            for name, x, turning in zip(names, moved, turns, strict=True)
            if turning and _LEAST_MOTION <= x < few
        ]
        if hardly:
            warnings.append(
                EstimateWarning(
                    "joint-hardly-moved",
                    f"{', '.join(hardly)} hardly moved: its friction, rotor and what "
                    "is beyond show little, and what is said of it may be chance. "
                    "Record larger motions of it.",
                )
            )
        if still:
            warnings.append(
                EstimateWarning(
                    "joint-did-not-move",
                    f"{', '.join(still)} did not move: what only their motion shows "
                    "is not identified. Record a motion that moves every joint.",
                )
            )
        warnings += _standing(arm, estimate.samples, still)
    count = estimate.base.count
    undetermined = int(np.sum(~np.isfinite(estimate.base_std)))
    if undetermined:
        warnings.append(
            EstimateWarning(
                "undetermined-parameters",
                f"The recording determines {count - undetermined} of {count} base "
                "parameters; the others keep the description's values. Record a "
                "motion that excites every joint (armwise excite).",
            )
        )
    return warnings + _weak_directions(estimate)


# Judgement, as is the spread below: a hundredth of the log holds no stretch.
_OTHER_WAY = 0.01
"""Fraction of its moving time in which a joint must move the other way."""

_ONE_VALUE = 1.2
"""Ratio of the ninth to the first decile below which speeds, or torques, are one."""

_MOVES = 0.05
"""Fraction of its top speed from which on a joint moves."""


def _one_motion(arm: Arm, samples: Sequence[Samples]) -> list[EstimateWarning]:
    """Joints whose motion cannot tell friction terms apart, and what would."""
    speeds = _from_all_over([run.qd for run in samples])
    torques = np.abs(_from_all_over([run.tau for run in samples]))
    # A percentile, not the maximum: one spike must not set the scale.
    moves = np.abs(speeds) > _MOVES * np.percentile(np.abs(speeds), 99.0, axis=0)
    one_way, one_speed, one_load = [], [], []
    for j, name in enumerate(arm.coordinate_names):
        rows = moves[:, j]
        # Of ten rows deciles are no more than the extremes.
        if rows.sum() < 10:
            continue
        v = speeds[rows, j]
        forwards = float(np.mean(v > 0.0))
        if min(forwards, 1.0 - forwards) < _OTHER_WAY:
            one_way.append(name)
        if _is_one_value(np.abs(v)):
            one_speed.append(name)
        elif _is_one_value(torques[rows, j]):
            one_load.append(name)
    remedies = (
        (
            "one-direction",
            one_way,
            "never turned back: Coulomb friction and offset are one number, and "
            "hysteresis is not seen. Move both ways",
        ),
        (
            "one-speed",
            one_speed,
            "moved at one speed: viscous, Coulomb and other friction of speed cannot "
            "be told apart. Vary the speed",
        ),
        (
            "one-load",
            one_load,
            "carried one load: friction that grows with the load cannot be told from "
            "Coulomb's. Vary posture and load at the same speeds",
        ),
    )
    return [
        EstimateWarning(code, f"{', '.join(names)} {text} (armwise excite --friction).")
        for code, names, text in remedies
        if names
    ]


def _from_all_over(signals: Sequence[np.ndarray]) -> Float[np.ndarray, "rows dof"]:
    """Every so manieth row of some runs' signals."""
    return np.vstack([signal[:: stride_over(signals)] for signal in signals])


def _is_one_value(values: np.ndarray) -> bool:
    low, high = np.percentile(values, [10.0, 90.0])
    return bool(high < _ONE_VALUE * low)


def _standing(
    arm: Arm, samples: Sequence[Samples], never_moved: Sequence[str]
) -> list[EstimateWarning]:
    """Joints that stick or wait for a good part of the log."""
    speed = np.abs(_from_all_over([run.qd for run in samples]))
    # A percentile, not the maximum: one spike must not set the scale.
    top = np.percentile(speed, 99.5, axis=0)
    fractions = np.mean(speed < _STILL * top, axis=0)
    names = [
        f"{name} ({100 * fraction:.0f} %)"
        for name, fraction in zip(arm.coordinate_names, fractions, strict=True)
        if fraction > _STANDS and name not in never_moved
    ]
    if not names:
        return []
    return [
        EstimateWarning(
            "joint-stands-still",
            f"{', '.join(names)} of the rows show no motion: it sticks or waits, and "
            "those rows say nothing of its friction. Move it throughout.",
        )
    ]


def _weak_directions(estimate: Estimate) -> list[EstimateWarning]:
    """The combination that the motion determines worst, if it is much worse."""
    s = estimate.singular_values
    # Directions that are not determined at all have a warning of their own.
    is_whole = np.isfinite(estimate.condition_number)
    if not s.size or not is_whole or s[0] / s[-1] < _LARGEST_CONDITION:
        return []
    # The last right singular vector is the combination that moves torques least.
    loadings = np.abs(estimate.directions[-1])
    names = [estimate.base.names[i] for i in estimate.base.indices]
    top = [names[k] for k in np.argsort(loadings)[::-1][:3]]
    return [
        EstimateWarning(
            "ill-conditioned",
            f"The condition number is {s[0] / s[-1]:.0f}: the motion hardly "
            f"distinguishes {', '.join(top)}. Move faster, or those joints further.",
        )
    ]


def negative_friction(estimate: Estimate) -> dict[str, float]:
    """Coulomb or viscous friction that would drive the arm (one-sided z-test)."""
    names = estimate.prior_arm.parameter_names
    is_below = np.array(
        [
            value < 0.0 and name.endswith((".viscous", ".coulomb"))
            for name, value in zip(names, estimate.parameters, strict=True)
        ]
    )
    # Deviations of the consistent fit take draws, and its friction is never negative.
    if not is_below.any():
        return {}
    rows = zip(names, estimate.parameters, estimate.std, is_below, strict=True)
    # An infinite deviation, of what is undetermined, never lets the test reject.
    return {
        name: float(value)
        for name, value, std, negative in rows
        if negative and value < -_SURELY_NEGATIVE * std
    }


def _driving_friction(estimate: Estimate) -> list[EstimateWarning]:
    return [
        EstimateWarning(
            "negative-friction",
            f"{name} comes out negative ({value:.3g}): friction that drives. Check the "
            "sign of the torque, and that velocity and torque are of the same instant.",
        )
        for name, value in negative_friction(estimate).items()
    ]


def _compare_with_description(arm: Arm, agreement: Agreement) -> list[EstimateWarning]:
    """Compare the torque with the description's own, joint by joint.

    A description is rarely exact but rarely absurd: a sign, a swap or a factor stands
    out against it.
    """
    predicted = agreement.predicted
    # A joint without any torque has no cosine.
    if not np.all(predicted * agreement.measured > 0):
        return []
    is_heavy = predicted > _LEAST_TORQUE * predicted.max()
    return [
        *_flipped(arm, agreement, is_heavy),
        *_swapped(arm, agreement),
    ]


def _flipped(
    arm: Arm, agreement: Agreement, is_heavy: np.ndarray
) -> list[EstimateWarning]:
    is_flipped = is_heavy & (np.diag(agreement.cosines) < _OPPOSITE)
    flipped = zip(arm.coordinate_names, is_flipped, strict=True)
    names = [name for name, is_one in flipped if is_one]
    if not names:
        return []
    # All at once is one mistake, not several.
    if len(names) == int(is_heavy.sum()) and len(names) > 1:
        text = (
            "Every torque runs against the description's: the sign of the torque is "
            "flipped, or gravity points the other way."
        )
    else:
        text = (
            f"The torque of {', '.join(names)} runs against the description's. Check "
            "its sign (mapping: scale = -1)."
        )
    return [EstimateWarning("torque-sign-flipped", text)]


def _swapped(arm: Arm, agreement: Agreement) -> list[EstimateWarning]:
    """Neighbours whose torques fit each other's description, and not their own."""
    names, cosines = arm.coordinate_names, agreement.cosines
    return [
        EstimateWarning(
            "torques-swapped",
            f"The torques of {names[i]} and {names[j]} look swapped. Check the order "
            "of the columns.",
        )
        for i, j in pairwise(range(arm.dof))
        # Judgement: neighbours only; more pairs are more chances of a false alarm.
        if min(cosines[i, j], cosines[j, i]) > _ALIKE
        and max(cosines[i, i], cosines[j, j]) < _UNLIKE
    ]


def _scaled(estimate: Estimate) -> list[EstimateWarning]:
    """A factor on all that was found of links, which no link would explain.

    Links alone: friction and rotors may outweigh what a description holds.
    """
    arm, base = estimate.prior_arm, estimate.base
    described = np.zeros(len(base.names))
    described[arm.layout.links] = arm.parameters[arm.layout.links]
    is_link = np.zeros(len(base.names), dtype=bool)
    is_link[arm.layout.links] = True
    std = estimate.base_std
    own = is_link[list(base.indices)] & np.isfinite(std) & (std > 0)
    # In standard deviations, so that what is known well counts.
    found, expected = (
        x[own] / std[own] for x in (estimate.base_values, base.matrix @ described)
    )
    sizes = np.linalg.norm(found), np.linalg.norm(expected)
    if min(sizes) == 0 or found @ expected < _UNLIKE * sizes[0] * sizes[1]:
        return []
    factor = float(sizes[0] / sizes[1])
    if _UNIT_FACTORS[0] < factor < _UNIT_FACTORS[1]:
        return []
    return [
        EstimateWarning(
            "torque-unit",
            f"Links come out {factor:.3g} times as heavy as described: check the unit "
            "of the torques (N m at the joint, not motor torque, current or per cent), "
            "or the description's masses.",
        )
    ]


def _unexplained(estimate: Estimate) -> list[EstimateWarning]:
    names = estimate.prior_arm.coordinate_names
    poor = [
        f"{name} ({100 * error:.0f} %)"
        for name, error in zip(names, estimate.fit.relative_error, strict=True)
        if error > _POOR_FIT
    ]
    if not poor:
        return []
    # One joint's column may be wrong; half of them are another arm's, or in disorder.
    reason = (
        "the log is of another arm, its columns are in another order, or something "
        "else moved it, such as a hand that guides it or a contact"
        if 2 * len(poor) >= len(names) > 1
        else "it is noise, friction of another kind, or the column is not what it is "
        "taken for"
    )
    return [
        EstimateWarning(
            "unexplained-torque",
            f"Much of the torque of {', '.join(poor)} is not explained by rigid "
            f"bodies and friction: {reason}.",
        )
    ]


CONCENTRATED = "error-in-part-of-motion"
"""Code of warnings that say where in the motion much is left over."""

# Judgement: on real arms friction terms leave 5 to 8 % of most wrists' torques.
_NOTABLE = 0.1
"""Relative error from which on it is said where in the motion it arises."""

# Judgement: most of it, and errors that are plainly larger than elsewhere.
_MOSTLY, _FARTHER = 0.5, 2.0
"""Fraction of the squared error that rows must hold for it to arise there, and how many
times as large as in other rows errors must be."""

# Judgement: noise of a hundred periods of the low-pass reaches 0.25 once in a hundred.
_CORRELATED = 0.5
"""Correlation of the residual, one period of the low-pass apart, from which on it is
not noise."""

_LOW, _HIGH = 0.1, 0.7
"""Fractions of a joint's top speed, or torque, below and above which it is low or
high."""

_REGIONS = (
    (
        "while a joint sticks",
        "What its drive holds meanwhile no friction of motion tells, and predictions "
        "of such moments are no better",
    ),
    (
        f"within {REVERSAL:g} s of turning back",
        "Friction there is of a kind that no selected term describes, or the joint "
        "sticks for moments that the log does not show. Record it turning back slowly, "
        "at a higher rate",
    ),
    (
        "at rest",
        "Static friction may have any value there: go by the errors while it moves",
    ),
    (
        "at low speed",
        "Friction there is of a kind that no selected term describes. Record more slow "
        "motion",
    ),
    (
        "at high speed",
        "Friction there is of a kind that no selected term describes, or the torque is "
        "limited. Record more fast motion",
    ),
    (
        "under high torque",
        "Friction there grows with the load as no selected term describes, or a torque "
        "constant falls. Record more different loads",
    ),
    (
        "throughout the motion, and not as noise does",
        "Friction, or something else, is of a kind that no selected term describes",
    ),
)
"""Where errors arise, the most particular first, and what that mostly is."""


def _concentrated(estimate: Estimate) -> list[EstimateWarning]:
    """Joints of which much is left over, and where in their motion that arises.

    Errors on data that were not fitted, where there are any. What is spread evenly over
    the motion is noise, or is said by what it follows.
    """
    runs = [run for run in estimate.samples if len(run)]
    errors, what = estimate.fit, "torque"
    if estimate.validation is not None and estimate.validation_samples:
        runs = [run for run in estimate.validation_samples if len(run)]
        errors, what = estimate.validation, "unseen torque"
    joints = np.flatnonzero(errors.relative_error > _NOTABLE)
    if not runs or not joints.size:
        return []
    fractions, rows = _by_region(estimate, runs, joints)
    # Errors in some rows beside those in all others.
    is_there = fractions * (1.0 - rows) > _FARTHER**2 * (1.0 - fractions) * rows
    is_there &= fractions > _MOSTLY
    # The last region is the whole log.
    is_there[-1] = errors.whiteness[joints] > _CORRELATED
    names = estimate.prior_arm.coordinate_names
    texts: dict[int, list[str]] = {}
    for i, j in enumerate(joints):
        if not is_there[:, i].any():
            continue
        k = int(np.argmax(is_there[:, i]))
        text = f"{names[j]} ({100 * errors.relative_error[j]:.0f} %"
        if k < len(_REGIONS) - 1:
            text += f"; {100 * fractions[k, i]:.0f} % of its square there, in "
            text += f"{100 * rows[k, i]:.0f} % of the rows"
        texts.setdefault(k, []).append(text + ")")
    return [
        EstimateWarning(
            CONCENTRATED,
            f"The {what} that is not explained arises mostly {_REGIONS[k][0]}: "
            f"{', '.join(own)}. {_REGIONS[k][1]}.",
        )
        for k, own in sorted(texts.items())
    ]


def _by_region(
    estimate: Estimate, runs: Sequence[Samples], joints: np.ndarray
) -> tuple[Float[np.ndarray, "regions joints"], Float[np.ndarray, "regions joints"]]:
    """Fractions of some joints' squared errors, and of the rows, in each of _REGIONS.

    At rows from all over the log, so that neither memory nor time grow with it.
    """
    columns = estimate.columns
    stride = stride_over(runs)
    weights = columns.user @ estimate.all_parameters
    # A percentile, not the maximum: one spike must not set the scale.
    top_speed, top_torque = (
        np.maximum(np.percentile(np.abs(_from_all_over(x)), 99.0, axis=0), 1e-300)
        for x in ([run.qd for run in runs], [run.tau for run in runs])
    )
    sums = np.zeros((2, len(_REGIONS), joints.size))
    for run in runs:
        sticks = columns.sticks(run)[:, joints]
        for block in columns.blocks([run], [slice(0, len(run), stride)]):
            rows = block.rows
            _, resting, reversing = block_masks(block)[..., joints]
            speed = (np.abs(run.qd[rows]) / top_speed)[:, joints]
            torque = (np.abs(run.tau[rows]) / top_torque)[:, joints]
            ones = np.ones(speed.shape)
            kinds = [sticks[rows], reversing, resting, speed < _LOW, speed > _HIGH]
            kinds += [torque > _HIGH, ones > 0.0]
            error = run.tau[rows] - predicted_block(columns, block, weights)
            both = np.stack([error[:, joints] ** 2, ones])
            sums += np.einsum("knj,snj->skj", np.stack(kinds), both)
    fractions, counts = sums / np.maximum(sums[:, -1:], 1e-300)
    return fractions, counts


def worsening(fit: Validation, checked: Validation) -> Float[np.ndarray, " dof"]:
    """How much worse each joint is predicted than fitted, as a factor.

    Of relative and absolute errors the smaller factor: less torque makes the same noise
    a larger fraction, and more torque the same fraction a larger error. And no more
    than the errors exceed what the prediction says of itself: a motion that the fit
    hardly determined is predicted worse, and its intervals say so.
    """
    relative = checked.relative_error / np.maximum(fit.relative_error, _SMALL_ERROR)
    factor = np.minimum(relative, checked.rmse / np.maximum(fit.rmse, 1e-12))
    ratio = checked.interval_ratio
    return factor if ratio is None else np.minimum(factor, ratio)


# Judgement: friction's shape between two logs of the same kind is not the question.
_FASTER = 1.5
"""How many times as fast as in the fit a joint must move for it to be said; and how
many times as large its relative error must be for that to be a warning."""


def faster_motion(
    estimate: Estimate, among: Bool[np.ndarray, " dof"] | None = None
) -> str | None:
    """Say which joints, or which of some, validation moves much faster than the fit."""
    joints, (fitted, unseen) = _faster(estimate)
    listed = [j for j in joints if among is None or among[j]]
    if not listed:
        return None
    arm, texts = estimate.prior_arm, []
    for j in listed:
        unit = "rad/s" if arm.joints[arm.coordinates[j]].is_revolute else "m/s"
        name = arm.coordinate_names[j]
        texts.append(f"{name} at up to {unseen[j]:.2g} {unit} ({fitted[j]:.2g})")
    return (
        f"Validation moves {', '.join(texts)}, in brackets what the fit saw: "
        "friction there is extrapolated."
    )


def _faster(estimate: Estimate) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Joints that validation moves much faster; top speeds of fit and validation."""
    runs = [run for run in estimate.samples if len(run)]
    others = [run for run in estimate.validation_samples or () if len(run)]
    if not runs or not others:
        return np.zeros(0, dtype=int), (np.zeros(0), np.zeros(0))
    fitted, unseen = (
        np.max([np.abs(run.qd).max(axis=0) for run in some], axis=0)
        for some in (runs, others)
    )
    return np.flatnonzero(unseen > _FASTER * fitted), (fitted, unseen)


def _extrapolates(estimate: Estimate) -> list[EstimateWarning]:
    """Joints that validation moves faster than the fit, and explains worse."""
    errors = estimate.validation
    if errors is None:
        return []
    is_worse = errors.relative_error > _FASTER * estimate.fit.relative_error
    text = faster_motion(estimate, is_worse & (errors.relative_error > _SMALL_ERROR))
    advice = "Fit a log that moves as fast."
    return [EstimateWarning("faster-than-fitted", f"{text} {advice}")] if text else []


def _overfitted(estimate: Estimate) -> list[EstimateWarning]:
    """Joints that are predicted far worse than they were fitted, and why."""
    if estimate.validation is None:
        return []
    factor = worsening(estimate.fit, estimate.validation)
    names = estimate.prior_arm.coordinate_names
    listed = [name for name, x in zip(names, factor, strict=True) if x > _WORSE]
    if not listed:
        return []
    why = (
        _cause(estimate, factor)
        or (
            factor.max() > _UNRELATED
            and "Fit and validation are of different robots, loads or units."
        )
        or "The fit holds too little of the motion that validation shows. "
        "Record longer or richer motion."
    )
    text = f"Predicted more than three times worse than fitted: {', '.join(listed)}. "
    return [EstimateWarning("overfitted", text + why)]


# Judgement: a cause that leaves more than half of the error is not the cause.
_MENDS = 0.5
"""Fraction to which naming the cause must bring the error of validation."""

_LONGEST_DELAY = 0.1
"""Delay in [s] between fit and validation that is looked for."""

# Judgement: three degrees, and a tenth of what joints of this log moved by.
_LITTLE_MOTION, _LITTLE_BESIDE = 0.06, 0.1
"""Range in [rad], and fraction of the joints' median, below which a joint that turned
hardly moved."""


def _cause(estimate: Estimate, factor: Float[np.ndarray, " dof"]) -> str | None:
    """What of a validation log differs from the fit's, by what would mend it.

    A factor or a delay that the fit's log had, and was repaired for, is taken out of
    the validation's too: where it has none, the repair itself is the error.
    """
    runs = [run for run in estimate.validation_samples if len(run) > 1]
    if not runs:
        return None
    j = int(np.argmax(factor))
    name = estimate.prior_arm.coordinate_names[j]
    fitted = [estimate.predict(run) for run in runs]
    error = _misfit(fitted, [run.tau for run in runs])
    products = [p[:, j] @ run.tau[:, j] for p, run in zip(fitted, runs, strict=True)]
    gain = float(sum(products) / max(sum(p[:, j] @ p[:, j] for p in fitted), 1e-300))
    scaled = [np.where(np.arange(p.shape[1]) == j, gain * p, p) for p in fitted]
    if _misfit(scaled, [run.tau for run in runs])[j] < _MENDS * error[j]:
        text = f"The torque of {name} there is {gain:.3g} times what the fit's log "
        text += "says: another unit, gear ratio or torque constant in one of the two"
        used = [run.preparation.torque_scale for run in estimate.samples]
        if any(used):
            text += " (a factor was found for the fit's; this log may need none)"
        return text + ". Give each log the mapping it needs."
    rate = runs[0].rate_hz
    reach = max(1, round(_LONGEST_DELAY * rate))
    if min(len(run) for run in runs) > 4 * reach:
        shifts = range(-reach, reach + 1)
        errors = [_misfit(*_shifted(fitted, runs, k)).max() for k in shifts]
        best = int(np.argmin(errors))
        if errors[best] < _MENDS * error.max():
            delay = 1e3 * shifts[best] / rate
            return (
                f"The torque there comes {abs(delay):.0f} ms "
                f"{'later' if delay > 0 else 'earlier'} than in the fit's log: their "
                "clocks differ. Record both alike, or validate on the same setup."
            )
    further = np.zeros(len(estimate.columns.friction))
    parameters = np.concatenate([estimate.prior_arm.parameters, further])
    described = replace(estimate, all_parameters=parameters)
    before = _misfit([described.predict(run) for run in runs], [r.tau for r in runs])
    if before.max() < _MENDS * error.max():
        return (
            f"The description predicts it better ({100 * before.max():.2g} % at worst "
            f"against {100 * error.max():.2g} %): something is wrong with the fit's "
            "log, or it is another robot's. Do not use this estimate."
        )
    return None


def _misfit(
    predicted: Sequence[np.ndarray], measured: Sequence[np.ndarray]
) -> Float[np.ndarray, " dof"]:
    """Relative error of each joint, over several runs."""
    torque = np.vstack(measured)
    size = np.maximum(np.linalg.norm(torque, axis=0), 1e-300)
    return np.asarray(np.linalg.norm(torque - np.vstack(predicted), axis=0) / size)


def _shifted(
    predicted: Sequence[np.ndarray], runs: Sequence[Samples], shift: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Predictions, and the torques measured so many samples later."""
    before, after = max(-shift, 0), max(shift, 0)
    pairs = zip(predicted, runs, strict=True)
    return (
        [p[before : len(p) - after] for p, _ in pairs],
        [run.tau[after : len(run) - before] for run in runs],
    )
