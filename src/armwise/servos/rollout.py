"""Free runs of servo arms from their commands, in generated C, batched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import (
    CancelledError,
    ThreadPoolExecutor,
    as_completed,
    wait,
)
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from threading import Lock, local
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from armwise.arms import BASE, Arm
from armwise.dynamics import (
    Mechanism,
    equations,
    mechanism_of,
    moment_rates,
    potential_energy,
)
from armwise.errors import ArgumentError, ArmError
from armwise.jobs import cores
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

Item = TypeVar("Item")
Result = TypeVar("Result")

_TEMPLATES = Path(__file__).parent / "templates"

# Judgement: servo arms swing at 2 to 5 Hz against their gains; the midpoint rule is
# then within 0.1 mrad of steps a quarter as long.
LONGEST_STEP = 4.2e-3
"""Step of the arm in [s], at most."""

MOST_LANES = 8
"""Rollouts stepped at once, at most: as many as the machine compares at once."""

NUMBERS = (
    "stiffness", "derivative", "integral", "dead_band", "saturation", "zero", "offset",
    "driving", "back_driven", "coasting", "lower", "upper", "quadratic",
    "load_static", "load_square", "start_up", "heating",
    "inertial_load", "load_stiction", "creep_speed", "limited_damping",
    "stribeck_shape", "feedback_delay", "braking_speed", "coasting_static",
    "bearing",
)  # fmt: skip
"""Rows of the table that the C program takes of every servo, in its order."""


MOST_NAMES = 40
"""Parameters that a fit moves, at most."""

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
        rounding: Half of each encoder's step in [rad].
        load_time: Stamps in [s] of a `LOAD` over time, if not the samples'.
        carried: Weight in [N] on the bearings of each joint; None: not known.
        mounted: How far the load of each joint is put on beyond the servos' zeros, in
            [rad]; None: not at all.
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
    rounding: Float[np.ndarray, " dof"]
    load_time: Float[np.ndarray, " rows"] | None = None
    carried: Float[np.ndarray, " dof"] | None = None
    mounted: Float[np.ndarray, " dof"] | None = None

    @cached_property
    def period(self) -> float:
        """Usual time from sample to sample in [s]."""
        return float(np.median(np.diff(self.time)))

    @cached_property
    def clock(self) -> tuple[float, int, Float[np.ndarray, " samples"]]:
        """The step of rollouts in [s], the number of steps, the stamps in steps."""
        h = self.period / int(np.ceil(self.period / LONGEST_STEP))
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
        return min(self.period / CORRELATION_S, 1.0)

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


def least_scale(median: np.ndarray, rounding: float | np.ndarray) -> np.ndarray:
    """Return where squares end: the median error, never below an encoder's rounding."""
    # A start whose runs are all lost has no median.
    return np.where(np.isfinite(median), np.maximum(median, rounding), 1e-2)


def rounding_of(motions: Sequence[ServoMotion]) -> float:
    """Return half of the encoder's step in [rad], of motions of one joint."""
    return float(np.median([m.rounding[0] for m in motions]))


def count_doubt(motions: Sequence[ServoMotion]) -> float:
    """Return how far positions are off for want of knowing how they are rounded.

    In [rad], as a standard deviation: by up to half of the encoder's step either way.
    """
    return rounding_of(motions) / float(np.sqrt(3.0))


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


@dataclass(frozen=True, eq=False)
class MotionArrays:
    """Motions side by side, as the programs read them.

    Attributes:
        shape: Samples, steps, first sample and first row of bodies of every motion.
        clock: Step in [s] and gain of every motion.
        stamps: In [s].
        goals: Joints × samples of every motion, one after another.
        powered: Of every sample.
        starts: First positions.
        conditions: Of every motion, its joints' warmth in [K], what their bearings
            carry in [N], and zeros of their mountings in [rad].
        bodies: Of every motion, or of every step where they vary.
        used: 1 where a sample of the first joint counts.
        q: Its measured positions.
        weights: What a row of every motion counts.
        rounding: Of the first joint in [rad].
    """

    shape: np.ndarray
    clock: np.ndarray
    stamps: np.ndarray
    goals: np.ndarray
    powered: np.ndarray
    starts: np.ndarray
    conditions: np.ndarray
    bodies: np.ndarray
    used: np.ndarray
    q: np.ndarray
    weights: np.ndarray
    rounding: np.ndarray


def motion_arrays(motions: Sequence[ServoMotion]) -> MotionArrays:
    """Lay motions side by side."""
    shapes, bodies, first, first_body = [], [], 0, 0
    for m in motions:
        loads = m.loads
        rows = m.bodies[None] if loads is None else loads
        shapes.append((len(m.time), m.clock[1], first, first_body))
        bodies.append(rows)
        first, first_body = first + len(m.time), first_body + len(rows)
    return MotionArrays(
        shape=np.array(shapes, dtype=np.int32),
        clock=np.array([(m.clock[0], m.gain) for m in motions]),
        stamps=np.concatenate([m.time for m in motions]),
        goals=np.concatenate([m.goals.T.ravel() for m in motions]),
        powered=np.concatenate([m.powered for m in motions]),
        starts=np.concatenate([m.q[0] for m in motions]),
        conditions=np.concatenate([x for m in motions for x in _conditions(m)]),
        bodies=np.concatenate(bodies),
        used=np.concatenate([m.mask[:, 0] for m in motions]).astype(float),
        q=np.concatenate([m.q[:, 0] for m in motions]),
        weights=np.array([m.weight for m in motions]),
        rounding=np.array([rounding_of(motions)]),
    )


def _conditions(motion: ServoMotion) -> list[np.ndarray]:
    """Return the warmth of every joint, what its bearings carry, and its mounting."""
    others = (motion.carried, motion.mounted)
    nothing = np.zeros_like(motion.warmth)
    return [motion.warmth, *(nothing if x is None else x for x in others)]


LOST = 1e3
"""Cost in [rad] of a row whose rollout ran away."""


class Roller:
    """Rolls motions out under tables of servo parameters.

    Args:
        arm: Whose mechanism; its inertias come with each motion. None: single joints,
            each under the load that its motion holds over time.

    Attributes:
        count: Motions that all of them have rolled out so far, for benchmarks.
    """

    count: ClassVar[int] = 0

    def __init__(self, arm: Arm | None) -> None:
        self.arm = arm
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
        # Compilers take seconds, in which single joints already roll.
        self._compiling = threads().submit(_compiled, self.mechanism)
        self._own = local()
        self._is_stopped = False

    @property
    def _programs(self) -> _Programs:
        return self._compiling.result()

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
                parameters of a weight of 1 N there, the floor's height, stiffness and
                friction, and of every link a weight and its moment.

        Returns:
            Per motion, positions at its stamps under every table; NaN where a rollout
            ran away.
        """
        arrays = self.arrays_of(motions)
        count = len(tables["stiffness"])
        out = self._free_runs(arrays, tables, bodies, floors)
        results, first = [], 0
        for m in motions:
            shape = count, len(m.time), self.dof
            results.append(out[first : first + np.prod(shape)].reshape(shape))
            first += results[-1].size
        return results

    def arrays_of(self, motions: Sequence[ServoMotion]) -> MotionArrays:
        """Return motions side by side: the same windows serve many steps of a fit."""
        listed = list(motions)
        recent: list[tuple[list[ServoMotion], MotionArrays]]
        recent = getattr(self._own, "recent", [])
        for of, arrays in recent:
            if of == listed:
                return arrays
        arrays = motion_arrays(motions)
        # Judgement: both halves' windows take turns, and all of them are a third.
        self._own.recent = [(listed, arrays), *recent[:2]]
        return arrays

    def each(
        self,
        function: Callable[[Item], Result],
        items: Sequence[Item],
        report: Callable[[float], None] = lambda done: None,
    ) -> list[Result]:
        """Return what a function gives of every item, which do not know each other.

        Several at a time: a third of a joint's fit is Python's work, in which C has
        time for the other joints'.

        Args:
            function: May roll motions out, but not call this.
            items: Such as joints.
            report: Called by this thread with the fraction that is done.
        """
        futures = [_fitters().submit(function, item) for item in items]
        try:
            report(0.0)
            # A mistake in a later one is not kept waiting for those before it.
            for number, future in enumerate(as_completed(futures), start=1):
                future.result()
                report(number / len(futures))
            return [future.result() for future in futures]
        except BaseException:
            # Who presses Ctrl-C, or has made a mistake, does not wait for the others.
            self._is_stopped = True
            for future in futures:
                future.cancel()
            wait(futures)
            self._is_stopped = False
            raise

    def _free_runs(
        self,
        arrays: MotionArrays,
        tables: ServoTables,
        bodies: Sequence[Float[np.ndarray, "tables groups"]] | None = None,
        floors: Float[np.ndarray, "tables points numbers"] | None = None,
        out: Float[np.ndarray, " numbers"] | None = None,
    ) -> Float[np.ndarray, " numbers"]:
        """Return positions: tables × samples × joints of every motion."""
        count, motions = len(tables["stiffness"]), len(arrays.shape)
        if self._is_stopped:
            raise CancelledError
        with _counting:
            Roller.count += count * motions
        # Tables that differ in other things than timing take one series together.
        timing, series = np.unique(timing_rows(tables), axis=0, return_inverse=True)
        if floors is None:
            floors = np.zeros((count, 0, 0))
        # The longest first, so that no thread is left alone with it.
        order = np.argsort(-arrays.shape[:, 1], kind="stable")
        is_own = bodies is not None
        head = [count, len(timing), motions, floors.shape[1], int(is_own)]
        n = np.concatenate([head, order, series.reshape(count)]).astype(np.int64)
        if out is None:
            out = np.empty(arrays.goals.size * count)
        rows = [
            drive_rows(tables), servo_rows(tables), floors, _limits(timing),
            timing[:, -self.dof :].mean(1), arrays.clock, arrays.stamps, arrays.goals,
            arrays.powered, arrays.starts, arrays.conditions,
            arrays.bodies if bodies is None else np.concatenate(bodies), out,
        ]  # fmt: skip
        # Set-points at the ends of steps, their means, power; power again by itself. Of
        # few tables a thread takes several motions at once.
        row = (2 * self.dof + 1) * len(timing) + 2
        room = max(1, MOST_LANES // count) * row * (arrays.shape[:, 1].max() + 1)
        self._programs.run("free_runs", n, arrays.shape, rows, room)
        return out

    def _passing_runs(
        self, arrays: MotionArrays, tables: ServoTables
    ) -> Float[np.ndarray, " numbers"]:
        """Return the same, to be read before the next runs of this thread."""
        room = _own_room(arrays.goals.size * len(tables["stiffness"]), "runs")
        return self._free_runs(arrays, tables, out=room)

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
        arrays = self.arrays_of(motions)
        out, count = self._passing_runs(arrays, tables), len(tables["stiffness"])
        scale = least_scale(_medians(arrays, out, starts, count), arrays.rounding)
        sums = np.empty((len(motions), starts, names * (names + 1) // 2 + names + 1))
        rows = [arrays.used, arrays.q, scale, out, steps, sums]
        n = np.array([count, len(motions), starts])
        self._programs.run("normals", n, arrays.shape, rows)
        return normal_sums(arrays, scale, sums)

    def costs(
        self,
        motions: Sequence[ServoMotion],
        tables: ServoTables,
        scale: Float[np.ndarray, " tables"],
    ) -> Float[np.ndarray, " tables"]:
        """Return the mean robust cost of every table in [rad], of single joints."""
        arrays = self.arrays_of(motions)
        out = self._passing_runs(arrays, tables)
        sums = np.empty((len(motions), len(scale)))
        n = np.array([len(scale), len(motions)])
        rows = [arrays.used, arrays.q, scale, out, sums]
        self._programs.run("costs", n, arrays.shape, rows)
        return np.asarray(sums.sum(0) / max(arrays.used.sum(), 1.0))

    def set_point(
        self, motion: ServoMotion, tables: ServoTables, step: float | None = None
    ) -> SetPoint:
        """Return the set-points of one table, at rollouts' step or another in [s]."""
        h, dof = step or motion.clock[0], self.dof
        steps = int(np.ceil(motion.time[-1] / h))
        series = np.empty((steps + 2, 2 * dof))
        arrays = [
            np.ascontiguousarray(x, dtype=float)
            for x in (motion.time, motion.goals.T, _limits(timing_rows(tables)))
        ]
        self._programs.profile(
            dof, len(motion.time), steps + 1, h,
            *(x.ctypes.data for x in arrays), series.ctypes.data,
        )  # fmt: skip
        return SetPoint(h, series[:, :dof], series[1:, dof:])


def _medians(
    arrays: MotionArrays, out: np.ndarray, starts: int, tables: int
) -> Float[np.ndarray, " starts"]:
    """Return the median error in [rad] of the first table of every start."""
    firsts = []
    for samples, _, first, _ in arrays.shape.tolist():
        runs = out[first * tables : (first + samples) * tables]
        rows = slice(first, first + samples)
        errors = runs.reshape(starts, -1, samples)[:, 0] - arrays.q[rows]
        firsts.append(np.abs(errors[:, arrays.used[rows] > 0.0]))
    sizes = np.concatenate(firsts, axis=1)
    return np.array([_lower_median(row) for row in sizes])


def normal_sums(
    arrays: MotionArrays,
    scale: Float[np.ndarray, " starts"],
    sums: Float[np.ndarray, "motions starts entries"],
) -> NormalSums:
    """Return the normal equations from entries that the programs add up.

    Args:
        arrays: The motions.
        scale: Of every start in [rad].
        sums: The upper triangle of the information, the gradient, the cost.
    """
    starts, entries = sums.shape[1:]
    names = int(np.sqrt(2 * entries)) - 1
    above = np.triu_indices(names)
    pairs = np.einsum("m,mse->se", arrays.weights, sums[..., : len(above[0])])
    information = np.zeros((starts, names, names))
    information[:, above[0], above[1]] = pairs
    information[:, above[1], above[0]] = pairs
    scores = arrays.weights[:, None, None] * sums[..., len(above[0]) : -1]
    cost = sums[..., -1].sum(0) / max(arrays.used.sum(), 1.0)
    return NormalSums(scale, information, scores.swapaxes(0, 1), cost)


def _lower_median(sizes: np.ndarray) -> float:
    """Return the median of the finite; of two in the middle the lower, as on a GPU."""
    sizes = sizes[np.isfinite(sizes)]
    half = (len(sizes) - 1) // 2
    return float(np.partition(sizes, half)[half]) if len(sizes) else np.nan


@cache
def threads() -> ThreadPoolExecutor:
    """Threads of all rollouts and loads: C and NumPy run without Python's lock."""
    return ThreadPoolExecutor(cores())


@cache
def _fitters() -> ThreadPoolExecutor:
    """Threads that wait for those of rollouts, which must not wait for each other."""
    return ThreadPoolExecutor(cores())


_counting = Lock()
"""Of those who add to `Roller.count`."""

_rooms = local()
"""What each thread works in: memory that is new is slow until it has been touched."""


def _own_room(size: int, name: str) -> Float[np.ndarray, " numbers"]:
    """Return room for so many numbers or more, the same for every call of a thread."""
    room: np.ndarray | None = getattr(_rooms, name, None)
    if room is None or len(room) < size:
        room = np.empty(size)
        setattr(_rooms, name, room)
    return room


TIMING = ("delay", "slew", "acceleration", "release")
"""Rows of the table that decide when set-points and power arrive."""


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


def _one_joint_programs() -> tuple[Program, ...]:
    """Trace (M + added) q̈ = τ - C - G - K (q - reference), its mobility and weight.

    A single joint of several does not know its height, and has no floor to slide on.
    """

    def accelerate(
        q: Any, qd: Any, tau: Any, added: Any, bodies: Any
    ) -> dict[str, object]:
        inertia, coupling, gravity, gradient, reference = bodies
        load = coupling + gravity + gradient * (q[0] - reference)
        # As the mobility's, so that compilers divide once for both.
        return {"qdd": [(tau[0] - load) * (1.0 / (inertia + added[0]))]}

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
        trace(
            "slide", lambda q, moments: {"rates": [q[0]] * 2}, {"q": 1, "moments": 4}
        ),
    )


def _weight_programs(mechanism: Mechanism) -> tuple[Program, ...]:
    """Trace gravity's torque and energy, bodies an input like the motion.

    And how points slide on a floor, which gravity's grouped parameters do not know.
    """
    gravity = equations(mechanism)["gravity_torque"].function

    def weight(q: Any, bodies: Any) -> dict[str, object]:
        return {"load": gravity(q, bodies)["tau"]}

    def height(q: Any, bodies: Any) -> dict[str, object]:
        angles, spread = mechanism.joints(q, True), mechanism.bodies(bodies)
        return {"height": [potential_energy(mechanism.skeleton, angles, spread)]}

    def slide(q: Any, moments: Any) -> dict[str, object]:
        angles, axes = mechanism.joints(q, True), _level_axes(mechanism)
        rows = [moments[4 * k : 4 * k + 4] for k in range(mechanism.dof)]
        rates = moment_rates(mechanism.skeleton, angles, rows, axes)
        return {"rates": [rate for row in rates for rate in row]}

    sizes = {"q": mechanism.dof, "bodies": len(mechanism.grouping.indices)}
    sliding = {"q": mechanism.dof, "moments": 4 * mechanism.dof}
    return (
        trace("weight", weight, sizes),
        trace("height", height, sizes),
        trace("slide", slide, sliding),
    )


def _level_axes(mechanism: Mechanism) -> Float[np.ndarray, "two 3"]:
    """Return two axes of the base across gravity; any two will do."""
    root = next(s for s in mechanism.skeleton.segments if s.parent == BASE)
    up = np.linalg.inv(root.from_base)[:3, :3] @ np.asarray(root.gravity, float)
    return np.linalg.svd((up if np.any(up) else np.array([0.0, 0.0, 1.0]))[None])[2][1:]


class _Programs:
    """The compiled programs of one mechanism, on all threads."""

    def __init__(self, text: str) -> None:
        library = compiled_library(text, "-O3")
        self.profile = c_function(library, "profile", "llldpppp")
        self._batch = {
            name: c_function(library, name, "ppppp")
            for name in ("free_runs", "costs", "normals")
        }

    def run(
        self,
        name: str,
        n: np.ndarray,
        shape: np.ndarray,
        arrays: Sequence[np.ndarray],
        room: int = 0,
    ) -> None:
        """Run a program over all motions; threads take one after another.

        Args:
            name: Which.
            n: Its whole numbers.
            shape: Of the motions.
            arrays: What it reads; the last is written to if there is no room.
            room: Numbers that a thread needs beside them.
        """
        function, counter = self._batch[name], np.zeros(1, dtype=np.int64)
        *read, last = arrays
        packed = [*(np.ascontiguousarray(x, dtype=float) for x in read), last]
        pointers = addresses(packed)

        def work(_: int) -> None:
            own = _own_room(room, "series") if room else last
            function(
                counter.ctypes.data, n.ctypes.data, shape.ctypes.data, pointers,
                own.ctypes.data,
            )  # fmt: skip

        others = min(cores(), len(shape)) - 1
        waiting = [threads().submit(work, k) for k in range(others)]
        work(others)
        for other in waiting:
            # Those that have not begun would find nothing left.
            if not other.cancel():
                other.result()


@cache
def _library(text: str) -> _Programs:
    return _Programs(text)


def rollout_source(mechanism: Mechanism | None, *, on_gpu: bool = False) -> str:
    """Return C text of the rollouts; for a GPU one arm a thread, without a driver.

    Args:
        mechanism: Whose dynamics; None: of single joints under a load.
        on_gpu: Whether to write it for a thread of a GPU.
    """
    if mechanism is None:
        accelerate, mobility, weight, height, slide = _one_joint_programs()
        stepper = one_joint_stepper_source(accelerate, mobility, on_gpu=on_gpu)
    else:
        weight, height, slide = _weight_programs(mechanism)
        stepper = (
            cuda_stepper_source(mechanism)
            if on_gpu
            else stepper_source(mechanism, False, None)
        )
    varying = len(LOAD) if mechanism is None else 0
    profile = (_TEMPLATES / "profile.c.in").read_text()
    text = fill(
        _TEMPLATES / "rollout.c.in", VARYING=varying, POINTS=MOST_POINTS,
        SPREAD=_spread(weight, "load", "load"), SLIDING=_spread(slide, "rates", "rate"),
    )  # fmt: skip
    write = device_core if on_gpu else core_source
    cores = [write(one) for one in (weight, height, slide)]
    parts = [stepper, profile, *cores, text]
    if not on_gpu:
        batch = fill(_TEMPLATES / "batch.c.in", LOST=LOST, NAMES=MOST_NAMES)
        parts.append(batch)
    return "\n".join(parts)


def _spread(program: Program, output: str, array: str) -> str:
    """Write a program's output to an array that holds zeros."""
    moved = program.output(output).nonzero
    return " ".join(f"{array}[{i}] = y[{k}];" for k, i in enumerate(moved))


def _compiled(mechanism: Mechanism | None) -> _Programs:
    try:
        return _library(rollout_source(mechanism))
    except ArgumentError as error:
        raise ArgumentError(
            f"{error} Servo arms are rolled out in compiled C: install cc, gcc or "
            "clang, or `pip install ziglang`."
        ) from None
