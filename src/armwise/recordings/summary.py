"""Summary of a log: its channels, and the samples it was prepared to."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.recordings.recording import Recording
from armwise.recordings.samples import Samples


def summarise_log(recording: Recording, samples: Samples) -> dict[str, Any]:
    """Return the channels of a log, and how it was prepared, by name."""
    return {
        "source": recording.source,
        "joints": recording.joint_names,
        "duration_s": recording.duration,
        "skipped_rows": recording.skipped_rows,
        "channels": [_channel(recording, name) for name in recording.channels],
        "samples": len(samples),
        "rate_hz": samples.rate_hz,
        "segments": len(samples.segments),
        "preparation": samples.preparation,
        "ranges": {
            name: {"min": signal.min(axis=0), "max": signal.max(axis=0)}
            for name in ("q", "qd", "qdd", "tau")
            if (signal := getattr(samples, name)).size
        },
    }


def _channel(recording: Recording, name: str) -> dict[str, Any]:
    channel = recording[name]
    steps = np.diff(channel.time)
    return {
        "name": name,
        "unit": channel.unit,
        "rows": int(channel.time.size),
        # All three: a median alone hides gaps and doubled stamps.
        "step_ms": [1e3 * float(f(steps)) for f in (np.min, np.median, np.max)],
        "min": float(np.nanmin(channel.values)),
        "max": float(np.nanmax(channel.values)),
    }
