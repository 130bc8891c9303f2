"""Where gains and offsets may be, and whether a search finds the one answer."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.calibration import calibratable
from armwise.calibration.from_recording import sensed_samples
from armwise.calibration.search import SearchRegion, is_same, lowest, search
from armwise.calibration.variable_projection import Projector, SensorPoint
from armwise.errors import ArgumentError
from tests.calibration.hands import ALPHA, BETA, recorded, structure

TRUTH = SensorPoint(ALPHA, BETA)
OPPOSITE = [np.array([0.265, 0.06]), np.array([-3.04, 1.62])]
"""A guess of the wrong sign on both joints, half a turn away."""


@pytest.fixture(scope="module")
def sensed():
    return sensed_samples(recorded(), 10.0)


@pytest.fixture(scope="module")
def few(sensed):
    return Projector(structure(), sensed, np.full(2, 0.01)).thinned(8)


def test_without_a_guess_gains_of_either_sign_are_tried(sensed):
    points = SearchRegion.from_guess(structure(), sensed).points(64, seed=0)
    signs = {tuple(np.sign(p.alpha)) for p in points}
    assert len(signs) == 4
    turns = np.abs(np.array([p.alpha for p in points]) * np.ptp(sensed.q, axis=0))
    assert turns.min() > 0.09
    assert turns.max() < 6.3


def test_a_guess_bounds_the_search(sensed):
    region = SearchRegion.from_guess(structure(), sensed, ALPHA, BETA, 1.2, 0.1)
    for point in region.points(32, seed=0):
        assert np.all(np.abs(np.log(point.alpha / ALPHA)) < np.log(1.2) + 1e-9)
        assert np.abs(point.beta - BETA).max() <= 0.1
    assert region.defect(TRUTH) is None
    assert "beyond its range" in str(region.defect(SensorPoint(ALPHA, BETA + 1.0)))
    assert "hardly turn" in str(region.defect(SensorPoint(0.5 * ALPHA, BETA)))


def test_the_arm_is_among_its_mirror_images(sensed):
    region = SearchRegion.from_guess(structure(), sensed)
    turned = SensorPoint(-ALPHA, np.pi - BETA)
    assert any(is_same(image, TRUTH) for image in region.images(turned))


def test_the_right_arm_is_found_from_the_opposite_guess(sensed, few):
    """All that explains it from there is mirrored, and no arm can be like that."""
    region = SearchRegion.from_guess(structure(), sensed, *OPPOSITE, gain_range=8.0)
    sought = calibratable(structure()).is_sought
    found = search(few, region, region.points(64, seed=0), sought, good=2.25)
    best = lowest(found)
    assert best is not None
    assert np.allclose(best.problem.point.alpha, ALPHA, rtol=0.01)
    assert any(m.defect is not None for m in found)


def test_impossible_ranges_are_refused(sensed):
    with pytest.raises(ArgumentError, match="gain_range"):
        SearchRegion.from_guess(structure(), sensed, gain_range=0.5)
    with pytest.raises(ArgumentError, match="cannot be zero"):
        SearchRegion.from_guess(structure(), sensed, alpha=0.0)
    with pytest.raises(ArgumentError, match="beta needs 2"):
        SearchRegion.from_guess(structure(), sensed, beta=[0.0, 1.0, 2.0])
