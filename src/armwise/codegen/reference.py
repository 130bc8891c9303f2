"""What generated code must give: the same from `Dynamics`, on states within limits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.codegen.model import LOAD_SIZE, Model
from armwise.dynamics import Dynamics

if TYPE_CHECKING:
    from jaxtyping import Float


_FAST, _HARD = 2.0, 5.0
"""Speed in [rad/s] and acceleration in [rad/s²] where the arm's limits say nothing."""


@dataclass(frozen=True, eq=False)
class States:
    """States of an arm, one row each."""

    q: Float[np.ndarray, "states dof"]
    qd: Float[np.ndarray, "states dof"]
    qdd: Float[np.ndarray, "states dof"]
    tau: Float[np.ndarray, "states dof"]


def random_states(arm: Arm, count: int, seed: int) -> States:
    """Draw states within the arm's limits; a turn either way where there are none."""
    rng = np.random.default_rng(seed)
    lower, upper = arm.limits("lower"), arm.limits("upper")
    lower = np.where(np.isfinite(lower), lower, -np.pi)
    upper = np.where(np.isfinite(upper), upper, np.pi)
    speed, hard = arm.limits("velocity"), arm.limits("acceleration")
    speed = np.where(np.isfinite(speed), speed, _FAST)
    hard = np.where(np.isfinite(hard), hard, _HARD)
    size = (count, arm.dof)
    q = rng.uniform(lower, upper, size)
    qd, qdd = rng.uniform(-speed, speed, size), rng.uniform(-hard, hard, size)
    return States(q, qd, qdd, rng.uniform(-1.0, 1.0, size))


def reference_arm(model: Model, load: np.ndarray | None = None) -> Arm:
    """Return the arm that generated code is about: pruned, and with its load.

    Args:
        model: The model.
        load: Ten parameters in the frame of the model's place, if it takes a load.
    """
    arm = model.arm
    vector = np.array(arm.parameters, dtype=float)
    K = model.mechanism.group_matrix
    if model.pruned:
        missing = np.array(model.bodies) - model.mechanism.grouped(arm.parameters)
        vector[arm.layout.links] += np.linalg.lstsq(K, missing, rcond=None)[0]
    if load is not None:
        link, T = arm.place(model.place)
        share = InertialParameters(load).transformed(T).vector
        vector[arm.layout.link(link)] += share
    return arm.with_parameters(vector)


def random_load(seed: int) -> Float[np.ndarray, " 10"]:
    """Return the ten parameters of some solid box, to test with."""
    rng = np.random.default_rng(seed)
    size = rng.uniform(0.05, 0.2, 3)
    mass = float(rng.uniform(0.5, 2.0))
    central = np.diag(mass / 12 * (size @ size - size**2))
    at = rng.uniform(-0.1, 0.1, 3)
    load = InertialParameters.from_center_of_mass(mass, at, central).vector
    assert load.size == LOAD_SIZE
    return load


def reference_values(
    name: str, arm: Arm, place: str, states: States
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return what a function takes and must give, arrays by name, states first."""
    dynamics = Dynamics(arm)
    q, qd, qdd, tau = states.q, states.qd, states.qdd, states.tau
    rest = np.zeros_like(q)
    match name:
        case "inverse_dynamics":
            given = {"q": q, "qd": qd, "qdd": qdd}
            return given, {"tau": dynamics.inverse_dynamics(q, qd, qdd)}
        case "mass_matrix":
            return {"q": q}, {"M": dynamics.mass_matrix(q)}
        case "gravity_torque":
            return {"q": q}, {"tau": dynamics.gravity_torque(q)}
        case "mass_matrix_and_gravity":
            both = {"M": dynamics.mass_matrix(q), "g": dynamics.gravity_torque(q)}
            return {"q": q}, both
        case "velocity_torque":
            return {"q": q, "qd": qd}, {"tau": dynamics.velocity_torque(q, qd)}
        case "friction":
            return {"qd": qd}, {"tau": friction_torque(arm, qd)}
        case "synchronous_torque":
            M = dynamics.mass_matrix(q)
            h = dynamics.velocity_torque(q, qd) + dynamics.gravity_torque(q)
            torque = (M @ qdd[..., None])[..., 0] + h + friction_torque(arm, qd)
            return {"M": M, "h": h, "qd": qd, "qdd": qdd}, {"tau": torque}
        case "forward_dynamics":
            rest_torque = dynamics.inverse_dynamics(q, qd, rest)
            push = rest_torque + tau
            result = {"qdd": dynamics.forward_dynamics(q, qd, push)}
            return {"q": q, "qd": qd, "tau": push}, result
        case "link_pose":
            return {"q": q}, {"pose": dynamics.link_pose(q, place)}
        case "jacobian":
            return {"q": q}, {"jacobian": dynamics.jacobian(q, place)}
        case "regressor":
            given = {"q": q, "qd": qd, "qdd": qdd}
            return given, {"Y": dynamics.regressor(q, qd, qdd)}
    given = {"q": q, "qd": qd, "qdr": 0.5 * qd[::-1], "qddr": qdd}
    return given, {"Y": dynamics.slotine_li_regressor(*given.values())}


def friction_torque(arm: Arm, qd: np.ndarray) -> np.ndarray:
    """Friction alone: inverse dynamics of the drives, without any link."""
    vector = np.array(arm.parameters, dtype=float)
    vector[arm.layout.links] = 0.0
    bare = replace(arm, gravity=np.zeros(3)).with_parameters(vector)
    rest = np.zeros_like(qd)
    return Dynamics(bare).inverse_dynamics(rest, qd, rest)
