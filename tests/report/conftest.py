from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.identification import Estimate, EstimateWarning

HOSTILE = '<script>alert("x")</script> & co'


def samples(arm: aw.Arm, seed: int, moving: tuple[bool, bool] = (True, True)):
    """Two seconds of sinusoids with noise on the torque."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, 4.0, 0.01)
    w = np.array([2.0, 3.3]) + 0.4 * seed
    move = np.array(moving, dtype=float)
    phase = rng.uniform(0, 6, 2)
    q = 0.3 + 0.8 * move * np.sin(w * t[:, None] + phase)
    qd = 0.8 * move * w * np.cos(w * t[:, None] + phase)
    qdd = -0.8 * move * w**2 * np.sin(w * t[:, None] + phase)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    return aw.Samples(t, q, qd, qdd, tau + 0.01 * rng.normal(size=tau.shape))


def fitted(arm: aw.Arm, data: aw.Samples, **options) -> Estimate:
    """Weighted least squares with linear friction."""
    return aw.identify(
        arm, data, aw.WeightedLeastSquares(), friction="linear", **options
    )


@pytest.fixture(scope="session")
def arm() -> aw.Arm:
    return aw.load_arm("two_link_slotine").with_gravity([0.0, -9.81, 0.0])


@pytest.fixture(scope="session")
def identified(arm: aw.Arm) -> Estimate:
    fit, other = samples(arm, 0), samples(arm, 1)
    return replace(fitted(arm, fit, validation=other), warnings=())


@pytest.fixture(scope="session")
def still(arm: aw.Arm) -> Estimate:
    """The second joint never moved, nothing was left out."""
    fit = samples(arm, 0, (True, False))
    warning = EstimateWarning("mind", "mind this")
    return replace(fitted(arm, fit), warnings=(warning,))


@pytest.fixture(scope="session")
def hostile(arm: aw.Arm) -> Estimate:
    """Every name comes from a file that means harm."""
    joints = tuple(
        replace(joint, name=f"{joint.name}{HOSTILE}") for joint in arm.joints
    )
    links = tuple(replace(link, name=f"{link.name}{HOSTILE}") for link in arm.links)
    named = replace(arm, name=HOSTILE, joints=joints, links=links)
    fit = samples(named, 0)
    return replace(fitted(named, fit), warnings=(EstimateWarning("x", HOSTILE),))
