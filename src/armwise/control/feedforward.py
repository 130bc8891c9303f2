"""Model-based controllers: feedforward, computed torque, playback of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import Arm
from armwise.control.feedback import (
    ResumableController,
    RobustTerm,
    VelocitySource,
    apply_feedback,
    feedback_gain,
    restored,
)
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


# The assumed model of the arm.


def dynamics_of(model: Arm | Dynamics) -> Dynamics:
    """Return the dynamics of an arm, or the dynamics that were given."""
    return Dynamics(model) if isinstance(model, Arm) else model


# Feedforward: the torque of the reference motion, by the model.


class Feedforward:
    """τ = feedback + n̂(q_d, q̇_d, q̈_d), or only its gravity part (`atkeson1986` A.3–4).

    Args:
        feedback: The controller that closes the loop.
        model: The assumed arm; friction in its drives counts, too.
        terms: "full" for the whole inverse dynamics, "gravity" for gravity alone.
    """

    def __init__(
        self,
        feedback: ResumableController,
        model: Arm | Dynamics,
        terms: Literal["full", "gravity"] = "full",
    ) -> None:
        if terms not in ("full", "gravity"):
            raise ArgumentError(f"terms must be 'full' or 'gravity', not {terms!r}.")
        self.feedback = feedback
        self.model = dynamics_of(model)
        self.terms = terms

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self.feedback.reset(batch, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        if self.terms == "full":
            nominal = self.model.inverse_dynamics(*reference)
        else:
            nominal = self.model.gravity_torque(reference.q)
        total: np.ndarray = nominal + self.feedback.torque(t, reference, measurement)
        return total

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.feedback.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.feedback.restore(state)


# Computed torque: feedback linearisation by the model.


class ComputedTorque:
    """τ = n̂(q, q̇, q̈*), q̈* = q̈_d + K_v (q̇_d − q̇) + K_p (q_d − q) (App. A, 5–6).

    Args:
        model: The assumed arm.
        kp: K_p in [1/s²]: a number, one per joint, or a matrix.
        kd: K_v in [1/s].
        robust: An additional bounded push, if any, on s = ė + (K_p/K_v) e.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        model: Arm | Dynamics,
        kp: ArrayLike,
        kd: ArrayLike,
        robust: RobustTerm | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        self.model = dynamics_of(model)
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        self.robust = robust
        self._velocity = VelocitySource(cutoff_hz)
        self._batch = -1

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self._batch = batch
        self._velocity.reset(period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        e, ed = reference.q - q, reference.qd - qd
        spring = apply_feedback(self.kp, e)
        acceleration = reference.qdd + apply_feedback(self.kd, ed) + spring
        tau: np.ndarray = self.model.inverse_dynamics(q, qd, acceleration)
        if self.robust is not None:
            # s is formed joint by joint; couplings within K_v are left out of it.
            diagonal = np.diag(self.kd) if self.kd.ndim == 2 else self.kd
            tau = tau + self.robust.torque(-ed - spring / diagonal)
        return tau

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self._velocity.restore(state, (self._batch, self.model.arm.dof))


# Playback of a stored command on top of feedback.


class Playback:
    """τ = feedback + u(t), with u stored at every control instant.

    Args:
        feedback: The controller that closes the loop.
        command: u, one row per control period from t = 0 in [N m] or [N]; the last
            row is held afterwards. May have a plant axis: (samples, batch, dof).
    """

    def __init__(
        self,
        feedback: ResumableController,
        command: Float[np.ndarray, "samples *batch dof"],
    ) -> None:
        self.feedback = feedback
        self.command = np.asarray(command, dtype=float)
        if self.command.ndim not in (2, 3) or not np.all(np.isfinite(self.command)):
            raise ArgumentError(
                "A stored command needs finite rows, one per control period."
            )
        self._period, self._batch = 1.0, 1
        self._applied: list[np.ndarray] = []

    @property
    def applied(self) -> Float[np.ndarray, "samples batch dof"]:
        """Torques commanded since the last reset, feedback included."""
        rows = np.array(self._applied)
        return rows.reshape(-1, self._batch, self.command.shape[-1])

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self._period, self._batch = period, batch
        self._applied = []
        self.feedback.reset(batch, period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        # Rounded: t is a multiple of the period but for rounding.
        row = min(round(t / self._period), len(self.command) - 1)
        back = self.feedback.torque(t, reference, measurement)
        total: np.ndarray = self.command[row] + back
        self._applied.append(total)
        return total

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {"applied": self.applied} | self.feedback.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        shape = (-1, self._batch, self.command.shape[-1])
        applied = restored(state, "applied", shape)
        self.feedback.restore(state)
        self._applied = list(applied)
