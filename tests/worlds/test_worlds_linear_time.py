"""M⁻¹ by articulated bodies: right on trees, linear in the links."""

from __future__ import annotations

import numpy as np
import pytest

from armwise import Dynamics
from armwise.arms import Arm, Drive, InertialParameters, Joint, Link
from armwise.dynamics import mechanism_of
from armwise.dynamics.articulated import ArticulatedInertias
from armwise.worlds import (
    ArticulatedBody,
    Point,
    PointToNail,
    SingularValueDropping,
    World,
    planar_chain,
)
from armwise.worlds.engine import WorldEngine


def random_tree(count: int, rng: np.random.Generator) -> Arm:
    joints, links = [], []
    for i in range(count):
        R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        origin = np.eye(4)
        origin[:3, :3] = R * np.sign(np.linalg.det(R))
        origin[:3, 3] = rng.normal(size=3)
        axis = rng.normal(size=3)
        kind = "revolute" if rng.random() < 0.7 else "prismatic"
        drive = Drive(rotor_inertia=float(rng.random()))
        parent = int(rng.integers(-1, i)) if i else -1
        unit = axis / np.linalg.norm(axis)
        joints.append(Joint(f"j{i}", kind, parent, origin, unit, drive=drive))
        B = rng.normal(size=(3, 3))
        inertia = InertialParameters.from_center_of_mass(
            1 + rng.random(), rng.normal(size=3), B @ B.T + np.eye(3)
        )
        links.append(Link(f"l{i}", inertia))
    return Arm("tree", tuple(joints), tuple(links))


@pytest.mark.parametrize("count", [1, 3, 6, 9])
def test_articulated_inertias_solve_the_mass_matrix(count: int) -> None:
    rng = np.random.default_rng(count)
    arm = random_tree(count, rng)
    q, right = rng.normal(size=(2, count))
    mechanism = mechanism_of(arm)
    bodies = mechanism.bodies(mechanism.grouped(arm.parameters).tolist())
    rotors = [joint.drive.rotor_inertia for joint in arm.joints]
    factors = ArticulatedInertias(mechanism.skeleton, q.tolist(), bodies, rotors)
    x = factors.solve(right.tolist())
    M = Dynamics(arm, backend="numpy").mass_matrix(q)
    assert pytest.approx(right, abs=1e-12) == M @ x


def operations(count: int) -> int:
    body = ArticulatedBody("a", planar_chain(count, 1 / count), q=(0.1,) * count)
    nail = PointToNail("nail", Point("a", link="tip"), (0.5, 0.0, 0.1))
    engine = WorldEngine(World((body,), (nail,)), SingularValueDropping(), "numpy")
    return sum(engine.traced.rates.counts.values())


def test_a_chain_costs_in_proportion_to_its_links() -> None:
    few, many = operations(16), operations(64)
    exponent = np.log(many / few) / np.log(4)
    assert exponent < 1.1


def constrained(points: int) -> int:
    from armwise.worlds import RigidBody, box

    body = RigidBody.from_segments("b", [box(1.0, (1, 1, 1))])
    places = np.random.default_rng(0).normal(size=(points, 3))
    nails = tuple(
        PointToNail(f"n{k}", Point("b", tuple(p)), tuple(p))
        for k, p in enumerate(places)
    )
    engine = WorldEngine(World((body,), nails), SingularValueDropping(), "numpy")
    return sum(engine.traced.rates.counts.values())


def test_constraints_on_one_body_cost_at_most_their_cube() -> None:
    """By operations where the solution is traced; beyond, a loop of known cost."""
    few, many = constrained(2), constrained(5)
    assert np.log(many / few) / np.log(2.5) < 3.0
