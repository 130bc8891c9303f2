"""A preparation's matrices do what the preparation does."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError
from armwise.recordings import Preparation, Recording
from studies.filter_matrices import bands_of, preparation_bands


def recorded(seconds: float = 4.0) -> Recording:
    time = np.arange(0.0, seconds, 1e-3)
    rng = np.random.default_rng(0)
    q = np.stack([np.sin(3.0 * time), np.cos(2.0 * time)], axis=1)
    tau = q + 0.1 * rng.normal(size=q.shape)
    return Recording.from_arrays(time, q=q, tau=tau)


def test_matrices_prepare_as_prepare_does():
    recording = recorded()
    made = aw.prepare(recording, 10.0, lag=2.5e-3, velocity="position")
    size = recording.channels["q_1"].values.size
    bands = preparation_bands(made.preparation, size)
    for j in (0, 1):
        thin = bands.thin @ recording.channels[f"q_{j + 1}"].values
        torque = bands.thin @ recording.channels[f"tau_{j + 1}"].values
        for band, signal, expected in (
            (bands.q, thin, made.q),
            (bands.qd, thin, made.qd),
            (bands.qdd, thin, made.qdd),
            (bands.tau, torque, made.tau),
        ):
            size = np.abs(expected).max()
            np.testing.assert_allclose(
                band @ signal, expected[:, j], rtol=0.0, atol=1e-11 * size
            )


def test_direction_is_seen_through_the_same_filter():
    made = aw.prepare(recorded(), 10.0, lag=0.0, velocity="position")
    bands = preparation_bands(made.preparation, 4000)
    steps = np.sign(made.qd)
    np.testing.assert_allclose(
        bands.direction @ steps[:, 0], made.low_passed(steps)[:, 0], atol=1e-11
    )


def test_a_band_is_read_off_combs():
    (band,) = bands_of(lambda x: [np.convolve(x, [1.0, 2.0, 3.0], "same")], 50, 7)
    signal = np.random.default_rng(0).normal(size=50)
    expected = np.convolve(signal, [1.0, 2.0, 3.0], "same")
    np.testing.assert_allclose(band @ signal, expected, atol=1e-13)


def test_samples_given_as_they_are_have_no_matrices():
    with pytest.raises(ArgumentError, match="low-passed"):
        preparation_bands(Preparation(), 100)
