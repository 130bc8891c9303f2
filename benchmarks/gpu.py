"""Identification and coverage experiments of `panda` on a GPU, beside JAX and the CPU.

Samples a second, data on the device they are used on; and a hundred thousand coverage
experiments, simulated, prepared and fitted there. Skips where there is no GPU.
"""

from __future__ import annotations

import time

import numpy as np

import armwise as aw
from armwise.identification import Columns, accumulate
from armwise.identification.gpu import GpuAccumulator
from armwise.motions import random_motion
from armwise.programs.cuda_device import CudaError, device
from benchmarks.coverage import driven_panda
from benchmarks.figures import Row, best
from benchmarks.identify import recorded
from studies.coverage import gpu_coverage_study

SAMPLES = 4_000_000
CHECKED = 100_000
EXPERIMENTS = 100_000
FEW = 50
MOTIONS = 1000
PEAK_FLOPS = 34e12
"""Double-precision peak of an H200 without matrix units, by its data sheet."""


def run() -> list[Row]:
    arm = aw.load_arm("panda")
    columns = Columns(arm)
    try:
        gpu = GpuAccumulator(columns)
    except CudaError as missing:
        print(f"skipped: {missing}")
        return []
    data = recorded(arm, CHECKED)
    gpu.add(data)
    ours, theirs = gpu.information(), accumulate(columns, data)
    worst = max(
        np.abs(a - b.T @ b).max() / np.abs(a).max()
        for a, b in zip(ours, theirs.factors, strict=True)
    )
    rate = _fused(columns)
    core = CHECKED / best(lambda: accumulate(columns, data), 3)
    jax = _jax(columns, data)
    widths = [s.size + 1 for s in columns.support]
    work = sum(w * (w + 1) for w in widths) + 1500
    nothing = float("nan")
    return [
        Row("difference from the CPU", worst, nothing, nothing, "< 1e-9"),
        Row("fused, samples/s, vs JAX", rate, jax, rate / jax, "≥ 4e8, ≥ 5"),
        Row("fused, samples/s, vs one CPU core", rate, core, rate / core, ""),
        Row(
            "fraction of double-precision peak",
            rate * work / PEAK_FLOPS,
            nothing,
            nothing,
            "",
        ),
        _scoring(arm),
        *_coverage(),
    ]


def _scoring(arm: aw.Arm) -> Row:
    """Candidate excitations a second, from samples to information."""
    motions = [random_motion(arm, seed) for seed in range(MOTIONS)]
    ours = MOTIONS / best(
        lambda: aw.excitation.score_motions(arm, motions, backend="cuda"), 2
    )
    core = MOTIONS / best(lambda: aw.excitation.score_motions(arm, motions), 1)
    return Row("motions scored a second, vs one CPU core", ours, core, ours / core, "")


def _coverage() -> list[Row]:
    arm = driven_panda()
    gpu_coverage_study(arm, experiments=64)
    start = time.perf_counter()
    study = gpu_coverage_study(arm, experiments=EXPERIMENTS)
    seconds = time.perf_counter() - start
    start = time.perf_counter()
    few = aw.identification.coverage_study(arm, experiments=FEW)
    core = (time.perf_counter() - start) / FEW * EXPERIMENTS
    return [
        Row(
            f"{EXPERIMENTS:,} coverage experiments in s, vs one CPU process",
            seconds,
            core,
            core / seconds,
            "< 60",
        ),
        Row(
            f"coverage of 95 % intervals, vs {FEW} on the CPU",
            study.total,
            few.total,
            study.total / few.total,
            "0.90–0.99",
        ),
        Row(
            "least and largest of a parameter",
            float(study.coverage.min()),
            float(study.coverage.max()),
            float("nan"),
            "",
        ),
    ]


def _fused(columns: Columns) -> float:
    gpu = GpuAccumulator(columns)
    dof = columns.arm.dof
    rows = np.random.default_rng(0).uniform(-1, 1, (4 * dof, SAMPLES))
    memory = device().upload(rows)

    def once() -> None:
        for _ in range(10):
            gpu.add_resident(memory, SAMPLES)
        device().wait()

    once()
    return 10 * SAMPLES / best(once, 5)


def _jax(columns: Columns, data: aw.Samples) -> float:
    """The same sums written in JAX, compiled, on the same device."""
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return float("nan")
    jax.config.update("jax_enable_x64", True)
    program = columns.dynamics.program("grouped_rows")
    rows = program.to_jax()
    places = [np.append(s, columns.count) for s in columns.support]

    @jax.jit
    def gram(q, qd, qdd, tau):
        Y = rows(q=q, qd=qd, qdd=qdd, tau=tau)["rows"]
        return [Y[:, i, p].T @ Y[:, i, p] for i, p in enumerate(places)]

    parts = [
        jnp.asarray(np.tile(x, (4, 1))) for x in (data.q, data.qd, data.qdd, data.tau)
    ]
    jax.block_until_ready(gram(*parts))
    start = time.perf_counter()
    for _ in range(5):
        jax.block_until_ready(gram(*parts))
    return 5 * len(parts[0]) / (time.perf_counter() - start)


if __name__ == "__main__":
    for row in run():
        print(row)
