"""The gap: known differences between a robot and a model are measured as such."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
import armwise.simulators.gap as gaps
from armwise.control import ComputedTorque, simulate_log
from armwise.errors import ArmwiseError
from armwise.motions import random_motion
from armwise.plants import Friction, SimulatedArm, run
from armwise.regression import FrictionTerm
from armwise.report import write_gap_report
from armwise.report.gap import _figure
from armwise.simulators import certificate, measure_gap
from armwise.simulators.replay import MotionGap, Replay, delay_and_gain
from tests.identification.conftest import samples_of
from tests.servos import rig


@pytest.fixture(scope="module")
def log(truth):
    motion = random_motion(truth, 3, 5.0)
    return simulate_log(truth, motion, torque_noise=0.001)


def test_the_true_arm_has_next_to_no_gap_in_either_simulator(truth, log):
    ours = measure_gap(truth, [log], horizon=0.2)
    assert ours.driven_by == "torques"
    assert np.all(ours.position_error < 2e-3)
    pytest.importorskip("mujoco")
    theirs = measure_gap(truth, [log], simulator="mujoco", horizon=0.2)
    assert theirs.position_error == pytest.approx(ours.position_error, abs=5e-4)


FOLLOWED = """<mujoco><compiler angle="radian"/><worldbody><body>
<joint name="elbow" axis="0 1 0" damping="0.5" range="-1 1" limited="true"/>
<inertial pos="0.2 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
<body pos="0.4 0 0"><joint name="level" axis="0 1 0"/>
<inertial pos="0.05 0 0" mass="0.5" diaginertia="0.001 0.001 0.001"/></body>
</body></worldbody><equality>
<joint joint1="level" joint2="elbow" polycoef="0 -1 0 0 0"/></equality></mujoco>"""


def test_joints_that_follow_begin_where_their_leaders_have_them(tmp_path):
    """Begun at their rest they kick the arm: a stranger's palletiser, 132 mrad."""
    pytest.importorskip("mujoco")
    (tmp_path / "level.xml").write_text(FOLLOWED)
    arm = aw.load_arm(tmp_path / "level.xml")
    assert arm.dof == 1
    log = simulate_log(arm, random_motion(arm, 3, 5.0), torque_noise=0.001)
    gap = measure_gap(tmp_path / "level.xml", [log], horizon=0.2)
    assert np.all(gap.position_error < 2e-3)


def test_an_estimate_is_compared_with_its_description(estimate, log):
    gap = measure_gap(estimate, [log], horizon=0.2)
    assert gap.described is not None
    assert gap.position_error.mean() < 0.3 * gap.described.position_error.mean()
    assert gap.notes == ()
    (motion,) = gap.motions.values()
    assert np.all(motion.torque_error < 0.05)
    assert set(motion.where) == {"reversing", "resting", "fast", "moving"}


def test_friction_that_is_missing_shows_where_joints_turn_back(truth, log):
    values = np.array(truth.parameters)
    values[truth.layout.drive("coulomb")] *= 2.0
    wrong = measure_gap(truth.with_parameters(values), [log], horizon=0.2)
    (motion,) = wrong.motions.values()
    right = measure_gap(truth, [log], horizon=0.2)
    assert np.all(wrong.position_error > 2.0 * right.position_error)
    assert np.all(motion.torque_error > 0.02)


def test_delay_and_gain_of_a_signal_are_found():
    t = np.arange(0, 10, 0.01)
    x = np.sin(2.0 * t) + 0.3 * np.sin(5.1 * t)
    y = 1.1 * (np.sin(2.0 * (t - 0.03)) + 0.3 * np.sin(5.1 * (t - 0.03)))
    delay, gain = delay_and_gain(x[:, None], y[:, None], [slice(0, t.size)], 100.0)
    assert delay[0] == pytest.approx(0.03, abs=1e-3)
    assert gain[0] == pytest.approx(1.1, abs=5e-3)
    # Later than is sought: the edge of the search is no answer.
    x, y = np.sin(0.5 * t), np.sin(0.5 * (t - 0.9))
    delay, _ = delay_and_gain(x[:, None], y[:, None], [slice(0, t.size)], 100.0)
    assert np.isnan(delay[0])


def test_a_page_and_a_line_say_it_all(estimate, log, tmp_path):
    gap = measure_gap(estimate, [log])
    path = tmp_path / "run.csv"
    path.write_text("the log")
    line = certificate(gap, "estimate.json", [path])
    assert "sha256:" in line
    assert f"{1e3 * gap.position_error.mean():.2f} mrad mean" in line
    write_gap_report(gap, tmp_path / "gap.html", line)
    page = (tmp_path / "gap.html").read_text()
    assert "identified" in page
    assert "sha256:" in page
    plain = json.loads(json.dumps(gap.to_dict()))
    assert plain["validation"]["mrad"] == plain["mrad"]
    assert list(plain["validation"]["motions"]) == list(gap.motions)


def test_traces_show_the_robot_even_beside_an_arm_that_runs_away():
    """Ten seconds of a minute, and nothing far from where the robot was."""
    time = np.arange(0.0, 60.0, 0.01)
    q = np.where(time > 30.0, np.sin(time), 0.1 * np.sin(time))[:, None]
    away = q + 1e3 * (time[:, None] % 0.5)
    starts = tuple(range(0, time.size, 50))
    nothing = {"torque_error": None, "delay": np.zeros(1), "gain": np.ones(1)}
    motions = [
        MotionGap(Replay(time, q, x, starts), **nothing, where={}) for x in (q, away)
    ]
    figure = _figure("joint", *motions, ("described", "identified"), 0, 400)
    assert [curve.name for curve in figure.curves] == [
        "robot",
        "described",
        "identified",
    ]
    for curve in figure.curves:
        shown = np.asarray(curve.y, float)
        assert np.ptp(curve.x[np.isfinite(curve.x)]) <= 10.0
        assert np.nanmin(curve.x) > 29.0
        assert np.nanmax(np.abs(shown)) <= 2.0 + 1e-9


POSITIONED = """<mujoco>
  <worldbody>
    <body><joint name="pan" axis="0 0 1" damping="0.1"/>
      <inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body>
  </worldbody>
  <actuator><{kind} joint="pan" {gain}/></actuator>
</mujoco>
"""


def commanded(tmp_path, late=0.0):
    t = np.arange(0, 3, 0.02)
    command = 0.5 * np.sin(3 * t)
    path = tmp_path / "servo.csv"
    rows = np.column_stack([t, 0.5 * np.sin(3 * (t - late)), command])
    np.savetxt(path, rows, delimiter=",", header="time,q_1,command_1", comments="")
    return path


def test_commands_are_replayed_in_the_file_itself(tmp_path):
    pytest.importorskip("mujoco")
    model = tmp_path / "servo.xml"
    model.write_text(POSITIONED.format(kind="position", gain='kp="50" kv="1"'))
    log = aw.read_recording(commanded(tmp_path), aw.load_arm(model))
    gap = measure_gap(model, [log])
    assert gap.driven_by == "commands"
    # The servo follows late: by damping over stiffness, 22 ms, and by half of the 20 ms
    # for which a command is held.
    (motion,) = gap.motions.values()
    assert motion.delay[0] == pytest.approx(-0.032, abs=0.004)
    assert 0.01 < gap.position_error[0] < 0.05
    assert gap.notes == ()
    # A robot that is later than the file's actuators has what these lack.
    later = aw.read_recording(commanded(tmp_path, 0.08), aw.load_arm(model))
    (note,) = measure_gap(model, [later]).notes
    assert "early by" in note
    assert "servo.json" in note


def test_what_cannot_be_replayed_is_one_sentence(truth, log, tmp_path):
    pytest.importorskip("mujoco")
    with pytest.raises(ArmwiseError, match="no log to replay"):
        measure_gap(truth, [])
    with pytest.raises(ArmwiseError, match=r"0\.01 to 10 s"):
        measure_gap(truth, [log], horizon=100.0)
    with pytest.raises(ArmwiseError, match="is no simulator"):
        measure_gap(truth, [log], simulator="gazebo")
    model = tmp_path / "servo.xml"
    model.write_text(POSITIONED.format(kind="motor", gain='gear="1"'))
    arm = aw.load_arm(model)
    commands = aw.read_recording(commanded(tmp_path), arm)
    with pytest.raises(ArmwiseError, match="no actuator holds the position of pan"):
        measure_gap(model, [commands])
    with pytest.raises(ArmwiseError, match="identify-servo"):
        measure_gap(arm, [commands])


def test_without_mujoco_one_sentence_says_what_to_install(
    truth, log, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(ArmwiseError, match="mujoco-core"):
        measure_gap(truth, [log], simulator="mujoco")
    own = tmp_path / "own.xml"
    own.write_text(POSITIONED.format(kind="motor", gain='gear="1"'))
    with pytest.raises(ArmwiseError, match="mujoco-core"):
        aw.export(truth, tmp_path / "new.xml", to="mjcf", template=own)
    assert not (tmp_path / "new.xml").exists()


def test_the_stated_loss_is_what_the_gap_of_the_export_shows(estimate, log, tmp_path):
    data = aw.prepare(log, arm=estimate.prior_arm)
    stated = aw.export(estimate, tmp_path / "arm.urdf", to="urdf", data=data)
    values = np.array(aw.load_arm(tmp_path / "arm.urdf").parameters)
    layout = estimate.prior_arm.layout
    # Other readers pass over Armwise's own elements.
    values[layout.drive("rotor_inertia", "offset")] = 0.0
    (bare,) = measure_gap(estimate.arm.with_parameters(values), [log]).motions.values()
    (whole,) = measure_gap(estimate, [log]).motions.values()
    measured = np.sqrt(bare.torque_error**2 - whole.torque_error**2)
    assert stated.cost == pytest.approx(measured, rel=0.2)


def test_in_mujoco_torques_are_those_of_what_was_written(truth, tmp_path):
    """Ripple, which MJCF has no words for, is missing there; a constant torque not."""
    pytest.importorskip("mujoco")
    data = samples_of(truth, seconds=10.0)
    ripple = 3.0 * np.sin(2.0 * np.pi * data.q[:, 1:2] / 0.5) * (np.arange(6) == 1)
    data = replace(data, tau=data.tau + ripple)
    term = FrictionTerm(1, truth.coordinate_names[1], "ripple_sine", 0.5)
    estimate = aw.identify(truth, data, friction=(term,))
    log = simulate_log(truth, random_motion(truth, 3, 5.0), torque_noise=0.001)
    whole, written = (
        measure_gap(estimate, [log], simulator=x, horizon=0.2, cutoff_hz=10.0)
        for x in ("armwise", "mujoco")
    )
    path = tmp_path / "arm.xml"
    aw.export(estimate, path, to="mjcf", data=aw.prepare(log, 10.0, arm=truth))
    file = measure_gap(path, [log], horizon=0.2, cutoff_hz=10.0)
    errors = [x.mean("torque_error") for x in (whole, written, file)]
    # This robot has none: the whole model is further off.
    assert errors[0][1] > 2.0 * errors[1][1]
    assert errors[2] == pytest.approx(errors[1], rel=0.01)
    assert whole.label == written.label == "identified"
    assert file.label == "simulated"


def test_joints_that_are_further_off_than_described_are_named(truth, log):
    values = np.array(truth.parameters)
    values[truth.layout.joint(3, "coulomb")] *= 3.0
    data = samples_of(truth.with_parameters(values), seconds=10.0)
    wrong = np.where(
        truth.layout.is_inertial, 1.05 * truth.parameters, truth.parameters
    )
    described = truth.with_parameters(wrong)
    estimate = aw.identify(described, data, friction="linear")
    gap = measure_gap(estimate, [log], horizon=0.2)
    (note,) = gap.notes
    # Joints beyond it are thrown about by it.
    assert note.startswith(f"{truth.coordinate_names[3]}, ")
    assert "further from the robot as identified than as described" in note


HANDED = """<mujoco>
  <compiler angle="radian"/>
  <worldbody>
    <body name="upper"><joint name="a" axis="0 1 0" damping="0.2"/>
      <geom type="capsule" fromto="0 0 0 0.4 0 0" size="0.03" mass="2"/>
      <body name="lower" pos="0.4 0 0"><joint name="b" axis="0 1 0" damping="0.1"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03" mass="1"/>
        <body name="one" pos="0.3 0.1 0"><joint name="c" type="slide" axis="1 0 0"/>
          <geom type="sphere" size="0.03" mass="1"/></body>
        <body name="two" pos="0.3 -0.1 0"><joint name="d" type="slide" axis="1 0 0"/>
          <geom type="sphere" size="0.03" mass="1"/></body>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="d" joint2="c" polycoef="0 1 0 0 0"/></equality>
</mujoco>
"""


def test_joints_that_no_log_holds_are_held_in_the_file(tmp_path):
    """A hand that was open, and fingers of which one follows the other."""
    pytest.importorskip("mujoco")
    path = tmp_path / "handed.xml"
    path.write_text(HANDED)
    (finger,) = set(aw.load_arm(path).coordinate_names) - {"a", "b"}
    opened, closed = (aw.load_arm(path, lock={finger: x}) for x in (0.15, 0.0))
    log = simulate_log(opened, random_motion(opened, 3, 5.0), torque_noise=0.001)
    with pytest.raises(ArmwiseError, match="2 joints"):
        measure_gap(path, [log])
    right, wrong = (
        measure_gap(path, [log], arm=x, horizon=0.2) for x in (opened, closed)
    )
    ours = measure_gap(opened, [log], horizon=0.2)
    assert right.position_error == pytest.approx(ours.position_error, abs=5e-4)
    assert np.all(wrong.position_error > 2.0 * right.position_error)


def test_commands_say_what_was_replayed_and_what_only_we_read(
    estimate, log, tmp_path, run
):
    pytest.importorskip("mujoco")
    (tmp_path / "handed.xml").write_text(HANDED)
    (finger,) = set(aw.load_arm("handed.xml").coordinate_names) - {"a", "b"}
    opened = aw.load_arm("handed.xml", lock={finger: 0.15})
    short = simulate_log(opened, random_motion(opened, 3, 5.0), torque_noise=0.001)
    aw.write_recording(short, "short.csv")
    code, out, err = run(f"armwise gap handed.xml short.csv --lock {finger}=0.15")
    assert code == 0, err
    assert "simulated" in out
    assert "identified" not in out
    assert "described" not in out
    aw.write_recording(log, "log.csv")
    aw.export(estimate, "arm.urdf", to="urdf")
    code, _, err = run("armwise gap arm.urdf log.csv --cutoff-hz 10 --json")
    assert code == 0
    assert "other simulators pass over them" in err


def test_free_runs_begin_as_stretched_and_warm_as_the_log_was(truth):
    elbow = truth.coordinate_names[2]
    stretched = FrictionTerm(2, elbow, "hysteresis", 0.1), 4.0
    warm = FrictionTerm(2, elbow, "coulomb_warming", 4.0), -0.2
    plant = SimulatedArm(truth, friction=Friction(terms=(stretched, warm)))
    motion = random_motion(truth, 3, 8.0)
    robot = run(plant, ComputedTorque(truth, 400.0, 40.0), motion)
    fitted = aw.identify(truth, robot, friction=(stretched[0], warm[0]))
    # With the numbers of the robot itself.
    values = np.concatenate([truth.parameters, [stretched[1], warm[1]]])
    gap = measure_gap(replace(fitted, all_parameters=values), [robot])
    # Milliradians; runs that begin relaxed and cold end many times as far away.
    assert np.all(1e3 * gap.position_error < 3.0)


@pytest.mark.parametrize("bandwidth", [None, 1.0, 400.0])
def test_ripple_that_the_torque_hides_catches_no_joint(truth, bandwidth):
    # Teeth of 8 N m under a torque that was low-passed before it was logged.
    elbow = truth.coordinate_names[2]
    forms = ("ripple_sine", "ripple_cosine")
    teeth = [FrictionTerm(2, elbow, form, 0.02) for form in forms]
    spring = FrictionTerm(1, truth.coordinate_names[1], "hysteresis", 0.02)
    data = samples_of(truth, 0)
    estimate = aw.identify(truth, data, friction=(*teeth, spring))
    preparation = replace(data.preparation, torque_bandwidth_hz=bandwidth)
    samples = replace(data, preparation=preparation)
    subject = gaps._subject(estimate, "armwise", None)
    subject, smoothed = gaps._smoothed(subject, samples)
    simulated = {term.form for term, _ in subject.friction.terms}
    assert smoothed == ((elbow,) if bandwidth == 1.0 else ())
    assert simulated == {"hysteresis", *(() if smoothed else forms)}


@pytest.mark.parametrize("is_driven", [True, False])
def test_a_file_that_runs_away_is_said_to(is_driven, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    # Damping that takes a hundred times the speed away within an explicit step.
    (tmp_path / "quick.xml").write_text(
        """<mujoco><option timestep="0.002" integrator="RK4"/><worldbody><body>
        <joint name="wrist" axis="0 1 0" damping="50"/>
        <inertial pos="0 0 0.1" mass="0.05" diaginertia="5e-4 5e-4 5e-4"/>
        </body></worldbody><actuator><position joint="wrist" kp="9"/></actuator>
        </mujoco>"""
    )
    time = np.arange(0.0, 4.0, 0.01)
    q = 0.4 * np.sin(3.0 * time)[:, None]
    log = aw.Recording.from_arrays(time, q=q, tau=np.cos(3.0 * time)[:, None])
    gap = measure_gap("quick.xml", [log if is_driven else rig.of_arrays(time, q, q)])
    assert gap.driven_by == ("torques" if is_driven else "commands")
    assert any("ran away" in note for note in gap.notes)
    assert np.all(np.isfinite(gap.position_error))
    assert capfd.readouterr().err == ""
    assert [p.name for p in tmp_path.iterdir()] == ["quick.xml"]


def test_what_slides_is_in_millimetres(tmp_path, run):
    (tmp_path / "handed.xml").write_text(HANDED)
    arm = aw.load_arm("handed.xml")
    log = simulate_log(arm, random_motion(arm, 3, 5.0), torque_noise=0.001)
    gap = measure_gap(arm, [log], horizon=0.1)
    assert gap.units == ("mrad", "mrad", "mm")
    assert "mrad, mm mean" in certificate(gap, "handed.xml", [])
    aw.write_recording(log, "log.csv")
    code, out, err = run("armwise gap handed.xml log.csv -o page.txt --horizon-s 0.1")
    assert code == 0, err
    assert re.search(r"[0-9] mm\b", out)
    assert "[mrad, mm]" in (tmp_path / "page.txt").read_text()


def test_torques_that_hold_the_weight_meet_no_compensation_of_gravity(tmp_path):
    pytest.importorskip("mujoco")
    path = tmp_path / "arm.xml"
    path.write_text(HANDED)
    arm = aw.load_arm(path)
    log = simulate_log(arm, random_motion(arm, 3, 5.0), torque_noise=0.001)
    plain = measure_gap(path, [log], horizon=0.1)
    path.write_text(HANDED.replace("<body ", '<body gravcomp="1" '))
    assert any("gravcomp" in note for note in aw.load_arm(path).notes)
    weightless = measure_gap(path, [log], horizon=0.1)
    assert weightless.position_error == pytest.approx(plain.position_error, rel=1e-6)
