"""Mass and centre of mass from standing still in several poses (`aah1986` Eq. 21)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armwise.errors import NotIdentifiable
from armwise.loads.estimate import SCALE
from armwise.loads.generalized import Solution
from armwise.loads.noise_spectrum import NoiseModel
from armwise.loads.problem import WrenchProblem

STILL = 0.02
"""Angular velocity [rad/s] below which the load stands still."""


@dataclass(frozen=True)
class StaticPoses:
    """Average the wrench over every pose in which the load stands still.

    f = −m g and n = −m c × g: mass and centre only. With six unknown zeros of the
    sensor at least three poses that differ in two directions are needed.

    Attributes:
        still: Angular velocity [rad/s] and, in [m/s²], five times that deviation of
            the acceleration from its mean count as standing still.
        shortest: Poses held for less than this are left out, in [s].
    """

    still: float = STILL
    shortest: float = 0.1

    def solve(self, problem: WrenchProblem) -> Solution:
        """Solve for m, m c and, unless it is known, one bias of each channel."""
        poses = self._poses(problem)
        motion = problem.frame_motion.copy()
        motion[:, 1:] = 0.0  # what little turning is left is noise
        rows = replace(problem, frame_motion=motion).rows()
        Y = np.stack([rows.regressor[p].mean(axis=0)[:, :4] for p in poses])
        w = np.stack([rows.target[p].mean(axis=0) for p in poses])
        count, channels = w.shape
        if problem.bias != "none":
            eye = np.broadcast_to(np.eye(channels), (count, channels, channels))
            Y = np.concatenate([Y, eye], axis=2)
        seen = np.linalg.norm(Y, axis=(0, 1)) > 1e-9
        _require_poses(Y, seen)
        values, covariance, condition = _solve_means(Y, w, seen, problem.channels)
        residual = np.zeros_like(rows.target)
        for part, left in zip(poses, w - Y[:, :, seen] @ values[seen], strict=True):
            residual[part] = left
        freedom = max(1.0, float(w.size - seen.sum()))
        noise = np.mean([rows.target[p].var(axis=0) for p in poses], axis=0)
        return _solution(
            problem, values, covariance, condition, freedom, residual, noise
        )

    def _poses(self, problem: WrenchProblem) -> list[slice]:
        """Stretches in which neither speed nor acceleration shows motion.

        Averaged over the shortest pose, so that a shaking arm still stands still.
        """
        from scipy.ndimage import uniform_filter1d

        size = max(1, round(self.shortest * problem.rate_hz))
        motion = uniform_filter1d(problem.frame_motion, size, axis=0, mode="nearest")
        turning = np.linalg.norm(motion[:, 1], axis=1)
        pull = np.linalg.norm(motion[:, 0], axis=1)
        usual = float(np.median(pull))
        still = (turning < self.still) & (np.abs(pull - usual) < 5.0 * self.still)
        cuts = set(problem.starts)
        poses, begin = [], None
        for i, quiet in enumerate([*still, False]):
            ends = begin is not None and (not quiet or i in cuts)
            if ends and begin is not None:
                if (i - begin) / problem.rate_hz >= self.shortest:
                    poses.append(slice(begin, i))
                begin = None
            if quiet and begin is None:
                begin = i
        if not poses:
            raise NotIdentifiable(
                f"The load never stands still for {self.shortest:g} s (turning slower "
                f"than {self.still:g} rad/s). Hold several poses, or use "
                "method=Accelerations()."
            )
        return poses


def _require_poses(Y: np.ndarray, seen: np.ndarray) -> None:
    """Refuse poses that leave mass, centre or bias open."""
    count, _, unknowns = Y.shape
    sizes = np.concatenate([SCALE[:4], np.ones(unknowns - 4)])
    used = (Y * sizes)[:, :, seen].reshape(-1, int(seen.sum()))
    singular = np.linalg.svd(used, compute_uv=False)
    if singular.size < seen.sum() or singular[-1] < 1e-2 * singular[0]:
        raise NotIdentifiable(
            f"The load was held in {count} pose{'s' if count > 1 else ''} that point "
            "gravity in too few directions: mass, centre and the sensor's zero cannot "
            "be told apart. Hold it in at least four poses, turned about two axes by "
            "30° or more; or say bias='none' if the sensor was tared."
        )


def _solve_means(
    Y: np.ndarray, w: np.ndarray, seen: np.ndarray, names: tuple[str, ...]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Weighted least squares over the poses; NaN for what they do not depend on."""
    used = Y[:, :, seen]
    sigma = _channel_std(used, w, names)
    white = (used / sigma[:, None]).reshape(-1, used.shape[2])
    inner = np.linalg.inv(white.T @ white)
    values, covariance = np.full(len(seen), np.nan), np.full(2 * (len(seen),), np.nan)
    values[seen] = inner @ white.T @ (w / sigma).reshape(-1)
    covariance[np.ix_(seen, seen)] = inner
    return values, covariance, float(np.linalg.cond(white * np.sqrt(np.diag(inner))))


def _solution(
    problem: WrenchProblem,
    values: np.ndarray,
    covariance: np.ndarray,
    condition: float,
    freedom: float,
    residual: np.ndarray,
    noise: np.ndarray,
) -> Solution:
    ten, spread = np.full(10, np.nan), np.full((10, 10), np.nan)
    ten[:4], spread[:4, :4] = values[:4], covariance[:4, :4]
    known = np.isfinite(ten)
    information = np.zeros((10, 10))
    information[np.ix_(known, known)] = np.linalg.inv(spread[np.ix_(known, known)])
    segments, channels = len(problem.starts), len(problem.channels)
    has_bias = len(values) > 4
    bias = values[4:] if has_bias else np.zeros(channels)
    bias_std = np.sqrt(np.diag(covariance)[4:]) if has_bias else np.zeros(channels)
    return Solution(
        values=ten,
        covariance=spread,
        degrees_of_freedom=np.where(known, freedom, np.nan),
        noise=NoiseModel(
            np.column_stack([0 * noise, noise, 0 * noise]),
            np.array([problem.rate_hz / 2]),
            np.ones((channels, 1)),
            problem.rate_hz,
        ),
        residual=residual,
        bias=np.tile(bias, (segments, 1)),
        bias_std=np.tile(bias_std, (segments, 1)),
        condition_number=condition,
        information=information,
    )


def _channel_std(used: np.ndarray, w: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Scatter of the poses' means: one number for forces, one for torques."""
    kinds = np.array([name[0] for name in names])
    sigma = np.where(kinds == "f", 1.0, 0.05)
    for _ in range(3):
        white = (used / sigma[:, None]).reshape(-1, used.shape[2])
        values = np.linalg.lstsq(white, (w / sigma).reshape(-1), rcond=None)[0]
        left = w - used @ values
        leverage = np.einsum("ij,ji->i", white, np.linalg.pinv(white)).reshape(w.shape)
        for kind in set(kinds):
            like = kinds == kind
            freedom = max(1.0, float(np.sum(1.0 - leverage[:, like])))
            level = float(np.sqrt(np.sum(left[:, like] ** 2) / freedom))
            sigma[like] = max(level, 1e-9)
    return sigma
