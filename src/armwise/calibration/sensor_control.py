"""Composite adaptive control in the sensors' own units (`astley1996` ch. 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from armwise.control import Adaptation, UpdateLaw

if TYPE_CHECKING:
    from jaxtyping import Float


_MEMORY = 10.0
"""Time constant in [s] of the mean of squared prediction errors."""

_STRETCH = 0.5
"""Time in [s] over which prediction errors are averaged before they are squared."""

GRAVITY = 9.81
"""Columns of gravity carry it, as in the thesis, so that its gains mean the same."""


class Parts(NamedTuple):
    """A regressor split for filtering: Y a = d(H a)/dt + G a."""

    momentum: Float[np.ndarray, "batch rows p"]
    rest: Float[np.ndarray, "batch rows p"]


class SensorRegressor(Protocol):
    """What torques are made of, as functions of readings."""

    @property
    def count(self) -> int:
        """Number of parameters."""
        ...

    def tracking(
        self, x: np.ndarray, xd: np.ndarray, xdr: np.ndarray, xddr: np.ndarray
    ) -> Float[np.ndarray, "batch rows p"]:
        """Y for the reference acceleration."""
        ...

    def parts(self, x: np.ndarray, xd: np.ndarray) -> Parts:
        """Momentum and the rest."""
        ...


@dataclass(frozen=True)
class Parabola:
    """u = α m l² ẍ + g (a + b x + c x²) for one joint, the others held (Eq. 4.23)."""

    joint: int
    count: int = 4

    def tracking(
        self, x: np.ndarray, xd: np.ndarray, xdr: np.ndarray, xddr: np.ndarray
    ) -> Float[np.ndarray, "batch 1 4"]:
        """[ẍ_r, g, g x, g x²]."""
        Y = self.parts(x, xd).rest.copy()
        Y[:, 0, 0] = xddr[:, self.joint]
        return Y

    def parts(self, x: np.ndarray, xd: np.ndarray) -> Parts:
        """Momentum of ẍ, gravity's parabola."""
        one = x[:, self.joint]
        H, G = np.zeros((len(one), 1, 4)), np.zeros((len(one), 1, 4))
        H[:, 0, 0] = xd[:, self.joint]
        G[:, 0, 1], G[:, 0, 2], G[:, 0, 3] = 1.0, one, one**2
        return Parts(H, GRAVITY * G)


@dataclass(eq=False)
class SensorComposite:
    """u = Y â − K_D s + f sign(ẋ_d), adapted by tracking and prediction errors.

    Attributes:
        regressor: What torques are made of.
        joints: Joints it drives; the others are held by `hold`.
        law: How errors move parameters.
        rate: Λ in [1/s].
        kd: K_D of every joint in [N m s] per unit of the reading.
        friction: Coulomb friction fed forward, (batch, dof) in [N m].
        hold_kp: Stiffness of the joints that are held.
        effort: Largest torque of every joint in [N m].
        weights: C1 and C2.
        bandwidth: b of F = b/(s + b) in [rad/s].
        adaptation: The adapted parameters.
        error_density: Spectral density of recent prediction errors at the frequencies
            of the motion, in [(N m)² s], by joint.
    """

    regressor: SensorRegressor
    joints: tuple[int, ...]
    law: UpdateLaw
    rate: float
    kd: np.ndarray
    friction: np.ndarray
    hold_kp: np.ndarray
    effort: np.ndarray
    weights: tuple[float, float] = (0.3, 1.0)
    bandwidth: float = 20.0
    adaptation: Adaptation = field(init=False)
    error_density: np.ndarray = field(init=False)
    _filter: list[np.ndarray] = field(init=False, default_factory=list)

    def reset(self, batch: int, period: float) -> None:
        """Begin with nothing known."""
        start = np.zeros(self.regressor.count)
        self.adaptation = Adaptation(self.law, start, (batch,))
        self._filter, self._period = [], period
        self._held = np.zeros((batch, len(self.joints)))
        self.error_density = np.zeros((batch, len(self.joints)))
        self._error_sum, self._summed = np.zeros_like(self.error_density), 0.0

    def torque(
        self, wanted: tuple[np.ndarray, ...], x: np.ndarray, xd: np.ndarray
    ) -> Float[np.ndarray, "batch dof"]:
        """Return torques in the sensors' sense."""
        want, speed, push = wanted
        xdr = speed - self.rate * (x - want)
        xddr = push - self.rate * (xd - speed)
        s = (xd - xdr)[:, self.joints]
        Y = self.regressor.tracking(x, xd, xdr, xddr)
        learned = np.matmul(Y, self.adaptation.parameters[..., None])[..., 0]
        u = self.hold_kp * (want - x) - self.kd * (xd - speed)
        u[:, self.joints] = learned - self.kd[..., self.joints] * s
        W, filtered = self._filtered(x, xd)
        if W is not None:
            self.adaptation.compose(Y, s, W, filtered, self._period, self.weights)
            self._weigh_error(W, filtered)
        dry = self.friction * np.tanh(speed / 0.02)
        given = np.clip(u + dry, -self.effort, self.effort)
        self._held = (given - dry)[:, self.joints]
        return np.asarray(given)

    def _weigh_error(self, W: np.ndarray, filtered: np.ndarray) -> None:
        """Average errors over stretches: what is left of their squares is slow."""
        error = np.matmul(W, self.adaptation.parameters[..., None])[..., 0] - filtered
        self._error_sum += error * self._period
        self._summed += self._period
        if self._summed >= _STRETCH:
            density = self._error_sum**2 / self._summed
            share = self._summed / _MEMORY
            self.error_density += share * (density - self.error_density)
            self._error_sum[:], self._summed = 0.0, 0.0

    def _filtered(
        self, x: np.ndarray, xd: np.ndarray
    ) -> tuple[np.ndarray | None, np.ndarray]:
        """W = b (H − F H) + F G and F u, stepped forward."""
        H, G = self.regressor.parts(x, xd)
        if not self._filter:
            self._filter = [H.copy(), G.copy(), self._held.copy()]
            return None, self._held
        keep = float(np.exp(-self.bandwidth * self._period))
        for k, now in enumerate((H, G, self._held)):
            self._filter[k] = keep * self._filter[k] + (1.0 - keep) * now
        FH, FG, Fu = self._filter
        return self.bandwidth * (H - FH) + FG, Fu


@dataclass(eq=False)
class SensorPD:
    """u = K_p (x_d − x) + K_D (ẋ_d − ẋ) on readings."""

    kp: np.ndarray
    kd: np.ndarray
    friction: np.ndarray | float = 0.0

    def reset(self, batch: int, period: float) -> None:
        """Nothing to forget."""

    def torque(
        self, wanted: tuple[np.ndarray, ...], x: np.ndarray, xd: np.ndarray
    ) -> Float[np.ndarray, "batch dof"]:
        """Return torques in the sensors' sense."""
        dry = self.friction * np.tanh(wanted[1] / 0.02)
        return np.asarray(self.kp * (wanted[0] - x) + self.kd * (wanted[1] - xd) + dry)
