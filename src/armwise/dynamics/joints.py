"""Joints over scalars: how vectors and bodies cross from link to link."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from armwise.dynamics.skeleton import Segment, Skeleton
from armwise.dynamics.vectors import Scalar, Vector, add, mul, sub, turn, vadd, vector
from armwise.programs import Scalar as Symbol
from armwise.programs import cos, sin


@dataclass(frozen=True)
class Crossing:
    """A joint at some position: T_parent_child = [A Rz(θ), p].

    Attributes:
        segment: The joint's constants.
        cosine, sine: Of θ.
        position: p, child origin in the parent frame.
    """

    segment: Segment
    cosine: Scalar
    sine: Scalar
    position: Vector

    def to_parent(self, v: Vector) -> Vector:
        """Turn a vector from child axes to parent axes."""
        return turn(self.segment.turn, self.about_z(v))

    def to_child(self, v: Vector) -> Vector:
        """Turn a vector from parent axes to child axes."""
        x, y, z = turn(self.segment.turn.T, v)
        c, s = self.cosine, self.sine
        return add(mul(c, x), mul(s, y)), sub(mul(c, y), mul(s, x)), z

    def about_z(self, v: Vector) -> Vector:
        """Turn a vector by Rz(θ) only."""
        c, s = self.cosine, self.sine
        return (
            sub(mul(c, v[0]), mul(s, v[1])),
            add(mul(s, v[0]), mul(c, v[1])),
            v[2],
        )


def cross_joints(skeleton: Skeleton, q: Sequence[Scalar]) -> list[Crossing]:
    """Set every joint to its position."""
    return [_crossing(s, x) for s, x in zip(skeleton.segments, q, strict=True)]


def _crossing(segment: Segment, q: Scalar) -> Crossing:
    place = vector(segment.position)
    if not segment.is_revolute:
        slide = tuple(mul(float(a), q) for a in segment.slide)
        return Crossing(segment, 1.0, 0.0, vadd(place, slide))
    angle = add(q, segment.angle)
    if isinstance(angle, Symbol):
        return Crossing(segment, cos(angle), sin(angle), place)
    return Crossing(segment, np.cos(angle), np.sin(angle), place)
