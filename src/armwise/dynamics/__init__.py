"""Dynamics: the equations of motion, written once and traced for each arm."""

from armwise.dynamics.base import BaseParameters, base_parameters
from armwise.dynamics.dynamics import Dynamics
from armwise.dynamics.mechanism import Mechanism, mechanism_of

__all__ = [
    "BaseParameters",
    "Dynamics",
    "Mechanism",
    "base_parameters",
    "mechanism_of",
]
