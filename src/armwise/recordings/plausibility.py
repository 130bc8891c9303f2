"""Plausibility of a recording for an arm: number, order and units of the joints."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import EstimateWarning, RecordingError
from armwise.recordings.column_names import current_columns
from armwise.recordings.stretches import missing_temperature

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
    if gap := _missing_position(recording):
        number, other = gap
        raise RecordingError(
            f'{recording.source} has no column "q_{number}", the position of '
            f'{arm.coordinate_names[number - 1]}, though it has "{other}" (a column '
            f"without values counts as none). Map it with --column q_{number}=NAME."
        )
    if recording.dof != arm.dof:
        cure = (
            "Name columns by joint (q_NAME): joints without one are then locked; or "
            "choose --chain BASE..TIP, or --lock JOINT=VALUE."
            if recording.dof
            else "Say which columns are positions: --column q_1=NAME …, or --mapping."
        )
        raise RecordingError(
            f"{recording.source} has positions of {recording.dof} joints, but "
            f"{arm.name} has {arm.dof} ({_some(arm.coordinate_names)}). {cure} "
            f"Found: {_some(recording.channels)}."
        )
    for quantity in ("qd", "qdd", "tau"):
        count = recording.count(quantity)
        if count not in (0, arm.dof) or (count == 0 and _has_some(recording, quantity)):
            raise RecordingError(
                f'{recording.source} has no column "{quantity}_{count + 1}". Found: '
                f"{', '.join(recording.channels)} (a column without values counts as "
                f"none). Map it with --column {quantity}_{count + 1}=NAME."
            )
    low, high = _ranges(recording)
    _suspect_degrees(recording, arm, low, high)
    _suspect_order(recording, arm, low, high)


def _missing_position(recording: Recording) -> tuple[int, str] | None:
    """Number of the first joint without a position, and a later joint's column."""
    number = recording.dof + 1
    later = (
        name
        for name in recording.channels
        if re.fullmatch(r"q_[0-9]{1,5}", name) and int(name[2:]) > number
    )
    other = next(later, None)
    return None if other is None else (number, other)


def require_torques(recording: Recording) -> None:
    """Refuse a log without joint torques, and point to currents that it has.

    Raises:
        RecordingError: If it holds none.
    """
    if recording.count("tau"):
        return
    currents = current_columns(list(recording.channels), recording.dof)
    if not currents:
        raise RecordingError(
            f"{recording.source} holds no joint torques. Record motor torque or "
            "current, and map it to tau_1 … tau_n. "
            f"Found: {_some(recording.channels)}."
        )
    raise RecordingError(
        f"{recording.source} holds no joint torques, but currents ({currents[0]} … "
        f"{currents[-1]}): give their constants in a TOML file for --mapping, [torque] "
        f'columns = ["{currents[0]}", …], scale = [N m at the joint per A, one each].'
    )


def _some(names: Iterable[str]) -> str:
    """The first few names."""
    first = list(names)
    return ", ".join(first[:4]) + (", …" if len(first) > 4 else "")


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


# What looks wrong with the raw signals, though they can be read.

_SLOW = 20.0
"""Sampling rate in [Hz] below which accelerations are mostly interpolation."""

# Judgement, as are those below: friction and gravity both cross zero in most motions.
_TOUCHES = 5
"""Times a torque that is never negative must come down to zero to look unsigned."""

_CLIPPED = 0.005
"""Fraction of rows at one extreme value from which on a torque looks clipped."""

_FROZEN = 0.1
"""Fraction of a log for which a joint that moves elsewhere must stand exactly still."""


def suspicions(recording: Recording, arm: Arm) -> list[EstimateWarning]:
    """Say what looks wrong with the signals of an arm's log, as warnings."""
    if not recording.dof:
        return []
    warnings = [EstimateWarning("log-note", note) for note in recording.notes]
    if recording.skipped_rows:
        text = f"{recording.source}: {recording.skipped_rows} rows that cannot be used "
        text += "were skipped, as asked."
        warnings.append(EstimateWarning("rows-skipped", text))
    return [
        *warnings,
        *_too_slow(recording),
        *_too_fast(recording, arm),
        *_odd_torques(recording),
        *_frozen_encoders(recording),
        *_broken_temperatures(recording),
    ]


def _joint_name(recording: Recording, j: int) -> str:
    names = recording.joint_names
    return names[j] if j < len(names) else f"joint {j + 1}"


def _too_slow(recording: Recording) -> list[EstimateWarning]:
    steps = np.diff(recording["q_1"].time)
    rate = 1.0 / float(np.median(steps)) if steps.size and np.median(steps) > 0 else 0.0
    if rate >= _SLOW or not steps.size:
        return []
    return [
        EstimateWarning(
            "slow-sampling",
            f"{recording.source} has {rate:.3g} rows a second: accelerations are "
            "blurred, and inertias with them. Record at 100 Hz or more.",
        )
    ]


def _too_fast(recording: Recording, arm: Arm) -> list[EstimateWarning]:
    """Joints that move faster than they can: another unit, or a broken encoder."""
    if recording.dof != arm.dof:
        return []
    limit = arm.limits("velocity")
    turning = np.array([arm.joints[i].is_revolute for i in arm.coordinates])
    # Without a limit: three turns a second, or 5 m/s, are faster than any arm.
    plausible = np.where(turning, 6.0 * np.pi, 5.0)
    limit = np.where(np.isfinite(limit) & (limit > 0), 5.0 * limit, plausible)
    fast = []
    for j in range(arm.dof):
        channel = recording[f"q_{j + 1}"]
        steps = np.diff(channel.time)
        moved = np.diff(channel.values)[steps > 0]
        if not moved.size:
            continue
        # A percentile: spikes are another matter.
        speed = float(np.percentile(np.abs(moved / steps[steps > 0]), 90.0))
        if speed > limit[j]:
            unit = "rad/s" if turning[j] else "m/s"
            fast.append(f"{arm.coordinate_names[j]} ({speed:.3g} {unit})")
    if not fast:
        return []
    return [
        EstimateWarning(
            "joint-too-fast",
            f"{', '.join(fast)} moves faster than an arm can: is its column in degrees "
            "or millimetres, or the time in another unit? Head columns with their "
            "units: q_1 [deg].",
        )
    ]


def _odd_torques(recording: Recording) -> list[EstimateWarning]:
    """Torques that are constant, unsigned or clipped."""
    constant, unsigned, clipped = [], [], []
    for j in range(recording.count("tau")):
        values = recording[f"tau_{j + 1}"].values
        name = _joint_name(recording, j)
        if values.size < 100:
            continue
        if np.ptp(values) == 0.0:
            constant.append(name)
        elif _is_unsigned(values):
            unsigned.append(name)
        elif (at := _clipped(values)) is not None:
            clipped.append(f"{name} ({100 * at:.0f} % of its rows)")
    warnings = []
    if constant:
        text = f"The torque of {', '.join(constant)} never changes: it was not "
        text += "measured. Map the right column."
        warnings.append(EstimateWarning("torque-constant", text))
    if unsigned:
        text = f"The torque of {', '.join(unsigned)} has no sign: it comes to zero and "
        text += "turns back. Record signed torque or current."
        warnings.append(EstimateWarning("torque-unsigned", text))
    if clipped:
        text = f"The torque of {', '.join(clipped)} is clipped. Move slower, or widen "
        text += "the range of what is recorded."
        warnings.append(EstimateWarning("torque-clipped", text))
    return warnings


def _is_unsigned(torque: np.ndarray) -> bool:
    """Tell whether a torque is an absolute value: it touches zero and turns back."""
    top = float(np.percentile(torque, 99.0))
    # Noise of an absolute value ends at zero; that of a signed one would pass it.
    if torque.min() < 0.0 or torque.min() >= 0.01 * top:
        return False
    # A visit lasts until the torque is well away: noise at a level is not many visits.
    away = np.flatnonzero(torque > 0.1 * top)
    visits = away[np.flatnonzero(np.diff(away) > 1)]
    steps = np.abs(np.diff(torque, append=torque[-1]))
    touches = 0
    for first, last in zip(
        visits, away[np.searchsorted(away, visits) + 1], strict=True
    ):
        lowest = int(first) + int(np.argmin(torque[first:last]))
        # What would have passed zero comes within a step of it; what has a minimum of
        # its own there turns back slowly, anywhere above.
        nearby = steps[max(lowest - 3, 0) : lowest + 3].max(initial=0.0)
        touches += bool(torque[lowest] <= min(nearby, 0.02 * top))
    return touches >= _TOUCHES


def _clipped(torque: np.ndarray) -> float | None:
    """Fraction of rows at a torque's largest or smallest value, if suspicious."""
    worst = None
    for extreme, inward in ((torque.max(), -1.0), (torque.min(), 1.0)):
        at = torque == extreme
        count = int(at.sum())
        # As wide a band inside holds at least as many rows if nothing is clipped.
        width = 0.02 * float(np.ptp(torque))
        depth = inward * (torque - extreme)
        inside = int(np.sum((depth > 0) & (depth <= width)))
        runs = int(np.sum(np.diff(at.astype(int)) > 0)) + int(at[0])
        # Steps of a coarse converter fill their levels evenly; a clip fills the last.
        levels = max(np.unique(torque[(depth > 0) & (depth <= width)]).size, 1)
        is_heavy = count > 5 * inside / levels and count > 3 * max(runs, 1)
        if count > _CLIPPED * torque.size and count >= 20 and is_heavy:
            worst = max(worst or 0.0, count / torque.size)
    return worst


def _frozen_encoders(recording: Recording) -> list[EstimateWarning]:
    """Joints that moved, then stand exactly still while others move on."""
    names = [f"q_{j + 1}" for j in range(recording.dof)]
    if len({recording.index_of(name) for name in names}) > 1:
        return []
    q = np.stack([recording[name].values for name in names], axis=1)
    if len(q) < 200:
        return []
    still = np.diff(q, axis=0) == 0.0
    frozen = []
    for j in range(recording.dof):
        # The longest run without any change at all.
        edges = np.flatnonzero(np.diff(still[:, j], prepend=False, append=False))
        runs = edges.reshape(-1, 2)
        if not runs.size:
            continue
        first, stop = max(runs, key=lambda run: int(run[1] - run[0]))
        others = np.delete(~still[first:stop], j, axis=1)
        moves_elsewhere = np.ptp(q[:, j]) > 0 and np.mean(still[:, j]) < 0.9
        # A coarse encoder stands still between counts; not for a tenth of the log.
        if (
            stop - first > _FROZEN * len(q)
            and moves_elsewhere
            and others.size
            and others.mean() > 0.5
        ):
            time = recording["q_1"].time
            span = f"from {time[first]:.3g} to {time[stop - 1]:.3g} s"
            frozen.append(f"{_joint_name(recording, j)} ({span})")
    if not frozen:
        return []
    return [
        EstimateWarning(
            "encoder-frozen",
            f"The position of {', '.join(frozen)} does not change at all while other "
            "joints move: it was held, or its encoder is stuck. Leave that part out if "
            "it moved.",
        )
    ]


def _broken_temperatures(recording: Recording) -> list[EstimateWarning]:
    lacking = missing_temperature(recording)
    if not lacking:
        return []
    text = f"{recording.source}: {lacking}; temperatures are left out. Record those of "
    text += "all joints throughout, or remove their columns."
    return [EstimateWarning("temperature-missing", text)]


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
    if outside.sum() < max(2, 0.5 * turning.sum()):
        names = ", ".join(arm.coordinate_names[k] for k in np.flatnonzero(outside))
        raise RecordingError(
            f"{recording.source}: {names} reaches {reach[j]:.4g}, far beyond its limit "
            f"of {limit[j]:.4g} rad, and the others do not: it seems to be in degrees. "
            f"Head its column q_{j + 1} [deg], or check the description's limits."
        )
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
