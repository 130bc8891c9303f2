"""Learning operators, from errors to corrections, and the closed loop they act on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.control import feedback_gain
from armwise.errors import ArgumentError
from armwise.learning.trial import InverseModel, ZeroPhase

if TYPE_CHECKING:
    from jaxtyping import Complex, Float
    from numpy.typing import ArrayLike

    from armwise.motions import Motion


@dataclass(frozen=True, eq=False)
class LearningOperator:
    """One update of the command: u ← Q (base − L e), or u ← u + F (base − L e − u).

    Attributes:
        name: What to call it in tables.
        gain: L, from trajectory errors of a trial to command errors.
        smoothing: Q, a filter over the trial; None for none.
        from_applied: Whether the base is what reached the actuators, feedback
            included (`atkeson1986` 6.11), rather than the feedforward alone.
        response: L as a function of z, where L is time-invariant.
        correction_filter: F, a filter that only the correction passes; None for none.
    """

    name: str
    gain: Float[np.ndarray, "commands errors"]
    smoothing: Float[np.ndarray, "commands commands"] | None = None
    from_applied: bool = True
    response: Callable[[np.ndarray], np.ndarray] | None = None
    correction_filter: Float[np.ndarray, "commands commands"] | None = None

    def propagation(self, loop: LiftedLoop) -> Float[np.ndarray, "commands commands"]:
        """How a command error goes from one trial to the next: δu ← Q (S − L B) δu."""
        size = loop.applied.shape[0]
        base = loop.applied if self.from_applied else np.eye(size)
        matrix: np.ndarray = base - self.gain @ loop.error
        if self.correction_filter is not None:
            matrix = np.eye(size) + self.correction_filter @ (matrix - np.eye(size))
        return matrix if self.smoothing is None else self.smoothing @ matrix


def scaled_error(
    scale: float, samples: int, lead: int = 0, from_applied: bool = True
) -> LearningOperator:
    """Correct with a multiple of the error, taken `lead` samples later."""
    name = f"{scale:.4g} × error"
    # Above the diagonal: a later error corrects an earlier command, which is possible
    # because the whole trial is known.
    gain = scale * np.eye(samples, k=lead)
    return LearningOperator(
        name, gain, None, from_applied, lambda z: scale * z[:, None, None] ** lead
    )


def inverse_model(model: LiftedLoop) -> LearningOperator:
    """Correct with the inverse of a model of the plant, R̂⁻¹ (`atkeson1986` 6.7).

    R̂ is the model's command-to-error map with its own feedback undone, so an
    exact model cancels every command error in one trial.
    """
    # applied · error⁻¹ without forming the inverse.
    gain = np.linalg.solve(model.error.T, model.applied.T).T
    loop = model.loop

    def response(z: np.ndarray) -> np.ndarray:
        assert loop is not None
        applied, error = loop.response(z)
        return applied @ np.linalg.inv(error)

    return LearningOperator(
        "inverse model", gain, None, True, response if loop is not None else None
    )


def norm_optimal(
    model: LiftedLoop, command_weight: float, change_weight: float
) -> LearningOperator:
    """Minimise ‖e‖² + ρ‖u‖² + λ‖Δu‖² on the model, trial by trial.

    Q = ((ρ+λ)I + TᵀT)⁻¹(λI + TᵀT), L = (λI + TᵀT)⁻¹Tᵀ with T the model's
    command-to-output map (an error here is output minus reference).

    Args:
        model: The assumed loop.
        command_weight: ρ, the price of a large command.
        change_weight: λ, the price of changing it.
    """
    T = model.error
    normal = T.T @ T
    eye = np.eye(T.shape[1])
    step = change_weight * eye + normal
    # Solved as systems: λ may be tiny, and TᵀT alone is nearly singular.
    smoothing = np.linalg.solve(command_weight * eye + step, step)
    gain = np.linalg.solve(step, T.T)
    return LearningOperator("norm-optimal", gain, smoothing, from_applied=False)


def impulse_operator(
    name: str, impulse: Float[np.ndarray, " taps"], samples: int
) -> LearningOperator:
    """Correct with a causal filter of the error, given by its impulse response."""
    padded = np.zeros(samples)
    padded[: min(samples, impulse.size)] = impulse[:samples]
    powers = np.arange(impulse.size)

    def response(z: np.ndarray) -> np.ndarray:
        values: np.ndarray = (z[:, None] ** -powers) @ impulse
        return values[:, None, None]

    return LearningOperator(
        name, block_toeplitz(padded[:, None, None]), None, True, response
    )


# An arm linearised along a motion, for small errors.

# Near the cube root of rounding, 6e-6, at which truncation and rounding of a central
# difference balance.
_STEP = 1e-5
"""Step of the central differences in [rad], [rad/s] and [rad/s²]."""


def linearise_along(
    plant: InverseModel, motion: Motion, kp: ArrayLike, kd: ArrayLike, samples: int
) -> LiftedLoop:
    """Lift an arm under PD feedback, linearised about a motion, over one trial.

    Commands are held over each interval; feedback acts throughout, as it does when
    the control rate is higher than the number of samples suggests. The error of a
    sample is (δq, δq̇, δq̈) in the middle of its interval, which is what an inverse
    model needs. Coulomb friction has no linearisation: give a model without it.

    Args:
        plant: The assumed model of the arm itself.
        motion: The motion it is to follow.
        kp, kd: Gains of the feedback in [N m/rad] and [N m s/rad].
        samples: Intervals to cut the motion into.
    """
    if samples < 2:
        raise ArgumentError("A linearisation needs at least two samples.")
    n, dt = motion.dof, motion.duration / samples
    K, D, M = _slopes(plant, motion, samples)
    back = np.hstack([_matrix(kp, n), _matrix(kd, n)])
    steps, pushes = _discretise(K + back[:, :n], D + back[:, n:], M, dt)
    # Columns are commands: one pass gives all impulse responses.
    state = np.zeros((2 * n, samples * n))
    applied = np.zeros((samples, n, samples * n))
    error = np.zeros((samples, 3 * n, samples * n))
    for k in range(samples):
        after = steps[k] @ state
        after[:, k * n : (k + 1) * n] += pushes[k]
        # The torque of an interval belongs to its middle, as in `corrected_command`.
        middle = 0.5 * (state + after)
        applied[k] = -back @ middle
        applied[k][:, k * n : (k + 1) * n] += np.eye(n)
        error[k, : 2 * n] = middle
        error[k, 2 * n :] = (after[n:] - state[n:]) / dt
        state = after
    size = samples * n
    return LiftedLoop(
        applied.reshape(size, size), error.reshape(3 * size, size), n, 1.0 / dt
    )


def inverse_model_along(
    model: InverseModel, motion: Motion, samples: int, lowpass: ZeroPhase | None = None
) -> LearningOperator:
    """The learning operator that a model makes along a motion, for `linearise_along`.

    Args:
        model: The model that turns errors into corrections.
        motion: The motion to be learned.
        samples: Intervals the motion was cut into.
        lowpass: The zero-phase filter that corrections pass, if any.
    """
    n = motion.dof
    K, D, M = _slopes(model, motion, samples)
    gain = np.zeros((samples, n, samples, 3 * n))
    which = np.arange(samples)
    gain[which, :, which, :] = np.concatenate([K, D, M], axis=2)
    matrix = None
    if lowpass is not None:
        rate = samples / motion.duration
        # The same filter for every joint, samples first.
        matrix = np.kron(lowpass.matrix(samples, rate), np.eye(n))
    name = type(model).__name__.replace("Dynamics", "the rigid-body model")
    name = name.replace("DecoupledModel", "the decoupled model")
    return LearningOperator(
        name,
        gain.reshape(samples * n, samples * 3 * n),
        correction_filter=matrix,
    )


def _slopes(
    model: InverseModel, motion: Motion, samples: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """∂τ/∂q, ∂τ/∂q̇ and ∂τ/∂q̈ in the middle of every interval."""
    middle = (np.arange(samples) + 0.5) * motion.duration / samples
    point = [np.asarray(part) for part in motion.sample(middle)]
    n = motion.dof
    slopes = []
    for which in range(3):
        ahead = [np.repeat(part[:, None], n, axis=1) for part in point]
        behind = [part.copy() for part in ahead]
        ahead[which] = ahead[which] + _STEP * np.eye(n)
        behind[which] = behind[which] - _STEP * np.eye(n)
        change = model.inverse_dynamics(*ahead) - model.inverse_dynamics(*behind)
        slopes.append(np.swapaxes(change / (2 * _STEP), 1, 2))
    return slopes[0], slopes[1], slopes[2]


def _discretise(
    K: np.ndarray, D: np.ndarray, M: np.ndarray, dt: float
) -> tuple[Float[np.ndarray, "s x x"], Float[np.ndarray, "s x u"]]:
    """Exact step of δq̈ = M⁻¹(δu − K δq − D δq̇) with everything held over dt."""
    from scipy.linalg import expm
    from threadpoolctl import threadpool_limits

    samples, n = M.shape[:2]
    generator = np.zeros((samples, 3 * n, 3 * n))
    generator[:, :n, n : 2 * n] = np.eye(n)
    generator[:, n : 2 * n] = np.linalg.solve(
        M, np.concatenate([-K, -D, np.broadcast_to(np.eye(n), M.shape)], axis=2)
    )
    with threadpool_limits(1):
        # Augmented exponential (Van Loan): transition and input matrix at once.
        whole = expm(generator * dt)
    return whole[:, : 2 * n, : 2 * n], whole[:, : 2 * n, 2 * n :]


def _matrix(gain: ArrayLike, n: int) -> np.ndarray:
    value = feedback_gain(gain, "feedback gain")
    return value if value.ndim == 2 else value * np.eye(n)


# Lifted closed loop: one trial as matrices from command to error.


@dataclass(frozen=True, eq=False)
class LiftedLoop:
    """What a whole trial makes of a feedforward command δu, sample by sample.

    Attributes:
        applied: δu → what reaches the actuators, 1/(1 + C R) for a linear loop;
            square, samples first, `channels` rows and columns per sample.
        error: δu → trajectory error, R/(1 + C R).
        channels: Commands per sample (joints).
        rate_hz: Samples per second.
        loop: The time-invariant loop it came from, if it is one.
    """

    applied: Float[np.ndarray, "commands commands"]
    error: Float[np.ndarray, "errors commands"]
    channels: int
    rate_hz: float
    loop: LinearLoop | None = None

    @property
    def samples(self) -> int:
        """Number of samples in the trial."""
        return int(self.applied.shape[0]) // self.channels


@dataclass(frozen=True, eq=False)
class LinearLoop:
    """A sampled linear loop x⁺ = A x + B u with its actuator command and its output.

    Attributes:
        A, B: State equation; u is the feedforward command.
        C_applied, D_applied: What reaches the actuators.
        C_error, D_error: The controlled output.
        rate_hz: Samples per second.
    """

    A: Float[np.ndarray, "states states"]
    B: Float[np.ndarray, "states inputs"]
    C_applied: Float[np.ndarray, "inputs states"]
    D_applied: Float[np.ndarray, "inputs inputs"]
    C_error: Float[np.ndarray, "outputs states"]
    D_error: Float[np.ndarray, "outputs inputs"]
    rate_hz: float

    @classmethod
    def of_double_integrator(
        cls,
        rate_hz: float,
        natural_hz: float,
        # 1/√2: the least damping without a resonance peak in the frequency response.
        damping: float = 0.707,
        inertia: float = 1.0,
    ) -> LinearLoop:
        """One rotary joint under PD with one sample of delay (`atkeson1986` 6.17–6.19).

        Torques are numbered as in the paper, so that the torque of a sample already
        moves the position of that sample: b[0] = h²/2I.

        Args:
            rate_hz: Sampling frequency in [Hz].
            natural_hz: Natural frequency of the loop in [Hz].
            damping: Damping ratio ζ.
            inertia: Moment of inertia I in [kg m²].
        """
        h = 1.0 / rate_hz
        omega = 2.0 * np.pi * natural_hz
        feedback = -inertia * np.array([[omega**2, 2.0 * damping * omega]])
        step = np.array([[1.0, h], [0.0, 1.0]])
        # The exact zero-order hold of a double integrator.
        push = np.array([[h * h / 2.0], [h]]) / inertia
        position = np.array([[1.0, 0.0]])
        return cls(
            A=step + push @ feedback,
            B=push,
            C_applied=feedback,
            D_applied=np.eye(1),
            C_error=position @ (step + push @ feedback),
            D_error=position @ push,
            rate_hz=rate_hz,
        )

    @classmethod
    def of_feedback(
        cls,
        plant: tuple[np.ndarray, np.ndarray, np.ndarray],
        controller: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
        rate_hz: float,
    ) -> LinearLoop:
        """Close a continuous plant (A, B, C) with a controller (A, B, C, D) and sample.

        The command adds to the controller's output and is held over each sample.
        """
        from scipy.signal import cont2discrete

        A, B, C = plant
        Ac, Bc, Cc, Dc = controller
        closed = np.block([[A - B @ Dc @ C, B @ Cc], [-Bc @ C, Ac]])
        push = np.vstack([B, np.zeros((Ac.shape[0], B.shape[1]))])
        see = np.hstack([C, np.zeros((C.shape[0], Ac.shape[0]))])
        act = np.hstack([-Dc @ C, Cc])
        none = np.zeros((see.shape[0], push.shape[1]))
        Ad, Bd, *_ = cont2discrete((closed, push, see, none), 1.0 / rate_hz, "zoh")
        one = np.eye(push.shape[1])
        return cls(Ad, Bd, act, one, see, none, rate_hz)

    def impulse(
        self, samples: int
    ) -> tuple[
        Float[np.ndarray, "samples inputs inputs"],
        Float[np.ndarray, "samples outputs inputs"],
    ]:
        """Impulse responses of the actuator command a[t] and of the output b[t]."""
        applied = np.empty((samples, *self.D_applied.shape))
        error = np.empty((samples, *self.D_error.shape))
        applied[0], error[0] = self.D_applied, self.D_error
        state = self.B
        for t in range(1, samples):
            applied[t], error[t] = self.C_applied @ state, self.C_error @ state
            state = self.A @ state
        return applied, error

    def response(
        self, z: Complex[np.ndarray, " points"]
    ) -> tuple[
        Complex[np.ndarray, "points inputs inputs"],
        Complex[np.ndarray, "points outputs inputs"],
    ]:
        """Frequency responses of the actuator command and of the output at each z."""
        eye = np.eye(self.A.shape[0])
        # Solved, not inverted, for all frequencies in one batched call.
        state = np.linalg.solve(z[:, None, None] * eye - self.A, self.B.astype(complex))
        return (
            self.C_applied @ state + self.D_applied,
            self.C_error @ state + self.D_error,
        )

    def lifted(self, samples: int) -> LiftedLoop:
        """Write `samples` samples of the loop as lower block-Toeplitz matrices."""
        if samples < 1:
            raise ArgumentError(f"A trial needs at least one sample, not {samples}.")
        applied, error = self.impulse(samples)
        return LiftedLoop(
            block_toeplitz(applied),
            block_toeplitz(error),
            self.B.shape[1],
            self.rate_hz,
            self,
        )


def block_toeplitz(
    impulse: Float[np.ndarray, "samples rows columns"],
) -> Float[np.ndarray, "samples*rows samples*columns"]:
    """Lower block-Toeplitz matrix that convolves with an impulse response."""
    count, rows, columns = impulse.shape
    # Negative lags index the zeros in front: the matrix is causal.
    padded = np.concatenate([np.zeros((count - 1, rows, columns)), impulse])
    lag = np.arange(count)[:, None] - np.arange(count)[None, :] + count - 1
    blocks: np.ndarray = padded[lag]
    return blocks.transpose(0, 2, 1, 3).reshape(count * rows, count * columns)
