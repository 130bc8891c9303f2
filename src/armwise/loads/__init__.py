"""Loads in the hand: identification, online estimation, recognition and files."""

from armwise.loads.estimate import LoadEstimate, LoadPrediction
from armwise.loads.excitation import (
    LoadExcitation,
    design_load_excitation,
)
from armwise.loads.files import (
    DRIVERS,
    driver_text,
    load_to_dict,
    read_load_estimate,
    to_franka_json,
    to_kuka_load,
    to_ros_payload,
    to_ros_yaml,
    to_ur_script,
    to_urdf,
    write_load,
    write_load_estimate,
)
from armwise.loads.generalized_least_squares import Bias
from armwise.loads.identify_load import identify_load
from armwise.loads.joint_torques import (
    TorqueGains,
    TorqueSolution,
    WeighedLoad,
    load_from_torques,
    read_torque_gains,
    write_torque_gains,
)
from armwise.loads.kinds import KINDS, LoadKind, identify_load_kind
from armwise.loads.methods import (
    Accelerations,
    IntegralWindows,
    LeastSquares,
    LoadMethod,
    MomentumRate,
    StaticPoses,
)
from armwise.loads.online import Detection, LoadChange, OnlineLoad, follow_lines
from armwise.loads.optimal_filter import (
    MassEstimate,
    OptimalFilter,
    mass_by_differentiation,
    mass_by_integration,
    mass_by_optimal_filter,
)
from armwise.loads.problem import WristSamples
from armwise.loads.recognition import (
    CatalogueEntry,
    GraspCheck,
    KnownObject,
    Recognition,
    ToleranceCheck,
    read_catalogue,
    recognise,
    verify_grasp,
)
from armwise.loads.rigidity import Rigidity
from armwise.loads.torque_excess import is_same_motion
from armwise.loads.wrist_log import (
    Accelerometer,
    Contact,
    WristLog,
    WristPreparation,
    find_contact,
    prepare_wrist,
    read_wrist_log,
)

__all__ = [
    "DRIVERS",
    "KINDS",
    "Accelerations",
    "Accelerometer",
    "Bias",
    "CatalogueEntry",
    "Contact",
    "Detection",
    "GraspCheck",
    "IntegralWindows",
    "KnownObject",
    "LeastSquares",
    "LoadChange",
    "LoadEstimate",
    "LoadExcitation",
    "LoadKind",
    "LoadMethod",
    "LoadPrediction",
    "MassEstimate",
    "MomentumRate",
    "OnlineLoad",
    "OptimalFilter",
    "Recognition",
    "Rigidity",
    "StaticPoses",
    "ToleranceCheck",
    "TorqueGains",
    "TorqueSolution",
    "WeighedLoad",
    "WristLog",
    "WristPreparation",
    "WristSamples",
    "design_load_excitation",
    "driver_text",
    "find_contact",
    "follow_lines",
    "identify_load",
    "identify_load_kind",
    "is_same_motion",
    "load_from_torques",
    "load_to_dict",
    "mass_by_differentiation",
    "mass_by_integration",
    "mass_by_optimal_filter",
    "prepare_wrist",
    "read_catalogue",
    "read_load_estimate",
    "read_torque_gains",
    "read_wrist_log",
    "recognise",
    "to_franka_json",
    "to_kuka_load",
    "to_ros_payload",
    "to_ros_yaml",
    "to_ur_script",
    "to_urdf",
    "verify_grasp",
    "write_load",
    "write_load_estimate",
    "write_torque_gains",
]
