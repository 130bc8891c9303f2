"""Rotations and poses as arrays; T_a_b maps coordinates in b to coordinates in a."""

from __future__ import annotations

from collections.abc import Sequence
from math import asin, atan2, cos, hypot, pi, sin
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

ROUNDING = 1e-11
"""Below this an entry of a rotation is rounding: 2e-16 from sin(π), 5e-12 from a π/2
written with the usual eleven decimals, 1.57079632679."""

# Judgement: 2 arc seconds, below what any gear or bearing keeps. Exporters leave
# 3.67e-06 = 1.5708 − π/2 behind where they combine rounded angles.
NO_ANGLE = 1e-5
"""Angle in [rad] below which a frame is not turned at all."""

FINE_ANGLE = pi / 12.0
"""The finest angle in [rad] that drawings repeat."""


def pose(
    rotation: Float[np.ndarray, "3 3"] | None = None,
    translation: Sequence[float] | Float[np.ndarray, " 3"] = (0.0, 0.0, 0.0),
) -> Float[np.ndarray, "4 4"]:
    """Put a rotation and a translation [m] together."""
    T = np.eye(4)
    if rotation is not None:
        T[:3, :3] = rotation
    T[:3, 3] = translation
    return T


def rotation_from_rpy(rpy: Sequence[float]) -> Float[np.ndarray, "3 3"]:
    """Return Rz(yaw) Ry(pitch) Rx(roll), angles in [rad], rounding removed."""
    (cr, sr), (cp, sp), (cy, sy) = ((cos(x), sin(x)) for x in rpy)
    return without_rounding(
        np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
    )


def rpy_from_rotation(R: Float[np.ndarray, "3 3"]) -> tuple[float, float, float]:
    """Return roll, pitch and yaw in [rad] for which Rz Ry Rx = R."""
    level = hypot(R[2, 1], R[2, 2])
    pitch = atan2(-R[2, 0], level)
    # Closer to gimbal lock, atan2 of both entries would only see rounding.
    if level > 1e-9:
        return atan2(R[2, 1], R[2, 2]), pitch, atan2(R[1, 0], R[0, 0])
    # Looking straight up or down only yaw ± roll is defined: let yaw take it all.
    return 0.0, asin(np.clip(-R[2, 0], -1, 1)), atan2(-R[0, 1], R[1, 1])


def rotation_about(
    axis: Sequence[float] | Float[np.ndarray, " 3"], angle: float
) -> Float[np.ndarray, "3 3"]:
    """Return the rotation by `angle` [rad] about a unit axis, rounding removed."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return without_rounding(np.eye(3) + sin(angle) * K + (1 - cos(angle)) * (K @ K))


def rotation_from_quaternion(
    wxyz: Sequence[float] | Float[np.ndarray, " 4"],
) -> Float[np.ndarray, "3 3"]:
    """Return the rotation of a quaternion (w, x, y, z), which need not be unit."""
    w, x, y, z = np.asarray(wxyz, dtype=float) / np.linalg.norm(wxyz)
    return without_rounding(
        np.array(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
    )


def exact_rotation(R: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "3 3"]:
    """Return the rotation that one written with few digits stands for.

    What maps an axis to an axis but for `NO_ANGLE` is taken to do so, and to turn about
    it by a multiple of 15° where it nearly does; other rotations stay as they are.
    """
    row, column = np.unravel_index(np.argmax(np.abs(R)), R.shape)
    rows, columns = np.delete(range(3), row), np.delete(range(3), column)
    if max(hypot(*R[rows, column]), hypot(*R[row, columns])) >= NO_ANGLE:
        return R
    turn = R[np.ix_(rows, columns)]
    angle = atan2(turn[1, 0], turn[0, 0])
    exact = round(angle / FINE_ANGLE) * FINE_ANGLE
    angle = exact if abs(angle - exact) < NO_ANGLE else angle
    # What is left of a rotation is mirrored where its axis is, or others trade places.
    side = np.sign(np.linalg.det(turn))
    clean = np.zeros((3, 3))
    clean[row, column] = np.sign(R[row, column])
    clean[np.ix_(rows, columns)] = [
        [cos(angle), -side * sin(angle)],
        [sin(angle), side * cos(angle)],
    ]
    return without_rounding(clean)


def inverse(T: Float[np.ndarray, "4 4"]) -> Float[np.ndarray, "4 4"]:
    """Return the inverse of a pose."""
    R = T[:3, :3].T
    return pose(R, -R @ T[:3, 3])


def without_rounding(R: Float[np.ndarray, "3 3"]) -> Float[np.ndarray, "3 3"]:
    """Make exact the zeros of a rotation, and the ones they leave alone in a row.

    Every traced zero is an operation saved. Nothing moves by more than ROUNDING.
    """
    clean = np.where(np.abs(R) < ROUNDING, 0.0, R)
    alone = (np.count_nonzero(clean, axis=1) == 1)[:, None] & (clean != 0)
    return np.where(alone, np.sign(clean), clean) + 0.0
