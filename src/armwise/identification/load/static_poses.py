"""Mass and centre of mass from standing still in several poses (`aah1986` Eq. 21)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from armwise.errors import NotIdentifiable
from armwise.identification.load.generalized import Solution
from armwise.identification.load.problem import WrenchProblem
from armwise.identification.load.spectrum import NoiseModel
from armwise.identification.load.uncertainty import SCALE

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
        chosen = problem.rows()
        motion = problem.frame_motion.copy()
        motion[:, 1:] = 0.0  # what little turning is left is noise
        standing = replace(problem, frame_motion=motion).rows()
        Y = np.stack([standing.regressor[p].mean(axis=0)[:, :4] for p in poses])
        w = np.stack([chosen.target[p].mean(axis=0) for p in poses])
        count, channels = w.shape
        if problem.bias != "none":
            eye = np.broadcast_to(np.eye(channels), (count, channels, channels))
            Y = np.concatenate([Y, eye], axis=2)
        noise = np.stack([chosen.target[p].std(axis=0) for p in poses])
        return self._solve(problem, Y, w, np.sqrt(np.mean(noise**2, axis=0)), poses)

    def _solve(
        self,
        problem: WrenchProblem,
        Y: np.ndarray,
        w: np.ndarray,
        noise: np.ndarray,
        poses: list[slice],
    ) -> Solution:
        count, channels, unknowns = Y.shape
        seen = np.linalg.norm(Y, axis=(0, 1)) > 1e-9
        used = Y[:, :, seen]
        _require_poses(problem, used)
        sigma = _channel_std(used, w, problem.channels)
        white = (used / sigma[:, None]).reshape(-1, seen.sum())
        information = white.T @ white
        covariance = np.linalg.inv(information)
        values = covariance @ white.T @ (w / sigma).reshape(-1)
        full, spread = np.full(10, np.nan), np.full((10, 10), np.nan)
        inner = np.zeros((10, 10))
        width = int(seen[:4].sum())
        index = np.flatnonzero(seen[:4])
        full[index] = values[:width]
        spread[np.ix_(index, index)] = covariance[:width, :width]
        inner[np.ix_(index, index)] = np.linalg.inv(covariance[:width, :width])
        has_bias = unknowns > 4
        bias = values[width:] if has_bias else np.zeros(channels)
        bias_std = np.sqrt(np.diag(covariance)[width:]) if has_bias else 0 * bias
        freedom = max(1.0, count * channels - float(seen.sum()))
        residual = np.full((len(problem.time), channels), 0.0)
        for part, left in zip(poses, w - used @ values, strict=True):
            residual[part] = left
        model = NoiseModel(
            np.column_stack([0 * noise, noise**2, 0 * noise]),
            np.array([problem.rate_hz / 2]),
            np.ones((channels, 1)),
            problem.rate_hz,
        )
        segments = len(problem.starts)
        scaled = white / np.linalg.norm(white, axis=0)
        return Solution(
            values=full,
            covariance=spread,
            degrees_of_freedom=np.where(np.isnan(full), np.nan, freedom),
            noise=model,
            residual=residual,
            bias=np.tile(bias, (segments, 1)),
            bias_std=np.tile(bias_std, (segments, 1)),
            condition_number=float(np.linalg.cond(scaled)),
            information=inner,
        )

    def _poses(self, problem: WrenchProblem) -> list[slice]:
        """Stretches in which neither speed nor acceleration shows motion."""
        motion = problem.frame_motion
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


def _require_poses(problem: WrenchProblem, used: np.ndarray) -> None:
    """Refuse poses that leave mass, centre or bias open."""
    count, _, unknowns = used.shape
    sizes = np.concatenate([SCALE[:4], np.full(max(0, unknowns - 4), 1.0)])[:unknowns]
    singular = np.linalg.svd(used.reshape(-1, unknowns) * sizes, compute_uv=False)
    if singular[-1] < 1e-3 * singular[0] or singular.size < unknowns:
        raise NotIdentifiable(
            f"The load was held in {count} pose{'s' if count > 1 else ''} that point "
            "gravity in too few directions: mass, centre and the sensor's zero cannot "
            "be told apart. Hold it in at least four poses, turned about two axes by "
            "30° or more; or say bias='none' if the sensor was tared."
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
