"""Reader of URDF: any tree of joints about any axes; fixed joints are merged.

<robot> <armwise gravity="0 0 -9.80665">
          <coupling name="motor_6" rotor_inertia="" viscous="" coulomb="" offset="">
            <weight joint="joint_5" value="1"/> </coupling> </armwise>
<joint> <armwise rotor_inertia="0.1" offset="0.02"/>        a drive's other half
<joint type="fixed"> <armwise_anchor/>      its child's frame is the link frame
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, pi
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms.arm import (
    Arm,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Mimic,
    Shape,
    resolve_mimic,
)
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE, DRIVE_NAMES
from armwise.arms.poses import (
    FINE_ANGLE,
    NO_ANGLE,
    inverse,
    pose,
    rotation_from_rpy,
)
from armwise.arms.readers.xml import Element, read_xml
from armwise.errors import ArgumentError
from armwise.tables import LARGEST_NUMBER

if TYPE_CHECKING:
    from jaxtyping import Float


# <armwise> elements, for what URDF has no word for; other readers skip them.

EXTENSION = "armwise"
ANCHOR = "armwise_anchor"
GRAVITY = (0.0, 0.0, -9.81)
"""[m/s²], what every URDF reader assumes."""


def read_gravity(robot: Element) -> Float[np.ndarray, " 3"]:
    """Return the gravity a file gives, or the usual one."""
    extension = robot.find(EXTENSION)
    return np.array(extension.vector("gravity", GRAVITY) if extension else GRAVITY)


def read_couplings(robot: Element, arm: Arm) -> Arm:
    """Return the arm with the couplings a file gives."""
    extension = robot.find(EXTENSION)
    for coupling in extension.all("coupling") if extension else ():
        weights = {w.text("joint"): w.number("value") for w in coupling.all("weight")}
        drive = Drive(*(coupling.number(name, 0.0) for name in DRIVE_NAMES))
        try:
            arm = arm.with_coupling(coupling.text("name"), weights, drive)
        except ArgumentError as problem:
            raise coupling.error(f"names an unknown joint: {problem}") from None
    return arm


def read_gears(robot: Element, joints: Sequence[Joint]) -> tuple[Joint, ...]:
    """Return the joints with the gears that a file's <transmission>s give.

    One of 1 is what tools write where nobody knows; and what makes no sense here is no
    reason to refuse an arm, for controllers read it, not those who move links.
    """
    gears: dict[str, float] = {}
    for transmission in robot.all("transmission"):
        names = [one.attributes.get("name") for one in transmission.all("joint")]
        ratios = [
            ratio.content.strip()
            for part in (transmission, *transmission.all("actuator"))
            for ratio in part.all("mechanicalReduction")
        ]
        # Of several joints or motors no ratio is that of one.
        if len(names) == len(ratios) == 1 and names[0] is not None:
            gears[names[0]] = _ratio(ratios[0])
    return tuple(
        replace(joint, gear=gears[joint.name])
        if gears.get(joint.name, 1.0) > 1.0
        else joint
        for joint in joints
    )


def _ratio(word: str) -> float:
    """A ratio's size; 1 where the word is none."""
    try:
        size = abs(float(word))
    except ValueError:
        return 1.0
    return size if size <= LARGEST_NUMBER else 1.0


# Joints: axis, limits, friction, mimic.

MOVING: dict[str, Literal["revolute", "prismatic"]] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
}
"""URDF's joint types that move, and what they are here."""

HELD = ("floating", "planar", "spherical")
"""Types of joints with several degrees of freedom: held where they are described."""

# Judgement: below the largest double, 1.8e308, and beyond any real limit.
UNBOUNDED = 1e300
"""A limit at least this large is none: URDF has no word for infinity."""


def read_axis(joint: Element) -> Float[np.ndarray, " 3"]:
    """Return the unit axis of a joint; x where none is given, as URDF has it."""
    element = joint.find("axis")
    if element is None:
        return np.array([1.0, 0.0, 0.0])
    axis = np.array(element.vector("xyz", (1.0, 0.0, 0.0)))
    length = float(np.linalg.norm(axis))
    # Below this the direction is only rounding.
    if length < 1e-9:
        raise joint.error("has an axis of length zero; give it a direction.")
    # + 0.0 turns −0.0 into 0.0: equal axes must have equal bytes to share programs.
    return axis / length + 0.0


def read_limits(joint: Element) -> Limits:
    """Return a joint's limits; a zero, URDF's default, counts as not known."""
    limit = joint.find("limit")
    if limit is None:
        return Limits()
    values = {name: limit.number(name, 0.0, inf) for name in ("lower", "upper")}
    lower, upper = values["lower"], values["upper"]
    # URDF's default for both is zero, which would forbid all motion.
    if joint.text("type") == "continuous" or lower == upper == 0.0:
        lower, upper = -inf, inf
    if lower > upper:
        raise joint.error(f"has lower limit {lower:g} > upper {upper:g}; swap them.")
    rates = (_read_rate(limit, name) for name in ("velocity", "acceleration", "effort"))
    return Limits(_bounded(lower), _bounded(upper), *rates)


def _read_rate(limit: Element, name: str) -> float:
    value = limit.number(name, 0.0, inf)
    if value < 0:
        raise limit.error(
            f'has the negative {name} limit "{value:g}"; make it positive.'
        )
    return _bounded(value) if value else inf


def _bounded(value: float) -> float:
    return value if abs(value) < UNBOUNDED else inf if value > 0 else -inf


def read_drive(joint: Element) -> Drive:
    """Return friction from <dynamics>, rotor inertia and offset from <armwise>."""
    dynamics, extension = joint.find("dynamics"), joint.find(EXTENSION)
    return Drive(
        rotor_inertia=extension.number("rotor_inertia", 0.0) if extension else 0.0,
        viscous=dynamics.number("damping", 0.0) if dynamics else 0.0,
        coulomb=dynamics.number("friction", 0.0) if dynamics else 0.0,
        offset=extension.number("offset", 0.0) if extension else 0.0,
    )


def read_mimics(
    elements: Sequence[Element], joints: Sequence[Joint]
) -> tuple[Joint, ...]:
    """Return the joints with their <mimic>, each following one that moves by itself."""
    index = {joint.name: i for i, joint in enumerate(joints)}
    follow = {
        i: _read_mimic(element, index)
        for i, element in enumerate(elements)
        if element.find("mimic") is not None
    }
    led = list(joints)
    for i in follow:
        mimic = resolve_mimic(i, follow)
        if mimic is None:
            raise elements[i].error("mimics itself in a circle; let one joint lead.")
        led[i] = replace(led[i], mimic=mimic)
    return tuple(led)


def _read_mimic(joint: Element, index: dict[str, int]) -> Mimic:
    element = joint.require("mimic")
    leader = element.text("joint")
    if leader not in index:
        raise joint.error(
            f'mimics "{leader}", which is no moving joint. '
            f"There are: {', '.join(list(index)[:8])}."
        )
    multiplier, offset = (
        element.number("multiplier", 1.0),
        element.number("offset", 0.0),
    )
    return Mimic(index[leader], multiplier, offset)


# Links: inertia, outline, pose.

NOTHING = (0.0, 0.0, 0.0)


def read_origin(element: Element) -> Float[np.ndarray, "4 4"]:
    """Return the pose in an element's <origin>, the identity without one."""
    origin = element.find("origin")
    if origin is None:
        return np.eye(4)
    rotation = rotation_from_rpy(origin.vector("rpy", NOTHING))
    return pose(rotation, origin.vector("xyz", NOTHING))


_QUARTER = pi / 2.0
"""What most joints are turned by, in [rad]."""


def exact_angle(word: str, value: float) -> float:
    """The angle in [rad] that was written with few digits: "1.5708" is a quarter turn.

    Rounded angles tilt parallel axes by some microradians, and axes that are not quite
    parallel have base parameters that no log can determine.

    Args:
        word: The number as it stands in the file.
        value: What it reads as.
    """
    if abs(value) < NO_ANGLE:
        return 0.0
    mantissa, _, exponent = word.lower().partition("e")
    # One in the last place, which is all that is known of the digits not written.
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    for step, coarsest in ((_QUARTER, 1e-2), (FINE_ANGLE, 1e-4)):
        exact = round(value / step) * step
        # 1.001: a half that was rounded up. Cut off instead of rounded: 3.1415.
        is_rounded = abs(value - exact) <= 0.5 * 1.001 * unit
        is_cut = 0.0 <= abs(exact) - abs(value) < unit and unit <= 1e-4 * 1.001
        if exact and unit <= coarsest * 1.001 and (is_rounded or is_cut):
            return exact
    return value


def read_joint_origin(joint: Element) -> tuple[Float[np.ndarray, "4 4"], bool]:
    """Return where a joint is, rounded angles made exact; and whether any was."""
    T = read_origin(joint)
    origin = joint.find("origin")
    if origin is None or "rpy" not in origin.attributes:
        return T, False
    angles = origin.vector("rpy", NOTHING)
    words = origin.attributes["rpy"].split()
    exact = [exact_angle(w, a) for w, a in zip(words, angles, strict=True)]
    # 1e-9 rad is rounding that nothing sees: no word about it.
    is_changed = any(abs(a - b) > 1e-9 for a, b in zip(angles, exact, strict=True))
    return pose(rotation_from_rpy(exact), T[:3, 3]), is_changed


def read_inertial(
    link: Element, allow_unphysical: bool, is_fixed: bool = False
) -> tuple[InertialParameters, str | None]:
    """Return a link's inertial parameters about its frame, and a note if repaired.

    They are zero without <inertial>. Negative principal moments within rounding are
    set to zero; a link that no joint moves may lack a little more.
    """
    inertial = link.find("inertial")
    if inertial is None:
        return InertialParameters.zero(), None
    mass = inertial.require("mass").number("value")
    T = read_origin(inertial)
    R = T[:3, :3]
    central = R @ _read_inertia(inertial) @ R.T
    note = None
    if not allow_unphysical:
        central, note = repaired_inertia(link, mass, central, is_fixed)
    return InertialParameters.from_center_of_mass(mass, T[:3, 3], central), note


def _read_inertia(inertial: Element) -> Float[np.ndarray, "3 3"]:
    inertia = inertial.require("inertia")
    xx, yy, zz = (inertia.number(name) for name in ("ixx", "iyy", "izz"))
    xy, xz, yz = (inertia.number(name, 0.0) for name in ("ixy", "ixz", "iyz"))
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


# Judgement: a gram at a centimetre. What a fixed link lacks is lost in the link that
# carries it; a link with a joint of its own may be that small itself.
NEGLIGIBLE_MOMENT = 1e-7
"""Of a link that no joint moves, in [kg m²]: a deficit that is repaired."""


def repaired_inertia(
    link: Element, mass: float, central: Float[np.ndarray, "3 3"], is_fixed: bool
) -> tuple[Float[np.ndarray, "3 3"], str | None]:
    """Return a central inertia, repaired if negligible, and a note if it was.

    What cannot be a slip of rounding is refused; a broken triangle only is a defect.
    """
    remedy = (
        "correct it, or load with allow_unphysical=True (in commands "
        "--allow-unphysical)."
    )
    if mass < 0:
        raise link.error(f"has the negative mass {mass:g} kg; {remedy}")
    moments, axes = np.linalg.eigh(central)
    smallest = float(moments[0])
    # Relative to the largest moment: rounding of a slender link must pass. Below
    # 1e-15 kg m², a milligram at a nanometre, there is nothing but rounding.
    if smallest >= -max(1e-9 * float(np.abs(central).max()), 1e-15):
        return central, None
    if not is_fixed or smallest < -NEGLIGIBLE_MOMENT:
        raise link.error(
            f"has an inertia no body can have: a principal moment is negative "
            f"({smallest:.4g} kg m²); {remedy}"
        )
    small, middle, large = np.maximum(moments, 0.0)
    # The least change that makes it a body: no moment exceeds the other two.
    possible = np.array([max(small, large - middle), middle, large])
    note = (
        f"{link.attributes['name']}: a principal moment was negative "
        f"({smallest:.2g} kg m²) and is repaired; the link is fixed and "
        f"{NEGLIGIBLE_MOMENT:g} kg m² do not count."
    )
    return axes @ np.diag(possible) @ axes.T, note


def read_shapes(link: Element, T: Float[np.ndarray, "4 4"]) -> list[Shape]:
    """Return a link's outline, moved by T: what it collides with, else what shows."""
    # Judgement: clearance is about collisions, so that their shapes come first.
    kind = "collision" if link.find("collision") is not None else "visual"
    shapes = (read_shape(element, T) for element in link.all(kind))
    return [shape for shape in shapes if shape is not None]


def read_shape(element: Element, T: Float[np.ndarray, "4 4"]) -> Shape | None:
    """Return the outline of a <collision> or <visual>, moved by T, if we know it."""
    geometry = element.find("geometry")
    if geometry is None or not geometry.children:
        return None
    at, solid = T @ read_origin(element), geometry.children[0]
    match solid.tag:
        case "sphere":
            return Shape("sphere", (solid.number("radius"),), at)
        case "cylinder":
            size = (solid.number("radius"), solid.number("length"))
            return Shape("cylinder", size, at)
        case "capsule":
            size = (solid.number("radius"), solid.number("length"))
            return Shape("capsule", size, at)
        case "box":
            return Shape("box", solid.vector("size", NOTHING), at)
        case "mesh":
            scale = solid.vector("scale", (1.0, 1.0, 1.0))
            return Shape("mesh", scale, at, solid.text("filename"))
    return None


# The tree of links, and the ways in which it can be wrong.


def _refuse_other_dialects(robot: Element) -> None:
    if robot.tag != "robot":
        raise robot.error("is not the root of a URDF, which is <robot>.")
    for child in robot.children:
        if child.tag.startswith("xacro:"):
            raise child.error("is xacro; expand the file with xacro first.")


@dataclass(frozen=True)
class Tree:
    """The links and joints of a URDF, known to be one tree.

    Attributes:
        links: Every <link> by name.
        joints: Every <joint>, in the file's order.
        root: Name of the one link that nothing carries.
    """

    links: Mapping[str, Element]
    joints: tuple[Element, ...]
    root: str

    @classmethod
    def of(cls, robot: Element) -> Tree:
        """Check that a <robot> is one tree of links, and order it."""
        _refuse_other_dialects(robot)
        links = _by_name(robot, "link")
        joints = tuple(_by_name(robot, "joint").values())
        if not links:
            raise robot.error("has no <link>; an arm needs at least two.")
        carried: dict[str, Element] = {}
        for joint in joints:
            for end in ("parent", "child"):
                _require_known(joint, end, links)
            child = link_of(joint, "child")
            if child in carried:
                other = carried[child].attributes["name"]
                raise joint.error(
                    f'carries the link "{child}", which joint "{other}" carries too; '
                    "a tree has one joint per link."
                )
            carried[child] = joint
        roots = [name for name in links if name not in carried]
        if not roots:
            raise robot.error("is a cycle: every link hangs on another; cut one joint.")
        if len(roots) > 1:
            raise links[roots[1]].error(
                f'hangs on nothing, and so does "{roots[0]}"; join them by a joint.'
            )
        return cls(links, joints, roots[0])

    def joints_outwards(self) -> list[Element]:
        """Order the joints: parents first, else as they stand in the file."""
        waiting: dict[str, list[int]] = {}
        for i, joint in enumerate(self.joints):
            waiting.setdefault(link_of(joint, "parent"), []).append(i)
        ready = waiting.pop(self.root, [])
        # A heap keeps the file's order among joints that are ready together.
        heapq.heapify(ready)
        order: list[Element] = []
        while ready:
            joint = self.joints[heapq.heappop(ready)]
            order.append(joint)
            for i in waiting.pop(link_of(joint, "child"), []):
                heapq.heappush(ready, i)
        if waiting:
            stuck = self.joints[min(i for stuck in waiting.values() for i in stuck)]
            raise stuck.error("is part of a cycle of links; cut one of its joints.")
        return order


def link_of(joint: Element, end: str) -> str:
    """Name the parent or child link of a joint."""
    return joint.require(end).text("link")


def _by_name(robot: Element, tag: str) -> dict[str, Element]:
    elements: dict[str, Element] = {}
    for element in robot.all(tag):
        name = element.text("name")
        if name in elements:
            raise element.error(
                f"has the name of the <{tag}> in line {elements[name].line}; "
                "rename one."
            )
        elements[name] = element
    return elements


def _require_known(joint: Element, end: str, links: Mapping[str, Element]) -> None:
    name = link_of(joint, end)
    if name not in links:
        names = ", ".join(list(links)[:8]) + (", …" if len(links) > 8 else "")
        raise joint.error(
            f'has the {end} "{name}", which is no <link> of the file. It has: {names}.'
        )


# The whole arm; fixed joints are merged.


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
    if body.rounded:
        names = ", ".join(body.rounded[:4]) + (", …" if len(body.rounded) > 4 else "")
        body.notes.append(
            f"Angles with few digits are taken as the exact ones they stand for "
            f"({names}): 1.5708 is a quarter turn."
        )
    arm = Arm(
        name=robot.attributes.get("name") or Path(path).stem,
        joints=read_mimics(body.elements, read_gears(robot, body.joints)),
        links=body.finished_links(),
        gravity=read_gravity(robot),
        frames=tuple(body.frames),
        base=tree.root,
        base_shapes=tuple(body.shapes[BASE]),
        notes=tuple(body.notes),
    )
    return read_couplings(robot, arm)


@dataclass
class _FixedFrame:
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
    fixed: dict[str, _FixedFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rounded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fixed[self.tree.root] = _FixedFrame(BASE, np.eye(4))
        self.shapes[BASE] = read_shapes(self.tree.links[self.tree.root], np.eye(4))

    def add(self, joint: Element) -> None:
        kind = joint.text("type")
        if kind == "fixed":
            self._merge(joint)
        elif kind in MOVING:
            self._append(joint)
        elif kind in HELD:
            self._merge(joint)
            self.notes.append(
                f"{joint.text('name')} ({kind}) is taken as fixed where it is "
                "described: an arm's joints turn or slide."
            )
        else:
            raise joint.error(
                f'has the type "{kind}", which is not supported. Supported: '
                f"{', '.join(MOVING)}, fixed; held: {', '.join(HELD)}."
            )

    def _append(self, joint: Element) -> None:
        parent = self.fixed[link_of(joint, "parent")]
        name = link_of(joint, "child")
        index = len(self.joints)
        self.fixed[name] = _FixedFrame(index, np.eye(4))
        self.joints.append(
            Joint(
                name=joint.text("name"),
                kind=MOVING[joint.text("type")],
                parent=parent.link,
                # The parent may itself be fixed to a moving link: its pose comes in
                # between.
                origin=parent.pose @ self._origin(joint),
                axis=read_axis(joint),
                limits=read_limits(joint),
                drive=read_drive(joint),
            )
        )
        self.elements.append(joint)
        self.names.append(name)
        self.inertias.append(self._inertia(name))
        self.shapes[index] = read_shapes(self.tree.links[name], np.eye(4))

    def _origin(self, joint: Element) -> Float[np.ndarray, "4 4"]:
        T, is_changed = read_joint_origin(joint)
        self.rounded += [joint.text("name")] if is_changed else []
        return T

    def _merge(self, joint: Element) -> None:
        """Let the carrying link take over what a fixed joint carries."""
        parent, name = self.fixed[link_of(joint, "parent")], link_of(joint, "child")
        T = parent.pose @ self._origin(joint)
        self.fixed[name] = _FixedFrame(parent.link, T)
        inertia = self._inertia(name, is_fixed=joint.find(ANCHOR) is None)
        # Written by our own writer for joints whose axis misses the link's frame, which
        # URDF cannot say.
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
        self.fixed[name] = _FixedFrame(i, np.eye(4))
        self.shapes[i] = read_shapes(self.tree.links[name], np.eye(4))

    def _inertia(self, name: str, is_fixed: bool = False) -> InertialParameters:
        link = self.tree.links[name]
        inertia, note = read_inertial(link, self.allow_unphysical, is_fixed)
        self.notes += [note] if note else []
        return inertia

    def finished_links(self) -> tuple[Link, ...]:
        return tuple(
            Link(name, inertia, tuple(self.shapes[i]))
            for i, (name, inertia) in enumerate(
                zip(self.names, self.inertias, strict=True)
            )
        )
