"""A PUMA that waves a bar about: simulated wrenches with known truth."""

from __future__ import annotations

from functools import cache

import numpy as np

import armwise as aw
from armwise.arms import Arm, InertialParameters
from armwise.dynamics.wrench import HeldBody

BAR = InertialParameters.from_center_of_mass(
    1.6, [0.001, 0.0, 0.05], np.diag([0.0244, 0.0007, 0.0242])
)
BRICK = InertialParameters.from_center_of_mass(
    1.2, [0.02, -0.01, 0.06], np.diag([0.004, 0.006, 0.009])
)
GRIPPER = InertialParameters.from_center_of_mass(
    0.9, [0.0, 0.002, 0.04], np.diag([9e-4, 8e-4, 6e-4])
)
NOISE = np.repeat([0.1, 0.005], 3)


@cache
def puma() -> Arm:
    return aw.load_arm("puma600")


@cache
def body() -> HeldBody:
    return HeldBody(puma(), "wrist")


def motion(duration: float = 10.0, seed: int = 3) -> aw.motions.Fourier:
    random = np.random.default_rng(seed)
    size = 0.15 * random.normal(size=(2, 6, 5))
    return aw.motions.Fourier([0, -1, 1, 0, 0.3, 0], size[0], size[1], 1.0 / duration)


def samples(
    load: InertialParameters = BAR,
    duration: float = 10.0,
    rate_hz: float = 200.0,
    noise: float = 1.0,
    drift: float = 0.0,
    bias: float = 0.0,
    seed: int = 0,
) -> aw.Samples:
    """Exact motion, and the wrench with noise in units of NOISE."""
    random = np.random.default_rng(seed)
    t = np.arange(round(duration * rate_hz)) / rate_hz
    q, qd, qdd = motion(duration).sample(t)
    size = (len(t), 6)
    wrench = body().regressor(q, qd, qdd) @ load.vector
    wrench = wrench + noise * NOISE * random.normal(size=size)
    wrench = wrench + bias * 20.0 * NOISE * random.normal(size=6)
    steps = drift * NOISE * random.normal(size=size) / np.sqrt(rate_hz)
    wrench = wrench + np.cumsum(steps, axis=0)
    return aw.Samples(t, q, qd, qdd, np.zeros((len(t), 0)), wrench)


def static_samples(
    load: InertialParameters = BAR, poses: int = 6, seed: int = 0, bias: float = 1.0
) -> aw.Samples:
    """Poses held for half a second each, one segment each."""
    random = np.random.default_rng(seed)
    offset = bias * 20.0 * NOISE * random.normal(size=6)
    q = np.repeat(random.uniform(-1.5, 1.5, size=(poses, 6)), 100, axis=0)
    still = np.zeros_like(q)
    wrench = body().regressor(q, still, still) @ load.vector + offset
    wrench = wrench + NOISE * random.normal(size=wrench.shape)
    t = np.arange(len(q)) / 200.0
    starts = tuple(range(0, len(q), 100))
    return aw.Samples(t, q, still, still, np.zeros((len(q), 0)), wrench, starts)
