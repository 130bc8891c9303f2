"""Motions to judge by, before anything has moved."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.dynamics import Dynamics
from armwise.motions import Fourier, Motion
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float


def random_motion(arm: Arm, motion: Motion, seed: int = 0) -> Samples:
    """Samples along a motion, with the torques of the arm or of made-up bodies."""
    time = np.linspace(0.0, motion.duration, 1500)
    q, qd, qdd = motion.sample(time)
    tau = Dynamics(_with_bodies(arm, seed)).inverse_dynamics(q, qd, qdd)
    return Samples(time, q, qd, qdd, tau)


def wide_motion(
    arm: Arm, duration: float, seed: int = 0, fastest_hz: float = 0.5
) -> Fourier:
    """A motion that uses most of each joint's range, or of its speed; never twice.

    Args:
        arm: Its limits of position and velocity.
        duration: In [s].
        seed: Of the random amplitudes.
        fastest_hz: Frequency of the fastest harmonic in [Hz].
    """
    random = np.random.default_rng(seed)
    lower, upper = (np.nan_to_num(arm.limits(x)) for x in ("lower", "upper"))
    lower, upper = np.maximum(lower, -2.0), np.minimum(upper, 2.0)
    is_open = upper - lower < 1e-6
    lower, upper = np.where(is_open, -1.5, lower), np.where(is_open, 1.5, upper)
    harmonics = max(5, round(fastest_hz * duration))
    shape = (2, arm.dof, harmonics)
    amplitude = random.normal(size=shape) / np.sqrt(np.arange(1, harmonics + 1))
    reach = 0.4 * (upper - lower)
    amplitude *= (reach / np.sqrt(np.sum(amplitude**2, axis=(0, 2))))[:, None] / 1.6
    middle, frequency = 0.5 * (lower + upper), 1.0 / duration
    motion = Fourier(middle, amplitude[0], amplitude[1], frequency)
    sample = motion.sample(np.linspace(0.0, duration, 50 * harmonics))
    speed = np.minimum(arm.limits("velocity"), 3.0) * 0.8
    excess = max(
        float(np.max(np.abs(sample.q - middle) / (0.5 * (upper - lower)))),
        float(np.max(np.abs(sample.qd) / speed)),
    )
    sine, cosine = amplitude / max(excess, 1.0)
    return Fourier(middle, sine, cosine, frequency)


def _with_bodies(arm: Arm, seed: int) -> Arm:
    """The arm, or one with made-up bodies where it has no mass."""
    if np.any(arm.parameters[: 10 * len(arm.links)]):
        return arm
    random = np.random.default_rng(seed)
    links = tuple(
        replace(
            link,
            inertia=InertialParameters.from_pseudo_inertia(_random_body(random)),
        )
        for link in arm.links
    )
    return replace(arm, links=links)


def _random_body(random: np.random.Generator) -> Float[np.ndarray, "4 4"]:
    root = random.normal(size=(4, 4)) * np.array([0.1, 0.1, 0.1, 1.0])[:, None]
    return np.asarray(root @ root.T)
