"""Servos from command and position: Armwise beside mujoco.sysid, BAM, a delay line.

    armwise bench servo
    make bench-servo        with all peers: an environment of Python 3.12, for BAM

An SO-101 is fitted to some motions and rolled out through others it has not seen, from
the commands and the first sample alone. mujoco.sysid (pip install
'armwise[bench]') fits what an MJCF can hold, position gain, damping, dry friction and
rotor inertia of every joint, to the same motions, by MuJoCo's own rollouts and its own
optimiser; zeros and masses are the same description's. An evaluation is one motion
rolled out once. Armwise runs first; peers go on until they end by themselves, or have
taken its processor time.

The motions are those of $ARMWISE_DATA/so101: a chirp and two of ramps are fitted, every
fourth is left out; without these the three that Armwise ships, two fitted.

BAM (in 'armwise[bench]' from Python 3.12 on, which it asks for) fits one
servo that swings a weighed pendulum, not an arm: both fit the same runs of
$ARMWISE_DATA/sts3215, three masses and gains 4 8 16 32, and are judged on all runs of
other masses and gains. BAM has its own model of the STS3215, its largest friction model
(m6), its own simulator and the optimiser that its `bam.fit` uses.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import armwise as aw
from armwise.recordings import Channel, Recording, read_recording
from armwise.servos import EXAMPLE, Servo, identify_servo
from armwise.servos.mjcf import write_servo_mjcf
from armwise.servos.rollout import Roller, ServoMotion
from benchmarks.real import DATA

ARM_JOINTS = 5
"""Joints that count: the gripper moves nothing but itself."""

_TIMESTEP = 4e-3
"""Step of MuJoCo's rollouts in [s], as long as Armwise's."""

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

    motions: str
    method: str
    mrad: str
    worst_joint_mrad: str
    evaluations: str
    processor_s: str


_LEFT_OUT = 4
"""Of so many motions one is not fitted."""

_FITTED = ("chirp_sweep", "friction_gravity", "velocity_ramp")
"""Motions to fit, made for identification: with eight, mujoco.sysid takes hours."""

_ITERATIONS = 20
"""Steps of mujoco.sysid, each of 25 rollouts of every motion and some more, before the
clock is looked at."""


def run() -> Iterator[Figure]:
    """Yield the table, one method a row."""
    arm, fitted, unseen = _recordings()
    count, start = Roller.count, time.process_time()
    servo = identify_servo(arm, fitted)
    took, used = time.process_time() - start, Roller.count - count
    logs = [servo.motion(one) for one in unseen]
    late = servo.errors(unseen).delay_line_joints
    yield _figure("the command, late", late, 0, 0.0)
    yield from _peer(servo, [servo.motion(one) for one in fitted], logs, took)
    yield _figure("Armwise", servo.errors(unseen).joints, used, took)
    yield from _pendulum()


def _recordings() -> tuple[aw.Arm, list[Recording], list[Recording]]:
    folder = DATA / "so101"
    arm = aw.load_arm(EXAMPLE / "so101.urdf")
    if not folder.exists():
        paths = sorted(EXAMPLE.glob("*.parquet"))
        logs = [read_recording(path, arm) for path in paths]
        return arm, logs[:-1], logs[-1:]
    paths = sorted(folder.glob("**/*.parquet"))
    unseen = [path for k, path in enumerate(paths) if k % _LEFT_OUT == 0]
    fitted = [path for path in paths if path.stem in _FITTED and path not in unseen]
    return (
        arm,
        [read_recording(path, arm) for path in fitted],
        [read_recording(path, arm) for path in unseen],
    )


def _figure(method: str, errors: np.ndarray, evaluations: int, took: float) -> Figure:
    own = 1e3 * errors[:ARM_JOINTS]
    return Figure(
        "so101" if len(errors) > 1 else "sts3215",
        method,
        f"{own.mean():.2f}",
        f"{own.max():.2f}",
        f"{evaluations:,}",
        f"{took:.0f}",
    )


def _peer(
    servo: Servo,
    fitted: Sequence[ServoMotion],
    unseen: Sequence[ServoMotion],
    budget: float,
) -> Iterator[Figure]:
    """Fit the same motions by mujoco.sysid, for at least a budget in [s]."""
    import mujoco
    from mujoco import sysid

    if not hasattr(sysid, "optimize"):
        note = "skipped: pip install 'armwise[bench]'"
        yield Figure("so101", "mujoco.sysid", note, "", "", "")
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
    best = parameters
    while time.process_time() - start < budget:
        # A start at a bound may stay there, it says itself.
        best.move_off_bounds()
        before = best.as_vector()
        # It prints every step, whatever it is told.
        with redirect_stdout(StringIO()):
            best, _ = sysid.optimize(
                best, residual, verbose=False, max_iters=_ITERATIONS
            )
        # Judgement: a thousandth of every parameter is where it ends by itself.
        if np.allclose(best.as_vector(), before, rtol=1e-3):
            break
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


# One servo that swings a pendulum.

_RIGS = {
    (100, 535): (0.006745, 0.5422), (100, 741): (0.009273, 0.7444),
    (100, 969): (0.012182, 0.9677), (100, 1168): (0.014615, 1.1630),
    (150, 535): (0.013688, 0.8236), (150, 741): (0.018793, 1.1269),
    (150, 969): (0.024550, 1.4619), (150, 1168): (0.029472, 1.7549),
}  # fmt: skip
"""Length in [mm] and weight in [g] → inertia in [kg m²] and gravity moment in [N m]."""

_MASSES, _GAINS = (535, 741, 1168), (4.0, 8.0, 16.0, 32.0)
"""Weights in [g] and gains that are fitted."""

_EVERY = 8
"""Of so many runs of these one is fitted: with more, BAM takes hours."""

_TRIALS = 3000
"""Of BAM's optimiser, at least; its own command runs 100,000."""

_BAM_STEP = 5e-3
"""Step of BAM's simulation in [s], its default."""

_PENDULUM = """<robot name="pendulum"><link name="base"/><link name="rod"><inertial>
<origin xyz="0 0 {c}"/><mass value="{m}"/>
<inertia ixx="{i}" iyy="{i}" izz="1e-6" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="servo" type="revolute"><parent link="base"/><child link="rod"/>
<axis xyz="0 1 0"/><limit lower="-10" upper="10" effort="5" velocity="20"/></joint>
</robot>"""


class PendulumRun(NamedTuple):
    """One run of the bench."""

    rig: tuple[int, int]
    gain: float
    volts: float
    arm: aw.Arm
    recording: Recording

    @property
    def is_fitted(self) -> bool:
        """Whether it is of the masses and gains that may be fitted."""
        return self.rig[1] in _MASSES and self.gain in _GAINS


def _pendulum() -> Iterator[Figure]:
    """Fit one servo by both, and judge on other masses and gains."""
    if not (DATA / "sts3215").exists():
        note = f"skipped: {DATA}/sts3215 is not there"
        yield Figure("sts3215", "BAM", note, "", "", "")
        return
    runs = _pendulum_runs()
    fitted = [one for one in runs if one.is_fitted][::_EVERY]
    unseen = [one for one in runs if not one.is_fitted]
    count, start = Roller.count, time.process_time()
    servo = identify_servo(
        [one.arm for one in fitted],
        [one.recording for one in fitted],
        [one.gain for one in fitted],
    )
    took, used = time.process_time() - start, Roller.count - count
    errors = servo.errors(
        [one.recording for one in unseen],
        [one.arm for one in unseen],
        [one.gain for one in unseen],
    )
    late = errors.delay_line_joints
    yield _figure("the command, late", late, 0, 0.0)
    yield from _bam(fitted, unseen, took)
    yield _figure("Armwise", errors.joints, used, took)


def _pendulum_runs() -> list[PendulumRun]:
    import polars as pl

    arms = {rig: _pendulum_arm(*numbers) for rig, numbers in _RIGS.items()}
    table = pl.read_parquet(DATA / "sts3215" / "pendulum.parquet")
    runs = []
    for _, rows in table.group_by("run", maintain_order=True):
        stamps = rows["time"].to_numpy() - rows["time"][0]
        extra = {
            name: Channel(stamps, rows[column].to_numpy().astype(float))
            for name, column in (
                ("command_1", "command"), ("powered", "powered"),
                ("temperature", "temperature"),
            )
        }  # fmt: skip
        rig = round(1e3 * rows["length"][0]), round(1e3 * rows["mass"][0])
        q = rows["position"].to_numpy().astype(float)[:, None]
        recording = Recording.from_arrays(stamps, q=q, extra=extra, source="run")
        volts = float(rows["volts"].to_numpy().mean())
        gain = float(rows["kp"][0])
        runs.append(PendulumRun(rig, gain, volts, arms[rig], recording))
    return runs


def _pendulum_arm(inertia: float, moment: float) -> aw.Arm:
    """Return one link of an inertia and a gravity moment."""
    # Half of the inertia is the centre's, which a body can have.
    mass = 2.0 * (moment / 9.81) ** 2 / inertia
    center = moment / (9.81 * mass)
    text = _PENDULUM.format(c=-center, m=mass, i=inertia - mass * center**2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "pendulum.urdf")
        path.write_text(text)
        return aw.load_arm(path)


def _bam(
    fitted: Sequence[PendulumRun], unseen: Sequence[PendulumRun], budget: float
) -> Iterator[Figure]:
    """Fit the runs as `bam.fit` does, for at least a budget in [s], and judge them."""
    if any(importlib.util.find_spec(name) is None for name in ("bam", "optuna")):
        note = "skipped: it asks for Python 3.12 (make bench-servo)"
        yield Figure("sts3215", "BAM", note, "", "", "")
        return
    import optuna
    from bam.actuators import actuators
    from bam.model import models
    from bam.simulate import Simulator

    def errors(values: Any, log: dict[str, Any]) -> np.ndarray:
        model = models["m6"]()
        model.set_actuator(actuators["sts3215"]())
        model.load_parameters_from_dict(values)
        q, _, _ = Simulator(model).rollout_log(log, simulate_control=True)
        return np.abs(np.array(q) - np.array([e["position"] for e in log["entries"]]))

    model = models["m6"]()
    model.set_actuator(actuators["sts3215"]())
    free = {k: p for k, p in model.get_parameters().items() if p.optimize}
    log = _bam_log(fitted)

    def objective(trial: Any) -> float:
        values = {k: trial.suggest_float(k, p.min, p.max) for k, p in free.items()}
        return float(errors(values, log).mean())

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.CmaEsSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    start = time.process_time()
    while len(study.trials) < _TRIALS or time.process_time() - start < budget:
        study.optimize(objective, n_trials=100)
    took = time.process_time() - start
    left_out = errors(study.best_params, _bam_log(unseen)).mean(axis=0)
    evaluations = len(study.trials) * len(fitted)
    yield _figure("BAM", np.array([left_out.mean()]), evaluations, took)


def _bam_log(runs: Sequence[PendulumRun]) -> dict[str, Any]:
    """Return runs as BAM's batch has them: its step, all runs side by side."""
    length = np.array([1e-3 * one.rig[0] for one in runs])
    inertia, moment = np.array([_RIGS[one.rig] for one in runs]).T
    # A point and a rod of BAM's that have this inertia and moment; the rod's mass may
    # be negative, for only these two sums count.
    rod = 6.0 * (moment / (9.80665 * length) - inertia / length**2)
    point = inertia / length**2 - rod / 3.0
    at = np.arange(0.0, min(one.recording["q_1"].time[-1] for one in runs), _BAM_STEP)
    columns = []
    for name in ("q_1", "command_1", "powered"):
        channels = [one.recording[name] for one in runs]
        columns.append([np.interp(at, c.time, c.values) for c in channels])
    q, goals, powered = (np.array(x).T for x in columns)
    entries = [
        {"position": a, "goal_position": b, "torque_enable": c > 0.5, "speed": 0.0 * a}
        for a, b, c in zip(q, goals, powered, strict=True)
    ]
    return {
        "mass": point, "arm_mass": rod, "length": length, "dt": _BAM_STEP,
        "kp": np.array([one.gain for one in runs]),
        "vin": np.array([one.volts for one in runs]),
        "entries": entries,
    }  # fmt: skip
