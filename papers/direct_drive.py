"""The MIT Serial Link Direct Drive Arm as the experiments on it need it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Drive, load_arm

if TYPE_CHECKING:
    from jaxtyping import Float

FRICTION = Drive(viscous=0.6, coulomb=2.5)
"""Bearing friction and motor losses of joint 3, ours: they dominate its light link. For
the other two "friction is negligible" (App. A)."""

INERTIA = np.array([13.0, 1.2, 0.4])
"""Rough inertias seen by the joints in [kg m²], for choosing gains."""


def direct_drive_arm(has_friction: bool = True) -> Arm:
    """`ddarm` (CAD parameters) with friction in joint 3: what is simulated."""
    arm = load_arm("ddarm")
    *others, last = arm.joints
    if has_friction:
        last = replace(last, drive=FRICTION)
    return replace(arm, joints=(*others, last))


def believed_arm(error: float, seed: int = 0, third_link: float = 1.0) -> Arm:
    """`ddarm` as a controller believes it: no friction, every parameter off by ±error.

    Args:
        error: Relative error of every parameter; its sign is drawn.
        seed: Of the signs.
        third_link: Factor on all that is known of link 3.
    """
    arm = load_arm("ddarm")
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=arm.parameters.size)
    parameters = arm.parameters * (1.0 + error * signs)
    parameters[20:30] *= third_link
    return arm.with_parameters(parameters)


def gains(
    natural: Float[np.ndarray, " 3"], damping: float
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, " 3"]]:
    """K_p and K_d for natural frequencies [rad/s] and a damping ratio."""
    return INERTIA * natural**2, 2.0 * damping * INERTIA * natural
