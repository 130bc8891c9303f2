"""Simulated logs: within limits, without sticking, along a planned motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import Arm, Drive, InertialParameters, Joint, Limits, Link, load_arm
from armwise.control import simulate_log
from armwise.motions import (
    Quintic,
    check_limits,
    random_motion,
    read_motion,
    with_approach,
    write_motion,
)
from armwise.plants import RungeKutta4, SemiImplicit, SimulatedArm


def finger(drive: Drive, inertia: float = 1e-5) -> Arm:
    """One light joint: the distal link of a hand."""
    body = InertialParameters.from_center_of_mass(
        0.01, (0.0, 0.0, 0.0), inertia * np.eye(3)
    )
    joint = Joint(
        "tip", "revolute", -1, np.eye(4), np.array([0.0, 1.0, 0.0]),
        Limits(-0.2, 1.6, 3.0), drive,
    )  # fmt: skip
    return Arm("finger", (joint,), (Link("distal", body),))


def test_a_light_joint_with_much_friction_follows_and_does_not_stick() -> None:
    # As Allegro's description has it: friction ten thousand times its inertia.
    arm = finger(Drive(viscous=3.0, coulomb=10.0))
    motion = random_motion(arm, 0, 3.0, fastest=1e3)
    log = simulate_log(arm, motion, torque_noise=0.0)
    time = log.channels["q_1"].time
    wanted = motion.sample(time).q[:, 0]
    assert np.abs(log.channels["q_1"].values - wanted).max() < 0.02
    speed = np.gradient(log.channels["q_1"].values, time)
    reference = motion.sample(time).qd[:, 0]
    moving = np.abs(reference) > 0.02
    assert np.mean(np.abs(speed[moving]) > 1e-3) > 0.99


def test_a_slide_has_the_resolution_of_a_screw() -> None:
    joint = replace(finger(Drive()).joints[0], kind="prismatic", limits=Limits(0, 0.04))
    arm = replace(finger(Drive()), joints=(joint,))
    log = simulate_log(arm, random_motion(arm, 0, 1.0), encoder_counts=1000)
    counts = log.channels["q_1"].values / (0.01 / 1000)
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-6)
    assert np.ptp(counts) > 100


def test_a_joint_without_inertia_gets_a_rotor_and_a_note() -> None:
    arm = finger(Drive(coulomb=0.01), inertia=1e-12)
    log = simulate_log(arm, random_motion(arm, 0, 0.5, fastest=1e3))
    assert "tip" in log.notes[-1]
    assert "rotor" in log.notes[-1]
    assert np.all(np.isfinite(log.channels["tau_1"].values))


def test_stiff_viscous_friction_is_not_stepped_explicitly() -> None:
    stiff, soft = finger(Drive(viscous=0.1)), finger(Drive(viscous=1e-6))
    assert isinstance(SimulatedArm(stiff).integrator, SemiImplicit)
    assert isinstance(SimulatedArm(soft).integrator, RungeKutta4)
    log = simulate_log(stiff, random_motion(stiff, 0, 0.5, fastest=1e3))
    assert np.abs(log.channels["q_1"].values).max() < 2.0


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_written_motion_is_read_back(kind, tmp_path) -> None:
    arm = load_arm("panda")
    plan = random_motion(arm, 1, 4.0, fastest=1e3)
    path = tmp_path / f"plan.{kind}"
    write_motion(plan, path, 100.0, arm.coordinate_names)
    back = read_motion(path, arm)
    times = np.linspace(0.0, 4.0, 333)
    for ours, theirs, within in zip(
        back.sample(times), plan.sample(times), (1e-9, 1e-6, 1e-3), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=within)


def test_a_motion_of_positions_alone_is_smooth(tmp_path) -> None:
    arm = finger(Drive())
    path = tmp_path / "plan.csv"
    plan = Quintic(np.array([0.1]), np.array([1.0]), 2.0)
    times = np.linspace(0.0, 2.0, 201)
    pairs = np.column_stack([times, plan.sample(times).q])
    rows = [f"{t:.12g},{q:.12g}" for t, q in pairs]
    path.write_text("\n".join(["time,q_1", *rows]) + "\n")
    back = read_motion(path, arm)
    np.testing.assert_allclose(back.sample(1.005).qd, plan.sample(1.005).qd, rtol=1e-4)


def test_an_approach_begins_at_rest_and_stays_within_limits() -> None:
    arm = load_arm("panda")
    whole = with_approach(random_motion(arm, 1, 4.0, fastest=1e3), arm)
    q, qd, _ = whole.sample(0.0)
    np.testing.assert_allclose(q, arm.rest)
    np.testing.assert_array_equal(qd, 0.0)
    check_limits(whole, arm)
    there = replace(arm.joints[0], rest=0.3)
    arm = replace(arm, joints=(there, *arm.joints[1:]))
    still = Quintic(arm.rest, arm.rest, 1.0)
    assert with_approach(still, arm) is still
