"""Identification: the parameters of arms and loads, with honest uncertainty."""

from armwise.identification.accumulator import Accumulator, accumulate
from armwise.identification.columns import Columns
from armwise.identification.estimate import Estimate
from armwise.identification.files import read_estimate, write_estimate
from armwise.identification.friction import FrictionTerm
from armwise.identification.friction_selection import select_friction
from armwise.identification.identify import identify
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
from armwise.identification.validation import Validation
from armwise.identification.workflow import Identification, identify_recordings

__all__ = [
    "Accumulator",
    "Columns",
    "Estimate",
    "FrictionTerm",
    "Identification",
    "InstrumentalVariables",
    "Method",
    "MomentumBalance",
    "OrdinaryLeastSquares",
    "PhysicallyConsistent",
    "PriorWeighted",
    "Recursive",
    "Ridge",
    "Robust",
    "TotalLeastSquares",
    "Validation",
    "WeightedLeastSquares",
    "accumulate",
    "identify",
    "identify_recordings",
    "read_estimate",
    "select_friction",
    "write_estimate",
]
