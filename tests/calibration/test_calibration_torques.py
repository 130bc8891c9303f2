"""Torque gains, weighed against a known load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.calibration.hands import hand

from armwise.arms import InertialParameters
from armwise.calibration import calibrate_torques
from armwise.control import ComputedTorque
from armwise.errors import NotIdentifiable
from armwise.motions import Triangle
from armwise.plants import (
    Encoder,
    Payload,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
    carrying,
    run,
)

TRUE = np.array([1.07, 0.93])
LOAD = Payload(
    "hand",
    InertialParameters.from_center_of_mass(0.2, [0.02, 0.0, 0.0], np.eye(3) / 1e4),
)


def motion(middle: float) -> Triangle:
    return Triangle(
        np.array([-0.2, middle]), np.array([0.6, 0.7]), np.array([4.0, 3.1]), 12.0,
        rounding=0.3,
    )  # fmt: skip


def recorded(arm, path: Triangle, seed: int):
    """What amplifiers log whose torques are not what they think."""
    sensors = [Encoder(1e-5), Tachometer(), TorqueSensor(noise_std=0.002)]
    plant = SimulatedArm(arm, sensors=sensors, control_rate_hz=250, seed=seed)
    log = run(plant, ComputedTorque(arm, 400.0, 40.0), path)
    channels = {
        f"tau_{j + 1}": replace(
            log[f"tau_{j + 1}"], values=log[f"tau_{j + 1}"].values / TRUE[j]
        )
        for j in range(2)
    }
    return replace(log, channels=dict(log.channels) | channels)


@pytest.fixture(scope="module")
def logs():
    arm = hand()
    return recorded(arm, motion(0.3), 1), recorded(carrying(arm, LOAD), motion(0.1), 2)


def test_gains_come_out_within_their_uncertainty(logs):
    found = calibrate_torques(hand(), *logs, LOAD)
    assert found.gain == pytest.approx(TRUE, rel=0.01)
    assert np.all(np.abs(found.gain - TRUE) < 5.0 * found.std)
    assert np.all(found.std < 0.01)


def test_a_guess_only_shifts_the_search(logs):
    plain = calibrate_torques(hand(), *logs, LOAD)
    other = calibrate_torques(hand(), *logs, LOAD, guess=[1.3, 0.8])
    assert other.gain == pytest.approx(plain.gain, rel=1e-3)


def test_no_load_weighs_nothing(logs):
    nothing = replace(LOAD, inertia=InertialParameters.zero())
    with pytest.raises(NotIdentifiable, match="no joint's torque"):
        calibrate_torques(hand(), logs[0], logs[0], nothing)
