"""Joints that follow joints that follow joints."""

from __future__ import annotations

from collections.abc import Mapping

from armwise.arms.arm import Mimic


def resolve_mimic(i: int, follow: Mapping[int, Mimic]) -> Mimic | None:
    """Follow a chain of mimics to a joint that moves by itself; None for a circle."""
    mimic, seen = follow[i], {i}
    while mimic.leader in follow:
        if mimic.leader in seen:
            return None
        seen.add(mimic.leader)
        up = follow[mimic.leader]
        mimic = Mimic(
            up.leader,
            mimic.multiplier * up.multiplier,
            mimic.multiplier * up.offset + mimic.offset,
        )
    return None if mimic.leader == i else mimic
