"""Friction as the filtered torque shows it, and torque beside all motion explains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import butter, sosfiltfilt

from armwise.dynamics import Dynamics
from armwise.recordings import Preparation, Samples
from armwise.regression import (
    Columns,
    TorqueProjection,
    friction_direction,
    low_pass,
)
from tests.recordings.motions import arm_with_friction, motion

RATE = 50.0


def samples(arm, bandwidth=None, resolution=1e-4, rows=1500):
    """The known motion, with the torque of an arm with friction and some noise."""
    time = np.arange(rows) / RATE
    q, qd, qdd = motion(arm.dof, time)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau = tau + np.random.default_rng(0).normal(0.0, 0.5, tau.shape)
    preparation = Preparation(
        torque_bandwidth_hz=bandwidth, speed_resolution=(resolution,) * arm.dof
    )
    return Samples(time=time, q=q, qd=qd, qdd=qdd, tau=tau, preparation=preparation)


@pytest.mark.parametrize("ends", ["odd", "constant"])
@pytest.mark.parametrize(("size", "cutoff"), [(40, 3.0), (900, 0.7), (900, 20.0)])
def test_the_low_pass_is_a_butterworth_run_both_ways(ends, size, cutoff):
    signals = np.cumsum(np.random.default_rng(1).normal(size=(size, 3)), axis=0)
    pad = min(size - 1, int(3 * RATE / cutoff))
    sections = butter(4, 2.0 * cutoff / RATE, output="sos")
    expected = sosfiltfilt(sections, signals, axis=0, padtype=ends, padlen=pad)
    filtered = low_pass(signals, cutoff, RATE, ends)
    np.testing.assert_allclose(filtered, expected, atol=1e-10)
    alone = low_pass(signals[:, 1], cutoff, RATE, ends)
    # Not to the last bit: a BLAS sums one column in another order than three.
    np.testing.assert_allclose(alone, filtered[:, 1], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("backend", ["auto", "numpy"])
@pytest.mark.parametrize("resolution", [0.0, 1e-4])
@pytest.mark.parametrize("name", ["ur10", "tx40"])
def test_the_links_alone_take_what_inverse_dynamics_says(name, resolution, backend):
    arm = arm_with_friction(name)
    data = samples(arm, resolution=resolution, rows=1100)
    if not resolution:
        data = replace(data, preparation=Preparation())
    columns = Columns(arm, dynamics=Dynamics(arm, backend=backend))
    only = np.zeros(arm.layout.size)
    only[arm.layout.links] = arm.parameters[arm.layout.links]
    links = Dynamics(arm.with_parameters(only))
    # Other motion than the samples': slower, and from another pose.
    motion = data.q + 0.3, 0.5 * data.qd, 0.2 * data.qdd
    torque = columns.link_torque(data, arm.parameters)(*motion)
    expected = links.inverse_dynamics(*motion)
    np.testing.assert_allclose(torque, expected, rtol=0.0, atol=1e-10)


def test_another_bandwidth_shows_what_samples_of_that_bandwidth_show():
    arm = arm_with_friction()
    data = samples(arm, bandwidth=5.0)
    slower = samples(arm, bandwidth=2.0)
    np.testing.assert_array_equal(
        friction_direction(data, bandwidth_hz=2.0), friction_direction(slower)
    )
    assert not np.allclose(friction_direction(data), friction_direction(slower))


def test_only_rows_around_a_reversal_are_masked():
    arm = arm_with_friction()
    columns = Columns(arm)
    data = samples(arm, bandwidth=5.0)
    _, (*_, direction) = columns.signals(data)
    trust = columns.trust(data, [direction])
    assert set(np.unique(trust)) == {0.0, 1.0}
    for j in range(arm.dof):
        turns = np.flatnonzero(np.diff(np.sign(data.qd[:, j])))
        distance = np.abs(np.arange(len(data))[:, None] - turns).min(axis=1) / RATE
        assert np.all(trust[distance < 0.02, j] == 0.0)  # the reversal itself
        assert np.all(trust[distance > 0.2, j] == 1.0)  # one period of the low-pass
    onwards = replace(data, qd=np.abs(data.qd) + 0.1)
    _, (*_, direction) = columns.signals(onwards)
    assert np.all(columns.trust(onwards, [direction]) == 1.0)
    # A drive that reverses most of its time is used throughout: nothing else is there.
    slow = samples(arm, bandwidth=0.8)
    _, (*_, direction) = columns.signals(slow)
    assert np.all(columns.trust(slow, [direction]) == 1.0)


def test_residuals_are_those_of_least_squares():
    arm = arm_with_friction()
    data, bandwidth = samples(arm), 2.0
    projection = TorqueProjection.of(data, Columns(arm))
    residual = projection.residuals(data.tau, bandwidth)
    sizes = np.linalg.norm(data.tau, axis=0)
    regressor = np.array(Dynamics(arm).regressor(data.q, data.qd, data.qdd))
    direction = friction_direction(data, bandwidth_hz=bandwidth)
    for j, name in enumerate(arm.coordinate_names):
        column = arm.parameter_names.index(f"{name}.coulomb")
        regressor[:, :, column] = 0.0
        regressor[:, j, column] = direction[:, j]
    matrix = (regressor / sizes[:, None]).reshape(-1, regressor.shape[2])
    target = (data.tau / sizes).reshape(-1)
    solution, _, rank, _ = np.linalg.lstsq(matrix, target, rcond=1e-9)
    assert rank == projection.rank + arm.dof
    expected = (target - matrix @ solution).reshape(residual.shape)
    np.testing.assert_allclose(residual, expected, atol=1e-11)


@pytest.mark.parametrize("with_arm", [True, False])
def test_what_the_motion_explains_leaves_no_residual(with_arm):
    arm = arm_with_friction()
    data = samples(arm)
    projection = TorqueProjection.of(data, Columns(arm) if with_arm else None)
    friction = friction_direction(data, bandwidth_hz=3.0)
    explained = 7.0 * data.qdd + 2.0 * data.qd + 5.0 * friction + 1.0
    if with_arm:  # any parameters, realisable or not
        parameters = np.random.default_rng(2).normal(size=arm.parameters.size)
        friction_of = [n.endswith(".coulomb") for n in arm.parameter_names]
        parameters[friction_of] = 0.0
        explained = (
            explained + Dynamics(arm).regressor(data.q, data.qd, data.qdd) @ parameters
        )
    several = np.stack([data.tau, data.tau + explained], axis=2)
    residual = projection.residuals(several, 3.0)
    np.testing.assert_allclose(residual[..., 1], residual[..., 0], atol=1e-9)
    alone = projection.residuals(data.tau, 3.0)
    np.testing.assert_allclose(residual[..., 0], alone, atol=1e-8)
    assert np.linalg.norm(residual[..., 0]) > 1e-4
