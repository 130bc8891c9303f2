"""Sensors that fail outright, and arms that only seem to."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.motions import Hold, Quintic, Sequence
from tests.monitoring.watching import PERIOD, alarms_of, worked


@pytest.fixture(scope="module")
def work():
    return worked(75.0)


def test_a_reading_that_stays_while_the_arm_is_driven_on_is_reported(work):
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


def test_a_reading_at_the_end_of_its_range_is_reported(work):
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


def test_missing_readings_are_reported_once_per_onset(work):
    time, q, tau = (x.copy() for x in work)
    q[5000:5003, 0] = np.nan
    q[5010, 0] = np.inf
    tau[9000, 1] = np.nan
    found = [(a.kind, a.joint, a.onset) for a in alarms_of((time, q, tau))]
    assert found == [
        ("missing", "joint_1", time[5000]),
        ("missing", "joint_2", time[9000]),
    ]
