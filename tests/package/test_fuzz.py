"""A small part of `make fuzz`: mutants of every reader's files."""

from __future__ import annotations

import pytest

pytest.importorskip("mujoco")

from studies.fuzz import FAILURES, TARGETS, fuzz


@pytest.mark.parametrize("name", TARGETS)
def test_mutants_are_refused_in_one_line_or_make_sense(name: str) -> None:
    outcomes = fuzz(name, mutants=60, seed=1)
    assert sum(map(len, outcomes.values())) == 60
    assert outcomes.get("refused")
    assert {kind: outcomes[kind] for kind in FAILURES if kind in outcomes} == {}
