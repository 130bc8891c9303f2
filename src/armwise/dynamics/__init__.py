"""Dynamics: the equations of motion, written once and traced for each arm."""

from armwise.dynamics.articulated import ArticulatedInertias, Sweep
from armwise.dynamics.base import (
    BaseParameters,
    base_parameters,
    grouped_to_user,
    structural_factor,
)
from armwise.dynamics.compound import mass_matrix, solve_mass_matrix
from armwise.dynamics.dynamics import Dynamics
from armwise.dynamics.equations import equations, frame_equations, trace_equation
from armwise.dynamics.inverse import inverse_dynamics
from armwise.dynamics.kinematics import (
    constant_pose,
    link_poses,
    moment_rates,
    place_pose,
    potential_energy,
)
from armwise.dynamics.mechanism import (
    UNSEEN,
    Grouping,
    Mechanism,
    mechanism_of,
    successive_ranks,
)
from armwise.dynamics.newton_euler import (
    LinkMotion,
    accelerations,
    body_motion,
    cross_joints,
    drive_columns,
    link_wrench,
)
from armwise.dynamics.skeleton import JointSegment, Skeleton
from armwise.dynamics.vectors import ZERO, Scalar, Vector, add, mul, total, vsub
from armwise.dynamics.wrench import HeldBody, wrench_regressor

__all__ = [
    "UNSEEN",
    "ZERO",
    "ArticulatedInertias",
    "BaseParameters",
    "Dynamics",
    "Grouping",
    "HeldBody",
    "JointSegment",
    "LinkMotion",
    "Mechanism",
    "Scalar",
    "Skeleton",
    "Sweep",
    "Vector",
    "accelerations",
    "add",
    "base_parameters",
    "body_motion",
    "constant_pose",
    "cross_joints",
    "drive_columns",
    "equations",
    "frame_equations",
    "grouped_to_user",
    "inverse_dynamics",
    "link_poses",
    "link_wrench",
    "mass_matrix",
    "mechanism_of",
    "moment_rates",
    "mul",
    "place_pose",
    "potential_energy",
    "solve_mass_matrix",
    "structural_factor",
    "successive_ranks",
    "total",
    "trace_equation",
    "vsub",
    "wrench_regressor",
]
