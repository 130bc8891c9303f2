"""The MIT Serial Link Direct Drive Arm as the experiments on it need it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Drive, load_arm

if TYPE_CHECKING:
    from jaxtyping import Float

FRICTION = (Drive(viscous=0.5, coulomb=1.0), Drive(viscous=0.3, coulomb=0.8))
"""Small bearing friction of joints 1 and 2; the thesis calls it negligible."""

FRICTION_3 = Drive(viscous=0.6, coulomb=2.5)
"""Joint 3: light link, dominant bearing friction and motor losses."""

INERTIA = np.array([13.0, 1.2, 0.4])
"""Rough inertias seen by the joints in [kg m²], for choosing gains."""


def direct_drive_arm(third_joint_friction: bool = True) -> Arm:
    """`ddarm` (CAD parameters) with bearing friction: what is simulated."""
    arm = load_arm("ddarm")
    last = FRICTION_3 if third_joint_friction else Drive()
    joints = tuple(
        replace(joint, drive=drive)
        for joint, drive in zip(arm.joints, (*FRICTION, last), strict=True)
    )
    return replace(arm, joints=joints)


def believed_arm(error: float, seed: int = 0) -> Arm:
    """`ddarm` as a controller believes it: no friction, every parameter off by ±error.

    Args:
        error: Relative error of every parameter; its sign is drawn.
        seed: Of the signs.
    """
    arm = load_arm("ddarm")
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=arm.parameters.size)
    return arm.with_parameters(arm.parameters * (1.0 + error * signs))


def gains(
    natural: Float[np.ndarray, " 3"], damping: float
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
    """K_p and K_d for natural frequencies [rad/s] and a damping ratio."""
    return INERTIA * natural**2, 2.0 * damping * INERTIA * natural
