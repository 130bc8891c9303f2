"""Internal link frames: z along the joint axis, placed for fewest operations.

Each link gets a frame whose z axis is its joint axis. Its x axis follows the common
normal to the next axis, as in modified Denavit–Hartenberg, so that a joint is
A · Rz(θ) with A a turn about x: a signed permutation for most arms, free of arithmetic.
Users never see these frames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm, InertialParameters
from armwise.dynamics.vectors import NOISE, clean

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: at 1e-3 the common normal of axes 1 m apart may lie a kilometre away, and
# levers of that length would cost six digits.
_NEARLY_PARALLEL = 1e-3
"""Sine below which the common normal of two axes is too far away to be of use."""


_UNIT_BODIES = np.stack([InertialParameters(x).pseudo_inertia for x in np.eye(10)])
"""Pseudo-inertia of each of the ten parameters alone."""


@dataclass(frozen=True, eq=False)
class JointSegment:
    """A joint between internal frames: T = [A Rz(θ), p], θ = angle + q if it turns.

    Attributes:
        parent: Index of the segment it is mounted on, or BASE.
        is_revolute: Whether q turns it; else q slides it along its z axis.
        turn: The constant rotation A.
        angle: Constant part of θ in [rad].
        position: Child origin in the parent frame at q = 0, in [m].
        from_user: T_internal_user, from the user's link frame to this one.
        gravity: Free fall in the frame of the root, for segments on the base.
        from_base: T_root_base, for segments on the base.
    """

    parent: int
    is_revolute: bool
    turn: Float[np.ndarray, "3 3"]
    angle: float
    position: Float[np.ndarray, " 3"]
    from_user: Float[np.ndarray, "4 4"]
    gravity: Float[np.ndarray, " 3"]
    from_base: Float[np.ndarray, "4 4"]

    @property
    def slide(self) -> Float[np.ndarray, " 3"]:
        """Direction of the joint axis in the parent frame."""
        return self.turn[:, 2]


@dataclass(frozen=True, eq=False)
class Skeleton:
    """The internal frames of an arm, joint by joint."""

    segments: tuple[JointSegment, ...]

    @property
    def size(self) -> int:
        """Number of joints."""
        return len(self.segments)

    def ancestors(self, i: int) -> list[int]:
        """Joints that carry joint i, itself first."""
        carriers = []
        while i != BASE:
            carriers.append(i)
            i = self.segments[i].parent
        return carriers

    def carries(self, i: int, j: int) -> bool:
        """Whether joint i moves link j."""
        return i in self.ancestors(j)

    def rooted_at(self, point: Float[np.ndarray, " 3"]) -> Skeleton:
        """Return the same frames, all roots given in base axes about one point.

        A base that stands still lets each root choose axes of its own, which saves
        operations; on one that moves they must meet in one frame.
        """
        return Skeleton(
            tuple(s if s.parent != BASE else _rooted(s, point) for s in self.segments)
        )


def build_skeleton(arm: Arm) -> Skeleton:
    """Place the internal frames of an arm."""
    user = _user_poses(arm)
    internal = _internal_poses(arm, user)
    return Skeleton(
        tuple(_segment(arm, i, user, internal) for i in range(len(arm.joints)))
    )


def _rooted(segment: JointSegment, point: np.ndarray) -> JointSegment:
    T = np.linalg.inv(segment.from_base)
    position = T[:3, :3] @ segment.position + T[:3, 3] - point
    return replace(
        segment,
        turn=clean(T[:3, :3] @ segment.turn),
        position=np.where(np.abs(position) < NOISE, 0.0, position),
        gravity=T[:3, :3] @ segment.gravity,
        from_base=np.eye(4),
    )


def inertia_to_internal(segment: JointSegment) -> Float[np.ndarray, "10 10"]:
    """Map a link's ten parameters to [m, h, Σxx Σxy Σxz Σyy Σyz Σzz], internal frame.

    Σ = ∫ r rᵀ dm takes one multiplication less per link than the inertia I, and its
    Σzz belongs, for a revolute joint, to the parent.
    """
    moved = segment.from_user @ _UNIT_BODIES @ segment.from_user.T
    rows = moved[:, [3, 0, 1, 2, 0, 0, 0, 1, 1, 2], [3, 3, 3, 3, 0, 1, 2, 1, 2, 2]]
    return clean(rows.T)


def _user_poses(arm: Arm) -> list[np.ndarray]:
    """T_base_link of every link at q = 0."""
    poses: list[np.ndarray] = []
    for joint in arm.joints:
        carrier = np.eye(4) if joint.parent == BASE else poses[joint.parent]
        poses.append(carrier @ joint.origin)
    return poses


def _internal_poses(arm: Arm, user: list[np.ndarray]) -> list[np.ndarray]:
    """T_base_internal of every link at q = 0, from the tips to the base."""
    count = len(arm.joints)
    axes = [user[i][:3, :3] @ arm.joints[i].axis for i in range(count)]
    points = [
        user[i][:3, 3] + user[i][:3, :3] @ arm.joints[i].anchor for i in range(count)
    ]
    main = _main_children(arm)
    placed: list[np.ndarray | None] = [None] * count
    for i in reversed(range(count)):
        k = main[i]
        if k is not None:
            if not arm.joints[k].is_revolute:  # a slide has a direction, not a line
                points[k] = placed[k][:3, 3]  # type: ignore[index]
            placed[i] = _frame_towards(axes[i], points[i], axes[k], placed[k])
        else:
            placed[i] = _leaf(arm, i, axes, points)
    return placed  # type: ignore[return-value]


def _main_children(arm: Arm) -> list[int | None]:
    """For each link, the child that carries most; the one that gets the x axis."""
    weight = [1] * len(arm.joints)
    for i in reversed(range(len(arm.joints))):
        if arm.joints[i].parent != BASE:
            weight[arm.joints[i].parent] += weight[i]
    main: list[int | None] = [None] * len(arm.joints)
    for i, joint in enumerate(arm.joints):
        if joint.parent != BASE:
            best = main[joint.parent]
            if best is None or weight[i] > weight[best]:
                main[joint.parent] = i
    return main


def _frame_towards(
    z: np.ndarray, point: np.ndarray, z_child: np.ndarray, child: np.ndarray | None
) -> np.ndarray:
    """Put x on the common normal from the line (point, z) to the child's axis."""
    assert child is not None
    target = child[:3, 3]
    normal = np.cross(z, z_child)
    sine = float(np.linalg.norm(normal))
    # The foot of the common normal of two skew lines.
    if sine >= _NEARLY_PARALLEL:
        x = normal / sine
        origin = point + z * (np.cross(target - point, z_child) @ normal) / sine**2
        if (target - origin) @ x < 0 and abs((target - origin) @ x) > NOISE:
            x = -x
        return _pose(x, z, origin)
    origin = point + z * ((target - point) @ z)
    across = target - origin
    distance = float(np.linalg.norm(across))
    # Coincident axes have no normal: the child's x makes the turn between them zero.
    x = across / distance if distance > 1e-9 else child[:3, 0]
    return _pose(x - z * (x @ z), z, origin)


def _leaf(
    arm: Arm, i: int, axes: list[np.ndarray], points: list[np.ndarray]
) -> np.ndarray:
    """Place a last link so that its own offset along and about z vanish."""
    parent = arm.joints[i].parent
    z = axes[i]
    if parent == BASE:
        # The base axis farthest from z: the projection is well conditioned.
        x = np.eye(3)[int(np.argmin(np.abs(z)))]
        return _pose(x - z * (x @ z), z, points[i])
    normal = np.cross(axes[parent], z)
    sine = float(np.linalg.norm(normal))
    if sine >= _NEARLY_PARALLEL:
        gap = points[i] - points[parent]
        along = np.cross(gap, axes[parent]) @ normal / sine**2
        foot = points[i] + z * along if arm.joints[i].is_revolute else points[i]
        return _pose(_outwards(normal / sine, gap), z, foot)
    foot = points[i] + z * ((points[parent] - points[i]) @ z)
    across = foot - points[parent]
    # Coincident axes: any x will do, and the base axis farthest from z is safest.
    if np.linalg.norm(across) < 1e-9:
        across = np.eye(3)[int(np.argmin(np.abs(z)))]
    return _pose(across - z * (across @ z), z, foot)


def _outwards(x: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """Let the normal point from the parent's axis to the child's, if they differ."""
    distance = float(x @ gap)
    return -x if distance < -NOISE else x


def _pose(x: np.ndarray, z: np.ndarray, origin: np.ndarray) -> np.ndarray:
    x = x / np.linalg.norm(x)
    pose = np.eye(4)
    pose[:3, 0], pose[:3, 1], pose[:3, 2], pose[:3, 3] = x, np.cross(z, x), z, origin
    return pose


def _segment(
    arm: Arm, i: int, user: list[np.ndarray], internal: list[np.ndarray]
) -> JointSegment:
    joint = arm.joints[i]
    root = internal[i] if joint.parent == BASE else internal[joint.parent]
    between = np.linalg.inv(root) @ internal[i]
    turn, angle = _split_turn(between[:3, :3], joint.is_revolute)
    position = between[:3, 3]
    position = np.where(np.abs(position) < NOISE, 0.0, position)
    gravity = internal[i][:3, :3].T @ arm.gravity
    gravity = np.where(np.abs(gravity) < NOISE, 0.0, gravity)
    return JointSegment(
        parent=joint.parent,
        is_revolute=joint.is_revolute,
        turn=turn,
        angle=angle,
        position=position,
        from_user=np.linalg.inv(internal[i]) @ user[i],
        gravity=gravity,
        from_base=np.linalg.inv(internal[i]),
    )


def _split_turn(rotation: np.ndarray, is_revolute: bool) -> tuple[np.ndarray, float]:
    """Write a rotation as Rx(α) Rz(angle) where that is possible."""
    # A slide does not turn about its axis: there is no angle to split off.
    if not is_revolute:
        return clean(rotation), 0.0
    if abs(rotation[0, 2]) > NOISE:  # z of the child is not in the parent's y-z plane
        return clean(rotation), 0.0
    angle = float(np.arctan2(-rotation[0, 1], rotation[0, 0]))
    c, s = np.cos(angle), np.sin(angle)
    turn = rotation @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    # Exact quarter turns vanish from traced programs.
    quarter = round(angle / (np.pi / 2)) * (np.pi / 2)
    return clean(turn), quarter if abs(angle - quarter) < NOISE else angle
