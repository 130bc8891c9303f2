"""Servo arms from command and position: Armwise beside mujoco.sysid and a delay line.

    armwise bench servo

An SO-101 is fitted to some motions and rolled out through others it has not seen, from
the commands and the first sample alone. mujoco.sysid (pip install
'armwise[bench]') fits what an MJCF can hold, position gain, damping, dry friction and
rotor inertia of every joint, to the same motions, by MuJoCo's own rollouts and its own
optimiser; zeros and masses are the same description's. An evaluation is one motion
rolled out once.

The motions are those of $ARMWISE_DATA/so101, eight fitted and every fourth left out;
without these the three that Armwise ships, two fitted. BAM has no package on PyPI: its
row says so.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import armwise as aw
from armwise.recordings import Recording, read_recording
from armwise.servos import EXAMPLE, Servo, identify_servo
from armwise.servos.mjcf import write_servo_mjcf
from armwise.servos.rollout import Roller, ServoMotion
from benchmarks.real import DATA

ARM_JOINTS = 5
"""Joints that count: the gripper moves nothing but itself."""

_TIMESTEP = 2e-3
"""Step of MuJoCo's rollouts in [s]."""

# Kinds of parameters: attribute, least, first, most. Joints of servo arms lie well
# within; the first value is a small arm's, of the right order for none in particular.
_KINDS = (
    ("kp", 0.5, 20.0, 200.0),
    ("damping", 1e-3, 0.5, 20.0),
    ("frictionloss", 1e-4, 0.1, 3.0),
    ("armature", 1e-5, 0.02, 0.5),
)


class Figure(NamedTuple):
    """How a method did: errors of motions left out, and what they cost."""

    method: str
    mrad: str
    worst_joint_mrad: str
    evaluations: str
    processor_s: str


_LEFT_OUT = 4
"""Of so many motions one is not fitted."""

_MOST_FITTED = 8
"""Motions to fit: with more, mujoco.sysid takes hours."""


def run() -> Iterator[Figure]:
    """Yield the table, one method a row."""
    arm, fitted, unseen = _recordings()
    count, start = [0], time.process_time()
    with _counted(count):
        servo = identify_servo(arm, fitted)
    took, used = time.process_time() - start, count[0]
    logs = [servo.motion(one) for one in unseen]
    late = servo.errors(unseen).delay_line_joints
    yield _figure("the command, late", late, 0, 0.0)
    yield from _peer(servo, [servo.motion(one) for one in fitted], logs)
    yield Figure("BAM", "not run: no package on PyPI", "", "", "")
    yield _figure("Armwise", servo.errors(unseen).joints, used, took)


def _recordings() -> tuple[aw.Arm, list[Recording], list[Recording]]:
    folder = DATA / "so101"
    arm = aw.load_arm(EXAMPLE / "so101.urdf")
    if not folder.exists():
        paths = sorted(EXAMPLE.glob("*.parquet"))
        logs = [read_recording(path, arm) for path in paths]
        return arm, logs[:-1], logs[-1:]
    paths = sorted(folder.glob("**/*.parquet"))
    unseen = [path for k, path in enumerate(paths) if k % _LEFT_OUT == 0]
    fitted = [path for path in paths if path not in unseen]
    fitted = fitted[:: max(1, len(fitted) // _MOST_FITTED)][:_MOST_FITTED]
    return (
        arm,
        [read_recording(path, arm) for path in fitted],
        [read_recording(path, arm) for path in unseen],
    )


def _figure(method: str, errors: np.ndarray, evaluations: int, took: float) -> Figure:
    own = 1e3 * errors[:ARM_JOINTS]
    return Figure(
        method,
        f"{own.mean():.2f}",
        f"{own.max():.2f}",
        f"{evaluations:,}",
        f"{took:.0f}",
    )


@contextmanager
def _counted(count: list[int]) -> Iterator[None]:
    """Count the motions that Armwise rolls out."""
    original = Roller.run

    def counting(roller: Roller, motions: Any, tables: Any, *more: Any) -> Any:
        count[0] += len(motions) * len(tables["stiffness"])
        return original(roller, motions, tables, *more)

    setattr(Roller, "run", counting)  # noqa: B010
    try:
        yield
    finally:
        setattr(Roller, "run", original)  # noqa: B010


def _peer(
    servo: Servo, fitted: Sequence[ServoMotion], unseen: Sequence[ServoMotion]
) -> Iterator[Figure]:
    """Fit the same motions by mujoco.sysid."""
    import mujoco
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        yield Figure(
            "mujoco.sysid", "skipped: pip install 'armwise[bench]'", "", "", ""
        )
        return
    names = [joint.name for joint in servo.arm.joints]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "arm.xml")
        write_servo_mjcf(servo, path)
        spec = mujoco.MjSpec.from_file(str(path))
    spec.option.timestep = _TIMESTEP
    for name in names:
        spec.add_sensor(
            name=f"{name}_position",
            type=mujoco.mjtSensor.mjSENS_JOINTPOS,
            objtype=mujoco.mjtObj.mjOBJ_JOINT,
            objname=name,
        )
    parameters = sysid.ParameterDict()
    for name in names:
        for kind, least, first, most in _KINDS:
            parameters.add(
                sysid.Parameter(
                    f"{name}_{kind}", first, least, most, modifier=_setter(name, kind)
                )
            )
    model = sysid.apply_param_modifiers(parameters, spec)
    count = [0]

    def build(trial: Any, own: Any) -> Any:
        count[0] += len(fitted)
        return sysid.apply_param_modifiers(trial, own)

    sequences = sysid.ModelSequences(
        "arm",
        spec,
        [str(k) for k in range(len(fitted))],
        [sysid.create_initial_state(model, m.q[0]) for m in fitted],
        [sysid.TimeSeries(*_controls(m)) for m in fitted],
        [sysid.TimeSeries.from_names(m.time, m.q, model) for m in fitted],
    )
    residual = sysid.build_residual_fn(models_sequences=[sequences], build_model=build)
    start = time.process_time()
    # It prints every step, whatever it is told.
    with redirect_stdout(StringIO()):
        best, _ = sysid.optimize(parameters, residual, verbose=False)
    took = time.process_time() - start
    model = sysid.apply_param_modifiers(best, spec)
    errors = [np.abs(_rollout(model, m) - m.q) for m in unseen]
    yield _figure("mujoco.sysid", np.concatenate(errors).mean(axis=0), count[0], took)


def _setter(name: str, kind: str) -> Callable[[Any, Any], None]:
    def set_value(spec: Any, parameter: Any) -> None:
        value = float(parameter.value[0])
        if kind == "kp":
            actuator = spec.actuator(name)
            actuator.gainprm[0], actuator.biasprm[1] = value, -value
            actuator.biasprm[2] = 0.0
        elif kind == "damping":
            # An array of MuJoCo's since version 4.
            spec.joint(name).damping[0] = value
        else:
            setattr(spec.joint(name), kind, value)

    return set_value


def _controls(motion: ServoMotion) -> tuple[np.ndarray, np.ndarray]:
    """Commands at MuJoCo's steps: the last one that was sent."""
    at = np.arange(0.0, float(motion.time[-1]) + _TIMESTEP, _TIMESTEP)
    rows = np.searchsorted(motion.time, at + 1e-9, side="right") - 1
    return at, motion.goals[np.clip(rows, 0, None)]


def _rollout(model: Any, motion: ServoMotion) -> np.ndarray:
    """Positions at the stamps of a motion, from its first sample and its commands."""
    import mujoco
    from mujoco import rollout

    data = mujoco.MjData(model)
    data.qpos[:] = motion.q[0]
    kind = mujoco.mjtState.mjSTATE_FULLPHYSICS.value
    state = np.empty(mujoco.mj_stateSize(model, kind))
    mujoco.mj_getState(model, data, state, kind)
    _, controls = _controls(motion)
    states, _ = rollout.rollout(model, data, state, controls)
    times, q = states[0, :, 0], states[0, :, 1 : 1 + model.nq]
    # From the first sample on, which no step has reached yet.
    times, q = np.append(0.0, times), np.vstack([motion.q[:1], q])
    return np.stack([np.interp(motion.time, times, column) for column in q.T], axis=1)
