"""Clearance of an arm from the floor, boxes and itself, with gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import BASE, Arm, Shape
from armwise.dynamics import constant_pose, link_poses, mechanism_of, place_pose
from armwise.errors import ArgumentError
from armwise.excitation.bounds import Bounds
from armwise.programs import Backend, Kernel, Program, gradient, trace

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# Distances of this many pairs over a motion stay in cache.
_AT_ONCE = 32


@dataclass(frozen=True, eq=False)
class Obstacle:
    """A box at rest: its pose T_base_box and half its extents in [m]."""

    pose: Float[np.ndarray, "4 4"]
    half: Float[np.ndarray, " 3"]


@dataclass(frozen=True, eq=False)
class Encounters:
    """Which spheres may meet what.

    Attributes:
        pairs: Two spheres of the arm, by index.
        low: Spheres that may reach the floor.
        boxed: Sphere and obstacle, by index.
    """

    pairs: Float[np.ndarray, "pairs 2"]
    low: Float[np.ndarray, " low"]
    boxed: Float[np.ndarray, "boxed 2"]

    @property
    def count(self) -> int:
        """How many distances there are."""
        return len(self.pairs) + len(self.low) + len(self.boxed)

    def selected(self, mask: np.ndarray) -> Encounters:
        """Return those that a mask over all of them keeps."""
        a, b = len(self.pairs), len(self.pairs) + len(self.low)
        return Encounters(
            self.pairs[mask[:a]], self.low[mask[a:b]], self.boxed[mask[b:]]
        )


class SphereModel:
    """Centres of an arm's spheres for many postures, and their gradients."""

    def __init__(self, arm: Arm, spheres: Sequence[Sphere], backend: Backend) -> None:
        self.radii = np.array([sphere.radius for sphere in spheres])
        program = _trace_centers(arm, spheres)
        self._kernel = Kernel(program, backend)
        self._stored = np.array(program.outputs[0].nonzero, dtype=int)
        self._gradient = Kernel(gradient(program, ("q",)), backend)

    def centers(self, q: np.ndarray) -> Float[np.ndarray, "spheres 3 postures"]:
        """Where the spheres are, in base axes, in [m]."""
        centers = np.zeros((3 * self.radii.size, len(q)))
        centers[self._stored] = self._kernel.columns([q])[0]
        return centers.reshape(-1, 3, len(q))

    def slopes(self, q: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Gradient of ⟨weights, centers⟩ by q."""
        flat = weights.reshape(-1, len(q))[self._stored]
        return self._gradient([q, np.ascontiguousarray(flat.T)])[0]


class Clearance:
    """Room left around an arm: distances, less what must be kept.

    Args:
        model: The arm as spheres.
        encounters: What may meet.
        obstacles: Boxes at rest.
        floor: Height of the floor in [m].
        distance: Distance kept from everything in [m].
    """

    def __init__(
        self,
        model: SphereModel,
        encounters: Encounters,
        obstacles: Sequence[Obstacle],
        floor: float,
        distance: float,
    ) -> None:
        self.model, self.encounters, self.obstacles = model, encounters, obstacles
        self.floor, self.distance = floor, distance
        radii = model.radii
        self._reach = np.concatenate(
            [
                radii[encounters.pairs].sum(axis=1),
                radii[encounters.low],
                radii[encounters.boxed[:, 0]],
            ]
        )

    @cached_property
    def unit(self) -> float:
        """A typical distance in [m], to measure room by."""
        # A millimetre keeps it above zero for spheres without radius or clearance.
        return float(np.median(self._reach)) + self.distance + 1e-3

    def narrowed(self, mask: np.ndarray) -> Clearance:
        """Return the same with only some of the encounters."""
        selection = self.encounters.selected(mask)
        return Clearance(
            self.model, selection, self.obstacles, self.floor, self.distance
        )

    def room(self, q: np.ndarray) -> Float[np.ndarray, "encounters postures"]:
        """Distance between surfaces less what must be kept, in [m]."""
        centers, e = self.model.centers(q), self.encounters
        distance = np.empty((e.count, len(q)))
        a, b = len(e.pairs), len(e.pairs) + len(e.low)
        _distances(centers, e.pairs, distance[:a])
        distance[a:b] = centers[e.low, 2] - self.floor
        for k, (sphere, box) in enumerate(e.boxed, start=b):
            distance[k] = box_distance(centers[sphere], self.obstacles[box])[0]
        distance -= (self._reach + self.distance)[:, None]
        return distance

    def slopes(
        self, q: np.ndarray, weights: Float[np.ndarray, "encounters postures"]
    ) -> Float[np.ndarray, "postures dof"]:
        """Gradient of ⟨weights, room⟩ by q."""
        centers, e = self.model.centers(q), self.encounters
        push = np.zeros_like(centers)
        a, b = len(e.pairs), len(e.pairs) + len(e.low)
        # Most encounters are far off and carry no weight.
        for k in np.flatnonzero(weights.any(axis=1)):
            if k < a:
                first, second = e.pairs[k]
                way = centers[first] - centers[second]
                # Coincident centres have no direction: 1e-9 m turns 0/0 into no push.
                way *= weights[k] / np.maximum(np.linalg.norm(way, axis=0), 1e-9)
                push[first] += way
                push[second] -= way
            elif k < b:
                push[e.low[k - a], 2] += weights[k]
            else:
                sphere, box = e.boxed[k - b]
                way = box_distance(centers[sphere], self.obstacles[box])[1]
                push[sphere] += weights[k] * way
        return self.model.slopes(q, push)


def _distances(
    centers: Float[np.ndarray, "spheres 3 postures"], pairs: np.ndarray, out: np.ndarray
) -> None:
    """Fill in the distances of pairs of centres, a few at a time to stay in cache."""
    for begin in range(0, len(pairs), _AT_ONCE):
        first, second = pairs[begin : begin + _AT_ONCE].T
        total = out[begin : begin + _AT_ONCE]
        total[:] = 0.0
        for k in range(3):
            apart = centers[first, k] - centers[second, k]
            apart *= apart
            total += apart
        np.sqrt(total, out=total)


def box_distance(
    points: Float[np.ndarray, "3 points"], box: Obstacle
) -> tuple[Float[np.ndarray, " points"], Float[np.ndarray, "3 points"]]:
    """Signed distance of points from a box, and the direction in which it grows."""
    R, origin = box.pose[:3, :3], box.pose[:3, 3]
    inside = R.T @ (points - origin[:, None])
    beyond = np.abs(inside) - box.half[:, None]
    outer = np.maximum(beyond, 0.0)
    far = np.linalg.norm(outer, axis=0)
    # Inside the box the nearest face counts, and the distance is negative.
    depth = beyond.max(axis=0)
    face = np.eye(3)[:, np.argmax(beyond, axis=0)]
    way = np.where(depth > 0.0, outer / np.maximum(far, 1e-12), face)
    # Not np.sign: on a plane of symmetry it would be 0 and lose the direction.
    direction = R @ (way * np.where(inside < 0.0, -1.0, 1.0))
    return np.where(depth > 0.0, far, depth), direction


def place_boxes(arm: Arm, keep_out: KeepOut) -> list[Obstacle]:
    """Put the user's boxes, and those that the arm's base is made of, in base axes.

    Raises:
        ArgumentError: If a box's frame is unknown or moves.
    """
    obstacles: list[Obstacle] = []
    for box in keep_out.boxes:
        link, T = (
            arm.find_frame(box.frame) if box.frame is not None else (BASE, np.eye(4))
        )
        if link != BASE:
            raise ArgumentError(
                f"A box must stand still, but the frame {box.frame!r} of {arm.name} "
                "moves. Give the box in a frame of the base."
            )
        lower, upper = np.array(box.lower), np.array(box.upper)
        at = np.eye(4)
        at[:3, 3] = 0.5 * (lower + upper)
        obstacles.append(Obstacle(T @ at, 0.5 * (upper - lower)))
    for shape in arm.base_shapes:
        if shape.kind == "box":
            obstacles.append(Obstacle(shape.pose, 0.5 * np.asarray(shape.size)))
    return obstacles


def _trace_centers(arm: Arm, spheres: Sequence[Sphere]) -> Program:
    mechanism = mechanism_of(arm)
    segments = mechanism.skeleton.segments

    def centers(q):  # type: ignore[no-untyped-def]
        poses = link_poses(mechanism.skeleton, mechanism.joints(q, is_position=True))
        centers_of_frames = []
        for sphere in spheres:
            T = np.eye(4)
            T[:3, 3] = sphere.center
            if sphere.link == BASE:
                pose = constant_pose(T)
            else:
                inner = segments[sphere.link].from_user @ T
                pose = place_pose(poses[sphere.link], inner)
            centers_of_frames.append(list(pose[1]))
        return {"centers": centers_of_frames}

    return trace("sphere_centers", centers, {"q": mechanism.dof})


# Encounters: the pairs of spheres and obstacles that can meet.

# Enough to tell 95 % (`ALWAYS`) from, say, 90 %: a standard error of 1 %.
POSTURES = 400
"""Random postures that show what always touches."""

NEIGHBOURS = 2.0
"""Spheres that would touch if the arm between them were shorter by this many times the
thinner one are neighbours: they come close in ordinary postures."""

ALWAYS = 0.95
"""Fraction of postures in which a pair touches, above which the outlines overlap by
construction (neighbouring links) and the pair is not watched."""

# In [m]: heights that rounding alone changes.
_STILL = 1e-9


def keep_clear(
    arm: Arm, keep_out: KeepOut | None, bounds: Bounds, backend: Backend = "auto"
) -> tuple[Clearance | None, tuple[str, ...]]:
    """Work out what an arm must keep clear of.

    Returns:
        The distances to watch, or None if there are none, and notes on what is not
        watched.
    """
    if keep_out is None:
        return None, ()
    spheres = cover(arm, keep_out)
    if not any(sphere.link != BASE for sphere in spheres):
        return None, ("The arm has no outline and no length: no keep-out is kept.",)
    model = SphereModel(arm, spheres, backend)
    # Any fixed seed: what is watched must not change from run to run.
    q = np.random.default_rng(1992).uniform(
        bounds.lower, bounds.upper, (POSTURES, arm.dof)
    )
    centers = model.centers(q)
    notes: list[str] = []
    floor, low = _floor(spheres, centers, keep_out, notes)
    pairs = _pairs(arm, spheres, keep_out) if keep_out.avoid_self else _none(2)
    obstacles = place_boxes(arm, keep_out)
    moving = np.array([k for k, s in enumerate(spheres) if s.link != BASE])
    boxed = [(k, b) for b in range(len(obstacles)) for k in moving]
    encounters = Encounters(pairs, low, np.array(boxed, dtype=int).reshape(-1, 2))
    clearance = Clearance(model, encounters, obstacles, floor, keep_out.clearance)
    return _without_permanent(clearance, q, arm.rest, notes), tuple(notes)


def _without_permanent(
    clearance: Clearance, q: np.ndarray, rest: np.ndarray, notes: list[str]
) -> Clearance | None:
    """Stop watching pairs of the arm's own parts that touch wherever it goes.

    Those that touch where the description shows the arm are of the same kind: fingers
    of a closed gripper, outlines that are too wide.
    """
    touching = np.mean(clearance.room(q) < 0.0, axis=1)
    permanent = (touching >= ALWAYS) | (clearance.room(rest[None])[:, 0] < 0.0)
    # The floor and boxes are the user's: touching them is always reported.
    permanent[len(clearance.encounters.pairs) :] = False
    if permanent.any():
        notes.append(
            f"{np.count_nonzero(permanent)} pairs of spheres touch in nearly every "
            "posture, or where the arm is described, and are not watched."
        )
    avoidable = clearance.narrowed(~permanent)
    return avoidable if avoidable.encounters.count else None


def _floor(
    spheres: Sequence[Sphere],
    centers: np.ndarray,
    keep_out: KeepOut,
    notes: list[str],
) -> tuple[float, Int[np.ndarray, " low"]]:
    """Height of the floor, and the spheres that go up and down."""
    if keep_out.floor is None:
        return 0.0, _none()
    radii = np.array([s.radius for s in spheres])
    heights = centers[:, 2]
    # Spheres whose height no joint changes say where the foot is.
    steady = np.ptp(heights, axis=1) < _STILL
    moving = np.array([s.link != BASE for s in spheres])
    if keep_out.floor == "auto":
        fixed = steady & moving
        lowest = (heights[:, 0] - radii)[fixed].min() if fixed.any() else -np.inf
        if lowest < -_STILL:
            notes.append(
                "The base's frame is not at the foot of the arm: no floor is kept. "
                "Give its height with KeepOut(floor=...)."
            )
            return 0.0, _none()
        return 0.0, np.flatnonzero(~steady)
    return float(keep_out.floor), np.flatnonzero(~steady)


def _pairs(
    arm: Arm, spheres: Sequence[Sphere], keep_out: KeepOut
) -> Int[np.ndarray, "pairs 2"]:
    """Pairs of spheres on different links that are not next to each other."""
    ways = [_way_down(arm, sphere) for sphere in spheres]
    pairs = []
    for a, first in enumerate(spheres):
        for b in range(a + 1, len(spheres)):
            second = spheres[b]
            if first.link == second.link:
                continue
            thin = 2.0 * min(first.radius, second.radius) + keep_out.clearance
            touching = first.radius + second.radius + keep_out.clearance
            if _along_arm(ways[a], ways[b]) > touching + NEIGHBOURS * thin:
                pairs.append((a, b))
    return np.array(pairs, dtype=int).reshape(-1, 2)


_Way = dict[int, tuple[float, np.ndarray]]


def _way_down(arm: Arm, sphere: Sphere) -> _Way:
    """How far it is along the arm from a sphere to each link below, and where."""
    link, point, length = sphere.link, sphere.center, 0.0
    way: _Way = {link: (length, point)}
    while link != BASE:
        length += float(np.linalg.norm(point - link_start(arm, link)))
        point, link = joint_point(arm, link), arm.joints[link].parent
        way[link] = (length, point)
    return way


def _along_arm(first: _Way, second: _Way) -> float:
    """Distance of two spheres along the arm's lines in [m]."""
    # Both ways lead to the base; the first common link is where they part.
    meeting = next(link for link in first if link in second)
    (a, p), (b, r) = first[meeting], second[meeting]
    return a + b + float(np.linalg.norm(p - r))


def _none(columns: int | None = None) -> np.ndarray:
    return np.zeros(0 if columns is None else (0, columns), dtype=int)


# Keep-out regions: the floor, boxes, and the arm itself as spheres.


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
