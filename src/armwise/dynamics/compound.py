"""Mass matrix and gravity by compound links: all that a joint carries, as one body.

Joints 2 and 3 of most arms are parallel. Seen from axes that do not turn with them
(the run's axes), link 3 is turned by q2 + q3 at once, so vectors and bodies cross the
whole run with one rotation instead of one per joint. A run on the base has nowhere
further to go: its axes turn with its first link, so that they need no rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    cross,
    mul,
    sub,
    total,
    turn,
    turn_back_z,
    turn_z,
    vadd,
    vector,
)
from armwise.programs import Scalar as Symbol
from armwise.programs import cos, sin

if TYPE_CHECKING:
    from armwise.dynamics.skeleton import JointSegment, Skeleton

# Runs of parallel joints: links that turn about one direction share their axes.


@dataclass(frozen=True)
class Station:
    """Where a link stands in its run of parallel joints.

    Attributes:
        segment: The joint's constants.
        is_first: Whether its joint begins the run.
        angle, offset: Their sum turns the run's axes to the link's, about z: what
            depends on the position, and what does not.
        cosine, sine: Of that sum.
        lever: From the parent's origin to this one's: in the run's axes or, for the
            first of a run, in the parent link's.
        up: Minus free fall in the run's axes, for the first of a run on the base.
    """

    segment: JointSegment
    is_first: bool
    angle: Scalar
    offset: float
    cosine: Scalar
    sine: Scalar
    lever: Vector
    up: Vector = ZERO

    def to_run(self, v: Vector) -> Vector:
        """Turn a vector from the link's axes to the run's."""
        return turn_z(self.cosine, self.sine, v)

    def to_link(self, v: Vector) -> Vector:
        """Turn a vector from the run's axes to the link's."""
        return turn_back_z(self.cosine, self.sine, v)

    def inwards(self, force: Vector, moment: Vector) -> tuple[Vector, Vector]:
        """Move a wrench from this origin to the parent's.

        It stays in the run's axes or, from the first of a run, goes to the parent
        link's.
        """
        if self.is_first:
            force = turn(self.segment.turn, force)
            moment = turn(self.segment.turn, moment)
        return force, vadd(moment, cross(self.lever, force))


def find_stations(skeleton: Skeleton, q: Sequence[Scalar]) -> list[Station]:
    """Set every joint to its position, parallel ones together."""
    stations: list[Station] = []
    for segment, x in zip(skeleton.segments, q, strict=True):
        carrier = None if segment.parent == BASE else stations[segment.parent]
        stations.append(_station(segment, x, carrier))
    return stations


def _station(segment: JointSegment, q: Scalar, carrier: Station | None) -> Station:
    position, up = vector(segment.position), vector(-segment.gravity)
    if not segment.is_revolute:
        slide = tuple(mul(float(a), q) for a in segment.slide)
        return Station(segment, True, 0.0, 0.0, 1.0, 0.0, vadd(position, slide), up)
    if carrier is None:
        c, s = _cosine_and_sine(add(q, segment.angle))
        up = add(mul(c, up[0]), mul(s, up[1])), sub(mul(c, up[1]), mul(s, up[0])), up[2]
        return Station(segment, True, 0.0, 0.0, 1.0, 0.0, position, up)
    if not _is_parallel(segment, carrier.segment):
        c, s = _cosine_and_sine(add(q, segment.angle))
        return Station(segment, True, q, segment.angle, c, s, position)
    angle, offset = add(carrier.angle, q), carrier.offset + segment.angle
    c, s = _cosine_and_sine(add(angle, offset))
    return Station(segment, False, angle, offset, c, s, carrier.to_run(position))


def _is_parallel(segment: JointSegment, carrier: JointSegment) -> bool:
    return carrier.is_revolute and np.array_equal(segment.turn, np.eye(3))


def _cosine_and_sine(angle: Scalar) -> tuple[Scalar, Scalar]:
    if isinstance(angle, Symbol):
        return cos(angle), sin(angle)
    return np.cos(angle), np.sin(angle)


# Mass matrix and gravity from compound bodies.

Body = list[Scalar]
"""[m, hx, hy, hz, Σxx, Σxy, Σxz, Σyy, Σyz, Σzz]"""


@dataclass(frozen=True)
class Compound:
    """All that a joint carries, about its origin, in the axes of its run.

    Attributes:
        body: Its ten numbers.
        about_axis: Inertia about the joint axis, Σxx + Σyy: the same in any axes.
    """

    body: Body
    about_axis: Scalar


def mass_matrix(
    skeleton: Skeleton, q: Sequence[Scalar], bodies: Sequence[Sequence[Scalar]]
) -> list[list[Scalar]]:
    """M of the joints: how the compound of joint j pushes on the joints below it."""
    stations = find_stations(skeleton, q)
    return _matrix(stations, find_compounds(stations, bodies))


def gravity_torque(
    skeleton: Skeleton, q: Sequence[Scalar], bodies: Sequence[Sequence[Scalar]]
) -> list[Scalar]:
    """Torque that holds the arm against gravity."""
    stations = find_stations(skeleton, q)
    return _gravity(stations, find_compounds(stations, bodies))


def find_compounds(
    stations: Sequence[Station], bodies: Sequence[Sequence[Scalar]]
) -> list[Compound]:
    """Weld to every link what it carries."""
    links = [list(body) for body in bodies]
    compounds: list[Compound | None] = [None] * len(stations)
    beyond: list[list[int]] = [[] for _ in stations]
    for i in reversed(range(len(stations))):
        further = [(stations[k], compounds[k]) for k in beyond[i]]
        compound = _compound(stations[i], links[i], further)  # type: ignore[arg-type]
        compounds[i] = compound
        parent = stations[i].segment.parent
        if parent == BASE:
            continue
        if stations[i].is_first:
            carried = _carried(stations[i], compound.body)
            links[parent] = [
                add(a, b) for a, b in zip(links[parent], carried, strict=True)
            ]
        else:
            beyond[parent].append(i)
    return [compound for compound in compounds if compound is not None]


def _compound(
    station: Station, link: Body, further: Sequence[tuple[Station, Compound]]
) -> Compound:
    """Turn a link into its run's axes and add what follows in the run."""
    body = turn_body(station, link)
    # Kept apart from the ten numbers: the trace in the plane is the same in any axes
    # about z, so that it needs no rotation.
    about_axis = add(link[4], link[7])
    for next_station, compound in further:
        moved = _shift(next_station.lever, compound.body)
        body = [add(a, b) for a, b in zip(body, moved, strict=True)]
        steiner = _steiner(next_station.lever, compound.body)
        about_axis = total(about_axis, compound.about_axis, steiner)
    return Compound(body, about_axis)


def turn_body(station: Station, link: Sequence[Scalar]) -> Body:
    """Turn a link's ten numbers into the axes of its run."""
    h = station.to_run((link[1], link[2], link[3]))
    return [link[0], *h, *_spin(station.cosine, station.sine, link[4:])]


def _carried(station: Station, body: Body) -> Body:
    """Express a compound in the axes of the link that the run is mounted on."""
    matrix = station.segment.turn
    h = turn(matrix, (body[1], body[2], body[3]))
    return _shift(station.lever, [body[0], *h, *_turn_moments(matrix, body[4:])])


def _matrix(
    stations: Sequence[Station], compounds: Sequence[Compound]
) -> list[list[Scalar]]:
    size = len(stations)
    matrix: list[list[Scalar]] = [[0.0] * size for _ in range(size)]
    for j, compound in enumerate(compounds):
        force, moment = _unit_wrench(stations[j].segment.is_revolute, compound)
        i = j
        while i != BASE:
            along = moment if stations[i].segment.is_revolute else force
            # Computed once for both halves: symmetry saves half the work and makes M
            # symmetric to the last bit.
            matrix[i][j] = matrix[j][i] = along[2]
            parent = stations[i].segment.parent
            if parent != BASE:
                force, moment = stations[i].inwards(force, moment)
                if stations[i].is_first:
                    force = stations[parent].to_run(force)
                    moment = stations[parent].to_run(moment)
            i = parent
    return matrix


def _unit_wrench(is_revolute: bool, compound: Compound) -> tuple[Vector, Vector]:
    """Force and moment that accelerate a body at rest by one about (along) its z."""
    m, hx, hy, _, _, _, xz, _, yz, _ = compound.body
    if is_revolute:
        return (
            (sub(0.0, hy), hx, 0.0),
            (sub(0.0, xz), sub(0.0, yz), compound.about_axis),
        )
    return (0.0, 0.0, m), (hy, sub(0.0, hx), 0.0)


def _gravity(
    stations: Sequence[Station], compounds: Sequence[Compound]
) -> list[Scalar]:
    lifts: list[Vector] = []
    torques: list[Scalar] = []
    for i, station in enumerate(stations):
        lifts.append(_lift(station, stations, lifts))
        m, hx, hy = compounds[i].body[:3]
        x, y, z = lifts[i]
        revolute = station.segment.is_revolute
        torques.append(sub(mul(hx, y), mul(hy, x)) if revolute else mul(m, z))
    return torques


def _lift(
    station: Station, stations: Sequence[Station], lifts: Sequence[Vector]
) -> Vector:
    """Minus free fall, in the axes of the run."""
    parent = station.segment.parent
    if parent == BASE:
        return station.up
    if not station.is_first:
        return lifts[parent]
    return turn(station.segment.turn.T, stations[parent].to_link(lifts[parent]))


def _spin(c: Scalar, s: Scalar, sigma: Sequence[Scalar]) -> list[Scalar]:
    """Rz Σ Rzᵀ, with the squares of c and s eliminated by c² + s² = 1."""
    xx, xy, xz, yy, yz, zz = sigma
    t = sub(mul(c, sub(xx, yy)), mul(s, add(xy, xy)))
    ct = mul(c, t)
    return [
        add(yy, ct),
        add(xy, mul(s, t)),
        sub(mul(c, xz), mul(s, yz)),
        sub(xx, ct),
        add(mul(s, xz), mul(c, yz)),
        zz,
    ]


def _turn_moments(matrix: np.ndarray, sigma: Sequence[Scalar]) -> list[Scalar]:
    """A Σ Aᵀ for a constant rotation A."""
    if matrix[0, 0] == 1.0:  # a turn about x is a spin with the axes renamed
        xx, xy, xz, yy, yz, zz = sigma
        c, s = float(matrix[1, 1]), float(matrix[2, 1])
        yy, yz, xy, zz, xz, xx = _spin(c, s, [yy, yz, xy, zz, xz, xx])
        return [xx, xy, xz, yy, yz, zz]
    xx, xy, xz, yy, yz, zz = sigma
    columns = [turn(matrix, v) for v in ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))]
    rows = [turn(matrix, tuple(c[k] for c in columns)) for k in range(3)]
    return [rows[0][0], rows[0][1], rows[0][2], rows[1][1], rows[1][2], rows[2][2]]


def _shift(p: Vector, body: Body) -> Body:
    """Move the origin: the child's origin lies at p in the parent frame."""
    m, h = body[0], (body[1], body[2], body[3])
    g = _halfway(p, body)
    moved = vadd(h, (mul(m, p[0]), mul(m, p[1]), mul(m, p[2])))
    sigma = list(body[4:])
    for k, (i, j) in enumerate(((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))):
        if i == j:
            twice = mul(p[i], g[i])
            sigma[k] = add(sigma[k], add(twice, twice))
        else:
            sigma[k] = add(sigma[k], add(mul(p[i], g[j]), mul(p[j], g[i])))
    return [m, *moved, *sigma]


def _steiner(p: Vector, body: Body) -> Scalar:
    """What moving the origin adds to Σxx + Σyy."""
    g = _halfway(p, body)
    half = add(mul(p[0], g[0]), mul(p[1], g[1]))
    return add(half, half)


def _halfway(p: Vector, body: Body) -> Vector:
    """h + m p / 2, with which Σ + p gᵀ + g pᵀ moves the origin."""
    half = mul(0.5, body[0])
    h = (body[1], body[2], body[3])
    return vadd(h, (mul(half, p[0]), mul(half, p[1]), mul(half, p[2])))


__all__ = [
    "Body",
    "Compound",
    "find_compounds",
    "gravity_torque",
    "mass_matrix",
    "turn_body",
]


# Forward dynamics over scalars: M factored along the tree.


def solve_mass_matrix(
    matrix: Sequence[Sequence[Scalar]], right: Sequence[Scalar]
) -> list[Scalar]:
    """Solve M x = b by M = Lᵀ D L, which keeps the zeros of a branching tree.

    Eliminating from the tips to the base fills nothing in (Featherstone 2005).
    """
    size = len(right)
    work = [list(row) for row in matrix]
    inverse: list[Scalar] = [0.0] * size
    for k in reversed(range(size)):
        # The only division per joint; every later use is a multiplication.
        inverse[k] = 1.0 / work[k][k]
        for i in reversed(range(k)):
            if _is_zero(work[k][i]):
                continue
            ratio = mul(work[k][i], inverse[k])
            for j in range(i + 1):
                if not _is_zero(work[k][j]):
                    work[i][j] = sub(work[i][j], mul(ratio, work[k][j]))
            work[k][i] = ratio
    x = list(right)
    for k in reversed(range(size)):
        for i in range(k):
            x[i] = sub(x[i], mul(work[k][i], x[k]))
    for k in range(size):
        x[k] = mul(x[k], inverse[k])
        for i in range(k):
            x[k] = sub(x[k], mul(work[k][i], x[i]))
    return x


def _is_zero(a: Scalar) -> bool:
    # A structural zero is a float; a symbol is never known to be zero, and an array
    # that happens to be must not change the program.
    return type(a) is float and a == 0.0
