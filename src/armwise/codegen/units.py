"""Units that save multiplications: a length that is one need not be multiplied by.

Inertias in [kg m²] and torques in [N m] stay what they are when lengths are measured in
units of L metres and masses in units of 1/L² kilograms. So L is free: the upper arm's
length, or 9.81 m, which makes the acceleration of gravity one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from armwise.arms import BASE
from armwise.dynamics.mechanism import Mechanism
from armwise.dynamics.skeleton import Segment, Skeleton
from armwise.dynamics.vectors import Scalar, mul

_EXACT = 1e-13
"""Scaled lengths this close to a whole number are that number."""


def unit_lengths(mechanism: Mechanism, bodies: Sequence[float] = ()) -> list[float]:
    """Return lengths in [m] worth trying as the unit, one metre first.

    Args:
        mechanism: The arm's geometry and gravity.
        bodies: Grouped parameters, if known: a first moment h becomes one for L = 1/h.
    """
    if not all(segment.is_revolute for segment in mechanism.skeleton.segments):
        return [1.0]  # a slide's own units are the user's
    found = [1.0]
    for segment in mechanism.skeleton.segments:
        numbers = segment.gravity if segment.parent == BASE else segment.position
        found += [abs(float(x)) for x in numbers if x]
    kinds = [index % 10 for index in mechanism.grouping.indices]
    moments = [x for kind, x in zip(kinds, bodies, strict=False) if kind in (1, 2, 3)]
    found += [abs(1.0 / x) for x in moments if x]
    return list({f"{x:.12g}": x for x in reversed(found)}.values())[::-1]


def in_units(mechanism: Mechanism, length: float) -> Mechanism:
    """Return the mechanism with lengths in units of `length` [m]."""
    if length == 1.0:
        return mechanism
    segments = tuple(_scaled(s, length) for s in mechanism.skeleton.segments)
    made = replace(
        mechanism, skeleton=Skeleton(segments), key=f"{mechanism.key}/{length!r}"
    )
    vars(made)["grouping"] = (
        mechanism.grouping
    )  # which are merged: the same in any unit
    return made


def bodies_in_units(
    mechanism: Mechanism, bodies: Sequence[Scalar], length: float
) -> list[Scalar]:
    """Return grouped parameters in units of `length`: m L², h L and Σ as it is."""
    scales = (length**2, length, length, length, *(1.0,) * 6)
    return [
        mul(scales[index % 10], value)
        for index, value in zip(mechanism.grouping.indices, bodies, strict=True)
    ]


def _scaled(segment: Segment, length: float) -> Segment:
    return replace(
        segment,
        position=_rounded(segment.position / length),
        gravity=_rounded(segment.gravity / length),
    )


def _rounded(x: np.ndarray) -> np.ndarray:
    nearest = np.round(x)
    return np.where(np.abs(x - nearest) <= _EXACT * np.abs(x), nearest, x)
