"""Recordings of servo arms as motions to roll out: commands, loads, masks, windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Joint
from armwise.dynamics import Dynamics, mechanism_of
from armwise.errors import ArgumentError, RecordingError
from armwise.recordings import Recording
from armwise.regression import low_pass
from armwise.servos.rollout import ServoMotion

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

# Judgement: servos answer within some 50 ms; below this rate that is between samples.
LOWEST_RATE_HZ = 15.0
"""Slowest log that shows how a servo moves."""

# Judgement: a tenth of a degree, as a motion; less is an encoder's noise.
LEAST_TRAVEL = 5e-3
"""Travel in [rad] below which a joint does not move."""


def servo_motion(
    recording: Recording, arm: Arm, gain: float = 1.0, *, is_truncated: bool = True
) -> ServoMotion:
    """Return a recording as rollouts take it.

    Args:
        recording: Of commands and positions.
        arm: Its description, with its load.
        gain: The servo's gain register.
        is_truncated: Whether servos receive commands truncated to their ticks.

    Raises:
        RecordingError: Naming what is missing or cannot be, and the remedy.
    """
    dof, source = arm.dof, recording.source
    for quantity, words in (("q", "positions"), ("command", "commands")):
        count = recording.count(quantity)
        if count < dof:
            raise RecordingError(
                f"{source} has {words} of {count} of the {dof} joints of {arm.name}. A "
                f"servo model needs {quantity}_1 … {quantity}_{dof}; lock joints that "
                "were not logged, or map the columns."
            )
    time, q = _block(recording, "q", dof)
    _, command = _block(recording, "command", dof, time)
    powered = np.ones(len(time))
    if "powered" in recording:
        channel = recording["powered"]
        powered = (np.interp(time, channel.time, channel.values) > 0.5).astype(float)
    _check(source, time, q, command, powered)
    goals = command
    if is_truncated:
        goals = np.column_stack([_received(command[:, j], q[:, j]) for j in range(dof)])
    bodies = mechanism_of(arm).grouped(arm.parameters)
    return ServoMotion(
        source, time - time[0], goals, q, powered, bodies, float(gain), _sound(time, q),
        _warmth(recording, dof), np.array([_rounding(x) for x in q.T]),
        carried=carried_weight(arm),
    )  # fmt: skip


# As motors' data sheets have it.
_REFERENCE_C = 25.0
"""Temperature in [°C] that a servo's torques are given for."""


def _warmth(recording: Recording, dof: int) -> Float[np.ndarray, " dof"]:
    """Return how far the motors are above the reference; 0 where nobody measured."""
    warmth = np.zeros(dof)
    for j in range(dof):
        names = [f"temperature_{j + 1}", *(["temperature"] if dof == 1 else [])]
        logged = [recording[name].values for name in names if name in recording]
        if logged:
            values = logged[0][np.isfinite(logged[0])]
            # A reading that failed is zero, or anything, for a sample.
            warmth[j] = float(np.median(values)) - _REFERENCE_C if len(values) else 0.0
    return warmth


def carried_weight(arm: Arm) -> Float[np.ndarray, " one"] | None:
    """Return the weight in [N] on the bearings of an arm's only joint.

    Of a point that has the gravity moment and the inertia of what the joint turns: its
    mass alone shows in no motion, and descriptions of loads make one up. Of several
    joints None: they carry the same in all motions, which is Coulomb friction.
    """
    if arm.dof != 1:
        return None
    joint, vector = arm.joints[0], arm.links[0].inertia.vector
    moment, _ = turned_moment(joint, vector, arm.gravity)
    inertia, _ = turned_inertia(joint, vector)
    g = float(np.linalg.norm(arm.gravity))
    weight = moment**2 / (g * inertia) if min(g, inertia) > 0.0 else 0.0
    return np.array([weight])


def turned_moment(
    joint: Joint, vector: Float[np.ndarray, " 10"], gravity: Float[np.ndarray, " 3"]
) -> tuple[float, Float[np.ndarray, " 10"]]:
    """Return the largest torque of gravity in [N m], and its derivative.

    Args:
        joint: That turns.
        vector: Ten parameters of what it turns.
        gravity: In [m/s²].
    """
    across = np.eye(3) - np.outer(joint.axis, joint.axis)
    first = across @ (vector[1:4] - vector[0] * joint.anchor)
    length = max(float(np.linalg.norm(first)), 1e-12)
    g = float(np.linalg.norm(gravity))
    by = np.zeros(10)
    by[1:4] = g * (across @ first) / length
    by[0] = -by[1:4] @ joint.anchor
    return g * length, by


def turned_inertia(
    joint: Joint, vector: Float[np.ndarray, " 10"]
) -> tuple[float, Float[np.ndarray, " 10"]]:
    """Return the inertia about a joint's axis in [kg m²], and its derivative."""
    x, y, z = joint.axis
    by = np.zeros(10)
    by[4:] = x * x, 2 * x * y, 2 * x * z, y * y, 2 * y * z, z * z
    # About the axis through the anchor, not the frame's origin.
    a = np.eye(3) - np.outer(joint.axis, joint.axis)
    by[1:4] = -2.0 * (a @ joint.anchor)
    by[0] = float(joint.anchor @ a @ joint.anchor)
    return float(by @ vector), by


def _block(
    recording: Recording, quantity: str, dof: int, stamps: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the stamps and one column per joint, on the first joint's stamps."""
    channels = [recording[f"{quantity}_{j + 1}"] for j in range(dof)]
    time = channels[0].time if stamps is None else stamps
    columns = []
    for channel in channels:
        values = channel.values
        if len(channel.time) != len(time) or not np.array_equal(channel.time, time):
            # A command holds until the next; a position between two lies between them.
            if quantity == "command":
                k = np.searchsorted(channel.time, time, side="right") - 1
                values = values[np.clip(k, 0, len(values) - 1)]
            else:
                values = np.interp(time, channel.time, values)
        columns.append(values)
    return np.asarray(time, float), np.column_stack(columns).astype(float)


def _check(
    source: str,
    time: np.ndarray,
    q: np.ndarray,
    command: np.ndarray,
    powered: np.ndarray,
) -> None:
    if len(time) < 10 or not np.all(np.diff(time) > 0.0):
        raise RecordingError(
            f"{source} has {len(time)} samples, or stamps that do not advance. Record "
            "a motion of some seconds."
        )
    is_number = np.isfinite(q).all(axis=1) & np.isfinite(command).all(axis=1)
    if not is_number.all():
        first = float(time[int(np.argmin(is_number))])
        raise RecordingError(
            f"{source} has positions or commands that are no numbers in "
            f"{int(np.sum(~is_number))} rows, the first at {first:.6g} s. Take these "
            "rows out of the file."
        )
    period = float(np.median(np.diff(time)))
    if 1.0 / period < LOWEST_RATE_HZ:
        raise RecordingError(
            f"{source} has {1.0 / period:.3g} samples a second; a servo answers within "
            f"some 50 ms. Record {LOWEST_RATE_HZ:g} Hz or more, 50 Hz is usual."
        )
    on = powered > 0.5
    if not on.any():
        raise RecordingError(f"{source}: the motors are off all along.")
    moving = np.ptp(q, axis=0) > 0.0
    if moving.any() and np.array_equal(command[:, moving], q[:, moving]):
        raise RecordingError(
            f"{source}: commands are the positions themselves, sample by sample. Log "
            "the goals that were sent, not what was read."
        )
    for j in range(q.shape[1]):
        start, path = abs(q[on, j][0] - command[on, j][0]), np.abs(np.diff(q[on, j]))
        # Judgement: a servo on its way to a goal that stands swings about it a few
        # times; what goes six times as far, and a radian, is led by something else.
        # The others' motion pushes it to and fro by less than twenty degrees.
        is_led = path.sum() > 6.0 * start + 1.0 and np.ptp(q[on, j]) > 0.35
        if not np.ptp(command[on, j]) and is_led:
            raise RecordingError(
                f"{source}: command_{j + 1} stands still while the joint moves to and "
                f"fro by {np.degrees(np.ptp(q[on, j])):.0f}°. Log the goals that were "
                "sent, or `powered` (0 where the motor is off)."
            )
    for j in range(q.shape[1]):
        gap = np.abs(command[on, j] - q[on, j])
        # Judgement: no joint turns thirty times round; ticks and percent go to 4095
        # and 100.
        if float(np.median(np.abs(command[:, j]))) > 30.0 and np.median(gap) > 10.0:
            raise RecordingError(
                f"{source}: command_{j + 1} is around {np.median(command[:, j]):.4g} "
                f"and q_{j + 1} around {np.median(q[:, j]):.4g} rad: ticks, degrees or "
                "percent are not converted. Give its unit or a calibration."
            )


def encoder_step(q: Float[np.ndarray, " samples"]) -> tuple[float, float] | None:
    """Return step and phase in [rad] of the lattice a joint's positions lie on."""
    levels = np.unique(np.round(q, 7))
    # Judgement: fewer levels show no lattice.
    if len(levels) < 5:
        return None
    step = float(np.min(np.diff(levels)))
    # Single precision leaves 1e-7; a step below 1e-5 rad is finer than any servo's.
    if step < 1e-5:
        return None
    # The mean over all levels has more digits than one difference.
    for _ in range(3):
        counts = np.round((levels - levels[0]) / step)
        step = float((levels - levels[0]) @ counts / (counts @ counts))
    phase = float(np.median(levels - counts * step))
    off = np.abs(levels - phase - counts * step)
    return (step, phase) if float(np.max(off)) < 0.02 * step else None


# Judgement: half a step of the usual 4096 in a turn, and what gears leave.
_USUAL_ROUNDING = 1e-3
"""Rounding in [rad] of positions that show no steps."""


def _rounding(q: Float[np.ndarray, " samples"]) -> float:
    """Return half of a joint's encoder step in [rad]."""
    lattice = encoder_step(q)
    # Judgement: gears give way by a ten-thousandth, however fine the encoder.
    return _USUAL_ROUNDING if lattice is None else max(0.5 * lattice[0], 1e-4)


def _received(command: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Truncate commands to the servo's ticks, seen on its positions."""
    lattice = encoder_step(q)
    if lattice is None:
        return command
    step, phase = lattice
    # A millionth: commands that were ticks must not fall to the one below.
    return np.floor((command - phase) / step + 1e-3) * step + phase


def _sound(time: np.ndarray, q: np.ndarray) -> Bool[np.ndarray, "samples dof"]:
    """Return False at spikes of an encoder: samples far from both neighbours."""
    before = np.abs(np.diff(q, axis=0, prepend=q[:1]))
    after = np.abs(np.diff(q, axis=0, append=q[-1:]))
    around = np.abs(np.roll(q, -1, axis=0) - np.roll(q, 1, axis=0))
    # Judgement: 0.15 rad there and back within two samples is no motion.
    spikes = (before > 0.15) & (after > 0.15) & (around < 0.1)
    return ~spikes


# Which way joints count against the description.


def joint_loads(
    motion: ServoMotion, arm: Arm, zeros: Float[np.ndarray, " dof"] | None = None
) -> list[ServoMotion]:
    """Split a motion into its joints, each under its own load over time.

    Args:
        motion: Of the whole arm.
        arm: Its description.
        zeros: What the description's positions are beyond the measured, in [rad].
    """
    if arm.dof == 1:
        return [motion]
    rate = 1.0 / float(np.median(np.diff(motion.time)))
    # Judgement: 6 Hz passes what arms do and stops an encoder's steps, which two
    # derivatives raise.
    smooth = low_pass(motion.q, min(6.0, 0.2 * rate), rate)
    columns = _loads(arm, motion.time, motion.q, smooth, zeros)
    return [_one_joint(motion, j, rows, None) for j, rows in enumerate(columns)]


def simulated_loads(
    motion: ServoMotion,
    arm: Arm,
    simulated: tuple[Float[np.ndarray, " steps"], Float[np.ndarray, "steps dof"]],
    measured: Sequence[ServoMotion],
    zeros: Float[np.ndarray, " dof"] | None = None,
    corrected_hz: float = 0.0,
) -> list[ServoMotion]:
    """Split a motion into its joints, the others moving as a model of them does.

    Measured at some ten milliseconds, in an encoder's steps, the other joints'
    accelerations are blunt; a model that goes where they went has them sharp. Where it
    only goes nearly there, what is measured makes up for the slow part.

    Args:
        motion: Of the whole arm.
        arm: Its description.
        simulated: Stamps in [s] and positions of a free run.
        measured: Its joints under the load of the measured motion.
        zeros: What the description's positions are beyond the measured, in [rad].
        corrected_hz: Up to where the model's motion is brought to the measured one.
    """
    time, q = simulated
    if corrected_hz > 0.0:
        rate = 1.0 / float(np.median(np.diff(motion.time)))
        there = np.column_stack([np.interp(motion.time, time, x) for x in q.T])
        slow = low_pass(motion.q - there, min(corrected_hz, 0.2 * rate), rate)
        q = q + np.column_stack([np.interp(time, motion.time, x) for x in slow.T])
    measured_q = np.column_stack([np.interp(time, motion.time, x) for x in motion.q.T])
    # Judgement: farther off, something holds the arm or the model is wrong; a tenth of
    # a second around it the speeds are, too.
    width = 2 * round(0.1 / float(time[1] - time[0])) + 1
    apart = (np.abs(q - measured_q) > 0.02).any(axis=1).astype(float)
    # Of motions shorter than the window "same" is as long as the window.
    is_far = np.convolve(apart, np.ones(width))[width // 2 :][: len(apart)] > 0.5
    joints = []
    for j, rows in enumerate(_loads(arm, time, q, q, zeros)):
        own = [np.interp(time, motion.time, x) for x in measured[j].bodies.T]
        rows[is_far] = np.column_stack(own)[is_far]
        joints.append(_one_joint(motion, j, rows, time))
    return joints


def _loads(
    arm: Arm,
    time: np.ndarray,
    q: np.ndarray,
    smooth: np.ndarray,
    zeros: np.ndarray | None,
) -> list[Float[np.ndarray, "samples load"]]:
    """Return what each joint feels while the others move, in the order of `LOAD`."""
    off = np.zeros(arm.dof) if zeros is None else zeros
    dynamics = Dynamics(arm)
    qd = np.gradient(smooth, time, axis=0)
    qdd = np.gradient(qd, time, axis=0)
    gravity, mass = dynamics.gravity_torque(q + off), dynamics.mass_matrix(smooth + off)
    speeds = dynamics.velocity_torque(smooth + off, qd)
    columns = []
    for j in range(arm.dof):
        others = qdd.copy()
        others[:, j] = 0.0
        coupling = np.einsum("tk,tk->t", mass[:, j], others) + speeds[:, j]
        nudge = off.copy()
        nudge[j] += 1e-4
        ahead = dynamics.gravity_torque(q + nudge)[:, j]
        gradient = (ahead - gravity[:, j]) / 1e-4
        load = [mass[:, j, j] - _rotor(arm, j), coupling, gravity[:, j], gradient]
        columns.append(np.column_stack([*load, q[:, j]]))
    return columns


def _one_joint(
    motion: ServoMotion, j: int, rows: np.ndarray, load_time: np.ndarray | None
) -> ServoMotion:
    return replace(
        motion,
        goals=motion.goals[:, j : j + 1],
        q=motion.q[:, j : j + 1],
        bodies=rows,
        mask=motion.mask[:, j : j + 1],
        warmth=motion.warmth[j : j + 1],
        carried=None if motion.carried is None else motion.carried[j : j + 1],
        mounted=None if motion.mounted is None else motion.mounted[j : j + 1],
        rounding=motion.rounding[j : j + 1],
        load_time=load_time,
    )


def dense(motion: ServoMotion) -> ServoMotion:
    """Return a motion whose stamps are the ends of its rollouts' steps."""
    h, steps, _ = motion.clock
    time = np.arange(steps) * h
    rows = np.searchsorted(motion.time, time + 1e-9, side="right") - 1
    return replace(
        motion,
        time=time,
        goals=motion.goals[rows],
        q=motion.q[rows],
        powered=motion.powered[rows],
        mask=motion.mask[rows],
    )


def _rotor(arm: Arm, j: int) -> float:
    """Return the rotor inertia the description has; the servo brings its own."""
    return float(arm.joints[j].drive.rotor_inertia)


def as_list(arms: Arm | Sequence[Arm], count: int) -> list[Arm]:
    """Return one arm per recording, all of one mechanism."""
    listed = [arms] * count if isinstance(arms, Arm) else list(arms)
    if len(listed) != count:
        raise ArgumentError(
            f"{len(listed)} arms for {count} recordings: give one, or one each."
        )
    for one in listed:
        require_same_mechanism(one, listed[0])
    return listed


def require_same_mechanism(arm: Arm, other: Arm) -> None:
    """Refuse an arm that differs in more than its inertias, as loads do."""
    if mechanism_of(arm).key != mechanism_of(other).key:
        raise ArgumentError(
            f"{arm.name} and {other.name} are two arms for these servos: only inertias "
            "may differ, as with another load."
        )


# What of a motion counts.

SETTLE_S = 1.0
"""First part of a window in [s] that does not count: speed and stick are unknown."""


# Judgement: a servo's set-point and its swing after a stop have ended by then.
_RESTED_S = 0.25
"""Time in [s] over which a joint and its command are to rest before a window."""


def windows_of(motion: ServoMotion, seconds: float) -> list[ServoMotion]:
    """Cut a motion into windows of about this length in [s]."""
    period = float(np.median(np.diff(motion.time)))
    length, settle = round(seconds / period), round(SETTLE_S / period)
    if len(motion.time) < 1.5 * length:
        return [motion]
    starts = range(0, len(motion.time) - length + 1, length)
    return [motion.cut(s, s + length, settle) for s in starts]


def rested_spans(motion: ServoMotion, seconds: float) -> list[tuple[int, int]]:
    """Return rows of windows of about this length in [s], cut where a joint rests.

    Free runs begin at rest. One that begins so in the midst of a motion sticks
    elsewhere at its end, and stays there until the next.
    """
    period = float(np.median(np.diff(motion.time)))
    length = round(seconds / period)
    if len(motion.time) < 1.5 * length:
        return [(0, len(motion.time))]
    lag = max(1, round(_RESTED_S / period))
    moved = np.zeros(len(motion.time))
    for x in (motion.q, motion.goals):
        moved[lag:] += np.abs(x[lag:] - x[:-lag]).sum(axis=1)
    cuts = [0]
    for middle in range(length, len(motion.time) - length // 2, length):
        # A quarter of the length either way: no window is shorter than half of it.
        last = min(middle + length // 4, len(motion.time) - length // 2)
        rows = slice(middle - length // 4, last)
        cuts.append(rows.start + int(np.argmin(moved[rows])))
    return list(zip(cuts, [*cuts[1:], len(motion.time)], strict=True))


def cut_window(motion: ServoMotion, span: tuple[int, int]) -> ServoMotion:
    """Return some rows of a motion, of which those at the start settle."""
    if span == (0, len(motion.time)):
        return motion
    period = float(np.median(np.diff(motion.time)))
    return motion.cut(*span, round(SETTLE_S / period))


def rested_windows(motion: ServoMotion, seconds: float) -> list[ServoMotion]:
    """Cut a joint's motion into windows of about this length in [s], where it rests."""
    return [cut_window(motion, span) for span in rested_spans(motion, seconds)]


def travel_of(motion: ServoMotion) -> float:
    """Return how far the joint is sent in [rad], and how far it falls, motor off."""
    sent = float(np.abs(np.diff(motion.goals[:, 0])).sum())
    q = motion.q[motion.mask[:, 0] & (motion.powered < 0.5), 0]
    period = float(np.median(np.diff(motion.time)))
    # Judgement: every tenth of a second; noise adds little to what moves by then.
    return sent + float(np.abs(np.diff(q[:: max(1, round(0.1 / period))])).sum())


def sharpness_of(motion: ServoMotion) -> float:
    """Return the mean size in [rad/s²] of the commands' acceleration."""
    period = float(np.median(np.diff(motion.time)))
    # Judgement: over some 40 ms, so that ticks of the commands are none.
    lag = max(1, round(0.04 / period))
    goals = motion.goals[:, 0]
    if len(goals) <= 2 * lag:
        return 0.0
    bend = goals[2 * lag :] - 2.0 * goals[lag:-lag] + goals[: -2 * lag]
    return float(np.abs(bend).mean()) / (lag * period) ** 2


# Judgement: what is held stays behind by most of what the free run would still go;
# a servo at its limit of torque is far from its command, and its model nearly as far.
_HELD = 0.2
"""How far a joint that is held is behind its free run, of its way to the command."""


def held_back(
    motion: ServoMotion, run: np.ndarray, usual: float, *, is_sure: bool, joint: int = 0
) -> np.ndarray:
    """Return rows in which something holds the joint back from its command.

    The position stays behind the free run on the side away from the command, by more
    than six times what is usual and a fifth of the way to the command, for longer than
    a fifth of a second, motor on; or, if the free run is that of a finished model,
    three times as far for half as long.
    """
    error = run - motion.q[:, joint]
    effort = motion.goals[:, joint] - motion.q[:, joint]
    # Judgement: below ten milliradians no contact is told from friction.
    limit = max(6.0 * usual, 0.01)
    period = float(np.median(np.diff(motion.time)))
    around = max(1, round(0.3 / period))
    rows = np.zeros(len(error), bool)
    # A first model is that wrong where the command is quick, for a tenth of a second.
    for factor, seconds in ((1.0, 0.2), (3.0, 0.1))[: 2 if is_sure else 1]:
        far = (np.abs(error) > factor * limit) & (error * effort > _HELD * effort**2)
        far &= motion.powered > 0.5
        least = max(1, round(seconds / period))
        edges = np.flatnonzero(np.diff(np.concatenate([[0], far.astype(int), [0]])))
        for start, stop in zip(edges[::2], edges[1::2], strict=True):
            if stop - start >= least:
                rows[max(0, start - around) : stop + around] = True
    return rows
