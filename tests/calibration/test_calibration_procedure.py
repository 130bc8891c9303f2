"""The thesis' procedure, its parts and the whole."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.calibration import Plan, calibrate_by_adaptation
from armwise.calibration.gravity_expansion import (
    approximation_error,
    fit_by_arccos,
    fit_exactly,
    is_planar_chain,
)
from armwise.errors import NotIdentifiable
from papers import astley_calibration as thesis


def parabola(gain: float, phase: float, moment: float = 1.3) -> np.ndarray:
    q = np.linspace(-0.8, 0.8, 101)
    return np.polynomial.polynomial.polyfit(q, moment * np.cos(gain * q + phase), 2)


@pytest.mark.parametrize("phase", [-0.3, 0.0, 0.4, 2.9])
def test_a_cosine_is_read_off_its_parabola(phase):
    found = fit_exactly(parabola(0.8, phase), (-0.8, 0.8))
    assert found.gain == pytest.approx(0.8, rel=1e-3)
    assert found.phase == pytest.approx(phase, abs=2e-3)
    rough = fit_by_arccos(parabola(0.8, phase), (-0.8, 0.8))
    assert rough.gain == pytest.approx(0.8, rel=0.06)


def test_a_line_is_no_cosine():
    with pytest.raises(NotIdentifiable, match="straight line"):
        fit_by_arccos(np.array([1.0, 0.2, 0.0]), (-1, 1))
    with pytest.raises(NotIdentifiable, match="bends away"):
        fit_by_arccos(np.array([1.0, 0.0, 0.2]), (-1, 1))


def test_figure_4_5():
    """Page 44: 2 % for a parabola, 1 % for a cubic."""
    assert round(approximation_error(2), 2) == 0.02
    assert round(approximation_error(3), 2) == 0.01


def test_only_planar_chains_across_gravity_are_moved():
    hand = load_arm("hand_controller")
    assert is_planar_chain(hand)
    assert not is_planar_chain(hand.with_gravity([0.0, 0.0, -9.81]))
    assert not is_planar_chain(load_arm("panda"))
    flat = hand.with_gravity([0.0, 0.0, -9.81])
    with pytest.raises(NotIdentifiable, match="parallel z axes across gravity"):
        calibrate_by_adaptation(thesis.plant(1), flat, posture=np.zeros(2))


@pytest.mark.slow
def test_the_whole_procedure_finds_gains_and_offsets():
    plan = Plan(gain_time=14.0, offset_time=8.0, friction_period=4.0)
    found = calibrate_by_adaptation(
        thesis.plant(1), thesis.structure(), posture=thesis.BETA, plan=plan
    )
    alpha, beta = thesis.manual_calibration()
    assert np.rad2deg(np.abs(found.alpha - alpha)).max() * thesis.RANGE < 3.0
    assert np.rad2deg(np.abs(found.beta - beta)).max() < 3.0
    assert found.friction.min() > 0.015
    assert len(found.recordings) == 1
    assert np.all(found.alpha < 0.0)  # both sensors count backwards
    assert np.all(np.abs(found.alpha - alpha) < 4.0 * found.alpha_std)
    assert np.all(np.abs(found.beta - beta) < 4.0 * found.beta_std)
