"""A small part of the coverage study on MuJoCo plants (studies.confidence)."""

from __future__ import annotations

import numpy as np
import pytest

from studies.confidence import RunOutcome, run_once, table

pytest.importorskip("mujoco")


@pytest.mark.slow
def test_intervals_hold_the_truth_on_plants_of_others():
    """Sticking joints, encoder counts, noise and an unknown delay, two makes."""
    outcomes = [run_once(name, "plain", s) for name in ("panda", "ur5") for s in (0, 1)]
    assert all(isinstance(one, RunOutcome) for one in outcomes)
    inside = [x for one in outcomes for values in one.inside.values() for x in values]
    # Some 270 intervals: 95 % of them are 1.3 % uncertain by chance, runs being alike
    # a few times that. Without the lag as an unknown 76 to 79 % held.
    assert 0.88 <= np.mean(inside) <= 1.0
    errors = [one.lag_error for one in outcomes if one.lag_error is not None]
    # Two delays of four may be hardly determined, and are then not stated.
    assert len(errors) >= 2
    assert np.max(np.abs(errors)) < 1e-3
    assert any("links" in line for line in table(outcomes))
