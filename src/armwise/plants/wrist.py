"""The true wrench on what a wrist sensor carries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.dynamics import Mechanism, mechanism_of
from armwise.dynamics.joints import cross_joints
from armwise.dynamics.newton_euler import accelerations, link_wrench
from armwise.dynamics.vectors import cross, turn, vector, vsub
from armwise.plants.payload import Payload, carried_beyond
from armwise.plants.state import State
from armwise.programs import Backend, Kernel, Program, trace

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
        link, T_link_frame = arms[0].place(frame)
        mechanism = mechanism_of(arms[0])
        loads: Sequence[Payload | None] = payloads or (None,) * len(arms)
        T = mechanism.skeleton.segments[link].from_user @ T_link_frame
        self._bodies = np.stack(
            [
                _internal(carried_beyond(arm, frame, load), T)
                for arm, load in zip(arms, loads, strict=True)
            ]
        )
        self._kernel = Kernel(wrench_program(mechanism, link, T), backend)

    def __call__(self, state: State) -> Float[np.ndarray, "batch 6"]:
        """Return force [N] and torque [N m] in the frame's axes, at its origin."""
        (wrench,) = self._kernel([state.q, state.qd, state.qdd, self._bodies])
        return wrench


def wrench_program(
    mechanism: Mechanism, link: int, T: Float[np.ndarray, "4 4"]
) -> Program:
    """Trace the wrench at a place on a link: T maps it to the link's internal frame."""
    R, p = T[:3, :3], vector(T[:3, 3])

    def function(q: Any, qd: Any, qdd: Any, body: Any) -> dict[str, object]:
        crossings = cross_joints(mechanism.skeleton, mechanism.joints(q, True))
        speeds = mechanism.joints(qd)
        motions = accelerations(
            mechanism.skeleton, crossings, speeds, speeds, mechanism.joints(qdd)
        )
        force, moment = link_wrench(motions[link], body)
        there = vsub(moment, cross(p, force))
        return {"wrench": [*turn(R.T, force), *turn(R.T, there)]}

    sizes = dict.fromkeys(("q", "qd", "qdd"), mechanism.dof)
    return trace("wrist_wrench", function, sizes | {"body": 10})


def _internal(
    body: InertialParameters, T: Float[np.ndarray, "4 4"]
) -> Float[np.ndarray, " 10"]:
    """Return [m, h, Σxx, Σxy, Σxz, Σyy, Σyz, Σzz] in the link's internal frame."""
    P = body.transformed(T).pseudo_inertia
    sigma = P[[0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    return np.concatenate([[P[3, 3]], P[:3, 3], sigma])
