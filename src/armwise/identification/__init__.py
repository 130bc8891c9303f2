"""Identification: the parameters of arms and loads, with honest uncertainty."""

from armwise.identification.accumulator import Accumulator, accumulate
from armwise.identification.columns import Columns
from armwise.identification.estimate import Estimate
from armwise.identification.friction import FrictionTerm
from armwise.identification.identify import identify
from armwise.identification.methods import (
    Method,
    OrdinaryLeastSquares,
    PhysicallyConsistent,
    PriorWeighted,
    Ridge,
    Robust,
    TotalLeastSquares,
    WeightedLeastSquares,
)
from armwise.identification.validation import Validation

__all__ = [
    "Accumulator",
    "Columns",
    "Estimate",
    "FrictionTerm",
    "Method",
    "OrdinaryLeastSquares",
    "PhysicallyConsistent",
    "PriorWeighted",
    "Ridge",
    "Robust",
    "TotalLeastSquares",
    "Validation",
    "WeightedLeastSquares",
    "accumulate",
    "identify",
]
