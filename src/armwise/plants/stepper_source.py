"""C text of a stepper: the traced dynamics inside the integrators' loops.

Like the programs themselves it is written over a type V, eight arms at once or one; a
thread of a GPU steps one. The state of a block of arms stays in registers and cache for
all the ticks of a call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from armwise.dynamics import Mechanism
from armwise.plants.equations import accelerate_program, mobility_program
from armwise.plants.friction import DRIVE_ROWS
from armwise.plants.stepper_template import LANE_HELPERS, ONE_HELPERS, STEPPER
from armwise.programs import Program
from armwise.programs.c_source import (
    LANES,
    SCALAR_PRELUDE,
    VECTOR_PRELUDE,
    core_source,
)
from armwise.programs.cuda_source import PRELUDE as CUDA_PRELUDE
from armwise.programs.cuda_source import device_core


def stepper_source(mechanism: Mechanism, is_elastic: bool, in_lanes: bool) -> str:
    """Return C text with the functions semi_implicit, rk4 and dormand_prince.

    Args:
        mechanism: Whose dynamics.
        is_elastic: Whether motors move apart from their links.
        in_lanes: Whether eight arms are stepped at once, or one.
    """
    prelude = VECTOR_PRELUDE if in_lanes else SCALAR_PRELUDE
    helpers = LANE_HELPERS if in_lanes else ONE_HELPERS
    lanes = LANES if in_lanes else 1
    text = _stepper(mechanism, is_elastic, lanes, core_source)
    return "\n".join([prelude, helpers, text])


def cuda_stepper_source(mechanism: Mechanism) -> str:
    """Return the same for a thread of a GPU, joints rigid."""
    text = _stepper(mechanism, False, 1, device_core)
    return "\n".join([CUDA_PRELUDE, ONE_HELPERS, text])


def _stepper(
    mechanism: Mechanism,
    is_elastic: bool,
    lanes: int,
    core: Callable[[Program], str],
) -> str:
    accelerate = accelerate_program(mechanism)
    mobility = mobility_program(mechanism)
    size = mechanism.dof
    numbers = {
        "N": size,
        "R": len(mechanism.drive_rows),
        "J": len(mechanism.coupling),
        "G": len(mechanism.grouping.indices),
        "C": len(mechanism.weights),
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
            _rows(mechanism.drive_rows),
            _places(mobility.output("W").nonzero, size),
            STEPPER,
        ]
    )


def _rows(rows: np.ndarray) -> str:
    """Return C for what drives see of the joints, and what joints feel of drives."""
    see = ["static inline void drive_speeds(const V *v, V *u) {"]
    feel = ["static inline void add_drive_torques(const V *f, V *t) {"]
    for k, row in enumerate(rows):
        terms = [f"{float(w)!r} * v[{j}]" for j, w in enumerate(row) if w]
        see.append(f"  u[{k}] = {' + '.join(terms) or '0.0 * v[0]'};")
        feel += [f"  t[{j}] += {float(w)!r} * f[{k}];" for j, w in enumerate(row) if w]
    squares = ", ".join(repr(float(x)) for x in (rows**2).ravel())
    weights = ", ".join(repr(float(x)) for x in rows.ravel())
    tables = [
        f"static const double square[R * N] = {{{squares}}};",
        f"static const double weight[R * N] = {{{weights}}};",
    ]
    return "\n".join([*see, "}", *feel, "}", *tables])


def _places(nonzero: tuple[int, ...], size: int) -> str:
    """Return C that spreads a stored lower triangle over a full matrix."""
    pairs = [(i, j) for i in range(size) for j in range(i + 1)]
    lines = ["static void spread(const V *w, V *W) {"]
    lines.append("  for (int i = 0; i < N * N; i++) W[i] = ZERO;")
    for k, place in enumerate(nonzero):
        i, j = pairs[place]
        lines.append(f"  W[{i} * N + {j}] = W[{j} * N + {i}] = w[{k}];")
    return "\n".join([*lines, "}"])
