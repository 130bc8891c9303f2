"""What cannot be calibrated is recognised and said; no number is invented."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.calibration import (
    Plan,
    Structure,
    calibrate_by_adaptation,
    calibrate_recording,
)
from armwise.errors import NotIdentifiable, RecordingError
from armwise.plants import Actuator, AnalogSensor, SimulatedArm
from tests.calibration.hands import ALPHA, BETA, hand, recorded, structure

QUICK = Plan(friction_period=3.0, gain_time=6.0, offset_time=4.0)


def bench(arm, alpha=ALPHA, full_scale=10.0):
    """A hand controller at power-up."""
    return SimulatedArm(
        arm,
        sensors=[AnalogSensor(alpha, BETA, noise_std=3e-4, full_scale=full_scale)],
        actuator=Actuator(saturation=5.0),
        control_rate_hz=500.0,
        plant_rate_hz=2000.0,
        keeps_truth=False,
    )


def moved(plant):
    return calibrate_by_adaptation(plant, structure(), posture=BETA, plan=QUICK)


def test_friction_larger_than_gravity_stops_the_procedure():
    with pytest.raises(NotIdentifiable, match="dry friction of"):
        moved(bench(hand(coulomb=0.5)))


def test_a_joint_that_friction_holds_does_not_respond():
    with pytest.raises(NotIdentifiable, match="joint_1 does not respond"):
        moved(bench(hand(coulomb=3.0)))


def test_a_dead_sensor_does_not_respond():
    with pytest.raises(NotIdentifiable, match="joint_2 does not respond"):
        moved(bench(hand(), alpha=np.array([ALPHA[0], 1e6])))


def test_a_saturated_sensor_stops_the_procedure():
    with pytest.raises(RecordingError, match="saturated"):
        moved(bench(hand(), full_scale=3.0))


def test_an_arm_across_gravity_that_is_thought_upright_is_found_out():
    flat = hand(coulomb=0.0).with_gravity([0.0, 0.0, -9.81])
    with pytest.raises(NotIdentifiable, match=r"gravity|friction"):
        moved(bench(flat))


@pytest.mark.parametrize("alpha", [None, ALPHA])
def test_a_recording_across_gravity_determines_nothing(alpha):
    flat = recorded(hand(coulomb=0.0).with_gravity([0.0, 0.0, -9.81]))
    with pytest.raises(NotIdentifiable, match="gravity hardly shows"):
        calibrate_recording(structure(), flat, alpha=alpha, starts=4)


def test_friction_larger_than_gravity_is_said():
    """By its size, or, if nothing of gravity is left to see, as what may hide it."""
    with pytest.raises(NotIdentifiable, match=r"dry friction|friction hides"):
        calibrate_recording(structure(), recorded(hand(coulomb=2.0)), starts=4)


def test_a_motion_too_small_is_refused():
    recording = recorded(amplitude=(0.02, 0.02), noise=0.05)
    with pytest.raises(NotIdentifiable, match="does not determine"):
        calibrate_recording(structure(), recording, starts=4)


def test_undetermined_unknowns_keep_the_guess():
    recording = recorded(amplitude=(0.1, 0.1), noise=0.05)
    found = calibrate_recording(structure(), recording, alpha=ALPHA, starts=16)
    assert found.not_calibrated == ("joint_1.gain", "joint_2.gain")
    assert np.array_equal(found.alpha, ALPHA)
    assert np.all(np.isinf(found.alpha_std))
    assert "only to ±" in found.observability.prospects[0].reason


def test_what_was_not_calibrated_keeps_what_was_given():
    bare = Structure(hand(), known=("*.offset",))
    found = calibrate_recording(
        bare, recorded(), alpha=ALPHA, beta=[-0.3, 0.4], offset_range=0.5
    )
    assert found.not_calibrated == ("joint_2.offset",)
    assert found.beta[1] == 0.4
    assert np.isinf(found.beta_std[1])
    assert np.isfinite(replace(found).beta_std[0])
