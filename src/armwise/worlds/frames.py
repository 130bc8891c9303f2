"""Where every stroke of a world was, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armwise.worlds.bodies import Point
from armwise.worlds.outline import Stroke, outline_of
from armwise.worlds.run import Run


@dataclass(frozen=True, eq=False)
class Frames:
    """The strokes of a run at some times.

    Attributes:
        time: Of each frame in [s].
        strokes: What they are.
        ends: Their ends in the world in [m]: (frames, strokes, 2, 3).
    """

    time: np.ndarray
    strokes: list[Stroke]
    ends: np.ndarray


def frames_of(run: Run, count: int) -> Frames:
    """Return `count` frames, evenly spread over a run."""
    picks = np.unique(np.linspace(0, len(run.time) - 1, count).round().astype(int))
    strokes = outline_of(run.world)
    points = [p for s in strokes for p in (s.a, s.b) if isinstance(p, Point)]
    states = run.states[picks]
    found = run.engine.positions(states, points) if points else None
    ends = np.zeros((len(picks), len(strokes), 2, 3))
    place = 0
    for k, stroke in enumerate(strokes):
        for j, end in enumerate((stroke.a, stroke.b)):
            if isinstance(end, Point):
                assert found is not None
                ends[:, k, j] = found[:, place]
                place += 1
            else:
                ends[:, k, j] = end
    return Frames(run.time[picks], strokes, ends)
