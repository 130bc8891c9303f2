"""Jumps of readings: found in milliseconds, on every joint, whatever its load.

The stream, and means over two, four, eight of its samples, are searched for steps: the
first finds clean jumps, the others those that a filter in the sensor has smeared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.step_search import Jump, StepSearch
from armwise.calibration.steps import NOISE_GAIN, WIDTH

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.dynamics import Dynamics

_LONGEST = 0.1
"""Time in [s] within which a step must have happened, lines and all."""

_CLEAN, _BLURRED = 0.05, 0.12
"""What lines may leave of samples, as a share of the step between them: where coarser
means will have another look, and where none will."""

_APART = 0.2
"""Time in [s] within which two steps of a joint are the same one."""


class Jumps:
    """Looks for jumps in a stream.

    Args:
        model: The arm: its torques account for some of its motion.
        period: Time between two samples in [s].
        fastest: Largest speed of each joint in [rad/s] or [m/s].
    """

    def __init__(
        self, model: Dynamics, period: float, fastest: Float[np.ndarray, " dof"]
    ) -> None:
        thins = [r for r in (1, 2, 4, 8) if r == 1 or WIDTH * r * period <= _LONGEST]
        rests = [*[_CLEAN] * (len(thins) - 1), _BLURRED]
        self._scales = [
            StepSearch(model, period, thin, rest, fastest)
            for thin, rest in zip(thins, rests, strict=True)
        ]
        self._seen: list[Jump] = []

    @property
    def smallest(self) -> Float[np.ndarray, " dof"]:
        """Smallest clean jump that is found in [rad] or [m]."""
        return self._scales[0].threshold

    @property
    def resolution(self) -> Float[np.ndarray, " dof"]:
        """By how much noise alone moves readings at most in [rad] or [m]."""
        return 8.0 * self._scales[0].usual / NOISE_GAIN

    def restart(self) -> None:
        """Forget the last samples: the stream was interrupted."""
        for scale in self._scales:
            scale.restart()

    def settle(self) -> None:
        """Take the steps seen so far as ordinary."""
        for scale in self._scales:
            scale.settle()

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
        held: Float[np.ndarray, " samples"],
    ) -> list[Jump]:
        """Take a block of any length; return the jumps it completes.

        Args:
            time: In [s].
            q: Positions in [rad] or [m].
            tau: Torques in [N m] or [N].
            held: Time in [s] for which each sample has repeated an earlier one.
        """
        rows = np.concatenate([time[:, None], held[:, None], q, tau], axis=1)
        self._seen = [x for x in self._seen if x.onset > time[0] - 1.0]
        found: list[Jump] = []
        for scale in self._scales:
            for jump in scale.feed(rows):
                if not any(_is_same(jump, other) for other in self._seen):
                    found.append(jump)
                    self._seen.append(jump)
        return sorted(found, key=lambda jump: jump.time)


def _is_same(one: Jump, other: Jump) -> bool:
    return one.joint == other.joint and abs(one.onset - other.onset) < _APART
