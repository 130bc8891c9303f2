"""Identification of servos: from the core to the elements that predict other motions.

Each joint is rolled out by itself, under the load that the other joints' measured
motion puts on it: a thousand free runs then cost what forty of the whole arm do. The
result is judged on the whole arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable, RecordingError
from armwise.progress import Progress, part_of
from armwise.recordings import ERROR_LEVELS, Recording, error_within
from armwise.servos.cuda import CudaRoller
from armwise.servos.fit import (
    TORQUES,
    ServoFit,
    coordinate_covariance,
    fit_alike,
    fit_servo,
    fit_servos,
    mean_errors,
    ranked,
    shared_values,
    standard_deviations,
    undetermined,
    widen_by_clock,
)
from armwise.servos.floor import settled_floor
from armwise.servos.free_runs import errors_of
from armwise.servos.growth import ALIKE, Growth
from armwise.servos.halves import HalfFits
from armwise.servos.joints import CORRECTED_HZ, JointMotions, ServoJoint
from armwise.servos.last_fit import LastFit
from armwise.servos.load import (
    known_load_errors,
    loads_found_again,
    misdescribed_loads,
    odd_loads,
)
from armwise.servos.log_checks import (
    copied,
    elsewhere,
    joint_signs,
    other_order,
    refuse_unfollowed,
)
from armwise.servos.model import (
    CORE,
    ELEMENTS,
    LIMITS,
    PARAMETERS,
    Values,
    absent,
    half_step_inertia,
)
from armwise.servos.motions import as_list, servo_motion
from armwise.servos.rollout import Roller, ServoMotion, count_doubt, rounding_of
from armwise.servos.servo import (
    Servo,
    ServoElement,
    ServoScatter,
    gain_registers,
    signed,
    tables_of_draws,
)
from armwise.servos.starts import (
    TORQUE_UNITS,
    StartRange,
    best_starts,
    drawn_starts,
    fastest,
    with_torques,
)

if TYPE_CHECKING:
    from jaxtyping import Float

STARTS = 256
"""Starting points per joint."""

_FRICTION = tuple(
    name
    for element in ("load friction", "Stribeck friction", "heavy-load friction",
                    "stiction")
    for name in ELEMENTS[element]
)  # fmt: skip
"""What dry friction is told apart from only where a joint goes at several speeds."""

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
        backend: "c", or "cuda" to fit the starting points on a GPU.
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
    triples = list(zip(listed, arms, registers, strict=True))
    motions = [servo_motion(r, a, g) for r, a, g in triples]
    copies = copied(motions)
    used = [k for k in range(len(motions)) if k not in copies]
    triples, motions = [triples[k] for k in used], [motions[k] for k in used]
    arms, registers = [arms[k] for k in used], [registers[k] for k in used]
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
    course.notes += _reading_notes(listed)
    course.notes += [
        f"{listed[k].source} repeats {listed[other].source}, and counts once: name "
        "every log once."
        for k, other in copies.items()
    ]
    course.notes += [
        f"{joint.name} counts the other way than the description, as gravity pulls: "
        "its positions and commands are negated (signs in servo.json)."
        for joint, sign in zip(arms[0].joints, signs, strict=True)
        if sign < 0.0
    ]
    course.logged = [
        signed(servo_motion(r, a, g, is_truncated=False), signs).goals
        for r, a, g in triples
    ]
    if arms[0].dof > 1 and (order := other_order(arms[0], motions)) is not None:
        own = [
            f"{joint.name} is {number + 1}"
            for joint, number in zip(arms[0].joints, order, strict=True)
        ]
        course.mismatches.append(
            "Gravity explains the joints' errors better with the log's joints in "
            f"another order ({', '.join(own)}). Reorder the columns of commands and "
            "positions."
        )
    course.mismatches += elsewhere(arms[0], motions)
    # Matrices of a fit are small, and rollouts already occupy every core.
    with threadpool_limits(1, user_api="blas"):
        servo = course.servo()
    return servo if gains is None else _per_register(servo, registers)


def _reading_notes(recordings: Sequence[Recording]) -> list[str]:
    """Return what readers did, once for all logs that it was done to."""
    sources: dict[str, list[str]] = {}
    for recording in recordings:
        for note in recording.notes:
            text = note.removeprefix(f"{recording.source}: ")
            sources.setdefault(text, []).append(recording.source)
    return [
        f"{own[0]}{f' and {len(own) - 1} more' if own[1:] else ''}: {text}"
        for text, own in sources.items()
    ]


def validated_on_fit(
    servo: Servo, fitted: Sequence[Recording], others: Sequence[Recording]
) -> Servo:
    """Return servos that say which motions they are validated on were fitted, too."""
    own, asked = (
        [servo_motion(r, servo.arm) for r in listed] for listed in (fitted, others)
    )
    notes = [
        f"{others[k].source} is validated on and was fitted: its error says nothing "
        "about other motion."
        for k in copied(asked, own)
    ]
    return replace(servo, notes=(*servo.notes, *notes))


def _per_register(servo: Servo, registers: Sequence[float]) -> Servo:
    """Return servos that know of the gain registers they were identified with."""
    gains = tuple(dict.fromkeys(registers))
    note = (
        "Stiffness is that of one unit of the gain register: a servo has it times what "
        f"its register holds. Models for simulators are written for {gains[0]:g}, the "
        "first log's, and by `armwise export servo.json --register` for any other."
    )
    return replace(servo, gains=gains, notes=(*servo.notes, note))


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
        seeds = np.random.SeedSequence(draws[0]).spawn(self.dof)
        self.random = [np.random.default_rng(seed) for seed in seeds]
        self.coasts = any(bool((m.powered < 0.5).any()) for m in motions)
        # Nothing is known of a motor that is never off.
        off = ("coasting", "release") if self.coasts else ()
        self.core: tuple[str, ...] = (*CORE, *off)
        self.inertia = _typical_inertia(arms, motions)
        self.logged: list[np.ndarray] = []
        self.is_truncated = True
        self.mismatches: list[str] = []
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
        if isinstance(self.roller, CudaRoller):
            # A thousand starts are a GPU's work; of one fit of each joint, side by
            # side, C takes two thirds of the time that it takes joint by joint.
            self.roller = Roller(self.roller.arm)
        self.mask_contact(joints, self.core)
        self._untruncate(joints)
        self.find_zeros(joints, self.core)
        self.reload(joints)
        moving = [joint for joint in joints if joint.moves]
        self._torques_alike(moving)
        growth = Growth(
            HalfFits(self.roller, moving, self.dof), self.motions, self.core,
            self.random, self.progress, lambda: self._reload(joints),
        )  # fmt: skip
        elements = growth.elements()
        # Once more, with a model that knows better what is usual.
        if self.mask_contact(joints):
            elements = growth.reconsidered("torque limit")
        self.mask_floor(joints)
        growth.reload()
        growth.lower_valleys("other valleys", 0.8)
        last = LastFit(self, joints, self.core)
        fits = last.fits(growth)
        self.plain = last.expressible(fits)
        self._walls(joints, fits)
        return self._answer(joints, fits, elements)

    def _reload(self, joints: list[ServoJoint]) -> None:
        """Load joints by what models that have grown do, from where they stand."""
        self.refine_zeros(joints)
        self.reload(joints, CORRECTED_HZ)

    def _mountings(self) -> tuple[tuple[np.ndarray, float], ...]:
        """Return every load of one joint and the zero that it was put on with."""
        firsts = [(rows[0], self.motions[rows[0]]) for rows in self.mountings.values()]
        return tuple(
            (self.arms[k].links[-1].inertia.vector, float(m.mounted[0]))
            for k, m in firsts
            if m.mounted is not None
        )

    def _core(self, joints: list[ServoJoint]) -> None:
        """Fit what every servo has, from many starts."""
        for joint in joints:
            joint.halves = self.windows(joint)
        report = part_of(self.progress, "starting points", 0.0, 0.3)
        moving = [joint for joint in joints if joint.moves]
        near = self.roller.each(self._begun, moving, report)
        if isinstance(self.roller, CudaRoller):
            listed = ", ".join(
                f"{self.arms[0].joints[joint.number].name} {100.0 * part:.1f} %"
                for joint, part in zip(moving, near, strict=True)
            )
            self.notes.append(
                f"Of {self.starts} random starts of each joint's first fit so many "
                f"ended within 5 % of the best cost: {listed}."
            )

    def _begun(self, joint: ServoJoint) -> float:
        """Fit a joint's core; return what part of its starts came to the best."""
        windows = joint.windows
        around = StartRange(
            float(self.inertia[joint.number]),
            float(np.median([m.gain for m in joint.motions])),
            max((fastest(w) for w in windows), default=1.0),
            self.coasts,
        )
        random = self.random[joint.number]
        starts = drawn_starts(around, absent(), random, self.starts)
        # A few windows are enough to reject most of the starts, and then most of
        # what they lead to.
        few = joint.few(8)
        if isinstance(self.roller, CudaRoller):
            fits = self._polish(windows, starts, 10)
        else:
            fits = self._polish(few, best_starts(self.roller, few, starts, 8), 6)
            fits = self._polish(windows, [fit.values for fit in fits[:2]], 6)
        joint.fits = [fits[0].values] * 2
        # Judgement: five percent of the cost are as good as the best.
        return float(np.mean([fit.cost <= 1.05 * fits[0].cost for fit in fits]))

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
        fits = self.roller.each(
            lambda j: fit_servo(
                self.roller, j.windows, j.fits[0], self._first(j), iterations=1
            ),
            joints,
        )
        prior = shared_values(fits, TORQUES)

        def pull(pair: tuple[ServoJoint, ServoFit]) -> None:
            joint, fit = pair
            starts = [fit.values]
            stiffness = np.exp(prior.mean.get("stiffness", np.nan))
            factor = float(stiffness / fit.values["stiffness"])
            # Judgement: half of a factor of e, as far as servos of one type differ.
            if abs(np.log(factor)) > 0.5:
                starts.append(with_torques(fit.values, factor))
            trials = [
                fit_alike(self.roller, joint.windows, start, fit.names, 4, prior)
                for start in starts
            ]
            near = ranked(self.roller, joint.windows, trials, prior)[0]
            own, alike = (
                np.nanmean(mean_errors(self.roller, joint.windows, one.values))
                for one in (fit, near)
            )
            # Judgement: servos of one type, unless that explains clearly less; without
            # gravity a first model drifts to where links weigh nothing beside torques.
            if alike < (ALIKE if len(starts) == 1 else 1.2) * own:
                joint.prior, joint.fits = prior, [near.values] * 2

        self.roller.each(pull, list(zip(joints, fits, strict=True)))

    def _untruncate(self, joints: Sequence[ServoJoint]) -> None:
        """Take commands as they were logged, if positions say so.

        Truncated to ticks, as most servos receive them, they are half a tick lower;
        whether readings are truncated, too, or rounded, no log says. One firmware and
        one log: all joints tell together.
        """
        offsets, sags = [], self._sags(joints)
        for joint, sag in zip(joints, sags, strict=True):
            between = [
                np.mean(logged[:, joint.number] - m.goals[:, 0])
                for logged, m in zip(self.logged, joint.motions, strict=True)
            ]
            lowered = float(np.median(between)) if between else 0.0
            # Judgement: a quarter of a tick's rounding; commands that are ticks differ
            # by nothing, and those of finer encoders by nothing that shows.
            if not joint.moves or lowered < 0.5 * rounding_of(joint.motions):
                continue
            offset, std = self._offset(joint)
            # Judgement: a first model's stiffness is off by some percent, and what
            # gravity does to its joint by as much.
            std = float(np.hypot(std, 0.05 * sag))
            offsets.append((offset / lowered, std / lowered))
        # One joint alone may have an offset of its own.
        if len(offsets) < 2:
            return
        parts, std = np.array(offsets).T
        # Judgement: joints differ by a sixth of a tick for other reasons.
        weight = 1.0 / (std**2 + 0.3**2)
        # Nearer to none than to all of it.
        if float(weight @ parts / weight.sum()) < 0.5:
            return
        self.is_truncated = False
        pairs = zip(self.motions, self.logged, strict=True)
        self.motions = [replace(m, goals=goals) for m, goals in pairs]
        for joint in joints:
            joint.motions = [
                replace(m, goals=whole.goals[:, [joint.number]])
                for m, whole in zip(joint.motions, self.motions, strict=True)
            ]
            joint.halves = self.windows(joint)

    def _sags(self, joints: Sequence[ServoJoint]) -> Float[np.ndarray, " dof"]:
        """Return how far gravity holds joints from their commands, by a first model."""
        if self.dof == 1:
            return np.zeros(1)
        q = np.vstack([m.q[:: max(1, len(m.q) // 50)] for m in self.motions])
        gravity = np.abs(Dynamics(self.arms[0]).gravity_torque(q)).mean(axis=0)
        gain = float(np.median([m.gain for m in self.motions]))
        stiffness = [
            gain * joint.fits[0]["stiffness"] if joint.moves else np.inf
            for joint in joints
        ]
        return np.asarray(gravity / np.array(stiffness))

    def _offset(self, joint: ServoJoint) -> tuple[float, float]:
        """Return a first model's offset of commands, and its standard deviation."""
        names = (*self._first(joint), "offset")
        fit = fit_servo(self.roller, joint.few(12), joint.fits[0], names, iterations=4)
        return fit.values["offset"], standard_deviations(fit)["offset"]

    def _first(self, joint: ServoJoint) -> tuple[str, ...]:
        """Return what a joint's random starts were fitted in."""
        limits = (name for name in LIMITS if np.isfinite(joint.fits[0][name]))
        return (*self.core, *limits, *joint.limits)

    def _walls(self, joints: list[ServoJoint], fits: Sequence[ServoFit]) -> None:
        """Let servos stop where something stopped their joints."""
        for joint, fit in zip(joints, fits, strict=True):
            walls = self.find_walls(joint, fit.values, joints) if joint.moves else {}
            fit.values.update(walls)
            name = self.arms[0].joints[joint.number].name
            self.notes += [
                f"{name} meets a wall at {np.degrees(wall):.1f}°."
                for wall in walls.values()
            ]

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
                # Halves of the motions, and other models that do as well, know of fits
                # that ended in other valleys; how motions scatter, both know.
                std[name][j] = max(spread, joint.apart.get(name, 0.0))
            if fit.names:
                vague = undetermined(self.roller, joint.windows, fit)
                if not joint.has_scale:
                    vague |= {
                        n for n in fit.names if PARAMETERS[n].unit in TORQUE_UNITS
                    }
                for name in vague:
                    std[name][j] = np.inf
            if not joint.moves:
                every = {name for other in joints for name in other.names}
                alike = {"coulomb"} if every & set(_FRICTION) else set()
                for name in every - set(fit.names) | alike:
                    std[name][j] = np.inf
        std["armature"] = np.hypot(
            std["armature"], half_step_inertia(np.nan_to_num(std["damping"], posinf=0))
        )
        for joint in joints:
            if "offset" in joint.names:
                j, own = joint.number, count_doubt(joint.motions)
                std["offset"][j] = np.hypot(std["offset"][j], own)
                # How a count is rounded, and nothing to be listed.
                if abs(values["offset"][j]) < 2.0 * std["offset"][j]:
                    std["offset"][j] = 0.0
                    joint.names = tuple(n for n in joint.names if n != "offset")
        widen_by_clock(values, std, self.inertia)
        for kind in (values, self.plain):
            if kind:
                kind["armature"] = kind["armature"] + half_step_inertia(kind["damping"])
        if self.dof > 1:
            values["zero"], std["zero"] = self.zeros.copy(), self.zero_std.copy()
            self.notes += self.zero_notes()
            if self.plain:
                self.plain["zero"] = self.zeros.copy()
        if self.floor is not None:
            table = tables_of_draws({k: x[None] for k, x in values.items()})
            self.floor = settled_floor(
                self.floor, self.arms[0], table, self.motions, self.held
            )
            smooth = ", without its friction" if self.floor.friction > 0.0 else ""
            self.notes.append(
                f"{self.floor.statement(self.arms[0])}: free runs stop there, and so "
                f"do those of the MJCF that is written{smooth}."
            )
        # Limits that turned out idle were taken away again.
        models = [set(joint.names) for joint in joints]
        elements = tuple(
            e
            if any(set(ELEMENTS.get(e.name, names)) & names for names in models)
            else replace(e, is_needed=False)
            for e in elements
        )
        servo = Servo(self.arms[0], self.signs, values, std, self.plain, elements,
                      floor=self.floor, is_truncated=self.is_truncated,
                      mountings=self._mountings(),
                      notes=tuple(self.notes),
                      mismatches=tuple(self.mismatches))  # fmt: skip
        self.progress("whole arm", 0.98)
        runs = servo.rollouts(self.motions)
        errors = errors_of(self.motions, runs)
        contact = {}
        for k, name in enumerate(errors.motions):
            used = np.array([joint.motions[k].mask.mean() for joint in joints])
            if np.any(used < 1.0):
                contact[name] = 1.0 - used
        again = loads_found_again(servo, self.motions, self.arms)
        doubts = None
        if again is not None:
            loads, faint = again
            doubts = known_load_errors(loads)
            self.mismatches += misdescribed_loads(loads)
            self.notes += odd_loads(loads)
            self.notes += [
                f"The load of {moment:.3g} N m does not show in its logs, as where "
                "friction hides it: nothing that is said of other loads rests on it."
                for moment in faint
            ]
        scatter = tuple(
            ServoScatter(
                fit.names,
                coordinate_covariance(fit, joint.alternatives),
                _error_quantiles(joint, runs),
                joint.left_out_ratio,
            )
            for joint, fit in zip(joints, fits, strict=True)
        )
        servo = replace(
            servo, scatter=scatter, fit=errors, contact=contact, load_error=doubts,
            known_loads=None if doubts is None else loads,
            notes=tuple(self.notes), mismatches=tuple(self.mismatches),
        )  # fmt: skip
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


def _typical_inertia(
    arms: Sequence[Arm], motions: Sequence[ServoMotion]
) -> Float[np.ndarray, " dof"]:
    arm, q = arms[0], motions[0].q[:: max(1, len(motions[0].q) // 50)]
    mass = Dynamics(arm).mass_matrix(q)
    rotors = np.array([joint.drive.rotor_inertia for joint in arm.joints])
    links = np.median(np.diagonal(mass, axis1=1, axis2=2), axis=0) - rotors
    # Judgement: a link of a gram at a centimetre; an arm may describe none at all.
    return np.maximum(links, 1e-7)
