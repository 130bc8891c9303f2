"""Model-based controllers: feedforward, computed torque, playback of a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

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
from armwise.regression import FrictionModel, FrictionTerm

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


FeedforwardTerms = Literal["full", "gravity", "gravity where it is"]


class Feedforward:
    """τ = feedback + n̂(q_d, q̇_d, q̈_d), or only its gravity part (`atkeson1986` A.3–4).

    Args:
        feedback: The controller that closes the loop.
        model: The assumed arm; friction in its drives counts, too.
        terms: "full" for the whole inverse dynamics, "gravity" for gravity alone, both
            along the reference; "gravity where it is" for gravity at the measured
            position, which holds an arm wherever it is pushed.
    """

    def __init__(
        self,
        feedback: ResumableController,
        model: Arm | Dynamics,
        terms: FeedforwardTerms = "full",
    ) -> None:
        if terms not in get_args(FeedforwardTerms):
            listed = ", ".join(get_args(FeedforwardTerms))
            raise ArgumentError(f"terms must be one of {listed}, not {terms!r}.")
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
        elif self.terms == "gravity":
            nominal = self.model.gravity_torque(reference.q)
        else:
            nominal = self.model.gravity_torque(measurement.need("q"))
        total: np.ndarray = nominal + self.feedback.torque(t, reference, measurement)
        return total

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.feedback.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.feedback.restore(state)


# Disturbance feedforward: what a wrist sensor feels, before it becomes an error.


class WrenchFeedforward:
    """τ = feedback + J(q)ᵀ w, w the measured wrench on what the hand holds or touches.

    A load or a push that the model does not know of is compensated as it is felt, not
    when it has moved the arm. The loop through the sensor is one control period old: a
    low-pass keeps its gain below one where the arm is lighter than what it holds.

    Args:
        feedback: The controller that closes the loop.
        model: The assumed arm, without what is beyond the sensor.
        frame: Frame of the wrist sensor.
        cutoff_hz: First-order low-pass of the wrench in [Hz].
    """

    def __init__(
        self,
        feedback: ResumableController,
        model: Arm | Dynamics,
        frame: str,
        # Judgement: above what arms move at, below what their links ring at.
        cutoff_hz: float = 20.0,
    ) -> None:
        feedback_gain(cutoff_hz, "cutoff_hz")
        self.feedback = feedback
        self.model = dynamics_of(model)
        self.model.arm.find_frame(frame)
        self.frame, self.cutoff_hz = frame, cutoff_hz
        self._keep = 0.0
        self._wrench: np.ndarray | None = None

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self.feedback.reset(batch, period)
        # Exact discretisation of the first-order low-pass.
        self._keep = float(np.exp(-2.0 * np.pi * self.cutoff_hz * period))
        self._wrench = None

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q, felt = measurement.need("q"), measurement.need("wrench")
        before = felt if self._wrench is None else self._wrench
        self._wrench = self._keep * before + (1.0 - self._keep) * felt
        R = self.model.link_pose(q, self.frame)[..., :3, :3]
        # The sensor's axes to the base's, where the Jacobian is.
        turned = self._wrench.reshape(*q.shape[:-1], 2, 3) @ np.swapaxes(R, -1, -2)
        J = self.model.jacobian(q, self.frame)
        held = np.einsum("...ij,...i->...j", J, turned.reshape(*q.shape[:-1], 6))
        total: np.ndarray = held + self.feedback.torque(t, reference, measurement)
        return total

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        own = {} if self._wrench is None else {"wrench": self._wrench.copy()}
        return own | self.feedback.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        if "wrench" in state:
            self._wrench = np.array(state["wrench"])
        self.feedback.restore(state)


# Friction feedforward: what viscous, Coulomb and offset leave out.


class FrictionFeedforward:
    """τ = feedback + friction of further terms along the reference.

    Around `Feedforward` or `ComputedTorque`, whose model has viscous and Coulomb
    friction. Along the reference, not the measured motion: a speed near zero is noise,
    and pushing along its sign would make a joint chatter.

    Args:
        feedback: The controller that closes the loop.
        model: The assumed arm, whose links load the gears.
        terms: Terms and their coefficients: `estimate.friction`.

    Attributes:
        temperature: Temperature of each drive in [°C], for terms that depend on it; set
            it as it is measured. None: that which the terms are about.
    """

    def __init__(
        self,
        feedback: ResumableController,
        model: Arm,
        terms: Sequence[tuple[FrictionTerm, float]],
    ) -> None:
        bare = model.parameters.copy()
        bare[model.layout.drives] = 0.0
        self.feedback, self.terms = feedback, tuple(terms)
        self.model = Dynamics(model.with_parameters(bare))
        self._friction = FrictionModel(model, self.terms)
        self.temperature: Float[np.ndarray, " drives"] | None = None

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self.feedback.reset(batch, period)
        # All plants follow one reference: its friction is one.
        self._friction.reset()
        self._friction.period = period

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q, qd, qdd = (np.atleast_2d(x) for x in reference)
        self._friction.temperature = self.temperature
        lost = self._friction.torque(q, qd, self.model.inverse_dynamics(q, qd, qdd))
        total: np.ndarray = lost + self.feedback.torque(t, reference, measurement)
        return total

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self._friction.state | self.feedback.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        springs = restored(state, "friction_springs", (len(self.terms), 1))
        drives = len(self.model.mechanism.drive_rows)
        name = "friction_position"
        position = restored(state, name, (1, drives)) if name in state else None
        self._friction.restore(springs, position)
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
