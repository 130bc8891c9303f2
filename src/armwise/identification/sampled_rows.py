"""Rows sampled from the whole log, plain and whitened, for the tests of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.identification.validation import predicted_block
from armwise.recordings import Samples
from armwise.regression import STRETCHES

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.estimate import Estimate
    from armwise.identification.problem import Problem

# Judgement: twenty rows a column for sixty columns and seven joints; more tell no more,
# as filtered rows repeat themselves.
ROWS = 1500
"""Samples that are looked at, from all over the log."""

FEWEST = 200
"""Samples below which nothing is tested: forty stretches of five."""


def orthonormal(
    matrix: Float[np.ndarray, "rows columns"],
) -> Float[np.ndarray, "rows rank"]:
    """Orthonormal columns that span those of a matrix."""
    size = np.linalg.norm(matrix, axis=0)
    scaled = matrix / np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    # Half the digits are lost in the products: below that a direction is rounding.
    is_there = values > 1e-10 * max(values[-1], 1e-300)
    return np.asarray(scaled @ (vectors[:, is_there] / np.sqrt(values[is_there])))


@dataclass(frozen=True, eq=False)
class SampledSystem:
    """Columns of the base parameters for some rows of the data.

    Attributes:
        rows: Which rows of every run.
        trust: 1, or 0 where a joint's friction reverses, per sample and joint.
        regressor: Columns of the base parameters in [N m], joint by joint.
        torque: What they are to explain in [N m].
        link_torque: What an estimate's links take, without drives, in [N m], and its
            first and second derivative; zeros without an estimate.
    """

    rows: tuple[np.ndarray, ...]
    trust: Float[np.ndarray, "samples dof"]
    regressor: Float[np.ndarray, "dof samples base"]
    torque: Float[np.ndarray, "dof samples"]
    link_torque: Float[np.ndarray, "3 samples dof"]

    @classmethod
    def of(
        cls,
        problem: Problem,
        data: Sequence[Samples],
        thin: int = 1,
        estimate: Estimate | None = None,
    ) -> SampledSystem:
        """Evaluate some rows of data, which may differ from the problem's own."""
        columns = problem.columns
        total = sum(len(run) for run in data)
        # Every sample has a row per joint: beyond eight, fewer samples will do.
        stride = thin * max(1, min(total, 4 * ROWS) // ROWS) * -(-columns.arm.dof // 8)
        leaders = columns.user[:, list(problem.base.indices)]
        fixed = columns.user @ np.where(problem.is_estimated, 0.0, problem.prior)
        links = np.zeros(len(columns.names))
        if estimate is not None:
            own = columns.arm.layout.links
            links[own] = estimate.all_parameters[own]
        weights = columns.user @ links
        rows, trust, torques = [], [], []
        parts: list[list[np.ndarray]] = [[] for _ in columns.support]
        sides: list[list[np.ndarray]] = [[] for _ in columns.support]
        for run in data:
            taken = []
            slices = sampled_slices(len(run), total)
            torque = np.zeros((sum(s.stop - s.start for s in slices), run.dof))
            done = 0
            for block in columns.blocks([run], slices):
                if estimate is not None:
                    part = slice(done, done + block.count)
                    torque[part] = predicted_block(columns, block, weights)
                    done += block.count
                index = np.arange(block.rows.start, block.rows.stop)[::stride]
                some = index - block.rows.start
                taken.append(index)
                everything = np.ones((block.rows.stop - block.rows.start, run.dof))
                mask = everything if block.trust is None else block.trust
                trust.append(mask[some])
                for i, support in enumerate(columns.support):
                    matrix = block.joints[i][:, some]
                    parts[i].append(matrix[:-1].T @ leaders[support])
                    sides[i].append(matrix[-1] - fixed[support] @ matrix[:-1])
            rows.append(np.concatenate(taken))
            torques.append(_differentiated(run, rows[-1], slices, torque))
        return cls(
            tuple(rows),
            np.vstack(trust),
            np.stack([np.vstack(part) for part in parts]),
            np.stack([np.concatenate(side) for side in sides]),
            np.concatenate(torques, axis=1),
        )

    def thinned(self, stride: int) -> SampledSystem:
        """Every so-many-th of the rows."""
        counts = np.cumsum([0, *(rows.size for rows in self.rows)])
        index = np.arange(counts[-1])[::stride]
        pairs = zip(self.rows, pairwise(counts), strict=True)
        return SampledSystem(
            tuple(
                rows[index[(index >= a) & (index < b)] - a] for rows, (a, b) in pairs
            ),
            self.trust[::stride],
            self.regressor[:, ::stride],
            self.torque[:, ::stride],
            self.link_torque[:, ::stride],
        )

    def errors(
        self, torque: Float[np.ndarray, "dof samples"], extra: np.ndarray | None = None
    ) -> Float[np.ndarray, " dof"]:
        """Relative error of each joint, joints of all sizes weighed alike.

        Args:
            torque: The torques to explain.
            extra: Further columns, joint by joint.
        """
        columns = self.regressor
        if extra is not None:
            columns = np.concatenate([columns, extra], axis=2)
        weight = self._weight(torque)
        unexplained = _unexplained(columns, weight, torque[:, :, None])
        return np.asarray(np.linalg.norm(unexplained.reshape(torque.shape), axis=1))

    def coefficient(
        self,
        torque: Float[np.ndarray, "dof samples"],
        column: Float[np.ndarray, "dof samples 1"],
    ) -> float:
        """Coefficient of a further column in the fit of a torque; 0 where none shows.

        Its joints weigh as the column and the torque together do.
        """
        weight = self._weight(torque - column[:, :, 0])
        both = np.concatenate([torque[:, :, None], column], axis=2)
        explained, own = _unexplained(self.regressor, weight, both).T
        power = float(own @ own)
        return float(own @ explained) / power if power > 1e-20 else 0.0

    def _weight(self, torque: np.ndarray) -> Float[np.ndarray, "dof samples"]:
        sizes = np.linalg.norm(torque * self.trust.T, axis=1)
        weight: np.ndarray = self.trust.T / np.maximum(sizes, 1e-12)[:, None]
        return weight


def _unexplained(
    columns: Float[np.ndarray, "dof samples base"],
    weight: Float[np.ndarray, "dof samples"],
    torques: Float[np.ndarray, "dof samples sets"],
) -> Float[np.ndarray, "rows sets"]:
    """What weighted columns leave of weighted torques, joints below one another."""
    basis, right = (
        (x * weight[:, :, None]).reshape(-1, x.shape[2]) for x in (columns, torques)
    )
    basis = orthonormal(basis)
    return np.asarray(right - basis @ (basis.T @ right))


def sampled_slices(count: int, total: int) -> list[slice]:
    """All rows of a short run; of a long one, stretches from all over it."""
    # Four times the rows wanted are cheap; beyond, a pass would cost as much as a fit.
    if total <= 4 * ROWS:
        return [slice(0, count)]
    length = max(ROWS * 4 // STRETCHES, 1)
    blocks = max(1, round(count / total * STRETCHES))
    starts = np.linspace(0, max(count - length, 0), blocks).astype(int)
    return [slice(int(a), min(int(a) + length, count)) for a in starts]


def _differentiated(
    run: Samples,
    index: np.ndarray,
    slices: Sequence[slice],
    torque: Float[np.ndarray, "rows dof"],
) -> Float[np.ndarray, "3 samples dof"]:
    """Pick rows of a torque and of its derivatives, zero where there is none.

    Args:
        run: The run.
        index: Which of its rows are wanted.
        slices: The rows that the torque is of, one slice after another.
        torque: The torque there in [N m].
    """
    values = np.zeros((3, index.size, run.dof))
    done = 0
    for rows in slices:
        for segment in run.segments:
            start, stop = max(segment.start, rows.start), min(segment.stop, rows.stop)
            # Below three samples there is no second derivative.
            if stop - start < 3:
                continue
            part = torque[done + start - rows.start : done + stop - rows.start]
            slope = np.gradient(part, axis=0) * run.rate_hz
            bend = np.gradient(slope, axis=0) * run.rate_hz
            inside = (index >= start) & (index < stop)
            there = index[inside] - start
            values[:, inside] = part[there], slope[there], bend[there]
        done += rows.stop - rows.start
    return values


@dataclass(frozen=True, eq=False)
class WhitenedRows:
    """Whitened rows of some samples, all joints below one another.

    Attributes:
        problem: What was solved.
        estimate: The outcome.
        samples: The samples looked at, run by run, and which rows of them.
        stretch: Number of the stretch of time each sample is in.
        log: Number of the log each sample is in.
        trust: 1, or 0 where a joint's friction reverses, per sample and joint.
        std: Standard deviation of each joint's residual in [N m].
        regressor: Columns of the base parameters, whitened, joint by joint.
        torque: The torques they are to explain, whitened.
        link_torque: As of `SampledSystem`, in [N m].
    """

    problem: Problem
    estimate: Estimate
    samples: tuple[tuple[Samples, np.ndarray], ...]
    stretch: np.ndarray
    log: np.ndarray
    trust: Float[np.ndarray, "samples dof"]
    std: Float[np.ndarray, " dof"]
    regressor: Float[np.ndarray, "dof samples base"]
    torque: Float[np.ndarray, "dof samples"]
    link_torque: Float[np.ndarray, "3 samples dof"]

    @cached_property
    def motion(self) -> Samples:
        """The rows as samples of their own; neighbours are not consecutive."""

        def gathered(name: str) -> np.ndarray:
            parts = [getattr(run, name)[rows] for run, rows in self.samples]
            return np.concatenate(parts)

        # Any time will do, as rows of several runs stand beside each other.
        time = np.arange(float(self.log.size))
        q, qd, qdd, tau = map(gathered, ("q", "qd", "qdd", "tau"))
        return Samples(time=time, q=q, qd=qd, qdd=qdd, tau=tau)

    def whitened(self, torque: Float[np.ndarray, "samples dof"]) -> np.ndarray:
        """Weigh torques as the rows are, joint by joint."""
        return np.asarray((torque * self.trust / self.std).T.reshape(-1))

    @cached_property
    def basis(self) -> Float[np.ndarray, "rows base"]:
        """Orthonormal columns of the regressor."""
        return orthonormal(self.regressor.reshape(-1, self.regressor.shape[2]))

    @cached_property
    def slopes(self) -> Float[np.ndarray, "rows dof"]:
        """Change of the predicted torques with each joint's position, whitened."""
        # Drives' torques do not depend on the position: the links' are enough.
        motion, links = self.motion, self._links

        def torque(step: np.ndarray) -> np.ndarray:
            return links(motion.q + step, motion.qd, motion.qdd)

        # 1e-6 rad to one side: what is bent takes one millionth, rounding (1e-16 over
        # 1e-6) far less, and the torque there serves every joint.
        steps, here = 1e-6 * np.eye(motion.dof), torque(np.zeros(motion.dof))
        return np.stack(
            [self.whitened((torque(x) - here) / 1e-6) for x in steps], axis=1
        )

    @cached_property
    def compliances(self) -> Float[np.ndarray, "dof samples dof"]:
        """Torque of all joints per compliance of each [rad/(N m)], whitened.

        An elastic joint's link lies behind its encoder in proportion to the load, and
        so do its speed and acceleration in proportion to the load's derivatives.
        """
        motion, links = self.motion, self._links
        columns = []
        here = links(motion.q, motion.qd, motion.qdd)
        for j, unit in enumerate(np.eye(motion.dof)):
            bent, slower, lagging = self.link_torque[:, :, j, None] * unit
            # 1e-6 rad to one side: what is bent takes one millionth, rounding (1e-16
            # over 1e-6) far less. The load's derivatives belong to it, whatever its
            # size.
            step = 1e-6 / max(float(np.abs(bent).max()), 1e-9)
            there = links(
                motion.q - step * bent,
                motion.qd - step * slower,
                motion.qdd - step * lagging,
            )
            columns.append((there - here) * self.trust / (step * self.std))
        return np.stack(columns)

    @cached_property
    def static_torque(self) -> Float[np.ndarray, "samples dof"]:
        """What the estimate's links take at every pose and speed, not accelerated."""
        motion = self.motion
        return self._links(motion.q, motion.qd, np.zeros(motion.q.shape))

    def acceleration_torque(
        self, qdd: Float[np.ndarray, "samples dof"]
    ) -> Float[np.ndarray, "samples dof"]:
        """What they take at every pose and speed to be accelerated."""
        motion = self.motion
        return self._links(motion.q, motion.qd, qdd) - self.static_torque

    @cached_property
    def _links(self) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """Torque of the estimate's links by q, q̇ and q̈."""
        columns, data = self.problem.columns, self.problem.data
        return columns.link_torque(data[0], self.estimate.all_parameters)

    def unexplained(self, columns: Float[np.ndarray, "rows ..."]) -> np.ndarray:
        """What the regressor leaves of columns (Frisch, Waugh and Lovell)."""
        return np.asarray(columns - self.basis @ (self.basis.T @ columns))

    @cached_property
    def residual(self) -> Float[np.ndarray, " rows"]:
        """What it leaves of the torque."""
        return self.unexplained(self.torque.reshape(-1))


def whitened_rows(
    problem: Problem, estimate: Estimate, system: SampledSystem
) -> WhitenedRows:
    """Whiten rows, and say which stretch and log they belong to."""
    total = sum(len(run) for run in problem.data)
    samples, stretch = [], []
    before = 0
    for run, index in zip(problem.data, system.rows, strict=True):
        samples.append((run, index))
        stretch.append((before + index) * STRETCHES // total)
        before += len(run)
    std = np.maximum(estimate.torque_std, 1e-12)
    weight = system.trust.T / std[:, None]
    return WhitenedRows(
        problem,
        estimate,
        tuple(samples),
        np.concatenate(stretch),
        logs_of(problem, system.rows),
        system.trust,
        std,
        system.regressor * weight[:, :, None],
        system.torque * weight,
        system.link_torque,
    )


def logs_of(problem: Problem, rows: Sequence[np.ndarray]) -> np.ndarray:
    """Number of the log that each of some rows of the runs belongs to."""
    log, before = [], 0
    for run, index in zip(problem.data, rows, strict=True):
        starts = _log_starts(run)
        log.append(before + np.searchsorted(starts, index, side="right") - 1)
        before += len(starts)
    return np.concatenate(log)


def _log_starts(run: Samples) -> np.ndarray:
    """First rows of the logs that were joined: their clocks start anew."""
    firsts = np.array([part.start for part in run.segments[1:]], dtype=int)
    steps = run.time[firsts] - run.time[firsts - 1]
    # Judgement: within a log no interruption lasts ten seconds.
    return np.concatenate([[0], firsts[(steps < 0) | (steps > 10.0)]])
