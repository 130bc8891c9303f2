"""Description of an arm: joints, links, drives, couplings, frames and gravity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE, DRIVE_NAMES, INERTIAL_NAMES, ParameterLayout
from armwise.arms.poses import pose, rotation_about
from armwise.errors import ArgumentError, ArmError

if TYPE_CHECKING:
    from jaxtyping import Float


# Outlines of links, for clearance and drawings.


@dataclass(frozen=True, eq=False)
class Shape:
    """A body's outline in its link's frame.

    Attributes:
        kind: What it is.
        size: Sphere: radius. Cylinder and capsule: radius, length along z (a capsule
            ends in half spheres beyond it). Box: full x, y, z extents. Mesh: scale.
            All in [m] but the scale.
        pose: T_link_shape.
        mesh: File name of a mesh, as the description gives it.
        color: Red, green and blue, 0 to 1, if the description gives them.
    """

    kind: Literal["sphere", "cylinder", "capsule", "box", "mesh"]
    size: tuple[float, ...]
    pose: Float[np.ndarray, "4 4"]
    mesh: str | None = None
    color: tuple[float, float, float] | None = None


@dataclass(frozen=True)
class Limits:
    """What a joint may do; infinite where nothing is known.

    Attributes:
        lower, upper: Position in [rad] or [m].
        velocity: Largest speed in [rad/s] or [m/s].
        acceleration: Largest acceleration in [rad/s²] or [m/s²].
        effort: Largest torque in [N m] or force in [N].
    """

    lower: float = -np.inf
    upper: float = np.inf
    velocity: float = np.inf
    acceleration: float = np.inf
    effort: float = np.inf


@dataclass(frozen=True)
class Drive:
    """What sits between the motor and the link: τ = Ia q̈ + fv q̇ + fc sign(q̇) + offset.

    Attributes:
        rotor_inertia: Motor inertia seen at the joint in [kg m²] or [kg].
        viscous: Viscous friction in [N m s/rad] or [N s/m].
        coulomb: Coulomb friction in [N m] or [N].
        offset: Constant torque in [N m] or force in [N].
    """

    rotor_inertia: float = 0.0
    viscous: float = 0.0
    coulomb: float = 0.0
    offset: float = 0.0

    @property
    def vector(self) -> Float[np.ndarray, " 4"]:
        """The four numbers in the order of DRIVE_NAMES."""
        return np.array([getattr(self, name) for name in DRIVE_NAMES], dtype=float)


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: q = multiplier · q_leader + offset."""

    leader: int
    multiplier: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Joint:
    """A joint and where it sits; joint i carries link i.

    Attributes:
        name: The user's name for it.
        kind: What it does; a continuous joint is revolute without limits.
        parent: Index of the link it is mounted on, or BASE.
        origin: T_parent_child at q = 0, between the user's link frames.
        axis: Unit axis in the child link's frame.
        anchor: A point of the axis, in the child link's frame, in [m]. Zero when the
            axis passes through that frame's origin, as in URDF and modified DH; not
            in standard DH with a ≠ 0, nor in MJCF with a joint `pos`.
        limits: What the joint may do.
        drive: Rotor inertia and friction.
        mimic: The joint it follows, if it does not move by itself.
        rest: Position in which the description shows it, in [rad] or [m].
        gear: Turns of the motor for one of the joint, where that is known; of a joint
            that slides, radians of the motor for a metre.
    """

    name: str
    kind: Literal["revolute", "prismatic"]
    parent: int
    origin: Float[np.ndarray, "4 4"]
    axis: Float[np.ndarray, " 3"]
    limits: Limits = Limits()
    drive: Drive = Drive()
    mimic: Mimic | None = None
    anchor: Float[np.ndarray, " 3"] = field(default_factory=lambda: np.zeros(3))
    rest: float = 0.0
    gear: float | None = None

    @property
    def is_revolute(self) -> bool:
        """Whether it turns (else it slides)."""
        return self.kind == "revolute"

    def pose(self, q: float) -> Float[np.ndarray, "4 4"]:
        """Return T_parent_child with the joint at q [rad] or [m]."""
        if self.is_revolute:
            R = rotation_about(self.axis, q)
            motion = pose(R, self.anchor - R @ self.anchor)
        else:
            motion = pose(None, q * self.axis)
        T: np.ndarray = self.origin @ motion
        return T


@dataclass(frozen=True)
class Link:
    """A rigid body carried by a joint, in the user's own link frame."""

    name: str
    inertia: InertialParameters = field(default_factory=InertialParameters.zero)
    shapes: tuple[Shape, ...] = ()


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame on a link (a tool, a sensor, a merged fixed link).

    Attributes:
        name: The user's name for it.
        link: Index of the moving link it belongs to, or BASE.
        pose: T_link_frame.
        inertia: Inertial parameters, in this frame, that were merged into the link.
    """

    name: str
    link: int
    pose: Float[np.ndarray, "4 4"]
    inertia: InertialParameters = field(default_factory=InertialParameters.zero)


@dataclass(frozen=True, eq=False)
class Coupling:
    """A motor turned by several joints at once, such as the wrist of a Stäubli TX40.

    It sees the speed w·q̇ and adds wᵀ (Ia w·q̈ + fv w·q̇ + fc sign(w·q̇) + offset).

    Attributes:
        name: The user's name for it.
        weights: w, one number per coordinate of the arm.
        drive: Its rotor inertia and friction.
        gear: Turns of the motor for one of w·q, where that is known.
    """

    name: str
    weights: Float[np.ndarray, " dof"]
    drive: Drive = Drive()
    gear: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Arm:
    """A fixed-base tree of joints and links under gravity.

    Parents come before children. Joint i carries link i. Coordinates are the joints
    that do not mimic another one, in order.

    Attributes:
        name: The user's name for it.
        joints, links: One each per moving link.
        gravity: Acceleration of free fall in base axes, in [m/s²].
        frames: Named frames, fixed links among them.
        couplings: Motors turned by several joints.
        base: Name of the fixed base link.
        base_shapes: Outlines that stand still, in the base link's frame.
        locked: Joints of the description that are held, and where in [rad] or [m]:
            the links they carry are fixed, and are among `frames`.
        notes: What was repaired or taken otherwise than the file says, when it was
            read; one sentence each.
    """

    name: str
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    gravity: Float[np.ndarray, " 3"] = field(
        # The convention of URDF and MuJoCo; standard gravity would be 9.80665.
        default_factory=lambda: np.array([0.0, 0.0, -9.81])
    )
    frames: tuple[Frame, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    base: str = "base"
    base_shapes: tuple[Shape, ...] = ()
    locked: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check(self)

    def __repr__(self) -> str:
        """One line: a session that shows an arm must not be flooded by its matrices."""
        mass = sum(link.inertia.mass for link in self.links)
        held = f", {len(self.locked)} locked" if self.locked else ""
        joints = ", ".join(self.coordinate_names[:8])
        more = ", …" if self.dof > 8 else ""
        return f"<Arm {self.name}: {joints}{more}; {mass:.4g} kg in motion{held}>"

    @cached_property
    def coordinates(self) -> tuple[int, ...]:
        """Indices of the joints that move by themselves."""
        return tuple(i for i, joint in enumerate(self.joints) if joint.mimic is None)

    @property
    def dof(self) -> int:
        """Number of coordinates q."""
        return len(self.coordinates)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the joints that move by themselves, one per entry of q."""
        return tuple(self.joints[i].name for i in self.coordinates)

    @cached_property
    def layout(self) -> ParameterLayout:
        """The index of every parameter in `parameters`, by name."""
        return ParameterLayout(len(self.links), len(self.driven))

    @cached_property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters: `link.Ixx` …, `joint.coulomb` …, couplings last."""
        links = [f"{x.name}.{p}" for x in self.links for p in INERTIAL_NAMES]
        drives = [f"{x.name}.{p}" for x in self.driven for p in DRIVE_NAMES]
        return tuple(links + drives)

    @cached_property
    def parameters(self) -> Float[np.ndarray, " parameters"]:
        """All parameters π, in the order of `parameter_names`; τ = Y π."""
        parts = [link.inertia.vector for link in self.links]
        parts += [driven.drive.vector for driven in self.driven]
        vector = np.concatenate(parts) if parts else np.zeros(0)
        # Cached: a caller that wrote into it would change the arm.
        vector.setflags(write=False)
        return vector

    @property
    def driven(self) -> tuple[Joint | Coupling, ...]:
        """Everything with a drive: the joints, then the couplings."""
        return (*self.joints, *self.couplings)

    def with_parameters(self, vector: Sequence[float] | np.ndarray) -> Arm:
        """Return the same arm with other parameters, ordered as `parameter_names`."""
        values = np.asarray(vector, dtype=float)
        if values.shape != self.parameters.shape:
            raise ArgumentError(
                f"{self.name} has {self.parameters.size} parameters, "
                f"but {values.size} were given (shape {values.shape})."
            )
        if not np.all(np.isfinite(values)):
            bad = self.parameter_names[int(np.argmin(np.isfinite(values)))]
            raise ArgumentError(f"The parameter {bad} is not finite.")
        drives = [Drive(*map(float, row)) for row in self.layout.by_drive(values)]
        links = tuple(
            replace(link, inertia=InertialParameters(row))
            for link, row in zip(self.links, self.layout.by_link(values), strict=True)
        )
        joints = tuple(
            replace(joint, drive=drive)
            # Not strict: the drives of couplings follow those of the joints.
            for joint, drive in zip(self.joints, drives, strict=False)
        )
        couplings = tuple(
            replace(coupling, drive=drive)
            for coupling, drive in zip(
                self.couplings, drives[len(joints) :], strict=True
            )
        )
        return replace(self, links=links, joints=joints, couplings=couplings)

    def with_gravity(self, gravity: Sequence[float] | np.ndarray) -> Arm:
        """Return the same arm mounted so that free fall points along `gravity`."""
        return replace(self, gravity=np.asarray(gravity, dtype=float))

    def with_coupling(
        self, name: str, weights: Mapping[str, float], drive: Drive | None = None
    ) -> Arm:
        """Return the arm with a motor that several joints turn.

        Args:
            name: What to call it.
            weights: How far each named joint turns it.
            drive: Its rotor inertia and friction, if known.
        """
        vector = np.zeros(self.dof)
        for joint, weight in weights.items():
            vector[self.coordinate_index(joint)] = weight
        added = Coupling(name, vector, drive or Drive())
        return replace(self, couplings=(*self.couplings, added))

    def coordinate_index(self, name: str) -> int:
        """Return which entry of q belongs to the joint of this name."""
        return _index(self.coordinate_names, name, "joint", self.name)

    def joints_beyond(self, count: int) -> tuple[str, ...]:
        """Names of coordinates carried by the first `count`, if these are one chain.

        So a log that numbers seven joints is that of an arm with a hand: what follows
        the seventh. None if it could be another part of the arm.
        """
        if not 0 < count < self.dof:
            return ()
        chain, beyond = self.coordinates[:count], self.coordinates[count:]
        last = chain[-1]
        if not set(chain) <= self._carriers(last):
            return ()
        if any(last not in self._carriers(i) for i in beyond):
            return ()
        return tuple(self.joints[i].name for i in beyond)

    def _carriers(self, i: int) -> set[int]:
        """Joints from one to the base, itself among them."""
        path = set()
        while i != BASE:
            path.add(i)
            i = self.joints[i].parent
        return path

    def link_index(self, name: str) -> int:
        """Return which link has this name."""
        return _index([link.name for link in self.links], name, "link", self.name)

    def find_frame(self, name: str) -> tuple[int, Float[np.ndarray, "4 4"]]:
        """Find a link, frame or the base by name: its link index and T_link_frame."""
        for i, link in enumerate(self.links):
            if link.name == name:
                return i, np.eye(4)
        for frame in self.frames:
            if frame.name == name:
                return frame.link, frame.pose
        if name == self.base:
            return BASE, np.eye(4)
        names = [x.name for x in self.links] + [x.name for x in self.frames]
        raise ArgumentError(
            f"{self.name} has no link or frame {name!r}. It has: {', '.join(names)}."
        )

    @cached_property
    def coupling_matrix(self) -> Float[np.ndarray, "joints dof"]:
        """How joint positions follow the coordinates: q_joints = C q + offset."""
        matrix = np.zeros((len(self.joints), self.dof))
        for column, i in enumerate(self.coordinates):
            matrix[i, column] = 1.0
        for i, joint in enumerate(self.joints):
            if joint.mimic is not None:
                # One pass suffices: `_check_joint` makes every leader a joint of its
                # own.
                matrix[i] = joint.mimic.multiplier * matrix[joint.mimic.leader]
        return matrix

    def limits(self, quantity: str) -> Float[np.ndarray, " dof"]:
        """Return one limit of every coordinate: `lower`, `upper`, `velocity`, …."""
        limits = [self.joints[i].limits for i in self.coordinates]
        return np.array([getattr(limit, quantity) for limit in limits], dtype=float)

    @property
    def rest(self) -> Float[np.ndarray, " dof"]:
        """Posture in which the description shows the arm, within its limits."""
        postures = [self.joints[i].rest for i in self.coordinates]
        return np.clip(postures, self.limits("lower"), self.limits("upper"))

    def link_poses(
        self, q: Float[np.ndarray, " dof"]
    ) -> Float[np.ndarray, "links 4 4"]:
        """T_base_link of every link, the base's own last (so that BASE finds it)."""
        links: list[np.ndarray] = []
        offsets = [0.0 if x.mimic is None else x.mimic.offset for x in self.joints]
        positions = self.coupling_matrix @ q + offsets
        # Not the compiled poses: one program per link takes minutes for a humanoid.
        for joint, position in zip(self.joints, positions.tolist(), strict=True):
            carrier = np.eye(4) if joint.parent == BASE else links[joint.parent]
            links.append(carrier @ joint.pose(position))
        return np.stack([*links, np.eye(4)])

    def defects(self) -> dict[str, str]:
        """Links no body can be, and why."""
        defects = {link.name: link.inertia.defect() for link in self.links}
        return {name: why for name, why in defects.items() if why is not None}


def _index(names: Sequence[str], name: str, what: str, arm: str) -> int:
    if name not in names:
        raise ArgumentError(
            f"{arm} has no {what} {name!r}. It has: {', '.join(names)}."
        )
    return list(names).index(name)


def _check(arm: Arm) -> None:
    """Refuse a description that is not a tree of proper joints."""
    if len(arm.joints) != len(arm.links):
        raise ArmError(
            f"{arm.name} has {len(arm.joints)} joints for {len(arm.links)} links; "
            "each moving link needs exactly one joint."
        )
    names_of = {
        "joint": [joint.name for joint in arm.joints],
        "link": [link.name for link in arm.links],
    }
    for kind, names in names_of.items():
        name, count = max(Counter(names).items(), key=lambda x: x[1], default=("", 0))
        if count > 1:
            raise ArmError(f"{arm.name} has two {kind}s called {name!r}; rename one.")
    if np.shape(arm.gravity) != (3,) or not np.all(np.isfinite(arm.gravity)):
        raise ArmError(f"{arm.name}: gravity must be three finite numbers in [m/s²].")
    for i, joint in enumerate(arm.joints):
        _check_joint(arm, i, joint)


def _check_joint(arm: Arm, i: int, joint: Joint) -> None:
    where = f"{arm.name}, joint {joint.name!r}"
    if not BASE <= joint.parent < i:
        raise ArmError(f"{where}: its parent must come before it in the tree.")
    if np.shape(joint.origin) != (4, 4) or not np.all(np.isfinite(joint.origin)):
        raise ArmError(f"{where}: its origin must be a finite 4×4 pose.")
    # An axis of another length would scale the joint's coordinate silently.
    if not np.isclose(np.linalg.norm(joint.axis), 1.0, atol=1e-9):
        raise ArmError(f"{where}: its axis must have length 1, not {joint.axis}.")
    if np.shape(joint.anchor) != (3,) or not np.all(np.isfinite(joint.anchor)):
        raise ArmError(f"{where}: its anchor must be three finite numbers in [m].")
    mimic = joint.mimic
    if mimic is not None and (
        not 0 <= mimic.leader < len(arm.joints)
        or arm.joints[mimic.leader].mimic is not None
    ):
        raise ArmError(f"{where}: it must mimic a joint that moves by itself.")


# Chains of joints that follow each other.


def resolve_mimic(i: int, follow: dict[int, Mimic]) -> Mimic | None:
    """Follow a chain of mimics to a joint that moves by itself; None for a circle.

    What is resolved on the way is noted in `follow`, so that a long chain is walked
    once.
    """
    chain = [i]
    while (leader := follow[chain[-1]].leader) in follow:
        if leader in chain[:1] or len(chain) > len(follow):
            return None
        chain.append(leader)
    # Mimics compose: q = a₁ (a₂ q_leader + b₂) + b₁.
    for j, up in zip(chain[-2::-1], chain[:0:-1], strict=True):
        mimic, above = follow[j], follow[up]
        follow[j] = Mimic(
            above.leader,
            mimic.multiplier * above.multiplier,
            mimic.multiplier * above.offset + mimic.offset,
        )
    return None if follow[i].leader == i else follow[i]
