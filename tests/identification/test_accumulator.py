"""The accumulator: exact, mergeable, and indifferent to how a log is cut."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.identification import Accumulator, Columns, accumulate
from armwise.regression.columns import BLOCK


def information(accumulator):
    return [factor.T @ factor for factor in accumulator.factors]


def close(a, b, tolerance=1e-11):
    for x, y in zip(a, b, strict=True):
        assert np.abs(x - y).max() <= tolerance * np.abs(y).max()


@pytest.fixture(scope="module")
def columns(arm):
    return Columns(arm)


def test_factors_are_those_of_the_dense_regressor(columns, arm, data):
    Y = aw.Dynamics(arm).regressor(data.q, data.qd, data.qdd)
    filled = accumulate(columns, data)
    for i, (support, factor) in enumerate(
        zip(columns.support, filled.factors, strict=True)
    ):
        assert np.allclose(np.tril(factor, -1), 0)
        G = columns.user[support]
        dense = np.column_stack([Y[:, i], data.tau[:, i]])
        left = factor @ np.block(
            [[G, np.zeros((len(G), 1))], [np.zeros((1, G.shape[1])), np.ones((1, 1))]]
        )
        close([left.T @ left], [dense.T @ dense])


@pytest.mark.parametrize("cut", [1, 777, BLOCK, 1999])
def test_parts_merge_to_the_whole(columns, data, cut):
    whole = accumulate(columns, data)
    merged = accumulate(columns, data[:cut]).merge(accumulate(columns, data[cut:]))
    close(information(merged), information(whole))
    assert merged.samples == whole.samples == len(data)


def test_samples_may_come_in_drops(columns, data):
    online = Accumulator(columns)
    for start in range(0, len(data), 333):
        online.add(data[start : start + 333])
    close(information(online), information(accumulate(columns, data)))


def test_a_log_that_starts_at_rest_loses_no_digits(columns, arm, data):
    """The preconditioner must not trust a stretch that shows nothing."""
    rest = aw.Samples(
        time=data.time, q=data.q[:1] + 0 * data.q, qd=0 * data.qd, qdd=0 * data.qdd,
        tau=data.tau,
    )  # fmt: skip
    drops = Accumulator(columns).add(rest).add(data)
    joined = accumulate(columns, [rest, data])
    close(information(drops), information(joined))


def test_forgetting_scales_information(columns, data):
    filled = accumulate(columns, data)
    before = information(filled)
    filled.forget(0.25)
    close(information(filled), [0.25 * x for x in before])


def test_weights_multiply_rows(columns, data):
    weights = np.random.default_rng(0).uniform(0.5, 1.5, data.tau.shape)
    twice = accumulate(columns, data, [2 * weights])
    once = accumulate(columns, data, [weights])
    close(information(twice), [4 * x for x in information(once)])
