"""One verb: whatever the data come as, one default, and a problem to look at first."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification import FrictionTerm, identify_recordings
from armwise.identification.problem import pose_problem
from armwise.regression import (
    Columns,
    accumulate,
    accumulate_folds,
    even_stretches,
)
from tests.identification.conftest import samples_of, with_drives


@pytest.fixture(scope="module")
def small():
    """A two-link arm with friction: quick."""
    return with_drives(aw.load_arm("two_link_uno"))


def recording_of(arm, seed):
    data = samples_of(arm, seed, seconds=10.0, noise=0.002, seed_motion=seed)
    return aw.Recording.from_arrays(data.time, q=data.q, qd=data.qd, tau=data.tau)


@pytest.fixture(scope="module")
def logs(small):
    return [recording_of(small, seed) for seed in (1, 2)]


def same(one, other):
    np.testing.assert_array_equal(one.all_parameters, other.all_parameters)
    np.testing.assert_array_equal(one.base_std, other.base_std)
    assert one.columns.friction == other.columns.friction


def test_recordings_are_prepared_as_one_would(small, logs):
    prepared = aw.prepare(logs, arm=small)
    same(aw.identify(small, logs), aw.identify(small, prepared))
    one = aw.prepare(logs[0], arm=small)
    same(aw.identify(small, logs[0]), aw.identify(small, [one]))


def test_the_default_is_consistent_with_friction_selected(small, logs):
    data = aw.prepare(logs, arm=small)
    chosen = aw.identification.select_friction(small, data).terms
    explicit = aw.identify(small, data, aw.PhysicallyConsistent(), friction=chosen)
    default = aw.identify(small, data)
    assert default.method == "PhysicallyConsistent"
    assert default.columns.friction == chosen
    np.testing.assert_allclose(default.parameters, explicit.parameters, atol=1e-9)


def test_a_problem_can_be_looked_at_before_it_is_solved(small, logs):
    data = aw.prepare(logs[0], arm=small)
    problem = aw.build_problem(small, data, validation=logs[1])
    assert problem.base.count == len(problem.base.expressions)
    assert np.all((problem.rows > 0) & (problem.rows <= len(data)))
    assert problem.weights.shape == (2,)
    assert len(problem.friction_candidates) == 2 * 15
    assert repr(problem).startswith("Problem(two_link_uno: ")
    assert len(repr(problem)) < 300
    solved = aw.identify(problem)
    same(solved, aw.identify(small, data, validation=logs[1]))
    assert solved.validation.samples == len(solved.validation_samples[0])
    fast = aw.identify(problem, method=aw.WeightedLeastSquares())
    np.testing.assert_allclose(1.0 / fast.torque_std, problem.weights, rtol=1e-12)


def test_friction_is_named_or_listed(small, logs):
    data = aw.prepare(logs, arm=small)
    term = FrictionTerm(0, "joint_1", "quadratic")
    assert aw.identify(small, data, friction="linear").columns.friction == ()
    assert aw.identify(small, data, friction=[term]).columns.friction == (term,)


def test_the_end_can_be_held_out_of_samples_and_recordings(small, logs):
    estimate = aw.identify(small, logs[0], hold_out=0.25)
    fit, rest = (len(runs[0]) for runs in
                 (estimate.samples, estimate.validation_samples))  # fmt: skip
    assert rest == pytest.approx((fit + rest) / 4, abs=1)
    data = aw.prepare(logs[0], arm=small)
    same(estimate, aw.identify(small, data, hold_out=0.25))


def test_the_old_name_works_and_says_what_to_write(small, logs):
    with pytest.warns(DeprecationWarning, match="identify\\(arm, recordings"):
        old = identify_recordings(small, logs[:1], logs[1:])
    new = aw.identify(small, logs[0], validation=logs[1])
    same(old.estimate, new)
    assert old.warnings == tuple(str(warning) for warning in new.warnings)
    assert len(old.fitted) == len(new.samples[0])
    np.testing.assert_array_equal(old.validation.rmse, new.validation.rmse)


def test_a_lag_that_is_known_is_taken(small, logs):
    given = aw.identify(small, logs[0], lag=0.004, friction="linear")
    assert given.samples[0].preparation.lag == 0.004
    same(given, aw.identify(small, aw.prepare(logs[0], arm=small, lag=0.004),
                            friction="linear"))  # fmt: skip
    with pytest.raises(ArgumentError, match="brings its own data"):
        aw.identify(aw.build_problem(small, logs[0]), lag=0.004)


def test_what_cannot_be_meant_is_refused(small, logs):
    data = aw.prepare(logs[0], arm=small)
    with pytest.raises(ArgumentError, match="not both"):
        aw.identify(small, [data, logs[0]])
    with pytest.raises(ArgumentError, match="not str"):
        aw.identify(small, ["log.csv"])
    for asked in ({"cutoff_hz": 5.0}, {"lag": 0.004}):
        with pytest.raises(ArgumentError, match="for recordings, not for samples"):
            aw.identify(small, data, **asked)
    with pytest.raises(ArgumentError, match="no data"):
        aw.identify(small)
    with pytest.raises(ArgumentError, match='"auto", "linear" or a list'):
        aw.identify(small, data, friction="quadratic")
    problem = aw.build_problem(small, data, friction="linear")
    with pytest.raises(ArgumentError, match="brings its own data"):
        aw.identify(problem, data)
    with pytest.raises(ArgumentError, match="brings its own data"):
        aw.identify(problem, friction="linear")


class CountedColumns:
    """Counts how many samples go through `Columns.blocks`."""

    def __init__(self, monkeypatch):
        self.samples = 0
        blocks = Columns.blocks

        def counted(columns, data, rows=None):
            for block in blocks(columns, data, rows):
                self.samples += block.count
                yield block

        monkeypatch.setattr(Columns, "blocks", counted)

    def passes(self, data):
        """How often all samples went through since the last call."""
        passes, self.samples = self.samples / len(data), 0
        return passes


def test_selection_and_fit_are_one_pass_the_review_one_more(small, monkeypatch):
    data = samples_of(small, seconds=60.0, noise=0.002)
    log = aw.Recording.from_arrays(data.time, q=data.q, qd=data.qd, tau=data.tau)
    filtered = aw.prepare(log, 10.0, arm=small)
    counted = CountedColumns(monkeypatch)
    # A first look at parts of a log gives the load of the gears, a second says which
    # joints leave more than noise, a third which waves these show: 3000 rows at most
    # each. If none does, the sums take a thousand more for their scale.
    problem = aw.build_problem(small, data)
    assert counted.passes(data) <= 1.0 + 10_000 / len(data) + 1e-9
    assert not problem.columns.follows_estimate  # or the load would have been settled
    problem = aw.build_problem(small, filtered)
    assert counted.passes(filtered) <= 1.0 + 10_000 / len(filtered) + 1e-9
    aw.identify(problem)
    # The tests of the data look at some rows from all over, however long the log.
    looks = 4 * 1500 + 2 * small.dof * 2 * 1500
    assert 1.0 <= counted.passes(filtered) < 1.0 + 1.1 * looks / len(filtered)


def test_of_a_long_log_candidates_see_only_some_samples(small, monkeypatch):
    data = samples_of(small, seconds=600.0, noise=0.002)
    counted = CountedColumns(monkeypatch)
    thinned = aw.build_problem(small, data)
    assert 1.0 < counted.passes(data) < 1.25
    whole = accumulate(thinned.columns, data)
    for one, other in zip(thinned.accumulator.factors, whole.factors, strict=True):
        np.testing.assert_array_equal(one, other)


def test_thinned_stretches_are_sums_of_some_rows_of_the_whole(small, logs):
    data = aw.prepare(logs, arm=small)
    columns = Columns(small, aw.build_problem(small, data).friction_candidates)
    count, step = 3, 4
    every = np.zeros((len(data), columns.support[0].size + 1))
    for block in columns.blocks([data]):
        every[block.rows] = (block.joints[0] * block.trust[:, 0]).T
    cut = even_stretches(len(data), count)
    stretches, total = accumulate_folds(columns, data, cut, step)
    edges = np.round(np.arange(count + 1) * len(data) / count).astype(int)
    count, whole = 0, 0.0
    for k, inner in enumerate(stretches.fitted[0]):
        rows = every[edges[k] : edges[k + 1] : step]
        gram = rows.T @ rows
        assert np.abs(inner - gram).max() < 1e-12 * np.abs(gram).max()
        count, whole = count + len(rows), whole + gram
    assert total.samples == count
    R = total.factors[0]
    assert np.abs(R.T @ R - whole).max() < 1e-9 * np.abs(whole).max()


def test_stretches_add_up_to_the_whole(small, logs):
    data = aw.prepare(logs, arm=small)
    columns = Columns(small, aw.build_problem(small, data).friction_candidates)
    cut = even_stretches(len(data), 4)
    stretches, whole = accumulate_folds(columns, data, cut)
    assert len(stretches) == 4
    direct = accumulate(columns, data)
    assert whole.samples == direct.samples == len(data)
    np.testing.assert_array_equal(whole.trusted, direct.trusted)
    np.testing.assert_allclose(whole.torque, direct.torque, rtol=1e-9)
    blind = accumulate(_Trusting(columns), data)
    for grams, sums in (
        (stretches.fitted, direct),
        (stretches.fitted, whole),
        (stretches.every, blind),
    ):
        for gram, R in zip(grams, sums.factors, strict=True):
            scale = np.abs(R.T @ R).max()
            assert np.abs(gram.sum(axis=0) - R.T @ R).max() < 1e-11 * scale


class _Trusting:
    """Columns whose rows are all trusted."""

    def __init__(self, columns):
        self._columns, self.support = columns, columns.support

    def blocks(self, data):
        for block in self._columns.blocks(data):
            yield replace(block, trust=None)


def test_selected_columns_are_a_submatrix_of_the_candidates(small, logs):
    data = aw.prepare(logs, arm=small)
    candidates = aw.build_problem(small, data).friction_candidates
    wide = Columns(small, candidates, fits_reversals=False)
    narrow = replace(wide, friction=(candidates[7], candidates[2]))
    direct = pose_problem(narrow, [data]).accumulator
    restricted = pose_problem(wide, [data]).accumulator.restrict(narrow)
    for one, other in zip(restricted.factors, direct.factors, strict=True):
        scale = np.abs(other.T @ other).max()
        assert np.abs(one.T @ one - other.T @ other).max() < 1e-11 * scale
    np.testing.assert_array_equal(restricted.trusted, direct.trusted)


def test_a_residual_that_is_noise_needs_no_friction_candidates(small):
    """Where nothing follows the motion no term is tried; where something does, all."""
    data = samples_of(small, seconds=60.0, noise=0.05)
    assert aw.identification.select_friction(small, data).tried == 0
    bent = data.tau.copy()
    bent[:, 0] += 1.0 * data.qd[:, 0] * np.abs(data.qd[:, 0])
    followed = replace(data, tau=bent)
    selection = aw.identification.select_friction(small, followed)
    assert {term.joint for term in selection.candidates} == {0}
    assert {term.joint for term in selection.terms} == {0}


def test_fewer_torques_than_unknowns_are_refused(small):
    data = samples_of(small, seconds=5.0)
    with pytest.raises(NotIdentifiable, match="base parameters: the data are too sho"):
        aw.identify(small, data[:4])
