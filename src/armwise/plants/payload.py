"""Payloads: arms that carry a load, and the inertia beyond a wrist sensor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

# Between two samples of a force sensor in [s]: no sensor is slower, and over a longer
# pause the middle of two poses says nothing about the way between them.
_LONGEST_SAMPLE = 0.05


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
        return self._wrench(state.q, state.qd, state.qdd)

    def averaged(self) -> Callable[[State], np.ndarray]:
        """Return a sampler of the average since the sample before, as real ones do.

        A torque that is held for a step moves a light, damped joint at its beginning
        only: the acceleration at the end, where samples are taken, can be half of what
        moved it (10 N m s/rad on 0.01 kg m² at 1 kHz). The reading is half a sample
        late.
        """
        time, q, qd = -np.inf, np.zeros(0), np.zeros(0)

        def sample(state: State) -> np.ndarray:
            nonlocal time, q, qd
            elapsed = state.time - time
            if 0.0 < elapsed < _LONGEST_SAMPLE:
                middle = 0.5 * (q + state.q), 0.5 * (qd + state.qd)
                wrench = self._wrench(*middle, (state.qd - qd) / elapsed)
            else:  # the first sample, or one after a pause
                wrench = self(state)
            time, q, qd = state.time, state.q.copy(), state.qd.copy()
            return wrench

        return sample

    def _wrench(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        A = self._held.regressor(q, qd, qdd)
        wrench: np.ndarray = (A @ self._bodies)[:, :, 0]
        return wrench
