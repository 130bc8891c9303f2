"""Equations of motion of a mechanism, ready to trace.

Coordinates in, generalised torques out; parameters are inputs that stay the same for a
whole call: `bodies` (grouped internal inertial parameters), `drives` (four per motor)
and `links` (ten internal parameters per link, where grouping would lose something).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.dynamics import compound, inverse, kinematics, newton_euler
from armwise.dynamics.compound import solve_mass_matrix
from armwise.dynamics.newton_euler import drive_columns
from armwise.dynamics.vectors import Scalar, add, mul, sub, total, weigh
from armwise.programs import Program, trace

if TYPE_CHECKING:
    from armwise.dynamics.mechanism import Mechanism

Scalars = Sequence[Scalar]


@dataclass(frozen=True)
class Equation:
    """An equation: what varies, what it is given once, and how it goes."""

    inputs: tuple[str, ...]
    uniforms: tuple[str, ...]
    function: Callable[..., dict[str, object]] = field(repr=False)


def trace_equation(mechanism: Mechanism, name: str, equation: Equation) -> Program:
    """Trace an equation for a mechanism."""
    sizes = {
        "bodies": len(mechanism.grouping.indices),
        "drives": mechanism.layout.drive_size,
        "links": mechanism.layout.link_size,
        "direction": len(mechanism.drive_rows),
    }
    return trace(
        name,
        equation.function,
        {key: sizes.get(key, mechanism.dof) for key in equation.inputs},
        {key: sizes[key] for key in equation.uniforms},
    )


def equations(mechanism: Mechanism) -> dict[str, Equation]:
    """Return the equations of a mechanism by name."""
    terms = _Terms(mechanism)
    bodies, drives = ("bodies",), ("bodies", "drives")
    return {
        "inverse_dynamics": Equation(
            ("q", "qd", "qdd"), drives, terms.inverse_dynamics
        ),
        "mass_matrix": Equation(("q",), drives, terms.mass_matrix),
        "gravity_torque": Equation(("q",), bodies, terms.gravity_torque),
        "velocity_torque": Equation(("q", "qd"), bodies, terms.velocity_torque),
        "coriolis_matrix": Equation(("q", "qd"), bodies, terms.coriolis_matrix),
        "forward_dynamics": Equation(
            ("q", "qd", "tau"), drives, terms.forward_dynamics
        ),
        "kinetic_energy": Equation(("q", "qd"), drives, terms.kinetic_energy),
        "potential_energy": Equation(("q",), ("links",), terms.potential_energy),
        "regressor": Equation(("q", "qd", "qdd"), (), terms.regressor),
        "grouped_regressor": Equation(("q", "qd", "qdd"), (), terms.grouped_regressor),
        "grouped_rows": Equation(("q", "qd", "qdd", "tau"), (), terms.grouped_rows),
        "directed_rows": Equation(
            ("q", "qd", "qdd", "tau", "direction"), (), terms.directed_rows
        ),
        "slotine_li_regressor": Equation(
            ("q", "qd", "qdr", "qddr"), (), terms.slotine_li_regressor
        ),
        "momentum_regressor": Equation(("q", "qd"), (), terms.momentum_regressor),
        "kinetic_gradient_regressor": Equation(
            ("q", "qd"), (), terms.kinetic_gradient_regressor
        ),
    }


def frame_equations(
    mechanism: Mechanism, link: int, T: np.ndarray
) -> dict[str, Equation]:
    """Return the equations of a frame on a link: T maps it to the user's link frame."""
    skeleton = mechanism.skeleton

    def pose(q: Sequence[Scalar]) -> dict[str, object]:
        if link < 0:
            return {"pose": kinematics.pose_matrix(kinematics.constant_pose(T))}
        carrier = kinematics.link_poses(skeleton, mechanism.joints(q, is_position=True))
        inner = skeleton.segments[link].from_user @ T
        return {
            "pose": kinematics.pose_matrix(kinematics.place_pose(carrier[link], inner))
        }

    def jacobian(q: Sequence[Scalar]) -> dict[str, object]:
        inner = T if link < 0 else skeleton.segments[link].from_user @ T
        angles = mechanism.joints(q, is_position=True)
        rows = kinematics.jacobian(skeleton, angles, link, inner)
        return {"jacobian": [mechanism.coordinates(row) for row in rows]}

    return {
        "link_pose": Equation(("q",), (), pose),
        "jacobian": Equation(("q",), (), jacobian),
    }


class _Terms:
    """The equations themselves, as methods that take lists of scalars."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.skeleton = mechanism.skeleton

    def inverse_dynamics(
        self, q: Scalars, qd: Scalars, qdd: Scalars, bodies: Scalars, drives: Scalars
    ) -> Any:
        m = self.mechanism
        torques = inverse.inverse_dynamics(
            self.skeleton, m.joints(q, True), m.joints(qd), m.joints(qdd),
            m.bodies(bodies),
        )  # fmt: skip
        return {
            "tau": _sum(m.coordinates(torques), self._drive_torques(qd, qdd, drives))
        }

    def velocity_torque(self, q: Scalars, qd: Scalars, bodies: Scalars) -> Any:
        return {"tau": self._velocity(q, qd, qd, bodies)}

    def coriolis_matrix(self, q: Scalars, qd: Scalars, bodies: Scalars) -> Any:
        columns = []
        for k in range(self.mechanism.dof):
            unit = [0.0] * self.mechanism.dof
            unit[k] = 1.0
            # C(q, q̇) q̇r is linear in q̇r: unit vectors give the columns.
            columns.append(self._velocity(q, qd, unit, bodies))
        return {"C": [list(row) for row in zip(*columns, strict=True)]}

    def _velocity(self, q: Scalars, qd: Scalars, qdr: Scalars, bodies: Scalars) -> Any:
        m = self.mechanism
        velocity = m.joints(qd)
        torques = inverse.inverse_dynamics(
            self.skeleton, m.joints(q, True), velocity, [0.0] * self.skeleton.size,
            m.bodies(bodies), velocity if qdr is qd else m.joints(qdr),
            with_gravity=False,
        )  # fmt: skip
        return m.coordinates(torques)

    def gravity_torque(self, q: Scalars, bodies: Scalars) -> Any:
        m = self.mechanism
        torques = compound.gravity_torque(
            self.skeleton, m.joints(q, True), m.bodies(bodies)
        )
        return {"tau": m.coordinates(torques)}

    def mass_matrix(self, q: Scalars, bodies: Scalars, drives: Scalars) -> Any:
        m = self.mechanism
        matrix = compound.mass_matrix(
            self.skeleton, m.joints(q, True), m.bodies(bodies)
        )
        # Cᵀ M C in two passes: rows, then columns, through the coupling.
        half = [m.coordinates(row) for row in matrix]
        full = [m.coordinates(column) for column in zip(*half, strict=True)]
        rotors = self._rotor_inertia(drives)
        return {"M": [_sum(a, b) for a, b in zip(full, rotors, strict=True)]}

    def forward_dynamics(
        self, q: Scalars, qd: Scalars, tau: Scalars, bodies: Scalars, drives: Scalars
    ) -> Any:
        unaccelerated = [0.0] * self.mechanism.dof
        # Inverse dynamics at q̈ = 0 is everything but M q̈.
        load = self.inverse_dynamics(q, qd, unaccelerated, bodies, drives)["tau"]
        matrix = self.mass_matrix(q, bodies, drives)["M"]
        net = [sub(a, b) for a, b in zip(tau, load, strict=True)]
        return {"qdd": solve_mass_matrix(matrix, net)}

    def kinetic_energy(
        self, q: Scalars, qd: Scalars, bodies: Scalars, drives: Scalars
    ) -> Any:
        m = self.mechanism
        links = kinematics.kinetic_energy(
            self.skeleton, m.joints(q, True), m.joints(qd), m.bodies(bodies)
        )
        rotors = [
            mul(0.5, mul(drives[k], mul(speed, speed)))
            for k, speed in zip(self._rotors, self._motor_speeds(qd), strict=True)
        ]
        return {"energy": total(links, *rotors)}

    def potential_energy(self, q: Scalars, links: Scalars) -> Any:
        tens = [links[self.mechanism.layout.link(i)] for i in range(self.skeleton.size)]
        angles = self.mechanism.joints(q, True)
        return {"energy": kinematics.potential_energy(self.skeleton, angles, tens)}

    def regressor(self, q: Scalars, qd: Scalars, qdd: Scalars) -> Any:
        m = self.mechanism
        rows = newton_euler.torque_regressor(
            self.skeleton, m.joints(q, True), m.joints(qd), m.joints(qdd)
        )
        return {"Y": self._user_rows(rows, self._drive_columns(qd, qd, qdd))}

    def grouped_regressor(self, q: Scalars, qd: Scalars, qdd: Scalars) -> Any:
        m = self.mechanism
        rows = newton_euler.torque_regressor(
            self.skeleton, m.joints(q, True), m.joints(qd), m.joints(qdd)
        )
        flat = [list(chain.from_iterable(row)) for row in rows]
        columns = [m.coordinates([row[p] for row in flat]) for p in m.grouping.indices]
        columns += self._drive_columns(qd, qd, qdd)
        return {"Y": [list(row) for row in zip(*columns, strict=True)]}

    def grouped_rows(self, q: Scalars, qd: Scalars, qdd: Scalars, tau: Scalars) -> Any:
        rows = self.grouped_regressor(q, qd, qdd)["Y"]
        # The torque as a last column: one QR then holds the regressor, the right side
        # and the residual.
        return {"rows": [[*row, t] for row, t in zip(rows, tau, strict=True)]}

    def directed_rows(
        self, q: Scalars, qd: Scalars, qdd: Scalars, tau: Scalars, direction: Scalars
    ) -> Any:
        """Grouped rows whose Coulomb columns are given: sign(q̇) seen by a filter."""
        rows = self.grouped_rows(q, qd, qdd, tau)["rows"]
        m = self.mechanism
        coulomb = m.layout.drive("coulomb", start=len(m.grouping.indices))
        for k, weights in enumerate(m.drive_rows):
            for row, weight in zip(rows, weights, strict=True):
                row[coulomb[k]] = mul(float(weight), direction[k])
        return {"rows": rows}

    def slotine_li_regressor(
        self, q: Scalars, qd: Scalars, qdr: Scalars, qddr: Scalars
    ) -> Any:
        m = self.mechanism
        rows = newton_euler.torque_regressor(
            self.skeleton, m.joints(q, True), m.joints(qd), m.joints(qddr),
            m.joints(qdr),
        )  # fmt: skip
        return {"Y": self._user_rows(rows, self._drive_columns(qd, qdr, qddr))}

    def momentum_regressor(self, q: Scalars, qd: Scalars) -> Any:
        m = self.mechanism
        rows = newton_euler.momentum_regressor(
            self.skeleton, m.joints(q, True), m.joints(qd)
        )
        drives = self._drive_columns([0.0] * m.dof, [0.0] * m.dof, qd)
        # Friction is switched off by zero velocities, an offset only by hand.
        for k in m.layout.drive("offset", start=0):
            drives[k] = [0.0] * m.dof  # a constant torque has no momentum
        return {"Y": self._user_rows(rows, drives)}

    def kinetic_gradient_regressor(self, q: Scalars, qd: Scalars) -> Any:
        m = self.mechanism
        rows = newton_euler.kinetic_gradient_regressor(
            self.skeleton, m.joints(q, True), m.joints(qd)
        )
        nothing = [[0.0] * m.dof for _ in range(m.layout.drive_size)]
        return {"Y": self._user_rows(rows, nothing)}

    def _user_rows(self, rows: newton_euler.Rows, drives: Sequence[Scalars]) -> Any:
        """Turn internal columns into the user's: ten per link, then the drives."""
        m = self.mechanism
        columns = []
        for j, block in enumerate(m.to_internal):
            for user in block.T:
                column = [
                    total(
                        *[mul(float(w), y) for w, y in zip(user, row[j], strict=True)]
                    )
                    for row in rows
                ]
                columns.append(m.coordinates(column))
        return [list(row) for row in zip(*columns, *drives, strict=True)]

    @property
    def _rotors(self) -> Any:
        return self.mechanism.layout.drive("rotor_inertia", start=0)

    def _motor_speeds(self, qd: Scalars) -> Any:
        return [weigh(row, qd) for row in self.mechanism.drive_rows]

    def _drive_columns(self, qd: Scalars, qdr: Scalars, qdd: Scalars) -> Any:
        return drive_columns(self.mechanism.drive_rows, qd, qdr, qdd)

    def _drive_torques(self, qd: Scalars, qdd: Scalars, drives: Scalars) -> Any:
        columns = self._drive_columns(qd, qd, qdd)
        rows = zip(*columns, strict=True)
        return [
            total(*[mul(c, d) for c, d in zip(r, drives, strict=True)]) for r in rows
        ]

    def _rotor_inertia(self, drives: Scalars) -> Any:
        dof = self.mechanism.dof
        matrix = [[0.0] * dof for _ in range(dof)]
        for k, row in zip(self._rotors, self.mechanism.drive_rows, strict=True):
            for i in range(dof):
                for j in range(dof):
                    weight = float(row[i] * row[j])
                    matrix[i][j] = add(matrix[i][j], mul(weight, drives[k]))
        return matrix


def _sum(a: Sequence[Scalar], b: Sequence[Scalar]) -> list[Scalar]:
    return [add(x, y) for x, y in zip(a, b, strict=True)]
