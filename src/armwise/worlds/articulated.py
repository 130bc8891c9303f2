"""Motion of an articulated body at one state: the four operations in joint space.

Everything about the arm comes from `armwise.dynamics`; here it is only asked in world
axes, point by point.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from armwise.arms import BASE, Arm, Drive
from armwise.dynamics import (
    ZERO,
    ArticulatedInertias,
    LinkMotion,
    Vector,
    accelerations,
    cross_joints,
    inverse_dynamics,
    link_poses,
    link_wrench,
    mass_matrix,
    mechanism_of,
    potential_energy,
    solve_mass_matrix,
    vsub,
)
from armwise.programs import Number, sign
from armwise.worlds.bodies import ArticulatedBody, Point
from armwise.worlds.body_protocol import (
    Answer,
    Array,
    PointMotion,
    Pushes,
    cross,
    dense_answer,
    dense_combination,
    dot,
    product,
    symbols,
    zeros,
)

# Judgement: some ninety roundings of 2⁻⁵³.
_NOISE = 1e-14
"""Below this, relative to the largest, a constant is rounding and becomes zero."""

# Judgement: where cubic growth overtakes linear growth with a larger constant.
LONGEST_DENSE = 7
"""Joints up to which factoring the mass matrix takes fewer operations."""


class ArticulatedMotion:
    """An articulated body in motion, over symbolic scalars.

    Args:
        body: Its description.
        position, velocity: Joint coordinates q and q̇.
        gravity: Free fall in the world in [m/s²], numbers.
    """

    def __init__(
        self, body: ArticulatedBody, position: Array, velocity: Array, gravity: Array
    ) -> None:
        turn = _tidy(body.pose[:3, :3])
        self.arm: Arm = body.arm.with_gravity(_tidy(turn.T @ gravity.astype(float)))
        self.mechanism = mechanism_of(self.arm)
        self._skeleton = self.mechanism.skeleton
        grouped = _tidy(self.mechanism.grouped(self.arm.parameters))
        self._links = self.mechanism.bodies(grouped.tolist())
        self._turn, self._base = symbols(turn), symbols(body.pose[:3, 3])
        self.joints = (position, velocity)
        self._q = self.mechanism.joints(position.tolist(), is_position=True)
        self._qd = self.mechanism.joints(velocity.tolist())
        self._still: list[Number] = [0.0] * self._skeleton.size
        self._points: dict[Point, tuple[PointMotion, Array]] = {}

    @property
    def position_rate(self) -> Array:
        """q̇."""
        return self.joints[1]

    def point(self, point: Point) -> PointMotion:
        """Return where a point is and how it moves."""
        return self._at(point)[0]

    def apply_point_force(self, point: Point, force: Array) -> Array:
        """Return the joint torques of a force [N] in world axes at a point: Jᵀf."""
        return product(self._at(point)[1].T, force)

    def respond(self, force: Array) -> Array:
        """Return M⁻¹ times a generalised force."""
        if self._factors is not None:
            return symbols(self._factors.solve(force.tolist()))
        return symbols(solve_mass_matrix(self._mass_matrix, force.tolist()))

    def accelerate(self, load: Array | None) -> Array:
        """Return q̈ under velocity, gravity, friction and a load."""
        torques = inverse_dynamics(
            self._skeleton, self._q, self._qd, self._still, self._links
        )
        total = self._friction - symbols(self.mechanism.coordinates(torques))
        return self.respond(total if load is None else total + load)

    def answer(self, pushes: Pushes) -> Answer:
        """Return how the arm answers forces at its points."""
        if self._factors is None:
            return dense_answer(self, pushes)
        wrenches: dict[int, tuple[Vector, Vector]] = {}
        for point, force in pushes:
            link, wrench = self._wrench(point, force)
            if link != BASE:
                old = wrenches.get(link, (ZERO, ZERO))
                wrenches[link] = (vsub(old[0], wrench[0]), vsub(old[1], wrench[1]))
        return Answer(sweep=self._factors.inwards(self._still, wrenches))

    def free_answer(self, load: Array | None) -> Answer:
        """Return how it answers velocity, gravity, friction and a load."""
        if self._factors is None:
            return Answer(response=self.accelerate(load))
        torques = self._friction if load is None else self._friction + load
        pairs = zip(self._motions, self._links, strict=True)
        wrenches = {i: link_wrench(*pair) for i, pair in enumerate(pairs)}
        return Answer(sweep=self._factors.inwards(torques.tolist(), wrenches))

    def product(self, push: Answer, other: Answer) -> Number:
        """Return pushᵀ M⁻¹ other."""
        if push.sweep is None or other.sweep is None or self._factors is None:
            return dot(push.load, other.response)
        product_value: Number = self._factors.product(push.sweep, other.sweep)
        return product_value

    def combine(self, terms: Sequence[tuple[Number, Answer]]) -> Array:
        """Return q̈ under a weighted sum of loads, in one outward sweep."""
        if self._factors is None:
            return dense_combination(terms)
        pushes = zeros(self.arm.dof)
        for weight, answer in terms:
            assert answer.sweep is not None
            # Sweeps are linear in their loads: sums of inward results need only one way
            # out.
            pushes = pushes + symbols(answer.sweep.pushes) * weight
        return symbols(self._factors.outwards(pushes.tolist()))

    def _wrench(self, point: Point, force: Array) -> tuple[int, tuple[Vector, Vector]]:
        """Return a force at a point as force and moment in its link's axes."""
        link, inside = self._inside(point)
        if link == BASE:
            return link, (ZERO, ZERO)
        R = self._poses[link][0]
        pull = product(R.T, product(self._turn.T, force))
        return link, (tuple(pull), tuple(cross(inside, pull)))

    @property
    def friction_power(self) -> Number:
        """Power of the friction in the joints in [W]."""
        return dot(self._friction, self.joints[1])

    @property
    def kinetic_energy(self) -> Number:
        """½ q̇·M q̇ in [J]: inverse dynamics at rest with q̈ = q̇ gives M q̇."""
        momentum = inverse_dynamics(
            self._skeleton, self._q, self._still, self._qd, self._links,
            with_gravity=False,
        )  # fmt: skip
        energy: Number = dot(symbols(momentum), symbols(self._qd))
        for weights, drive in self._drives:
            speed = dot(weights, self.joints[1])
            energy = energy + speed * speed * drive.rotor_inertia
        return energy * 0.5

    @property
    def gravitational_energy(self) -> Number:
        """In [J], zero with all mass at the world's origin."""
        tens = self.arm.layout.by_link(self.arm.parameters)[..., None]
        links = (self.mechanism.to_internal @ tens)[..., 0].tolist()
        inside: Number = potential_energy(self._skeleton, self._q, links)
        mass = sum(link.inertia.mass for link in self.arm.links)
        base = product(self._turn.T, self._base)
        return inside - dot(symbols(self.arm.gravity), base) * mass

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
        """M⁻¹ in linear time, where the arm is long and its joints independent."""
        joined = self.mechanism.is_coupled or len(self.mechanism.weights)
        # Coupled joints make M dense beyond the tree: articulated inertias do not
        # apply.
        if joined or self.mechanism.dof <= LONGEST_DENSE:
            return None
        rotors = [joint.drive.rotor_inertia for joint in self.arm.joints]
        return ArticulatedInertias(self._skeleton, self._q, self._links, rotors)

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
        return accelerations(self._skeleton, crossings, self._qd, self._qd, self._still)

    def _at(self, point: Point) -> tuple[PointMotion, Array]:
        """Return a point's motion and its 3×n Jacobian in world axes."""
        if point not in self._points:
            self._points[point] = self._locate(*self._inside(point))
        return self._points[point]

    def _inside(self, point: Point) -> tuple[int, Array]:
        """Return a point's link and its position in the link's internal frame."""
        assert point.link is not None
        link, T = self.arm.find_frame(point.link)
        local = T[:3, :3] @ np.asarray(point.at) + T[:3, 3]
        if link == BASE:
            return link, symbols(local)
        into = self._skeleton.segments[link].from_user
        return link, symbols(_tidy(into[:3, :3] @ local + into[:3, 3]))

    def _locate(self, link: int, inside: Array) -> tuple[PointMotion, Array]:
        if link == BASE:
            position = product(self._turn, inside) + self._base
            still = PointMotion(position, zeros(3), zeros(3))
            return still, zeros(3, self.arm.dof)
        R, origin = self._poses[link]
        position = origin + product(R, inside)
        motion = self._motions[link]
        bend = symbols(motion.acceleration) + product(symbols(motion.rates), inside)
        # Link accelerations hold minus free fall; adding gravity leaves J̇ q̇.
        turning = product(R, bend) + symbols(self.arm.gravity)
        jacobian = product_all(self._turn, self._jacobian(link, position))
        return PointMotion(
            product(self._turn, position) + self._base,
            product(jacobian, self.joints[1]),
            product(self._turn, turning),
        ), jacobian

    def _jacobian(self, link: int, position: Array) -> Array:
        """Return how the coordinates move a point on a link, in base axes."""
        columns = zeros(self._skeleton.size, 3)
        for i in self._skeleton.ancestors(link):
            R, origin = self._poses[i]
            axis = R[:, 2]
            turns = self._skeleton.segments[i].is_revolute
            columns[i] = cross(axis, position - origin) if turns else axis
        return symbols([self.mechanism.coordinates(row) for row in columns.T.tolist()])


def product_all(A: Array, B: Array) -> Array:
    """Return the matrix product A B."""
    return symbols([product(A, column).tolist() for column in B.T]).T


def _tidy(values: np.ndarray) -> np.ndarray:
    """Make rounding exactly zero, which costs nothing when traced."""
    scale = float(np.abs(values).max(initial=0.0))
    return np.where(np.abs(values) <= _NOISE * scale, 0.0, values)
