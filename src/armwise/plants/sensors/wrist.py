"""Six-axis force/torque sensors, which bend, ring and drift."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from armwise.errors import ArgumentError
from armwise.plants.sensors.sensor import Imperfection, Mount, Sampler
from armwise.plants.state import State

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class WristSensor:
    """Measures the wrench that the arm exerts on what is beyond a frame.

    In the frame's axes, at its origin: at rest the force is −m g. With a resonance
    the reading y obeys ÿ + 2ζω ẏ + ω² y = ω² w on every axis: the load swings on the
    sensor's spring. The swing does not act back on the arm.

    Attributes:
        frame: Name of a link or frame of the arm.
        noise_std, bias: Six numbers in [N] and [N m], or one for all.
        gain_error: Fraction by which it reads too much.
        drift: Random walk of the bias in [N per √s] and [N m per √s].
        resonance_hz: ω / 2π in [Hz]; infinite is stiff.
        damping: ζ; 0 rings for ever.
        misalignment: Rotation vector in [rad] by which its axes are turned from where
            the frame says.
        rate_hz: Samples per second; the controller's when not given.
    """

    frame: str
    noise_std: ArrayLike = 0.0
    bias: ArrayLike = 0.0
    gain_error: ArrayLike = 0.0
    drift: ArrayLike = 0.0
    resonance_hz: float = np.inf
    damping: float = 0.0
    misalignment: ArrayLike = (0.0, 0.0, 0.0)
    rate_hz: float | None = None
    signal: ClassVar[str] = "wrench"
    unit: ClassVar[str] = "N, N m"

    def mounted(self, mount: Mount) -> Sampler:
        """Return a fresh sampler."""
        wrench = mount.wrench(self.frame)
        disturbed = Imperfection(
            mount,
            noise_std=self.noise_std,
            bias=self.bias,
            gain_error=self.gain_error,
            drift=self.drift,
            width=6,
        )
        turn = _turn(self.misalignment)
        spring = _Spring(self.resonance_hz, self.damping, mount.period)

        def sample(state: State) -> np.ndarray:
            true = wrench(state)
            if turn is not None:
                true = (true.reshape(-1, 2, 3) @ turn).reshape(-1, 6)
            return disturbed(spring(true))

        return sample


class _Spring:
    """An oscillator driven by straight lines between samples, solved exactly."""

    def __init__(self, resonance_hz: float, damping: float, period: float) -> None:
        if not resonance_hz > 0 or damping < 0:
            raise ArgumentError(
                "A wrist sensor needs a positive resonance_hz and a damping ≥ 0."
            )
        self._matrix = None
        if np.isfinite(resonance_hz):
            self._matrix = _transition(2.0 * np.pi * resonance_hz, damping, period)
        self._state: np.ndarray | None = None

    def __call__(self, w: Float[np.ndarray, "batch 6"]) -> np.ndarray:
        if self._matrix is None:
            return w
        now = w.reshape(-1)
        if self._state is None:  # rows: y, ẏ, w before, change of w
            self._state = np.stack([now, np.zeros_like(now), now, np.zeros_like(now)])
        state = self._state
        np.subtract(now, state[2], out=state[3])
        state[:2] = self._matrix @ state
        state[2] = now
        reading: np.ndarray = state[0].copy().reshape(w.shape)
        return reading


def _transition(omega: float, damping: float, period: float) -> np.ndarray:
    """Return (y, ẏ) after a period from (y, ẏ, w, change of w over the period)."""
    from scipy.linalg import expm

    A = np.zeros((4, 4))
    A[0, 1] = 1.0
    A[1, :3] = -(omega**2), -2.0 * damping * omega, omega**2
    A[2, 3] = 1.0 / period
    # First-order hold: with w and its slope as states the matrix exponential is exact
    # for an input that is piecewise linear, at any step and damping.
    transition: np.ndarray = expm(A * period)[:2]
    return transition


def _turn(misalignment: ArrayLike) -> np.ndarray | None:
    vector = np.asarray(misalignment, dtype=float)
    angle = float(np.linalg.norm(vector))
    if angle == 0.0:
        return None
    x, y, z = vector / angle
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    # Row vectors times R: coordinates in axes that are turned by R.
    R: np.ndarray = np.eye(3) + np.sin(angle) * K + (1.0 - np.cos(angle)) * K @ K
    return R
