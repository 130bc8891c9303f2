"""Search for gains and offsets: descents from many starts, impossible arms rejected.

The cost over gains and offsets has many minima: joints turned half round, mirrored
arms. `SearchRegion` says where a solution may be and spreads starting points over it,
`search` descends from the best of them, and `defect_of` rejects what no arm can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.refine import descend
from armwise.calibration.structure import Structure
from armwise.calibration.variable_projection import (
    ProjectedProblem,
    Projector,
    SensorPoint,
)
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.progress import Progress
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

_MOST_DESCENTS = 60
"""Starting points that are followed, the best of hundreds: a descent costs some tens of
evaluations, ranking a start only one."""

_HITS = 3
"""Times a minimum must be reached: by chance the lowest of many minima is hit once."""

_MIRROR_FACTOR = 10.0
"""Factor in cost up to which a mirror image is worth a descent: images are near, not
exact, solutions, since friction and offsets of torque do not mirror."""

_SAME = 2e-3
"""Minima closer than this, in [rad] and relative gain, are the same: far above what a
descent's tolerance leaves, far below the distance of two minima."""

_SMALLEST_TURN = 0.1
"""Angle in [rad] (or [m]) a joint moved by at least, when nothing else is known: less
would not bend gravity's cosine by more than half a per cent."""

_LARGEST_TURN = 2.0 * np.pi
"""Angle in [rad] a joint without limits moved by at most."""


@dataclass(frozen=True, eq=False)
class Minimum:
    """Where descents ended.

    Attributes:
        problem: The problem there.
        defect: Why no arm can be like this; None if one can.
        hits: From how many starting points it was reached.
        is_mirrored: Whether its mirror images were tried.
    """

    problem: ProjectedProblem
    defect: str | None
    hits: int = 1
    is_mirrored: bool = False


def search(
    projector: Projector,
    region: SearchRegion,
    starts: Sequence[SensorPoint],
    is_sought: Bool[np.ndarray, " unknowns"],
    good: float,
    progress: Progress | None = None,
) -> list[Minimum]:
    """Descend from one start after another; return the minima, lowest first.

    Starts of lowest cost go first. It ends when the lowest minimum that an arm can have
    explains the torques well and was reached several times, or after many descents.

    Args:
        projector: Poses problems of a few samples.
        region: Where a minimum may be.
        starts: Where to begin.
        is_sought: Which unknowns to move.
        good: Cost per torque below which an explanation is a good one.
        progress: Called with the step and the fraction that is done.
    """
    minima: list[Minimum] = []
    ranked = sorted(starts, key=projector.cost)[:_MOST_DESCENTS]

    def follow(start: SensorPoint) -> None:
        # A millionth is enough here: `refine` converges fully, on all samples.
        end = descend(projector, start, is_sought, None, 1e-6, region.is_outside)
        _add(minima, projector, region, end)

    for i, start in enumerate(ranked):
        if progress is not None:
            progress("searching", i / len(ranked))
        follow(start)
        best = minima[0]
        if best.hits < _HITS or best.problem.mean_cost > good:
            continue
        if best.defect is not None and not best.is_mirrored:
            minima[0] = replace(best, is_mirrored=True)
            for image in near_images(projector, region, best.problem):
                follow(image)
        if any(m.defect is None and m.problem.mean_cost < good for m in minima):
            break
    return minima


def lowest(minima: list[Minimum]) -> Minimum | None:
    """The lowest minimum that an arm can have."""
    possible = (m for m in minima if m.defect is None)
    return min(possible, key=lambda m: m.problem.cost, default=None)


def is_same(a: SensorPoint, b: SensorPoint) -> bool:
    """Whether two points are one but for whole turns and rounding."""
    return _is_near(a, b, _SAME)


def near_images(
    projector: Projector,
    region: SearchRegion,
    solution: ProjectedProblem,
    reverses: bool = True,
) -> list[SensorPoint]:
    """Images of a minimum that explain the torques nearly as well."""
    points = region.images(solution.point, reverses)
    images = [(projector.cost(p), p) for p in points]
    # One more per torque: a perfect fit has no cost to take multiples of.
    limit = _MIRROR_FACTOR * solution.cost + solution.rows
    near = [x for x in images if x[0] < limit]
    return [p for _, p in sorted(near, key=lambda x: x[0])]


def _add(
    minima: list[Minimum],
    projector: Projector,
    region: SearchRegion,
    new: ProjectedProblem,
) -> None:
    for k, old in enumerate(minima):
        if is_same(old.problem.point, new.point):
            lower = min(old.problem, new, key=lambda p: p.cost)
            minima[k] = replace(old, problem=lower, hits=old.hits + 1)
            break
    else:
        defect = region.defect(new.point) or defect_of(projector, new)
        minima.append(Minimum(new, defect))
    minima.sort(key=lambda m: m.problem.cost)


@dataclass(frozen=True, eq=False)
class SearchRegion:
    """Gains and offsets that are possible.

    Attributes:
        guess: The user's first guess, or the middle.
        low, high: Smallest and largest |α| of each joint.
        offset_range: How far offsets may be from the guess in [rad].
        span: Range of each sensor's readings.
        is_sign_unknown: Whether gains may have either sign.
    """

    guess: SensorPoint
    low: Float[np.ndarray, " dof"]
    high: Float[np.ndarray, " dof"]
    offset_range: float
    span: Float[np.ndarray, " dof"]
    is_sign_unknown: bool

    @classmethod
    def from_guess(
        cls,
        structure: Structure,
        sensed: Samples,
        alpha: ArrayLike | None = None,
        beta: ArrayLike | None = None,
        gain_range: float | None = None,
        offset_range: float = np.pi,
    ) -> SearchRegion:
        """Combine a guess, if there is one, with the limits of the joints.

        Args:
            structure: The arm, whose limits bound the gains.
            sensed: Samples in the sensors' units.
            alpha, beta: The guess, if there is one.
            gain_range: Factor between the guess and the gain.
            offset_range: Distance between the guess and the offset in [rad].
        """
        if (gain_range or 1.0) < 1.0 or offset_range < 0.0:
            raise ArgumentError(
                "gain_range must be at least 1 and offset_range positive."
            )
        n, span = structure.arm.dof, np.maximum(np.ptp(sensed.q, axis=0), 1e-9)
        offsets = np.zeros(n) if beta is None else _joint_numbers(beta, n, "beta")
        low, high = _SMALLEST_TURN / span, _largest_turn(structure) / span
        if alpha is None and not structure.gains_known:
            middle = SensorPoint(np.sqrt(low * high), offsets)
            return cls(middle, low, high, offset_range, span, True)
        gains = _joint_numbers(1.0 if alpha is None else alpha, n, "alpha")
        if not np.all(gains):
            raise ArgumentError("A sensor's gain alpha cannot be zero.")
        # 30 % covers potentiometers and amplifiers as they are made.
        factor = 1.0 if structure.gains_known else gain_range or 1.3
        size = np.abs(gains)
        if factor > 2.0:  # a wild guess: the joints' limits say more
            low, high = np.maximum(low, size / factor), np.minimum(high, size * factor)
        else:
            low, high = size / factor, size * factor
        return cls(SensorPoint(gains, offsets), low, high, offset_range, span, False)

    def points(self, count: int, seed: int) -> list[SensorPoint]:
        """The guess, then points spread evenly; of either sign where it is unknown."""
        gains, turns, coins = self._spread(count, seed)
        signs = np.where(coins < 0.5, -1.0, 1.0) if self.is_sign_unknown else 1.0
        gains = gains * signs * np.sign(self.guess.alpha)
        spread = zip(gains, self.guess.beta + turns, strict=True)
        return [self.guess, *(SensorPoint(a, b) for a, b in spread)]

    def reversed_points(self, count: int, seed: int) -> list[SensorPoint]:
        """Points with one sensor that counts backwards, then any number of them."""
        gains, turns, coins = self._spread(count, seed)
        n, guess_signs = self.span.size, np.sign(self.guess.alpha)
        points = []
        for k, (gain, turn) in enumerate(zip(gains, turns, strict=True)):
            signs = np.where(coins[k] < 0.5, -1.0, 1.0)
            if k % 2:
                # One reversed sensor is the likeliest mistake: half the points.
                signs = np.ones(n)
                signs[(k // 2) % n] = -1.0
            points.append(
                SensorPoint(gain * signs * guess_signs, self.guess.beta + turn)
            )
        return points

    def images(self, point: SensorPoint, reverses: bool = True) -> list[SensorPoint]:
        """Points of nearly the same gravity torques: joints turned half round or over.

        An arm that hangs where it should stand, or is seen in a mirror, is explained by
        bodies that cannot exist; the arm itself is then one of these.

        Args:
            point: What they are images of, first among them.
            reverses: Whether sensors may count backwards, too.
        """
        n = point.beta.size
        mirrors = [-np.ones(n), *(1.0 - 2.0 * np.eye(n))] if reverses else []
        signs = [np.ones(n), *mirrors]
        turns = [np.zeros(n), *np.eye(n)]
        turns += [turns[i] + turns[j] for j in range(1, n + 1) for i in range(1, j)]
        return [
            SensorPoint(point.alpha * sign, point.beta * sign + np.pi * turn)
            for sign in signs
            for turn in turns
        ]

    def defect(self, point: SensorPoint) -> str | None:
        """Say why a point is not possible, if it is not.

        Half as far again as the stated range is allowed: a range is a guess, and a
        descent that ends just outside of it is better reported than lost.
        """
        size = np.abs(point.alpha)
        turn = np.abs(np.angle(np.exp(1j * (point.beta - self.guess.beta))))
        if self.offset_range < np.pi and np.any(turn > 1.5 * self.offset_range + 0.1):
            return "an offset would be far beyond its range"
        if np.any(size < self.low / 1.5):
            return "a joint would hardly turn at all"
        if np.any(size > 1.5 * self.high):
            return "a joint would turn beyond all its limits"
        return None

    def clipped(self, point: SensorPoint) -> SensorPoint:
        """A point with its gains brought into their range."""
        size = np.clip(np.abs(point.alpha), self.low, self.high)
        return replace(point, alpha=np.sign(point.alpha) * size)

    def is_outside(self, point: SensorPoint) -> bool:
        """Whether a point is not possible."""
        return self.defect(point) is not None

    def _spread(self, count: int, seed: int) -> tuple[np.ndarray, ...]:
        """|α|, turns from the guess, and a coin to toss, each (count, dof)."""
        n, size = self.span.size, max(1, count)
        # Gains are spread evenly on a logarithmic scale.
        unit = _unit_points(3 * n, int(np.ceil(np.log2(size))), seed)[:size]
        gains = self.low * (self.high / self.low) ** unit[:, :n]
        turns = (2.0 * unit[:, n : 2 * n] - 1.0) * self.offset_range
        return gains, turns, unit[:, 2 * n :]


@cache
def _unit_points(
    dimensions: int, power: int, seed: int
) -> Float[np.ndarray, "points dimensions"]:
    """Sobol's points in a unit cube, more evenly spread than random ones.

    They come in powers of two.
    """
    from scipy.stats import qmc

    return np.asarray(qmc.Sobol(dimensions, seed=seed).random_base2(power))


def _largest_turn(structure: Structure) -> Float[np.ndarray, " dof"]:
    """The most a joint can have moved in [rad] or [m]: half as far again as limited."""
    arm = structure.arm
    reach = 1.5 * (arm.limits("upper") - arm.limits("lower"))
    return np.where(np.isfinite(reach) & (reach > 0.0), reach, _LARGEST_TURN)


def _joint_numbers(numbers: ArrayLike, n: int, name: str) -> np.ndarray:
    values = np.asarray(numbers, dtype=float)
    if values.ndim > 1 or values.size not in (1, n) or not np.isfinite(values).all():
        raise ArgumentError(f"{name} needs {n} finite numbers, one for each joint.")
    return np.broadcast_to(values, (n,)).copy()


# Starts from the masses in the description.

_DESCRIBED_SAMPLES = 60
"""Samples that the described masses are compared on: a few for each unknown."""

_DESCRIBED_STARTS = 8192
"""Points that are ranked with the described masses: one costs an inverse dynamics of
those samples, a hundredth of what it costs with the masses eliminated."""

_SCANNED, _SWEEPS = 16, 3
"""How many of them are improved by turning one joint after another all round, and how
often: the best of thousands is within a joint or two of the right one."""

_TURNS = np.linspace(-np.pi, np.pi, 32, endpoint=False)
"""Turns that are tried, steps of 11°: gravity's cosine is smooth over that."""

_STRETCHES = np.geomspace(0.6, 1.6, 9)
"""Factors of a gain that are tried, steps of 13 %."""

_POLISHED, _DESCRIBED_KEPT = 6, 4
"""How many are then followed downhill, and how many minima are passed on: an arm has a
handful of postures of similar gravity torques."""


def described_points(
    projector: Projector,
    region: SearchRegion,
    is_sought: Bool[np.ndarray, " unknowns"],
    seed: int,
) -> list[SensorPoint]:
    """Points at which the described masses explain the torques best, best first.

    With all masses eliminated many postures explain the torques about equally well;
    with masses a third off only the right one does. None where there are no masses.

    Args:
        projector: Poses problems of a few samples.
        region: Where a point may be.
        is_sought: Which gains to move; offsets are all moved.
        seed: Of the points that are tried.
    """
    few = projector.thinned(max(1, len(projector.sensed) // _DESCRIBED_SAMPLES))
    described = DescribedMasses.of(few)
    if described is None:
        return []
    # With described masses every offset shows, that of the last link as well.
    is_moved, n = is_sought.copy(), projector.sensed.dof
    is_moved[-n:] = True
    gains = is_moved[:-n] if is_moved.size > n else np.zeros(n, dtype=bool)
    points = region.points(_DESCRIBED_STARTS, seed)
    alpha = np.where(gains, [p.alpha for p in points], region.guess.alpha)
    beta = np.array([p.beta for p in points])
    best = np.argsort(described.costs(alpha, beta))[:_SCANNED]
    scanned = [described.scanned(alpha[k], beta[k], region, is_moved) for k in best]
    scanned.sort(key=lambda x: x[0])
    minima: list[tuple[float, SensorPoint]] = []
    for _, start in scanned[:_POLISHED]:
        # A third of a radian: both would roll into the same minimum.
        if any(_is_near(start, other, 0.3) for _, other in minima):
            continue
        end = described.polished(start, is_moved)
        # A hundredth: one and the same minimum.
        if not any(_is_near(end[1], other, 0.01) for _, other in minima):
            minima.append(end)
    minima.sort(key=lambda x: x[0])
    # Masses that are off pull gains along, but hardly the posture.
    inside = [region.clipped(p) for _, p in minima]
    return [p for p in inside if not region.is_outside(p)][:_DESCRIBED_KEPT]


@dataclass(frozen=True, eq=False)
class DescribedMasses:
    """Torques of the described masses beside the measured ones.

    Attributes:
        projector: Holds the samples and their weights.
        bodies: The described arm, without its drives.
        bases: Per joint, an orthonormal basis of what is not described: constant
            torque, friction, rotor inertia.
        weights: Of each torque.
    """

    projector: Projector
    bodies: Dynamics
    bases: tuple[Float[np.ndarray, "samples 4"], ...]
    weights: Float[np.ndarray, "samples dof"]

    @classmethod
    def of(cls, projector: Projector) -> DescribedMasses | None:
        """None where the description has no masses."""
        arm, sensed = projector.structure.arm, projector.sensed
        parameters = np.where(arm.layout.is_inertial, arm.parameters, 0.0)
        if not np.any(parameters):
            return None
        weights = projector.mask.weights(slice(0, len(sensed)))
        bases = []
        for j in range(sensed.dof):
            speed = sensed.qd[:, j]
            columns = np.stack(
                [np.ones_like(speed), np.sign(speed), speed, sensed.qdd[:, j]], axis=1
            )
            bases.append(np.linalg.qr(columns * weights[:, j : j + 1])[0])
        dynamics = Dynamics(arm.with_parameters(parameters))
        return cls(projector, dynamics, tuple(bases), weights / projector.torque_std)

    def costs(
        self,
        alpha: Float[np.ndarray, "points dof"],
        beta: Float[np.ndarray, "points dof"],
    ) -> Float[np.ndarray, " points"]:
        """Sums of squares of what the described masses leave, point by point."""
        costs = np.empty(len(alpha))
        # Some megabytes at a time.
        for start in range(0, len(alpha), 128):
            part = slice(start, start + 128)
            unexplained = self._residuals(alpha[part], beta[part])
            costs[part] = np.sum(unexplained**2, axis=(1, 2))
        return costs

    def _residuals(
        self, alpha: np.ndarray, beta: np.ndarray
    ) -> Float[np.ndarray, "points samples dof"]:
        projector = self.projector
        sensed, count = projector.sensed, len(alpha)
        q = sensed.q * alpha[:, None] + beta[:, None]
        qd, qdd = sensed.qd * alpha[:, None], sensed.qdd * alpha[:, None]
        flat = (x.reshape(-1, sensed.dof) for x in (q, qd, qdd))
        predicted = self.bodies.inverse_dynamics(*flat).reshape(count, -1, sensed.dof)
        error = np.subtract(sensed.tau, predicted, out=predicted)
        error *= self.weights
        for j, basis in enumerate(self.bases):
            error[:, :, j] -= (error[:, :, j] @ basis) @ basis.T
        return np.asarray(error)

    def scanned(
        self,
        alpha: Float[np.ndarray, " dof"],
        beta: Float[np.ndarray, " dof"],
        region: SearchRegion,
        is_sought: Bool[np.ndarray, " unknowns"],
    ) -> tuple[float, SensorPoint]:
        """Turn, then stretch one joint after another to where it explains most."""
        n = alpha.size
        gains = is_sought[:-n] if is_sought.size > n else np.zeros(n, dtype=bool)
        turns = _TURNS[np.abs(_TURNS) <= region.offset_range]
        cost = np.inf
        for _ in range(_SWEEPS):
            before = cost
            for j in range(n):
                if is_sought[-n:][j]:
                    trial = np.tile(beta, (turns.size, 1))
                    trial[:, j] = region.guess.beta[j] + turns
                    costs = self.costs(
                        np.repeat(alpha[None], turns.size, axis=0), trial
                    )
                    cost, beta = float(costs.min()), trial[int(costs.argmin())]
                if gains[j]:
                    trial = np.tile(alpha, (_STRETCHES.size, 1))
                    trial[:, j] *= _STRETCHES
                    size = np.abs(trial[:, j])
                    trial = trial[(size >= region.low[j]) & (size <= region.high[j])]
                    trial = np.concatenate([alpha[None], trial])
                    costs = self.costs(trial, np.tile(beta, (len(trial), 1)))
                    cost, alpha = float(costs.min()), trial[int(costs.argmin())]
            if cost >= 0.99 * before:
                break
        return cost, SensorPoint(alpha, beta)

    def polished(
        self, start: SensorPoint, is_sought: Bool[np.ndarray, " unknowns"]
    ) -> tuple[float, SensorPoint]:
        """The minimum nearest to a point, and its cost."""
        from scipy.optimize import least_squares

        def moved(x: np.ndarray) -> SensorPoint:
            step = np.zeros(is_sought.size)
            step[is_sought] = x
            return start.moved(step)

        def residual(x: np.ndarray) -> np.ndarray:
            point = moved(x)
            return self._residuals(point.alpha[None], point.beta[None]).reshape(-1)

        # A thousandth is enough: descents with free masses follow.
        end = least_squares(
            residual, np.zeros(int(is_sought.sum())), xtol=1e-3, ftol=1e-3, max_nfev=12
        )
        return float(end.cost), moved(end.x)


def _is_near(a: SensorPoint, b: SensorPoint, distance: float) -> bool:
    turn = np.angle(np.exp(1j * (a.beta - b.beta)))
    gain = a.alpha / b.alpha - 1.0
    return bool(max(np.abs(turn).max(), np.abs(gain).max()) < distance)


# Solutions that no arm can have: negative inertia, negative friction.

_NEGLIGIBLE_FRICTION = 0.05
"""Negative Coulomb friction, as a fraction of a motor's load, that is put down to
errors of the friction model."""

_ERROR_MARGIN = 10.0
"""Standard errors by which a parameter must be negative: residuals are correlated, so
that true errors are several times those of independent rows."""


def defect_of(projector: Projector, solution: ProjectedProblem) -> str | None:
    """Say why no arm has these parameters, if none has."""
    structure = projector.structure
    negative = _negative_inertia(projector, solution)
    if negative is not None:
        return f"{negative} would have a negative inertia"
    names = structure.arm.parameter_names
    upper = (solution.values + _largest_error(solution))[:-1]
    coulomb = structure.arm.layout.drive("coulomb").tolist()
    loads = dict(zip(coulomb, projector.drive_loads, strict=True))
    for k, value in zip(structure.base.indices, upper, strict=True):
        if k in loads and value < -_NEGLIGIBLE_FRICTION * loads[k]:
            return f"{names[k]} would be negative"
    sums = structure.base.matrix * structure.is_positive
    for row, value in zip(sums, upper, strict=True):
        # A sum of positive parameters with positive weights only.
        if np.any(row > 0.0) and not np.any(row < 0.0) and value < 0.0:
            return f"{names[int(np.argmax(row))]} would be negative"
    return None


def _largest_error(
    solution: ProjectedProblem, sums: Float[np.ndarray, "sums linear"] | None = None
) -> Float[np.ndarray, " sums"]:
    """How far linear unknowns, or sums of them, may be off, generously."""
    R = solution.factor[: solution.linear, : solution.linear]
    root = np.linalg.pinv(R, rcond=1e-12)
    rows = root if sums is None else sums @ root
    spread = np.linalg.norm(rows, axis=1)
    return np.asarray(_ERROR_MARGIN * spread * np.sqrt(solution.mean_cost))


def _negative_inertia(projector: Projector, solution: ProjectedProblem) -> str | None:
    """Name a joint whose mean inertia is negative beyond its error, and matters."""
    structure = projector.structure
    # Some fifty postures are enough for a mean.
    step, point = max(1, len(projector.sensed) // 50), solution.point
    q = projector.sensed.q[::step] * point.alpha + point.beta
    columns = np.stack([_inertia_columns(structure, q, j) for j in range(q.shape[1])])
    sums = np.concatenate(
        [columns[:, projector.indices], np.zeros((len(columns), 1))], axis=1
    )
    inertia = sums @ solution.values + columns @ structure.known_values
    acceleration = np.sqrt(np.mean((projector.sensed.qdd * point.alpha) ** 2, axis=0))
    # An inertia whose torque is within 3 standard deviations of the residual may have
    # any sign.
    size = np.abs(inertia) * acceleration
    matters = size > 3.0 * projector.residual_std(solution)
    is_negative = matters & (inertia + _largest_error(solution, sums) < 0.0)
    if not is_negative.any():
        return None
    return structure.arm.coordinate_names[int(is_negative.argmax())]


def _inertia_columns(
    structure: Structure, q: Float[np.ndarray, "samples dof"], j: int
) -> Float[np.ndarray, " parameters"]:
    """What each parameter adds to a joint's own inertia, on average."""
    still = np.zeros_like(q)
    unit = still.copy()
    unit[:, j] = 1.0
    dynamics = structure.dynamics
    moved, held = (dynamics.regressor(q, still, x)[:, j] for x in (unit, still))
    return np.asarray((moved - held).mean(axis=0))
