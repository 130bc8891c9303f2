"""Servo arms: what moves a joint from its command to its position."""

from armwise.servos.free_runs import FreeRunErrors
from armwise.servos.identify import identify_servo, validated_on_fit
from armwise.servos.lerobot import is_lerobot, read_lerobot
from armwise.servos.load import ServoLoad, identify_servo_load, write_servo_load
from armwise.servos.mjcf import set_points, touched, write_servo_mjcf
from armwise.servos.model import CORE, ELEMENTS, PARAMETERS, ServoParameter
from armwise.servos.motions import require_same_mechanism
from armwise.servos.rollout import ServoMotion
from armwise.servos.servo import (
    EXAMPLE,
    Servo,
    ServoElement,
    ServoScatter,
    read_servo,
    servo_to_dict,
    write_servo,
)

__all__ = [
    "CORE",
    "ELEMENTS",
    "EXAMPLE",
    "PARAMETERS",
    "FreeRunErrors",
    "Servo",
    "ServoElement",
    "ServoLoad",
    "ServoMotion",
    "ServoParameter",
    "ServoScatter",
    "identify_servo",
    "identify_servo_load",
    "is_lerobot",
    "read_lerobot",
    "read_servo",
    "require_same_mechanism",
    "servo_to_dict",
    "set_points",
    "touched",
    "validated_on_fit",
    "write_servo",
    "write_servo_load",
    "write_servo_mjcf",
]
