"""Learning from practice: better commands for a repeated motion, and its analysis."""

from armwise.learning.analysis import LearningAnalysis, analyse_learning
from armwise.learning.inverse_models import DecoupledModel, InverseModel
from armwise.learning.learn import Stopping, learn
from armwise.learning.linearise import inverse_model_along, linearise_along
from armwise.learning.loops import LiftedLoop, LinearLoop
from armwise.learning.memory import Learned, load_learned, save_learned
from armwise.learning.operators import (
    LearningOperator,
    impulse_operator,
    inverse_model,
    norm_optimal,
    scaled_error,
)
from armwise.learning.reuse import LocalCorrection
from armwise.learning.trial import Trial
from armwise.learning.zero_phase import ZeroPhase

__all__ = [
    "DecoupledModel",
    "InverseModel",
    "Learned",
    "LearningAnalysis",
    "LearningOperator",
    "LiftedLoop",
    "LinearLoop",
    "LocalCorrection",
    "Stopping",
    "Trial",
    "ZeroPhase",
    "analyse_learning",
    "impulse_operator",
    "inverse_model",
    "inverse_model_along",
    "learn",
    "linearise_along",
    "load_learned",
    "norm_optimal",
    "save_learned",
    "scaled_error",
]
