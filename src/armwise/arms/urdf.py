"""Read an arm from URDF: any tree of joints about any axes; fixed joints are merged."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms.arm import BASE, Arm, Frame, Joint, Link
from armwise.arms.inertia import InertialParameters
from armwise.arms.poses import inverse
from armwise.arms.shapes import Shape
from armwise.arms.urdf_extension import ANCHOR, read_couplings, read_gravity
from armwise.arms.urdf_joint import (
    MOVING,
    read_axis,
    read_drive,
    read_limits,
    read_mimics,
)
from armwise.arms.urdf_link import read_inertial, read_origin, read_shapes
from armwise.arms.urdf_tree import Tree, link_of
from armwise.arms.xml import Element, read_xml

if TYPE_CHECKING:
    from jaxtyping import Float


def read_urdf(
    path: Path, *, root: Element | None = None, allow_unphysical: bool = False
) -> Arm:
    """Read an arm from a URDF file.

    Args:
        path: The file, which messages name.
        root: Its root element, if it has been parsed already.
        allow_unphysical: Take negative masses and moments as they are.

    Raises:
        ArmError: If it does not describe one tree of joints; the message says where.
    """
    robot = read_xml(path) if root is None else root
    tree = Tree.of(robot)
    body = _Body(tree, allow_unphysical)
    for joint in tree.joints_outwards():
        body.add(joint)
    if not body.joints:
        raise robot.error("has no joint that moves; an arm needs one.")
    arm = Arm(
        name=robot.attributes.get("name") or Path(path).stem,
        joints=read_mimics(body.elements, tuple(body.joints)),
        links=body.finished_links(),
        gravity=read_gravity(robot),
        frames=tuple(body.frames),
        base=tree.root,
        base_shapes=tuple(body.shapes[BASE]),
    )
    return read_couplings(robot, arm)


@dataclass
class _Place:
    """Where a URDF link went: the moving link that carries it, and T_link_frame."""

    link: int
    pose: Float[np.ndarray, "4 4"]


@dataclass
class _Body:
    """The arm as it grows outwards, one joint at a time."""

    tree: Tree
    allow_unphysical: bool
    joints: list[Joint] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    inertias: list[InertialParameters] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    shapes: dict[int, list[Shape]] = field(default_factory=dict)
    places: dict[str, _Place] = field(default_factory=dict)
    anchored: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.places[self.tree.root] = _Place(BASE, np.eye(4))
        self.shapes[BASE] = read_shapes(self.tree.links[self.tree.root], np.eye(4))

    def add(self, joint: Element) -> None:
        kind = joint.text("type")
        if kind == "fixed":
            self._merge(joint)
        elif kind in MOVING:
            self._append(joint)
        else:
            raise joint.error(
                f'has the type "{kind}", which is not supported. Supported: '
                f"{', '.join(MOVING)}, fixed."
            )

    def _append(self, joint: Element) -> None:
        parent = self.places[link_of(joint, "parent")]
        name = link_of(joint, "child")
        index = len(self.joints)
        self.places[name] = _Place(index, np.eye(4))
        self.joints.append(
            Joint(
                name=joint.text("name"),
                kind=MOVING[joint.text("type")],
                parent=parent.link,
                origin=parent.pose @ read_origin(joint),
                axis=read_axis(joint),
                limits=read_limits(joint),
                drive=read_drive(joint),
            )
        )
        self.elements.append(joint)
        self.names.append(name)
        self.inertias.append(self._inertia(name))
        self.shapes[index] = read_shapes(self.tree.links[name], np.eye(4))

    def _merge(self, joint: Element) -> None:
        """Let the carrying link take over what a fixed joint carries."""
        parent, name = self.places[link_of(joint, "parent")], link_of(joint, "child")
        T = parent.pose @ read_origin(joint)
        self.places[name] = _Place(parent.link, T)
        inertia = self._inertia(name)
        if joint.find(ANCHOR) is not None and parent.link != BASE:
            self._anchor(parent.link, name, T, inertia)
            return
        self.frames.append(Frame(name, parent.link, T, inertia))
        self.shapes[parent.link] += read_shapes(self.tree.links[name], T)
        if parent.link != BASE:
            self.inertias[parent.link] += inertia.transformed(T)

    def _anchor(
        self,
        i: int,
        name: str,
        T: Float[np.ndarray, "4 4"],
        inertia: InertialParameters,
    ) -> None:
        """Make this fixed link's frame the link frame, off the joint's axis."""
        old = self.joints[i]
        self.joints[i] = Joint(
            old.name,
            old.kind,
            old.parent,
            old.origin @ T,
            T[:3, :3].T @ old.axis,
            old.limits,
            old.drive,
            anchor=inverse(T)[:3, 3],
        )
        self.names[i] = name
        self.inertias[i] = inertia
        self.places[name] = _Place(i, np.eye(4))
        self.shapes[i] = read_shapes(self.tree.links[name], np.eye(4))

    def _inertia(self, name: str) -> InertialParameters:
        return read_inertial(self.tree.links[name], self.allow_unphysical)

    def finished_links(self) -> tuple[Link, ...]:
        return tuple(
            Link(name, inertia, tuple(self.shapes[i]))
            for i, (name, inertia) in enumerate(
                zip(self.names, self.inertias, strict=True)
            )
        )
