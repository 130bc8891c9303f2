"""Articulated bodies: arms on a base that stands or floats, and their four operations.

Everything about the arm comes from `armwise.dynamics`; here it is only asked in world
axes, point by point. A base that floats is a rigid body: its six velocities (of its
centre of mass in world axes, angular in its own) come before those of the joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, Drive, InertialParameters
from armwise.dynamics import (
    ZERO,
    ArticulatedInertias,
    LinkMotion,
    Sweep,
    Vector,
    accelerations,
    body_motion,
    cross_joints,
    inverse_dynamics,
    link_poses,
    link_wrench,
    mass_matrix,
    mechanism_of,
    solve_mass_matrix,
    vsub,
)
from armwise.errors import ArgumentError
from armwise.programs import Number, sign
from armwise.worlds.bodies import Point, pose_of
from armwise.worlds.body_protocol import (
    Answer,
    Array,
    Body,
    Moving,
    PointMotion,
    Pushes,
    cross,
    dot,
    product,
    symbols,
    zeros,
)
from armwise.worlds.rigid import RigidBody, RigidMotion

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: some ninety roundings of 2⁻⁵³.
_NOISE = 1e-14
"""Below this, relative to the largest, a constant is rounding and becomes zero."""

# Judgement: where cubic growth overtakes linear growth with a larger constant.
LONGEST_DENSE = 7
"""Joints up to which factoring the mass matrix takes fewer operations."""


@dataclass(frozen=True, eq=False)
class ArticulatedBody(Body):
    """An arm in the world, its base standing still or floating.

    Attributes:
        name: What constraints and forces call it.
        arm: Its description; the world's gravity replaces the arm's own.
        pose: T_world_base of a base that stands still.
        q, qd: Joint positions and velocities at the start; zero if not given.
        base: A rigid body in the arm's base frame, free to move, that carries the arm;
            its pose and velocities are those at the start. Points on it name the arm's
            base as their link. None: the base stands still.
    """

    name: str
    arm: Arm
    pose: Float[np.ndarray, "4 4"] = field(default_factory=lambda: np.eye(4))
    q: tuple[float, ...] = ()
    qd: tuple[float, ...] = ()
    base: RigidBody | None = None

    def __post_init__(self) -> None:
        where = f"the body {self.name!r}"
        object.__setattr__(self, "pose", pose_of(self.pose, where))
        for name in ("q", "qd"):
            numbers = tuple(float(x) for x in getattr(self, name))
            values = numbers or (0.0,) * self.arm.dof
            if len(values) != self.arm.dof or not np.all(np.isfinite(values)):
                raise ArgumentError(
                    f"{name} of {where} needs {self.arm.dof} finite numbers, one for "
                    f"each joint of {self.arm.name}, not {numbers}."
                )
            object.__setattr__(self, name, values)
        if self.base is not None:
            self._check_base(where)

    def _check_base(self, where: str) -> None:
        if not isinstance(self.base, RigidBody):
            raise ArgumentError(
                f"The base of {where} must be a RigidBody, not {self.base!r}."
            )
        if not np.array_equal(self.pose, np.eye(4)):
            raise ArgumentError(
                f"The base of {where} floats: give the pose to the base, not the arm."
            )
        # Motors and followers that join several joints make M dense beyond the tree:
        # articulated inertias, which all that floats is solved by, do not apply.
        if _is_joined(self.arm):
            raise ArgumentError(
                f"{self.arm.name} has joints that follow or drive one another and "
                f"cannot float as {where}: lock them, or let its base stand still."
            )

    is_traced = True

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return those of a floating base, as `RigidBody` has them, and the joints'."""
        if self.base is None:
            return np.array(self.q), np.array(self.qd)
        position, velocity = self.base.start()
        return np.append(position, self.q), np.append(velocity, self.qd)

    def move(
        self, position: Array, velocity: Array, gravity: Array
    ) -> ArticulatedMotion:
        """Return the arm at a state."""
        return ArticulatedMotion(self, position, velocity, gravity)

    def check_point(self, point: Point, who: str) -> None:
        """Refuse a point without a link, or on a link the arm does not have."""
        if point.link is None:
            names = [link.name for link in self.arm.links]
            names += [self.arm.base] if self.base is not None else []
            raise ArgumentError(
                f"{who} has a point on {self.name!r} without a link. Name one "
                f"of: {', '.join(names)}."
            )
        self.arm.find_frame(point.link)

    @property
    def coordinate_names(self) -> tuple[list[str], list[str]]:
        """Names of positions and velocities."""
        positions, velocities = self.base.coordinate_names if self.base else ([], [])
        names = self.arm.coordinate_names
        return (
            [*positions, *(f"q_{n}" for n in names)],
            [*velocities, *(f"qd_{n}" for n in names)],
        )

    @property
    def quaternions(self) -> tuple[int, ...]:
        """The one of a floating base."""
        return () if self.base is None else self.base.quaternions


def _is_joined(arm: Arm) -> bool:
    mechanism = mechanism_of(arm)
    return bool(mechanism.is_coupled or len(mechanism.weights))


class ArticulatedMotion(Moving):
    """An articulated body in motion, over symbolic scalars.

    Args:
        body: Its description.
        position, velocity: Joint coordinates q and q̇, after those of a base that
            floats.
        gravity: Free fall in the world in [m/s²], numbers.
    """

    def __init__(
        self, body: ArticulatedBody, position: Array, velocity: Array, gravity: Array
    ) -> None:
        self._gravity = gravity
        self.joints = (position[-body.arm.dof :], velocity[-body.arm.dof :])
        self.base: RigidMotion | None = None
        if body.base is None:
            self._stand(body)
        else:
            self._float(body, body.base, position, velocity)
        self._q = self.mechanism.joints(self.joints[0].tolist(), is_position=True)
        self._qd = self.mechanism.joints(self.joints[1].tolist())
        self._still: list[Number] = [0.0] * self._skeleton.size
        self._points: dict[Point, tuple[PointMotion, Array, Array]] = {}

    def _stand(self, body: ArticulatedBody) -> None:
        """Put gravity into the base's axes, once and for all."""
        turn = _tidy(body.pose[:3, :3])
        self.arm: Arm = body.arm.with_gravity(
            _tidy(turn.T @ self._gravity.astype(float))
        )
        self.mechanism = mechanism_of(self.arm)
        self._skeleton = self.mechanism.skeleton
        grouped = _tidy(self.mechanism.grouped(self.arm.parameters))
        self._links = self.mechanism.bodies(grouped.tolist())
        self._turn, self._origin = symbols(turn), symbols(body.pose[:3, 3])
        self._fall = symbols(self.arm.gravity)
        self._carrier: LinkMotion | None = None

    def _float(
        self, body: ArticulatedBody, base: RigidBody, position: Array, velocity: Array
    ) -> None:
        """Let the base be a rigid body, all roots given about its centre of mass."""
        self.arm = body.arm.with_gravity(np.zeros(3))
        self.mechanism = mechanism_of(self.arm)
        self._center = base.inertia.center_of_mass
        self._skeleton = self.mechanism.skeleton.rooted_at(self._center)
        # Not grouped: what no torque shows on a base that stands moves one that floats.
        self._links = self._all_parameters
        self.base = base.move(position[:7], velocity[:6], self._gravity)
        self._turn, self._origin = self.base.rotation, self.base.position
        self._fall = product(self._turn.T, self._gravity)
        spin: Vector = tuple(self.base.omega)
        up: Vector = tuple(-self._fall)
        self._carrier = body_motion(spin, spin, ZERO, up)

    @property
    def _all_parameters(self) -> list[list[Number]]:
        """Ten internal parameters of every link."""
        tens = self.arm.layout.by_link(self.arm.parameters)[..., None]
        inside: list[list[Number]] = _tidy(self.mechanism.to_internal @ tens)[
            ..., 0
        ].tolist()
        return inside

    @cached_property
    def position_rate(self) -> Array:
        """Of a floating base, and q̇."""
        if self.base is None:
            return self.joints[1]
        return np.concatenate([self.base.position_rate, self.joints[1]])

    def point(self, point: Point) -> PointMotion:
        """Return where a point is and how it moves."""
        return self._at(point)[0]

    def apply_point_force(self, point: Point, force: Array) -> Array:
        """Return the load of a force [N] in world axes at a point: Jᵀf."""
        _, position, jacobian = self._at(point)
        inside = product(self._turn.T, force)
        torques = product(jacobian.T, inside)
        if self.base is None:
            return torques
        return np.concatenate([force, cross(position, inside), torques])

    def joint_load(self, joint: int, effort: Number) -> Array:
        """Return the load of one joint's torque [N m] or force [N]."""
        torques = zeros(self.arm.dof)
        torques[joint] = effort
        return self._load(torques)

    def _load(self, torques: Array) -> Array:
        """Return joint torques as a load: nothing pushes a floating base."""
        return np.concatenate([zeros(0 if self.base is None else 6), torques])

    def respond(self, force: Array) -> Array:
        """Return M⁻¹ times a generalised force."""
        if self._factors is not None:
            return self._outwards(symbols(self._sweep(force, {}).pushes))
        return symbols(solve_mass_matrix(self._mass_matrix, force.tolist()))

    def accelerate(self, load: Array | None) -> Array:
        """Return the acceleration under velocity, gravity, friction and a load."""
        if self._factors is not None:
            return self.combine([(1.0, self.free_answer(load))])
        torques = inverse_dynamics(
            self._skeleton, self._q, self._qd, self._still, self._links
        )
        total = self._friction - symbols(self.mechanism.coordinates(torques))
        return self.respond(total if load is None else total + load)

    def answer(self, pushes: Pushes) -> Answer:
        """Return how the arm answers forces at its points."""
        if self._factors is None:
            return super().answer(pushes)
        wrenches: dict[int, tuple[Vector, Vector]] = {}
        for point, force in pushes:
            link, wrench = self._wrench(point, force)
            old = wrenches.get(link, (ZERO, ZERO))
            wrenches[link] = (vsub(old[0], wrench[0]), vsub(old[1], wrench[1]))
        return Answer(sweep=self._factors.inwards(self._still, wrenches))

    def free_answer(self, load: Array | None) -> Answer:
        """Return how it answers velocity, gravity, friction and a load."""
        if self._factors is None:
            return super().free_answer(load)
        friction = self._load(self._friction)
        pairs = zip(self._motions, self._links, strict=True)
        wrenches = {i: link_wrench(*pair) for i, pair in enumerate(pairs)}
        if self.base is not None and self._carrier is not None:
            wrenches[BASE] = link_wrench(self._carrier, self._base_parameters)
        total = friction if load is None else friction + load
        return Answer(sweep=self._sweep(total, wrenches))

    def product(self, push: Answer, other: Answer) -> Number:
        """Return pushᵀ M⁻¹ other."""
        if push.sweep is None or other.sweep is None or self._factors is None:
            return super().product(push, other)
        product_value: Number = self._factors.product(push.sweep, other.sweep)
        return product_value

    def combine(self, terms: Sequence[tuple[Number, Answer]]) -> Array:
        """Return the acceleration under a weighted sum of loads: one outward sweep."""
        if self._factors is None:
            return super().combine(terms)
        pushes: Array = 0.0
        for weight, answer in terms:
            assert answer.sweep is not None
            # Sweeps are linear in their loads: sums of inward results need only one way
            # out.
            pushes = symbols(answer.sweep.pushes) * weight + pushes
        return self._outwards(pushes)

    def _sweep(self, load: Array, wrenches: dict[int, tuple[Vector, Vector]]) -> Sweep:
        """Sweep a load inwards, and what the links use up."""
        assert self._factors is not None
        if self.base is None:
            return self._factors.inwards(load.tolist(), wrenches)
        used, turned = wrenches.get(BASE, (ZERO, ZERO))
        force: Vector = tuple(product(self._turn.T, load[:3]))
        moment: Vector = tuple(load[3:6])
        base = (vsub(used, force), vsub(turned, moment))
        return self._factors.inwards(load[6:].tolist(), wrenches | {BASE: base})

    def _outwards(self, pushes: Array) -> Array:
        """Turn what sweeps leave into accelerations of the coordinates."""
        assert self._factors is not None
        rates = symbols(self._factors.outwards(pushes.tolist()))
        if self.base is None:
            return rates
        joints, alpha, a = rates[:-6], rates[-6:-3], rates[-3:]
        return np.concatenate([product(self._turn, a), alpha, joints])

    def _wrench(self, point: Point, force: Array) -> tuple[int, tuple[Vector, Vector]]:
        """Return a force at a point as force and moment in its link's axes."""
        link, inside = self._inside(point)
        pull = product(self._turn.T, force)
        if link != BASE:
            pull = product(self._poses[link][0].T, pull)
        return link, (tuple(pull), tuple(cross(inside, pull)))

    @cached_property
    def friction_power(self) -> Number:
        """Power of the friction in the joints in [W]."""
        return dot(self._friction, self.joints[1])

    @cached_property
    def kinetic_energy(self) -> Number:
        """½ Σ (p·v + L·ω) in [J].

        At rest, velocities in the place of accelerations give the links' momenta.
        """
        crossings = cross_joints(self._skeleton, self._q)
        carrier = None
        if self.base is not None:
            speed: Vector = tuple(product(self._turn.T, self.base.velocity))
            spin: Vector = tuple(self.base.omega)
            carrier = body_motion(ZERO, ZERO, spin, speed)
        still = self._still
        twists = accelerations(
            self._skeleton, crossings, still, still, self._qd, False, carrier
        )
        energy: Number = 0.0
        for twist, link in zip(twists, self._links, strict=True):
            p, L = link_wrench(twist, link)
            energy = energy + dot(symbols(p), symbols(twist.acceleration))
            energy = energy + dot(symbols(L), symbols(twist.alpha))
        for weights, drive in self._drives:
            speed_seen = dot(weights, self.joints[1])
            energy = energy + speed_seen * speed_seen * drive.rotor_inertia
        own = 0.0 if self.base is None else self.base.kinetic_energy
        return energy * 0.5 + own

    @cached_property
    def gravitational_energy(self) -> Number:
        """In [J], zero with all mass at the world's origin."""
        moment, mass = zeros(3), sum(link.inertia.mass for link in self.arm.links)
        for (R, origin), link in zip(self._poses, self._all_parameters, strict=True):
            moment = moment + product(R, symbols(link[1:4])) + origin * link[0]
        energy = -dot(self._fall, moment) - dot(self._gravity, self._origin) * mass
        own = 0.0 if self.base is None else self.base.gravitational_energy
        return energy + own

    @cached_property
    def _drives(self) -> list[tuple[Array, Drive]]:
        """How far the coordinates turn each motor, and the motor."""
        drives = [joint.drive for joint in self.arm.joints]
        drives += [coupling.drive for coupling in self.arm.couplings]
        rows = self.mechanism.drive_rows
        return [(symbols(row), drive) for row, drive in zip(rows, drives, strict=True)]

    @cached_property
    def _friction(self) -> Array:
        """Torque of friction and offset on the coordinates."""
        torque = zeros(self.arm.dof)
        for weights, drive in self._drives:
            speed = dot(weights, self.joints[1])
            effort = -(speed * drive.viscous) - drive.offset
            if drive.coulomb:
                effort = effort - sign(speed) * drive.coulomb
            torque = torque + weights * effort
        return torque

    @cached_property
    def _factors(self) -> ArticulatedInertias | None:
        """M⁻¹ in linear time, where an arm floats or is long, its joints separate."""
        is_short = self.base is None and self.mechanism.dof <= LONGEST_DENSE
        # Coupled joints make M dense beyond the tree: articulated inertias do not
        # apply.
        if is_short or _is_joined(self.arm):
            return None
        rotors = [joint.drive.rotor_inertia for joint in self.arm.joints]
        base = None if self.base is None else self._base_parameters
        return ArticulatedInertias(self._skeleton, self._q, self._links, rotors, base)

    @property
    def _base_parameters(self) -> list[Number]:
        """Ten of a floating base about its centre of mass: [m, h, Σ]."""
        assert self.base is not None
        inertia = self.base.body.inertia
        own = InertialParameters.from_center_of_mass(
            inertia.mass, (0, 0, 0), inertia.central_inertia
        )
        second = _tidy(own.pseudo_inertia[:3, :3])
        rows, columns = np.triu_indices(3)
        return [inertia.mass, 0.0, 0.0, 0.0, *second[rows, columns].tolist()]

    @cached_property
    def _mass_matrix(self) -> list[list[Number]]:
        """M of the coordinates, rotors included."""
        inside = mass_matrix(self._skeleton, self._q, self._links)
        half = [self.mechanism.coordinates(row) for row in inside]
        columns = zip(*half, strict=True)
        whole = symbols([self.mechanism.coordinates(column) for column in columns])
        for weights, drive in self._drives:
            if drive.rotor_inertia:
                whole = whole + np.outer(weights, weights) * drive.rotor_inertia
        rows: list[list[Number]] = whole.tolist()
        return rows

    @cached_property
    def _poses(self) -> list[tuple[Array, Array]]:
        """Rotation and origin of every internal frame, in base axes."""
        poses = link_poses(self._skeleton, self._q)
        return [(symbols(columns).T, symbols(origin)) for columns, origin in poses]

    @cached_property
    def _motions(self) -> list[LinkMotion]:
        """How the links accelerate by velocity, minus free fall.

        Gravity stays in, as in inverse dynamics, so that both share every operation.
        """
        crossings = cross_joints(self._skeleton, self._q)
        return accelerations(
            self._skeleton, crossings, self._qd, self._qd, self._still,
            base=self._carrier,
        )  # fmt: skip

    def _at(self, point: Point) -> tuple[PointMotion, Array, Array]:
        """Return a point's motion, its position in base axes and the 3×n Jacobian."""
        if point not in self._points:
            self._points[point] = self._locate(*self._inside(point))
        return self._points[point]

    def _inside(self, point: Point) -> tuple[int, Array]:
        """Return a point's link and its position in the link's internal frame."""
        assert point.link is not None
        link, T = self.arm.find_frame(point.link)
        local = T[:3, :3] @ np.asarray(point.at) + T[:3, 3]
        if link == BASE:
            return link, symbols(local - (0.0 if self.base is None else self._center))
        into = self._skeleton.segments[link].from_user
        return link, symbols(_tidy(into[:3, :3] @ local + into[:3, 3]))

    def _locate(self, link: int, inside: Array) -> tuple[PointMotion, Array, Array]:
        if link == BASE:
            position, turning = inside, zeros(3)
            jacobian = zeros(3, self.arm.dof)
            if self._carrier is not None:
                turning = product(symbols(self._carrier.rates), inside)
        else:
            R, origin = self._poses[link]
            position = origin + product(R, inside)
            motion = self._motions[link]
            bend = symbols(motion.acceleration) + product(symbols(motion.rates), inside)
            # Link accelerations hold minus free fall; adding gravity leaves J̇ q̇.
            turning = product(R, bend) + self._fall
            jacobian = self._jacobian(link, position)
        velocity = product(jacobian, self.joints[1])
        if self.base is not None:
            velocity = velocity + cross(self.base.omega, position)
        velocity = product(self._turn, velocity)
        moved = PointMotion(
            product(self._turn, position) + self._origin,
            velocity if self.base is None else velocity + self.base.velocity,
            product(self._turn, turning),
        )
        return moved, position, jacobian

    def _jacobian(self, link: int, position: Array) -> Array:
        """Return how the coordinates move a point on a link, in base axes."""
        columns = zeros(self._skeleton.size, 3)
        for i in self._skeleton.ancestors(link):
            R, origin = self._poses[i]
            axis = R[:, 2]
            turns = self._skeleton.segments[i].is_revolute
            columns[i] = cross(axis, position - origin) if turns else axis
        return symbols([self.mechanism.coordinates(row) for row in columns.T.tolist()])


def _tidy(values: np.ndarray) -> np.ndarray:
    """Make rounding exactly zero, which costs nothing when traced."""
    scale = float(np.abs(values).max(initial=0.0))
    return np.where(np.abs(values) <= _NOISE * scale, 0.0, values)
