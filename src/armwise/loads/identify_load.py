"""Load identification from a wrist sensor's wrench, or from joint torques."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import Arm, InertialParameters, load_arm, rotation_about
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, EstimateWarning, RecordingError
from armwise.identification import Estimate
from armwise.loads.estimate import LoadEstimate, estimate_of, make_physical
from armwise.loads.generalized_least_squares import (
    Bias,
    LoadSolution,
    solve_generalized,
)
from armwise.loads.joint_torques import TorqueGains, TorqueSignal, load_from_torques
from armwise.loads.kinds import LoadKind, identify_load_kind
from armwise.loads.methods import Accelerations, LoadMethod, StaticPoses
from armwise.loads.optimal_filter import OptimalFilter
from armwise.loads.problem import (
    LEAST_SPEED,
    WrenchProblem,
    WristSamples,
    build_wrench_problem,
    check_wrench_problem,
    refuse_saturation,
    require_arm,
    require_components,
)
from armwise.loads.rigidity import assess_rigidity
from armwise.loads.wrist_log import WristLog, find_contact, prepare_wrist
from armwise.recordings import (
    WRENCH_NAMES,
    Recording,
    Samples,
    prepare,
    require_torques,
    suspicions,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.regression import GainStd

PoseOffset = Literal["none", "rotation", "pose"]
"""What to estimate of the sensor's mounting: nothing, rotation, or translation too."""

_MASS_TEST = 3.0
"""Standard deviations from zero at which a mass counts as present, or as negative: a
two-sided z-test with a false alarm in 370."""


def identify_load(
    data: Samples
    | WristSamples
    | WristLog
    | Recording
    | Sequence[Samples]
    | Sequence[Recording],
    arm: Arm | Estimate | str | Path | None = None,
    *,
    frame: str = "wrist",
    sensor_frame: str | None = None,
    method: LoadMethod | None = None,
    bias: Bias = "segment",
    drift: bool = True,
    components: Sequence[str] | None = None,
    gripper: InertialParameters | LoadEstimate | None = None,
    pose_offset: PoseOffset = "none",
    bare: Samples | Recording | Sequence[Samples] | Sequence[Recording] | None = None,
    gain_std: GainStd | None = None,
    signal: TorqueSignal = "current",
    gains: TorqueGains | None = None,
    consistent: bool = False,
    checked: bool = True,
    cutoff_hz: float | None = None,
) -> LoadEstimate:
    """Find mass, centre of mass and inertia of the load that the arm holds.

    From the wrench at a wrist sensor, the one the arm exerts on the load in the axes of
    the sensor frame (at rest the force is −m g); without a wrench, from joint torques:
    their excess over those of the same motion without load (`bare`), or over an
    identified arm's.

    Args:
        data: Motion with a wrench or with torques; several become segments. Recordings
            are prepared as the method needs them. A `WristLog` has no joints, and
            needs no arm.
        arm: The arm that moved; not for `WristSamples`, nor if the data carry it. An
            estimate of the empty arm stands for `bare`.
        frame: Frame of the sensor, and of the result.
        sensor_frame: The same, by its older name.
        method: `Accelerations()`, `StaticPoses()`, `IntegralWindows()`,
            `MomentumRate()`, `OptimalFilter()` or `LeastSquares()`.
        bias: Whether the sensor's zero is unknown in each "segment", "common" to all,
            or "none" (it was tared, and stays so).
        drift: Whether the zero may drift within a segment.
        components: Components of the wrench to use; all that were measured.
        gripper: Body between sensor and load, in the sensor frame; subtracted.
        pose_offset: Also find the sensor's "rotation" against the frame, or its "pose".
        bare: The same motion without load, to cancel arm and friction; any motion
            without load if the arm is an estimate.
        gain_std: Relative standard deviation of the joint torques' gains; one number,
            or one per joint. None: 10 % for motor currents, 1.5 % for torque sensors.
        signal: What joint torques were measured by.
        gains: Gains that `calibrate_torques` found, in place of both.
        consistent: Return the best physical load, rather than the best fit.
        checked: Whether to check the data for common mistakes first.
        cutoff_hz: Low-pass of recordings in [Hz]; selected by `prepare` if None.

    Raises:
        NotIdentifiable: If the motion does not determine the parameters.
        RecordingError: If the wrench is missing, saturated, slow or in other axes.
    """
    if isinstance(data, WristLog):
        return _from_wrist_log(data, frame, method, bias, drift, consistent)
    model = load_arm(arm) if isinstance(arm, str | Path) else arm
    arm = model.arm if isinstance(model, Estimate) else model
    frame = frame if sensor_frame is None else sensor_frame
    method = method or Accelerations()
    logs = _recordings(data)
    if components is not None:
        require_components(components)
    if checked and bare is None and not isinstance(method, StaticPoses):
        # As recorded: a low-pass rounds the edge off by which a limit is known.
        for log in logs:
            _refuse_saturated(log, WRENCH_NAMES if components is None else components)
    kind = None if bare is not None else _kind(data, arm, frame)
    if not isinstance(data, WristSamples):
        data = _samples(data, method, cutoff_hz, arm)
    if data.wrench is not None and bare is None:
        options = _Options(
            frame,
            method,
            bias,
            drift,
            None if components is None else tuple(components),
            gripper,
            pose_offset,
            checked,
        )
        estimate = _with_kind(_from_wrench(data, arm, options), kind)
    elif isinstance(data, WristSamples):
        raise ArgumentError("WristSamples hold no joint torques; leave out bare.")
    else:
        # Prepared alike: another cut-off or lag would be part of the difference.
        empty = None if bare is None else _samples(bare, method, cutoff_hz, arm, data)
        if gains is None:
            known_arm = require_arm(data, arm)
            gains = TorqueGains.as_recorded(known_arm, gain_std, signal)
        estimate = load_from_torques(data, model, frame, empty, gains).load
        odd = _odd_logs([*logs, *_recordings(bare)], require_arm(data, arm))
        odd += _negative_mass(estimate, bare is not None)
        estimate = replace(estimate, warnings=(*odd, *estimate.warnings))
    if isinstance(data, Samples) and (arm or data.arm) is not None:
        heavy = _too_heavy(estimate, require_arm(data, arm), data)
        estimate = replace(estimate, warnings=(*estimate.warnings, *heavy))
    return make_physical(estimate) if consistent else estimate


def _recordings(data: object) -> list[Recording]:
    runs = data if isinstance(data, list | tuple) else [data]
    return [run for run in runs if isinstance(run, Recording)]


def _refuse_saturated(log: Recording, components: Sequence[str]) -> None:
    """Refuse a recording whose wrench stays at its extreme while joints move."""
    if not log.has_wrench or not log.dof:
        return
    wrench = log.group(WRENCH_NAMES)
    time = wrench[0].time
    if any(not np.array_equal(channel.time, time) for channel in wrench):
        return
    # Over a twentieth of a second either way: counts of an encoder are no motion.
    ends = np.clip(np.stack([time - 0.05, time + 0.05]), time[0], time[-1])
    joints = log.group([f"q_{j + 1}" for j in range(log.dof)])
    moved = [np.diff(np.interp(ends, q.time, q.values), axis=0)[0] for q in joints]
    speed = np.linalg.norm(moved, axis=0) / np.maximum(ends[1] - ends[0], 1e-9)
    values = np.stack([channel.values for channel in wrench], axis=1)
    refuse_saturation(values, speed > LEAST_SPEED, components)


def _odd_logs(logs: Sequence[Recording], arm: Arm) -> tuple[EstimateWarning, ...]:
    """What looks wrong with the logs, each said once."""
    warnings = [warning for log in logs for warning in suspicions(log, arm)]
    return tuple({warning.text: warning for warning in warnings}.values())


def _negative_mass(load: LoadEstimate, has_bare: bool) -> tuple[EstimateWarning, ...]:
    """Say what makes a load pull upwards."""
    if not load.mass < -_MASS_TEST * load.std.mass:
        return ()
    why = (
        "the two logs may be swapped" if has_bare else "the model may be another arm's"
    )
    text = (
        f"The mass comes out negative ({load.mass:.3f} kg): {why}, or torques have the "
        "wrong sign."
    )
    return (EstimateWarning("mass-negative", text),)


def _kind(
    data: object, arm: Arm | None, frame: str
) -> LoadKind | EstimateWarning | None:
    """What the load does in the hand, by the longest recording with a wrench.

    Samples are not asked: their low-pass was chosen for a rigid load.
    """
    recordings = [x for x in _recordings(data) if x.has_wrench]
    if not recordings or arm is None:
        return None
    return _kind_of(max(recordings, key=lambda x: x.duration), arm, frame)


def _kind_of(
    data: Recording | WristSamples, arm: Arm | None = None, frame: str = "wrist"
) -> LoadKind | EstimateWarning | None:
    try:
        return identify_load_kind(data, arm, frame=frame)
    except RecordingError:
        return None  # too short or too slow to say, which the load itself may not be
    except ArgumentError as error:  # no compiler
        return EstimateWarning("kind-unknown", f"The load may not be rigid. {error}")


def _with_kind(
    load: LoadEstimate, kind: LoadKind | EstimateWarning | None
) -> LoadEstimate:
    if isinstance(kind, EstimateWarning):
        return replace(load, warnings=(*load.warnings, kind))
    if kind is None or kind.kind == "rigid":
        return replace(load, kind=kind)
    text = (
        f"{kind.statement} Mass and centre are those of a rigid load, and not to be "
        "trusted beyond that."
    )
    note = EstimateWarning("not-rigid", text)
    return replace(load, kind=kind, warnings=(*load.warnings, note))


_LARGEST_GYRATION = 0.1
"""Radius of gyration [m] whose inertia must exceed an inertia's standard deviation, or
else inertias are not asked for: slow turning does not show them."""


def _from_wrist_log(
    log: WristLog,
    frame: str,
    method: LoadMethod | None,
    bias: Bias,
    drift: bool,
    consistent: bool,
) -> LoadEstimate:
    """Find a load from a log without joints, and whether the tool touched anything."""
    wrist = prepare_wrist(log)
    options = {"frame": frame, "drift": drift, "consistent": consistent}
    if log.is_static:
        # One zero for all poses, each of which is a segment of its own.
        load = identify_load(
            wrist.samples,
            method=StaticPoses(),
            bias="common",
            **options,  # type: ignore[arg-type]
        )
        return replace(load, warnings=(*wrist.warnings, *load.warnings))
    load = identify_load(wrist.samples, method=method, bias=bias, **options)  # type: ignore[arg-type]
    vague = load.std.parameters[4:] > abs(load.mass) * _LARGEST_GYRATION**2
    if method is None and (vague.any() or not load.is_complete):
        slow = Accelerations(inertia=False)
        load = identify_load(wrist.samples, method=slow, bias=bias, **options)  # type: ignore[arg-type]
    contact = find_contact(wrist.samples, load.parameters.vector)
    if contact is None and wrist.accelerometer is not None:
        load = _with_kind(load, _kind_of(wrist.samples))
    warnings = (*wrist.warnings, *load.warnings)
    if contact is not None:
        text = (
            f"The tool touched something between {contact.began:.2f} and "
            f"{contact.ended:.2f} s, with up to {contact.force:.2g} N: the load is not "
            "to be trusted. Identify it from a run without contact."
        )
        warnings = (*warnings, EstimateWarning("contact", text))
    return replace(
        load, accelerometer=wrist.accelerometer, contact=contact, warnings=warnings
    )


@dataclass(frozen=True, eq=False)
class _Options:
    """Arguments of `identify_load` that concern a wrench."""

    frame: str
    method: LoadMethod
    bias: Bias
    has_drift: bool
    components: tuple[str, ...] | None
    gripper: InertialParameters | LoadEstimate | None
    pose_offset: PoseOffset
    checked: bool


def _from_wrench(
    data: Samples | WristSamples, arm: Arm | None, options: _Options
) -> LoadEstimate:
    problem, warnings = build_wrench_problem(
        data, arm, options.frame, options.components, options.bias, options.has_drift
    )
    method = options.method
    if options.checked:
        check_wrench_problem(problem, isinstance(method, StaticPoses))
    gripper = _parameters_of(options.gripper)
    offset = offset_std = None
    if options.pose_offset == "none":
        problem = problem.without(gripper)
        solution = method.solve(problem)
    else:
        if not isinstance(method, Accelerations):
            raise ArgumentError("pose_offset goes with method=Accelerations() only.")
        # The offset shows in the wrench of gripper and load together.
        mounted = solve_with_offset(problem, options.pose_offset)
        problem, solution = mounted.problem.without(gripper), mounted.solution
        solution = replace(solution, values=solution.values - gripper)
        offset, offset_std = mounted.offset, mounted.offset_std
    estimate = _estimate(problem, solution, options.frame, warnings)
    if isinstance(options.gripper, LoadEstimate):
        # Two independent estimates: their covariances add.
        summed = estimate.covariance + options.gripper.covariance
        estimate = replace(estimate, covariance=summed)
    return replace(estimate, pose_offset=offset, pose_offset_std=offset_std)


def _estimate(
    problem: WrenchProblem,
    solution: LoadSolution,
    frame: str,
    warnings: tuple[EstimateWarning, ...],
) -> LoadEstimate:
    rows = problem.rows()
    rigidity = None
    if np.all(np.isfinite(solution.values)):
        rigidity = assess_rigidity(rows, solution.values)
    warnings = (*warnings, *_mass_warnings(solution))
    return estimate_of(rows, problem.time, solution, frame, rigidity, warnings)


def _too_heavy(
    load: LoadEstimate, arm: Arm, data: Samples
) -> tuple[EstimateWarning, ...]:
    """Warn of a load that the motors could not hold in the poses of the log."""
    limit = arm.limits("effort")
    if not np.isfinite(limit).any() or not np.isfinite(load.mass):
        return ()
    # What was not determined moves no torque.
    moments = np.nan_to_num(load.parameters.vector[:4])
    body = InertialParameters(np.array([*moments, *[0.0] * 6]))
    link, T_link_frame = arm.find_frame(load.frame)
    more = np.zeros(arm.layout.size)
    more[arm.layout.link(link)] = body.transformed(T_link_frame).vector
    poses = data.q[:: max(1, len(data) // 200)]  # two hundred poses show the largest
    still = np.zeros_like(poses)
    held = np.abs(Dynamics(arm).regressor(poses, still, still) @ more).max(axis=0)
    worst = int(np.argmax(held / limit))
    if held[worst] <= limit[worst]:
        return ()
    text = (
        f"A load of {load.mass:.3g} kg is beyond what {arm.name} can hold: its weight "
        f"alone takes {held[worst]:.3g} N m of {arm.coordinate_names[worst]}, which "
        f"has {limit[worst]:.3g}. Check units and frame of the wrench or torque."
    )
    return (EstimateWarning("load-too-heavy", text),)


def _mass_warnings(solution: LoadSolution) -> tuple[EstimateWarning, ...]:
    mass, std = float(solution.values[0]), float(np.sqrt(solution.covariance[0, 0]))
    if np.isnan(mass):
        code, text = "mass-undetermined", "The mass was not determined."
    elif mass < -_MASS_TEST * std:
        code, text = (
            "mass-negative",
            f"The mass comes out negative ({mass:.3f} kg): the wrench may have the "
            "wrong sign, or a gripper was subtracted that is not there.",
        )
    elif mass < _MASS_TEST * std:
        code, text = (
            "mass-not-significant",
            f"The mass does not differ from zero ({mass:.4f} ± {std:.4f} kg): the hand "
            "may be empty, and then its centre of mass means nothing.",
        )
    else:
        return ()
    return (EstimateWarning(code, text),)


def _parameters_of(
    body: InertialParameters | LoadEstimate | None,
) -> Float[np.ndarray, " 10"]:
    if body is None:
        return np.zeros(10)
    parameters = body.parameters if isinstance(body, LoadEstimate) else body
    if not np.all(np.isfinite(parameters.vector)):
        raise ArgumentError(
            "The gripper's parameters are not all known; identify it in motion."
        )
    return parameters.vector


def _samples(
    data: Samples | Recording | Sequence[Samples] | Sequence[Recording],
    method: LoadMethod,
    cutoff_hz: float | None,
    arm: Arm | None = None,
    like: Samples | None = None,
) -> Samples:
    """Join samples, or prepare recordings as a method needs them, or as others were."""
    if isinstance(data, Samples):
        return data
    runs = [data] if isinstance(data, Recording) else list(data)
    recordings = [run for run in runs if isinstance(run, Recording)]
    if not recordings:
        return Samples.concatenate([run for run in runs if isinstance(run, Samples)])
    if isinstance(method, OptimalFilter):
        # Of two measurements its noise is found; one that it is told needs no other.
        is_told = method.position_std is not None
        return prepare(
            recordings,
            np.inf,
            velocity="auto"
            if is_told or not _has_velocities(recordings)
            else "measured",
            decimation=1,
            keep_rest=True,
        )
    # Static poses are rests; any other method gains nothing from them.
    keep_rest = isinstance(method, StaticPoses)
    if not all(rec.has_wrench for rec in recordings):
        for recording in recordings:
            require_torques(recording)
        # The torque's lag is found by the arm's dynamics, whatever it holds.
        return prepare(recordings, cutoff_hz, arm=arm, like=like, keep_rest=keep_rest)
    return prepare(recordings, cutoff_hz, keep_rest=keep_rest)


def _has_velocities(recordings: Sequence[Recording]) -> bool:
    return all("qd_1" in recording.channels for recording in recordings)


# Sensors mounted at a rotation or pose that is unknown.

_OFFSET_STEP = 1e-5
"""Step of numerical slopes in [rad] or [m]: truncation and rounding are both 1e-10."""

_CONVERGED = 0.01
"""Last Gauss–Newton step, in standard deviations of the offset."""


@dataclass(frozen=True, eq=False)
class OffsetSolution:
    """A load, and the pose of the sensor as mounted.

    Attributes:
        solution: For the load, in the axes of the sensor as it is mounted.
        offset: Rotation vector [rad] and, for a whole pose, translation [m] from the
            named frame to the sensor.
        offset_std: Its standard deviation.
        problem: The problem, its motion that of the sensor as mounted.
    """

    solution: LoadSolution
    offset: Float[np.ndarray, " _"]
    offset_std: Float[np.ndarray, " _"]
    problem: WrenchProblem


def solve_with_offset(
    problem: WrenchProblem, kind: PoseOffset, iterations: int = 8
) -> OffsetSolution:
    """Find the load and the sensor's pose together, by Gauss–Newton.

    The wrench is that of the load at the pose of the sensor as mounted: linear in the
    load, and linearised in rotation and translation.
    """
    size = 3 if kind == "rotation" else 6
    offset = np.zeros(size)
    channels = [WRENCH_NAMES.index(name) for name in problem.channels]
    values = solve_generalized(problem.rows(), problem.bias, problem.has_drift).values
    for _ in range(iterations):
        moved = replace(problem, frame_motion=moved_frame(problem.frame_motion, offset))
        slopes = _slopes(problem, offset, np.nan_to_num(values))
        rows = moved.rows()
        solution = solve_generalized(
            rows.with_columns(slopes[:, channels]), problem.bias, problem.has_drift
        )
        step, values = solution.values[10:], solution.values[:10]
        offset = offset + step
        std = np.sqrt(np.diag(solution.covariance)[10:])
        if np.all(np.abs(step) < _CONVERGED * std + 1e-12):
            break
    moved = replace(problem, frame_motion=moved_frame(problem.frame_motion, offset))
    return OffsetSolution(_load_part(solution), offset, std, moved)


def moved_frame(
    motion: Float[np.ndarray, "samples 3 3"], offset: Float[np.ndarray, " _"]
) -> Float[np.ndarray, "samples 3 3"]:
    """Motion of a frame that is turned and shifted from another."""
    a, omega, alpha = np.moveaxis(motion, 1, 0)
    if offset.size > 3:
        d = offset[3:]
        a = a + np.cross(alpha, d) + np.cross(omega, np.cross(omega, d))
    angle = float(np.linalg.norm(offset[:3]))
    R = rotation_about(offset[:3] / angle, angle) if angle > 0 else np.eye(3)
    return np.stack([a @ R, omega @ R, alpha @ R], axis=1)


def _slopes(
    problem: WrenchProblem, offset: np.ndarray, values: np.ndarray
) -> Float[np.ndarray, "samples 6 _"]:
    """Derivatives of the wrench by rotation and translation of the sensor."""
    columns = []
    for step in _OFFSET_STEP * np.eye(offset.size):
        ahead, behind = (
            replace(
                problem, frame_motion=moved_frame(problem.frame_motion, offset + s)
            ).regressor
            @ values
            for s in (step, -step)
        )
        columns.append((ahead - behind) / (2.0 * _OFFSET_STEP))
    return np.stack(columns, axis=2)


def _load_part(solution: LoadSolution) -> LoadSolution:
    """Leave out the pose; the load's covariance still includes its uncertainty."""
    return replace(
        solution,
        values=solution.values[:10],
        covariance=solution.covariance[:10, :10],
        degrees_of_freedom=solution.degrees_of_freedom[:10],
    )
