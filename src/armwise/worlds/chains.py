"""A plain arm for examples and measurements: equal rods, joint after joint."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.arms import Arm, Drive, Frame, Joint, Link
from armwise.errors import ArgumentError
from armwise.worlds.segments import rod


def planar_chain(
    count: int,
    length: float | Sequence[float] = 1.0,
    mass: float | Sequence[float] = 1.0,
    radius: float = 0.03,
    viscous: float = 0.0,
    name: str = "chain",
) -> Arm:
    """Return rods hinged about y, stretched along x at q = 0.

    Links are `link_1` …, joints `joint_1` …; the frame `tip` is the end of the last.

    Args:
        count: Number of links.
        length: Of each link in [m]; one number, or one for each.
        mass: Of each link in [kg]; one number, or one for each.
        radius: Of the rods in [m].
        viscous: Friction in each joint in [N m s/rad].
        name: Name of the arm.
    """
    if count < 1:
        raise ArgumentError(f"A chain needs at least one link, not {count}.")
    lengths, masses = _each(length, count, "lengths"), _each(mass, count, "masses")
    segments = [
        rod(m, (0.0, 0.0, 0.0), (l, 0.0, 0.0), radius)
        for l, m in zip(lengths, masses, strict=True)
    ]
    joints = tuple(
        Joint(
            f"joint_{i + 1}",
            "revolute",
            i - 1,
            _along_x(lengths[i - 1] if i else 0.0),
            np.array([0.0, 1.0, 0.0]),
            drive=Drive(viscous=viscous),
        )
        for i in range(count)
    )
    links = tuple(
        Link(f"link_{i + 1}", segment.inertia, (segment.shape,))
        for i, segment in enumerate(segments)
    )
    return Arm(
        name, joints, links, frames=(Frame("tip", count - 1, _along_x(lengths[-1])),)
    )


def _each(value: float | Sequence[float], count: int, what: str) -> list[float]:
    if isinstance(value, Sequence):
        values = [float(x) for x in value]
    else:
        values = [float(value)] * count
    if len(values) != count or not all(x > 0 for x in values):
        raise ArgumentError(
            f"A chain of {count} links needs {count} positive {what}, not {value!r}."
        )
    return values


def _along_x(distance: float) -> np.ndarray:
    pose = np.eye(4)
    pose[0, 3] = distance
    return pose
