"""Payloads: arms that carry a load, and the inertia beyond a wrist sensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters
from armwise.dynamics import HeldBody
from armwise.errors import ArgumentError
from armwise.plants.state import State
from armwise.programs import Backend

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Payload:
    """A rigid body held at a frame of the arm.

    Attributes:
        frame: Name of a link or frame.
        inertia: Its ten parameters, in that frame.
    """

    frame: str
    inertia: InertialParameters


def carrying(arm: Arm, payload: Payload) -> Arm:
    """Return the arm with a load that moves with one of its links."""
    link, T_link_frame = _on_a_link(arm, payload.frame)
    links = list(arm.links)
    loaded = links[link].inertia + payload.inertia.transformed(T_link_frame)
    links[link] = replace(links[link], inertia=loaded)
    return replace(arm, links=tuple(links))


def carried_beyond(arm: Arm, frame: str, payload: Payload | None) -> InertialParameters:
    """Return the body a sensor at a frame carries, in that frame.

    It is what the description says hangs on that frame (a gripper) and the load.
    """
    link, T_link_sensor = _on_a_link(arm, frame)
    own = [x.inertia for x in arm.frames if x.name == frame]
    body = own[0] if own else InertialParameters.zero()
    if payload is None:
        return body
    other, T_link_load = _on_a_link(arm, payload.frame)
    if other != link:
        raise ArgumentError(
            f"The load at {payload.frame!r} does not hang on the sensor at {frame!r}: "
            "they move with different links."
        )
    T_sensor_load = np.linalg.inv(T_link_sensor) @ T_link_load
    return body + payload.inertia.transformed(T_sensor_load)


def _on_a_link(arm: Arm, frame: str) -> tuple[int, Float[np.ndarray, "4 4"]]:
    link, pose = arm.find_frame(frame)
    if link == BASE:
        raise ArgumentError(f"{frame!r} is fixed to the base and carries nothing.")
    return link, pose


# True wrench at a wrist sensor.


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
