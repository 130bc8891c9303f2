"""Servos identified from simulated motions with known truth, and refused ones."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import armwise as aw
from armwise.cli.arguments import read_servo_logs
from armwise.cli.main import app, every_validation
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable, RecordingError
from armwise.recordings import Channel
from armwise.report import servo_verdicts, worst_of
from armwise.servos import (
    EXAMPLE,
    FreeRunErrors,
    identify_servo,
    is_lerobot,
    read_lerobot,
    read_servo,
    validated_on_fit,
    write_servo,
)
from armwise.servos.doubts import (
    doubt_derivative,
    doubt_load_friction,
    in_any_form,
    with_even_load,
    with_own_limit,
    with_own_scale,
)
from armwise.servos.fit import (
    TORQUES,
    Prior,
    ServoFit,
    coordinate_covariance,
    doubt,
    errors_together,
    fit_alike,
    fit_servos,
    idle,
    mean_errors,
    ranked,
    resolved,
    scale_slope,
    shared_values,
    standard_deviations,
)
from armwise.servos.growth import Growth, takers
from armwise.servos.halves import HalfFits, by_chance
from armwise.servos.identify import _Identification
from armwise.servos.joints import JointMotions
from armwise.servos.last_fit import LastFit
from armwise.servos.log_checks import joint_signs, other_order, refuse_unfollowed
from armwise.servos.model import (
    CORE,
    ELEMENTS,
    PARAMETERS,
    absent,
    half_step_inertia,
)
from armwise.servos.motions import joint_loads, rested_windows, servo_motion
from armwise.servos.rollout import Roller
from armwise.servos.starts import (
    borrowed,
    evened,
    profile_starts,
    shape_starts,
    with_torques,
)
from tests.servos import rig


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return rig.arm(tmp_path_factory.mktemp("servo"))


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    return rig.arm(tmp_path_factory.mktemp("servo"), joints=1)


@pytest.fixture(scope="module")
def identified(robot):
    true = rig.truth(robot)
    recordings = [rig.recording(true, seed) for seed in range(4)]
    return true, aw.identify_servo(robot, recordings)


def test_the_truth_is_recovered(identified):
    true, servo = identified
    for name, tolerance in (("stiffness", 0.05), ("coulomb", 0.1), ("damping", 0.15)):
        assert servo.values[name] == pytest.approx(true.values[name], rel=tolerance)
    assert np.abs(servo.values["delay"] - 0.016).max() < 4e-3
    other = rig.recording(true, 20)
    error = np.abs(servo.predict(other) - np.column_stack(
        [other[f"q_{j}"].values for j in (1, 2)])).mean()  # fmt: skip
    # Half a tick of the encoder is 0.4 mrad on average.
    assert error < 1.5e-3
    assert servo.errors([other]).delay_line_joints.min() > 5e-3


def test_a_set_point_is_found_whose_limit_and_derivative_hide_each_other(robot):
    true = rig.truth(robot, acceleration=35.0, derivative=0.2, load_static=0.1)
    recordings = [rig.recording(true, seed) for seed in range(4)]
    servo = aw.identify_servo(robot, recordings)
    assert servo.values["acceleration"] == pytest.approx(35.0 * np.ones(2), rel=0.05)
    assert servo.values["derivative"] == pytest.approx(0.2 * np.ones(2), rel=0.3)
    assert np.abs(servo.values["delay"] - 0.016).max() < 4e-3


def test_a_band_of_draws_holds_motions_never_fitted(identified):
    true, servo = identified
    held, width = [], []
    for seed in range(30, 36):
        other = rig.recording(true, seed)
        q = np.column_stack([other[f"q_{j}"].values for j in (1, 2)])
        band = servo.band(other)
        held.append(band.holds(q))
        width.append(band.width)
    assert 0.8 < np.mean(held) < 1.0
    # Some ticks of the encoder, of 1.5 mrad; a delay line is 10 mrad off.
    assert np.mean(width) < 8e-3


def test_a_file_returns_the_same_servos(identified, tmp_path):
    _, servo = identified
    write_servo(servo, tmp_path / "servo.json")
    again = read_servo(tmp_path / "servo.json")
    other = rig.recording(servo, 21)
    assert np.array_equal(again.predict(other), servo.predict(other))
    # Files of versions that did not know an element yet.
    plain = json.loads((tmp_path / "servo.json").read_text())
    for table in ("values", "std", "plain"):
        plain[table].pop("creep_speed", None)
        plain[table].pop("stribeck_shape", None)
    (tmp_path / "old.json").write_text(json.dumps(plain))
    old = read_servo(tmp_path / "old.json")
    assert np.array_equal(old.predict(other), servo.predict(other))
    (tmp_path / "no.json").write_text('{"format": "else"}')
    with pytest.raises(ArgumentError, match="not a file of servos"):
        read_servo(tmp_path / "no.json")


@pytest.mark.parametrize(
    ("name", "number", "says"),
    [
        ("stiffness", -5.0, "'stiffness' is above 0, not -5"),
        ("stiffness", 0.0, "'stiffness' is above 0, not 0"),
        ("armature", -1e-3, "'armature' is at least 0, not -0.001"),
        ("limited_damping", 1.2, "at least 0 and at most 1, not 1.2"),
        ("stribeck_shape", -2.0, "at least -1 and at most 1, not -2"),
        ("stribeck_speed", 0.0, "'stribeck_speed' is above 0, not 0"),
    ],
)
def test_a_file_with_numbers_that_no_servo_has_is_refused(
    robot, tmp_path, name, number, says
):
    path = tmp_path / "servo.json"
    write_servo(rig.truth(robot), path)
    plain = json.loads(path.read_text())
    plain["values"][name][1] = number
    path.write_text(json.dumps(plain))
    with pytest.raises(ArgumentError, match=says):
        read_servo(path)
    write_servo(rig.truth(robot), path)
    plain = json.loads(path.read_text())
    plain["std"][name][1] = -0.1
    path.write_text(json.dumps(plain))
    with pytest.raises(ArgumentError, match="standard deviations"):
        read_servo(path)


def test_gains_and_loads_per_recording(pendulum):
    heavy = replace(
        pendulum,
        links=tuple(
            replace(link, inertia=aw.arms.InertialParameters(2 * link.inertia.vector))
            for link in pendulum.links
        ),
    )
    true = rig.truth(pendulum, stiffness=0.5)
    arms, gains = [pendulum, heavy] * 2, [8.0, 8.0, 16.0, 16.0]
    recordings = [
        rig.recording(true, k, arm=arm, gain=gain)
        for k, (arm, gain) in enumerate(zip(arms, gains, strict=True))
    ]
    servo = aw.identify_servo(arms, recordings, gains=gains)
    assert servo.values["stiffness"] == pytest.approx([0.5], rel=0.05)
    other = rig.recording(true, 9, arm=heavy, gain=12.0)
    error = servo.predict(other, arm=heavy, gain=12.0)[:, 0] - other["q_1"].values
    assert np.abs(error).mean() < 1.5e-3
    same = servo.with_gain(12.0).predict(other, arm=heavy)[:, 0]
    assert same - other["q_1"].values == pytest.approx(error)
    with pytest.raises(ArgumentError, match="identified with gain registers 8, 16"):
        servo.predict(other, arm=heavy)


def test_the_command_writes_its_files(pendulum, tmp_path):
    true = rig.truth(pendulum)
    logs = []
    for seed in range(3):
        logs.append(str(tmp_path / f"motion{seed}.csv"))
        aw.write_recording(rig.recording(true, seed), logs[-1])
    aw.arms.save_arm(pendulum, tmp_path / "arm.urdf")
    words = ["identify-servo", str(tmp_path / "arm.urdf"), *logs[:2]]
    words += ["--validate", logs[2], "-o", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    answer = json.loads(result.stdout)
    assert answer["fit"]["mrad"][0] < 1.5
    assert answer["validation"]["motions"]["motion2.csv"][0] < 1.5
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"servo.json", "identified.urdf", "identified.xml", "report.html"}
    stored = json.loads((tmp_path / "out" / "servo.json").read_text())
    assert stored["verdicts"] == answer["verdicts"]
    assert {one["verdict"] for one in answer["verdicts"]} == {"pass"}
    assert "Verdicts" in (tmp_path / "out" / "report.html").read_text()


def test_another_arms_description_is_a_failure_where_asked(pendulum, tmp_path):
    """Positions that the description says cannot be: one line, and an exit status."""
    log, path = tmp_path / "motion.csv", tmp_path / "other.urdf"
    aw.write_recording(rig.recording(rig.truth(pendulum), 1), log)
    (joint,) = pendulum.joints
    limits = replace(joint.limits, lower=2.0, upper=3.0)
    other = replace(pendulum, joints=(replace(joint, limits=limits),))
    aw.arms.save_arm(other, path)
    words = ["identify-servo", str(path), str(log), "--starts", "8"]
    for extra, status in ([], 0), (["--strict"], 1):
        result = CliRunner().invoke(app, [*words, *extra])
        assert result.exit_code == status
        assert "Verdict: fail. Do the logs look like this arm's?" in result.stdout


def test_several_joints_far_from_their_zeros_are_looked_at(robot):
    """One may be a horn put on some teeth off; two are another arm's, or order."""
    servo = rig.truth(robot)
    for zeros, verdict in ([0.4, 0.0], "pass"), ([0.4, -0.3], "look"):
        off = replace(servo, values=servo.values | {"zero": np.array(zeros)})
        assert servo_verdicts(off)[0].verdict == verdict
    assert "j0 23°, j1 -17°" in servo_verdicts(off)[0].why


def runs_off(errors):
    """Return free runs that are so far off in [rad], of motions of 100 samples."""
    return FreeRunErrors(
        {name: np.zeros(2) + error for name, error in errors.items()},
        {name: np.full(2, 40e-3) for name in errors},
        dict.fromkeys(errors, 100),
    )


def judged(servo, **changes):
    """Return the verdicts on servos whose free runs are 2 mrad off, a line 40."""
    servo = replace(servo, **({"fit": runs_off({"a": 2e-3, "b": 2e-3})} | changes))
    return [one.verdict for one in servo_verdicts(servo)]


def test_verdicts_name_what_is_wrong(robot):
    servo = rig.truth(robot)
    fine = ["pass", "pass", "not evaluated", "pass", "pass"]
    assert judged(servo) == fine
    assert judged(servo, mismatches=("No.",)) == ["fail", *fine[1:]]
    # One of two motions, most of one joint.
    held = {"a": np.array([0.0, 0.9])}
    assert judged(servo, contact=held) == [*fine[:3], "look", "pass"]
    rough = dict(servo.values) | {"coulomb": np.array([0.06, 50.0])}
    assert judged(servo, values=rough) == [*fine[:4], "fail"]
    vague = dict(servo.std) | {"coulomb": np.array([0.0, np.inf])}
    assert judged(servo, values=rough, std=vague) == fine
    lost = runs_off({"a": np.array([1e-3, 36e-3])})
    assert judged(servo, fit=lost) == ["pass", "fail", *fine[2:]]
    fitted = replace(servo, fit=runs_off({"a": 1e-3}))
    worse = servo_verdicts(fitted, runs_off({"b": 6e-3}))
    assert worse[2].verdict == "look"
    assert worst_of(worse) == worse[2]


@pytest.mark.parametrize("signs", [(1, 1), (1, -1), (-1, 1)])
def test_a_joint_that_counts_the_other_way_is_found(robot, signs):
    """Both flipped are the arm's mirror image, which no log tells apart."""
    true = rig.truth(robot)
    motions = []
    for seed in range(3):
        motion = servo_motion(rig.recording(true, seed), robot)
        q, goals = motion.q * signs, motion.goals * signs
        motions.append(replace(motion, q=q, goals=goals))
    signs_found = joint_signs(robot, motions)
    assert signs_found[0] * signs_found[1] == signs[0] * signs[1]


@pytest.mark.parametrize("ticks", [1024, 4096, 16384])
def test_rounding_is_half_of_the_encoders_step(robot, ticks):
    servo, step = rig.truth(robot), 2.0 * np.pi / ticks
    log = rig.recording(servo, 1)
    q = np.round(servo.predict(log) / step) * step
    command = np.column_stack([log[f"command_{j}"].values for j in (1, 2)])
    rounded = rig.of_arrays(log["q_1"].time, q, command)
    assert servo_motion(rounded, robot).rounding == pytest.approx(0.5 * step, rel=1e-3)


def test_joints_that_change_places_are_told(tmp_path):
    """Two or three of four; one motion of four that is so may be chance."""
    rig.arm(tmp_path, joints=4)
    text = (tmp_path / "fingers4.urdf").read_text()
    for k, (axis, mass) in enumerate((("0 0 1", 0.5), ("0 1 0", 0.4), ("0 1 0", 0.2))):
        head, link = text.split(f'<link name="l{k}">')
        link = link.replace("0 1 0", axis, 1).replace("0.12", str(mass), 1)
        text = f'{head}<link name="l{k}">{link}'
    (tmp_path / "other.urdf").write_text(text)
    robot = aw.load_arm(tmp_path / "other.urdf")
    true = rig.truth(robot, stiffness=15.0)
    motions = [servo_motion(rig.recording(true, seed), robot) for seed in range(5)]
    assert other_order(robot, motions) is None
    for order in ([1, 0, 2, 3], [2, 0, 1, 3]):
        mixed = [replace(m, q=m.q[:, order], goals=m.goals[:, order]) for m in motions]
        assert other_order(robot, mixed) == np.argsort(order).tolist()
        assert other_order(robot, [*motions[:3], mixed[3]]) is None


def test_joints_in_reverse_order_are_told(robot):
    """Commands and positions both: only gravity knows which joint carries which."""
    true = rig.truth(robot)
    motions = [servo_motion(rig.recording(true, seed), robot) for seed in range(4)]
    turned = [replace(m, q=m.q[:, ::-1], goals=m.goals[:, ::-1]) for m in motions]
    assert other_order(robot, motions) is None
    assert other_order(robot, turned) == [1, 0]


# What cannot be used.


def _columns(dof: int = 2) -> tuple[np.ndarray, np.ndarray]:
    command = rig.commands(dof, 5)
    return np.arange(len(command)) * 0.02, command


def test_position_without_command(robot):
    time, command = _columns()
    bare = aw.Recording.from_arrays(time, q=command, source="run.csv")
    with pytest.raises(RecordingError, match=r"run.csv has commands of 0 of the 2"):
        aw.identify_servo(robot, bare)


def test_commands_that_are_the_positions_are_refused(robot):
    log = rig.recording(rig.truth(robot), 0)
    copied = log.with_channels({f"command_{k}": log[f"q_{k}"] for k in (1, 2)})
    with pytest.raises(RecordingError, match="commands are the positions themselves"):
        aw.identify_servo(robot, copied)


def test_commands_that_stand_while_joints_move_are_refused(robot):
    log = rig.recording(rig.truth(robot), 0)
    still = np.full(len(log["command_1"].time), log["command_1"].values[0])
    still = log.with_channels({"command_1": Channel(log["command_1"].time, still)})
    with pytest.raises(RecordingError, match="command_1 stands still while"):
        aw.identify_servo(robot, still)


def test_a_fifth_of_a_second_is_refused(robot):
    log = rig.recording(rig.truth(robot), 0)
    short = {
        name: Channel(log[name].time[:11], log[name].values[:11])
        for name in ("q_1", "q_2", "command_1", "command_2")
    }
    with pytest.raises(NotIdentifiable, match="s of motion in all tell nothing"):
        aw.identify_servo(robot, log.with_channels(short))


def test_commands_in_ticks(robot):
    time, command = _columns()
    log = rig.of_arrays(time, command, 2048 + command / rig.TICK, "run.csv")
    with pytest.raises(RecordingError, match="ticks, degrees or percent"):
        aw.identify_servo(robot, log)


def test_joints_in_another_order(robot):
    time, command = _columns()
    apart = command + np.array([0.0, 1.0])
    log = rig.of_arrays(time, apart[:, ::-1], apart, "run.csv")
    with pytest.raises(RecordingError, match="command_1 is followed by q_2"):
        aw.identify_servo(robot, log)


def test_commands_and_positions_that_are_exchanged(robot):
    log = rig.recording(rig.truth(robot), 0)
    names = [(f"{a}_{j}", f"{b}_{j}") for j in (1, 2)
             for a, b in (("q", "command"), ("command", "q"))]  # fmt: skip
    other = log.with_channels({a: log[b] for a, b in names})
    with pytest.raises(RecordingError, match=r"commands come \d+ ms after the positio"):
        aw.identify_servo(robot, other)
    refuse_unfollowed(servo_motion(log, robot))


@pytest.mark.parametrize("hertz", [1.0, 2.0, 2.5, 3.0])
def test_motions_that_repeat_and_lag_are_not_exchanged(robot, hertz):
    """What lags by most of a period leads by the rest of it."""
    time = np.arange(700) * 0.02
    command = 0.4 + 0.2 * np.sin(2 * np.pi * hertz * time)[:, None] * np.ones(2)
    start = np.tile(command[0], (len(time), 1))
    slow = rig.truth(robot, acceleration=15.0)
    q = slow.predict(rig.of_arrays(time, start, command))
    log = rig.of_arrays(time, q, command)
    refuse_unfollowed(servo_motion(log, robot))


def test_a_joint_that_runs_against_its_command(robot):
    time, command = _columns()
    lagging = np.roll(command, 5, axis=0)
    log = rig.of_arrays(time, lagging * [1.0, -1.0] + 0.3, command, "run.csv")
    with pytest.raises(RecordingError, match="q_2 runs against command_2"):
        aw.identify_servo(robot, log)
    refuse_unfollowed(servo_motion(rig.of_arrays(time, lagging, command), robot))


def test_a_motor_that_is_off_half_way(robot):
    time, command = _columns()
    command = command + 0.6 * np.sin(3 * time)[:, None]
    q = command.copy()
    half = len(time) // 2
    q[half:, 0] = q[half, 0] - 1.0
    with pytest.raises(RecordingError, match=r"joint 1 does not move from \d"):
        aw.identify_servo(robot, rig.of_arrays(time, q, command))


def test_a_motor_that_is_off_lets_its_joint_swing(robot):
    """It moves, wherever the others' motion and gravity drive it."""
    true = rig.truth(robot)
    log = rig.recording(true, 0)
    time = log["q_1"].time
    command = np.column_stack([log[f"command_{j}"].values for j in (1, 2)])
    q = np.column_stack([log[f"q_{j}"].values for j in (1, 2)])
    refuse_unfollowed(servo_motion(rig.of_arrays(time, q, command), robot))
    half = len(time) // 2
    q[half:, 1] = command[:, 1].mean() - 0.7 + 0.3 * np.sin(6.0 * time[half:])
    with pytest.raises(RecordingError, match=r"joint 2 goes elsewhere .* from \d"):
        refuse_unfollowed(servo_motion(rig.of_arrays(time, q, command), robot))


def test_a_joint_that_yields_to_the_others_at_a_goal_that_stands(robot):
    """Soft, and pushed to and fro: its command was logged all the same."""
    true = rig.truth(robot, stiffness=1.5, damping=0.02, coulomb=0.002)
    logs = [rig.recording(true, seed, still=[1]) for seed in range(2)]
    motion = servo_motion(logs[0], robot)
    assert np.abs(np.diff(motion.q[:, 1])).sum() > 1.5
    assert np.ptp(motion.goals[:, 1]) == 0.0


def test_a_drive_that_locks_has_no_even_friction():
    """Its torques would be those of no servo, below zero in the end."""
    values = absent() | {"stiffness": 1.0, "damping": 0.1, "coulomb": 0.1}
    for back_driven in (1.5, 3.4):
        locks = values | {"driving": 0.1, "back_driven": back_driven}
        assert not evened([locks], ELEMENTS["load friction"])


def test_a_soft_servo_that_sags_is_not_off(robot):
    """Far from its command at rest, it has not answered yet to one just sent."""
    time = np.arange(0.0, 8.0, 0.02)
    command = np.where(time < 1.97, 1.5, 0.0)[:, None] * [1.0, 0.0]
    q = np.where(time < 2.02, 1.0, 0.1)[:, None] * [1.0, 0.0]
    refuse_unfollowed(servo_motion(rig.of_arrays(time, q, command), robot))


def test_five_samples_a_second(robot):
    time, command = _columns()
    log = rig.of_arrays(time[::10], command[::10], command[::10])
    with pytest.raises(RecordingError, match="5 samples a second"):
        aw.identify_servo(robot, log)


def test_an_arm_that_never_moves(robot):
    time, command = _columns()
    still = np.tile(command[0], (len(time), 1))
    with pytest.raises(NotIdentifiable, match="No joint moves"):
        aw.identify_servo(robot, rig.of_arrays(time, still, still))


@pytest.mark.parametrize("static", [0.0, 0.03])
def test_a_joint_that_is_never_commanded_tells_nothing_of_its_set_point(robot, static):
    """The others' motion pushes it by some ticks: that shows torques, and no delay."""
    true = rig.truth(robot, static=static, stribeck_speed=0.1 if static else 1.0)
    logs = [rig.recording(true, seed, still=[1]) for seed in range(4)]
    assert np.ptp(logs[0]["q_2"].values) > 0.01
    servo = aw.identify_servo(robot, logs)
    assert np.isinf([servo.std[n][1] for n in ("delay", "acceleration")]).all()
    assert np.isfinite([servo.std[n][0] for n in ("delay", "acceleration")]).all()
    off = (servo.values["stiffness"] - true.values["stiffness"])[1]
    # A fifth of the value at most: five sets of logs say 3 to 13 %.
    assert abs(off) < 3.0 * servo.std["stiffness"][1] < 3.0 * 0.2 * 6.0
    dry = (servo.values["coulomb"] - true.values["coulomb"])[1]
    assert abs(dry) < 3.0 * servo.std["coulomb"][1]
    # Which friction holds it no log says where there are several.
    assert np.isinf(servo.std["coulomb"][1]) == (static > 0.0)
    # Written for simulators, it has a motor, too.
    assert servo.simplified().values["stiffness"][1] == pytest.approx(6.3, rel=0.2)


def test_gains_that_cannot_be(pendulum):
    true = rig.truth(pendulum)
    recording = rig.recording(true, 1)
    with pytest.raises(ArgumentError, match="2 gains for 1 recordings"):
        aw.identify_servo(pendulum, [recording], gains=[1.0, 2.0])
    off = recording.with_channels(
        {"powered": Channel(recording["q_1"].time, 0 * recording["q_1"].values)}
    )
    with pytest.raises(RecordingError, match="off all along"):
        aw.identify_servo(pendulum, [off])


# LeRobot's logs.


def _lerobot(path, values: np.ndarray, states: np.ndarray) -> None:
    pl = pytest.importorskip("polars")
    count = len(values) // 2
    frame = {
        "action": values.tolist(),
        "observation.state": states.tolist(),
        "timestamp": [0.02 * (k % count) for k in range(len(values))],
        "episode_index": [k // count for k in range(len(values))],
    }
    pl.DataFrame(frame).write_parquet(path)


def test_lerobot_in_degrees_and_normalised(robot, tmp_path):
    _, command = _columns()
    _lerobot(tmp_path / "a.parquet", np.degrees(command), np.degrees(command))
    assert is_lerobot(tmp_path / "a.parquet")
    first, second = read_lerobot(tmp_path / "a.parquet", robot)
    half = len(command) // 2
    assert first["command_2"].values == pytest.approx(command[:half, 1])
    assert second["q_1"].values == pytest.approx(command[half:, 0])
    # Every command that reads commands reads them so, not as radians.
    again, _ = read_servo_logs([tmp_path / "a.parquet"], robot, None, None, False, None)
    assert again["command_2"].values == pytest.approx(command[:half, 1])
    ranges = {"j0": {"range_min": 1000, "range_max": 3000},
              "j1": {"range_min": 500, "range_max": 3600}}  # fmt: skip
    (tmp_path / "calibration.json").write_text(json.dumps(ranges))
    widths = np.array([2000, 3100]) * rig.TICK / 200.0
    _lerobot(tmp_path / "b.parquet", command / widths, command / widths)
    first, _ = read_lerobot(
        tmp_path / "b.parquet", robot, tmp_path / "calibration.json"
    )
    assert first["q_2"].values == pytest.approx(command[:half, 1])
    _lerobot(tmp_path / "c.parquet", 200.0 * command, 200.0 * command)
    with pytest.raises(RecordingError, match="not normalised but degrees"):
        read_lerobot(tmp_path / "c.parquet", robot, tmp_path / "calibration.json")
    (tmp_path / "calibration.json").write_text('{"j0": {}}')
    with pytest.raises(ArgumentError, match="no range_min and range_max of 'j0'"):
        read_lerobot(tmp_path / "b.parquet", robot, tmp_path / "calibration.json")
    _lerobot(tmp_path / "c.parquet", command[:, :1], command[:, :1])
    with pytest.raises(RecordingError, match="for the 2 joints"):
        read_lerobot(tmp_path / "c.parquet", robot)


def test_the_example_is_there():
    described = aw.load_arm(EXAMPLE / "so101.urdf")
    logs = sorted(EXAMPLE.glob("*.parquet"))
    assert len(logs) == 3
    for log in logs:
        recording = aw.read_recording(log, arm=described)
        assert recording.count("command") == described.dof == 6
    assert "Apache" in (EXAMPLE / "NOTICE").read_text()


def test_a_log_named_twice_counts_once(robot):
    """And one that is validated on as well as fitted is named."""
    logs = [rig.recording(rig.truth(robot), seed) for seed in (1, 2)]
    once, twice = identify_servo(robot, logs), identify_servo(robot, [*logs, logs[0]])
    assert twice.values["delay"] == pytest.approx(once.values["delay"], rel=1e-12)
    assert twice.std["delay"] == pytest.approx(once.std["delay"], rel=1e-12)
    note = "motion1.csv repeats motion1.csv, and counts once: name every log once."
    assert note in twice.notes
    other = rig.recording(rig.truth(robot), 3)
    assert validated_on_fit(once, logs, [other]).notes == once.notes
    said = validated_on_fit(once, logs, [other, logs[1]]).notes
    assert set(said) - set(once.notes) == {
        "motion2.csv is validated on and was fitted: its error says nothing about "
        "other motion."
    }


def test_a_log_with_two_gains_is_refused(pendulum):
    log = rig.recording(rig.truth(pendulum), 1)
    with pytest.raises(ArgumentError, match="hold the same motion, with other loads"):
        aw.identify_servo(pendulum, [log, log], gains=[8.0, 16.0])


def test_a_joint_that_counts_the_other_way_is_said(robot):
    logs = [rig.recording(rig.truth(robot), seed) for seed in (1, 2, 3)]
    other = [
        log.with_channels({
            name: Channel(log[name].time, -log[name].values)
            for name in ("q_2", "command_2")
        })
        for log in logs
    ]  # fmt: skip
    servo = identify_servo(robot, other)
    # Which of both it is no motion in one plane tells: the first is as described.
    assert servo.signs.tolist() == [1.0, -1.0]
    assert servo.notes[0].startswith("j1 counts the other way than the description")


def test_what_readers_did_is_said_once(robot):
    logs = [rig.recording(rig.truth(robot), seed) for seed in (1, 2)]
    noted = [replace(log, notes=(f"{log.source}: time is in ms.",)) for log in logs]
    servo = identify_servo(robot, noted)
    assert "motion1.csv and 1 more: time is in ms." in servo.notes


def test_a_shell_expands_logs_to_validate():
    words = ["identify-servo", "a", "1", "--validate", "2", "3", "-o", "out", "--json"]
    spelt = ["identify-servo", "a", "1", "--validate", "2", "--validate", "3"]
    assert every_validation(words) == [*spelt, "-o", "out", "--json"]


def test_what_the_motions_do_not_show_is_unknown():
    """A direction without information has no variance in a pseudo-inverse."""
    values = {name: p.absent for name, p in PARAMETERS.items()}
    values |= {"stiffness": 10.0, "armature": 1e-6, "damping": 0.5}
    names = ("stiffness", "armature", "damping")
    scores = np.random.default_rng(0).normal(size=(6, 3)) * [40.0, 0.0, 8.0]
    lone = ServoFit(values, names, 0.0, 0.0, np.diag([1e4, 0.0, 400.0]), scores)
    std = standard_deviations(lone)
    assert np.isinf(std["armature"])
    assert std["stiffness"] < 1.0
    assert std["damping"] < 0.1
    # Two that only show together.
    tied = np.array([[1e4, 2e3, 0.0], [2e3, 400.0, 0.0], [0.0, 0.0, 400.0]])
    std = standard_deviations(ServoFit(values, names, 0.0, 0.0, tied, scores))
    assert np.isinf([std["stiffness"], std["armature"]]).all()
    assert np.isfinite(std["damping"])


def test_servos_share_what_some_of_them_know():
    """The median counts servos by what their motions say; strangers do not pull."""
    base = {name: p.absent for name, p in PARAMETERS.items()}
    base |= {"stiffness": 10.0, "coulomb": 0.1}
    names = ("acceleration", "armature")
    limits, known = (41.0, 40.0, 400.0, 900.0), (1e4, 1e4, 1e-3, 1e-3)
    fits = [
        ServoFit(base | {"acceleration": a, "armature": 1e-6}, names, 0.0, 0.0,
                 np.diag([h, 1e-6]), np.zeros((3, 2)))
        for a, h in zip(limits, known, strict=True)
    ]  # fmt: skip
    prior = shared_values(fits)
    assert np.exp(prior.mean["acceleration"]) == pytest.approx(40.5, rel=0.02)
    # Nobody knows the rotor.
    assert "armature" not in prior.mean


def test_one_joint_does_not_decide_for_another():
    before = {0: 2e-3, 1: 3e-3, 2: 4e-3, 3: 1e-3}
    sure = dict.fromkeys(before, 0.0)
    # Three want the element, and one would be ruined by it.
    assert takers(before, {0: 1.8e-3, 1: 2.8e-3, 2: 3.8e-3, 3: 9e-3}, sure) == {0, 1, 2}
    # What they need on the whole is in the firmware of one that does not show it.
    some = {0: 1.8e-3, 1: 2.8e-3, 2: 3.8e-3, 3: 1e-3}
    assert takers(before, some, sure) == {0, 1, 2, 3}
    # A little of one joint says nothing of the others.
    little = {0: 1.98e-3, 1: 3e-3, 2: 4e-3, 3: 1e-3}
    assert takers(before, little, sure) == {0}
    assert takers(before, before, sure) == set()
    # What windows differ by as much as they save is chance.
    assert takers(before, little, {**sure, 0: 3e-5}) == set()


def test_a_limit_that_no_motion_meets_is_idle(robot):
    servo = rig.truth(robot, acceleration=15.0, slew=1e4)
    motion = joint_loads(servo.motion(rig.recording(servo, 1)), robot)[1]
    values = {name: float(x[1]) for name, x in servo.values.items()}
    # As is friction of no size.
    names = ("acceleration", "slew", "quadratic")
    assert set(idle(Roller(None), [motion], values, names)) == {"slew", "quadratic"}


def still(values, names):
    """Return a fit that was never moved."""
    size = len(names)
    return ServoFit(dict(values), tuple(names), 0.0, 1e-3, np.eye(size),
                    np.zeros((2, size)))  # fmt: skip


def test_fits_are_ranked_by_one_measure(robot):
    """Each one's own cost is in units of its own errors, and says nothing."""
    true = rig.truth(robot)
    motions = [joint_loads(true.motion(rig.recording(true, 1)), robot)[0]]
    right = {name: float(x[0]) for name, x in true.values.items()}
    wrong = right | {"stiffness": 3.0}
    fits = [
        replace(still(wrong, CORE), cost=1e-9, scale=0.1),
        replace(still(right, CORE), cost=1.0),
    ]
    assert ranked(Roller(None), motions, fits)[0].values == right


def test_a_joint_that_gravity_does_not_load_has_the_others_torques(robot):
    """Thirty times the torques and the rotor is the same motion; the others know."""
    level = replace(robot, gravity=np.zeros(3))
    true = rig.truth(level, armature=0.05)
    motions = [
        joint_loads(true.motion(rig.recording(true, k)), level)[1] for k in (1, 2)
    ]
    right = {name: float(x[1]) for name, x in true.values.items()}
    lost = right | {name: 30.0 * right[name] for name in (*TORQUES, "coulomb")}
    means = {name: float(np.log(1.2 * right[name])) for name in TORQUES}
    prior = Prior(means, dict.fromkeys(TORQUES, 1.0))
    fit = fit_alike(Roller(None), motions, lost, (*CORE, "acceleration"), 4, prior)
    assert 0.5 < fit.values["stiffness"] / right["stiffness"] < 2.0


@pytest.mark.parametrize(
    ("true_factor", "is_brought_back"), [(1.0, True), (9.0, False)]
)
def test_torques_that_drifted_are_brought_to_the_other_servos(
    tmp_path, true_factor, is_brought_back
):
    """A common factor on all torques of one joint; of one that is so, it stays."""
    robot = rig.arm(tmp_path, joints=3).with_gravity([0.0, 0.0, 0.0])
    servo = rig.truth(robot, coulomb=0.2)
    torques = ("stiffness", "damping", "coulomb", "armature")
    servo.values["stiffness"][0] *= true_factor
    motions = [servo.motion(rig.recording(servo, seed)) for seed in (1, 2)]
    course = _Identification(
        [robot] * 2, motions, np.ones(3), Roller(None), (0, 8), lambda what, done: None
    )
    joints = course.joints()
    fits = []
    for joint in joints:
        values = {name: float(x[joint.number]) for name, x in servo.values.items()}
        values["armature"] -= float(half_step_inertia(np.array(values["damping"])))
        if joint.number == 0 and is_brought_back:
            values |= {name: 30.0 * values[name] for name in torques}
        joint.halves, joint.fits = course.windows(joint), [values] * 2
        joint.names = (*CORE, "acceleration")
        (fit,) = fit_servos(
            course.roller, joint.windows, [values], joint.names, iterations=1
        )
        fits.append(replace(fit, values=values))
    after = LastFit(course, joints, CORE)._rescaled(joints, fits)
    # A trial that returns to where it left from may be taken: it went on fitting.
    ratio = after[0].values["stiffness"] / servo.values["stiffness"][0]
    assert 0.6 < ratio < 1.7
    assert after[1] is fits[1]
    assert after[2] is fits[2]


def grown(tmp_path, **limits):
    """Return joints that have the true model, and the growth they are in."""
    robot = rig.arm(tmp_path)
    servo = rig.truth(robot, **limits)
    motions = [servo.motion(rig.recording(servo, seed)) for seed in (1, 2, 3, 4)]
    course = JointMotions([robot] * 4, motions, Roller(None), lambda what, done: None)
    joints = course.joints()
    for joint in joints:
        values = {name: float(x[joint.number]) for name, x in servo.values.items()}
        values["armature"] -= float(half_step_inertia(np.array(values["damping"])))
        joint.halves, joint.fits = course.windows(joint), [values] * 2
        joint.names = (*CORE, *limits)
    random = [np.random.default_rng(k) for k in range(len(joints))]
    halves = HalfFits(course.roller, joints, robot.dof)
    return joints, Growth(halves, motions, CORE, random, course.progress)


def test_a_joint_in_a_false_valley_is_led_out_by_its_neighbour(tmp_path):
    joints, growth = grown(tmp_path, acceleration=15.0, derivative=0.1)
    astray = joints[1]
    wrong = {"acceleration": 2e3, "delay": 0.06, "derivative": 0.0}
    astray.fits = [dict(values) | wrong for values in astray.fits]
    for joint in joints:
        growth.halves.errors[joint.number] = growth.halves.left_out(joint, joint.fits)
        joint.bare_error = 2.0 * growth.halves.errors[joint.number]
    growth.draws = 0
    before = dict(growth.halves.errors)
    growth.lower_valleys("other servos", 0.0)
    accelerations = [values["acceleration"] for values in astray.fits]
    assert accelerations == pytest.approx([15.0, 15.0], rel=0.05)
    assert growth.halves.errors[1] < 0.2 * before[1]
    # The neighbour has nothing to learn from it.
    assert growth.halves.errors[0] == pytest.approx(before[0], rel=0.05)


@pytest.mark.parametrize(("own", "lent"), [(200.0, 15.0), (15.0, 5.0)])
def test_a_limit_that_two_servos_agree_on_is_lent_unless_it_does_harm(
    tmp_path, own, lent
):
    """All of them have 15 rad/s²."""
    joints, growth = grown(tmp_path, acceleration=15.0)
    third = replace(joints[1], number=2)
    third.fits = [dict(third.fits[0], acceleration=own)] * 2
    for joint in joints:
        joint.fits = [dict(joint.fits[0], acceleration=lent)] * 2
    growth.joints = [*joints, third]
    growth.lend_limits()
    assert third.model["acceleration"] == pytest.approx(15.0)
    assert (third.prior is not None) == (own == 200.0)


def test_what_all_windows_show_is_not_cheap(tmp_path):
    joints, growth = grown(tmp_path, acceleration=15.0)
    joint = joints[0]
    bare = dict(joint.fits[0], acceleration=np.inf)
    assert not growth.pruning._is_cheap(joint, CORE, bare)
    assert growth.pruning._is_cheap(joint, CORE, dict(joint.fits[0]))


def test_what_all_windows_show_is_not_taken_from_all(tmp_path, monkeypatch):
    """Though halves that lack the same predict each other as well without it."""
    joints, growth = grown(tmp_path, acceleration=15.0)
    growth.halves.errors = {joint.number: 1e-3 for joint in joints}
    monkeypatch.setattr(
        growth.halves,
        "window_errors",
        lambda joint, *models: np.full((len(models), 4), 1e-3),
    )
    names = [joint.names for joint in joints]
    assert all("acceleration" in own for own in names)
    growth.pruning._drop_from_all("acceleration limit")
    assert [joint.names for joint in joints] == names
    assert growth.halves.verdicts["acceleration limit"].is_needed


def test_joints_under_the_others_free_runs_move_as_in_the_whole_arm(tmp_path):
    """And fitted there, a servo that is off is led back."""
    joints, growth = grown(tmp_path, acceleration=60.0)
    robot, motions = rig.arm(tmp_path), growth.motions
    course = JointMotions([robot] * 4, motions, Roller(None), lambda what, part: None)
    course.joints()
    right = [dict(joint.fits[0]) for joint in joints]
    off = [dict(v, coulomb=2.0 * v["coulomb"], delay=v["delay"] + 4e-3) for v in right]
    course.load_by(joints, off)
    whole = course.whole_errors(joints, [off, right])
    alone = [mean_errors(course.roller, j.motions, v).mean()
             for j, v in zip(joints, off, strict=True)]  # fmt: skip
    assert alone == pytest.approx(whole[0], rel=0.02)
    assert np.all(whole[1] < 0.3 * whole[0])
    empty = np.zeros((0, 0))
    fits = [ServoFit(v, j.names, 1.0, 1.0, empty, empty)
            for j, v in zip(joints, off, strict=True)]  # fmt: skip
    last = LastFit(course, joints, CORE)
    near = last._together(fits)
    after = course.whole_errors(joints, [[fit.values for fit in near]])
    assert np.all(after[0] < 1.1 * whole[1])
    # Where nothing is nearer joints stay under the loads they had.
    loads = [joint.motions for joint in joints]
    assert last._together(near) == near
    assert [joint.motions for joint in joints] == loads


def test_all_rows_choose_among_valleys(tmp_path):
    joints, growth = grown(tmp_path, acceleration=60.0)
    joint, right = joints[0], dict(joints[0].fits[0])
    course = JointMotions([rig.arm(tmp_path)] * 4, growth.motions, Roller(None),
                          lambda what, part: None)  # fmt: skip
    false = dict(right, stiffness=0.1, coulomb=2.0, acceleration=2.0)
    last = LastFit(course, joints, CORE)
    alone = last._all_rows(joint, false)
    joint.valleys = [dict(right)]
    beside = last._all_rows(joint, false)
    own, best = errors_together(
        course.roller, joint.motions, [alone.values, beside.values]
    ).mean(axis=1)
    assert best < 0.5 * own


def test_servos_lend_their_timing_or_all_they_have(robot):
    servo = rig.truth(robot, acceleration=23.0, derivative=0.1, offset=1e-3)
    own = {name: float(x[0]) for name, x in servo.values.items()}
    other = dict(own, acceleration=40.0, delay=0.03, stiffness=9.0, damping=0.1,
                 derivative=0.3, offset=5e-3, slew=np.inf)  # fmt: skip
    names = (*CORE, "acceleration", "derivative", "offset")
    timed, whole = borrowed(own, names, [other])
    for start in (timed, whole):
        assert (start["acceleration"], start["delay"]) == (40.0, 0.03)
        # Where a joint's command stands is its own, as is what no other has.
        assert start["offset"] == own["offset"]
    assert timed["stiffness"] == own["stiffness"]
    assert timed["derivative"] == pytest.approx(3.0 * timed["damping"])
    total = own["damping"] + own["derivative"]
    assert timed["damping"] + timed["derivative"] == pytest.approx(total)
    assert (whole["stiffness"], whole["damping"]) == (9.0, 0.1)


def test_a_limit_of_speed_is_found_though_others_stand_for_it(tmp_path):
    """From a core that knows of no limit."""
    joints, growth = grown(tmp_path, acceleration=np.inf, slew=0.8)
    for joint in joints:
        joint.fits = [dict(values, slew=np.inf) for values in joint.fits]
        growth._begin(joint)
        assert [f["slew"] for f in joint.fits] == pytest.approx([0.8] * 2, rel=0.05)
        assert growth.halves.errors[joint.number] < 0.2 * joint.bare_error


def test_halves_take_the_set_point_from_all_windows(tmp_path):
    """One half alone says little of it; what is judged is the rest."""
    joints, growth = grown(tmp_path, acceleration=15.0)
    joint = joints[0]
    joint.held = ("delay", "acceleration")
    start = dict(joint.fits[0], delay=0.02, acceleration=14.0, damping=0.3)
    for values in growth.halves.halved(joint, joint.names, start, 4):
        assert (values["delay"], values["acceleration"]) == (0.02, 14.0)
        assert values["damping"] != start["damping"]


def test_set_points_start_from_limits_that_random_starts_came_to(robot):
    servo = rig.truth(robot, acceleration=23.0)
    core = {name: float(x[0]) for name, x in servo.values.items()}
    bare = dict(core, acceleration=np.inf)
    motion = joint_loads(servo.motion(rig.recording(servo, 1)), robot)[0]
    own, *grid = profile_starts(core, bare, [motion])
    assert [start["acceleration"] for start in own] == [23.0]
    limits = [start[n] for group in grid for start in group
              for n in ("acceleration", "slew")]  # fmt: skip
    assert np.isfinite(limits).all()
    # A derivative gain's share of the damping is no more damping.
    for start in (start for group in grid for start in group):
        total = start["damping"] + start["derivative"]
        assert total == pytest.approx(core["damping"], rel=0.15)


def test_a_model_is_rid_of_what_it_can_do_without(tmp_path):
    """Elements of little size and limits never met; what there is stays."""
    joints, growth = grown(tmp_path, acceleration=15.0, static=0.05, stribeck_speed=0.1)
    extra = {"slew": 300.0, "quadratic": 2e-4, "dead_band": 1e-6, "offset": 3e-4}
    for joint in joints:
        joint.core = dict(joint.fits[0])
        joint.names = (*joint.names, *extra)
        joint.fits = [dict(fit) | extra for fit in joint.fits]
    growth.halves.errors = {j.number: growth.halves.left_out(j, j.fits) for j in joints}
    before = dict(growth.halves.errors)
    growth.pruning.prune()
    for joint in joints:
        assert not set(joint.names) & set(extra)
        assert {"acceleration", "static", "stribeck_speed"} <= set(joint.names)
        assert joint.fits[0]["slew"] == np.inf
        assert growth.halves.errors[joint.number] < 1.05 * before[joint.number]


def test_the_fall_of_friction_takes_the_shape_that_motions_show(tmp_path):
    """Joints without such friction get none; friction while sliding is then right."""
    joints, growth = grown(
        tmp_path, acceleration=15.0, static=0.06, stribeck_speed=0.3,
        stribeck_shape=1.0,
    )  # fmt: skip
    other = joints[1]
    for joint in joints:
        joint.names = tuple(n for n in joint.names if n != "stribeck_shape")
        joint.fits = [dict(fit, stribeck_shape=0.0) for fit in joint.fits]
    other.names = (*CORE, "acceleration")
    growth.halves.errors = {j.number: growth.halves.left_out(j, j.fits) for j in joints}
    before = dict(growth.halves.errors)
    growth._shapes()
    assert "stribeck_shape" in joints[0].names
    for fit in joints[0].fits:
        assert fit["stribeck_shape"] > 0.5
        assert fit["coulomb"] == pytest.approx(0.06, rel=0.05)
    assert growth.halves.errors[0] < before[0]
    assert "stribeck_shape" not in other.names


def test_one_window_that_meets_a_limit_is_no_doubt_of_it():
    """Savings are doubted by their scatter, those of a limit by what windows lose."""
    saved = np.zeros(16)
    saved[3], saved[5] = 5e-3, -1e-5
    assert saved.mean() < 1.01 * doubt(saved) == 1.01 * by_chance(saved, ("offset",))
    assert by_chance(saved, ("saturation",)) < 0.01 * saved.mean()
    # Of what is not there they are the same.
    noise = np.random.default_rng(0).normal(size=4000)
    assert by_chance(noise, ("slew",)) == pytest.approx(doubt(noise), rel=0.05)


def test_intervals_hold_what_another_shape_of_friction_would_give(tmp_path):
    """Coulomb friction is less known where the shape of the fall may be another."""
    joints, growth = grown(tmp_path, static=0.06, stribeck_speed=0.15)
    joint = joints[0]
    (fit,) = fit_servos(
        growth.roller, joint.windows, joint.fits[:1], joint.names, iterations=3
    )
    joint.apart = {}
    wide = in_any_form(growth.roller, joint, fit)
    assert wide.names == (*fit.names, "stribeck_shape") == joint.names
    std, wider = (
        standard_deviations(resolved(growth.roller, joint.windows, one, None))
        for one in (fit, wide)
    )
    # Which of them the shape is mistaken for depends on the noise.
    ratios = [wider[name] / std[name] for name in ("coulomb", "static", "damping")]
    assert min(ratios) > 0.99
    assert max(ratios) > 1.1
    # Between its bounds, whatever the motions say.
    assert wider["stribeck_shape"] < 1.2


def test_intervals_reach_the_form_that_windows_prefer(tmp_path):
    """Friction falls off as a Gaussian does, and was fitted in another shape."""
    joints, growth = grown(
        tmp_path, static=0.08, stribeck_speed=0.15, stribeck_shape=1.0
    )
    joint = joints[0]
    names = tuple(name for name in joint.names if name != "stribeck_shape")
    start = dict(joint.fits[0], stribeck_shape=0.0)
    (fit,) = fit_servos(growth.roller, joint.windows, [start], names, iterations=8)
    assert fit.values["stribeck_shape"] == 0.0
    joint.apart = {}
    wide = in_any_form(growth.roller, joint, fit)
    wide = resolved(growth.roller, joint.windows, wide, None)
    std = standard_deviations(wide)
    reach = 2.0 * np.hypot(std["stribeck_shape"], joint.apart["stribeck_shape"])
    assert reach > 0.8
    # Draws know as much.
    drawn = coordinate_covariance(wide, joint.alternatives)
    at = wide.names.index("stribeck_shape")
    alone = coordinate_covariance(wide, [])
    assert np.sqrt(drawn[at, at]) > 0.4 > np.sqrt(alone[at, at])


def test_intervals_and_draws_reach_the_farthest_of_alternatives(robot):
    """A limit that one of them lacks is no distance; names may be some of all."""
    servo = rig.truth(robot)
    _, joints = course_of(robot, servo, [rig.recording(servo, 0)])
    joint, true = joints[0], joints[0].fits[0]
    joint.allow(true, [])
    assert joint.alternatives == []
    stiff, stiffer = (true | {"stiffness": k * true["stiffness"]} for k in (1.2, 100.0))
    joint.allow(true, [stiff, stiff | {"acceleration": np.inf}])
    assert joint.apart["stiffness"] == pytest.approx(0.1 * true["stiffness"])
    assert joint.alternatives[0]["stiffness"] == pytest.approx(0.5 * np.log(1.2))
    assert joint.apart["acceleration"] == 0.0 == joint.alternatives[0]["acceleration"]
    joint.allow(true, [stiff, stiffer], ["stiffness"], part=1.0)
    assert joint.apart["stiffness"] == pytest.approx(99.0 * true["stiffness"])
    assert joint.alternatives[1] == {"stiffness": 1.0}


def test_intervals_hold_load_friction_that_other_servos_have(robot):
    """One joint came out without it, and its stiffness made up for it."""
    true = rig.truth(robot, driving=0.3, back_driven=0.1)
    course, joints = course_of(robot, true, [rig.recording(true, k) for k in range(3)])
    joint, other = joints
    bare = joint.fits[0] | {"driving": 0.0, "back_driven": 0.0}
    (fit,) = fit_servos(course.roller, joint.windows, [bare], joint.names, iterations=8)
    joint.apart, joint.alternatives = {}, []
    doubt_load_friction(course.roller, joint, fit.values, [])
    assert joint.alternatives == []
    doubt_load_friction(course.roller, joint, fit.values, [other.fits[0]])
    off = abs(fit.values["stiffness"] - true.values["stiffness"][0])
    assert off > 0.2
    assert off < 6.0 * joint.apart["stiffness"]


def test_motions_are_cut_where_joints_rest(robot):
    """Into parts of which none is short and none lacks; free runs begin at rest."""
    time = np.arange(2500) * 0.02
    # Moves for three seconds, rests for one.
    moves = np.where(time % 4.0 < 3.0, np.sin(2.0 * np.pi * time), 0.0)
    command = np.column_stack([moves, np.zeros(2500)])
    log = rig.of_arrays(time, np.roll(command, 3, axis=0), command)
    motion = joint_loads(servo_motion(log, robot), robot)[0]
    windows = rested_windows(motion, 10.0)
    assert sum(len(w.time) for w in windows) == 2500
    assert all(5.0 <= w.time[-1] + 0.02 <= 15.0 for w in windows)
    for window in windows[1:]:
        assert abs(window.q[0, 0]) < 1e-9
        assert abs(window.goals[0, 0]) < 1e-9
    cut = np.concatenate([w.goals for w in windows])
    assert np.array_equal(cut, motion.goals)


def test_windows_stay_the_same_rows_under_other_loads_and_masks(robot):
    servo = rig.truth(robot)
    course, joints = course_of(
        robot, servo, [rig.recording(servo, seed) for seed in range(4)]
    )
    before = [np.concatenate([w.q for w in joint.windows]) for joint in joints]
    loads = [joint.windows[0].bodies.copy() for joint in joints]
    for joint in joints:
        joint.motions = [
            replace(m, mask=np.zeros_like(m.mask), bodies=1.5 * m.bodies)
            for m in joint.motions
        ]
        joint.halves = course.windows(joint)
        assert np.array_equal(before[joint.number],
                              np.concatenate([w.q for w in joint.windows]))  # fmt: skip
        assert not np.array_equal(joint.windows[0].bodies, loads[joint.number])
        assert not any(w.mask.any() for w in joint.windows)


def test_windows_are_also_of_motions_in_which_a_joint_rests(tmp_path):
    """Most of what servos do is to hold still, and only that tells how they stick."""
    robot = rig.arm(tmp_path, joints=3)
    time = np.arange(5000) * 0.02
    moves = 0.3 * np.sin(2.0 * np.pi * 0.5 * time)
    logs = []
    for k in range(16):
        command = np.column_stack([moves if k % 4 == 0 else 0.0 * moves, moves, moves])
        logs.append(rig.of_arrays(time, np.roll(command, 3, axis=0), command))
    _, joints = course_of(robot, rig.truth(robot), logs)
    still, moving = (
        np.mean([np.ptp(w.goals) == 0.0 for w in joint.windows]) for joint in joints[:2]
    )
    # Three motions in four, of the windows that are not the quickest.
    assert 0.4 < still < 0.75
    assert moving == 0.0


def course_of(robot, servo, recordings):
    """Return an identification whose joints have the true model."""
    motions = [servo.motion(recording) for recording in recordings]
    course = _Identification(
        [robot] * len(motions), motions, np.ones(robot.dof), Roller(None), (0, 8),
        lambda what, done: None,
    )  # fmt: skip
    joints = course.joints()
    for joint in joints:
        values = {name: float(x[joint.number]) for name, x in servo.values.items()}
        values["armature"] -= float(half_step_inertia(np.array(values["damping"])))
        joint.halves, joint.fits = course.windows(joint), [values] * 2
        joint.names = (*CORE, "acceleration")
    return course, joints


def test_intervals_hold_a_servo_without_derivative_gain(robot):
    """Where it moves alike: a derivative gain trades with delay and damping."""
    servo = rig.truth(robot)
    course, joints = course_of(robot, servo, [rig.recording(servo, k) for k in (0, 1)])
    joint, true = joints[0], joints[0].fits[0]
    joint.names = (*joint.names, "derivative")
    joint.apart = dict.fromkeys(joint.names, 0.0)
    late = 0.03 / true["stiffness"]
    traded = {"damping": true["damping"] - 0.03, "delay": true["delay"] + late}
    doubt_derivative(course.roller, joint, dict(true) | {"derivative": 0.03} | traded)
    assert 2.0 * joint.apart["derivative"] == pytest.approx(0.03)
    assert 2.0 * joint.apart["delay"] == pytest.approx(late, rel=0.3)
    assert 2.0 * joint.apart["damping"] == pytest.approx(0.03, rel=0.3)


@pytest.mark.parametrize("is_truncated", [True, False])
def test_positions_tell_whether_commands_are_truncated(robot, is_truncated):
    """Logged between ticks, sent as they are or as the tick below."""
    servo, recordings, logged = rig.truth(robot), [], []
    for seed in range(10, 13):
        command = rig.commands(robot.dof, seed)
        command += 0.01 * np.sin(np.arange(len(command)) / 77.0)[:, None]
        sent = np.floor(command / rig.TICK) * rig.TICK if is_truncated else command
        time = np.arange(len(command)) * 0.02
        still = np.tile(sent[0], (len(time), 1))
        q = servo.predict(rig.of_arrays(time, still, sent))
        q = np.round(q / rig.TICK) * rig.TICK
        recordings.append(rig.of_arrays(time, q, command, f"motion{seed}"))
        logged.append(command)
    course, joints = course_of(robot, servo, recordings)
    course.logged = logged
    course._untruncate(joints)
    assert course.is_truncated == is_truncated
    goals = course.motions[0].goals
    assert np.array_equal(goals, logged[0]) != is_truncated
    assert np.array_equal(joints[1].motions[0].goals[:, 0], goals[:, 1])


def test_joints_that_gravity_holds_off_say_little_of_how_commands_are_rounded(robot):
    """By three counts, for a first model's stiffness is off; a light joint is exact."""
    servo = rig.truth(robot)
    recordings = [rig.recording(servo, k) for k in range(2)]
    course, joints = course_of(robot, servo, recordings)
    q = np.vstack([m.q for m in course.motions])
    gravity = np.abs(Dynamics(robot).gravity_torque(q)).mean(axis=0)
    sags = course._sags(joints)
    assert sags == pytest.approx(gravity / servo.values["stiffness"], rel=0.05)
    half = 0.5 * rig.TICK
    offsets = {0: (-3.0 * half, 0.1 * half), 1: (0.9 * half, 0.1 * half)}
    for light, is_truncated in (1, False), (None, True):
        course, joints = course_of(robot, servo, recordings)
        course.logged = [m.goals + half for m in course.motions]
        course._offset = lambda joint: offsets[joint.number]
        course._sags = lambda _, j=light: np.where(np.arange(2) == j, 0.0, 60.0 * half)
        course._untruncate(joints)
        assert course.is_truncated == is_truncated


@pytest.mark.parametrize(("factor", "is_alone"), [(0.95, True), (1.05, False)])
def test_load_friction_is_alike_both_ways_where_motions_do_not_tell(
    robot, factor, is_alone
):
    """A servo that much stronger, with other friction of the load, moves alike."""
    servo = rig.truth(robot, driving=0.07, back_driven=0.07)
    course, joints = course_of(robot, servo, [rig.recording(servo, k) for k in (0, 1)])
    joint = joints[0]
    true = joint.fits[0]
    uneven = with_torques(true, factor) | {
        "driving": factor * 1.07 - 1.0,
        "back_driven": 1.0 - factor * 0.93,
    }
    joint.names = (*joint.names, "driving")
    joint.apart = dict.fromkeys(joint.names, 0.0)
    found = with_even_load(course.roller, joint, uneven, is_alone)
    if not is_alone:
        # Other servos have lent it the scale: the interval reaches the middle.
        assert found == uneven
    for name in (
        () if not is_alone else ("stiffness", "coulomb", "driving", "back_driven")
    ):
        assert found[name] == pytest.approx(true[name], rel=1e-9)
    assert joint.names[-1] == "back_driven"
    # Two standard deviations reach the servo that was found.
    apart = abs(uneven["stiffness"] - true["stiffness"])
    assert 2.0 * joint.apart["stiffness"] == pytest.approx(apart)


@pytest.mark.parametrize("part", [0.0, 0.9])
def test_a_limit_is_of_the_form_that_motions_have(robot, part):
    """A stranger's roll: 2.0 ± 0.1 N m without damping, in truth 1.4 and 0.39 of it."""
    servo = rig.truth(robot, saturation=0.35, limited_damping=0.4)
    course, joints = course_of(robot, servo, [rig.recording(servo, k) for k in (0, 1)])
    joint = joints[0]
    true = joint.fits[0]
    joint.names = tuple(dict.fromkeys((*joint.names, "saturation", "limited_damping")))
    joint.apart = dict.fromkeys(joint.names, 0.0)
    wrong = true | {"limited_damping": part, "saturation": (1.3 - part / 2) * 0.35}
    found = with_own_limit(course.roller, joint, wrong)
    for name in ("saturation", "limited_damping"):
        reach = 2.0 * joint.apart[name] + 0.02 * true["saturation"]
        assert abs(found[name] - true[name]) < reach


def test_lower_valleys_are_sought_where_load_friction_is_even():
    """Fits that end with friction of one way only are at an end of their valley."""
    values = absent() | {"driving": 0.8}
    names = (*CORE, "driving", "back_driven")
    (even,) = evened([values], names)
    assert even["stiffness"] == pytest.approx(values["stiffness"] / 1.4)
    # As much is left of a load either way.
    assert even["driving"] == pytest.approx(1.8 / 1.4 - 1.0)
    assert even["back_driven"] == pytest.approx(1.0 - 1.0 / 1.4)
    assert not evened([values], names[:-1])


def test_load_friction_differs_where_motions_tell(robot):
    """Inertia is not friction's: a rotor that is far off shows."""
    servo = rig.truth(robot, driving=1.2, armature=0.05)
    course, joints = course_of(robot, servo, [rig.recording(servo, k) for k in (0, 1)])
    joint = joints[0]
    joint.apart = dict.fromkeys(joint.names, 0.0)
    found = with_even_load(course.roller, joint, joint.fits[0], True)
    assert found == joint.fits[0]
    assert not any(joint.apart.values())


@pytest.mark.parametrize("has_gravity", [True, False])
def test_torques_have_a_scale_where_gravity_shows_it(robot, has_gravity):
    """Half of all torques, with half of a rotor that outweighs links, move alike."""
    if not has_gravity:
        robot = robot.with_gravity([0.0, 0.0, 0.0])
    servo = rig.truth(robot, armature=0.3, damping=1.5)
    recordings = [rig.recording(servo, seed) for seed in range(2)]
    course, joints = course_of(robot, servo, recordings)
    joint = joints[1]
    with_own_scale(course.roller, joint, joint.fits[0])
    assert joint.has_scale == has_gravity
    (fit,) = fit_servos(
        course.roller, joint.windows, joint.fits, joint.names, iterations=1
    )[:1]
    wide = resolved(course.roller, joint.windows, fit, None)
    scale = [scale_slope(n, 1.0) for n in wide.names]
    doubt = 1.0 / np.sqrt(scale @ wide.information @ scale)
    assert (doubt < 0.02) == has_gravity


def test_what_was_taken_away_is_in_no_later_start(tmp_path):
    joints, _ = grown(tmp_path, acceleration=15.0)
    joint = joints[0]
    joint.best = dict(joint.fits[0], slew=28.0)
    assert [values["slew"] for values in joint.models] == [np.inf] * 3
    # What came after the last fit of all windows is in halves only.
    joint.names = (*joint.names, "saturation")
    assert joint.models == joint.fits


@pytest.mark.parametrize("shape", [-1.0, -0.4, 0.0, 1.0])
def test_friction_in_another_shape_stays_friction(shape):
    """Much friction at rest left less than nothing while sliding."""
    values = absent() | {
        "static": 5.0, "coulomb": 0.01, "stribeck_speed": 0.05, "stribeck_shape": shape,
    }  # fmt: skip
    for start in shape_starts(values):
        assert start["coulomb"] > 0.0
        assert start["static"] > 0.0
        assert start["coulomb"] + start["static"] == pytest.approx(5.01)


def test_a_joint_without_numbers_of_its_own_is_drawn_as_it_is():
    """One that never moves has none, and no ways to other servos."""
    empty = np.zeros((0, 0))
    fit = ServoFit(absent(), (), np.nan, np.nan, empty, empty)
    assert coordinate_covariance(fit, []).shape == (0, 0)
