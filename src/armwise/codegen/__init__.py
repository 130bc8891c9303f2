"""Customised C for the robot's controller, and a runtime with two rates."""

from armwise.codegen.functions import FUNCTIONS
from armwise.codegen.generate import GeneratedCode, generate
from armwise.codegen.load import GeneratedLibrary, load_generated

__all__ = [
    "FUNCTIONS",
    "GeneratedCode",
    "GeneratedLibrary",
    "generate",
    "load_generated",
]
