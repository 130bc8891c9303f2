"""Optimal filtering: one mass over a grid of noise, and the whole load problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.errors import ArgumentError, RecordingError
from armwise.loads import (
    OptimalFilter,
    design_load_excitation,
    identify_load,
    mass_by_differentiation,
    mass_by_integration,
    mass_by_optimal_filter,
    optimal_filter,
)
from armwise.loads.optimal_filter import MassEstimate, redundant_noise
from armwise.recordings import NoiseSpectra, Samples
from papers.mass_trials import (
    Trial,
    attenuation,
    grid_trial,
    signals,
)
from tests.loads import rig


def _no_noise(noise: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.zeros((noise.shape[2], noise.shape[2]))


def _white(f: np.ndarray, velocity: float, force: float) -> NoiseSpectra:
    one = np.ones_like(f)
    return NoiseSpectra(f, one, one, one, velocity * one, force * one, one)


def test_without_noise_all_three_find_the_mass() -> None:
    v, a = signals(np.random.default_rng(0), 1000)
    flat = _white(np.linspace(0.1, 50, 500), 1e-12, 1e-12)
    assert mass_by_differentiation(2.5 * a, v, 100.0) == pytest.approx(2.5, rel=1e-6)
    assert mass_by_integration(2.5 * a, v, 100.0) == pytest.approx(2.5, rel=1e-6)
    estimate = mass_by_optimal_filter(2.5 * a, v, 100.0, flat)
    assert estimate.mass == pytest.approx(2.5, rel=1e-6)


def test_the_filter_differentiates_slowly_and_integrates_fast() -> None:
    """Ch. 5.3: 1/√(ω²+1) on the force, ω/√(ω²+1) on the velocity, for unit noise."""
    v, a = signals(np.random.default_rng(0), 2000)
    noise = _white(np.linspace(0.05, 50, 1000), 1e-3, 1e-3)
    estimate: MassEstimate = mass_by_optimal_filter(a, v, 100.0, noise)
    omega = 2 * np.pi * estimate.frequency
    shape = 1 / np.sqrt(estimate.mass**2 * omega**2 + 1)
    assert estimate.force_filter == pytest.approx(shape / shape.max(), rel=1e-3)
    assert estimate.velocity_filter == pytest.approx(omega * estimate.force_filter)
    low, high = estimate.frequency < 0.05, estimate.frequency > 20
    assert np.ptp(estimate.force_filter[high] * omega[high]) < 0.01
    assert np.all(estimate.force_filter[low] > 0.95)


@pytest.mark.slow
def test_it_is_best_in_every_cell_and_plain_bias_is_as_theory_says() -> None:
    """Issue 5, line 2; the whole grid is in `armwise papers atkeson1986`."""
    for velocity, force in ((0.02, 0.3), (0.1, 0.1), (0.3, 1.0)):
        trial: Trial = grid_trial(velocity, force, runs=100, seed=1)
        assert trial.rmse[2] <= min(trial.rmse[:2]), (velocity, force, trial)
        for k, expected in enumerate(attenuation(velocity)):
            spread = trial.std[k] / np.sqrt(100)
            assert trial.mean[k] == pytest.approx(expected, abs=4 * spread + 0.005)
        assert trial.mean[2] == pytest.approx(1.0, abs=4 * trial.std[2] / 10 + 0.005)


@pytest.mark.slow
def test_noise_of_the_motion_is_taken_out_of_the_regressor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ten parameters: without total least squares inertia comes out too small."""
    noisy = []
    for seed in range(5):
        data = rig.samples(rig.BRICK, duration=6.0, bias=1.0, seed=seed, noise=0.3)
        error = 2e-3 * np.random.default_rng(seed + 100).normal(size=data.q.shape)
        noisy.append(replace(data, q=data.q + error))

    def shortfall() -> float:
        method = OptimalFilter(2e-3)
        loads = [identify_load(d, rig.puma(), method=method).parameters for d in noisy]
        errors = [x.vector - rig.BRICK.vector for x in loads]
        return float(-np.mean(errors, axis=0)[[4, 7, 9]].sum())

    corrected = shortfall()
    monkeypatch.setattr(optimal_filter, "_gram", _no_noise)
    plain = shortfall()
    assert plain > 0.003
    assert abs(corrected) < 0.6 * plain


def _both_measured(position: float, velocity: float, seed: int) -> Samples:
    data = rig.samples(rig.BRICK, duration=6.0, bias=1.0, seed=seed, noise=0.3)
    random = np.random.default_rng(seed + 50)
    q, qd = (
        x + std * random.normal(size=x.shape)
        for x, std in ((data.q, position), (data.qd, velocity))
    )
    return replace(data, q=q, qd=qd)


@pytest.mark.parametrize(("position", "velocity"), [(2e-3, 0.05), (1e-4, 0.02)])
def test_the_noise_of_both_comes_from_their_difference(
    position: float, velocity: float
) -> None:
    q, qd = redundant_noise(_both_measured(position, velocity, 0))
    # 1200 samples: a level is known to some five per cent.
    assert q == pytest.approx(position, rel=0.2)
    assert qd == pytest.approx(velocity, rel=0.2)


def test_what_is_found_is_as_good_as_what_is_known() -> None:
    """Inertia: found as known, and far better than by positions alone."""

    def error(method: OptimalFilter) -> float:
        loads = [
            identify_load(_both_measured(2e-3, 0.05, seed), rig.puma(), method=method)
            for seed in range(2)
        ]
        wrong = [x.parameters.vector - rig.BRICK.vector for x in loads]
        return float(np.sqrt(np.mean(np.square(wrong)[:, [4, 7, 9]])))

    known, found = error(OptimalFilter(2e-3, 0.05)), error(OptimalFilter())
    assert found < 1.3 * known
    assert found < 0.3 * error(OptimalFilter(2e-3))


def test_velocities_that_are_no_measurement_are_refused() -> None:
    data = rig.samples()
    slopes = optimal_filter._slope(data.q, 200.0)
    with pytest.raises(RecordingError, match="Velocities were not measured"):
        identify_load(replace(data, qd=slopes), rig.puma(), method=OptimalFilter())


def test_two_signals_of_other_lengths_are_refused() -> None:
    with pytest.raises(ArgumentError, match="two signals of one length"):
        mass_by_integration(np.zeros(100), np.zeros(99), 100.0)


def test_a_designed_motion_keeps_limits_and_tells_more() -> None:
    arm = rig.puma()
    plan = design_load_excitation(arm, "wrist", duration=8.0, candidates=60, seed=1)
    t = np.linspace(0.0, 8.0, 2000)
    q, qd, qdd = plan.motion.sample(t)
    assert np.all(q <= arm.limits("upper"))
    assert np.all(q >= arm.limits("lower"))
    assert np.all(np.abs(qd) <= arm.limits("velocity"))
    assert np.all(np.abs(qdd) <= arm.limits("acceleration"))
    assert np.abs(qd[[0, -1]]).max() < 1e-6
    hasty = design_load_excitation(arm, "wrist", duration=8.0, candidates=2, seed=1)
    assert plan.std[4:].max() < hasty.std[4:].max()
    with pytest.raises(ArgumentError, match="three harmonics"):
        design_load_excitation(arm, harmonics=2)
