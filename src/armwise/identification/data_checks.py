"""Tests of the data against the arm: gains, encoders, gravity, time, order, signs.

Wrong data often fit: an encoder that is off by 5° moves the other parameters until the
torques agree again, nearly. What is wrong is therefore let free, one thing at a time,
as further columns of the same regression: a gain on each joint's torque (a link moves
several joints, so that gains can be compared), an offset of each encoder, the direction
and size of gravity (time that is stretched is gravity of another size), a load and
friction that differ between logs. Only what is surely not zero, explains much of what
the model leaves over, and is large enough to matter is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.dynamics import Dynamics
from armwise.errors import EstimateWarning
from armwise.identification.other_readings import (
    LEAST_LOAD,
    READINGS,
    load_torques,
    other_clocks,
    read_otherwise,
    score,
)
from armwise.identification.sampled_rows import FEWEST, SampledSystem, WhitenedRows
from armwise.recordings import Recording, Samples, repaired, suspicions
from armwise.regression import STRETCHES, held_joints, jackknife_covariance

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm
    from armwise.identification.estimate import Estimate
    from armwise.identification.problem import Problem

# Student's t of 39 degrees of freedom: 1 in 15,000 for one column, 1 in 500 for thirty.
_SURE = 4.5
"""Standard errors from zero at which a hypothesis is surely not zero."""

# Real logs of sound arms reach 16, where friction is not what the model says.
_CERTAIN = 20.0
"""Standard errors from zero at which a hypothesis is named though noise hides it."""

# Judgement: what is wrong with the data is mostly more than what else is missing.
_EXPLAINS = 0.15
"""Fraction of the residual's power that a hypothesis must explain to be named."""

_SIZES = {
    "gain": (0.05, 0.8),
    "offset": (0.03, 1.5),
    "tilt": (0.05, 3.0),
    "gravity": (0.08, np.inf),
    "friction": (0.3, np.inf),
    "load": (0.0, np.inf),
}
"""Sizes that matter and make sense: relative gain, 1.7° of an encoder, 2.9° of the
mount, 8 % of gravity (4 % of time), 30 % of friction. Below, a deviation does no harm;
beyond, it stands for something else."""

# Power: Gaussian residuals of some ten independent rows hardly reach five.
_BURST = 25.0
"""Ratio of a stretch's residual power to the median stretch's that is no chance."""

_POOR = (0.4, 0.15)
"""Relative errors of the worst joint, or of the two worst, from which on columns are
tried in other ways: a wrong column spoils its neighbours, noise on a light joint none.
"""

# Judgement: wrong columns leave tens of percent, and always some joint above this.
_CLOSE = 0.02
"""Relative error of the worst joint below which columns are as they were read."""

# Judgement: halfway between noise (0) and a smooth function of time (1).
_SMOOTH = 0.5
"""Correlation from sample to sample from which on a residual follows the motion."""

WRONG_DATA = frozenset(
    {
        "torque-gain", "encoder-offset", "gravity-direction", "gravity-size",
        "load-changed", "joint-too-fast", "large-lag", "clocks-drift",
        "torque-unsigned", "torque-constant", "torque-unit", "validated-on-fit",
        *READINGS,
    }
)  # fmt: skip
"""Codes of warnings after which an estimate is not to be trusted as it is."""

DOUBTFUL_DATA = frozenset(
    {
        "friction-changed", "burst", "torque-clipped", "encoder-frozen",
        "slow-sampling", "torque-scale", "beyond-limit",
    }
)  # fmt: skip
"""Codes of warnings that ask for a look at the data."""


def examine(
    system: SampledSystem, rows: WhitenedRows, is_doubtful: bool = False
) -> list[EstimateWarning]:
    """Say what is wrong with the data, if the arm's equations show it.

    Args:
        system: Some rows of the data.
        rows: The same, whitened.
        is_doubtful: Whether the model is another than the arm's by what is known: other
            readings are then tried unless it fits closely.
    """
    problem, estimate = rows.problem, rows.estimate
    if sum(len(run) for run in problem.data) < FEWEST:
        return []
    # A log of wrong columns has no deviation worth naming: columns come first. What
    # another reading could explain follows the motion; a residual that is noise from
    # sample to sample does not, however large beside a light joint's torque.
    # In a filtered torque little noise is left, and a wrong column's cut-off is so low
    # that its residual has as short a memory as noise.
    is_filtered = any(run.torque_bandwidth_hz is not None for run in problem.data)
    follows = (estimate.fit.whiteness > _SMOOTH) | is_filtered
    # Nor does another reading explain what a brake carries.
    follows &= ~held_joints(problem.data)
    is_poor = _is_poor(np.where(follows, estimate.fit.relative_error, 0.0))
    if is_poor and (warning := read_otherwise(problem, system.thinned(2))):
        return [warning]
    findings = [
        *_late(problem, system.thinned(4)),
        *_deviations(problem, estimate, rows, system),
        *_bursts(problem, rows),
    ]
    # One number that is off says more than other columns that are as good.
    is_close = estimate.fit.relative_error.max() < _CLOSE
    if not findings and is_doubtful and not is_poor and not is_close:
        warning = read_otherwise(problem, system.thinned(2))
        return [] if warning is None else [warning]
    return findings


def scaled_torques(arm: Arm, runs: Sequence[Samples]) -> list[EstimateWarning]:
    """Say which torques were multiplied, because they contradicted the others."""
    warnings = []
    done = (run.preparation for run in runs)
    for scale, std in dict.fromkeys((p.torque_scale, p.torque_scale_std) for p in done):
        if not scale:
            continue
        named = zip(arm.coordinate_names, scale, std, strict=True)
        factors = [
            f"{name} × {x:.3g} ± {100 * s:.2g} %" for name, x, s in named if x != 1.0
        ]
        listed = ", ".join(f"{x:.3g}" for x in scale)
        text = (
            f"The joints' torques contradict each other unless some are multiplied, "
            f"and they were: {', '.join(factors)}. A gear ratio or torque constant is "
            "missing there; masses are in units of the other joints' torques. Give "
            f"it in a mapping wherever the log is used: [torque] scale = [{listed}]."
        )
        warnings.append(EstimateWarning("torque-scale", text))
    return warnings


# Judgement: peaks may pass a nominal limit by a fraction; of the logs of ten real and
# simulated arms none reaches its own.
_BEYOND = 1.5
"""Torque over a joint's limit from which on its unit is doubted."""


def beyond_limits(arm: Arm, runs: Sequence[Samples]) -> list[EstimateWarning]:
    """Say which torques a joint's drive cannot have: another unit, most likely."""
    limits = np.array([arm.joints[j].limits.effort for j in arm.coordinates])
    largest = np.max([np.abs(run.tau).max(axis=0) for run in runs if len(run)], axis=0)
    # Descriptions that do not know a limit have none, or zero.
    ratio = largest / np.where(limits > 0.0, limits, np.inf)
    worst = int(np.argmax(ratio))
    if ratio[worst] <= _BEYOND:
        return []
    text = (
        f"The torque of {arm.coordinate_names[worst]} reaches {largest[worst]:.3g}, "
        f"{ratio[worst]:.2g} times the limit in its description "
        f"({limits[worst]:.3g}): it may be a current, or per cent of the rated torque. "
        "Give what each joint is to be multiplied by in a mapping ([torque] scale), or "
        "correct the limit."
    )
    return [EstimateWarning("beyond-limit", text)]


def _is_poor(error: Float[np.ndarray, " dof"]) -> bool:
    worst = np.sort(error)[::-1]
    return bool(worst[0] > _POOR[0] or (worst.size > 1 and worst[1] > _POOR[1]))


def _late(problem: Problem, system: SampledSystem) -> list[EstimateWarning]:
    """A lag beyond those that are looked for when samples are prepared."""
    now = system.errors(system.torque)
    # A drift that is named was compared with one lag for all already.
    for reading in reversed(other_clocks(problem, system)):
        better = score(reading.errors) - score(now)
        if 1.0 - np.exp(2.0 * better) > _EXPLAINS:
            return [reading.warning]
    return []


def _bursts(problem: Problem, rows: WhitenedRows) -> list[EstimateWarning]:
    """Stretches of time in which a torque departs far more than elsewhere."""
    dof = rows.torque.shape[0]
    residual = np.where(_may_stick(rows), 0.0, rows.residual.reshape(dof, -1))
    counts = np.maximum(np.bincount(rows.stretch, minlength=STRETCHES), 1)
    power = np.stack([np.bincount(rows.stretch, e**2, STRETCHES) for e in residual])
    size = np.sqrt(np.mean(rows.torque**2, axis=1))
    density = power / counts
    typical = np.maximum(np.median(density, axis=1), 1e-300)
    ratio = density / typical[:, None]
    # Far from usual, a good part of the torque itself, and most of what is left over.
    is_burst = (ratio > _BURST) & (np.sqrt(density) > 0.2 * size[:, None])
    is_most = (power * is_burst).sum(axis=1) > 0.5 * power.sum(axis=1)
    is_burst &= is_most[:, None]
    if not is_burst.any() or is_burst.any(axis=0).sum() > STRETCHES // 4:
        return []
    largest = int(np.argmax(np.where(is_burst, ratio, 0.0)))
    joint, stretch = divmod(largest, STRETCHES)
    rows_there = np.flatnonzero(rows.stretch == stretch)
    times = np.concatenate([run.time[index] for run, index in rows.samples])
    name = problem.columns.arm.coordinate_names[joint]
    cause = "a push, a contact or a fault. Leave that part out."
    if not problem.friction_candidates and not problem.columns.friction:
        cause = (
            "a push, a contact, a fault, or friction that was not tried. Leave that "
            'part out, or try friction "auto".'
        )
    return [
        EstimateWarning(
            "burst",
            f"Around {times[rows_there].mean():.3g} s the torque of {name} departs "
            f"{np.sqrt(ratio[joint, stretch]):.0f} times further from the model than "
            f"elsewhere: {cause}",
        )
    ]


# Judgement: what a low-pass leaves of a joint that sticks is slower than this.
_SLOW = 0.05
"""Fraction of a joint's top speed below which it may stick."""


def _may_stick(rows: WhitenedRows) -> np.ndarray:
    """Rows (joint by joint) whose residual a joint that sticks would leave.

    At rest friction has any value up to its limit: what is left over is less than
    Coulomb friction, once more with its sign the other way.
    """
    estimate, speed = rows.estimate, np.abs(rows.motion.qd.T)
    arm = estimate.prior_arm
    coulomb = estimate.parameters[arm.layout.drive("coulomb")][list(arm.coordinates)]
    top = np.percentile(speed, 99.5, axis=1, keepdims=True)
    error = np.abs(rows.residual.reshape(speed.shape)) * rows.std[:, None]
    return np.asarray((speed < _SLOW * top) & (error < 2.0 * coulomb[:, None]))


# The same rows twice: logs named twice, or validated on themselves.

# Judgement: rows of two logs that agree in every digit of every joint are copies.
_COPIED = 0.05
"""Fraction of a log's rows that must be in another for the two to overlap."""


def without_copies(
    arm: Arm, data: Any, validation: Any
) -> tuple[Any, Any, list[EstimateWarning]]:
    """Take logs that are given twice once, and say what the logs themselves show.

    Args:
        arm: The arm.
        data: Samples or recordings, one run or several.
        validation: The same, or None.

    Returns:
        The data with every log once, the validation data, and warnings.
    """
    runs = [
        # What was read for an arm has been mended then.
        repaired(run, arm) if isinstance(run, Recording) and not run.arm else run
        for run in _listed(data)
    ]
    others = _listed(validation)
    logs = [run for run in runs if isinstance(run, Recording)]
    warnings = [warning for log in logs for warning in suspicions(log, arm)]
    prints = [_fingerprint(run) for run in runs]
    single: list[int] = []
    for k, own in enumerate(prints):
        copy = max((_overlap(own, prints[i]) for i in single), default=0.0)
        # A whole copy adds nothing; a part of one is kept, and said.
        if copy < 1.0 - _COPIED:
            single.append(k)
        if copy > _COPIED:
            what = "counts once" if k not in single else "counts twice in part"
            warnings.append(
                EstimateWarning(
                    "same-log-twice",
                    f"{_source(runs[k], k)} repeats {100 * copy:.0f} % of another log "
                    f"of the fit and {what}. Name every log once.",
                )
            )
    for k, other in enumerate(others):
        own = _fingerprint(other)
        copy = max((_overlap(own, one) for one in prints), default=0.0)
        if copy > _COPIED:
            warnings.append(
                EstimateWarning(
                    "validated-on-fit",
                    f"{_source(other, k)} is validated on, but {100 * copy:.0f} % of "
                    "its rows were fitted: the error says nothing about other motion. "
                    "Validate on another log.",
                )
            )
    return [runs[k] for k in single], validation, warnings


def _listed(data: Any) -> list[Any]:
    if data is None:
        return []
    return [data] if isinstance(data, Samples | Recording) else list(data)


def _source(run: Any, k: int) -> str:
    return run.source if isinstance(run, Recording) else f"Run {k + 1}"


def _fingerprint(run: Any) -> np.ndarray:
    """A number for every row that no other row of the log shares."""
    if isinstance(run, Recording):
        names = [f"{s}_{j + 1}" for s in ("q", "tau") for j in range(run.count(s))]
        if len({run[name].time.size for name in names}) != 1:
            names = [name for name in names if name.startswith("q_")]
        columns = [run[name].values for name in names]
    elif isinstance(run, Samples):
        columns = [*run.q.T, *run.tau.T]
    else:
        return np.zeros(0, np.uint64)
    if not columns or len({c.size for c in columns}) != 1:
        return np.zeros(0, np.uint64)
    total = np.zeros(columns[0].size, np.uint64)
    for k, column in enumerate(columns):
        bits = np.ascontiguousarray(column, dtype=float).view(np.uint64)
        # An odd multiplier a column, wrapping around: a plain multiplicative hash.
        total ^= (bits + np.uint64(k)) * np.uint64(0x9E3779B97F4A7C15 + 2 * k)
        total = (total << np.uint64(7)) ^ (total >> np.uint64(9))
    values, counts = np.unique(total, return_counts=True)
    # At rest rows repeat themselves, and coarse ones also in other logs.
    return np.asarray(values[counts == 1])


def _overlap(rows: np.ndarray, others: np.ndarray) -> float:
    if not rows.size or not others.size:
        return 0.0
    return float(np.isin(rows, others).mean())


# What may deviate, as columns.


@dataclass(frozen=True, eq=False)
class _Hypothesis:
    """Something that may be wrong, and the torque of one unit of it.

    Attributes:
        kind: Which test it belongs to.
        column: Its torque, whitened.
        text: Says what it means, from its estimate.
    """

    kind: str
    column: Float[np.ndarray, " rows"]
    text: Callable[[float], EstimateWarning]


def _deviations(
    problem: Problem, estimate: Estimate, rows: WhitenedRows, system: SampledSystem
) -> list[EstimateWarning]:
    """Name the one deviation that explains most, if it is sure, large and needed."""
    hypotheses = _hypotheses(problem, estimate, rows)
    columns = rows.unexplained(np.stack([h.column for h in hypotheses], axis=1))
    best: tuple[float, EstimateWarning] | None = None
    for hypothesis, column in zip(hypotheses, columns.T, strict=True):
        value, std, explained = _outcome(column, rows)
        least, most = _SIZES[hypothesis.kind]
        if not (abs(value) > _SURE * std and least < abs(value) < most):
            continue
        if hypothesis.kind == "gravity":
            # Far from its described size a straight line is a poor guide.
            factor, explained = _gravity_factor(problem, system.thinned(2))
            value = factor - 1.0
        # Where noise is most of what is left over, certainty must do.
        is_certain = abs(value) > _CERTAIN * std and explained > 0.02
        is_named = explained > _EXPLAINS or is_certain
        if is_named and (best is None or explained > best[0]):
            best = explained, hypothesis.text(value)
    return [] if best is None else [best[1]]


def _outcome(column: np.ndarray, rows: WhitenedRows) -> tuple[float, float, float]:
    """Estimate of one more unknown, its standard error, and what it explains."""
    power = float(column @ column)
    size = float(np.sum(rows.residual**2))
    if power <= 1e-20 or size <= 0.0:
        return 0.0, np.inf, 0.0
    value = float(column @ rows.residual) / power
    unexplained = rows.residual - value * column
    dof = rows.torque.shape[0]
    products = (column * unexplained).reshape(dof, -1).sum(axis=0)
    squares = (column**2).reshape(dof, -1).sum(axis=0)
    scores = np.bincount(rows.stretch, products, STRETCHES)
    fractions = np.bincount(rows.stretch, squares, STRETCHES) / power
    variance = jackknife_covariance(
        scores[:, None], fractions[:, None, None], np.array([[power**-0.5]])
    )
    return (
        value,
        float(np.sqrt(variance[0, 0])),
        1.0 - float(np.sum(unexplained**2)) / size,
    )


def _hypotheses(
    problem: Problem, estimate: Estimate, rows: WhitenedRows
) -> list[_Hypothesis]:
    return [
        *_gains(problem, rows),
        *_offsets(problem, rows),
        *_gravity(problem, estimate, rows),
        *_between_logs(problem, estimate, rows),
    ]


def _gains(problem: Problem, rows: WhitenedRows) -> list[_Hypothesis]:
    """A factor on the torque of one joint."""
    hypotheses = []
    torque = rows.torque.reshape(-1)
    explained = (torque - rows.residual).reshape(rows.torque.shape)
    names = problem.columns.arm.coordinate_names
    for i, name in enumerate(names):
        column = np.zeros(rows.torque.shape)
        column[i] = explained[i]

        def text(value: float, name: str = name) -> EstimateWarning:
            return EstimateWarning(
                "torque-gain",
                f"The torque of {name} is {100 * (1 + value):.0f} % of what the other "
                "joints' torques ask for: its torque constant or gear ratio is off. "
                "Correct its scale, or calibrate it (armwise calibrate-torques).",
            )

        hypotheses.append(_Hypothesis("gain", column.reshape(-1), text))
    return hypotheses if len(names) > 1 else []


def _offsets(problem: Problem, rows: WhitenedRows) -> list[_Hypothesis]:
    """An encoder that is off by a constant angle."""
    arm = problem.columns.arm
    hypotheses = []
    for j, index in enumerate(arm.coordinates):
        # A sliding joint's offset moves no torque but through what lies beyond it;
        # descriptions rarely say where its zero is.
        if not arm.joints[index].is_revolute:
            continue
        column = rows.slopes[:, j]
        name = arm.coordinate_names[j]

        def text(value: float, name: str = name) -> EstimateWarning:
            return EstimateWarning(
                "encoder-offset",
                f"The torques fit better if {name} stood {np.degrees(value):+.1f}° "
                "from where its encoder says: its zero is off, or the description's. "
                "Calibrate it (armwise calibrate), or correct the offset.",
            )

        hypotheses.append(_Hypothesis("offset", column, text))
    return hypotheses


def _gravity(
    problem: Problem, estimate: Estimate, rows: WhitenedRows
) -> list[_Hypothesis]:
    """Gravity of another direction or size."""
    gravity = np.asarray(estimate.prior_arm.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        return []
    # Two directions across gravity, from a basis of its own: any will do.
    across = np.linalg.svd(gravity[None, :])[2][1:]
    hypotheses = []
    for direction in across:
        torque = _gravity_torque(estimate, size * direction, rows.motion.q)

        def tilted(value: float) -> EstimateWarning:
            return EstimateWarning(
                "gravity-direction",
                f"The torques fit better if gravity were {np.degrees(abs(value)):.0f}° "
                "or so from where the description has it: the arm is mounted at a "
                "tilt. Describe gravity in the frame of its base.",
            )

        hypotheses.append(_Hypothesis("tilt", rows.whitened(torque), tilted))
    torque = _gravity_torque(estimate, gravity, rows.motion.q)

    def scaled(value: float) -> EstimateWarning:
        factor = 1.0 + value
        return EstimateWarning(
            "gravity-size",
            f"Inertia and gravity disagree: gravity would have to be "
            f"{factor * size:.3g} m/s². The time stamps run {factor**-0.5:.2g} times "
            f"too long, or the description is of an arm {factor:.2g} times this "
            "one's size. Check both.",
        )

    return [*hypotheses, _Hypothesis("gravity", rows.whitened(torque), scaled)]


def _gravity_factor(problem: Problem, system: SampledSystem) -> tuple[float, float]:
    """Factor on gravity that fits best, and what it explains of the residual."""
    arm = problem.columns.arm
    pairs = zip(problem.data, system.rows, strict=True)
    q = np.vstack([run.q[rows] for run, rows in pairs])
    static = Dynamics(arm, backend="numpy").regressor(q, 0.0 * q, 0.0 * q)
    weight = np.zeros((*static.shape[:2], len(problem.base.indices)))
    for k, index in enumerate(problem.base.indices):
        if index < arm.layout.size and arm.layout.is_inertial[index]:
            weight[:, :, k] = static[:, :, index]

    def misfit(factor: float) -> float:
        columns = system.regressor + (factor - 1.0) * weight.transpose(1, 0, 2)
        changed = replace(system, regressor=columns)
        return score(changed.errors(system.torque))

    # Judgement: time ten times too fast or too slow is caught by its speeds.
    factors = np.geomspace(0.05, 20.0, 41)
    scores = [misfit(float(factor)) for factor in factors]
    best = int(np.argmin(scores))
    # The mean log of amplitudes, as a fraction of power.
    explained = 1.0 - float(np.exp(2.0 * (scores[best] - misfit(1.0))))
    return float(factors[best]), explained


def _gravity_torque(
    estimate: Estimate, gravity: np.ndarray, q: np.ndarray
) -> Float[np.ndarray, "samples dof"]:
    # NumPy: another direction is another program, and compiling takes longer.
    turned = Dynamics(estimate.arm.with_gravity(gravity), backend="numpy")
    return np.asarray(turned.gravity_torque(q))


def _between_logs(
    problem: Problem, estimate: Estimate, rows: WhitenedRows
) -> list[_Hypothesis]:
    """A load or friction that one log, or one half, has and the others have not."""
    count = int(rows.log.max(initial=0)) + 1
    # Judgement: with more logs than six a fleet's tools are the better ones.
    if count > 6:
        return []
    if count == 1:
        parts = {"second half of the log": rows.stretch >= STRETCHES // 2}
    else:
        parts = {f"log number {k + 1}": rows.log == k for k in range(1, count)}
    names = [problem.base.names[k] for k in problem.base.indices]
    own = len(problem.columns.arm.parameter_names)
    is_friction = np.array(
        [
            name.endswith((".viscous", ".coulomb")) or index >= own
            for name, index in zip(names, problem.base.indices, strict=True)
        ]
    )
    friction = rows.regressor @ np.where(is_friction, estimate.base_values, 0.0)
    load = _load_columns(problem, rows)
    hypotheses = []
    for where, mask in parts.items():

        def changed(value: float, where: str = where) -> EstimateWarning:
            return EstimateWarning(
                "friction-changed",
                f"Friction in the {where} is {100 * (1 + value):.0f} % of what it is "
                "elsewhere: cold and warm gears, or another robot. Identify the logs "
                "apart, or warm up before recording.",
            )

        column = (friction * mask).reshape(-1)
        hypotheses.append(_Hypothesis("friction", column, changed))
        hypotheses += _changed_load(problem, rows, load * mask[:, None], where)
    return hypotheses


def _load_columns(problem: Problem, rows: WhitenedRows) -> np.ndarray:
    """Torque of mass and first moments on the last link, joint by joint."""
    columns = load_torques(problem.columns, problem.data[0], rows.motion)
    weighted = columns * (rows.trust / rows.std)[:, :, None]
    return np.asarray(weighted.transpose(1, 0, 2))


def _changed_load(
    problem: Problem, rows: WhitenedRows, columns: np.ndarray, where: str
) -> list[_Hypothesis]:
    """The best load in one part of the data, as one column."""
    flat = columns.reshape(-1, columns.shape[-1])
    unexplained = rows.unexplained(flat)
    moments = np.linalg.lstsq(unexplained, rows.residual, rcond=1e-9)[0]
    mass = float(moments[0])
    total = sum(link.inertia.mass for link in problem.columns.arm.links)
    if abs(mass) < LEAST_LOAD * total:
        return []

    def changed(value: float) -> EstimateWarning:
        more = "more" if mass > 0 else "less"
        return EstimateWarning(
            "load-changed",
            f"In the {where} the arm carries {abs(mass):.2g} kg {more} than elsewhere. "
            "Identify with one load at a time; a load itself with identify-load.",
        )

    return [_Hypothesis("load", flat @ moments, changed)]
