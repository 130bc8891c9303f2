"""Uncertainty of an adaptation, and when it ends."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.calibration.stages import Settled, direction_std, parabola_gain_std


def gain_of(coefficients):
    a, b, c = coefficients.T
    return np.sqrt(-2.0 * c / (a - b**2 / (4.0 * c)))


def test_the_std_of_a_gain_is_that_of_many_noisy_parabolas():
    random = np.random.default_rng(0)
    true = np.array([-1.3, 0.4, 0.5])
    root = 0.004 * random.normal(size=(3, 3))
    noisy = true + random.normal(size=(40_000, 3)) @ root.T
    scatter = np.std(np.log(gain_of(noisy)))
    predicted = parabola_gain_std(true[None], (root @ root.T)[None])
    assert predicted[0] == pytest.approx(scatter, rel=0.02)


def test_a_parabola_that_is_no_cosine_is_never_sure():
    assert np.isinf(parabola_gain_std(np.array([[1.0, 0.0, 0.2]]), np.eye(3)[None]))[0]


def test_the_std_of_offsets_is_that_of_many_noisy_pairs():
    random = np.random.default_rng(1)
    pairs = np.array([[[1.0, -0.3], [0.4, 0.1]]])
    root = 0.003 * random.normal(size=(6, 6))
    values = np.concatenate([pairs.reshape(-1), np.zeros(2)])
    noisy = values + random.normal(size=(40_000, 6)) @ root.T
    angle = np.arctan2(noisy[:, [1, 3]], noisy[:, [0, 2]])
    scatter = np.std([angle[:, 0], angle[:, 1] - angle[:, 0]], axis=1)
    predicted = direction_std(pairs, (root @ root.T)[None])[0]
    assert predicted == pytest.approx(scatter, rel=0.02)


def test_it_ends_when_sure_but_not_before_some_waves():
    std = np.array([0.02, 0.001])
    settled = Settled(lambda: std, 0.01, period=4.0)
    assert not settled(20.0)
    std[0] = 0.005
    assert settled(20.0)
    assert not settled(8.0)
