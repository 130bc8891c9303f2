"""What was not identified, and which motion would reveal it."""

from __future__ import annotations

from armwise.report.report import Block, Items, Section, Table, Words, finite
from armwise.report.revealing import (
    LARGEST_RELATIVE_STD,
    poorly_known,
    revealing_motions,
)
from armwise.report.subject import Subject


def hidden_section(subject: Subject) -> Section:
    """Name what the data left open and what no motion can show."""
    estimate = subject.estimate
    never = estimate.base.unidentifiable
    count = len(poorly_known(estimate))
    found = revealing_motions(estimate)
    blocks: list[Block] = []
    if found:
        caption = (
            f"{count} combinations are known to no better than "
            f"{100 * LARGEST_RELATIVE_STD:.0f} % of their value, or not at all; "
            f"the {len(found)} worst. Where a value is nearly zero this is no harm."
        )
        rows = tuple(
            (h.expression, h.value, *finite([h.std]), h.motion, h.joint) for h in found
        )
        columns = ("combination", "value", "std", "a motion that shows it", "torque of")
        blocks.append(Table(columns, rows, caption))
    else:
        blocks.append(
            Words(
                "Every combination that motion can show is known to better than "
                f"{100 * LARGEST_RELATIVE_STD:.0f} % of its value."
            )
        )
    if never:
        blocks.append(
            Words(
                f"{len(never)} parameters never act on any joint's torque, so no "
                "motion reveals them and no controller needs them:"
            )
        )
        blocks.append(Items((", ".join(never),)))
    return Section(
        "hidden",
        "Not identified",
        tuple(blocks),
        {
            "poorly_known_count": count,
            "poorly_known": [
                {
                    "expression": h.expression,
                    "value": h.value,
                    "std": finite([h.std])[0],
                    "motion": h.motion,
                    "torque_of": h.joint,
                }
                for h in found
            ],
            "unidentifiable": list(never),
        },
    )
