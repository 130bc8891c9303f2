"""Gating is a partition of unity over joint space."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armwise.control.mixture import Gating
from armwise.errors import ArgumentError

BOX = (np.array([-1.0, 0.0]), np.array([2.0, 2.5]))


@given(experts=st.integers(1, 12), seed=st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_the_weights_add_up_to_one_everywhere(experts: int, seed: int) -> None:
    gating = Gating.over(*BOX, experts)
    q = np.random.default_rng(seed).uniform(-100, 100, size=(7, 3, 2))
    weights = gating.weights(q)
    assert weights.shape == (7, 3, experts)
    np.testing.assert_allclose(weights.sum(axis=-1), 1.0)
    assert np.all(weights >= 0)


def test_every_expert_rules_at_its_own_center() -> None:
    gating = Gating.over(*BOX, 8, overlap=0.2)
    weights = gating.weights(gating.centers)
    assert np.array_equal(weights.argmax(axis=-1), np.arange(8))
    assert np.all(weights.max(axis=-1) > 0.9)


def test_centers_fill_the_box_evenly() -> None:
    centers = Gating.over([0.0], [8.0], 8).centers
    np.testing.assert_allclose(np.sort(centers[:, 0]), np.arange(8) + 0.5)


def test_a_narrow_width_is_a_hard_border_and_a_wide_one_a_mean() -> None:
    hard = Gating(np.array([[0.0], [1.0]]), 0.01)
    np.testing.assert_allclose(hard.weights(np.array([0.4])), [1.0, 0.0], atol=1e-12)
    soft = Gating(np.array([[0.0], [1.0]]), 100.0)
    np.testing.assert_allclose(soft.weights(np.array([0.4])), [0.5, 0.5], atol=1e-3)


def test_impossible_partitions_are_named() -> None:
    with pytest.raises(ArgumentError, match="at least one expert"):
        Gating.over(*BOX, 0)
    with pytest.raises(ArgumentError, match="lower < upper"):
        Gating.over(BOX[1], BOX[0], 2)
    with pytest.raises(ArgumentError, match="positive width"):
        Gating(np.zeros((1, 2)), 0.0)
