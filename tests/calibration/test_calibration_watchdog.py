"""Sensors watched while the arm works."""

from __future__ import annotations

import numpy as np
import pytest
from tests.calibration.hands import hand, structure

from armwise.calibration import Calibration, Watchdog
from armwise.errors import ArgumentError
from armwise.motions import Fourier, Hold, Quintic, Sequence

PERIOD = 0.005
JUMP = np.deg2rad(1.0)


def worked(seconds: float, seed: int = 0, motion: object = None):
    """Ordinary motion, its readings in counts of 20 µrad, and its torques."""
    random = np.random.default_rng(seed)
    sine, cosine = random.normal(0.0, 0.25, (2, 2, 4))
    motion = motion or Fourier(np.array([0.3, 0.2]), sine, cosine, 0.11, 44.0)
    time = np.arange(0.0, seconds, PERIOD)
    q, qd, qdd = motion.sample(time)
    tau = structure().dynamics.inverse_dynamics(q, qd, qdd)
    tau += random.normal(0.0, 0.005, tau.shape)
    return time, np.rint(q / 2e-5) * 2e-5, tau


@pytest.fixture(scope="module")
def work():
    return worked(75.0)


def watchdog(**options) -> Watchdog:
    given = Calibration.given(hand(), torque_std=0.005)
    chosen = {"learning": 20.0, "load": 0.0} | options
    return Watchdog(structure(), given, PERIOD, **chosen)


def alarms_of(stream, block: int = 1000, **options) -> list:
    dog, (time, q, tau) = watchdog(**options), stream
    for k in range(0, len(time), block):
        dog.update(time[k : k + block], q[k : k + block], tau[k : k + block])
    return dog.alarms


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


def test_what_moved_unseen_is_found_by_its_weight(work):
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


def test_a_jump_that_was_told_is_allowed_for(work):
    time, q, tau = work
    moved = q + 5.0 * JUMP * (time >= 40.0)[:, None] * np.array([1.0, 0.0])
    dog = watchdog()
    dog.update(time, moved, tau)
    assert [alarm.kind for alarm in dog.alarms] == ["jump"]
    tracked = dog.tracked
    assert tracked.beta[0] == pytest.approx(-5.0 * JUMP, abs=0.1 * JUMP)
    assert abs(tracked.beta[0] + 5.0 * JUMP) < 4.0 * tracked.beta_std[0]


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


def test_it_is_told_beforehand_what_would_be_noticed(work):
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


def test_a_reading_that_stays_while_the_arm_is_driven_on_is_told(work):
    time, q, tau = work
    stuck = q.copy()
    begin = int(40.0 / PERIOD)
    stuck[begin:, 0] = stuck[begin, 0]
    tau = tau + 8.0 * np.clip(time - 40.2, 0.0, 1.0)[:, None] * np.array([1.0, 0.0])
    swings = np.where((time > 45.0) & (time < 46.0), 0.0, 1.0)[:, None]
    found = alarms_of((time, stuck, tau * swings))
    (alarm,) = (a for a in found if a.kind != "drift")
    assert (alarm.kind, alarm.joint) == ("stuck", "joint_1")
    assert alarm.onset == pytest.approx(40.0, abs=0.06)
    assert alarm.time < 41.5
    assert "stays the same" in alarm.message


def test_a_reading_at_the_end_of_its_range_is_told(work):
    time, q, tau = work
    end = q[time < 30.0, 1].max() + 1e-3
    driven = 1.5 * np.clip(time - 40.0, 0.0, 1.0)[:, None] * np.array([0.0, 1.0])
    clipped = np.minimum(q + driven, [np.inf, end])
    stream = time, clipped, tau + 4.0 * (q + driven - clipped)
    (alarm, *_) = alarms_of(stream)
    assert (alarm.kind, alarm.joint) == ("saturated", "joint_2")
    assert 40.0 < alarm.onset < alarm.time < 42.0


def test_a_joint_held_by_its_brake_is_not_stuck():
    move = Quintic(np.array([0.3, 0.2]), np.array([1.0, -0.5]), 1.0)
    back = Quintic(move.end, move.start, 1.0)
    cycle = (move, Hold(move.end, 0.5), back, Hold(move.start, 0.5))
    stream = worked(40.0, motion=Sequence(10 * cycle + (Hold(move.start, 10.0),)))
    stream[2][stream[0] > 33.0] = 0.0
    assert not alarms_of(stream)


def test_a_joint_held_against_the_motion_of_another_is_not_stuck():
    """After learning at leisure, joint 2 alone swings as fast as it can."""
    slow = Quintic(np.array([0.3, 0.2]), np.array([1.0, -0.5]), 2.0)
    back = Quintic(slow.end, slow.start, 2.0)
    cycle = (slow, Hold(slow.end, 0.5), back, Hold(slow.start, 0.5))
    there = Quintic(slow.start, np.array([0.3, 1.2]), 0.25)
    again = Quintic(there.end, there.start, 0.25)
    assert not alarms_of(worked(30.0, motion=Sequence(5 * cycle + 10 * (there, again))))


def test_what_is_no_number_is_told_each_time_it_begins(work):
    time, q, tau = (x.copy() for x in work)
    q[5000:5003, 0] = np.nan
    q[5010, 0] = np.inf
    tau[9000, 1] = np.nan
    found = [(a.kind, a.joint, a.onset) for a in alarms_of((time, q, tau))]
    assert found == [
        ("missing", "joint_1", time[5000]),
        ("missing", "joint_2", time[9000]),
    ]


def test_wrong_shapes_periods_and_clocks_are_refused():
    with pytest.raises(ArgumentError, match="2 joints"):
        watchdog().update(0.0, np.zeros(3), np.zeros(3))
    with pytest.raises(ArgumentError, match="20 Hz"):
        Watchdog(structure(), Calibration.given(hand()), 1.0)
    dog = watchdog()
    dog.update([5.0, 5.005, 5.005], np.zeros((3, 2)), np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="runs back"):
        dog.update([1.0] * 4, np.zeros((4, 2)), np.zeros((4, 2)))
