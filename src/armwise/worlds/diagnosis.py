"""Diagnosis of worlds that cannot run: step too large, contradictory constraints."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from armwise.arms import BASE, Arm
from armwise.errors import ArgumentError
from armwise.plants import Integrator
from armwise.worlds.articulated import ArticulatedBody
from armwise.worlds.constraints import Relation
from armwise.worlds.engine import WorldEngine
from armwise.worlds.rigid import RigidBody
from armwise.worlds.world import World


def check_step(world: World, integrator: Integrator, step: float) -> None:
    """Refuse a step too large for the briskest constraint."""
    if not (np.isfinite(step) and step > 0):
        raise ArgumentError(f"The step must be a positive time in [s], not {step!r}.")
    for relation in world.relations:
        # The stabilised deviation has a double pole at −λ: an explicit method is stable
        # only while λh lies within its region.
        if relation.frequency * step > integrator.stability_limit:
            largest = integrator.stability_limit / relation.frequency
            raise ArgumentError(
                f"The step {step:g} s is too large for the constraint "
                f"{relation.name!r} with the frequency {relation.frequency:g} 1/s. "
                f"Use at most {largest:.3g} s, or a lower frequency."
            )


def contradiction(world: World) -> str | None:
    """Name constraints that no state can fulfil, or return None."""
    nails = [r for r in world.relations if _is_nail(r)]
    for relation in nails:
        body = world.body(relation.points[0].body)
        if not isinstance(body, ArticulatedBody) or body.base is not None:
            continue
        # A constraint that may break is allowed to be impossible: it will break.
        if np.isinf(relation.max_deviation):
            sentence = _out_of_reach(body, relation)
            if sentence:
                return sentence
    for one, other in combinations(nails, 2):
        if one.points[0].body != other.points[0].body:
            continue
        if isinstance(world.body(one.points[0].body), RigidBody):
            sentence = _stretched(one, other)
            if sentence and np.isinf(min(one.max_deviation, other.max_deviation)):
                return sentence
    return None


def unsatisfied(
    engine: WorldEngine, residual: np.ndarray, deviation: np.ndarray
) -> str:
    """Name the constraints whose equation no force solves."""
    sizes = {
        name: float(np.linalg.norm(residual[rows]))
        for name, rows in engine.layout.rows.items()
        if name not in engine.broken
    }
    worst = sorted(sizes, key=lambda name: -sizes[name])[:2]
    # The second is named only if it has a part in it.
    worst = [name for name in worst if sizes[name] > 0.1 * sizes[worst[0]]]
    names = " and ".join(f"{name!r}" for name in worst)
    rows = engine.layout.rows[worst[0]]
    gap = float(np.linalg.norm(deviation[rows]))
    return (
        f"the constraint{'s' if len(worst) > 1 else ''} {names} cannot be fulfilled: "
        f"no force closes the remaining {gap:.3g} m. They contradict each other or "
        "a target is out of reach. Move the target, remove one, or give them a "
        "max_deviation at which to break"
    )


def _is_nail(relation: Relation) -> bool:
    return (
        len(relation.points) == 1
        and len(relation.directions) == 3
        and not (relation.is_moving or relation.is_velocity)
    )


def _stretched(one: Relation, other: Relation) -> str | None:
    inside = float(np.linalg.norm(np.subtract(one.points[0].at, other.points[0].at)))
    outside = float(np.linalg.norm(np.subtract(one.fixed_target, other.fixed_target)))
    # Lengths typed by hand, such as 0.7071068, agree to six digits.
    if abs(inside - outside) <= 1e-6 * max(inside, outside, 1e-9):
        return None
    return (
        f"the constraints {one.name!r} and {other.name!r} contradict each other: their "
        f"points on {one.points[0].body!r} are {inside:.4g} m apart, their nails "
        f"{outside:.4g} m. Move a nail or a point"
    )


def _out_of_reach(body: ArticulatedBody, relation: Relation) -> str | None:
    """Compare a nail's distance from the first joint with the stretched chain."""
    point = relation.points[0]
    assert point.link is not None
    link, T = body.arm.find_frame(point.link)
    if link == BASE:
        return None
    local = T[:3, :3] @ np.asarray(point.at) + T[:3, 3]
    reach, root = _reach(body.arm, link, local)
    if not np.isfinite(reach):
        return None
    first = (body.pose @ np.append(root, 1.0))[:3]
    distance = float(np.linalg.norm(np.subtract(relation.fixed_target, first)))
    # A stretched chain that just reaches must not fail by rounding.
    if distance <= reach * (1 + 1e-9):
        return None
    return (
        f"the nail of {relation.name!r} is out of reach: it is {distance:.4g} m from "
        f"the first joint of {body.name!r}, which reaches {reach:.4g} m. Move the nail "
        "or the arm"
    )


def _reach(arm: Arm, link: int, local: np.ndarray) -> tuple[float, np.ndarray]:
    """Return an upper bound of a point's distance from the first joint's axis point."""
    length = float(np.linalg.norm(local - arm.joints[link].anchor))
    i = link
    while arm.joints[i].parent != BASE:
        joint, carrier = arm.joints[i], arm.joints[arm.joints[i].parent]
        # A slide has no bounded reach: nothing can be said.
        if not joint.is_revolute:
            return np.inf, np.zeros(3)
        axis_point = joint.origin[:3, :3] @ joint.anchor + joint.origin[:3, 3]
        length += float(np.linalg.norm(axis_point - carrier.anchor))
        i = joint.parent
    root = arm.joints[i]
    if not root.is_revolute:
        return np.inf, np.zeros(3)
    return length, root.origin[:3, :3] @ root.anchor + root.origin[:3, 3]
