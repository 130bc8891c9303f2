"""Methods of identification, as small frozen objects."""

from __future__ import annotations

from armwise.errors import ArgumentError
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
from armwise.identification.methods.output_error import OutputError
from armwise.identification.methods.physical import PhysicallyConsistent
from armwise.identification.methods.prefiltered import Prefiltered
from armwise.identification.methods.robust import Recursive, Robust

__all__ = [
    "InstrumentalVariables",
    "Method",
    "MomentumBalance",
    "OrdinaryLeastSquares",
    "OutputError",
    "PhysicallyConsistent",
    "Prefiltered",
    "PriorWeighted",
    "Recursive",
    "Ridge",
    "Robust",
    "TotalLeastSquares",
    "WeightedLeastSquares",
    "method_named",
]

_NAMED: dict[str, type[Method]] = {
    "physical": PhysicallyConsistent,
    "weighted": WeightedLeastSquares,
    "ordinary": OrdinaryLeastSquares,
    "ridge": Ridge,
    "total": TotalLeastSquares,
    "robust": Robust,
    "prefiltered": Prefiltered,
    "prior": PriorWeighted,
    "output-error": OutputError,
}


def method_named(name: str) -> Method:
    """Return a method of identification with its default settings."""
    if name not in _NAMED:
        raise ArgumentError(f"No method {name!r}; use {', '.join(_NAMED)}.")
    return _NAMED[name]()
