"""Rows that cannot be used: refused, or left out and counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armwise.errors import RecordingError
from armwise.recordings.recording import Channel, Recording

LARGEST = 1e30
"""No joint is further, no torque larger; squares of more than this may overflow."""


def without_bad_rows(recording: Recording, skip: bool) -> Recording:
    """Refuse, or drop and count, rows with stamps or values that cannot be used."""
    if not recording.channels:
        raise RecordingError(
            f"{recording.source} has no column that is understood, such as q_1. "
            "Describe the log by a mapping: [position] columns = [2, 3, …] and so on."
        )
    tables: dict[int, list[str]] = {}
    for name, channel in recording.channels.items():
        tables.setdefault(id(channel.time), []).append(name)
    channels = dict(recording.channels)
    dropped = 0
    for names in tables.values():
        time = recording[names[0]].time
        bad = _bad_rows(recording, names, skip)
        if bad is None:
            continue
        dropped += int(bad.sum())
        kept = time[~bad]
        for name in names:
            channel = recording[name]
            channels[name] = Channel(kept, channel.values[~bad], channel.unit)
    skipped = recording.skipped_rows + dropped
    return replace(recording, channels=channels, skipped_rows=skipped)


def _bad_rows(recording: Recording, names: list[str], skip: bool) -> np.ndarray | None:
    """Return a mask of one table's bad rows, or None if there is none."""
    time = recording[names[0]].time
    bad = np.zeros(time.size, bool)
    for label, values in [("time", time), *((n, recording[n].values) for n in names)]:
        if label != "time" and not _is_standard(label):
            continue
        sensible = np.abs(values) < LARGEST
        if sensible.all():
            continue
        if not skip:
            row = int(np.argmin(sensible))
            raise RecordingError(
                f'{recording.source}, row {row + 1}: column "{label}" is '
                f"{values[row]}. Repair the log, or skip such rows (--skip-bad-rows)."
            )
        bad |= ~sensible
    sound = np.where(bad, -np.inf, time)
    backwards = ~bad & (time < np.maximum.accumulate(sound))
    if backwards.any() and not skip:
        row = int(np.argmax(backwards))
        raise RecordingError(
            f"{recording.source}, row {row + 1}: time runs backwards "
            f"({time[row - 1]:.9g} s, then {time[row]:.9g} s). Cut the log there, or "
            "skip such rows (--skip-bad-rows)."
        )
    bad |= backwards
    return bad if bad.any() else None


def _is_standard(name: str) -> bool:
    return name.split("_")[0] in ("q", "qd", "qdd", "tau") or len(name) == 2
