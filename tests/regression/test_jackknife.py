"""Student's t without scipy's special functions."""

from __future__ import annotations

import pytest
from scipy.stats import t

from armwise.regression.jackknife import student_factor, student_tails


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 39, 200])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
def test_half_widths_are_those_of_scipy(freedom: int, confidence: float) -> None:
    expected = t.ppf(0.5 * (1.0 + confidence), freedom)
    assert student_factor(freedom, confidence) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("freedom", [1, 2, 5, 39])
@pytest.mark.parametrize("value", [-0.3, 1.0, 4.0])
def test_tails_are_those_of_scipy(freedom: int, value: float) -> None:
    expected = 2.0 * t.sf(abs(value), freedom)
    assert student_tails(value, freedom) == pytest.approx(expected, rel=1e-9)
