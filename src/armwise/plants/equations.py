"""The two traced programs that every simulated arm runs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from armwise.dynamics import Mechanism
from armwise.dynamics.compound import mass_matrix
from armwise.dynamics.forward import solve_mass_matrix
from armwise.dynamics.inverse import inverse_dynamics
from armwise.programs import Program, trace


def accelerate_program(mechanism: Mechanism) -> Program:
    """Trace q̈ of (M + diag(added) + coupled rotors) q̈ = τ − C q̇ − g.

    Inertial parameters (`bodies`, grouped) are inputs like the motion, so that every
    arm of a batch may have its own: it costs no operation more.
    """

    def function(
        q: Any, qd: Any, tau: Any, added: Any, **rest: Any
    ) -> dict[str, object]:
        bodies = mechanism.bodies(rest["bodies"])
        angles = mechanism.joints(q, is_position=True)
        speeds = mechanism.joints(qd)
        still = [0.0] * mechanism.skeleton.size
        load = inverse_dynamics(mechanism.skeleton, angles, speeds, still, bodies)
        carried = mechanism.coordinates(load)
        net = [t - c for t, c in zip(tau, carried, strict=True)]
        matrix = _effective_mass(mechanism, angles, bodies, added, rest.get("coupled"))
        return {"qdd": solve_mass_matrix(matrix, net)}

    return _trace("accelerate", function, mechanism, ("q", "qd", "tau", "added"))


def mobility_program(mechanism: Mechanism) -> Program:
    """Trace the lower triangle, row by row, of (M + diag(added) + coupled rotors)⁻¹."""

    def function(q: Any, added: Any, **rest: Any) -> dict[str, object]:
        bodies = mechanism.bodies(rest["bodies"])
        angles = mechanism.joints(q, is_position=True)
        matrix = _effective_mass(mechanism, angles, bodies, added, rest.get("coupled"))
        columns = []
        for k in range(mechanism.dof):
            unit = [0.0] * mechanism.dof
            unit[k] = 1.0
            columns.append(solve_mass_matrix(matrix, unit))
        return {
            "W": [columns[j][i] for i in range(mechanism.dof) for j in range(i + 1)]
        }

    return _trace("mobility", function, mechanism, ("q", "added"))


def _trace(
    name: str, function: Any, mechanism: Mechanism, inputs: Sequence[str]
) -> Program:
    sizes = dict.fromkeys(inputs, mechanism.dof)
    sizes["bodies"] = len(mechanism.grouping.indices)
    if len(mechanism.weights):
        sizes["coupled"] = len(mechanism.weights)
    return trace(name, function, sizes)


def _effective_mass(
    mechanism: Mechanism, angles: Any, bodies: Any, added: Any, coupled: Any
) -> list[list[Any]]:
    """M of the coordinates, with what is added to its diagonal and coupled rotors."""
    joints = mass_matrix(mechanism.skeleton, angles, bodies)
    half = [mechanism.coordinates(row) for row in joints]
    matrix = [mechanism.coordinates(column) for column in zip(*half, strict=True)]
    for i, extra in enumerate(added):
        matrix[i][i] = matrix[i][i] + extra
    for k, row in enumerate(mechanism.weights):
        for i in range(mechanism.dof):
            for j in range(mechanism.dof):
                weight = float(row[i] * row[j])
                if weight:
                    matrix[i][j] = matrix[i][j] + coupled[k] * weight
    return matrix
