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

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.progress import Progress
from armwise.recordings import Recording
from armwise.servos.cuda import CudaRoller
from armwise.servos.fit import (
    Prior,
    ServoFit,
    StartRange,
    Values,
    best_starts,
    drawn_starts,
    element_starts,
    fastest,
    fit_alike,
    fit_servo,
    fit_servos,
    mean_errors,
    shared_values,
    standard_deviations,
    undetermined,
    without,
)
from armwise.servos.joints import LIMITS, JointMotions, ServoJoint, at_rest
from armwise.servos.load import known_load_errors
from armwise.servos.model import (
    CORE,
    ELEMENTS,
    EXPRESSIBLE,
    PARAMETERS,
    absent,
    stacked,
    tables_of,
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

# Judgement: a seventieth of a usual encoder's tick.
_LEAST_WORTH = 2e-5
"""The same in [rad]: where all but rounding is explained, a percent is chance."""


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
        # Few joints leave time for more steps of each fit.
        self.steps = 6 if self.dof <= 2 else 3
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
        names, elements = self._grow(joints)
        # Once more, with a model that knows better what is usual.
        self.mask_contact(joints, is_sure=True)
        if is_sharp:
            self.reload(joints)
        fits = self._final(joints, names)
        return self._answer(joints, fits, names, elements)

    def _core(self, joints: list[ServoJoint]) -> None:
        """Fit what every servo has, from many starts."""
        near: list[float] = []
        for joint in joints:
            self.progress("starting points", 0.3 * joint.number / self.dof)
            joint.halves = self.windows(joint)
            windows = [*joint.halves[0], *joint.halves[1]]
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
        # One scale for all: each fit's own cost is in units of its own errors.
        tables = tables_of(stacked([fit.values for fit in fits]))
        costs = self.roller.costs(windows, tables, np.full(len(fits), 1e-3))
        order = np.argsort(costs, kind="stable")
        return [replace(fits[k], cost=float(costs[k])) for k in order]

    def _grow(
        self, joints: list[ServoJoint]
    ) -> tuple[tuple[str, ...], tuple[ServoElement, ...]]:
        """Add elements one at a time, each judged by the motions left out."""
        moving = [joint for joint in joints if joint.moves]
        names = self.core
        for joint in moving:
            joint.core = dict(joint.fits[0])
            bare = without(joint.core, names)
            joint.fits = [
                fit_servo(self.roller, windows, bare, names, iterations=4).values
                for windows in joint.halves
            ]
        error = self._left_out(moving, [joint.fits for joint in moving])
        elements = []
        for k, (element, added) in enumerate(ELEMENTS.items()):
            self.progress(element, 0.35 + 0.45 * k / len(ELEMENTS))
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
        if len(moving) > 1:
            trials = self._sharing(moving, names)
            trial_error = self._left_out(moving, trials)
            # Servos of one arm are of one type as a rule, and alike they are known
            # where single joints say little: shared unless that predicts clearly worse.
            alike = trial_error < 1.03 * error
            elements.append(
                ServoElement("shared values", error.mean(),
                             np.where(alike, trial_error, error).mean(),
                             bool(alike.any()))
            )  # fmt: skip
            for joint, fits, is_alike in zip(moving, trials, alike, strict=True):
                joint.is_alike = bool(is_alike)
                if is_alike:
                    joint.fits = fits
        return names, tuple(elements)

    def _sharing(
        self, joints: Sequence[ServoJoint], names: Sequence[str]
    ) -> list[list[dict[str, float]]]:
        """Return the fits of both halves, all joints' servos taken to be alike."""
        sides = []
        for side in (0, 1):
            own = [
                fit_servo(
                    self.roller, j.halves[side], j.fits[side], names, iterations=1
                )
                for j in joints
            ]
            prior = shared_values(own)
            sides.append(
                [
                    fit_alike(
                        self.roller, j.halves[side], j.fits[side], names, 4, prior
                    ).values
                    for j in joints
                ]
            )
        return [list(pair) for pair in zip(*sides, strict=True)]

    def _with(
        self, joint: ServoJoint, names: Sequence[str], added: Sequence[str]
    ) -> list[dict[str, float]]:
        """Return the fits of both halves with an element added."""
        fits = []
        grown = (*names, *added)
        for values, windows in zip(joint.fits, joint.halves, strict=True):
            starts = element_starts(values, added, windows)
            limits = [name for name in LIMITS if name in grown]
            count = 1
            if (
                set(added) & set(LIMITS)
                and np.isfinite([joint.core[name] for name in limits]).all()
            ):
                # What the random starts came to, less what has not been added yet.
                starts.append(without(joint.core, grown))
                count = 2
            trials = [
                fit_servo(self.roller, windows, start, grown, iterations=self.steps)
                for start in best_starts(self.roller, windows, starts, count)
            ]
            fits.append(min(trials, key=lambda fit: fit.cost).values)
        return fits

    def _left_out(
        self, joints: Sequence[ServoJoint], fits: Sequence[Sequence[Values]]
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

    def _final(
        self, joints: list[ServoJoint], names: tuple[str, ...]
    ) -> list[ServoFit]:
        """Fit all rows of all motions, servos of one type pulled together."""
        moving = [joint for joint in joints if joint.moves]
        prior = None
        nears = []
        for joint in moving:
            first, second = joint.fits
            joint.apart = {k: 0.5 * abs(first[k] - second[k]) for k in names}
            self.progress("all windows", 0.8 + 0.05 * joint.number / self.dof)
            # Most of the way on the windows, for they cost a tenth of all rows.
            windows = [*joint.halves[0], *joint.halves[1]]
            # One joint alone may take its time, and start from both halves' fits.
            is_alone = self.dof == 1
            near = min(
                (
                    fit_servo(self.roller, windows, start, names,
                              iterations=25 if is_alone else 8)
                    for start in joint.fits[: 2 if is_alone else 1]
                ),
                key=lambda fit: fit.cost,
            )  # fmt: skip
            joint.fits = [near.values] * 2
            nears.append(near)
        if any(joint.is_alike for joint in moving):
            prior = shared_values(nears)
        fits = []
        for joint in joints:
            self.progress("all motions", 0.85 + 0.13 * joint.number / self.dof)
            if not joint.moves:
                empty = np.zeros((0, 0))
                usual = at_rest([j.fits[0] for j in moving])
                fits.append(ServoFit(usual, (), np.nan, np.nan, empty, empty))
                continue
            start, windows = joint.fits[0], [*joint.halves[0], *joint.halves[1]]
            shared = prior if joint.is_alike else None
            if shared is not None:
                start = fit_alike(self.roller, windows, start, names, 5, shared).values
            fits.append(
                fit_servo(self.roller, joint.motions, start, names,
                          iterations=6 if self.dof == 1 else 2, prior=shared)
            )  # fmt: skip
        self.plain = self._plain(joints, fits, names, prior)
        return fits

    def _plain(
        self,
        joints: list[ServoJoint],
        fits: Sequence[ServoFit],
        names: Sequence[str],
        prior: Prior | None,
    ) -> dict[str, np.ndarray]:
        """Fit what simulators can express, where that is not all."""
        if set(names) <= set(EXPRESSIBLE):
            return {}
        expressible = [name for name in names if name in EXPRESSIBLE]
        servos = []
        for joint, fit in zip(joints, fits, strict=True):
            self.progress("for simulators", 0.98)
            simple = without(fit.values, expressible)
            # What Stribeck friction added at low speed is friction all the same.
            simple["coulomb"] += 0.5 * fit.values["static"]
            if joint.moves:
                windows = [*joint.halves[0], *joint.halves[1]]
                simple = fit_servo(
                    self.roller, windows, simple, expressible, iterations=6,
                    prior=prior if joint.is_alike else None,
                ).values  # fmt: skip
            servos.append(simple)
        return {k: np.array([servo[k] for servo in servos]) for k in PARAMETERS}

    def _answer(
        self,
        joints: list[ServoJoint],
        fits: list[ServoFit],
        names: tuple[str, ...],
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
                windows = [*joint.halves[0], *joint.halves[1]]
                for name in undetermined(self.roller, windows, fit):
                    std[name][j] = np.inf
            for name in names:
                if name not in fit.names:
                    std[name][j] = np.inf
        values["zero"], std["zero"] = self.zeros.copy(), self.zero_std.copy()
        if self.plain:
            self.plain["zero"] = self.zeros.copy()
        servo = Servo(self.arms[0], self.signs, values, std, self.plain, elements,
                      notes=tuple(self.notes))  # fmt: skip
        self.progress("whole arm", 0.98)
        errors = errors_of(self.motions, servo.rollouts(self.motions))
        contact = {}
        for k, name in enumerate(errors.motions):
            used = np.array([joint.motions[k].mask.mean() for joint in joints])
            if np.any(used < 1.0):
                contact[name] = 1.0 - used
        doubts = known_load_errors(servo, self.motions, self.arms)
        return replace(servo, fit=errors, contact=contact, load_error=doubts)


def _typical_inertia(
    arms: Sequence[Arm], motions: Sequence[ServoMotion]
) -> Float[np.ndarray, " dof"]:
    arm, q = arms[0], motions[0].q[:: max(1, len(motions[0].q) // 50)]
    mass = Dynamics(arm).mass_matrix(q)
    rotors = np.array([joint.drive.rotor_inertia for joint in arm.joints])
    links = np.median(np.diagonal(mass, axis1=1, axis2=2), axis=0) - rotors
    # Judgement: a link of a gram at a centimetre; an arm may describe none at all.
    return np.maximum(links, 1e-7)
