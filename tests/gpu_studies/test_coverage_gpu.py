"""Experiments on a GPU are the CPU's experiments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError, ArmwiseError
from armwise.identification import review
from armwise.identification.coverage import loop_recordings, loop_setting
from armwise.identification.methods import OrdinaryLeastSquares, WeightedLeastSquares
from armwise.identification.problem import pose_problem, structural_base
from armwise.programs.cuda_device import device
from armwise.regression.columns import Columns
from studies.closed_loop import GpuLoop
from studies.coverage import GpuExperiments, base_rows, gpu_coverage_study
from tests.identification.conftest import with_drives
from tests.programs.test_cuda import has_gpu, needs_gpu

RUNS = 3


def arm_with_friction():
    return with_drives(aw.load_arm("ddarm"))


def stacked(recordings):
    """(q, τ) × samples × runs, as the GPU holds them."""
    names = [f"{kind}_{j}" for kind in ("q", "tau") for j in (1, 2, 3)]
    return np.array(
        [[rec.channels[name].values for rec in recordings] for name in names]
    ).swapaxes(1, 2)


@needs_gpu
def test_arms_move_as_simulated_arms_do():
    setting = loop_setting(arm_with_friction(), None, 2, 2**17, 0.0)
    setting = replace(setting, zero_spread=0.0)
    expected = stacked(list(loop_recordings(setting, RUNS, 2)))
    loop = GpuLoop(setting)
    out = device().empty(loop.bytes_per_run * RUNS)
    loop.run(RUNS, 0, 0, out)
    found = device().download(out, expected.shape)
    q, tau = found[:3] - expected[:3], found[3:] - expected[3:]
    assert np.abs(q).max() <= 1.01 * setting.resolution  # a count may tip over
    assert np.mean(q == 0.0) > 0.99
    assert np.sqrt(np.mean(tau**2)) < 1e-3 * np.abs(expected[3:]).max()


@needs_gpu
def test_fits_are_the_cpus():
    arm = arm_with_friction()
    setting = loop_setting(arm, None, 2, 2**17, 0.01)
    recordings = list(loop_recordings(setting, RUNS, 2))
    like = aw.prepare(recordings[0], 10.0, arm=arm, lag=0.5e-3)
    problem = pose_problem(Columns(arm), [like])
    gpu = GpuExperiments(setting, like, problem.columns, problem.base, 5)
    found = gpu.fit(device().upload(stacked(recordings)), RUNS)
    for run, recording in enumerate(recordings):
        one = problem.with_data([aw.prepare(recording, like=like)])
        weighted, plain = (
            m.solve(one) for m in (WeightedLeastSquares(), OrdinaryLeastSquares())
        )
        std = np.sqrt(np.diag(review(one, weighted).covariance))
        np.testing.assert_allclose(found.values[:, run], weighted.values, rtol=1e-5)
        np.testing.assert_allclose(found.std[:, run], std, rtol=1e-4)
        np.testing.assert_allclose(found.plain_values[:, run], plain.values, rtol=1e-5)
        textbook = np.sqrt(np.diag(plain.covariance))
        np.testing.assert_allclose(found.plain_std[:, run], textbook, rtol=1e-5)


@needs_gpu
def test_noise_is_normal_and_every_run_has_its_own():
    setting = loop_setting(arm_with_friction(), None, 2, 2**17, 0.01)
    quiet = loop_setting(arm_with_friction(), None, 2, 2**17, 0.0)
    both = []
    for one in (setting, quiet):
        loop = GpuLoop(one)
        out = device().empty(loop.bytes_per_run * 64)
        loop.run(64, 7, 0, out)
        both.append(device().download(out, (6, loop.steps + 1, 64))[3:])
    noise = (both[0] - both[1]) / setting.torque_noise[:, None, None]
    assert abs(noise.mean()) < 5e-3
    assert abs(noise.std() - 1.0) < 5e-3
    assert abs(np.mean(noise**4) - 3.0) < 0.03
    assert abs(np.corrcoef(noise[0, :, 0], noise[0, :, 1])[0, 1]) < 0.05


@needs_gpu
def test_both_count_the_same():
    arm = arm_with_friction()
    gpu = gpu_coverage_study(arm, experiments=2000, seed=2)
    cpu = aw.identification.coverage_study(arm, experiments=40, seed=2)
    assert gpu.names == cpu.names
    assert abs(gpu.total - cpu.total) < 0.03


def test_rows_of_base_parameters_give_the_torque():
    arm = arm_with_friction()
    columns = Columns(arm)
    base = structural_base(columns, np.ones(len(columns.names), dtype=bool))
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 20, 3))
    tau = aw.Dynamics(arm, "numpy").inverse_dynamics(q, qd, qdd)
    from armwise.programs import Kernel

    rows = Kernel(base_rows(columns, base), "numpy")([q, qd, qdd, tau, np.sign(qd)])[0]
    found = rows[..., :-1] @ base.values(arm.parameters)
    np.testing.assert_allclose(found, tau, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(rows[..., -1], tau)


def test_other_methods_are_refused_on_a_gpu():
    with pytest.raises(ArgumentError, match="WeightedLeastSquares"):
        gpu_coverage_study(arm_with_friction(), method=OrdinaryLeastSquares())


@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU")
def test_without_a_gpu_one_sentence_says_what_to_do():
    with pytest.raises(ArmwiseError, match='backend="c"'):
        gpu_coverage_study(arm_with_friction(), experiments=2)
