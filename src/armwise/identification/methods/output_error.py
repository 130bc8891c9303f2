"""Output error: parameters whose simulated motion, in its control loop, is the log's.

The arm's controller is known: τ = Kₚ (r − q) + K_r ṙ − K_d v of the reference r, v the
velocity q̇ as a controller's filter shows it, a little late: q̇ − T q̈. Along
a motion s near the simulated one the arm's equation leaves ε = Y(s) β − τ(s), and the
simulated motion is away from s by δ, with M δ̈ + D δ̇ + K δ = −ε, where K and D are the
controller's stiffness and damping and the arm's own. So what is left of the measured
motion, q − s − δ, is linear in β: the equation's error through the loop's compliance.
Solved first along the measured motion, then along the one simulated with what was found
(quasi-linearisation), which has no noise in its accelerations. Measured torques only
give the first guess, and are compared with the result.
How late the controller's torque comes, held for half of its period at least, is fitted
beside the parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification.methods.least_squares import Method, solve_weighted
from armwise.identification.methods.physical import PhysicallyConsistent
from armwise.identification.problem import Problem
from armwise.recordings import Samples
from armwise.regression import (
    STRETCHES,
    Solution,
    StretchScores,
    residual_std,
    torque_slope,
    triangle,
)

if TYPE_CHECKING:
    from jaxtyping import Float

# A controller that knows velocities 3 ms late leaves a twentieth, and parameters would
# be off by a tenth; what integrates or compensates friction leaves more. Noise of a
# poor torque sensor leaves a fiftieth.
_UNEXPLAINED = 0.03
"""Fraction of a joint's torque that may be no PD controller's, to take its gains."""

# Judgement: a fit to other rows leaves a few per cent more of a joint's torque.
_CONTRADICTED = 1.2
"""Ratio of a joint's residual torque to that of the fit to torques from which on these
contradict the simulated motion."""

# Judgement: a radian for a thousandth of a parameter's unit, and of the torque.
_RUNAWAY = 1e6
"""Response in [rad] to a unit, or to the torque, from which on a loop is unstable."""

_STEP = 1e-6
"""Difference in [rad], [m] or per [s] by which torques are differentiated: the error of
rounding, 1e-10 of a torque, is that of the next order."""


@dataclass(frozen=True)
class OutputError:
    """Minimise the error of the motion that the arm has in its control loop.

    The log needs what was asked for, `reference_q_1` … or `command_1` … in [rad].
    Gains that are not given are read off its torques, and refused where these are no PD
    controller's.

    Attributes:
        stiffness: Kₚ of each joint, or of all, in [N m/rad] or [N/m].
        damping: K_d of each joint, or of all, in [N m s/rad] or [N s/m].
        reference_damping: K_r, what multiplies the reference's velocity, in the same
            unit; as `damping` if None.
        velocity_lag: T in [s], by which the controller knows velocities late: 1/(2π f)
            of a low-pass of f behind differences of positions.
        iterations: How often motion and parameters are found in turn.
        method: How to solve behind the simulation.
    """

    stiffness: tuple[float, ...] | float | None = None
    damping: tuple[float, ...] | float | None = None
    reference_damping: tuple[float, ...] | float | None = None
    velocity_lag: float = 0.0
    # The second is along the simulated motion; a third changes a thousandth of it.
    iterations: int = 2
    method: Method = field(default_factory=PhysicallyConsistent)

    def __post_init__(self) -> None:
        if self.iterations < 1:
            raise ArgumentError("iterations is at least 1.")
        if (self.stiffness is None) != (self.damping is None):
            raise ArgumentError("Give stiffness and damping, or neither.")
        if self.stiffness is None and self.reference_damping is not None:
            raise ArgumentError("reference_damping needs stiffness and damping.")
        if not 0.0 <= self.velocity_lag < np.inf:
            raise ArgumentError(f"A lag is positive, not {self.velocity_lag} s.")

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        if not problem.data:
            raise NotIdentifiable(
                "Output error needs samples, of which only sums are here, as of a "
                "fleet. Identify the robots one by one."
            )
        for run in problem.data:
            if run.reference is None:
                raise NotIdentifiable(
                    "Output error needs the motion that was asked for: columns "
                    "reference_q_1 …, or command_1 … in rad, for every joint and all "
                    "the time. Record them, or map them: --column reference_q_1=NAME."
                )
        loop = self._loop(problem)
        first = PhysicallyConsistent().solve(problem)
        solution, motions = first, [_Motion.measured(run) for run in problem.data]
        for _ in range(self.iterations):
            tangents = _Tangents(problem, loop, solution)
            factors, count = _factors(tangents, motions)
            late = _late(factors, problem.prior_base, count)
            systems = [_on_time(factor, late) for factor in factors]
            posed = _MotionProblem.of(problem, systems)
            solution = self.method.solve(posed)
            scores = _scores(tangents, motions, solution, late)
            delay = float(late[-1] - late[:-1] @ solution.values)
            motions = [tangents.moved(m, solution.values, delay) for m in motions]
        before, after = (
            residual_std(systems, values, count)
            for values in (first.values, solution.values)
        )
        said = _notes(problem, loop, before, after, solution, delay)
        torques, samples = problem.systems(), problem.accumulator.samples
        least, torque_std = (
            residual_std(torques, values, samples, 1e-12)
            for values in (first.values, solution.values)
        )
        contradicted = torque_std > _CONTRADICTED * least
        if contradicted.any():
            # As if a stretch of the log had moved the parameters by the difference.
            information = np.linalg.pinv(solution.sensitivity, hermitian=True)
            apart = information @ (first.values - solution.values)
            scores = np.vstack([scores, apart])
            arm = problem.columns.arm
            names = ", ".join(np.array(arm.coordinate_names)[contradicted])
            said += (
                f"The measured torque of {names} contradicts this: the controller or "
                "friction where it reverses is not as simulated. Intervals reach as "
                "far as the parameters that fit the torques.",
            )
        notes = (*solution.notes, *said)
        return replace(solution, scores=scores, torque_std=torque_std, notes=notes)

    def _loop(self, problem: Problem) -> _Loop:
        """The controller as it was given, or as the log's torques show it."""
        dof = problem.columns.arm.dof
        if self.stiffness is None or self.damping is None:
            return _Loop.of_log(problem, self.velocity_lag)
        parts = [self.stiffness, self.damping]
        names = ["stiffness", "damping", "reference_damping"]
        further = self.reference_damping
        parts.append(self.damping if further is None else further)
        gains = []
        for name, value in zip(names, parts, strict=True):
            gain = np.asarray(value, dtype=float)
            if gain.shape not in ((), (dof,)):
                raise ArgumentError(
                    f"{name} is a number or one for each of {dof} joints, not "
                    f"{gain.size} of them."
                )
            gains.append(np.broadcast_to(gain, dof))
        if not (np.isfinite(gains).all() and np.min(gains) >= 0 and gains[0].min() > 0):
            raise ArgumentError(
                "A controller's stiffness is positive, its damping not negative, and "
                "both are finite."
            )
        return _Loop(gains[0], gains[1], gains[2], self.velocity_lag)


@dataclass(frozen=True, eq=False)
class _Loop:
    """A PD controller.

    Attributes:
        stiffness, damping, reference_damping: Its gains, joint by joint.
        velocity_lag: How late it knows velocities in [s].
        spread: For each joint, roots of the covariance of its gains, one a row, if
            they were read off the log's torques; None if they were given.
    """

    stiffness: Float[np.ndarray, " dof"]
    damping: Float[np.ndarray, " dof"]
    reference_damping: Float[np.ndarray, " dof"]
    velocity_lag: float
    spread: Float[np.ndarray, "dof roots 3"] | None = None

    @classmethod
    def of_log(cls, problem: Problem, velocity_lag: float) -> _Loop:
        """Read the gains off the torques, or say why they cannot be."""
        names = problem.columns.arm.coordinate_names
        parts = [_signals(run, velocity_lag) for run in problem.data]
        signals = np.concatenate(parts, axis=1)
        torques = np.concatenate([run.tau for run in problem.data])
        gains, spread = [], []
        for j, name in enumerate(names):
            Y, tau = (
                np.vstack([signals[..., j], np.ones(len(torques))]).T,
                torques[:, j],
            )
            gain, *_ = np.linalg.lstsq(Y, tau, rcond=None)
            residual = tau - Y @ gain
            size = max(float(np.linalg.norm(tau)), 1e-300)
            unexplained = float(np.linalg.norm(residual)) / size
            if unexplained > _UNEXPLAINED or gain[0] <= 0.0:
                raise NotIdentifiable(
                    f"The torque of {name} is no PD controller's of its reference "
                    f"({100 * unexplained:.2g} % are something else). Give the "
                    "controller's stiffness and damping (--stiffness, --damping), and "
                    "the lag of its velocities."
                )
            # No controller's damping drives.
            gains.append(np.maximum(gain[:3], 0.0))
            # Their scatter over stretches of the log, as that of the parameters.
            stretches = np.array_split(np.arange(len(tau)), STRETCHES)
            scores = np.array([Y[part].T @ residual[part] for part in stretches])
            moved = np.linalg.lstsq(Y.T @ Y, scores.T, rcond=None)[0]
            spread.append(moved[:3].T)
        Kp, Kd, Kr = np.array(gains).T
        return cls(Kp, Kd, Kr, velocity_lag, np.array(spread))

    def torque(self, motion: _Motion) -> Float[np.ndarray, "samples dof"]:
        """What the controller asks for along a motion in [N m]."""
        gains = (self.stiffness, self.damping, self.reference_damping)
        signals = _signals(motion.samples, self.velocity_lag)
        return np.asarray(np.einsum("mj,mkj->kj", gains, signals))

    def doubts(self, samples: Samples) -> Float[np.ndarray, "samples dof doubts"]:
        """What the torque would be off by where its gains are, each on its own."""
        if self.spread is None:
            return np.zeros((*samples.q.shape, 0))
        # As many as there are gains: the roots' own roots.
        roots = np.stack([np.linalg.qr(x, mode="r") for x in self.spread])
        signals = _signals(samples, self.velocity_lag)
        torques = np.einsum("jrm,mkj->kjr", roots, signals)
        dof, count = samples.dof, roots.shape[1]
        doubts = np.zeros((len(samples), dof, dof, count))
        doubts[:, np.arange(dof), np.arange(dof)] = torques
        return doubts.reshape(len(samples), dof, -1)


@dataclass(frozen=True, eq=False)
class _Motion:
    """A motion near the simulated one, and how far the measured one is from it.

    Attributes:
        samples: The motion, in place of the measured one.
        ahead: Measured less its position.
    """

    samples: Samples
    ahead: Float[np.ndarray, "samples dof"]

    @classmethod
    def measured(cls, samples: Samples) -> _Motion:
        """The measured motion itself."""
        return cls(samples, np.zeros(samples.q.shape))


def _signals(
    samples: Samples, velocity_lag: float
) -> Float[np.ndarray, "3 samples dof"]:
    """What a controller's gains multiply: r − q, −v and ṙ."""
    reference = samples.reference
    assert reference is not None
    late = samples.qd - velocity_lag * samples.qdd
    return np.stack([reference - samples.q, -late, _rate(samples, reference)])


def _rate(samples: Samples, values: np.ndarray) -> Float[np.ndarray, "samples dof"]:
    """Time derivative of even samples, segment by segment, by five points."""
    return torque_slope(replace(samples, tau=values))


class _Tangents:
    """Response of the arm in its loop to errors of its equation, along motions."""

    def __init__(self, problem: Problem, loop: _Loop, solution: Solution) -> None:
        self.problem, self.loop = problem, loop
        columns = problem.columns
        parameters = solution.parameters
        if parameters is None:
            parameters = problem.parameters(solution.values)
        own = parameters[: columns.arm.parameters.size].copy()
        # What turns over at once has no derivative.
        own[columns.arm.layout.drive("coulomb")] = 0.0
        self._dynamics = Dynamics(columns.arm.with_parameters(own))
        # As `Problem.leaders`, but no torque is read here that could be late.
        self._leaders = columns.user[:, list(problem.base.indices)]
        self._fixed = columns.user @ np.where(problem.is_estimated, 0.0, problem.prior)
        self._leaders[columns.lags], self._fixed[columns.lags] = 0.0, 0.0

    def rows(
        self, motion: _Motion
    ) -> Iterator[Float[np.ndarray, "rows dof base+doubts+2"]]:
        """Deviation of the simulated motion for a unit of each base parameter, for each
        doubt about the controller, for a torque a second late, and for nothing of that,
        block by block; [rad] or [m].
        """
        for _, position, _ in self._responses(motion):
            yield position

    def moved(self, motion: _Motion, values: np.ndarray, delay: float) -> _Motion:
        """The motion simulated with base parameters, and a delay in [s]."""
        q, qd = motion.samples.q.copy(), motion.samples.qd.copy()
        for rows, position, velocity in self._responses(motion):
            unknowns = np.zeros(position.shape[-1])
            unknowns[: len(values)], unknowns[-2:] = values, (delay, 1.0)
            q[rows] += position @ unknowns
            qd[rows] += velocity @ unknowns
        samples = motion.samples
        ahead = motion.ahead + samples.q - q
        simulated = replace(samples, q=q, qd=qd, qdd=_rate(samples, qd))
        return _Motion(simulated, ahead)

    def _responses(
        self, motion: _Motion
    ) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        columns, samples = self.problem.columns, motion.samples
        torque, step = self.loop.torque(motion), 1.0 / samples.rate_hz
        slope, doubts = _rate(samples, torque), self.loop.doubts(samples)
        base, starts = self._leaders.shape[1], set(samples.starts)
        width = base + doubts.shape[2] + 2
        state = np.zeros((2, columns.arm.dof, width))
        before: tuple[np.ndarray, ...] | None = None
        for block in columns.blocks([samples]):
            rows = block.rows
            errors = np.empty((block.count, columns.arm.dof, width))
            pairs = zip(columns.support, block.joints, strict=True)
            for j, (support, matrix) in enumerate(pairs):
                errors[:, j, :base] = (self._leaders[support].T @ matrix[:-1]).T
                prescribed = self._fixed[support] @ matrix[:-1]
                errors[:, j, -2] = slope[rows, j]
                errors[:, j, -1] = prescribed - torque[rows, j]
            errors[..., base:-2] = doubts[rows]
            if block.trust is not None:
                # Where friction reverses nothing is known: the motion is as measured.
                errors *= block.trust[:, :, None]
            loops = self._linearised(samples, rows)
            out = np.empty((2, *errors.shape))
            for k in range(block.count):
                now = (*(part[k] for part in loops), errors[k])
                if rows.start + k in starts or before is None:
                    # A simulation begins where the measured motion does.
                    state = np.zeros(state.shape)
                else:
                    state = _advanced(state, before, now, step)
                out[:, k], before = state, now
            if not np.abs(out).max(initial=0.0) < _RUNAWAY * (
                1.0 + np.abs(torque).max()
            ):
                raise NotIdentifiable(
                    f"{columns.arm.name} runs away in this control loop: its gains, or "
                    "velocity_lag, are not the controller's."
                )
            yield rows, out[0], out[1]

    def _linearised(
        self, samples: Samples, rows: slice
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Mass matrix, damping and stiffness of arm and controller, row by row.

        As if the controller knew velocities at once: that they are late is in its
        torque, and a response that is nearly right only takes a step more.
        """
        q, qd, qdd = samples.q[rows], samples.qd[rows], samples.qdd[rows]
        dynamics, dof = self._dynamics, samples.dof
        mass = dynamics.mass_matrix(q)
        damping, stiffness = np.empty((2, len(q), dof, dof))
        for j in range(dof):
            d = np.zeros(dof)
            d[j] = _STEP
            for matrix, low, high in (
                (stiffness, (q - d, qd, qdd), (q + d, qd, qdd)),
                (damping, (q, qd - d, qdd), (q, qd + d, qdd)),
            ):
                change = dynamics.inverse_dynamics(*high)
                change = change - dynamics.inverse_dynamics(*low)
                matrix[..., j] = change / (2.0 * _STEP)
        diagonal = np.arange(dof)
        damping[:, diagonal, diagonal] += self.loop.damping
        stiffness[:, diagonal, diagonal] += self.loop.stiffness
        return mass, damping, stiffness


def _advanced(
    state: np.ndarray,
    before: tuple[np.ndarray, ...],
    now: tuple[np.ndarray, ...],
    step: float,
) -> np.ndarray:
    """Position and velocity one sample later, by the implicit midpoint rule.

    Stable for any step; and a loop faster than the samples is followed as far as they
    show it.
    """
    mass, damping, stiffness, error = (
        0.5 * (a + b) for a, b in zip(before, now, strict=True)
    )
    position, velocity = state
    drag = 0.5 * damping + 0.25 * step * stiffness
    push = (mass / step - drag) @ velocity - stiffness @ position - error
    later = np.linalg.solve(mass / step + drag, push)
    return np.stack([position + 0.5 * step * (velocity + later), later])


@dataclass(frozen=True, eq=False)
class _MotionProblem(Problem):
    """A problem whose rows are positions of a simulated motion, not torques.

    Attributes:
        rows_of_motion: Per joint, rows [A, b] of its position.
    """

    rows_of_motion: tuple[np.ndarray, ...] = ()

    @classmethod
    def of(cls, problem: Problem, systems: Sequence[np.ndarray]) -> _MotionProblem:
        """Put other rows in place of a problem's torques."""
        own = {f.name: getattr(problem, f.name) for f in fields(Problem)}
        return cls(**own, rows_of_motion=tuple(systems))

    def systems(self, accumulator: object = None) -> list[np.ndarray]:
        """Per joint, rows [A, b]; whatever torques were accumulated."""
        return list(self.rows_of_motion)


def _factors(
    tangents: _Tangents, motions: Sequence[_Motion]
) -> tuple[list[Float[np.ndarray, "rows base+2"]], float]:
    """Per joint, R of rows [A, delay, b]; how many samples."""
    width, dof = tangents.problem.base.count + 2, tangents.problem.columns.arm.dof
    factors = [np.zeros((width, width)) for _ in range(dof)]
    for block, _ in _equations(tangents, motions):
        for j in range(dof):
            factors[j] = triangle(np.vstack([factors[j], block[:, j]]))
    return factors, float(sum(len(m.samples) for m in motions))


def _late(
    factors: Sequence[np.ndarray], prior: np.ndarray, count: float
) -> Float[np.ndarray, " base+1"]:
    """The delay that fits best beside base parameters β: the last entry − c β.

    As `Problem.lag_profile`: put in its place, β and delay are fitted together.
    """
    plain = [np.delete(factor, -2, axis=1) for factor in factors]
    # Two rounds: these weights need no more digits.
    std = solve_weighted(plain, prior, count, 2).torque_std
    pairs = list(zip(factors, plain, std, strict=True))
    squares = sum(float(f[:, -2] @ f[:, -2]) / d**2 for f, _, d in pairs)
    # No torque that changes: nothing can be late.
    if squares == 0.0:
        return np.zeros(plain[0].shape[1])
    return np.asarray(sum(f[:, -2] @ p / d**2 for f, p, d in pairs) / squares)


def _on_time(rows: np.ndarray, late: np.ndarray) -> np.ndarray:
    """Rows [A, b] of rows [A, delay, b], the delay put in its place."""
    return np.asarray(np.delete(rows, -2, axis=-1) - rows[..., -2, None] * late)


def _equations(
    tangents: _Tangents, motions: Sequence[_Motion]
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows [A, delay, b] of every joint, and of the controller's doubts, by blocks."""
    base = tangents.problem.base.count
    for motion in motions:
        first = 0
        for response in tangents.rows(motion):
            doubts = response[..., base:-2]
            rows = np.concatenate([response[..., :base], response[..., -2:]], axis=-1)
            part = slice(first, first + len(rows))
            rows[..., -1] = motion.ahead[part] - response[..., -1]
            first = part.stop
            yield rows, doubts


def _scores(
    tangents: _Tangents,
    motions: Sequence[_Motion],
    solution: Solution,
    late: Float[np.ndarray, " base+1"],
) -> Float[np.ndarray, "stretches base"]:
    """Gradient of the cost over stretches of the log, and of the loop's doubts."""
    count = sum(len(m.samples) for m in motions)
    sums = StretchScores(count, tangents.problem.base.count)
    unknowns = np.append(-solution.values, 1.0)
    doubtful: np.ndarray | float = 0.0
    for every, doubts in _equations(tangents, motions):
        rows = _on_time(every, late)
        errors = (rows @ unknowns) / solution.torque_std**2
        weighed = doubts / solution.torque_std[:, None] ** 2
        doubtful = doubtful + np.einsum("kjb,kjd->db", rows[..., :-1], weighed)
        for row, part in sums.parts(len(rows)):
            sums.values[row] += np.einsum("kjb,kj->b", rows[part, :, :-1], errors[part])
    # A doubt moves the parameters as a stretch of the log does.
    return np.concatenate([sums.values, np.asarray(doubtful)])


def _notes(
    problem: Problem,
    loop: _Loop,
    before: np.ndarray,
    after: np.ndarray,
    solution: Solution,
    delay: float,
) -> tuple[str, ...]:
    """What the simulated motion says of the fit to torques, and of the torques."""
    arm = problem.columns.arm
    units = ["mrad" if arm.joints[i].is_revolute else "mm" for i in arm.coordinates]
    names = arm.coordinate_names
    figures = ", ".join(
        f"{name} {1e3 * a:.3g} ({1e3 * b:.3g}) {unit}"
        for name, a, b, unit in zip(names, after, before, units, strict=True)
    )
    source = "as given" if loop.spread is None else "read off the log's torques"
    notes = [
        "Simulated in its control loop the arm is so far from the log (in brackets: "
        f"with the parameters that fit its torques): {figures}.",
        f"The controller's gains are {source}: stiffness "
        f"{', '.join(f'{x:.4g}' for x in loop.stiffness)}; damping "
        f"{', '.join(f'{x:.4g}' for x in loop.damping)}; its torque comes "
        f"{1e3 * delay:.2f} ms late.",
    ]
    if loop.spread is None:
        ratios = []
        for system in problem.systems():
            predicted = system[:, :-1] @ solution.values
            power = max(float(predicted @ predicted), 1e-300)
            ratios.append(float(predicted @ system[:, -1]) / power)
        notes.append(
            "Measured torques over those of this model: "
            f"{', '.join(f'{n} {x:.3f}' for n, x in zip(names, ratios, strict=True))}."
        )
    return tuple(notes)
