"""Parameters: every number with its interval and where it comes from."""

from __future__ import annotations

import numpy as np

from armwise.report.report import Cell, Section, Table, Words, finite
from armwise.report.subject import Subject

CONFIDENCE = 1.96
"""Standard deviations to each side of a 95 % interval."""


def parameters_section(subject: Subject) -> Section:
    """List the combinations, then the parameters of the exported arm."""
    estimate = subject.estimate
    intro = (
        "Torques depend on the combinations in the first table only; their intervals "
        "hold for correlated residuals too. The second lists the exported arm: "
        "“identified” is seen alone, “in combination” only as part of a sum (the split "
        "is the description's), “prior” is the description's own value."
    )
    return Section(
        "parameters",
        "Parameters",
        (Words(intro), _combinations(subject), _standard(subject)),
        {
            "combinations": [
                {"expression": e, "value": v, "std": s}
                for e, v, s in zip(
                    estimate.base.expressions,
                    finite(estimate.base_values),
                    finite(estimate.base_std),
                    strict=True,
                )
            ],
            "parameters": [
                {"name": n, "value": v, "std": s, "origin": o, "description": d}
                for n, v, s, o, d in _rows(subject)
            ],
        },
    )


def _combinations(subject: Subject) -> Table:
    estimate = subject.estimate
    rows = []
    for text, value, std in zip(
        estimate.base.expressions, estimate.base_values, estimate.base_std, strict=True
    ):
        rows.append((text, float(value), *_interval(value, std), _doubt(value, std)))
    columns = ("combination", "value", "std", "from", "to", "std / value [%]")
    caption = "Base parameters and friction terms, 95 % intervals, SI units."
    return Table(columns, tuple(rows), caption)


def _interval(value: float, std: float) -> tuple[Cell, Cell, Cell]:
    if not np.isfinite(std):
        return "nothing known", None, None
    return float(std), float(value - CONFIDENCE * std), float(value + CONFIDENCE * std)


def _doubt(value: float, std: float) -> Cell:
    if not np.isfinite(std) or value == 0:
        return None
    return float(100 * std / abs(value))


def _rows(
    subject: Subject,
) -> list[tuple[str, float, float | None, str, float]]:
    """Name, value, standard deviation, origin and described value of each parameter."""
    estimate = subject.estimate
    size = estimate.parameters.size
    extra = len(estimate.columns.friction)
    leaders = dict(zip(estimate.base.indices, estimate.base_std, strict=True))
    shown = [*estimate.std, *[leaders.get(size + k, np.inf) for k in range(extra)]]
    described = [*subject.arm.parameters, *[0.0] * extra]
    return [
        (name, float(value), std, estimate.origin[name], float(before))
        for name, value, std, before in zip(
            estimate.base.names,
            estimate.all_parameters,
            finite(shown),
            described,
            strict=True,
        )
    ]


def _standard(subject: Subject) -> Table:
    columns = ("parameter", "value", "std", "origin", "description")
    caption = "Parameters of the exported arm, friction terms last."
    rows = tuple(_rows(subject))
    return Table(columns, rows, caption, is_folded=len(rows) > 20)
