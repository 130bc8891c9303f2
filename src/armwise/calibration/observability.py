"""Observability of gains and offsets, from the arm's structure before any recording.

The torques of random motion are linearised in parameters, gains and offsets. A column
∂τ/∂β that lies in the span of the others belongs to an offset that no motion reveals: a
joint whose axis is parallel to gravity, or one that only turns a link of unknown shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.calibration.structure import Structure, as_structure
from armwise.calibration.variable_projection import Projector, SensorPoint
from armwise.dynamics import Dynamics
from armwise.motions import Fourier, Motion, random_motion
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike


_UNOBSERVABLE = 1e-6
"""Relative singular value, and size of a column beside the largest, below which an
unknown is unobservable: above the 3e-7 that the normal equations resolve."""

_IN_NULL_SPACE = 1e-3
"""Part of an unknown's unit vector in the null space from which on it is unobservable;
rounding leaves far less, a true dependence far more."""

_INDEPENDENT_HZ = 20.0
"""Independent torque readings a second, for predictions: twice the 10 Hz to which
recordings are filtered (Nyquist)."""


class Prospect(NamedTuple):
    """Predicted accuracy of one unknown.

    Attributes:
        name: Such as `joint_2.offset`.
        joint: The joint's name.
        quantity: `gain` or `offset`.
        std: Predicted standard deviation in [rad], or relative for gains; infinite
            where no motion helps.
        is_calibratable: Whether that is within the tolerance.
        reason: Why not, in words.
    """

    name: str
    joint: str
    quantity: str
    std: float
    is_calibratable: bool
    reason: str

    def with_unit(self, std: float) -> str:
        """Half a 95 % interval in words, such as `0.2°` or `0.3%`."""
        return _interval(self.quantity, std)


@dataclass(frozen=True, eq=False)
class Observability:
    """What can be calibrated, unknown by unknown.

    Attributes:
        prospects: One per unknown.
        motion: The motion it was predicted for, in joint angles; None for none.
    """

    prospects: tuple[Prospect, ...]
    motion: Motion | None = None

    @property
    def is_sought(self) -> Bool[np.ndarray, " unknowns"]:
        """Which unknowns to estimate; the others keep their first guess."""
        return np.array([p.is_calibratable for p in self.prospects])

    @property
    def is_visible(self) -> Bool[np.ndarray, " unknowns"]:
        """Which unknowns some motion determines, however poorly."""
        return np.array([np.isfinite(p.std) for p in self.prospects])

    @property
    def hidden(self) -> tuple[str, ...]:
        """Names of the unknowns that cannot be calibrated."""
        return tuple(p.name for p in self.prospects if not p.is_calibratable)

    def without(self, reasons: dict[str, str]) -> Observability:
        """The same, less some unknowns, each with the reason."""
        prospects = tuple(
            p._replace(is_calibratable=False, reason=reasons[p.name])
            if p.name in reasons
            else p
            for p in self.prospects
        )
        return replace(self, prospects=prospects)

    def __str__(self) -> str:
        lines = []
        for p in self.prospects:
            half = f"± {p.with_unit(p.std)}" if np.isfinite(p.std) else "hidden"
            lines.append(f"{p.name}: {half}{'; ' + p.reason if p.reason else ''}")
        return "\n".join(lines)


def _interval(quantity: str, std: float) -> str:
    half = 1.96 * std
    if quantity == "offset":
        # Beyond half a turn an angle is anywhere.
        return f"{min(np.rad2deg(half), 180.0):.2g}°"
    return f"{100.0 * half:.2g}%"


def calibratable(
    structure: Structure | Arm,
    *,
    duration: float = 20.0,
    noise: float = 0.005,
    torque_std: ArrayLike | None = None,
    least_torque_std: ArrayLike = 0.0,
    tolerance: tuple[float, float] = (0.02, np.deg2rad(2.0)),
    motion: Motion | None = None,
    seed: int = 0,
) -> Observability:
    """Predict which gains and offsets a recording can determine, and how well.

    Args:
        structure: The arm and what is known of it; its parameters, where it has any,
            stand for those to be estimated.
        duration: Length of a motion within the joints' limits in [s].
        noise: Torque error as a fraction of each joint's root mean square torque.
        torque_std: The same in [N m] or [N], one number or one per joint, at 20
            independent readings a second; `noise` when not given.
        least_torque_std: What it is at least.
        tolerance: Predicted standard deviation of gains (relative) and offsets in
            [rad] up to which they count as calibratable.
        motion: A motion to predict for; a random one when not given.
        seed: Of the random motion.
    """
    structure = as_structure(structure)
    arm = structure.arm
    motion = motion or wide_motion(arm, duration, seed)
    sensed = _simulated(arm, motion, seed)
    rms = np.sqrt(np.mean(sensed.tau**2, axis=0))
    std = noise * np.maximum(rms, 1e-3 * max(float(rms.max()), 1e-9))
    if torque_std is not None:
        std = np.broadcast_to(np.asarray(torque_std, dtype=float), (arm.dof,)).copy()
    std = np.maximum(std, np.asarray(least_torque_std, dtype=float))
    # Samples beyond the independent ones repeat them: they count for less.
    repeats = len(sensed) / (sensed.time[-1] * _INDEPENDENT_HZ)
    projector = Projector(structure, sensed, std * np.sqrt(repeats))
    flaw_std = structure.flaws.std(arm.dof)
    truth = SensorPoint(np.ones(arm.dof), np.zeros(arm.dof), np.zeros(flaw_std.size))
    problem = projector.at(truth)
    prior = np.zeros((flaw_std.size, len(structure.unknowns) + flaw_std.size))
    prior[:, len(structure.unknowns) :] = np.diag(1.0 / flaw_std)
    J = np.vstack([problem.jacobian, prior])
    norms = np.linalg.norm(problem.factor[:, problem.linear : -1], axis=0)
    deviations = _deviations(J, norms)
    rows = zip(structure.unknowns, deviations, norms, strict=False)
    limits = dict(zip(("gain", "offset"), tolerance, strict=True))
    prospects = tuple(_prospect(structure, *row, limits) for row in rows)
    return Observability(prospects, motion)


def _deviations(J: np.ndarray, norms: np.ndarray) -> Float[np.ndarray, " unknowns"]:
    """Standard deviation of each unknown, infinite where others imitate it.

    Args:
        J: Columns after projection: what no parameters can imitate.
        norms: Sizes of the columns before projection.
    """
    is_zero = norms <= _UNOBSERVABLE * norms.max(initial=0.0)
    size = np.where(is_zero, 1.0, norms)
    J = np.where(is_zero, 0.0, J)
    _, values, right = np.linalg.svd(J / size, full_matrices=True)
    values = np.concatenate([values, np.zeros(len(size) - len(values))])
    is_null = values <= _UNOBSERVABLE
    variance = np.sum((right[~is_null] / values[~is_null, None]) ** 2, axis=0)
    in_null_space = np.sqrt(np.sum(right[is_null] ** 2, axis=0)) > _IN_NULL_SPACE
    return np.where(in_null_space, np.inf, np.sqrt(variance) / size)


def _prospect(
    structure: Structure, name: str, std: float, norm: float, limits: dict[str, float]
) -> Prospect:
    joint, quantity = name.rsplit(".", 1)
    is_good = bool(std <= limits[quantity])
    reason = "" if is_good else _reason(structure, joint, quantity, std, norm)
    return Prospect(name, joint, quantity, float(std), is_good, reason)


def _reason(
    structure: Structure, joint: str, quantity: str, std: float, norm: float
) -> str:
    """Say why an unknown cannot be calibrated, as far as that is clear."""
    if np.isfinite(std):
        half = _interval(quantity, std)
        return f"its trace in the torques is too faint (± {half})"
    index = structure.arm.coordinate_index(joint)
    if norm <= 0.0 or _is_along_gravity(structure.arm, index):
        return (
            "its axis is parallel to gravity: mount the arm at an angle, or measure it"
        )
    if quantity == "offset":
        return (
            "it only turns a link whose centre of mass is unknown: name parameters "
            "that are known, or measure it"
        )
    return "other parameters have the same effect on every torque"


def _is_along_gravity(arm: Arm, coordinate: int) -> bool:
    """Whether a joint's axis stays parallel to gravity in random postures."""
    i = arm.coordinates[coordinate]
    link = arm.links[i].name
    random = np.random.default_rng(0)
    poses = Dynamics(arm).link_pose(random.uniform(-2, 2, (20, arm.dof)), link)
    axes = poses[:, :3, :3] @ arm.joints[i].axis
    size = float(np.linalg.norm(arm.gravity))
    if size == 0.0:
        return True
    across = np.linalg.norm(np.cross(axes, arm.gravity / size), axis=1)
    return bool(across.max() < 1e-6)


# Simulated samples of random motion.


def _simulated(arm: Arm, motion: Motion, seed: int) -> Samples:
    """Samples along a motion, with the torques of the arm or of random bodies."""
    time = np.linspace(0.0, motion.duration, 1500)
    q, qd, qdd = motion.sample(time)
    tau = Dynamics(_with_bodies(arm, seed)).inverse_dynamics(q, qd, qdd)
    return Samples(time, q, qd, qdd, tau)


def wide_motion(
    arm: Arm, duration: float, seed: int = 0, fastest_hz: float = 0.5
) -> Fourier:
    """A motion that uses most of each joint's range, or of its speed; never twice.

    Args:
        arm: Its limits of position and velocity.
        duration: In [s].
        seed: Of the random amplitudes.
        fastest_hz: Frequency of the fastest harmonic in [Hz].
    """
    harmonics = max(5, round(fastest_hz * duration))
    return random_motion(
        arm, seed, duration, harmonics=harmonics, roughness=0.5, reach=0.25,
        widest=2.0, fastest=2.4,
    )  # fmt: skip


def _with_bodies(arm: Arm, seed: int) -> Arm:
    """The arm, or one with random bodies where it has no mass."""
    if np.any(arm.parameters[arm.layout.links]):
        return arm
    random = np.random.default_rng(seed)
    links = tuple(
        replace(
            link,
            inertia=InertialParameters.from_pseudo_inertia(_random_body(random)),
        )
        for link in arm.links
    )
    return replace(arm, links=links)


def _random_body(random: np.random.Generator) -> Float[np.ndarray, "4 4"]:
    root = random.normal(size=(4, 4)) * np.array([0.1, 0.1, 0.1, 1.0])[:, None]
    return np.asarray(root @ root.T)
