"""Part of an arm: joints locked where they are, or all but one chain of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms.arm import Arm, Frame, Joint, Link, Mimic
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE
from armwise.arms.writers.link_inertia import divide_inertia
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


def with_locked_joints(arm: Arm, positions: Mapping[str, float]) -> Arm:
    """Return the arm with joints held in place and what they carry merged.

    A link behind a locked joint becomes a frame, with its inertia, of the link (or
    base) that now carries it: the same as if the file had a fixed joint there. Joints
    that follow a locked one are locked with it.

    Args:
        arm: The arm.
        positions: Joint → where it is held, in [rad] or [m]. Joints that are locked
            already are passed over.

    Raises:
        ArgumentError: If a joint is unknown or follows another, a position is not
            finite, or no joint would be left to move.
    """
    requested = {k: v for k, v in positions.items() if k not in arm.locked}
    if not requested:
        return arm
    held = _held_positions(arm, requested)
    if all(i in held for i in arm.coordinates):
        raise ArgumentError(
            f"{arm.name}: every joint would be locked; leave at least one to move."
        )
    part = _Part(arm, held)
    coordinates = [k for k, i in enumerate(arm.coordinates) if i not in held]
    couplings = [
        replace(coupling, weights=coupling.weights[coordinates])
        for coupling in arm.couplings
    ]
    return replace(
        arm,
        joints=tuple(part.joints),
        links=tuple(part.links),
        frames=tuple(part.frames),
        base_shapes=tuple(part.base_shapes),
        # A motor that only locked joints turn stands still.
        couplings=tuple(x for x in couplings if np.any(x.weights)),
        locked={**arm.locked, **requested},
    )


def _held_positions(arm: Arm, wanted: Mapping[str, float]) -> dict[int, float]:
    """Positions of every joint that is held, followers among them, by index."""
    names = [joint.name for joint in arm.joints]
    held: dict[int, float] = {}
    for name, position in wanted.items():
        if name not in names:
            raise ArgumentError(
                f"{arm.name} has no joint {name!r} to lock. "
                f"It has: {', '.join(arm.coordinate_names)}."
            )
        i = names.index(name)
        if (mimic := arm.joints[i].mimic) is not None:
            raise ArgumentError(
                f"{arm.name}: {name!r} follows {names[mimic.leader]!r}; lock that one."
            )
        if not np.isfinite(position):
            raise ArgumentError(f"{name!r} cannot be locked at {position}.")
        _require_in_range(arm, i, position)
        held[i] = float(position)
    for i, joint in enumerate(arm.joints):
        if joint.mimic is not None and joint.mimic.leader in held:
            mimic = joint.mimic
            held[i] = mimic.multiplier * held[mimic.leader] + mimic.offset
    return held


# Judgement: so far beyond its range a joint may stand for want of calibration.
_SLACK = 0.05
"""Fraction of a joint's range by which it may be locked outside of it."""


def _require_in_range(arm: Arm, index: int, position: float) -> None:
    joint = arm.joints[index]
    lower, upper = joint.limits.lower, joint.limits.upper
    slack = _SLACK * (upper - lower)
    if not lower - slack <= position <= upper + slack:
        raise ArgumentError(
            f"{arm.name}: {joint.name!r} cannot be locked at {position:g}, its range "
            f"is {lower:g} to {upper:g} {'rad' if joint.is_revolute else 'm'}."
        )


class _Part:
    """The arm that remains, as it grows outwards from the base."""

    def __init__(self, arm: Arm, held: Mapping[int, float]) -> None:
        self.joints: list[Joint] = []
        self.links: list[Link] = []
        self.frames: list[Frame] = [f for f in arm.frames if f.link == BASE]
        self.base_shapes = list(arm.base_shapes)
        # Old link → the new one (or the base) that carries it, and T_new_old.
        self._carrier: dict[int, tuple[int, Float[np.ndarray, "4 4"]]] = {
            BASE: (BASE, np.eye(4))
        }
        moving = [i for i in range(len(arm.joints)) if i not in held]
        self._index = {old: new for new, old in enumerate(moving)}
        for i, joint in enumerate(arm.joints):
            own = [frame for frame in arm.frames if frame.link == i]
            if i in held:
                self._merge(arm.links[i], joint, held[i], own, i)
            else:
                self._keep(arm.links[i], joint, own, i)

    def _keep(self, link: Link, joint: Joint, own: list[Frame], i: int) -> None:
        parent, T = self._carrier[joint.parent]
        mimic = joint.mimic and self._renumbered(joint.mimic)
        origin = T @ joint.origin
        self._carrier[i] = (self._index[i], np.eye(4))
        self.joints.append(replace(joint, parent=parent, origin=origin, mimic=mimic))
        self.links.append(link)
        self.frames += [replace(frame, link=self._index[i]) for frame in own]

    def _renumbered(self, mimic: Mimic) -> Mimic:
        return replace(mimic, leader=self._index[mimic.leader])

    def _merge(
        self, link: Link, joint: Joint, position: float, own: list[Frame], i: int
    ) -> None:
        carrier, T = self._carrier[joint.parent]
        T = T @ joint.pose(position)
        self._carrier[i] = (carrier, T)
        remainder, frames = divided(link.inertia, own)
        self.frames.append(Frame(link.name, carrier, T, remainder))
        self.frames += [replace(f, link=carrier, pose=T @ f.pose) for f in frames]
        shapes = tuple(replace(s, pose=T @ s.pose) for s in link.shapes)
        if carrier == BASE:
            self.base_shapes += shapes
            return
        old = self.links[carrier]
        self.links[carrier] = replace(
            old,
            inertia=old.inertia + link.inertia.transformed(T),
            shapes=(*old.shapes, *shapes),
        )


def divided(
    total: InertialParameters, frames: list[Frame]
) -> tuple[InertialParameters, list[Frame]]:
    """Divide a link's inertia: what it has itself, and what its frames have."""
    division = divide_inertia(total, frames)
    return division.own, list(division.frames)


# Which joints to lock, and where.


def rest_positions(arm: Arm, joints: Collection[str]) -> dict[str, float]:
    """Where the description shows joints, by name; within their limits."""
    pairs = zip(arm.coordinate_names, arm.rest.tolist(), strict=True)
    return {name: position for name, position in pairs if name in joints}


def outside_chain(arm: Arm, base: str, tip: str) -> dict[str, float]:
    """Joints that do not move the tip against the base, and where they are described.

    Args:
        arm: The arm.
        base, tip: Links or frames; the tip beyond the base, seen from the root.

    Raises:
        ArgumentError: If a name is unknown, or the tip is not beyond the base.
    """
    start, end = arm.find_frame(base)[0], arm.find_frame(tip)[0]
    path = []
    while end not in (start, BASE):
        path.append(end)
        end = arm.joints[end].parent
    if end != start:
        raise ArgumentError(
            f"{arm.name}: {tip!r} is not carried by {base!r}; a chain runs outwards "
            f"from its base. The root is {arm.base!r}."
        )
    if not path:
        raise ArgumentError(f"{arm.name}: no joint moves between {base!r} and {tip!r}.")
    mimics = {i: arm.joints[i].mimic for i in path}
    movers = {i if mimic is None else mimic.leader for i, mimic in mimics.items()}
    others = [arm.joints[i].name for i in arm.coordinates if i not in movers]
    return rest_positions(arm, others)
