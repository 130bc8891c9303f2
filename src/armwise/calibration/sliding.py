"""Which way joints slide, and when they do not: what dry friction looks like."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

_SLOW = 0.1
"""Share of a joint's usual top speed below which it may stick or creep."""

_SURELY = 0.9
"""How much of a filter's window must see one direction."""


@dataclass(frozen=True, eq=False)
class Sliding:
    """Directions of motors as the torques' low-pass shows them, in the sensors' sense.

    Attributes:
        directions: One column per motor; None for samples that were built by hand.
        is_heard: Torques that count: those of joints that surely slide.
        drive_weights: How far each coordinate turns each motor.
    """

    directions: Float[np.ndarray, "samples motors"] | None
    is_heard: np.ndarray | None
    drive_weights: Float[np.ndarray, "motors dof"]

    @classmethod
    def of(
        cls, sensed: Samples, drive_weights: Float[np.ndarray, "motors dof"]
    ) -> Sliding:
        """Tell sliding from sticking.

        A joint at rest holds whatever friction lets it, and one that creeps stretches
        its transmission: such torques say nothing of gravity.
        """
        resolution = np.asarray(sensed.preparation.speed_resolution)
        if not resolution.size:
            return cls(None, None, drive_weights)
        slow = _SLOW * np.percentile(np.abs(sensed.qd), 90, axis=0)
        dead_band = tuple(float(x) for x in np.maximum(resolution, slow))
        preparation = replace(sensed.preparation, speed_resolution=dead_band)
        judged = replace(sensed, preparation=preparation)
        slides = np.abs(judged.direction()) > _SURELY
        # A joint that hardly ever moves is better heard at rest than not at all.
        heard = slides | (slides.mean(axis=0) < 0.1)
        return cls(sensed.direction(drive_weights), heard, drive_weights)

    def thinned(self, step: int) -> Sliding:
        """Every so manieth sample."""
        if self.directions is None or self.is_heard is None:
            return self
        return replace(
            self, directions=self.directions[::step], is_heard=self.is_heard[::step]
        )

    def heard(self, samples: int) -> Float[np.ndarray, " dof"]:
        """How many of so many samples' torques count, joint by joint."""
        return np.asarray(self.weights(slice(0, samples)).sum(axis=0))

    def weights(self, rows: slice) -> Float[np.ndarray, "samples dof"]:
        """One for torques that count, zero for the others."""
        if self.is_heard is None:
            shape = (rows.stop - rows.start, self.drive_weights.shape[1])
            return np.ones(shape)
        return self.is_heard[rows].astype(float)

    def set_coulomb(
        self, Y: np.ndarray, rows: slice, signs: Float[np.ndarray, " dof"], first: int
    ) -> None:
        """Show dry friction in a regressor as it looks through the torque's filter.

        Args:
            Y: Regressor of these rows, changed in place.
            rows: Which samples.
            signs: Of the sensors' gains.
            first: Column of the first drive's Coulomb friction.
        """
        if self.directions is None:
            return
        for k, w in enumerate(self.drive_weights):
            turned = signs[np.argmax(np.abs(w))]
            column = turned * self.directions[rows, k]
            Y[:, :, first + 4 * k] = column[:, None] * w
