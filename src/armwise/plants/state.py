"""What is true of a batch of arms at one instant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass
class State:
    """The truth about every arm of a batch, updated in place by its engine.

    Just before a new torque acts: q̈ and the torques are those of the torque still
    held, so that all of them satisfy the equations of motion together.

    Attributes:
        time: In [s].
        q, qd, qdd: Motion of the links.
        motor_q, motor_qd: Motion of the motors, seen at the joints; the links' own
            arrays where joints are rigid.
        tau: Motor torque in [N m], after the actuator's imperfections.
        link_tau: Torque that reaches the links: less rotor inertia and friction.
        diverged: Arms whose state left every reasonable bound.
    """

    time: float
    q: Float[np.ndarray, "batch dof"]
    qd: Float[np.ndarray, "batch dof"]
    qdd: Float[np.ndarray, "batch dof"]
    motor_q: Float[np.ndarray, "batch dof"]
    motor_qd: Float[np.ndarray, "batch dof"]
    tau: Float[np.ndarray, "batch dof"]
    link_tau: Float[np.ndarray, "batch dof"]
    diverged: Bool[np.ndarray, " batch"]

    @classmethod
    def at_rest(cls, batch: int, dof: int, has_motors: bool = False) -> State:
        """All zeros; motors of their own only where joints are elastic."""
        q, qd, qdd, tau, link_tau = (np.zeros((batch, dof)) for _ in range(5))
        motor_q = np.zeros((batch, dof)) if has_motors else q
        motor_qd = np.zeros((batch, dof)) if has_motors else qd
        diverged = np.zeros(batch, dtype=bool)
        return cls(0.0, q, qd, qdd, motor_q, motor_qd, tau, link_tau, diverged)
