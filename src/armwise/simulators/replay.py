"""A motion of a robot beside that of a simulator, and the figures of the two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification import part_masks
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: the fastest quarter of the time.
_FAST = 0.75
"""Quantile of a joint's speed above which it counts as fast."""

WHERE = ("reversing", "resting", "fast", "moving")
"""Parts of a motion whose errors are kept apart; fast ones are among the moving."""

_CONTROL_RATE = 1000.0
"""Torques per second, interpolated between those of the log."""


@dataclass(frozen=True, eq=False)
class Replay:
    """One motion of the robot beside that of a simulator.

    Attributes:
        time: In [s].
        q: What the robot did, in [rad] or [m].
        simulated: What the simulator did; it begins again at every start.
        starts: First samples of free runs.
        runaways: How many free runs ended in a simulated arm that ran away.
        smoothed: Joints whose gears' ripple was left out, as it is of the log's torque.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    simulated: Float[np.ndarray, "samples dof"]
    starts: tuple[int, ...]
    runaways: int = 0
    smoothed: tuple[str, ...] = ()

    @property
    def error(self) -> Float[np.ndarray, " dof"]:
        """Mean |q_simulated − q| per joint."""
        return np.asarray(np.abs(self.simulated - self.q).mean(axis=0))


@dataclass(frozen=True, eq=False)
class MotionGap:
    """The gap in one motion, per joint.

    Attributes:
        replay: The motion itself.
        torque_error: ‖τ − τ̂‖ / ‖τ‖ by inverse dynamics; None without torques.
        delay: By how much what is simulated is early, in [s]: of the torque, or of the
            position in a replay of commands.
        gain: What it has to be multiplied by to fit the measured best.
        where: Part of the motion → mean |q_simulated − q| in it; NaN where none is.
    """

    replay: Replay
    torque_error: Float[np.ndarray, " dof"] | None
    delay: Float[np.ndarray, " dof"]
    gain: Float[np.ndarray, " dof"]
    where: Mapping[str, Float[np.ndarray, " dof"]]


def commands_gap(replay: Replay) -> MotionGap:
    """The gap of a motion that followed commands: figures of positions alone."""
    rate = 1.0 / float(np.median(np.diff(replay.time)))
    rows = (slice(0, len(replay.time)),)
    delay, gain = delay_and_gain(replay.simulated, replay.q, rows, rate)
    return MotionGap(replay, None, delay, gain, where_it_arises(replay, _still(replay)))


def _still(replay: Replay) -> Samples:
    """Positions and speeds of a log without torques, for the parts of its motion."""
    qd = np.gradient(replay.q, replay.time, axis=0)
    nothing = np.zeros_like(replay.q)
    return Samples(replay.time, replay.q, qd, nothing, nothing)


def where_it_arises(
    replay: Replay, samples: Samples, rows: np.ndarray | None = None
) -> dict[str, Float[np.ndarray, " dof"]]:
    """Mean |q_simulated − q| in each part of a motion; NaN where it has none.

    Args:
        replay: The motion.
        samples: With speeds, to tell its parts.
        rows: Which of the samples each row of the replay is; None: all, in order.
    """
    moving, resting, reversing = part_masks(samples)
    speed = np.abs(samples.qd)
    fast = moving & (speed > np.quantile(speed, _FAST, axis=0))
    masks = {
        "reversing": reversing,
        "resting": resting,
        "fast": fast,
        "moving": moving,
    }
    error = np.abs(replay.simulated - replay.q)
    means = {}
    for name, mask in masks.items():
        picked = mask if rows is None else mask[rows]
        count = picked.sum(axis=0)
        total = np.where(picked, error, 0.0).sum(axis=0)
        means[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def delay_and_gain(
    model: Float[np.ndarray, "samples dof"],
    measured: Float[np.ndarray, "samples dof"],
    segments: Sequence[slice],
    rate_hz: float,
) -> tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]]:
    """By how much a model is early in [s], and what it is to be multiplied by.

    From y ≈ g x(t − d) ≈ g x − g d ẋ by least squares, again with x moved by the delay
    until it settles; over the longest uninterrupted segment.
    """
    longest = max(segments, key=lambda rows: rows.stop - rows.start)
    count = longest.stop - longest.start
    times = np.arange(count) / rate_hz
    delay, gain = np.zeros(measured.shape[1]), np.ones(measured.shape[1])
    # Judgement: a quarter of a second; servos and sensors are not later.
    most = min(0.25, 0.25 * count / rate_hz)
    for j in range(measured.shape[1]):
        x, y = model[longest, j], measured[longest, j]
        for _ in range(5):
            moved = np.interp(times - delay[j], times, x)
            slope = np.gradient(moved, 1.0 / rate_hz)
            columns = np.column_stack([moved, -slope, np.ones(count)])
            size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
            solution = np.linalg.lstsq(columns / size, y, rcond=1e-9)[0] / size
            gain[j] = solution[0]
            if not solution[0] > 0.1:
                # Nearly nothing in common: a delay between the two has no meaning.
                delay[j] = np.nan
                break
            delay[j] = np.clip(delay[j] + solution[1] / solution[0], -most, most)
        # At the edge of the search none was found either.
        delay[j] = delay[j] if abs(delay[j]) < most else np.nan
    return delay, gain


# What drives a replay.


def torques_per_sample(samples: Samples) -> int:
    """Torques from one sample of a log to the next."""
    return max(1, round(_CONTROL_RATE / samples.rate_hz))


def torque_between(
    samples: Samples, index: np.ndarray, row: int, fraction: float
) -> Float[np.ndarray, "runs dof"]:
    """Logged torques of every run, between two of its samples."""
    before, after = samples.tau[index[:, row]], samples.tau[index[:, row + 1]]
    return np.asarray((1.0 - fraction) * before + fraction * after)
