"""Steps in a stream of positions: what a joint cannot do and a sensor can.

A line through the samples before a moment and one through those after it meet where
a joint was struck, and agree where it moved on. Where they pass each other at a
distance during the whole transition, the reading has stepped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

if TYPE_CHECKING:
    from jaxtyping import Float

SIDE = 4
"""Samples of each line; one more between them belongs to neither."""

WIDTH = 2 * SIDE + 1
"""Samples that a step is told from."""

_TIMES = np.arange(-SIDE, SIDE + 1.0)


def _line(times: np.ndarray) -> np.ndarray:
    """Rows that take value at zero and slope of the line through samples."""
    return np.linalg.pinv(np.stack([np.ones_like(times), times], axis=1))


_BEFORE, _AFTER = _line(_TIMES[:SIDE]), _line(_TIMES[-SIDE:])


def _distance(at: float) -> np.ndarray:
    """Weights whose sum is how far the later line lies above the earlier at a time."""
    when = np.array([1.0, at])
    return np.concatenate([-when @ _BEFORE, [0.0], when @ _AFTER])


_DISTANCES = np.stack([_distance(-1.0), _distance(1.0)], axis=1)

_LAG = _TIMES[:, None] - _TIMES
_DOUBLE_INTEGRAL = _distance(0.0) @ np.where(_LAG > 0.0, _LAG, 0.0)
"""What accelerations during the samples, by period squared, add to the distance."""

BLUR = float(np.abs(_DOUBLE_INTEGRAL).sum() / 2.0)
"""Distance that one unit of acceleration, by period squared, makes by setting in."""


NOISE_GAIN = float(np.linalg.norm(_distance(0.0)))
"""Standard deviation of the distance by that of each sample's noise."""


class Distances(NamedTuple):
    """How far lines before and after each moment lie apart.

    Attributes:
        middle: At the moment itself.
        least: The least during the transition; zero if the lines cross.
    """

    middle: Float[np.ndarray, "moments dof"]
    least: Float[np.ndarray, "moments dof"]


def distances(q: Float[np.ndarray, "samples dof"]) -> Distances:
    """Lines before and after every sample that has enough of them on both sides."""
    windows = sliding_window_view(q, WIDTH, axis=0)
    ends = np.einsum("njk,ke->enj", windows, _DISTANCES)
    smaller = np.minimum(np.abs(ends[0]), np.abs(ends[1]))
    least = np.where(ends[0] * ends[1] > 0.0, np.sign(ends[0]) * smaller, 0.0)
    return Distances(ends.mean(axis=0), least)


class Step(NamedTuple):
    """One moment looked at closely, for all joints.

    Attributes:
        size: Distance of the lines at the moment in [rad] or [m].
        left: Root mean square of what the lines leave of the samples.
        slopes: Of both lines, per period.
        share: Where the sample between them lies: 0 on the earlier, 1 on the later.
    """

    size: Float[np.ndarray, " dof"]
    left: Float[np.ndarray, " dof"]
    slopes: Float[np.ndarray, "2 dof"]
    share: Float[np.ndarray, " dof"]


def step_in(window: Float[np.ndarray, "width dof"]) -> Step:
    """Fit both lines to one window."""
    sides = window[:SIDE], window[-SIDE:]
    lines = np.stack([_BEFORE @ sides[0], _AFTER @ sides[1]])
    fits = [
        np.stack([np.ones(SIDE), t], axis=1) @ x
        for t, x in zip((_TIMES[:SIDE], _TIMES[-SIDE:]), lines, strict=True)
    ]
    rest = np.concatenate(sides) - np.concatenate(fits)
    size = lines[1, 0] - lines[0, 0]
    safe = np.where(size == 0.0, 1.0, size)
    return Step(
        size=size,
        left=np.sqrt(np.sum(rest**2, axis=0) / (2 * SIDE - 4)),
        slopes=lines[:, 1],
        share=np.clip((window[SIDE] - lines[0, 0]) / safe, 0.0, 1.0),
    )


def moved_by(
    acceleration: Float[np.ndarray, "width dof"], period: float
) -> Float[np.ndarray, " dof"]:
    """Distance of the lines that accelerations during a window account for."""
    return np.asarray(_DOUBLE_INTEGRAL @ acceleration * period**2)
