"""Chapter 6 of atkeson1986, and what an identified model is worth, as rows."""

from __future__ import annotations

import pytest

from papers import atkeson_panda, learning_trials
from papers.learning_trials import PUBLISHED, norm_optimal_errors


def test_table_6_1_reaches_the_noise_by_the_fourth_attempt() -> None:
    learned = learning_trials.practise().learned
    assert learned.trials == 4
    assert learned.overall_error[0] > 5 * learned.overall_error[3]
    assert learned.overall_error[3] < 1.5 * learned.overall_floor


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_does_so_for_other_wrong_models(seed: int) -> None:
    learned = learning_trials.practise(trials=3, seed=seed).learned
    assert learned.overall_error[0] > 5 * learned.overall_error[2]


def test_the_exact_model_is_exact_after_one_trial() -> None:
    errors = learning_trials.practise_exactly().overall_error
    assert errors[1] < 1e-6 * errors[0]


def test_the_decoupled_model_never_improves_and_that_is_told() -> None:
    case = learning_trials.decoupled_case()
    assert case.poor.overall_error[-1] >= case.poor.overall_error[0]
    assert not case.told.is_recommended
    assert case.told_full.is_recommended
    good = case.good
    assert good.overall_error[1] < 1e-3 * good.overall_error[0]


def test_the_julia_package_s_numbers() -> None:
    assert norm_optimal_errors() == pytest.approx(PUBLISHED, abs=6e-4)


@pytest.mark.slow
def test_an_identified_panda_tracks_better_and_practice_helps_further() -> None:
    outcome = atkeson_panda.compare(atkeson_panda.identified_panda(1.0), trials=4)
    assert outcome.pd > 5 * outcome.identified
    assert outcome.practised[0] > 3 * outcome.practised.min()
