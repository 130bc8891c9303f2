"""Practice through files: four attempts, a folder, and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import armwise as aw
from armwise.cli.main import app
from armwise.control import PD
from armwise.errors import (
    ArgumentError,
    ArmwiseError,
    NotConverged,
    RecordingError,
)
from armwise.learning import Practice, PracticeSettings, practise
from armwise.learning.practice import Attempt
from armwise.motions import Quintic, SampledMotion, read_motion, write_motion
from armwise.plants import perturbed

PLAN = Quintic(np.array([0.2, 0.3]), np.array([1.4, 1.5]), 1.5)
KP = np.array([300.0, 100.0])


def rough(arm, **more):
    """The same arm with friction that no model knows, and a servo's damping."""
    return replace(
        arm,
        joints=tuple(
            replace(j, drive=replace(j.drive, coulomb=0.4, viscous=x))
            for j, x in zip(arm.joints, (30.0, 10.0), strict=True)
        ),
        **more,
    )


@pytest.fixture(scope="module")
def arm():
    return aw.load_arm("two_link_slotine")


def follow(arm, command, kind="position", plan=PLAN):
    """What a robot's log of one attempt holds."""
    plant = aw.SimulatedArm(rough(arm), control_rate_hz=500.0)
    begin = plan.sample(0.0)
    if kind == "position":
        servo = PD(KP, 1e-9, velocity_reference=False)
        log = aw.run(plant, servo, command, q=begin.q, qd=begin.qd)
    else:
        log = aw.run(plant, _Played(command), plan)
    kinds = ("q",) if kind == "position" else ("q", "tau")
    return log.select(n for n in log.channels if n.split("_")[0] in kinds)


class _Played:
    def __init__(self, plan):
        self.plan, self.back = plan, PD(KP, 0.2 * KP)

    def reset(self, batch, period):
        self.back.reset(batch, period)

    def torque(self, t, reference, measurement):
        return self.plan.effort_at(t) + self.back.torque(t, reference, measurement)


@pytest.mark.parametrize(("kind", "least"), [("position", 10.0), ("torque", 15.0)])
def test_four_attempts_through_files(arm, tmp_path, monkeypatch, kind, least):
    monkeypatch.chdir(tmp_path)
    model = perturbed(arm, 0.05, 3)
    aw.save_arm(model, "arm.urdf")
    described = aw.load_arm("arm.urdf")
    write_motion(PLAN, "plan.csv", 200.0, described.coordinate_names)
    words = f"learn arm.urdf --motion plan.csv -o next.csv --takes {kind} --json"
    call(words)
    for k in range(4):
        log = follow(arm, read_motion("next.csv", described), kind)
        aw.write_recording(log, f"run{k}.csv")
        report = call(f"{words} --attempt run{k}.csv")
    errors = report["overall_error"]
    assert len(errors) == 4
    assert errors[0] > least * errors[-1]
    if kind == "position":
        assert report["worst_factor"] < 1.0
    repeated = CliRunner().invoke(app, f"{words} --attempt run3.csv".split())
    assert "added before" in str(repeated.exception)


def call(words):
    import json

    done = CliRunner().invoke(app, words.split(), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def torque_practice(arm):
    return Practice(arm, PLAN, PracticeSettings("torque"), gains=(KP, 0.2 * KP))


@pytest.mark.parametrize(
    ("errors", "cutoff"),
    [
        ([4.0], 8.0),
        ([4.0, 1.0], 16.0),
        ([4.0, 1.0, 0.5], 25.0),
        ([4.0, 1.0, 2.0], 8.0),
        ([4.0, 5.0], 4.0),
    ],
)
def test_attempts_earn_their_cut_off(arm, errors, cutoff):
    """An octave more for each that is the best so far, an octave less for others."""
    practice = torque_practice(arm)
    assert practice._earned_cutoff_hz(np.array(errors)) == cutoff


def test_noise_of_the_torque_is_not_put_into_the_next_command(arm):
    """Where the feedback's law says it all, the law is used; else what was measured."""
    practice = torque_practice(arm)
    times, rng = practice.times, np.random.default_rng(0)
    error = 0.01 * np.sin(6.0 * times)[:, None] * np.ones(2)
    rate = 0.06 * np.cos(6.0 * times)[:, None] * np.ones(2)
    law = KP * error + 0.2 * KP * rate
    q, command = PLAN.sample(times).q - error, np.zeros_like(error)
    noisy = law + rng.normal(size=law.shape)
    inner = slice(20, -20)
    for more in (0.0, 3.0):
        applied = noisy + more * np.sin(9.0 * times)[:, None]
        back = practice._fed_back(Attempt(command, q, applied), practice.gains)
        beside = back - law - more * np.sin(9.0 * times)[:, None]
        assert np.std(beside[inner]) < (0.4 if more else 0.05)


def test_the_loops_gains_come_out_of_an_attempt(arm):
    """r = q + (kd q̇ + n)/kp, and no delay: what the simulated servo is."""
    practice = Practice(arm, PLAN)
    log = follow(arm, practice.as_motion(practice.first_command()))
    attempt = practice.read_attempt(log, practice.first_command())
    response = practice.identify_response([attempt])
    np.testing.assert_allclose(response.weights[:, 0], [30 / 300, 10 / 100], rtol=0.1)
    assert response.delay.max() < 0.01


def test_what_diverges_is_refused_before_it_is_executed(arm, tmp_path):
    settings = PracticeSettings(rule="error", gain=1.5, cutoff_hz=30.0)
    practice = Practice(arm, PLAN, settings)
    log = follow(arm, practice.as_motion(practice.first_command()))
    with pytest.raises(NotConverged, match="would diverge"):
        practise(practice, tmp_path / "p", log)
    # And it does diverge when executed all the same.
    command, errors = practice.first_command(), []
    target = PLAN.sample(practice.times).q
    for _ in range(12):
        log = follow(arm, practice.as_motion(command))
        q = np.stack(
            [
                np.interp(practice.times, log[f"q_{j}"].time, log[f"q_{j}"].values)
                for j in (1, 2)
            ],
            axis=1,
        )
        errors.append(np.abs(q - target).max())
        command = command - 1.5 * practice._smooth(q - target)
    assert errors[-1] > 2.0 * min(errors)


def test_logs_that_are_no_attempt_are_refused(arm, tmp_path):
    practice = Practice(arm, PLAN)
    other = Quintic(np.array([0.2, 0.3]), np.array([-1.4, 0.5]), 1.5)
    log = follow(arm, other, plan=other)
    with pytest.raises(RecordingError, match="does not follow the plan"):
        practise(practice, tmp_path / "p", log)
    short = Quintic(PLAN.sample(0.0).q, PLAN.sample(1.5).q, 0.5)
    with pytest.raises(RecordingError, match="the plan takes 0 to"):
        practise(practice, tmp_path / "p", follow(arm, short, plan=short))
    assert not (tmp_path / "p").exists()
    log = follow(arm, practice.as_motion(practice.first_command()))
    practise(practice, tmp_path / "p", log)
    with pytest.raises(ArgumentError, match="another motion"):
        practise(replace(practice, plan=other), tmp_path / "p", log)
    (tmp_path / "p" / "attempt_001.npz").write_bytes(b"nothing")
    with pytest.raises(ArgumentError, match="damaged"):
        practise(practice, tmp_path / "p", None)
    torque = Practice(arm, PLAN, PracticeSettings(takes="torque"))
    with pytest.raises(RecordingError, match="no torque that was applied"):
        practise(torque, tmp_path / "t", log)


# Planned motions as files.


@pytest.mark.parametrize("ending", ["csv", "json"])
@pytest.mark.parametrize("named", [True, False])
def test_a_motion_is_read_as_it_was_written(arm, tmp_path, ending, named):
    if ending == "json" and not named:
        pytest.skip("ROS messages name joints")
    path = tmp_path / f"plan.{ending}"
    names = arm.coordinate_names if named else None
    write_motion(PLAN, path, 50.0, names, {"tau": lambda t: np.stack([t, 2 * t], -1)})
    motion = read_motion(path, arm)
    times = np.linspace(0.0, 1.5, 333)
    for ours, theirs, size in zip(
        motion.sample(times), PLAN.sample(times), (1e-9, 1e-6, 1e-4), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=size)
    np.testing.assert_allclose(motion.effort_at(0.6), [0.6, 1.2], atol=1e-9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "header"),
        ("time,q_1\n0,1\n1,2\n", "no column q_2"),
        ("time,a,b\n0,1,1\n1,2,2\n", "Is it a motion of"),
        ("q_1,q_2\n0,1\n1,2\n", "no column time"),
        ("time,q_1,q_2\n0,1,2\n0,1,2\n", "rising times"),
        ("time,q_1,q_2\n0,1,nan\n1,1,2\n", "not finite"),
        ("time,q_1,q_2\n0,1\n1,1,2\n", "line 2"),
        ("time,q_1,q_2\n0,1,x\n1,1,2\n", "not a planned motion"),
    ],
)
def test_a_bad_plan_is_named(arm, tmp_path, text, said):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(ArmwiseError, match=said) as problem:
        read_motion(path, arm)
    assert "bad.csv" in str(problem.value)


def test_points_without_rates_make_a_smooth_motion():
    times = np.linspace(0.0, 1.5, 60)
    motion = SampledMotion(times, PLAN.sample(times).q)
    between = np.linspace(0.1, 1.4, 500)
    np.testing.assert_allclose(
        motion.sample(between).qd, PLAN.sample(between).qd, atol=2e-3
    )
