"""Runs in MuJoCo: arms, files and servos driven as a log was."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm, compile_mjcf
from armwise.errors import ArgumentError, MissingExtra
from armwise.files import scratch_folder
from armwise.identification import Estimate
from armwise.plants import import_mujoco
from armwise.recordings import Samples
from armwise.servos import Servo, ServoMotion, set_points
from armwise.simulators.export import export
from armwise.simulators.replay import torque_between, torques_per_sample

if TYPE_CHECKING:
    from jaxtyping import Float, Int


@contextmanager
def _quietly() -> Iterator[None]:
    """Count what MuJoCo warns of, and write nothing where the user stands."""
    mujoco = import_mujoco()
    mujoco.set_mju_user_warning(lambda _: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)


def _ran_away(data: Any) -> bool:
    """Whether MuJoCo has given a state up: it begins anew from zero then."""
    kinds = import_mujoco().mjtWarning
    bad = kinds.mjWARN_BADQPOS, kinds.mjWARN_BADQVEL, kinds.mjWARN_BADQACC
    return bool(any(data.warning[int(kind)].number for kind in bad))


def follow_torques(
    model: Any, arm: Arm, samples: Samples, index: Int[np.ndarray, "runs length"]
) -> tuple[Float[np.ndarray, "runs length dof"], int]:
    """Positions in free runs under logged torques, and how many runs ran away.

    A run that did stays where it was last.

    Args:
        model: Compiled by MuJoCo; changed to what the runs need.
        arm: Its joints, those locked that are to be held.
        samples: The log.
        index: Its rows that each run begins and goes on with.
    """
    mujoco = import_mujoco()
    # Logged torques hold the arm's weight, as predicted ones do.
    model.body_gravcomp[:] = 0.0
    # Actuators that hold a position would fight the torques; motors, whose bias is a
    # drive's constant torque, do not.
    if model.nu and np.any(model.actuator_biasprm[:, 1:3]):
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    steps = torques_per_sample(samples)
    period = 1.0 / (steps * samples.rate_hz)
    ticks = max(1, round(period / model.opt.timestep))
    model.opt.timestep = period / ticks
    joints = [model.joint(name) for name in arm.coordinate_names]
    at = [int(j.qposadr[0]) for j in joints]
    dof = [int(j.dofadr[0]) for j in joints]
    positions = np.empty((*index.shape, samples.dof))
    _allow(model, [int(j.id) for j in joints], samples.q)
    held = _held(model, arm)
    data = mujoco.MjData(model)
    runaways = 0
    with _quietly():
        for k, rows in enumerate(index):
            mujoco.mj_resetData(model, data)
            data.qpos[list(held)] = list(held.values())
            data.qpos[at], data.qvel[dof] = samples.q[rows[0]], samples.qd[rows[0]]
            _place_followers(model, data, arm)
            positions[k] = samples.q[rows[0]]
            for row in range(len(rows) - 1):
                for step in range(steps):
                    middle = (step + 0.5) / steps
                    torque = torque_between(samples, rows[None], row, middle)
                    data.qfrc_applied[dof] = torque[0]
                    mujoco.mj_step(model, data, ticks)
                if _ran_away(data):
                    runaways += 1
                    break
                positions[k, row + 1 :] = data.qpos[at]
    return positions, runaways


def _allow(model: Any, joints: Sequence[int], q: np.ndarray) -> None:
    """Lift the limits of joints that the robot itself went beyond.

    Its zeros may not be the description's: a wall that was not there is no gap.
    """
    for j, column in zip(joints, q.T, strict=True):
        low, high = model.jnt_range[j]
        if column.min() < low or column.max() > high:
            model.jnt_limited[j] = 0


_HELD = 1e6
"""Rotor inertia in [kg m²] or mass in [kg] of joints that are held: what an arm pulls
with moves them by less than a microradian in a free run."""


def _held(model: Any, arm: Arm) -> dict[int, float]:
    """Make joints of a file heavy that the arm has locked: address → position."""
    moving = {joint.name for joint in arm.joints}
    positions: dict[int, float] = {}
    for j in range(model.njnt):
        joint = model.joint(j)
        # Slides and hinges: balls and free bodies are no joints of an arm.
        if joint.name not in moving and int(joint.type[0]) in (2, 3):
            model.dof_armature[joint.dofadr[0]] = _HELD
            at = int(joint.qposadr[0])
            positions[at] = arm.locked.get(joint.name, float(model.qpos0[at]))
    for k in np.flatnonzero(model.eq_type == 2):
        # Fingers that follow another: from their reference, by a polynomial of its.
        one, other = (int(x[k]) for x in (model.eq_obj1id, model.eq_obj2id))
        at = int(model.jnt_qposadr[one])
        if other >= 0 and at in positions:
            lead = int(model.jnt_qposadr[other])
            moved = positions.get(lead, model.qpos0[lead]) - model.qpos0[lead]
            shift = np.polyval(model.eq_data[k][4::-1], moved)
            positions[at] = float(model.qpos0[at] + shift)
    return positions


def _place_followers(model: Any, data: Any, arm: Arm) -> None:
    """Put joints that follow others where these have them: else they kick the arm."""
    for joint in arm.joints:
        if joint.mimic is None:
            continue
        leader = model.joint(arm.joints[joint.mimic.leader].name)
        own, ratio = model.joint(joint.name), joint.mimic.multiplier
        at = float(data.qpos[leader.qposadr[0]])
        data.qpos[own.qposadr[0]] = ratio * at + joint.mimic.offset
        data.qvel[own.dofadr[0]] = ratio * float(data.qvel[leader.dofadr[0]])


def compiled(model: Arm | Estimate | Path, samples: Samples | None = None) -> Any:
    """MuJoCo's model of a file, or of what is exported of an arm or an estimate."""
    if isinstance(model, Path):
        return compile_mjcf(model)
    try:
        import mujoco  # noqa: F401
    except ImportError:
        raise MissingExtra("mujoco-core", "sim", "Replaying in MuJoCo") from None
    with scratch_folder(Path(tempfile.gettempdir())) as folder:
        path = folder / "arm.xml"
        export(model, path, to="mjcf", data=samples)
        return compile_mjcf(path)


def with_biases(arm: Arm, path: Path) -> Arm:
    """The arm of an MJCF, constant torques of its drives as its motors' biases."""
    model = compile_mjcf(path)
    names = [joint.name for joint in arm.joints]
    offsets = dict.fromkeys(arm.coordinate_names, 0.0)
    for k in range(model.nu):
        joint = model.joint(int(model.actuator_trnid[k][0])).name
        bias = model.actuator_biasprm[k]
        # Joints' own motors; those that hold a position are a controller.
        if (
            int(model.actuator_trntype[k]) == 0
            and joint in offsets
            and not any(bias[1:3])
        ):
            offsets[joint] -= float(bias[0] * model.actuator_gear[k][0])
    values = arm.parameters.copy()
    values[arm.layout.drive("offset")] = 0.0
    for name, offset in offsets.items():
        values[arm.layout.joint(names.index(name), "offset")] = offset
    return arm.with_parameters(values)


# Commands.


def follow_commands(
    model: Any,
    arm: Arm,
    time: Float[np.ndarray, " samples"],
    q: Float[np.ndarray, "samples dof"],
    command: Float[np.ndarray, "samples dof"],
) -> tuple[Float[np.ndarray, "samples dof"], int]:
    """Positions of joints whose actuators hold what is commanded; 1 if they ran away.

    Args:
        model: Compiled by MuJoCo; changed to what the run needs.
        arm: Its joints, those locked that are to be held.
        time: In [s].
        q: Where the robot was: the run begins there, and no wall is nearer.
        command: Positions commanded.
    """
    mujoco = import_mujoco()
    actuators = _position_actuators(model, arm)
    joints = [model.joint(name) for name in arm.coordinate_names]
    at = [int(j.qposadr[0]) for j in joints]
    _allow(model, [int(j.id) for j in joints], q)
    held = _held(model, arm)
    data = mujoco.MjData(model)
    data.qpos[list(held)] = list(held.values())
    data.qpos[at] = q[0]
    _place_followers(model, data, arm)
    simulated = np.tile(q[0], (len(q), 1))
    with _quietly():
        for k, until in enumerate(time[1:] - time[0]):
            data.ctrl[actuators] = command[k]
            while data.time < until - 0.5 * model.opt.timestep:
                mujoco.mj_step(model, data)
                # Its clock begins anew, too.
                if _ran_away(data):
                    return simulated, 1
            simulated[k + 1 :] = data.qpos[at]
    return simulated, 0


def follow_servo(servo: Servo, motion: ServoMotion) -> Float[np.ndarray, "samples dof"]:
    """Positions of servos as exported, under the commands of a motion."""
    mujoco = import_mujoco()
    with scratch_folder(Path(tempfile.gettempdir())) as folder:
        path = folder / "servo.xml"
        export(servo, path, to="mjcf")
        model = mujoco.MjModel.from_xml_path(str(path))
    servo = servo.simplified()
    zero = servo.values["zero"]
    _allow(model, range(model.njnt), motion.q + zero)
    data = mujoco.MjData(model)
    data.qpos[:] = motion.q[0] + zero
    # What an MJCF has no words for (delay, limits of speed and acceleration) is in the
    # set-points; their shift is in the actuators.
    points = set_points(servo, motion, model.opt.timestep)
    rows = []
    with _quietly():
        for point in points - (servo.values["offset"] + zero):
            rows.append(data.qpos.copy())
            data.ctrl[:] = point
            mujoco.mj_step(model, data)
    at = np.arange(len(rows)) * model.opt.timestep
    return np.column_stack(
        [np.interp(motion.time, at, x) for x in (np.array(rows) - zero).T]
    )


def _position_actuators(model: Any, arm: Arm) -> list[int]:
    """Number of the actuator that holds the position of each joint."""
    holders: dict[str, int] = {}
    for k in range(model.nu):
        joint = str(model.joint(int(model.actuator_trnid[k][0])).name)
        # A position servo pulls back with what it is away from its command.
        if int(model.actuator_trntype[k]) == 0 and model.actuator_biasprm[k][1] < 0:
            holders[joint] = k
    missing = [name for name in arm.coordinate_names if name not in holders]
    if missing:
        raise ArgumentError(
            f"{arm.name}: no actuator holds the position of {', '.join(missing[:4])}: "
            "commands cannot be replayed. Add position actuators."
        )
    return [holders[name] for name in arm.coordinate_names]
