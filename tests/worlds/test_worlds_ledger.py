"""Every joule accounted for, whatever pushes."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.arms import Drive
from armwise.motions import Sinusoid
from armwise.worlds import (
    ArticulatedBody,
    Drag,
    JointLimit,
    JointMotor,
    Point,
    PointForce,
    PointToLine,
    PointToNail,
    RigidBody,
    Run,
    Spring,
    Torque,
    World,
    planar_chain,
    rod,
    simulate,
)
from armwise.worlds.layout import Account

LIGHT = rod(1.0, (-0.5, 0, 0), (0.5, 0, 0), 0.1)


def free_body(name: str = "b", x: float = 0.0) -> RigidBody:
    pose = np.eye(4)
    pose[0, 3] = x
    return RigidBody.from_segments(name, [LIGHT], pose, (0, 1, 0), (0.5, 1, 2))


@pytest.fixture(scope="module")
def everything() -> Run:
    """Two bodies and an arm, with every kind of force at once."""
    arm = planar_chain(2, viscous=0.3)
    body = ArticulatedBody("arm", arm, q=(0.3, 0.5))
    end = Point("b", (0.5, 0, 0))
    return simulate(
        World(
            (free_body("b", 1.5), free_body("c", 3.0), body),
            (PointToNail("carry", Point("c"), _carried()),),
            (
                Spring("soft", end, Point("c", (-0.5, 0, 0)), 20.0, 0.4, 0.5),
                Spring("pull", Point("arm", link="tip"), Point("b"), 15.0),
                Drag("air", end, 0.2, 0.3),
                PointForce("push", Point("b"), lambda t: (np.sin(3 * t), 0, 9.81)),
                PointForce("lift", Point("c"), (0.0, 0.0, 5.0)),
                Torque("twist", "b", (0, 0, 1), 0.3, "c", 0.1),
                JointMotor("motor", "arm", "joint_1", lambda t, q, qd: -5 * q[0]),
                JointMotor("steady", "arm", "joint_2", 1.0),
                JointLimit("stop", "arm", "joint_1", 500.0, 3.0, -0.2, 0.5),
            ),
        ),
        3.0,
    )


def _carried() -> Sinusoid:
    center, swing = np.array([2.9, 0.0, 0.0]), np.array([0.1, 0.2, 0.3])
    return Sinusoid(center, swing, np.array([2.0, 3.0, 1.0]), 100.0)


def test_the_ledger_closes_with_every_force_at_once(everything: Run) -> None:
    # A pressed stop has a kink, which costs RK4 a few digits.
    assert everything.ledger.relative_balance < 1e-5
    moved = {a.kind for a, w in everything.ledger.work.items() if np.ptp(w) > 1e-3}
    wanted = {"actuator", "damper", "drag", "friction", "constraint", "carrier"}
    assert wanted <= moved


def test_dampers_only_take(everything: Run) -> None:
    for account, work in everything.ledger.work.items():
        if account.kind in ("damper", "drag", "friction"):
            assert np.all(np.diff(work) <= 1e-12), account
            assert work[-1] < -1e-4, account


def test_every_account_has_a_line(everything: Run) -> None:
    lines = everything.ledger.summary()
    for name in ("soft", "air", "push", "motor", "stop", "carry"):
        assert any(name in line for line in lines)
    assert lines["relative balance"] == everything.ledger.relative_balance


def test_a_constant_force_does_force_times_way() -> None:
    push = PointForce("push", Point("b"), (2.0, 0.0, 0.0))
    body = RigidBody.from_segments("b", [LIGHT])
    run = simulate(World((body,), (), (push,), (0.0, 0.0, 0.0)), 1.0)
    work = run.ledger.work[Account("actuator", "push")]
    assert work[-1] == pytest.approx(2.0 * 0.5 * 2.0, rel=1e-12)
    assert run.ledger.kinetic["b"][-1] == pytest.approx(work[-1], rel=1e-12)


def test_a_stretched_spring_stores_half_k_x_squared() -> None:
    spring = Spring("s", Point("b"), (2.0, 0.0, 0.0), 10.0, 0.5)
    body = RigidBody.from_segments("b", [LIGHT])
    run = simulate(World((body,), (), (spring,)), 0.1)
    assert run.ledger.stored["s"][0] == pytest.approx(0.5 * 10 * 1.5**2)


@pytest.mark.parametrize("rest", [0.0, 0.4])
def test_a_damped_spring_swings_as_the_textbook_says(rest: float) -> None:
    spring = Spring("s", Point("b"), (-1.0, 0.0, 0.0), 10.0, rest, 3.0)
    body = RigidBody.from_segments("b", [LIGHT])
    run = simulate(World((body,), (), (spring,), (0.0, 0.0, 0.0)), 1.0)
    decay, omega = 1.5, np.sqrt(10.0 - 1.5**2)
    t = run.time
    swing = np.cos(omega * t) + decay / omega * np.sin(omega * t)
    wanted = rest - 1.0 + (1.0 - rest) * np.exp(-decay * t) * swing
    assert run.position("b")[:, 0] == pytest.approx(wanted, abs=1e-9)


def test_drag_slows_as_the_textbook_says() -> None:
    body = RigidBody.from_segments("b", [LIGHT], None, (2.0, 0.0, 0.0))
    drag = Drag("d", Point("b"), 0.5, 0.0), Drag("e", Point("b"), 0.0, 0.7)
    slow, fast = (
        simulate(World((body,), (), (one,), (0.0, 0.0, 0.0)), 1.0) for one in drag
    )
    assert slow.velocity("b")[-1, 0] == pytest.approx(2 * np.exp(-0.5), rel=1e-10)
    assert fast.velocity("b")[-1, 0] == pytest.approx(2 / (1 + 1.4), rel=1e-10)


def test_a_pressed_stop_pushes_back_by_its_depth() -> None:
    body = ArticulatedBody("arm", planar_chain(1), q=(0.3,))
    stop = JointLimit("stop", "arm", "joint_1", 200.0, 0.0, upper=0.2)
    run = simulate(World((body,), (), (stop,), (0.0, 0.0, 0.0)), 0.01)
    inertia = 1 / 3 + 0.03**2 / 4
    first = np.diff(run.velocity("arm")[:2, 0])[0] / 1e-3
    assert first == pytest.approx(-200.0 * 0.1 / inertia, rel=1e-3)
    assert run.ledger.stored["stop"][0] == pytest.approx(0.5 * 200 * 0.1**2)


def test_a_torque_turns_its_body_and_the_reaction_the_other_way() -> None:
    bodies = (RigidBody.from_segments("b", [LIGHT]), free_body("c", 3.0))
    twist = Torque("t", "b", (0, 0, 2.0), 0.3, "c")
    run = simulate(World(bodies, (), (twist,), (0.0, 0.0, 0.0)), 0.1)
    about = LIGHT.inertia.central_inertia[2, 2]
    assert run.velocity("b")[-1, 5] == pytest.approx(0.03 / about, rel=1e-9)
    from armwise.arms.poses import rotation_from_quaternion

    ends = [
        rotation_from_quaternion(q[3:]) @ LIGHT.inertia.central_inertia @ v[3:]
        for q, v in zip(run.position("c"), run.velocity("c"), strict=True)
    ]
    assert ends[-1] - ends[0] == pytest.approx([0, 0, -0.03], abs=1e-9)


def test_a_moving_nail_does_real_work_and_a_still_one_none() -> None:
    lift = Sinusoid(
        np.array([0.5, 0, 0.5]), np.array([0, 0, -0.5]), np.array([0, 0, 1.0]), 100.0
    )
    body = RigidBody.from_segments("b", [LIGHT])
    end = Point("b", (0.5, 0, 0))
    run = simulate(World((body,), (PointToNail("n", end, lift),)), 2.0)
    energy = run.ledger.energy
    carried = run.ledger.work[Account("carrier", "n")]
    assert carried[-1] == pytest.approx(energy[-1] - energy[0], rel=1e-7)
    still = simulate(World((body,), (PointToNail("n", end, (0.5, 0.0, 0.0)),)), 2.0)
    assert still.ledger.work_of("constraint")[-1] == pytest.approx(0, abs=1e-7)
    assert Account("carrier", "n") not in still.ledger.work


def test_friction_and_rotors_of_the_arms_own_drives_count() -> None:
    from dataclasses import replace

    arm = planar_chain(2)
    drive = Drive(rotor_inertia=0.5, viscous=0.2, coulomb=0.3, offset=0.1)
    joints = tuple(replace(joint, drive=drive) for joint in arm.joints)
    body = ArticulatedBody("arm", replace(arm, joints=joints), q=(0.3, 0.5), qd=(2, 1))
    run = simulate(World((body,)), 0.4)
    assert run.ledger.work[Account("friction", "arm")][-1] < -0.1
    assert run.ledger.relative_balance < 1e-8


def test_an_hour_of_the_four_bar_would_not_drift() -> None:
    """Ten minutes here; `benchmarks/worlds.py` runs the hour."""
    from papers.mitchell_rivals import FOUR_BAR, TIP, four_bar_angles

    lengths, masses, ground = FOUR_BAR
    arm = planar_chain(3, lengths, masses, viscous=1.0)
    body = ArticulatedBody("arm", arm, q=four_bar_angles(-np.pi / 2))
    world = World(
        (body,),
        (PointToLine("ground", TIP, (ground, 0.0, 0.0), (0, 1, 0)),),
        (JointMotor("motor", "arm", "joint_1", 8.0),),
    )
    run = simulate(world, 600.0, record_every=250)
    assert run.steps.fast == 600_000
    assert run.position("arm")[-1, 0] > 600.0  # it turned, a hundred times at least
    assert run.largest_deviation < 1e-9
    assert run.ledger.relative_balance < 1e-6 / 6
