"""Verdicts by kind: each has its function, its bounds, and can fail."""

from __future__ import annotations

import numpy as np
import pytest

from papers.rows import (
    KEYS,
    MEANINGS,
    VERDICTS,
    agrees,
    better,
    claim,
    judge,
    not_comparable,
    not_run,
    own,
    recovered,
    slip,
    survivors,
)


@pytest.mark.parametrize(
    ("row", "verdict"),
    [
        (agrees("T", "x", 10.0, 10.9), "agrees"),
        (agrees("T", "x", 10.0, 11.1), "differs"),
        (agrees("T", "x", 10.0, 8.9), "differs"),
        (agrees("T", "x", 0.0, 1e-10, absolute=1e-9), "agrees"),
        (agrees("T", "x", (1.0, 2.0), (1.0, 3.0)), "differs"),
        (agrees("T", "x", 1.0, np.nan), "differs"),
        (better("T", "x", 10.0, 10.5), "agrees"),
        (better("T", "x", 10.0, 5.0), "better"),
        (better("T", "x", 10.0, 20.0), "differs"),
        (better("T", "x", 10.0, 20.0, less=False), "better"),
        (better("T", "x", (10.0, 10.0), (5.0, 20.0)), "differs"),
        (recovered("T", "x", 1.0, 1.05), "recovered"),
        (recovered("T", "x", 1.0, 1.2), "differs"),
        (claim("T", "x", "small", 0.1, below=0.2, why="w"), "claim holds"),
        (claim("T", "x", "small", 0.3, below=0.2, why="w"), "claim fails"),
        (claim("T", "x", "small", -0.1, below=0.2, why="w"), "claim fails"),
        (slip("T", "x", 1.0, 2.0, corrected=2.0, argument="a"), "paper's slip"),
        (slip("T", "x", 1.0, 3.0, corrected=2.0, argument="a"), "differs"),
        (slip("T", "x", 2.0, 2.0, corrected=2.0, argument="a"), "differs"),
        (own("T", "x", "theory", 1.0, below=0.5), "ours"),
        (not_comparable("T", "x", "1", "2", "why"), "not comparable"),
        (not_run("T", "x", "why"), "not run"),
    ],
)
def test_verdicts(row, verdict):
    assert row["verdict"] == verdict
    assert tuple(row) == KEYS
    assert verdict in VERDICTS
    assert verdict in MEANINGS


def test_an_aim_that_is_missed_says_so():
    assert own("T", "x", "aim", 1.0, below=0.5)["tolerance"].endswith("missed")
    assert own("T", "x", "aim", 0.4, below=0.5)["tolerance"].endswith("met")


def test_better_says_by_how_much():
    assert "factor of 4" in better("T", "x", 10.0, 2.5)["note"]


def test_rows_that_cannot_fail_are_noticed():
    assert survivors(agrees("T", "x", 1.0, 1.0)) == []
    assert survivors(agrees("T", "x", 1.0, 1.0, absolute=1e6))  # anything would do
    assert survivors(recovered("T", "x", 0.1, 0.1, absolute=0.4))  # zero would do
    assert survivors(claim("T", "x", "s", 0.1, below=1e9, why="w"))
    assert survivors(claim("T", "x", "s", 0.1, below=0.5, why="w")) == []
    assert survivors(own("T", "x", "aim", 1.0)) == []  # judges nothing


def test_numbers_and_bounds_belong_together():
    with pytest.raises(ValueError, match="bounds"):
        agrees("T", "x", (1.0, 2.0), 1.0)


def test_a_row_can_be_judged_again():
    row = agrees("T", "x", 1.0, 1.0)
    assert judge({**row, "values": [2.0]}) == "differs"
