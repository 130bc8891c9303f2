"""Keep-out regions: the floor, boxes, and the arm itself as spheres."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import BASE, Arm, Shape
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Box:
    """A box that stands still, its sides along the axes of a frame.

    Attributes:
        lower, upper: Opposite corners in [m].
        frame: Name of the base or of a frame that is fixed to it; the base if None.
    """

    lower: Sequence[float]
    upper: Sequence[float]
    frame: str | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            corner = np.asarray(getattr(self, name), dtype=float)
            if corner.shape != (3,) or not np.all(np.isfinite(corner)):
                raise ArgumentError(
                    f"A box's {name} corner must be three finite numbers in [m], "
                    f"not {getattr(self, name)!r}."
                )
            object.__setattr__(self, name, tuple(map(float, corner)))
        if not all(a < b for a, b in zip(self.lower, self.upper, strict=True)):
            raise ArgumentError(
                f"A box's lower corner {self.lower} must lie below its upper corner "
                f"{self.upper} in every direction."
            )


@dataclass(frozen=True)
class KeepOut:
    """Where the arm must not go.

    The arm is covered with spheres: from the outlines of its links where it has them
    (meshes are not read), else along the lines between its joints.

    Attributes:
        floor: Height in [m], along the base's z axis, that the arm stays above; None
            for no floor; "auto" for 0, unless the base's frame sits so high in the arm
            (at a shoulder, say) that it cannot be the floor.
        avoid_self: Whether links keep clear of each other.
        boxes: What else stands there.
        clearance: Distance kept from everything in [m].
        radius: How thick links without outlines are in [m]; 4 % of the arm's length
            if None.
        tools: Name of a frame → radius in [m] of a sphere carried there.
    """

    floor: float | Literal["auto"] | None = "auto"
    avoid_self: bool = True
    boxes: Sequence[Box] = ()
    # Judgement: 2 cm for the spheres' approximation and the controller's error.
    clearance: float = 0.02
    radius: float | None = None
    tools: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.floor, str) and self.floor != "auto":
            raise ArgumentError(
                f'floor must be a height in [m], None or "auto", not {self.floor!r}.'
            )
        sizes = {"clearance": self.clearance, "radius": self.radius, **self.tools}
        for name, size in sizes.items():
            if size is not None and not (np.isfinite(size) and size >= 0.0):
                raise ArgumentError(
                    f"{name} must be a finite length in [m], not {size}."
                )


# Spheres that cover the arm, from its links' outlines or the lines between joints.

# Judgement: links 8 cm across for a metre of arm.
THICKNESS = 0.04
"""Radius of a link without an outline, as a fraction of the arm's length."""

# Judgement: pairs to watch grow with the square of this number.
_MOST = 12
"""Spheres per outline at most."""

# In [m]: end points closer than a micrometre are one point, written twice.
_SHORT = 1e-6


@dataclass(frozen=True, eq=False)
class Sphere:
    """A sphere on a link.

    Attributes:
        link: Index of the link, or BASE.
        center: In the link's frame, in [m].
        radius: In [m].
    """

    link: int
    center: Float[np.ndarray, " 3"]
    radius: float


def cover(arm: Arm, keep_out: KeepOut) -> list[Sphere]:
    """Cover every link, and the base, with spheres.

    Raises:
        ArgumentError: If a tool's frame is not one of the arm's.
    """
    radius = keep_out.radius
    if radius is None:
        radius = THICKNESS * arm_length(arm)
    spheres: list[Sphere] = []
    for link in range(BASE, len(arm.links)):
        shapes = arm.base_shapes if link == BASE else arm.links[link].shapes
        solid = [shape for shape in shapes if shape.kind != "mesh"]
        if link == BASE:  # boxes of the base are kept clear of as boxes
            solid = [shape for shape in solid if shape.kind != "box"]
        if solid:
            spheres += [s for shape in solid for s in _cover_shape(link, shape)]
        elif not shapes or any(shape.kind == "mesh" for shape in shapes):
            spheres += _cover_lines(arm, link, radius)
    for name, size in keep_out.tools.items():
        link, T = arm.find_frame(name)
        spheres.append(Sphere(link, T[:3, 3], float(size)))
    return spheres


def arm_length(arm: Arm) -> float:
    """Length of the lines between the joints of an arm in [m]."""
    lines = [_lines(arm, link) for link in range(BASE, len(arm.links))]
    return float(sum(np.linalg.norm(end - start) for x in lines for start, end in x))


def joint_point(arm: Arm, joint: int) -> Float[np.ndarray, " 3"]:
    """A point of a joint's axis, at q = 0, in the parent's frame."""
    T, anchor = arm.joints[joint].origin, arm.joints[joint].anchor
    point: np.ndarray = T[:3, :3] @ anchor + T[:3, 3]
    return point


def link_start(arm: Arm, link: int) -> Float[np.ndarray, " 3"]:
    """Where a link hangs on its joint, in its own frame."""
    return np.zeros(3) if link == BASE else np.asarray(arm.joints[link].anchor)


def _lines(arm: Arm, link: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lines from a link's joint to its origin, and on to what it carries."""
    start, origin = link_start(arm, link), np.zeros(3)
    children = [i for i, joint in enumerate(arm.joints) if joint.parent == link]
    ends = [joint_point(arm, i) for i in children]
    if link != BASE:
        ends += [frame.pose[:3, 3] for frame in arm.frames if frame.link == link]
        inertia = arm.links[link].inertia
        # A last link without frames reaches at least to its centre of mass.
        if not ends and inertia.mass > 0.0 and inertia.defect() is None:
            ends.append(np.asarray(inertia.center_of_mass))
    taken = [start]
    lines = []
    for begin, end in [(start, origin), *[(origin, end) for end in ends]]:
        if all(np.linalg.norm(end - other) > _SHORT for other in taken):
            taken.append(end)
            lines.append((begin, end))
    return lines


def _cover_lines(arm: Arm, link: int, radius: float) -> list[Sphere]:
    spheres: list[Sphere] = []
    for start, end in _lines(arm, link):
        spheres += _along(link, start, end, radius)
    return spheres


def _along(
    link: int, start: np.ndarray, end: np.ndarray, radius: float
) -> list[Sphere]:
    """Cover a capsule: every point of it is in a sphere."""
    length = float(np.linalg.norm(end - start))
    gaps = _count(length, radius)
    # The sphere must contain the whole slab: half its length, and its radius.
    size = float(np.hypot(radius, 0.5 * length / gaps))
    fractions = np.linspace(0.0, 1.0, gaps + 1)
    return [
        Sphere(link, start + fraction * (end - start), size) for fraction in fractions
    ]


def _cover_shape(link: int, shape: Shape) -> list[Sphere]:
    R, center = shape.pose[:3, :3], shape.pose[:3, 3]
    if shape.kind == "sphere":
        return [Sphere(link, center, shape.size[0])]
    if shape.kind == "capsule":
        half = 0.5 * shape.size[1] * R[:, 2]
        return _along(link, center - half, center + half, shape.size[0])
    if shape.kind == "cylinder":
        return _stack(link, center, R[:, 2] * shape.size[1], shape.size[0])
    longest = int(np.argmax(shape.size))
    others = np.delete(np.asarray(shape.size, dtype=float), longest)
    radius = 0.5 * float(np.linalg.norm(others))
    return _stack(link, center, R[:, longest] * shape.size[longest], radius)


def _stack(
    link: int, center: np.ndarray, extent: np.ndarray, radius: float
) -> list[Sphere]:
    """Cover a cylinder slab by slab, each by the sphere around it."""
    length = float(np.linalg.norm(extent))
    slabs = _count(length, radius)
    size = float(np.hypot(radius, 0.5 * length / slabs))
    fractions = (np.arange(slabs) + 0.5) / slabs - 0.5
    return [Sphere(link, center + fraction * extent, size) for fraction in fractions]


def _count(length: float, radius: float) -> int:
    """Pieces about as long as the shape is wide, so that spheres bulge by 12 %."""
    # No thickness to compare with: as many as are allowed.
    if radius <= 0.0:
        return _MOST
    return int(np.clip(np.ceil(length / radius), 1, _MOST))
