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
)
from armwise.errors import ArgumentError, ArmError
from armwise.plants import one_joint_stepper_source, stepper_source
from armwise.programs import (
    Program,
    addresses,
    c_function,
    compiled_library,
    core_source,
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
    "load_static", "load_square",
)  # fmt: skip
"""Rows of the table that the C program takes of every servo, in its order."""


ServoTable = dict[str, np.ndarray]
"""Parameter → one number per joint."""


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
    """

    name: str
    time: Float[np.ndarray, " samples"]
    goals: Float[np.ndarray, "samples dof"]
    q: Float[np.ndarray, "samples dof"]
    powered: Float[np.ndarray, " samples"]
    bodies: Float[np.ndarray, "*samples groups"]
    gain: float
    mask: Bool[np.ndarray, "samples dof"]

    @cached_property
    def clock(self) -> tuple[float, int, Float[np.ndarray, " samples"]]:
        """The step of rollouts in [s], the number of steps, the stamps in steps."""
        period = float(np.median(np.diff(self.time)))
        h = period / int(np.ceil(period / LONGEST_STEP))
        stamps = self.time / h
        return h, int(np.ceil(stamps[-1])) + 1, stamps

    def cut(self, start: int, stop: int, settle: int) -> ServoMotion:
        """Return some rows; the first `settle` of them, unless all, do not count."""
        rows = slice(start, stop)
        mask = self.mask[rows].copy()
        if start:
            mask[:settle] = False
        varying = self.bodies.ndim > 1
        return replace(
            self,
            time=self.time[rows] - self.time[start],
            goals=self.goals[rows],
            q=self.q[rows],
            powered=self.powered[rows],
            bodies=self.bodies[rows] if varying else self.bodies,
            mask=mask,
        )


LOAD = ("inertia", "coupling", "gravity", "gradient", "reference")
"""What one joint feels of the links while the others move as measured: M_ii, then the
torque C + G + K (q - reference) of their motion and of gravity."""


class Roller:
    """Rolls motions out under tables of servo parameters.

    Args:
        arm: Whose mechanism; its inertias come with each motion. None: single joints,
            each under the load that its motion holds over time.
    """

    def __init__(self, arm: Arm | None) -> None:
        mechanism = None if arm is None else mechanism_of(arm)
        if mechanism is not None and (mechanism.is_coupled or len(mechanism.weights)):
            raise ArmError(
                f"{'' if arm is None else arm.name} has joints that follow others, or "
                "motors that several joints share; a servo model needs one servo per "
                "joint. Lock the followers: load_arm(path, lock={...})."
            )
        self.dof = 1 if mechanism is None else mechanism.dof
        self._rollout, self._profile = _compiled(mechanism)

    def run(
        self,
        motions: Sequence[ServoMotion],
        tables: Sequence[Sequence[ServoTable]],
        bodies: Sequence[Float[np.ndarray, "tables groups"]] | None = None,
    ) -> list[Float[np.ndarray, "tables samples dof"]]:
        """Roll every motion out under each of its tables, from its first sample.

        Args:
            motions: What is commanded, and where it starts.
            tables: Of every motion, the servos to try.
            bodies: Of every motion, inertial parameters beside each table, instead of
                the motion's own.

        Returns:
            Per motion, positions at its stamps under every table; NaN where a rollout
            ran away.
        """
        results = [
            np.full((len(t), len(m.time), self.dof), np.nan)
            for m, t in zip(motions, tables, strict=True)
        ]
        own = [m.bodies for m in motions] if bodies is None else bodies
        jobs = list(zip(motions, tables, own, results, strict=True))
        # The longest first, so that no thread is left alone with it.
        jobs.sort(key=lambda job: -job[3].size)
        list(_threads().map(lambda job: self._motion(*job), jobs))
        return results

    def set_point(
        self, motion: ServoMotion, table: ServoTable
    ) -> tuple[float, Float[np.ndarray, "steps dof"]]:
        """Return the step in [s] and the set-points at the ends of steps."""
        h, steps, _ = motion.clock
        series = np.empty((1, steps + 1, self.dof))
        self._fill(motion, [table], series)
        return h, series[0]

    def _fill(
        self, motion: ServoMotion, tables: Sequence[ServoTable], series: np.ndarray
    ) -> None:
        """Write the set-points of tables into the first columns of their series."""
        h, steps, _ = motion.clock
        limits = np.array([[t[k] for k in _PROFILE] for t in tables])
        settings = np.concatenate([[h], limits.transpose(0, 2, 1).ravel()])
        count, dof, samples = len(tables), self.dof, len(motion.time)
        width = series.shape[2]
        numbers = np.empty((count, dof, 2), dtype=np.int64)
        numbers[..., 0] = samples * np.arange(dof)
        numbers[..., 1] = (steps + 1) * width * np.arange(count)[:, None]
        numbers[..., 1] += np.arange(dof)
        goals = np.ascontiguousarray(motion.goals.T)
        time = np.ascontiguousarray(motion.time)
        self._profile(
            count * dof, samples, steps, width, numbers.ctypes.data, time.ctypes.data,
            goals.ctypes.data, settings.ctypes.data, series.ctypes.data,
        )  # fmt: skip

    def _motion(
        self,
        motion: ServoMotion,
        tables: Sequence[ServoTable],
        bodies: np.ndarray,
        result: np.ndarray,
    ) -> None:
        h, steps, stamps = motion.clock
        samples, dof = motion.q.shape
        at = np.arange(steps + 1) * h
        varying = motion.bodies.ndim > 1
        if varying:
            bodies = np.zeros(len(LOAD))
        # Tables that differ in other things than timing take one series together.
        keys = [b"".join(table[k].tobytes() for k in _TIMING) for table in tables]
        numbers = {key: u for u, key in enumerate(dict.fromkeys(keys))}
        distinct = [tables[keys.index(key)] for key in numbers]
        width = dof + 1 + (len(LOAD) if varying else 0)
        series = np.empty((len(distinct), steps + 1, width))
        self._fill(motion, distinct, series)
        if varying:
            for k, column in enumerate(motion.bodies.T):
                series[:, :, dof + 1 + k] = np.interp(at, motion.time, column)
        series[:, :, dof] = 1.0
        if not motion.powered.all():
            for one, table in zip(series, distinct, strict=True):
                # Switching off is a command too, and takes its time to arrive.
                sent = at - float(np.mean(table["release"]))
                rows = np.searchsorted(motion.time, sent, side="right") - 1
                one[:, dof] = motion.powered[np.clip(rows, 0, samples - 1)]
        n = np.zeros((len(tables), 5), dtype=np.int64)
        n[:, 0] = [numbers[key] * (steps + 1) * width for key in keys]
        n[:, 2], n[:, 3] = steps, samples
        n[:, 4] = np.arange(len(tables)) * samples * dof
        arrays = [
            _drive_rows(tables),
            np.broadcast_to(bodies, (len(tables), bodies.shape[-1])),
            _servo_rows(tables, motion.gain),
            np.repeat(motion.q[:1], len(tables), axis=0),
            series,
            stamps,
        ]
        arrays = [np.ascontiguousarray(x, dtype=float) for x in arrays]
        pointers = addresses([*arrays, result])
        settings = np.array([h])
        self._rollout(0, len(tables), pointers, n.ctypes.data, settings.ctypes.data)


@cache
def _threads() -> ThreadPoolExecutor:
    """Threads of all rollouts: C runs without Python's lock."""
    return ThreadPoolExecutor(os.cpu_count() or 1)


_PROFILE = ("delay", "slew", "acceleration")
_TIMING = (*_PROFILE, "release")


def _servo_rows(tables: Sequence[ServoTable], gain: float) -> np.ndarray:
    rows = np.stack([np.stack([t[name] for name in NUMBERS]) for t in tables])
    rows[:, NUMBERS.index("stiffness")] *= gain
    return rows.reshape(len(tables), -1)


def _drive_rows(tables: Sequence[ServoTable]) -> np.ndarray:
    """Return (tables, 6 · dof) in the order of plants' DRIVE_ROWS."""
    rows = []
    for t in tables:
        still = t["coulomb"] + t["static"]
        names = [t["armature"], t["damping"], t["coulomb"], still, t["stribeck_speed"]]
        rows.append(np.concatenate([*names, np.zeros_like(still)]))
    return np.stack(rows)


# The compiled programs.


def _one_joint_programs() -> tuple[Program, Program, Program]:
    """Trace (M + added) q̈ = τ - C - G - K (q - reference), its mobility and weight."""

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
    )


def _weight_program(mechanism: Mechanism) -> Program:
    """Trace the torque that gravity asks for, its bodies an input like the motion."""
    gravity = equations(mechanism)["gravity_torque"].function

    def weight(q: Any, bodies: Any) -> dict[str, object]:
        return {"load": gravity(q, bodies)["tau"]}

    sizes = {"q": mechanism.dof, "bodies": len(mechanism.grouping.indices)}
    return trace("weight", weight, sizes)


@cache
def _library(text: str) -> tuple[Callable[..., int], Callable[..., int]]:
    library = compiled_library(text, "-O3")
    rollout = c_function(library, "rollout", "llppp")
    return rollout, c_function(library, "profile", "llllppppp")


def _compiled(
    mechanism: Mechanism | None,
) -> tuple[Callable[..., int], Callable[..., int]]:
    if mechanism is None:
        accelerate, mobility, weight = _one_joint_programs()
        stepper = one_joint_stepper_source(accelerate, mobility, LANES)
    else:
        weight = _weight_program(mechanism)
        stepper = stepper_source(mechanism, False, LANES)
    varying = len(LOAD) if mechanism is None else 0
    profile = fill(_TEMPLATES / "profile.c.in", SUBSTEP=SUBSTEP)
    moved = weight.output("load").nonzero
    spread = " ".join(f"load[{i}] = y[{k}];" for k, i in enumerate(moved))
    text = fill(_TEMPLATES / "rollout.c.in", VARYING=varying, SPREAD=spread)
    rollout = "\n".join([core_source(weight), text])
    try:
        return _library("\n".join([stepper, profile, rollout]))
    except ArgumentError as error:
        raise ArgumentError(
            f"{error} Servo arms are rolled out in compiled C: install cc, gcc or "
            "clang, or `pip install ziglang`."
        ) from None
