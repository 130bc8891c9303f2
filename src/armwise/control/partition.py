"""Several controllers side by side on one batch of plants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.controller import ResumableController
from armwise.errors import ArgumentError
from armwise.motions import MotionSample
from armwise.plants import Measurement

if TYPE_CHECKING:
    from jaxtyping import Float


class Partition:
    """Gives every run of plants in a batch to a controller of its own.

    Args:
        parts: Controllers and how many plants each one serves, in order.
    """

    def __init__(self, parts: Sequence[tuple[ResumableController, int]]) -> None:
        self.parts = tuple(parts)
        ends = np.cumsum([count for _, count in self.parts])
        self._slices = [
            slice(int(end) - count, int(end))
            for (_, count), end in zip(self.parts, ends, strict=True)
        ]

    @property
    def batch(self) -> int:
        """Plants served in all."""
        return sum(count for _, count in self.parts)

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants, to be asked every `period` [s]."""
        if batch != self.batch:
            raise ArgumentError(
                f"The controllers serve {self.batch} plants; the plant has {batch}."
            )
        for controller, count in self.parts:
            controller.reset(count, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        is_shared = reference.q.ndim == 1 or len(reference.q) == 1
        tau = np.empty((self.batch, reference.q.shape[-1]))
        for (controller, _), rows in zip(self.parts, self._slices, strict=True):
            own = (
                reference if is_shared else MotionSample(*(x[rows] for x in reference))
            )
            seen = Measurement(*(None if x is None else x[rows] for x in measurement))
            tau[rows] = controller.torque(t, own, seen)
        return tau

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {
            f"part_{i}.{key}": value
            for i, (controller, _) in enumerate(self.parts)
            for key, value in controller.to_dict().items()
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        for i, (controller, _) in enumerate(self.parts):
            prefix = f"part_{i}."
            own = {
                key.removeprefix(prefix): value
                for key, value in state.items()
                if key.startswith(prefix)
            }
            controller.restore(own)
