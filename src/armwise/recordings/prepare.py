"""Preparation of recordings: clean samples on one time base, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from armwise.errors import ArgumentError, RecordingError
from armwise.progress import Progress
from armwise.recordings.alignment.alignment import choose
from armwise.recordings.recording import Recording
from armwise.recordings.repairs import repaired
from armwise.recordings.samples import Preparation, Samples
from armwise.recordings.smoothing import smooth
from armwise.recordings.stretches import (
    Stretches,
    motions_between_rests,
    speed_resolution,
    stretches_of,
)

if TYPE_CHECKING:
    from jaxtyping import Bool

    from armwise.arms import Arm


class HasPreparation(Protocol):
    """What knows how a log was prepared: samples, and estimates of them."""

    @property
    def preparation(self) -> Preparation | None:
        """How; None if it was not."""


def prepare(
    recording: Recording | Sequence[Recording],
    cutoff_hz: float | None = None,
    *,
    arm: Arm | None = None,
    like: HasPreparation | Preparation | None = None,
    lag: float | None = None,
    velocity: Literal["auto", "measured", "position"] = "auto",
    derivatives: Literal["differences", "spline"] = "differences",
    decimation: int | None = None,
    max_gap: float | None = None,
    keep_rest: bool = False,
    skip_bad_rows: bool = False,
    progress: Progress | None = None,
) -> Samples:
    """Turn measured motion into clean samples on one time base.

    Signals are put on an even time base and cut at gaps; torque and measured velocity
    are moved back by the delay they have behind the position; everything passes the
    same zero-phase low-pass; velocity and acceleration are made from it; edges and
    rests are left out; what is redundant is thinned out. Nothing is filtered or
    differentiated across a gap.

    Args:
        recording: One recording, or several, which become segments of their own.
        cutoff_hz: Low-pass in [Hz]; infinite for none. Chosen when None: as high as
            the motion explains the torque, and no higher than its own noise allows.
        arm: The arm, to find lag and cut-off by its own dynamics; without it a lag is
            not looked for, and a rough stand-in helps to choose the cut-off.
        like: Samples whose treatment is repeated, for data to validate on; or an
            estimate, whose logs' is.
        lag: Delay of torque and wrench in [s]. None: the torque's is found, if the arm
            is given; the wrench's is not.
        velocity: Use the measured velocity or the position's derivative; what explains
            the torque better, or is quieter, when "auto".
        derivatives: Central differences of filtered signals, or smoothing splines.
        decimation: Keep one sample in so many; ten a period of the cut-off if None.
        max_gap: Longest hole bridged by interpolation in [s]; ten steps when None.
        keep_rest: Keep rows in which the whole arm stands still.
        skip_bad_rows: Leave out rows that are not finite or run backwards in time.
        progress: Called with what is being done and how much of it is done.

    Raises:
        RecordingError: If a signal is missing, not finite, or time runs backwards.
    """
    recordings = [recording] if isinstance(recording, Recording) else list(recording)
    _check_arguments(recordings, cutoff_hz, decimation)
    report = progress or (lambda what, fraction: None)
    report("joining channels", 0.0)
    # What was read for an arm has been checked and mended then.
    recordings = [rec if rec.arm else repaired(rec, arm) for rec in recordings]
    tables = [stretches_of(rec, max_gap, skip_bad_rows) for rec in recordings]
    if arm is not None:
        _check_joints(recordings, arm)
    report("choosing the cut-off", 0.2)
    settings = _settings(tables, cutoff_hz, arm, like, lag, velocity, derivatives)
    if decimation is not None:
        settings = replace(settings, decimation=decimation, sample_rate_hz=None)
    parts = []
    held = _held(tables)
    for i, (rec, table) in enumerate(zip(recordings, tables, strict=True)):
        report("filtering", 0.3 + 0.7 * i / len(tables))
        part = _samples(rec, table, settings, keep_rest)
        if held.any():
            still = np.zeros(part.q.shape) if part.still is None else part.still
            part = replace(part, still=np.where(held[i], 1.0, still))
        parts.append(part)
    report("filtering", 1.0)
    joined = Samples.concatenate(parts)
    return joined if arm is None else replace(joined, arm=arm)


# Judgement: a hundredth of a joint's range is what control and encoder make of rest.
_HELD = 0.01
"""Range of a joint in a recording, beside its widest, below which it is held there."""


def _held(tables: Sequence[Stretches]) -> Bool[np.ndarray, "recordings dof"]:
    """Which joints are held in a recording, though they move in others.

    Of a joint at rest friction may have any value up to its limit, which would be
    learnt as mass or offset. Where it moves in no recording at all, how it holds its
    load is all there is to learn from.
    """
    ranges = np.array(
        [
            [max(np.ptp(part.q[j]) for part in table.parts) for j in range(dof)]
            for table in tables
            for dof in [len(table.parts[0].q)]
        ]
    )
    return np.asarray(ranges < _HELD * ranges.max(axis=0))


def _check_arguments(
    recordings: Sequence[Recording], cutoff_hz: float | None, decimation: int | None
) -> None:
    if not recordings:
        raise ArgumentError("There is no recording to prepare.")
    if len({rec.dof for rec in recordings}) > 1:
        raise ArgumentError(
            "These recordings differ in their joints and cannot be joined: "
            + ", ".join(f"{rec.source} has {rec.dof}" for rec in recordings)
            + "."
        )
    if cutoff_hz is not None and not cutoff_hz > 0.0:
        raise ArgumentError(f"The cut-off must be positive, not {cutoff_hz:g} Hz.")
    if decimation is not None and decimation < 1:
        raise ArgumentError(f"The decimation must be at least 1, not {decimation}.")


def _check_joints(recordings: Sequence[Recording], arm: Arm) -> None:
    for rec in recordings:
        if rec.dof != arm.dof:
            raise RecordingError(
                f"{rec.source} has positions of {rec.dof} joints, but {arm.name} has "
                f"{arm.dof}: {', '.join(arm.coordinate_names)}."
            )


def _preparation_of(like: HasPreparation) -> Preparation:
    preparation = getattr(like, "preparation", None)
    if not isinstance(preparation, Preparation):
        raise ArgumentError(
            f"A {type(like).__name__} does not say how a log was prepared: like= takes "
            "samples, an estimate whose logs were prepared, or a Preparation."
        )
    return preparation


def _settings(
    tables: Sequence[Stretches],
    cutoff_hz: float | None,
    arm: Arm | None,
    like: HasPreparation | Preparation | None,
    lag: float | None,
    velocity: Literal["auto", "measured", "position"],
    derivatives: Literal["differences", "spline"],
) -> Preparation:
    """Decide how to smooth, from all that was asked and what the data say."""
    parts = [part for table in tables for part in table.parts]
    if velocity == "measured" and not all(part.qd for part in parts):
        raise RecordingError("The velocity was not measured (no column qd_1).")
    if like is not None:
        # Nothing is decided anew: validation must not choose filters by its own data.
        earlier = like if isinstance(like, Preparation) else _preparation_of(like)
        joints = len(parts[0].q)
        if len(earlier.torque_scale) not in (0, joints):
            raise ArgumentError(
                f"This preparation scales the torques of {len(earlier.torque_scale)} "
                f"joints, the recording has {joints}: it is another arm's."
            )
        return earlier.settings
    # Judgement: torques a second late are of another motion.
    if lag is not None and not abs(lag) < 1.0:
        raise ArgumentError(f"A lag is in seconds, less than one: not {lag:g}.")
    fixed = None
    if cutoff_hz is not None:
        slowest = min(part.rate_hz for part in parts)
        if np.isfinite(cutoff_hz) and cutoff_hz >= 0.5 * slowest:
            raise ArgumentError(
                f"A cut-off of {cutoff_hz:g} Hz is above half of the {slowest:.4g} Hz "
                f"that the log is sampled at: choose less than {0.5 * slowest:.4g} Hz, "
                "or inf for no low-pass."
            )
        cutoff = cutoff_hz if np.isfinite(cutoff_hz) else None
        fixed = Preparation(cutoff_hz=cutoff, derivatives=derivatives).settings
    if velocity == "position":
        # Taken out, so that no later step can choose it.
        parts = [replace(part, qd=()) for part in parts]
    settings = replace(choose(parts, fixed, arm, lag), derivatives=derivatives)
    if velocity == "measured":
        settings = replace(settings, velocity="measured")
    return replace(settings, cutoff_is_automatic=cutoff_hz is None)


def _too_short(recording: Recording, table: Stretches, settings: Preparation) -> str:
    """Say why no stretch leaves a sample, and what would."""
    longest = max(table.parts, key=len)
    text = (
        f"{recording.source}: {len(longest)} samples in "
        f"{len(longest) / longest.rate_hz:.3g} s"
    )
    remedies = ["Record some seconds of motion"]
    if len(table.parts) > 1:
        text += f", its longest of {len(table.parts)} stretches between gaps,"
        remedies.append("raise max_gap")
    text += " are too few"
    if not settings.cutoff_is_automatic:
        text += f" for a cut-off of {settings.low_pass_hz:.3g} Hz"
        remedies.append("raise the cut-off")
    return f"{text}. {', or '.join(remedies)}."


def _samples(
    recording: Recording, table: Stretches, settings: Preparation, keep_rest: bool
) -> Samples:
    """Smooth every stretch of one recording and join its motions."""
    rate = table.parts[0].rate_hz
    if settings.sample_rate_hz is not None:
        # The same time between samples, at whatever rate this recording has.
        thin = round(settings.decimation * rate / settings.sample_rate_hz)
        settings = replace(settings, decimation=max(1, thin))
    smoothed = [smooth(part, settings) for part in table.parts]
    parts = [part for part in smoothed if part is not None]
    if not parts:
        raise RecordingError(_too_short(recording, table, settings))
    motions = parts
    if not keep_rest:
        slow = rate / settings.decimation
        motions = [
            # Not as rows cut from others: friction of a joint at rest has no direction
            # that a low-pass could mix in.
            replace(part[first:stop], whole=None)
            for part in parts
            # At rest Coulomb friction may have any value up to its limit, and sign(q̇)
            # none.
            for first, stop in motions_between_rests(part.qd, slow)
        ]
    samples = Samples.concatenate(motions)
    at_rest = sum(map(len, parts)) - len(samples)
    done = _described(recording, table, settings, at_rest, samples.qd)
    return replace(samples, preparation=done, arm=recording.arm)


def _described(
    recording: Recording,
    table: Stretches,
    settings: Preparation,
    at_rest: int,
    qd: np.ndarray,
) -> Preparation:
    """Add to the settings what they met in a recording."""
    rate = table.parts[0].rate_hz
    dropped = dict(table.dropped)
    if recording.skipped_rows:
        dropped["skipped while reading"] = recording.skipped_rows
    if at_rest:
        dropped["at rest (after decimation)"] = at_rest
    cutoff = settings.low_pass_hz
    # The narrower of the robot's own filter and ours.
    bandwidth = min(settings.torque_bandwidth_hz or np.inf, cutoff)
    # Close to half the sampling rate a low-pass does nothing, and is not done.
    return replace(
        settings,
        cutoff_hz=cutoff if cutoff < 0.45 * rate else None,
        sample_rate_hz=rate,
        torque_bandwidth_hz=bandwidth if bandwidth < 0.45 * rate else None,
        speed_resolution=tuple(map(float, speed_resolution(qd))),
        rows_read=table.rows_read,
        rows_dropped=tuple(dropped.items()),
        gaps=table.gaps,
        notes=(*recording.notes, *settings.notes),
    )
