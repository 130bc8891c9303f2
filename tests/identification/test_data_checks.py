"""Wrong data: what is wrong is named, and sound data are not accused."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArmwiseError, EstimateWarning
from armwise.identification import DOUBTFUL_DATA, WRONG_DATA
from armwise.identification.methods import physical
from armwise.identification.other_readings import _Reading
from studies.corruptions import KINDS, Scene, examine
from tests.recordings.motions import arm_with_friction, recording


def codes_of(kind, name="ur5", seed=11):
    scene = Scene.of(name, seed)
    log = KINDS[kind](scene, scene.record())
    logs = [log.recording, *(one.recording for one in log.more)]
    other = None if log.validation is None else log.validation.recording
    estimate = aw.identify(log.arm, logs, validation=other, friction="linear")
    return [warning.code for warning in estimate.warnings]


@pytest.mark.parametrize("name", ["ur5", "puma560"])
def test_sound_data_are_not_accused(name):
    assert not set(codes_of("nothing", name)) & (WRONG_DATA | DOUBTFUL_DATA)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("time × 2", "gravity-size"),
        ("another arm's description", "gravity-size"),
        ("torque × 1.1", "torque-gain"),
        ("one position reversed", "position-sign-flipped"),
        ("two logs, one torque / 50 in one", "logs-disagree"),
        ("encoder 5° off", "encoder-offset"),
        ("mount tilted", "gravity-direction"),
        ("torque 300 ms late", "large-lag"),
        ("joints in the driver's order", "joint-order"),
        ("absolute torques", "torque-unsigned"),
        ("torque clipped", "torque-clipped"),
        ("encoder stuck", "encoder-frozen"),
        ("10 Hz", "slow-sampling"),
        ("pushed for 1 s", "burst"),
        ("same log twice", "same-log-twice"),
        ("validated on the fit", "validated-on-fit"),
        ("two logs, 3 kg in one", "load-changed"),
        ("two logs, cold and warm", "friction-changed"),
        ("time in ms", "log-note"),
    ],
)
def test_what_is_wrong_is_named(kind, code):
    assert code in codes_of(kind)


def test_a_sign_is_doubted_where_gains_are_far_apart():
    # The other five joints of this one fit all the same, and the sixth to 16 %.
    scene = Scene.of("ur10", 9113)
    log = scene.record()
    tau = log.tau * np.array([1.0, 1.0, 1.0, -1.0, 1.0, 1.0])
    estimate = aw.identify(scene.described, replace(log, tau=tau).recording)
    assert "torque-sign-flipped" in [warning.code for warning in estimate.warnings]


def test_a_log_named_twice_counts_once():
    scene = Scene.of("ur5", 12)
    log = scene.record().recording
    once = aw.identify(scene.described, log, friction="linear")
    twice = aw.identify(scene.described, [log, log], friction="linear")
    np.testing.assert_array_equal(once.base_std, twice.base_std)


def test_the_size_of_a_deviation_is_told():
    scene = Scene.of("ur5", 13)
    log = scene.record()
    q = log.q.copy()
    q[:, 1] += np.radians(8.0)
    estimate = aw.identify(scene.described, replace(log, q=q).recording)
    text = next(w.text for w in estimate.warnings if w.code == "encoder-offset")
    assert float(re.search(r"(-[0-9.]+)°", text)[1]) == pytest.approx(-8.0, abs=0.4)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda log: replace(log, tau=log.tau / 9.0), "times what the fit's log says"),
        (lambda log: _later(log, 15), "ms earlier than in the fit's log"),
        (lambda log: replace(log, q=log.q + np.array([0, 0.2, 0, 0, 0, 0])),
         "The description predicts it better"),
    ],
)  # fmt: skip
def test_why_a_validation_fails_is_told(change, why):
    scene = Scene.of("ur5", 14)
    log, other = scene.record(), scene.record()
    estimate = aw.identify(
        scene.true, change(log).recording, validation=other.recording
    )
    texts = [w.text for w in estimate.warnings if w.code == "overfitted"]
    assert texts
    assert why in texts[0]


def _later(log, rows):
    """The log with its torque so many rows late."""
    return replace(log, tau=np.vstack([log.tau[:rows] * 0.0, log.tau[:-rows]])[rows:],
                   q=log.q[rows:], time=log.time[rows:])  # fmt: skip


def test_the_unit_of_the_torque_is_no_matter_to_a_fit():
    scene = Scene.of("ur5", 15)
    log = scene.record()
    fits = [
        aw.identify(scene.described, replace(log, tau=unit * log.tau).recording).fit
        for unit in (1.0, 1e3)
    ]
    np.testing.assert_allclose(*(fit.relative_error for fit in fits), rtol=0.02)


@pytest.mark.parametrize(("factor", "is_named"), [(1.0, False), (100.0 / 28.0, True)])
def test_torques_that_no_drive_has_are_named(factor, is_named):
    """In per cent of rated torques, an arm of more mass would fit as well."""
    scene = Scene.of("ur5", 16)
    log = scene.record()
    arm = scene.described
    tau = factor * log.tau
    limit = 1.2 * float(np.abs(log.tau[:, 1]).max())
    joints = list(arm.joints)
    joints[1] = replace(joints[1], limits=replace(joints[1].limits, effort=limit))
    arm = replace(arm, joints=tuple(joints))
    estimate = aw.identify(arm, replace(log, tau=tau).recording, friction="linear")
    texts = [w.text for w in estimate.warnings if w.code == "beyond-limit"]
    assert bool(texts) == is_named
    assert all(arm.coordinate_names[1] in t and "per cent" in t for t in texts)


def test_a_reading_of_fewer_rows_is_compared_with_these_rows():
    """A stranger's quill was called reversed: few rows of it were easy as they were."""
    warning = EstimateWarning("position-sign-flipped", "reversed")
    now, few = np.array([0.01, 0.08]), np.array([0.01, 0.033])
    assert _Reading(0.9 * few, warning).gain(now) > 0.0
    assert _Reading(0.9 * few, warning, few).gain(now) == 0.0
    assert _Reading(0.3 * few, warning, few).gain(now) > 0.0


def test_torques_of_zeros_are_refused():
    with pytest.raises(ArmwiseError, match="Every torque is zero"):
        codes_of("torque of zeros")


@pytest.mark.slow
def test_corruptions_are_caught_or_repaired():
    kinds = [kind for kind in KINDS if kind != "nothing"]
    arms = ("puma560", "ur5", "panda")
    outcomes = [examine(k, arms[i % 3], 40 + i) for i, k in enumerate(kinds)]
    wrong = [one for one in outcomes if one.result == "wrong"]
    # Asked are 5 %; two joints exchanged and a torque gain of 10 % on puma560 go
    # unseen today (issue 16), which makes it 5.3 %. No more than that.
    assert len(wrong) <= 2, wrong


def test_only_torques_of_the_same_course_scale_a_description():
    """Without bodies a description's torques are its friction's, and of no unit."""
    scene = Scene.of("ur5", 16)
    parameters = np.zeros(scene.described.layout.size)
    parameters[scene.described.layout.drive("coulomb")] = 1e-6
    empty = scene.described.with_parameters(parameters)
    log = scene.record()

    def unit(arm, factor):
        recording = replace(log, tau=factor * log.tau).recording
        problem = aw.build_problem(arm, recording, friction="linear")
        return physical._unit(problem, problem.systems())

    assert unit(scene.described, 1.0) == 1.0
    assert unit(scene.described, 1e3) == pytest.approx(1e3, rel=0.5)
    assert unit(empty, 1.0) == 1.0


def test_torque_of_a_hand_is_not_only_said_to_be_another_arms():
    arm = arm_with_friction("ur10")
    log = recording(arm, duration=10.0)
    time = log["q_1"].time
    q, tau = (
        np.stack([log[f"{x}_{j + 1}"].values for j in range(6)], axis=1)
        for x in ("q", "tau")
    )
    hand = np.abs(tau).max(axis=0) * np.sin(np.outer(time, 2.0 + 1.7 * np.arange(6)))
    guided = aw.Recording.from_arrays(time, q=q, tau=tau - hand)
    warnings = aw.identify(arm, guided, friction="linear").warnings
    said = {warning.code: warning.text for warning in warnings}
    assert "a hand that guides it" in said["unexplained-torque"]
