"""One suite that every kind of motion passes."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.errors import ArgumentError
from armwise.motions import (
    Fourier,
    Hold,
    Motion,
    Polynomial,
    Quintic,
    Sequence,
    Sigmoid,
    Sinusoid,
    Triangle,
)

A, B, C = np.array([0.1, -0.5]), np.array([1.2, 0.7]), np.array([-0.3, 0.2])
RNG = np.random.default_rng(3)
MOTIONS = {
    "quintic": Quintic(A, B, 1.7),
    "seventh": Polynomial.seventh_order(A, B, 1.7),
    "spline": Polynomial.through([0, 0.7, 1.1, 2.0], [A, C, B, A]),
    "cubic": Polynomial.through(
        [0, 0.7, 2.0], [A, C, B], 3, [[0.4, -0.2]], [[0.1, 0.3]]
    ),
    "fourier": Fourier(
        A, RNG.normal(size=(2, 4)) / 5, RNG.normal(size=(2, 4)) / 5, 0.5, 1.5
    ),
    "triangle": Triangle(A, B, [1.3, 0.9], 3.0, phase=[0.1, 0.4], rounding=0.1),
    "sharp triangle": Triangle(A, B, [1.3, 0.9], 3.0, phase=[0.1, 0.4]),
    "sigmoid": Sigmoid(A, B, rate=6.0),
    "sinusoid": Sinusoid.mitchell(duration=2.3),
    "rising": Sinusoid.rising(A, B, [2.0, 3.0], 2.0),
    "hold": Hold(A, 0.8),
    "sequence": Sequence((Quintic(A, B, 1.0), Hold(B, 0.5), Quintic(B, C, 1.2))),
}
all_motions = pytest.mark.parametrize("motion", MOTIONS.values(), ids=list(MOTIONS))


def _smooth_times(motion: Motion, step: float) -> np.ndarray:
    """Times whose neighbourhood is free of corners in velocity or acceleration."""
    t = np.linspace(2 * step, motion.duration - 2 * step, 997)
    before, after = motion.sample(t - 2 * step), motion.sample(t + 2 * step)
    scale = 1.0 + np.abs(motion.sample(t).qdd).max()
    smooth = np.abs(after.qdd - before.qdd).max(1) < 1e-2 * scale
    smooth &= np.abs(after.qd - before.qd).max(1) < 10 * step * scale
    return t[smooth]


@all_motions
def test_is_a_motion(motion):
    assert isinstance(motion, Motion)
    assert motion.dof == 2
    assert motion.duration > 0


@all_motions
def test_velocity_and_acceleration_are_derivatives(motion):
    h = 1e-5
    t = _smooth_times(motion, h)
    assert t.size > 900
    before, now, after = (motion.sample(t + d) for d in (-h, 0.0, h))
    np.testing.assert_allclose((after.q - before.q) / (2 * h), now.qd, atol=2e-6)
    np.testing.assert_allclose((after.qd - before.qd) / (2 * h), now.qdd, atol=2e-5)


@all_motions
def test_rests_at_its_ends_outside(motion):
    early, late = motion.sample(-0.5), motion.sample(motion.duration + 0.5)
    np.testing.assert_array_equal(early.q, motion.sample(0.0).q)
    np.testing.assert_array_equal(late.q, motion.sample(motion.duration).q)
    for sample in (early, late):
        assert not sample.qd.any()
        assert not sample.qdd.any()


@all_motions
def test_one_time_or_many_give_the_same(motion):
    t = np.linspace(-0.2, motion.duration + 0.2, 23)
    many = motion.sample(t)
    assert many.q.shape == many.qd.shape == many.qdd.shape == (23, 2)
    one = motion.sample(float(t[7]))
    assert one.q.shape == (2,)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_allclose(a, b[7], rtol=1e-14, atol=1e-15)


@all_motions
def test_refuses_times_that_are_not_numbers(motion):
    with pytest.raises(ArgumentError, match="finite"):
        motion.sample([0.0, np.nan])
