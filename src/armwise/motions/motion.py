"""Motion protocol, holds and sequences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike


class MotionSample(NamedTuple):
    """Where a motion is at some instants; the last axis is the joint.

    Attributes:
        q: Positions in [rad] or [m].
        qd: Velocities in [rad/s] or [m/s].
        qdd: Accelerations in [rad/s²] or [m/s²].
    """

    q: Float[np.ndarray, "... dof"]
    qd: Float[np.ndarray, "... dof"]
    qdd: Float[np.ndarray, "... dof"]


@runtime_checkable
class Motion(Protocol):
    """A planned motion: a duration, and a state at every instant.

    Before it begins and after it ends the arm rests at the motion's ends.
    """

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        ...

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        ...

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]: shapes (dof,) or (N, dof)."""
        ...


def inside(
    t: ArrayLike, duration: float
) -> tuple[Float[np.ndarray, " *times"], Bool[np.ndarray, "*times 1"]]:
    """Clip times to [0, duration]; say where the motion has begun and not ended.

    Raises:
        ArgumentError: If a time is not a finite number.
    """
    times = np.asarray(t, dtype=float)
    if not np.all(np.isfinite(times)):
        raise ArgumentError("The times to sample a motion at must be finite.")
    moving = (times >= 0.0) & (times <= duration)
    return np.clip(times, 0.0, duration), moving[..., None]


def at_rest_outside(
    q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, moving: np.ndarray
) -> MotionSample:
    """Put the arm at rest wherever the motion is not under way."""
    if moving.all():
        return MotionSample(q, qd, qdd)
    return MotionSample(q, np.where(moving, qd, 0.0), np.where(moving, qdd, 0.0))


def joint_vector(
    values: ArrayLike, name: str, dof: int | None = None
) -> Float[np.ndarray, " dof"]:
    """Turn what the caller gave for each joint into a read-only vector.

    A single number serves every joint when `dof` is known.

    Raises:
        ArgumentError: If it has the wrong length or is not finite.
    """
    vector = np.array(values, dtype=float)
    if vector.ndim == 0 and dof is not None:
        vector = np.full(dof, float(vector))
    if vector.ndim != 1 or vector.size == 0 or (dof and vector.size != dof):
        expected = f"{dof} numbers" if dof else "at least one number"
        raise ArgumentError(
            f"{name} needs {expected}, one for each joint; "
            f"it has the shape {vector.shape}."
        )
    if not np.all(np.isfinite(vector)):
        raise ArgumentError(f"{name} is not finite at joint {_first_bad(vector)}.")
    vector.setflags(write=False)
    return vector


def require_positive(value: float, name: str) -> float:
    """Return the number, or say that it must be positive and finite."""
    if not (np.isfinite(value) and value > 0):
        raise ArgumentError(f"{name} must be a positive number, not {value!r}.")
    return float(value)


def _first_bad(vector: np.ndarray) -> int:
    return int(np.argmin(np.isfinite(vector))) + 1


# Holds.


@dataclass(frozen=True, eq=False)
class Hold:
    """One posture, held.

    Attributes:
        posture: Where in [rad] or [m].
        duration: For how long in [s].
    """

    posture: Float[np.ndarray, " dof"]
    duration: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "posture", joint_vector(self.posture, "posture"))
        duration = require_positive(self.duration, "duration")
        object.__setattr__(self, "duration", duration)

    @property
    def dof(self) -> int:
        """Number of joints it holds."""
        return self.posture.size

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, _ = inside(t, self.duration)
        q = np.tile(self.posture, (*times.shape, 1))
        return MotionSample(q, np.zeros_like(q), np.zeros_like(q))


# Sequences of motions.


@dataclass(frozen=True, eq=False)
class Sequence:
    """Motions joined end to end; each begins where the one before it ended.

    Attributes:
        motions: In order.
        tolerance: Largest jump in [rad] or [m] allowed where two of them meet
            (sigmoids never quite arrive: give theirs).
    """

    motions: tuple[Motion, ...]
    tolerance: float = 1e-6

    def __post_init__(self) -> None:
        object.__setattr__(self, "motions", tuple(self.motions))
        if not self.motions:
            raise ArgumentError("A sequence needs at least one motion.")
        for i, (before, after) in enumerate(
            zip(self.motions[:-1], self.motions[1:], strict=True), start=1
        ):
            _check_joint(i, before, after, self.tolerance)

    @property
    def dof(self) -> int:
        """Number of joints it moves."""
        return self.motions[0].dof

    @cached_property
    def starts(self) -> Float[np.ndarray, " motions"]:
        """When each motion begins in [s]."""
        lengths = [motion.duration for motion in self.motions]
        return np.concatenate([[0.0], np.cumsum(lengths)[:-1]])

    @property
    def duration(self) -> float:
        """How long it lasts in [s]."""
        return float(self.starts[-1] + self.motions[-1].duration)

    def sample(self, t: ArrayLike) -> MotionSample:
        """Return q, q̇, q̈ at the times t in [s]."""
        times, moving = inside(t, self.duration)
        flat = times.reshape(-1)
        which = np.searchsorted(self.starts, flat, side="right") - 1
        parts = [np.empty((flat.size, self.dof)) for _ in range(3)]
        for i, motion in enumerate(self.motions):
            is_current = which == i
            if is_current.any():
                since = np.minimum(flat[is_current] - self.starts[i], motion.duration)
                for part, values in zip(parts, motion.sample(since), strict=True):
                    part[is_current] = values
        q, qd, qdd = (part.reshape(*times.shape, self.dof) for part in parts)
        return at_rest_outside(q, qd, qdd, moving)


def _check_joint(i: int, before: Motion, after: Motion, tolerance: float) -> None:
    if before.dof != after.dof:
        raise ArgumentError(
            f"Motion {i} moves {before.dof} joints, motion {i + 1} moves {after.dof}."
        )
    jump = after.sample(0.0).q - before.sample(before.duration).q
    worst = int(np.argmax(np.abs(jump)))
    if abs(jump[worst]) > tolerance:
        raise ArgumentError(
            f"Joint {worst + 1} jumps by {jump[worst]:.6g} between motions {i} and "
            f"{i + 1}. Put a Quintic between them, or raise the tolerance."
        )
