"""Fits without a stretch of the data, and bands from what they miss of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import armwise as aw
from armwise.identification import part_masks, read_estimate, write_estimate
from armwise.recordings import ERROR_LEVELS, error_within
from armwise.regression import FrictionTerm

from .conftest import samples_of, weighted


def test_a_fit_without_a_stretch_is_the_fit_to_the_others(described, arm):
    data = samples_of(arm, seconds=9.0)  # shorter than the motion's period of 10 s
    fits = weighted(described, data).left_out_fits
    assert len(fits.parameters) == 10
    for k in (0, 4, 9):
        start, stop = 90 * k, 90 * (k + 1)
        rest = [run for run in (data[:start], data[stop:]) if len(run)]
        alone = weighted(described, rest)
        mine, theirs = (
            aw.identification.predict_torque(alone.columns, x, data)
            for x in (fits.parameters[k], alone.all_parameters)
        )
        np.testing.assert_allclose(mine, theirs, atol=1e-6 * np.abs(theirs).max())


def test_a_consistent_refit_is_near_the_consistent_fit_to_the_others(described, arm):
    """To first order: far nearer to it than to the fit without constraints."""
    data = samples_of(arm, seconds=9.0, noise=0.05)
    problem = aw.build_problem(described, data, friction="linear")
    method = aw.PhysicallyConsistent()
    fit = method.solve(problem).parameters
    (same,) = method.refits(problem, [problem.accumulator])
    rest = aw.build_problem(described, [data[:270], data[360:]], friction="linear")
    exact = method.solve(rest).parameters
    (near,) = method.refits(problem, [rest.accumulator])
    free = aw.WeightedLeastSquares().solve(rest).values

    def torque(parameters):
        return aw.identification.predict_torque(problem.columns, parameters, data)

    scale = np.abs(torque(fit)).max(axis=0)
    change = np.abs((torque(exact) - torque(fit)) / scale).mean()
    # The fit that steps start from stays a thousandth above the minimum of its cost.
    assert np.abs((torque(same) - torque(fit)) / scale).mean() < 0.05 * change
    off = np.abs((torque(near) - torque(exact)) / scale).mean()
    apart = np.abs((torque(rest.parameters(free)) - torque(exact)) / scale).mean()
    assert off < 0.5 * change
    assert off < 0.5 * apart


def test_the_band_is_wide_where_stretches_left_out_were_missed(described, arm):
    """Friction that turns back as it likes: errors there, and none on the way."""
    both = samples_of(arm, seed=1, noise=1e-3, seconds=19.0)
    turns = part_masks(both)[2]
    rng = np.random.default_rng(2)
    extra = np.where(turns, 0.3 * rng.normal(size=turns.shape), 0.0)
    both = replace(both, tau=both.tau + extra * np.abs(both.tau).max(axis=0))
    fitted, unseen = both.split(0.5)
    band = weighted(described, fitted).band(unseen)
    width = band.upper - band.lower
    turns = part_masks(unseen)[2]
    for j in range(arm.dof):
        assert width[turns[:, j], j].mean() > 5.0 * width[~turns[:, j], j].mean()
    inside = (unseen.tau >= band.lower) & (unseen.tau <= band.upper)
    assert 0.8 < inside[turns].mean() < 0.97
    assert inside[~turns].mean() > 0.85


def test_errors_of_the_fit_and_of_stretches_left_out_enclose_the_noise(described, arm):
    """A short log: the fit follows its noise, and fits without a tenth are far off."""
    size = np.abs(samples_of(arm, noise=0.0, seconds=2.0).tau).max(axis=0)
    shown, fitted = [], []
    for seed in range(8):
        data = samples_of(arm, seed=seed, noise=0.02, seconds=2.0)
        estimate = weighted(described, data)
        shown.append(estimate.left_out_fits.moving[:, ERROR_LEVELS.index(0.9)])
        fitted.append(np.quantile(np.abs(data.tau - estimate.predict(data)), 0.9, 0))
    noise = 1.645 * 0.02 * size
    assert np.mean(np.array(fitted) / noise) < 0.97
    assert 0.97 < np.mean(np.array(shown) / noise) < 1.03


def test_a_file_keeps_the_fits_that_left_out(described, data, tmp_path):
    estimate = weighted(described, data)
    write_estimate(estimate, tmp_path / "e.json")
    again = read_estimate(tmp_path / "e.json")
    one, other = (x.band(data, 0.8).upper for x in (estimate, again))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_many_short_runs_are_left_out_in_groups(described, arm):
    runs = [samples_of(arm, seed=k, seconds=1.0, seed_motion=k) for k in range(25)]
    fits = weighted(described, runs).left_out_fits
    assert 4 <= len(fits.parameters) <= 10


def test_too_few_samples_leave_nothing_out(described, arm):
    data = samples_of(arm, seconds=1.2)
    estimate = weighted(described, [data[:60], data[60:]])
    short = replace(estimate.solved[0], data=(data[:3],))
    method, fit = estimate.solved[1], estimate.all_parameters
    assert aw.identification.left_out.leave_out(short, method, fit) is None
    blind = replace(estimate, solved=None)
    assert np.all(blind.band(data).width > 0)


def test_errors_are_interpolated_between_levels():
    errors = np.array([np.arange(1.0, 8.0), np.arange(2.0, 16.0, 2.0)])
    np.testing.assert_allclose(error_within(errors, 0.9), errors[:, 4])
    np.testing.assert_allclose(error_within(errors, 0.25), 0.5 * errors[:, 0])
    assert error_within(errors, 0.9999).tolist() == [7.0, 14.0]
    assert len(ERROR_LEVELS) == 7


def test_draws_keep_torques_whatever_other_friction_terms_would_do(described, data):
    """Parameters that go with other terms are far off without these terms."""
    estimate = weighted(described, data)
    leaders = [estimate.base.names[i] for i in estimate.base.indices]
    row = leaders.index("joint_2.coulomb")
    effects = np.zeros((len(leaders), 1))
    effects[row] = 5.0
    widened = replace(
        estimate,
        base_covariance=estimate.base_covariance + effects @ effects.T,
        same_effects=effects,
        friction_effects=effects,
    )
    k = described.parameter_names.index("joint_2.coulomb")
    assert widened.base_std[row] > 4.9
    # So many that how a machine rounds, which other draws follow from, tells nothing.
    before, after = (one.sample(10_000)[:, k] for one in (estimate, widened))
    np.testing.assert_allclose(after.std(), before.std(), rtol=0.05)
    np.testing.assert_allclose(after.mean(), before.mean(), atol=before.std())


def test_a_band_knows_that_friction_may_change_otherwise_in_another_log(arm):
    """Friction falls with time; what is taken for it falls with work."""
    rng = np.random.default_rng(0)

    def worked(seconds_to_a_second):
        data = samples_of(arm, noise=0.003, seconds=60.0)
        data = replace(
            data,
            qd=data.qd * seconds_to_a_second,
            qdd=data.qdd * seconds_to_a_second**2,
        )
        falls = 1.0 - 0.5 * -np.expm1(-data.time / 10.0)
        tau = aw.Dynamics(arm).inverse_dynamics(data.q, data.qd, data.qdd)
        viscous = arm.parameters[arm.layout.drive("viscous")]
        tau = tau + (falls[:, None] - 1.0) * viscous * data.qd
        noise = 0.003 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
        return replace(data, tau=tau + noise)

    names = [arm.joints[j].name for j in range(arm.dof)]
    terms = [FrictionTerm(j, n, "viscous_warming", 10.0) for j, n in enumerate(names)]
    estimate = aw.identify(arm, worked(1.0), friction=terms)
    other = worked(0.5)
    assert estimate.band(other).holds(other.tau).mean() > 0.85
    fits = estimate.left_out_fits
    assert fits is not None
    narrow = replace(estimate, known_left_out=replace(fits, steady=None))
    assert narrow.band(other).holds(other.tau).mean() < 0.8
