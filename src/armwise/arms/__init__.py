"""Arms: joints, links, parameters, and the files that describe them."""

from armwise.arms.arm import (
    Arm,
    Coupling,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Mimic,
    Shape,
)
from armwise.arms.chain import rest_positions, with_locked_joints
from armwise.arms.inertia import InertialParameters, inertial_transform
from armwise.arms.layout import BASE, DRIVE_NAMES, INERTIAL_NAMES, ParameterLayout
from armwise.arms.load import bundled_arms, load_arm
from armwise.arms.plain import arm_from_dict, arm_to_dict, kinematics_digest
from armwise.arms.poses import pose, rotation_about, rotation_from_rpy
from armwise.arms.readers.mjcf import body_name, compile_mjcf, read_geom
from armwise.arms.readers.urdf import read_shape
from armwise.arms.readers.xml import Element, read_xml
from armwise.arms.save import save_arm, simulator_file
from armwise.arms.writers.mjcf import (
    FRICTION_SOLVER,
    MjcfScene,
    joints_with_actuators,
    mjcf_text,
    quaternion,
)
from armwise.arms.writers.urdf import number, numbers
from armwise.arms.writers.xml_edit import Editor, quoteattr

__all__ = [
    "BASE",
    "DRIVE_NAMES",
    "FRICTION_SOLVER",
    "INERTIAL_NAMES",
    "Arm",
    "Coupling",
    "Drive",
    "Editor",
    "Element",
    "Frame",
    "InertialParameters",
    "Joint",
    "Limits",
    "Link",
    "Mimic",
    "MjcfScene",
    "ParameterLayout",
    "Shape",
    "arm_from_dict",
    "arm_to_dict",
    "body_name",
    "bundled_arms",
    "compile_mjcf",
    "inertial_transform",
    "joints_with_actuators",
    "kinematics_digest",
    "load_arm",
    "mjcf_text",
    "number",
    "numbers",
    "pose",
    "quaternion",
    "quoteattr",
    "read_geom",
    "read_shape",
    "read_xml",
    "rest_positions",
    "rotation_about",
    "rotation_from_rpy",
    "save_arm",
    "simulator_file",
    "with_locked_joints",
]
