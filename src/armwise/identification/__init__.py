"""Identification: the parameters of arms and loads, with honest uncertainty."""

from armwise.identification.coverage import (
    coverage_study,
    largest_torque,
)
from armwise.identification.diagnosis import diagnose
from armwise.identification.estimate import (
    Estimate,
    build_estimate,
    read_estimate,
    write_estimate,
)
from armwise.identification.friction_choice import select_friction
from armwise.identification.identify import (
    Identification,
    identify,
    identify_recordings,
)
from armwise.identification.loop_validation import validate_in_loop
from armwise.identification.methods import (
    InstrumentalVariables,
    Method,
    MomentumBalance,
    OrdinaryLeastSquares,
    PhysicallyConsistent,
    PriorWeighted,
    Recursive,
    Ridge,
    Robust,
    TotalLeastSquares,
    WeightedLeastSquares,
)
from armwise.identification.online import OnlineIdentification
from armwise.identification.problem import TERMS, Problem, pose_problem, structural_base
from armwise.identification.reduce import reduce
from armwise.identification.uncertainty import STRETCHES, Review, jackknife
from armwise.identification.validation import Tally, Validation, predict_torque
from armwise.regression import Accumulator, Columns, FrictionTerm, accumulate

__all__ = [
    "STRETCHES",
    "TERMS",
    "Accumulator",
    "Columns",
    "Estimate",
    "FrictionTerm",
    "Identification",
    "InstrumentalVariables",
    "Method",
    "MomentumBalance",
    "OnlineIdentification",
    "OrdinaryLeastSquares",
    "PhysicallyConsistent",
    "PriorWeighted",
    "Problem",
    "Recursive",
    "Review",
    "Ridge",
    "Robust",
    "Tally",
    "TotalLeastSquares",
    "Validation",
    "WeightedLeastSquares",
    "accumulate",
    "build_estimate",
    "coverage_study",
    "diagnose",
    "identify",
    "identify_recordings",
    "jackknife",
    "largest_torque",
    "pose_problem",
    "predict_torque",
    "read_estimate",
    "reduce",
    "select_friction",
    "structural_base",
    "validate_in_loop",
    "write_estimate",
]
