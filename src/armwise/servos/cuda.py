"""Free runs of single joints on a GPU: a thousand starts of a fit at once.

The C text of the rollouts is compiled for the GPU unchanged; a thread rolls out one
table of servos in one motion, and the sums over its errors are made there, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Mechanism
from armwise.programs import Memory, device, fill
from armwise.servos.rollout import (
    Item,
    MotionArrays,
    NormalSums,
    Result,
    Roller,
    ServoMotion,
    ServoTables,
    drive_rows,
    least_scale,
    normal_sums,
    rollout_source,
    servo_rows,
    timing_rows,
)

if TYPE_CHECKING:
    from jaxtyping import Float

_TEMPLATES = Path(__file__).parent / "templates"

# Two warps. Judgement: a rollout needs some hundred registers, and small blocks fill
# the multiprocessors evenly when a batch is small.
_THREADS = 64
"""Threads of a block."""

# Judgement: a small part of any GPU's memory, and some ten thousand tables.
_MOST_BYTES = 4e9
"""Memory for the positions of one batch."""

# Judgement: a GPU takes as long for one free run as for thousands of them, some 50 ms,
# in which two processor cores have done a few hundred.
_FEWEST = 2000
"""Free runs that are worth a batch on the GPU; fewer are rolled out in C."""

# From the largest error: 2^-50 of it is far below an encoder's step.
_HALVINGS = 50
"""Halvings of the interval that holds a median."""


def kernel_source(mechanism: Mechanism | None) -> str:
    """Return CUDA C of `free_runs`, `below`, `normal` and `cost`.

    Args:
        mechanism: Whose dynamics; None: of single joints under a load.
    """
    text = fill(_TEMPLATES / "rollout.cu.in", THREADS=_THREADS)
    return "\n".join([rollout_source(mechanism, on_gpu=True), text])


def table_columns(tables: ServoTables) -> Float[np.ndarray, "entries tables"]:
    """Return the tables' entries in the order `free_runs` reads them."""
    rows = [drive_rows(tables), servo_rows(tables), timing_rows(tables)]
    return np.ascontiguousarray(np.concatenate(rows, axis=1).T)


class CudaRoller(Roller):
    """Sums up free runs on a GPU; few of them, and single ones, are the C program's.

    Args:
        arm: Of one joint; None: single joints, each under its load over time.

    Raises:
        CudaError: If there is no GPU here.
    """

    def __init__(self, arm: Arm | None) -> None:
        super().__init__(arm)
        self._device = device()
        self._module = self._device.compile(kernel_source(self.mechanism))
        self._memory: dict[str, Memory] = {}
        self._uploaded: MotionArrays | None = None

    def each(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        report: Callable[[float], None] = lambda done: None,
    ) -> list[Result]:
        """Return the same, one after another: they share the device's memory."""
        results: list[Result] = []
        for item in items:
            report(len(results) / len(items))
            results.append(function(item))
        return results

    def normals(
        self,
        motions: Sequence[ServoMotion],
        tables: ServoTables,
        steps: Float[np.ndarray, "starts names"],
    ) -> NormalSums:
        """Return the normal equations of many starts, motions of single joints."""
        if self._are_few(motions, tables):
            return super().normals(motions, tables, steps)
        width, count = 1 + steps.shape[1], len(steps)
        most = max(1, self._most(motions) // width)
        parts = []
        for begin in range(0, count, most):
            rows = slice(begin, min(begin + most, count))
            some = {
                name: x[rows.start * width : rows.stop * width]
                for name, x in tables.items()
            }
            parts.append(self._normals(motions, some, steps[rows]))
        return NormalSums(
            np.concatenate([p.scale for p in parts]),
            np.concatenate([p.information for p in parts]),
            np.concatenate([p.scores for p in parts]),
            np.concatenate([p.cost for p in parts]),
        )

    def costs(
        self,
        motions: Sequence[ServoMotion],
        tables: ServoTables,
        scale: Float[np.ndarray, " tables"],
    ) -> Float[np.ndarray, " tables"]:
        """Return the mean robust cost of every table in [rad], of single joints."""
        if self._are_few(motions, tables):
            return super().costs(motions, tables, scale)
        most, parts = self._most(motions), []
        for begin in range(0, len(scale), most):
            rows = slice(begin, begin + most)
            some = {name: x[rows] for name, x in tables.items()}
            count, out = self._on_gpu(motions, some)
            tasks = count * len(motions)
            sums = self._device.empty(8 * tasks)
            memory = self._memory
            read = [memory["shape"], memory["used"], memory["q"]]
            scales = self._device.upload(scale[rows])
            self._launch("cost", tasks, [count, len(motions), *read, scales, out, sums])
            parts.append(self._device.download(sums, (len(motions), count)).sum(0))
        return np.concatenate(parts) / max(self.arrays_of(motions).used.sum(), 1.0)

    def _are_few(self, motions: Sequence[ServoMotion], tables: ServoTables) -> bool:
        return len(motions) * len(tables["stiffness"]) < _FEWEST

    def _most(self, motions: Sequence[ServoMotion]) -> int:
        """Return how many tables are rolled out at once."""
        samples = sum(len(m.time) for m in motions) * self.dof
        room = min(_MOST_BYTES, 0.4 * self._device.free_bytes)
        return max(1, int(room / (8 * samples)))

    def _on_gpu(
        self, motions: Sequence[ServoMotion], tables: ServoTables
    ) -> tuple[int, Memory]:
        """Roll all motions out: samples × joints × tables on the GPU."""
        arrays = self.arrays_of(motions)
        if arrays is not self._uploaded:
            self._uploaded = arrays
            self._memory = {
                name: self._device.upload(array) for name, array in vars(arrays).items()
            }
        columns = table_columns(tables)
        count, memory = columns.shape[1], self._memory
        out = self._device.empty(8 * arrays.goals.size * count)
        names = (
            "shape", "clock", "stamps", "goals", "powered", "starts", "conditions",
            "bodies",
        )  # fmt: skip
        read = [memory[name] for name in names]
        numbers = self._device.upload(columns)
        tasks = count * len(motions)
        Roller.count += tasks
        self._launch("free_runs", tasks, [count, len(motions), *read, numbers, out])
        return count, out

    def _normals(
        self, motions: Sequence[ServoMotion], tables: ServoTables, steps: np.ndarray
    ) -> NormalSums:
        count, out = self._on_gpu(motions, tables)
        (starts, names), memory = steps.shape, self._memory
        sizes = [count, starts, len(motions)]
        read = [memory["shape"], memory["used"], memory["q"]]
        scale = least_scale(
            self._medians(sizes, read, out), self.arrays_of(motions).rounding
        )
        entries = names * (names + 1) // 2 + names + 1
        tasks = entries * starts * len(motions)
        sums = self._device.empty(8 * tasks)
        more = [self._device.upload(x) for x in (steps, scale)]
        self._launch("normal", tasks, [*sizes, *read, *more, out, sums])
        flat = self._device.download(sums, (len(motions), starts, entries))
        return normal_sums(self.arrays_of(motions), scale, flat)

    def _medians(
        self, sizes: Sequence[int], read: Sequence[Memory], out: Memory
    ) -> Float[np.ndarray, " starts"]:
        """Return the median size of each start's own errors, by halving."""
        _, starts, motions = sizes
        low, high = np.zeros(starts), np.full(starts, 1e3)
        counts = self._device.empty(8 * 2 * starts * motions)
        shape = (2, motions, starts)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            bound = self._device.upload(middle)
            arguments: list[Memory | int] = [*sizes, *read, bound, out, counts]
            self._launch("below", starts * motions, arguments)
            few, every = self._device.download(counts, shape).sum(1)
            # Of two in the middle the lower, as in C.
            is_enough = few >= np.floor((every - 1.0) / 2.0) + 1.0
            high = np.where(is_enough, middle, high)
            low = np.where(is_enough, low, middle)
        return np.where(every > 0.0, high, np.nan)

    def _launch(self, name: str, tasks: int, arguments: Sequence[Memory | int]) -> None:
        self._module.launch(name, -(-tasks // _THREADS), _THREADS, arguments)
