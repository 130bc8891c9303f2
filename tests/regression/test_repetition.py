"""Motions that repeat, and stretches along their period."""

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.dynamics import Dynamics
from armwise.identification import identify
from armwise.motions import random_motion
from armwise.recordings import Samples
from armwise.regression import even_stretches, repetition, stretches_of_period

RATE = 100.0


def positions(periods, duration=6.0, seed=3, noise=0.0):
    motion = replace(random_motion(load_arm("puma560"), seed, duration), periods=1.0)
    time = np.arange(0.0, duration * periods, 1.0 / RATE) % duration
    q = motion.sample(time).q
    return q + np.random.default_rng(0).normal(0.0, noise, q.shape)


@pytest.mark.parametrize("periods", [1.3, 2.0, 7.5])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_the_period_is_found(periods, noise):
    assert repetition(positions(periods, noise=noise)) == pytest.approx(600, abs=2)


def test_what_never_comes_back_does_not_repeat():
    for seed in range(8):
        assert repetition(positions(1.0, duration=20.0, seed=seed)) is None
    assert repetition(np.linspace(0.0, 1.0, 500)[:, None]) is None
    assert repetition(np.zeros((500, 2))) is None
    assert repetition(np.zeros((1, 2))) is None


def test_a_joint_at_rest_hides_no_period():
    q = positions(3.0)
    q[:, 2] = 0.7
    assert repetition(q) == pytest.approx(600, abs=2)


def test_long_runs_are_looked_at_in_steps():
    q = np.repeat(positions(3.0), 50, axis=0)
    assert repetition(q) == pytest.approx(30_000, abs=100)


def test_every_row_is_in_one_stretch_and_its_repetitions_are_in_the_same():
    q = positions(2.5)
    zeros = np.zeros_like(q)
    run = Samples(np.arange(len(q)) / RATE, q, zeros, zeros, zeros)
    cut = stretches_of_period(run, 10)
    number = np.full(len(q), -1)
    for part, k in cut:
        assert np.all(number[part] == -1)
        number[part] = k
    assert set(number) == set(range(10))
    # A sample of rounding at the edges.
    assert np.mean(number[600:] != number[:-600]) < 0.02
    assert stretches_of_period(replace(run, q=positions(2.5)[::-1] * 0.0), 10) is None
    assert stretches_of_period(run, 100) is None  # too short to be predicted


def test_even_stretches_are_equal_and_no_more_than_rows():
    cut = even_stretches(103, 10)
    lengths = [part.stop - part.start for part, _ in cut]
    assert [k for _, k in cut] == list(range(10))
    assert sum(lengths) == 103
    assert max(lengths) - min(lengths) <= 1
    assert len(even_stretches(3, 10)) == 3


def test_periods_of_a_log_do_not_vouch_for_each_other():
    # Friction that no term describes, in a log of four periods: what the fit leaves out
    # of a period it has seen three times, unless it is left out of all of them.
    arm = load_arm("puma560")
    motion = random_motion(arm, 3, 6.0)
    time = np.arange(0.0, 24.0, 1.0 / RATE)
    states = motion.sample(time % 6.0)
    tau = Dynamics(arm).inverse_dynamics(*states) + np.sin(9.0 * states.q)
    tau = tau + np.random.default_rng(1).normal(0.0, 0.05, tau.shape)
    once, always = (
        identify(arm, Samples(time[:n], *(x[:n] for x in states), tau[:n]))
        for n in (600, 2400)
    )
    errors = [np.mean(x.left_out_fits.moving[:, 4]) for x in (once, always)]
    assert errors[1] > 1.02 * np.mean(1.645 * always.fit.rmse)
    np.testing.assert_allclose(errors[1], errors[0], rtol=0.15)
