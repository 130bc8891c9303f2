"""Excitation: motions that determine the parameters, within limits."""

from armwise.excitation.bounds import Bounds, bounds_of
from armwise.excitation.clearance import Box, KeepOut
from armwise.excitation.design import (
    FRICTION_SPEEDS,
    ExcitationPlan,
    design_excitation,
)
from armwise.excitation.requirements import Verification
from armwise.excitation.score import (
    MotionScore,
    information_from_covariance,
    score_motion,
    score_motions,
)

__all__ = [
    "FRICTION_SPEEDS",
    "Bounds",
    "Box",
    "ExcitationPlan",
    "KeepOut",
    "MotionScore",
    "Verification",
    "bounds_of",
    "design_excitation",
    "information_from_covariance",
    "score_motion",
    "score_motions",
]
