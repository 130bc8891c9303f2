"""Coverage experiments by the hundred thousand: simulated, prepared, fitted on a GPU.

Nothing leaves the GPU but four numbers per parameter and experiment. The equations are
the traced ones, the filters are matrices read off the CPU's own (recordings.operators).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import BaseParameters, equations, mul, total
from armwise.errors import ArgumentError
from armwise.identification.coverage_source import (
    DIRECTION,
    THREADS,
    fit_shared_bytes,
    fit_source,
)
from armwise.plants import GpuLoop, LoopSetting
from armwise.programs import (
    BandProduct,
    CudaError,
    GramSums,
    Memory,
    Program,
    device,
    trace,
)
from armwise.recordings import Band, PreparationBands, Samples, preparation_bands
from armwise.regression import STRETCHES, Columns

if TYPE_CHECKING:
    from jaxtyping import Float

_MEMORY_SHARE = 0.9
"""Share of the GPU's free memory that is used."""

_LARGEST_CHUNK = 32 * 1024
"""Experiments at a time: enough to fill any GPU."""


@dataclass(frozen=True, eq=False)
class Fits:
    """What a chunk of experiments found; not a number where nothing can be found.

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
        self._prepare = _Treatments(bands, size, columns, like)
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
        self._place = self._device.upload(_places(self._gram, supports, base.count))

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
            THREADS,
            [runs, self._groups, self._length, sums, scratch, self._place, out],
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
        fitting = int(_MEMORY_SHARE * self._device.free_bytes) // each
        if fitting < 1:
            raise CudaError(
                f"One experiment needs {each / 1e6:.0f} MB, and the GPU has less left. "
                'Use a shorter motion, or backend="c", which needs no GPU.'
            )
        return fitting


class _Treatments:
    """From measured positions and torques to what the traced rows take."""

    def __init__(
        self, bands: PreparationBands, size: int, columns: Columns, like: Samples
    ) -> None:
        self._device = device()
        rows = columns.dynamics.mechanism.drive_rows
        sure = columns.certainty(like, like.direction(rows))
        given = (rows, columns.dead_band(like), sure)
        self._weights, self._dead, self._sure = map(self._device.upload, given)
        self._dof, self._drives = columns.arm.dof, len(rows)
        self._module = self._device.compile(DIRECTION)
        self._thin = _product(bands.thin, size)
        slow, length = len(bands.thin.first), len(bands.q.first)
        chosen = (bands.q, bands.qd, bands.qdd, bands.tau)
        self._motion = [_product(band, slow) for band in chosen]
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
        made = self._device.empty(one * (5 * n + self._drives))
        self._thin(measured, 2 * n, runs, slow)
        torque = slow.part(8 * n * self._slow * runs, 8 * n * self._slow * runs)
        for k, treat in enumerate(self._motion):
            source = torque if k == 3 else slow
            treat(source, n, runs, made.part(k * n * one, n * one))
        speeds = made.part(n * one, n * one)
        direction = made.part(4 * n * one, self._drives * one)
        self._see_direction(speeds, runs, direction)
        trust = made.part((4 * n + self._drives) * one, n * one)
        sizes = [runs, self._length, n, self._drives]
        given = [self._weights, self._dead, self._sure]
        self._launch("trust", 1, runs, [*sizes, *given, speeds, direction, trust])
        self._device.wait()
        return made

    def _see_direction(self, speeds: Memory, runs: int, out: Memory) -> None:
        """Show the drives' directions as the torque's low-pass does."""
        signs = self._device.empty(out.bytes)
        given: list[Memory | int] = [runs, self._length, self._dof]
        given += [self._weights, self._dead]
        self._launch("direction", self._drives, runs, [*given, speeds, signs])
        self._direction(signs, self._drives, runs, out)
        self._device.wait()

    def _launch(
        self, name: str, rows: int, runs: int, given: list[Memory | int]
    ) -> None:
        blocks = -(-runs // THREADS) * self._length * rows
        self._module.launch(name, blocks, THREADS, given)


def base_rows(columns: Columns, base: BaseParameters) -> Program:
    """Trace rows [Y of the base parameters, τ], friction's direction given."""
    mechanism = columns.dynamics.mechanism
    wanted = columns.user[:, list(base.indices)]
    directed = equations(mechanism)["directed_rows"]

    def function(**signals: object) -> dict[str, object]:
        rows = directed.function(**signals)["rows"]
        return {"rows": [[*_combined(row, wanted), row[-1]] for row in rows]}  # type: ignore[attr-defined]

    sizes = dict.fromkeys(directed.inputs, mechanism.dof)
    sizes["direction"] = len(mechanism.drive_rows)
    return trace("base_rows", function, sizes)


def _combined(row: list, wanted: np.ndarray) -> list:
    return [
        total(*[mul(float(w), y) for w, y in zip(column, row[:-1], strict=True) if w])
        for column in wanted.T
    ]


def _supports(program: Program) -> list[list[int]]:
    """For each joint, which base parameters move its torque; the torque is last."""
    output = program.output("rows")
    joints, width = output.shape
    places = [divmod(place, width) for place in output.nonzero]
    return [[c for i, c in places if i == joint] for joint in range(joints)]


def _places(gram: GramSums, supports: list[list[int]], base: int) -> np.ndarray:
    """Where each joint's entries of the packed lower triangle are; −1: nowhere."""
    rows, columns = np.tril_indices(base + 1)
    found = np.full((len(supports), rows.size), -1)
    for joint, support in enumerate(supports):
        full = np.full((base + 1, base + 1), -1)
        full[np.ix_(support, support)] = gram.patches.entry_places(joint)
        found[joint] = full[rows, columns]
    return found


def _product(band: Band, size: int) -> BandProduct:
    return BandProduct(band.first, band.weights, size)


def _check_whole(like: Samples, length: int) -> None:
    if len(like) != length or like.starts != (0,):
        raise ArgumentError(
            "This motion rests on its way, and what is left out at rest differs from "
            'experiment to experiment. Choose a motion that does not, or backend="c".'
        )
