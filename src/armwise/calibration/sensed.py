"""Samples in the sensors' own units, and whether they can be used."""

from __future__ import annotations

import numpy as np

from armwise.errors import ArgumentError, RecordingError
from armwise.recordings import Channel, Recording, Samples, prepare

_SETTLING = 3.0
"""Time a low-pass needs at either end, over one by its cut-off in [Hz]."""

RAW = ("volts", "q")
"""Channels a joint's sensor may be found under, the first one that is there."""


def sensed_samples(
    recording: Recording | Samples,
    cutoff_hz: float | None = None,
    torque: str | None = None,
) -> Samples:
    """Prepare a recording with positions in the sensors' units.

    Args:
        recording: With `volts_1 …` or `q_1 …` and torques; samples are taken as they
            are.
        cutoff_hz: Low-pass in [Hz]; chosen from the data when None.
        torque: Channels to take torques from: `tau`, or `command` when that is all
            there is.
    """
    if isinstance(recording, Samples):
        return recording
    raw = raw_recording(recording, torque)
    return _settled(prepare(raw, cutoff_hz, velocity="position"))


def _settled(sensed: Samples) -> Samples:
    """Leave out where the low-pass of a heavy torque still feels the ends."""
    bandwidth = sensed.preparation.torque_bandwidth_hz
    if bandwidth is None:
        return sensed
    ends = round(_SETTLING / bandwidth * sensed.rate_hz)
    parts = [
        sensed[rows.start + ends : rows.stop - ends]
        for rows in sensed.segments
        if rows.stop - rows.start > 4 * ends
    ]
    return Samples.concatenate(parts) if parts else sensed


def raw_recording(recording: Recording, torque: str | None = None) -> Recording:
    """Name the sensors' channels q_1 … and the torques tau_1 …."""
    sensor = next((name for name in RAW if recording.count(name)), None)
    chosen = torque or next((x for x in ("tau", "command") if recording.count(x)), "")
    if sensor is None or not recording.count(chosen):
        raise RecordingError(
            f"{recording.source} needs sensor readings (volts_1 … or q_1 …) and "
            f"torques (tau_1 … or command_1 …). Found: {', '.join(recording.channels)}."
        )
    channels: dict[str, Channel] = {}
    for name, source in (("q", sensor), ("tau", chosen)):
        for j in range(recording.count(source)):
            channels[f"{name}_{j + 1}"] = recording[f"{source}_{j + 1}"]
    return Recording(channels, recording.joint_names, recording.source)


def check_readings(sensed: Samples, names: tuple[str, ...]) -> None:
    """Refuse readings of sensors that saturate or do not move.

    Raises:
        RecordingError: Naming the joint and the remedy.
    """
    if sensed.dof != len(names):
        raise ArgumentError(
            f"The samples have {sensed.dof} joints, but the arm has {len(names)}."
        )
    if not sensed.has_torque:
        raise RecordingError("The samples hold no joint torques; nothing to weigh.")
    for j, name in enumerate(names):
        reading = sensed.q[:, j]
        span = float(np.ptp(reading)) if reading.size else 0.0
        if span <= 1e-6 * max(1.0, float(np.max(np.abs(reading), initial=0.0))):
            raise RecordingError(
                f"{name} does not move in this recording. Move every joint that is to "
                "be calibrated, or look at its sensor."
            )


def check_saturation(recording: Recording, sensor: str, names: tuple[str, ...]) -> None:
    """Refuse raw readings that stay at the end of a converter's range."""
    for j, name in enumerate(names):
        values = recording[f"{sensor}_{j + 1}"].values
        moving = np.ptp(values) > 0 if values.size else False
        if not moving:
            continue
        for end in (values.max(), values.min()):
            stuck = _longest_run(values == end)
            if stuck > max(20, 0.02 * values.size) and stuck > _longest_rest(values):
                raise RecordingError(
                    f"{name}: the sensor rests at {end:.6g}, the end of its range, for "
                    f"{stuck} samples in a row: it is saturated. Move less far, or "
                    "lower the sensor's amplification."
                )


def _longest_rest(values: np.ndarray) -> int:
    """Longest run of equal readings away from both ends of the range."""
    inside = (values != values.max()) & (values != values.min())
    return _longest_run((np.diff(values, prepend=np.nan) == 0.0) & inside)


def _longest_run(is_true: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_true, [0]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))
