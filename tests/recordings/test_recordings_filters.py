from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from armwise.errors import ArgumentError, RecordingError
from armwise.recordings.filters import (
    differentiate,
    smoothing_spline,
    thinned,
)
from armwise.recordings.smoothing import shifted
from armwise.recordings.stretches import (
    Resampler,
    clean_stamps,
    segments_of,
    typical_step,
)
from armwise.regression import averaged_sign, low_pass

TIME = np.arange(4000) / 1000.0


@pytest.mark.parametrize(("hz", "gain"), [(2.0, 1.0), (20.0, 0.5), (100.0, 0.0)])
def test_low_pass_has_the_gain_it_says_and_no_phase(hz, gain):
    wave = np.sin(2 * np.pi * hz * TIME)
    out = low_pass(wave, 20.0, 1000.0)[500:-500]
    size = 2 * np.mean(out * wave[500:-500])
    quadrature = 2 * np.mean(out * np.cos(2 * np.pi * hz * TIME[500:-500]))
    assert size == pytest.approx(gain, abs=0.01)
    assert quadrature == pytest.approx(0.0, abs=0.01)


def test_low_pass_refuses_an_impossible_cut_off():
    with pytest.raises(ArgumentError, match="between 0 and 500 Hz"):
        low_pass(TIME, -1.0, 1000.0)
    assert low_pass(TIME, 600.0, 1000.0) is TIME


def test_differences_are_fourth_order():
    errors = []
    for step in (0.02, 0.01):
        t = np.arange(0, 2, step)
        error = differentiate(np.sin(9 * t), step) - 9 * np.cos(9 * t)
        errors.append(np.abs(error[4:-4]).max())
    assert errors[0] / errors[1] == pytest.approx(16.0, rel=0.1)


def test_thinning_keeps_the_signal_and_folds_nothing_back():
    slow = np.sin(2 * np.pi * 3.0 * TIME)
    fast = np.sin(2 * np.pi * 98.0 * TIME)  # folds to 2 Hz at 100 Hz
    kept = thinned(slow + fast, 10)
    assert kept.size == 400
    np.testing.assert_allclose(kept[5:-5], slow[::10][5:-5], atol=3e-4)


def test_spline_follows_a_wave_and_its_derivatives():
    wave = np.sin(2 * np.pi * TIME)
    q, qd, qdd = smoothing_spline(wave, 10.0, 1000.0)
    inner = slice(300, -300)
    np.testing.assert_allclose(q[inner], wave[inner], atol=1e-6)
    omega = 2 * np.pi
    np.testing.assert_allclose(
        qd[inner], omega * np.cos(omega * TIME)[inner], atol=1e-4
    )
    np.testing.assert_allclose(qdd[inner], -(omega**2) * wave[inner], atol=1e-2)


@given(st.floats(-5.0, 5.0))
def test_shifting_moves_a_cubic_exactly(samples):
    t = np.arange(40.0)
    out = shifted(0.01 * t**3 - t, samples)
    expected = 0.01 * (t + samples) ** 3 - (t + samples)
    np.testing.assert_allclose(out[8:-8], expected[8:-8], rtol=1e-9, atol=1e-9)


def test_averaged_sign_knows_when_the_speed_turned():
    np.testing.assert_allclose(
        averaged_sign(np.array([-3.0, -1.0, 3.0])), [-1, -0.5, 1]
    )
    np.testing.assert_allclose(averaged_sign(np.array([-3.0, 1.0, 3.0])), [-1, 0.5, 1])
    np.testing.assert_allclose(averaged_sign(np.array([0.1, 1.0]), 0.5), [0, 1])


def test_resampling_is_exact_for_parabolas_and_close_for_waves():
    rng = np.random.default_rng(0)
    time = np.sort(np.arange(500) * 0.01 + rng.uniform(-4e-3, 4e-3, 500))
    grid = np.linspace(time[0], time[-1], 480)
    read = Resampler.between(time, grid)
    np.testing.assert_allclose(read(1 + time - time**2), 1 + grid - grid**2, atol=1e-12)
    np.testing.assert_allclose(read(np.sin(6 * time)), np.sin(6 * grid), atol=3e-4)


def test_even_stamps_are_not_interpolated():
    time = np.arange(100) * 1e-3
    values = np.random.default_rng(0).normal(size=100)
    read = Resampler.between(time + 1e-6, time + 1e-6)
    assert read(values) is values


def test_stamps_that_repeat_are_dropped_and_counted():
    time = np.array([0.0, 1.0, 1.0, 2.0, 3.0, 3.01, 4.0])
    stamps = clean_stamps(time, "log.csv")
    assert stamps.time.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert stamps.dropped == {"repeated time stamps": 2}


def test_time_running_backwards_is_named_or_dropped():
    time = np.array([0.0, 1.0, 2.0, 1.5, 3.0, 4.0])
    with pytest.raises(RecordingError, match=r"log.csv: time runs backwards in row 4"):
        clean_stamps(time, "log.csv")
    stamps = clean_stamps(time, "log.csv", skip_bad_rows=True)
    assert stamps.time.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    assert stamps.dropped == {"time running backwards": 1}


def test_gaps_cut_and_the_usual_step_ignores_them():
    time = np.concatenate([np.arange(50) * 0.01, 2.0 + np.arange(50) * 0.01])
    assert typical_step(time) == pytest.approx(0.01)
    assert segments_of(time, 0.1) == [(0, 50), (50, 100)]


def test_a_frozen_clock_is_refused():
    with pytest.raises(RecordingError, match="never increases"):
        clean_stamps(np.zeros(5), "log.csv")
