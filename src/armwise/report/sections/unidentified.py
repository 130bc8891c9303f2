"""What was not identified, and which motion would reveal it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.identification import Estimate
from armwise.recordings import Samples
from armwise.report.report import Block, Items, Section, Table, Words, finite
from armwise.report.subject import Subject

if TYPE_CHECKING:
    from jaxtyping import Float


# Which motion would reveal what the data did not.

LARGEST_RELATIVE_STD = 0.3
"""Standard deviation over value from which a parameter counts as poorly known."""

_NEARLY = 2.0
"""A motion counts as good as the best if it leaves at most this many times its
standard deviation; the simplest such motion is named."""

_SAMPLES = 120
"""Random postures tried for each kind of motion."""

_RIDGE = 1e-10
"""Information, relative to what the motions bring, that is assumed of everything."""


@dataclass(frozen=True)
class Hidden:
    """A combination the data left open, and what would show it.

    Attributes:
        expression: The combination.
        value: Its value.
        std: Its standard deviation; infinite if nothing is known.
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
    """A kind of motion, and the information its torques bring, joint by joint."""

    words: str
    information: Float[np.ndarray, "dof base base"]


def poorly_known(estimate: Estimate) -> list[int]:
    """Base parameters the data determine badly or not at all, worst first."""
    doubt = estimate.base_std / np.maximum(np.abs(estimate.base_values), 1e-300)
    order = np.argsort(-doubt, kind="stable")
    return [int(k) for k in order if doubt[k] > LARGEST_RELATIVE_STD]


def revealing_motions(estimate: Estimate, most: int = 12) -> tuple[Hidden, ...]:
    """For each poorly known combination find the simplest motion that shows it.

    Postures held, one joint moving, and two moving are tried. Each adds its information
    YᵀY/σ² to what is known; the standard deviation left over tells how good it is.

    Args:
        estimate: The estimate.
        most: How many to look at, worst first.
    """
    chosen = poorly_known(estimate)[:most]
    if not chosen:
        return ()
    candidates = _candidates(estimate)
    known = _information(estimate)
    total = known + sum(c.information.sum(axis=0) for c in candidates)
    known = known + _RIDGE * np.diag(np.maximum(np.diag(total), 1e-300))
    after = np.array([_std(known + c.information.sum(axis=0)) for c in candidates])
    return tuple(_hidden(estimate, k, known, after[:, k], candidates) for k in chosen)


def _information(estimate: Estimate) -> Float[np.ndarray, "base base"]:
    """What is known of β: the inverse covariance, zero where nothing is."""
    finite = np.isfinite(np.diag(estimate.base_covariance))
    rows = np.ix_(finite, finite)
    information = np.zeros(estimate.base_covariance.shape)
    information[rows] = np.linalg.pinv(estimate.base_covariance[rows], hermitian=True)
    return information


def _std(information: np.ndarray) -> Float[np.ndarray, " base"]:
    scale = 1.0 / np.sqrt(np.diag(information))
    inverse = np.linalg.inv(information * np.outer(scale, scale))
    return np.asarray(scale * np.sqrt(np.maximum(np.diag(inverse), 0.0)))


def _candidates(estimate: Estimate) -> list[_Candidate]:
    """Kinds of motion, the simplest first."""
    arm = estimate.prior_arm
    rng = np.random.default_rng(0)
    names = arm.coordinate_names
    kinds: list[tuple[str, tuple[int, ...]]] = [("hold other postures", ())]
    kinds += [
        (f"move {name}, fast and with reversals", (j,)) for j, name in enumerate(names)
    ]
    kinds += [
        (f"move {names[i]} and {names[j]} together, fast", (i, j))
        for i, j in combinations(range(arm.dof), 2)
    ]
    return [_Candidate(w, _told(estimate, _motion(arm, m, rng))) for w, m in kinds]


def _told(estimate: Estimate, samples: Samples) -> Float[np.ndarray, "dof base base"]:
    """Information YᵀY/σ² of each joint's torque about β."""
    columns = estimate.columns
    wanted = columns.user[:, list(estimate.base.indices)]
    told = np.zeros((columns.arm.dof, estimate.base.count, estimate.base.count))
    for block in columns.blocks([samples]):
        for i, support in enumerate(columns.support):
            Y = block.joints[i][:-1].T @ wanted[support]
            told[i] += Y.T @ Y / max(float(estimate.torque_std[i]), 1e-12) ** 2
    return told


def _motion(arm: Arm, moving: tuple[int, ...], rng: np.random.Generator) -> Samples:
    """Random instants with some joints moving, others anywhere at rest."""
    shape = (_SAMPLES, arm.dof)
    lower = np.maximum(arm.limits("lower"), -np.pi)
    upper = np.minimum(arm.limits("upper"), np.pi)
    speed = arm.limits("velocity")
    speed = np.where(np.isfinite(speed), speed, 1.0)
    mask = np.isin(np.arange(arm.dof), moving)
    return Samples(
        time=np.arange(_SAMPLES, dtype=float),
        q=rng.uniform(lower, np.maximum(upper, lower + 1e-6), shape),
        qd=rng.uniform(-1, 1, shape) * speed * mask,
        qdd=rng.uniform(-1, 1, shape) * 5.0 * speed * mask,
        tau=np.zeros(shape),
    )


def _hidden(
    estimate: Estimate,
    index: int,
    known: np.ndarray,
    after: Float[np.ndarray, " candidates"],
    candidates: Sequence[_Candidate],
) -> Hidden:
    """Take the first kind of motion that is nearly as telling as the best."""
    first = int(np.argmax(after <= _NEARLY * after.min()))
    told = candidates[first].information
    by_joint = [_std(known + one)[index] for one in told]
    return Hidden(
        expression=estimate.base.expressions[index],
        value=float(estimate.base_values[index]),
        std=float(estimate.base_std[index]),
        motion=candidates[first].words,
        joint=estimate.prior_arm.coordinate_names[int(np.argmin(by_joint))],
    )


# What was not identified, and which motion would reveal it.


def hidden_section(subject: Subject) -> Section:
    """Name what the data left open and what no motion can show."""
    estimate = subject.estimate
    never = estimate.base.unidentifiable
    count = len(poorly_known(estimate))
    found = revealing_motions(estimate)
    blocks: list[Block] = []
    if found:
        caption = (
            f"{count} combinations are known to no better than "
            f"{100 * LARGEST_RELATIVE_STD:.0f} % of their value, or not at all; "
            f"the {len(found)} worst. Where a value is nearly zero this is no harm."
        )
        rows = tuple(
            (h.expression, h.value, *finite([h.std]), h.motion, h.joint) for h in found
        )
        columns = ("combination", "value", "std", "a motion that shows it", "torque of")
        blocks.append(Table(columns, rows, caption))
    else:
        blocks.append(
            Words(
                "Every combination that motion can show is known to better than "
                f"{100 * LARGEST_RELATIVE_STD:.0f} % of its value."
            )
        )
    if never:
        blocks.append(
            Words(
                f"{len(never)} parameters never act on any joint's torque, so no "
                "motion reveals them and no controller needs them:"
            )
        )
        blocks.append(Items((", ".join(never),)))
    return Section(
        "hidden",
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
                for h in found
            ],
            "unidentifiable": list(never),
        },
    )
