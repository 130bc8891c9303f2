"""Identification of servos: from the core to the elements that predict other motions.

Each joint is rolled out by itself, under the load that the other joints' measured
motion puts on it: a thousand free runs then cost what forty of the whole arm do. The
result is judged on the whole arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.progress import Progress
from armwise.recordings import Recording
from armwise.servos.fit import (
    ServoFit,
    Values,
    best_starts,
    drawn_starts,
    fit_servo,
    mean_errors,
)
from armwise.servos.model import (
    CORE,
    ELEMENTS,
    PARAMETERS,
    absent,
    table_of,
    units_of,
)
from armwise.servos.motions import (
    LEAST_TRAVEL,
    as_list,
    joint_loads,
    joint_signs,
    refuse_unfollowed,
    servo_motion,
)
from armwise.servos.rollout import Roller, ServoMotion
from armwise.servos.servo import Servo, ServoElement, errors_of, signed

if TYPE_CHECKING:
    from jaxtyping import Float

# Judgement: long enough for several reversals, short enough that many motions count.
WINDOW_S = 10.0
"""Length in [s] of the windows that structure is chosen on."""

SETTLE_S = 1.0
"""First part of a window in [s] that does not count: speed and stick are unknown."""

# Judgement: some hundred reversals.
_WINDOWS_S = 160.0
"""Length in [s] of all windows of a joint, in each half of the motions."""

# Judgement: an element that predicts other motions less than one percent better is
# not worth its parameters.
WORTH = 0.01
"""Fraction by which an element must reduce the error on motions left out."""

# Judgement: a seventieth of a usual encoder's tick.
_LEAST_WORTH = 2e-5
"""The same in [rad]: where all but rounding is explained, a percent is chance."""


def identify_servo(
    arm: Arm | Sequence[Arm],
    recordings: Recording | Sequence[Recording],
    gains: Sequence[float] | None = None,
    *,
    seed: int = 0,
    progress: Progress | None = None,
) -> Servo:
    """Identify the servos of an arm from commands and positions alone.

    Parameters are found by rolling the arm out from the commands (output error).
    Torques are in units of the description's masses.

    Args:
        arm: The description; or one per recording, with other loads.
        recordings: With command_1 …, q_1 … and, where motors were off, `powered`.
        gains: The servo's gain register in each recording.
        seed: Of the starting points and of the halves of the motions.
        progress: Called with what is being done and how much of it is done.

    Raises:
        RecordingError: If a recording cannot be used.
        NotIdentifiable: If no joint moves.
    """
    listed = [recordings] if isinstance(recordings, Recording) else list(recordings)
    if not listed:
        raise ArgumentError("No recordings: give at least one with commands.")
    arms = as_list(arm, len(listed))
    if gains is not None and len(gains) != len(listed):
        raise ArgumentError(f"{len(gains)} gains for {len(listed)} recordings.")
    registers = [1.0] * len(listed) if gains is None else [float(g) for g in gains]
    if not all(g > 0.0 and np.isfinite(g) for g in registers):
        raise ArgumentError("Gains must be positive numbers.")
    triples = zip(listed, arms, registers, strict=True)
    motions = [servo_motion(r, a, g) for r, a, g in triples]
    for motion in motions:
        refuse_unfollowed(motion)
    signs = joint_signs(arms[0], motions)
    motions = [signed(m, signs) for m in motions]
    return _Identification(arms, motions, signs, seed, progress or _silent).servo()


def _silent(what: str, fraction: float) -> None:
    pass


@dataclass
class _Joint:
    """One joint on its way: its motions, windows in two halves, and fits so far."""

    number: int
    motions: list[ServoMotion]
    halves: tuple[list[ServoMotion], list[ServoMotion]]
    fits: list[dict[str, float]]
    moves: bool


class _Identification:
    """The course of one identification."""

    def __init__(
        self,
        arms: Sequence[Arm],
        motions: list[ServoMotion],
        signs: np.ndarray,
        seed: int,
        progress: Progress,
    ) -> None:
        self.arms, self.motions, self.signs = arms, motions, signs
        self.random = np.random.default_rng(seed)
        self.progress = progress
        self.dof = arms[0].dof
        # A single joint is rolled out with its true gravity, others under a load.
        self.roller = Roller(arms[0] if self.dof == 1 else None)
        self.zeros = np.zeros(self.dof)
        self.inertia = _typical_inertia(arms, motions)
        self.notes: list[str] = []
        # Motions in an order that no file name decides.
        self.half = self.random.permutation(len(motions)) % 2

    def servo(self) -> Servo:
        """Run all of it."""
        joints = self._joints()
        if not any(joint.moves for joint in joints):
            raise NotIdentifiable(
                "No joint moves: the commands are all but constant. Record a motion in "
                "which every joint goes to and fro at several speeds."
            )
        self._core(joints)
        self._mask_contact(joints)
        names, elements = self._grow(joints)
        # Once more, with a model that knows better what is usual.
        self._mask_contact(joints)
        fits = self._final(joints, names)
        return self._answer(joints, fits, names, elements)

    # Splitting.

    def _joints(self) -> list[_Joint]:
        per_motion = [
            joint_loads(m, a, self.zeros)
            for m, a in zip(self.motions, self.arms, strict=True)
        ]
        joints = []
        for j in range(self.dof):
            motions = [split[j] for split in per_motion]
            travel = max(float(np.ptp(m.q)) for m in motions)
            moves = travel > LEAST_TRAVEL
            joints.append(_Joint(j, motions, ([], []), [], moves))
        return joints

    def _windows(self, joint: _Joint) -> tuple[list[ServoMotion], list[ServoMotion]]:
        """Return the windows in which the joint moves most, in two halves."""
        halves: tuple[list[ServoMotion], list[ServoMotion]] = ([], [])
        for side in (0, 1):
            if len(joint.motions) == 1:
                # One motion: every other of its quarters, or tens of seconds.
                length = min(WINDOW_S, float(joint.motions[0].time[-1]) / 4.5)
                windows = _cut(joint.motions[0], length)[side::2]
            else:
                pairs = zip(joint.motions, self.half, strict=True)
                windows = [w for m, h in pairs if h == side for w in _cut(m, WINDOW_S)]
            travel = np.array([np.abs(np.diff(w.goals[:, 0])).sum() for w in windows])
            # Windows by chance, those that move more often: neither only the wildest
            # nor many in which nothing happens.
            weight = np.sqrt(travel) + 1e-3 * (travel.max(initial=0.0) + 1e-9)
            longest = max((float(w.time[-1]) for w in windows), default=WINDOW_S)
            count = min(int(np.ceil(_WINDOWS_S / longest)), len(windows))
            if count:
                chosen = self.random.choice(
                    len(windows), count, replace=False, p=weight / weight.sum()
                )
                halves[side].extend(windows[k] for k in chosen)
        return halves

    # Stages.

    def _core(self, joints: list[_Joint]) -> None:
        """Fit what every servo has, from many starts."""
        for joint in joints:
            self.progress("starting points", joint.number / self.dof)
            joint.halves = self._windows(joint)
            windows = [*joint.halves[0], *joint.halves[1]]
            base = absent()
            gain = float(np.median([m.gain for m in joint.motions]))
            inertia = self.inertia[joint.number]
            starts = drawn_starts(inertia, gain, base, self.random, 384)
            if not joint.moves:
                joint.fits = [_at_rest(inertia, gain, base)] * 2
                continue
            # A few windows are enough to reject most of the starts.
            few = windows[:: max(1, len(windows) // 8)]
            candidates = best_starts(self.roller, few, starts, 4)
            fits = [self._polish(windows, start, 8) for start in candidates]
            best = min(fits, key=lambda fit: fit.cost)
            joint.fits = [best.values] * 2

    def _polish(
        self, windows: Sequence[ServoMotion], start: Values, iterations: int
    ) -> ServoFit:
        names: tuple[str, ...] = CORE
        if np.isfinite(start["acceleration"]):
            names = (*CORE, "acceleration")
        return fit_servo(self.roller, windows, start, names, iterations=iterations)

    def _mask_contact(self, joints: list[_Joint]) -> None:
        """Leave out rows that no free arm explains, and draw windows anew."""
        for joint in joints:
            self.progress("contact", joint.number / self.dof)
            if not joint.moves:
                continue
            tables = [[table_of([joint.fits[0]])]] * len(joint.motions)
            runs = [run[0, :, 0] for run in self.roller.run(joint.motions, tables)]
            errors = [
                np.abs(run - m.q[:, 0])
                for run, m in zip(runs, joint.motions, strict=True)
            ]
            usual = float(np.nanmedian(np.concatenate(errors)))
            for k, (run, m) in enumerate(zip(runs, joint.motions, strict=True)):
                sound = self.motions[k].mask[:, [joint.number]]
                free = ~_pushed(m, run, usual)
                joint.motions[k] = replace(m, mask=sound & free[:, None])
            joint.halves = self._windows(joint)

    def _grow(
        self, joints: list[_Joint]
    ) -> tuple[tuple[str, ...], tuple[ServoElement, ...]]:
        """Add elements one at a time, each judged by the motions left out."""
        moving = [joint for joint in joints if joint.moves]
        names: tuple[str, ...] = CORE
        for joint in moving:
            joint.fits = [
                fit_servo(self.roller, joint.halves[side], joint.fits[side], CORE,
                          iterations=4).values
                for side in (0, 1)
            ]  # fmt: skip
            for values in joint.fits:
                values["acceleration"] = np.inf
        error = self._left_out(moving, [joint.fits for joint in moving])
        elements = []
        for k, (element, added) in enumerate(ELEMENTS.items()):
            self.progress(element, k / len(ELEMENTS))
            if not self._applies(element):
                continue
            trials = [self._with(joint, names, added) for joint in moving]
            trial_error = self._left_out(moving, trials)
            saved = float(error.mean() - trial_error.mean())
            is_needed = saved > max(WORTH * float(error.mean()), _LEAST_WORTH)
            elements.append(
                ServoElement(element, error.mean(), trial_error.mean(), is_needed)
            )
            if is_needed:
                names, error = (*names, *added), trial_error
                for joint, fits in zip(moving, trials, strict=True):
                    joint.fits = fits
        return names, tuple(elements)

    def _applies(self, element: str) -> bool:
        """Tell whether the recordings could show an element at all."""
        if element == "coasting":
            return any((m.powered < 0.5).any() for m in self.motions)
        if element == "joint zero":
            return self.dof > 1
        return True

    def _with(
        self, joint: _Joint, names: Sequence[str], added: Sequence[str]
    ) -> list[dict[str, float]]:
        """Return the fits of both halves with an element added."""
        fits = []
        for side in (0, 1):
            windows = joint.halves[side]
            starts = _element_starts(joint.fits[side], added, windows)
            start = best_starts(self.roller, windows, starts, 1)[0]
            fit = fit_servo(self.roller, windows, start, (*names, *added), iterations=4)
            fits.append(fit.values)
        return fits

    def _left_out(
        self, joints: Sequence[_Joint], fits: Sequence[Sequence[Values]]
    ) -> np.ndarray:
        """Return the error of each half's fit on the other half, per joint."""
        errors = []
        for joint, pair in zip(joints, fits, strict=True):
            both = [
                np.nanmean(mean_errors(self.roller, joint.halves[1 - side], pair[side]))
                for side in (0, 1)
                if joint.halves[1 - side] and joint.halves[side]
            ]
            errors.append(float(np.mean(both)))
        return np.array(errors)

    def _final(self, joints: list[_Joint], names: tuple[str, ...]) -> list[ServoFit]:
        """Fit all rows of all motions, servos of one type pulled together."""
        fits = []
        for joint in joints:
            self.progress("all motions", joint.number / self.dof)
            used = names if joint.moves else ()
            fits.append(
                fit_servo(self.roller, joint.motions, joint.fits[0], used, iterations=4)
                if used
                else ServoFit(dict(joint.fits[0]), (), np.nan, np.zeros((0, 0)),
                              np.zeros((0, 0)))
            )  # fmt: skip
        return fits

    def _answer(
        self,
        joints: list[_Joint],
        fits: list[ServoFit],
        names: tuple[str, ...],
        elements: tuple[ServoElement, ...],
    ) -> Servo:
        values = {
            name: np.array([fit.values[name] for fit in fits]) for name in PARAMETERS
        }
        std = {name: np.zeros(self.dof) for name in PARAMETERS}
        for j, fit in enumerate(fits):
            for name, spread in _standard_deviations(fit).items():
                std[name][j] = spread
            for name in names:
                if name not in fit.names:
                    std[name][j] = np.inf
        servo = Servo(self.arms[0], self.signs, values, std, elements=elements,
                      notes=tuple(self.notes))  # fmt: skip
        self.progress("whole arm", 0.0)
        errors = errors_of(self.motions, servo.rollouts(self.motions))
        contact = {}
        for k, name in enumerate(errors.motions):
            used = np.array([joint.motions[k].mask.mean() for joint in joints])
            if np.any(used < 1.0):
                contact[name] = 1.0 - used
        return replace(servo, fit=errors, contact=contact)


def _cut(motion: ServoMotion, seconds: float) -> list[ServoMotion]:
    period = float(np.median(np.diff(motion.time)))
    length, settle = round(seconds / period), round(SETTLE_S / period)
    if len(motion.time) < 1.5 * length:
        return [motion]
    starts = range(0, len(motion.time) - length + 1, length)
    return [motion.cut(s, s + length, settle) for s in starts]


def _typical_inertia(
    arms: Sequence[Arm], motions: Sequence[ServoMotion]
) -> Float[np.ndarray, " dof"]:
    arm, q = arms[0], motions[0].q[:: max(1, len(motions[0].q) // 50)]
    mass = Dynamics(arm).mass_matrix(q)
    rotors = np.array([joint.drive.rotor_inertia for joint in arm.joints])
    links = np.median(np.diagonal(mass, axis1=1, axis2=2), axis=0) - rotors
    # Judgement: a link of a gram at a centimetre; an arm may describe none at all.
    return np.maximum(links, 1e-7)


def _at_rest(inertia: float, gain: float, base: Values) -> dict[str, float]:
    """Return a servo that holds a joint of which nothing is known."""
    total = 10.0 * inertia
    return dict(base) | {
        "stiffness": 400.0 * total / gain,
        "damping": 40.0 * total,
        "coulomb": 4.0 * total,
        "armature": total - inertia,
    }


def _element_starts(
    values: Values, added: Sequence[str], windows: Sequence[ServoMotion]
) -> list[dict[str, float]]:
    """Return values with an element at several sizes, or on a grid of limits."""
    units = units_of(values)
    starts = []
    for factor in (0.1, 0.3, 1.0, 3.0):
        start = dict(values)
        for name in added:
            start[name] = factor * units[name]
        starts.append(start)
    if added == ("acceleration",):
        grid = np.geomspace(5.0, 320.0, 13)
        delays = values["delay"] + np.array([-0.02, -0.01, -0.005, 0.0, 0.005])
        return [
            dict(values) | {"acceleration": float(a), "delay": float(max(d, 0.0))}
            for a in grid
            for d in delays
        ]
    if added == ("slew",):
        speed = max(_fastest(w) for w in windows)
        return [dict(values) | {"slew": float(f * speed)}
                for f in np.geomspace(0.1, 1.0, 12)]  # fmt: skip
    if added == ("saturation",):
        effort = max(float(np.abs(w.goals - w.q).max()) * w.gain for w in windows)
        effort *= values["stiffness"]
        return [dict(values) | {"saturation": float(f * effort)}
                for f in np.geomspace(0.1, 1.0, 12)]  # fmt: skip
    if added == ("offset",) or added == ("zero",):
        more = [dict(values) | {added[0]: -s[added[0]]} for s in starts]
        starts += more
    return starts


def _fastest(motion: ServoMotion) -> float:
    """Return the fastest speed in [rad/s] of position or command over 0.1 s."""
    period = float(np.median(np.diff(motion.time)))
    lag = max(1, round(0.1 / period))
    if len(motion.time) <= lag:
        return 1.0
    moved = np.abs(motion.goals[lag:] - motion.goals[:-lag]).max()
    return max(float(moved) / (lag * period), 1e-2)


def _pushed(motion: ServoMotion, run: np.ndarray, usual: float) -> np.ndarray:
    """Return rows in which something holds the joint back from its command.

    The position stays behind the free run on the side away from the command, by more
    than six times what is usual, for longer than a fifth of a second, motor on.
    """
    error = run - motion.q[:, 0]
    effort = motion.goals[:, 0] - motion.q[:, 0]
    # Judgement: below ten milliradians no contact is told from friction.
    far = (np.abs(error) > max(6.0 * usual, 0.01)) & (error * effort > 0.0)
    far &= motion.powered > 0.5
    period = float(np.median(np.diff(motion.time)))
    least, around = max(1, round(0.2 / period)), max(1, round(0.3 / period))
    rows = np.zeros(len(far), bool)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], far.astype(int), [0]])))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        if stop - start >= least:
            rows[max(0, start - around) : stop + around] = True
    return rows


def _standard_deviations(fit: ServoFit) -> dict[str, float]:
    """Return standard deviations of the values; infinite where data say nothing."""
    if not fit.names:
        return {}
    inverse = np.linalg.pinv(fit.information, rcond=1e-12, hermitian=True)
    count = len(fit.scores)
    scatter = fit.scores.T @ fit.scores * count / max(count - 1, 1)
    # The scatter between motions knows of model errors that the noise does not; the
    # larger of the two is used, for few motions scatter little by chance.
    robust = np.diag(inverse @ scatter @ inverse)
    spread = np.sqrt(np.maximum(np.maximum(robust, np.diag(inverse)), 0.0))
    units = units_of(fit.values)
    result = {}
    for name, s in zip(fit.names, spread, strict=True):
        is_log = PARAMETERS[name].scale == "log"
        # Judgement: known to no better than a factor of e is not known.
        if is_log and (s > 1.0 or s == 0.0):
            result[name] = np.inf
        else:
            result[name] = float(s * (fit.values[name] if is_log else units[name]))
    return result
