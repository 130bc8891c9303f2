"""Writer of SDF: a complete file, as Gazebo reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms.arm import Arm, Frame, Joint, Shape
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE
from armwise.arms.poses import pose, rpy_from_rotation
from armwise.arms.writers.link_inertia import divide_inertia, frames_on
from armwise.arms.writers.urdf import number, numbers
from armwise.arms.writers.xml_edit import quoteattr

if TYPE_CHECKING:
    from jaxtyping import Float

_WORLD = "world"
"""What everything stands on in SDF: no link may have that name, as roots of URDF do."""

# SDF has no word for infinity; Gazebo takes this for no limit.
_UNBOUNDED = 1e16


def sdf_text(arm: Arm) -> str:
    """Return the arm as SDF 1.11; rotor inertias and couplings have no place in it."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<sdf version="1.11">']
    arm = _distinct(arm)
    inside = [f"<link name={quoteattr(arm.base)}>"]
    inside += _indented(_solids(arm.base_shapes))
    inside += [
        "</link>",
        *_joint_to_world(arm),
        *_frames(arm.base, frames_on(arm, BASE)),
    ]
    for i in range(len(arm.joints)):
        inside += _moving_link(arm, i)
    gravity = f"<gravity>{numbers(arm.gravity)}</gravity>"
    lines += ['  <world name="armwise">', f"    {gravity}"]
    lines += [f"    <model name={quoteattr(arm.name)}>"]
    lines += [f"      {line}" for line in inside]
    return "\n".join([*lines, "    </model>", "  </world>", "</sdf>", ""])


def _distinct(arm: Arm) -> Arm:
    """The arm with names that all differ, as SDF asks; joints keep theirs.

    A URDF's link and joint, or an MJCF's site and joint, may have the same name.
    """
    taken = {_WORLD, *(joint.name for joint in arm.joints)}

    def name(own: str, kind: str) -> str:
        while own in taken:
            own = f"{own}_{kind}"
        taken.add(own)
        return own

    base = name(arm.base, "base")
    links = tuple(replace(x, name=name(x.name, "link")) for x in arm.links)
    frames = tuple(replace(x, name=name(x.name, "frame")) for x in arm.frames)
    return replace(arm, base=base, links=links, frames=frames)


def _joint_to_world(arm: Arm) -> list[str]:
    return [
        f'<joint name={quoteattr(f"{arm.base}_to_world")} type="fixed">',
        f"  <parent>{_WORLD}</parent>",
        f"  <child>{_text(arm.base)}</child>",
        "</joint>",
    ]


def _moving_link(arm: Arm, i: int) -> Iterator[str]:
    joint, link = arm.joints[i], arm.links[i]
    division = divide_inertia(link.inertia, frames_on(arm, i))
    parent = arm.base if joint.parent == BASE else arm.links[joint.parent].name
    yield f"<link name={quoteattr(link.name)}>"
    yield f"  {_pose(joint.origin, parent)}"
    yield from _indented(_inertial(division.own))
    yield from _indented(_solids(link.shapes))
    yield "</link>"
    yield from _joint(arm, joint, parent, link.name)
    yield from _frames(link.name, division.frames)


def _joint(arm: Arm, joint: Joint, parent: str, child: str) -> Iterator[str]:
    limits, drive = joint.limits, joint.drive
    yield f'<joint name={quoteattr(joint.name)} type="{joint.kind}">'
    # A joint's frame is its child's: moved to a point of the axis.
    if np.any(joint.anchor):
        yield f"  {_pose(pose(None, joint.anchor), child)}"
    yield f"  <parent>{_text(parent)}</parent>"
    yield f"  <child>{_text(child)}</child>"
    yield "  <axis>"
    yield f"    <xyz>{numbers(joint.axis)}</xyz>"
    yield "    <limit>"
    for name in ("lower", "upper", "effort", "velocity"):
        value = float(np.clip(getattr(limits, name), -_UNBOUNDED, _UNBOUNDED))
        # A negative effort or speed is SDF's own way to say that there is no limit.
        if name in ("effort", "velocity") and not isfinite(getattr(limits, name)):
            value = -1.0
        yield f"      <{name}>{number(value)}</{name}>"
    yield "    </limit>"
    if drive.viscous or drive.coulomb:
        damping = f"<damping>{number(drive.viscous)}</damping>"
        friction = f"<friction>{number(drive.coulomb)}</friction>"
        yield f"    <dynamics>{damping}{friction}</dynamics>"
    if joint.mimic is not None:
        # SDF 1.11 has it; older parsers pass over what they do not know.
        mimic, leader = joint.mimic, arm.joints[joint.mimic.leader].name
        yield f"    <mimic joint={quoteattr(leader)}>"
        yield f"      <multiplier>{number(mimic.multiplier)}</multiplier>"
        yield f"      <offset>{number(mimic.offset)}</offset>"
        yield "      <reference>0</reference>"
        yield "    </mimic>"
    yield "  </axis>"
    yield "</joint>"


def _frames(carrier: str, frames: Sequence[Frame]) -> Iterator[str]:
    for frame in frames:
        if not np.any(frame.inertia.vector):
            attached = f"attached_to={quoteattr(carrier)}"
            yield f"<frame name={quoteattr(frame.name)} {attached}>"
            yield f"  {_pose(frame.pose, carrier)}"
            yield "</frame>"
            continue
        yield f"<link name={quoteattr(frame.name)}>"
        yield f"  {_pose(frame.pose, carrier)}"
        yield from _indented(_inertial(frame.inertia))
        yield "</link>"
        yield f'<joint name={quoteattr(frame.name + "_fixed")} type="fixed">'
        yield f"  <parent>{_text(carrier)}</parent>"
        yield f"  <child>{_text(frame.name)}</child>"
        yield "</joint>"


def _inertial(inertia: InertialParameters) -> Iterator[str]:
    if not np.any(inertia.vector):
        # SDF takes a link without inertia for one kilogram; it cannot have none.
        inertia = InertialParameters.from_center_of_mass(
            _LEAST, np.zeros(3), _LEAST * np.eye(3)
        )
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    central = inertia.central_inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    yield "<inertial>"
    yield f"  <pose>{numbers(inertia.center_of_mass)} 0 0 0</pose>"
    yield f"  <mass>{number(inertia.mass)}</mass>"
    entries = zip(names, central, strict=True)
    values = "".join(f"<{n}>{number(x)}</{n}>" for n, x in entries)
    yield f"  <inertia>{values}</inertia>"
    yield "</inertial>"


# Judgement: a microgram changes no torque that a sensor could show.
_LEAST = 1e-9


def _solids(shapes: tuple[Shape, ...]) -> Iterator[str]:
    for k, shape in enumerate(shapes):
        kind = "visual" if shape.kind == "mesh" else "collision"
        yield f'<{kind} name="{kind}_{k}">'
        yield f"  {_pose(shape.pose, None)}"
        yield f"  <geometry>{_solid(shape)}</geometry>"
        yield f"</{kind}>"


def _solid(shape: Shape) -> str:
    match shape.kind:
        case "sphere":
            inside = f"<radius>{number(shape.size[0])}</radius>"
        case "box":
            inside = f"<size>{numbers(shape.size)}</size>"
        case "mesh":
            uri = f"<uri>{_text(shape.mesh or '')}</uri>"
            inside = f"{uri}<scale>{numbers(shape.size)}</scale>"
        case _:
            radius, length = shape.size
            inside = (
                f"<radius>{number(radius)}</radius><length>{number(length)}</length>"
            )
    return f"<{shape.kind}>{inside}</{shape.kind}>"


def _pose(T: Float[np.ndarray, "4 4"], relative_to: str | None) -> str:
    values = numbers([*T[:3, 3], *rpy_from_rotation(T[:3, :3])])
    to = "" if relative_to is None else f" relative_to={quoteattr(relative_to)}"
    return f"<pose{to}>{values}</pose>"


def _text(name: str) -> str:
    # quoteattr's escapes, without its quotes.
    return quoteattr(name)[1:-1]


def _indented(lines: Iterator[str]) -> list[str]:
    return [f"  {line}" for line in lines]
