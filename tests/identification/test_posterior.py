"""Draws of parameters: bodies that can exist, as uncertain as the estimate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import InertialParameters, load_arm
from armwise.errors import ArmwiseError
from armwise.identification.posterior import _centred
from armwise.plants import perturbed
from tests.identification.conftest import samples_of, weighted

_MAPS = np.stack([InertialParameters(k).pseudo_inertia for k in np.eye(10)])


def thinnest(arm, draws):
    """Smallest eigenvalue of any body, relative to its largest."""
    bodies = np.einsum("nlk,kij->nlij", arm.layout.by_link(draws), _MAPS)
    values = np.linalg.eigvalsh(bodies)
    return values[..., 0] / values[..., -1]


@pytest.fixture(scope="module")
def estimate(described, data):
    return aw.identify(described, data, friction="linear")


def test_every_draw_is_a_body_that_can_exist(estimate):
    draws = estimate.sample(3000, seed=4)
    arm = estimate.prior_arm
    assert draws.shape == (3000, arm.parameters.size)
    assert thinnest(arm, draws).min() > 0
    assert draws[:, arm.layout.non_negative].min() >= 0
    assert all(arm.with_parameters(x).defects() == {} for x in draws[:20])
    assert np.array_equal(draws, estimate.sample(3000, seed=4))
    assert not np.allclose(draws, estimate.sample(3000, seed=5))


def test_intervals_lie_between_the_cut_gaussian_and_the_uncut(estimate):
    posterior = estimate._posterior
    cut, whole = (
        np.mean((draws - estimate.all_parameters) ** 2, axis=0)
        for draws in (posterior.draw(4000, 0), posterior.scatter(8000, 0))
    )
    uncut = np.sum(posterior.uncut**2, axis=1)
    np.testing.assert_allclose(whole, 0.5 * (cut + uncut), rtol=0.15, atol=1e-12)


def test_steps_far_outside_end_inside_all_the_same(estimate):
    posterior = estimate._posterior
    wide = replace(posterior, root=30.0 * posterior.root).draw(300, 0)
    arm = estimate.prior_arm
    assert thinnest(arm, wide[:, : arm.parameters.size]).min() > 0
    assert wide[:, arm.layout.non_negative].min() >= 0


def test_a_body_at_the_edge_in_numbers_that_do_not_scatter_is_drawn_inside():
    """As of a joint that hardly moved: its products of inertia keep a prior's value."""
    slender = InertialParameters.from_pseudo_inertia(np.diag([0.02, 0.03, 0.0, 1.0]))
    mean = slender.vector.copy()
    inside = mean + 1e-6 * InertialParameters.from_pseudo_inertia(np.eye(4)).vector
    size = np.where(np.arange(10) < 4, 0.05, 0.0)
    links, none = np.arange(10)[None], np.zeros(0, dtype=int)
    posterior = _centred(inside, mean, np.diag(size**2), links, none)
    bodies = np.einsum("nk,kij->nij", posterior.draw(100, 0), _MAPS)
    assert np.linalg.eigvalsh(bodies)[:, 0].min() > 0.0


def test_mujoco_accepts_every_draw_even_of_a_fit_at_the_bounds():
    mujoco = pytest.importorskip("mujoco")
    from armwise.plants.mujoco_arm import model_from_arm

    assert mujoco
    # Bodies of the bundled panda have next to no thickness, and no friction.
    truth = load_arm("panda")
    estimate = aw.identify(
        perturbed(truth, 0.2, 1), samples_of(truth, seconds=5.0), friction="linear"
    )
    for draw in estimate.sample(40, seed=0):
        model_from_arm(truth.with_parameters(draw), None, None)


def test_draws_scatter_as_the_covariance_says_far_from_the_bounds(arm, data):
    thick = np.array(arm.parameters)
    rows = arm.layout.by_link(thick)
    # Kilograms of round body: no bound is near.
    rows += InertialParameters.from_center_of_mass(5, np.zeros(3), np.eye(3)).vector
    truth = arm.with_parameters(thick)
    estimate = weighted(truth, samples_of(truth, noise=1e-4))
    draws = estimate._posterior.draw(4000, 0) - estimate.all_parameters
    base = draws @ estimate.base.matrix.T
    # 4000 draws know a deviation to 1 %; Student's factor makes 3 % of it.
    assert base.std(axis=0) == pytest.approx(estimate.base_std, rel=0.12)
    expected = estimate.base_covariance / np.outer(estimate.base_std, estimate.base_std)
    assert np.corrcoef(base.T) == pytest.approx(expected, abs=0.1)
    # Directions that no data show scatter all the same.
    mass = draws[:, truth.layout.mass[-1]]
    assert mass.std() > 0.1


def test_a_scale_that_all_torques_share_does_not_grow_in_draws(arm, data):
    thick = np.array(arm.parameters)
    rows = arm.layout.by_link(thick)
    body = InertialParameters.from_center_of_mass(5, [0.5, 0, 0], 0.2 * np.eye(3))
    rows += body.vector
    truth = arm.with_parameters(thick)
    estimate = weighted(truth, samples_of(truth, noise=1e-4))
    # A torque constant known to a tenth: every combination is off by the same factor.
    scaled = 0.1 * estimate.base_values
    doubtful = replace(
        estimate, base_covariance=estimate.base_covariance + np.outer(scaled, scaled)
    )
    posterior = doubtful._posterior
    along = estimate.base.matrix.T @ scaled / (scaled @ estimate.base_values)
    scale = posterior.draw(2000, 0) @ along
    before = np.linalg.norm(along @ posterior.uncut)
    # Bodies that data leave open are cut by the cone, which moves the scale a little.
    assert abs(scale.mean() - 1.0) < 0.5 * before
    assert scale.std() > 0.75 * before


def test_parameters_that_are_not_estimated_stay(described, data):
    terms = ("links", "viscous", "coulomb", "offset")
    estimate = aw.identify(described, data, friction="linear", terms=terms)
    rotors = described.layout.drive("rotor_inertia")
    draws = estimate.sample(50)
    assert np.array_equal(
        draws[:, rotors], np.tile(described.parameters[rotors], (50, 1))
    )
    assert draws[:, described.layout.drive("coulomb")].std(axis=0).min() > 0


def test_draws_of_a_fit_without_constraints_are_bodies_too(described, data):
    estimate = weighted(described, data)
    assert thinnest(described, estimate.sample(200)).min() > 0


def test_std_of_the_consistent_fit_is_that_of_its_draws(estimate):
    known = np.isfinite(estimate.std)
    assert known.any()
    # The same parameters have one as without constraints, and none is much wider.
    of_base = dict(zip(estimate.base.indices, estimate.base_std, strict=True))
    for k in np.flatnonzero(known):
        assert 0 < estimate.std[k] < 1.6 * of_base[int(k)]


def test_the_band_holds_the_truth_it_says_it_holds(arm, described):
    fractions = []
    unseen = samples_of(arm, seed=7, seconds=10.0, noise=0.0, seed_motion=3)
    for seed in range(4):
        estimate = aw.identify(
            described, samples_of(arm, seed=seed, noise=0.02), friction="linear"
        )
        ideal = estimate.band(unseen, residual=False)
        fractions.append(ideal.holds(unseen.tau).mean())
        measured = estimate.band(unseen)
        assert np.all(measured.width > ideal.width)
    # Four runs of correlated samples: a band a third as wide would hold 40 %.
    assert 0.75 < np.mean(fractions) <= 1.0


def test_what_cannot_be_drawn_is_refused(estimate, data):
    with pytest.raises(ArmwiseError, match="draws cannot be made"):
        estimate.sample(0)
    with pytest.raises(ArmwiseError, match="between 0 and 1"):
        estimate.band(data, level=1.5)
    # Rounding beside a number of 2⁶³ takes every start out of the cone.
    parameters = estimate.all_parameters.copy()
    parameters[estimate.prior_arm.layout.drive("viscous")[0]] = -(2.0**63)
    with pytest.raises(ArmwiseError, match="too far apart"):
        replace(estimate, all_parameters=parameters).sample(1)
