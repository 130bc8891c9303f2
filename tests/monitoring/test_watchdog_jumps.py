"""Jumps of readings, and all that looks like one but is not."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.dynamics import Dynamics
from armwise.monitoring.faults import (
    ACCELERATION_GAIN,
    WIDTH,
    JumpDetector,
    distances,
    driven_distance,
    fit_step,
)
from armwise.monitoring.stream import StreamBuffer
from tests.calibration.hands import hand

DEGREE = np.deg2rad(1.0)
RATES = [1000.0, 100.0]


@pytest.fixture(scope="module")
def model() -> Dynamics:
    return Dynamics(hand())


def stream(rate: float, acceleration=lambda t: np.zeros((t.size, 2))):
    """Brisk motion with some extra acceleration, and the torques of the brisk part."""
    inner = 10_000.0
    t = np.arange(0.0, 20.0, 1.0 / inner)
    swing = np.array([0.8, 0.5]) * np.sin(t[:, None] * np.array([2.0, 3.1]))
    extra = acceleration(t) / inner**2
    q = swing + np.cumsum(np.cumsum(extra, axis=0), axis=0)
    kept = slice(None, None, round(inner / rate))
    noise = np.random.default_rng(0).normal(0.0, 1e-5, q[kept].shape)
    return t[kept], np.rint((q[kept] + noise) / 2e-5) * 2e-5


def torques(model: Dynamics, t: np.ndarray, q: np.ndarray) -> np.ndarray:
    qd = np.gradient(q, t, axis=0)
    return model.inverse_dynamics(q, qd, np.gradient(qd, t, axis=0))


def driving(model: Dynamics, t: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Torques that take the arm from sample to sample."""
    period = t[1] - t[0]
    qdd = np.zeros_like(q)
    qdd[1:-1] = np.diff(q, 2, axis=0) / period**2
    # Speeds as smooth as the motion was before and after.
    qd = np.gradient(stream(1.0 / period)[1], t, axis=0)
    return model.inverse_dynamics(q, qd, qdd)


def found(model: Dynamics, t, q, tau=None, learned: float = 10.0) -> list:
    period = float(np.median(np.diff(t)))
    tau = torques(model, t, q) if tau is None else tau
    jumps = JumpDetector(model, period, np.array([5.0, 5.0]))
    buffer = StreamBuffer(period, 2, int(learned / period))
    seen = []
    for k, chunk in enumerate(buffer.feed(t, q, tau)):
        if chunk.is_fresh:
            jumps.restart()
        if k == 1:
            jumps.end_learning()
        seen += jumps.feed(*chunk[:4])
    return seen


def pulse(begin: float, length: float, size) -> object:
    """Acceleration during a time."""
    return lambda t: np.outer((begin <= t) & (t < begin + length), size)


def test_lines_that_agree_or_meet_are_no_step():
    t = np.arange(-4.0, 5.0)
    for q in (3.0 + 2.0 * t, t**2, np.where(t < 0.0, 2.0 * t, -5.0 * t)):
        assert distances(q[:, None]).least == pytest.approx(0.0, abs=1e-12)
    jump = 0.1 * t + 3.0 * (t > 0)
    assert distances(jump[:, None]).least == pytest.approx(3.0)
    step = fit_step(jump[:, None])
    assert step.size == pytest.approx(3.0)
    assert step.residual == pytest.approx(0.0, abs=1e-12)


def test_what_accelerations_add_is_taken_away():
    random = np.random.default_rng(1)
    a = random.normal(size=(WIDTH, 1))
    # q'' = a by differences: q[k+1] − 2 q[k] + q[k−1] = a[k] T².
    q = np.zeros((WIDTH, 1))
    for k in range(1, WIDTH - 1):
        q[k + 1] = 2.0 * q[k] - q[k - 1] + a[k] * 0.01**2
    assert fit_step(q).size == pytest.approx(driven_distance(a, 0.01), rel=1e-9)
    begins = (np.arange(WIDTH) > 4)[:, None] * 1.0
    assert np.abs(driven_distance(begins, 1.0)) == pytest.approx(ACCELERATION_GAIN)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("joint", [0, 1])
def test_a_jump_is_found(model, rate, joint):
    t, q = stream(rate)
    moved = q.copy()
    moved[t >= 15.5, joint] += DEGREE
    (jump,) = found(model, t, moved, torques(model, t, q))
    assert jump.joint == joint
    assert jump.onset == pytest.approx(15.5, abs=1.0 / rate)
    assert jump.size == pytest.approx(DEGREE, abs=max(3.0 * jump.std, 1e-4))


@pytest.mark.parametrize("bandwidth", [30.0, 60.0, 100.0])
def test_a_jump_smeared_by_a_filter_is_found(model, bandwidth):
    from scipy.signal import butter, lfilter

    t, q = stream(1000.0)
    moved = q.copy()
    moved[t >= 15.5, 1] += DEGREE
    seen = lfilter(*butter(2, bandwidth / 500.0), moved, axis=0)
    (jump,) = found(model, t, seen, torques(model, t, q))
    assert jump.joint == 1
    assert jump.onset == pytest.approx(15.5, abs=0.02)
    assert jump.size == pytest.approx(DEGREE, abs=0.3 * DEGREE)


@pytest.mark.parametrize("rate", RATES)
def test_ordinary_motion_is_no_jump(model, rate):
    assert found(model, *stream(rate)) == []


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("length", [5e-4, 3e-3, 2e-2])
@pytest.mark.parametrize("speed", [1.0, -2.0])
def test_a_blow_is_no_jump(model, rate, length, speed):
    """A collision stops or turns a joint at once: its path bends but does not step."""
    hit = pulse(15.503, length, [speed / length, 0.0])
    t, q = stream(rate, lambda x: hit(x) - pulse(15.8, 0.2, [speed / 0.2, 0.0])(x))
    quiet = torques(model, *stream(rate))
    assert found(model, t, q, quiet) == []


@pytest.mark.parametrize("rate", RATES)
def test_an_emergency_stop_is_no_jump(model, rate):
    """The torque sensor sees it coming."""
    stop = pulse(15.5, 0.025, [80.0, -80.0])
    t, q = stream(rate, lambda x: stop(x) - pulse(15.6, 0.1, [20.0, -20.0])(x))
    assert found(model, t, q) == []


def test_a_flick_by_the_motor_is_no_jump(model):
    """As far as a jump in as short a time; only the torque tells them apart."""
    t, q = stream(100.0)
    k = np.searchsorted(t, 15.5)
    q[k:, 0] += 0.5 * DEGREE
    q[k + 1 :, 0] += 0.5 * DEGREE
    quiet = torques(model, *stream(100.0))
    assert len(found(model, t, q, quiet)) == 1
    assert found(model, t, q, driving(model, t, q)) == []


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("length", [1, 2])
def test_a_spike_is_no_jump(model, rate, length):
    t, q = stream(rate)
    quiet = torques(model, t, q)
    k = np.searchsorted(t, 15.5)
    q[k : k + length, 0] += 3.0 * DEGREE
    assert found(model, t, q, quiet) == []


@pytest.mark.parametrize("movers", [1, 2])
@pytest.mark.parametrize("rows", [2, 5, 20, 150])
def test_readings_held_for_a_while_are_no_jump(model, rows, movers):
    t, q = stream(1000.0)
    q[:, movers:] = 0.3
    tau = torques(model, t, q)
    for begin in (15.1, 15.5, 16.3):
        k = np.searchsorted(t, begin)
        q[k : k + rows], tau[k : k + rows] = q[k], tau[k]
    assert found(model, t, q, tau) == []


@pytest.mark.parametrize("rows", [3, 20])
def test_samples_lost_unannounced_are_no_jump(model, rows):
    t, q = stream(1000.0)
    tau = torques(model, t, q)
    k = np.searchsorted(t, 15.4)
    kept = np.delete(np.arange(t.size), slice(k, k + rows))
    assert found(model, t[: kept.size], q[kept], tau[kept]) == []


@pytest.mark.parametrize("rate", RATES)
def test_samples_missing_here_and_there_hide_no_jump(model, rate):
    t, q = stream(rate)
    tau = torques(model, t, q)
    q[t >= 15.5, 0] += DEGREE
    kept = np.random.default_rng(4).random(t.size) > 0.03
    (jump,) = found(model, t[kept], q[kept], tau[kept])
    assert jump.onset == pytest.approx(15.5, abs=2.0 / rate)


def test_jitter_of_time_stamps_is_no_jump(model):
    t, _ = stream(1000.0)
    jittered = t + np.random.default_rng(5).uniform(-2e-4, 2e-4, t.size)
    q = np.array([0.8, 0.5]) * np.sin(jittered[:, None] * np.array([2.0, 3.1]))
    tau = torques(model, t, q)
    assert found(model, jittered, q, tau) == []
    q[t >= 15.5, 0] += DEGREE
    (jump,) = found(model, jittered, q, tau)
    assert jump.onset == pytest.approx(15.5, abs=2e-3)
