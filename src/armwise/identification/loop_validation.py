"""Closed-loop validation: the identified arm beside a recorded run of the real one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import PlantDiverged
from armwise.identification.estimate import Estimate
from armwise.motions import Motion
from armwise.plants import Controller, SimulatedArm, run
from armwise.recordings import Recording, prepare

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class LoopValidation:
    """A recorded run beside the same run of the identified arm.

    Attributes:
        position_rmse: Difference of the motions in [rad] or [m], per joint.
        tracking_rmse: Distance of the recorded run from the plan, for scale.
        torque_error: ‖τ − τ_simulated‖ / ‖τ‖, per joint, as a fraction.
    """

    position_rmse: Float[np.ndarray, " dof"]
    tracking_rmse: Float[np.ndarray, " dof"]
    torque_error: Float[np.ndarray, " dof"]


def validate_in_loop(
    estimate: Estimate,
    recording: Recording,
    controller: Controller,
    motion: Motion,
    cutoff_hz: float = 20.0,
) -> LoopValidation:
    """Run the identified arm under the controller that was recorded, and compare.

    Args:
        estimate: The estimate; its arm must be physically realisable to be simulated.
        recording: What the real arm did.
        controller: The controller that drove it.
        motion: The planned motion.
        cutoff_hz: Low-pass for both in [Hz].

    Raises:
        PlantDiverged: If the identified arm runs away under that controller.
    """
    for link in estimate.arm.links:
        # An arm with a mass matrix that is not positive runs away by itself.
        link.inertia.require_physical(link.name)
    try:
        simulated = run(SimulatedArm(estimate.arm), controller, motion)
    except PlantDiverged as error:
        raise PlantDiverged(
            f"The identified arm runs away under the recorded controller: {error}"
        ) from error
    # No lag is taken out: both runs have the same loop, and a delay is a difference.
    # Rest stays in, so that the two can be compared sample by sample.
    real = prepare(recording, cutoff_hz, lag=0.0, keep_rest=True)
    model = prepare(simulated, like=real)
    # Preparation cuts the ends of each run by its own filters.
    start, stop = max(real.time[0], model.time[0]), min(real.time[-1], model.time[-1])
    times = real.time[(real.time >= start) & (real.time <= stop)]
    planned = motion.sample(times).q
    q, tau = (_at(real.time, x, times) for x in (real.q, real.tau))
    q_model, tau_model = (_at(model.time, x, times) for x in (model.q, model.tau))
    size = np.linalg.norm(tau, axis=0)
    return LoopValidation(
        position_rmse=np.sqrt(np.mean((q - q_model) ** 2, axis=0)),
        tracking_rmse=np.sqrt(np.mean((q - planned) ** 2, axis=0)),
        torque_error=np.linalg.norm(tau - tau_model, axis=0)
        / np.where(size > 0, size, 1),
    )


def _at(time: np.ndarray, values: np.ndarray, times: np.ndarray) -> np.ndarray:
    return np.stack([np.interp(times, time, column) for column in values.T], axis=1)
