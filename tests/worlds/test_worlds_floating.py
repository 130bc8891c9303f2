"""Arms on bases that float: conservation laws, free fall, MuJoCo, the nailed base."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armwise.arms import BASE, Arm, InertialParameters, Mimic
from armwise.errors import ArgumentError, ArmwiseError
from armwise.worlds import (
    ArticulatedBody,
    JointMotor,
    Point,
    PointToNail,
    PointToPoint,
    RigidBody,
    Run,
    SingularValueDropping,
    World,
    box,
    planar_chain,
    read_world,
    rod,
    simulate,
    sphere,
)
from armwise.worlds.body_protocol import (
    acceleration_from_velocities,
    quaternion_from_rotation,
    symbols,
)
from armwise.worlds.engine import WorldEngine
from tests.worlds.test_worlds_bodies import random_pose
from tests.worlds.test_worlds_linear_time import random_tree


def random_base(rng: np.random.Generator) -> RigidBody:
    parts = [box(3.0, (0.8, 0.5, 0.3), (0.2, -0.1, 0.3)), sphere(1.0, 0.2, (0, 0.4, 0))]
    velocity, spin = rng.normal(size=(2, 3))
    return RigidBody.from_segments("hull", parts, random_pose(rng), velocity, spin)


def floating_tree(count: int, seed: int) -> ArticulatedBody:
    rng = np.random.default_rng(seed)
    arm = random_tree(count, rng)
    # Its inertias as second moments: those of bodies that can exist.
    links = tuple(
        replace(link, inertia=possible(link.inertia.central_inertia, rng))
        for link in arm.links
    )
    arm = replace(arm, links=links)
    q, qd = rng.uniform(-1, 1, (2, count))
    return ArticulatedBody("craft", arm, q=q, qd=qd, base=random_base(rng))


def possible(second: np.ndarray, rng: np.random.Generator) -> InertialParameters:
    inertia = np.trace(second) * np.eye(3) - second
    return InertialParameters.from_center_of_mass(2.0, rng.normal(size=3), inertia)


def parts_of(body: ArticulatedBody | RigidBody) -> list[tuple[str | None, object]]:
    """The rigid pieces of a body: the link's name, and ten parameters."""
    if isinstance(body, RigidBody):
        return [(None, body.inertia)]
    links = [(link.name, link.inertia) for link in body.arm.links]
    return [(body.arm.base, body.base.inertia), *links]


def momenta(run: Run, row: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Momentum, angular momentum about the origin, centre and mass, piece by piece."""
    p, L, moment, mass = np.zeros(3), np.zeros(3), np.zeros(3), 0.0
    for body in run.world.bodies:
        position, velocity = (
            symbols(x[row]) for x in (run.position(body.name), run.velocity(body.name))
        )
        moving = body.move(position, velocity, symbols(run.world.gravity))
        for link, inertia in parts_of(body):
            c, m = inertia.center_of_mass, inertia.mass
            ends = [moving.point(Point(body.name, c + e, link)) for e in np.eye(3)]
            centre = moving.point(Point(body.name, tuple(c), link))
            x, v = (np.array(part, dtype=float) for part in centre[:2])
            R = np.array([e.position for e in ends], dtype=float).T - x[:, None]
            spins = np.array([e.velocity for e in ends], dtype=float).T - v[:, None]
            W = spins @ R.T
            omega = np.array([W[2, 1], W[0, 2], W[1, 0]])
            p, L = p + m * v, L + m * np.cross(x, v)
            L = L + R @ inertia.central_inertia @ R.T @ omega
            moment, mass = moment + m * x, mass + m
    return p, L, moment / mass, mass


@pytest.mark.parametrize("link", ["l0", "l2", "base"])
def test_the_four_operations_agree(link: str) -> None:
    """Powers, sweeps against loads, and a point's acceleration by differences."""
    craft, rng = floating_tree(3, 4), np.random.default_rng(5)
    gravity = symbols([0.3, -0.2, -9.81])
    position, velocity = craft.start()
    moving = craft.move(symbols(position), symbols(velocity), gravity)
    one = Point("craft", tuple(rng.normal(size=3)), link)
    other = Point("craft", tuple(rng.normal(size=3)), "l1")
    f, g = (symbols(rng.normal(size=3)) for _ in range(2))
    load = moving.apply_point_force(one, f)
    assert load @ velocity == pytest.approx(f @ moving.point(one).velocity)
    pushed = moving.respond(moving.apply_point_force(other, g))
    by_sweeps = moving.product(moving.answer([(one, f)]), moving.answer([(other, g)]))
    assert load @ pushed == pytest.approx(by_sweeps)
    assert moving.combine([(1.0, moving.answer([(other, g)]))]) == pytest.approx(pushed)

    h, rate = 1e-5, moving.accelerate(None)
    speeds = []
    for step in (h, -h):
        there = position + step * moving.position_rate, velocity + step * rate
        speeds.append(craft.move(*map(symbols, there), gravity).point(one).velocity)
    wanted = ((speeds[0] - speeds[1]) / (2 * h)).astype(float)
    found = acceleration_from_velocities(moving, one).astype(float)
    assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_momentum_and_energy_are_conserved_with_a_box_in_the_hand() -> None:
    """A tree with a motor holds a free box: forces inside change no momentum."""
    craft = floating_tree(3, 0)
    point = Point("craft", (0.1, 0.2, 0.3), "l2")
    hand = craft.move(*map(symbols, craft.start()), symbols(np.zeros(3))).point(point)
    pose = np.eye(4)
    pose[:3, 3] = hand.position
    crate = RigidBody.from_segments(
        "crate", [box(2.0, (0.2, 0.3, 0.4))], pose, hand.velocity.astype(float)
    )
    grip = PointToPoint("grip", point, Point("crate"))
    motor = JointMotor("motor", "craft", "j1", lambda t, q, qd: 3.0 - q[1] - qd[1])
    world = World((craft, crate), (grip,), (motor,), gravity=(0.0, 0.0, 0.0))
    run = simulate(world, 1.0, step=1e-3)
    first, last = momenta(run, 0), momenta(run, -1)
    assert last[0] == pytest.approx(first[0], abs=1e-9)
    assert last[1] == pytest.approx(first[1], abs=1e-8)
    assert run.ledger.relative_balance < 1e-9
    assert run.largest_deviation < 1e-6


def test_it_falls_as_one() -> None:
    craft = floating_tree(4, 1)
    run = simulate(World((craft,)), 1.0, step=1e-3)
    p, _, start, mass = momenta(run, 0)
    end = momenta(run, -1)[2]
    wanted = start + p / mass + 0.5 * np.array(run.world.gravity)
    assert end == pytest.approx(wanted, abs=1e-8)
    assert run.ledger.relative_balance < 1e-9


def mjcf_of(body: ArticulatedBody) -> str:
    arm = body.arm

    def piece(inertia: object, inner: str, pose: np.ndarray, joint: str) -> str:
        I = inertia.central_inertia
        full = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        return (
            f'<body pos="{numbers(pose[:3, 3])}" '
            f'quat="{numbers(quaternion_from_rotation(pose[:3, :3]))}">{joint}'
            f'<inertial pos="{numbers(inertia.center_of_mass)}" mass="{inertia.mass}" '
            f'fullinertia="{numbers(full)}"/>{inner}</body>'
        )

    def numbers(values: object) -> str:
        return " ".join(repr(float(x)) for x in values)

    def carried(parent: int) -> str:
        text = ""
        for i, joint in enumerate(arm.joints):
            if joint.parent == parent:
                kind = "hinge" if joint.is_revolute else "slide"
                line = (
                    f'<joint name="{joint.name}" type="{kind}" '
                    f'axis="{numbers(joint.axis)}" '
                    f'armature="{joint.drive.rotor_inertia}"/>'
                )
                text += piece(arm.links[i].inertia, carried(i), joint.origin, line)
        return text

    hull = piece(body.base.inertia, carried(BASE), body.base.pose, "<freejoint/>")
    return (
        '<mujoco><compiler angle="radian"/><option integrator="RK4" timestep="0.0005"/>'
        f"<worldbody>{hull}</worldbody></mujoco>"
    )


def test_a_random_tree_moves_as_in_mujoco() -> None:
    mujoco = pytest.importorskip("mujoco")
    craft = floating_tree(6, 2)
    model = mujoco.MjModel.from_xml_string(mjcf_of(craft))
    data = mujoco.MjData(model)
    order = [model.joint(joint.name).id - 1 for joint in craft.arm.joints]
    R, c = craft.base.pose[:3, :3], craft.base.inertia.center_of_mass
    spin = np.array(craft.base.angular_velocity)
    data.qpos[:3] = craft.base.pose[:3, 3]
    data.qpos[3:7] = quaternion_from_rotation(R)
    # Of the frame's origin there, of the centre of mass here.
    data.qvel[:3] = np.array(craft.base.velocity) - np.cross(spin, R @ c)
    data.qvel[3:6] = R.T @ spin
    data.qpos[7:][order], data.qvel[6:][order] = craft.q, craft.qd
    for _ in range(2000):
        mujoco.mj_step(model, data)

    run = simulate(World((craft,), gravity=tuple(model.opt.gravity)), 1.0, step=5e-4)
    base = run.point_positions([Point("craft", link=craft.arm.base)])[-1, 0]
    assert base == pytest.approx(data.qpos[:3], abs=1e-6)
    assert run.position("craft")[-1, 7:] == pytest.approx(
        data.qpos[7:][order], abs=1e-6
    )
    turned = run.position("craft")[-1, 3:7] @ data.qpos[3:7]
    assert abs(turned) == pytest.approx(1.0, abs=1e-9)


def test_a_nailed_base_stands() -> None:
    """Three nails make the floating arm the arm that stands where the base was."""
    rng = np.random.default_rng(3)
    arm, pose = random_tree(3, rng), random_pose(rng)
    q, qd = rng.uniform(-0.5, 0.5, (2, 3))
    hull = RigidBody.from_segments("hull", [box(3.0, (0.8, 0.5, 0.3))], pose)
    craft = ArticulatedBody("arm", arm, q=q, qd=qd, base=hull)
    corners = ((0.0, 0.0, 0.0), (0.5, 0.0, 0.0), (0.0, 0.5, 0.0))
    nails = tuple(
        PointToNail(
            f"nail{k}",
            Point("arm", at, arm.base),
            tuple(pose[:3, :3] @ at + pose[:3, 3]),
        )
        for k, at in enumerate(corners)
    )
    held = simulate(World((craft,), nails), 0.5, step=1e-3)
    stands = simulate(World((ArticulatedBody("arm", arm, pose, q, qd),)), 0.5)
    assert held.position("arm")[:, 7:] == pytest.approx(
        stands.position("arm"), abs=1e-7
    )
    recorded = held.to_recording("arm").channels["q_3"].values
    assert recorded == pytest.approx(stands.position("arm")[:, 2], abs=1e-7)
    link = [Point("arm", (0.1, 0.2, 0.3), "l2")]
    assert held.point_positions(link) == pytest.approx(
        stands.point_positions(link), abs=1e-6
    )


def operations(count: int) -> int:
    hull = RigidBody.from_segments("hull", [box(1.0, (0.2, 0.2, 0.2))])
    body = ArticulatedBody("a", planar_chain(count, 1 / count), base=hull)
    nail = PointToNail("nail", Point("a", link="tip"), (0.5, 0.0, 0.1))
    engine = WorldEngine(World((body,), (nail,)), SingularValueDropping(), "numpy")
    return sum(engine.traced.rates.counts.values())


def test_a_floating_chain_costs_in_proportion_to_its_links() -> None:
    assert np.log(operations(48) / operations(12)) / np.log(4) < 1.1


FILE = """
name = "satellite"
duration = 0.2
gravity = [0, 0, 0]

[[body]]
name = "satellite"
kind = "chain"
links = 2
q = [0.3, 0.4]
qd = [1.0, 0.0]
position = [0, 0, 1]
angular_velocity = [0, 0.5, 0]
base = [{ kind = "box", mass = 5.0, extents = [0.5, 0.5, 0.5] }]

[[constraint]]
name = "tether"
kind = "nail"
point = { body = "satellite", at = [-0.25, 0, 0], link = "base" }
at = [-0.25, 0, 1]
"""


def test_a_file_floats_too(tmp_path: Path) -> None:
    file = tmp_path / "satellite.toml"
    file.write_text(FILE)
    run = read_world(file).run()
    names = [name for name in run.table() if name.startswith("satellite.")]
    assert len(names) == 7 + 2 + 6 + 2
    assert run.velocity("satellite")[0, 3:6] == pytest.approx([0, 0.5, 0])
    assert run.largest_deviation < 1e-2
    assert run.ledger.relative_balance < 1e-6


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("base = [", "hull = [", "unknown key"),
        (FILE.splitlines()[13], "", "velocity, but its base stands"),
        (FILE.splitlines()[13], "base = []", "has no .*base"),
        ("mass = 5.0", "mass = 0.0", "positive mass"),
        ("angular_velocity = [0,", "angular_velocity = [nan,", "angular_velocity"),
        ('link = "base"', 'link = "hull"', "no link or frame 'hull'"),
        (', link = "base"', "", "without a link"),
    ],
)
def test_a_file_that_cannot_float_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    file = tmp_path / "satellite.toml"
    assert old in FILE
    file.write_text(FILE.replace(old, new))
    with pytest.raises(ArmwiseError, match=words) as problem:
        read_world(file)
    assert "\n" not in str(problem.value)


def joined_arm() -> Arm:
    chain = planar_chain(2)
    follower = replace(chain.joints[1], mimic=Mimic(0, 1.0, 0.0))
    return replace(chain, joints=(chain.joints[0], follower))


def test_bases_that_cannot_float_are_refused() -> None:
    hull = RigidBody.from_segments("hull", [rod(1.0, (0, 0, 0), (0, 0, 1))])
    chain = planar_chain(2)
    with pytest.raises(ArgumentError, match="give the pose to the base"):
        ArticulatedBody("a", chain, random_pose(np.random.default_rng(0)), base=hull)
    with pytest.raises(ArgumentError, match="must be a RigidBody"):
        ArticulatedBody("a", chain, base=hull.inertia)
    with pytest.raises(ArgumentError, match="cannot float"):
        ArticulatedBody("a", joined_arm(), base=hull)
