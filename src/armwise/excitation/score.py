"""How much a motion tells of an arm's base parameters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.excitation.bounds import bounds_of
from armwise.excitation.information import RIDGE, InformationModel
from armwise.motions import Motion
from armwise.motions.motion import joint_vector, require_positive
from armwise.programs import Backend

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

RATE_HZ = 100.0
"""Samples a second that count as independent, unless said otherwise."""

_SINGULAR = 1e-9
"""Eigenvalue of a correlation matrix below which it cannot be inverted."""
_SHRINKAGE = 0.1
"""Share by which correlations are pulled towards none in that case."""


@dataclass(frozen=True, eq=False)
class MotionScore:
    """What a motion would tell.

    Attributes:
        information: YᵀΣ⁻¹Y of the base parameters, summed over the samples.
        log_det: log det of the information, what was known before added, per sample,
            each parameter in units in which random motion at the limits tells 1 of it,
            and 1e-6 added to the diagonal. Only differences between motions of the
            same arm mean something: +1 is 1 nat more.
    """

    information: Float[np.ndarray, "count count"]
    log_det: float

    @cached_property
    def condition_number(self) -> float:
        """Largest over smallest singular value of the base regressor.

        Its columns are scaled to length one.
        """
        return condition_number(self.information)


def score_motion(
    arm: Arm,
    motion: Motion,
    *,
    known: ArrayLike | None = None,
    torque_std: ArrayLike | None = None,
    rate_hz: float = RATE_HZ,
    backend: Backend = "auto",
) -> MotionScore:
    """Score any motion as `design_excitation` scores its own.

    Args:
        arm: The arm that makes it.
        motion: The motion.
        known: Information about the base parameters from before.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N]; 1
            if not given.
        rate_hz: Independent samples a second.
        backend: What runs the programs.

    Raises:
        ArgumentError: If the motion is not one of this arm, or `known` does not fit.
    """
    if motion.dof != arm.dof:
        raise ArgumentError(
            f"The motion moves {motion.dof} joints; {arm.name} has {arm.dof}."
        )
    noise = noise_of(arm, torque_std)
    model = InformationModel(arm, bounds_of(arm), noise, backend)
    return score(model, motion, known_matrix(model, known), rate_hz)


def score(
    model: InformationModel,
    motion: Motion,
    known: Float[np.ndarray, "count count"],
    rate_hz: float,
) -> MotionScore:
    """Score a motion with a model at hand."""
    count = sample_count(motion.duration, rate_hz)
    times = (np.arange(count) + 0.5) * (motion.duration / count)
    return score_information(model, model.of_states(motion.sample(times)), known, count)


def score_information(
    model: InformationModel,
    scaled: Float[np.ndarray, "count count"],
    known: Float[np.ndarray, "count count"],
    count: int,
) -> MotionScore:
    """Score the mean information of so many samples."""
    before = known * np.outer(model.scale, model.scale) / count
    information = count * scaled / np.outer(model.scale, model.scale)
    log_det = regularised_log_det(scaled + before)
    return MotionScore(information, log_det)


def sample_count(duration: float, rate_hz: float) -> int:
    """Samples in a motion: at least one."""
    return max(1, round(duration * require_positive(rate_hz, "rate_hz")))


def regularised_log_det(information: np.ndarray) -> float:
    """Log det of scaled information, a little of everything taken as known."""
    regular = information + RIDGE * np.eye(len(information))
    return float(np.linalg.slogdet(regular)[1])


def condition_number(information: np.ndarray) -> float:
    """Condition of the regressor behind an information, columns of length one."""
    sizes = np.sqrt(np.diag(information))
    if not np.all(sizes > 0.0):
        return float("inf")
    values = np.linalg.eigvalsh(information / np.outer(sizes, sizes))
    noise = values[-1] * len(values) * np.finfo(float).eps
    return float(np.sqrt(values[-1] / values[0])) if values[0] > noise else float("inf")


def noise_of(arm: Arm, torque_std: ArrayLike | None) -> Float[np.ndarray, " dof"]:
    """Return the noise of each joint's torque, or say what is wrong with it."""
    if torque_std is None:
        return np.ones(arm.dof)
    noise = joint_vector(torque_std, "torque_std", arm.dof)
    if not np.all(noise > 0.0):
        name = arm.coordinate_names[int(np.argmin(noise))]
        raise ArgumentError(f"torque_std must be positive, also for joint {name!r}.")
    return np.asarray(noise)


def information_from_covariance(
    covariance: ArrayLike,
) -> Float[np.ndarray, "count count"]:
    """Turn the covariance of base parameters into what a design takes as known.

    Args:
        covariance: Such as `estimate.base_covariance`; infinite on the diagonal where
            nothing is known.
    """
    matrix = np.asarray(covariance, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ArgumentError(f"A covariance is square, not of shape {matrix.shape}.")
    seen = np.flatnonzero(np.isfinite(np.diag(matrix)))
    information = np.zeros_like(matrix)
    if seen.size:
        part = matrix[np.ix_(seen, seen)]
        sizes = np.sqrt(np.diag(part))
        if not np.all(sizes > 0.0):
            raise ArgumentError("A covariance needs variances above zero.")
        unit = np.outer(sizes, sizes)
        information[np.ix_(seen, seen)] = np.linalg.inv(_invertible(part / unit)) / unit
    return 0.5 * (information + information.T)


def _invertible(
    correlation: Float[np.ndarray, "count count"],
) -> Float[np.ndarray, "count count"]:
    """Pull correlations towards none where a log's stretches were too few to tell.

    The scatter of forty stretches has rank forty: what it leaves out is not known
    exactly, it is not known to be correlated.
    """
    if np.linalg.eigvalsh(correlation)[0] > _SINGULAR:
        return correlation
    return (1.0 - _SHRINKAGE) * correlation + _SHRINKAGE * np.eye(len(correlation))


def known_matrix(
    model: InformationModel, known: ArrayLike | None
) -> Float[np.ndarray, "count count"]:
    """Return what is known before as a matrix, or say why it cannot be.

    Raises:
        ArgumentError: If it is not a positive semidefinite matrix of the right size.
    """
    count = model.base.count
    if known is None:
        return np.zeros((count, count))
    matrix = np.asarray(known, dtype=float)
    if matrix.shape != (count, count):
        raise ArgumentError(
            f"known must be a {count}×{count} matrix, one row per base parameter, "
            f"not of shape {matrix.shape}. information_from_covariance makes one of "
            "an estimate's base_covariance."
        )
    if not np.all(np.isfinite(matrix)):
        raise ArgumentError("known holds a number that is not finite.")
    scaled = matrix * np.outer(model.scale, model.scale)
    size = float(np.abs(scaled).max(initial=0.0))
    if not np.allclose(scaled, scaled.T, rtol=0.0, atol=1e-6 * size):
        raise ArgumentError("known must be symmetric: it is an information matrix.")
    if np.linalg.eigvalsh(0.5 * (scaled + scaled.T))[0] < -1e-6 * size:
        raise ArgumentError(
            "known must be positive semidefinite: information cannot be negative."
        )
    return 0.5 * (matrix + matrix.T)
