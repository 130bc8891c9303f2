"""Simulated samples with a known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import Drive
from armwise.motions import random_motion


def samples_of(arm, seed=0, seconds=20.0, rate=100.0, noise=0.01, seed_motion=0):
    """Clean motion at random phases; torque with white noise, relative to its size."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    q, qd, qdd = random_motion(arm, seed_motion).sample(t % 10.0)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau = tau + noise * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    return aw.Samples(time=t, q=q, qd=qd, qdd=qdd, tau=tau)


def weighted(arm, data, method=None, **options):
    """Identify with linear friction; weighted least squares if no method is named."""
    solver = aw.WeightedLeastSquares() if method is None else method
    return aw.identify(arm, data, solver, **{"friction": "linear"} | options)


def with_drives(arm):
    drive = Drive(rotor_inertia=0.2, viscous=0.5, coulomb=0.8, offset=0.1)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


@pytest.fixture(scope="session")
def arm():
    """The truth: puma560 with friction."""
    return with_drives(aw.load_arm("puma560"))


@pytest.fixture(scope="session")
def data(arm):
    return samples_of(arm)


@pytest.fixture(scope="session")
def described(arm):
    """The description: 20 % off, no friction."""
    rng = np.random.default_rng(9)
    wrong = arm.parameters * rng.uniform(0.8, 1.2, arm.parameters.size)
    wrong[arm.layout.drives] = 0.0
    return arm.with_parameters(wrong)
