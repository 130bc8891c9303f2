"""Other readings of a log: signs, orders, units and clocks that would fit far better.

Evaluated on some rows from all over the data, so that many can be tried.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import Dynamics
from armwise.errors import EstimateWarning
from armwise.identification.sampled_rows import (
    SampledSystem,
    logs_of,
    orthonormal,
    sampled_slices,
)
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.estimate import Estimate
    from armwise.identification.problem import Problem
    from armwise.regression import Columns

READINGS = frozenset(
    {
        "torque-sign-flipped", "position-sign-flipped", "torques-swapped",
        "positions-swapped", "joint-order", "joint-in-degrees", "logs-disagree",
    }
)  # fmt: skip
"""Codes of warnings that a column is not what it was taken for."""

BETTER = 0.5
"""Fraction to which another reading of the columns must bring the residual."""


# Columns read in other ways.


@dataclass(frozen=True, eq=False)
class _Reading:
    """Another way to read the log, and how well it fits.

    Attributes:
        errors: Relative error of each joint.
        warning: What it means.
        before: Errors as the log was read, of the same rows; None: all of the system's.
    """

    errors: Float[np.ndarray, " dof"]
    warning: EstimateWarning
    before: Float[np.ndarray, " dof"] | None = None

    def gain(self, now: Float[np.ndarray, " dof"]) -> float:
        """What it takes off the score; zero unless it mends the fit."""
        before = now if self.before is None else self.before
        # Fewer rows may be easier to explain as they were read, too.
        if (
            max(self.errors.max() / now.max(), self.errors.max() / before.max())
            > BETTER
        ):
            return 0.0
        return score(before) - score(self.errors)


def read_otherwise(problem: Problem, system: SampledSystem) -> EstimateWarning | None:
    """Try signs, orders, units and delays; name the one that mends the fit."""
    now = system.errors(system.torque)
    pairs = _pairs(now)
    readings = [
        *_other_torques(problem, system, pairs),
        *_scales_of_logs(problem, system, now),
        *other_clocks(problem, system),
        *_other_gravity(problem, system),
        *_other_positions(problem, pairs),
    ]
    best = max(readings, key=lambda one: one.gain(now), default=None)
    return best.warning if best is not None and best.gain(now) > 0.0 else None


def score(errors: np.ndarray) -> float:
    """Mean log of the joints' errors: all count alike."""
    return float(np.log(np.maximum(errors, 1e-6)).mean())


# Judgement: an exchange spoils the two joints most, and those beside them less.
_WORST = 4
"""Joints of the largest error; of many joints, one of these is exchanged."""


def _pairs(errors: Float[np.ndarray, " dof"]) -> list[tuple[int, int]]:
    """Joints that may have been exchanged: any two, of up to eight."""
    pairs = combinations(range(errors.size), 2)
    worst = set(np.argsort(-errors)[:_WORST].tolist())
    return [pair for pair in pairs if errors.size <= 8 or worst & set(pair)]


def _other_torques(
    problem: Problem, system: SampledSystem, pairs: Sequence[tuple[int, int]]
) -> list[_Reading]:
    """Torques with other signs, or exchanged."""
    names = problem.columns.arm.coordinate_names
    readings = []
    for i, name in enumerate(names):
        torque = system.torque.copy()
        torque[i] *= -1.0
        text = f"The fit is far better with the torque of {name} reversed. Check its "
        text += "sign (mapping: scale = -1)."
        warning = EstimateWarning("torque-sign-flipped", text)
        readings.append(_Reading(system.errors(torque), warning))
    for i, j in pairs:
        torque = system.torque.copy()
        torque[[i, j]] = torque[[j, i]]
        text = f"The fit is far better with the torques of {names[i]} and {names[j]} "
        text += "exchanged. Check the order of the columns."
        warning = EstimateWarning("torques-swapped", text)
        readings.append(_Reading(system.errors(torque), warning))
    return readings


# Judgement: below, a warm gear or another load; those are named by tests of their own.
_OTHER_SCALE = 1.5
"""Factor between two logs' torques from which on one of them is in another unit."""


def _scales_of_logs(
    problem: Problem, system: SampledSystem, errors: Float[np.ndarray, " dof"]
) -> list[_Reading]:
    """One log's torque of one joint, multiplied: it is in another unit there."""
    log = logs_of(problem, system.rows)
    names = problem.columns.arm.coordinate_names
    readings: list[_Reading] = []
    # Judgement: with more logs than six a fleet's tools are the better ones.
    if not 1 < log.max(initial=0) + 1 <= 6:
        return readings
    for i in np.argsort(-errors)[:_WORST]:
        for k in range(int(log.max()) + 1):
            torque = system.torque.copy()
            column = np.zeros((*torque.shape, 1))
            column[i, log == k, 0] = -torque[i, log == k]
            torque[i, log == k] = 0.0
            factor = system.coefficient(torque, column)
            # Of a log without a part in what moves the joint, any factor will do.
            if not max(factor, 1.0 / max(factor, 1e-9)) > _OTHER_SCALE:
                continue
            torque[i] -= factor * column[i, :, 0]
            text = f"The fit is far better with the torque of {names[i]} in log number "
            text += f"{k + 1} multiplied by {factor:.3g}: the logs are in different "
            text += "units there. Give the log a mapping of its own, or leave it out."
            warning = EstimateWarning("logs-disagree", text)
            readings.append(_Reading(system.errors(torque), warning))
    return readings


def other_clocks(problem: Problem, system: SampledSystem) -> list[_Reading]:
    """Torques that come earlier or later, or more and more so."""
    count = system.trust.shape[0]
    lags, tables = _lag_errors(problem, system, np.zeros(count, dtype=int))
    if not lags.size:
        return []
    best = int(np.argmin([score(errors) for errors in tables[0]]))
    # Judgement: shorter ones were found and taken out before.
    is_late = abs(lags[best]) > 0.04
    text = f"The torque is {1e3 * lags[best]:.0f} ms behind the position, beside what "
    text += "was taken out. Shift it, or record both on one clock."
    late = _Reading(tables[0][best], EstimateWarning("large-lag", text))
    lags, tables = _lag_errors(problem, system, np.arange(count) * 3 // count)
    nearest = [int(np.argmin([score(e) for e in table])) for table in tables]
    first, last = (float(lags[nearest[k]]) for k in (0, -1))
    own = np.mean([t[k] for t, k in zip(tables, nearest, strict=True)], axis=0)
    common = np.min(np.mean(tables, axis=0).max(axis=1))
    readings = [late] if is_late else []
    # Judgement: two thirds of a log apart, 40 ms are more than one lag's error. Thirds
    # fitted apart fit better in any case; only the lags' part of it counts.
    if abs(last - first) > 0.04 and own.max() < BETTER * common:
        text = "The clocks of torque and position drift apart: the lag goes from "
        text += f"{1e3 * first:.0f} to {1e3 * last:.0f} ms. Record both on one clock."
        readings.append(_Reading(own, EstimateWarning("clocks-drift", text)))
    return readings


def _lag_errors(
    problem: Problem, system: SampledSystem, part: np.ndarray
) -> tuple[np.ndarray, list[list[np.ndarray]]]:
    """Lags in [s], and each joint's error at each of them, part by part."""
    rate = problem.data[0].rate_hz
    # Judgement: 0.6 s either way, in steps of 30 ms or one sample.
    step = max(1, round(0.03 * rate))
    reach = round(0.6 * rate) // step
    shifts = step * np.arange(-reach, reach + 1)
    if min(len(run) for run in problem.data) < 4 * abs(shifts).max():
        return np.zeros(0), []
    tables = []
    shifted = np.stack([_shifted(problem, system, int(k)) for k in shifts], axis=2)
    for k in np.unique(part):
        rows = part == k
        weight = system.trust.T[:, rows]
        sizes = np.linalg.norm(system.torque[:, rows] * weight, axis=1)
        weight = weight / np.maximum(sizes, 1e-12)[:, None]
        columns = system.regressor[:, rows] * weight[:, :, None]
        basis = orthonormal(columns.reshape(-1, columns.shape[2]))
        torque = shifted[:, rows] * weight[:, :, None]
        flat = torque.reshape(-1, shifts.size)
        remainder = (flat - basis @ (basis.T @ flat)).reshape(torque.shape)
        size = np.maximum(np.linalg.norm(torque, axis=1), 1e-12)
        tables.append([*(np.linalg.norm(remainder, axis=1) / size).T])
    return shifts / rate, tables


def _shifted(problem: Problem, system: SampledSystem, shift: int) -> np.ndarray:
    """Torques so many samples later, at the system's rows; held at the ends."""
    parts = []
    for run, rows in zip(problem.data, system.rows, strict=True):
        parts.append(run.tau[np.clip(rows + shift, 0, len(run) - 1)])
    return np.vstack(parts).T


def _other_gravity(problem: Problem, system: SampledSystem) -> list[_Reading]:
    """Gravity of any direction: what it does across its own is fitted apart."""
    arm = problem.columns.arm
    gravity = np.asarray(arm.gravity, dtype=float)
    size = float(np.linalg.norm(gravity))
    if size == 0.0:
        return []
    pairs = zip(problem.data, system.rows, strict=True)
    q = np.vstack([run.q[rows] for run, rows in pairs])
    still = np.zeros_like(q)
    inertial = [k for k, is_one in enumerate(arm.layout.is_inertial) if is_one]
    columns = []
    for direction in np.linalg.svd(gravity[None, :])[2]:
        turned = Dynamics(arm.with_gravity(size * direction), backend="numpy")
        regressor = turned.regressor(q, still, still)[:, :, inertial]
        columns.append(regressor.transpose(1, 0, 2))
    across = np.concatenate(columns[1:], axis=2)
    text = "The fit is far better if gravity may point elsewhere: the arm is mounted "
    text += "at a tilt. Describe gravity in the frame of its base."
    warning = EstimateWarning("gravity-direction", text)
    return [_Reading(system.errors(system.torque, across), warning)]


def _other_positions(
    problem: Problem, pairs: Sequence[tuple[int, int]]
) -> list[_Reading]:
    """Joints in another order, with or without their torques; one in degrees."""
    arm = problem.columns.arm
    names = arm.coordinate_names
    readings = []
    # Stretches from all over the log, one after another: whole logs would be copied
    # for every order that is tried.
    total = sum(len(run) for run in problem.data)
    short = [
        Samples.concatenate([run[rows] for rows in sampled_slices(len(run), total)])
        for run in problem.data
    ]

    def errors_of(data: Sequence[Samples]) -> np.ndarray:
        system = SampledSystem.of(problem, data, thin=4)
        return system.errors(system.torque)

    before = errors_of(short)

    def read(data: Sequence[Samples], code: str, text: str) -> None:
        warning = EstimateWarning(code, text)
        readings.append(_Reading(errors_of(data), warning, before))

    for i, j in pairs:
        order = np.arange(arm.dof)
        order[[i, j]] = [j, i]
        pair = f"{names[i]} and {names[j]}"
        text = f"The fit is far better with {pair} exchanged. Check the order of the "
        text += "columns: name them by joint (q_NAME)."
        read([_reordered(run, order, True) for run in short], "joint-order", text)
        text = f"The fit is far better with the positions of {pair} exchanged. Check "
        text += "the order of the columns."
        data = [_reordered(run, order, False) for run in short]
        read(data, "positions-swapped", text)
    if arm.dof > 2:  # of two joints, it is an exchange
        backwards = np.arange(arm.dof)[::-1]
        text = "The fit is far better with the joints in reverse order, the last one "
        text += "first. Check the order of the columns: name them by joint (q_NAME)."
        data = [_reordered(run, backwards, True) for run in short]
        read(data, "joint-order", text)
    alphabet = np.argsort(np.argsort(names))
    if not np.array_equal(alphabet, np.arange(arm.dof)):
        text = "The fit is far better if the joints are in the alphabetical order of "
        text += "their names, as ROS drivers publish them. Name the columns by joint."
        data = [_reordered(run, alphabet, True) for run in short]
        read(data, "joint-order", text)
    for j, index in enumerate(arm.coordinates):
        scale = np.ones(arm.dof)
        scale[j] = -1.0
        text = f"The fit is far better with the position of {names[j]} reversed. Check "
        text += "its sign (mapping: scale = -1 under [position])."
        reversed_one = [_scaled(run, scale) for run in short]
        read(reversed_one, "position-sign-flipped", text)
        if not arm.joints[index].is_revolute:
            continue
        scale = np.ones(arm.dof)
        scale[j] = np.pi / 180.0
        text = f"The fit is far better if {names[j]} is in degrees. Head its column "
        text += "with its unit: [deg]."
        read([_scaled(run, scale) for run in short], "joint-in-degrees", text)
    return readings


def _reordered(run: Samples, order: np.ndarray, with_torque: bool) -> Samples:
    """The samples with their joints in another order."""
    resolution = run.preparation.speed_resolution
    shuffled = tuple(resolution[k] for k in order) if resolution else ()
    return replace(
        run,
        q=run.q[:, order],
        qd=run.qd[:, order],
        qdd=run.qdd[:, order],
        tau=run.tau[:, order] if with_torque else run.tau,
        preparation=replace(run.preparation, speed_resolution=shuffled),
    )


def _scaled(run: Samples, scale: np.ndarray) -> Samples:
    """The samples with other units of their positions."""
    resolution = np.asarray(run.preparation.speed_resolution)
    scaled = tuple((resolution * scale).tolist()) if resolution.size else ()
    return replace(
        run,
        q=run.q * scale,
        qd=run.qd * scale,
        qdd=run.qdd * scale,
        preparation=replace(run.preparation, speed_resolution=scaled),
    )


# Columns that contradict friction, whatever else would fit them.

# Judgement: Coulomb friction of the wrong sign has -1, viscous friction -0.9.
_PUSHES = -0.6
"""Cosine of unexplained torque and direction of motion below which it pushes along."""

# Judgement: a hundred rows are beyond the ninety-ninth percentile.
_ROWS = 10_000
"""Rows from all over the logs that are looked at: sorting all of a long log would take
as long as a fit."""


def stride_over(runs: Sequence[Sized]) -> int:
    """Return every how manieth row of some runs is enough for a look at them."""
    return max(1, sum(len(run) for run in runs) // _ROWS)


def pushed_along(estimate: Estimate, least: float) -> list[EstimateWarning]:
    """Name joints that most of their torque would push along, as no friction does.

    Of a wrist's torque most is friction, which no other joint shows: with the wrong
    sign a fit of bodies and brakes has nothing left to explain it by.

    Args:
        estimate: With its samples.
        least: Relative error of a joint from which on it is asked.
    """
    if not np.any(estimate.fit.relative_error > least):
        return []
    runs = [run for run in estimate.samples if len(run)]
    some = [run[:: stride_over(runs)] for run in runs]
    errors = np.concatenate([run.tau - estimate.predict(run) for run in some])
    ways = np.sign(np.concatenate([run.qd for run in some]))
    sizes = np.linalg.norm(errors, axis=0) * np.linalg.norm(ways, axis=0)
    cosines = np.sum(errors * ways, axis=0) / np.maximum(sizes, 1e-300)
    is_pushed = (cosines < _PUSHES) & (estimate.fit.relative_error > least)
    if not is_pushed.any():
        return []
    arm = estimate.prior_arm
    names = ", ".join(arm.coordinate_names[j] for j in np.flatnonzero(is_pushed))
    text = (
        f"The torque of {names} pushes the way it moves, where friction brakes. Check "
        "its sign (mapping: scale = -1)."
    )
    return [EstimateWarning("torque-sign-flipped", text)]


LEAST_LOAD = 0.02
"""Change of the load between logs that matters, as a fraction of the arm's mass."""

# Judgement: friction that is wrong looks like a load in part; half of it does not.
_IS_LOAD = 0.5
"""Part of the squared errors of validation that a load must explain."""


def load_torques(
    columns: Columns, samples: Samples, motion: Samples
) -> Float[np.ndarray, "samples dof moments"]:
    """Torque in [N m] of mass and first moments, one of each, on the last link.

    Args:
        columns: Of the arm.
        samples: What the columns explain.
        motion: Where the arm is, and how it moves.
    """
    layout, count = columns.arm.layout, len(columns.arm.links)
    first = layout.link(count - 1).start
    # Torque is linear in the parameters: a column is the torque of one of them alone.
    units = np.eye(layout.size)[first : first + 4]
    torques = [columns.link_torque(samples, unit) for unit in units]
    own = [torque(motion.q, motion.qd, motion.qdd) for torque in torques]
    return np.stack(own, axis=2)


def other_load(estimate: Estimate) -> list[EstimateWarning]:
    """Say that the arm carries another load in validation, if that explains most."""
    runs = [run for run in estimate.validation_samples if len(run)]
    if not runs:
        return []
    arm, columns = estimate.prior_arm, estimate.columns
    std = np.maximum(estimate.torque_std, 1e-12)
    errors, loads, torques = [], [], []
    for run in [run[:: stride_over(runs)] for run in runs]:
        torques.append(estimate.predict(run) / std)
        errors.append(run.tau / std - torques[-1])
        loads.append(load_torques(columns, run, run) / std[:, None])
    error = np.concatenate(errors).reshape(-1)
    load = np.concatenate(loads).reshape(len(error), -1)
    moments = np.linalg.lstsq(load, error, rcond=1e-9)[0]
    unexplained = float(np.sum((error - load @ moments) ** 2))
    is_load = unexplained < (1.0 - _IS_LOAD) * float(error @ error)
    # Torques in another unit, of one joint or of all, look like a load in part.
    each, own = np.concatenate(errors), np.concatenate(torques)
    shared, squares = np.sum(each * own, axis=0), np.sum(own**2, axis=0)
    factors = [
        *(shared**2 / np.maximum(squares, 1e-300)),
        shared.sum() ** 2 / max(squares.sum(), 1e-300),
    ]
    is_load &= unexplained < float(error @ error) - float(max(factors))
    mass, total = float(moments[0]), sum(link.inertia.mass for link in arm.links)
    if not is_load or abs(mass) < LEAST_LOAD * total:
        return []
    more = "more" if mass > 0 else "less"
    text = (
        f"In validation the arm carries some {abs(mass):.2g} kg {more} than in the "
        "fit: identify-load says how much. Validate with the load of the fit."
    )
    return [EstimateWarning("load-changed", text)]
