"""Altered arms: with a payload, felt by a wrist sensor, or with other parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, Drive, InertialParameters
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


# Perturbed arms: parameters off by a given fraction, bodies still physical.


def perturbed(arm: Arm, relative: float, seed: int | np.random.Generator = 0) -> Arm:
    """Return an arm whose parameters are off by about a fraction; bodies stay bodies.

    Each link's pseudo-inertia P becomes G P Gᵀ with G = I + relative/2 · (random 4×4):
    what was a physical body is one again. The lengths among G's entries are in units
    of the link's own radius of gyration. Rotor inertias, friction and offsets are
    multiplied by 1 + relative · (a random number).

    Args:
        arm: The arm as described.
        relative: Typical relative error, such as 0.1.
        seed: Seed, or a generator to draw from.
    """
    if not 0.0 <= relative < 1.0:
        raise ArgumentError(f"relative must lie between 0 and 1, not {relative!r}.")
    random = np.random.default_rng(seed)
    links = tuple(
        replace(link, inertia=_perturbed_body(link.inertia, relative, random))
        for link in arm.links
    )
    joints = tuple(
        replace(joint, drive=_perturbed_drive(joint.drive, relative, random))
        for joint in arm.joints
    )
    couplings = tuple(
        replace(x, drive=_perturbed_drive(x.drive, relative, random))
        for x in arm.couplings
    )
    return replace(arm, links=links, joints=joints, couplings=couplings)


def _perturbed_body(
    body: InertialParameters, relative: float, random: np.random.Generator
) -> InertialParameters:
    draw = random.standard_normal((4, 4))
    P = body.pseudo_inertia
    size = np.sqrt(abs(np.trace(P[:3, :3]) / body.mass)) if body.mass else 0.0
    # Judgement: a body described as a point at its frame may be 0.1 m from there.
    size = size or 0.1
    scale = np.array([size, size, size, 1.0])
    # P ↦ G P Gᵀ keeps P positive definite, which is all that a body needs. P changes by
    # about twice as much as G, hence one half.
    G = np.eye(4) + 0.5 * relative * draw * scale[:, None] / scale
    return InertialParameters.from_pseudo_inertia(G @ P @ G.T)


def _perturbed_drive(
    drive: Drive, relative: float, random: np.random.Generator
) -> Drive:
    # ±1.7 is ±√3, about: uniform numbers of standard deviation one.
    factors = 1.0 + relative * random.uniform(-1.7, 1.7, 4)
    return Drive(*(float(x) for x in drive.vector * np.maximum(factors, 0.0)))
