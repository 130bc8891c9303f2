"""Learning from practice: better commands for a repeated motion, and its analysis."""

from armwise.learning.analysis import LearningAnalysis, analyse_learning
from armwise.learning.learn import Session, Stopping, learn, practised_feedforward
from armwise.learning.memory import Learned, LocalCorrection, load_learned, save_learned
from armwise.learning.operators import (
    LearningOperator,
    LiftedLoop,
    LinearLoop,
    impulse_operator,
    inverse_model,
    inverse_model_along,
    linearise_along,
    norm_optimal,
    scaled_error,
)
from armwise.learning.practice import (
    Attempt,
    NextAttempt,
    Practice,
    PracticeSettings,
    Response,
    practise,
)
from armwise.learning.trial import DecoupledModel, InverseModel, Trial, ZeroPhase

__all__ = [
    "Attempt",
    "DecoupledModel",
    "InverseModel",
    "Learned",
    "LearningAnalysis",
    "LearningOperator",
    "LiftedLoop",
    "LinearLoop",
    "LocalCorrection",
    "NextAttempt",
    "Practice",
    "PracticeSettings",
    "Response",
    "Session",
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
    "practise",
    "practised_feedforward",
    "save_learned",
    "scaled_error",
]
