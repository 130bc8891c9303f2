"""Leave out parameters that hardly matter, and say what that may cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.codegen.model import Model
from armwise.codegen.reference import random_states
from armwise.dynamics import Dynamics

if TYPE_CHECKING:
    from jaxtyping import Float

STATES = 2000
_SEED = 3


@dataclass(frozen=True, eq=False)
class Pruning:
    """Parameters that were left out.

    Attributes:
        left_out: Their places among the grouped parameters.
        names: Their names.
        bound: Torque error per joint that they may cause together, in [N m].
        peak: Largest torque per joint, in [N m].
        states: On how many random states within limits that was found.
    """

    left_out: frozenset[int]
    names: tuple[str, ...]
    bound: Float[np.ndarray, " dof"]
    peak: Float[np.ndarray, " dof"]
    states: int

    @property
    def sentence(self) -> str:
        """What the header says of it."""
        shares = ", ".join(
            f"{100 * b / p:.2g} %" if p else "0 %"
            for b, p in zip(self.bound, self.peak, strict=True)
        )
        return (
            f"{len(self.names)} small parameters are left out; on {self.states} random "
            f"states within limits they change the torques of the joints by at most "
            f"{shares} of their largest values."
        )


def prune(model: Model, tolerance: float) -> Pruning:
    """Find the parameters that together stay below a fraction of the largest torque.

    Args:
        model: The model; its limits say how fast it moves.
        tolerance: Fraction of each joint's largest torque.
    """
    arm = model.arm
    dynamics = Dynamics(arm)
    states = random_states(arm, STATES, _SEED)
    torque = dynamics.inverse_dynamics(states.q, states.qd, states.qdd)
    peak = np.abs(torque).max(axis=0)
    kernel = dynamics.kernel("grouped_regressor")
    (Y,) = kernel([states.q, states.qd, states.qdd])
    values = np.array(model.bodies)
    shares = np.abs(Y[:, :, : values.size]).max(axis=0) * np.abs(values)
    relative = (shares / np.where(peak > 0, peak, 1.0)[:, None]).max(axis=0)
    left_out: set[int] = set()
    bound = np.zeros(arm.dof)
    for k in np.argsort(relative):
        if values[k] == 0.0:
            continue
        raised = bound + shares[:, k]
        if np.any(raised > tolerance * peak):
            break
        left_out.add(int(k))
        bound = raised
    names = tuple(model.body_names[k] for k in sorted(left_out))
    return Pruning(frozenset(left_out), names, bound, peak, STATES)
