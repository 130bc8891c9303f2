"""Writer of URDF: a complete file, or new numbers in an old one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms.arm import Arm, Frame, Joint, Limits, Shape
from armwise.arms.chain import with_locked_joints
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE, DRIVE_NAMES
from armwise.arms.poses import pose, rpy_from_rotation
from armwise.arms.readers.urdf import (
    ANCHOR,
    EXTENSION,
    GRAVITY,
    UNBOUNDED,
    read_origin,
    read_urdf,
)
from armwise.arms.readers.xml import Element
from armwise.arms.writers.link_inertia import (
    divide_inertia,
    frames_on,
    require_writable,
)
from armwise.arms.writers.xml_edit import Editor, quoteattr
from armwise.errors import ArmError

if TYPE_CHECKING:
    from jaxtyping import Float


def urdf_text(arm: Arm) -> str:
    """Return the arm as URDF; what URDF cannot say goes into <armwise> elements."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>']
    lines += [f"<robot name={quoteattr(arm.name)}>"]
    lines += [f"  <!-- {_comment(x)} -->" for x in arm.defects().items()]
    lines += _indented(extension_lines(arm))
    lines += _indented(_link(arm.base, InertialParameters.zero(), arm.base_shapes))
    lines += _indented(_fixed_links(arm.base, frames_on(arm, BASE)))
    for i in range(len(arm.joints)):
        lines += _indented(_moving_link(arm, i))
    return "\n".join([*lines, "</robot>", ""])


def number(value: float) -> str:
    """Write a number so that reading it gives back the very same one."""
    # repr is the shortest text that reads back exactly; + 0.0 turns −0.0 into 0.0.
    return repr(float(value) + 0.0).removesuffix(".0")


def numbers(values: Iterable[float]) -> str:
    """Write several numbers, separated by blanks."""
    return " ".join(number(value) for value in values)


def extension_lines(arm: Arm) -> list[str]:
    """Write gravity and couplings, where they differ from what readers assume."""
    is_standard = np.array_equal(arm.gravity, GRAVITY)
    if is_standard and not arm.couplings:
        return []
    head = "" if is_standard else f' gravity="{numbers(arm.gravity)}"'
    if not arm.couplings:
        return [f"<{EXTENSION}{head}/>"]
    lines = [f"<{EXTENSION}{head}>"]
    for coupling in arm.couplings:
        drive = zip(DRIVE_NAMES, coupling.drive.vector, strict=True)
        values = "".join(f' {name}="{number(value)}"' for name, value in drive)
        lines.append(f"  <coupling name={quoteattr(coupling.name)}{values}>")
        for joint, weight in zip(arm.coordinate_names, coupling.weights, strict=True):
            if weight:
                value = f'value="{number(weight)}"'
                lines.append(f"    <weight joint={quoteattr(joint)} {value}/>")
        lines.append("  </coupling>")
    return [*lines, f"</{EXTENSION}>"]


def inertial_lines(inertia: InertialParameters) -> list[str]:
    """Write an <inertial>: centre of mass, and inertia about it in link axes."""
    if not np.any(inertia.vector):
        return []
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    central = inertia.central_inertia[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    entries = (f'{n}="{number(x)}"' for n, x in zip(names, central, strict=True))
    return [
        "<inertial>",
        f'  <origin xyz="{numbers(inertia.center_of_mass)}" rpy="0 0 0"/>',
        f'  <mass value="{number(inertia.mass)}"/>',
        f"  <inertia {' '.join(entries)}/>",
        "</inertial>",
    ]


def _moving_link(arm: Arm, i: int) -> Iterator[str]:
    joint, link = arm.joints[i], arm.links[i]
    division = divide_inertia(link.inertia, frames_on(arm, i))
    parent = arm.base if joint.parent == BASE else arm.links[joint.parent].name
    if joint.is_revolute and np.any(joint.anchor):
        # URDF's joints turn about the origin of their child: put a massless link there.
        axis_link = _unused(f"{link.name}_axis", arm)
        yield from _link(axis_link, InertialParameters.zero(), ())
        at = joint.origin @ pose(None, joint.anchor)
        yield from _joint(arm, joint, parent, axis_link, at)
        yield from _link(link.name, division.own, link.shapes)
        back = pose(None, -joint.anchor)
        name = f"{joint.name}_anchor"
        yield from _fixed(name, axis_link, link.name, back, [f"  <{ANCHOR}/>"])
    else:
        yield from _link(link.name, division.own, link.shapes)
        yield from _joint(arm, joint, parent, link.name, joint.origin)
    yield from _fixed_links(link.name, division.frames)


def _unused(name: str, arm: Arm) -> str:
    taken = {arm.base, *(x.name for x in arm.links), *(x.name for x in arm.frames)}
    # Link names are unique in a URDF; an underscore more is always free in the end.
    while name in taken:
        name += "_"
    return name


def _fixed_links(carrier: str, frames: Sequence[Frame]) -> Iterator[str]:
    for frame in frames:
        yield from _link(frame.name, frame.inertia, ())
        yield from _fixed(_fixed_name(frame), carrier, frame.name, frame.pose, [])


def _fixed_name(frame: Frame) -> str:
    return f"{frame.name}_fixed"


def _link(
    name: str, inertia: InertialParameters, shapes: Iterable[Shape]
) -> Iterator[str]:
    inside = [*inertial_lines(inertia)]
    for shape in shapes:
        inside += _shape(shape)
    if not inside:
        yield f"<link name={quoteattr(name)}/>"
        return
    yield f"<link name={quoteattr(name)}>"
    yield from _indented(inside)
    yield "</link>"


def _joint(
    arm: Arm, joint: Joint, parent: str, child: str, at: Float[np.ndarray, "4 4"]
) -> Iterator[str]:
    limits, drive = joint.limits, joint.drive
    endless = limits.lower == -inf and limits.upper == inf
    # "revolute" requires limits, and readers take missing ones as zero.
    kind = "continuous" if joint.is_revolute and endless else joint.kind
    yield f'<joint name={quoteattr(joint.name)} type="{kind}">'
    yield f"  <parent link={quoteattr(parent)}/>"
    yield f"  <child link={quoteattr(child)}/>"
    yield f"  {_origin(at)}"
    yield f'  <axis xyz="{numbers(joint.axis)}"/>'
    yield f"  {_limit(limits, kind)}"
    if drive.viscous or drive.coulomb:
        friction = f'friction="{number(drive.coulomb)}"'
        yield f'  <dynamics damping="{number(drive.viscous)}" {friction}/>'
    if joint.mimic is not None:
        leader = quoteattr(arm.joints[joint.mimic.leader].name)
        multiplier = number(joint.mimic.multiplier)
        offset = number(joint.mimic.offset)
        rule = f'multiplier="{multiplier}" offset="{offset}"'
        yield f"  <mimic joint={leader} {rule}/>"
    if drive.rotor_inertia or drive.offset:
        values = f'offset="{number(drive.offset)}"'
        yield f'  <{EXTENSION} rotor_inertia="{number(drive.rotor_inertia)}" {values}/>'
    yield "</joint>"


def _fixed(
    name: str,
    parent: str,
    child: str,
    at: Float[np.ndarray, "4 4"],
    inside: list[str],
) -> Iterator[str]:
    yield f'<joint name={quoteattr(name)} type="fixed">'
    yield f"  <parent link={quoteattr(parent)}/>"
    yield f"  <child link={quoteattr(child)}/>"
    yield f"  {_origin(at)}"
    yield from inside
    yield "</joint>"


def _limit(limits: Limits, kind: str) -> str:
    values = {"effort": limits.effort, "velocity": limits.velocity}
    if kind != "continuous":
        values |= {"lower": limits.lower, "upper": limits.upper}
    if isfinite(limits.acceleration):
        values["acceleration"] = limits.acceleration
    bounded = {k: float(np.clip(v, -UNBOUNDED, UNBOUNDED)) for k, v in values.items()}
    entries = (f'{name}="{number(value)}"' for name, value in bounded.items())
    return f"<limit {' '.join(entries)}/>"


def _origin(T: Float[np.ndarray, "4 4"]) -> str:
    rpy = numbers(rpy_from_rotation(T[:3, :3]))
    return f'<origin xyz="{numbers(T[:3, 3])}" rpy="{rpy}"/>'


def _shape(shape: Shape) -> list[str]:
    # A mesh is only shown: readers that collide would have to find its file.
    kind = "visual" if shape.kind == "mesh" else "collision"
    lines = []
    for solid, T in _solids(shape):
        geometry = f"  <geometry>{solid}</geometry>"
        lines += [f"<{kind}>", f"  {_origin(T)}", geometry, f"</{kind}>"]
    return lines


def _solids(shape: Shape) -> list[tuple[str, Float[np.ndarray, "4 4"]]]:
    T = shape.pose
    match shape.kind:
        case "sphere":
            return [(f'<sphere radius="{number(shape.size[0])}"/>', T)]
        case "box":
            return [(f'<box size="{numbers(shape.size)}"/>', T)]
        case "mesh":
            file, scale = quoteattr(shape.mesh or ""), numbers(shape.size)
            return [(f'<mesh filename={file} scale="{scale}"/>', T)]
    radius, length = shape.size
    solid = f'<cylinder radius="{number(radius)}" length="{number(length)}"/>'
    if shape.kind == "cylinder":
        return [(solid, T)]
    # Few readers know capsules.
    ball = f'<sphere radius="{number(radius)}"/>'
    ends = [T @ pose(None, (0.0, 0.0, z)) for z in (-length / 2, length / 2)]
    return [(solid, T), (ball, ends[0]), (ball, ends[1])]


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _comment(defect: tuple[str, str]) -> str:
    name, why = defect
    # Two hyphens would end an XML comment.
    return f"{name}: no body has this inertia: {why}".replace("--", "- -")


# New numbers in an existing URDF.


def fill_urdf(
    arm: Arm, path: Path, data: bytes, root: Element, *, allow_unphysical: bool = False
) -> tuple[bytes, tuple[str, ...]]:
    """Return the template with the arm's numbers in it, and notes for the user.

    Args:
        arm: What to write.
        path: Where the template came from, for messages.
        data: Its bytes.
        root: Its root element.
        allow_unphysical: Write negative masses and moments all the same.
    """
    # The template may hold what is to be repaired.
    before = template_arm(arm, read_urdf(path, root=root, allow_unphysical=True), path)
    changed = changed_links(arm, before)
    require_writable(arm, changed, allow_unphysical)
    links = {link.attributes["name"]: link for link in root.all("link")}
    joints = {joint.attributes["name"]: joint for joint in root.all("joint")}
    filler = _Filler(arm, before, Editor(data), links)
    notes = [note for i in changed if (note := filler.put_inertia(i))]
    for joint, old in zip(arm.joints, before.joints, strict=True):
        _put_drive(filler.editor, joints[joint.name], joint, old)
    _put_extension(filler.editor, root, arm, before)
    return filler.editor.result(), tuple(notes)


def template_arm(arm: Arm, template: Arm, path: Path) -> Arm:
    """A template's arm, held as the arm is; other joints or links are refused."""
    # Those that a template of another arm lacks are not what is wrong with it.
    own = {joint.name for joint in template.joints}
    held = {name: x for name, x in arm.locked.items() if name in own}
    template = with_locked_joints(template, held)
    for what in ("joints", "links"):
        names = [x.name for x in getattr(arm, what)]
        expected = [x.name for x in getattr(template, what)]
        if names != expected:
            raise ArmError(
                f"{path} is no template for {arm.name}: its {what} are "
                f"{', '.join(expected[:10])}, not {', '.join(names[:10])}. Give the "
                "file the arm was loaded from."
            )
    return template


def changed_links(arm: Arm, before: Arm) -> list[int]:
    """List the links whose inertia is not the template's."""
    pairs = zip(arm.links, before.links, strict=True)
    return [i for i, (new, old) in enumerate(pairs) if new.inertia != old.inertia]


@dataclass(frozen=True)
class _Filler:
    """Where inertias go: the arm, the template's arm, its text and its links."""

    arm: Arm
    before: Arm
    editor: Editor
    links: Mapping[str, Element]

    def put_inertia(self, i: int) -> str | None:
        """Write one moving link, and less into those fixed to it if that must be."""
        link, frames = self.arm.links[i], frames_on(self.before, i)
        division = divide_inertia(link.inertia, frames)
        self._put(link.name, division.own)
        if division.fraction == 1.0:
            return None
        for frame, old in zip(division.frames, frames, strict=True):
            if np.any(old.inertia.vector):
                self._put(frame.name, frame.inertia)
        return division.note(link.name)

    def _put(self, name: str, inertia: InertialParameters) -> None:
        link = self.links[name]
        inertial = link.find("inertial")
        if inertial is None:
            if lines := inertial_lines(inertia):
                self.editor.insert(link, lines)
            return
        # The file's own axes for the inertia stay: only the numbers change.
        R = read_origin(inertial)[:3, :3]
        central = R.T @ inertia.central_inertia @ R
        names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        entries = central[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
        self.editor.set(
            inertial.require("inertia"),
            {n: number(x) for n, x in zip(names, entries, strict=True)},
        )
        self.editor.set(inertial.require("mass"), {"value": number(inertia.mass)})
        center = numbers(inertia.center_of_mass)
        origin = inertial.find("origin")
        if origin is not None:
            self.editor.set(origin, {"xyz": center})
        else:
            self.editor.insert(inertial, [f'<origin xyz="{center}" rpy="0 0 0"/>'])


def _put_drive(editor: Editor, element: Element, joint: Joint, old: Joint) -> None:
    new, was = joint.drive, old.drive
    extension = {"rotor_inertia": new.rotor_inertia, "offset": new.offset}
    if extension != {"rotor_inertia": was.rotor_inertia, "offset": was.offset}:
        _put_values(editor, element, EXTENSION, extension)
    friction = {"damping": new.viscous, "friction": new.coulomb}
    if friction != {"damping": was.viscous, "friction": was.coulomb}:
        _put_values(editor, element, "dynamics", friction)


def _put_values(
    editor: Editor, joint: Element, tag: str, values: Mapping[str, float]
) -> None:
    texts = {name: number(value) for name, value in values.items()}
    element = joint.find(tag)
    if element is not None:
        editor.set(element, texts)
    else:
        entries = " ".join(f'{name}="{text}"' for name, text in texts.items())
        editor.insert(joint, [f"<{tag} {entries}/>"])


def _put_extension(editor: Editor, root: Element, arm: Arm, before: Arm) -> None:
    lines = extension_lines(arm)
    if lines == extension_lines(before):
        return
    element = root.find(EXTENSION)
    if element is None:
        editor.insert(root, lines)
    else:
        editor.replace(element, lines or [f"<{EXTENSION}/>"])
