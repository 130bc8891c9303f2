"""Wrench problem: motion and wrench of a load, and checks of both before solving."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics, HeldBody, wrench_regressor
from armwise.errors import (
    ArgumentError,
    EstimateWarning,
    NotIdentifiable,
    RecordingError,
)
from armwise.loads.generalized_least_squares import Bias
from armwise.loads.noise_spectrum import RegressionRows, even_rate_hz
from armwise.recordings import WRENCH_NAMES, Samples

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class WristSamples:
    """Motion and wrench of a wrist sensor in its own axes, for logs without joints.

    As an inertial unit and a force/torque sensor measure them.

    Attributes:
        time: In [s]; evenly spaced within each segment.
        acceleration: p̈ − g of the sensor's origin, as an accelerometer reads it, in
            [m/s²].
        omega: Angular velocity in [rad/s].
        alpha: Angular acceleration in [rad/s²].
        wrench: Force [N] and torque [N m] on the load, (fx, fy, fz, tx, ty, tz).
        starts: First sample of every uninterrupted segment.
        highest_hz: Frequencies above are not used, in [Hz]: those at which the motion
            is not known as well as the wrench.
    """

    time: Float[np.ndarray, " samples"]
    acceleration: Float[np.ndarray, "samples 3"]
    omega: Float[np.ndarray, "samples 3"]
    alpha: Float[np.ndarray, "samples 3"]
    wrench: Float[np.ndarray, "samples 6"]
    starts: tuple[int, ...] = (0,)
    highest_hz: float = np.inf

    def __post_init__(self) -> None:
        rows = np.size(self.time)
        widths = {"acceleration": 3, "omega": 3, "alpha": 3, "wrench": 6}
        for name, width in widths.items():
            value = np.asarray(getattr(self, name), dtype=float)
            if value.shape != (rows, width):
                raise ArgumentError(
                    f"{name} has shape {value.shape}, but there are {rows} times, so "
                    f"({rows}, {width}) is needed."
                )
            if not np.all(np.isfinite(value)):
                bad = int(np.argmin(np.isfinite(value).all(axis=1)))
                raise ArgumentError(f"{name} is not finite in row {bad}.")

    def __len__(self) -> int:
        return int(np.size(self.time))


@dataclass(frozen=True, eq=False)
class WrenchProblem:
    """Everything a method needs to find a load from its wrench.

    Attributes:
        time: In [s].
        wrench: What to explain, less that of known bodies (a gripper).
        starts: First sample of every segment.
        frame_motion: Rows p̈ − g, ω, ω̇ of the sensor, in its axes.
        channels: Components that were measured.
        bias, has_drift: Which zeros of the sensor are unknown, and whether they drift.
        highest_hz: Low-pass the data went through in [Hz].
        body: The equations with the arm's joints; None without an arm.
        samples: Joint motion; None without an arm.
    """

    time: Float[np.ndarray, " samples"]
    wrench: Float[np.ndarray, "samples 6"]
    starts: tuple[int, ...]
    frame_motion: Float[np.ndarray, "samples 3 3"]
    channels: tuple[str, ...]
    bias: Bias
    has_drift: bool
    highest_hz: float = np.inf
    body: HeldBody | None = None
    samples: Samples | None = None

    @cached_property
    def rate_hz(self) -> float:
        """Samples per second in [Hz]."""
        return even_rate_hz(self.time, self.starts)

    @cached_property
    def regressor(self) -> Float[np.ndarray, "samples 6 10"]:
        """A with wrench = A φ."""
        a, omega, alpha = np.moveaxis(self.frame_motion, 1, 0)
        return wrench_regressor(a, omega, alpha)

    def rows(
        self, regressor: np.ndarray | None = None, target: np.ndarray | None = None
    ) -> RegressionRows:
        """Return the measured channels as rows of a regression."""
        whole = RegressionRows(
            regressor=self.regressor if regressor is None else regressor,
            target=self.wrench if target is None else target,
            starts=self.starts,
            rate_hz=self.rate_hz,
            channels=WRENCH_NAMES,
            highest_hz=self.highest_hz,
        )
        return whole.select(self.channels)

    def joint_motion(self, method: str) -> tuple[HeldBody, Samples]:
        """Return equations and joint motion, or refuse if there is no arm."""
        if self.body is None or self.samples is None:
            raise ArgumentError(
                f"{method} works on joint motion: give Samples and an arm, or use "
                "another method."
            )
        return self.body, self.samples

    def without(self, body: Float[np.ndarray, " 10"]) -> WrenchProblem:
        """Subtract the wrench of a body whose parameters are known."""
        return replace(self, wrench=self.wrench - self.regressor @ body)


def build_wrench_problem(
    data: Samples | WristSamples,
    arm: Arm | None,
    frame: str,
    components: tuple[str, ...] | None,
    bias: Bias,
    has_drift: bool,
) -> tuple[WrenchProblem, tuple[EstimateWarning, ...]]:
    """Gather motion and wrench; warn of channels that were not measured.

    Raises:
        ArgumentError: If the arm is missing, or a component has no such name.
        RecordingError: If there is no wrench.
    """
    if data.wrench is None:
        raise RecordingError(
            "These samples hold no wrench. Record fx, fy, fz, tx, ty, tz; or give "
            "joint torques with bare=SAMPLES or an identified arm."
        )
    wrench = np.asarray(data.wrench, dtype=float)
    channels, warnings = _channels(wrench, components)
    common = {
        "time": np.asarray(data.time, dtype=float),
        "wrench": wrench,
        "starts": data.starts,
        "channels": channels,
        "bias": bias,
        "has_drift": has_drift,
    }
    if isinstance(data, WristSamples):
        motion = np.stack([data.acceleration, data.omega, data.alpha], axis=1)
        problem = WrenchProblem(
            frame_motion=motion,
            highest_hz=data.highest_hz,
            **common,  # type: ignore[arg-type]
        )
        return problem, warnings
    body = HeldBody(require_arm(data, arm), frame)
    highest = data.preparation.cutoff_hz or np.inf
    problem = WrenchProblem(
        frame_motion=body.motion(data.q, data.qd, data.qdd),
        highest_hz=highest,
        body=body,
        samples=data,
        **common,  # type: ignore[arg-type]
    )
    return problem, warnings


def require_arm(data: Samples, arm: Arm | None) -> Arm:
    """Return the arm, passed in or carried by the data, or say how to pass it."""
    arm = arm if arm is not None else data.arm
    if arm is None:
        raise ArgumentError(
            "The joint motion only says how the load moves once the arm is known: "
            "identify_load(data, arm, sensor_frame=…), or samples that carry it from "
            "read_recording(log, arm=arm). Without joints, give WristSamples."
        )
    if arm.dof != data.dof:
        raise ArgumentError(
            f"{arm.name} has {arm.dof} joints, but the samples have {data.dof}."
        )
    return arm


def require_components(components: Sequence[str]) -> None:
    """Refuse words that are no components of a wrench, and none at all."""
    if unknown := [c for c in components if c not in WRENCH_NAMES]:
        raise ArgumentError(
            f"A wrench has no component {unknown[0]!r}. It has: "
            f"{', '.join(WRENCH_NAMES)}."
        )
    if not components:
        raise ArgumentError("Name at least one component of the wrench.")


def _channels(
    wrench: np.ndarray, components: tuple[str, ...] | None
) -> tuple[tuple[str, ...], tuple[EstimateWarning, ...]]:
    """Which components to use; ones that are zero throughout were not measured."""
    if components is not None:
        require_components(components)
        return tuple(c for c in WRENCH_NAMES if c in components), ()
    present = tuple(
        name
        for name, column in zip(WRENCH_NAMES, wrench.T, strict=True)
        if column.any()
    )
    if not present:
        raise RecordingError("The wrench is zero throughout: nothing was measured.")
    missing = [c for c in WRENCH_NAMES if c not in present]
    if not missing:
        return present, ()
    text = f"Not measured (zero throughout): {', '.join(missing)}."
    return present, (EstimateWarning("component-not-measured", text),)


# Checks of the data, each with a remedy.

LEAST_TURN = np.deg2rad(10.0)
"""Angle [rad] that gravity must at least turn by in the sensor. Less changes the
wrench by under a sixth (sin 10°) of the weight: weight and zero of the sensor are then
hardly separable."""

LEAST_SPEED = 0.05
"""Root-mean-square angular velocity [rad/s] below which there is no motion: the turning
of an arm that is held still by its servos, and of noise in its encoders."""

FEWEST_READINGS = 10.0
"""Readings of the wrench per period of the fastest motion: a sensor held between
readings lags by half of one, a twentieth of a period, which is 18° of phase."""

_SATURATED_RUN = 5
"""Equal extreme readings in a row that count as saturation: noise makes two or three
equal ones in a coarse sensor, hardly five at the very extreme."""

_WRONG_ANGLE = np.deg2rad(20.0)
"""Angle [rad] between force and acceleration axes that counts as another frame: frames
are confused by 90° or 180°; a loosely mounted sensor is off by a few degrees, and
`pose_offset` finds those."""

_EXPLAINED = 0.9
"""Fraction of the force's variance that acceleration must explain before axes are
judged by it; a load far from the sensor's origin adds its own angular part."""


def check_wrench_problem(problem: WrenchProblem, is_static: bool) -> None:
    """Refuse data with a common defect: no motion, saturation, low rate, wrong axes.

    Args:
        problem: Motion and wrench.
        is_static: Whether poses at rest are enough.

    Raises:
        NotIdentifiable: If the load hardly moves.
        RecordingError: If the wrench is saturated, slow, negated or in other axes.
    """
    if not is_static:
        _check_motion(problem)
        _check_rate(problem)
        _check_saturation(problem)
    _check_lever(problem)
    _check_frame(problem)


def _check_motion(problem: WrenchProblem) -> None:
    """Refuse data in which the load hardly moves."""
    pull = problem.frame_motion[:, 0]  # p̈ − g, mostly gravity
    direction = pull / np.maximum(np.linalg.norm(pull, axis=1, keepdims=True), 1e-9)
    turned = _angular_spread(direction)
    speed = float(np.sqrt(np.mean(problem.frame_motion[:, 1] ** 2) * 3.0))
    if turned < LEAST_TURN:
        raise NotIdentifiable(
            f"Gravity keeps its direction in the sensor to {np.rad2deg(turned):.1f}°: "
            "only one orientation. Mass shows, the centre along that direction and the "
            "sensor's zero do not. Turn the load by 30° or more about two axes."
        )
    if speed < LEAST_SPEED:
        raise NotIdentifiable(
            f"The load hardly moves (it turns at {speed:.3f} rad/s). Inertia shows "
            "only in motion: move faster, or find mass and centre with "
            "method=StaticPoses()."
        )


def _check_saturation(problem: WrenchProblem) -> None:
    """Refuse a sensor that stays at its limit while the load moves."""
    moving = np.linalg.norm(problem.frame_motion[:, 1], axis=1) > LEAST_SPEED
    refuse_saturation(problem.wrench, moving, problem.channels)


def refuse_saturation(
    wrench: np.ndarray, moving: np.ndarray, channels: Sequence[str] = WRENCH_NAMES
) -> None:
    """Refuse readings (n, 6) that stay at their extreme while the load moves (n,)."""
    for name in channels:
        values = wrench[:, WRENCH_NAMES.index(name)]
        for limit in (float(values.max()), float(values.min())):
            at = (values == limit) & moving
            if _longest_run(at) >= _SATURATED_RUN and limit != 0.0:
                raise RecordingError(
                    f"{name} stays at {limit:.6g} for {int(at.sum())} samples while "
                    "the load moves: the sensor is saturated. Use a smaller load or a "
                    "gentler motion, or leave it out with components=… (--components)."
                )


_FARTHEST = 3.0
"""Distance in [m] from its sensor at which no hand holds a load."""


def _check_lever(problem: WrenchProblem) -> None:
    """Refuse moments that are a thousand times what the forces can cause: n = c × f."""
    if problem.channels != WRENCH_NAMES:
        return
    f, n = (x - x.mean(axis=0) for x in np.split(problem.wrench, 2, axis=1))
    rows = -np.cross(f[:, None], np.eye(3)).transpose(0, 2, 1).reshape(-1, 3)
    center = np.linalg.lstsq(rows, n.reshape(-1), rcond=1e-6)[0]
    unexplained = float(np.sum((n.reshape(-1) - rows @ center) ** 2))
    distance = float(np.linalg.norm(center))
    # Half explained: a light load's moments are mostly noise and hoses.
    if distance > _FARTHEST and unexplained < 0.5 * float(np.sum(n**2)):
        raise RecordingError(
            f"The moments put the centre of mass {distance:.3g} m from the sensor: "
            "they do not go with the forces. Are they in N mm?"
        )


def _check_rate(problem: WrenchProblem) -> None:
    """Refuse a wrench that is sampled too slowly for the motion."""
    steps = np.any(np.diff(problem.wrench, axis=0) != 0.0, axis=1)
    moving = np.linalg.norm(problem.frame_motion[1:, 1], axis=1) > LEAST_SPEED
    if moving.sum() < 20:  # too few to count changes of the reading
        return
    fresh = float(np.mean(steps[moving])) * problem.rate_hz
    fastest = _motion_band_hz(problem)
    if fresh < FEWEST_READINGS * fastest:
        raise RecordingError(
            f"The wrench changes {fresh:.1f} times a second, but the motion reaches "
            f"{fastest:.1f} Hz. Read the sensor at "
            f"{FEWEST_READINGS * fastest:.0f} Hz or more, or move more slowly."
        )


def _check_frame(problem: WrenchProblem) -> None:
    """Refuse forces that only make sense in other axes, or with the other sign.

    Forces of a load follow the acceleration of the sensor: f ≈ M a + bias with
    M ≈ m · (rotation). The rotation says in which axes they were recorded.
    """
    forces = WRENCH_NAMES[:3]
    if not set(forces) <= set(problem.channels):
        return
    pull, force = problem.frame_motion[:, 0], problem.wrench[:, :3]
    pull, force = pull - pull.mean(axis=0), force - force.mean(axis=0)
    spread = np.linalg.svd(pull, compute_uv=False)
    # Accelerations that hardly leave a plane do not determine the third axis.
    if spread[-1] < 0.05 * spread[0]:
        return
    M, explained = _force_on_acceleration(pull, force)
    if explained < _EXPLAINED:
        _check_base_axes(problem, explained)
        return
    # The nearest rotation to M, reflected where the sign is wrong (Procrustes).
    U, scale, Vt = np.linalg.svd(M)
    sign = np.sign(np.linalg.det(U @ Vt))
    R = sign * (U @ Vt)
    angle = float(np.arccos(np.clip(0.5 * (np.trace(R) - 1.0), -1.0, 1.0)))
    if sign < 0 and angle < _WRONG_ANGLE:
        raise RecordingError(
            "The forces have the wrong sign: at rest the force on the load must point "
            "up, −m g. The log seems to hold what the load exerts on the arm; negate "
            "the wrench."
        )
    # A mass times a rotation has equal singular values; a regression that lever arms
    # distort has not, and its rotation means nothing.
    if angle > _WRONG_ANGLE and scale[-1] > 0.5 * scale[0]:
        raise RecordingError(
            "The wrench seems to be recorded in other axes than those of the sensor "
            f"frame: turned by {np.rad2deg(angle):.0f}° about {_axis(R)}"
            f"{' and negated' if sign < 0 else ''}. Name the right frame "
            "(--frame), or turn the wrench into its axes."
        )


def _check_base_axes(problem: WrenchProblem, explained: float) -> None:
    """Refuse a force that follows the acceleration in the axes of the base."""
    if problem.body is None or problem.samples is None:
        return
    dynamics = Dynamics(problem.body.arm)
    R = dynamics.link_pose(problem.samples.q, problem.body.frame)[:, :3, :3]
    pull = np.einsum("tij,tj->ti", R, problem.frame_motion[:, 0])
    force = problem.wrench[:, :3]
    _, in_base = _force_on_acceleration(
        pull - pull.mean(axis=0), force - force.mean(axis=0)
    )
    # 0.2: far more than in the sensor's axes, or both may be a poor fit by chance.
    if in_base > _EXPLAINED and in_base > explained + 0.2:
        raise RecordingError(
            "The force follows the motion in the axes of the base, not of the sensor: "
            "the wrench seems to be recorded in base axes. Turn it into the axes of "
            "the sensor frame."
        )


def _force_on_acceleration(
    pull: np.ndarray, force: np.ndarray
) -> tuple[Float[np.ndarray, "3 3"], float]:
    """Matrix M of force ≈ M acceleration, and the fraction of variance explained."""
    M = np.linalg.lstsq(pull, force, rcond=None)[0]
    residual = float(np.sum((force - pull @ M) ** 2))
    return M.T, 1.0 - residual / max(float(np.sum(force**2)), 1e-300)


def _angular_spread(directions: Float[np.ndarray, "samples 3"]) -> float:
    """Largest angle from the mean direction, outliers (1 %) aside, in [rad]."""
    mean = directions.mean(axis=0)
    mean = mean / max(float(np.linalg.norm(mean)), 1e-9)
    angles = np.arccos(np.clip(directions @ mean, -1.0, 1.0))
    return 2.0 * float(np.quantile(angles, 0.99))


def _longest_run(flags: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


def _motion_band_hz(problem: WrenchProblem) -> float:
    """Frequency below which 90 % of the change of the acceleration lies."""
    part = max(problem.rows().segments, key=lambda s: s.stop - s.start)
    pull = problem.frame_motion[part, 0]
    window = np.hanning(len(pull))[:, None]
    power = np.sum(np.abs(np.fft.rfft((pull - pull.mean(0)) * window, axis=0)) ** 2, 1)
    fraction = np.cumsum(power) / max(float(power.sum()), 1e-300)
    return float(np.searchsorted(fraction, 0.9) * problem.rate_hz / len(pull))


def _axis(R: np.ndarray) -> str:
    """Name the axis of a rotation."""
    vector = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    size = float(np.linalg.norm(vector))
    if size < 1e-6:  # half a turn: the axis is the eigenvector of 1
        values, vectors = np.linalg.eigh(0.5 * (R + R.T))
        vector, size = vectors[:, int(np.argmax(values))], 1.0
    unit = vector / size
    k = int(np.argmax(np.abs(unit)))
    if abs(unit[k]) > 0.95:
        return f"{'-' if unit[k] < 0 else ''}{'xyz'[k]}"
    return "(" + ", ".join(f"{x:.2f}" for x in unit) + ")"
