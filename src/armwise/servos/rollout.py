"""Free runs of servo arms from their commands, in generated C, batched."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import (
    Mechanism,
    equations,
    mechanism_of,
    potential_energy,
)
from armwise.errors import ArgumentError, ArmError
from armwise.plants import (
    cuda_stepper_source,
    one_joint_stepper_source,
    stepper_source,
)
from armwise.programs import (
    Program,
    addresses,
    c_function,
    compiled_library,
    core_source,
    device_core,
    fill,
    trace,
)

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_TEMPLATES = Path(__file__).parent / "templates"

# Judgement: the set-point's acceleration lasts some 10 ms; two milliseconds resolve it.
SUBSTEP = 2.1e-3
"""Step of the set-point profile in [s]."""

# Judgement: servo arms swing at 2 to 5 Hz against their gains; the midpoint rule is
# then within 0.1 mrad of steps a quarter as long.
LONGEST_STEP = 4.2e-3
"""Step of the arm in [s], at most."""

# Four doubles are one register of AVX2: of wider vectors GCC compares lane by lane,
# which takes three times as long.
LANES = 4
"""Rollouts stepped at once."""

NUMBERS = (
    "stiffness", "derivative", "integral", "dead_band", "saturation", "zero", "offset",
    "driving", "back_driven", "coasting", "lower", "upper", "quadratic",
    "load_static", "load_square", "start_up", "heating",
    "inertial_load", "load_stiction", "creep_speed",
)  # fmt: skip
"""Rows of the table that the C program takes of every servo, in its order."""


MOST_POINTS = 4
"""Points of the links that may touch a floor, at most."""

ServoTables = dict[str, np.ndarray]
"""Parameter → (tables, joints): servos to try."""

# Judgement: errors of a free run are alike for about half a second.
CORRELATION_S = 0.5
"""Time in [s] over which errors count as one."""


@dataclass(frozen=True, eq=False)
class ServoMotion:
    """One recording as the rollouts take it: positions in the description's sense.

    Attributes:
        name: Where it came from.
        time: Stamps from zero in [s].
        goals: Commands as the servos receive them, in [rad].
        q: Measured positions in [rad].
        powered: 1 where motors are on, 0 where they are off.
        bodies: Grouped inertial parameters of the arm in this recording; of one joint
            among others, its `LOAD` over time.
        gain: What the stiffness is multiplied by in this recording.
        mask: Rows and joints that count; False: contact, walls, spikes.
        warmth: How far each motor is above 25 °C in [K]; 0 where that is not measured.
        load_time: Stamps in [s] of a `LOAD` over time, if not the samples'.
    """

    name: str
    time: Float[np.ndarray, " samples"]
    goals: Float[np.ndarray, "samples dof"]
    q: Float[np.ndarray, "samples dof"]
    powered: Float[np.ndarray, " samples"]
    bodies: Float[np.ndarray, "*samples groups"]
    gain: float
    mask: Bool[np.ndarray, "samples dof"]
    warmth: Float[np.ndarray, " dof"]
    load_time: Float[np.ndarray, " rows"] | None = None

    @cached_property
    def clock(self) -> tuple[float, int, Float[np.ndarray, " samples"]]:
        """The step of rollouts in [s], the number of steps, the stamps in steps."""
        period = float(np.median(np.diff(self.time)))
        h = period / int(np.ceil(period / LONGEST_STEP))
        stamps = self.time / h
        return h, int(np.ceil(stamps[-1])) + 1, stamps

    @cached_property
    def loads(self) -> Float[np.ndarray, "steps load"] | None:
        """The `LOAD` of one joint among others at the ends of steps."""
        if self.bodies.ndim == 1:
            return None
        h, steps, _ = self.clock
        at = np.arange(steps + 1) * h
        stamps = self.time if self.load_time is None else self.load_time
        return np.column_stack([np.interp(at, stamps, x) for x in self.bodies.T])

    @cached_property
    def weight(self) -> float:
        """What a row counts: errors repeat themselves within a correlation time."""
        return min(float(np.median(np.diff(self.time))) / CORRELATION_S, 1.0)

    def cut(self, start: int, stop: int, settle: int) -> ServoMotion:
        """Return some rows; the first `settle` of them, unless all, do not count."""
        rows = slice(start, stop)
        mask = self.mask[rows].copy()
        if start:
            mask[:settle] = False
        is_cut = self.bodies.ndim > 1 and self.load_time is None
        later = None if self.load_time is None else self.load_time - self.time[start]
        return replace(
            self,
            time=self.time[rows] - self.time[start],
            goals=self.goals[rows],
            q=self.q[rows],
            powered=self.powered[rows],
            bodies=self.bodies[rows] if is_cut else self.bodies,
            mask=mask,
            load_time=later,
        )


LOAD = ("inertia", "coupling", "gravity", "gradient", "reference")
"""What one joint feels of the links while the others move as measured: M_ii, then the
torque C + G + K (q - reference) of their motion and of gravity."""


@dataclass(frozen=True, eq=False)
class NormalSums:
    """Sums over the errors of free runs that Gauss-Newton's steps are made of.

    Attributes:
        scale: Of every start, where squares of errors end, in [rad].
        information: Of the coordinates that were moved.
        scores: Gradient of every motion.
        cost: Mean robust cost in [rad].
    """

    scale: Float[np.ndarray, " starts"]
    information: Float[np.ndarray, "starts names names"]
    scores: Float[np.ndarray, "starts motions names"]
    cost: Float[np.ndarray, " starts"]


def robust(errors: np.ndarray, scale: float | np.ndarray) -> np.ndarray:
    """Pseudo-Huber cost in [rad]: square below the scale, absolute beyond."""
    return scale * (np.sqrt(1.0 + (errors / scale) ** 2) - 1.0)


def least_scale(median: np.ndarray) -> np.ndarray:
    """Return where squares end: the median error, never below an encoder's step."""
    # Judgement: a milliradian is half a step of a usual servo's encoder. A start whose
    # runs are all lost has no median.
    return np.where(np.isfinite(median), np.maximum(median, 1e-3), 1e-2)


@dataclass(frozen=True, eq=False)
class SetPoint:
    """Set-points of one motion.

    Attributes:
        step: In [s].
        ends: Where they are at the ends of steps, from time zero, in [rad].
        means: Over each step.
    """

    step: float
    ends: Float[np.ndarray, "steps dof"]
    means: Float[np.ndarray, "steps dof"]


LOST = 1e3
"""Cost in [rad] of a row whose rollout ran away."""


class Roller:
    """Rolls motions out under tables of servo parameters.

    Args:
        arm: Whose mechanism; its inertias come with each motion. None: single joints,
            each under the load that its motion holds over time.
    """

    def __init__(self, arm: Arm | None) -> None:
        self.mechanism = None if arm is None else mechanism_of(arm)
        coupled = self.mechanism is not None and (
            self.mechanism.is_coupled or len(self.mechanism.weights)
        )
        if coupled:
            raise ArmError(
                f"{'' if arm is None else arm.name} has joints that follow others, or "
                "motors that several joints share; a servo model needs one servo per "
                "joint. Lock the followers: load_arm(path, lock={...})."
            )
        self.dof = 1 if self.mechanism is None else self.mechanism.dof
        self._rollout, self._profile = _compiled(self.mechanism)

    def run(
        self,
        motions: Sequence[ServoMotion],
        tables: ServoTables,
        bodies: Sequence[Float[np.ndarray, "tables groups"]] | None = None,
        floors: Float[np.ndarray, "tables points numbers"] | None = None,
    ) -> list[Float[np.ndarray, "tables samples dof"]]:
        """Roll every motion out under every table, from its first sample.

        Args:
            motions: What is commanded, and where it starts.
            tables: The servos to try.
            bodies: Of every motion, inertial parameters beside each table, instead of
                the motion's own.
            floors: Beside each table, points that a floor may push up: the grouped
                parameters of a weight of 1 N there, the floor's height and stiffness.

        Returns:
            Per motion, positions at its stamps under every table; NaN where a rollout
            ran away.
        """
        count = len(tables["stiffness"])
        results = [np.full((count, len(m.time), self.dof), np.nan) for m in motions]
        own = [m.bodies for m in motions] if bodies is None else bodies
        jobs = list(zip(motions, own, results, strict=True))
        # The longest first, so that no thread is left alone with it.
        jobs.sort(key=lambda job: -job[2].size)
        drives, servos = drive_rows(tables), servo_rows(tables)
        # Tables that differ in other things than timing take one series together.
        timing, shared = np.unique(timing_rows(tables), axis=0, return_inverse=True)
        if floors is None:
            floors = np.zeros((count, 0, 0))
        rows = drives, servos, timing, shared.reshape(count), floors
        list(_threads().map(lambda job: self._motion(rows, *job), jobs))
        return results

    def normals(
        self,
        motions: Sequence[ServoMotion],
        tables: ServoTables,
        steps: Float[np.ndarray, "starts names"],
    ) -> NormalSums:
        """Return the normal equations of many starts, motions of single joints.

        Args:
            motions: One joint each.
            tables: Of every start: its own, then each parameter moved by its step.
            steps: How far they were moved.
        """
        starts, names = steps.shape
        shape = starts, 1 + names
        runs = [run[..., 0].reshape(*shape, -1) for run in self.run(motions, tables)]
        pairs = list(zip(runs, motions, strict=True))
        errors = [(e - m.q[:, 0])[..., m.mask[:, 0]] for e, m in pairs]
        first = np.concatenate([e[:, 0] for e in errors], axis=1)
        scale = least_scale(np.array([_lower_median(np.abs(row)) for row in first]))
        H, cost = np.zeros((starts, names, names)), np.zeros(starts)
        scores = np.zeros((starts, len(motions), names))
        for k, (e, m) in enumerate(zip(errors, motions, strict=True)):
            is_good = np.isfinite(e).all(1)
            r = np.where(is_good, e[:, 0], 0.0)
            moved = np.where(is_good[:, None], e[:, 1:], 0.0) - r[:, None]
            J = moved / steps[..., None]
            w = np.where(is_good, 1.0 / np.sqrt(1.0 + (r / scale[:, None]) ** 2), 0.0)
            w *= m.weight / scale[:, None] ** 2
            weighted = J * w[:, None]
            H += weighted @ J.transpose(0, 2, 1)
            scores[:, k] = (weighted @ r[..., None])[..., 0]
            cost += np.where(is_good, robust(r, scale[:, None]), LOST).sum(1)
        return NormalSums(scale, H, scores, cost / max(first.shape[1], 1))

    def costs(
        self,
        motions: Sequence[ServoMotion],
        tables: ServoTables,
        scale: Float[np.ndarray, " tables"],
    ) -> Float[np.ndarray, " tables"]:
        """Return the mean robust cost of every table in [rad], of single joints."""
        total, rows = np.zeros(len(scale)), 0
        for run, m in zip(self.run(motions, tables), motions, strict=True):
            used = m.mask[:, 0]
            e = run[:, used, 0] - m.q[used, 0]
            total += np.where(np.isfinite(e), robust(e, scale[:, None]), LOST).sum(1)
            rows += int(used.sum())
        return total / max(rows, 1)

    def set_point(
        self, motion: ServoMotion, tables: ServoTables, step: float | None = None
    ) -> SetPoint:
        """Return the set-points of one table, at rollouts' step or another in [s]."""
        h, dof = step or motion.clock[0], self.dof
        steps = int(np.ceil(motion.time[-1] / h)) + 1
        series = np.empty((1, steps + 1, 2 * dof))
        self._fill(motion.time, motion.goals, h, _limits(timing_rows(tables)), series)
        return SetPoint(h, series[0, :, :dof], series[0, 1:, dof:])

    def _fill(
        self,
        time: np.ndarray,
        goals: Float[np.ndarray, "samples columns"],
        h: float,
        limits: Float[np.ndarray, "tables columns three"],
        series: Float[np.ndarray, "tables steps width"],
    ) -> None:
        """Write set-points at the ends of steps, then means over the steps before.

        Args:
            time: Stamps of goals in [s].
            goals: What is approached.
            h: Step in [s].
            limits: Delay, slew and acceleration of every table.
            series: Whose first columns they are written to.
        """
        count, columns = limits.shape[:2]
        samples, (steps, width) = len(time), series.shape[1:]
        settings = np.concatenate([[h], limits.ravel()])
        numbers = np.empty((count, columns, 3), dtype=np.int64)
        numbers[..., 0] = samples * np.arange(columns)
        numbers[..., 1] = steps * width * np.arange(count)[:, None]
        numbers[..., 1] += np.arange(columns)
        numbers[..., 2] = numbers[..., 1] + columns
        rows = np.ascontiguousarray(goals.T)
        stamps = np.ascontiguousarray(time)
        self._profile(
            count * columns, samples, steps - 1, width, numbers.ctypes.data,
            stamps.ctypes.data, rows.ctypes.data, settings.ctypes.data,
            series.ctypes.data,
        )  # fmt: skip

    def _motion(
        self,
        rows: tuple[np.ndarray, ...],
        motion: ServoMotion,
        bodies: np.ndarray,
        result: np.ndarray,
    ) -> None:
        drives, servos, timing, shared, floors = rows
        h, steps, stamps = motion.clock
        samples, dof = motion.q.shape
        varying = motion.loads
        if varying is not None:
            bodies = np.zeros(len(LOAD))
        power = 2 * dof
        width = power + 1 + (0 if varying is None else len(LOAD))
        series = np.empty((len(timing), steps + 1, width))
        self._fill(motion.time, motion.goals, h, _limits(timing), series)
        if varying is not None:
            series[:, :, power + 1 :] = varying
        series[:, :, power] = 1.0
        if not motion.powered.all():
            # Switching off is a command too, and takes its time to arrive.
            release = np.full((len(timing), 1, 3), _UNLIMITED)
            release[:, 0, 0] = timing[:, -dof:].mean(1)
            supply = np.empty((len(timing), steps + 1, 2))
            self._fill(motion.time, motion.powered[:, None], h, release, supply)
            series[:, :, power] = supply[:, :, 1]
        count = len(drives)
        n = np.zeros((count, 5), dtype=np.int64)
        n[:, 0] = shared * (steps + 1) * width
        n[:, 2], n[:, 3] = steps, samples
        n[:, 4] = np.arange(count) * samples * dof
        servos = servos.copy()
        servos[:, :dof] *= motion.gain
        heating = NUMBERS.index("heating") * dof
        servos[:, heating : heating + dof] *= motion.warmth
        arrays = [
            drives,
            np.broadcast_to(bodies, (count, bodies.shape[-1])),
            servos,
            np.repeat(motion.q[:1], count, axis=0),
            series,
            stamps,
        ]
        arrays = [np.ascontiguousarray(x, dtype=float) for x in arrays]
        floors = np.ascontiguousarray(floors)
        pointers = addresses([*arrays, result, floors])
        settings = np.array([h, floors.shape[1]])
        self._rollout(0, count, pointers, n.ctypes.data, settings.ctypes.data)


def _lower_median(sizes: np.ndarray) -> float:
    """Return the median of the finite; of two in the middle the lower, as on a GPU."""
    sizes = sizes[np.isfinite(sizes)]
    half = (len(sizes) - 1) // 2
    return float(np.partition(sizes, half)[half]) if len(sizes) else np.nan


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads of all rollouts: C runs without Python's lock."""
    return ThreadPoolExecutor(os.cpu_count() or 1)


TIMING = ("delay", "slew", "acceleration", "release")
"""Rows of the table that decide when set-points and power arrive."""


_UNLIMITED = 1e9
"""Stands for a slew or an acceleration without limit."""


def _limits(timing: np.ndarray) -> Float[np.ndarray, "tables dof three"]:
    """Return delay, slew and acceleration of every joint from `timing_rows`."""
    rows = timing.reshape(len(timing), len(TIMING), -1)[:, :3]
    return rows.transpose(0, 2, 1)


def timing_rows(tables: ServoTables) -> np.ndarray:
    """Return (tables, 4 · dof)."""
    return np.concatenate([tables[name] for name in TIMING], axis=1)


def servo_rows(tables: ServoTables) -> np.ndarray:
    """Return (tables, numbers · dof), stiffness per unit of gain."""
    return np.concatenate([tables[name] for name in NUMBERS], axis=1)


def drive_rows(tables: ServoTables) -> np.ndarray:
    """Return (tables, 6 · dof) in the order of plants' DRIVE_ROWS."""
    still = tables["coulomb"] + tables["static"]
    names = ("armature", "damping", "coulomb")
    rows = [*(tables[name] for name in names), still, tables["stribeck_speed"]]
    return np.concatenate([*rows, np.zeros_like(still)], axis=1)


# The compiled programs.


def _one_joint_programs() -> tuple[Program, Program, Program, Program]:
    """Trace (M + added) q̈ = τ - C - G - K (q - reference), its mobility and weight.

    A single joint of several does not know its height, and has no floor.
    """

    def accelerate(
        q: Any, qd: Any, tau: Any, added: Any, bodies: Any
    ) -> dict[str, object]:
        inertia, coupling, gravity, gradient, reference = bodies
        load = coupling + gravity + gradient * (q[0] - reference)
        return {"qdd": [(tau[0] - load) / (inertia + added[0])]}

    def mobility(q: Any, added: Any, bodies: Any) -> dict[str, object]:
        return {"W": [1.0 / (bodies[0] + added[0])]}

    def weight(q: Any, bodies: Any) -> dict[str, object]:
        _, _, gravity, gradient, reference = bodies
        return {"load": [gravity + gradient * (q[0] - reference)]}

    one = {"q": 1, "qd": 1, "tau": 1, "added": 1, "bodies": len(LOAD)}
    two = {"q": 1, "added": 1, "bodies": len(LOAD)}
    three = {"q": 1, "bodies": len(LOAD)}
    return (
        trace("accelerate", accelerate, one),
        trace("mobility", mobility, two),
        trace("weight", weight, three),
        trace("height", lambda q, bodies: {"height": [q[0]]}, three),
    )


def _weight_programs(mechanism: Mechanism) -> tuple[Program, Program]:
    """Trace gravity's torque and energy, bodies an input like the motion."""
    gravity = equations(mechanism)["gravity_torque"].function

    def weight(q: Any, bodies: Any) -> dict[str, object]:
        return {"load": gravity(q, bodies)["tau"]}

    def height(q: Any, bodies: Any) -> dict[str, object]:
        angles, spread = mechanism.joints(q, True), mechanism.bodies(bodies)
        return {"height": [potential_energy(mechanism.skeleton, angles, spread)]}

    sizes = {"q": mechanism.dof, "bodies": len(mechanism.grouping.indices)}
    return trace("weight", weight, sizes), trace("height", height, sizes)


@cache
def _library(text: str) -> tuple[Callable[..., int], Callable[..., int]]:
    library = compiled_library(text, "-O3")
    rollout = c_function(library, "rollout", "llppp")
    return rollout, c_function(library, "profile", "llllppppp")


def rollout_source(mechanism: Mechanism | None, *, on_gpu: bool = False) -> str:
    """Return C text of `rollout` and `profile`; for a GPU one arm a thread.

    Args:
        mechanism: Whose dynamics; None: of single joints under a load.
        on_gpu: Whether to write it for a thread of a GPU.
    """
    lanes = 1 if on_gpu else LANES
    if mechanism is None:
        accelerate, mobility, weight, height = _one_joint_programs()
        stepper = one_joint_stepper_source(accelerate, mobility, lanes, on_gpu=on_gpu)
    else:
        weight, height = _weight_programs(mechanism)
        stepper = (
            cuda_stepper_source(mechanism)
            if on_gpu
            else stepper_source(mechanism, False, lanes)
        )
    varying = len(LOAD) if mechanism is None else 0
    profile = fill(_TEMPLATES / "profile.c.in", SUBSTEP=SUBSTEP)
    moved = weight.output("load").nonzero
    spread = " ".join(f"load[{i}] = y[{k}];" for k, i in enumerate(moved))
    text = fill(
        _TEMPLATES / "rollout.c.in", VARYING=varying, SPREAD=spread, POINTS=MOST_POINTS
    )
    write = device_core if on_gpu else core_source
    return "\n".join([stepper, profile, write(weight), write(height), text])


def _compiled(
    mechanism: Mechanism | None,
) -> tuple[Callable[..., int], Callable[..., int]]:
    try:
        return _library(rollout_source(mechanism))
    except ArgumentError as error:
        raise ArgumentError(
            f"{error} Servo arms are rolled out in compiled C: install cc, gcc or "
            "clang, or `pip install ziglang`."
        ) from None
