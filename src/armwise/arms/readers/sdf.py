"""Reader of SDF: one model of links and joints, as Gazebo has it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms.arm import Arm, Drive, Frame, Joint, Limits, Link, Shape
from armwise.arms.chain import with_locked_joints
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE
from armwise.arms.poses import exact_rotation, inverse, pose, rotation_from_rpy
from armwise.arms.readers.urdf import MOVING, repaired_inertia
from armwise.arms.readers.xml import Element

if TYPE_CHECKING:
    from jaxtyping import Float

# Gazebo writes 1e16 for a limit that is none.
UNBOUNDED = 1e15


def read_sdf(path: Path, root: Element, *, allow_unphysical: bool = False) -> Arm:
    """Read an arm from an SDF file: its one model with joints that move.

    The base frame is the model's. Joints that are neither revolute nor prismatic are
    held where they are described, and the arm's notes say so.

    Raises:
        ArmError: If no model, or more than one, has a joint that moves; or it closes a
            loop.
    """
    worlds = list(root.all("world"))
    models = [m for parent in (root, *worlds) for m in parent.all("model")]
    movable = [m for m in models if any(_moves(j) for j in m.all("joint"))]
    if not movable:
        raise root.error("has no model with a joint that moves; an arm needs one.")
    if len(movable) > 1:
        names = ", ".join(model.text("name") for model in movable)
        raise root.error(f"has several models that move: {names}; keep one.")
    model = _Model(movable[0], allow_unphysical)
    gravity = next((w.find("gravity") for w in worlds), None)
    arm = Arm(
        name=movable[0].text("name"),
        joints=tuple(model.joints),
        links=tuple(model.moving_links),
        gravity=np.array(gravity.numbers(3) if gravity else (0.0, 0.0, -9.81)),
        frames=tuple(model.base_frames),
        base="world" if "world" not in model.links else "sdf_world",
        base_shapes=tuple(model.base_shapes),
        notes=tuple(model.notes),
    )
    # Fixed joints went in as joints; locked, they merge what they carry.
    return replace(with_locked_joints(arm, dict.fromkeys(model.held, 0.0)), locked={})


def _moves(joint: Element) -> bool:
    return joint.attributes.get("type") in MOVING


@dataclass
class _Model:
    """One model: its links in the order of the tree, with their joints."""

    element: Element
    allow_unphysical: bool
    joints: list[Joint] = field(default_factory=list)
    moving_links: list[Link] = field(default_factory=list)
    base_frames: list[Frame] = field(default_factory=list)
    base_shapes: list[Shape] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    held: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.links = _named(self.element, "link")
        self._joints = _named(self.element, "joint")
        self._frames = _named(self.element, "frame")
        if self.element.find("include") is not None:
            self.notes.append("Included models are not read.")
        self._index: dict[str, int] = {"world": BASE}
        for name, joint in self._ordered():
            if joint is None:
                self._stand(name)
            else:
                self._append(name, joint)

    def _ordered(self) -> list[tuple[str, Element | None]]:
        """Links outwards from the base, each with the joint that carries it."""
        carried: dict[str, Element] = {}
        for joint in self._joints.values():
            child = self._end(joint, "child")
            if child in carried:
                raise joint.error(
                    f'carries "{child}", which another joint carries too: a loop. Cut '
                    "one of them."
                )
            carried[child] = joint
        # Parents first, else as joints stand in the file, as in a URDF: logs without
        # names of joints count them so.
        order: list[tuple[str, Element | None]] = []
        order += [(name, None) for name in self.links if name not in carried]
        resolved = {"world", *(name for name, _ in order)}
        waiting = dict(carried)
        while waiting:
            parents = ((name, self._end(j, "parent")) for name, j in waiting.items())
            ready = next((name for name, end in parents if end in resolved), None)
            if ready is None:
                raise next(iter(waiting.values())).error(
                    "is part of a cycle of links; cut one of its joints."
                )
            order.append((ready, waiting.pop(ready)))
            resolved.add(ready)
        return order

    def _end(self, joint: Element, end: str) -> str:
        name = joint.require(end).content.strip()
        if name not in self.links and name != "world":
            raise joint.error(f'has the {end} "{name}", which is no <link> of it.')
        return name

    def _stand(self, name: str) -> None:
        """Put a link that nothing carries on the base."""
        T, link = self._pose(name), self.links[name]
        self._index[name] = BASE
        self.base_frames.append(Frame(name, BASE, T, self._inertia(link, True)))
        self.base_shapes += _shapes(link, T)

    def _append(self, name: str, joint: Element) -> None:
        link, kind = self.links[name], joint.text("type")
        moves = kind in MOVING
        parent = self._end(joint, "parent")
        # The base's own frame carries what stands on it.
        below = np.eye(4) if self._index[parent] == BASE else self._pose(parent)
        T = self._pose(name)
        at = inverse(T) @ self._pose(joint.text("name"))
        self._index[name] = len(self.joints)
        axis, limits, drive = np.array([0.0, 0.0, 1.0]), Limits(), Drive()
        if moves:
            axis = self._axis(joint, at, T)
            limits, drive = _read_axis_limits(joint, kind), _read_drive(joint)
        else:
            self.held.append(joint.text("name"))
            if kind != "fixed":
                self.notes.append(
                    f"{joint.text('name')} ({kind}) is taken as fixed where it is "
                    "described: an arm's joints turn or slide."
                )
        self.joints.append(
            Joint(
                name=joint.text("name"),
                kind=MOVING.get(kind, "prismatic"),
                parent=self._index[parent],
                origin=inverse(below) @ T,
                axis=axis,
                limits=limits,
                drive=drive,
                anchor=at[:3, 3] + 0.0,
            )
        )
        inertia = self._inertia(link, is_fixed=not moves)
        self.moving_links.append(Link(name, inertia, tuple(_shapes(link, np.eye(4)))))

    # Poses: of links in the model, of joints in their child links.

    def _pose(
        self, name: str, ancestors: tuple[str, ...] = ()
    ) -> Float[np.ndarray, "4 4"]:
        """T_model_frame of a link, joint or frame."""
        if name in ("", "world", "__model__"):
            return np.eye(4)
        if name in ancestors:
            raise self.element.error(f'has poses that lead in a circle at "{name}".')
        ancestors = (*ancestors, name)
        for elements, default in ((self.links, ""), (self._frames, "attached_to")):
            if name in elements:
                element = elements[name]
                fallback = element.attributes.get(default, "") if default else ""
                return self._resolved(element, fallback, ancestors)
        if name in self._joints:
            joint = self._joints[name]
            return self._resolved(joint, self._end(joint, "child"), ancestors)
        raise self.element.error(f'has no frame "{name}" that a pose is relative to.')

    def _resolved(
        self, element: Element, usual: str, ancestors: tuple[str, ...]
    ) -> Float[np.ndarray, "4 4"]:
        child = element.find("pose")
        to = child.attributes.get("relative_to", usual) if child else usual
        T: np.ndarray = self._pose(to, ancestors) @ _read_pose(element)
        return T

    def _axis(
        self,
        joint: Element,
        at: Float[np.ndarray, "4 4"],
        T: Float[np.ndarray, "4 4"],
    ) -> Float[np.ndarray, " 3"]:
        """Return the unit axis in the child link's frame."""
        element = joint.require("axis")
        xyz = element.find("xyz")
        axis = np.array(xyz.numbers(3) if xyz else (0.0, 0.0, 1.0))
        old = element.find("use_parent_model_frame")
        if xyz is not None and "expressed_in" in xyz.attributes:
            R = inverse(T)[:3, :3] @ self._pose(xyz.attributes["expressed_in"])[:3, :3]
        elif old is not None and old.content.strip() in ("1", "true"):
            R = inverse(T)[:3, :3]
        else:
            R = at[:3, :3]
        length = float(np.linalg.norm(axis))
        # Below this the direction is only rounding.
        if length < 1e-9:
            raise joint.error("has an axis of length zero; give it a direction.")
        unit: np.ndarray = R @ axis / length + 0.0
        return unit / np.linalg.norm(unit)

    def _inertia(self, link: Element, is_fixed: bool) -> InertialParameters:
        inertial = link.find("inertial")
        if inertial is None:
            return InertialParameters.zero()
        T = _read_pose(inertial)
        matrix, R = inertial.find("inertia"), T[:3, :3]
        xx, yy, zz = (_number(matrix, n, 1.0) for n in ("ixx", "iyy", "izz"))
        xy, xz, yz = (_number(matrix, n, 0.0) for n in ("ixy", "ixz", "iyz"))
        central = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        central, mass = R @ central @ R.T, _number(inertial, "mass", 1.0)
        if not self.allow_unphysical:
            central, note = repaired_inertia(link, mass, central, is_fixed)
            self.notes += [note] if note else []
        return InertialParameters.from_center_of_mass(mass, T[:3, 3], central)


def _named(model: Element, tag: str) -> Mapping[str, Element]:
    elements: dict[str, Element] = {}
    for element in model.all(tag):
        name = element.text("name")
        if name in elements:
            raise element.error("has the name of another; rename one.")
        elements[name] = element
    return elements


def _number(element: Element | None, tag: str, default: float) -> float:
    child = element.find(tag) if element is not None else None
    return default if child is None else child.numbers(1)[0]


def _read_pose(element: Element) -> Float[np.ndarray, "4 4"]:
    child = element.find("pose")
    if child is None or not child.content.strip():
        return np.eye(4)
    if child.attributes.get("rotation_format") == "quat_xyzw":
        raise child.error("is a quaternion; write roll, pitch and yaw.")
    x, y, z, *rpy = child.numbers(6)
    if child.attributes.get("degrees") in ("1", "true"):
        rpy = np.radians(rpy).tolist()
    return pose(exact_rotation(rotation_from_rpy(rpy)), (x, y, z))


def _read_axis_limits(joint: Element, kind: str) -> Limits:
    limit = joint.require("axis").find("limit")
    lower, upper = _number(limit, "lower", -inf), _number(limit, "upper", inf)
    if kind == "continuous" or lower > upper:
        lower, upper = -inf, inf
    rates = (_number(limit, name, inf) for name in ("velocity", "effort"))
    # SDF writes a limit that is none as a negative or a huge number.
    velocity, effort = (x if 0 < x < UNBOUNDED else inf for x in rates)
    return Limits(
        lower if lower > -UNBOUNDED else -inf,
        upper if upper < UNBOUNDED else inf,
        velocity,
        effort=effort,
    )


def _read_drive(joint: Element) -> Drive:
    dynamics = joint.require("axis").find("dynamics")
    return Drive(
        viscous=_number(dynamics, "damping", 0.0),
        coulomb=_number(dynamics, "friction", 0.0),
    )


def _shapes(link: Element, T: Float[np.ndarray, "4 4"]) -> list[Shape]:
    """Return a link's outline, moved by T: what it collides with, else what shows."""
    kind = "collision" if link.find("collision") is not None else "visual"
    shapes = []
    for element in link.all(kind):
        geometry = element.find("geometry")
        solid = geometry.children[0] if geometry and geometry.children else None
        shape = None if solid is None else _shape(solid, T @ _read_pose(element))
        shapes += [shape] if shape is not None else []
    return shapes


def _shape(solid: Element, at: Float[np.ndarray, "4 4"]) -> Shape | None:
    sizes: Sequence[float]
    match solid.tag:
        case "sphere":
            sizes = (_number(solid, "radius", 0.0),)
        case "cylinder" | "capsule":
            sizes = (_number(solid, "radius", 0.0), _number(solid, "length", 0.0))
        case "box":
            sizes = solid.require("size").numbers(3)
        case "mesh":
            scale = solid.find("scale")
            file = solid.require("uri").content.strip()
            size = scale.numbers(3) if scale else (1.0, 1.0, 1.0)
            return Shape("mesh", size, at, file)
        case _:
            return None
    return Shape(solid.tag, tuple(sizes), at)
