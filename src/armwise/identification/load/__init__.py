"""What the hand holds: loads, identified offline and while moving."""

from armwise.identification.load.estimate import Explanation, LoadEstimate
from armwise.identification.load.identify_load import identify_load
from armwise.identification.load.methods import (
    Accelerations,
    IntegralWindows,
    LoadMethod,
    MomentumRate,
)
from armwise.identification.load.static_poses import StaticPoses
from armwise.identification.load.wrist_samples import WristSamples

__all__ = [
    "Accelerations",
    "Explanation",
    "IntegralWindows",
    "LoadEstimate",
    "LoadMethod",
    "MomentumRate",
    "StaticPoses",
    "WristSamples",
    "identify_load",
]
