"""Coverage study of a hundred thousand closed-loop identifications on a GPU.

Experiments are simulated, prepared and fitted on the GPU; only four numbers per
parameter and experiment leave it. The equations are the traced ones, and the filters
are matrices measured on the CPU's own (studies.filter_matrices).

    python -m studies.coverage ddarm --experiments 100000
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import BaseParameters, equations, mul, total
from armwise.errors import ArgumentError
from armwise.identification import Method, WeightedLeastSquares, pose_problem
from armwise.identification.coverage import (
    NORMAL_FACTOR,
    TORQUE_LAG,
    CoverageStudy,
    LoopSetting,
    base_names,
    loop_recordings,
    loop_setting,
)
from armwise.motions import Motion
from armwise.programs import (
    BandProduct,
    CudaError,
    GramSums,
    Memory,
    Program,
    device,
    fill,
    trace,
)
from armwise.progress import Progress
from armwise.recordings import Samples, prepare
from armwise.regression import STRETCHES, Columns, interval_factor
from studies.closed_loop import TEMPLATES, GpuLoop
from studies.filter_matrices import BandedMatrix, PreparationBands, preparation_bands

if TYPE_CHECKING:
    from jaxtyping import Float

_MEMORY_FRACTION = 0.9
"""Fraction of the GPU's free memory that is used; the compiler's modules need some."""

_LARGEST_CHUNK = 32 * 1024
"""Experiments at a time: enough to fill any GPU."""

_THREADS = 128
"""Threads that work on one experiment."""


def gpu_coverage_study(
    arm: Arm,
    motion: Motion | None = None,
    experiments: int = 100_000,
    *,
    seed: int = 0,
    method: Method | None = None,
    encoder_counts: int = 2**17,
    torque_noise: float = 0.01,
    cutoff_hz: float = 10.0,
    progress: Progress | None = None,
) -> CoverageStudy:
    """Repeat a closed-loop identification with fresh noise on a GPU, and count.

    The GPU version of `armwise.identification.coverage_study`: tens of thousands of
    experiments a second.

    Args:
        arm, motion, experiments, seed: As there.
        encoder_counts, torque_noise, cutoff_hz, progress: As there.
        method: Weighted least squares, its noise unknown, is the only one.

    Raises:
        CudaError: If there is no GPU, or it is too small.
    """
    fit = method or WeightedLeastSquares()
    if not isinstance(fit, WeightedLeastSquares) or fit.torque_std is not None:
        raise ArgumentError(
            "On a GPU a study knows WeightedLeastSquares() only, its noise unknown. "
            "Use armwise.identification.coverage_study for other methods."
        )
    setting = loop_setting(arm, motion, seed, encoder_counts, torque_noise)
    recording = next(loop_recordings(setting, 1, seed))
    like = prepare(recording, cutoff_hz, arm=arm, lag=TORQUE_LAG)
    problem = pose_problem(Columns(arm), [like])
    runs = GpuExperiments(
        setting, like, problem.columns, problem.base, fit.iterations + 1
    )
    truth, counts = problem.prior_base[:, None], np.zeros((2, problem.base.count))
    report = progress or (lambda what, fraction: None)
    for fits in runs.run(experiments, seed, lambda f: report("experiments", f)):
        if not np.isfinite(fits.values).all():
            raise ArgumentError("This motion does not determine all base parameters.")
        inside = np.abs(fits.values - truth) <= interval_factor() * fits.std
        textbook = np.abs(fits.plain_values - truth) <= NORMAL_FACTOR * fits.plain_std
        counts += inside.sum(axis=1), textbook.sum(axis=1)
    jackknife, plain = counts / experiments
    return CoverageStudy(base_names(problem), jackknife, plain, experiments)


@dataclass(frozen=True, eq=False)
class Fits:
    """Estimates of a chunk of experiments; not a number where they are undetermined.

    Attributes:
        values, std: Base parameters by weighted least squares, and the jackknife's
            standard deviations.
        plain_values, plain_std: By ordinary least squares, with the textbook's.
    """

    values: Float[np.ndarray, "base runs"]
    std: Float[np.ndarray, "base runs"]
    plain_values: Float[np.ndarray, "base runs"]
    plain_std: Float[np.ndarray, "base runs"]


class GpuExperiments:
    """Runs copies of one experiment on the GPU.

    Args:
        setting: The closed loop.
        like: Samples of one such experiment; its preparation is repeated.
        columns: What explains the torque.
        base: The base parameters to find.
        rounds: How often weighted least squares renews its weights.
    """

    def __init__(
        self,
        setting: LoopSetting,
        like: Samples,
        columns: Columns,
        base: BaseParameters,
        rounds: int,
    ) -> None:
        self._device = device()
        self._loop = GpuLoop(setting)
        size = self._loop.steps + 1
        bands = preparation_bands(like.preparation, size)
        self._length = len(bands.q.first)
        _check_whole(like, self._length)
        self._prepare = _GpuPreparation(bands, size, columns, like)
        program = base_rows(columns, base)
        supports = _supports(program)
        widths = [len(support) for support in supports]
        self._gram = GramSums(program, widths, weighted=True)
        self._stretch = max(1, -(-self._length // STRETCHES))
        self._base, self._joints = base.count, columns.arm.dof
        entries = 16 * self._gram.patches.threads
        self._module = self._device.compile(
            fit_source(base.count, self._joints, entries, rounds)
        )
        self._indices = self._device.upload(
            _packed_indices(self._gram, supports, base.count)
        )

    def run(
        self, experiments: int, seed: int, progress: Callable[[float], None]
    ) -> Iterator[Fits]:
        """Run experiments, as many at a time as the GPU has memory for."""
        chunk = min(experiments, self._chunk(), _LARGEST_CHUNK)
        measured = self._device.empty(self._loop.bytes_per_run * chunk)
        for first in range(0, experiments, chunk):
            runs = min(chunk, experiments - first)
            self._loop.run(runs, seed, first, measured)
            yield self.fit(measured, runs)
            progress((first + runs) / experiments)

    def fit(self, measured: Memory, runs: int) -> Fits:
        """Fit what some runs measured: (q, τ) × samples × runs."""
        groups = self._groups * runs
        sums = self._device.empty(self._gram.group_bytes * groups)
        prepared = self._prepare(measured, runs)
        self._gram.add_runs(sums, prepared, runs, self._length, self._stretch)
        self._device.wait()
        scratch = self._device.empty(self._gram.group_bytes * runs)
        out = self._device.empty(8 * 4 * self._base * runs)
        self._module.launch(
            "fit",
            runs,
            _THREADS,
            [runs, self._groups, self._length, sums, scratch, self._indices, out],
            fit_shared_bytes(self._base, self._joints),
        )
        self._device.wait()
        return Fits(*self._device.download(out, (4, self._base, runs)))

    @property
    def _groups(self) -> int:
        return -(-self._length // self._stretch)

    def _chunk(self) -> int:
        """Experiments that fit into the GPU's memory."""
        each = self._loop.bytes_per_run + self._prepare.bytes_per_run
        each += self._gram.group_bytes * (self._groups + 1) + 8 * 4 * self._base
        fitting = int(_MEMORY_FRACTION * self._device.free_bytes) // each
        if fitting < 1:
            raise CudaError(
                f"One experiment needs {each / 1e6:.0f} MB, and the GPU has less left. "
                "Use a shorter motion, or identification.coverage_study on the CPU."
            )
        return fitting


class _GpuPreparation:
    """From measured positions and torques to what the traced rows take."""

    def __init__(
        self, bands: PreparationBands, size: int, columns: Columns, like: Samples
    ) -> None:
        self._device = device()
        rows = columns.dynamics.mechanism.drive_rows
        sure = columns.certainty(columns.moves(like), like.direction(rows))
        inputs = (rows, columns.dead_band(like), sure)
        self._weights, self._dead, self._sure = map(self._device.upload, inputs)
        self._dof, self._drives = columns.arm.dof, len(rows)
        self._module = self._device.compile(direction_source())
        self._thin = _product(bands.thin, size)
        slow, length = len(bands.thin.first), len(bands.q.first)
        motion = (bands.q, bands.qd, bands.qdd, bands.tau)
        self._motion = [_product(band, slow) for band in motion]
        self._direction = _product(bands.direction, length)
        self._slow, self._length = slow, length

    @property
    def bytes_per_run(self) -> int:
        """Memory a run needs on the way, in bytes."""
        signals = (5 * self._dof + 2 * self._drives) * self._length
        return 8 * (2 * self._dof * self._slow + signals)

    def __call__(self, measured: Memory, runs: int) -> Memory:
        """Return (q, q̇, q̈, τ, direction, trust) × samples × runs."""
        n, one = self._dof, 8 * self._length * runs
        slow = self._device.empty(8 * 2 * n * self._slow * runs)
        signals = self._device.empty(one * (5 * n + self._drives))
        self._thin(measured, 2 * n, runs, slow)
        torque = slow.part(8 * n * self._slow * runs, 8 * n * self._slow * runs)
        for k, product in enumerate(self._motion):
            source = torque if k == 3 else slow
            product(source, n, runs, signals.part(k * n * one, n * one))
        speeds = signals.part(n * one, n * one)
        direction = signals.part(4 * n * one, self._drives * one)
        self._low_passed_direction(speeds, runs, direction)
        trust = signals.part((4 * n + self._drives) * one, n * one)
        sizes = [runs, self._length, n, self._drives]
        drives = [self._weights, self._dead, self._sure]
        self._launch("trust", 1, runs, [*sizes, *drives, speeds, direction, trust])
        self._device.wait()
        return signals

    def _low_passed_direction(self, speeds: Memory, runs: int, out: Memory) -> None:
        """Low-pass the drives' directions as the torque is."""
        signs = self._device.empty(out.bytes)
        inputs: list[Memory | int] = [runs, self._length, self._dof]
        inputs += [self._weights, self._dead]
        self._launch("direction", self._drives, runs, [*inputs, speeds, signs])
        self._direction(signs, self._drives, runs, out)
        self._device.wait()

    def _launch(
        self, name: str, rows: int, runs: int, inputs: list[Memory | int]
    ) -> None:
        blocks = -(-runs // _THREADS) * self._length * rows
        self._module.launch(name, blocks, _THREADS, inputs)


def base_rows(columns: Columns, base: BaseParameters) -> Program:
    """Trace rows [Y of the base parameters, τ], friction's direction given."""
    mechanism = columns.dynamics.mechanism
    combination = columns.user[:, list(base.indices)]
    directed = equations(mechanism)["directed_rows"]

    def function(**signals: object) -> dict[str, object]:
        rows = directed.function(**signals)["rows"]
        return {"rows": [[*_combined(row, combination), row[-1]] for row in rows]}  # type: ignore[attr-defined]

    sizes = dict.fromkeys(directed.inputs, mechanism.dof)
    sizes["direction"] = len(mechanism.drive_rows)
    return trace("base_rows", function, sizes)


def _combined(row: list, combination: np.ndarray) -> list:
    return [
        total(*[mul(float(w), y) for w, y in zip(column, row[:-1], strict=True) if w])
        for column in combination.T
    ]


def _supports(program: Program) -> list[list[int]]:
    """For each joint, which base parameters move its torque; the torque is last."""
    output = program.output("rows")
    joints, width = output.shape
    entries = [divmod(index, width) for index in output.nonzero]
    return [[c for i, c in entries if i == joint] for joint in range(joints)]


def _packed_indices(gram: GramSums, supports: list[list[int]], base: int) -> np.ndarray:
    """Where each joint's entries of the packed lower triangle are; −1: nowhere."""
    rows, columns = np.tril_indices(base + 1)
    indices = np.full((len(supports), rows.size), -1)
    for joint, support in enumerate(supports):
        full = np.full((base + 1, base + 1), -1)
        full[np.ix_(support, support)] = gram.patches.entry_indices(joint)
        indices[joint] = full[rows, columns]
    return indices


def _product(band: BandedMatrix, size: int) -> BandProduct:
    return BandProduct(band.first, band.weights, size)


def _check_whole(like: Samples, length: int) -> None:
    if len(like) != length or like.starts != (0,):
        raise ArgumentError(
            "This motion rests on its way, and what is left out at rest differs from "
            "experiment to experiment. Choose a motion that does not, or "
            "armwise.identification.coverage_study."
        )


def direction_source() -> str:
    """Return CUDA C of `direction` and `trust`: friction's direction of each drive."""
    return fill(TEMPLATES / "friction_direction.cu.in")


def fit_source(base: int, joints: int, entries: int, rounds: int) -> str:
    """Return CUDA C of `fit`, which fits experiments from their Gram matrices.

    All is done on [Y, τ]ᵀ[Y, τ] of every joint and stretch: weighted least squares, its
    delete-a-stretch jackknife, and ordinary least squares with the textbook covariance.
    Matrices are packed lower triangles over (base parameters, torque).

    Args:
        base: Base parameters.
        joints: Joints.
        entries: Numbers that hold the Gram matrices of a stretch.
        rounds: How often the weights are renewed.
    """
    numbers = {
        "B": base,
        "J": joints,
        "ENTRIES": entries,
        "ROUNDS": rounds,
        "THREADS": _THREADS,
    }
    defines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join([*defines, fill(TEMPLATES / "fit.cu.in")])


def fit_shared_bytes(base: int, joints: int) -> int:
    """Shared memory of an experiment in bytes: the size of `Fit` in fit.cu.in."""
    packed = (base + 1) * (base + 2) // 2
    doubles = 2 * packed + 3 * (base + 1) + 2 * base + 2 * joints
    return 8 * doubles + 2 * 2 * packed + 16


def main() -> None:
    """Run a study from the command line."""
    from argparse import ArgumentParser

    from armwise.arms import load_arm

    parser = ArgumentParser(description="Coverage of 95 % intervals, on a GPU.")
    parser.add_argument("arm", help="Path or bundled name.")
    parser.add_argument("--experiments", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    arm = load_arm(options.arm)
    study = gpu_coverage_study(arm, None, options.experiments, seed=options.seed)
    print(f"jackknife {study.total:.4f}, textbook {study.plain_total:.4f}")


if __name__ == "__main__":
    main()
