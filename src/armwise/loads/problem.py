"""A load to be found: the wrench to explain, and the motion that explains it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import HeldBody, wrench_regressor
from armwise.errors import ArgumentError, RecordingError
from armwise.loads.generalized import Bias
from armwise.loads.noise_spectrum import Rows, even_rate_hz
from armwise.recordings import WRENCH_NAMES, Samples

if TYPE_CHECKING:
    from jaxtyping import Float


# Motion and wrench of a sensor frame itself: for logs that have no joint angles.


@dataclass(frozen=True, eq=False)
class WristSamples:
    """What an inertial unit and a force/torque sensor at the wrist see, in its axes.

    Attributes:
        time: In [s]; evenly spaced within each segment.
        acceleration: p̈ − g of the sensor's origin, as an accelerometer reads it, in
            [m/s²].
        omega: Angular velocity in [rad/s].
        alpha: Angular acceleration in [rad/s²].
        wrench: Force [N] and torque [N m] on the load, (fx, fy, fz, tx, ty, tz).
        starts: First sample of every uninterrupted segment.
    """

    time: Float[np.ndarray, " samples"]
    acceleration: Float[np.ndarray, "samples 3"]
    omega: Float[np.ndarray, "samples 3"]
    alpha: Float[np.ndarray, "samples 3"]
    wrench: Float[np.ndarray, "samples 6"]
    starts: tuple[int, ...] = (0,)

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


# A load to be found: the wrench to explain, and the motion that explains it.


@dataclass(frozen=True, eq=False)
class WrenchProblem:
    """Everything a method needs to find a load from its wrench.

    Attributes:
        time: In [s].
        wrench: What to explain, known bodies (a gripper) taken off.
        starts: First sample of every segment.
        frame_motion: Rows p̈ − g, ω, ω̇ of the sensor, in its axes.
        channels: Components that were measured.
        bias, has_drift: What is unknown of the sensor's zero.
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
    ) -> Rows:
        """Return the measured channels as rows of a regression."""
        whole = Rows(
            regressor=self.regressor if regressor is None else regressor,
            target=self.wrench if target is None else target,
            starts=self.starts,
            rate_hz=self.rate_hz,
            channels=WRENCH_NAMES,
            highest_hz=self.highest_hz,
        )
        return whole.choose(self.channels)

    def joint_motion(self, method: str) -> tuple[HeldBody, Samples]:
        """Return what only an arm gives, or say that it is missing."""
        if self.body is None or self.samples is None:
            raise ArgumentError(
                f"{method} works on joint motion: give Samples and an arm, or use "
                "another method."
            )
        return self.body, self.samples

    def without(self, known: np.ndarray) -> WrenchProblem:
        """Take off the wrench of a body that is known."""
        return replace(self, wrench=self.wrench - self.regressor @ known)


def pose_wrench_problem(
    data: Samples | WristSamples,
    arm: Arm | None,
    frame: str,
    components: tuple[str, ...] | None,
    bias: Bias,
    has_drift: bool,
) -> tuple[WrenchProblem, tuple[str, ...]]:
    """Gather motion and wrench; return notes on what was left out, too.

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
    channels, notes = _channels(wrench, components)
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
        return WrenchProblem(frame_motion=motion, **common), notes  # type: ignore[arg-type]
    body = HeldBody(require_arm(data, arm), frame)
    highest = data.preparation.cutoff_hz or np.inf
    problem = WrenchProblem(
        frame_motion=body.motion(data.q, data.qd, data.qdd),
        highest_hz=highest,
        body=body,
        samples=data,
        **common,  # type: ignore[arg-type]
    )
    return problem, notes


def require_arm(data: Samples, arm: Arm | None) -> Arm:
    """Return the arm that was given or comes with the data; say how to give it."""
    found = arm if arm is not None else data.arm
    if found is None:
        raise ArgumentError(
            "The joint motion only says how the load moves once the arm is known: "
            "identify_load(data, arm, sensor_frame=…), or samples that carry it from "
            "read_recording(log, arm=arm). Without joints, give WristSamples."
        )
    if found.dof != data.dof:
        raise ArgumentError(
            f"{found.name} has {found.dof} joints, but the samples have {data.dof}."
        )
    return found


def _channels(
    wrench: np.ndarray, components: tuple[str, ...] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Which components count; ones that are zero throughout were not measured."""
    if components is not None:
        if unknown := [c for c in components if c not in WRENCH_NAMES]:
            raise ArgumentError(
                f"A wrench has no component {unknown[0]!r}. It has: "
                f"{', '.join(WRENCH_NAMES)}."
            )
        if not components:
            raise ArgumentError("Name at least one component of the wrench.")
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
    return present, (f"Not measured (zero throughout): {', '.join(missing)}.",)
