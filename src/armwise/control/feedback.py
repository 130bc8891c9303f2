"""PD feedback, velocity estimates, robust term, and saved controller states."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from armwise.arms import Arm, kinematics_digest
from armwise.errors import ArgumentError
from armwise.files import replacing
from armwise.tables import read_arrays

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.motions import MotionSample
    from armwise.plants import Measurement


# Feedback gains: checked once, applied to batches.


def feedback_gain(value: ArrayLike, name: str) -> Float[np.ndarray, "*shape"]:
    """Return a gain as a number, one per joint, or a matrix; refuse useless ones.

    Raises:
        ArgumentError: Unless it is finite, symmetric and positive definite.
    """
    gain = np.array(value, dtype=float)
    if gain.ndim > 2 or gain.size == 0 or not np.all(np.isfinite(gain)):
        raise ArgumentError(
            f"{name} must be finite: a number, one per joint, or a matrix."
        )
    if gain.ndim == 2 and (
        gain.shape[0] != gain.shape[1] or not np.allclose(gain, gain.T)
    ):
        raise ArgumentError(f"{name} must be a symmetric matrix.")
    lowest = np.linalg.eigvalsh(gain)[0] if gain.ndim == 2 else gain.min()
    if gain.ndim == 0 and not lowest > 0.0:
        raise ArgumentError(f"{name} must be positive, not {float(gain):.4g}.")
    if not lowest > 0.0:
        raise ArgumentError(
            f"{name} must be positive definite; its smallest eigenvalue is "
            f"{lowest:.4g}."
        )
    gain.setflags(write=False)
    return gain


def apply_feedback(
    gain: Float[np.ndarray, "*shape"], error: Float[np.ndarray, "... dof"]
) -> Float[np.ndarray, "... dof"]:
    """K e for a K from `feedback_gain` (symmetric, so e Kᵀ = e K)."""
    product: np.ndarray = gain * error if gain.ndim < 2 else error @ gain
    return product


def sliding_reference(
    rate: Float[np.ndarray, "*shape"],
    reference: MotionSample,
    q: Float[np.ndarray, "... dof"],
    qd: Float[np.ndarray, "... dof"],
) -> tuple[Float[np.ndarray, "... dof"], Float[np.ndarray, "... dof"]]:
    """Reference q̇_r = q̇_d − Λ e and q̈_r = q̈_d − Λ ė, with e = q − q_d.

    On s = q̇ − q̇_r = 0 the error decays with the rate Λ (Slotine and Li).
    """
    qdr = reference.qd - apply_feedback(rate, q - reference.q)
    qddr = reference.qdd - apply_feedback(rate, qd - reference.qd)
    return qdr, qddr


# States that come from outside.

LARGEST_STATE = 1e6
"""Of any angle, speed, torque or filtered signal in a state: far beyond all arms."""


def restored(
    state: Mapping[str, np.ndarray],
    name: str,
    shape: tuple[int, ...],
    largest: float = LARGEST_STATE,
) -> Float[np.ndarray, "*shape"]:
    """Return one array of a state, if it can be that of a controller like this one.

    Args:
        state: All arrays.
        name: Which.
        shape: What it has to have; −1 where any number will do.
        largest: Bound on every number.

    Raises:
        ArgumentError: If it is missing, of another shape, not finite or too large.
    """
    if name not in state:
        raise ArgumentError(
            f'The state has no "{name}" and belongs to another controller.'
        )
    value = np.asarray(state[name])
    fits = value.ndim == len(shape) and all(
        want in (-1, size) for size, want in zip(value.shape, shape, strict=True)
    )
    if not fits or value.dtype.kind not in "fb":
        raise ArgumentError(
            f"The saved {name} has shape {value.shape}, not {shape}; it belongs to "
            "another controller."
        )
    if not np.all(np.abs(value.astype(float)) <= largest):
        raise ArgumentError(
            f"The saved {name} is not finite, or beyond {largest:g}; begin anew."
        )
    return value.copy()


# Velocities: measured, or differentiated from positions.

_FASTEST = 1e3
"""Speed in [rad/s] or [m/s] that no arm reaches: after a pause it was moved by hand."""


class VelocitySource:
    """The tachometer where there is one, else filtered differences of the encoder.

    The difference passes a first-order low-pass, which a controller can afford:
    s/(1 + s/ω), ω = 2π · cutoff.
    """

    def __init__(self, cutoff_hz: float = 60.0) -> None:
        self.cutoff_hz = cutoff_hz
        self._last: np.ndarray | None = None
        self._qd: np.ndarray | None = None
        self._keep = 0.0
        self._period = 1.0
        self._is_resumed = False

    def reset(self, period: float) -> None:
        """Begin anew, called every `period` [s]."""
        self._last = self._qd = None
        self._is_resumed = False
        self._period = period
        # Exact discretisation of the first-order low-pass.
        self._keep = float(np.exp(-2.0 * np.pi * self.cutoff_hz * period))

    def read(
        self, measurement: Measurement, start: Float[np.ndarray, "... dof"]
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the velocity; `start` is the velocity before there are two."""
        if measurement.qd is not None:
            return measurement.qd
        q = measurement.need("q")
        if self._is_resumed and self._has_jumped(q):
            self._last = None
        self._is_resumed = False
        if self._last is None or self._qd is None:
            self._qd = np.broadcast_to(start, q.shape).copy()
        else:
            raw = (q - self._last) / self._period
            self._qd = self._keep * self._qd + (1.0 - self._keep) * raw
        self._last = np.array(q)
        return self._qd

    def _has_jumped(self, q: np.ndarray) -> bool:
        """Whether the arm cannot have come here since the state was saved."""
        if self._last is None or self._last.shape != q.shape:
            return True
        return bool(np.any(np.abs(q - self._last) > _FASTEST * self._period))

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        if self._last is None or self._qd is None:
            return {}
        return {"last_q": self._last.copy(), "filtered_qd": self._qd.copy()}

    def restore(self, state: Mapping[str, np.ndarray], shape: tuple[int, ...]) -> None:
        """Go on from where `to_dict` was called.

        Args:
            state: What it returned.
            shape: Plants and joints, as in `restored`.
        """
        self._last = self._qd = None
        if "last_q" in state:
            last = restored(state, "last_q", shape)
            self._qd = restored(state, "filtered_qd", last.shape, _FASTEST)
            self._last, self._is_resumed = last, True


# Proportional and derivative feedback, joint by joint.


class PD:
    """τ = K_p (q_d − q) + K_v (q̇_d − q̇), or − K_v q̇ without a velocity reference.

    The five analog controllers of `atkeson1986` App. A are this one with and without
    `velocity_reference`, alone and inside `Feedforward`.

    Args:
        kp: K_p in [N m/rad] or [N/m]: a number, one per joint, or a matrix.
        kd: K_v in [N m s/rad] or [N s/m].
        velocity_reference: Whether the reference velocity is fed in.
        cutoff_hz: Low-pass on differences of positions where no tachometer is.
    """

    def __init__(
        self,
        kp: ArrayLike,
        kd: ArrayLike,
        velocity_reference: bool = True,
        cutoff_hz: float = 60.0,
    ) -> None:
        self.kp = feedback_gain(kp, "kp")
        self.kd = feedback_gain(kd, "kd")
        self.velocity_reference = velocity_reference
        self._velocity = VelocitySource(cutoff_hz)
        self._batch = -1

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        self._batch = batch
        self._velocity.reset(period)

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        qd = self._velocity.read(measurement, reference.qd)
        slow = reference.qd - qd if self.velocity_reference else -qd
        spring = apply_feedback(self.kp, reference.q - measurement.need("q"))
        tau: np.ndarray = spring + apply_feedback(self.kd, slow)
        return tau

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        return self._velocity.to_dict()

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        joints = self.kp.shape[0] if self.kp.ndim else -1
        self._velocity.restore(state, (self._batch, joints))


# Controllers whose state can be saved and restored.


@runtime_checkable
class ResumableController(Protocol):
    """A controller whose whole state can be taken out, stored, and put back."""

    def reset(self, batch: int, period: float) -> None:
        """Begin anew, for `batch` plants controlled every `period` [s]."""
        ...

    def torque(
        self, t: float, reference: MotionSample, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """Return the torques [N m] or forces [N] to hold from time t [s] on."""
        ...

    def to_dict(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        ...

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from where `to_dict` was called, after `reset`."""
        ...


# A controller's state on disk.


def save_state(controller: ResumableController, path: str | Path) -> None:
    """Write a controller's state to an .npz file, all at once or not at all."""
    state = controller.to_dict()
    words = {"kind": np.array(_kind(controller))}
    words["seal"] = np.array(_seal(state, _kind(controller)))
    with replacing(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, **state, **words)  # type: ignore[arg-type]


def load_state(controller: ResumableController, path: str | Path) -> None:
    """Put a state from `save_state` back into a controller that was reset.

    Only the state of a controller of the same kind, for an arm of the same kinematics,
    exactly as it was written, is taken: it becomes torque.

    Raises:
        ArgumentError: If the file is damaged or belongs to another controller.
    """
    state = read_arrays(Path(path), "a controller's state", ArgumentError)
    kind, seal = (str(state.pop(name, "")) for name in ("kind", "seal"))
    if kind != _kind(controller):
        raise ArgumentError(
            f"{path} belongs to another controller: {kind or 'of no kind'}, not "
            f"{_kind(controller)}."
        )
    if seal != _seal(state, kind):
        raise ArgumentError(
            f"{path} was changed after it was saved. Begin anew with reset."
        )
    before = controller.to_dict()
    try:
        controller.restore(state)
    except ArgumentError as error:
        controller.restore(before)
        raise ArgumentError(f"{path}: {error}") from error


def _kind(controller: object) -> str:
    """What a controller is, what it contains, and how its arm moves, in words."""
    name = type(controller).__name__
    inner = getattr(controller, "feedback", getattr(controller, "controller", None))
    model = getattr(controller, "model", None)
    arm = getattr(getattr(model, "parameters", model), "arm", None)
    parts = [] if inner is None else [_kind(inner)]
    parts += [kinematics_digest(arm)] if isinstance(arm, Arm) else []
    return f"{name}({', '.join(parts)})" if parts else name


def _seal(state: Mapping[str, np.ndarray], kind: str) -> str:
    """Digest of a whole state."""
    digest = hashlib.sha256(kind.encode())
    for name in sorted(state):
        array = np.ascontiguousarray(state[name])
        digest.update(f"{name}{array.dtype}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


# Robust term: a bounded torque towards the sliding surface.


@dataclass(frozen=True, eq=False)
class RobustTerm:
    """−k sat(s/φ): covers bounded unmodelled torque without chattering.

    Attributes:
        strength: k, the torque it may use, in [N m] or [N], one or one per joint.
        boundary: φ, the width of the layer in which it is linear, in the units of s.
    """

    strength: float | Float[np.ndarray, " dof"]
    # Judgement, in [rad/s] or [m/s]: narrower is more exact and chatters sooner.
    boundary: float = 0.05

    def __post_init__(self) -> None:
        feedback_gain(self.strength, "strength")
        feedback_gain(self.boundary, "boundary")

    def torque(self, s: Float[np.ndarray, "... dof"]) -> Float[np.ndarray, "... dof"]:
        """Return the torque against s."""
        return -self.strength * np.clip(s / self.boundary, -1.0, 1.0)
