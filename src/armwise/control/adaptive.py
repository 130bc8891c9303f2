"""Adaptive controllers: Slotine–Li, composite, indirect, Craig–Hsu–Sastry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from armwise.control.adaptation import Adaptation, ParameterSet, Projection, UpdateLaw
from armwise.control.feedback import (
    RobustTerm,
    VelocitySource,
    apply_feedback,
    feedback_gain,
    restored,
    sliding_reference,
)
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement

# The adapted model: regressor, estimate, torque limits.


class AdaptiveModel:
    """A model whose parameters adapt: regressor, estimate, update law.

    Args:
        parameters: What is adapted, of which arm.
        law: How.
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
    ) -> None:
        self.parameters = parameters
        self.dynamics = Dynamics(parameters.arm)
        self.law = law
        self.projection = projection
        start = np.zeros(parameters.count) if initial is None else initial
        self.initial = np.asarray(start, dtype=float)
        if self.initial.shape[-1] != parameters.count:
            raise ArgumentError(
                f"The first estimate has {self.initial.shape[-1]} numbers for "
                f"{parameters.count} adapted parameters."
            )
        effort = parameters.arm.limits("effort")
        self._effort = effort if np.all(np.isfinite(effort)) else None
        self._columns = None if parameters.is_whole else parameters.columns
        self.adaptation = self._adaptation(())
        self.period = 0.0

    @property
    def estimate(self) -> Float[np.ndarray, "batch p"]:
        """The parameters as they are now."""
        return self.adaptation.parameters

    def reset(self, batch: int, period: float) -> None:
        """Forget everything, for `batch` plants controlled every `period` [s]."""
        self.period = period
        self.adaptation = self._adaptation((batch,))

    def _adaptation(self, batch: tuple[int, ...]) -> Adaptation:
        described = self.parameters.values()
        return Adaptation(
            self.law, self.initial, batch, self.projection, center=described
        )

    def tracking_regressor(
        self, q: np.ndarray, qd: np.ndarray, qdr: np.ndarray, qddr: np.ndarray
    ) -> Float[np.ndarray, "batch dof p"]:
        """Y with Y a = M q̈_r + C q̇_r + g + friction, adapted columns only."""
        return self.select(self.dynamics.slotine_li_regressor(q, qd, qdr, qddr))

    def select(self, Y: np.ndarray) -> Float[np.ndarray, "batch dof p"]:
        """Keep the adapted columns of a full regressor."""
        if self._columns is None:
            return Y
        columns: np.ndarray = Y.take(self._columns, axis=-1)
        return columns

    def torque(self, Y: Float[np.ndarray, "batch dof p"]) -> np.ndarray:
        """Y â with the estimate of now."""
        product: np.ndarray = np.matmul(Y, self.estimate[..., None])[..., 0]
        return product

    def saturated(self, tau: np.ndarray) -> Bool[np.ndarray, " batch"] | None:
        """Plants whose torque saturates: their errors must not drive adaptation."""
        if self._effort is None:
            return None
        over: np.ndarray = np.abs(tau) >= self._effort
        if not over.any():
            return None
        return np.asarray(over.any(axis=-1))

    def limited(self, tau: np.ndarray) -> np.ndarray:
        """What the actuators can make of a torque."""
        if self._effort is None:
            return tau
        return np.asarray(np.clip(tau, -self._effort, self._effort))

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.adaptation.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called."""
        self.adaptation.restore(state)


# Filtered regressor: torques without accelerations.


class FilteredRegressor:
    """W = F(s) Y and F(s) τ with F = b/(s + b) (`astley1996` Eq. 3.29–3.33).

    With p = M q̇ = H π, τ = ṗ + G π, G π = −∂T/∂q + g + friction, so that
    W = b (H − F H) + F G: the derivative falls to the filter.

    Args:
        model: Whose regressor.
        bandwidth: b in [rad/s]; the arm's motion must lie within it.
        torque_scale: What both sides are divided by, one or one per joint: the
            error to be expected of each, so that strong joints do not drown weak ones.
    """

    def __init__(
        self, model: AdaptiveModel, bandwidth: float, torque_scale: ArrayLike = 1.0
    ) -> None:
        feedback_gain(bandwidth, "bandwidth")
        self.model = model
        self.bandwidth = bandwidth
        self.torque_scale = feedback_gain(torque_scale, "torque_scale")
        self._state: dict[str, np.ndarray] = {}
        self._keep = self._old = self._new = 0.0

    def reset(self, period: float) -> None:
        """Begin anew, called every `period` [s]."""
        self._state = {}
        x = self.bandwidth * period
        self._keep = float(np.exp(-x))
        # Between samples H and G run straight from the old value to the new one.
        self._new = 1.0 - (1.0 - self._keep) / x
        self._old = (1.0 - self._keep) / x - self._keep

    def update(
        self, q: np.ndarray, qd: np.ndarray, tau: Float[np.ndarray, "batch dof"]
    ) -> tuple[Float[np.ndarray, "batch dof p"], Float[np.ndarray, "batch dof"]]:
        """Return W and F τ now; `tau` is what was held since the last call."""
        H, G = self._parts(q, qd)
        # First call: the filters start at rest in the present state.
        if not self._state:
            zero = np.zeros_like(H)
            self._state = {
                "H": H,
                "G": G,
                "FH": H.copy(),
                "FG": zero,
                "Ftau": np.zeros(q.shape),
            }
            return zero, np.zeros(q.shape)
        s = self._state
        s["FH"] = self._keep * s["FH"] + self._old * s["H"] + self._new * H
        s["FG"] = self._keep * s["FG"] + self._old * s["G"] + self._new * G
        # Torque is held over a period, unlike H and G: a zero-order hold is exact.
        s["Ftau"] = self._keep * s["Ftau"] + (1.0 - self._keep) * tau
        s["H"], s["G"] = H, G
        W = self.bandwidth * (H - s["FH"]) + s["FG"]
        if self.torque_scale.ndim == 0 and self.torque_scale == 1.0:
            return W, s["Ftau"]
        return W / self.torque_scale[..., None], s["Ftau"] / self.torque_scale

    def _parts(self, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dynamics = self.model.dynamics
        still = np.zeros_like(qd)
        H = dynamics.momentum_regressor(q, qd)
        G = dynamics.slotine_li_regressor(q, qd, still, still)
        G -= dynamics.kinetic_gradient_regressor(q, qd)
        # A unit of viscous friction takes what a unit of rotor inertia has as momentum.
        layout = dynamics.arm.layout
        G[..., layout.drive("viscous")] = H[..., layout.drive("rotor_inertia")]
        return self.model.select(H), self.model.select(G)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return {f"filter_{k}": v.copy() for k, v in self._state.items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called."""
        self._state = {}
        if not any(key.startswith("filter_") for key in state):
            return
        adaptation, arm = self.model.adaptation, self.model.parameters.arm
        batch, count = adaptation.parameters.shape
        table: tuple[int, ...] = (batch, arm.dof, count)
        shapes = dict.fromkeys(("H", "G", "FH", "FG"), table)
        shapes["Ftau"] = (batch, arm.dof)
        self._state = {
            name: restored(state, f"filter_{name}", shape)
            for name, shape in shapes.items()
        }


# Base of adaptive controllers: estimate and state.


class AdaptiveController:
    """A controller that adapts the parameters of a model while it works.

    Args:
        model: What is adapted.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(self, model: AdaptiveModel, cutoff_hz: float) -> None:
        self.model = model
        self._velocity = VelocitySource(cutoff_hz)

    @property
    def estimate(self) -> Float[np.ndarray, "batch p"]:
        """The adapted parameters as they are now."""
        return self.model.estimate

    @property
    def stopped(self) -> np.ndarray:
        """Plants whose adaptation ran away and was stopped."""
        return self.model.adaptation.stopped

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self.model.reset(batch, period)
        self._velocity.reset(period)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self.model.to_dict() | self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        self.model.restore(state)
        batch = self.model.estimate.shape[0]
        self._velocity.restore(state, (batch, self.model.parameters.arm.dof))


class PredictingController(AdaptiveController):
    """One that also learns from how well it predicts its own torque, filtered.

    Args:
        model: What is adapted.
        bandwidth: b of the filter F = b/(s + b) in [rad/s].
        torque_scale: Prediction error to be expected of each joint in [N m] or [N].
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        model: AdaptiveModel,
        bandwidth: float,
        torque_scale: ArrayLike,
        cutoff_hz: float,
    ) -> None:
        super().__init__(model, cutoff_hz)
        self.filtered = FilteredRegressor(model, bandwidth, torque_scale)
        self._tau = np.zeros(())

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        super().reset(batch, period)
        self.filtered.reset(period)
        self._tau = np.zeros((batch, self.model.parameters.arm.dof))

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        own = {"held_torque": self._tau.copy()}
        return own | super().to_dict() | self.filtered.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        super().restore(state)
        self._tau = restored(state, "held_torque", self._tau.shape)
        self.filtered.restore(state)


class SlotineLi(AdaptiveController):
    """τ = Y(q, q̇, q̇_r, q̈_r) â − K_D s, â' = −P Yᵀ s, s = ė + Λ e (`astley1996` 3.20).

    Neither accelerations nor the inverse of the mass matrix are needed. It learns
    nothing while a torque is at its limit.

    Args:
        parameters: What is adapted, of which arm.
        rate: Λ in [1/s]: a number, one per joint, or a matrix.
        kd: K_D in [N m s/rad] or [N s/m].
        law: How errors move parameters.
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
        robust: An additional bounded push, if any.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        rate: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
        robust: RobustTerm | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, cutoff_hz)
        self.rate = feedback_gain(rate, "rate")
        self.kd = feedback_gain(kd, "kd")
        self.robust = robust

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        qdr, qddr = sliding_reference(self.rate, reference, q, qd)
        s = qd - qdr
        Y = self.model.tracking_regressor(q, qd, qdr, qddr)
        tau: np.ndarray = self.model.torque(Y) - apply_feedback(self.kd, s)
        if self.robust is not None:
            tau += self.robust.torque(s)
        # A saturated torque explains the error; the parameters do not.
        frozen = self.model.saturated(tau)
        self.model.adaptation.track(Y, s, self.model.period, frozen)
        return tau


# Composite adaptive control: driven by tracking and prediction errors.


class Composite(PredictingController):
    """τ = Y â − K_D s, â' = −P (C1 Yᵀ s + C2 Wᵀ e) (`astley1996` Eq. 3.40–3.42).

    With a bounded-gain law and a motion that excites, tracking and parameter errors
    both vanish exponentially.

    Args:
        parameters: What is adapted, of which arm.
        rate: Λ in [1/s]: a number, one per joint, or a matrix.
        kd: K_D in [N m s/rad] or [N s/m].
        law: How errors move parameters.
        bandwidth: b of the filter F = b/(s + b) in [rad/s].
        torque_scale: Prediction error to be expected of each joint in [N m] or [N].
        weights: C1 and C2.
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        rate: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        bandwidth: float = 20.0,
        torque_scale: ArrayLike = 1.0,
        # Judgement: prediction errors lead, tracking errors help.
        weights: tuple[float, float] = (0.3, 1.0),
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, bandwidth, torque_scale, cutoff_hz)
        self.rate = feedback_gain(rate, "rate")
        self.kd = feedback_gain(kd, "kd")
        self.weights = weights

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        qdr, qddr = sliding_reference(self.rate, reference, q, qd)
        s = qd - qdr
        W, filtered_torque = self.filtered.update(q, qd, self._tau)
        Y = self.model.tracking_regressor(q, qd, qdr, qddr)
        tau: np.ndarray = self.model.torque(Y) - apply_feedback(self.kd, s)
        self.model.adaptation.compose(
            Y,
            s,
            W,
            filtered_torque,
            self.model.period,
            self.weights,
            self.model.saturated(tau),
        )
        self._tau = self.model.limited(tau)
        return tau


# Indirect adaptive control (Middleton and Goodwin): driven by prediction errors.


class Indirect(PredictingController):
    """τ = Y(q, q̇, q̈*) â with â from e = W â − F τ (`astley1996` Eq. 3.34–3.39).

    q̈* = q̈_d − K_v ė − K_p e is computed torque on the estimate; `kd_floor` s keeps
    the loop closed while the estimate is still poor.

    Args:
        parameters: What is adapted, of which arm.
        kp: K_p in [1/s²]: a number, one per joint, or a matrix.
        kd: K_v in [1/s].
        law: How errors move parameters.
        kd_floor: Plain velocity feedback beside the model in [N m s/rad]; its
            position part is K_p/K_v times as large.
        bandwidth: b of the filter F = b/(s + b) in [rad/s].
        torque_scale: Prediction error to be expected of each joint in [N m] or [N].
        initial: First estimate; zeros if not given.
        projection: What the estimate may be.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        kp: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        kd_floor: ArrayLike,
        bandwidth: float = 20.0,
        torque_scale: ArrayLike = 1.0,
        initial: Float[np.ndarray, " p"] | None = None,
        projection: Projection | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, bandwidth, torque_scale, cutoff_hz)
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        self.kd_floor = feedback_gain(kd_floor, "kd_floor")

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        e, ed = q - reference.q, qd - reference.qd
        push = apply_feedback(self.kd, ed) + apply_feedback(self.kp, e)
        W, filtered_torque = self.filtered.update(q, qd, self._tau)
        self.model.adaptation.compose(
            W, np.zeros_like(e), W, filtered_torque, self.model.period, (0.0, 1.0)
        )
        acceleration = reference.qdd - push
        Y = self.model.select(self.model.dynamics.regressor(q, qd, acceleration))
        diagonal = np.diag(self.kd) if self.kd.ndim == 2 else self.kd
        tau: np.ndarray = self.model.torque(Y)
        # push / K_v is the sliding error ė + (K_p / K_v) e.
        tau = tau - apply_feedback(self.kd_floor, push / diagonal)
        self._tau = self.model.limited(tau)
        return tau


# Adaptive computed torque of Craig, Hsu and Sastry, for comparison.


class CraigHsuSastry(AdaptiveController):
    """τ = M̂ (q̈_d + K_v ė + K_p e) + ĉ, â' = Γ Yᵀ(q, q̇, q̈) M̂⁻¹ (ė + Ψ e), e = q_d − q.

    It needs accelerations, differenced here from velocities, and the inverse of the
    estimated mass matrix, so the first estimate must be roughly right; where M̂ is
    too close to singular it does not learn.

    Args:
        parameters: What is adapted, of which arm.
        kp: K_p in [1/s²]: a number, one per joint, or a matrix.
        kd: K_v in [1/s].
        law: How errors move parameters.
        initial: First estimate.
        mixing: Ψ in [1/s]; half of K_v is safe.
        projection: What the estimate may be.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        parameters: ParameterSet,
        kp: ArrayLike,
        kd: ArrayLike,
        law: UpdateLaw,
        initial: Float[np.ndarray, " p"],
        mixing: float,
        projection: Projection | None = None,
        cutoff_hz: float = 60.0,
    ) -> None:
        model = AdaptiveModel(parameters, law, initial, projection)
        super().__init__(model, cutoff_hz)
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        feedback_gain(mixing, "mixing")
        self.mixing = mixing
        self._last_qd: np.ndarray | None = None

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        super().reset(batch, period)
        self._last_qd = None

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        q = measurement.need("q")
        qd = self._velocity.read(measurement, reference.qd)
        e, ed = reference.q - q, reference.qd - qd
        acceleration = reference.qdd + apply_feedback(self.kd, ed)
        acceleration = acceleration + apply_feedback(self.kp, e)
        dynamics = self.model.dynamics
        if self._last_qd is not None:
            qdd = (qd - self._last_qd) / self.model.period
            Y = self.model.select(dynamics.regressor(q, qd, qdd))
            self._learn(q, Y, ed + self.mixing * e)
        self._last_qd = np.array(qd)
        return self.model.torque(
            self.model.select(dynamics.regressor(q, qd, acceleration))
        )

    def _learn(self, q: np.ndarray, Y: np.ndarray, error: np.ndarray) -> None:
        M = self._mass_matrix(q)
        # Half the digits would be lost: better not to learn in this period.
        poor = np.linalg.cond(M) > 1e6
        M[poor] = np.eye(M.shape[-1])
        # The law moves against its error; this rule has e = q_d − q.
        s = -np.linalg.solve(np.swapaxes(M, -1, -2), error[..., None])[..., 0]
        self.model.adaptation.track(Y, s, self.model.period, poor)

    def _mass_matrix(self, q: np.ndarray) -> Float[np.ndarray, "batch dof dof"]:
        """M̂ from the estimate: column j is what a unit acceleration of joint j adds."""
        n = q.shape[-1]
        posture = np.repeat(q[:, None, :], n + 1, axis=1)
        still = np.zeros_like(posture)
        qdd = np.concatenate([np.zeros((1, n)), np.eye(n)])
        qdd = np.broadcast_to(qdd, posture.shape).copy()
        Y = self.model.select(self.model.dynamics.regressor(posture, still, qdd))
        tau: np.ndarray = (Y @ self.estimate[:, None, :, None])[..., 0]
        return np.swapaxes(tau[:, 1:] - tau[:, :1], -1, -2)

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        own = {} if self._last_qd is None else {"last_qd": self._last_qd.copy()}
        return own | super().to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        super().restore(state)
        shape = (self.estimate.shape[0], self.model.parameters.arm.dof)
        self._last_qd = (
            restored(state, "last_qd", shape) if "last_qd" in state else None
        )


# Model-reference adaptive control of a first-order plant, one input, one output.


class ModelReference:
    """u = â_r r + â_y y, â' = −P (r, y) e, e = y − y_m, y_m' = a_m (r − y_m).

    What Rohrs' example breaks: perfect on the first-order plant k/(s + a) it was
    derived for, undone by a little of everything that plant leaves out.

    Args:
        rate: a_m of the reference model in [rad/s].
        law: How the error moves the two gains; its dead-band is on e.
        initial: First (â_r, â_y).
    """

    def __init__(
        self, rate: float, law: UpdateLaw, initial: Sequence[float] = (0.0, 0.0)
    ) -> None:
        feedback_gain(rate, "rate")
        self.rate = rate
        self.adaptation = Adaptation(law, np.array(initial, dtype=float))
        self.target = 0.0

    @property
    def estimate(self) -> Float[np.ndarray, " 2"]:
        """(â_r, â_y) as they are now."""
        return self.adaptation.parameters

    def input(self, command: float, output: float, dt: float) -> float:
        """Return the plant's input for the next dt [s], and learn."""
        regressor = np.array([[command, output]])
        u = float(regressor[0] @ self.estimate)
        self.adaptation.track(regressor, np.array([output - self.target]), dt)
        # Exact step of the first-order reference model under a held command.
        self.target += (1.0 - np.exp(-self.rate * dt)) * (command - self.target)
        return u
