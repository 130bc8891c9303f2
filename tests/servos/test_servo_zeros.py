"""Joint zeros that gravity tells, and loads of joints by simulated motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.servos import identify_servo
from armwise.servos.fit import mean_errors
from armwise.servos.joints import JointMotions
from armwise.servos.log_checks import elsewhere
from armwise.servos.model import CORE, ELEMENTS, half_step_inertia
from armwise.servos.motions import (
    dense,
    held_back,
    joint_loads,
    simulated_loads,
)
from armwise.servos.rollout import Roller
from armwise.servos.zeros import _telling, zero_step
from tests.servos import rig


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return rig.arm(tmp_path_factory.mktemp("servo"))


def with_zeros(robot, zeros):
    """Return servos whose positions are not the description's."""
    servo = rig.truth(robot)
    return replace(servo, values=dict(servo.values) | {"zero": np.array(zeros)})


def as_fitted(servo, j):
    """Return a joint's values as fits have them."""
    values = {name: float(x[j]) for name, x in servo.values.items()}
    values["armature"] -= float(half_step_inertia(values["damping"]))
    return values


def step_from(robot, motions, zeros):
    """Return a step with servos that are right but for their zeros."""
    split = [joint_loads(m, robot, zeros) for m in motions]
    servo = rig.truth(robot)
    joints = {}
    for j in range(robot.dof):
        values = as_fitted(servo, j)
        if robot.dof == 1:
            values["zero"] = float(zeros[0])
        joints[j] = [one[j] for one in split], values, (*CORE, "acceleration")
    roller = Roller(robot if robot.dof == 1 else None)
    return zero_step(roller, [robot] * len(motions), motions, joints, zeros)


@pytest.mark.parametrize("true", [[0.2, -0.15], [0.0, 0.3], [0.25]])
def test_gravity_tells_the_zeros(tmp_path, true):
    robot = rig.arm(tmp_path, len(true))
    servo = with_zeros(robot, true)
    motions = [servo.motion(rig.recording(servo, seed)) for seed in range(5)]
    zeros = np.zeros(len(true))
    for _ in range(4):
        step = step_from(robot, motions, zeros)
        zeros = zeros + step.step
    assert np.all(step.std < 0.05)
    assert np.all(np.abs(zeros - true) < 3.0 * step.std)
    # Standard deviations are 0.01 and 0.03.
    assert np.abs(zeros - true).max() < 0.1


def test_parts_of_few_motions_tell_how_well_zeros_are_known(robot):
    """A stranger's elbow, 14° off in three logs, was not told from none."""
    servo = with_zeros(robot, [0.0, 0.06])
    motions = [servo.motion(rig.recording(servo, seed)) for seed in range(6)]
    few, many = (step_from(robot, motions[:n], np.zeros(2)).std for n in (3, 6))
    assert np.all(few < 2.0 * many)


def test_without_gravity_no_zero_is_known(robot):
    floating = replace(robot, gravity=np.zeros(3))
    servo = rig.truth(robot)
    motions = [servo.motion(rig.recording(servo, seed)) for seed in range(3)]
    # The first joint turns the whole arm, which only gravity would tell.
    assert np.isinf(step_from(floating, motions, np.zeros(2)).std[0])


def test_simulated_motion_loads_joints_sharper(robot):
    servo = rig.truth(robot)
    motions = [servo.motion(rig.recording(servo, seed)) for seed in range(3)]
    runs = servo.roller.run([dense(m) for m in motions], servo.table)
    values = as_fitted(servo, 1)
    loads = [joint_loads(m, robot) for m in motions]
    times = [np.arange(run.shape[1]) * m.clock[0]
             for m, run in zip(motions, runs, strict=True)]  # fmt: skip

    def error(positions, hz):
        simulated = [
            simulated_loads(m, robot, (time, q), own, None, hz)[1]
            for m, time, q, own in zip(motions, times, positions, loads, strict=True)
        ]
        return mean_errors(Roller(None), simulated, values).mean()

    blunt = mean_errors(Roller(None), [own[1] for own in loads], values).mean()
    sharp = error([run[0] for run in runs], 0.0)
    # What the encoder's rounding leaves, of 0.38 mrad.
    assert sharp < 0.42e-3 < 0.9 * blunt
    # A model that is some milliradians off elsewhere is brought to what was measured.
    off = [run[0] + 0.02 * np.sin(2.0 * time)[:, None]
           for time, run in zip(times, runs, strict=True)]  # fmt: skip
    wrong, corrected = (error(off, hz) for hz in (0.0, 4.0))
    assert corrected < 1.1 * sharp < 0.9 * wrong


@pytest.mark.slow
def test_a_wrong_zero_is_found_and_said(robot):
    servo = with_zeros(robot, np.radians([0.0, 15.0]))
    found = identify_servo(robot, [rig.recording(servo, seed) for seed in range(5)])
    off = np.degrees(found.values["zero"]) - [0.0, 15.0]
    assert np.abs(off).max() < 4.0
    assert np.all(np.abs(off) < 3.0 * np.degrees(found.std["zero"]))
    assert any("beyond the description's zero" in note for note in found.notes)
    assert found.values["stiffness"] == pytest.approx(servo.values["stiffness"], 0.05)


def on_their_way(robot, servo):
    """Return joints that a servo moved, taken for free ones."""
    motions = [servo.motion(rig.recording(servo, seed)) for seed in (1, 2, 3)]
    course = JointMotions([robot] * 3, motions, Roller(None), lambda what, part: None)
    joints = course.joints()
    free = rig.truth(robot).values
    for joint in joints:
        joint.fits = [{name: float(x[joint.number]) for name, x in free.items()}] * 2
        joint.halves = course.windows(joint)
    return course, joints


@pytest.mark.parametrize("wall", [0.6, np.inf])
def test_a_wall_is_where_a_joint_always_stops(robot, wall):
    walled = rig.truth(robot, upper=wall)
    course, joints = on_their_way(robot, walled)
    course.mask_contact(joints)
    walls = [course.find_walls(joint, joint.fits[0], joints) for joint in joints]
    if np.isinf(wall):
        assert walls == [{}, {}]
    else:
        assert [w["upper"] for w in walls] == pytest.approx([wall] * 2, abs=2e-3)
        # What holds the other joint at the same time is no wall, but what both touch.
        one, other = joints
        other.motions = [
            replace(b, mask=a.mask)
            for a, b in zip(one.motions, other.motions, strict=True)
        ]
        assert course.find_walls(one, one.fits[0], joints) == {}


def test_a_wall_is_found_beside_a_table_that_holds_all_joints_elsewhere(robot):
    course, joints = on_their_way(robot, rig.truth(robot, upper=0.6))
    course.mask_contact(joints)
    one, other = joints
    for k, (a, b) in enumerate(zip(one.motions, other.motions, strict=True)):
        free = a.q > 0.45
        one.motions[k] = replace(a, mask=a.mask & free)
        other.motions[k] = replace(b, mask=b.mask & free)
    held = np.concatenate(course._held(one))
    low = np.concatenate([m.q[:, 0] for m in one.motions]) <= 0.45
    assert (held & low).sum() > 3 * (held & ~low).sum()
    found = course.find_walls(one, one.fits[0], joints)
    assert found["upper"] == pytest.approx(0.6, abs=2e-3)


def test_a_wall_is_found_beside_what_holds_the_joint_elsewhere(robot):
    """However long it is held there, alone: no joint goes beyond its wall."""
    course, joints = on_their_way(robot, rig.truth(robot, upper=0.6))
    course.mask_contact(joints)
    one, _ = joints
    one.motions = [replace(m, mask=m.mask & (m.q > 0.45)) for m in one.motions]
    found = course.find_walls(one, one.fits[0], joints)
    assert found["upper"] == pytest.approx(0.6, abs=2e-3)


def test_only_zeros_that_are_told_from_none_are_moved(robot):
    servo = with_zeros(robot, [0.0, 0.2])
    motions = [servo.motion(rig.recording(servo, seed)) for seed in range(5)]
    course = JointMotions([robot] * 5, motions, Roller(None), lambda what, part: None)
    joints = course.joints()
    for joint in joints:
        joint.fits = [as_fitted(rig.truth(robot), joint.number)] * 2
        joint.halves = course.windows(joint)
    course.find_zeros(joints, (*CORE, "acceleration"))
    assert course.zeros[0] == 0.0
    assert course.zeros[1] == pytest.approx(0.2, abs=3.0 * course.zero_std[1])
    assert course.zero_std[1] < 0.05
    assert len(course.zero_notes()) == 1


def test_friction_that_a_first_model_lacks_is_no_zero_in_the_end(robot):
    """A tenth of a radian at one joint; a first model splits it between two."""
    friction = {"driving": 0.5, "back_driven": 0.2, "static": 0.06}
    true = rig.truth(robot, stribeck_speed=0.05, **friction)
    zeros = np.array([0.1, 0.0])
    servo = replace(true, values=dict(true.values) | {"zero": zeros})
    found = identify_servo(robot, [rig.recording(servo, seed) for seed in range(5)])
    off = found.values["zero"] - zeros
    assert np.abs(off).max() < 0.015
    assert np.all(np.abs(off) < 3.0 * found.std["zero"])


def test_zeros_are_sought_where_nothing_holds_the_arm(robot):
    servo = rig.truth(robot)
    motions = [servo.motion(rig.recording(servo, seed)) for seed in range(4)]
    split = [joint_loads(m, robot) for m in motions]
    joints = [[one[j] for one in split] for j in range(2)]
    touched = joints[0][1].mask.copy()
    touched[100:300] = False
    joints[0][1] = replace(joints[0][1], mask=touched)
    assert sorted(_telling(motions, joints)) == [0, 2, 3]
    # Of too little that is free all is used.
    assert sorted(_telling(motions[:2], [own[:2] for own in joints])) == [0, 1]


@pytest.mark.parametrize(("limit", "part"), [(0.45, 0.0), (0.3, 0.9), (np.inf, 0.0)])
def test_a_motor_at_its_limit_is_not_held(robot, limit, part):
    """It stays behind its command like one that something holds; a wall does hold.

    Whether its supply's voltage or its current is limited.
    """
    wall = np.inf if np.isfinite(limit) else 0.6
    servo = rig.truth(robot, saturation=limit, limited_damping=part, upper=wall)
    course, joints = on_their_way(robot, servo)
    told = [
        held_back(m, run, 1e-3, is_sure=False).mean()
        for joint in joints
        for m, run in zip(
            joint.motions, course._free_runs(joint, joint.fits[0]), strict=True
        )
    ]
    assert np.mean(told) > 0.03
    course.mask_contact(joints, CORE)
    held = np.mean([1.0 - m.mask.mean() for joint in joints for m in joint.motions])
    if np.isfinite(limit):
        assert held < 0.2 * np.mean(told)
        limited = [j.fits[0] for j in joints if j.limits == ELEMENTS["torque limit"]]
        assert limited
        assert all((fit["limited_damping"] > 0.5) == (part > 0.5) for fit in limited)
    else:
        assert held > 0.7 * np.mean(told)


def test_joints_where_they_cannot_be_are_told(robot):
    servo = rig.truth(robot)
    motion = servo.motion(rig.recording(servo, 1))
    assert elsewhere(robot, [motion]) == []
    joint = replace(robot.joints[1], limits=replace(robot.joints[1].limits, lower=2.0))
    (note,) = elsewhere(replace(robot, joints=(robot.joints[0], joint)), [motion])
    assert "Outside their limits all along: j1" in note
