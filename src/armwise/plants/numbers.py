"""The numbers that make each arm of a batch what it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Mechanism
from armwise.errors import ArgumentError
from armwise.plants.elasticity import JointElasticity
from armwise.plants.friction import Friction, drive_table

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class ArmNumbers:
    """Parameters as an engine takes them, one row per arm.

    Attributes:
        bodies: Grouped inertial parameters, then rotor inertias of coupled motors.
        drives: Six rows of numbers (DRIVE_ROWS) for all drives.
        springs: Stiffness and damping of the joints; None where they are rigid.
    """

    bodies: Float[np.ndarray, "batch groups"]
    drives: Float[np.ndarray, "batch 6 drives"]
    springs: Float[np.ndarray, "batch 2 dof"] | None

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
) -> Float[np.ndarray, "batch 2 dof"]:
    if mechanism.is_coupled or len(mechanism.weights):
        raise ArgumentError(
            f"{arms[0].name} has joints or motors that are coupled; elastic joints "
            "need one motor for each joint."
        )
    for arm in arms:
        for joint in arm.joints:
            if joint.drive.rotor_inertia <= 0:
                raise ArgumentError(
                    f"{arm.name}: an elastic joint needs a motor with inertia, but "
                    f"{joint.name!r} has none. Set its rotor_inertia."
                )
    shape = (len(arms), mechanism.dof)
    pair = [elasticity.stiffness, elasticity.damping]
    return np.stack(
        [np.broadcast_to(np.asarray(x, float), shape) for x in pair], axis=1
    )
