"""The singular spectrum: how well the motion tells directions apart."""

from __future__ import annotations

import numpy as np

from armwise.report.report import Curve, Figure, Section, Table, Words, finite
from armwise.report.subject import Subject

_WEAKEST = 5
"""Directions to name."""


def spectrum_section(subject: Subject) -> Section:
    """Draw the singular values, and name the weakest directions."""
    estimate = subject.estimate
    values = estimate.singular_values
    shown = np.where(values > 0, values, np.nan)
    curve = Curve("singular value", np.arange(1.0, values.size + 1), shown, "measured")
    figure = Figure(
        "Singular values",
        "direction",
        "singular value",
        (curve,),
        is_logarithmic=True,
        is_stems=True,
    )
    intro = (
        "Of the weighted base regressor with columns scaled to one. Their ratio, the "
        f"condition number, is {estimate.condition_number:.4g}."
    )
    weakest = _weakest(subject)
    caption = "The directions told apart least, by their largest members."
    table = Table(("singular value", "mostly"), tuple(weakest), caption, 3)
    return Section(
        "spectrum",
        "Singular spectrum",
        (Words(intro), figure, table),
        {
            "singular_values": finite(values),
            "condition_number": finite([estimate.condition_number])[0],
            "weakest": [{"singular_value": s, "mostly": text} for s, text in weakest],
        },
    )


def _weakest(subject: Subject) -> list[tuple[float, str]]:
    estimate = subject.estimate
    names = [estimate.base.names[i] for i in estimate.base.indices]
    found = []
    for k in range(estimate.singular_values.size - 1, -1, -1)[:_WEAKEST]:
        row = estimate.directions[k]
        top = np.argsort(-np.abs(row))[:3]
        text = ", ".join(f"{row[i]:+.2f} {names[i]}" for i in top)
        found.append((float(estimate.singular_values[k]), text))
    return found
