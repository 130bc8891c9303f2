"""A hand controller at work, and a watchdog that watches it."""

from __future__ import annotations

import numpy as np

from armwise.calibration import Calibration
from armwise.monitoring import Watchdog
from armwise.motions import Fourier
from tests.calibration.hands import hand, structure

PERIOD = 0.005
JUMP = np.deg2rad(1.0)


def worked(seconds: float, seed: int = 0, motion: object = None):
    """Ordinary motion, its readings in counts of 20 µrad, and its torques."""
    random = np.random.default_rng(seed)
    sine, cosine = random.normal(0.0, 0.25, (2, 2, 4))
    motion = motion or Fourier(np.array([0.3, 0.2]), sine, cosine, 0.11, 44.0)
    time = np.arange(0.0, seconds, PERIOD)
    q, qd, qdd = motion.sample(time)
    tau = structure().dynamics.inverse_dynamics(q, qd, qdd)
    tau += random.normal(0.0, 0.005, tau.shape)
    return time, np.rint(q / 2e-5) * 2e-5, tau


def watchdog(**options) -> Watchdog:
    given = Calibration.from_values(hand(), torque_std=0.005)
    chosen = {"learning": 20.0, "load": 0.0} | options
    return Watchdog(structure(), given, PERIOD, **chosen)


def alarms_of(stream, block: int = 1000, **options) -> list:
    dog, (time, q, tau) = watchdog(**options), stream
    for k in range(0, len(time), block):
        dog.update(time[k : k + block], q[k : k + block], tau[k : k + block])
    return dog.alarms
