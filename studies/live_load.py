"""Changes of a load, live: false alarms in hours of waving, and the delay of changes.

The generated C of `OnlineLoad` follows a wrist sensor whose noise has passed a filter
of its own and whose zero drifts; hoses drag at the wrist with dry friction, and joint
accelerations are noisy. Everything runs in C, at a kilohertz.

    python -m studies.live_load --hours 10
"""

from __future__ import annotations

import argparse
import ctypes
import json
import tempfile
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.arms import Arm, InertialParameters
from armwise.dynamics import HeldBody
from armwise.loads import OnlineLoad
from armwise.motions import random_motion
from armwise.programs import compiled_library, fill

RATE_HZ = 1000.0
NOISE = np.repeat([0.2, 0.01], 3)
DRAG = np.repeat([0.15, 0.008], 3)
"""Dry friction of hoses at the wrist in [N] and [N m]: nobody's model knows it."""

_KEPT = 0.53
"""Pole of the sensor's own low-pass at 100 Hz."""

_TEMPLATE = Path(__file__).parent / "templates" / "live_load.c.in"


def tables(
    arm: Arm, load: InertialParameters, more: InertialParameters, seed: int
) -> tuple[np.ndarray, ...]:
    """A minute of motion as measured, and the wrench of two loads with hoses."""
    rng = np.random.default_rng(seed)
    rows = []
    for k in range(6):
        motion = random_motion(arm, seed + k, 10.0, fastest=1.5)
        rows.append(np.stack(motion.sample(np.arange(10000) / RATE_HZ)))
    q, qd, qdd = np.concatenate(rows, axis=1)
    A = HeldBody(arm, "flange").regressor(q, qd, qdd)
    # Hoses drag against the last three joints, each along a direction of its own.
    way = rng.normal(size=(3, 6))
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    drag = np.tanh(qd[:, -3:] / 0.02) @ way * DRAG
    wrench, other = (A @ body.vector + drag for body in (load, load + more))
    measured = qdd + 0.05 * rng.normal(size=qdd.shape)
    return tuple(np.ascontiguousarray(x) for x in (q, qd, measured, wrench, other))


def follow(
    arm: Arm, hours: float, change: float, every: float, seed: int
) -> tuple[int, np.ndarray, int]:
    """Alarms without a change, delays of changes seen in [s], and changes made.

    Args:
        arm: The arm; it needs a frame "flange".
        hours: To simulate.
        change: Mass that comes and goes in [kg].
        every: Time between changes in [s]; zero for none.
        seed: Of motion, load and noise.
    """
    online = OnlineLoad(arm, "flange", rate_hz=RATE_HZ, noise_std=(0.2, 0.01))
    with tempfile.TemporaryDirectory() as folder:
        _, source = online.generate(folder, "hand")
        header = source.with_suffix(".h").read_text()
        follower = source.read_text().replace('#include "hand.h"', header)
    text = fill(_TEMPLATE, FOLLOWER=follower, NAME="hand", JOINTS=arm.dof)
    library = compiled_library(text, "-O2")
    load = InertialParameters.from_center_of_mass(
        1.0, [0.01, 0.02, 0.05], np.diag([0.003, 0.002, 0.004])
    )
    more = InertialParameters.from_center_of_mass(
        change, [0.0, 0.0, 0.1], 1e-3 * np.eye(3)
    )
    data = tables(arm, load, more, seed)
    samples = round(hours * 3600.0 * RATE_HZ)
    period = round(every * RATE_HZ)
    made = 0 if not period else (samples - 1) // period - 20000 // period
    delays, seen = np.zeros(max(1, made + 1)), ctypes.c_long(0)
    library.live.restype = ctypes.c_long
    drift = np.repeat([0.01, 0.0005], 3) / np.sqrt(RATE_HZ)
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*data, NOISE, drift)]
    alarms = library.live(
        ctypes.c_long(samples),
        ctypes.c_long(len(data[0])),
        *pointers,
        ctypes.c_double(_KEPT),
        ctypes.c_long(period),
        ctypes.c_ulonglong(seed + 1),
        ctypes.c_void_p(delays.ctypes.data),
        ctypes.byref(seen),
    )
    return int(alarms), delays[: seen.value] / RATE_HZ, made


def main() -> None:
    """Print false alarms, and delays of a change of 0.3 kg."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--change", type=float, default=0.3)
    parser.add_argument("--arm", default="panda")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    arm = aw.load_arm(options.arm)
    hours, alarms = 0.0, 0
    # Hour by hour, each with a motion of its own: a run cut short still counts.
    while hours < options.hours:
        more = min(1.0, options.hours - hours)
        seed = options.seed + 6 * round(hours)  # six motions an hour
        alarms += follow(arm, more, options.change, 0.0, seed)[0]
        hours += more
        print(json.dumps({"hours": hours, "false_alarms": alarms}), flush=True)
    # A change every 7.3 s, at another moment of the minute each time.
    false, delays, made = follow(arm, 0.5, options.change, 7.3, options.seed + 1000)
    print(
        json.dumps(
            {
                "changes": made,
                "seen": len(delays),
                "within_150_ms": float(np.mean(delays <= 0.15)) if made else None,
                "median_ms": round(1e3 * float(np.median(delays)), 1),
                "largest_ms": round(1e3 * float(delays.max()), 1),
                "further_alarms": false,
            }
        )
    )


if __name__ == "__main__":
    main()
