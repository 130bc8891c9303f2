"""Convergence is not performance: the analysis tells both apart."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.errors import ArgumentError, NotConverged
from armwise.learning import (
    LearningOperator,
    LinearLoop,
    analyse_learning,
    impulse_operator,
    inverse_model,
    norm_optimal,
    scaled_error,
)
from armwise.learning.analysis import spectral_norm, spectral_radius
from armwise.learning.operators import block_toeplitz


@pytest.fixture(scope="module")
def example() -> LinearLoop:
    """`atkeson1986` §6.6: 1 kHz double integrator, PD 10 Hz, ζ 0.707."""
    return LinearLoop.of_double_integrator(1000.0, 10.0, 0.707)


def test_the_paper_s_example_converges_and_blows_up(example: LinearLoop) -> None:
    lifted = example.lifted(600)
    analysis = analyse_learning(lifted, scaled_error(1 / lifted.error[0, 0], 600))
    assert analysis.spectral_radius == pytest.approx(0.0, abs=1e-12)
    assert analysis.impulse_growth[8] == pytest.approx(9.5e23, rel=0.01)
    assert analysis.impulse_growth[9] == pytest.approx(4.7e26, rel=0.01)
    assert analysis.peak_gain == pytest.approx(506.6, rel=1e-3)
    assert analysis.verdict == "blows up"
    with pytest.raises(NotConverged, match="blows up first"):
        analysis.require_recommended()


def test_peak_gain_is_the_closed_form(example: LinearLoop) -> None:
    lifted = example.lifted(50)
    analysis = analyse_learning(lifted, scaled_error(1 / lifted.error[0, 0], 50))
    closed_form = 2.0 / (1e-3 * 2 * np.pi * 10) ** 2
    assert analysis.peak_gain == pytest.approx(closed_form, rel=1e-4)


def test_the_inverse_model_cancels_in_one_trial(example: LinearLoop) -> None:
    lifted = example.lifted(300)
    analysis = analyse_learning(lifted, inverse_model(lifted), updates=2)
    assert analysis.impulse_growth[0] < 1e-9
    assert analysis.peak_gain == pytest.approx(0.0, abs=1e-9)
    assert analysis.verdict == "monotone"
    analysis.require_recommended()


def test_a_wrong_inertia_leaves_its_share_of_the_error(example: LinearLoop) -> None:
    # δu ← (1 − R̂⁻¹ R) S δu, and R̂⁻¹ R = 0.7 where the model is too light.
    light = LinearLoop.of_double_integrator(1000.0, 10.0, 0.707, inertia=0.7)
    lifted = example.lifted(200)
    analysis = analyse_learning(lifted, inverse_model(light.lifted(200)))
    assert analysis.spectral_radius == pytest.approx(0.3, rel=1e-6)


def test_the_impulse_form_equals_the_matrix_form(example: LinearLoop) -> None:
    lifted = example.lifted(80)
    scale = 0.3 / lifted.error[0, 0]
    plain = analyse_learning(lifted, scaled_error(scale, 80))
    impulse = impulse_operator("gain", np.array([scale]), 80)
    same = analyse_learning(lifted, impulse)
    assert same.peak_gain == pytest.approx(plain.peak_gain)
    np.testing.assert_allclose(same.growth, plain.growth)


def double_mass(load: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Motor and load joined by a spring: J_m = 1, k = 100, c = 1 everywhere."""
    A = np.array(
        [
            [0, 1, 0, 0],
            [-100, -2, 100, 1],
            [0, 0, 0, 1],
            [100 / load, 1 / load, -100 / load, -2 / load],
        ]
    )
    return A, np.array([[0.0], [1], [0], [0]]), np.array([[1.0, 0, 0, 0]])


def series_pid() -> tuple[np.ndarray, ...]:
    """10 (1 + 1/s)(s + 1)/(0.02 s + 1)."""
    from scipy.signal import tf2ss

    return tuple(tf2ss([10.0, 20.0, 10.0], [0.02, 1.0, 0.0]))


@pytest.fixture(scope="module")
def spring_loops() -> tuple[LinearLoop, LinearLoop]:
    """The plant believed in, and the true one with half as much load again."""
    pid = series_pid()
    return tuple(  # type: ignore[return-value]
        LinearLoop.of_feedback(double_mass(load), pid, 50.0) for load in (1.0, 1.5)
    )


def reference() -> np.ndarray:
    x = np.sin(np.arange(0, 3 * np.pi, 0.02))
    result: np.ndarray = np.sign(x) * ((np.abs(x) + 0.01) ** 0.2 - 0.01**0.2)
    return result


def first_error(r: np.ndarray) -> np.ndarray:
    """Output minus reference of the true plant under its controller alone."""
    from scipy.signal import cont2discrete

    A, B, C = double_mass(1.5)
    Ac, Bc, Cc, Dc = series_pid()
    closed = np.block([[A - B @ Dc @ C, B @ Cc], [-Bc @ C, Ac]])
    see = np.hstack([C, np.zeros((1, 2))])
    system = (closed, np.vstack([B @ Dc, Bc]), see, np.zeros((1, 1)))
    Ad, Bd, *_ = cont2discrete(system, 0.02, "zoh")
    state, out = np.zeros((6, 1)), []
    for value in r:
        out.append((see @ state).item())
        state = Ad @ state + Bd * value
    return np.array(out) - r


def test_norm_optimal_learning_matches_the_julia_package(
    spring_loops: tuple[LinearLoop, LinearLoop],
) -> None:
    r = reference()
    model, truth = (loop.lifted(r.size) for loop in spring_loops)
    operator = norm_optimal(model, command_weight=1e-5, change_weight=1e-4)
    assert operator.smoothing is not None
    start, command, norms = first_error(r), np.zeros(r.size), []
    for _ in range(5):
        error = start + truth.error @ command
        norms.append(np.linalg.norm(error))
        command = operator.smoothing @ (command - operator.gain @ error)
    np.testing.assert_allclose(norms, [2.633, 0.920, 0.698, 0.611, 0.5615], atol=6e-4)
    assert analyse_learning(truth, operator).verdict == "monotone"


def test_p_type_learning_on_the_spring_plant_is_refused(
    spring_loops: tuple[LinearLoop, LinearLoop],
) -> None:
    r = reference()
    truth = spring_loops[1].lifted(r.size)
    lead = truth.error[1:, :-1]  # the delay of one sample taken out
    short = type(truth)(truth.applied[1:, 1:], lead, 1, 50.0)
    operator = scaled_error(0.5 / lead[0, 0], r.size - 1, from_applied=False)
    analysis = analyse_learning(short, operator, updates=5)
    assert analysis.spectral_radius == pytest.approx(0.5)
    assert analysis.largest_singular_value == pytest.approx(142.0, rel=0.01)
    assert analysis.verdict == "blows up"
    command, norms, start = np.zeros(r.size - 1), [], first_error(r)[1:]
    for _ in range(6):
        error = start + lead @ command
        norms.append(np.linalg.norm(error))
        command = command - operator.gain @ error
    assert norms[5] == pytest.approx(7e10, rel=0.05)


def test_the_growth_never_passes_its_bound(example: LinearLoop) -> None:
    lifted = example.lifted(120)
    for scale in (0.2, 1.0, 1.7):
        operator = scaled_error(scale / lifted.error[0, 0], 120)
        analysis = analyse_learning(lifted, operator, updates=4)
        sigma = analysis.largest_singular_value
        assert np.all(analysis.growth <= sigma ** np.arange(1, 5) * (1 + 1e-9))
        assert sigma <= analysis.peak_gain * (1 + 1e-6)  # type: ignore[operator]


def test_an_operator_that_diverges_is_named(example: LinearLoop) -> None:
    lifted = example.lifted(60)
    analysis = analyse_learning(lifted, scaled_error(2.5 / lifted.error[0, 0], 60))
    assert analysis.verdict == "diverges"
    assert analysis.spectral_radius == pytest.approx(1.5)
    assert not analysis.is_recommended


def test_the_radius_of_a_long_nilpotent_matrix_is_zero() -> None:
    shift = 1e3 * np.eye(300, k=-1)
    assert spectral_radius(shift) == 0.0
    mixed = shift + np.eye(300, k=1)
    assert spectral_radius(mixed) > 1.0


def test_the_radius_of_coupled_joints_is_that_of_their_blocks() -> None:
    """Nilpotent blocks on the diagonal: an eigensolver alone finds a radius near 1."""
    rng = np.random.default_rng(2)
    size, block = 120, np.array([[1.0, -1.0], [1.0, -1.0]])
    matrix = np.kron(np.eye(size), block)
    matrix += np.kron(
        np.tril(rng.normal(size=(size, size)), -1), rng.normal(size=(2, 2))
    )
    assert spectral_radius(matrix, block=2) < 1e-7
    assert np.abs(np.linalg.eigvals(matrix)).max() > 0.1


def test_the_large_norm_equals_the_small_one() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(260, 260))
    assert spectral_norm(matrix) == pytest.approx(np.linalg.norm(matrix, 2))
    assert spectral_norm(np.zeros((300, 300))) == 0.0


def test_block_toeplitz_convolves() -> None:
    rng = np.random.default_rng(1)
    impulse, command = rng.normal(size=(9, 2, 3)), rng.normal(size=(9, 3))
    out = (block_toeplitz(impulse) @ command.ravel()).reshape(9, 2)
    for t in range(9):
        expected = sum(impulse[t - s] @ command[s] for s in range(t + 1))
        np.testing.assert_allclose(out[t], expected)


def test_mismatched_lengths_are_named(example: LinearLoop) -> None:
    with pytest.raises(ArgumentError, match="same samples"):
        analyse_learning(example.lifted(10), scaled_error(1.0, 11))
    with pytest.raises(ArgumentError, match="at least one sample"):
        example.lifted(0)


def test_smoothing_keeps_the_peak_gain_unknown(example: LinearLoop) -> None:
    lifted = example.lifted(20)
    operator = LearningOperator("q", np.eye(20), np.eye(20))
    assert analyse_learning(lifted, operator).peak_gain is None
