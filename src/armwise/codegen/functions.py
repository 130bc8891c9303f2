"""The functions that can be generated: what each takes, gives and means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from armwise.codegen.model import Model
from armwise.dynamics import (
    Mechanism,
    Scalar,
    add,
    drive_columns,
    equations,
    mul,
    place_equations,
    total,
)

Traced = Callable[..., dict[str, object]]
"""Takes lists of scalars by name, bodies and drives among them; gives named lists."""

Maker = Callable[[Model, Mechanism], Traced]
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
    "pose": "T_base_place, row by row, 4 x 4 [m]",
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


def _known(name: str) -> Maker:
    def make(model: Model, mechanism: Mechanism) -> Traced:
        return equations(mechanism)[name].function

    return make


def _placed(name: str) -> Maker:
    def make(model: Model, mechanism: Mechanism) -> Traced:
        link, T = model.arm.place(model.place)
        return place_equations(mechanism, link, T)[name].function

    return make


def _mass_matrix_and_gravity(model: Model, mechanism: Mechanism) -> Traced:
    known = equations(mechanism)

    def function(
        q: Sequence[Scalar], bodies: Sequence[Scalar], drives: Sequence[Scalar]
    ) -> dict[str, object]:
        matrix = known["mass_matrix"].function(q=q, bodies=bodies, drives=drives)
        gravity = known["gravity_torque"].function(q=q, bodies=bodies)
        return {"M": matrix["M"], "g": gravity["tau"]}

    return function


def _rigid_inverse_dynamics(model: Model, mechanism: Mechanism) -> Traced:
    whole = equations(mechanism)["inverse_dynamics"].function
    none = [0.0] * mechanism.layout.drive_size

    def function(
        bodies: Sequence[Scalar], **motion: Sequence[Scalar]
    ) -> dict[str, object]:
        return whole(bodies=bodies, drives=none, **motion)

    return function


def _friction(model: Model, mechanism: Mechanism) -> Traced:
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


def _synchronous_torque(model: Model, mechanism: Mechanism) -> Traced:
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
             ("q", "qd", "qdd"), True, True, _known("inverse_dynamics")),
    Function("mass_matrix", "mass matrix, rotor inertias included",
             ("q",), True, True, _known("mass_matrix")),
    Function("gravity_torque", "torque that holds the arm against gravity",
             ("q",), True, False, _known("gravity_torque")),
    Function("mass_matrix_and_gravity", "mass matrix and gravity in one go",
             ("q",), True, True, _mass_matrix_and_gravity),
    Function("velocity_torque", "Coriolis and centrifugal torque",
             ("q", "qd"), True, False, _known("velocity_torque")),
    Function("friction", "viscous and Coulomb friction and offsets of the drives",
             ("qd",), False, True, _friction),
    Function("synchronous_torque", "M qdd + h + friction, with M and h given",
             ("M", "h", "qd", "qdd"), False, True, _synchronous_torque),
    Function("forward_dynamics", "acceleration under a torque, friction included",
             ("q", "qd", "tau"), True, True, _known("forward_dynamics")),
    Function("link_pose", "pose of a place on the arm in the base frame",
             ("q",), False, False, _placed("link_pose")),
    Function("jacobian", "Jacobian of a place on the arm",
             ("q",), False, False, _placed("jacobian")),
    Function("regressor", "Y with Y times the arm's parameters = inverse dynamics",
             ("q", "qd", "qdd"), False, False, _known("regressor")),
    Function("slotine_li_regressor", "Y p = M qddr + C(q, qd) qdr + g + friction",
             ("q", "qd", "qdr", "qddr"), False, False, _known("slotine_li_regressor")),
)  # fmt: skip

RIGID = Function(
    "rigid_inverse_dynamics", "inverse dynamics without rotors, friction and offsets",
    ("q", "qd", "qdd"), True, False, _rigid_inverse_dynamics,
)  # fmt: skip
"""What other generators count: the links alone."""

FUNCTIONS: Mapping[str, Function] = {item.name: item for item in _LIST}
"""Every function by name."""

__all__ = ["FUNCTIONS", "RIGID", "UNITS", "Function", "friction_torques", "input_sizes"]
