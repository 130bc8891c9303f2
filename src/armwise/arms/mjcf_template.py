"""Put an arm's numbers back into the MJCF it came from, leaving the rest alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms.arm import Arm, Joint
from armwise.arms.inertia import InertialParameters
from armwise.arms.mjcf import OFFSET, body_name, compile_mjcf, read_mjcf
from armwise.arms.mjcf_write import drive_attributes, inertial_attributes
from armwise.arms.share import frames_on, require_writable, share_inertia
from armwise.arms.urdf_template import changed_links, require_same_arm
from armwise.arms.urdf_write import number
from armwise.arms.xml import Element
from armwise.arms.xml_edit import Editor
from armwise.errors import ArmError

_ORIENTED = ("diaginertia", "quat", "axisangle", "xyaxes", "zaxis", "euler")
"""Attributes of <inertial> that `fullinertia` takes the place of."""


def fill_mjcf(
    arm: Arm, path: Path, data: bytes, root: Element, *, allow_unphysical: bool = False
) -> tuple[bytes, tuple[str, ...]]:
    """Return the template with the arm's numbers in it, and notes for the user."""
    before = read_mjcf(path)
    require_same_arm(arm, before, path)
    changed = changed_links(arm, before)
    require_writable(arm, changed, allow_unphysical)
    if changed:
        _require_own_inertias(root)
    bodies, joints = _elements(path, root)
    editor = Editor(data)
    notes = []
    for i in changed:
        frames = frames_on(before, i)
        shares = share_inertia(arm.links[i].inertia, frames)
        _put_inertia(editor, bodies[arm.links[i].name], shares.own)
        if not shares.keeps_frames:
            emptied = [f.name for f in frames if np.any(f.inertia.vector)]
            for name in emptied:
                _put_inertia(editor, bodies[name], InertialParameters.zero())
            notes.append(
                f"{arm.links[i].name} carries all of its inertia; what was fixed to it "
                f"is emptied: {', '.join(emptied)}."
            )
    for joint, old in zip(arm.joints, before.joints, strict=True):
        if joint.drive != old.drive:
            _put_drive(editor, joints[joint.name], joint, old)
    _put_offsets(editor, root, arm, before)
    return editor.result(), tuple(notes)


def _require_own_inertias(root: Element) -> None:
    for compiler in root.all("compiler"):
        if compiler.attributes.get("inertiafromgeom") == "true":
            raise compiler.error(
                'has inertiafromgeom="true", which would overrule the inertias; set it '
                'to "auto".'
            )


def _elements(
    path: Path, root: Element
) -> tuple[dict[str, Element], dict[str, Element]]:
    """Find the <body> and <joint> that each compiled body and joint came from."""
    model = compile_mjcf(path)
    bodies = list(_nested(root, "body"))
    if len(bodies) != model.nbody - 1:
        raise ArmError(
            f"{path}: {len(bodies)} <body> elements make {model.nbody - 1} bodies "
            "(include, replicate or attach); write the file out in full first."
        )
    by_body = {body_name(model, i + 1): body for i, body in enumerate(bodies)}
    return by_body, _joints(model, bodies)


def _joints(model: Any, bodies: list[Element]) -> dict[str, Element]:
    found = {}
    for i, body in enumerate(bodies):
        own = [x for x in _inside(body) if x.tag in ("joint", "freejoint")]
        for k, joint in enumerate(own):
            j = int(model.body_jntadr[i + 1]) + k
            found[str(model.joint(j).name) or f"joint_{j}"] = joint
    return found


def _nested(root: Element, tag: str) -> Iterator[Element]:
    """Go through the bodies in MuJoCo's order: each before those inside it."""
    todo = [x for x in root.children if x.tag == "worldbody"][::-1]
    while todo:
        element = todo.pop()
        if element.tag == tag:
            yield element
        todo += [x for x in element.children if x.tag in (tag, "frame")][::-1]


def _inside(body: Element) -> Iterator[Element]:
    """Go through what belongs to a body itself, <frame>s opened up."""
    todo = body.children[::-1]
    while todo:
        element = todo.pop()
        yield element
        if element.tag == "frame":
            todo += element.children[::-1]


def _put_inertia(editor: Editor, body: Element, inertia: InertialParameters) -> None:
    values = inertial_attributes(inertia)
    inertial = body.find("inertial")
    if inertial is None:
        words = " ".join(f'{name}="{text}"' for name, text in values.items())
        editor.insert(body, [f"<inertial {words}/>"])
        return
    editor.remove(inertial, _ORIENTED)
    editor.set(inertial, values)


def _put_drive(editor: Editor, element: Element, joint: Joint, old: Joint) -> None:
    new, was = drive_attributes(joint), drive_attributes(old)
    changes = {name: text for name, text in new.items() if text != was[name]}
    editor.set(element, changes)


def _put_offsets(editor: Editor, root: Element, arm: Arm, before: Arm) -> None:
    numeric = {
        x.attributes.get("name"): x
        for c in root.all("custom")
        for x in c.all("numeric")
    }
    added = []
    for joint, old in zip(arm.joints, before.joints, strict=True):
        if joint.drive.offset == old.drive.offset:
            continue
        name, text = OFFSET + joint.name, number(joint.drive.offset)
        if name in numeric:
            editor.set(numeric[name], {"data": text})
        else:
            added.append(f'  <numeric name="{name}" data="{text}"/>')
    if added:
        editor.insert(root, ["<custom>", *added, "</custom>"])
