"""Motions that repeat: when they do, and stretches along their period.

Excitation is run period after period, to average noise. What is left out in one period
is then fitted in the next, and predicting it proves nothing; so stretches to leave out
hold the same part of every period.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.regression.signals import Signals

if TYPE_CHECKING:
    from jaxtyping import Float

Cut = list[tuple[slice, int]]
"""A run cut into stretches to be left out in turn: parts of it, one after another, and
which stretch each belongs to."""

# Judgement: of six, the scatter from stretch to stretch is known to a third only, and
# friction terms that are not there passed three times as often; more would be alike.
FOLDS = 10
"""Stretches of a log, each left out once: few enough to be different motions."""

# Three real robots' repeat to 0.01 to 0.03; other motions never come below 0.4.
_ALIKE = 0.1
"""Difference, as a fraction of the motion's size, at which it is the same again."""

# √2 is that of positions that have nothing to do with each other.
_OTHER = 0.5
"""Such a difference beyond which it has been somewhere else before."""

_LEAST_OVERLAP = 0.1
"""Fraction of a run that must repeat: fewer rows may look alike by chance."""

_MOST_ROWS = 2**15
"""Rows looked at; of longer runs every so manieth."""

_FEWEST_ROWS = 10
"""Rows of a stretch along the period: after the low-pass, one period of its cut-off."""


def repetition(q: Float[np.ndarray, "samples dof"]) -> int | None:
    """Rows after which a motion repeats; None if it does not."""
    step = -(-len(q) // _MOST_ROWS)
    some = q[::step] - q.mean(axis=0)
    size = some.std(axis=0)
    # A joint that rests repeats at once, and hides nothing.
    some = some[:, size > 0.0] / size[size > 0.0]
    count = len(some)
    longest = int((1.0 - _LEAST_OVERLAP) * count)
    if longest < 2 or not some.size:
        return None
    # Σ |q(t + k) − q(t)|² over the overlap: two sums of squares less a correlation.
    spectrum = np.fft.rfft(some, 2 * count, axis=0)
    product = np.fft.irfft((np.abs(spectrum) ** 2).sum(axis=1), 2 * count)[:count]
    squares = np.concatenate([[0.0], np.cumsum((some**2).sum(axis=1))])
    ends = squares[count] - squares[:count], squares[count:0:-1]
    power = np.maximum(0.5 * (ends[0] + ends[1]), 1e-300)
    ratio = np.maximum(1.0 - product / power, 0.0)[:longest]
    difference = np.sqrt(2.0 * ratio)
    away = np.flatnonzero(difference > _OTHER)
    if not away.size:
        return None
    alike = away[0] + np.flatnonzero(difference[away[0] :] < _ALIKE)
    if not alike.size:
        return None
    # The first valley's floor: beyond it the motion is somewhere else again.
    beyond = np.flatnonzero(difference[alike[0] :] > _ALIKE)
    last = alike[0] + beyond[0] if beyond.size else longest
    return step * int(alike[0] + np.argmin(difference[alike[0] : last]))


def folds_of_runs(runs: Sequence[Sized]) -> list[int]:
    """How many of some `FOLDS` stretches each run is cut into, by its length."""
    count = sum(len(run) for run in runs)
    return [-(-FOLDS * len(run) // count) for run in runs]


def even_stretches(rows: int, count: int) -> Cut:
    """Cut rows into so many stretches of equal length: its rows, and which one."""
    return _cut(rows, rows, min(count, rows))


def stretches_of_period(run: Signals, count: int) -> Cut | None:
    """Cut a motion that repeats so that a stretch has the same part of every period.

    None if it does not repeat, or too soon for so many parts.
    """
    period = repetition(run.q)
    if period is None or period < count * _FEWEST_ROWS:
        return None
    return _cut(len(run), period, count)


def _cut(rows: int, period: int, count: int) -> Cut:
    starts = np.arange(-(-rows // period) * count + 1) * (period / count)
    edges = np.minimum(np.round(starts).astype(int), rows).tolist()
    return [
        (slice(a, b), k % count) for k, (a, b) in enumerate(pairwise(edges)) if b > a
    ]
