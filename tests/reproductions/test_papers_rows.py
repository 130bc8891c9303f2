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
    explained,
    is_explained,
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
        (agrees("T", "x", "10.0", 10.9), "agrees"),
        (agrees("T", "x", "10.0", 11.1), "differs"),
        (agrees("T", "x", "10.0", 8.9), "differs"),
        (agrees("T", "x", 0.0, 1e-10, absolute=1e-9, at="Eq. 1"), "agrees"),
        (agrees("T", "x", ("1.0", "2.0"), (1.0, 3.0)), "differs"),
        (agrees("T", "x", "1.0", np.nan), "differs"),
        (better("T", "x", "10.0", 10.5), "agrees"),
        (better("T", "x", "10.0", 5.0), "better"),
        (better("T", "x", "10.0", 20.0), "differs"),
        (better("T", "x", "10.0", 20.0, less=False), "better"),
        (better("T", "x", ("10.0", "10.0"), (5.0, 20.0)), "differs"),
        (recovered("T", "x", 1.0, 1.05), "recovered"),
        (recovered("T", "x", 1.0, 1.2), "differs"),
        (claim("T", "x", "small", 0.1, below=0.2, why="w"), "claim holds"),
        (claim("T", "x", "small", 0.3, below=0.2, why="w"), "claim fails"),
        (claim("T", "x", "small", -0.1, below=0.2, why="w"), "claim fails"),
        (slip("T", "x", "1.0", 2.0, corrected=2.0, argument="a is {}"), "paper's slip"),
        (slip("T", "x", "1.0", 3.0, corrected=2.0, argument="a is {}"), "differs"),
        (slip("T", "x", "2.0", 2.0, corrected=2.0, argument="a is {}"), "differs"),
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
    assert "factor of 4" in better("T", "x", "10.0", 2.5)["note"]


def test_rows_that_cannot_fail_are_noticed():
    assert survivors(agrees("T", "x", "1.0", 1.0)) == []
    assert survivors(recovered("T", "x", 0.1, 0.1, absolute=0.4))  # zero would do
    assert survivors(claim("T", "x", "s", 0.1, below=1e9, why="w"))
    assert survivors(claim("T", "x", "s", 0.1, below=0.5, why="w")) == []
    assert survivors(own("T", "x", "aim", 1.0)) == []  # judges nothing


def test_numbers_and_bounds_belong_together():
    with pytest.raises(ValueError, match="bounds"):
        agrees("T", "x", ("1.0", "2.0"), 1.0)


def test_a_row_can_be_judged_again():
    row = agrees("T", "x", "1.0", 1.0)
    assert judge({**row, "values": [2.0]}) == "differs"


@pytest.mark.parametrize(
    ("printed", "options"),
    [
        ("10.0", {"within": 0.11}),
        ("10.0", {"absolute": 1.1}),
        ("0.33", {"absolute": 0.04}),  # beyond a tenth and beyond half a digit
        (("10.0", "1.0"), {"absolute": 0.5}),  # loose for the second
        (10.0, {"absolute": 5.0, "at": "Eq. 1"}),
        ((0.02, 0.0), {"absolute": (0.001, 0.005), "at": "Eq. 1"}),  # of a zero
        (0.0, {"absolute": 1e-3, "at": "Eq. 1"}),
    ],
)
def test_a_tolerance_beyond_a_tenth_is_refused(printed, options):
    with pytest.raises(ValueError, match="too loose"):
        agrees("T", "x", printed, np.ones(np.size(printed)), **options)


def test_few_printed_digits_allow_half_of_the_last():
    row = agrees("T", "x", "2", 2.4, absolute=0.5)
    assert row["verdict"] == "agrees"
    assert row["printed"] == ["2"]
    assert row["paper"] == "2"


@pytest.mark.parametrize("kind", [agrees, better])
def test_a_number_that_is_not_as_printed_says_what_it_follows_from(kind):
    with pytest.raises(ValueError, match="digit by digit"):
        kind("T", "x", 1.0, 1.0)
    row = kind("T", "x", 1.0, 1.0, at="Eq. 1")
    assert row["paper"] == "1 (Eq. 1)"
    assert row["printed"] == []


def test_what_the_plant_was_given_is_no_word_of_the_paper():
    row = recovered("T", "x", 0.042, 0.043)
    assert row["paper"] == "—"
    assert row["beside"] == "simulated with 0.042"
    assert recovered("T", "x", "0.042", 0.043)["paper"] == "0.042"


def test_a_row_that_differs_needs_a_probe_that_holds_and_could_fail():
    row = agrees("T", "x", "10.0", 20.0, note="so")
    assert not is_explained(row)
    good = explained(row, "without wind it is {:.1f}", 10.2, above=9.0, below=11.0)
    assert is_explained(good)
    assert good["note"] == "Why: without wind it is 10.2. So"
    refuted = explained(row, "without wind it is {:.1f}", 20.0, above=9.0, below=11.0)
    assert not is_explained(refuted)
    assert refuted["note"].startswith("Refuted")
    anything = explained(row, "without wind it is {:.1f}", 10.2, below=1e9)
    assert not is_explained(anything)
    with pytest.raises(ValueError, match="refute"):
        explained(row, "without wind it is {:.1f}", 10.2)


def test_what_agrees_needs_no_probe():
    row = agrees("T", "x", "10.0", 10.0)
    assert explained(row, "{}", 1.0, above=2.0) is row
    assert is_explained(row)


def test_a_slip_explains_itself_by_arithmetic():
    row = slip("T", "x", "1.0", 2.0, corrected=2.0, argument="1 + 1 is {}")
    assert is_explained(row)
    assert "1 + 1 is 2" in row["note"]
