"""Validation: errors of predicted torque, on data of the fit or others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from armwise.regression import (
    Block,
    Columns,
    Signals,
    Solution,
    StretchScores,
    low_pass,
    sandwich,
    solve_system,
    stack,
)

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    from armwise.identification.problem import Problem
    from armwise.recordings import Samples


# Judgement: far below working speed, where static friction may have any value.
_SLOW = 0.01
"""Fraction of its top speed in a log below which a joint counts as resting."""

REVERSAL = 0.1
"""Time in [s] before and after a joint turns back that counts as its reversal."""


@dataclass(frozen=True, eq=False)
class PartErrors:
    """Errors of predicted torque in some rows of each joint.

    Attributes:
        relative_error: ‖τ − τ̂‖ / ‖τ‖ over these rows; NaN for a joint that has none.
        rmse: Root mean square error in [N m]; NaN for a joint that has none.
        rows: How many rows of each joint.
    """

    relative_error: Float[np.ndarray, " dof"]
    rmse: Float[np.ndarray, " dof"]
    rows: Float[np.ndarray, " dof"]

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers, for JSON; null where a joint has no such row."""
        return {
            "relative_error": _known(self.relative_error),
            "rmse": _known(self.rmse),
            "rows": [int(n) for n in self.rows],
        }


PARTS = ("moving", "resting", "reversing")
"""Rows whose errors are kept apart: one figure would hide that a joint at rest, whose
static friction nothing determines, makes most of the error."""


def _known(values: np.ndarray) -> list[float | None]:
    return [float(v) if np.isfinite(v) else None for v in values]


@dataclass(frozen=True, eq=False)
class Validation:
    """Errors of predicted torque, per joint.

    Attributes:
        relative_error: ‖τ − τ̂‖ / ‖τ‖, as a fraction.
        rmse: Root mean square error in [N m].
        r2: Fraction of the torque's variance that is explained.
        whiteness: Correlation of the residual with itself one period of the torque's
            low-pass earlier: 0 is noise, 1 is something the model does not describe.
            From sample to sample where nothing was filtered.
        samples: How many samples were predicted.
        moving, resting: Errors while a joint moves, and while it does not; None where
            rows were not looked at.
        reversing: Errors within 0.1 s of a joint's turning back.
        interval_ratio: Factor by which the prediction's own intervals (`predict_std`)
            would have to be wider to hold nine tenths of the errors while moving, as
            they promise; what the low-pass of the motion does to torques is no error
            where the recording is at hand. None where that was not looked at.
    """

    relative_error: Float[np.ndarray, " dof"]
    rmse: Float[np.ndarray, " dof"]
    r2: Float[np.ndarray, " dof"]
    whiteness: Float[np.ndarray, " dof"]
    samples: int
    moving: PartErrors | None = None
    resting: PartErrors | None = None
    reversing: PartErrors | None = None
    interval_ratio: Float[np.ndarray, " dof"] | None = None

    def to_dict(self) -> dict[str, object]:
        """Return plain numbers, for JSON."""
        ratio = self.interval_ratio
        own = {} if ratio is None else {"interval_ratio": ratio.tolist()}
        return {
            "relative_error": self.relative_error.tolist(),
            "rmse": self.rmse.tolist(),
            "r2": self.r2.tolist(),
            "whiteness": self.whiteness.tolist(),
            "samples": self.samples,
            **own,
        } | {
            name: part.to_dict()
            for name in PARTS
            if (part := getattr(self, name)) is not None
        }


_masks_of: WeakKeyDictionary[Signals, np.ndarray] = WeakKeyDictionary()
"""Masks of samples that are still in use: fit, diagnosis and report ask for them."""


def part_masks(samples: Signals) -> Bool[np.ndarray, "parts samples dof"]:
    """Which rows of each joint are of which of PARTS; not to be written to."""
    if samples not in _masks_of:
        masks = _part_masks(samples)
        masks.setflags(write=False)
        _masks_of[samples] = masks
    return _masks_of[samples]


def _part_masks(samples: Signals) -> np.ndarray:
    # A joint's samples one after another: several passes follow.
    rate = np.ascontiguousarray(samples.qd.T)
    speed = np.abs(rate)
    moving = speed > _SLOW * speed.max(axis=1, initial=0.0)[:, None]
    reach = max(1, round(REVERSAL * samples.rate_hz))
    reversing = np.zeros(speed.shape, dtype=bool)
    for rows in samples.segments:
        for j in range(samples.dof):
            # A pause on the way back belongs to the reversal; one on the way does not.
            active = np.flatnonzero(moving[j, rows])
            is_forward = rate[j, rows][active] > 0.0
            turns = np.flatnonzero(is_forward[1:] != is_forward[:-1])
            for k in turns:
                first, last = active[k] - reach, active[k + 1] + reach + 1
                start = rows.start + max(0, int(first))
                reversing[j, start : min(rows.stop, rows.start + int(last))] = True
    return np.stack([moving, ~moving, reversing]).transpose(0, 2, 1)


def noise_memory(samples: Signals) -> int:
    """Samples after which white noise has forgotten itself in a filtered torque.

    Noise through an ideal low-pass is uncorrelated one period of its cut-off apart;
    from sample to sample its correlation is that of the filter, whatever it filtered.
    """
    bandwidth = samples.torque_bandwidth_hz
    return 1 if bandwidth is None else max(1, round(samples.rate_hz / bandwidth))


class Tally:
    """Sums over predicted torques, block by block: memory does not grow with a log."""

    def __init__(self, dof: int) -> None:
        self._count = 0
        self._sums = np.zeros((5, dof))
        self._parts = np.zeros((len(PARTS), 3, dof))
        self._tail = np.zeros((0, dof))

    def add(
        self,
        measured: Float[np.ndarray, "samples dof"],
        error: Float[np.ndarray, "samples dof"],
        parts: Bool[np.ndarray, "parts samples dof"] | None = None,
        memory: int = 1,
    ) -> None:
        """Add a block.

        Args:
            measured: The torque.
            error: The residual of its prediction.
            parts: `part_masks` of the block.
            memory: Samples over which noise is correlated: `noise_memory`.
        """
        # The last residuals of a block go with the first of the next.
        pad = np.zeros((max(memory - len(self._tail), 0), error.shape[1]))
        every = np.vstack([pad, self._tail[-memory:], error])
        lagged = every[: len(error)]
        self._count += len(measured)
        self._sums += [
            measured.sum(axis=0),
            np.einsum("nj,nj->j", measured, measured),
            error.sum(axis=0),
            np.einsum("nj,nj->j", error, error),
            np.einsum("nj,nj->j", error, lagged),
        ]
        self._tail = every[-memory:].copy()
        if parts is not None:
            ones = np.ones(measured.shape)
            sums = np.stack([ones, measured**2, error**2])
            self._parts += np.einsum("pnj,snj->psj", parts, sums)

    def result(self) -> Validation:
        """Return the errors of all that was added."""
        count = max(self._count, 1)
        mean, squares, _, errors, lagged = self._sums
        # In one pass; digits are lost only where a torque's mean is far above its
        # spread.
        spread = squares - mean**2 / count
        parts = self._part_errors()
        return Validation(
            relative_error=np.sqrt(errors / np.where(squares > 0, squares, 1.0)),
            rmse=np.sqrt(errors / count),
            r2=1.0 - errors / np.where(spread > 0, spread, 1.0),
            # Autocorrelation (Durbin and Watson's statistic is 2 − 2 times that of lag
            # one), its mean not removed: a constant residual is not noise either.
            whiteness=lagged / np.where(errors > 0, errors, 1.0),
            samples=self._count,
            moving=parts.get("moving"),
            resting=parts.get("resting"),
            reversing=parts.get("reversing"),
        )

    def _part_errors(self) -> dict[str, PartErrors]:
        if not self._parts.any():
            return {}
        errors = {}
        for name, (rows, squares, residuals) in zip(PARTS, self._parts, strict=True):
            # Undefined, not zero, where a joint has no such row.
            size = np.where(squares > 0, squares, np.nan)
            count = np.where(rows > 0, rows, np.nan)
            errors[name] = PartErrors(
                np.sqrt(residuals / size), np.sqrt(residuals / count), rows
            )
        return errors


def block_masks(block: Block) -> Bool[np.ndarray, "parts rows dof"]:
    """`part_masks` of a block's rows."""
    return part_masks(block.samples)[:, block.rows]


# Torques that a set of parameters predicts.


def predict_torque(
    columns: Columns, parameters: Float[np.ndarray, "*sets all"], samples: Samples
) -> Float[np.ndarray, "*sets samples dof"]:
    """Torque in [N m] that parameters (friction terms last) predict for a motion."""
    weights = np.asarray(parameters) @ columns.user.T
    torque = np.empty((*weights.shape[:-1], len(samples), columns.arm.dof))
    for block in columns.blocks([samples]):
        torque[..., block.rows, :] = predicted_block(columns, block, weights)
    return torque


def at_usual_temperature(columns: Columns, samples: Samples) -> Samples:
    """Give a planned motion, which has no thermometer, the temperature of the fit."""
    temperature = columns.usual_temperature
    if temperature is None or samples.temperature is not None:
        return samples
    return replace(samples, temperature=np.broadcast_to(temperature, samples.q.shape))


def filter_effect(
    columns: Columns, parameters: np.ndarray, samples: Samples, fine: Samples
) -> Float[np.ndarray, "samples dof"]:
    """What the low-pass of a motion changes in its torque in [N m].

    The torque of a filtered motion is not the filtered torque: products of fast motions
    have a slow part. `fine` is the same motion, less filtered: its torque, filtered
    afterwards, less the torque of the samples.
    """
    torque = predict_torque(columns, parameters, fine)
    cutoff = samples.preparation.low_pass_hz
    for rows in fine.segments:
        torque[rows] = low_pass(torque[rows], cutoff, fine.rate_hz, "constant")
    filtered = [np.interp(samples.time, fine.time, x) for x in torque.T]
    return np.stack(filtered, axis=1) - predict_torque(columns, parameters, samples)


def predicted_block(
    columns: Columns, block: Block, weights: Float[np.ndarray, "*sets columns"]
) -> Float[np.ndarray, "*sets samples dof"]:
    """Torque in [N m] of a block, for one or several sets of the columns' weights."""
    torque = np.empty((*weights.shape[:-1], block.count, columns.arm.dof))
    pairs = zip(columns.support, block.joints, strict=True)
    for i, (support, matrix) in enumerate(pairs):
        torque[..., i] = weights[..., support] @ matrix[:-1]
    return torque


def residuals(
    problem: Problem, values: np.ndarray
) -> list[Float[np.ndarray, "samples dof"]]:
    """Measured minus predicted torque of every run, for base parameters β."""
    parameters = base_to_parameters(problem, values)
    return [
        s.tau - predict_torque(problem.columns, parameters, s) for s in problem.data
    ]


def base_to_parameters(problem: Problem, values: np.ndarray) -> np.ndarray:
    """Parameters with these combinations: leaders carry them, all others are zero."""
    # Torques depend on combinations only, so that leaders alone predict the same.
    parameters = np.where(problem.is_estimated, 0.0, problem.prior)
    parameters[list(problem.base.indices)] = values
    return parameters


def fit_from_sums(problem: Problem, values: np.ndarray) -> Validation:
    """How well trusted rows are explained, from R factors alone.

    Whiteness would need the rows themselves, and stays unknown.
    """
    sums = problem.accumulator
    count = np.maximum(sums.trusted, 1.0)
    # R keeps norms: the residual of its rows is that of all samples.
    systems = problem.systems()
    errors = [np.sum((s[:, :-1] @ values - s[:, -1]) ** 2) for s in systems]
    squares = np.array([np.sum(factor[:, -1] ** 2) for factor in sums.factors])
    spread = squares - sums.torque**2 / count
    return Validation(
        relative_error=np.sqrt(errors / np.where(squares > 0, squares, 1.0)),
        rmse=np.sqrt(np.array(errors) / count),
        r2=1.0 - errors / np.where(spread > 0, spread, 1.0),
        whiteness=np.full(len(errors), np.nan),
        samples=round(sums.samples),
    )


@dataclass(frozen=True)
class TorqueLag:
    """Delay of the torque behind the motion.

    Attributes:
        seconds: The delay in [s].
        std: Its standard deviation in [s]; infinite where nothing shows it.
        joints: Joints whose torque is later than that, or earlier: name, by how much in
            [s], and the standard deviation of that.
    """

    seconds: float
    std: float
    joints: tuple[tuple[str, float, float], ...] = ()


# The second pass over the data: residuals, their correlation, and the description.


@dataclass(frozen=True, eq=False)
class Review:
    """What a second pass over the data shows, with the solution in hand.

    Attributes:
        covariance: Covariance of β, correlation of the residuals accounted for.
        fit: How well the data are explained.
        lag: What is left of the torque's delay, and how well it is known; None: it was
            given, or the method has scores of its own.
        agreement: The description's own torques beside the measured ones; None where
            samples were not looked at again.
    """

    covariance: Float[np.ndarray, "base base"]
    fit: Validation
    lag: TorqueLag | None = None
    agreement: Agreement | None = None


class Agreement:
    """Inner products of the torques an arm predicts with those measured.

    Attributes:
        products: Sum of predicted torque of joint i × measured torque of joint j.
        predicted, measured: Norms of each joint's torques.
    """

    def __init__(self, dof: int) -> None:
        self.products = np.zeros((dof, dof))
        self._squares = np.zeros((2, dof))

    def add(
        self,
        predicted: Float[np.ndarray, "samples dof"],
        measured: Float[np.ndarray, "samples dof"],
    ) -> None:
        """Add a block of torques."""
        self.products += predicted.T @ measured
        for sums, torque in zip(self._squares, (predicted, measured), strict=True):
            sums += np.einsum("nj,nj->j", torque, torque)

    @property
    def predicted(self) -> Float[np.ndarray, " dof"]:
        """Norm of each joint's predicted torque."""
        return np.asarray(np.sqrt(self._squares[0]))

    @property
    def measured(self) -> Float[np.ndarray, " dof"]:
        """Norm of each joint's measured torque."""
        return np.asarray(np.sqrt(self._squares[1]))

    @property
    def cosines(self) -> Float[np.ndarray, "dof dof"]:
        """Cosine between predicted torque i and measured torque j; 0 where none is."""
        sizes = np.outer(self.predicted, self.measured)
        return np.where(sizes > 0, self.products / np.where(sizes > 0, sizes, 1.0), 0.0)


def compare_description(columns: Columns, data: Sequence[Samples]) -> Agreement:
    """Compare an arm's own torques with those measured, in a pass of its own."""
    # Descriptions have no friction terms beyond the arm's own.
    extra = np.zeros(len(columns.friction))
    weights = columns.user @ np.concatenate([columns.arm.parameters, extra])
    agreement = Agreement(columns.arm.dof)
    for block in columns.blocks(data):
        measured = block.samples.tau[block.rows]
        agreement.add(predicted_block(columns, block, weights), measured)
    return agreement


def review(problem: Problem, solution: Solution) -> Review:
    """Predict the torques that were fitted; see how the residuals are correlated."""
    columns = problem.columns
    # The description's torques ride along: diagnosis needs no third pass.
    weights = np.stack(
        [problem.column_weights(solution.values), columns.user @ problem.prior]
    )
    sums = StretchScores(sum(len(samples) for samples in problem.data), columns.count)
    tally = Tally(columns.arm.dof)
    agreement = Agreement(columns.arm.dof)
    for block in columns.blocks(problem.data):
        parts = sums.parts(block.count)
        measured = block.samples.tau[block.rows]
        fitted, described = predicted_block(columns, block, weights)
        errors = measured - fitted
        tally.add(measured, errors, block_masks(block), noise_memory(block.samples))
        agreement.add(described, measured)
        # A method whose cost is another brings scores of its own.
        if solution.scores is None:
            sums.add(columns, block, errors, solution.torque_std, parts)
    lag = None
    if isinstance(solution.scores, StretchScores):
        covariance = solution.scores.covariance(columns, problem.leaders, solution)
    elif solution.scores is not None:
        # No leverage of a stretch is known here, so that it is CR1 instead of the
        # jackknife's CR3, which is a little wider for few stretches.
        covariance = sandwich(solution.scores, solution)
    else:
        selection = problem.leaders
        covariance = sums.covariance(columns, selection, solution)
        if columns.has_lags:
            lag = _torque_lag(problem, solution, sums)
    return Review(covariance, tally.result(), lag, agreement)


def _torque_lag(
    problem: Problem, solution: Solution, sums: StretchScores
) -> TorqueLag | None:
    """The lag that was fitted beside the base parameters, and its jackknife."""
    columns = problem.columns
    selection = np.zeros((columns.count, problem.base.count + 1))
    selection[:, :-1] = columns.user[:, list(problem.base.indices)]
    selection[columns.lags, -1] = 1.0
    pairs = zip(columns.support, problem.accumulator.factors, strict=True)
    rows = [factor[:, :-1] @ selection[support] for support, factor in pairs]
    # Its directions are those of the parameters and one more: solved as they are.
    zeros = np.zeros(selection.shape[1])
    right = [np.column_stack([block, np.zeros(len(block))]) for block in rows]
    widened = solve_system(
        stack(right, solution.torque_std), zeros, solution.torque_std
    )
    covariance = sums.covariance(columns, selection, widened)
    variance = float(covariance[-1, -1])
    before = {run.preparation.lag for run in problem.data}
    # Runs with delays of their own have none in common.
    if not np.isfinite(variance) or len(before) > 1:
        return None
    return TorqueLag(before.pop() + problem.lag(solution.values), variance**0.5)
