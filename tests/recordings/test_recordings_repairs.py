"""Defects of raw logs that are mended, and those that are refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.errors import RecordingError
from armwise.recordings import Recording, prepare
from armwise.recordings.repairs import repaired
from tests.recordings.motions import arm_with_friction, motion, recording


def with_time(rec, time):
    tables = tuple(replace(table, time=time) for table in rec.tables)
    return replace(rec, tables=tables)


def test_a_sound_log_is_left_alone():
    rec = recording(arm_with_friction(), torque_noise=0.1, position_noise=1e-5)
    assert repaired(rec) is rec


@pytest.mark.parametrize("rate", [50.0, 125.0, 1000.0])
@pytest.mark.parametrize(("unit", "factor"), [("ms", 1e3), ("µs", 1e6), ("ns", 1e9)])
def test_other_units_of_time(unit, factor, rate):
    rec = recording(arm_with_friction(), duration=8.0, rate=rate)
    wrong = with_time(rec, factor * rec["q_1"].time)
    right = repaired(wrong)
    np.testing.assert_allclose(right["q_1"].time, rec["q_1"].time, rtol=1e-12)
    assert f"to be in {unit}" in right.notes[0]


@pytest.mark.parametrize("step", [1e-9, 1e6])
def test_steps_that_no_log_has(step):
    time = step * np.arange(200)
    rec = Recording.from_arrays(time, q=np.zeros((200, 1)), tau=np.zeros((200, 1)))
    with pytest.raises(RecordingError, match="usual time step"):
        prepare(rec)


def test_poses_are_no_motion_in_milliseconds():
    rng = np.random.default_rng(0)
    poses = rng.uniform(-0.1, 0.1, (40, 2))
    rec = Recording.from_arrays(10.0 * np.arange(40), q=poses)
    assert repaired(rec) is rec


@pytest.mark.parametrize("low", [-np.pi, 0.0])
def test_angles_wrapped_to_one_turn(low):
    time = np.arange(0.0, 20.0, 0.008)
    q = np.stack([2.9 * np.sin(time) + 2.0, 0.5 * np.cos(time)], axis=1)
    wrapped = (q - low) % (2 * np.pi) + low
    right = repaired(Recording.from_arrays(time, q=wrapped))
    turns = (right["q_1"].values - q[:, 0]) / (2 * np.pi)
    np.testing.assert_allclose(turns, np.round(turns[0]), atol=1e-12)
    assert "q_1" in right.notes[0]


def test_spikes_and_steps_are_not_unwrapped():
    time = np.arange(0.0, 10.0, 0.01)
    q = 0.5 * np.sin(time)[:, None]
    spike = q.copy()
    spike[500] += 5.0
    assert repaired(rec := Recording.from_arrays(time, q=spike)) is rec
    wide = 4.0 * np.sign(np.sin(time))[:, None]
    assert repaired(rec := Recording.from_arrays(time, q=wide)) is rec


def received(time, rng):
    return time + rng.exponential(0.002, time.size)


def bunched(time, rng):
    place = np.arange(time.size)
    return time[np.minimum(place // 8 * 8 + 7, time.size - 1)] + 1e-4 * (place % 8)


JITTER = {"received": received, "bunched": bunched}


@pytest.mark.parametrize("kind", JITTER)
@pytest.mark.parametrize("rate", [125.0, 500.0])
def test_stamps_of_reception_go_back_to_the_even_clock(kind, rate):
    arm = arm_with_friction()
    rec = recording(arm, rate=rate, position_noise=2e-6, torque_noise=0.05)
    time = rec["q_1"].time
    late = np.maximum.accumulate(JITTER[kind](time, np.random.default_rng(1)))
    right = repaired(with_time(rec, late))
    assert "even clock" in right.notes[0]
    off = right["q_1"].time - time[: right["q_1"].time.size]
    assert np.ptp(off) < 0.1 / rate
    samples = prepare(with_time(rec, late), arm=arm)
    assert abs(samples.preparation.lag) < 1.5e-3


def test_rows_lost_and_stored_twice_are_counted_by_the_motion():
    arm = arm_with_friction()
    rec = recording(arm, rate=1000.0, duration=10.0, position_noise=1e-7)
    rng = np.random.default_rng(2)
    # A program that asks every 1.02 ms, more or less, for the latest sample.
    asked = np.cumsum(rng.uniform(0.8e-3, 1.25e-3, 9000))
    latest = (asked * 1000.0).astype(int)
    latest = latest[latest < rec["q_1"].time.size]
    polled = with_time(
        replace(rec, tables=tuple(t.take(latest) for t in rec.tables)),
        asked[: latest.size],
    )
    right = repaired(polled)
    taken = np.unique(latest) / 1000.0
    assert right["q_1"].time.size == pytest.approx(taken.size, rel=1e-3)
    off = np.interp(taken, right["q_1"].time, right["q_1"].values)
    np.testing.assert_allclose(off, motion(arm.dof, taken)[0][:, 0], atol=2e-3)


def test_true_jitter_is_left_alone():
    rec = recording(arm_with_friction(), jitter=4e-4, position_noise=1e-6)
    assert repaired(rec) is rec
