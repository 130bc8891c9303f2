"""Friction candidates: terms that a log can show of every drive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.identification.friction_guards import LEAST_GAIN
from armwise.identification.friction_ripples import ripple_terms
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.identification.problem import pose_problem
from armwise.recordings import Samples
from armwise.regression import (
    FORMS,
    RIPPLES,
    Columns,
    FrictionTerm,
    accumulate_roughly,
    hysteresis_terms,
)

if TYPE_CHECKING:
    from jaxtyping import Float


# Judgement: a factor of 1.8 apart. With a factor of three, shapes in between took a
# second term, and with it half of Coulomb friction.
_STRIBECK_SPEEDS = (0.02, 0.035, 0.06, 0.11, 0.2)
"""Stribeck speeds that are tried, as fractions of a joint's top speed: the fall of
friction lies well below it, at a speed that differs between drives."""

_FIRST_LOOK = (10, 300)
"""Parts of the log, and rows of each, that the first estimate of the load takes."""


def friction_candidates(
    columns: Columns,
    runs: Sequence[Samples],
    load: Float[np.ndarray, " parameters"],
    forms: Sequence[str] | None = None,
) -> tuple[FrictionTerm, ...]:
    """Every form of every drive that a first fit leaves something to explain for.

    Args:
        columns: What the torque is explained by without them.
        runs: The samples.
        load: Parameters of that first fit: `first_load`.
        forms: Forms to try; if None all but load friction apart for driving and
            back-driven gears, whose difference is that of a torque constant.
    """
    arm = columns.arm
    first = _first_residuals(columns, runs, load)
    candidates = _worthwhile(_candidates(arm, runs, forms), columns, first)
    if candidates and (forms is None or set(RIPPLES) & set(forms)):
        candidates += ripple_terms(columns, runs, load, candidates)
    return candidates


def _candidates(
    arm: Arm, runs: Sequence[Samples], forms: Sequence[str] | None
) -> tuple[FrictionTerm, ...]:
    """Every form for every drive that moves."""
    rows = Columns(arm).dynamics.mechanism.drive_rows
    fastest = np.max([np.abs(run.qd @ rows.T).max(axis=0) for run in runs], axis=0)
    # A joint that follows another has no friction of its own that could be seen.
    drives = [*arm.coordinates, *range(len(arm.joints), len(arm.driven))]
    terms: list[FrictionTerm] = []
    widths, constants = hysteresis_terms(arm), _time_constants(runs)
    for j in drives:
        # A drive that never moves has columns of zeros.
        if fastest[j] <= 0.0:
            continue
        name = arm.driven[j].name
        warm = _temperature_of(runs, int(np.flatnonzero(rows[j])[-1]))
        scales = {
            "stribeck": [f * float(fastest[j]) for f in _STRIBECK_SPEEDS],
            "hysteresis": [term.scale for term in widths if term.joint == j],
            **dict.fromkeys(_OF_POSITION, motor_periods(arm, j)),
            **dict.fromkeys(_OF_TEMPERATURE, warm),
            # A state of warmth stands in for a temperature that was not measured.
            **dict.fromkeys(_OF_HEAT, [] if warm else constants),
        }
        for form in FORMS if forms is None else forms:
            if forms is None and form in ("load_driving", "load_back_driven"):
                continue
            for scale in scales.get(form, [1.0]):
                terms.append(FrictionTerm(j, name, form, scale))
    return tuple(terms)


# Bearings and seals that are not quite round turn once, what is oval or a gear's wave
# generator twice.
_ORDERS = (1, 2)
"""Periods in a turn of a motor that waves of friction and torque are tried at."""


def motor_periods(arm: Arm, drive: int) -> list[float]:
    """Periods of the turns of a drive's motor; none if its gear is not known.

    Ripples are also tried at periods that the residual shows.
    """
    gear = arm.driven[drive].gear
    return [] if gear is None else [2.0 * np.pi / (gear * k) for k in _ORDERS]


_OF_POSITION = tuple(name for name, form in FORMS.items() if form.repeats)
_OF_TEMPERATURE = tuple(name for name, form in FORMS.items() if form.uses_temperature)
_OF_HEAT = tuple(name for name, form in FORMS.items() if form.uses_heat)

# Judgement: thermometers of drives count whole degrees, and friction changes by some
# per cent a degree.
_LEAST_WARMING = 3.0
"""Range of a temperature in [°C] from which on friction may be seen to follow it."""

# Judgement: motors warm up in minutes, gears in tens of them.
_LEAST_MINUTE, _LEAST_CONSTANT = 60.0, 20.0
"""Length of a log, and time constant, in [s] from which on warming up is tried."""

# Judgement: most of it has then been seen to happen; of a slower one, prediction would
# go on beyond what was seen.
_RUNNING_IN = 0.3
"""Time constant as a fraction of a shorter log: the film of lubricant in a gear that
has stood is thinned by shear and its own warmth within seconds."""

# Judgement: a factor of 1.8 apart, as Stribeck's speeds are, and why: with a
# factor of three, a constant in between took a second term.
_TIME_CONSTANTS = (0.1, 0.17, 0.3, 0.55, 1.0, 3.0)
"""Time constants of warming up that are tried, as fractions of a log: a longer one is a
line, a shorter one follows the motion itself."""


def _temperature_of(runs: Sequence[Samples], joint: int) -> list[float]:
    """The temperature that friction of a joint is about; none if it hardly changes."""
    measured = [run.temperature for run in runs if run.temperature is not None]
    if not measured or len(measured) < len(runs):
        return []
    values = np.concatenate([one[:, joint] for one in measured])
    low, high = np.percentile(values, [5.0, 95.0])
    # Whole degrees, and positive as all scales are: Coulomb friction is that at it.
    middle = max(1.0, float(np.round(values.mean())))
    return [middle] if high - low >= _LEAST_WARMING else []


def _time_constants(runs: Sequence[Samples]) -> list[float]:
    """Time constants of warming up that a log could show."""
    lengths = [float(run.time[-1] - run.time[0]) for run in runs if len(run)]
    longest = max(lengths, default=0.0)
    is_short = longest < _LEAST_MINUTE
    parts = (_RUNNING_IN,) if is_short else _TIME_CONSTANTS
    # Two digits: a term is named by it.
    constants = [float(f"{part * longest:.2g}") for part in parts]
    return [x for x in constants if is_short or x >= _LEAST_CONSTANT]


def _first_rows(runs: Sequence[Samples]) -> list[tuple[Samples, list[slice]]]:
    """Parts from all over the log, for a first look."""
    parts, length = _FIRST_LOOK
    total = max(sum(len(run) for run in runs), 1)
    looks = []
    for run in runs:
        count = max(1, round(parts * len(run) / total))
        starts = np.linspace(0, max(len(run) - length, 0), count).astype(int)
        # Parts that overlap are one.
        starts = starts[np.diff(starts, prepend=-length) >= length]
        rows = [slice(int(k), min(int(k) + length, len(run))) for k in starts]
        if len(run) <= parts * length:
            rows = [slice(0, len(run))]
        looks.append((run, rows))
    return looks


def first_load(
    columns: Columns, runs: Sequence[Samples], terms: Sequence[str]
) -> Float[np.ndarray, " parameters"]:
    """Parameters of a first fit, without further friction, from parts of the log."""
    sums = accumulate_roughly(columns, _first_rows(runs))
    problem = pose_problem(columns, runs, terms, sums)
    return problem.parameters(WeightedLeastSquares().solve(problem).values)


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What a first fit leaves of parts of the log.

    Attributes:
        parts: For each part the position of every drive, what is left of every joint's
            torque, and whether a joint's rows are learnt from.
    """

    parts: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]

    @property
    def correlation(self) -> Float[np.ndarray, " dof"]:
        """Correlation of neighbouring rows, per joint."""
        power = sum((r**2).sum(axis=0) for _, r, _ in self.parts)
        lagged = sum((r[1:] * r[:-1]).sum(axis=0) for _, r, _ in self.parts)
        return np.asarray(lagged / np.maximum(power, 1e-300))


def _first_residuals(
    columns: Columns, runs: Sequence[Samples], parameters: np.ndarray
) -> _Residuals:
    """What is left of the torque in parts from all over the log."""
    weights = columns.user @ parameters
    turned = columns.dynamics.mechanism.drive_rows
    parts = []
    for run, rows in _first_rows(runs):
        for block in columns.blocks([run], rows):
            residuals = [
                matrix[-1] - weights[support] @ matrix[:-1]
                for matrix, support in zip(block.joints, columns.support, strict=True)
            ]
            residual = np.stack(residuals, axis=1)
            trusted = np.ones(residual.shape) if block.trust is None else block.trust
            parts.append((run.q[block.rows] @ turned.T, residual, trusted > 0.0))
    return _Residuals(tuple(parts))


def _worthwhile(
    candidates: Sequence[FrictionTerm], columns: Columns, first: _Residuals
) -> tuple[FrictionTerm, ...]:
    """Candidates of drives whose residual is more than noise from sample to sample.

    Friction follows the motion, which is smooth: a term that explains a fraction f of
    the residual's power leaves a correlation of about f between neighbours.
    """
    # Half of the gain that is asked for: some 3,000 rows know the correlation to 0.02.
    is_noise = first.correlation <= 0.5 * LEAST_GAIN
    turned = columns.dynamics.mechanism.drive_rows
    return tuple(
        term
        for term in candidates
        if not is_noise[np.flatnonzero(turned[term.joint])].all()
    )
