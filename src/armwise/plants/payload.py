"""A load in the hand, and what a wrist sensor carries of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters
from armwise.errors import ArgumentError

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
    link, pose = arm.place(frame)
    if link == BASE:
        raise ArgumentError(f"{frame!r} is fixed to the base and carries nothing.")
    return link, pose
