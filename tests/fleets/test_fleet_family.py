"""What robots share, how they spread, who differs: known truths are found again."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from armwise.fleets.hierarchy import Hierarchy, fit_family, largest_score

BASE = 8


def differing_robots(family: Hierarchy, false_alarms: float) -> list[int]:
    limit = largest_score(false_alarms, family.scores.size, family.freedom)
    return [int(r) for r in np.flatnonzero(np.abs(family.scores).max(axis=1) > limit)]


def spread(seed: int = 0) -> np.ndarray:
    root = np.random.default_rng(seed).normal(size=(BASE, BASE))
    return root @ root.T / BASE + 0.3 * np.eye(BASE)


def robots(rng, count, noise=0.3, omega=None):
    """Estimates of robots around a mean of (1, 2, …), and their true deviations."""
    omega = spread() if omega is None else omega
    own = rng.multivariate_normal(np.zeros(BASE), omega, count)
    levels = noise * rng.uniform(0.5, 2.0, count)
    fits = []
    for deviation, level in zip(own, levels, strict=True):
        values = np.arange(1.0, BASE + 1) + deviation + level * rng.normal(size=BASE)
        estimate = SimpleNamespace(
            base_values=values, base_covariance=level**2 * np.eye(BASE)
        )
        # Residuals hang together: variances are four times the textbook's.
        plain = 0.25 * level**2 * np.eye(BASE)
        fits.append(SimpleNamespace(estimate=estimate, plain_covariance=plain))
    return fits, own


def test_mean_and_spread_are_found():
    fits, _ = robots(np.random.default_rng(1), 2000)
    found = fit_family(fits, 1e-3)
    assert np.all(np.abs(found.mean - np.arange(1.0, BASE + 1)) < 5 * found.mean_std)
    np.testing.assert_allclose(found.spread, spread(), atol=0.15)
    assert found.is_alike.all()


def test_shrunk_deviations_are_nearer_to_the_truth_and_know_how_near():
    fits, own = robots(np.random.default_rng(2), 400, noise=1.0)
    found = fit_family(fits, 1e-3)
    raw = np.mean((found.differences - own) ** 2)
    shrunk = np.mean((found.deviations - own) ** 2)
    assert shrunk < 0.7 * raw
    inside = np.abs(found.deviations - own) < 1.96 * found.deviation_std
    assert 0.92 < inside.mean() < 0.98


def test_robots_that_differ_do_not_pull():
    fits, _ = robots(np.random.default_rng(3), 60)
    before = fit_family(fits, 1e-3)
    for k in (5, 17, 40):
        fits[k].estimate.base_values[2] += 40.0
    after = fit_family(fits, 1e-3)
    assert differing_robots(after, 1e-3) == [5, 17, 40]
    assert np.flatnonzero(~after.is_alike).tolist() == [5, 17, 40]
    assert np.abs(after.mean - before.mean).max() < 0.1
    np.testing.assert_allclose(after.spread, before.spread, atol=0.4)


@pytest.mark.parametrize("count", [10, 60])
def test_false_alarms_are_as_rare_as_asked(count):
    rng = np.random.default_rng(4)
    fleets = 300
    alarms = sum(
        bool(differing_robots(fit_family(robots(rng, count)[0], 0.1), 0.1))
        for _ in range(fleets)
    )
    assert alarms <= 0.1 * fleets + 3 * np.sqrt(0.1 * 0.9 * fleets)


def test_errors_that_all_share_do_not_hide_a_difference():
    rng = np.random.default_rng(5)
    fits, _ = robots(rng, 60, noise=0.01, omega=0.01 * np.eye(BASE))
    for one in fits:  # all estimates are off alike, and know it
        one.estimate.base_values += 2.0
        one.estimate.base_covariance = 4.0 * np.eye(BASE)
        one.plain_covariance = 1.0 * np.eye(BASE)
    fits[7].estimate.base_values[0] += 1.0
    assert differing_robots(fit_family(fits, 1e-3), 1e-3) == [7]


def test_what_a_robot_does_not_know_counts_for_nothing():
    rng = np.random.default_rng(6)
    fits, _ = robots(rng, 40)
    for one in fits[:5]:
        one.estimate.base_values[3] = 1e3
        for name, holder in (("base_covariance", one.estimate),
                             ("plain_covariance", one)):  # fmt: skip
            covariance = getattr(holder, name).copy()
            covariance[3, 3] = np.inf
            setattr(holder, name, covariance)
    found = fit_family(fits, 1e-3)
    assert not differing_robots(found, 1e-3)
    assert abs(found.mean[3] - 4.0) < 1.0
    assert np.abs(found.scores[:5, 3]).max() < 1e-3
    assert np.all(np.abs(found.deviations[:5, 3]) < 5.0)
    assert np.all(found.deviation_std[:5, 3] > 1.2 * found.deviation_std[5:, 3].max())


def test_a_noisy_robot_is_not_an_unusual_one():
    fits, _ = robots(np.random.default_rng(7), 50, noise=0.05)
    noisy = fits[3]
    noisy.plain_covariance = 25.0 * np.eye(BASE)
    noisy.estimate.base_covariance = 100.0 * np.eye(BASE)
    noisy.estimate.base_values += 15.0
    assert not differing_robots(fit_family(fits, 1e-3), 1e-3)


def test_two_robots_cannot_tell_who_differs():
    fits, _ = robots(np.random.default_rng(8), 2)
    fits[0].estimate.base_values[0] += 5.0
    assert not differing_robots(fit_family(fits, 1e-3), 1e-3)
    assert largest_score(1e-3, 10, 0) == np.inf
