"""State and parameters of a batch of simulated arms, and their traced dynamics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Mechanism, inverse_dynamics, mass_matrix, solve_mass_matrix
from armwise.errors import ArgumentError
from armwise.plants.drive import Friction, JointElasticity, drive_table
from armwise.programs import Program, trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


@dataclass
class State:
    """The truth about every arm of a batch, updated in place by its engine.

    Just before a new torque acts: q̈ and the torques are those of the torque still
    held, so that all of them satisfy the equations of motion together.

    Attributes:
        time: In [s].
        q, qd, qdd: Motion of the links.
        motor_q, motor_qd: Motion of the motors, seen at the joints; the links' own
            arrays where joints are rigid.
        tau: Motor torque in [N m], after the actuator's imperfections.
        link_tau: Torque that reaches the links: less rotor inertia and friction.
        diverged: Arms whose state left every reasonable bound.
    """

    time: float
    q: Float[np.ndarray, "batch dof"]
    qd: Float[np.ndarray, "batch dof"]
    qdd: Float[np.ndarray, "batch dof"]
    motor_q: Float[np.ndarray, "batch dof"]
    motor_qd: Float[np.ndarray, "batch dof"]
    tau: Float[np.ndarray, "batch dof"]
    link_tau: Float[np.ndarray, "batch dof"]
    diverged: Bool[np.ndarray, " batch"]

    @classmethod
    def at_rest(cls, batch: int, dof: int, has_motors: bool = False) -> State:
        """All zeros; motors of their own only where joints are elastic."""
        q, qd, qdd, tau, link_tau = (np.zeros((batch, dof)) for _ in range(5))
        motor_q = np.zeros((batch, dof)) if has_motors else q
        motor_qd = np.zeros((batch, dof)) if has_motors else qd
        diverged = np.zeros(batch, dtype=bool)
        return cls(0.0, q, qd, qdd, motor_q, motor_qd, tau, link_tau, diverged)


# Parameters of each arm of a batch.


@dataclass(frozen=True, eq=False)
class ArmNumbers:
    """Parameters as an engine takes them, one row per arm.

    Attributes:
        bodies: Grouped inertial parameters, then rotor inertias of coupled motors.
        drives: Six rows of numbers (DRIVE_ROWS) for all drives.
        springs: Stiffness, damping and half the play of the joints; None where they
            are rigid.
    """

    bodies: Float[np.ndarray, "batch groups"]
    drives: Float[np.ndarray, "batch 6 drives"]
    springs: Float[np.ndarray, "batch 3 dof"] | None

    @classmethod
    def of(
        cls,
        arms: Sequence[Arm],
        mechanism: Mechanism,
        friction: Friction,
        elasticity: JointElasticity | None,
    ) -> ArmNumbers:
        """Collect the numbers of arms that share a mechanism."""
        drives = np.stack([drive_table(arm, friction) for arm in arms])
        coupled = drives[:, 0, len(mechanism.coupling) :]
        grouped = np.stack([mechanism.grouped(arm.parameters) for arm in arms])
        bodies = np.ascontiguousarray(np.hstack([grouped, coupled]))
        springs = None
        if elasticity is not None:
            springs = _springs(arms, mechanism, elasticity)
        return cls(bodies, drives, springs)


def _springs(
    arms: Sequence[Arm], mechanism: Mechanism, elasticity: JointElasticity
) -> Float[np.ndarray, "batch 3 dof"]:
    if mechanism.is_coupled or len(mechanism.weights):
        raise ArgumentError(
            f"{arms[0].name} has joints or motors that are coupled; elastic joints "
            "need one motor for each joint."
        )
    for arm in arms:
        for joint in arm.joints:
            # A motor without inertia behind a spring would accelerate without bound.
            if joint.drive.rotor_inertia <= 0:
                raise ArgumentError(
                    f"{arm.name}: an elastic joint needs a motor with inertia, but "
                    f"{joint.name!r} has none. Set its rotor_inertia."
                )
    shape = (len(arms), mechanism.dof)
    half_play = 0.5 * np.asarray(elasticity.backlash, dtype=float)
    numbers = [elasticity.stiffness, elasticity.damping, half_play]
    return np.stack(
        [np.broadcast_to(np.asarray(x, float), shape) for x in numbers], axis=1
    )


# Traced programs: accelerations, and the mobility that friction needs.


def accelerate_program(mechanism: Mechanism) -> Program:
    """Trace q̈ of (M + diag(added) + coupled rotors) q̈ = τ − C q̇ − g.

    Inertial parameters (`bodies`, grouped) are inputs like the motion, so that every
    arm of a batch may have its own: it costs no operation more.
    """

    def function(
        q: Any, qd: Any, tau: Any, added: Any, **others: Any
    ) -> dict[str, object]:
        bodies = mechanism.bodies(others["bodies"])
        angles = mechanism.joints(q, is_position=True)
        speeds = mechanism.joints(qd)
        still = [0.0] * mechanism.skeleton.size
        load = inverse_dynamics(mechanism.skeleton, angles, speeds, still, bodies)
        carried = mechanism.coordinates(load)
        net = [t - c for t, c in zip(tau, carried, strict=True)]
        matrix = _effective_mass(
            mechanism, angles, bodies, added, others.get("coupled")
        )
        return {"qdd": solve_mass_matrix(matrix, net)}

    return _trace("accelerate", function, mechanism, ("q", "qd", "tau", "added"))


def mobility_program(mechanism: Mechanism) -> Program:
    """Trace the lower triangle, row by row, of (M + diag(added) + coupled rotors)⁻¹."""

    def function(q: Any, added: Any, **others: Any) -> dict[str, object]:
        bodies = mechanism.bodies(others["bodies"])
        angles = mechanism.joints(q, is_position=True)
        matrix = _effective_mass(
            mechanism, angles, bodies, added, others.get("coupled")
        )
        columns = []
        for k in range(mechanism.dof):
            unit = [0.0] * mechanism.dof
            unit[k] = 1.0
            columns.append(solve_mass_matrix(matrix, unit))
        return {
            # The inverse of a symmetric matrix is symmetric: one triangle is enough.
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


# Clock: steps of the plant and of the controller.


@dataclass(frozen=True)
class Clock:
    """Time in whole ticks of the plant.

    Attributes:
        tick: Step of the plant in [s].
        control_ticks: Ticks between two torques.
        delay_ticks: Ticks from a command to its torque.
    """

    tick: float
    control_ticks: int
    delay_ticks: int = 0

    @classmethod
    def from_rates(
        cls, control_rate_hz: float, plant_rate_hz: float, delay: float = 0.0
    ) -> Clock:
        """Fit a whole number of plant steps, at least at that rate, in each period.

        Args:
            control_rate_hz: Torques per second.
            plant_rate_hz: Steps of the plant per second, at least.
            delay: From command to torque in [s], rounded to a tick.
        """
        for name, rate in (("control", control_rate_hz), ("plant", plant_rate_hz)):
            if not (np.isfinite(rate) and rate > 0):
                raise ArgumentError(f"{name}_rate_hz must be positive, not {rate!r}.")
        # 1e-9: a quotient that is whole but for rounding needs no further tick.
        ticks = max(1, int(np.ceil(plant_rate_hz / control_rate_hz - 1e-9)))
        tick = 1.0 / (control_rate_hz * ticks)
        return cls(tick, ticks, round(delay / tick))

    @property
    def control_period(self) -> float:
        """Time between two torques in [s]."""
        return self.tick * self.control_ticks
