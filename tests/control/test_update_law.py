"""The laws every update rule obeys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.control.adaptation import (
    LARGEST_GROWTH,
    Adaptation,
    UpdateLaw,
    outside_dead_band,
)
from armwise.errors import ArgumentError

LAWS = {
    "gradient": UpdateLaw.gradient(2.0),
    "diagonal gradient": UpdateLaw.gradient(np.array([1.0, 2.0, 3.0])),
    "least squares": UpdateLaw.least_squares(5.0),
    "exponential": UpdateLaw.exponential(5.0, 0.3),
    "bounded gain": UpdateLaw.bounded_gain(5.0, 0.3, 20.0),
}
TRUTH = np.array([1.0, -2.0, 0.5])


def excitation(rng: np.random.Generator, batch: tuple[int, ...] = ()) -> np.ndarray:
    return rng.normal(size=(*batch, 2, 3))


@pytest.mark.parametrize("name", LAWS)
def test_prediction_errors_lead_to_the_truth(name: str) -> None:
    rng = np.random.default_rng(0)
    adaptation = Adaptation(LAWS[name], np.zeros(3))
    for _ in range(4000):
        W = excitation(rng)
        adaptation.compose(W, np.zeros(2), W, W @ TRUTH, 0.01)
    # Plain least squares keeps a trace of its prior: P0⁻¹ against 40 s of excitation.
    np.testing.assert_allclose(adaptation.parameters, TRUTH, rtol=0.01)


@pytest.mark.parametrize("name", LAWS)
def test_a_batch_equals_its_plants_one_by_one(name: str) -> None:
    rng = np.random.default_rng(1)
    W = rng.normal(size=(50, 4, 2, 3))
    s = rng.normal(size=(50, 4, 2))
    together = Adaptation(LAWS[name], np.zeros(3), (4,))
    alone = [Adaptation(LAWS[name], np.zeros(3)) for _ in range(4)]
    for k in range(50):
        together.compose(W[k], s[k], W[k], s[k], 0.01, (0.3, 1.0))
        together.track(W[k], s[k], 0.01)
        for i, one in enumerate(alone):
            one.compose(W[k, i], s[k, i], W[k, i], s[k, i], 0.01, (0.3, 1.0))
            one.track(W[k, i], s[k, i], 0.01)
    for i, one in enumerate(alone):
        np.testing.assert_allclose(together.parameters[i], one.parameters, rtol=1e-9)


def test_least_squares_is_the_batch_solution() -> None:
    rng = np.random.default_rng(2)
    dt, P0 = 0.01, 5.0
    adaptation = Adaptation(UpdateLaw.least_squares(P0), np.zeros(3))
    normal, right = np.eye(3) / P0, np.zeros(3)
    for _ in range(30):
        W = excitation(rng)
        torque = rng.normal(size=2)
        adaptation.compose(W, np.zeros(2), W, torque, dt)
        normal += dt * W.T @ W
        right += dt * W.T @ torque
    np.testing.assert_allclose(adaptation.parameters, np.linalg.solve(normal, right))
    np.testing.assert_allclose(adaptation.gain, np.linalg.inv(normal), atol=1e-12)


def test_the_gain_stays_bounded_without_excitation() -> None:
    nothing = np.zeros((2, 3))
    bounded = Adaptation(LAWS["bounded gain"], np.zeros(3))
    free = Adaptation(LAWS["exponential"], np.zeros(3))
    for _ in range(8000):
        bounded.track(nothing, np.zeros(2), 0.01)
        free.track(nothing, np.zeros(2), 0.01)
    assert 19.0 < np.linalg.norm(bounded.gain) <= 20.0
    assert 4e6 < np.linalg.norm(free.gain) <= LARGEST_GROWTH * 5.0


@pytest.mark.parametrize("law", [LAWS["exponential"], LAWS["bounded gain"]])
def test_the_gain_stays_positive_definite_however_long_it_forgets(
    law: UpdateLaw,
) -> None:
    rng = np.random.default_rng(6)
    fast = replace(law, forgetting=5.0)
    gain = fast.initial_gain(3)
    for _ in range(4000):  # 40 s: five times as long as an unsymmetric one lasts
        gain = fast.next_gain(gain, excitation(rng), 0.01)
    np.testing.assert_array_equal(gain, gain.T)
    assert np.linalg.eigvalsh(gain)[0] > 0.0


def test_a_push_that_no_parameter_explains_drives_the_estimate_no_further() -> None:
    law = UpdateLaw.gradient(2.0)
    free = Adaptation(law, TRUTH)
    adaptation = Adaptation(law, TRUTH, center=TRUTH)
    for _ in range(20_000):
        for one in (free, adaptation):
            one.track(np.eye(3)[:1], np.array([-0.1]), 0.01)
    assert free.parameters[0] > 40.0
    reach = law.reach * np.linalg.norm(TRUTH)
    assert np.linalg.norm(adaptation.parameters - TRUTH) < 1.1 * reach
    assert not adaptation.stopped


def test_within_reach_nothing_leaks() -> None:
    rng = np.random.default_rng(7)
    free = Adaptation(LAWS["gradient"], np.zeros(3))
    bounded = Adaptation(LAWS["gradient"], np.zeros(3), center=0.8 * TRUTH)
    for _ in range(200):
        W = excitation(rng)
        for one in (free, bounded):
            one.compose(W, np.zeros(2), W, W @ TRUTH, 0.01)
    np.testing.assert_array_equal(free.parameters, bounded.parameters)


def test_the_direct_rule_is_minus_gain_times_transposed_regressor() -> None:
    rng = np.random.default_rng(3)
    P = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 3.0]])
    adaptation = Adaptation(UpdateLaw.gradient(P), TRUTH)
    Y, s = excitation(rng), rng.normal(size=2)
    adaptation.track(Y, s, 0.01)
    np.testing.assert_allclose(adaptation.parameters, TRUTH - 0.01 * P @ Y.T @ s)


def test_a_large_gain_stays_stable_at_a_slow_rate() -> None:
    rng = np.random.default_rng(4)
    adaptation = Adaptation(UpdateLaw.gradient(1e5), np.zeros(3))
    for _ in range(100):
        W = excitation(rng)
        adaptation.compose(W, np.zeros(2), W, W @ TRUTH, 0.1)
    np.testing.assert_allclose(adaptation.parameters, TRUTH, atol=1e-3)


def test_errors_inside_the_dead_band_teach_nothing() -> None:
    law = UpdateLaw.gradient(1.0, dead_band=0.1)
    adaptation = Adaptation(law, TRUTH)
    adaptation.track(np.ones((2, 3)), np.array([0.09, -0.1]), 0.01)
    np.testing.assert_array_equal(adaptation.parameters, TRUTH)
    adaptation.track(np.ones((2, 3)), np.array([0.2, 0.0]), 0.01)
    np.testing.assert_allclose(adaptation.parameters, TRUTH - 0.001)
    np.testing.assert_allclose(outside_dead_band(np.array([-0.3]), 0.1), [-0.2])


def test_frozen_plants_do_not_learn() -> None:
    adaptation = Adaptation(UpdateLaw.gradient(1.0), TRUTH, (2,))
    frozen = np.array([True, False])
    adaptation.track(np.ones((2, 2, 3)), np.ones((2, 2)), 0.1, frozen)
    np.testing.assert_array_equal(adaptation.parameters[0], TRUTH)
    assert np.all(adaptation.parameters[1] < TRUTH)


def test_a_runaway_is_stopped_and_named_while_the_others_go_on() -> None:
    adaptation = Adaptation(UpdateLaw.gradient(1.0), TRUTH, (2,))
    s = np.array([[np.nan, 1.0], [1.0, 1.0]])
    adaptation.track(np.ones((2, 2, 3)), s, 0.1)
    assert adaptation.stopped.tolist() == [True, False]
    np.testing.assert_array_equal(adaptation.parameters[0], TRUTH)
    adaptation.track(np.ones((2, 2, 3)), s, 0.1)
    assert np.all(np.isfinite(adaptation.parameters))


@pytest.mark.parametrize("name", LAWS)
def test_an_adaptation_resumes_where_it_stopped(name: str) -> None:
    rng = np.random.default_rng(5)
    W, s = rng.normal(size=(40, 2, 3)), rng.normal(size=(40, 2))
    whole, part = (Adaptation(LAWS[name], np.zeros(3)) for _ in range(2))
    for k in range(40):
        whole.track(W[k], s[k], 0.01)
        if k == 20:
            saved = part.to_dict()
            part = Adaptation(LAWS[name], np.zeros(3))
            part.restore(saved)
        part.track(W[k], s[k], 0.01)
    np.testing.assert_array_equal(whole.parameters, part.parameters)


def test_a_projection_keeps_parameters_where_they_may_be() -> None:
    law = UpdateLaw.gradient(1.0)
    adaptation = Adaptation(law, TRUTH, projection=lambda x: np.maximum(x, 0.2))
    adaptation.track(np.ones((2, 3)), np.array([10.0, 10.0]), 1.0)
    np.testing.assert_array_equal(adaptation.parameters, [0.2, 0.2, 0.2])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: UpdateLaw.gradient(-1.0), "positive definite"),
        (lambda: UpdateLaw.gradient(np.diag([1.0, -2.0])), "smallest eigenvalue"),
        (lambda: UpdateLaw.gradient(np.array([[1.0, 2.0], [0.0, 1.0]])), "symmetric"),
        (lambda: UpdateLaw.gradient(np.nan), "finite"),
        (lambda: UpdateLaw.exponential(1.0, -0.1), "negative"),
        (lambda: UpdateLaw(1.0, bound=0.0), "k0"),
        (lambda: UpdateLaw(1.0, reach=0.0), "reach"),
        (lambda: UpdateLaw.gradient(np.ones(4)).initial_gain(3), "4 parameters"),
        (lambda: UpdateLaw.bounded_gain(9.0, 0.1, 1.0).initial_gain(3), "above its"),
    ],
)
def test_gains_that_make_no_sense_are_named(build: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        build()  # type: ignore[operator]


def test_saved_state_of_another_size_is_refused() -> None:
    adaptation = Adaptation(UpdateLaw.gradient(1.0), TRUTH)
    other = Adaptation(UpdateLaw.gradient(1.0), np.zeros(4))
    with pytest.raises(ArgumentError, match="another controller"):
        adaptation.restore(other.to_dict())
