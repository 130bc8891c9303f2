"""What came of a search, in words and numbers; refused where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.calibration import Calibration, wrapped
from armwise.calibration.descent import Prior
from armwise.calibration.domain import Domain
from armwise.calibration.evidence import evidence_of
from armwise.calibration.observability import Observability
from armwise.calibration.point import Point
from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector
from armwise.calibration.uncertainty import covariance_of, torque_errors
from armwise.errors import NotIdentifiable

if TYPE_CHECKING:
    from jaxtyping import Bool

_UNCLEAR = 0.1
"""Standard deviation in [rad], and of relative gains, beyond which nothing is known."""


def outcome(
    projector: Projector,
    found: Projected,
    outlook: Observability,
    domain: Domain,
    prior: Prior,
    is_free: Bool[np.ndarray, " unknowns"],
) -> Calibration:
    """Put a solution into words and numbers.

    Args:
        projector: With the weights the solution was found with.
        found: The solution.
        outlook: What could be told beforehand.
        domain: With what was given; what was not calibrated goes back to it.
        prior: What was believed.
        is_free: What was moved.

    Raises:
        NotIdentifiable: If something that was sought is as good as unknown.
    """
    known = projector.structure
    covariance = covariance_of(projector, found, is_free, prior)
    n, guess = known.arm.dof, domain.guess
    deviation = np.sqrt(np.diag(covariance))[: len(known.unknowns)]
    left = _less_unclear(outlook, deviation)
    lost = [x for x in left.hidden if x not in outlook.hidden]
    if lost and (domain.is_blind or not left.is_sought.any()):
        raise refusal(projector, found, lost)
    outlook = left
    sought = outlook.is_sought
    deviation = np.where(sought, deviation, np.inf)
    gains = deviation[:-n] if deviation.size > n else np.zeros(n)
    point = found.point.held(guess, sought)
    found = projector.at(replace(point, beta=wrapped(point.beta)))
    point = found.point
    return Calibration(
        joint_names=known.arm.coordinate_names,
        alpha=point.alpha,
        beta=point.beta,
        alpha_std=gains * np.abs(point.alpha),
        beta_std=deviation[-n:],
        covariance=covariance,
        unknowns=(*known.unknowns, *known.flaw_names),
        flaws=point.flaws,
        parameters=known.parameters(found.values[:-1]),
        torque_std=torque_errors(projector, found),
        observability=outlook,
        evidence=evidence_of(projector, found),
        notes=(*_reversals(projector, found, guess), *_frictions(projector, found)),
    )


def _less_unclear(outlook: Observability, deviation: np.ndarray) -> Observability:
    """Leave out what this recording does not tell: it stays as it was given."""
    unclear = outlook.is_sought & ~(deviation < _UNCLEAR)
    reasons = {
        p.name: f"this recording tells it only to ± {p.with_unit(float(std))}"
        for p, std, bad in zip(outlook.prospects, deviation, unclear, strict=True)
        if bad
    }
    return outlook.without(reasons)


def refusal(
    projector: Projector, found: Projected, names: Sequence[str]
) -> NotIdentifiable:
    """Say what hides some unknowns: friction, or that gravity does not act."""
    joints = {name.rsplit(".", 1)[0] for name in names}
    rubbing = rubbing_joints(projector, found)
    notes = [friction_note(*x) for x in rubbing.items() if x[0] in joints]
    return NotIdentifiable(" ".join(notes)) if notes else without_gravity(names)


def without_gravity(names: Sequence[str]) -> NotIdentifiable:
    """What to say of joints that gravity does not weigh."""
    return NotIdentifiable(
        f"This recording does not tell {', '.join(names)}: gravity hardly shows in the "
        "torques. Does it act in the plane of motion? Move further, or more slowly "
        "where friction hides it."
    )


def faint_joints(projector: Projector, found: Projected) -> list[str]:
    """Name the joints whose gravity swings no more than what is left unexplained."""
    swing = evidence_of(projector, found).gravity.std(axis=0)
    left = torque_errors(projector, found)
    names = projector.structure.arm.coordinate_names
    return [x for x, bad in zip(names, swing < 3.0 * left, strict=True) if bad]


def _reversals(projector: Projector, found: Projected, guess: Point) -> tuple[str, ...]:
    names = projector.structure.arm.coordinate_names
    return tuple(
        f"{name}: the sensor counts against the joint's direction."
        for j, name in enumerate(names)
        if found.point.alpha[j] * guess.alpha[j] < 0.0
    )


def _frictions(projector: Projector, found: Projected) -> tuple[str, ...]:
    rubbing = rubbing_joints(projector, found)
    return tuple(friction_note(*item) for item in rubbing.items())


def rubbing_joints(projector: Projector, found: Projected) -> dict[str, float]:
    """Joints whose motors work against little but dry friction, and how much of it."""
    known = projector.structure
    dry = known.parameters(found.values[:-1])[10 * len(known.arm.links) + 2 :: 4]
    usual = np.sqrt(np.mean(projector.sensed.tau**2, axis=0))
    loads = np.abs(known.drive_weights) @ usual
    joints = np.abs(known.drive_weights).argmax(axis=1)
    return {
        known.arm.coordinate_names[j]: abs(float(friction))
        for j, friction, load in zip(joints, dry, loads, strict=True)
        if abs(friction) > 0.9 * load
    }


def friction_note(joint: str, friction: float) -> str:
    """What to say of such a joint."""
    return (
        f"{joint}: dry friction of {friction:.3g} is most of its torque; gravity "
        "hardly shows."
    )
