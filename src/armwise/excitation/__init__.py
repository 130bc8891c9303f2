"""Excitation: motion that reveals the parameters, within limits."""

from armwise.excitation.design import design_excitation
from armwise.excitation.keep_out import Box, KeepOut
from armwise.excitation.plan import ExcitationPlan
from armwise.excitation.score import (
    MotionScore,
    information_from_covariance,
    score_motion,
)
from armwise.excitation.score_batch import score_motions
from armwise.excitation.verification import Verification

__all__ = [
    "Box",
    "ExcitationPlan",
    "KeepOut",
    "MotionScore",
    "Verification",
    "design_excitation",
    "information_from_covariance",
    "score_motion",
    "score_motions",
]
