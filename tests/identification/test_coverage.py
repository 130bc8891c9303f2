"""95 % intervals hold the truth about 95 % of the time, in closed loop."""

from __future__ import annotations

import pytest

import armwise as aw
from armwise.errors import ArgumentError
from tests.identification.conftest import with_drives


@pytest.mark.slow
def test_intervals_hold_the_truth():
    study = aw.identification.coverage_study(
        with_drives(aw.load_arm("ddarm")), experiments=40, seed=2
    )
    assert 0.90 <= study.total <= 0.99
    assert study.plain_total < 0.8


def test_one_experiment_is_no_study():
    with pytest.raises(ArgumentError):
        aw.identification.coverage_study(aw.load_arm("ddarm"), experiments=1)
