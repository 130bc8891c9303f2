"""The GPU: same program, same numbers; without one, one clear sentence."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArmwiseError
from armwise.programs.cuda import Patches, elementwise_source, gram_source
from armwise.programs.cuda_device import CudaError, device


def has_gpu() -> bool:
    try:
        device()
    except CudaError:
        return False
    return True


needs_gpu = pytest.mark.skipif(not has_gpu(), reason="no NVIDIA GPU on this machine")


@needs_gpu
@pytest.mark.parametrize("name", ["inverse_dynamics", "regressor", "mass_matrix"])
def test_same_numbers_as_numpy(name):
    arm = aw.load_arm("panda")
    q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 1000, 7))
    inputs = (q,) if name == "mass_matrix" else (q, qd, qdd)
    ours = getattr(aw.Dynamics(arm, "cuda"), name)(*inputs)
    theirs = getattr(aw.Dynamics(arm, "numpy"), name)(*inputs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11)


@needs_gpu
def test_fused_sums_equal_the_cpus():
    from armwise.identification import Columns, accumulate
    from armwise.identification.gpu import GpuAccumulator

    arm = aw.load_arm("panda")
    q, qd, qdd, tau = np.random.default_rng(0).uniform(-1, 1, (4, 1003, 7))
    data = aw.Samples(time=np.arange(1003) * 1e-3, q=q, qd=qd, qdd=qdd, tau=tau)
    gpu = GpuAccumulator(Columns(arm))
    gpu.add(data)
    for a, b in zip(
        gpu.result().factors, accumulate(Columns(arm), data).factors, strict=True
    ):
        np.testing.assert_allclose(a.T @ a, b.T @ b, rtol=1e-9, atol=1e-9)


@needs_gpu
def test_filtered_samples_sum_as_on_the_cpu():
    from armwise.identification import Columns, accumulate
    from armwise.identification.gpu import GpuAccumulator

    arm = aw.load_arm("tx40")
    time = np.arange(4000) * 1e-3
    q = np.sin(time[:, None] * np.arange(1, 7)) + 0.3 * np.arange(6)
    recording = aw.Recording.from_arrays(time, q=q, tau=np.cos(q))
    data = aw.prepare(recording, 10.0, lag=0.0)
    gpu = GpuAccumulator(Columns(arm))
    gpu.add(data)
    for a, b in zip(
        gpu.result().factors, accumulate(Columns(arm), data).factors, strict=True
    ):
        size = np.sqrt(np.diag(b.T @ b)) + 1e-12
        assert np.abs((a.T @ a - b.T @ b) / np.outer(size, size)).max() < 1e-9


@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU")
def test_without_a_gpu_one_sentence_says_what_to_do():
    with pytest.raises(ArmwiseError, match='backend="c"'):
        aw.Dynamics(aw.load_arm("two_link_uno"), "cuda").gravity_torque(np.zeros(2))


def test_the_source_has_a_place_for_every_row():
    program = aw.Dynamics(aw.load_arm("panda"), "numpy").program("grouped_rows")
    widths = [46, 47, 40, 33, 26, 19, 12]
    assert sum(widths) == len(program.output("rows").nonzero)
    patches = Patches(widths)
    assert gram_source(program, patches).count("y[") == sum(widths)
    assert "(V){0}" not in gram_source(program, patches)
    assert patches.shared_bytes <= 227 * 1024
    assert patches.threads % 32 == 0
    assert Patches([300]).tile % 8 == 0
    assert "extern" in elementwise_source(program)


def test_patches_hold_every_entry_once():
    patches = Patches([5, 9])
    places = [patches.entry_indices(block) for block in (0, 1)]
    for found in places:
        np.testing.assert_array_equal(found, found.T)
    upper = [found[np.triu_indices(len(found))] for found in places]
    assert np.unique(np.concatenate(upper)).size == 15 + 45
    assert max(found.max() for found in places) < 16 * len(patches.corners)
