"""Sensors watched while the arm works."""

from __future__ import annotations

import numpy as np
import pytest
from tests.calibration.hands import hand, structure

from armwise.calibration import Calibration, Watchdog
from armwise.errors import ArgumentError
from armwise.motions import Fourier

PERIOD = 0.01


@pytest.fixture(scope="module")
def work():
    """Forty seconds of ordinary motion and its torques."""
    random = np.random.default_rng(0)
    sine, cosine = random.normal(0.0, 0.25, (2, 2, 4))
    motion = Fourier(np.array([0.3, 0.2]), sine, cosine, 0.11, 40 * 0.11)
    time = np.arange(0.0, 40.0, PERIOD)
    q, qd, qdd = motion.sample(time)
    tau = structure().dynamics.inverse_dynamics(q, qd, qdd)
    return time, q, tau + random.normal(0.0, 0.005, tau.shape)


def watchdog(**options) -> Watchdog:
    given = Calibration.given(hand(), torque_std=0.005)
    return Watchdog(structure(), given, PERIOD, learning=15.0, **options)


def test_undisturbed_motion_raises_nothing(work):
    dog = watchdog()
    assert dog.update(*work) == ()
    assert not dog.is_learning
    assert dog.evidence < 1.0


def test_a_jump_is_found_with_its_onset_and_size(work):
    time, q, tau = work
    moved = q.copy()
    moved[time >= 25.0, 0] += np.deg2rad(1.0)
    dog = watchdog(largest_speed=np.inf)
    dog.update(time, moved, tau)
    (alarm,) = dog.alarms
    assert alarm.kind == "drift"
    assert alarm.unknown == "joint_1.offset"
    assert alarm.onset == pytest.approx(25.0, abs=0.6)
    assert alarm.time < 30.0
    assert np.rad2deg(alarm.change) == pytest.approx(-1.0, abs=0.25)
    assert "joint_1.offset moved" in alarm.message


def test_blocks_and_samples_see_the_same(work):
    time, q, tau = work
    moved = q.copy()
    moved[time >= 20.0, 1] += np.deg2rad(2.0)
    whole, single = (watchdog(largest_speed=np.inf) for _ in range(2))
    whole.update(time, moved, tau)
    for k in range(0, len(time), 37):
        single.update(time[k : k + 37], moved[k : k + 37], tau[k : k + 37])
    assert [a[:3] for a in whole.alarms] == [a[:3] for a in single.alarms]
    # Within a few seconds a joint's gain and offset look much alike.
    assert whole.alarms[0].unknown.startswith("joint_2.")


def test_values_are_tracked_with_their_uncertainty(work):
    dog = watchdog()
    dog.update(*work)
    now = dog.tracked
    assert np.all(np.abs(now.beta) < 5 * now.beta_std + 1e-3)
    assert np.all(now.parameters_std > 0)
    assert np.all(np.abs(now.alpha - 1.0) < 5 * now.alpha_std + 1e-3)


def test_failures_are_told_from_drift(work):
    time, q, tau = work
    dog = watchdog()
    dog.update(time[:2000], q[:2000], tau[:2000])
    jump = q[2000:2100] + np.array([0.0, 1.0])
    (alarm,) = dog.update(time[2000:2100], jump, tau[2000:2100])
    assert alarm.kind == "failure"
    assert "joint_2 jumps" in alarm.message
    (alarm,) = dog.update(time[2100], np.array([np.nan, 0.0]), tau[2100])
    assert "joint_1 gives no number" in alarm.message


def test_wrong_shapes_and_periods_are_refused(work):
    with pytest.raises(ArgumentError, match="2 joints"):
        watchdog().update(0.0, np.zeros(3), np.zeros(3))
    with pytest.raises(ArgumentError, match="epoch"):
        Watchdog(structure(), Calibration.given(hand()), 1.0)
