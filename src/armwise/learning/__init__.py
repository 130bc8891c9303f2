"""Learning from practice: better commands for a repeated motion, and its analysis."""

from armwise.learning.analysis import LearningAnalysis, analyse_learning
from armwise.learning.loops import LiftedLoop, LinearLoop
from armwise.learning.operators import (
    LearningOperator,
    impulse_operator,
    inverse_model,
    norm_optimal,
    scaled_error,
)

__all__ = [
    "LearningAnalysis",
    "LearningOperator",
    "LiftedLoop",
    "LinearLoop",
    "analyse_learning",
    "impulse_operator",
    "inverse_model",
    "norm_optimal",
    "scaled_error",
]
