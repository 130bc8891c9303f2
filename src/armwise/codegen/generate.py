"""generate: from an arm, or what was identified of it, to C a controller can run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from armwise.codegen.c_files import header_file, source_file
from armwise.codegen.code import Code, write_code
from armwise.codegen.companions import (
    cmake_file,
    example_file,
    runtime_files,
    wrapper_file,
)
from armwise.codegen.customise import customise
from armwise.codegen.folder import write_folder
from armwise.codegen.functions import FUNCTIONS
from armwise.codegen.model import Model, Parameters
from armwise.codegen.naming import prefix_for
from armwise.codegen.precision import PrecisionError, precision_error
from armwise.codegen.prune import Pruning, prune
from armwise.codegen.request import (
    arm_of,
    check_choices,
    chosen_functions,
    place_on,
    require_physical,
)
from armwise.codegen.selftest import selftest_file
from armwise.codegen.statements import PRECISIONS

DEFAULT_FUNCTIONS = (
    "inverse_dynamics",
    "mass_matrix_and_gravity",
    "velocity_torque",
    "friction",
)


@dataclass(frozen=True, eq=False)
class GeneratedCode:
    """What was generated.

    Attributes:
        name: Prefix of all C names.
        folder: Where the files are.
        files: All of them.
        counts: By function: multiplications, additions, trigonometric, divisions.
        precision: By function, what rounding can do to its results.
        pruning: What was left out and what that may cost; None if nothing was.
        code: The programs and the C text behind the files.
    """

    name: str
    folder: Path
    files: tuple[Path, ...]
    counts: dict[str, dict[str, int]]
    precision: dict[str, PrecisionError]
    pruning: Pruning | None = None
    code: Code = field(repr=False, kw_only=True)


def generate(
    arm_or_estimate: Any,
    folder: str | Path,
    functions: Sequence[str] = DEFAULT_FUNCTIONS,
    precision: Literal["double", "float"] = "double",
    load: Literal["arbitrary"] | None = None,
    *,
    parameters: Parameters = "constants",
    place: str | None = None,
    name: str | None = None,
    runtime: bool = False,
    tolerance: float = 0.0,
    allow_unphysical: bool = False,
    tries: int = 8,
) -> GeneratedCode:
    """Write an arm's equations of motion as C, with as few operations as can be found.

    Args:
        arm_or_estimate: An Arm, or anything with an `arm` (an Estimate).
        folder: New, empty, or generated before; nothing else is overwritten.
        functions: Names from FUNCTIONS.
        precision: Type of all numbers.
        load: "arbitrary": ten inertial parameters of a load are given at run time.
        parameters: "constants": numbers in the code; "struct": fields that may change.
        place: Link or frame of kinematics and load; the last link if not given.
        name: Prefix of all C names; made from the arm's name if not given.
        runtime: Add the two-rate real-time runtime and the functions it needs.
        tolerance: Leave out parameters that together change no torque by more than
            this fraction of its largest value; 0 is exact.
        allow_unphysical: Accept parameters whose mass matrix is not positive definite
            (never for forward dynamics).
        tries: How hard to look for fewer operations.

    Raises:
        ArgumentError: If an argument or the folder cannot be used.
        NotPhysical: If no arm can have these parameters.
    """
    arm = arm_of(arm_or_estimate)
    chosen = chosen_functions(functions, runtime)
    check_choices(precision, load, parameters, tolerance)
    prefix = prefix_for(arm.name, name)
    require_physical(arm, chosen, allow_unphysical)
    model = Model(arm, place_on(arm, place), parameters, load is not None)
    pruning = prune(model, tolerance) if tolerance else None
    if pruning is not None:
        model = Model(arm, model.place, parameters, load is not None, pruning.left_out)
    if model.has_load:
        _ = model.load_matrix  # refuse a place that carries nothing, before any work
    programs = {key: customise(model, FUNCTIONS[key], tries) for key in chosen}
    code = write_code(prefix, model, PRECISIONS[precision], programs)
    errors = {r.function.name: precision_error(code, r) for r in code.routines}
    files = _files(code, _notes(arm_or_estimate, code, errors, pruning), runtime)
    about = _about(code, errors, runtime)
    written = write_folder(Path(folder), files, about)
    counts = {r.function.name: r.counts for r in code.routines}
    return GeneratedCode(
        prefix, Path(folder), tuple(written), counts, errors, pruning, code=code
    )


def _files(code: Code, notes: tuple[str, ...], runtime: bool) -> dict[str, str]:
    name = code.name
    files = {
        f"{name}.h": header_file(code, notes),
        f"{name}.c": source_file(code),
        f"{name}.hpp": wrapper_file(code),
        f"{name}_selftest.c": selftest_file(code),
        f"{name}_example.c": example_file(code),
        "CMakeLists.txt": cmake_file(code, runtime),
    }
    return files | (runtime_files(code) if runtime else {})


def _notes(
    given: Any, code: Code, errors: dict[str, PrecisionError], pruning: Pruning | None
) -> tuple[str, ...]:
    notes = [
        f"Rounding in {code.precision.name} changes {name} by at most {e.bound:.2g} in "
        f"{e.states} random states within limits; {e.measured:.2g} was measured."
        for name, e in errors.items()
    ]
    if pruning is not None:
        notes.append(pruning.sentence)
    every, own = (getattr(given, k, None) for k in ("all_parameters", "parameters"))
    if every is not None and own is not None and len(every) > len(own):
        notes.append(
            "The estimate has friction terms beyond viscous, Coulomb and offset; "
            "they are not in this code."
        )
    return tuple(notes)


def _about(
    code: Code, errors: dict[str, PrecisionError], runtime: bool
) -> dict[str, object]:
    """What the manifest says: enough to load the code and call it."""
    return {
        "name": code.name,
        "arm": code.model.arm.name,
        "joints": list(code.model.arm.coordinate_names),
        "place": code.model.place,
        "precision": code.precision.name,
        "parameters": code.model.parameters,
        "has_load": code.model.has_load,
        "has_runtime": runtime,
        "struct": [[name, size] for name, size, _ in code.fields],
        "functions": {
            r.function.name: {
                "takes_struct": r.takes_struct,
                "inputs": {
                    i.name: i.size for i in r.program.inputs if not i.is_uniform
                },
                "outputs": {o.name: list(o.shape) for o in r.program.outputs},
                "counts": r.counts,
                "rounding_bound": errors[r.function.name].bound,
            }
            for r in code.routines
        },
    }
