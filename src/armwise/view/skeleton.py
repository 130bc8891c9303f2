"""An arm as bones between its joints, for links nobody drew."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, Joint
from armwise.view.colors import AXIS, BONES, DRUM
from armwise.view.forms import Ball, Block, Rod, Solid, pose_along, rotation_to

if TYPE_CHECKING:
    from jaxtyping import Float

THICKNESS = 0.022
"""Radius of a bone, as a share of the arm's length."""

SHORTEST = 1e-6
"""In [m]: points nearer than this are one point."""


def arm_length(arm: Arm) -> float:
    """Sum of the distances from joint to joint, along the longest branch, in [m]."""
    reach = [0.0] * len(arm.joints)
    longest = 0.0
    for i, joint in enumerate(arm.joints):
        before = 0.0 if joint.parent == BASE else reach[joint.parent]
        start = np.zeros(3) if joint.parent == BASE else arm.joints[joint.parent].anchor
        reach[i] = before + float(np.linalg.norm(_on_parent(joint) - start))
        tips = [np.linalg.norm(tip - joint.anchor) for tip in _tips(arm, i)]
        longest = max(longest, reach[i] + float(max(tips, default=0.0)))
    return longest if longest > SHORTEST else 1.0


def bones_of(arm: Arm, link: int) -> list[Solid]:
    """Return a link as rods from its own joint to the next ones and to its tips.

    The base stands on a foot.
    """
    start = np.zeros(3) if link == BASE else arm.joints[link].anchor
    ends = [_on_parent(joint) for joint in arm.joints if joint.parent == link]
    ends += _tips(arm, link)
    radius = THICKNESS * arm_length(arm)
    foot = [Solid(Rod(3 * radius, radius), BASE, np.eye(4), DRUM, "skeleton", arm.base)]
    return (foot if link == BASE else []) + [
        Solid(
            Rod(radius, float(np.linalg.norm(end - start)), is_round=True),
            link,
            pose_along(start, end),
            BONES[link % len(BONES)],
            "skeleton",
            arm.base if link == BASE else arm.links[link].name,
        )
        for end in ends
        if np.linalg.norm(end - start) > SHORTEST
    ]


def joints_of(arm: Arm) -> list[Solid]:
    """Return every joint as what it is: a drum that turns, a block that slides."""
    radius = 1.6 * THICKNESS * arm_length(arm)
    solids = []
    for i, joint in enumerate(arm.joints):
        width = 2 * radius
        drum = Rod(radius, 2.4 * radius)
        form = drum if joint.is_revolute else Block((width, width, 1.5 * width))
        solids.append(Solid(form, i, _axis_pose(joint), DRUM, "skeleton", joint.name))
    return solids


def axes_of(arm: Arm) -> list[Solid]:
    """Return every joint's axis as a thin line that ends where it points."""
    length = 0.16 * arm_length(arm)
    solids = []
    for i, joint in enumerate(arm.joints):
        tip = joint.anchor + length * joint.axis
        thin = Rod(0.05 * length, 2 * length)
        ball = Ball((0.12 * length,) * 3)
        end = np.eye(4)
        end[:3, 3] = tip
        solids.append(Solid(thin, i, _axis_pose(joint), AXIS, "axes", joint.name))
        solids.append(Solid(ball, i, end, AXIS, "axes", joint.name))
    return solids


def _tips(arm: Arm, link: int) -> list[Float[np.ndarray, " 3"]]:
    """Places a link reaches to that carry no joint; of a last link never nothing."""
    if link == BASE:
        return []
    named = [frame.pose[:3, 3] for frame in arm.frames if frame.link == link]
    start = arm.joints[link].anchor
    far = [tip for tip in named if np.linalg.norm(tip - start) > SHORTEST]
    is_last = all(joint.parent != link for joint in arm.joints)
    if is_last and not far and arm.links[link].inertia.mass > 0:
        return [arm.links[link].inertia.center_of_mass]
    return far if is_last else []


def _on_parent(joint: Joint) -> Float[np.ndarray, " 3"]:
    """A point of a joint's axis, in the frame of the link that carries it."""
    point: np.ndarray = joint.origin[:3, :3] @ joint.anchor + joint.origin[:3, 3]
    return point


def _axis_pose(joint: Joint) -> Float[np.ndarray, "4 4"]:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation_to(joint.axis), joint.anchor
    return T
