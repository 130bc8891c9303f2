"""Plausibility of a recording for an arm: number, order and units of the joints."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings.recording import Recording

DEGREE = np.pi / 180.0

SLACK = 0.1
"""How far outside its limits, in [rad] or [m], a position may be read: soft limits are
often set a few degrees inside the hard stops."""


def check_against_arm(recording: Recording, arm: Arm) -> None:
    """Refuse a recording that this arm cannot have made.

    Raises:
        RecordingError: If the joints are of another number, look swapped, or seem to be
            in degrees.
    """
    if recording.dof != arm.dof:
        raise RecordingError(
            f"{recording.source} has positions of {recording.dof} joints, but "
            f"{arm.name} has {arm.dof}: {', '.join(arm.coordinate_names)}. "
            f"Found: {', '.join(recording.channels)}."
        )
    for quantity in ("qd", "qdd", "tau"):
        count = recording.count(quantity)
        if count not in (0, arm.dof) or (count == 0 and _has_some(recording, quantity)):
            raise RecordingError(
                f'{recording.source} has no column "{quantity}_{count + 1}". Found: '
                f"{', '.join(recording.channels)}. "
                f"Map it with --column {quantity}_{count + 1}=NAME."
            )
    low, high = _ranges(recording)
    _suspect_degrees(recording, arm, low, high)
    _suspect_order(recording, arm, low, high)


def degrees_note(recording: Recording) -> str | None:
    """Say so if positions look like degrees, knowing nothing of the arm."""
    if not recording.dof:
        return None
    low, high = _ranges(recording)
    span = high - low
    # Few joints turn twice; half of them turning half round is common in degrees only.
    if np.max(span) > 4.0 * np.pi and np.median(span) > np.pi:
        return (
            f"Positions span up to {np.max(span):.4g} rad, more than two turns: are "
            "they in degrees? If so, say so in the header: q_1 [deg]."
        )
    return None


def _has_some(recording: Recording, quantity: str) -> bool:
    return any(name.startswith(f"{quantity}_") for name in recording.channels)


def _ranges(recording: Recording) -> tuple[np.ndarray, np.ndarray]:
    values = [recording[f"q_{j + 1}"].values for j in range(recording.dof)]
    with np.errstate(invalid="ignore"):
        low = np.array([np.nanmin(v) if v.size else 0.0 for v in values])
        high = np.array([np.nanmax(v) if v.size else 0.0 for v in values])
    return low, high


def _suspect_degrees(
    recording: Recording, arm: Arm, low: np.ndarray, high: np.ndarray
) -> None:
    """Raise if revolute positions fit the limits in degrees and not in radians."""
    lower, upper = arm.limits("lower"), arm.limits("upper")
    turning = np.array([arm.joints[i].is_revolute for i in arm.coordinates])
    bounded = np.isfinite(lower) & np.isfinite(upper)
    # Judgement: two turns either way, where a joint has no limits.
    limit = np.where(bounded, np.maximum(np.abs(lower), np.abs(upper)), 4.0 * np.pi)
    reach = np.maximum(np.abs(low), np.abs(high))
    # Twice the limit is no offset or slack any more; degrees overshoot 57 times.
    outside = turning & (reach > 2.0 * limit)
    # All joints must fit as degrees, with a fifth to spare: one that does not makes
    # degrees unlikely, and a false refusal is worse than none.
    fits = reach[turning] * DEGREE < 1.2 * limit[turning]
    if not outside.any() or not fits.all():
        return
    j = int(np.argmax(np.where(outside, reach / limit, 0.0)))
    raise RecordingError(
        f"{recording.source}: q_{j + 1} ({arm.coordinate_names[j]}) reaches "
        f"{reach[j]:.4g}, far beyond its limit of {limit[j]:.4g} rad; the positions "
        "seem to be in degrees. Head the columns q_1 [deg], or set unit = "
        '"deg" under [position] in a mapping.'
    )


def _suspect_order(
    recording: Recording, arm: Arm, low: np.ndarray, high: np.ndarray
) -> None:
    """Raise if two joints break their limits as they are and not when exchanged."""
    lower, upper = arm.limits("lower") - SLACK, arm.limits("upper") + SLACK

    def fits(j: int, column: int) -> bool:
        return bool(low[column] >= lower[j] and high[column] <= upper[j])

    broken = [j for j in range(arm.dof) if not fits(j, j)]
    if not broken:
        return
    for i, j in combinations(range(arm.dof), 2):
        # Only if one exchange mends everything; otherwise the limits may be wrong.
        if set(broken) <= {i, j} and fits(i, j) and fits(j, i):
            raise RecordingError(
                f"{recording.source}: q_{broken[0] + 1} leaves its limits, and would "
                f"not if q_{i + 1} and q_{j + 1} were exchanged: the joints seem to be "
                f"in another order than {', '.join(arm.coordinate_names)}. Name the "
                "columns by joint (q_NAME), or list joints in a mapping."
            )
