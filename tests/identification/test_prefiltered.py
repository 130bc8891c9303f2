"""One filter for torque and columns: laws, and what it gains where errors are not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError
from armwise.identification import Prefiltered
from armwise.regression import Columns, Prefilter
from tests.identification.conftest import samples_of, weighted


def test_torque_and_columns_pass_one_filter_that_stops_at_gaps(arm, data):
    """Against a plain convolution of the dense columns, segment by segment."""
    data = aw.Samples.concatenate([data[:1300], data[1310:]])
    assert len(data.segments) == 2
    columns, taps = Columns(arm), np.tile([1.0, -0.6, 0.3], (arm.dof, 1))
    plain = [np.hstack(x) for x in _dense(columns.blocks([data]))]
    blocks = list(Prefilter(taps).blocks(columns, [data]))
    trust = np.concatenate([block.trust for block in blocks])
    for raw, own in zip(plain, _dense(blocks), strict=True):
        filtered = np.hstack(own)
        for part in data.segments:
            x = raw[:, part]
            inner = slice(part.start + 2, part.stop)
            expected = x[:, 2:] - 0.6 * x[:, 1:-1] + 0.3 * x[:, :-2]
            np.testing.assert_allclose(filtered[:, inner], expected, atol=1e-12)
            assert not trust[part.start : part.start + 2].any()
            assert trust[inner].all()


def _dense(blocks):
    return zip(*([x.copy() for x in block.joints] for block in blocks), strict=True)


def test_an_untrusted_row_is_in_no_sum_that_is_trusted(arm):
    """Rows near a reversal have no weight, nor have those that remember them."""
    motion = samples_of(arm, noise=0.0)
    log = aw.Recording.from_arrays(motion.time, q=motion.q, tau=motion.tau)
    data = aw.prepare(log, cutoff_hz=10.0, arm=arm)
    columns = Columns(arm)
    before = np.concatenate([b.trust for b in columns.blocks([data])])
    assert not before.all()
    filtered = Prefilter(np.ones((arm.dof, 3))).blocks(columns, [data])
    after = np.concatenate([b.trust for b in filtered])
    expected = np.minimum(np.minimum(before[2:], before[1:-1]), before[:-2])
    np.testing.assert_array_equal(after[2:], expected)


def test_a_machine_that_shakes_costs_less(described, arm):
    """A hum on every torque: the filter stops it, and intervals stay honest."""
    plain, better = [], []
    for seed in range(2):
        data = samples_of(arm, noise=0.003, seed=seed, seed_motion=seed)
        phase = np.random.default_rng(seed).uniform(0.0, 2.0 * np.pi, arm.dof)
        hum = np.sin(2.0 * np.pi * 6.0 * data.time[:, None] + phase)
        data = replace(data, tau=data.tau + 0.05 * data.tau.std(axis=0) * hum)
        method = Prefiltered(method=aw.WeightedLeastSquares())
        for errors, solver in ((plain, None), (better, method)):
            estimate = weighted(described, data, solver)
            truth = estimate.base.values(arm.parameters)
            errors.append(estimate.base_values - truth)
            z = errors[-1] / estimate.base_std
        assert np.mean(np.abs(z) < 1.96) > 0.85
        assert np.abs(z).max() < 5.0
    ratio = np.linalg.norm(better, axis=0) / np.linalg.norm(plain, axis=0)
    assert np.median(ratio) < 0.8


def test_what_passes_the_filter_is_white(described, arm):
    rng = np.random.default_rng(3)
    data = samples_of(arm, noise=0.0)
    noise = rng.normal(size=data.tau.shape)
    for k in range(1, len(noise)):
        noise[k] = 0.9 * noise[k - 1] + 0.44 * noise[k]
    data = replace(data, tau=data.tau + 0.02 * data.tau.std(axis=0) * noise)
    estimate = weighted(described, data)
    columns = estimate.columns
    weights = columns.user @ estimate.all_parameters
    taps = Prefilter.whitening(columns, [data], weights, 4).taps
    errors = data.tau - estimate.predict(data)
    for own, error in zip(taps, errors.T, strict=True):
        passed = np.convolve(error, own, mode="valid")
        assert np.corrcoef(error[1:], error[:-1])[0, 1] > 0.8
        assert abs(np.corrcoef(passed[1:], passed[:-1])[0, 1]) < 0.1


def test_a_filter_without_memory_is_refused():
    with pytest.raises(ArgumentError, match="at least 1"):
        Prefiltered(order=0)
