"""Write an arm as a complete MJCF."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

import numpy as np

from armwise.arms.arm import BASE, Arm, Joint
from armwise.arms.inertia import InertialParameters
from armwise.arms.mjcf import OFFSET
from armwise.arms.shapes import Shape
from armwise.arms.share import frames_on, share_inertia
from armwise.arms.urdf_write import number, numbers

if TYPE_CHECKING:
    from jaxtyping import Float


def mjcf_text(arm: Arm) -> str:
    """Return the arm as MJCF, for MuJoCo to simulate."""
    # Inertias go as they are: MuJoCo must neither balance nor infer them.
    compiler = 'angle="radian" autolimits="true" inertiafromgeom="false"'
    lines = [f"<mujoco model={quoteattr(arm.name)}>"]
    lines += [f"  <compiler {compiler}/>"]
    lines += [f'  <option gravity="{numbers(arm.gravity)}"/>']
    lines += ["  <worldbody>", *_indented(_geoms(arm.base_shapes), 2)]
    lines += _indented(_fixed(arm, BASE, True), 2)
    lines += _bodies(arm)
    lines += ["  </worldbody>"]
    lines += _section("equality", list(_mimics(arm)))
    lines += _section("custom", list(_offsets(arm)))
    return "\n".join([*lines, "</mujoco>", ""])


def inertial_attributes(inertia: InertialParameters) -> dict[str, str]:
    """Return what <inertial> says of a body: pos, mass and fullinertia."""
    central = inertia.central_inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
    return {
        "pos": numbers(inertia.center_of_mass),
        "mass": number(inertia.mass),
        "fullinertia": numbers(central),
    }


def drive_attributes(joint: Joint) -> dict[str, str]:
    """Return what <joint> says of a drive: damping, frictionloss and armature."""
    return {
        "damping": number(joint.drive.viscous),
        "frictionloss": number(joint.drive.coulomb),
        "armature": number(joint.drive.rotor_inertia),
    }


def _bodies(arm: Arm) -> list[str]:
    """Nest the bodies, children inside parents, without recursion."""
    children: dict[int, list[int]] = {}
    for i, joint in enumerate(arm.joints):
        children.setdefault(joint.parent, []).append(i)
    lines: list[str] = []
    todo: list[tuple[int, int] | str] = []
    todo += [(i, 2) for i in reversed(children.get(BASE, []))]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            lines.append(item)
            continue
        i, depth = item
        lines += _indented(_body(arm, i), depth)
        todo.append("  " * depth + "</body>")
        todo += [(k, depth + 1) for k in reversed(children.get(i, []))]
    return lines


def _body(arm: Arm, i: int) -> Iterator[str]:
    joint, link = arm.joints[i], arm.links[i]
    shares = share_inertia(link.inertia, frames_on(arm, i))
    yield f"<body name={quoteattr(link.name)} {_place(joint.origin)}>"
    yield f"  {_joint(joint)}"
    if np.any(shares.own.vector):
        yield f"  {_inertial(shares.own)}"
    yield from (f"  {line}" for line in _geoms(link.shapes))
    yield from (f"  {line}" for line in _fixed(arm, i, shares.keeps_frames))


def _joint(joint: Joint) -> str:
    kind = "hinge" if joint.is_revolute else "slide"
    words = [f'name={quoteattr(joint.name)} type="{kind}"']
    words += [f'axis="{numbers(joint.axis)}"']
    if np.any(joint.anchor):
        words += [f'pos="{numbers(joint.anchor)}"']
    limits = joint.limits
    if (limits.lower, limits.upper) != (-inf, inf):
        pair = np.clip((limits.lower, limits.upper), -1e300, 1e300)
        words += [f'range="{numbers(pair)}"']
    if limits.effort != inf:
        words += [f'actuatorfrcrange="{numbers((-limits.effort, limits.effort))}"']
    drive = drive_attributes(joint)
    words += [f'{name}="{text}"' for name, text in drive.items() if text != "0"]
    return f"<joint {' '.join(words)}/>"


def _inertial(inertia: InertialParameters) -> str:
    values = inertial_attributes(inertia).items()
    words = " ".join(f'{name}="{text}"' for name, text in values)
    return f"<inertial {words}/>"


def _fixed(arm: Arm, i: int, keeps: bool) -> Iterator[str]:
    for frame in frames_on(arm, i):
        place = f"name={quoteattr(frame.name)} {_place(frame.pose)}"
        if not np.any(frame.inertia.vector):
            yield f"<site {place}/>"
        elif keeps:
            yield f"<body {place}>{_inertial(frame.inertia)}</body>"
        else:
            yield f"<body {place}/>"


def _geoms(shapes: tuple[Shape, ...]) -> Iterator[str]:
    for shape in shapes:
        size = {
            "sphere": shape.size,
            "capsule": (shape.size[0], shape.size[-1] / 2),
            "cylinder": (shape.size[0], shape.size[-1] / 2),
            "box": tuple(x / 2 for x in shape.size),
        }.get(shape.kind)
        if size is not None:  # a mesh's file is not ours to find
            place = _place(shape.pose)
            yield f'<geom type="{shape.kind}" size="{numbers(size)}" {place}/>'


def _mimics(arm: Arm) -> Iterator[str]:
    for joint in arm.joints:
        if (mimic := joint.mimic) is not None:
            pair = f"joint1={quoteattr(joint.name)} "
            pair += f"joint2={quoteattr(arm.joints[mimic.leader].name)}"
            rule = numbers((mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0))
            yield f'<joint {pair} polycoef="{rule}"/>'


def _offsets(arm: Arm) -> Iterator[str]:
    for joint in arm.joints:
        if joint.drive.offset:
            name = quoteattr(OFFSET + joint.name)
            yield f'<numeric name={name} data="{number(joint.drive.offset)}"/>'


def _place(T: Float[np.ndarray, "4 4"]) -> str:
    return f'pos="{numbers(T[:3, 3])}" quat="{numbers(quaternion(T[:3, :3]))}"'


def quaternion(R: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, " 4"]:
    """Return the unit quaternion (w, x, y, z) of a rotation, w not negative."""
    x, y, z = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K = np.empty((4, 4))
    K[0, 0], K[0, 1:] = np.trace(R), (x, y, z)
    K[1:, 0] = K[0, 1:]
    K[1:, 1:] = R + R.T - np.trace(R) * np.eye(3)
    # The eigenvector of the largest eigenvalue: exact even where the trace vanishes.
    q = np.linalg.eigh(K)[1][:, -1]
    q = np.where(np.abs(q) < 1e-15, 0.0, q)
    signed: np.ndarray = q * (np.sign(q[np.flatnonzero(q)[0]]) or 1.0)
    return signed


def _section(tag: str, inside: list[str]) -> list[str]:
    if not inside:
        return []
    return [f"  <{tag}>", *_indented(inside, 2), f"  </{tag}>"]


def _indented(lines: Iterator[str] | list[str], depth: int) -> list[str]:
    return ["  " * depth + line for line in lines]
