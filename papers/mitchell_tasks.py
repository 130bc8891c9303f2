"""`mitchell1997` ch. 3: the tracking tasks and the controllers that are compared."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armwise.arms import Arm
from armwise.control import (
    PD,
    Gating,
    MixtureCompensator,
    ParameterSet,
    ResumableController,
    SlotineLi,
    UpdateLaw,
)
from armwise.motions import Motion, Sequence, Sigmoid, Sinusoid

RATE = 9.0
"""Λ = K_p / K_d in [1/s], for K_p = 9 and K_d = 1."""

KD = 1.0
"""K_d in [N m s/rad]."""

AREAS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "wide": ((0.0, 0.0), (1.33, 0.75)),
    "flexed": ((-0.5, 1.25), (0.65, 0.75)),
    "small": ((0.5, 1.5), (0.4, 0.4)),
}
"""α and β of Eq. 3.38–3.39: three areas of joint space; the first one is the paper's,
the other two are ours, since Figure 3.2 is lost in the scan."""

BANDWIDTHS = (0.25, 0.5, 0.75, 1.0)
"""Speed of the motion relative to the standard one (0.75π and 2π rad/s)."""


@dataclass(frozen=True)
class Task:
    """One tracking task: a motion type, an area of joint space and a speed."""

    motion: str
    area: str
    bandwidth: float

    def plan(self, duration: float) -> Motion:
        """The motion, repeated for so long in [s]."""
        alpha, beta = AREAS[self.area]
        if self.motion == "sinusoid":
            omega = self.bandwidth * np.array([0.75 * np.pi, 2.0 * np.pi])
            return Sinusoid.mitchell(alpha, beta, omega, duration)
        return _point_to_point(alpha, beta, 10.0 * self.bandwidth, duration)


def _point_to_point(
    alpha: tuple[float, float], beta: tuple[float, float], rate: float, duration: float
) -> Sequence:
    """Sigmoids between the corners of an area, round and across."""
    low = np.array([alpha[0], alpha[1] - beta[1]])
    high = np.array([alpha[0] + 2.0 * beta[0], alpha[1] + beta[1]])
    corners = [low, high, np.array([low[0], high[1]]), np.array([high[0], low[1]])]
    count = int(np.ceil(duration / Sigmoid(low, high, rate).duration))
    legs = [
        Sigmoid(corners[i % 4], corners[(i + 1) % 4], rate)
        for i in range(max(count, 1))
    ]
    return Sequence(tuple(legs), tolerance=0.02)


TASKS = tuple(
    Task(motion, area, bandwidth)
    for motion in ("sinusoid", "point to point")
    for area in AREAS
    for bandwidth in BANDWIDTHS
)


@dataclass(frozen=True)
class Scheme:
    """A controller of the comparison: PD, IDSL, or M1 to M8, with a learning rule."""

    name: str
    rule: str = "none"
    eta: float = 0.0

    def build(self, arm: Arm) -> ResumableController:
        """A fresh controller for an arm."""
        if self.name == "PD":
            return PD(RATE * KD, KD)
        law = (
            UpdateLaw.gradient(self.eta)
            if self.rule == "gradient"
            else UpdateLaw.least_squares(self.eta)
        )
        if self.name == "IDSL":
            return SlotineLi(ParameterSet.base(arm, drives=()), RATE, KD, law)
        gating = Gating.over([-1.0, -1.0], [2.7, 2.0], int(self.name[1:]))
        # The thesis' rules leak nothing back, however far weights go.
        return MixtureCompensator(gating, RATE, KD, replace(law, reach=np.inf))


ADAPTIVE = ("IDSL", *(f"M{n}" for n in range(1, 9)))


def schemes(eta: float, rules: tuple[str, ...]) -> tuple[Scheme, ...]:
    """Every adaptive scheme under every rule at one adaptation gain."""
    return tuple(Scheme(name, rule, eta) for rule in rules for name in ADAPTIVE)
