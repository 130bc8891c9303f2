"""The model a controller believes in, whatever the plant really is."""

from __future__ import annotations

from armwise.arms import Arm
from armwise.dynamics import Dynamics


def dynamics_of(model: Arm | Dynamics) -> Dynamics:
    """Return the dynamics of an arm, or the dynamics that were given."""
    return Dynamics(model) if isinstance(model, Arm) else model
