"""Torque gains: how far a measured torque may be off by a constant factor.

A motor current becomes a torque through a constant that data sheets give to some ten
per cent, a torque sensor through a calibration of one or two. No log shows a factor
that all joints share, so that it has to be assumed; every interval that follows from
torques states what was.

What a log does show is torques that contradict each other: a link is carried by several
joints, and a gear ratio that was forgotten in some of them makes its mass another one
for each. `consistent_scale` finds which joints' torques must be multiplied, and by
what, and believes it only if stretches left out are predicted far better.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.regression.accumulator import FoldSums

TorqueSignal: TypeAlias = Literal["sensor", "current", "unknown"]
"""What torques were measured with: a joint torque sensor, a motor's current, or what a
log does not say."""

# Strain-gauge joint sensors are specified to 1–2 % of full scale; torque constants
# differ from data sheets by 10 % with magnets, temperature and gear efficiency. A log
# in N m that does not say what it was measured with is taken at its word, unless the
# joints' torques disagree among themselves: `identify` then counts with what they show.
GAIN_STD = MappingProxyType({"sensor": 0.015, "current": 0.10, "unknown": 0.005})
"""Standard deviation of each joint's torque gain by what measured it, relative."""

GainStd: TypeAlias = "TorqueSignal | float | Sequence[float] | np.ndarray"
"""Kind of signal, or the standard deviation itself: one for all joints, or each."""

_LARGEST_STD = 1.0
"""Standard deviation beyond which a torque would not even have a sign."""


def joint_gain_std(
    assumed: GainStd | None, dof: int, default: TorqueSignal = "unknown"
) -> Float[np.ndarray, " dof"]:
    """Standard deviation of every joint's torque gain, joints independent, relative.

    Args:
        assumed: A kind of signal, a number for all joints, or one for each; None: the
            default's.
        dof: How many joints.
        default: Kind of signal where nothing is said.

    Raises:
        ArgumentError: If it is no kind of signal and no such numbers.
    """
    if assumed is None:
        assumed = default
    if isinstance(assumed, str):
        if assumed not in GAIN_STD:
            raise ArgumentError(
                f"There is no torque signal {assumed!r}: choose from "
                f"{', '.join(GAIN_STD)}, or give the gain's standard deviation."
            )
        assumed = GAIN_STD[assumed]
    std = np.asarray(assumed, dtype=float)
    if std.ndim > 1 or std.size not in (1, dof):
        raise ArgumentError(
            f"gain_std is one number, or one for each of {dof} joints, not {std.size}."
        )
    # Written so that NaN is refused as well.
    if not np.all((std >= 0.0) & (std < _LARGEST_STD)):
        raise ArgumentError(
            "gain_std is a fraction of the torque from 0 to below 1: 0.1 is 10 %."
        )
    return np.array(np.broadcast_to(std.reshape(-1), (dof,)))


# Torques that contradict each other.

# Judgement: friction and noise leave some per cent; a real log's light wrist joints a
# third, but then as much when fitted alone.
_CONTRADICTS = (0.1, 3.0)
"""Relative error of a joint fitted with the others, and squared error beside that of
the joint fitted alone, from which on its torque contradicts theirs."""

# Three wrist joints off by a factor of two leave 4 % of the elbow's torque, sixty times
# what it has alone; other friction than was fitted made that thirteen in a real log.
_HARDLY_CONTRADICTS = (0.03, 30.0)
"""The same of a small error, from which on a factor is looked for, too."""

# A torque constant is off by a tenth; 1.5 is five of these.
_LEAST_SCALE = np.log(1.5)
"""Logarithm of a factor from which on it is an error and no tolerance."""

# Gear ratios that were forgotten, and units of a thousandth.
_GRID = np.concatenate([sign * np.arange(0.7, 8.0, 0.7) for sign in (-1.0, 1.0)])
"""Logarithms of factors that are tried, a factor of two apart."""

# Student's t of nine degrees of freedom: 1 in 1,300, for some twenty groups of joints.
_SURE = 4.5
"""Standard errors, from stretch to stretch, by which a factor must lower the error."""

# Judgement: real friction hides which joints are off by what; a quarter of what a
# factor gains is no more than another friction model would change.
_NEARLY = 0.75
"""Fall of the error, beside the best group's, from which on another is as likely."""

# Judgement: of errors that factors bring down a hundredfold, a quarter (in logarithms)
# is threefold; another friction model changes an error by half of itself.
_AS_LIKELY = 0.8
"""Largest difference of the errors' log power to the best group's, whatever it gains.
"""

_MOST_ERROR = 0.67
"""Error of the worst joint on stretches left out that may remain: a factor that takes
less than a third of it away has not resolved what the joints disagree about."""

# Groups, and the cost of each, grow with the joints: seven take a second, twelve six.
_MOST_JOINTS = 12
"""Joints up to which a scale is looked for."""

_RIDGE = 1e-9
"""Ridge beside columns of one: what a log leaves undetermined is zero."""

_LEAST_POWER = 1e-12
"""Squared error, beside the torque's, that counts as none: products have half as many
digits as their factors."""


class TorqueScale(NamedTuple):
    """What recorded torques must be multiplied by to belong to one arm.

    Attributes:
        factors: One per joint, 1 where nothing is to be done.
        std: Standard deviation of each factor, relative.
    """

    factors: Float[np.ndarray, " joints"]
    std: Float[np.ndarray, " joints"]


def consistent_scale(
    folds: FoldSums, support: Sequence[np.ndarray]
) -> TorqueScale | None:
    """Bring torques together that contradict each other; None: they do not.

    Neighbouring joints have motors and gears alike, so that they are multiplied in
    groups; the fewest are, since only ratios can be known.

    Args:
        folds: Inner products of [columns, torque], stretch by stretch.
        support: For each joint, which columns can move its torque.
    """
    torques = _Torques(folds.fitted, tuple(support))
    scale, variance = np.ones(len(support)), np.zeros(len(support))
    is_small = 1 < len(support) <= _MOST_JOINTS and len(folds) >= 4
    limits = (_CONTRADICTS, _HARDLY_CONTRADICTS)
    if not is_small or not torques.contradict(scale, limits):
        return None
    # Shoulder, elbow and wrist can differ: two groups beside the third.
    for _ in range(2):
        better, doubt = torques.with_group(scale)
        change = np.abs(np.log(better / scale)).max()
        # What would be nothing rather than any fraction has another sign, no factor.
        if change > _GRID.max():
            break
        if change < _LEAST_SCALE or not torques.is_surely_better(scale, better):
            break
        # A group that is settled once more is better known than it was at first.
        is_same = np.array_equal(better != scale, scale != 1.0)
        scale, variance = better, doubt if is_same else variance + doubt
    # Exchanged columns are explained a little better by factors, too, but not resolved.
    if np.all(scale == 1.0) or torques.contradict(scale, (_CONTRADICTS,)):
        return None
    return TorqueScale(scale, np.minimum(np.sqrt(variance), 0.9 * _LARGEST_STD))


@dataclass(frozen=True, eq=False)
class _Torques:
    """Torques of joints that share parameters, as inner products.

    Attributes:
        folds: For each joint those of [columns, torque], stretch by stretch.
        support: For each joint its columns.
    """

    folds: Sequence[Float[np.ndarray, "folds width width"]]
    support: tuple[np.ndarray, ...]

    @cached_property
    def _whole(self) -> list[Float[np.ndarray, "width width"]]:
        return [grams.sum(axis=0) for grams in self.folds]

    def contradict(
        self,
        scale: Float[np.ndarray, " joints"],
        limits: Sequence[tuple[float, float]],
    ) -> bool:
        """Whether a joint would be explained far better without the others.

        Args:
            scale: What torques are multiplied by.
            limits: Relative errors from which on it would, each with the squared error
                beside that of the joint alone.
        """
        joints = range(len(self.support))
        together = self._settled(self._whole, scale)[1]
        alone = [
            _Torques([self.folds[i]], (np.arange(self.support[i].size),))
            for i in joints
        ]
        least = [float(one._settled(one._whole, np.ones(1))[1][0]) for one in alone]
        torque = np.array([gram[-1, -1] for gram in self._whole])
        relative = np.sqrt(together / np.maximum(torque, 1e-300))
        worse = together / np.maximum(least, 1e-300)
        return any(
            bool(np.any((relative > error) & (worse > ratio)))
            for error, ratio in limits
        )

    def with_group(
        self, scale: Float[np.ndarray, " joints"]
    ) -> tuple[Float[np.ndarray, " joints"], Float[np.ndarray, " joints"]]:
        """Multiply the group of neighbours that lowers all errors most.

        Also returns the variance of every factor's logarithm: what it would be without
        each stretch, and how far groups differ that would do nearly as well.
        """
        power = self._settled(self._whole, scale)[1]
        firsts = []
        for group in _groups(len(scale)):
            costs = [self._cost(self._whole, scale, group, x, power) for x in _GRID]
            firsts.append((min(costs), group, float(_GRID[np.argmin(costs)])))
        firsts.sort(key=lambda one: one[0])
        trials, gains = [], []
        before = np.log(self._left_out(scale).sum(axis=0)).mean()
        # Judgement: of those that follow, none is nearly as good.
        for _, group, factor in firsts[:6]:
            trial = scale.copy()
            trial[group] *= np.exp(self._refined(self._whole, scale, group, factor))
            trials.append(trial)
            gains.append(before - np.log(self._left_out(trial).sum(axis=0)).mean())
        logs = np.log(trials)
        # The first one always: where it gains nothing it will not be believed.
        best = max(gains[0], 0.0)
        nearly = np.array(gains) >= max(_NEARLY * best, best - _AS_LIKELY)
        nearly[0] = True
        doubt = np.mean((logs[nearly] - logs[0]) ** 2, axis=0)
        group, factor = firsts[0][1], float(np.log(trials[0] / scale)[firsts[0][1]][0])
        doubt[group] += self._factor_variance(scale, group, factor)
        return trials[0], doubt

    def _factor_variance(
        self, scale: Float[np.ndarray, " joints"], group: slice, factor: float
    ) -> float:
        """Variance of a factor's logarithm: what it would be without each stretch."""
        others = []
        for k in range(len(self.folds[0])):
            pairs = zip(self._whole, self.folds, strict=True)
            grams = [every - folds[k] for every, folds in pairs]
            others.append(self._refined(grams, scale, group, factor))
        # Tukey's factor: estimates without a stretch scatter that much less.
        return float(np.var(others) * (len(others) - 1))

    def _refined(
        self,
        grams: Sequence[np.ndarray],
        scale: Float[np.ndarray, " joints"],
        group: slice,
        factor: float,
    ) -> float:
        """The best factor near one, by golden section: to a thousandth."""
        power = self._settled(grams, scale)[1]
        low, high = factor - 0.7, factor + 0.7
        for _ in range(14):
            inner = low + 0.382 * (high - low), low + 0.618 * (high - low)
            costs = [self._cost(grams, scale, group, x, power) for x in inner]
            low, high = (low, inner[1]) if costs[0] < costs[1] else (inner[0], high)
        return 0.5 * (low + high)

    def _cost(
        self,
        grams: Sequence[np.ndarray],
        scale: Float[np.ndarray, " joints"],
        group: slice,
        factor: float,
        power: Float[np.ndarray, " joints"],
    ) -> float:
        """Sum of the errors' logarithms: joints count alike, whatever their noise."""
        trial = scale.copy()
        trial[group] *= np.exp(factor)
        return float(np.log(self._settled(grams, trial, power)[1]).sum())

    def is_surely_better(
        self, before: Float[np.ndarray, " joints"], after: Float[np.ndarray, " joints"]
    ) -> bool:
        """Whether stretches left out are predicted far better, and nearly all are."""
        was, now = self._left_out(before), self._left_out(after)
        falls = np.log(was / now).mean(axis=1)
        spread = falls.std(ddof=1) / np.sqrt(len(falls))
        torque = np.maximum([gram[-1, -1] for gram in self._whole], 1e-300)
        worst = [np.sqrt((x.sum(axis=0) / torque).max()) for x in (was, now)]
        return bool(
            falls.mean() >= _SURE * spread
            and np.mean(falls > 0.0) >= 0.75
            and worst[1] <= _MOST_ERROR * worst[0]
        )

    def _left_out(
        self, scale: Float[np.ndarray, " joints"]
    ) -> Float[np.ndarray, "folds joints"]:
        """Squared errors of every stretch, by a fit to all others."""
        errors = []
        for k in range(len(self.folds[0])):
            stretch = [grams[k] for grams in self.folds]
            pairs = zip(self._whole, stretch, strict=True)
            values = self._settled([every - own for every, own in pairs], scale)[0]
            errors.append(self._power(stretch, scale, values))
        return np.array(errors)

    def _settled(
        self,
        grams: Sequence[np.ndarray],
        scale: Float[np.ndarray, " joints"],
        power: Float[np.ndarray, " joints"] | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Parameters, and squared errors by which the joints are weighed.

        Args:
            grams: Inner products to fit.
            scale: What the torques are multiplied by.
            power: Squared errors to begin with; those of a tenth of the torque if None.
        """
        first = np.array([0.01 * gram[-1, -1] for gram in grams])
        errors = np.maximum(first, 1e-300) if power is None else power
        # Weights and fit depend on each other; further rounds change no decision.
        for _ in range(6 if power is None else 3):
            values = self._fit(grams, scale, errors)
            errors = self._power(grams, scale, values)
        return values, errors

    def _fit(
        self, grams: Sequence[np.ndarray], scale: np.ndarray, power: np.ndarray
    ) -> np.ndarray:
        """Minimise the sum of ‖Y β − s τ‖² over s² and the squared errors."""
        width = 1 + max(int(index.max(initial=0)) for index in self.support)
        normal, right = np.zeros((width, width)), np.zeros(width)
        weights = 1.0 / (scale**2 * power)
        for gram, index, weight, s in zip(
            grams, self.support, weights, scale, strict=True
        ):
            normal[index[:, None], index] += weight * gram[:-1, :-1]
            right[index] += weight * s * gram[:-1, -1]
        size = np.sqrt(np.maximum(np.diag(normal), 1e-300))
        normal /= np.outer(size, size)
        normal[np.diag_indices_from(normal)] += _RIDGE
        return np.asarray(np.linalg.solve(normal, right / size) / size)

    def _power(
        self, grams: Sequence[np.ndarray], scale: np.ndarray, values: np.ndarray
    ) -> np.ndarray:
        """Squared errors of the torques as they were recorded."""
        errors = []
        for gram, index, s in zip(grams, self.support, scale, strict=True):
            residual = np.append(values[index] / s, -1.0)
            least = max(_LEAST_POWER * gram[-1, -1], 1e-300)
            errors.append(max(float(residual @ gram @ residual), least))
        return np.array(errors)


def _groups(dof: int) -> Iterator[slice]:
    """Neighbouring joints, half of all at most: the others would be multiplied else."""
    for first in range(dof):
        for stop in range(first + 1, min(dof, first + max(1, dof // 2)) + 1):
            yield slice(first, stop)
