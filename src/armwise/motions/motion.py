"""What a planned motion is, and what every kind of it shares."""

from __future__ import annotations

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
    """A planned motion: it lasts a while and can be asked where it is.

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
        wanted = f"{dof} numbers" if dof else "at least one number"
        raise ArgumentError(
            f"{name} needs {wanted}, one for each joint; "
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
