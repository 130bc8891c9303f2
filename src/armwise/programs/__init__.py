"""Programs: equations traced once into straight-line code that runs anywhere."""

from armwise.programs.array_backends import numpy_function
from armwise.programs.c_source import (
    COSINE,
    COSINE_SINGLE,
    HALF_PI,
    HALF_PI_SINGLE,
    LANES,
    SCALAR_PRELUDE,
    SINE,
    SINE_SINGLE,
    core_source,
    count_uniform,
    fill,
    horner,
    vector_prelude,
)
from armwise.programs.compiler import (
    Compiler,
    addresses,
    c_function,
    cache_folder,
    cached_object,
    compiled_library,
    find_compiler,
)
from armwise.programs.cuda import PRELUDE, BandProduct, device_core
from armwise.programs.cuda_device import CudaError, Memory, device
from armwise.programs.cuda_gram import GramSums
from armwise.programs.derivatives import gradient, replay
from armwise.programs.kernel import Backend, Kernel, NoCompilerNotice, resolve_backend
from armwise.programs.operations import fewer_operations, operations
from armwise.programs.program import Input, Output, Program, build_program, trace
from armwise.programs.scalars import (
    Graph,
    Number,
    Scalar,
    cos,
    sign,
    sin,
    split_offset,
    sqrt,
)

__all__ = [
    "COSINE",
    "COSINE_SINGLE",
    "HALF_PI",
    "HALF_PI_SINGLE",
    "LANES",
    "PRELUDE",
    "SCALAR_PRELUDE",
    "SINE",
    "SINE_SINGLE",
    "Backend",
    "BandProduct",
    "Compiler",
    "CudaError",
    "GramSums",
    "Graph",
    "Input",
    "Kernel",
    "Memory",
    "NoCompilerNotice",
    "Number",
    "Output",
    "Program",
    "Scalar",
    "addresses",
    "build_program",
    "c_function",
    "cache_folder",
    "cached_object",
    "compiled_library",
    "core_source",
    "cos",
    "count_uniform",
    "device",
    "device_core",
    "fewer_operations",
    "fill",
    "find_compiler",
    "gradient",
    "horner",
    "numpy_function",
    "operations",
    "replay",
    "resolve_backend",
    "sign",
    "sin",
    "split_offset",
    "sqrt",
    "trace",
    "vector_prelude",
]
