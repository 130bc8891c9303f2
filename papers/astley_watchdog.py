"""`astley1996` ch. 6, future work: a monitor of drifting sensors."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import load_arm
from armwise.calibration import Calibration
from armwise.control import ComputedTorque
from armwise.monitoring import Watchdog
from armwise.motions import Fourier
from armwise.plants import Encoder, SimulatedArm, TorqueSensor, run
from papers.rows import Row, own

if TYPE_CHECKING:
    from jaxtyping import Float

RATE_HZ = 200.0
LEARNING = 60.0
"""Time to learn what undisturbed work looks like in [s]."""

ONSET, END = 75.3, 120.0
"""When a sensor shifts by 1°, and when the work ends, in [s]."""

NOISE = 0.005
"""Of the torques in [N m]; the links weigh up to 0.7 N m."""

_NOTE = (
    "hand_controller at 200 Hz, 60 s to learn from; benchmarks/watchdog.py has "
    "industrial arms, loads and ten hours"
)


@cache
def work() -> tuple[
    Float[np.ndarray, " samples"],
    Float[np.ndarray, "samples 2"],
    Float[np.ndarray, "samples 2"],
]:
    """Time [s], positions [rad] and torques [N m] of ordinary motion."""
    arm = load_arm("hand_controller")
    sensors = (Encoder(resolution=1e-5), TorqueSensor(noise_std=NOISE))
    plant = SimulatedArm(arm, sensors=sensors, control_rate_hz=RATE_HZ, seed=0)
    sine = np.array([[0.5, 0.2, 0.1], [0.4, 0.0, 0.2]])
    cosine = np.array([[0.0, 0.2, 0.1], [0.3, 0.2, 0.0]])
    motion = Fourier(np.array([0.2, 0.4]), sine, cosine, 0.2, 0.2 * END)
    recording = run(plant, ComputedTorque(arm, 400.0, 40.0), motion)
    q, tau = (
        np.stack([recording[f"{name}_{j}"].values for j in (1, 2)], axis=1)
        for name in ("q", "tau")
    )
    return recording["q_1"].time, q, tau


@cache
def watched(joint: int | None, is_seen: bool = True) -> Watchdog:
    """The watchdog after one joint's sensor has shifted by 1°, or none has.

    Args:
        joint: Whose sensor shifts at ONSET.
        is_seen: Whether the watchdog sees the moment itself; else a second is missing
            around it, and only gravity can tell.
    """
    arm = load_arm("hand_controller")
    time, q, tau = (np.array(x) for x in work())
    if joint is not None:
        q[time >= ONSET, joint] += np.deg2rad(1.0)
    kept = np.abs(time - ONSET) >= (0.0 if is_seen else 0.5)
    given = Calibration.from_values(arm, torque_std=np.full(2, NOISE))
    dog = Watchdog(arm, given, 1.0 / RATE_HZ, learning=LEARNING)
    dog.update(time[kept], q[kept], tau[kept])
    return dog


def rows() -> list[Row]:
    """What the thesis wished for."""
    quiet = watched(None).alarms
    return [
        own("watchdog", f"alarms in {END - LEARNING:.0f} s of undisturbed work",
            "the thesis' future work; our aim: none", len(quiet), below=0.5,
            note=_NOTE),
        *(_shift_row(j, is_seen) for j in range(2) for is_seen in (True, False)),
    ]  # fmt: skip


def _shift_row(joint: int, is_seen: bool) -> Row:
    dog = watched(joint, is_seen)
    found = next((a for a in dog.alarms if a.time >= ONSET), None)
    delay = np.inf if found is None else found.time - ONSET
    shown = "not in 45 s"
    if found is not None:
        shown = f"{delay:.2f} s, as {np.rad2deg(found.size):.2f}°"
    visible = float(np.rad2deg(dog.visible(END - ONSET)[joint].drift))
    return own(
        "watchdog",
        f"joint {joint + 1}, {'seen' if is_seen else 'unseen'} shift of 1°: found "
        "after [s]",
        "the thesis' future work; our aim: 5 s" if is_seen else "no aim",
        delay,
        below=5.0 if is_seen else None,
        shown=shown,
        note=_NOTE
        if is_seen
        else "a second is missing around it; by its own word gravity tells "
        f"{visible:.1f}° in 45 s",
    )
