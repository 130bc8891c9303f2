"""Customised C for the robot's controller, and a runtime with two rates."""

from armwise.codegen.folder import GeneratedLibrary, load_generated
from armwise.codegen.functions import FUNCTIONS, Comparison, compare
from armwise.codegen.generate import DEFAULT_FUNCTIONS, GeneratedCode, generate
from armwise.codegen.realtime import (
    RealtimeReport,
    Times,
    build_controller,
    run_realtime,
)

__all__ = [
    "DEFAULT_FUNCTIONS",
    "FUNCTIONS",
    "Comparison",
    "GeneratedCode",
    "GeneratedLibrary",
    "RealtimeReport",
    "Times",
    "build_controller",
    "compare",
    "generate",
    "load_generated",
    "run_realtime",
]
