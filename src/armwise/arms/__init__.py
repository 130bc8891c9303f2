"""Arms: what they are made of, and the files that describe them."""

from armwise.arms.arm import (
    BASE,
    DRIVE_NAMES,
    Arm,
    Coupling,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Mimic,
)
from armwise.arms.inertia import INERTIAL_NAMES, InertialParameters, inertial_transform
from armwise.arms.library import bundled_arms
from armwise.arms.load import load_arm
from armwise.arms.save import save_arm
from armwise.arms.shapes import Shape

__all__ = [
    "BASE",
    "DRIVE_NAMES",
    "INERTIAL_NAMES",
    "Arm",
    "Coupling",
    "Drive",
    "Frame",
    "InertialParameters",
    "Joint",
    "Limits",
    "Link",
    "Mimic",
    "Shape",
    "bundled_arms",
    "inertial_transform",
    "load_arm",
    "save_arm",
]
