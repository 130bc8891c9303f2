"""Doubts about the data, in words: what the residuals say went wrong."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.identification.estimate import Estimate
from armwise.identification.validation import Validation
from armwise.recordings import Samples

_POOR = 0.5
"""Relative error above which a joint's torque counts as unexplained."""

_CLEARLY = 0.5
"""An alternative must leave less than this share of the error to be suggested."""


def diagnose(
    estimate: Estimate, fitted: Samples, validation: Validation | None
) -> tuple[str, ...]:
    """Say what looks wrong, and what to check."""
    found = [*_unexcited(estimate, fitted), *_implausible(estimate)]
    found += _description_doubts(estimate.prior_arm, fitted)
    found += _unexplained(estimate)
    if validation is not None:
        found += _overfit(estimate, validation)
    return tuple(found)


def _unexcited(estimate: Estimate, fitted: Samples) -> list[str]:
    """Joints that stood still, and combinations nothing is known of."""
    arm = estimate.prior_arm
    found = []
    moved = np.ptp(fitted.q, axis=0) if len(fitted) else np.zeros(arm.dof)
    still = [n for n, m in zip(arm.coordinate_names, moved, strict=True) if m < 1e-3]
    if still:
        found.append(
            f"{', '.join(still)} did not move: what only their motion shows is not "
            "identified. Record a motion that moves every joint."
        )
    unknown = int(np.sum(~np.isfinite(estimate.base_std)))
    if unknown:
        found.append(
            f"The recording determines {estimate.base.count - unknown} of "
            f"{estimate.base.count} base parameters; the others keep the description's "
            "values. Record a motion that excites every joint (armwise excite)."
        )
    weak = _weak_directions(estimate)
    return found + weak


def _weak_directions(estimate: Estimate) -> list[str]:
    s = estimate.singular_values
    if not s.size or s[-1] <= 0 or s[0] / s[-1] < 300:
        return []
    loads = np.abs(estimate.directions[-1])
    names = [estimate.base.names[i] for i in estimate.base.indices]
    top = [names[k] for k in np.argsort(loads)[::-1][:3]]
    return [
        f"The condition number is {s[0] / s[-1]:.0f}: the motion hardly tells "
        f"{', '.join(top)} apart. Move faster, or those joints further."
    ]


def _implausible(estimate: Estimate) -> list[str]:
    """Coulomb or viscous friction that would drive the arm."""
    found = []
    std = dict(zip(estimate.base.indices, estimate.base_std, strict=True))
    for row, index in enumerate(estimate.base.indices):
        name = estimate.base.names[index]
        if name.endswith((".viscous", ".coulomb")):
            value = estimate.base_values[row]
            if value < -3 * std[index]:
                found.append(
                    f"{name} comes out negative ({value:.3g}): friction that drives. "
                    "Check the sign of the torque, and that velocity and torque are "
                    "of the same instant."
                )
    return found


def _description_doubts(arm: Arm, fitted: Samples) -> list[str]:
    """Compare the torque with the description's own, joint by joint.

    A description is rarely exact but rarely absurd: a sign, a swap or a factor stands
    out against it.
    """
    predicted = Dynamics(arm).inverse_dynamics(fitted.q, fitted.qd, fitted.qdd)
    measured = fitted.tau
    size = np.linalg.norm(predicted, axis=0) * np.linalg.norm(measured, axis=0)
    if not np.all(size > 0):
        return []
    match = np.sum(predicted * measured, axis=0) / size
    heavy = (
        np.linalg.norm(predicted, axis=0)
        > 0.1 * np.linalg.norm(predicted, axis=0).max()
    )
    return [
        *_flipped(arm, match, heavy),
        *_swapped(arm, predicted, measured, match),
        *_scaled(arm, predicted, measured, match, heavy),
    ]


def _flipped(arm: Arm, match: np.ndarray, heavy: np.ndarray) -> list[str]:
    names = [
        n
        for n, m, h in zip(arm.coordinate_names, match, heavy, strict=True)
        if h and m < -0.8
    ]
    if not names:
        return []
    if len(names) == int(heavy.sum()) and len(names) > 1:
        return [
            "Every torque runs against the description's: the sign of the torque is "
            "flipped, or gravity points the other way."
        ]
    return [
        f"The torque of {', '.join(names)} runs against the description's. Check its "
        "sign (mapping: scale = -1)."
    ]


def _swapped(
    arm: Arm, predicted: np.ndarray, measured: np.ndarray, match: np.ndarray
) -> list[str]:
    found = []
    names = arm.coordinate_names
    for i, j in pairwise(range(arm.dof)):
        crossed = min(
            _cosine(predicted[:, i], measured[:, j]),
            _cosine(predicted[:, j], measured[:, i]),
        )
        if crossed > 0.9 and max(match[i], match[j]) < 0.5:
            found.append(
                f"The torques of {names[i]} and {names[j]} look swapped. Check the "
                "order of the columns."
            )
    return found


def _scaled(
    arm: Arm,
    predicted: np.ndarray,
    measured: np.ndarray,
    match: np.ndarray,
    heavy: np.ndarray,
) -> list[str]:
    """A constant factor on all torques that no inertia would explain."""
    ratio = np.linalg.norm(measured, axis=0) / np.linalg.norm(predicted, axis=0)
    good = heavy & (match > 0.9)
    if not good.any():
        return []
    factor = float(np.median(ratio[good]))
    if 0.2 < factor < 5:
        return []
    return [
        f"Measured torques are {factor:.3g} times the description's: check their unit "
        "(N m at the joint, not motor torque, current or per cent)."
    ]


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    size = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / size if size > 0 else 0.0


def _unexplained(estimate: Estimate) -> list[str]:
    names = estimate.prior_arm.coordinate_names
    poor = [
        f"{n} ({100 * e:.0f} %)"
        for n, e in zip(names, estimate.fit.relative_error, strict=True)
        if e > _POOR
    ]
    if not poor:
        return []
    return [
        f"Most of the torque of {', '.join(poor)} is not explained by rigid bodies "
        "and friction: it is noise, or the column is not what it is taken for."
    ]


def _overfit(estimate: Estimate, validation: Validation) -> list[str]:
    worse = validation.relative_error > 3 * np.maximum(
        estimate.fit.relative_error, 0.01
    )
    names = [
        n for n, w in zip(estimate.prior_arm.coordinate_names, worse, strict=True) if w
    ]
    if not names:
        return []
    return [
        f"{', '.join(names)} is predicted three times worse than fitted: the fit saw "
        "too little of what validation shows. Record longer or richer motion."
    ]
