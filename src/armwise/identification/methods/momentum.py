"""Momentum balance: momentum gained over a window equals its impulse, no acceleration.

τ = d(M q̇)/dt − ∂T/∂q + g + friction, averaged over windows: no acceleration appears,
so its noise does not either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import drive_columns
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification.methods.least_squares import solve_weighted
from armwise.regression import Solution, StretchScores, triangle

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.problem import Problem
    from armwise.recordings import Samples

_WINDOWS = 512
"""Windows handled at a time: their columns stay in the cache."""


@dataclass(frozen=True)
class MomentumBalance:
    """Weighted least squares on momentum and impulse, window by window.

    Attributes:
        window: Length of a window in [s]; short against the motion, long against the
            noise. Each window begins in the middle of the one before.
    """

    # Judgement: a tenth of a period at 1 Hz, and a hundred samples at 1 kHz.
    window: float = 0.1

    def __post_init__(self) -> None:
        if not self.window > 0:
            raise ArgumentError(f"The window must be positive, not {self.window} s.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        width = problem.base.count + 1
        factors = [np.zeros((width, width)) for _ in range(problem.columns.arm.dof)]
        count = 0
        for rows in self._rows(problem):
            count += rows.shape[0]
            factors = [
                triangle(np.vstack([factor, rows[:, i]]))
                for i, factor in enumerate(factors)
            ]
        # Necessary, not sufficient: the rank shows when it is solved.
        if count < problem.base.count:
            raise NotIdentifiable(
                f"There are only {count} windows of {self.window} s for "
                f"{problem.base.count} parameters. Record longer or shorten the window."
            )
        solution = solve_weighted(factors, problem.prior_base, float(count))
        return replace(solution, scores=self._scores(problem, solution, count))

    def _scores(
        self, problem: Problem, solution: Solution, count: int
    ) -> Float[np.ndarray, "stretches base"]:
        """Gradient of the cost over stretches of windows."""
        sums = StretchScores(count, problem.base.count)
        unknowns = np.append(-solution.values, 1.0)
        for rows in self._rows(problem):
            errors = (rows @ unknowns) / solution.torque_std**2
            for row, part in sums.parts(rows.shape[0]):
                sums.values[row] += np.einsum(
                    "wib,wi->b", rows[part, :, :-1], errors[part]
                )
        return sums.values

    def _rows(
        self, problem: Problem
    ) -> Iterator[Float[np.ndarray, "windows dof base+1"]]:
        leaders = list(problem.base.indices)
        fixed = np.where(problem.is_estimated, 0.0, problem.prior)
        for samples in problem.data:
            for part in samples.segments:
                run = samples[part]
                for starts, length in self._windows(run):
                    Y = _window_columns(problem, run, starts, length)
                    torque = _means(run.tau, run.time, starts, length) - Y @ fixed
                    yield np.concatenate([Y[..., leaders], torque[..., None]], axis=-1)

    def _windows(self, run: Samples) -> Iterator[tuple[np.ndarray, int]]:
        length = max(1, round(self.window * run.rate_hz))
        # Half overlapped: every sample counts twice but those at the ends. The
        # correlation that comes of it is in the scatter of the stretches.
        starts = np.arange(0, len(run) - length, max(1, length // 2))
        for k in range(0, len(starts), _WINDOWS):
            yield starts[k : k + _WINDOWS], length


def _window_columns(
    problem: Problem, run: Samples, starts: np.ndarray, length: int
) -> Float[np.ndarray, "windows dof parameters"]:
    """Momentum gained plus mean of what needs no acceleration, per window."""
    dyn = problem.columns.dynamics
    rows = slice(int(starts[0]), int(starts[-1]) + length + 1)
    q, qd, time = run.q[rows], run.qd[rows], run.time[rows]
    local = starts - starts[0]
    momentum = dyn.momentum_regressor(q, qd)
    lasting = time[local + length] - time[local]
    gained = (momentum[local + length] - momentum[local]) / lasting[:, None, None]
    # At zero speed and acceleration only gravity is left.
    columns = dyn.regressor(q, np.zeros_like(q), np.zeros_like(q))
    columns -= dyn.kinetic_gradient_regressor(q, qd)
    # Friction is put in by itself: at rest the regressor has no viscous and Coulomb
    # part.
    columns[..., problem.columns.arm.layout.drives] = _drives(problem, run, rows)
    extra = problem.columns.friction_columns(run, rows)
    averaged = _means(np.concatenate([columns, extra], axis=-1), time, local, length)
    averaged[..., : gained.shape[-1]] += gained
    return averaged


def _drives(problem: Problem, run: Samples, rows: slice) -> np.ndarray:
    """Friction and offset; a rotor's part is momentum."""
    matrix = problem.columns.dynamics.mechanism.drive_rows
    qd = run.qd[rows]
    zero = list(np.zeros_like(qd).T)
    columns = drive_columns(matrix, zero, list(qd.T), zero)
    count = qd.shape[0]
    filled = np.array([[np.broadcast_to(x, count) for x in c] for c in columns])
    direction = run.direction(matrix)[rows]
    coulomb = problem.columns.arm.layout.drive("coulomb", start=0)
    for k, row in enumerate(matrix):
        filled[coulomb[k]] = row[:, None] * direction[:, k]
    return filled.transpose(2, 1, 0)


def _means(
    values: np.ndarray, time: np.ndarray, starts: np.ndarray, length: int
) -> np.ndarray:
    """Mean over each window by the trapezoidal rule."""
    shape = (-1, *[1] * (values.ndim - 1))
    steps = np.diff(time).reshape(shape)
    # One running integral serves all windows, which overlap by half.
    area = np.cumsum(0.5 * (values[1:] + values[:-1]) * steps, axis=0)
    area = np.concatenate([np.zeros_like(area[:1]), area])
    lasting = (time[starts + length] - time[starts]).reshape(shape)
    return (area[starts + length] - area[starts]) / lasting
