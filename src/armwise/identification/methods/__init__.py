"""Methods of identification, as small frozen objects."""

from armwise.identification.methods.instrumental import InstrumentalVariables
from armwise.identification.methods.least_squares import (
    Method,
    OrdinaryLeastSquares,
    PriorWeighted,
    Ridge,
    TotalLeastSquares,
    WeightedLeastSquares,
)
from armwise.identification.methods.momentum import MomentumBalance
from armwise.identification.methods.physical import PhysicallyConsistent
from armwise.identification.methods.prefiltered import Prefiltered
from armwise.identification.methods.robust import Recursive, Robust

__all__ = [
    "InstrumentalVariables",
    "Method",
    "MomentumBalance",
    "OrdinaryLeastSquares",
    "PhysicallyConsistent",
    "Prefiltered",
    "PriorWeighted",
    "Recursive",
    "Ridge",
    "Robust",
    "TotalLeastSquares",
    "WeightedLeastSquares",
]
