"""The PUMA 260 of `izaguirre1992`, simulated, identified and reduced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.dynamics import Dynamics
from armwise.identification import Estimate, reduce
from armwise.recordings import Recording, Samples
from papers.puma_trajectories import (
    filtered_samples,
    identify_independent,
    planned_samples,
    sampled_recordings,
)
from papers.rig_constants import Constants

if TYPE_CHECKING:
    from jaxtyping import Float


def extreme_singular_values(
    estimate: Estimate, data: Sequence[Samples]
) -> tuple[float, float]:
    """Largest and smallest singular value of the regressor, without any weights."""
    columns = estimate.columns
    wanted = columns.user[:, list(estimate.base.indices)]
    gram = np.zeros((estimate.base.count, estimate.base.count))
    for block in columns.blocks(data):
        for i, support in enumerate(columns.support):
            Y = block.joints[i][:-1].T @ wanted[support]
            gram += Y.T @ Y
    values = np.sqrt(np.linalg.eigvalsh(gram))
    return float(values[-1]), float(values[0])


@dataclass(frozen=True, eq=False)
class Reduction:
    """The PUMA 260 before and after.

    Attributes:
        arm: The arm that was simulated.
        recordings: Its ten trajectories, read every 28 ms.
        data: The same, filtered and differentiated.
        full: All independent parameters.
        significant: Those that reach 1 % somewhere, identified again.
        small: Those of them whose standard deviation is below 30 % of their value.
    """

    arm: Arm
    recordings: list[Recording]
    data: list[Samples]
    full: Estimate
    significant: Estimate
    small: Estimate


@cache
def reduction(seed: int = 0) -> Reduction:
    """Simulate, identify 52 parameters, keep what matters and is known."""
    arm = load_arm("puma260")
    recordings = sampled_recordings(arm, seed)
    data = [filtered_samples(arm, recordings)]
    full = identify_independent(arm, data)
    return Reduction(
        arm,
        recordings,
        data,
        full,
        reduce(full, data, threshold=0.01),
        reduce(full, data, threshold=0.01, largest_relative_std=0.3),
    )


@dataclass(frozen=True, eq=False)
class TenFits:
    """All 52 parameters from each trajectory alone, of an arm with Table 1's averages.

    Attributes:
        names: Of the parameters.
        truth: Their values, as printed.
        values: What each trajectory gave.
    """

    names: tuple[str, ...]
    truth: Float[np.ndarray, " 52"]
    values: Float[np.ndarray, "10 52"]


@cache
def full_samples() -> tuple[Samples, ...]:
    """The ten trajectories of the arm with Table 1's averages."""
    return tuple(planned_samples(load_arm("puma260_full")))


@cache
def both_fits() -> tuple[Estimate, Estimate]:
    """Figs. 4 and 5: all 52 parameters, and Table 2's 23 alone, from the ten."""
    arm, few = load_arm("puma260_full"), load_arm("puma260")
    named = zip(few.parameter_names, few.parameters.tolist(), strict=True)
    kept = [name for name, value in named if value != 0.0]
    data = list(full_samples())
    return identify_independent(arm, data), identify_independent(arm, data, kept)


@cache
def restored_fit(joint: int = 4) -> tuple[str, float]:
    """The one parameter that helps Fig. 5's fit of a joint most, and what then is left.

    Returns:
        Its name, and the unexplained torque of the joint over its root mean square.
    """
    full, few = both_fits()
    arm, data = load_arm("puma260_full"), list(full_samples())
    kept = [few.base.names[i] for i in few.base.indices]
    others = [full.base.names[i] for i in full.base.indices]
    tried = {
        name: float(
            identify_independent(arm, data, [*kept, name]).fit.relative_error[joint]
        )
        for name in others
        if name not in kept and name.startswith(("link_5", "link_6"))
    }
    best = min(tried, key=lambda name: tried[name])
    return best, tried[best]


@cache
def ten_fits() -> TenFits:
    """Identify the 52 parameters from each of the ten trajectories, as Table 1 does."""
    arm = load_arm("puma260_full")
    fits = [identify_independent(arm, [samples]) for samples in full_samples()]
    base = fits[0].base
    return TenFits(
        tuple(base.names[i] for i in base.indices),
        base.matrix[:, : arm.parameters.size] @ arm.parameters,
        np.array([fit.base_values for fit in fits]),
    )


@cache
def trajectory_grams() -> Float[np.ndarray, "10 6 52 52"]:
    """YᵀY of each trajectory and joint, for the 52 parameters of Table 1."""
    full, _ = both_fits()
    columns = full.columns
    wanted = columns.user[:, list(full.base.indices)]
    grams = np.zeros((10, 6, full.base.count, full.base.count))
    for k, samples in enumerate(full_samples()):
        for block in columns.blocks([samples]):
            for i, support in enumerate(columns.support):
                Y = block.joints[i][:-1].T @ wanted[support]
                grams[k, i] += Y.T @ Y
    return grams


def predicted_spread(noise: Sequence[float]) -> Float[np.ndarray, " 52"]:
    """Standard deviations of Table 1's ten fits for unrest of the six torques [N m]."""
    weights = 1.0 / np.square(noise)
    weighted = np.einsum("i,kipq->kpq", weights, trajectory_grams())
    variances = np.diagonal(np.linalg.inv(weighted), axis1=1, axis2=2)
    return np.asarray(np.sqrt(variances.mean(axis=0)))


def fit_torque_noise() -> Constants:
    """Unrest of the six torques [N m] from every second deviation of Table 1.

    The other half is left to be judged. Whatever made the paper's ten fits differ
    (friction that varies, coupling of the wrist, noise) is one white torque a joint
    here, and the fits are weighted by it, as the paper's are "weighted".
    """
    from scipy.optimize import least_squares

    printed = table_1_std(ten_fits().names)

    def misfit(x: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(predicted_spread(np.exp(x)) / printed)[::2])

    best = least_squares(misfit, np.log([0.3, 0.3, 0.3, 0.05, 0.05, 0.05]))
    return {"noise": np.exp(best.x).tolist()}


def condition_falls(noise: Sequence[float]) -> Float[np.ndarray, " 10"]:
    """Fall of the condition number from 52 to 23 parameters, each trajectory alone."""
    full, few = both_fits()
    names = [few.base.names[i] for i in few.base.indices]
    kept = [k for k, i in enumerate(full.base.indices) if full.base.names[i] in names]
    weighted = np.einsum("i,kipq->kpq", 1.0 / np.square(noise), trajectory_grams())
    conditions = [
        np.sqrt(np.linalg.cond(grams))
        for grams in (weighted, weighted[:, kept][:, :, kept])
    ]
    return np.asarray(conditions[0] / conditions[1])


def gravity_coefficients(arm: Arm) -> Float[np.ndarray, " 3"]:
    """c12, c13 and c15 of §7.1 in [N m], from the gravity torque of joint 2.

    With cos q2, sin(q2 + q3) and what the wrist adds as regressors: 9.81 a2 m6,
    −9.81 (y4 + d4 m6) and −9.81 z6 of App. A.
    """
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, 6))
    elbow, (c4, s5, c5) = q[:, 1] + q[:, 2], _wrist(q)
    wrist = np.cos(elbow) * c4 * s5 + np.sin(elbow) * c5
    basis = np.stack([np.cos(q[:, 1]), np.sin(elbow), wrist], axis=1)
    torque = Dynamics(arm).gravity_torque(q)[:, 1]
    return np.asarray(np.linalg.lstsq(basis, torque, rcond=None)[0])


def _wrist(q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.cos(q[:, 3]), np.sin(q[:, 4]), np.cos(q[:, 4])


# Table 1: spread of ten fits of the same parameter.

ROTORS = (0.050155, 0.086779, 0.054446, 0.012358, 0.018743, 0.002849)
COULOMB = (0.074645, 0.229495, 0.127999, 0.038097, 0.037993, 0.027456)
VISCOUS = (0.142105, 0.292792, 0.177024, 0.002107, 0.070966, 0.012595)
"""Standard deviations of ia, fs and ds of joints 1 to 6; that of ds4 looks misprinted:
its average, 0.088, lies outside the maximum, 0.046, and the minimum, 0.147."""

LINKS = {
    "link_6": {
        "m": 1.119838, "mx": 0.002621, "my": 0.002, "mz": 0.009833, "Ixx": 0.006396,
        "Iyy": 0.005895, "Izz": 0.001691, "Ixy": 0.001391, "Iyz": 0.001307,
        "Ixz": 0.000831,
    },
    "link_5": {
        "mx": 0.012684, "my": 0.014106, "Ixx": 0.008077, "Izz": 0.016054,
        "Ixy": 0.004036, "Iyz": 0.002689, "Ixz": 0.005822,
    },
    "link_4": {
        "mx": 0.018356, "my": 0.229325, "Ixx": 0.092222, "Izz": 0.081800,
        "Ixy": 0.011871, "Iyz": 0.004918, "Ixz": 0.001974,
    },
    "link_3": {
        "mx": 0.077495, "my": 0.182303, "Ixx": 0.09324, "Ixy": 0.020517,
        "Iyz": 0.027816, "Ixz": 0.021493,
    },
    "link_2": {"mx": 0.235012, "my": 0.040522, "Ixy": 0.049358, "Iyz": 0.026013},
}  # fmt: skip
"""Of the links' moments; the paper's d, e, f are Ixy, Iyz, Ixz."""


def table_1_std(names: Sequence[str]) -> Float[np.ndarray, " parameters"]:
    """The printed standard deviations, in the order of our names."""
    drives = {"rotor_inertia": ROTORS, "coulomb": COULOMB, "viscous": VISCOUS}
    found = []
    for name in names:
        part, _, kind = name.partition(".")
        if kind in drives:
            found.append(drives[kind][int(part.removeprefix("joint_")) - 1])
        else:
            found.append(LINKS[part][kind])
    return np.array(found)
