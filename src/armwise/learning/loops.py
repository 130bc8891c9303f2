"""Lifted closed loop: one trial as matrices from command to error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Complex, Float


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
