"""Real recordings: every published figure is met. Skipped where the data are not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import real

DATA = Path(
    os.environ.get("ARMWISE_DATA", Path(__file__).parents[3] / "shared" / "data")
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["emps", "tx40", "ur10", "panda"])
def test_published_figures_are_met(name):
    if not (DATA / name).exists():
        pytest.skip(f"no recordings in {DATA / name}; set ARMWISE_DATA")
    for row in getattr(real, name)():
        assert row.verdict == "met", row
