"""Arm stepper in generated C: one call advances all arms by many ticks.

Like the programs themselves it is written over a type V, eight arms at once or one; a
thread of a GPU steps one. The state of a block of arms stays in registers and cache for
all the ticks of a call.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from armwise.dynamics import Mechanism
from armwise.plants.drive import DRIVE_ROWS
from armwise.plants.integrators import ArmIntegrator, DormandPrince, method_number
from armwise.plants.state import ArmNumbers, State, accelerate_program, mobility_program
from armwise.programs import (
    LANES,
    SCALAR_PRELUDE,
    Program,
    addresses,
    c_function,
    compiled_library,
    core_source,
    device_core,
    fill,
    vector_prelude,
)
from armwise.programs import PRELUDE as CUDA_PRELUDE

_TEMPLATES = Path(__file__).parent / "templates"


def stepper_source(mechanism: Mechanism, is_elastic: bool, lanes: int) -> str:
    """Return C text with the functions semi_implicit, rk4 and dormand_prince.

    Args:
        mechanism: Whose dynamics.
        is_elastic: Whether motors move apart from their links.
        lanes: How many arms are stepped at once.
    """
    text = _stepper(mechanism, is_elastic, lanes, core_source)
    return "\n".join([_preludes(lanes), text])


def _preludes(lanes: int) -> str:
    if lanes == 1:
        return "\n".join([SCALAR_PRELUDE, fill(_TEMPLATES / "one_arm.c.in")])
    return "\n".join([vector_prelude(lanes), fill(_TEMPLATES / "eight_arms.c.in")])


def cuda_stepper_source(mechanism: Mechanism) -> str:
    """Return the same for a thread of a GPU, joints rigid."""
    text = _stepper(mechanism, False, 1, device_core)
    return "\n".join([_cuda_preludes(), text])


def _cuda_preludes() -> str:
    return "\n".join([CUDA_PRELUDE, fill(_TEMPLATES / "one_arm.c.in")])


def _stepper(
    mechanism: Mechanism,
    is_elastic: bool,
    lanes: int,
    core: Callable[[Program], str],
) -> str:
    programs = accelerate_program(mechanism), mobility_program(mechanism)
    groups = len(mechanism.grouping.indices), len(mechanism.weights)
    return _text(programs, mechanism.drive_rows, groups, is_elastic, lanes, core)


def one_joint_stepper_source(
    accelerate: Program, mobility: Program, lanes: int, *, on_gpu: bool = False
) -> str:
    """Return the stepper of single joints, some at once, whose equation is given.

    Args:
        accelerate: q̈ of (q, qd, tau, added, bodies), traced.
        mobility: Its derivative by the torque, of (q, added, bodies), as output "W".
        lanes: How many joints are stepped at once.
        on_gpu: Whether a thread of a GPU steps them, one lane each.
    """
    groups = accelerate.inputs[-1].size, 0
    core = device_core if on_gpu else core_source
    text = _text((accelerate, mobility), np.ones((1, 1)), groups, False, lanes, core)
    return "\n".join([_cuda_preludes() if on_gpu else _preludes(lanes), text])


def _text(
    programs: tuple[Program, Program],
    drive_rows: np.ndarray,
    groups: tuple[int, int],
    is_elastic: bool,
    lanes: int,
    core: Callable[[Program], str],
) -> str:
    accelerate, mobility = programs
    size = drive_rows.shape[1]
    numbers = {
        "N": size,
        "R": len(drive_rows),
        "J": len(drive_rows) - groups[1],
        "G": groups[0],
        "C": groups[1],
        "T": len(DRIVE_ROWS),
        "ELASTIC": int(is_elastic),
        "LANES": lanes,
    }
    defines = [f"#define {name} {value}" for name, value in numbers.items()]
    return "\n".join(
        [
            *defines,
            core(accelerate),
            core(mobility),
            _rows(drive_rows),
            _spread_source(mobility.output("W").nonzero, size),
            fill(_TEMPLATES / "stepper.c.in"),
        ]
    )


def _rows(rows: np.ndarray) -> str:
    """Return C for what drives see of the joints, and what joints feel of drives."""
    see = ["static inline void drive_speeds(const V *v, V *u) {"]
    feel = ["static inline void add_drive_torques(const V *f, V *t) {"]
    for k, row in enumerate(rows):
        terms = [f"{float(w)!r} * v[{j}]" for j, w in enumerate(row) if w]
        # 0.0 * v[0] is a zero of type V in either prelude, vector or scalar.
        see.append(f"  u[{k}] = {' + '.join(terms) or '0.0 * v[0]'};")
        feel += [f"  t[{j}] += {float(w)!r} * f[{k}];" for j, w in enumerate(row) if w]
    squares = ", ".join(repr(float(x)) for x in (rows**2).ravel())
    weights = ", ".join(repr(float(x)) for x in rows.ravel())
    tables = [
        f"static const double square[R * N] = {{{squares}}};",
        f"static const double weight[R * N] = {{{weights}}};",
    ]
    return "\n".join([*see, "}", *feel, "}", *tables])


def _spread_source(nonzero: tuple[int, ...], size: int) -> str:
    """Return C that spreads a stored lower triangle over a full matrix."""
    pairs = [(i, j) for i in range(size) for j in range(i + 1)]
    lines = ["static void spread(const V *w, V *W) {"]
    lines.append("  for (int i = 0; i < N * N; i++) W[i] = ZERO;")
    for k, index in enumerate(nonzero):
        i, j = pairs[index]
        lines.append(f"  W[{i} * N + {j}] = W[{j} * N + {i}] = w[{k}];")
    return "\n".join([*lines, "}"])


# Engine.


class CEngine:
    """Steps a batch of arms with the compiled stepper.

    Args:
        mechanism: Whose dynamics.
        numbers: What each arm is made of.
        integrator: How time is stepped.
        tick: Time step in [s].
        smoothing: See Friction.
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        numbers: ArmNumbers,
        integrator: ArmIntegrator,
        *,
        tick: float,
        smoothing: float,
        speed_bound: float,
    ) -> None:
        batch = len(numbers.bodies)
        is_elastic = numbers.springs is not None
        self.state = State.at_rest(batch, mechanism.dof, is_elastic)
        self._friction = np.zeros((batch, len(mechanism.drive_rows)))
        self._trial = np.zeros(batch)
        # C gets a valid pointer even where no spring is read.
        springs = np.zeros(1) if numbers.springs is None else numbers.springs
        self._numbers = (numbers.drives, springs, numbers.bodies)
        # Vectors of eight arms; a single arm would only carry seven idle lanes.
        self._function = _compiled(mechanism, is_elastic, batch > 1)
        rtol = atol = 0.0
        if isinstance(integrator, DormandPrince):
            rtol, atol = integrator.rtol, integrator.atol
        self._settings = np.array([tick, speed_bound, smoothing, rtol, atol])
        self._bad = np.zeros(batch, dtype=np.uint8)
        self._arguments = self._bind(batch, method_number(integrator))

    def _bind(self, batch: int, method: int) -> tuple[Any, ...]:
        """Fix all pointers once: a call then costs a microsecond."""
        s, (drives, springs, bodies) = self.state, self._numbers
        arrays = [s.q, s.qd, s.motor_q, s.motor_qd, s.tau, self._friction, s.qdd]
        arrays += [s.link_tau, drives, springs, bodies, self._trial]
        bad, settings = self._bad.ctypes.data, self._settings.ctypes.data
        return batch, method, addresses(arrays), bad, settings

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        state = self.state
        state.time = 0.0
        state.q[:] = state.motor_q[:] = q
        state.qd[:] = state.motor_qd[:] = qd
        state.tau[:] = self._friction[:] = self._trial[:] = 0.0
        self._bad[:] = 0
        self._call(0)

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        self._call(ticks)

    def _call(self, ticks: int) -> None:
        count, method, pointers, bad, settings = self._arguments
        lost = self._function(count, ticks, method, pointers, bad, settings)
        if lost:
            self.state.diverged[:] = self._bad
        elif self.state.time == 0.0:
            self.state.diverged[:] = False


_loaded: dict[tuple[str, bool, bool], Callable[..., int]] = {}


def _compiled(
    mechanism: Mechanism, is_elastic: bool, in_lanes: bool
) -> Callable[..., int]:
    key = (mechanism.key, is_elastic, in_lanes)
    if key not in _loaded:
        # Judgement: -O3, unlike kernels, since the stepper has loops over joints to
        # unroll.
        library = compiled_library(
            stepper_source(mechanism, is_elastic, LANES if in_lanes else 1), "-O3"
        )
        _loaded[key] = c_function(library, "advance", "lllppp")
    return _loaded[key]
