"""What the hand holds: loads, identified offline and while moving."""

from armwise.identification.load.change import LoadChange
from armwise.identification.load.drivers import (
    to_franka_json,
    to_ros_yaml,
    to_ur_script,
    to_urdf,
    write_load,
)
from armwise.identification.load.estimate import Explanation, LoadEstimate
from armwise.identification.load.excitation import (
    LoadExcitation,
    design_load_excitation,
)
from armwise.identification.load.grasp import GraspCheck, verify_grasp
from armwise.identification.load.identify_load import identify_load
from armwise.identification.load.mass_filter import (
    MassEstimate,
    mass_by_differentiation,
    mass_by_integration,
    mass_by_optimal_filter,
)
from armwise.identification.load.methods import (
    Accelerations,
    IntegralWindows,
    LeastSquares,
    LoadMethod,
    MomentumRate,
)
from armwise.identification.load.online import OnlineLoad
from armwise.identification.load.optimal_filter import OptimalFilter
from armwise.identification.load.recognition import (
    KnownObject,
    Recognition,
    recognise,
)
from armwise.identification.load.rigidity import Rigidity
from armwise.identification.load.static_poses import StaticPoses
from armwise.identification.load.wrist_samples import WristSamples

__all__ = [
    "Accelerations",
    "Explanation",
    "GraspCheck",
    "IntegralWindows",
    "KnownObject",
    "LeastSquares",
    "LoadChange",
    "LoadEstimate",
    "LoadExcitation",
    "LoadMethod",
    "MassEstimate",
    "MomentumRate",
    "OnlineLoad",
    "OptimalFilter",
    "Recognition",
    "Rigidity",
    "StaticPoses",
    "WristSamples",
    "design_load_excitation",
    "identify_load",
    "mass_by_differentiation",
    "mass_by_integration",
    "mass_by_optimal_filter",
    "recognise",
    "to_franka_json",
    "to_ros_yaml",
    "to_ur_script",
    "to_urdf",
    "verify_grasp",
    "write_load",
]
