"""`astley1996` ch. 2 and 3: the regressor of Eq. 3.4, and the family of controllers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.control import (
    PD,
    Composite,
    CraigHsuSastry,
    Indirect,
    ParameterSet,
    PhysicalProjection,
    ResumableController,
    SlotineLi,
    UpdateLaw,
)
from armwise.dynamics import Dynamics
from armwise.motions import Fourier
from armwise.plants import SimulatedArm, run
from armwise.report import Figure
from papers.drawings import Drawing, line
from papers.rows import Row, agrees, claim, slip

if TYPE_CHECKING:
    from jaxtyping import Float

RATE = 10.0
"""Λ in [1/s] of all of them; K_p = Λ K_D where there is one."""

KD = np.array([20.0, 10.0])

_NEEDS = {
    "direct (Slotine–Li)": "neither q̈ nor M̂⁻¹",
    "indirect": "no q̈: regressor and torque are filtered",
    "composite": "neither; tracking and prediction errors",
    "Craig–Hsu–Sastry": "q̈, and M̂⁻¹ of a first estimate 30 % off",
}


@dataclass(frozen=True, eq=False)
class Track:
    """How a controller followed the motion.

    Attributes:
        time: In [s].
        error: Norm of the joint errors in [rad].
    """

    time: Float[np.ndarray, " samples"]
    error: Float[np.ndarray, " samples"]

    @property
    def late(self) -> float:
        """Root mean square over the last quarter in [rad]."""
        return float(np.sqrt(np.mean(self.error[3 * len(self.error) // 4 :] ** 2)))


def planar_arm() -> Arm:
    """The two-link arm of Figure 3.1 in a vertical plane."""
    return load_arm("two_link_slotine").with_gravity([0.0, -9.81, 0.0])


def controllers(arm: Arm) -> dict[str, ResumableController]:
    """PD, and the four of chapters 2 and 3, with feedback that is alike."""
    base = ParameterSet.base(arm, drives=())
    every = ParameterSet.standard(arm)
    return {
        "PD": PD(RATE * KD, KD),
        "direct (Slotine–Li)": SlotineLi(base, RATE, KD, UpdateLaw.gradient(2.0)),
        "indirect": Indirect(
            base, RATE**2, 2.0 * RATE, UpdateLaw.least_squares(50.0), KD
        ),
        "composite": Composite(
            base, RATE, KD, UpdateLaw.bounded_gain(10.0, 0.5, 1e3), weights=(0.1, 1.0)
        ),
        "Craig–Hsu–Sastry": CraigHsuSastry(
            every, RATE**2, 2.0 * RATE, UpdateLaw.gradient(0.02),
            1.3 * arm.parameters, RATE, projection=PhysicalProjection(every),
        ),
    }  # fmt: skip


@cache
def tracks(duration: float = 20.0) -> dict[str, Track]:
    """Follow two joints' worth of harmonics with each controller."""
    from threadpoolctl import threadpool_limits

    arm = planar_arm()
    sine = np.array([[0.9, 0.0, 0.3], [0.0, 0.7, 0.0]])
    cosine = np.array([[0.0, 0.4, 0.0], [0.6, 0.0, 0.4]])
    motion = Fourier(np.array([0.8, 0.5]), sine, cosine, 0.25, 0.25 * duration)
    found = {}
    for name, controller in controllers(arm).items():
        with threadpool_limits(1):  # the matrices are tiny; a second thread only waits
            recording = run(SimulatedArm(arm), controller, motion)
        time = recording["true_q_1"].time
        q = np.stack([recording[f"true_q_{j}"].values for j in (1, 2)], axis=1)
        error = np.linalg.norm(q - motion.sample(time).q, axis=1)
        found[name] = Track(time, error)
    return found


def coupling_columns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The last column of Eq. 3.4 at random states: ours, derived, and as printed.

    Its parameter is m2 l1 lc2: what `link_2.mx` does without gravity, over l1.
    """
    arm = load_arm("two_link_slotine")
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 200, 2))
    index = arm.parameter_names.index("link_2.mx")
    ours = Dynamics(arm).regressor(q, qd, qdd)[:, :, index]
    ours = ours / arm.joints[1].origin[0, 3]
    c, s = np.cos(q[:, 1]), np.sin(q[:, 1])
    w1, w2, a1, a2 = qd[:, 0], qd[:, 1], qdd[:, 0], qdd[:, 1]
    second = c * a1 + s * w1**2
    derived = c * (2.0 * a1 + a2) - s * (2.0 * w1 * w2 + w2**2)
    printed = c * (a1 + a2) - s * (2.0 * w1 * w2 + w2**2)
    return ours, np.stack([derived, second], 1), np.stack([printed, second], 1)


def rows() -> list[Row]:
    """Eq. 3.4, and every controller beside PD."""
    return [*_regressor_rows(), *_family_rows()]


def figures() -> list[Drawing]:
    """Errors of the family, on a log scale."""
    figure = Figure(
        "Tracking error", "time [s]", "‖e‖ [rad]",
        tuple(line(n, t.time, np.maximum(t.error, 1e-9)) for n, t in tracks().items()),
        is_logarithmic=True,
    )  # fmt: skip
    return [Drawing("adaptive controllers", figure)]


def _regressor_rows() -> list[Row]:
    ours, derived, printed = coupling_columns()
    right = float(np.abs(ours - derived).max())
    first, corrected, misprint = (
        float(np.sqrt(np.mean(x[:, 0] ** 2))) for x in (ours, derived, printed)
    )
    second = float(np.sqrt(np.mean(derived[:, 1] ** 2)))
    return [
        agrees("Eq. 3.4", "last column, row 2: size over 200 random states, largest "
               "deviation of ours", (second, 0.0),
               (float(np.sqrt(np.mean(ours[:, 1] ** 2))),
                float(np.abs(ours - derived)[:, 1].max())), absolute=1e-9,
               at="Eq. 3.4 evaluated"),
        slip("Eq. 3.4", "last column, row 1: size over 200 random states", misprint,
             first, corrected=corrected, within=1e-9, at="Eq. 3.4 evaluated",
             argument="Eq. 3.2 gives 2θ̈1 + θ̈2 where Eq. 3.4 has θ̈1 + θ̈2; with that "
             f"ours deviates by {right:.0e} at most and the size is {{}}"),
    ]  # fmt: skip


def _family_rows() -> list[Row]:
    found = tracks()
    pd = found["PD"].late
    return [
        claim("adaptive controllers", f"{name}: PD's late error over its own",
              "perfect tracking in the limit", pd / found[name].late, above=5.0,
              why="a fifth of PD's after 15 s", note=f"needs {needs}; PD's own "
              f"{pd:.3f} rad")
        for name, needs in _NEEDS.items()
    ]  # fmt: skip
