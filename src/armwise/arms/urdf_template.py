"""Put an arm's numbers back into the URDF it came from, leaving the rest alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from armwise.arms.arm import Arm, Joint
from armwise.arms.inertia import InertialParameters
from armwise.arms.share import frames_on, require_writable, share_inertia
from armwise.arms.urdf import read_urdf
from armwise.arms.urdf_extension import EXTENSION
from armwise.arms.urdf_link import read_origin
from armwise.arms.urdf_write import extension_lines, inertial_lines, number, numbers
from armwise.arms.xml import Element
from armwise.arms.xml_edit import Editor
from armwise.errors import ArmError


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
    before = read_urdf(path, root=root, allow_unphysical=True)
    require_same_arm(arm, before, path)
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


def require_same_arm(arm: Arm, template: Arm, path: Path) -> None:
    """Refuse a template whose joints or links are not the arm's."""
    for what in ("joints", "links"):
        ours = [x.name for x in getattr(arm, what)]
        theirs = [x.name for x in getattr(template, what)]
        if ours != theirs:
            raise ArmError(
                f"{path} is no template for {arm.name}: its {what} are "
                f"{', '.join(theirs[:10])}, not {', '.join(ours[:10])}. Give the file "
                "the arm was loaded from."
            )


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
        """Write one moving link, and empty those fixed to it if that cannot be."""
        link, frames = self.arm.links[i], frames_on(self.before, i)
        shares = share_inertia(link.inertia, frames)
        self._put(link.name, shares.own)
        if shares.keeps_frames:
            return None
        emptied = [frame.name for frame in frames if np.any(frame.inertia.vector)]
        for name in emptied:
            self._put(name, InertialParameters.zero())
        return (
            f"{link.name} carries all of its inertia; what was fixed to it is emptied: "
            f"{', '.join(emptied)}."
        )

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
    ours = {"rotor_inertia": new.rotor_inertia, "offset": new.offset}
    if ours != {"rotor_inertia": was.rotor_inertia, "offset": was.offset}:
        _put_values(editor, element, EXTENSION, ours)
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
