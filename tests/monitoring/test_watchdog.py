"""Sensors watched while the arm works."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.calibration import Calibration
from armwise.errors import ArgumentError
from armwise.monitoring import Watchdog
from tests.calibration.hands import ALPHA, BETA, hand, structure
from tests.monitoring.watching import JUMP, PERIOD, alarms_of, watchdog, worked


@pytest.fixture(scope="module")
def work():
    return worked(75.0)


def test_undisturbed_motion_raises_nothing(work):
    dog = watchdog()
    assert dog.update(*work) == ()
    assert not dog.is_learning
    assert dog.evidence < 0.5


@pytest.mark.parametrize("joint", [0, 1])
@pytest.mark.parametrize("size", [1.0, -0.5])
def test_a_jump_is_found_at_once_with_its_size(work, joint, size):
    time, q, tau = work
    moved = q.copy()
    moved[time >= 33.0, joint] += size * JUMP
    (alarm,) = alarms_of((time, moved, tau))
    assert (alarm.kind, alarm.joint) == ("jump", f"joint_{joint + 1}")
    assert alarm.onset == pytest.approx(33.0, abs=PERIOD)
    assert alarm.time < 33.2
    assert alarm.size == pytest.approx(size * JUMP, abs=3.0 * alarm.std)
    assert alarm.std < 0.1 * JUMP
    assert (
        f"joint_{joint + 1} jumped by {np.rad2deg(alarm.size):+.3f}°" in alarm.message
    )


def test_a_jump_during_learning_is_found_if_no_motion_could_be_it(work):
    time, q, tau = work
    moved = q + 10.0 * JUMP * (time >= 5.0)[:, None] * np.array([0.0, 1.0])
    (alarm,) = alarms_of((time, moved, tau))
    assert alarm.onset == pytest.approx(5.0, abs=PERIOD)


def test_an_unseen_shift_is_found_against_gravity(work):
    """The sensor slips while nothing is recorded for a second."""
    time, q, tau = work
    moved = q + JUMP * (time >= 40.0)[:, None] * np.array([1.0, 0.0])
    seen = (time < 39.5) | (time > 40.5)
    (alarm, *_) = alarms_of((time[seen], moved[seen], tau[seen]))
    assert (alarm.kind, alarm.joint) == ("drift", "joint_1")
    assert alarm.onset == pytest.approx(40.5, abs=2.0)
    assert 46.0 < alarm.time < 60.0
    if alarm.quantity == "offset":
        assert alarm.size == pytest.approx(JUMP, abs=0.3 * JUMP)


def test_a_reported_jump_is_allowed_for(work):
    time, q, tau = work
    moved = q + 5.0 * JUMP * (time >= 40.0)[:, None] * np.array([1.0, 0.0])
    dog = watchdog()
    dog.update(time, moved, tau)
    assert [alarm.kind for alarm in dog.alarms] == ["jump"]
    tracked = dog.tracked
    assert tracked.beta[0] == pytest.approx(-5.0 * JUMP, abs=0.1 * JUMP)
    assert abs(tracked.beta[0] + 5.0 * JUMP) < 4.0 * tracked.beta_std[0]


def test_readings_may_be_volts(work):
    time, q, tau = work
    given = Calibration.from_values(hand(), ALPHA, BETA, torque_std=0.005)
    dog = Watchdog(structure(), given, PERIOD, learning=20.0, load=0.0)
    volts = (q - BETA) / ALPHA
    volts[time >= 50.0, 1] += 0.1
    (alarm,) = dog.update(time, volts, tau)
    assert (alarm.kind, alarm.joint) == ("jump", "joint_2")
    assert alarm.size == pytest.approx(0.1 * ALPHA[1], abs=4.0 * alarm.std)
    now = dog.tracked
    assert now.beta[1] == pytest.approx(BETA[1] - 0.1 * ALPHA[1], abs=1e-3)
    assert now.alpha == pytest.approx(ALPHA, rel=0.02)


@pytest.mark.parametrize("block", [1, 37])
def test_blocks_and_samples_see_the_same(block):
    time, q, tau = worked(40.0)
    q[time >= 24.0, 1] += JUMP
    q[time >= 31.0, 0] -= 2.0 * JUMP
    kept = np.random.default_rng(3).random(time.size) > 0.01
    kept[(time > 27.0) & (time < 28.0)] = False
    q[(time > 29.0) & (time < 29.1), 1] = np.nan
    stream = time[kept], q[kept], tau[kept]
    whole, pieces = (alarms_of(stream, block=b) for b in (10**6, block))
    assert [a.kind for a in whole] == ["jump", "missing", "jump"]
    assert [(a.kind, a.joint) for a in pieces] == [(a.kind, a.joint) for a in whole]
    for one, other in zip(whole, pieces, strict=True):
        assert one.onset == pytest.approx(other.onset, abs=1e-9)
        assert one.time == pytest.approx(other.time, abs=1e-9)
        assert one.size == pytest.approx(other.size, rel=1e-6, nan_ok=True)


def test_drift_is_the_same_in_blocks_and_samples(work):
    time, q, tau = work
    moved = q + 3.0 * JUMP * ((time - 30.0).clip(0, 10) / 10)[:, None]
    one, other = (alarms_of((time, moved, tau), block=b) for b in (10**6, 333))
    assert [a.kind for a in one][:1] == ["drift"]
    assert [a.onset for a in one] == [a.onset for a in other]
    assert [a.size for a in one] == pytest.approx([a.size for a in other], rel=1e-6)


def test_values_are_tracked_with_their_uncertainty(work):
    dog = watchdog()
    dog.update(*work)
    now = dog.tracked
    assert np.all(np.abs(now.beta) < 5 * now.beta_std + 1e-3)
    assert np.all(now.parameters_std > 0)
    assert np.all(np.abs(now.alpha - 1.0) < 5 * now.alpha_std + 1e-3)


def test_what_would_be_noticed_is_predicted(work):
    dog = watchdog()
    assert all(np.isinf(row.drift) for row in dog.visible())
    dog.update(*work)
    shoulder, elbow = dog.visible(60.0)
    assert shoulder.joint == "joint_1"
    assert 0.0 < shoulder.jump < 0.3 * JUMP
    assert shoulder.drift < JUMP
    assert elbow.drift < dog.visible(10.0)[1].drift
    assert all(np.isinf(row.drift) for row in dog.visible(5.0))


def test_an_unknown_load_hides_the_last_joint(work):
    dog = watchdog(load=0.2)
    dog.update(*work)
    free = watchdog()
    free.update(*work)
    assert dog.visible()[1].drift > 3.0 * free.visible()[1].drift


def test_wrong_shapes_periods_and_clocks_are_refused():
    with pytest.raises(ArgumentError, match="2 joints"):
        watchdog().update(0.0, np.zeros(3), np.zeros(3))
    with pytest.raises(ArgumentError, match="20 Hz"):
        Watchdog(structure(), Calibration.from_values(hand()), 1.0)
    dog = watchdog()
    dog.update([5.0, 5.005, 5.005], np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="runs back"):
        dog.update([1.0] * 4, np.zeros((4, 2)), np.zeros((4, 2)))
