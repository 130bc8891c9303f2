"""Whether an object is held where and how it should be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.arms.poses import pose, rotation_about
from armwise.errors import ArgumentError
from armwise.identification.load.estimate import LoadEstimate
from armwise.identification.load.uncertainty import WELL_DETERMINED

if TYPE_CHECKING:
    from jaxtyping import Float

STRANGE = 0.01


@dataclass(frozen=True, eq=False)
class GraspCheck:
    """What an estimate says about a grasp.

    Attributes:
        is_as_expected: Whether the object may be where it should be.
        chance: Probability that a proper grasp looks at least this different.
        shift: Centre of mass found minus expected, in the frame, in [m].
        shift_std: Its standard deviation.
        turn: Angle in [rad] between expected and found principal axes, of the axes
            that are well determined; NaN if none is.
        mass_difference: Found minus expected in [kg].
        statement: In words.
    """

    is_as_expected: bool
    chance: float
    shift: Float[np.ndarray, " 3"]
    shift_std: Float[np.ndarray, " 3"]
    turn: float
    mass_difference: float
    statement: str


def verify_grasp(
    estimate: LoadEstimate,
    body: InertialParameters,
    T_frame_object: Float[np.ndarray, "4 4"] | None = None,
    *,
    position_tolerance: float = 0.003,
    angle_tolerance: float = 0.05,
    mass_tolerance: float = 0.01,
) -> GraspCheck:
    """Compare an estimate with an object held in a certain pose.

    Args:
        estimate: What was found.
        body: The object's ten parameters in its own frame.
        T_frame_object: Where it should be in the estimate's frame; right there when
            not given.
        position_tolerance: Standard deviation of a proper grasp's position in [m].
        angle_tolerance: Of its orientation in [rad].
        mass_tolerance: Fraction by which copies of the object differ.
    """
    from scipy.stats import chi2

    T = np.eye(4) if T_frame_object is None else np.asarray(T_frame_object, float)
    if T.shape != (4, 4):
        raise ArgumentError(f"T_frame_object must be a 4×4 pose, not {T.shape}.")
    expected = body.transformed(T)
    known = np.isfinite(estimate.parameters.vector)
    placing = _placing(body, T, position_tolerance, angle_tolerance, mass_tolerance)
    total = (np.nan_to_num(estimate.covariance) + placing)[np.ix_(known, known)]
    apart = (estimate.parameters.vector - expected.vector)[known]
    chance = float(chi2.sf(apart @ np.linalg.solve(total, apart), known.sum()))
    shift = estimate.center_of_mass - expected.center_of_mass
    shift_std = estimate.std.center_of_mass
    turn = _turn(estimate, expected)
    difference = estimate.mass - expected.mass
    good = chance >= STRANGE
    return GraspCheck(
        good, chance, shift, shift_std, turn, difference,
        _say(good, shift, shift_std, turn, difference),
    )  # fmt: skip


def _placing(
    body: InertialParameters,
    T: np.ndarray,
    position: float,
    angle: float,
    mass: float,
) -> Float[np.ndarray, "10 10"]:
    """Covariance of the parameters among proper grasps of proper copies."""
    center = body.transformed(T).vector
    columns = [mass * center]
    for k in range(3):
        axis = np.eye(3)[k]
        shifted = pose(None, position * axis) @ T
        turned = T.copy()
        turned[:3, :3] = rotation_about(axis, angle) @ T[:3, :3]
        columns.append(body.transformed(shifted).vector - center)
        columns.append(body.transformed(turned).vector - center)
    J = np.stack(columns, axis=1)
    spread: np.ndarray = J @ J.T
    return spread


def _turn(estimate: LoadEstimate, expected: InertialParameters) -> float:
    """Largest angle between the found and the expected axes, signs aside."""
    if not estimate.is_complete:
        return float("nan")
    sure = estimate.std.principal_axes < WELL_DETERMINED
    if not sure.any():
        return float("nan")
    cosines = np.abs(np.sum(estimate.principal.axes * expected.principal[1], axis=0))
    return float(np.arccos(np.clip(cosines[sure], 0.0, 1.0)).max())


def _say(
    good: bool, shift: np.ndarray, std: np.ndarray, turn: float, difference: float
) -> str:
    where = ", ".join(
        f"{1e3 * d:.1f} ± {1e3 * s:.1f}" for d, s in zip(shift, std, strict=True)
    )
    axes = "" if np.isnan(turn) else f", its axes {np.rad2deg(turn):.1f}°"
    verdict = "held as expected" if good else "not held as expected"
    return (
        f"The object is {verdict}: its centre is off by ({where}) mm{axes}, its mass "
        f"by {1e3 * difference:.0f} g."
    )
