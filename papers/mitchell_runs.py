"""`mitchell1997` ch. 3: single runs, PD over speed and gain, M4 on a fast sinusoid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import load_arm
from armwise.control import PD, MixtureCompensator
from armwise.motions import Motion, Sinusoid
from armwise.plants import SimulatedArm, run
from papers.mitchell_grid import RATE_HZ
from papers.mitchell_tasks import AREAS, KD, RATE, Scheme

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.plants import Controller


@dataclass(frozen=True, eq=False)
class Pursuit:
    """How a motion was followed.

    Attributes:
        time: In [s].
        q, wanted: Joint angles in [rad].
        weights: Adapted parameters at every control step, if any.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples 2"]
    wanted: Float[np.ndarray, "samples 2"]
    weights: Float[np.ndarray, "steps parameters"]

    def l2_error(self, start: float) -> float:
        """√(1/T ∫ ‖e‖² dt) from an instant [s] on, in [rad] (Eq. 3.29)."""
        away = (self.q - self.wanted)[self.time > start]
        return float(np.sqrt(np.mean(np.sum(away**2, axis=1))))


def pursue(plant: SimulatedArm, controller: Controller, motion: Motion) -> Pursuit:
    """Follow a motion with one controller."""
    seen: list[np.ndarray] = []
    if isinstance(controller, MixtureCompensator):
        controller = _Watched(controller, seen)
    recording = run(plant, controller, motion)
    time = recording["true_q_1"].time
    q = np.stack([recording[f"true_q_{j}"].values for j in (1, 2)], axis=1)
    return Pursuit(time, q, motion.sample(time).q, np.array(seen))


@cache
def fast_sinusoid(name: str) -> Pursuit:
    """Figs. 3.4 and 3.6: PD or M4 on the standard sinusoid, Uno's arm.

    M4 has adapted for 30 s before, at η = 0.05.
    """
    arm = load_arm("two_link_uno")
    controller = (
        PD(RATE * KD, KD) if name == "PD" else Scheme(name, "gradient", 0.05).build(arm)
    )
    alpha, beta = AREAS["wide"]
    motion = Sinusoid.mitchell(alpha, beta, duration=40.0)
    return pursue(SimulatedArm(arm, control_rate_hz=RATE_HZ), controller, motion)


@cache
def pd_errors(
    scales: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0),
) -> dict[float, Float[np.ndarray, " scales"]]:
    """Fig. 3.3: L2 error of PD at three gains over the motion's bandwidth, Uno arm."""
    plant = SimulatedArm(load_arm("two_link_uno"), control_rate_hz=RATE_HZ)
    found = {}
    for gain in (1.0, 2.0, 4.0):
        errors = []
        for k in scales:
            omega = np.full(2, 2.0 * np.pi * k)
            motion = Sinusoid.mitchell((0.0, 0.0), (1.33, 0.75), omega, 10.0)
            pursuit = pursue(plant, PD(RATE * KD * gain, KD * gain), motion)
            errors.append(pursuit.l2_error(2.0))
        found[gain] = np.array(errors)
    return found


@cache
def informed_error() -> float:
    """Error of IDSL with gravity's terms over that of IDSL without them, in gravity.

    Uno's arm on the standard sinusoid, the last 10 of 20 s, η = 0.01.
    """
    arm = load_arm("two_link_uno")
    heavy = arm.with_gravity([0.0, -9.81, 0.0])
    motion = Sinusoid.mitchell(*AREAS["wide"], duration=20.0)
    plant = SimulatedArm(heavy, control_rate_hz=RATE_HZ)
    scheme = Scheme("IDSL", "gradient", 0.01)
    errors = [
        pursue(plant, scheme.build(model), motion).l2_error(10.0)
        for model in (heavy, arm)
    ]
    return errors[0] / errors[1]


def fluctuation() -> tuple[float, float]:
    """Fig. 3.10: how far M4's parameters move late, and their error then.

    Returns:
        Relative fluctuation of the largest parameters over the last quarter, and the
        L2 error [rad] there.
    """
    pursuit = fast_sinusoid("M4")
    late = pursuit.weights[3 * len(pursuit.weights) // 4 :]
    largest = np.abs(late).max(axis=0) > 0.5 * np.abs(late).max()
    spread = np.ptp(late, axis=0)[largest] / np.abs(late).mean(axis=0)[largest]
    return float(spread.max()), pursuit.l2_error(0.75 * pursuit.time[-1])


class _Watched:
    """A mixture compensator whose parameters are taken down at every step."""

    def __init__(self, inner: MixtureCompensator, seen: list[np.ndarray]) -> None:
        self.inner, self.seen = inner, seen

    def reset(self, batch: int, period: float) -> None:
        self.inner.reset(batch, period)

    def torque(self, t: float, reference: Any, measurement: Any) -> np.ndarray:
        self.seen.append(self.inner.weights[0].ravel().copy())
        return self.inner.torque(t, reference, measurement)
