"""Free runs of servo arms: laws, limits, and MuJoCo as an oracle."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import least_squares

from armwise.errors import RecordingError
from armwise.servos import set_points, write_servo_mjcf
from armwise.servos.floor import Floor, heights
from armwise.servos.model import PARAMETERS, decode, encode, stacked, tables_of
from armwise.servos.motions import joint_loads
from armwise.servos.rollout import MOST_NAMES, Roller, robust
from tests.servos import rig


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return rig.arm(tmp_path_factory.mktemp("servo"))


def test_the_set_point_keeps_its_limits(robot):
    servo = rig.truth(robot, slew=1.5, acceleration=30.0)
    motion = servo.motion(rig.recording(servo, 1))
    set_point = servo.set_point(motion)
    h, points = set_point.step, set_point.ends
    speed = np.diff(points, axis=0) / h
    assert np.abs(speed).max() == pytest.approx(1.5, rel=0.01)
    assert np.abs(np.diff(speed, axis=0) / h).max() < 30.0 * (1.0 + 1e-6)
    assert np.abs(points[-1] - motion.goals[-1]).max() < 1e-3


def test_a_later_command_is_the_same_motion_later(robot):
    early = rig.truth(robot, delay=0.02, acceleration=np.inf)
    late = rig.truth(robot, delay=0.06, acceleration=np.inf)
    recording = rig.recording(early, 2)
    a, b = early.predict(recording), late.predict(recording)
    # Once the arm has settled from its first sample.
    assert np.abs(b[50:] - a[48:-2]).max() < 1e-6
    # A log may read positions after it wrote commands, under one stamp.
    before = rig.truth(robot, delay=-0.02, acceleration=np.inf).predict(recording)
    assert np.abs(a[50:] - before[48:-2]).max() < 1e-6


@pytest.mark.parametrize("acceleration", [60.0, np.inf])
def test_the_set_point_varies_smoothly_with_the_delay(robot, acceleration):
    """By no more than its speed: substeps must not show, or every one is a valley."""
    motion = None
    points = []
    for delay in (0.016, 0.016 + 1e-6):
        servo = rig.truth(robot, delay=delay, slew=2.0, acceleration=acceleration)
        motion = motion or servo.motion(rig.recording(servo, 2))
        points.append(servo.set_point(motion).ends)
    assert 0.0 < np.abs(points[1] - points[0]).max() < 2.1e-6


def test_the_set_point_is_the_fastest_that_keeps_its_limits(robot):
    """A step of 0.3 rad at 1.5 rad/s and 30 rad/s² takes 0.25 s and no overshoot."""
    servo = rig.truth(robot, delay=0.0071, slew=1.5, acceleration=30.0)
    time = np.arange(50) * 0.02
    command = np.where(time[:, None] < 0.09, 0.0, [0.3, -0.3])
    log = rig.of_arrays(time, np.zeros((50, 2)), command)
    set_point = servo.set_point(servo.motion(log))
    points = set_point.ends
    at = np.arange(len(points)) * set_point.step - 0.1071
    ramp = np.clip(at, 0.0, 0.05)
    exact = 15.0 * ramp**2 + 1.5 * np.clip(at - 0.05, 0.0, 0.15)
    exact += 1.5 * (brake := np.clip(at - 0.2, 0.0, 0.05)) - 15.0 * brake**2
    assert np.abs(points - exact[:, None] * [1.0, -1.0]).max() < 1e-12
    # Means over steps are those of many short ones, which are all but their ends.
    fine = servo.set_point(servo.motion(log), set_point.step / 64)
    ends = 0.5 * (fine.ends[1:] + fine.ends[:-1])[: len(fine.means)]
    assert np.abs(fine.means - ends).max() < 1e-7
    count = len(fine.means) // 64
    whole = fine.means[: 64 * count].reshape(count, 64, 2).mean(axis=1)
    assert np.abs(set_point.means[:count] - whole).max() < 1e-12
    assert np.abs(points[-1] - [0.3, -0.3]).max() < 1e-9


def test_friction_holds_a_joint_that_gravity_pulls(robot):
    servo = rig.truth(robot, stiffness=1e-6, coulomb=1.0)
    recording = rig.recording(servo, 3)
    q = servo.predict(recording)
    assert np.abs(q - q[0]).max() < 1e-9


@pytest.mark.parametrize("where", ["driving", "back_driven", "load_static"])
def test_friction_of_the_load_holds_the_load(robot, where):
    """At rest half of each direction's fraction counts, and all of the static one."""
    fraction = 1.1 if where == "load_static" else 2.2
    held = rig.truth(robot, stiffness=1e-6, coulomb=1e-9, **{where: fraction})
    recording = rig.recording(held, 3)
    q = held.predict(recording)
    assert np.abs(q - q[0]).max() < 1e-9
    falls = rig.truth(robot, stiffness=1e-6, coulomb=1e-9, **{where: 0.3 * fraction})
    fallen = falls.predict(recording)
    assert np.abs(fallen - fallen[0]).max() > 0.1


def test_gears_carry_what_accelerates_the_links(robot):
    """Without gravity only inertia loads the gears, and only they then rub more."""
    weightless = replace(robot, gravity=np.zeros(3))
    runs = {}
    for part in (0.0, 1.0):
        for driving in (0.0, 0.4):
            servo = rig.truth(weightless, inertial_load=part, driving=driving)
            recording = rig.recording(servo, 4)
            runs[part, driving] = servo.predict(recording)
    assert np.array_equal(runs[0.0, 0.0], runs[0.0, 0.4])
    assert np.abs(runs[1.0, 0.0] - runs[0.0, 0.0]).max() < 1e-12
    assert np.abs(runs[1.0, 0.4] - runs[1.0, 0.0]).max() > 1e-3


def test_a_joint_that_sticks_under_load_lets_go_at_a_creep(robot):
    """It holds what sliding friction alone does not, and slides as fast as before."""
    time = np.arange(200) * 0.02
    ramp = 1.0 - 0.5 * np.clip(time - 0.5, 0.0, 2.0)
    log = rig.of_arrays(time, np.ones((200, 2)), np.column_stack([ramp, ramp]))
    plain = rig.truth(robot, coulomb=0.01)
    sticking = rig.truth(robot, coulomb=0.01, load_stiction=0.8, creep_speed=0.01)
    a, b = plain.predict(log), sticking.predict(log)
    start = [int(np.argmax(np.abs(q[20:, 0] - q[20, 0]) > 0.02)) for q in (a, b)]
    assert start[1] > start[0]
    assert np.abs(a - b)[90:110].max() < 3e-3


@pytest.mark.parametrize(
    ("shape", "part"),
    [
        (-1.0, lambda r: 2.0**-r),
        (0.0, lambda r: 1.0 / (1.0 + r * r)),
        (1.0, lambda r: 2.0 ** -(r * r)),
        (0.5, lambda r: 0.5 / (1.0 + r * r) + 0.5 * 2.0 ** -(r * r)),
        (-0.25, lambda r: 0.75 / (1.0 + r * r) + 0.25 * 2.0**-r),
    ],
)
@pytest.mark.parametrize("speed", [0.1, 0.2, 0.5])
def test_stribeck_friction_falls_off_in_its_shape(robot, shape, part, speed):
    """A motor at its limit reaches the speed at which friction is all of that."""
    lost = 1.0 * speed + 0.06 + 0.04 * part(speed / 0.2)
    servo = rig.truth(
        replace(robot, gravity=np.zeros(3)), damping=1.0 / 1.05, coulomb=0.06 / 1.05,
        static=0.04, stribeck_speed=0.2, stribeck_shape=shape, saturation=lost,
    )  # fmt: skip
    time = np.arange(100) * 0.02
    # The second joint alone, towards where it does not arrive.
    command = np.tile([0.0, 2.0], (100, 1))
    q = servo.predict(rig.of_arrays(time, np.zeros((100, 2)), command))[:, 1]
    assert (q[90] - q[80]) / 0.2 == pytest.approx(speed, rel=1e-3)


def test_the_start_up_torque_is_there_from_the_first_tick_on(robot):
    """An all but soft servo moves once that torque exceeds dry friction, not before."""
    level = replace(robot, gravity=np.zeros(3))
    held = rig.truth(level, stiffness=1e-6, coulomb=0.1, start_up=0.099)
    recording = rig.recording(held, 3)
    q = held.predict(recording)
    assert np.abs(q - q[0]).max() < 1e-9
    moves = rig.truth(level, stiffness=1e-6, coulomb=0.1, start_up=0.12)
    q = moves.predict(recording)
    assert np.abs(q - q[0]).max(axis=0).min() > 0.1


def test_a_warm_motor_is_a_weaker_one(robot):
    """By its winding: what the supply drives and what its own voltage brakes."""
    servo = rig.truth(robot, heating=0.005, start_up=0.02, saturation=0.5)
    log = rig.recording(servo, 5)
    time, command = log["command_1"].time, np.column_stack(
        [log[f"command_{j}"].values for j in (1, 2)]
    )  # fmt: skip
    q = np.column_stack([log["q_1"].values, log["q_2"].values])
    warm = rig.of_arrays(time, q, command, temperatures=(45.0, 25.0))
    weaker = servo.predict(warm)
    assert np.abs(weaker - servo.predict(log)).max() > 1e-3
    values = {name: x.copy() for name, x in servo.values.items()}
    for name in ("stiffness", "damping", "start_up", "saturation"):
        values[name][0] /= 1.0 + 0.005 * 20.0
    assert np.abs(replace(servo, values=values).predict(log) - weaker).max() < 1e-9


def in_mujoco(servo, motion, folder, timestep):
    """Return where MuJoCo takes the exported model at a motion's stamps.

    MuJoCo damps by the speed after the step, which weighs like half a step's damping:
    that is taken off.
    """
    mujoco = pytest.importorskip("mujoco")
    write_servo_mjcf(servo, folder / "identified.xml")
    model = mujoco.MjModel.from_xml_path(str(folder / "identified.xml"))
    model.opt.timestep = timestep
    model.dof_armature -= 0.5 * timestep * model.dof_damping
    data = mujoco.MjData(model)
    data.qpos[:] = motion.q[0]
    rows = []
    for ctrl in set_points(servo, motion, timestep):
        rows.append(data.qpos.copy())
        data.ctrl[:] = ctrl
        mujoco.mj_step(model, data)
    at = np.arange(len(rows)) * timestep
    return np.column_stack(
        [np.interp(motion.time, at, column) for column in np.array(rows).T]
    )


def test_a_described_effort_does_not_hold_back_what_servos_do(robot, tmp_path: Path):
    """Only what the logs show limits torques; a description's effort is a guess."""
    weak = replace(robot, joints=tuple(
        replace(joint, limits=replace(joint.limits, effort=0.05))
        for joint in robot.joints
    ))  # fmt: skip
    servo = rig.truth(weak, armature=0.024, damping=0.5)
    motion = servo.motion(rig.recording(servo, 4, is_quantised=False))
    theirs = in_mujoco(servo, motion, tmp_path, 1e-3)
    assert np.abs(servo.rollouts([motion])[0] - theirs).mean() < 1e-3
    limited = replace(servo, values=servo.values | {"saturation": np.full(2, 0.7)})
    assert [j.limits.effort for j in limited.identified_arm.joints] == [0.7, 0.7]


@pytest.mark.parametrize("limited", [{}, {"saturation": 0.5, "limited_damping": 0.8}])
def test_mujoco_rolls_out_the_exported_model(
    robot, tmp_path: Path, monkeypatch, limited
):
    servo = rig.truth(robot, derivative=0.03, armature=0.024, damping=0.5, **limited)
    if limited:
        # What damps within the limit matters, and so does the limit.
        free = rig.truth(robot, derivative=0.03, armature=0.024, damping=0.5)
        outside = rig.truth(robot, derivative=0.03, armature=0.024, damping=0.5,
                            saturation=0.5)  # fmt: skip
        log = rig.recording(servo, 4, is_quantised=False)
        for other in (free, outside):
            assert np.abs(other.predict(log) - servo.predict(log)).mean() > 3e-3
    recording = rig.recording(servo, 4, is_quantised=False)
    coarse = servo.predict(recording)
    # The same equations: ours tend to MuJoCo's as steps become short.
    monkeypatch.setattr("armwise.servos.rollout.LONGEST_STEP", 1.01e-3)
    motion = servo.motion(recording)
    theirs = in_mujoco(servo, motion, tmp_path, 5e-4)
    fine = servo.rollouts([motion])[0]
    assert np.abs(fine - theirs).mean() < 0.15e-3
    # Steps of 4 ms, with which servos are fitted, differ by less than a tick.
    assert np.abs(coarse - theirs).mean() < 0.3e-3


@pytest.mark.parametrize("has_plain", [False, True])
def test_mujoco_stops_at_the_same_wall(robot, tmp_path: Path, has_plain):
    servo = rig.truth(robot, armature=0.024, damping=0.5)
    log = rig.recording(servo, 4, is_quantised=False)
    walls = np.array([np.inf, float(servo.predict(log)[:, 1].max()) - 0.1])
    # What is written for simulators is fitted before walls are known.
    plain = dict(servo.values) if has_plain else {}
    stopped = replace(servo, values=dict(servo.values) | {"upper": walls}, plain=plain)
    ours, motion = stopped.predict(log), stopped.motion(log)
    theirs = in_mujoco(stopped, motion, tmp_path, 1e-3)
    assert np.abs(servo.predict(log) - ours).max() > 0.05
    assert theirs[:, 1].max() < walls[1] + 0.01
    assert np.abs(ours - theirs).mean() < 1e-3
    # Nor is the other joint moved by an acceleration that the wall prevents.
    is_stopped = ours[:, 1] > walls[1] - 1e-3
    assert is_stopped.sum() > 10
    assert np.abs(ours - theirs)[is_stopped, 0].mean() < 2e-3


@pytest.mark.parametrize("up", [[0.0, 0.0, 1.0], [0.0, 0.6, 0.8]])
def test_mujoco_presses_on_the_same_floor(robot, tmp_path: Path, monkeypatch, up):
    """A spring of the same stiffness, on arms that lean as well."""
    leaning = replace(robot, gravity=tuple(-9.81 * np.array(up)))
    servo = rig.truth(leaning, armature=0.024, damping=0.5)
    monkeypatch.setattr("armwise.servos.rollout.LONGEST_STEP", 1.01e-3)
    motion = servo.motion(rig.recording(servo, 4, is_quantised=False))
    free = servo.rollouts([motion])[0]
    tip = np.array([0.01, 0.0, -0.16])
    height = float(np.median(heights(leaning, free, 1) @ [*tip, 1.0]))
    on_floor = replace(servo, floor=Floor((1,), tip[None], height, 400.0))
    ours = on_floor.rollouts([motion])[0]
    theirs = in_mujoco(on_floor, motion, tmp_path, 5e-4)
    assert np.abs(ours - free).mean() > 10e-3
    assert np.abs(ours - theirs).mean() < 0.3e-3


@pytest.mark.parametrize("timestep", [4e-3, 1e-3])
def test_mujoco_is_not_early(robot, tmp_path: Path, timestep):
    """At any step: its positions are half a step ahead of what it is told."""
    servo = rig.truth(robot, coulomb=1e-6, armature=0.05)
    motion = servo.motion(rig.recording(servo, 4, is_quantised=False))
    ours, theirs = servo.rollouts([motion])[0], in_mujoco(
        servo, motion, tmp_path, timestep
    )  # fmt: skip
    speed = np.gradient(ours, motion.time, axis=0)[60:]
    late = -np.sum((theirs - ours)[60:] * speed) / np.sum(speed**2)
    print(late / timestep)
    assert abs(late) < 0.02 * timestep


def test_damping_adds_no_inertia(tmp_path: Path):
    # A step against the differential equation itself: damped by the speed after each
    # step of 4 ms, a joint would swing as if it had ½ h d more inertia, 13 % here.
    arm = rig.arm(tmp_path, joints=1)
    servo = rig.truth(
        arm, stiffness=2.0, coulomb=0.0, armature=0.003, delay=0.0, acceleration=np.inf
    )
    command = np.where(np.arange(100) < 5, 0.0, 0.3)[:, None]
    time = np.arange(100) * 0.02
    seen = servo.predict(rig.of_arrays(time, np.zeros((100, 1)), command))[:, 0]
    k, d = (float(servo.values[name][0]) for name in ("stiffness", "damping"))
    inertia, moment = 0.003 + 2e-4 + 0.12 * 0.08**2, 0.12 * 9.81 * 0.08

    def errors(x):
        def rate(t, y):
            torque = k * (0.3 - y[0]) - d * y[1] - moment * np.sin(y[0])
            return y[1], torque / (x[0] * inertia)

        begin = 0.1 + 1e-3 * x[1]
        stamps = time[6:50]
        run = solve_ivp(rate, (begin, 1.0), (0.0, 0.0), t_eval=stamps, rtol=1e-9)
        return run.y[0] - seen[6:50]

    found = least_squares(errors, (1.2, 0.0)).x
    assert found[0] == pytest.approx(1.0, abs=0.04)


@pytest.mark.parametrize("longest", [4.2e-3, 1.05e-3])
@pytest.mark.parametrize("acceleration", [60.0, np.inf])
def test_a_known_delay_is_recovered_at_any_step(
    tmp_path: Path, monkeypatch, longest, acceleration
):
    """A goal acts from when it arrives, be it within a step or at its begin."""
    monkeypatch.setattr("armwise.servos.rollout.LONGEST_STEP", longest)
    arm = rig.arm(tmp_path, joints=1)
    time = np.arange(60) * 0.02
    command = np.where(time < 0.09, 0.0, 0.3)[:, None]
    half = np.sqrt(0.3 / acceleration)
    for true in (0.0, 0.013):
        servo = rig.truth(
            arm, stiffness=2.0, coulomb=0.0, delay=true, acceleration=acceleration
        )
        seen = servo.predict(rig.of_arrays(time, np.zeros((60, 1)), command))[6:, 0]
        k, d, armature = (
            float(servo.values[name][0])
            for name in ("stiffness", "damping", "armature")
        )
        inertia, moment = armature + 2e-4 + 0.12 * 0.08**2, 0.12 * 9.81 * 0.08

        def errors(x, stiffness=k, damping=d, inertia=inertia, m=moment, seen=seen):
            def rate(t, y):
                s = np.clip(t - begin, 0.0, 2.0 * half)
                ramp = 0.5 * acceleration * min(s, 2.0 * half - s) ** 2 if half else 0.0
                point = ramp if s < half else 0.3 - ramp
                torque = stiffness * (point - y[0]) - damping * y[1]
                return y[1], (torque - m * np.sin(y[0])) / inertia

            begin = 0.1 + 1e-3 * x[0]
            run = solve_ivp(
                rate, (begin, time[-1]), (0.0, 0.0), t_eval=time[6:], rtol=1e-8,
                max_step=5e-3,
            )  # fmt: skip
            return run.y[0] - seen

        found = least_squares(errors, (1e3 * true,), diff_step=1e-2).x[0]
        # In [ms]: half a step of 4 ms would be 2.
        assert found == pytest.approx(1e3 * true, abs=0.05)


def test_power_ends_within_a_step(robot):
    """Each millisecond of the release counts, or a fit would not find it."""
    time = np.arange(60) * 0.02
    log = rig.of_arrays(time, np.ones((60, 2)), np.ones((60, 2)))
    falls = []
    for release in np.arange(5) * 1e-3:
        servo = rig.truth(robot, coulomb=1e-4, coasting=0.1, release=release)
        motion = servo.motion(log)
        motion.powered[30:] = 0.0
        falls.append(servo.rollouts([motion])[0][35, 0])
    assert np.ptp(np.diff(falls)) < 0.1 * np.abs(np.diff(falls)).min()


def dropped(robot, angle=1.0, seconds=3.0, **values):
    """Return where joints go that are let go at an angle, by 100 Hz."""
    rows = round(100.0 * seconds)
    held = np.full((rows, 2), [angle, 0.0])
    servo = rig.truth(robot, stiffness=60.0, armature=2e-4, **values)
    motion = servo.motion(rig.of_arrays(np.arange(rows) * 0.01, held, held))
    motion.powered[10:] = 0.0
    return servo.rollouts([motion])[0]


def test_a_motor_that_is_off_brakes_beyond_a_speed(robot):
    """As strongly as it does when on, above that speed alone."""
    loose = {"coulomb": 1e-6, "coasting": 1e-6, "damping": 2.0}
    free = dropped(robot, **loose)
    speed = np.abs(np.gradient(free, 0.01, axis=0))
    assert speed.max() > 6.0
    braked = dropped(robot, braking_speed=2.0, **loose)
    assert np.abs(np.gradient(braked, 0.01, axis=0)).max() < 2.5
    beyond = dropped(robot, braking_speed=1.01 * speed.max(), **loose)
    assert np.abs(beyond - free).max() < 1e-9


def test_stribeck_friction_is_another_with_the_motor_off(robot):
    """What holds joints that are on lets them fall once they are off, and only then."""
    sticks = {"coulomb": 0.01, "static": 0.5, "stribeck_speed": 0.1}
    held = dropped(robot, angle=0.3, **sticks)
    assert np.abs(held - held[0]).max() < 5e-3
    falls = dropped(robot, angle=0.3, coasting_static=0.05, **sticks)
    assert np.abs(falls[:10] - held[:10]).max() < 1e-9
    assert np.abs(falls[-1, 0]) < 0.2


def test_a_late_position_takes_damping_away(robot):
    """By the stiffness times how late it is, while torque is not limited."""
    late = rig.truth(robot, feedback_delay=0.02, damping=0.4, coulomb=1e-6)
    log = rig.recording(late, 4, is_quantised=False)
    values = {name: x.copy() for name, x in late.values.items()}
    values["feedback_delay"] *= 0.0
    values["damping"] -= values["stiffness"] * 0.02
    same, free = late.predict(log), replace(late, values=values).predict(log)
    assert np.abs(same - free).mean() < 0.2e-3
    values["damping"] += values["stiffness"] * 0.02
    assert np.abs(same - replace(late, values=values).predict(log)).mean() > 2e-3


def test_the_derivative_gain_adds_no_inertia(robot, monkeypatch):
    """At 4 ms it brakes as at a quarter of that."""
    servo = rig.truth(robot, derivative=0.2, damping=0.1, coulomb=1e-6)
    log = rig.recording(servo, 4, is_quantised=False)
    coarse = servo.predict(log)
    monkeypatch.setattr("armwise.servos.rollout.LONGEST_STEP", 1.05e-3)
    assert np.abs(servo.predict(log) - coarse).mean() < 0.1e-3


def test_sums_over_errors_are_those_of_the_free_runs(robot):
    """The programs' costs and normal equations, beside NumPy's of the positions."""
    servo = rig.truth(robot)
    motions = [
        loaded[1]
        for seed in (1, 2)
        for loaded in [joint_loads(servo.motion(rig.recording(servo, seed)), robot)]
    ]
    # An odd number of rows, some of which do not count.
    motions = [m.cut(3, 3 + 401 + k, 40) for k, m in enumerate(motions)]
    roller, names = Roller(None), ("stiffness", "delay", "coulomb")
    values = stacked([{k: float(x[1]) for k, x in servo.values.items()}])
    steps = np.array([[0.03, 0.05, 0.04]])
    points = encode(values, names) + 0.1 * np.sign(steps)
    points = np.vstack([points, points + np.diag(steps[0])])
    repeated = {name: np.repeat(x, 4) for name, x in values.items()}
    tables = tables_of(decode(repeated, names, points))
    sums, runs = roller.normals(motions, tables, steps), roller.run(motions, tables)
    errors = [(run[..., 0] - m.q[:, 0])[:, m.mask[:, 0]]
              for run, m in zip(runs, motions, strict=True)]  # fmt: skip
    scale = np.sort(np.abs(np.concatenate(errors, axis=1)[0]))
    scale = max(scale[(len(scale) - 1) // 2], 1e-3)
    assert sums.scale[0] == pytest.approx(scale)
    information, gradient = np.zeros((3, 3)), []
    for e, m in zip(errors, motions, strict=True):
        J = (e[1:] - e[0]) / steps[0][:, None]
        w = m.weight / scale**2 / np.sqrt(1.0 + (e[0] / scale) ** 2)
        information += (J * w) @ J.T
        gradient.append((J * w) @ e[0])
    assert sums.information[0] == pytest.approx(information, rel=1e-10)
    assert sums.scores[0] == pytest.approx(np.array(gradient), rel=1e-9)
    costs = roller.costs(motions, tables, np.full(4, scale))
    joined = np.concatenate(errors, axis=1)
    assert costs == pytest.approx(robust(joined, scale).mean(axis=1), rel=1e-12)
    assert sums.cost[0] == pytest.approx(costs[0], rel=1e-12)


@pytest.mark.parametrize("tables", [1, 3, 9])
@pytest.mark.parametrize("is_whole", [False, True])
def test_motions_run_the_same_beside_others(robot, tables, is_whole):
    """Lanes of several motions: each has its own length, clock and load."""
    servo = rig.truth(robot, slew=2.0)
    logs = [rig.recording(servo, seed) for seed in range(5)]
    motions = [servo.motion(log) for log in logs]
    motions = [
        replace(
            m.cut(0, 700 - 90 * k, 0), time=m.time[: 700 - 90 * k] * (1.0 + 0.1 * k)
        )
        for k, m in enumerate(motions)
    ]
    own = dict(servo.values)
    if not is_whole:
        motions = [joint_loads(m, robot)[1] for m in motions]
        own = {name: x[1:] for name, x in own.items()}
    spread = 1.0 + 0.02 * np.arange(tables)[:, None]
    rows = {name: x * np.where(name == "stiffness", spread, np.ones_like(spread))
            for name, x in own.items()}  # fmt: skip
    table = {name: np.clip(x, -1e9, 1e9) for name, x in rows.items()}
    roller = Roller(robot if is_whole else None)
    together = roller.run(motions, table)
    for motion, run in zip(motions, together, strict=True):
        alone = roller.run([motion], table)[0]
        assert np.abs(alone).max() > 0.3
        assert run == pytest.approx(alone, abs=1e-9)


def test_the_same_runs_have_the_same_digits(robot):
    """Whichever thread takes them: fits are to be repeatable."""
    servo = rig.truth(robot)
    motions = [servo.motion(rig.recording(servo, seed)) for seed in range(7)]
    table = {name: np.clip(x[None], -1e9, 1e9) for name, x in servo.values.items()}
    roller = Roller(robot)
    first = roller.run(motions, table)
    for _ in range(20):
        again = roller.run(motions, table)
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_every_parameter_can_be_fitted_at_once():
    assert len(PARAMETERS) <= MOST_NAMES


def test_what_fails_beside_others_stops_them_and_leaves_the_roller_as_it_was(robot):
    servo = rig.truth(robot)
    motion, roller = servo.motion(rig.recording(servo, 1)), Roller(robot)

    end = time.monotonic() + 20.0

    def work(is_mistaken):
        if is_mistaken:
            raise ValueError("a mistake")
        # Rollouts are stopped, or the test fails.
        while time.monotonic() < end:
            roller.run([motion], servo.table)

    for work_of in ([True, False], [False, True]):
        with pytest.raises(ValueError, match="a mistake"):
            roller.each(work, work_of)
        assert time.monotonic() < end
    (again,) = roller.each(lambda m: roller.run([m], servo.table)[0], [motion])
    assert np.array_equal(again[0], servo.rollouts([motion])[0])


def test_things_done_side_by_side_stay_in_order_and_are_reported_in_this_thread():
    seen = []

    def report(done):
        seen.append((done, threading.get_ident()))

    assert Roller(None).each(lambda k: k * k, range(5), report) == [0, 1, 4, 9, 16]
    assert seen == [(k / 5, threading.get_ident()) for k in range(6)]


def test_a_delay_that_is_no_number_ends_with_an_error(tmp_path):
    servo = rig.truth(rig.arm(tmp_path))
    servo.values["delay"][0] = np.nan
    log = rig.recording(rig.truth(rig.arm(tmp_path)), 0)
    with pytest.raises(RecordingError, match="runs away"):
        servo.predict(log)
