"""Programs: equations traced once into straight-line code that runs anywhere."""

from armwise.programs.kernel import Backend, Kernel, NoCompilerNotice, resolve_backend
from armwise.programs.program import Input, Output, Program, build_program, trace
from armwise.programs.scalars import Graph, Number, Scalar, cos, sign, sin, sqrt

__all__ = [
    "Backend",
    "Graph",
    "Input",
    "Kernel",
    "NoCompilerNotice",
    "Number",
    "Output",
    "Program",
    "Scalar",
    "build_program",
    "cos",
    "resolve_backend",
    "sign",
    "sin",
    "sqrt",
    "trace",
]
