"""Functions that can be generated, each traced to its cheapest program, and counts.

Inertias in [kg m²] and torques in [N m] stay what they are when lengths are measured in
units of L metres and masses in units of 1/L² kilograms. So L is free: the upper arm's
length, or 9.81 m, which makes the acceleration of gravity one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from armwise.arms import BASE, load_arm
from armwise.codegen.model import CodeModel, moment_orders
from armwise.dynamics import (
    JointSegment,
    Mechanism,
    Scalar,
    Skeleton,
    add,
    drive_columns,
    equations,
    frame_equations,
    mul,
    total,
)
from armwise.programs import Program, fewer_operations, operations, trace

Traced = Callable[..., dict[str, object]]
"""Takes lists of scalars by name, bodies and drives among them; gives named lists."""

Maker = Callable[[CodeModel, Mechanism], Traced]
"""Makes an equation for a model."""

UNITS = {
    "q": "joint positions [rad] or [m]",
    "qd": "joint velocities [rad/s] or [m/s]",
    "qdd": "joint accelerations [rad/s^2] or [m/s^2]",
    "qdr": "reference velocities [rad/s] or [m/s]",
    "qddr": "reference accelerations [rad/s^2] or [m/s^2]",
    "tau": "joint torques [N m] or forces [N]",
    "M": "mass matrix, row by row [kg m^2], rotor inertias included",
    "g": "torques that hold the arm against gravity [N m]",
    "h": "torques without accelerations [N m]",
    "pose": "T_base_frame, row by row, 4 x 4 [m]",
    "jacobian": "6 x n, linear rows first [m/rad], then angular, base axes",
    "Y": "n x p, row by row; Y times the parameters is the torque",
}
"""What the arrays hold, for the header."""


@dataclass(frozen=True)
class Function:
    """A function to generate.

    Attributes:
        name: As in `Dynamics` where it is there.
        summary: One line for the header.
        inputs: Arrays it takes, in order.
        bodies, drives: Whether it depends on inertial parameters, on the drives.
        equation: Makes its equation for a model; the mechanism is the model's own, or
            that in other units.
    """

    name: str
    summary: str
    inputs: tuple[str, ...]
    bodies: bool
    drives: bool
    equation: Maker = field(repr=False)


def input_sizes(function: Function, dof: int) -> dict[str, int]:
    """Return how many numbers each array that a function takes has."""
    return {name: dof * dof if name == "M" else dof for name in function.inputs}


def _equation(name: str) -> Maker:
    def make(model: CodeModel, mechanism: Mechanism) -> Traced:
        return equations(mechanism)[name].function

    return make


def _placed(name: str) -> Maker:
    def make(model: CodeModel, mechanism: Mechanism) -> Traced:
        link, T = model.arm.find_frame(model.frame)
        return frame_equations(mechanism, link, T)[name].function

    return make


def _mass_matrix_and_gravity(model: CodeModel, mechanism: Mechanism) -> Traced:
    equation = equations(mechanism)

    def function(
        q: Sequence[Scalar], bodies: Sequence[Scalar], drives: Sequence[Scalar]
    ) -> dict[str, object]:
        matrix = equation["mass_matrix"].function(q=q, bodies=bodies, drives=drives)
        gravity = equation["gravity_torque"].function(q=q, bodies=bodies)
        return {"M": matrix["M"], "g": gravity["tau"]}

    return function


def _rigid_inverse_dynamics(model: CodeModel, mechanism: Mechanism) -> Traced:
    whole = equations(mechanism)["inverse_dynamics"].function
    none = [0.0] * mechanism.layout.drive_size

    def function(
        bodies: Sequence[Scalar], **motion: Sequence[Scalar]
    ) -> dict[str, object]:
        return whole(bodies=bodies, drives=none, **motion)

    return function


def _friction(model: CodeModel, mechanism: Mechanism) -> Traced:
    def function(qd: Sequence[Scalar], drives: Sequence[Scalar]) -> dict[str, object]:
        return {"tau": friction_torques(mechanism, qd, drives)}

    return function


def friction_torques(
    mechanism: Mechanism, qd: Sequence[Scalar], drives: Sequence[Scalar]
) -> list[Scalar]:
    """Viscous and Coulomb friction and offset of every joint."""
    columns = drive_columns(mechanism.drive_rows, qd, qd, [0.0] * mechanism.dof)
    rows = zip(*columns, strict=True)
    return [total(*[mul(d, x) for d, x in zip(drives, r, strict=True)]) for r in rows]


def _synchronous_torque(model: CodeModel, mechanism: Mechanism) -> Traced:
    """τ = M q̈ + h + friction; entries of M that are always zero are not read."""
    dof = mechanism.dof
    nonzero = model.mass_structure

    def function(
        M: Sequence[Scalar],
        h: Sequence[Scalar],
        qd: Sequence[Scalar],
        qdd: Sequence[Scalar],
        drives: Sequence[Scalar],
    ) -> dict[str, object]:
        friction = friction_torques(mechanism, qd, drives)
        rows = []
        for i in range(dof):
            terms = [mul(M[dof * i + j], qdd[j]) for j in range(dof) if nonzero[i][j]]
            rows.append(add(add(total(*terms), h[i]), friction[i]))
        return {"tau": rows}

    return function


_LIST = (
    Function("inverse_dynamics", "torque for a motion, drives and gravity included",
             ("q", "qd", "qdd"), True, True, _equation("inverse_dynamics")),
    Function("mass_matrix", "mass matrix, rotor inertias included",
             ("q",), True, True, _equation("mass_matrix")),
    Function("gravity_torque", "torque that holds the arm against gravity",
             ("q",), True, False, _equation("gravity_torque")),
    Function("mass_matrix_and_gravity", "mass matrix and gravity in one go",
             ("q",), True, True, _mass_matrix_and_gravity),
    Function("velocity_torque", "Coriolis and centrifugal torque",
             ("q", "qd"), True, False, _equation("velocity_torque")),
    Function("friction", "viscous and Coulomb friction and offsets of the drives",
             ("qd",), False, True, _friction),
    Function("synchronous_torque", "M qdd + h + friction, with M and h given",
             ("M", "h", "qd", "qdd"), False, True, _synchronous_torque),
    Function("forward_dynamics", "acceleration under a torque, friction included",
             ("q", "qd", "tau"), True, True, _equation("forward_dynamics")),
    Function("link_pose", "pose of a frame of the arm in the base frame",
             ("q",), False, False, _placed("link_pose")),
    Function("jacobian", "Jacobian of a frame of the arm",
             ("q",), False, False, _placed("jacobian")),
    Function("regressor", "Y with Y times the arm's parameters = inverse dynamics",
             ("q", "qd", "qdd"), False, False, _equation("regressor")),
    Function("slotine_li_regressor", "Y p = M qddr + C(q, qd) qdr + g + friction",
             ("q", "qd", "qdr", "qddr"), False, False,
             _equation("slotine_li_regressor")),
)  # fmt: skip

RIGID = Function(
    "rigid_inverse_dynamics", "inverse dynamics without rotors, friction and offsets",
    ("q", "qd", "qdd"), True, False, _rigid_inverse_dynamics,
)  # fmt: skip
"""What other generators count: the links alone."""

FUNCTIONS: Mapping[str, Function] = {item.name: item for item in _LIST}
"""Every function by name."""

__all__ = ["FUNCTIONS", "RIGID", "UNITS", "Function", "friction_torques", "input_sizes"]


# Units that save multiplications: a length that is one need not be multiplied by.

# Some hundred roundings of float64: a quotient of lengths is off by a few.
_EXACT = 1e-13
"""Scaled lengths this close to a whole number are that number."""


def unit_lengths(mechanism: Mechanism, bodies: Sequence[float] = ()) -> list[float]:
    """Return lengths in [m] worth trying as the unit, one metre first.

    Args:
        mechanism: The arm's geometry and gravity.
        bodies: Grouped parameters, if known: a first moment h becomes one for L = 1/h.
    """
    if not all(segment.is_revolute for segment in mechanism.skeleton.segments):
        return [1.0]  # a slide's own units are the user's
    lengths = [1.0]
    for segment in mechanism.skeleton.segments:
        numbers = segment.gravity if segment.parent == BASE else segment.position
        lengths += [abs(float(x)) for x in numbers if x]
    orders = moment_orders(mechanism)
    moments = [x for order, x in zip(orders, bodies, strict=False) if order == 1]
    lengths += [abs(1.0 / x) for x in moments if x]
    # Lengths that agree to twelve digits are tried once.
    return list({f"{x:.12g}": x for x in reversed(lengths)}.values())[::-1]


def in_units(mechanism: Mechanism, length: float) -> Mechanism:
    """Return the mechanism with lengths in units of `length` [m]."""
    if length == 1.0:
        return mechanism
    segments = tuple(_scaled(s, length) for s in mechanism.skeleton.segments)
    scaled = replace(
        mechanism, skeleton=Skeleton(segments), key=f"{mechanism.key}/{length!r}"
    )
    # Which parameters are merged is the same in any unit; finding it takes long.
    vars(scaled)["grouping"] = mechanism.grouping
    return scaled


def bodies_in_units(
    mechanism: Mechanism, bodies: Sequence[Scalar], length: float
) -> list[Scalar]:
    """Return grouped parameters in units of `length`: m L², h L and Σ as it is."""
    scales = (length**2, length, 1.0)
    return [
        mul(scales[order], value)
        for order, value in zip(moment_orders(mechanism), bodies, strict=True)
    ]


def _scaled(segment: JointSegment, length: float) -> JointSegment:
    return replace(
        segment,
        position=_rounded(segment.position / length),
        gravity=_rounded(segment.gravity / length),
    )


def _rounded(x: np.ndarray) -> np.ndarray:
    nearest = np.round(x)
    return np.where(np.abs(x - nearest) <= _EXACT * np.abs(x), nearest, x)


# The cheapest program of a function.

# Judgement on the time of the search, as are the two numbers below.
LONGEST_REDUCED = 6000
"""Steps beyond which a program is left as it was traced: the search takes too long."""

# Judgement: the cheapest as traced is usually, not always, the cheapest in the end.
UNITS_TRIED = 3
"""Of all units of length, how many are worked out to the end, for a short program."""

_SEARCHED = 1500
"""Steps searched in all, a few seconds' worth: longer programs get fewer starts."""


def customise(
    model: CodeModel, function: Function, tries: int = 8, seed: int = 0
) -> Program:
    """Trace a function for a model and save what operations can be saved.

    Args:
        model: The arm and which of its numbers are known.
        function: What to trace.
        tries: How hard to look: starts of the search for common terms.
        seed: Of its choices.
    """
    lengths = unit_lengths(model.mechanism, model.bodies) if function.bodies else [1.0]
    traced = [trace_function(model, function, length) for length in lengths]
    # Stable: among equals the order of the lengths decides, and results repeat.
    traced.sort(key=operations)
    steps = len(traced[0].steps)
    if steps > LONGEST_REDUCED:
        return traced[0]
    starts = max(1, min(tries, _SEARCHED // max(1, steps)))
    candidates = traced[: UNITS_TRIED if starts > 1 else 1]
    programs = [fewer_operations(program, starts, seed) for program in candidates]
    return min(programs, key=operations)


def trace_function(
    model: CodeModel, function: Function, length: float = 1.0
) -> Program:
    """Trace a function with lengths in units of `length` [m]."""
    mechanism = in_units(model.mechanism, length)
    equation = function.equation(model, mechanism)

    def bound(**arguments: list[Scalar]) -> dict[str, object]:
        opened = [key for key in ("body", "drive", "load") if key in arguments]
        values: dict[str, list[Scalar]] = {k: arguments.pop(k) for k in opened}
        bodies, drives = model.bound(values)
        if function.bodies:
            arguments["bodies"] = bodies_in_units(mechanism, bodies, length)
        if function.drives:
            arguments["drives"] = drives
        return equation(**arguments)

    return trace(
        function.name,
        bound,
        input_sizes(function, model.arm.dof),
        model.open_sizes(function.bodies, function.drives),
    )


# Operation counts beside those of other generators.

Counts = tuple[int, int]
"""Multiplications and additions."""

# As constants: the other generator need not be installed to compare with it.
SYMPYBOTICS: dict[str, tuple[Counts | None, Counts]] = {
    "puma560": ((503, 401), (431, 325)),
    "tx40": ((355, 294), (309, 238)),
    "ur5": ((517, 414), (444, 338)),
    "iiwa": ((415, 346), (361, 280)),
    "panda": (None, (314, 309)),
}
"""Inverse dynamics without drives: with all parameters, with base parameters.

For `panda` the second is the bar this project set itself.
"""


@dataclass(frozen=True)
class Comparison:
    """Inverse dynamics of one arm, multiplications and additions.

    Attributes:
        arm: Name of the bundled arm.
        theirs_all, theirs_base: SymPyBotics, all parameters and base parameters.
        ours_all, ours_base: Ours, with parameters open until run time.
        ours_customised: Ours with the bundled arm's own numbers in the code.
    """

    arm: str
    theirs_all: Counts | None
    theirs_base: Counts
    ours_all: Counts
    ours_base: Counts
    ours_customised: Counts

    @property
    def is_better(self) -> bool:
        """Whether ours needs fewer multiplications and fewer additions throughout."""
        pairs = [(self.ours_base, self.theirs_base)]
        if self.theirs_all is not None:
            pairs.append((self.ours_all, self.theirs_all))
        return all(a[0] <= b[0] and a[1] <= b[1] for a, b in pairs)


def compare(
    names: Sequence[str] = tuple(SYMPYBOTICS), tries: int = 4
) -> list[Comparison]:
    """Count the operations of inverse dynamics for arms others have published."""
    return [_compared(name, tries) for name in names]


def _compared(name: str, tries: int) -> Comparison:
    arm = load_arm(name)
    frame = arm.links[-1].name
    theirs_all, theirs_base = SYMPYBOTICS[name]
    models = (
        # Open parameters, as there: numbers that happen to be zero must not help us.
        CodeModel(arm, frame, "struct", is_grouped=False),
        CodeModel(arm, frame, "struct"),
        CodeModel(arm, frame),
    )
    counted: list[Counts] = []
    for model in models:
        counts = customise(model, RIGID, tries).counts
        counted.append((counts["multiplications"], counts["additions"]))
    return Comparison(name, theirs_all, theirs_base, *counted)
