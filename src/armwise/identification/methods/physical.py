"""Physically consistent fit: least squares over pseudo-inertias inside their cone.

A primal-dual interior-point method whose every iterate is a set of bodies that can
exist, so the last one is, however far the iteration came. Nesterov and Todd's scaling
does not depend on units: a wrist of grams is treated as a shoulder of kilograms is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import InertialParameters
from armwise.errors import NotConverged
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.regression import Solution, stack, torque_size, triangle

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.identification.problem import Problem
    from armwise.regression import Accumulator

_SMALLEST_NOISE = 1e-5
"""Noise no torque is better than, relative to itself: an interior-point solver has half
of float64's digits, and sharper weights would ask for more."""

# Judgement: large enough that any friction in the data outweighs it.
_FREE = 1e4
"""How much further than its size the description of a drive may be off: friction is
hardly ever described, so that the prior must not hold it."""

# √(2·10⁻³) = 4 % of a standard deviation.
_LARGEST_GAP = 1e-3
"""How far it may stay where rounding ends the iteration, for data without noise."""

# As above; nearer to the edge faces are stiffer than Newton's step can use.
_REFIT_GAP = 1e-3
"""How far above its minimum the fit stays that others are stepped to from."""

# Some forty are usual.
_MOST_STEPS = 200
"""Steps after which the fit has not converged."""

_TRIANGLE = np.triu_indices(4)
# √2 off the diagonal makes the vector's norm the matrix's.
_WEIGHTS = np.where(_TRIANGLE[0] == _TRIANGLE[1], 1.0, np.sqrt(2.0))


@dataclass(frozen=True)
class PhysicallyConsistent:
    """Weighted least squares over pseudo-inertias that are positive definite.

    The fit itself is constrained (a semidefinite program, Wensing, Kim and Slotine
    2018); nothing is projected afterwards. Where the data leave a choice, the arm's own
    parameters decide.

    Attributes:
        margin: How far inside the cone of realisable bodies to stay, relative to a
            link's size.
        prior_std: How far a parameter of the description may be off, as a fraction.
        mass: Bounds on the mass of named links in [kg].
        center_of_mass: Bounds on the centre of mass of named links in [m]: the lower
            and the upper corner of a box in the link's frame.
        gap: How far above its minimum the cost may stay.
    """

    # Judgement: strictly inside, so that the mass matrix is positive definite; a radius
    # of gyration of 0.03 % of the link's reach. A link described as a point would be
    # given what a light joint's torque shows with more.
    margin: float = 1e-7
    prior_std: float = 1.0
    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    center_of_mass: Mapping[
        str, tuple[tuple[float, float, float], tuple[float, float, float]]
    ] = field(default_factory=dict)
    # Half the squared residual, in units of the noise: 1e-9 moves no parameter by more
    # than √(2·10⁻⁹) = 5e-5 of its standard deviation.
    gap: float = 1e-9

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        posed = _Posed.of(problem, self)
        step, _ = _minimise(*posed.rows(problem), posed.barrier, self.gap)
        parameters = posed.parameters(step)
        # The barrier leaves 1e-9 of room beyond a bound, and no tool takes friction
        # that drives.
        bounded = problem.columns.non_negative
        bounded = bounded[problem.is_estimated[bounded]]
        parameters[bounded] = np.maximum(parameters[bounded], 0.0)
        return replace(
            posed.first,
            values=problem.base.matrix @ parameters,
            parameters=parameters,
            notes=(
                "Intervals of combinations are those of the fit without constraints; "
                "those of single parameters come from draws of bodies that can exist.",
            ),
        )

    def refits(
        self, problem: Problem, others: Iterable[Accumulator]
    ) -> Iterator[Float[np.ndarray, " parameters"]]:
        """Fit other sums of the same columns, to first order about a problem's own fit.

        One of Newton's steps each, with the curvature that the cone's faces have where
        the fit touches them: a twentieth of the work of a fit from the start. Bodies
        may step out of the cone a little.

        Args:
            problem: The problem.
            others: Sums that differ a little from the problem's, such as those without
                a stretch.
        """
        posed = _Posed.of(problem, self)
        R, c = posed.rows(problem)
        x, faces = _minimise(R, c, posed.barrier, max(self.gap, _REFIT_GAP))
        # What the cost pulls with at its minimum, the faces hold.
        held = R.T @ (R @ x - c)
        for sums in others:
            R, c = posed.rows(replace(problem, accumulator=sums))
            pull = R.T @ (c - R @ x) + held
            root = triangle(np.vstack([R, faces]))
            step = np.linalg.solve(root, np.linalg.solve(root.T, pull))
            yield posed.parameters(x + step)


@dataclass(frozen=True, eq=False)
class _Posed:
    """Least squares for the step from the description, in units of sizes.

    Attributes:
        first: The fit without constraints.
        std: Noise of each joint's torque.
        prior: The description, in the unit of the torques.
        size: Of every parameter.
        pull: The prior as rows: it makes R invertible where data determine nothing.
        free: Which parameters are estimated.
        barrier: Of the bodies that can exist.
    """

    first: Solution
    std: Float[np.ndarray, " joints"]
    prior: Float[np.ndarray, " parameters"]
    size: Float[np.ndarray, " parameters"]
    pull: Float[np.ndarray, "free free+1"]
    free: np.ndarray
    barrier: _Barrier

    @classmethod
    def of(cls, problem: Problem, method: PhysicallyConsistent) -> _Posed:
        first = WeightedLeastSquares().solve(problem)
        systems = problem.systems()
        size_of_torque = torque_size(systems, problem.accumulator.samples)
        std = np.maximum(first.torque_std, _SMALLEST_NOISE * size_of_torque)
        unit, links = _unit(problem, systems), problem.columns.arm.layout.links
        prior, free = problem.prior.copy(), problem.is_estimated
        size = _sizes(problem)
        if free[links].all():
            prior[links] *= unit
            size[links] *= unit
        pull = np.diag(size / (method.prior_std * _prior_std(problem, size)))
        pull = np.pad(pull[free][:, free], ((0, 0), (0, 1)))
        barrier = _Barrier(problem, method, prior, size)
        return cls(first, std, prior, size, pull, free, barrier)

    def rows(
        self, problem: Problem
    ) -> tuple[Float[np.ndarray, "free free"], Float[np.ndarray, " free"]]:
        """R and c of the cost ½ ‖R x − c‖² of a problem's sums."""
        system = triangle(stack(problem.systems(), self.std))
        rows = system[:, :-1] @ problem.base.matrix
        right = system[:, -1:] - rows @ self.prior[:, None]
        data = np.hstack([(rows * self.size)[:, self.free], right])
        R = triangle(np.vstack([data, self.pull]))
        return R[:-1, :-1], R[:-1, -1]

    def parameters(
        self, step: Float[np.ndarray, " free"]
    ) -> Float[np.ndarray, " parameters"]:
        """Parameters that a step from the description leads to."""
        parameters = self.prior.copy()
        parameters[self.free] += self.size[self.free] * step
        return parameters


# As in the diagnosis of units: wrong inertias explain no more.
_OTHER_UNIT = 5.0
"""Ratio of measured to described torque from which on the description is scaled."""

_ALIKE = 0.9
"""Cosine above which two torques have the same course."""


def _unit(problem: Problem, systems: list[np.ndarray]) -> float:
    """Factor that brings the described bodies to the size of the torques, or 1.

    Torques in another unit (mN m), or placeholders for masses: bodies as large as the
    torques ask for would be far from the description, and its pull as strong as data.
    """
    described = problem.base.matrix @ problem.prior
    torques = [(s[:, :-1] @ described, s[:, -1]) for s in systems]
    own, measured = np.array([[np.linalg.norm(x) for x in pair] for pair in torques]).T
    products = np.array([float(x @ y) for x, y in torques])
    # Judgement: light joints are mostly friction, which descriptions rarely hold.
    is_heavy = (own > 0.1 * own.max(initial=0.0)) & (own > 0)
    # A description without bodies has torques of another course, and no unit.
    is_alike = is_heavy & (products > _ALIKE * own * measured)
    if not is_heavy.any() or 2 * is_alike.sum() <= is_heavy.sum():
        return 1.0
    ratio = float(np.median(measured[is_alike] / own[is_alike]))
    return ratio if ratio > _OTHER_UNIT else 1.0


def _sizes(problem: Problem) -> Float[np.ndarray, " parameters"]:
    """Typical size of every parameter: its own, its link's, or a small number."""
    links = problem.columns.arm.links
    sizes = []
    for link in links:
        # Judgement: a link described as empty may still turn out to weigh something;
        # 0.1 kg and 0.1 m are small for an arm. Scaling, the width of the prior and the
        # margin depend on it.
        m = max(link.inertia.mass, 0.1)
        reach = max(float(np.linalg.norm(link.inertia.center_of_mass)), 0.1)
        typical = np.array([m, *[m * reach] * 3, *[m * reach**2] * 6])
        sizes.append(np.maximum(typical, np.abs(link.inertia.vector)))
    drives = problem.prior[problem.columns.arm.layout.links.stop :]
    return np.concatenate([*sizes, np.maximum(np.abs(drives), 1.0)])


def _prior_std(problem: Problem, size: np.ndarray) -> Float[np.ndarray, " parameters"]:
    """How far the description may be off: links by their size, friction by anything."""
    std = size.copy()
    std[problem.columns.arm.layout.links.stop :] *= _FREE
    return std


class _Barrier:
    """Bodies and inequalities that a scaled step x from the description must keep.

    Each is a matrix S(x) = S₀ + Σ xₖ Eₖ that stays positive definite, or a row that
    stays positive.
    """

    def __init__(
        self,
        problem: Problem,
        method: PhysicallyConsistent,
        prior: np.ndarray,
        size: np.ndarray,
    ) -> None:
        arm, free = problem.columns.arm, problem.is_estimated
        self._width = int(free.sum())
        position = np.cumsum(free) - 1
        # The links are estimated all or not at all; bodies that are not need no cone.
        starts = arm.layout.mass[free[arm.layout.mass]]
        self._index = position[starts[:, None] + np.arange(10)]
        maps = np.stack([InertialParameters(k).pseudo_inertia for k in np.eye(10)])
        sizes = size[starts[:, None] + np.arange(10)]
        described = prior[starts[:, None] + np.arange(10)]
        bodies = np.einsum("lk,kij->lij", described, maps)
        least = self._least = method.margin * _typical_bodies(bodies, sizes)
        # In units of the link's own size, so that S is of order one.
        scale = np.sqrt(np.stack([sizes[:, 4]] * 3 + [sizes[:, 0]], axis=1))
        outer = scale[:, :, None] * scale[:, None, :]
        self._effects = np.einsum("lk,kij->lkij", sizes, maps) / outer[:, None]
        self._bodies = (bodies - least) / outer
        self._rows: list[np.ndarray] = []
        self._right: list[float] = []
        bounded = problem.columns.non_negative
        for k in bounded[free[bounded]]:
            # Friction only ever takes energy, and rotors weigh something.
            self._require({position[k]: size[k]}, prior[k], 0.0)
        if starts.size:
            pairs = zip(starts, arm.links, strict=True)
            for own, (start, link) in enumerate(pairs):
                at = self._index[own]
                vector, scaling = prior[start : start + 10], sizes[own]
                if link.name in method.mass:
                    self._bound_mass(at, vector, scaling, method.mass[link.name])
                if link.name in method.center_of_mass:
                    box = method.center_of_mass[link.name]
                    self._bound_center(at, vector, scaling, box)
        self._linear = np.array(self._rows).reshape(len(self._rows), self._width)
        self._offsets = np.array(self._right)
        self._outer, self._boxes = (
            outer,
            [
                (method.mass.get(link.name), method.center_of_mass.get(link.name))
                for link in (arm.links if starts.size else ())
            ],
        )

    @property
    def degree(self) -> int:
        """By how much the barrier falls when every S doubles, over log 2."""
        return self._bodies.shape[0] * self._bodies.shape[1] + len(self._offsets)

    def _require(
        self, entries: Mapping[int, float], value: float, bound: float
    ) -> None:
        """Σ entries·x + value ≥ bound, in units of its own size."""
        row = np.zeros(self._width)
        for k, entry in entries.items():
            row[k] = entry
        unit = max(abs(v) for v in entries.values())
        self._rows.append(row / unit)
        # A bound may leave no room at all (a mass that is known): 1e-9 is rounding.
        self._right.append((value - bound) / unit + 1e-9)

    def _bound_mass(
        self,
        at: np.ndarray,
        vector: np.ndarray,
        size: np.ndarray,
        bounds: tuple[float, float],
    ) -> None:
        self._require({at[0]: size[0]}, vector[0], bounds[0])
        self._require({at[0]: -size[0]}, -vector[0], -bounds[1])

    def _bound_center(
        self,
        at: np.ndarray,
        vector: np.ndarray,
        size: np.ndarray,
        box: tuple[tuple[float, ...], tuple[float, ...]],
    ) -> None:
        """lower · m ≤ h ≤ upper · m, linear in m and h."""
        for k in range(1, 4):
            for corner, sign in ((box[0], 1.0), (box[1], -1.0)):
                edge = corner[k - 1]
                entries = {at[k]: sign * size[k], at[0]: -sign * edge * size[0]}
                self._require(entries, sign * (vector[k] - edge * vector[0]), 0.0)

    def inside(self, best: Float[np.ndarray, " free"]) -> Float[np.ndarray, " free"]:
        """A step to bodies near the described ones that keep everything strictly.

        Drives start where the fit without constraints has them: friction is hardly ever
        described, and the cost of none would be far from the central path.

        Raises:
            NotConverged: If bounds leave no room for a realisable body.
        """
        x = best.copy()
        for i, (mass, box) in enumerate(self._boxes):
            outer = self._outer[i]
            values, vectors = np.linalg.eigh(self._bodies[i])
            # Judgement: a thousandth of the link's size is well inside, and next to
            # nothing beside the step that follows.
            body = (vectors * np.maximum(values, 1e-3)) @ vectors.T
            if mass is not None or box is not None:
                whole = body * outer + self._least[i]
                body = (_body_within(whole, mass, box) - self._least[i]) / outer
            change = (body - self._bodies[i])[_TRIANGLE]
            effects = self._effects[i][:, _TRIANGLE[0], _TRIANGLE[1]]
            x[self._index[i]] = np.linalg.solve(effects.T, change)
        slack = self.slacks(x)
        for row, value in zip(self._linear, slack, strict=True):
            # Rows of drives have one entry of one; bodies keep theirs already.
            if value < 1e-3 and np.count_nonzero(row) == 1:
                k = int(np.flatnonzero(row)[0])
                if k not in self._index:
                    x[k] += (1e-3 - value) / row[k]
        if self.violation(x) >= 0:
            raise NotConverged(
                "No body that can exist keeps the bounds on mass and centre of mass. "
                "Widen them, or lower the margin."
            )
        return x

    def matrices(self, x: np.ndarray) -> Float[np.ndarray, "links 4 4"]:
        """S of every body."""
        return self._bodies + np.einsum("lk,lkij->lij", x[self._index], self._effects)

    def slacks(self, x: np.ndarray) -> Float[np.ndarray, " inequalities"]:
        """How far each inequality is from its bound."""
        return np.asarray(self._linear @ x + self._offsets)

    def violation(self, x: np.ndarray) -> float:
        """What must be added to every S to make it positive; negative inside."""
        values = np.linalg.eigvalsh(self.matrices(x))[:, 0]
        return -float(np.concatenate([values, self.slacks(x)]).min(initial=1.0))

    def rows(
        self,
        inverse: Float[np.ndarray, "links 4 4"],
        sizes: Float[np.ndarray, " inequalities"],
    ) -> Float[np.ndarray, "rows free"]:
        """Derivatives of G⁻¹ S G⁻ᵀ, as vectors with the matrices' norm, and of slacks.

        Args:
            inverse: G⁻¹ of every body.
            sizes: What the inequalities are divided by.
        """
        wide = inverse[:, None]
        scaled = wide @ self._effects @ wide.swapaxes(-1, -2)
        vectors = _vectors(scaled).swapaxes(1, 2)
        bodies = np.zeros((*vectors.shape[:2], self._width))
        for block, index, own in zip(bodies, self._index, vectors, strict=True):
            block[:, index] = own
        linear = self._linear / sizes[:, None]
        return np.vstack([bodies.reshape(-1, self._width), linear])

    def split(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Matrices of the bodies and numbers of the inequalities, from such rows."""
        first = len(rows) - len(self._offsets)
        matrices = np.zeros(self._bodies.shape)
        upper = rows[:first].reshape(-1, _WEIGHTS.size) / _WEIGHTS
        matrices[:, _TRIANGLE[0], _TRIANGLE[1]] = upper
        return matrices + np.triu(matrices, 1).swapaxes(1, 2), rows[first:]


def _vectors(matrices: Float[np.ndarray, "*n 4 4"]) -> Float[np.ndarray, "*n 10"]:
    """Upper triangles, with the matrices' norm."""
    return np.asarray(matrices[..., _TRIANGLE[0], _TRIANGLE[1]] * _WEIGHTS)


def _body_within(
    body: Float[np.ndarray, "4 4"],
    mass: tuple[float, float] | None,
    box: tuple[tuple[float, ...], tuple[float, ...]] | None,
) -> Float[np.ndarray, "4 4"]:
    """The same body with its mass and centre moved into the middle of their bounds."""
    m = float(body[3, 3]) if mass is None else float(np.mean(mass))
    center = body[:3, 3] / body[3, 3]
    central = body[:3, :3] - body[3, 3] * np.outer(center, center)
    if box is not None:
        center = np.mean(box, axis=0)
    # Judgement: extended enough to stay inside when the margin is taken off.
    central += 1e-2 * abs(m) * float(center @ center) * np.eye(3)
    column = np.append(center, 1.0)
    moved = m * np.outer(column, column)
    moved[:3, :3] += central
    return np.asarray(moved)


def _typical_bodies(
    bodies: Float[np.ndarray, "links 4 4"], sizes: Float[np.ndarray, "links 10"]
) -> Float[np.ndarray, "links 4 4"]:
    """A round body of each link's size, of which the margin is a fraction."""
    spread = np.trace(bodies[:, :3, :3], axis1=1, axis2=2) / 3.0
    # The description's own where it has one: a wrist's may be far below what a link
    # described as empty is taken for.
    spread = np.where(spread > 0, np.minimum(spread, sizes[:, 4]), sizes[:, 4])
    mass = np.where(bodies[:, 3, 3] > 0, bodies[:, 3, 3], sizes[:, 0])
    entries = np.stack([spread, spread, spread, mass], axis=1)
    return np.asarray(entries[:, :, None] * np.eye(4))


def _minimise(
    R: Float[np.ndarray, "free free"],
    c: Float[np.ndarray, " free"],
    barrier: _Barrier,
    smallest_gap: float,
) -> tuple[Float[np.ndarray, " free"], Float[np.ndarray, "rows free"]]:
    """Return x that minimises ½ ‖R x − c‖² with every S(x) positive definite.

    Also rows L such that LᵀL is the curvature of the barrier there.
    """
    best, L = np.linalg.solve(R, c), np.zeros((0, c.size))
    if barrier.violation(best) < 0:
        return np.asarray(best), L  # the fit without constraints keeps them
    x = barrier.inside(best)
    gap, open_residual, centring = np.inf, 1.0, 0.1
    duals: tuple[np.ndarray, np.ndarray] | None = None
    for _ in range(_MOST_STEPS):
        S, slack = barrier.matrices(x), barrier.slacks(x)
        if duals is None:
            # On the central path, S Z = μ, where the gap would be the cost there is.
            mu = float(np.sum((R @ x - c) ** 2))
            mu = max(mu, smallest_gap) / (2 * barrier.degree)
            duals = mu * np.linalg.inv(S), mu / slack
        Z, z = duals
        gap = float(np.einsum("lij,lji->", S, Z) + slack @ z)
        if gap < smallest_gap and open_residual < max(_SMALLEST_RESIDUAL, smallest_gap):
            return x, L
        if min(slack.min(initial=1.0), z.min(initial=1.0)) <= 0.0:
            break  # rounding has put a number onto its bound
        try:
            inverse, values = _nesterov_todd(S, Z)
        except np.linalg.LinAlgError:
            break  # S or Z is singular in float64
        # The same scaling of numbers: both become λ = √(s z).
        size, roots = np.sqrt(slack / z), np.sqrt(slack * z)
        L = barrier.rows(inverse, size)
        # Towards the point of the central path where the gap is smaller.
        goal = centring * gap / barrier.degree
        diagonal = (goal / values)[:, :, None] * np.eye(4)
        target = np.concatenate([_vectors(diagonal).ravel(), goal / roots])
        right = np.concatenate([c - R @ x, target])
        step = _least_squares(np.vstack([R, L]), right)
        change, linear = barrier.split(L @ step)
        dual_change = diagonal - values[:, :, None] * np.eye(4) - change
        dual_linear = goal / roots - roots - linear
        length = min(
            _length(values, change, roots, linear),
            _length(values, dual_change, roots, dual_linear),
        )
        x = x + length * step
        Z = Z + length * (inverse.swapaxes(1, 2) @ dual_change @ inverse)
        duals = 0.5 * (Z + Z.swapaxes(1, 2)), z + length * dual_linear / size
        # The gradient's equation is linear: a full step satisfies it.
        open_residual *= 1.0 - length
        # Mehrotra's rule: centre more after a step that soon met the boundary.
        centring = min(0.5, max((1.0 - length) ** 2, 0.05))
    if gap < max(_LARGEST_GAP, smallest_gap):
        return x, L
    raise NotConverged(
        "The physically consistent fit did not converge. Check the description's "
        "masses and lengths (units?) and the units of the torque."
    )


# Each refinement gains as many digits as the first solution has.
_REFINED = 1e-9
"""Relative change of a solution by its last refinement, below which it is trusted."""


def _least_squares(
    A: Float[np.ndarray, "rows free"], b: Float[np.ndarray, " rows"]
) -> Float[np.ndarray, " free"]:
    """Return x that minimises ‖A x − b‖, to the digits that A itself allows.

    Normal equations of columns scaled to one, refined by the residual of A x − b; ten
    times faster than QR. Where their squares have lost too many digits for refinement
    to settle, QR, which sharp data need.
    """
    scale = np.linalg.norm(A, axis=0)
    A = A / scale
    with contextlib.suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(np.linalg.cholesky(A.T @ A))
        x = np.zeros(A.shape[1])
        for _ in range(4):
            change = inverse.T @ (inverse @ (A.T @ (b - A @ x)))
            x += change
            if np.linalg.norm(change) <= _REFINED * np.linalg.norm(x):
                return x / scale
    T = triangle(np.column_stack([A, b]))
    return np.asarray(np.linalg.solve(T[:-1, :-1], T[:-1, -1])) / scale


# Of the first step's, which is at most the data's own gradient.
_SMALLEST_RESIDUAL = 1e-9
"""Fraction of the gradient that may stay unbalanced."""


def _nesterov_todd(
    S: Float[np.ndarray, "links 4 4"], Z: Float[np.ndarray, "links 4 4"]
) -> tuple[Float[np.ndarray, "links 4 4"], Float[np.ndarray, "links 4"]]:
    """G⁻¹ and λ with G⁻¹ S G⁻ᵀ = Gᵀ Z G = diag(λ)."""
    C, D = np.linalg.cholesky(S), np.linalg.cholesky(Z)
    _, values, Vt = np.linalg.svd(D.swapaxes(1, 2) @ C)
    G = C @ Vt.swapaxes(1, 2) / np.sqrt(values)[:, None, :]
    return np.linalg.inv(G), values


def _length(
    values: Float[np.ndarray, "links 4"],
    change: Float[np.ndarray, "links 4 4"],
    roots: Float[np.ndarray, " inequalities"],
    linear: Float[np.ndarray, " inequalities"],
) -> float:
    """How much of a step stays inside: diag(λ) + length · change ≻ 0."""
    scale = 1.0 / np.sqrt(values)
    relative = change * scale[:, :, None] * scale[:, None, :]
    lowest = np.linalg.eigvalsh(relative)[:, 0]
    steepest = float(np.concatenate([lowest, linear / roots]).min(initial=0.0))
    # 0.98: never onto the boundary itself, where nothing can move any more.
    return min(1.0, 0.98 / -steepest) if steepest < 0 else 1.0
