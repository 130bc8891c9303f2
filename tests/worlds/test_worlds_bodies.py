"""The four operations of §2.4.3, against the thesis' formulas and `Dynamics`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armwise import Dynamics, load_arm
from armwise.arms import InertialParameters, Shape
from armwise.errors import ArgumentError
from armwise.worlds import ArticulatedBody, Point, RigidBody, Segment, box, rod, sphere
from armwise.worlds.articulated import ArticulatedMotion
from armwise.worlds.body_protocol import (
    acceleration_from_forces,
    acceleration_from_velocities,
    force_to_acceleration,
    rotation_of,
    symbols,
)
from armwise.worlds.rigid import RigidMotion

GRAVITY = symbols([0.3, -0.2, -9.81])


def hat(v: np.ndarray) -> np.ndarray:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def random_pose(rng: np.random.Generator) -> np.ndarray:
    R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    T = np.eye(4)
    T[:3, :3] = R * np.sign(np.linalg.det(R))
    T[:3, 3] = rng.normal(size=3)
    return T


def random_rigid(rng: np.random.Generator) -> tuple[RigidBody, RigidMotion]:
    parts = [rod(1.0, rng.normal(size=3), rng.normal(size=3), 0.1), sphere(0.5, 0.2)]
    body = RigidBody.from_segments(
        "b", parts, random_pose(rng), rng.normal(size=3), rng.normal(size=3)
    )
    position, velocity = body.start()
    return body, RigidMotion(body, symbols(position), symbols(velocity), GRAVITY)


@pytest.mark.parametrize(
    "segment",
    [
        box(2.0, (0.3, 0.5, 0.2)),
        sphere(1.5, 0.3),
        Segment(Shape("cylinder", (0.2, 0.7), np.eye(4)), 1.2),
        Segment(Shape("capsule", (0.2, 0.5), np.eye(4)), 1.2),
    ],
    ids=["box", "sphere", "cylinder", "capsule"],
)
def test_inertia_of_a_solid_is_the_integral_over_it(segment: Segment) -> None:
    kind, size = segment.shape.kind, segment.shape.size
    # The midpoint rule over a fine grid, counting the cells inside.
    axis = (np.arange(120) + 0.5) / 120 * 1.0 - 0.5
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    r = np.hypot(x, y)
    if kind == "box":
        inside = np.all(
            [abs(v) < s / 2 for v, s in zip((x, y, z), size, strict=True)], 0
        )
    elif kind == "sphere":
        inside = r**2 + z**2 < size[0] ** 2
    elif kind == "cylinder":
        inside = (r < size[0]) & (abs(z) < size[1] / 2)
    else:
        inside = r**2 + np.clip(abs(z) - size[1] / 2, 0, None) ** 2 < size[0] ** 2
    p = np.stack([x[inside], y[inside], z[inside]])
    wanted = segment.mass * (np.eye(3) * (p**2).sum(0).mean() - p @ p.T / p.shape[1])
    assert segment.inertia.central_inertia == pytest.approx(wanted, rel=0.02, abs=1e-3)


def test_a_body_of_segments_has_their_mass_and_center() -> None:
    body = RigidBody.from_segments("b", [sphere(1.0, 0.1), sphere(3.0, 0.1, (1, 0, 0))])
    assert body.inertia.mass == pytest.approx(4.0)
    assert body.inertia.center_of_mass == pytest.approx([0.75, 0, 0])


def test_force_to_acceleration_of_a_rigid_body_is_equation_2_23() -> None:
    rng = np.random.default_rng(0)
    body, moving = random_rigid(rng)
    a, b = (Point("b", tuple(rng.normal(size=3))) for _ in range(2))
    R = body.pose[:3, :3]
    inertia = R @ body.inertia.central_inertia @ R.T
    lever = [R @ (np.array(p.at) - body.inertia.center_of_mass) for p in (a, b)]
    wanted = np.eye(3) / body.inertia.mass
    wanted = wanted - hat(lever[0]) @ np.linalg.inv(inertia) @ hat(lever[1])
    found = force_to_acceleration(moving, a, b).astype(float)
    assert found == pytest.approx(wanted)


def test_acceleration_of_a_rigid_body_is_equation_2_20() -> None:
    rng = np.random.default_rng(1)
    body, moving = random_rigid(rng)
    point = Point("b", tuple(rng.normal(size=3)))
    R, w = body.pose[:3, :3], np.array(body.angular_velocity)
    inertia = R @ body.inertia.central_inertia @ R.T
    lever = R @ (np.array(point.at) - body.inertia.center_of_mass)
    spin = -np.linalg.inv(inertia) @ np.cross(w, inertia @ w)
    wanted = GRAVITY.astype(float) + np.cross(spin, lever)
    wanted = wanted + np.cross(w, np.cross(w, lever))
    found = acceleration_from_velocities(moving, point).astype(float)
    assert found == pytest.approx(wanted)


def test_a_quaternion_of_any_length_gives_a_rotation() -> None:
    R = rotation_of(symbols([0.3, -1.0, 2.0, 0.7])).astype(float)
    assert pytest.approx(np.eye(3), abs=1e-14) == R @ R.T


@pytest.mark.parametrize("name", ["puma260", "ddarm"])
def test_an_articulated_body_agrees_with_dynamics(name: str) -> None:
    rng = np.random.default_rng(2)
    arm = load_arm(name)
    pose = random_pose(rng)
    q, qd = rng.uniform(-1, 1, (2, arm.dof))
    body = ArticulatedBody("b", arm, pose, tuple(q), tuple(qd))
    moving = ArticulatedMotion(body, symbols(q), symbols(qd), GRAVITY)
    R = pose[:3, :3]
    there = Dynamics(arm.with_gravity(R.T @ GRAVITY.astype(float)), backend="numpy")
    link = arm.links[-1].name
    point = Point("b", (0.0, 0.0, 0.0), link)

    J = R @ there.jacobian(q, link)[:3]
    M = there.mass_matrix(q)
    found = force_to_acceleration(moving, point, point).astype(float)
    assert found == pytest.approx(J @ np.linalg.inv(M) @ J.T)

    push = rng.normal(size=arm.dof)
    answer = acceleration_from_forces(moving, point, symbols(push)).astype(float)
    assert answer == pytest.approx(J @ np.linalg.solve(M, push))

    qdd = there.forward_dynamics(q, qd, np.zeros(arm.dof))
    assert moving.accelerate(None).astype(float) == pytest.approx(qdd)
    assert float(moving.kinetic_energy) == pytest.approx(there.kinetic_energy(q, qd))

    h = 1e-6
    ahead, behind = (there.jacobian(q + s * h * qd, link)[:3] for s in (1, -1))
    turning = R @ (ahead - behind) / (2 * h) @ qd
    wanted = J @ qdd + turning
    found = acceleration_from_velocities(moving, point).astype(float)
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-6)


def test_gravitational_energy_changes_by_minus_the_work_of_gravity() -> None:
    rng = np.random.default_rng(3)
    arm = load_arm("puma260")
    pose = random_pose(rng)
    q = rng.uniform(-1, 1, arm.dof)
    there = Dynamics(
        arm.with_gravity(pose[:3, :3].T @ GRAVITY.astype(float)), backend="numpy"
    )

    def height(angles: np.ndarray) -> float:
        body = ArticulatedBody("b", arm, pose, tuple(angles))
        zero = symbols(np.zeros(arm.dof))
        moving = ArticulatedMotion(body, symbols(angles), zero, GRAVITY)
        return float(moving.gravitational_energy)

    step = 1e-6 * np.eye(arm.dof)
    slope = [(height(q + e) - height(q - e)) / 2e-6 for e in step]
    assert slope == pytest.approx(there.gravity_torque(q), abs=1e-6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: sphere(0.0, 0.1), "positive mass"),
        (lambda: sphere(1.0, 0.0).inertia, "positive sizes"),
        (lambda: rod(1.0, (0, 0, 0), (0, 0, 0)), "two different end points"),
        (lambda: Point("b", (0.0, np.nan, 0.0)), "three finite numbers"),
        (lambda: Segment(Shape("mesh", (1.0,), np.eye(4)), 1.0).inertia, "mesh"),
        (lambda: RigidBody("b", InertialParameters.zero()), "positive mass"),
        (lambda: RigidBody("b", point_mass()), "some thickness"),
        (lambda: RigidBody("b", sphere(1.0, 0.1).inertia, np.ones((4, 4))), "rotation"),
        (lambda: ArticulatedBody("b", load_arm("ddarm"), q=(1.0,)), "3 finite numbers"),
    ],
)
def test_impossible_bodies_are_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


def point_mass() -> InertialParameters:
    return InertialParameters.from_center_of_mass(1.0, (0, 0, 0), np.zeros((3, 3)))
