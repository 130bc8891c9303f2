"""The gap between a simulator and the robot: logs replayed, and what differs.

Torques that were logged drive the simulated arm freely for a short while, again and
again from where the robot was: over longer times the smallest error of a torque grows
without bound, and says nothing any more. Commands, which a servo follows, are replayed
over whole motions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.arms import Arm, load_arm
from armwise.errors import ArgumentError, RecordingError
from armwise.identification import Columns, Estimate, predict_torque
from armwise.plants import Friction, SimulatedArm
from armwise.progress import Progress
from armwise.recordings import Preparation, Recording, Samples, prepare
from armwise.servos import Servo, ServoMotion
from armwise.simulators.export import written_arm
from armwise.simulators.mujoco_runs import (
    compiled,
    follow_commands,
    follow_servo,
    follow_torques,
    with_biases,
)
from armwise.simulators.replay import (
    MotionGap,
    Replay,
    commands_gap,
    delay_and_gain,
    torque_between,
    torques_per_sample,
    where_it_arises,
)
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
    # As the logs of the fit, if it knows how those were.
    own = model.preparation if isinstance(model, Estimate) else None
    like: Samples | Preparation | None = own if cutoff_hz is None else None
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


# Judgement: below a sample of most logs, steps of a simulator make as much.
_EARLY = 0.01
"""Time in [s] from which on a simulated arm counts as early."""


def _notes(gap: Gap) -> Iterator[str]:
    """What the user should know of the gap of a file or an estimate."""
    runs = sum(motion.replay.runaways for motion in gap.motions.values())
    if runs:
        yield f"{runs} free runs ended in a simulated arm that ran away."
    every = [name for m in gap.motions.values() for name in m.replay.smoothed]
    if smoothed := list(dict.fromkeys(every)):
        yield (
            f"Ripple of {', '.join(smoothed)} is not in the free runs: the log's "
            "torque is too slow to show what overcame it."
        )
    if gap.driven_by == "commands":
        delays = gap.mean("delay")
        # None is known of joints that stand still.
        finite = delays[np.isfinite(delays)]
        early = float(np.median(finite)) if finite.size else 0.0
        if early > _EARLY:
            yield (
                f"The simulated joints are early by {1e3 * early:.0f} ms "
                "(median): this file's actuators take commands as they are logged, "
                "without a servo's delay and limits. What identify-servo found is in "
                "servo.json: replay that, or write armwise.servos.set_points to ctrl."
            )
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
    def exported(self) -> Path | Estimate | Arm:
        """What MuJoCo simulates: the file, or what is written of the model."""
        return self.file or self.estimate or self.arm

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
    subject, smoothed = _smoothed(subject, samples)
    if subject.runs_in_mujoco:
        model = compiled(subject.exported, samples)
        simulated, runaways = follow_torques(model, subject.arm, samples, index)
    else:
        simulated, runaways = _in_armwise(subject, samples, index)
    rows_of = index.ravel()
    replay = Replay(
        samples.time[rows_of],
        samples.q[rows_of],
        simulated.reshape(-1, samples.dof),
        tuple(range(0, rows_of.size, length)),
        runaways,
        smoothed,
    )
    torque = _predicted_torque(subject, samples)
    size = np.linalg.norm(samples.tau, axis=0)
    error = np.linalg.norm(samples.tau - torque, axis=0) / np.where(size > 0, size, 1.0)
    delay, gain = delay_and_gain(torque, samples.tau, samples.segments, samples.rate_hz)
    return MotionGap(
        replay, error, delay, gain, where_it_arises(replay, samples, rows_of)
    )


def _smoothed(subject: _Subject, samples: Samples) -> tuple[_Subject, tuple[str, ...]]:
    """Leave out what the log's torque is too slow to show; return whose it was.

    A gear's ripple that the torque's low-pass hides was overcome by torques that it
    hides as well: without them a joint would be caught in it.
    """
    if subject.estimate is None or subject.runs_in_mujoco:
        return subject, ()
    columns, terms = subject.estimate.columns, subject.friction.terms
    hidden = [term for term, _ in terms if columns.is_hidden(term, samples)]
    shown = tuple(pair for pair in terms if pair[0] not in hidden)
    friction = replace(subject.friction, terms=shown)
    names = dict.fromkeys(term.joint_name for term in hidden)
    return replace(subject, friction=friction), tuple(names)


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


def _in_armwise(
    subject: _Subject, samples: Samples, index: np.ndarray
) -> tuple[Float[np.ndarray, "runs length dof"], int]:
    steps = torques_per_sample(samples)
    plant = SimulatedArm(
        subject.arm,
        batch=len(index),
        friction=subject.friction,
        control_rate_hz=steps * samples.rate_hz,
        keeps_truth=False,
        sensors=(),
    )
    plant.reset(samples.q[index[:, 0]], samples.qd[index[:, 0]])
    if subject.estimate is not None:
        # Gears that were stretched and warm by then would else be as new in every run.
        terms = tuple(term for term, _ in subject.friction.terms)
        columns = replace(subject.estimate.columns, friction=terms)
        plant.restore_friction(columns.friction_states(samples, index[:, 0]))
    positions = np.empty((*index.shape, samples.dof))
    positions[:, 0] = samples.q[index[:, 0]]
    for row in range(index.shape[1] - 1):
        for step in range(steps):
            # In the middle of the period in which it is held.
            plant.step(torque_between(samples, index, row, (step + 0.5) / steps))
        positions[:, row + 1] = plant.state.q
    return positions, int(plant.diverged.sum())


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
    arm = subject.arm
    time, q, command = _commands(recording, arm.dof)
    model = compiled(subject.exported)
    simulated, runaways = follow_commands(model, arm, time, q, command)
    return commands_gap(Replay(time, q, simulated, (0,), runaways))


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
        is_ours = simulator != "mujoco"
        runs.append(
            servo.rollouts([motion])[0] if is_ours else follow_servo(servo, motion)
        )
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
    return commands_gap(Replay(motion.time, q, run, (0,)))


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
