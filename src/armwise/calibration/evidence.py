"""What a calibration explains: torques as measured, as predicted, and their gravity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.projected import Projected
from armwise.calibration.projection import Projector

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_MOST = 4000
"""Samples that are kept of a recording."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Some of the samples behind a calibration, thinned evenly.

    Attributes:
        time: In [s].
        q: Joint positions in [rad] or [m], sensors as calibrated.
        measured, predicted: Torques in [N m] or [N].
        gravity: The part of the predicted torque that stays at rest.
        is_heard: Torques that counted: their joints surely slid.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    measured: Float[np.ndarray, "samples dof"]
    predicted: Float[np.ndarray, "samples dof"]
    gravity: Float[np.ndarray, "samples dof"]
    is_heard: Bool[np.ndarray, "samples dof"]

    @property
    def weighed(self) -> Float[np.ndarray, "samples dof"]:
        """The measured torques less all that moves: gravity as it was weighed."""
        return np.asarray(self.measured - self.predicted + self.gravity)


def evidence_of(projector: Projector, found: Projected) -> Evidence:
    """Collect what was measured and what the model says, at a solution."""
    few = projector.thinned(max(1, len(projector.sensed) // _MOST))
    parts = [_part(few, found, rows) for rows in few.stretches()]
    q, predicted, gravity, heard = (np.concatenate(x) for x in zip(*parts, strict=True))
    sensed = few.sensed
    return Evidence(sensed.time, q, sensed.tau, predicted, gravity, heard > 0.0)


def _part(
    projector: Projector, found: Projected, rows: slice
) -> tuple[np.ndarray, ...]:
    structure, point = projector.structure, found.point
    parameters = structure.parameters(found.values[:-1])
    predicted = projector.regressor(point, rows) @ parameters
    predicted -= found.values[-1] * projector.torque_rate[rows]
    q = projector.motion(point, rows)[0]
    links = np.arange(parameters.size) < 10 * len(structure.arm.links)
    still = np.zeros_like(q)
    bodies = np.where(links, parameters, 0.0)
    weight = structure.dynamics.regressor(q, still, still) @ bodies
    gravity = weight * projector.torque_scale(point)
    return q, predicted, gravity, projector.sliding.weights(rows)
