"""Series begin and end at rest; bounds are the arm's, or assumed and said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import Limits, load_arm
from armwise.errors import ArgumentError
from armwise.excitation.bounds import bounds_of
from armwise.excitation.series import RestingSeries, choose_harmonics
from tests.excitation.arms_for_excitation import tree

RNG = np.random.default_rng(2)


def series_of(name="panda", duration=7.0, harmonics=6):
    return RestingSeries(bounds_of(load_arm(name)), duration, harmonics)


def test_every_series_begins_and_ends_at_rest():
    series = series_of()
    z = RNG.normal(size=(7, series.free))
    motion = series.motion(z)
    for t in (0.0, 7.0):
        sample = motion.sample(t)
        np.testing.assert_allclose(sample.qd, 0.0, atol=1e-12)
        np.testing.assert_allclose(sample.qdd, 0.0, atol=1e-11)
    assert np.abs(motion.sample(1.3).qd).min() > 0.01


def test_basis_is_the_motion():
    series = series_of()
    z = RNG.normal(size=(7, series.free))
    times = np.linspace(0.1, 6.9, 23)
    states = series.basis(times).states(series.coefficients(z))
    for ours, theirs in zip(states, series.motion(z).sample(times), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_gradients_are_carried_back_by_the_transpose():
    series = series_of()
    basis = series.basis(np.linspace(0.0, 7.0, 31))
    dz = RNG.normal(size=(7, series.free))
    weights = RNG.normal(size=(3, 31, 7))
    moved = basis.states(series.coefficients(dz))
    at_zero = basis.states(series.coefficients(np.zeros_like(dz)))
    forward = sum(
        np.vdot(w, a - b) for w, a, b in zip(weights, moved, at_zero, strict=True)
    )
    back = series.pull_back(basis.gather(tuple(weights)))
    assert np.vdot(back, dz) == pytest.approx(forward, rel=1e-9)


def test_harmonics_follow_limits_and_duration():
    panda = bounds_of(load_arm("panda"))
    assert choose_harmonics(panda, 0.5) < choose_harmonics(panda, 5.0) <= 25
    slow = replace(panda, acceleration=0.01 * panda.acceleration)
    assert choose_harmonics(slow, 20.0) < choose_harmonics(panda, 20.0)


def test_limits_of_the_arm_are_taken_as_they_are():
    arm = load_arm("panda")
    bounds = bounds_of(arm)
    assert bounds.notes == ()
    for key in ("lower", "upper", "velocity", "acceleration", "effort"):
        np.testing.assert_array_equal(getattr(bounds, key), arm.limits(key))


def test_missing_limits_are_assumed_and_said():
    bounds = bounds_of(tree())
    for key in ("lower", "upper", "velocity", "acceleration"):
        assert np.all(np.isfinite(getattr(bounds, key)))
    assert np.all(np.isinf(bounds.effort))
    assert len(bounds.notes) == 4
    assert all("rod" in note for note in bounds.notes)


def test_a_follower_narrows_its_leader():
    bounds = bounds_of(tree(Limits(-1.0, 1.0, 2.0, 10.0, 5.0)))
    # follower = −2 left + 0.1 within [−1, 1]: left within [−0.45, 0.55].
    left = 1
    assert bounds.lower[left] == pytest.approx(-0.45)
    assert bounds.upper[left] == pytest.approx(0.55)
    assert bounds.velocity[left] == pytest.approx(1.0)
    assert bounds.lower[0] == -1.0


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(1.0, -1.0), "'trunk': its range from 1 to -1"),
        (Limits(0.5, 0.5), "leaves no room"),
        (Limits(-1.0, 1.0, velocity=0.0), "velocity limit is 0"),
        (Limits(-1.0, 1.0, acceleration=-2.0), "acceleration limit is -2"),
        (Limits(-1.0, 1.0, effort=0.0), "effort limit is 0"),
        (Limits(float("nan"), 1.0), "leaves no room"),
    ],
)
def test_limits_without_room_are_refused(limits, said):
    with pytest.raises(ArgumentError, match=said):
        bounds_of(tree(limits))
