"""Ways in which data about a load go wrong, each with a name and a remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import Dynamics
from armwise.errors import NotIdentifiable, RecordingError
from armwise.loads.problem import WrenchProblem
from armwise.recordings import WRENCH_NAMES

if TYPE_CHECKING:
    from jaxtyping import Float


LEAST_TURN = np.deg2rad(10.0)
"""Gravity has to change direction in the sensor by at least this in [rad]."""

LEAST_SPEED = 0.05
"""Root-mean-square angular velocity below which there is no motion, in [rad/s]."""

FEWEST_PER_PERIOD = 10.0
"""Readings of the wrench wanted per period of the fastest motion."""

_RUN = 5
_WRONG_TURN = np.deg2rad(20.0)


def check_motion(problem: WrenchProblem) -> None:
    """Refuse data in which the load hardly moves.

    Raises:
        NotIdentifiable: If it always hangs the same way, or does not turn.
    """
    pull = problem.frame_motion[:, 0]
    direction = pull / np.maximum(np.linalg.norm(pull, axis=1, keepdims=True), 1e-9)
    turned = _angular_spread(direction)
    speed = float(np.sqrt(np.mean(problem.frame_motion[:, 1] ** 2) * 3.0))
    if turned < LEAST_TURN:
        raise NotIdentifiable(
            f"Gravity keeps its direction in the sensor to {np.rad2deg(turned):.1f}°: "
            "only one orientation. Mass shows, the centre along that direction and the "
            "sensor's zero do not. Turn the load by 30° or more about two axes."
        )
    if speed < LEAST_SPEED:
        raise NotIdentifiable(
            f"The load hardly moves (it turns at {speed:.3f} rad/s). Inertia shows "
            "only in motion: move faster, or find mass and centre with "
            "method=StaticPoses()."
        )


def check_saturation(problem: WrenchProblem) -> None:
    """Refuse a sensor that stays at its limit while the load moves.

    Raises:
        RecordingError: Naming the component, the value and how often.
    """
    moving = np.linalg.norm(problem.frame_motion[:, 1], axis=1) > LEAST_SPEED
    for name in problem.channels:
        values = problem.wrench[:, WRENCH_NAMES.index(name)]
        for limit in (float(values.max()), float(values.min())):
            at = (values == limit) & moving
            if _longest_run(at) >= _RUN and limit != 0.0:
                raise RecordingError(
                    f"{name} stays at {limit:.6g} for {int(at.sum())} samples while "
                    "the load moves: the sensor is saturated. Use a smaller load or a "
                    "gentler motion, or leave it out with components=…."
                )


def check_rate(problem: WrenchProblem) -> None:
    """Refuse a wrench that is read too seldom for the motion.

    Raises:
        RecordingError: Naming both rates.
    """
    steps = np.any(np.diff(problem.wrench, axis=0) != 0.0, axis=1)
    moving = np.linalg.norm(problem.frame_motion[1:, 1], axis=1) > LEAST_SPEED
    if moving.sum() < 20:
        return
    fresh = float(np.mean(steps[moving])) * problem.rate_hz
    fastest = _motion_band_hz(problem)
    if fresh < FEWEST_PER_PERIOD * fastest:
        raise RecordingError(
            f"The wrench changes {fresh:.1f} times a second, but the motion reaches "
            f"{fastest:.1f} Hz. Read the sensor at "
            f"{FEWEST_PER_PERIOD * fastest:.0f} Hz or more, or move more slowly."
        )


def check_frame(problem: WrenchProblem) -> None:
    """Refuse forces that only make sense in other axes, or with the other sign.

    Forces of a load follow the acceleration of the sensor: f ≈ M a + bias with
    M ≈ m · (rotation). The rotation tells in which axes they were written down.

    Raises:
        RecordingError: Saying how the axes seem to be turned.
    """
    forces = WRENCH_NAMES[:3]
    if not set(forces) <= set(problem.channels):
        return
    pull, force = problem.frame_motion[:, 0], problem.wrench[:, :3]
    pull, force = pull - pull.mean(axis=0), force - force.mean(axis=0)
    spread = np.linalg.svd(pull, compute_uv=False)
    if spread[-1] < 0.05 * spread[0]:
        return
    M = np.linalg.lstsq(pull, force, rcond=None)[0].T
    if (explained := _explained(pull, force)) < 0.9:
        _check_base_axes(problem, explained)
        return
    U, scale, Vt = np.linalg.svd(M)
    sign = np.sign(np.linalg.det(U @ Vt))
    R = sign * (U @ Vt)
    angle = float(np.arccos(np.clip(0.5 * (np.trace(R) - 1.0), -1.0, 1.0)))
    if sign < 0 and angle < _WRONG_TURN:
        raise RecordingError(
            "The forces have the wrong sign: at rest the force on the load must point "
            "up, −m g. The log seems to hold what the load exerts on the arm; negate "
            "the wrench."
        )
    if angle > _WRONG_TURN and scale[-1] > 0.5 * scale[0]:
        raise RecordingError(
            "The wrench seems to be written in other axes than those of the sensor "
            f"frame: turned by {np.rad2deg(angle):.0f}° about {_axis(R)}"
            f"{' and negated' if sign < 0 else ''}. Name the right frame with "
            "sensor_frame, or turn the wrench into its axes."
        )


def _check_base_axes(problem: WrenchProblem, explained: float) -> None:
    """See whether the force follows the acceleration as seen from the base."""
    if problem.body is None or problem.samples is None:
        return
    dynamics = Dynamics(problem.body.arm)
    R = dynamics.link_pose(problem.samples.q, problem.body.frame)[:, :3, :3]
    pull = np.einsum("tij,tj->ti", R, problem.frame_motion[:, 0])
    force = problem.wrench[:, :3]
    in_base = _explained(pull - pull.mean(axis=0), force - force.mean(axis=0))
    if in_base > 0.9 and in_base > explained + 0.2:
        raise RecordingError(
            "The force follows the motion as seen from the base, not from the sensor: "
            "the wrench seems to be written in base axes. Turn it into the axes of the "
            "sensor frame."
        )


def _explained(pull: np.ndarray, force: np.ndarray) -> float:
    """Share of the force that some matrix times the acceleration explains."""
    M = np.linalg.lstsq(pull, force, rcond=None)[0]
    left = float(np.sum((force - pull @ M) ** 2))
    return 1.0 - left / max(float(np.sum(force**2)), 1e-300)


def _angular_spread(directions: Float[np.ndarray, "samples 3"]) -> float:
    """Largest angle from the mean direction, outliers (1 %) aside, in [rad]."""
    mean = directions.mean(axis=0)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-9)
    angles = np.arccos(np.clip(directions @ mean, -1.0, 1.0))
    return 2.0 * float(np.quantile(angles, 0.99))


def _longest_run(flags: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _motion_band_hz(problem: WrenchProblem) -> float:
    """Frequency below which 90 % of the change of the acceleration lies."""
    part = max(problem.rows().segments, key=lambda s: s.stop - s.start)
    pull = problem.frame_motion[part, 0]
    window = np.hanning(len(pull))[:, None]
    power = np.sum(np.abs(np.fft.rfft((pull - pull.mean(0)) * window, axis=0)) ** 2, 1)
    share = np.cumsum(power) / max(float(power.sum()), 1e-300)
    return float(np.searchsorted(share, 0.9) * problem.rate_hz / len(pull))


def _axis(R: np.ndarray) -> str:
    """Name the axis of a rotation."""
    vector = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    size = float(np.linalg.norm(vector))
    if size < 1e-6:  # half a turn: the axis is the eigenvector of 1
        values, vectors = np.linalg.eigh(0.5 * (R + R.T))
        vector, size = vectors[:, int(np.argmax(values))], 1.0
    unit = vector / size
    k = int(np.argmax(np.abs(unit)))
    if abs(unit[k]) > 0.95:
        return f"{'-' if unit[k] < 0 else ''}{'xyz'[k]}"
    return "(" + ", ".join(f"{x:.2f}" for x in unit) + ")"
