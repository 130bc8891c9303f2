"""Runs of parallel joints: links that turn about one direction share their axes.

Joints 2 and 3 of most arms are parallel. Seen from axes that do not turn with them
(the run's axes), link 3 is turned by q2 + q3 at once, so vectors and bodies cross the
whole run with one rotation instead of one per joint. A run on the base has nowhere
further to go: its axes turn with its first link, so that they need no rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armwise.arms import BASE
from armwise.dynamics.skeleton import Segment, Skeleton
from armwise.dynamics.vectors import (
    ZERO,
    Scalar,
    Vector,
    add,
    cross,
    mul,
    sub,
    turn,
    vadd,
    vector,
)
from armwise.programs import Scalar as Symbol
from armwise.programs import cos, sin


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

    segment: Segment
    is_first: bool
    angle: Scalar
    offset: float
    cosine: Scalar
    sine: Scalar
    lever: Vector
    up: Vector = ZERO

    def to_run(self, v: Vector) -> Vector:
        """Turn a vector from the link's axes to the run's."""
        c, s = self.cosine, self.sine
        return sub(mul(c, v[0]), mul(s, v[1])), add(mul(s, v[0]), mul(c, v[1])), v[2]

    def to_link(self, v: Vector) -> Vector:
        """Turn a vector from the run's axes to the link's."""
        c, s = self.cosine, self.sine
        return add(mul(c, v[0]), mul(s, v[1])), sub(mul(c, v[1]), mul(s, v[0])), v[2]

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


def _station(segment: Segment, q: Scalar, carrier: Station | None) -> Station:
    place, up = vector(segment.position), vector(-segment.gravity)
    if not segment.is_revolute:
        slide = tuple(mul(float(a), q) for a in segment.slide)
        return Station(segment, True, 0.0, 0.0, 1.0, 0.0, vadd(place, slide), up)
    if carrier is None:
        c, s = _cosine_and_sine(add(q, segment.angle))
        up = add(mul(c, up[0]), mul(s, up[1])), sub(mul(c, up[1]), mul(s, up[0])), up[2]
        return Station(segment, True, 0.0, 0.0, 1.0, 0.0, place, up)
    if not _is_parallel(segment, carrier.segment):
        c, s = _cosine_and_sine(add(q, segment.angle))
        return Station(segment, True, q, segment.angle, c, s, place)
    angle, offset = add(carrier.angle, q), carrier.offset + segment.angle
    c, s = _cosine_and_sine(add(angle, offset))
    return Station(segment, False, angle, offset, c, s, carrier.to_run(place))


def _is_parallel(segment: Segment, carrier: Segment) -> bool:
    return carrier.is_revolute and np.array_equal(segment.turn, np.eye(3))


def _cosine_and_sine(angle: Scalar) -> tuple[Scalar, Scalar]:
    if isinstance(angle, Symbol):
        return cos(angle), sin(angle)
    return np.cos(angle), np.sin(angle)
