"""Methods of identification: small frozen objects, one file each."""

from armwise.identification.methods.instrumental import InstrumentalVariables
from armwise.identification.methods.method import Method
from armwise.identification.methods.momentum import MomentumBalance
from armwise.identification.methods.ordinary import OrdinaryLeastSquares
from armwise.identification.methods.physical import PhysicallyConsistent
from armwise.identification.methods.prior import PriorWeighted
from armwise.identification.methods.recursive import Recursive
from armwise.identification.methods.ridge import Ridge
from armwise.identification.methods.robust import Robust
from armwise.identification.methods.total import TotalLeastSquares
from armwise.identification.methods.weighted import WeightedLeastSquares

__all__ = [
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
    "WeightedLeastSquares",
]
