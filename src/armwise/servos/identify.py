"""Identification of servos: from the core to the elements that predict other motions.

Each joint is rolled out by itself, under the load that the other joints' measured
motion puts on it: a thousand free runs then cost what forty of the whole arm do. The
result is judged on the whole arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable, RecordingError
from armwise.progress import Progress
from armwise.recordings import ERROR_LEVELS, Recording, error_within
from armwise.servos.cuda import CudaRoller
from armwise.servos.fit import (
    LIMITS,
    TORQUES,
    ServoFit,
    StartRange,
    Values,
    best_starts,
    coordinate_covariance,
    drawn_starts,
    element_starts,
    fastest,
    fit_alike,
    fit_servo,
    fit_servos,
    mean_errors,
    ranked,
    shaken,
    shared_values,
    standard_deviations,
    undetermined,
    without,
)
from armwise.servos.joints import JointMotions, ServoJoint, at_rest
from armwise.servos.load import known_load_errors
from armwise.servos.model import (
    CORE,
    ELEMENTS,
    EXPRESSIBLE,
    PARAMETERS,
    absent,
    encode,
    half_step_inertia,
    stacked,
)
from armwise.servos.motions import (
    as_list,
    joint_signs,
    refuse_unfollowed,
    servo_motion,
)
from armwise.servos.rollout import Roller, ServoMotion
from armwise.servos.servo import (
    Servo,
    ServoElement,
    ServoScatter,
    errors_of,
    gain_registers,
    signed,
)

if TYPE_CHECKING:
    from jaxtyping import Float

STARTS = 256
"""Starting points per joint."""

# Judgement: an element that predicts other motions less than half a percent better is
# not worth its parameters.
WORTH = 0.005
"""Fraction by which an element must reduce the error on motions left out."""

# Judgement: half a step of a usual encoder.
_ROUNDING = 1e-3
"""Error in [rad] below which neither other valleys nor second thoughts are worth it."""

_AFTER_FRICTION = "start-up torque"
"""Element that is tried next when other valleys are sought."""

_PROFILE = "set-point profile"
"""Element that is in the firmware of all servos."""

_SET_POINT = ("acceleration limit", _PROFILE)
"""Elements that delay or hasten the set-point."""

_FRICTION = ("load friction", "Stribeck friction")
"""Elements that limits of the set-point are mistaken for."""

# Judgement: a seventieth of a usual encoder's tick.
_LEAST_WORTH = 2e-5
"""The same in [rad]: where all but rounding is explained, a percent is chance."""


_TORQUE_UNITS = {
    parameter.unit
    for parameter in PARAMETERS.values()
    if parameter.unit.startswith(("N m", "kg m²"))
}
"""Units of what grows with a servo's torques."""

# Judgement: ten answers of a servo.
_SHORTEST_S = 1.0
"""Length in [s] of all motions together below which nothing is identified."""


def identify_servo(
    arm: Arm | Sequence[Arm],
    recordings: Recording | Sequence[Recording],
    gains: Sequence[float] | None = None,
    *,
    starts: int = STARTS,
    seed: int = 0,
    backend: str = "c",
    progress: Progress | None = None,
) -> Servo:
    """Identify the servos of an arm from commands and positions alone.

    Parameters are found by rolling the arm out from the commands (output error).
    Torques are in units of the description's masses.

    Args:
        arm: The description; or one per recording, with other loads.
        recordings: With command_1 …, q_1 … and, where motors were off, `powered`.
        gains: The servo's gain register in each recording.
        starts: Random servos that each joint's fit starts from. On a GPU every one of
            them is fitted; in C the most promising.
        seed: Of the starting points.
        backend: "c", or "cuda" to roll out on a GPU.
        progress: Called with what is being done and how much of it is done.

    Raises:
        RecordingError: If a recording cannot be used.
        NotIdentifiable: If no joint moves.
        CudaError: If there is no GPU where one is asked for.
    """
    if backend not in ("c", "cuda"):
        raise ArgumentError(
            f'backend must be "c" or "cuda" for servos, not {backend!r}.'
        )
    if starts < 1:
        raise ArgumentError(f"A fit needs at least one start, not {starts}.")
    listed = [recordings] if isinstance(recordings, Recording) else list(recordings)
    if not listed:
        raise ArgumentError("No recordings: give at least one with commands.")
    arms = as_list(arm, len(listed))
    registers = gain_registers(gains, len(listed))
    triples = zip(listed, arms, registers, strict=True)
    motions = [servo_motion(r, a, g) for r, a, g in triples]
    length = sum(float(m.time[-1] - m.time[0]) for m in motions)
    if length < _SHORTEST_S:
        raise NotIdentifiable(
            f"{length:.1f} s of motion in all tell nothing of a servo, which takes a "
            "tenth of a second to answer once. Record some twenty seconds or more."
        )
    for motion in motions:
        refuse_unfollowed(motion)
    signs = joint_signs(arms[0], motions)
    motions = [signed(m, signs) for m in motions]
    # A single joint is rolled out with its true gravity, others under a load.
    alone = arms[0] if arms[0].dof == 1 else None
    roller = CudaRoller(alone) if backend == "cuda" else Roller(alone)
    course = _Identification(
        arms, motions, signs, roller, (seed, starts), progress or _silent
    )
    return course.servo()


def _silent(what: str, fraction: float) -> None:
    pass


class _Identification(JointMotions):
    """The course of one identification."""

    def __init__(
        self,
        arms: Sequence[Arm],
        motions: list[ServoMotion],
        signs: np.ndarray,
        roller: Roller,
        draws: tuple[int, int],
        progress: Progress,
    ) -> None:
        super().__init__(arms, motions, roller, progress)
        self.signs, self.starts = signs, draws[1]
        self.random = np.random.default_rng(draws[0])
        # Few joints leave time for more of each fit.
        self.is_short = self.dof <= 2
        self.steps = {1: 10, 2: 6}.get(self.dof, 3)
        self.coasts = any(bool((m.powered < 0.5).any()) for m in motions)
        # Nothing is known of a motor that is never off.
        off = ("coasting", "release") if self.coasts else ()
        self.core: tuple[str, ...] = (*CORE, *off)
        self.inertia = _typical_inertia(arms, motions)
        self.plain: dict[str, np.ndarray] = {}

    def servo(self) -> Servo:
        """Run all of it."""
        joints = self.joints()
        if not any(joint.moves for joint in joints):
            raise NotIdentifiable(
                "No joint moves: the commands are all but constant. Record a motion in "
                "which every joint goes to and fro at several speeds."
            )
        self._core(joints)
        self.mask_contact(joints, is_sure=False)
        self.find_zeros(joints, self.core)
        is_sharp = self.reload(joints)
        moving = [joint for joint in joints if joint.moves]
        self._torques_alike(moving)
        elements = self._grow(moving)
        # Once more, with a model that knows better what is usual.
        self.mask_contact(joints, is_sure=True)
        self.mask_floor(joints)
        if is_sharp:
            self.reload(joints)
        fits = self._final(joints)
        self._walls(joints, fits)
        return self._answer(joints, fits, elements)

    def _core(self, joints: list[ServoJoint]) -> None:
        """Fit what every servo has, from many starts."""
        near: list[float] = []
        for joint in joints:
            self.progress("starting points", 0.3 * joint.number / self.dof)
            joint.halves = self.windows(joint)
            windows = joint.windows
            if not joint.moves:
                continue
            around = StartRange(
                float(self.inertia[joint.number]),
                float(np.median([m.gain for m in joint.motions])),
                max((fastest(w) for w in windows), default=1.0),
                self.coasts,
            )
            starts = drawn_starts(around, absent(), self.random, self.starts)
            # A few windows are enough to reject most of the starts, and then most of
            # what they lead to.
            few = windows[:: max(1, len(windows) // 8)]
            if isinstance(self.roller, CudaRoller):
                fits = self._polish(windows, starts, 12)
            else:
                fits = self._polish(few, best_starts(self.roller, few, starts, 8), 6)
                fits = self._polish(windows, [fit.values for fit in fits[:2]], 6)
            joint.fits = [fits[0].values] * 2
            # Judgement: five percent of the cost are as good as the best.
            near.append(
                float(np.mean([fit.cost <= 1.05 * fits[0].cost for fit in fits]))
            )
        if isinstance(self.roller, CudaRoller):
            self.notes.append(
                f"Of {self.starts} random starts of each joint's fit, "
                f"{100.0 * min(near):.0f} % or more ended within 5 % of the best cost."
            )

    def _polish(
        self, windows: Sequence[ServoMotion], starts: Sequence[Values], iterations: int
    ) -> list[ServoFit]:
        """Fit what every servo has from many starts at once; the best come first."""
        fits = []
        limited = [
            tuple(name for name in LIMITS if np.isfinite(start[name]))
            for start in starts
        ]
        for limits in dict.fromkeys(limited):
            alike = [s for s, names in zip(starts, limited, strict=True)
                     if names == limits]  # fmt: skip
            names = (*self.core, *limits)
            fits += fit_servos(
                self.roller, windows, alike, names, iterations=iterations
            )
        return ranked(self.roller, windows, fits)

    def _torques_alike(self, joints: Sequence[ServoJoint]) -> None:
        """Pull the torques of servos of one arm together, before elements are added.

        A joint that gravity does not load has no torque of its own to go by, and
        without the others' it ends in any valley.
        """
        if len(joints) < 2:
            return
        self.progress("other servos", 0.34)
        fits = [
            fit_servo(self.roller, j.windows, j.fits[0], self._first(j), iterations=1)
            for j in joints
        ]
        prior = shared_values(fits, TORQUES)
        for joint, fit in zip(joints, fits, strict=True):
            near = fit_alike(
                self.roller, joint.windows, fit.values, fit.names, 4, prior
            )
            own, alike = (
                np.nanmean(mean_errors(self.roller, joint.windows, one.values))
                for one in (fit, near)
            )
            # Judgement: servos of one type, unless that explains clearly less.
            if alike < 1.03 * own:
                joint.prior, joint.fits = prior, [near.values] * 2

    def _first(self, joint: ServoJoint) -> tuple[str, ...]:
        """Return what a joint's random starts were fitted in."""
        limits = (name for name in LIMITS if np.isfinite(joint.fits[0][name]))
        return (*self.core, *limits)

    def _grow(self, moving: Sequence[ServoJoint]) -> tuple[ServoElement, ...]:
        """Add elements one at a time, each judged by the motions left out."""
        for joint in moving:
            joint.core = dict(joint.fits[0])
            joint.names = self.core
            bare = without(joint.core, joint.names)
            joint.fits = [
                self._fitted(joint, side, [bare], 4).values for side in (0, 1)
            ]
        errors = {j.number: self._left_out(j, j.fits) for j in moving}
        for joint in moving:
            joint.bare_error = errors[joint.number]
        verdicts = self._set_points(moving, errors)
        # Again at the end, for what an element is worth depends on the others; of many
        # joints only those that were judged in another valley, for time.
        shown = [name for name in ELEMENTS if self._is_shown(name)]
        # These have just been judged.
        passes = [n for n in shown if n not in (*_SET_POINT, *_FRICTION)]
        passes += shown[: None if self.is_short else shown.index(_AFTER_FRICTION)]
        for k, element in enumerate(passes):
            # Friction is all there by then, or all that there is.
            if element == _AFTER_FRICTION:
                self._borrow(moving, errors)
                for joint in [j for j in moving if errors[j.number] > _ROUNDING]:
                    self.progress("other valleys", 0.35 + 0.45 * k / len(passes))
                    self._shake(joint)
                    before = errors[joint.number]
                    errors[joint.number] = self._left_out(joint, joint.fits)
                    # Elsewhere, what was refused may be needed. Judgement: a hundredth
                    # is within the scatter between halves of the motions.
                    if abs(errors[joint.number] - before) > 0.01 * before:
                        joint.tried.clear()
            self.progress(element, 0.35 + 0.45 * k / len(passes))
            self._try(element, moving, errors, verdicts)
        if len(moving) > 1:
            verdicts["shared values"] = self._share(moving, errors)
        return tuple(verdicts.values())

    def _set_points(
        self, moving: Sequence[ServoJoint], errors: dict[int, float]
    ) -> dict[str, ServoElement]:
        """Find the set-points' limits first, beside friction of any kind.

        Without friction limits stand for it, and friction for limits. Friction that is
        not needed beside the limits is taken away again.
        """
        verdicts: dict[str, ServoElement] = {}
        for joint in moving:
            for element in _FRICTION:
                self.progress(element, 0.35)
                joint.fits = self._with(joint, ELEMENTS[element])
                joint.names = _joined(joint.names, ELEMENTS[element])
            errors[joint.number] = self._left_out(joint, joint.fits)
        for element in _SET_POINT:
            self.progress(element, 0.36)
            self._try(element, moving, errors, verdicts)
        for element in _FRICTION:
            without_it = [self._drop(j, ELEMENTS[element], errors) for j in moving]
            after = float(np.mean(list(errors.values())))
            kept = [j for j in moving if set(ELEMENTS[element]) <= set(j.names)]
            verdicts[element] = ServoElement(
                element, float(np.mean(without_it)), after, bool(kept)
            )
        for joint in moving:
            joint.tried.clear()
        return verdicts

    def _drop(
        self, joint: ServoJoint, added: Sequence[str], errors: dict[int, float]
    ) -> float:
        """Take an element away again, unless that predicts worse; return that error."""
        names = tuple(n for n in joint.names if n not in added)
        fits = []
        for side, values in enumerate(joint.fits):
            start = without(values, names)
            # What it did is dry friction again.
            start["coulomb"] = max(start["coulomb"], joint.core["coulomb"])
            fits.append(
                self._fitted(joint, side, [start], 2 * self.steps, names).values
            )
        before, after = errors[joint.number], self._left_out(joint, fits)
        if after < before + max(WORTH * before, _LEAST_WORTH):
            joint.names, joint.fits = names, fits
            errors[joint.number] = after
        return after

    def _try(
        self,
        element: str,
        moving: Sequence[ServoJoint],
        errors: dict[int, float],
        verdicts: dict[str, ServoElement],
    ) -> None:
        """Add an element to the joints that it predicts better for."""
        added = ELEMENTS[element]
        lacking = [
            j for j in moving
            if not set(added) <= set(j.names)
            and len(j.names) != j.tried.get(element)
            and (element not in verdicts or errors[j.number] > _ROUNDING)
        ]  # fmt: skip
        if not lacking:
            return
        before = float(np.mean(list(errors.values())))
        trials = {j.number: self._with(j, added) for j in lacking}
        after = {j.number: self._left_out(j, trials[j.number]) for j in lacking}
        # Judgement: a profile is fitted for longer than what it is compared with.
        worth = 4.0 * WORTH if element == _PROFILE else WORTH
        willing = takers({n: errors[n] for n in after}, after, worth)
        taken = errors | ({n: after[n] for n in willing} if willing else after)
        # What some joints took before is needed, whatever the others say now.
        if willing or not any(set(added) <= set(j.names) for j in moving):
            verdicts.pop(element, None)
            mean = float(np.mean(list(taken.values())))
            verdicts[element] = ServoElement(element, before, mean, bool(willing))
        for joint in lacking:
            joint.tried[element] = len(joint.names)
            if joint.number in willing:
                joint.names = _joined(joint.names, added)
                joint.fits = trials[joint.number]
                errors[joint.number] = after[joint.number]
        if element == _PROFILE and willing:
            self._spread(moving, errors)

    def _spread(self, moving: Sequence[ServoJoint], errors: dict[int, float]) -> None:
        """Give all joints the set-point's profile that some of them show.

        It is in the firmware, and the same in all servos of an arm; few motions are
        quick enough to show it in every joint.
        """
        added = ELEMENTS[_PROFILE]
        donors = [j for j in moving if set(added) <= set(j.names)]
        timing = {
            name: float(np.median([f[name] for j in donors for f in j.fits]))
            for name in ("acceleration", "delay")
        }
        for joint in moving:
            self.progress(_PROFILE, 0.4)
            is_new = not set(added) <= set(joint.names)
            apart = [abs(np.log(f["acceleration"] / timing["acceleration"]))
                     for f in joint.fits]  # fmt: skip
            # Judgement: as far as servos of one type differ.
            if not is_new and max(apart) < 0.15:
                continue
            names = _joined(joint.names, added)
            fits = []
            for side, values in enumerate(joint.fits):
                start = dict(values) | timing
                if values["derivative"] == 0.0:
                    # As in `element_starts`: half of what seemed to be damping.
                    start["damping"] = start["derivative"] = 0.55 * values["damping"]
                fit = self._fitted(joint, side, [start], 2 * self.steps, names)
                fits.append(fit.values)
            error = self._left_out(joint, fits)
            # Judgement: as for shared values; a joint that has its own keeps it if that
            # predicts better.
            if error < (1.03 if is_new else 1.0 - WORTH) * errors[joint.number]:
                joint.names, joint.fits = names, fits
                errors[joint.number] = error

    def _borrow(self, moving: Sequence[ServoJoint], errors: dict[int, float]) -> None:
        """Give a joint the model of another's servo, where that predicts better.

        Elements are added one at a time, and a first one that only stands for others
        keeps those out. Servos of one arm are of one type: where one of them came to a
        better model, it is a start for all.
        """
        # Judgement: the two that are explained best; with all, it takes long.
        best = sorted(moving, key=lambda j: errors[j.number] / j.bare_error)[:2]
        models = [(j.number, j.names, j.fits) for j in best]
        for joint in [j for j in moving if errors[j.number] > _ROUNDING]:
            own = [{n: values[n] for n in ("offset", "zero")} for values in joint.fits]
            for number, names, values in models:
                if number == joint.number:
                    continue
                self.progress("other servos", 0.5)
                starts = [dict(v) | mine for v, mine in zip(values, own, strict=True)]
                fits = [
                    self._fitted(joint, side, [start], 2 * self.steps, names).values
                    for side, start in enumerate(starts)
                ]
                error = self._left_out(joint, fits)
                if error < (1.0 - WORTH) * errors[joint.number]:
                    joint.names, joint.fits = names, fits
                    errors[joint.number] = error

    def _shake(self, joint: ServoJoint) -> None:
        """Look for a lower valley around a joint's fits, and take both halves there."""
        number, draws = (20, 7) if self.is_short else (8, 3)
        few = joint.windows[:: max(1, len(joint.windows) // number)]
        starts = [
            start
            for values in joint.fits
            for start in (values, *shaken(values, joint.names, self.random, draws))
        ]
        # Most lead nowhere, and few windows tell.
        for windows, count, iterations in ((few, 3, 8), (joint.windows, 1, 6)):
            fits = fit_servos(
                self.roller, windows, starts, joint.names,
                iterations=iterations, prior=joint.prior,
            )  # fmt: skip
            best = ranked(self.roller, windows, fits, joint.prior)
            starts = [fit.values for fit in best[:count]]
        joint.fits = [
            self._fitted(joint, side, [values, *starts], self.steps).values
            for side, values in enumerate(joint.fits)
        ]

    def _is_shown(self, element: str) -> bool:
        """Return whether an element can show in these motions."""
        if element == "winding temperature":
            warmth = np.array([m.warmth for m in self.motions])
            # Judgement: three kelvins are a hundredth of the torque.
            return bool((np.ptp(warmth, axis=0) > 3.0).any())
        # Zeros of several joints are sought together.
        return element != "joint zero" or self.dof == 1

    def _share(
        self, joints: Sequence[ServoJoint], errors: dict[int, float]
    ) -> ServoElement:
        """Take all joints' servos to be alike, where that predicts as well."""
        before = float(np.mean(list(errors.values())))
        for joint, fits in zip(joints, self._sharing(joints), strict=True):
            error = self._left_out(joint, fits)
            # Servos of one arm are of one type as a rule, and alike they are known
            # where single joints say little: shared unless that predicts clearly worse.
            joint.is_alike = error < 1.03 * errors[joint.number]
            if joint.is_alike:
                joint.fits, errors[joint.number] = fits, error
        is_any = any(joint.is_alike for joint in joints)
        after = float(np.mean(list(errors.values())))
        return ServoElement("shared values", before, after, is_any)

    def _sharing(self, joints: Sequence[ServoJoint]) -> list[list[dict[str, float]]]:
        """Return the fits of both halves, all joints' servos taken to be alike."""
        sides = []
        for side in (0, 1):
            own = [self._fitted(j, side, [j.fits[side]], 1) for j in joints]
            prior = shared_values(own)
            sides.append(
                [
                    fit_alike(
                        self.roller, j.halves[side], j.fits[side], j.names, 4, prior
                    ).values
                    for j in joints
                ]
            )
        return [list(pair) for pair in zip(*sides, strict=True)]

    def _fitted(
        self,
        joint: ServoJoint,
        side: int,
        starts: Sequence[Values],
        iterations: int,
        names: Sequence[str] | None = None,
    ) -> ServoFit:
        """Return the best fit of one half from some starts."""
        fits = fit_servos(
            self.roller, joint.halves[side], starts, names or joint.names,
            iterations=iterations, prior=joint.prior,
        )  # fmt: skip
        return ranked(self.roller, joint.halves[side], fits, joint.prior)[0]

    def _with(self, joint: ServoJoint, added: Sequence[str]) -> list[dict[str, float]]:
        """Return the fits of both halves with an element added."""
        fits = []
        grown = _joined(joint.names, added)
        for side, values in enumerate(joint.fits):
            windows = joint.halves[side]
            starts = element_starts(values, added, windows)
            if len(added) > 1 and set(added) & set(LIMITS):
                # What they are worth shows once the others have made room for them.
                trials = fit_servos(
                    self.roller, windows[::3], starts, grown, iterations=6,
                    prior=joint.prior,
                )  # fmt: skip
                nearest = ranked(self.roller, windows, trials, joint.prior)[0].values
                fit = self._fitted(joint, side, [nearest], 2 * self.steps, grown)
                fits.append(fit.values)
                continue
            limits = [name for name in LIMITS if name in grown]
            count = 1
            if (
                set(added) & set(LIMITS)
                and np.isfinite([joint.core[name] for name in limits]).all()
            ):
                # What the random starts came to, with what has been added since.
                first = {n: joint.core[n] for n in (*self.core, *limits)}
                starts.append(dict(values) | first)
                count = 2
            best = best_starts(self.roller, windows, starts, count)
            fits.append(self._fitted(joint, side, best, self.steps, grown).values)
        return fits

    def _left_out(self, joint: ServoJoint, fits: Sequence[Values]) -> float:
        """Return the error in [rad] of each half's fit on the other half."""
        both = [
            np.nanmean(mean_errors(self.roller, joint.halves[1 - side], fits[side]))
            for side in (0, 1)
            if joint.halves[1 - side] and joint.halves[side]
        ]
        return float(np.mean(both))

    def _left_out_ratio(self, joint: ServoJoint) -> float:
        """Return the error on motions left out over that on those fitted.

        Halves' fits on each other's motions over their own say it of half of the
        motions. With n of them errors are 1 ± p/n of what the model cannot explain, in
        squares: with all, the ratio of squares is the ratio of halves itself.
        """
        own = [
            np.nanmean(mean_errors(self.roller, windows, values))
            for windows, values in zip(joint.halves, joint.fits, strict=True)
            if windows
        ]
        ratio = self._left_out(joint, joint.fits) / max(float(np.mean(own)), 1e-12)
        # One motion has no other half.
        return float(np.sqrt(max(ratio, 1.0))) if np.isfinite(ratio) else 1.0

    def _final(self, joints: list[ServoJoint]) -> list[ServoFit]:
        """Fit all rows of all motions, servos of one type pulled together."""
        moving = [joint for joint in joints if joint.moves]
        prior = None
        nears = []
        for joint in moving:
            first, second = joint.fits
            joint.apart = {k: 0.5 * abs(first[k] - second[k]) for k in joint.names}
            one, other = encode(stacked([first, second]), joint.names)
            # Judgement: a factor of e either way; beyond, draws would run away.
            joint.offset = np.clip(0.5 * (one - other), -1.0, 1.0)
            joint.left_out_ratio = self._left_out_ratio(joint)
            self.progress("all windows", 0.8 + 0.05 * joint.number / self.dof)
            # Most of the way on the windows, for they cost a tenth of all rows.
            # One joint alone may take its time, and start from both halves' fits.
            is_alone = self.dof == 1
            trials = fit_servos(
                self.roller, joint.windows, joint.fits[: 2 if is_alone else 1],
                joint.names, iterations=25 if is_alone else 8, prior=joint.prior,
            )  # fmt: skip
            near = ranked(self.roller, joint.windows, trials, joint.prior)[0]
            joint.fits = [near.values] * 2
            nears.append(near)
        nears = self._rescaled(moving, nears)
        if any(joint.is_alike for joint in moving):
            prior = shared_values(nears)
        fits = []
        for joint in joints:
            self.progress("all motions", 0.85 + 0.13 * joint.number / self.dof)
            if not joint.moves:
                empty = np.zeros((0, 0))
                resting = at_rest([j.fits[0] for j in moving])
                fits.append(ServoFit(resting, (), np.nan, np.nan, empty, empty))
                continue
            start, names = joint.fits[0], joint.names
            joint.prior = prior if joint.is_alike else joint.prior
            if joint.is_alike and prior is not None:
                start = fit_alike(
                    self.roller, joint.windows, start, names, 5, prior
                ).values
            fits.append(
                fit_servo(self.roller, joint.motions, start, names,
                          iterations=6 if self.dof == 1 else 2, prior=joint.prior)
            )  # fmt: skip
        self.plain = self._plain(joints, fits)
        return fits

    def _rescaled(
        self, joints: Sequence[ServoJoint], fits: Sequence[ServoFit]
    ) -> list[ServoFit]:
        """Bring torques far from the other servos' to their size, if that does as well.

        Where gravity does not load a joint, and its rotor outweighs the links, torques
        and inertia are known up to one factor, along which a fit drifts without end.
        """
        # Judgement: of two servos none is the usual one.
        if len(fits) < 3:
            return list(fits)
        usual = float(np.median([fit.values["stiffness"] for fit in fits]))
        prior = shared_values(fits, TORQUES)
        rescaled = list(fits)
        for k, (joint, fit) in enumerate(zip(joints, fits, strict=True)):
            factor = usual / fit.values["stiffness"]
            # Within what the prior allows servos of one type.
            if abs(np.log(factor)) < 3.0 * prior.std.get("stiffness", np.inf):
                continue
            start = {
                name: value * factor
                if PARAMETERS[name].unit in _TORQUE_UNITS
                else value
                for name, value in fit.values.items()
            }
            other = fit_servo(
                self.roller,
                joint.windows,
                start,
                joint.names,
                iterations=8,
                prior=prior,
            )
            own, near = (
                np.nanmean(mean_errors(self.roller, joint.windows, one.values))
                for one in (fit, other)
            )
            # Judgement: as where servos first share their torques.
            if near < 1.03 * own:
                rescaled[k], joint.prior = other, prior
                joint.fits = [other.values] * 2
        return rescaled

    def _walls(self, joints: list[ServoJoint], fits: Sequence[ServoFit]) -> None:
        """Let servos stop where something stopped their joints."""
        for joint, fit in zip(joints, fits, strict=True):
            walls = self.find_walls(joint, fit.values) if joint.moves else {}
            fit.values.update(walls)
            name = self.arms[0].joints[joint.number].name
            self.notes += [
                f"{name} meets a wall at {np.degrees(wall):.1f}°."
                for wall in walls.values()
            ]

    def _plain(
        self,
        joints: list[ServoJoint],
        fits: Sequence[ServoFit],
    ) -> dict[str, np.ndarray]:
        """Fit what simulators can express, where that is not all."""
        if all(set(joint.names) <= set(EXPRESSIBLE) for joint in joints):
            return {}
        servos = []
        for joint, fit in zip(joints, fits, strict=True):
            self.progress("for simulators", 0.98)
            expressible = [name for name in joint.names if name in EXPRESSIBLE]
            simple = without(fit.values, expressible)
            # What Stribeck friction added at low speed is friction all the same.
            simple["coulomb"] += 0.5 * fit.values["static"]
            if joint.moves:
                simple = fit_servo(
                    self.roller, joint.windows, simple, expressible, iterations=6,
                    prior=joint.prior,
                ).values  # fmt: skip
            servos.append(simple)
        return {k: np.array([servo[k] for servo in servos]) for k in PARAMETERS}

    def _answer(
        self,
        joints: list[ServoJoint],
        fits: list[ServoFit],
        elements: tuple[ServoElement, ...],
    ) -> Servo:
        values = {
            name: np.array([fit.values[name] for fit in fits]) for name in PARAMETERS
        }
        std = {name: np.zeros(self.dof) for name in PARAMETERS}
        for j, (joint, fit) in enumerate(zip(joints, fits, strict=True)):
            for name, spread in standard_deviations(fit).items():
                # Halves of the motions also know of fits that ended in other valleys.
                std[name][j] = np.hypot(spread, joint.apart[name])
            if fit.names:
                for name in undetermined(self.roller, joint.windows, fit):
                    std[name][j] = np.inf
            else:
                for name in {name for other in joints for name in other.names}:
                    std[name][j] = np.inf
        std["armature"] = np.hypot(
            std["armature"], half_step_inertia(np.nan_to_num(std["damping"], posinf=0))
        )
        for kind in (values, self.plain):
            if kind:
                kind["armature"] = kind["armature"] + half_step_inertia(kind["damping"])
        if self.dof > 1:
            values["zero"], std["zero"] = self.zeros.copy(), self.zero_std.copy()
            if self.plain:
                self.plain["zero"] = self.zeros.copy()
        servo = Servo(self.arms[0], self.signs, values, std, self.plain, elements,
                      floor=self.floor, notes=tuple(self.notes))  # fmt: skip
        self.progress("whole arm", 0.98)
        runs = servo.rollouts(self.motions)
        errors = errors_of(self.motions, runs)
        contact = {}
        for k, name in enumerate(errors.motions):
            used = np.array([joint.motions[k].mask.mean() for joint in joints])
            if np.any(used < 1.0):
                contact[name] = 1.0 - used
        doubts = known_load_errors(servo, self.motions, self.arms)
        scatter = tuple(
            ServoScatter(
                fit.names,
                coordinate_covariance(fit, joint.offset),
                _error_quantiles(joint, runs),
                joint.left_out_ratio,
            )
            for joint, fit in zip(joints, fits, strict=True)
        )
        servo = replace(
            servo, scatter=scatter, fit=errors, contact=contact, load_error=doubts
        )
        return _with_allowed_spread(servo, self.motions)


_USUAL_LEVEL = 0.9
"""Level of the bands that draws are compared with errors at."""

_MOTIONS_DRAWN = 6
"""Fitted motions that draws are rolled out over: each costs as many as a band."""


def _with_allowed_spread(servo: Servo, motions: Sequence[ServoMotion]) -> Servo:
    """Return servos that know how much of their draws' spread fitted motions allow."""
    some = motions[:: -(-len(motions) // _MOTIONS_DRAWN)]
    try:
        spreads = servo.spread(some, _USUAL_LEVEL)
    except RecordingError:
        return servo  # draws run away: there is no band at all
    spread = np.quantile(np.concatenate(spreads), _USUAL_LEVEL, axis=0)
    errors = error_within(np.array([s.errors for s in servo.scatter]), _USUAL_LEVEL)
    allowed = np.minimum(errors / np.maximum(spread, 1e-12), 1.0)
    # A joint without errors was never fitted, and nothing refutes its draws.
    allowed = np.where(errors > 0.0, allowed, 1.0)
    scatter = zip(servo.scatter, allowed.tolist(), strict=True)
    return replace(
        servo, scatter=tuple(replace(own, allowed=part) for own, part in scatter)
    )


def _error_quantiles(
    joint: ServoJoint, runs: Sequence[np.ndarray]
) -> Float[np.ndarray, " levels"]:
    """Return the free-run errors of a joint that so many of its samples are within."""
    errors = [
        np.abs(run[:, joint.number] - motion.q[:, 0])[motion.mask[:, 0]]
        for run, motion in zip(runs, joint.motions, strict=True)
    ]
    joined = np.concatenate(errors)
    return (
        np.quantile(joined, ERROR_LEVELS)
        if joined.size
        else np.zeros(len(ERROR_LEVELS))
    )


def _joined(names: Sequence[str], added: Sequence[str]) -> tuple[str, ...]:
    """Return names and those added that are not among them."""
    return (*names, *(name for name in added if name not in names))


def takers(
    before: Mapping[int, float], after: Mapping[int, float], worth: float = WORTH
) -> set[int]:
    """Return the joints that take an element, by their errors on motions left out.

    A joint takes what predicts its own motions better. What an arm's servos need on
    the whole is in the firmware of all of them: the others take it, too, but those it
    would harm, and how much it would harm those is not counted.
    """
    saved = {n: before[n] - after[n] for n in after}
    own = {n for n in after if saved[n] > max(worth * before[n], _LEAST_WORTH)}
    # Judgement: a hundredth is within the scatter between halves of the motions.
    parts = {n: max(saved[n] / before[n], -0.01) for n in after}
    if own and float(np.mean(list(parts.values()))) > worth:
        return {n for n in after if parts[n] > -0.01}
    return own


def _typical_inertia(
    arms: Sequence[Arm], motions: Sequence[ServoMotion]
) -> Float[np.ndarray, " dof"]:
    arm, q = arms[0], motions[0].q[:: max(1, len(motions[0].q) // 50)]
    mass = Dynamics(arm).mass_matrix(q)
    rotors = np.array([joint.drive.rotor_inertia for joint in arm.joints])
    links = np.median(np.diagonal(mass, axis1=1, axis2=2), axis=0) - rotors
    # Judgement: a link of a gram at a centimetre; an arm may describe none at all.
    return np.maximum(links, 1e-7)
