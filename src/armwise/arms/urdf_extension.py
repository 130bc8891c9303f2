"""What URDF has no word for, kept in <armwise> elements that other readers pass over.

<robot> <armwise gravity="0 0 -9.80665">
          <coupling name="motor_6" rotor_inertia="" viscous="" coulomb="" offset="">
            <weight joint="joint_5" value="1"/> </coupling> </armwise>
<joint> <armwise rotor_inertia="0.1" offset="0.02"/>        a drive's other half
<joint type="fixed"> <armwise_anchor/>      its child's frame is the link frame
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.arms.arm import DRIVE_NAMES, Arm, Drive
from armwise.arms.xml import Element
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

EXTENSION = "armwise"
ANCHOR = "armwise_anchor"
GRAVITY = (0.0, 0.0, -9.81)
"""[m/s²], what every URDF reader assumes."""


def read_gravity(robot: Element) -> Float[np.ndarray, " 3"]:
    """Return the gravity a file gives, or the usual one."""
    ours = robot.find(EXTENSION)
    return np.array(ours.vector("gravity", GRAVITY) if ours else GRAVITY)


def read_couplings(robot: Element, arm: Arm) -> Arm:
    """Return the arm with the couplings a file gives."""
    ours = robot.find(EXTENSION)
    for coupling in ours.all("coupling") if ours else ():
        weights = {w.text("joint"): w.number("value") for w in coupling.all("weight")}
        drive = Drive(*(coupling.number(name, 0.0) for name in DRIVE_NAMES))
        try:
            arm = arm.with_coupling(coupling.text("name"), weights, drive)
        except ArgumentError as problem:
            raise coupling.error(f"names an unknown joint: {problem}") from None
    return arm
