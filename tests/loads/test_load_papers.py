"""`aah1986` Tables 1 and 2 on simulated rigs: the paper's bounds and its order."""

from __future__ import annotations

import numpy as np
import pytest

from papers.atkeson_loads import (
    BAR_INERTIA,
    BLOCK_MASS,
    SHIFTS,
    block,
    designed_errors,
    inertia_errors,
    set_ups,
    table_1,
)


def test_the_block_is_the_papers() -> None:
    """§3.1.3: 0.00238 kg m² for the largest principal moment."""
    assert block(0.0).principal[0][-1] == pytest.approx(0.00238, abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "grams", "millimetres"), [("static", 10.0, 1.0), ("dynamic", 40.0, 2.0)]
)
def test_table_1(kind: str, grams: float, millimetres: float) -> None:
    """Issue 5, line 1."""
    for ours, shift in zip(table_1(kind), SHIFTS, strict=True):
        assert abs(ours.mass - BLOCK_MASS) < 1e-3 * grams
        assert abs(ours.shift - shift) < 1e-3 * millimetres


@pytest.mark.slow
def test_table_2_keeps_its_order_and_filtering_halves_its_errors() -> None:
    """Issue 5, lines 1 and 2."""
    sizes = {}
    for set_up in set_ups():
        errors = inertia_errors(set_up, "paper", runs=8)
        sizes[set_up.name] = float(np.median(np.abs(errors).max(axis=(1, 2))))
    all_joints, test_motions, direct_drive = sizes.values()
    assert all_joints > test_motions > direct_drive
    optimal = inertia_errors(set_ups()[0], "optimal", runs=4)
    assert np.median(np.abs(optimal).max(axis=(1, 2))) < 0.5 * all_joints


@pytest.mark.slow
def test_a_designed_motion_finds_all_six_within_five_percent() -> None:
    """Issue 5, line 3."""
    errors = designed_errors(runs=4)
    assert np.abs(errors).max() < 0.05 * BAR_INERTIA.max()
