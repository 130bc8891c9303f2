"""Physically consistent fit: a semidefinite program over pseudo-inertias."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import InertialParameters
from armwise.errors import NotConverged
from armwise.identification.methods.least_squares import WeightedLeastSquares
from armwise.identification.problem import Problem
from armwise.regression import Solution, stack, torque_size, triangle

if TYPE_CHECKING:
    from jaxtyping import Float

_SMALLEST_NOISE = 1e-5
"""Noise no torque is better than, relative to itself: an interior-point solver has half
of float64's digits, and sharper weights would ask for more."""

# Judgement: large enough that any friction in the data outweighs it.
_FREE = 1e4
"""How much further than its size the description of a drive may be off: friction is
hardly ever described, so that the prior must not hold it."""

_TRIANGLE = np.triu_indices(4)


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
    """

    # Judgement: strictly inside, so that the mass matrix is positive definite, and
    # small beside the thickness of real links.
    margin: float = 1e-4
    prior_std: float = 1.0
    mass: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    center_of_mass: Mapping[
        str, tuple[tuple[float, float, float], tuple[float, float, float]]
    ] = field(default_factory=dict)

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        first = WeightedLeastSquares().solve(problem)
        systems = problem.systems()
        size_of_torque = torque_size(systems, problem.accumulator.samples)
        std = np.maximum(first.torque_std, _SMALLEST_NOISE * size_of_torque)
        system = triangle(stack(systems, std))
        rows = system[:, :-1] @ problem.base.matrix
        size = _sizes(problem)
        prior = problem.prior
        pull = np.diag(1.0 / (self.prior_std * _prior_std(problem, size)))
        # The prior as rows makes R invertible where data determine nothing.
        root = triangle(np.vstack([rows, pull]) * size)
        # Start from the unconstrained optimum: there only the prior pulls.
        start = problem.parameters(first.values)
        gradient = pull.T @ (pull @ (start - prior))
        step = _minimise(root, gradient, size, _Constraints(problem, self, size, start))
        parameters = start + step
        # An interior-point solver keeps equalities to its tolerance only.
        parameters = np.where(problem.is_estimated, parameters, prior)
        return replace(
            first,
            values=problem.base.matrix @ parameters,
            parameters=parameters,
            notes=("Intervals are those of the fit without constraints.",),
        )


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


class _Constraints:
    """Rows of A x + s = b with s in a cone; x is a scaled step from the start."""

    def __init__(
        self,
        problem: Problem,
        method: PhysicallyConsistent,
        size: np.ndarray,
        start: np.ndarray,
    ) -> None:
        import clarabel

        self.size = size
        self._start = start
        self._width = size.size
        self._rows: list[np.ndarray] = []
        self._right: list[np.ndarray] = []
        self.cones: list[Any] = []
        self._clarabel = clarabel
        arm = problem.columns.arm
        # Rows and cones are appended together: Clarabel assigns rows in the cones'
        # order.
        self._keep_fixed(problem)
        self._keep_positive(problem)
        for first, link in zip(arm.layout.mass, arm.links, strict=True):
            if link.name in method.mass:
                self._bound_mass(first, method.mass[link.name])
            if link.name in method.center_of_mass:
                self._bound_center(first, method.center_of_mass[link.name])
        for first in arm.layout.mass:
            self._keep_realisable(first, method.margin)

    @property
    def matrix(self) -> np.ndarray:
        return np.vstack(self._rows)

    @property
    def right(self) -> np.ndarray:
        return np.concatenate(self._right)

    def _add(self, rows: np.ndarray, right: np.ndarray, cone: Any) -> None:
        if len(rows):
            self._rows.append(rows * self.size)
            self._right.append(right - rows @ self._start)
            self.cones.append(cone)

    def _keep_fixed(self, problem: Problem) -> None:
        fixed = np.flatnonzero(~problem.is_estimated)
        rows = np.eye(self._width)[fixed]
        self._add(rows, problem.prior[fixed], self._clarabel.ZeroConeT(len(fixed)))

    def _keep_positive(self, problem: Problem) -> None:
        """Friction only ever takes energy, and rotors weigh something."""
        bounded = problem.columns.non_negative
        bounded = bounded[problem.is_estimated[bounded]]
        rows = -np.eye(self._width)[bounded]
        cone = self._clarabel.NonnegativeConeT(len(bounded))
        self._add(rows, np.zeros(len(bounded)), cone)

    def _bound_mass(self, start: int, bounds: tuple[float, float]) -> None:
        rows = np.zeros((2, self._width))
        rows[:, start] = (-1.0, 1.0)
        right = np.array([-bounds[0], bounds[1]])
        self._add(rows, right, self._clarabel.NonnegativeConeT(2))

    def _bound_center(
        self, start: int, box: tuple[tuple[float, ...], tuple[float, ...]]
    ) -> None:
        """lower · m ≤ h ≤ upper · m, linear in m and h."""
        rows = np.zeros((6, self._width))
        for k in range(3):
            rows[k, [start, start + 1 + k]] = (box[0][k], -1.0)
            rows[3 + k, [start, start + 1 + k]] = (-box[1][k], 1.0)
        self._add(rows, np.zeros(6), self._clarabel.NonnegativeConeT(6))

    def _keep_realisable(self, start: int, margin: float) -> None:
        """Pseudo-inertia ⪰ margin, as its scaled upper triangle, column by column."""
        rows = np.zeros((10, self._width))
        # √2 off the diagonal makes the vector's norm the matrix's (Clarabel's format).
        scale = np.where(_TRIANGLE[0] == _TRIANGLE[1], 1.0, np.sqrt(2.0))
        order = np.lexsort((_TRIANGLE[0], _TRIANGLE[1]))
        for k in range(10):
            pseudo = InertialParameters(np.eye(10)[k]).pseudo_inertia
            rows[:, start + k] = -(scale * pseudo[_TRIANGLE])[order]
        # In units of the pseudo-inertia: kg m² in its upper block, kg in its corner.
        least = np.diag(
            [self.size[start + 4] * margin] * 3 + [self.size[start] * margin]
        )
        right = -(scale * least[_TRIANGLE])[order]
        self._add(rows, right, self._clarabel.PSDTriangleConeT(4))


def _minimise(
    root: np.ndarray,
    gradient: np.ndarray,
    size: np.ndarray,
    constraints: _Constraints,
) -> Float[np.ndarray, " parameters"]:
    """Return the step x that minimises ½ ‖root x/size‖² + gᵀx within constraints."""
    import clarabel
    from scipy import sparse

    unit = np.linalg.inv(root)  # x = unit z: every direction of z costs the same
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    for equilibrates in (False, True):  # it is balanced already, but for sharp data
        settings.equilibrate_enable = equilibrates
        answer = clarabel.DefaultSolver(
            sparse.identity(size.size, format="csc"),
            unit.T @ (gradient * size),
            sparse.csc_matrix(constraints.matrix @ unit),
            constraints.right,
            constraints.cones,
            settings,
        ).solve()
        # AlmostSolved meets Clarabel's reduced tolerances: better than a refusal.
        if str(answer.status) in ("Solved", "AlmostSolved"):
            return (unit @ np.asarray(answer.x)) * size
    raise NotConverged(
        f"The physically consistent fit stopped: {answer.status}. Check that "
        "bounds on mass and centre of mass leave room for a realisable body."
    )
