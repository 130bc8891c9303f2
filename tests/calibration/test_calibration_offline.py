"""Sensors calibrated from a recording alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.calibration import Structure, calibratable, calibrate_recording
from armwise.calibration.from_recording import sensed_samples
from armwise.calibration.variable_projection import Projector, SensorPoint
from armwise.errors import ArgumentError, NotIdentifiable, RecordingError
from armwise.recordings import Channel
from tests.calibration.hands import ALPHA, BETA, hand, recorded, structure


@pytest.fixture(scope="module")
def recording():
    return recorded()


@pytest.fixture(scope="module")
def found(recording):
    return calibrate_recording(structure(), recording)


def test_gains_and_offsets_need_no_guess(found):
    assert np.abs(found.alpha / ALPHA - 1).max() < 0.01
    assert np.rad2deg(np.abs(found.beta - BETA)).max() < 0.3
    assert np.all(np.abs(found.beta - BETA) < 5 * found.beta_std)


def test_every_guess_leads_to_one_answer(recording, found):
    rng = np.random.default_rng(3)
    for seed in range(3):
        gains = rng.uniform(0.05, 0.4, 2) * rng.choice([-1, 1], 2)
        other = calibrate_recording(
            structure(), recording, alpha=gains, beta=rng.uniform(-3, 3, 2),
            gain_range=10.0, outlook=found.observability, seed=seed,
        )  # fmt: skip
        assert np.allclose(other.alpha, found.alpha, rtol=1e-4)
        assert np.allclose(other.beta, found.beta, atol=1e-4)


def test_a_reversed_sensor_is_recognised_and_said(recording, found):
    guess = np.abs(ALPHA)
    other = calibrate_recording(
        structure(), recording, alpha=guess, outlook=found.observability
    )
    assert np.all(other.alpha < 0)
    assert "counts against" in other.notes[0]


def test_known_gains_leave_offsets(recording):
    known = replace(structure(), gains_known=True)
    found = calibrate_recording(known, recording, alpha=ALPHA)
    assert np.array_equal(found.alpha, ALPHA)
    assert np.rad2deg(np.abs(found.beta - BETA)).max() < 0.3


def test_the_jacobian_is_the_derivative_of_the_residual(recording):
    projector = Projector(
        structure(), sensed_samples(recording, 10.0)[::20], np.full(2, 0.01)
    )
    point = SensorPoint(ALPHA * 1.02, BETA + 0.03)
    now = projector.at(point)
    slope = -2.0 * now.jacobian.T @ now.residual
    for k in range(4):
        step = np.zeros(4)
        step[k] = 1e-5
        rise = projector.cost(point.moved(step)) - projector.cost(point.moved(-step))
        assert rise / 2e-5 == pytest.approx(slope[k], rel=1e-3)


def test_unobservable_unknowns_are_predicted():
    panda = calibratable(load_arm("panda"))
    assert panda.hidden == ("joint_1.offset", "joint_7.offset")
    reasons = {p.name: p.reason for p in panda.prospects}
    assert "parallel to gravity" in reasons["joint_1.offset"]
    assert "centre of mass is unknown" in reasons["joint_7.offset"]
    assert "joint_2.offset" in calibratable(hand()).hidden
    assert not calibratable(structure()).hidden


def test_an_arm_across_gravity_cannot_be_calibrated(recording):
    flat = structure(hand().with_gravity([0.0, 0.0, -9.81]))
    assert "joint_1.offset" in calibratable(flat).hidden


def test_a_joint_that_does_not_move_is_named(recording):
    time = recording["volts_2"].time
    channels = {"volts_2": Channel(time, np.ones(time.size))}
    with pytest.raises(RecordingError, match="joint_2 does not move"):
        calibrate_recording(structure(), recording.with_channels(channels))


def test_a_saturated_sensor_is_named():
    with pytest.raises(RecordingError, match="saturated"):
        calibrate_recording(structure(), recorded(full_scale=3.0))


def test_missing_torques_are_said(recording):
    volts = {k: v for k, v in recording.channels.items() if k.startswith("volts")}
    with pytest.raises(RecordingError, match="torques"):
        calibrate_recording(structure(), recording.select(volts))


def test_unknown_parameters_are_refused():
    with pytest.raises(ArgumentError, match=r"no parameter '\*\.weight'"):
        Structure(hand(), known=("*.weight",))


def test_nothing_to_calibrate_is_refused(recording):
    free = hand().with_gravity([0.0, 0.0, 0.0])
    still = free.with_parameters(np.zeros_like(free.parameters))
    known = Structure(still, known=("*",))
    with pytest.raises(NotIdentifiable):
        calibrate_recording(known, recording)
