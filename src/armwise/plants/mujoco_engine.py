"""MuJoCo as an engine: one model, one data for each arm of the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.mujoco_model import import_mujoco
from armwise.plants.state import State

INTEGRATORS = {"euler": 0, "rk4": 1, "implicit": 2, "implicitfast": 3}
"""MuJoCo's own integrators, by name."""


class MujocoEngine:
    """Steps MuJoCo models under torques applied at the joints.

    Args:
        model: A compiled model; its hinge and slide joints are driven.
        batch: Number of arms side by side.
        tick: Time step in [s].
        integrator: One of INTEGRATORS.
        offset: Constant torque of each joint's drive in [N m].
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
        joints: Names of the driven joints in order; all of them when not given.
    """

    def __init__(
        self,
        model: Any,
        *,
        batch: int,
        tick: float,
        integrator: str,
        speed_bound: float,
        offset: np.ndarray | None = None,
        joints: tuple[str, ...] | None = None,
    ) -> None:
        self._mujoco = import_mujoco()
        if integrator not in INTEGRATORS:
            raise ArgumentError(
                f"MuJoCo has no integrator {integrator!r}. It has: "
                f"{', '.join(INTEGRATORS)}."
            )
        model.opt.timestep = tick
        model.opt.integrator = INTEGRATORS[integrator]
        self.model = model
        self.joint_names = joints or driven_joints(model)
        ids = [model.joint(name) for name in self.joint_names]
        self._position = np.array([int(j.qposadr[0]) for j in ids], dtype=int)
        self._dof = np.array([int(j.dofadr[0]) for j in ids], dtype=int)
        self.data = [self._mujoco.MjData(model) for _ in range(batch)]
        self.state = State.at_rest(batch, len(ids))
        self._offset = np.zeros(len(ids)) if offset is None else offset
        self._bound = speed_bound
        warning = self._mujoco.mjtWarning
        bad = (warning.mjWARN_BADQPOS, warning.mjWARN_BADQVEL, warning.mjWARN_BADQACC)
        self._bad = [int(kind) for kind in bad]

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        self.state.time = 0.0
        self.state.diverged[:] = False
        self.state.tau[:] = 0.0
        for k, data in enumerate(self.data):
            self._mujoco.mj_resetData(self.model, data)
            data.qpos[self._position] = q[k]
            data.qvel[self._dof] = qd[k]
            self._apply(k, self.state.tau[k])
            self._observe(k)

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        for k, data in enumerate(self.data):
            if not self.state.diverged[k]:
                self._apply(k, tau[k])
                self._mujoco.mj_step(self.model, data, ticks)
                self._observe(k)

    def _apply(self, k: int, tau: np.ndarray) -> None:
        self.data[k].qfrc_applied[self._dof] = tau - self._offset

    def _observe(self, k: int) -> None:
        """Bring accelerations and forces up to date, then read the truth."""
        data, state, dof = self.data[k], self.state, self._dof
        qd = data.qvel[dof]
        # MuJoCo resets a model that goes unstable, and counts it as a warning.
        unstable = data.warning.number[self._bad].any() or not np.isfinite(qd).all()
        if unstable or np.abs(qd).max() > self._bound:
            state.diverged[k] = True
            return
        self._mujoco.mj_forward(self.model, data)
        state.q[k] = data.qpos[self._position]
        state.qd[k] = qd
        state.qdd[k] = data.qacc[dof]
        lost = data.qfrc_passive[dof] + data.qfrc_constraint[dof] - self._offset
        rotor = self.model.dof_armature[dof] * data.qacc[dof]
        state.link_tau[k] = state.tau[k] + lost - rotor

    def wrench(self, frame: str) -> Any:
        """Return a sampler of the wrench on what is beyond the wrist sensor."""
        address = [
            int(self.model.sensor(f"wrist {kind}").adr[0])
            for kind in ("force", "torque")
        ]
        places = np.concatenate([np.arange(a, a + 3) for a in address])

        def sample(state: State) -> np.ndarray:
            return np.stack([data.sensordata[places] for data in self.data])

        return sample


def driven_joints(model: Any) -> tuple[str, ...]:
    """Return the names of the hinge and slide joints of a model, in order."""
    mujoco = import_mujoco()
    kinds = (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE))
    joints = [model.joint(i) for i in range(model.njnt)]
    return tuple(str(j.name) for j in joints if int(j.type[0]) in kinds)
