"""One line of a comparison: the paper's number, ours, and whether they agree."""

from __future__ import annotations

from typing import Any, Literal

Row = dict[str, Any]
Outcome = Literal["agrees", "differs", "shown"]

KEYS = ("experiment", "quantity", "paper", "ours", "verdict", "note")
"""What every row has."""


def row(
    experiment: str,
    quantity: str,
    paper: object,
    ours: object,
    agrees: object,
    note: str = "",
) -> Row:
    """Put a row together.

    Args:
        experiment: Table, figure or section of the paper.
        quantity: What is compared, its unit in brackets.
        paper: What the paper says.
        ours: What was computed now.
        agrees: Whether they agree; None where there is nothing to compare with.
        note: Conditions, and why they differ.
    """
    verdict: Outcome = "shown" if agrees is None else "agrees" if agrees else "differs"
    return {
        "experiment": experiment,
        "quantity": quantity,
        "paper": paper,
        "ours": ours,
        "verdict": verdict,
        "note": note,
    }
