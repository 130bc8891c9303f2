"""Flaws of motors and sensors that would pass for turned sensors."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.calibration import Flaws, calibratable, calibrate_recording
from armwise.calibration.from_recording import sensed_samples
from armwise.calibration.refine import descend
from armwise.calibration.structure import Straightener
from armwise.calibration.variable_projection import (
    FrictionMask,
    Projector,
    SensorPoint,
)
from armwise.errors import ArgumentError
from armwise.motions import Triangle
from armwise.recordings import Channel, Recording
from tests.calibration.hands import ALPHA, BETA, recorded, structure


def weaker(recording, factor):
    """The same recording by a second motor that gives more than its command."""
    tau = recording["tau_2"]
    channels = {"tau_2": replace(tau, values=tau.values / factor)}
    return recording.with_channels(channels)


def test_straightening_leaves_the_best_line():
    s = np.linspace(-3.0, 5.0, 4001)[:, None]
    still = np.zeros_like(s)
    made = Straightener.over(s)(s, still, still, np.array([0.01]), np.array([0.02]))
    straight = made[0]
    slope, offset = np.polyfit(s[:, 0], (straight - s)[:, 0], 1)
    assert abs(slope) < 1e-4
    assert abs(offset) < 1e-4
    assert np.abs(straight - s).max() == pytest.approx(0.03 * 4.0)


def test_straightening_differentiates():
    t = np.linspace(0.0, 2.0, 20001)
    s, sd, sdd = (x[:, None] for x in (np.sin(t), np.cos(t), -np.sin(t)))
    q, qd, qdd = Straightener.over(s)(s, sd, sdd, np.array([0.03]), np.array([0.05]))
    assert np.allclose(np.gradient(q[:, 0], t)[5:-5], qd[5:-5, 0], atol=1e-6)
    assert np.allclose(np.gradient(qd[:, 0], t)[5:-5], qdd[5:-5, 0], atol=1e-6)


def test_unequal_motors_do_not_turn_sensors():
    recording = weaker(recorded(noise=0.001), 1.02)
    known = structure()
    aware = replace(known, flaws=Flaws(torque_gain=0.02))
    unaware, estimated = (
        calibrate_recording(x, recording, alpha=ALPHA) for x in (known, aware)
    )
    assert np.abs(estimated.beta - BETA).max() < 0.3 * np.abs(unaware.beta - BETA).max()
    assert estimated.flaws[1] - estimated.flaws[0] == pytest.approx(-0.02, abs=2e-3)
    assert estimated.unknowns[-2:] == ("joint_1.torque_gain", "joint_2.torque_gain")


def test_bent_sensors_are_straightened():
    outlook = calibratable(structure())
    aware = replace(structure(), flaws=Flaws(bend=0.02))
    found = [
        calibrate_recording(
            aware, recorded(noise=0.001, nonlinearity=x), alpha=ALPHA, outlook=outlook
        )
        for x in (0.0, 0.05)
    ]
    straight, bent = found
    assert np.all(bent.torque_std < 1.05 * straight.torque_std)
    assert np.abs(straight.flaws).max() < 0.002
    assert np.all(bent.flaws[-2:] > 0.004)  # an S, in the inverse
    assert np.rad2deg(np.abs(bent.beta - BETA)).max() < 0.1


def test_friction_that_rises_towards_rest_shows_as_such():
    """The slope by it is the difference of torques, and its size is recovered."""
    sensed = sensed_samples(recorded(noise=0.0), 10.0)
    aware = replace(structure(), flaws=Flaws(slow_friction=0.5))
    projector = Projector(aware, sensed, np.full(2, 0.01))
    rows, true = slice(0, len(sensed)), np.array([0.3, -0.2])
    point = SensorPoint(ALPHA, BETA, true)
    flawless = replace(point, flaws=np.zeros(2))
    parameters = aware.arm.parameters
    torque = [projector.regressor(x, rows) @ parameters for x in (flawless, point)]
    used = projector.mask.weights(rows) / 0.01
    column = projector.slopes(parameters, flawless, rows)[:, :, -2:] @ true
    assert np.abs(column).max() > 0.1
    np.testing.assert_allclose(column, (torque[1] - torque[0]) * used, atol=1e-9)
    exact = Projector(aware, replace(sensed, tau=torque[1]), np.full(2, 0.01))
    # No torque is late here, as the recorded ones are.
    solution = descend(exact, flawless, np.array([False] * 4 + [True] * 2))
    np.testing.assert_allclose(solution.point.flaws, true, atol=0.02)


def test_flaws_add_to_predicted_deviations():
    plain, flawed = (
        calibratable(replace(structure(), flaws=x), torque_std=0.002)
        for x in (Flaws(), Flaws(0.05, 0.05))
    )
    for a, b in zip(plain.prospects, flawed.prospects, strict=True):
        assert b.std >= 0.99 * a.std
    assert len(flawed.prospects) == len(plain.prospects)


@pytest.mark.parametrize("size", [-0.1, 1.0, np.nan])
def test_flaws_are_fractions(size):
    with pytest.raises(ArgumentError, match="fractions of one"):
        Flaws(bend=size)


def test_joints_at_rest_are_masked():
    sensed = sensed_samples(recorded(), 10.0)
    mask = FrictionMask.from_samples(sensed, np.eye(2))
    slow = np.abs(sensed.qd) < 0.05 * np.abs(sensed.qd).max(axis=0)
    weights = mask.weights(slice(0, len(sensed)))
    assert slow.any()
    assert np.all(weights[slow] == 0.0)
    assert np.all(mask.row_counts(len(sensed)) > 0.5 * len(sensed))


def test_how_friction_goes_through_zero_does_not_show_in_the_torques_used():
    """It creeps, as a simulator's does; the low-pass rings of it at the same places."""
    motion = Triangle(np.zeros(1), np.array([0.8]), np.array([7.0]), 20.0, 0.0, 0.35)
    time = np.arange(0.0, 20.0, 0.004)
    x, speed, _ = motion.sample(time)
    friction = np.clip(speed / 0.1, -1.0, 1.0)
    channels = {
        "volts_1": Channel(time, x[:, 0], "V"),
        "tau_1": Channel(time, friction[:, 0], "N m"),
    }
    recording = Recording.from_channels(channels, joint_names=("a",), source="test")
    sensed = sensed_samples(recording, 5.0)
    mask = FrictionMask.from_samples(sensed, np.eye(1), ends=0.6)
    assert mask.directions is not None
    is_used = mask.weights(slice(0, len(sensed))) > 0.0
    assert 0.4 < is_used.mean() < 0.8
    assert np.abs(sensed.tau - mask.directions)[is_used].max() < 5e-4
