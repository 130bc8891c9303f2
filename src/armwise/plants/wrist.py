"""The true wrench on what a wrist sensor carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics.wrench import HeldBody
from armwise.plants.payload import Payload, carried_beyond
from armwise.plants.state import State
from armwise.programs import Backend

if TYPE_CHECKING:
    from jaxtyping import Float


class WristWrench:
    """Samples the wrench that moves the body beyond a frame of each arm.

    Args:
        arms: The arms without their loads, one geometry for all.
        payloads: Their loads, or none at all.
        frame: Name of the link or frame the sensor sits at.
        backend: "c", "numpy" or "auto".
    """

    def __init__(
        self,
        arms: Sequence[Arm],
        payloads: Sequence[Payload],
        frame: str,
        backend: Backend,
    ) -> None:
        loads: Sequence[Payload | None] = payloads or (None,) * len(arms)
        pairs = zip(arms, loads, strict=True)
        bodies = [carried_beyond(arm, frame, load).vector for arm, load in pairs]
        self._bodies = np.stack(bodies)[:, :, None]
        self._held = HeldBody(arms[0], frame, backend)

    def __call__(self, state: State) -> Float[np.ndarray, "batch 6"]:
        """Return force [N] and torque [N m] in the frame's axes, at its origin."""
        A = self._held.regressor(state.q, state.qd, state.qdd)
        wrench: np.ndarray = (A @ self._bodies)[:, :, 0]
        return wrench
