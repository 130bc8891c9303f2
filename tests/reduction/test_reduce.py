"""Reduction keeps what matters, and says what it costs."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError
from tests.identification.conftest import samples_of, with_drives


@pytest.fixture(scope="module")
def case():
    arm = with_drives(aw.load_arm("puma560"))
    data = samples_of(arm)
    estimate = aw.identify(arm, data, aw.WeightedLeastSquares(), friction="linear")
    return arm, data, estimate


def test_fewer_parameters_predict_nearly_as_well(case):
    arm, data, estimate = case
    small = aw.reduce(estimate, data, threshold=0.01)
    assert small.base.count < 0.8 * estimate.base.count
    assert small.condition_number < estimate.condition_number
    other = samples_of(arm, seed=4, noise=0.0, seed_motion=2)
    assert small.validate(other).relative_error.max() < 0.05


def test_only_leaders_are_left(case):
    _, data, estimate = case
    small = aw.reduce(estimate, data, threshold=0.02)
    assert np.count_nonzero(small.parameters) == small.base.count
    np.testing.assert_allclose(
        aw.Dynamics(small.arm).inverse_dynamics(data.q, data.qd, data.qdd),
        small.predict(data),
        atol=1e-9,
    )


def test_nothing_is_dropped_at_zero(case):
    _, data, estimate = case
    same = aw.reduce(estimate, data, threshold=0.0)
    assert same.base.count == estimate.base.count
    np.testing.assert_allclose(same.base_values, estimate.base_values, rtol=1e-6)


def test_uncertain_ones_go_too(case):
    _, data, estimate = case
    small = aw.reduce(estimate, data, largest_relative_std=0.1)
    assert np.all(small.base_std <= 0.1 * np.abs(small.base_values))


def test_senseless_thresholds_are_refused(case):
    _, data, estimate = case
    with pytest.raises(ArgumentError):
        aw.reduce(estimate, data, threshold=1.5)
