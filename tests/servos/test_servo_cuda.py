"""The GPU's rollouts and sums are the C program's.

Without a GPU its kernels are compiled by the host's compiler, one thread after another.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

from armwise.errors import ArgumentError, ArmwiseError
from armwise.programs import Memory, compiled_library
from armwise.servos import identify_servo
from armwise.servos.cuda import CudaRoller
from armwise.servos.fit import fit_servos
from armwise.servos.model import CORE, PARAMETERS, decode, encode, stacked, tables_of
from armwise.servos.motions import joint_loads
from armwise.servos.rollout import Roller
from tests.programs.test_cuda import has_gpu, needs_gpu
from tests.servos import rig

HOST = """#define _GNU_SOURCE
#include <math.h>
#define __global__
#define __launch_bounds__(n)
#define __forceinline__ inline
static struct { long long x; } blockIdx, blockDim, threadIdx;
void take(long long block, long long width, long long thread) {
  blockIdx.x = block; blockDim.x = width; threadIdx.x = thread;
}
"""


class HostDevice:
    """Stands for a GPU: memory is NumPy's, kernels are C."""

    free_bytes = 10**9

    def __init__(self) -> None:
        self.library: ctypes.CDLL | None = None

    def compile(self, source: str) -> HostDevice:
        self.library = compiled_library(HOST + source.replace('extern "C" ', ""))
        return self

    def empty(self, size: int) -> Memory:
        return Memory(np.full(max(1, size // 8), np.nan), size)

    def upload(self, array: np.ndarray) -> Memory:
        kind = np.int32 if np.issubdtype(array.dtype, np.integer) else np.float64
        data = np.array(array, dtype=kind).ravel()
        return Memory(data, data.nbytes)

    def download(self, memory: Memory, shape: tuple[int, ...]) -> np.ndarray:
        return memory.buffer[: int(np.prod(shape))].reshape(shape).copy()

    def launch(self, name: str, blocks: int, threads: int, arguments: list) -> None:
        assert self.library is not None
        kernel, take = self.library[name], self.library["take"]
        kernel.restype = take.restype = None
        values = [
            ctypes.c_void_p(x.buffer.ctypes.data)
            if isinstance(x, Memory)
            else ctypes.c_longlong(x)
            for x in arguments
        ]
        width = ctypes.c_longlong(threads)
        for block in range(blocks):
            for thread in range(threads):
                take(ctypes.c_longlong(block), width, ctypes.c_longlong(thread))
                kernel(*values)


@pytest.fixture
def on_host(monkeypatch):
    """Have the kernels run here."""
    monkeypatch.setattr("armwise.servos.cuda.device", HostDevice)


def problem(folder, joints):
    """Return motions of one joint, some of them with the motor off, and two starts."""
    robot = rig.arm(folder, joints)
    servo = rig.truth(robot, derivative=0.02, static=0.02, driving=0.1, slew=2.0,
                      start_up=0.01, heating=0.004, braking_speed=0.5,
                      coasting_static=0.5, feedback_delay=2e-3)  # fmt: skip
    motions = []
    for seed in (1, 2, 3):
        motion = servo.motion(rig.recording(servo, seed))
        motion.mask[40:60] = False
        motion.powered[300 : 300 + 40 * seed] = 0.0
        motion.warmth[:] = 5.0 * seed
        motions.append(joint_loads(motion, robot)[0])
    values = {name: float(x[0]) for name, x in servo.values.items()}
    other = values | {"stiffness": 5.0, "delay": 0.02, "release": 0.01, "zero": 0.05}
    return robot, motions, [values, other]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.fixture
def always(monkeypatch):
    """Roll few runs out on the GPU, too."""
    monkeypatch.setattr("armwise.servos.cuda._FEWEST", 0)


def same_sums(folder, joints):
    robot, motions, starts = problem(folder, joints)
    arm = robot if joints == 1 else None
    values = stacked(starts)
    names = (*CORE, "acceleration", "zero")
    steps = np.tile([PARAMETERS[name].step for name in names], (2, 1))
    around = np.concatenate([np.zeros((1, len(names))), np.eye(len(names))])
    x = encode(values, names)[:, None] + around * steps[:, None]
    owners = np.repeat([0, 1], len(around))
    repeated = {name: v[owners] for name, v in values.items()}
    tables = tables_of(decode(repeated, names, x.reshape(len(owners), -1)))
    gpu, c = CudaRoller(arm), Roller(arm)
    ours, theirs = (r.normals(motions, tables, steps) for r in (gpu, c))
    close(ours.scale, theirs.scale)
    close(ours.cost, theirs.cost)
    close(ours.scores, theirs.scores)
    close(ours.information, theirs.information)
    scale = np.linspace(1e-3, 3e-3, len(owners))
    close(gpu.costs(motions, tables, scale), c.costs(motions, tables, scale))


@pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
@pytest.mark.parametrize("joints", [1, 2])
def test_kernels_are_c_plus_plus_as_gpus_compile_it(
    always, tmp_path, monkeypatch, joints
):
    """C's own initialisers and the like pass here, and on no GPU."""

    class Strict(HostDevice):
        def compile(self, source):
            command = ["g++", "-std=c++17", "-pedantic-errors", "-fsyntax-only"]
            text = HOST.split("\n", 1)[1] + source
            done = subprocess.run(
                [*command, "-x", "c++", "-"], input=text, text=True, capture_output=True
            )
            assert done.returncode == 0, done.stderr
            raise InterruptedError

    monkeypatch.setattr("armwise.servos.cuda.device", Strict)
    with pytest.raises(InterruptedError):
        same_sums(tmp_path, joints)


@pytest.mark.parametrize("joints", [1, 2])
def test_sums_are_the_c_programs(on_host, always, tmp_path, joints):
    same_sums(tmp_path, joints)


def test_batches_that_do_not_fit_are_parted(on_host, always, tmp_path, monkeypatch):
    monkeypatch.setattr("armwise.servos.cuda._MOST_BYTES", 8 * 2400 * 9)
    same_sums(tmp_path, 2)


def test_few_runs_stay_with_the_c_program(on_host, tmp_path, monkeypatch):
    monkeypatch.setattr(CudaRoller, "_launch", None)
    same_sums(tmp_path, 2)


@needs_gpu
@pytest.mark.parametrize("joints", [1, 2])
def test_sums_on_a_gpu_are_the_c_programs(always, tmp_path, joints):
    same_sums(tmp_path, joints)


def test_starts_fitted_together_are_those_fitted_alone(tmp_path):
    _, motions, starts = problem(tmp_path, 2)
    roller, names = Roller(None), (*CORE, "acceleration")
    together = fit_servos(roller, motions, starts, names, iterations=3)
    for start, fit in zip(starts, together, strict=True):
        (alone,) = fit_servos(roller, motions, [start], names, iterations=3)
        assert fit.cost == pytest.approx(alone.cost, rel=1e-9)
        assert fit.values == pytest.approx(alone.values, rel=1e-9)


def test_random_starts_end_in_one_valley(tmp_path):
    """A quarter off in every parameter, delay and acceleration included."""
    robot = rig.arm(tmp_path, 2)
    servo = rig.truth(robot)
    logs = [servo.motion(rig.recording(servo, seed)) for seed in (1, 2, 3)]
    motions = [joint_loads(motion, robot)[1] for motion in logs]
    values = {name: float(x[1]) for name, x in servo.values.items()}
    names, random = (*CORE, "acceleration"), np.random.default_rng(3)
    starts = [
        values | {n: values[n] * float(np.exp(0.25 * random.normal())) for n in names}
        for _ in range(6)
    ]
    fits = fit_servos(Roller(None), motions, starts, names, iterations=12)
    costs = np.array([fit.cost for fit in fits])
    assert costs.max() < 1.05 * costs.min()


@pytest.mark.parametrize("joints", [1, 2])
def test_what_follows_the_starts_is_cs(on_host, always, tmp_path, monkeypatch, joints):
    """Every start is fitted on the GPU, and said how many led to the best; no more."""
    robot = rig.arm(tmp_path, joints)
    true = rig.truth(robot, stiffness=2.0)
    logs = [rig.recording(true, seed) for seed in range(3)]
    asked = []
    each = CudaRoller.normals

    def normals(self, motions, tables, steps):
        asked.append(len(steps))
        return each(self, motions, tables, steps)

    monkeypatch.setattr(CudaRoller, "normals", normals)
    servo = identify_servo(robot, logs, starts=12, backend="cuda")
    assert servo.values["stiffness"] == pytest.approx(true.values["stiffness"], rel=0.1)
    # Starts are fitted together, of which some have a limit.
    assert 0 < len(asked) <= 10 * 2 * joints * 2
    assert any("Of 12 random starts of each joint" in note for note in servo.notes)


@pytest.mark.skipif(has_gpu(), reason="this machine has a GPU")
def test_without_a_gpu_one_sentence_says_what_to_do(tmp_path):
    robot = rig.arm(tmp_path, 1)
    logs = [rig.recording(rig.truth(robot), seed) for seed in (1, 2)]
    with pytest.raises(ArmwiseError, match='backend="c"'):
        identify_servo(robot, logs, backend="cuda")


def test_a_backend_or_starts_that_cannot_be(tmp_path):
    robot = rig.arm(tmp_path, 1)
    log = rig.recording(rig.truth(robot), 1)
    with pytest.raises(ArgumentError, match='"c" or "cuda"'):
        identify_servo(robot, log, backend="numpy")
    with pytest.raises(ArgumentError, match="at least one start"):
        identify_servo(robot, log, starts=0)
