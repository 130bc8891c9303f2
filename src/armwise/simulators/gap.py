"""The gap between a simulator and the robot: logs replayed, and what differs.

Torques that were logged drive the simulated arm freely for a short while, again and
again from where the robot was: over longer times the smallest error of a torque grows
without bound, and says nothing any more. Commands, which a servo follows, are replayed
over whole motions.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.arms import Arm, compile_mjcf, load_arm
from armwise.errors import ArgumentError, MissingExtra, RecordingError
from armwise.files import scratch_folder
from armwise.identification import Columns, Estimate, part_masks, predict_torque
from armwise.plants import Friction, SimulatedArm
from armwise.progress import Progress
from armwise.recordings import Recording, Samples, prepare
from armwise.servos import Servo, ServoMotion
from armwise.simulators.export import export, written_arm
from armwise.version import __version__

if TYPE_CHECKING:
    from jaxtyping import Float

SimulatorName = Literal["armwise", "mujoco"]
SIMULATORS = {"armwise": "Armwise", "mujoco": "MuJoCo"}
"""Simulators by name, and what they are called."""

# Judgement: long enough that a wrong inertia or friction shows as motion, short enough
# that an error of a per cent of the torque stays a small angle.
HORIZON = 0.5
"""Time in [s] of a free run under logged torques."""

_CONTROL_RATE = 1000.0
"""Torques per second, interpolated between those of the log."""

# Judgement: the fastest quarter of the time.
_FAST = 0.75
"""Quantile of a joint's speed above which it counts as fast."""

WHERE = ("reversing", "resting", "fast", "moving")
"""Parts of a motion whose errors are kept apart; fast ones are among the moving."""


@dataclass(frozen=True, eq=False)
class Replay:
    """One motion of the robot beside that of a simulator.

    Attributes:
        time: In [s].
        q: What the robot did, in [rad] or [m].
        simulated: What the simulator did; it begins again at every start.
        starts: First samples of free runs.
        runaways: How many free runs ended in a simulated arm that ran away.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    simulated: Float[np.ndarray, "samples dof"]
    starts: tuple[int, ...]
    runaways: int = 0

    @property
    def error(self) -> Float[np.ndarray, " dof"]:
        """Mean |q_simulated − q| per joint."""
        return np.asarray(np.abs(self.simulated - self.q).mean(axis=0))


@dataclass(frozen=True, eq=False)
class MotionGap:
    """The gap in one motion, per joint.

    Attributes:
        replay: The motion itself.
        torque_error: ‖τ − τ̂‖ / ‖τ‖ by inverse dynamics; None without torques.
        delay: By how much what is simulated is early, in [s]: of the torque, or of the
            position in a replay of commands.
        gain: What it has to be multiplied by to fit the measured best.
        where: Part of the motion → mean |q_simulated − q| in it; NaN where none is.
    """

    replay: Replay
    torque_error: Float[np.ndarray, " dof"] | None
    delay: Float[np.ndarray, " dof"]
    gain: Float[np.ndarray, " dof"]
    where: Mapping[str, Float[np.ndarray, " dof"]]


@dataclass(frozen=True, eq=False)
class Gap:
    """How far a simulator is from the robot.

    Attributes:
        name: Of the arm.
        joints: Names of the coordinates.
        simulator: In which it was replayed.
        driven_by: Torques or commands.
        horizon: Length of a free run in [s]; None: whole motions.
        motions: Log → its gap.
        described: The same of what one has before identification: the description, or
            for servos the command some time late.
        notes: What the user should know.
        slides: Joints whose positions are lengths; those of all others are angles.
    """

    name: str
    joints: tuple[str, ...]
    simulator: str
    driven_by: Literal["torques", "commands"]
    horizon: float | None
    motions: Mapping[str, MotionGap]
    described: Gap | None = None
    notes: tuple[str, ...] = ()
    slides: frozenset[str] = frozenset()

    @property
    def units(self) -> tuple[str, ...]:
        """Of a thousandth of each joint's position."""
        return tuple("mm" if name in self.slides else "mrad" for name in self.joints)

    @property
    def unit(self) -> str:
        """Of all joints' positions, in a word or two."""
        return ", ".join(dict.fromkeys(self.units))

    @property
    def label(self) -> str:
        """What was replayed, in a word: a description has no other before it."""
        return "simulated" if self.described is None else "identified"

    @property
    def position_error(self) -> Float[np.ndarray, " dof"]:
        """Mean |q_simulated − q| per joint over all samples in [rad] or [m]."""
        replays = [motion.replay for motion in self.motions.values()]
        weights = np.array([len(replay.time) for replay in replays], dtype=float)
        return np.asarray(weights @ [r.error for r in replays] / weights.sum())

    def mean(self, figure: Literal["delay", "gain", "torque_error"]) -> np.ndarray:
        """Mean of a figure over motions, by how much each joint moves in them."""
        total = weight = np.zeros(len(self.joints))
        for motion in self.motions.values():
            values = getattr(motion, figure)
            if values is None:
                continue
            # Nearly still, a joint says next to nothing of its delay or gain.
            moved = np.where(np.isfinite(values), motion.replay.q.var(axis=0), 0.0)
            total = total + moved * np.nan_to_num(values) * len(motion.replay.time)
            weight = weight + moved * len(motion.replay.time)
        return np.where(weight > 0, total / np.where(weight > 0, weight, 1.0), np.nan)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers; positions in [mrad] or [mm]."""
        mrad = (1e3 * self.position_error).tolist()
        motions = {
            name: (1e3 * m.replay.error).tolist() for name, m in self.motions.items()
        }
        return {
            "arm": self.name,
            "joints": list(self.joints),
            "simulator": self.simulator,
            "driven_by": self.driven_by,
            "horizon": self.horizon,
            "units": list(self.units),
            "mrad": mrad,
            "motions": motions,
            "torque_error": _plain(self.mean("torque_error")),
            "delay": _plain(self.mean("delay")),
            "gain": _plain(self.mean("gain")),
            # No log of a gap is one of a fit: the keys of identify-servo.
            "validation": {"mrad": mrad, "motions": motions},
            "details": {
                name: {
                    "torque_error": _plain(m.torque_error),
                    "delay": _plain(m.delay),
                    "gain": _plain(m.gain),
                    "where_mrad": {k: _plain(1e3 * v) for k, v in m.where.items()},
                    "runaways": m.replay.runaways,
                }
                for name, m in self.motions.items()
            },
            "described": None if self.described is None else self.described.to_dict(),
            "notes": list(self.notes),
        }


def _plain(values: np.ndarray | None) -> list[float | None] | None:
    if values is None:
        return None
    return [float(v) if np.isfinite(v) else None for v in values]


def measure_gap(
    model: Arm | Estimate | Servo | str | Path,
    recordings: Sequence[Recording],
    *,
    arm: Arm | None = None,
    simulator: SimulatorName = "armwise",
    horizon: float = HORIZON,
    cutoff_hz: float | None = None,
    progress: Progress | None = None,
) -> Gap:
    """Replay logs in a simulator and compare with what the robot did.

    Args:
        model: An arm, an estimate (replayed beside the description it came from),
            servos (beside a delay line), or an MJCF file, which MuJoCo simulates as it
            is.
        recordings: Logs with torques; or with commands, for a file whose actuators
            hold positions.
        arm: Of a file, what was read of it, with joints locked that logs do not hold:
            they are held there in MuJoCo, too.
        simulator: Armwise's own, or MuJoCo, in which the exported model runs.
        horizon: Length of a free run under torques in [s].
        cutoff_hz: Low-pass of logs with torques in [Hz]; chosen when None, and not the
            same for every model: name one to compare several on a log.
        progress: Called with what is being done and how much of it is done.
    """
    if not recordings:
        raise ArgumentError("There is no log to replay. Name one.")
    # Judgement: a tenth of a millisecond is no motion, ten seconds are no free run.
    if not 0.01 <= horizon <= 10.0:
        raise ArgumentError(f"A free run lasts 0.01 to 10 s, not {horizon:g}.")
    report = progress or (lambda step, fraction: None)
    if simulator not in SIMULATORS:
        raise ArgumentError(f"{simulator!r} is no simulator: armwise or mujoco.")
    if isinstance(model, Servo):
        return _servo_gap(model, recordings, simulator, report)
    subject = _subject(model, simulator, arm)
    names = _distinct([str(recording.source) for recording in recordings])
    commanded = _commanded(subject, recordings)
    gaps: dict[str, MotionGap] = {}
    before: dict[str, MotionGap] = {}
    like: Samples | None = None
    for k, (name, recording) in enumerate(zip(names, recordings, strict=True)):
        report(name, k / len(names))
        if commanded:
            gaps[name] = _replay_commands(subject, recording)
            continue
        samples = prepare(
            recording,
            cutoff_hz if like is None else None,
            arm=subject.arm,
            like=like,
            keep_rest=True,
        )
        like = like or samples
        gaps[name] = _replay_torques(subject, samples, horizon)
        if subject.described is not None:
            before[name] = _replay_torques(subject.described, samples, horizon)
    report("done", 1.0)
    shared: dict[str, Any] = {
        "name": subject.arm.name,
        "joints": subject.arm.coordinate_names,
        "simulator": subject.simulator,
        "driven_by": "commands" if commanded else "torques",
        "horizon": None if commanded else horizon,
        "slides": _slides(subject.arm),
    }
    described = Gap(**shared, motions=before) if before else None
    gap = Gap(**shared, motions=gaps, described=described)
    return replace(gap, notes=tuple(_notes(gap)))


def _slides(arm: Arm) -> frozenset[str]:
    return frozenset(j.name for j in arm.joints if not j.is_revolute)


# Judgement: of free runs of chaotic arms that differ in nothing that matters.
_WORSE = 1.1
"""Ratio of errors from which on one model counts as further away than another."""


def _notes(gap: Gap) -> Iterator[str]:
    """What the user should know of a gap under torques."""
    runs = sum(motion.replay.runaways for motion in gap.motions.values())
    if runs:
        yield f"{runs} free runs ended in a simulated arm that ran away."
    if gap.described is None:
        return
    errors = zip(gap.position_error, gap.described.position_error, strict=True)
    worse = [n for n, (x, y) in zip(gap.joints, errors, strict=True) if x > _WORSE * y]
    if worse:
        more = f" and {len(worse) - 4} more" if len(worse) > 4 else ""
        yield (
            f"{', '.join(worse[:4])}{more}: further from the robot as identified than "
            "as described. Is the log of the same robot, load and temperature?"
        )


def certificate(gap: Gap, model: str | Path, logs: Sequence[str | Path]) -> str:
    """One line: robot, hashes of the model and the logs, versions, figures."""
    worst = int(np.argmax(gap.position_error))
    size = 1e3 * gap.position_error
    kind = "commands" if gap.horizon is None else f"torques, {gap.horizon:g} s free"
    before = ""
    if gap.described is not None:
        what = "delay line" if gap.driven_by == "commands" else "description"
        before = f"; {what} {1e3 * gap.described.position_error.mean():.2f}"
    return (
        f"{gap.name} · {size.mean():.2f} {gap.unit} mean, {size[worst]:.2f} at "
        f"{gap.joints[worst]} ({kind}{before}) · {len(logs)} logs {_digest(*logs)} · "
        f"model {_digest(model)} · {gap.simulator} · Armwise {__version__}"
    )


def _digest(*files: str | Path) -> str:
    """The first digits of the hash of files, or of a name that is none."""
    seal = sha256()
    for file in files:
        path = Path(file)
        if path.is_dir():
            for part in sorted(p for p in path.rglob("*") if p.is_file()):
                seal.update(part.read_bytes())
        else:
            seal.update(path.read_bytes() if path.is_file() else str(file).encode())
    # Judgement: 48 bits name a file among any a laboratory has.
    return f"sha256:{seal.hexdigest()[:12]}"


def _distinct(names: Sequence[str]) -> list[str]:
    """File names, numbered where several are the same."""
    short = [Path(name).name or "recording" for name in names]
    return [
        name if short.count(name) == 1 else f"{name} ({short[:k].count(name) + 1})"
        for k, name in enumerate(short)
    ]


# What is replayed.


@dataclass(frozen=True, eq=False)
class _Subject:
    """A model in a simulator.

    Attributes:
        arm: Its links and joints.
        friction: Terms beyond viscous and Coulomb, and their coefficients.
        simulator: Where it runs, in words.
        file: The MJCF that MuJoCo simulates as it is; None: the arm's own export.
        estimate: What predicts the torque; None: the arm itself.
        described: The description before identification.
    """

    arm: Arm
    friction: Friction
    simulator: str
    file: Path | None = None
    estimate: Estimate | None = None
    described: _Subject | None = None

    @property
    def runs_in_mujoco(self) -> bool:
        return self.simulator != "Armwise"


def _subject(
    model: Arm | Estimate | str | Path, simulator: SimulatorName, arm: Arm | None
) -> _Subject:
    words = SIMULATORS
    if isinstance(model, Arm):
        return _Subject(model, Friction(), words[simulator])
    if isinstance(model, Estimate):
        before = _Subject(model.prior_arm, Friction(), words[simulator])
        terms = Friction(terms=model.friction) if model.friction else Friction()
        return _Subject(
            model.arm, terms, words[simulator], estimate=model, described=before
        )
    path = Path(model)
    read = with_biases(load_arm(path) if arm is None else arm, path)
    return _Subject(read, Friction(), f"MuJoCo, {path.name}", path)


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


# Torques.


def _replay_torques(subject: _Subject, samples: Samples, horizon: float) -> MotionGap:
    if not samples.has_torque:
        raise RecordingError(
            "The log holds no torque to replay. Log torques, or identify the servos "
            "from commands (armwise identify-servo) and replay those."
        )
    length = max(2, round(horizon * samples.rate_hz))
    # Runs of equal length, side by side; what is left over at the end of a segment
    # begins earlier instead.
    starts = []
    for rows in samples.segments:
        count = rows.stop - rows.start
        if count < length:
            continue
        firsts = list(range(rows.start, rows.stop - length + 1, length))
        starts += firsts
    if not starts:
        raise RecordingError(
            f"No uninterrupted stretch of the log lasts {horizon:g} s. Replay shorter "
            "free runs."
        )
    index = np.array(starts)[:, None] + np.arange(length)
    run = _in_mujoco if subject.runs_in_mujoco else _in_armwise
    simulated, runaways = run(subject, samples, index)
    rows_of = index.ravel()
    replay = Replay(
        samples.time[rows_of],
        samples.q[rows_of],
        simulated.reshape(-1, samples.dof),
        tuple(range(0, rows_of.size, length)),
        runaways,
    )
    torque = _predicted_torque(subject, samples)
    size = np.linalg.norm(samples.tau, axis=0)
    error = np.linalg.norm(samples.tau - torque, axis=0) / np.where(size > 0, size, 1.0)
    delay, gain = _delay_and_gain(
        torque, samples.tau, samples.segments, samples.rate_hz
    )
    return MotionGap(replay, error, delay, gain, _where(replay, samples, rows_of))


def _predicted_torque(
    subject: _Subject, samples: Samples
) -> Float[np.ndarray, "samples dof"]:
    arm = subject.arm
    if subject.estimate is not None:
        if not subject.runs_in_mujoco:
            return subject.estimate.predict(samples)
        # What was written for MuJoCo, which has no words for all that was identified.
        arm = written_arm(subject.estimate, [samples])
    # Friction as the torque's filter shows it, as for an estimate: a sharp sign(q̇)
    # beside a filtered torque would be an error of its own.
    return predict_torque(Columns(arm), arm.parameters, samples)


def _steps(samples: Samples) -> int:
    """Torques between two samples."""
    return max(1, round(_CONTROL_RATE / samples.rate_hz))


def _torque_at(
    samples: Samples, index: np.ndarray, row: int, fraction: float
) -> Float[np.ndarray, "runs dof"]:
    """Logged torques of every run, between two of its samples."""
    before, after = samples.tau[index[:, row]], samples.tau[index[:, row + 1]]
    return np.asarray((1.0 - fraction) * before + fraction * after)


def _in_armwise(
    subject: _Subject, samples: Samples, index: np.ndarray
) -> tuple[Float[np.ndarray, "runs length dof"], int]:
    steps = _steps(samples)
    plant = SimulatedArm(
        subject.arm,
        batch=len(index),
        friction=subject.friction,
        control_rate_hz=steps * samples.rate_hz,
        keeps_truth=False,
        sensors=(),
    )
    plant.reset(samples.q[index[:, 0]], samples.qd[index[:, 0]])
    positions = np.empty((*index.shape, samples.dof))
    positions[:, 0] = samples.q[index[:, 0]]
    for row in range(index.shape[1] - 1):
        for step in range(steps):
            # In the middle of the period in which it is held.
            plant.step(_torque_at(samples, index, row, (step + 0.5) / steps))
        positions[:, row + 1] = plant.state.q
    return positions, int(plant.diverged.sum())


def _in_mujoco(
    subject: _Subject, samples: Samples, index: np.ndarray
) -> tuple[Float[np.ndarray, "runs length dof"], int]:
    from armwise.plants import import_mujoco

    mujoco = import_mujoco()
    model = _mujoco_model(subject, samples)
    # Logged torques hold the arm's weight, as predicted ones do.
    model.body_gravcomp[:] = 0.0
    # Actuators that hold a position would fight the torques; motors, whose bias is a
    # drive's constant torque, do not.
    if model.nu and np.any(model.actuator_biasprm[:, 1:3]):
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_ACTUATION)
    steps = _steps(samples)
    period = 1.0 / (steps * samples.rate_hz)
    ticks = max(1, round(period / model.opt.timestep))
    model.opt.timestep = period / ticks
    joints = [model.joint(name) for name in subject.arm.coordinate_names]
    at = [int(j.qposadr[0]) for j in joints]
    dof = [int(j.dofadr[0]) for j in joints]
    positions = np.empty((*index.shape, samples.dof))
    _allow(model, [int(j.id) for j in joints], samples.q)
    places = _held(model, subject.arm)
    data = mujoco.MjData(model)
    for k, rows in enumerate(index):
        mujoco.mj_resetData(model, data)
        data.qpos[list(places)] = list(places.values())
        data.qpos[at], data.qvel[dof] = samples.q[rows[0]], samples.qd[rows[0]]
        positions[k, 0] = samples.q[rows[0]]
        for row in range(len(rows) - 1):
            for step in range(steps):
                torque = _torque_at(samples, rows[None], row, (step + 0.5) / steps)
                data.qfrc_applied[dof] = torque[0]
                mujoco.mj_step(model, data, ticks)
            positions[k, row + 1] = data.qpos[at]
    return positions, 0


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
    places: dict[int, float] = {}
    for j in range(model.njnt):
        joint = model.joint(j)
        # Slides and hinges: balls and free bodies are no joints of an arm.
        if joint.name not in moving and int(joint.type[0]) in (2, 3):
            model.dof_armature[joint.dofadr[0]] = _HELD
            at = int(joint.qposadr[0])
            places[at] = arm.locked.get(joint.name, float(model.qpos0[at]))
    for k in np.flatnonzero(model.eq_type == 2):
        # Fingers that follow another: from their reference, by a polynomial of its.
        one, other = (int(x[k]) for x in (model.eq_obj1id, model.eq_obj2id))
        at = int(model.jnt_qposadr[one])
        if other >= 0 and at in places:
            lead = int(model.jnt_qposadr[other])
            moved = places.get(lead, model.qpos0[lead]) - model.qpos0[lead]
            shift = np.polyval(model.eq_data[k][4::-1], moved)
            places[at] = float(model.qpos0[at] + shift)
    return places


def _mujoco_model(subject: _Subject, samples: Samples | None = None) -> Any:
    if subject.file is not None:
        return compile_mjcf(subject.file)
    try:
        import mujoco  # noqa: F401
    except ImportError:
        raise MissingExtra("mujoco-core", "sim", "Replaying in MuJoCo") from None
    with scratch_folder(Path(tempfile.gettempdir())) as folder:
        path = folder / "arm.xml"
        export(subject.estimate or subject.arm, path, to="mjcf", data=samples)
        return compile_mjcf(path)


# Commands.


def _commanded(subject: _Subject, recordings: Sequence[Recording]) -> bool:
    """Whether logs are replayed from their commands: none of them has torques."""
    with_torque = [r.count("tau") > 0 for r in recordings]
    if all(with_torque):
        return False
    if any(with_torque):
        raise RecordingError(
            "Some logs have torques and others only commands. Replay them apart."
        )
    if subject.file is None:
        raise RecordingError(
            "The log holds commands and no torques, which only a servo follows. "
            "Identify the servos (armwise identify-servo), or name an MJCF whose "
            "actuators hold positions."
        )
    return True


def _replay_commands(subject: _Subject, recording: Recording) -> MotionGap:
    from armwise.plants import import_mujoco

    mujoco = import_mujoco()
    model = _mujoco_model(subject)
    arm, dof = subject.arm, subject.arm.dof
    time, q, command = _commands(recording, dof)
    actuators = _position_actuators(model, arm)
    joints = [model.joint(name) for name in arm.coordinate_names]
    at = [int(j.qposadr[0]) for j in joints]
    _allow(model, [int(j.id) for j in joints], q)
    places = _held(model, arm)
    data = mujoco.MjData(model)
    data.qpos[list(places)] = list(places.values())
    data.qpos[at] = q[0]
    simulated = np.empty_like(q)
    for k in range(len(time)):
        simulated[k] = data.qpos[at]
        data.ctrl[actuators] = command[k]
        if k + 1 < len(time):
            until = time[k + 1] - time[0]
            while data.time < until - 0.5 * model.opt.timestep:
                mujoco.mj_step(model, data)
    replay = Replay(time, q, simulated, (0,))
    rate = 1.0 / float(np.median(np.diff(time)))
    delay, gain = _delay_and_gain(simulated, q, (slice(0, len(time)),), rate)
    return MotionGap(replay, None, delay, gain, _where(replay, _still(replay), None))


def _servo_gap(
    servo: Servo,
    recordings: Sequence[Recording],
    simulator: SimulatorName,
    report: Progress,
) -> Gap:
    """Free runs of servos over whole motions, beside the command some time late."""
    names = _distinct([str(recording.source) for recording in recordings])
    motions = [servo.motion(recording) for recording in recordings]
    runs = []
    for k, motion in enumerate(motions):
        report(names[k], k / len(names))
        run = servo.rollouts([motion])[0]
        if simulator == "mujoco":
            run = _servo_in_mujoco(servo, motion)
        runs.append(run)
    late = _delay_lines(motions)
    shared: dict[str, Any] = {
        "name": servo.arm.name,
        "joints": servo.arm.coordinate_names,
        "driven_by": "commands",
        "horizon": None,
        "slides": _slides(servo.arm),
    }
    gaps, before = (
        {
            name: _servo_motion_gap(servo, motion, run)
            for name, motion, run in zip(names, motions, simulated, strict=True)
        }
        for simulated in (runs, late)
    )
    described = Gap(**shared, simulator="delay line", motions=before)
    return Gap(
        **shared, simulator=SIMULATORS[simulator], motions=gaps, described=described
    )


def _servo_motion_gap(
    servo: Servo, motion: ServoMotion, simulated: np.ndarray
) -> MotionGap:
    # As the log counts.
    q, run = motion.q * servo.signs, simulated * servo.signs
    replay = Replay(motion.time, q, run, (0,))
    rate = 1.0 / float(np.median(np.diff(motion.time)))
    delay, gain = _delay_and_gain(run, q, (slice(0, len(q)),), rate)
    return MotionGap(replay, None, delay, gain, _where(replay, _still(replay), None))


def _still(replay: Replay) -> Samples:
    """Positions and speeds of a log without torques, for the parts of its motion."""
    qd = np.gradient(replay.q, replay.time, axis=0)
    nothing = np.zeros_like(replay.q)
    return Samples(replay.time, replay.q, qd, nothing, nothing)


def _delay_lines(motions: Sequence[ServoMotion]) -> list[np.ndarray]:
    """Commands late by what fits each joint best over all motions."""
    # Judgement: up to a fifth of a second, by hundredths; beyond, a servo is no delay.
    lags = np.arange(0.0, 0.21, 0.01)
    late = [
        [
            m.goals[
                np.clip(np.searchsorted(m.time, m.time - d, side="right") - 1, 0, None)
            ]
            for m in motions
        ]
        for d in lags
    ]
    errors = np.array(
        [
            sum(np.abs(x - m.q).sum(axis=0) for x, m in zip(rows, motions, strict=True))
            for rows in late
        ]
    )
    best = errors.argmin(axis=0)
    joints = range(len(best))
    return [
        np.column_stack([late[best[j]][k][:, j] for j in joints])
        for k in range(len(motions))
    ]


def _servo_in_mujoco(
    servo: Servo, motion: ServoMotion
) -> Float[np.ndarray, "samples dof"]:
    from armwise.plants import import_mujoco
    from armwise.servos import set_points

    mujoco = import_mujoco()
    with scratch_folder(Path(tempfile.gettempdir())) as folder:
        path = folder / "servo.xml"
        export(servo, path, to="mjcf")
        model = mujoco.MjModel.from_xml_path(str(path))
    zero = servo.values["zero"]
    _allow(model, range(model.njnt), motion.q + zero)
    data = mujoco.MjData(model)
    data.qpos[:] = motion.q[0] + zero
    # What an MJCF has no words for (delay, limits of speed and acceleration) is in the
    # set-points; their shift is in the actuators.
    points = set_points(servo, motion, model.opt.timestep)
    rows = []
    for point in points - (servo.values["offset"] + zero):
        rows.append(data.qpos.copy())
        data.ctrl[:] = point
        mujoco.mj_step(model, data)
    at = np.arange(len(rows)) * model.opt.timestep
    return np.column_stack(
        [np.interp(motion.time, at, x) for x in (np.array(rows) - zero).T]
    )


def _commands(recording: Recording, dof: int) -> tuple[np.ndarray, ...]:
    for quantity in ("q", "command"):
        count = recording.count(quantity)
        if count < dof:
            raise RecordingError(
                f"{recording.source} has {quantity} of {count} of {dof} joints. Map "
                "the columns, or lock joints that were not logged."
            )
    time = recording["q_1"].time
    columns = [
        np.column_stack(
            [
                np.interp(time, recording[name].time, recording[name].values)
                for name in (f"{quantity}_{j + 1}" for j in range(dof))
            ]
        )
        for quantity in ("q", "command")
    ]
    return time, *columns


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


# Figures.


def _where(
    replay: Replay, samples: Samples, rows: np.ndarray | None
) -> dict[str, Float[np.ndarray, " dof"]]:
    moving, resting, reversing = part_masks(samples)
    speed = np.abs(samples.qd)
    fast = moving & (speed > np.quantile(speed, _FAST, axis=0))
    masks = {
        "reversing": reversing,
        "resting": resting,
        "fast": fast,
        "moving": moving,
    }
    error = np.abs(replay.simulated - replay.q)
    means = {}
    for name, mask in masks.items():
        picked = mask if rows is None else mask[rows]
        count = picked.sum(axis=0)
        total = np.where(picked, error, 0.0).sum(axis=0)
        means[name] = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def _delay_and_gain(
    model: Float[np.ndarray, "samples dof"],
    measured: Float[np.ndarray, "samples dof"],
    segments: Sequence[slice],
    rate_hz: float,
) -> tuple[Float[np.ndarray, " dof"], Float[np.ndarray, " dof"]]:
    """By how much a model is early in [s], and what it is to be multiplied by.

    From y ≈ g x(t − d) ≈ g x − g d ẋ by least squares, again with x moved by the delay
    until it settles; over the longest uninterrupted segment.
    """
    longest = max(segments, key=lambda rows: rows.stop - rows.start)
    count = longest.stop - longest.start
    times = np.arange(count) / rate_hz
    delay, gain = np.zeros(measured.shape[1]), np.ones(measured.shape[1])
    # Judgement: a quarter of a second; servos and sensors are not later.
    most = min(0.25, 0.25 * count / rate_hz)
    for j in range(measured.shape[1]):
        x, y = model[longest, j], measured[longest, j]
        for _ in range(5):
            moved = np.interp(times - delay[j], times, x)
            slope = np.gradient(moved, 1.0 / rate_hz)
            columns = np.column_stack([moved, -slope, np.ones(count)])
            size = np.maximum(np.linalg.norm(columns, axis=0), 1e-300)
            solution = np.linalg.lstsq(columns / size, y, rcond=1e-9)[0] / size
            gain[j] = solution[0]
            if not solution[0] > 0.1:
                # Nearly nothing in common: a delay between the two has no meaning.
                delay[j] = np.nan
                break
            delay[j] = np.clip(delay[j] + solution[1] / solution[0], -most, most)
        # At the edge of the search none was found either.
        delay[j] = delay[j] if abs(delay[j]) < most else np.nan
    return delay, gain
