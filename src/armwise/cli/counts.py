"""Operation counts of an arm's traced programs, beside published ones."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armwise.arms import Arm
    from armwise.dynamics import Mechanism
    from armwise.programs import Program, Scalar

FUNCTIONS = (
    "inverse_dynamics",
    "mass_matrix",
    "gravity_torque",
    "velocity_torque",
    "forward_dynamics",
    "regressor",
)

RIGID = "inverse_dynamics_without_drives"

PUBLISHED = {
    "puma560": (431, 325),
    "iiwa": (361, 280),
    "panda": (314, 309),
    "tx40": (309, 238),
    "ur5": (444, 338),
}
"""SymPyBotics, inverse dynamics with base parameters: multiplications, additions."""


def operation_counts(arm: Arm) -> dict[str, Any]:
    """Count the operations of each function, and name what others publish."""
    from armwise.dynamics import Dynamics

    dynamics = Dynamics(arm, backend="numpy")
    found: dict[str, Any] = {
        RIGID: dict(_without_drives(dynamics.mechanism).counts),
        **{name: dict(dynamics.program(name).counts) for name in FUNCTIONS},
    }
    if arm.name in PUBLISHED:
        multiplications, additions = PUBLISHED[arm.name]
        found[RIGID]["sympybotics"] = {
            "multiplications": multiplications,
            "additions": additions,
        }
    return found


def _without_drives(mechanism: Mechanism) -> Program:
    """Trace inverse dynamics without rotors and friction: what others count."""
    from armwise.dynamics.equations import equations, trace_equation

    whole = equations(mechanism)["inverse_dynamics"]

    def bare(
        q: Sequence[Scalar],
        qd: Sequence[Scalar],
        qdd: Sequence[Scalar],
        bodies: Sequence[Scalar],
    ) -> dict[str, object]:
        none = [0.0] * (4 * len(mechanism.drive_rows))
        return whole.function(q=q, qd=qd, qdd=qdd, bodies=bodies, drives=none)

    return trace_equation(
        mechanism, RIGID, replace(whole, uniforms=("bodies",), function=bare)
    )
