"""Section on unidentified combinations, and the motions that would reveal them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.identification import Estimate, at_usual_temperature
from armwise.recordings import Samples
from armwise.report.report import (
    Block,
    BulletList,
    Paragraph,
    ReportTable,
    Section,
    finite,
)
from armwise.report.subject import Subject

if TYPE_CHECKING:
    from jaxtyping import Float, Int


# Judgement; ± 1.96 × 0.3 is ± 59 %.
LARGEST_RELATIVE_STD = 0.3
"""Standard deviation over value from which a parameter counts as poorly determined:
at 30 % a 95 % interval is as wide as the value."""

# Judgement: a simple motion recorded four times as long makes good a factor of two.
_ALMOST_BEST = 2.0
"""A motion counts as good as the best if it leaves at most this many times its
standard deviation; the simplest such motion is named."""

_SAMPLES = 60
"""Random postures tried for each kind of motion: a few per base parameter."""

# Judgement: 28 pairs, and an arm and a hand's joint fit in it.
_FEW_JOINTS = 8
"""Joints up to which every pair is tried, not only neighbours."""

_RIDGE = 1e-10
"""Information, relative to what the motions bring, that is assumed of everything, so
that the sum can be inverted where nothing was determined."""


@dataclass(frozen=True)
class Unidentified:
    """A combination the data did not determine, and what would.

    Attributes:
        expression: The combination.
        value: Its value.
        std: Its standard deviation; infinite if it is not determined.
        motion: What to record, in words.
        joint: The joint whose torque shows it best.
    """

    expression: str
    value: float
    std: float
    motion: str
    joint: str


@dataclass(frozen=True, eq=False)
class _Candidate:
    """A kind of motion, and the information the torques of all joints bring."""

    words: str
    samples: Samples
    information: Float[np.ndarray, "base base"]


def poorly_determined(estimate: Estimate) -> list[int]:
    """Base parameters the data determine badly or not at all, worst first."""
    # 1e-300: a value of zero with a finite uncertainty is poorly determined, not NaN.
    relative_std = estimate.base_std / np.maximum(np.abs(estimate.base_values), 1e-300)
    order = np.argsort(-relative_std, kind="stable")
    return [int(k) for k in order if relative_std[k] > LARGEST_RELATIVE_STD]


def revealing_motions(estimate: Estimate, most: int = 12) -> tuple[Unidentified, ...]:
    """For each poorly determined combination find the simplest motion that shows it.

    Postures held, one joint moving, and two moving are tried. Each adds its information
    YᵀY/σ² to what the data brought; the standard deviation that remains rates it.

    Args:
        estimate: The estimate.
        most: How many to look at, worst first.
    """
    selection = poorly_determined(estimate)[:most]
    if not selection:
        return ()
    candidates = _candidates(estimate)
    information = _information(estimate)
    # Fisher information of independent data adds.
    total = information + sum(c.information for c in candidates)
    information = information + _RIDGE * np.diag(np.maximum(np.diag(total), 1e-300))
    after = np.array([_std(information + c.information, selection) for c in candidates])
    # The first kind of motion that is nearly as good as the best: argmax of a mask is
    # its first true entry, and candidates go from simple to complex.
    first = np.argmax(after <= _ALMOST_BEST * after.min(axis=0), axis=0)
    best = {
        selection[i]: joint
        for c in np.unique(first)
        for i, joint in _best_joints(
            estimate,
            information,
            candidates[c].samples,
            {int(i): selection[i] for i in np.flatnonzero(first == c)},
        ).items()
    }
    joints = estimate.prior_arm.coordinate_names
    return tuple(
        Unidentified(
            expression=estimate.base.expressions[k],
            value=float(estimate.base_values[k]),
            std=float(estimate.base_std[k]),
            motion=candidates[first[i]].words,
            joint=joints[best[k]],
        )
        for i, k in enumerate(selection)
    )


def _information(estimate: Estimate) -> Float[np.ndarray, "base base"]:
    """Information about β: the inverse covariance, zero where that is infinite."""
    finite = np.isfinite(np.diag(estimate.base_covariance))
    rows = np.ix_(finite, finite)
    information = np.zeros(estimate.base_covariance.shape)
    # The pseudo-inverse: combinations that are nearly certain together may leave the
    # covariance singular to rounding.
    information[rows] = np.linalg.pinv(estimate.base_covariance[rows], hermitian=True)
    return information


def _std(
    information: np.ndarray, selection: Sequence[int]
) -> Float[np.ndarray, " selected"]:
    """Standard deviations of some base parameters."""
    # Scaled to a unit diagonal first: masses and inertias differ by many orders.
    scale = 1.0 / np.sqrt(np.diag(information))
    some = np.eye(scale.size)[:, selection]
    inverse = np.linalg.solve(information * np.outer(scale, scale), some)[selection]
    return np.asarray(scale[selection] * np.sqrt(np.maximum(np.diag(inverse), 0.0)))


def _candidates(estimate: Estimate) -> list[_Candidate]:
    """Kinds of motion, the simplest first."""
    arm = estimate.prior_arm
    # A fixed seed: the same estimate gives the same report.
    rng = np.random.default_rng(0)
    names = arm.coordinate_names
    kinds: list[tuple[str, tuple[int, ...]]] = [("hold other postures", ())]
    kinds += [
        (f"move {name}, fast and with reversals", (j,)) for j, name in enumerate(names)
    ]
    kinds += [
        (f"move {names[i]} and {names[j]} together, fast", (i, j))
        for i, j in combinations(range(arm.dof), 2)
        # Neighbours show most of what two joints show; 32 joints have 496 pairs.
        if j == i + 1 or arm.dof <= _FEW_JOINTS
    ]
    samples = _motions(arm, [moving for _, moving in kinds], rng)
    candidates = []
    for (words, _), (rows, joints) in zip(
        kinds, _motion_information(estimate, samples), strict=True
    ):
        information = np.zeros((estimate.base.count, estimate.base.count))
        for shown, own in joints:
            information[np.ix_(shown, shown)] += own
        candidates.append(_Candidate(words, samples[rows], information))
    return candidates


def _motion_information(
    estimate: Estimate, samples: Samples
) -> Iterator[
    tuple[
        slice,
        Iterator[tuple[Int[np.ndarray, " shown"], Float[np.ndarray, "shown shown"]]],
    ]
]:
    """Yield the rows of each motion, and the information YᵀY/σ² of its torques about β.

    One joint at a time, with the base parameters that its torque shows at all: those of
    32 for all are 30 MB for each kind of motion.
    """
    columns = estimate.columns
    base_columns = columns.user[:, list(estimate.base.indices)]
    shown = [np.flatnonzero(base_columns[own].any(axis=0)) for own in columns.support]
    bases = [
        base_columns[np.ix_(support, own)]
        for support, own in zip(columns.support, shown, strict=True)
    ]
    # 1e-12: exact data have no noise, and information must stay finite.
    std = np.maximum(estimate.torque_std, 1e-12)
    parts = [slice(i, i + _SAMPLES) for i in range(0, len(samples), _SAMPLES)]
    for block in columns.blocks([at_usual_temperature(columns, samples)], parts):
        rows = (
            matrix[:-1].T @ base / s
            for matrix, base, s in zip(block.joints, bases, std, strict=True)
        )
        yield block.rows, ((k, Y.T @ Y) for k, Y in zip(shown, rows, strict=True))


def _motions(
    arm: Arm, moving: Sequence[tuple[int, ...]], rng: np.random.Generator
) -> Samples:
    """Random instants of each kind: some joints moving, others anywhere at rest."""
    shape = (len(moving) * _SAMPLES, arm.dof)
    # One turn where a joint has no limits; 5 / s turns a speed into an acceleration.
    lower = np.maximum(arm.limits("lower"), -np.pi)
    upper = np.minimum(arm.limits("upper"), np.pi)
    speed = arm.limits("velocity")
    speed = np.where(np.isfinite(speed), speed, 1.0)
    mask = np.array([[j in some for j in range(arm.dof)] for some in moving])
    mask = np.repeat(mask, _SAMPLES, axis=0)
    return Samples(
        time=np.arange(shape[0], dtype=float),
        # 1e-6: a joint whose limits coincide still has an interval to draw from.
        q=rng.uniform(lower, np.maximum(upper, lower + 1e-6), shape),
        qd=rng.uniform(-1, 1, shape) * speed * mask,
        qdd=rng.uniform(-1, 1, shape) * 5.0 * speed * mask,
        tau=np.zeros(shape),
    )


def _best_joints(
    estimate: Estimate,
    information: np.ndarray,
    samples: Samples,
    selection: Mapping[int, int],
) -> dict[int, int]:
    """The joint whose torque in a motion tells base parameters best, by their keys."""
    ((_, joints),) = _motion_information(estimate, samples)
    lowest = dict.fromkeys(selection, np.inf)
    best = dict.fromkeys(selection, 0)
    for joint, (shown, own) in enumerate(joints):
        # What a joint's torque does not show it tells through others at best.
        keys = [i for i, k in selection.items() if k in shown]
        if not keys:
            continue
        total = information.copy()
        total[np.ix_(shown, shown)] += own
        after = _std(total, [selection[i] for i in keys])
        for i, std in zip(keys, after.tolist(), strict=True):
            if std < lowest[i]:
                lowest[i], best[i] = std, joint
    return best


def unidentified_section(subject: Subject) -> Section:
    """Name what the data did not determine and what no motion can show."""
    estimate = subject.estimate
    never = estimate.base.unidentifiable
    count = len(poorly_determined(estimate))
    weakest = revealing_motions(estimate)
    blocks: list[Block] = []
    if weakest:
        caption = (
            f"{count} combinations are determined to no better than "
            f"{100 * LARGEST_RELATIVE_STD:.0f} % of their value, or not at all; "
            f"the {len(weakest)} worst. Where a value is nearly zero this does no harm."
        )
        rows = tuple(
            (h.expression, h.value, *finite([h.std]), h.motion, h.joint)
            for h in weakest
        )
        columns = ("combination", "value", "std", "a motion that shows it", "torque of")
        blocks.append(ReportTable(columns, rows, caption))
    else:
        blocks.append(
            Paragraph(
                "Every combination that motion can show is determined to better than "
                f"{100 * LARGEST_RELATIVE_STD:.0f} % of its value."
            )
        )
    if never:
        blocks.append(
            Paragraph(
                f"{len(never)} parameters never act on any joint's torque, so no "
                "motion reveals them and no controller needs them:"
            )
        )
        blocks.append(BulletList((", ".join(never),)))
    return Section(
        "unidentified",
        "Not identified",
        tuple(blocks),
        {
            "poorly_known_count": count,
            "poorly_known": [
                {
                    "expression": h.expression,
                    "value": h.value,
                    "std": finite([h.std])[0],
                    "motion": h.motion,
                    "torque_of": h.joint,
                }
                for h in weakest
            ],
            "unidentifiable": list(never),
        },
    )
