"""Articulated-body inertias: M⁻¹ in time linear in the links (Featherstone 1983).

An articulated inertia is what a link feels like with all it carries hanging loose.
Factored once for a configuration, M x = b is one sweep inwards and one outwards for
each b; a program traced with many b shares the factors. What the inward sweep leaves
at each joint, its innovation u, is enough for aᵀ M⁻¹ b = Σ u(a) u(b) / d
(Rodriguez and Kreutz-Delgado 1992), so that only one outward sweep is ever needed.

A base that floats is one more body: all hangs loose on it, and its six freedoms are
factored together, as six joints at one place would be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from armwise.arms import BASE
from armwise.dynamics.newton_euler import Crossing, carry_wrench, cross_joints
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    cross,
    dot,
    mul,
    scale,
    sub,
    total,
    vadd,
    vsub,
)

if TYPE_CHECKING:
    from armwise.dynamics.skeleton import Skeleton

Matrix = tuple[Vector, Vector, Vector]
"""Three rows."""


@dataclass(frozen=True)
class Inertia:
    """Moment and force from angular and linear acceleration: [[I, H], [Hᵀ, M]]."""

    I: Matrix
    H: Matrix
    M: Matrix


@dataclass(frozen=True)
class _Pivot:
    """A joint's part of the factors: U = inertia · axis, and 1 / (axis · U)."""

    moment: Vector
    force: Vector
    inverse: Scalar


@dataclass(frozen=True)
class Sweep:
    """What an inward sweep leaves at every joint.

    Attributes:
        innovations: u, the torque that is left to move the joint.
        pushes: u / d, the acceleration it gives the joint on its own.

    Both end with six numbers more where the base floats.
    """

    innovations: list[Scalar]
    pushes: list[Scalar]


class ArticulatedInertias:
    """The mass matrix of an arm, factored link by link.

    Args:
        skeleton: Internal frames.
        q: Joint positions.
        bodies: Ten internal parameters of every link.
        rotors: Inertia seen along each joint's own axis besides the links.
        base: Ten parameters of a base that floats, in the frame of the roots
            (`Skeleton.rooted_at`); None if it stands still.
    """

    def __init__(
        self,
        skeleton: Skeleton,
        q: Sequence[Scalar],
        bodies: Sequence[Sequence[Scalar]],
        rotors: Sequence[Scalar],
        base: Sequence[Scalar] | None = None,
    ) -> None:
        self._skeleton = skeleton
        self._crossings = cross_joints(skeleton, q)
        # The base last, so that BASE finds it.
        floating = [base] if base is not None else []
        inertias = [_link_inertia(body) for body in (*bodies, *floating)]
        pivots: list[_Pivot | None] = [None] * skeleton.size
        for i in reversed(range(skeleton.size)):
            segment = skeleton.segments[i]
            # From the tips to the base: a link's articulated inertia is complete once
            # all that it carries has been added.
            pivot = _pivot(inertias[i], segment.is_revolute, rotors[i])
            pivots[i] = pivot
            if segment.parent != BASE or base is not None:
                loose = _loosened(inertias[i], pivot)
                carried = _carry(self._crossings[i], loose)
                inertias[segment.parent] = _sum(inertias[segment.parent], carried)
        # For the type checker: the loop has filled every entry.
        self._pivots = [pivot for pivot in pivots if pivot is not None]
        self._base = None if base is None else _FreeBase(inertias[BASE])

    def solve(self, torques: Sequence[Scalar]) -> list[Scalar]:
        """Return x with M x = torques."""
        return self.outwards(self.inwards(torques, {}).pushes)

    def product(self, a: Sweep, b: Sweep) -> Scalar:
        """Return aᵀ M⁻¹ b of two sweeps' loads."""
        # With M = Lᵀ D L, aᵀ M⁻¹ b is Σ u_a u_b / d: no outward sweep is needed.
        pairs = zip(a.innovations, b.pushes, strict=True)
        return total(*[mul(u, push) for u, push in pairs])

    def inwards(
        self, torques: Sequence[Scalar], wrenches: dict[int, tuple[Vector, Vector]]
    ) -> Sweep:
        """Carry what the outer joints push on their carriers; what is left moves.

        Args:
            torques: Of the joints.
            wrenches: Force and moment that a link uses up, about its origin and in
                its axes, by link, BASE for a base that floats; one applied from
                outside counts as negative.
        """
        segments = self._skeleton.segments
        owners = (*range(len(segments)), BASE)
        forces = [wrenches.get(i, (ZERO, ZERO))[0] for i in owners]
        moments = [wrenches.get(i, (ZERO, ZERO))[1] for i in owners]
        residual: list[Scalar] = [0.0] * len(segments)
        pushes: list[Scalar] = [0.0] * len(segments)
        for i in reversed(range(len(segments))):
            own = moments[i][2] if segments[i].is_revolute else forces[i][2]
            residual[i] = sub(torques[i], own)
            pushes[i] = mul(residual[i], self._pivots[i].inverse)
            parent = segments[i].parent
            if parent == BASE and self._base is None:
                continue
            moment = vadd(moments[i], scale(pushes[i], self._pivots[i].moment))
            force = vadd(forces[i], scale(pushes[i], self._pivots[i].force))
            force, moment = carry_wrench(self._crossings[i], force, moment)
            forces[parent] = vadd(forces[parent], force)
            moments[parent] = vadd(moments[parent], moment)
        if self._base is None:
            return Sweep(residual, pushes)
        resisted = [sub(0.0, x) for x in (*moments[BASE], *forces[BASE])]
        base = self._base.inwards(resisted)
        return Sweep(residual + base.innovations, pushes + base.pushes)

    def outwards(self, pushes: Sequence[Scalar]) -> list[Scalar]:
        """Accelerate link by link from the base.

        Returns:
            Of every joint; then angular and linear of a base that floats, its axes.
        """
        segments = self._skeleton.segments
        base = [] if self._base is None else self._base.outwards(pushes[-6:])
        turning = {BASE: tuple(base[:3]) or ZERO}
        moving = {BASE: tuple(base[3:]) or ZERO}
        answer: list[Scalar] = []
        for i, crossing in enumerate(self._crossings):
            parent = segments[i].parent
            alpha, a = ZERO, ZERO
            if parent != BASE or base:
                swept = cross(turning[parent], crossing.position)
                alpha = crossing.to_child(turning[parent])
                a = crossing.to_child(vadd(moving[parent], swept))
            pivot = self._pivots[i]
            felt = add(dot(pivot.moment, alpha), dot(pivot.force, a))
            x = sub(pushes[i], mul(felt, pivot.inverse))
            if segments[i].is_revolute:
                alpha = (alpha[0], alpha[1], add(alpha[2], x))
            else:
                a = (a[0], a[1], add(a[2], x))
            turning[i], moving[i] = alpha, a
            answer.append(x)
        return answer + base


class _FreeBase:
    """A spatial inertia as L D Lᵀ: six freedoms at once, moments before forces."""

    def __init__(self, inertia: Inertia) -> None:
        upper = [(*i, *h) for i, h in zip(inertia.I, inertia.H, strict=True)]
        lower = [
            (*h, *m) for h, m in zip(_transposed(inertia.H), inertia.M, strict=True)
        ]
        work = [list(row) for row in (*upper, *lower)]
        self._inverse: list[Scalar] = []
        # Without pivoting: an inertia is positive definite, and a traced program
        # cannot branch.
        for k in range(len(work)):
            self._inverse.append(_inverse(work[k][k]))
            for i in range(k + 1, len(work)):
                ratio = mul(work[i][k], self._inverse[k])
                for j in range(k + 1, i + 1):
                    work[i][j] = sub(work[i][j], mul(ratio, work[j][k]))
            for i in range(k + 1, len(work)):
                work[i][k] = mul(work[i][k], self._inverse[k])
        self._lower = work

    def inwards(self, wrench: Sequence[Scalar]) -> Sweep:
        """Take from each freedom what the earlier ones have used."""
        u = list(wrench)
        for i in range(len(u)):
            for j in range(i):
                u[i] = sub(u[i], mul(self._lower[i][j], u[j]))
        return Sweep(u, [mul(x, d) for x, d in zip(u, self._inverse, strict=True)])

    def outwards(self, pushes: Sequence[Scalar]) -> list[Scalar]:
        """Accelerate the freedoms, the last first."""
        x = list(pushes)
        for i in reversed(range(len(x))):
            for j in range(i + 1, len(x)):
                x[i] = sub(x[i], mul(self._lower[j][i], x[j]))
        return x


def _link_inertia(body: Sequence[Scalar]) -> Inertia:
    """Spatial inertia of [m, h, Σ] about its frame's origin: I = tr(Σ) − Σ."""
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = body
    return Inertia(
        (
            (add(yy, zz), sub(0.0, xy), sub(0.0, xz)),
            (sub(0.0, xy), add(xx, zz), sub(0.0, yz)),
            (sub(0.0, xz), sub(0.0, yz), add(xx, yy)),
        ),
        _skew((hx, hy, hz)),
        ((m, 0.0, 0.0), (0.0, m, 0.0), (0.0, 0.0, m)),
    )


def _pivot(inertia: Inertia, is_revolute: bool, rotor: Scalar) -> _Pivot:
    """Take the column of the joint's own axis, z."""
    if is_revolute:
        moment, force = _column(inertia.I, 2), inertia.H[2]
        return _Pivot(moment, force, _inverse(add(moment[2], rotor)))
    moment, force = _column(inertia.H, 2), _column(inertia.M, 2)
    return _Pivot(moment, force, _inverse(add(force[2], rotor)))


def _inverse(a: Scalar) -> Scalar:
    return 1.0 / a


def _loosened(inertia: Inertia, pivot: _Pivot) -> Inertia:
    """Take away what the free joint does not pass on: − U Uᵀ / d."""
    n, f = pivot.moment, pivot.force
    n_d, f_d = scale(pivot.inverse, n), scale(pivot.inverse, f)
    return Inertia(
        _minus_outer(inertia.I, n_d, n),
        _minus_outer(inertia.H, n_d, f),
        _minus_outer(inertia.M, f_d, f),
    )


def _carry(crossing: Crossing, inertia: Inertia) -> Inertia:
    """Express an inertia at the child's origin at the parent's, in its axes."""
    I, H, M = (_turned(crossing, part) for part in (inertia.I, inertia.H, inertia.M))
    P = _skew(crossing.position)
    # The parallel-axis theorem of a spatial inertia: H + P M, and for the moments I − H
    # P + P (H + P M)ᵀ, symmetric since Pᵀ = −P.
    lever = _plus(H, _times(P, M))
    moved = _plus(_minus(I, _times(H, P)), _times(P, _transposed(lever)))
    return Inertia(moved, lever, M)


def _sum(a: Inertia, b: Inertia) -> Inertia:
    return Inertia(_plus(a.I, b.I), _plus(a.H, b.H), _plus(a.M, b.M))


def _turned(crossing: Crossing, matrix: Matrix) -> Matrix:
    """R A Rᵀ for the crossing's rotation R."""
    # Rows first, then columns: two passes of turning vectors, which knows the zeros and
    # ones of each rotation, cost less than two full products.
    half = tuple(crossing.to_parent(row) for row in matrix)
    columns = tuple(crossing.to_parent(_column(half, k)) for k in range(3))  # type: ignore[arg-type]
    return _transposed(columns)  # type: ignore[arg-type]


def _skew(v: Vector) -> Matrix:
    x, y, z = v
    return (
        (0.0, sub(0.0, z), y),
        (z, 0.0, sub(0.0, x)),
        (sub(0.0, y), x, 0.0),
    )


def _column(matrix: Matrix, k: int) -> Vector:
    return matrix[0][k], matrix[1][k], matrix[2][k]


def _transposed(matrix: Matrix) -> Matrix:
    return _column(matrix, 0), _column(matrix, 1), _column(matrix, 2)


def _plus(a: Matrix, b: Matrix) -> Matrix:
    return vadd(a[0], b[0]), vadd(a[1], b[1]), vadd(a[2], b[2])


def _minus(a: Matrix, b: Matrix) -> Matrix:
    return vsub(a[0], b[0]), vsub(a[1], b[1]), vsub(a[2], b[2])


def _minus_outer(a: Matrix, u: Vector, v: Vector) -> Matrix:
    return tuple(vsub(row, scale(x, v)) for row, x in zip(a, u, strict=True))  # type: ignore[return-value]


def _times(a: Matrix, b: Matrix) -> Matrix:
    columns = _transposed(b)
    return tuple(  # type: ignore[return-value]
        tuple(total(*[mul(x, y) for x, y in zip(row, c, strict=True)]) for c in columns)
        for row in a
    )
