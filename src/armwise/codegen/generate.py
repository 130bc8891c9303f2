"""Generation of C from an arm or an estimate, for a controller to run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.arms import Arm
from armwise.codegen.accuracy import (
    PrecisionError,
    precision_error,
    random_states,
    selftest_file,
)
from armwise.codegen.c_text import PRECISIONS, prefix_for
from armwise.codegen.code import CodeText, write_code
from armwise.codegen.files import (
    RUNTIME_FUNCTIONS,
    cmake_file,
    example_file,
    friction_files,
    header_file,
    runtime_files,
    source_file,
    wrapper_file,
)
from armwise.codegen.folder import write_folder
from armwise.codegen.functions import FUNCTIONS, customise
from armwise.codegen.model import CodeModel, Parameters
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotPhysical

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.regression import FrictionTerm


# Leaving out parameters that hardly matter.

# Judgement: extremes over random states, not a proof; hence "random" in the header.
STATES = 2000
"""Random states that a bound is taken over: the maximum has settled by then."""
_SEED = 3


@dataclass(frozen=True, eq=False)
class Pruning:
    """Parameters that were left out.

    Attributes:
        left_out: Their indices among the grouped parameters.
        names: Their names.
        bound: Torque error per joint that they may cause together, in [N m].
        peak: Largest torque per joint, in [N m].
        states: On how many random states within limits that was found.
    """

    left_out: frozenset[int]
    names: tuple[str, ...]
    bound: Float[np.ndarray, " dof"]
    peak: Float[np.ndarray, " dof"]
    states: int

    @property
    def sentence(self) -> str:
        """What the header says of it."""
        fractions = ", ".join(
            f"{100 * b / p:.2g} %" if p else "0 %"
            for b, p in zip(self.bound, self.peak, strict=True)
        )
        return (
            f"{len(self.names)} small parameters are left out; on {self.states} random "
            f"states within limits they change the torques of the joints by at most "
            f"{fractions} of their largest values."
        )


def prune(model: CodeModel, tolerance: float) -> Pruning:
    """Find the parameters that together stay below a fraction of the largest torque.

    Args:
        model: The model; its limits say how fast it moves.
        tolerance: Fraction of each joint's largest torque.
    """
    arm = model.arm
    dynamics = Dynamics(arm)
    states = random_states(arm, STATES, _SEED)
    torque = dynamics.inverse_dynamics(states.q, states.qd, states.qdd)
    peak = np.abs(torque).max(axis=0)
    kernel = dynamics.kernel("grouped_regressor")
    # Regressors are linear: a parameter's torque is its column times its value.
    (Y,) = kernel([states.q, states.qd, states.qdd])
    values = np.array(model.bodies)
    effect = np.abs(Y[:, :, : values.size]).max(axis=0) * np.abs(values)
    # A joint without torque has no scale; any effect on it counts as it is.
    relative = (effect / np.where(peak > 0, peak, 1.0)[:, None]).max(axis=0)
    left_out: set[int] = set()
    bound = np.zeros(arm.dof)
    # The smallest effects first: most parameters dropped for the same error. Their
    # largest effects are added as if they came in the same state: an upper bound.
    for k in np.argsort(relative):
        if values[k] == 0.0:
            continue
        raised = bound + effect[:, k]
        # Stop at the first that does not fit: all that follow are larger.
        if np.any(raised > tolerance * peak):
            break
        left_out.add(int(k))
        bound = raised
    names = tuple(model.body_names[k] for k in sorted(left_out))
    return Pruning(frozenset(left_out), names, bound, peak, STATES)


# Checks of the arguments.


def arm_of(source: Any) -> Arm:
    """Return the arm of an Arm or Estimate; refuse one without joints."""
    arm = source if isinstance(source, Arm) else getattr(source, "arm", None)
    if not isinstance(arm, Arm):
        raise ArgumentError(
            f"generate needs an Arm or an Estimate, not {type(source).__name__}."
        )
    if arm.dof == 0:
        raise ArgumentError(f"{arm.name} has no joints: there is nothing to generate.")
    return arm


def function_names(functions: Sequence[str], runtime: bool) -> list[str]:
    """Return the names of the functions to generate, each once."""
    names = [functions] if isinstance(functions, str) else list(functions)
    names += [key for key in RUNTIME_FUNCTIONS if runtime]
    if unknown := [key for key in names if key not in FUNCTIONS]:
        raise ArgumentError(
            f"No function {unknown[0]!r} can be generated. "
            f"Choose from: {', '.join(FUNCTIONS)}."
        )
    if not names:
        raise ArgumentError(f"Name at least one function: {', '.join(FUNCTIONS)}.")
    return list(dict.fromkeys(names))


def check_choices(
    precision: str, load: str | None, parameters: str, tolerance: float
) -> None:
    """Refuse options that are none."""
    if precision not in PRECISIONS:
        raise ArgumentError(
            f'precision must be "double" or "float", not {precision!r}.'
        )
    if load not in (None, "arbitrary"):
        raise ArgumentError(f'load must be None or "arbitrary", not {load!r}.')
    if parameters not in ("constants", "struct"):
        raise ArgumentError(
            f'parameters must be "constants" or "struct", not {parameters!r}.'
        )
    if not 0.0 <= tolerance < 1.0:
        raise ArgumentError(
            f"tolerance is a fraction of the largest torque, 0 to 1, not {tolerance!r}."
        )
    if tolerance and parameters == "struct":
        raise ArgumentError(
            'tolerance leaves out known numbers; with parameters="struct" they are '
            "not known. Drop one of the two."
        )


def frame_on(arm: Arm, frame: str | None) -> str:
    """Return the name of a link or frame of the arm; the last link if none is given."""
    if frame is None:
        return arm.links[-1].name
    arm.find_frame(frame)
    return frame


def require_physical(
    arm: Arm, functions: Sequence[str], allowed: bool, *, is_reduced: bool = False
) -> str:
    """Refuse a mass matrix that is not positive definite within the limits.

    A reduced model may lack the inertia of a joint by intent: its torques are what it
    is for, so only forward dynamics is refused.

    Returns:
        What to note of a mass matrix that is accepted all the same; else nothing.
    """
    # Sampled: there is no cheap test of positive definiteness in all poses at once.
    q = random_states(arm, 1000, 0).q
    least = np.linalg.eigvalsh(Dynamics(arm).mass_matrix(q)).min(axis=1)
    if not np.any(least <= 0):
        return ""
    fraction = float(np.mean(least <= 0))
    where = (
        f"the mass matrix of {arm.name} is not positive definite in {fraction:.0%} of "
        f"1000 random poses within its limits (smallest eigenvalue {least.min():.3g})"
    )
    if "forward_dynamics" in functions:
        remedy = (
            "generate it from the estimate before reduction"
            if is_reduced
            else "identify under physical constraints"
        )
        raise NotPhysical(
            f"Forward dynamics would divide by what no arm has: {where}. Leave "
            f"forward_dynamics out, or {remedy}."
        )
    if not allowed and not is_reduced:
        raise NotPhysical(
            f"No arm can have these parameters: {where}. Identify under physical "
            "constraints, or accept it with allow_unphysical=True (--allow-unphysical)."
        )
    return f"Use this code for torques, and do not invert M: {where}."


# Generating.

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
        notes: What to know before using it, as the header says.
        code: The programs and the C text behind the files.
    """

    name: str
    folder: Path
    files: tuple[Path, ...]
    counts: dict[str, dict[str, int]]
    precision: dict[str, PrecisionError]
    pruning: Pruning | None = None
    notes: tuple[str, ...] = ()
    code: CodeText = field(repr=False, kw_only=True)

    def __repr__(self) -> str:
        """One line: which functions, where."""
        return f"<GeneratedCode {self.name}: {', '.join(self.counts)} in {self.folder}>"


def generate(
    arm_or_estimate: Any,
    folder: str | Path,
    functions: Sequence[str] = DEFAULT_FUNCTIONS,
    precision: Literal["double", "float"] = "double",
    load: Literal["arbitrary"] | None = None,
    *,
    parameters: Parameters = "constants",
    frame: str | None = None,
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
        frame: Link or frame of kinematics and load; the last link if not given.
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
    names = function_names(functions, runtime)
    check_choices(precision, load, parameters, tolerance)
    prefix = prefix_for(arm.name, name)
    # Only an estimate can be reduced.
    is_reduced = bool(getattr(arm_or_estimate, "left_out", ()))
    caution = require_physical(arm, names, allow_unphysical, is_reduced=is_reduced)
    model = CodeModel(arm, frame_on(arm, frame), parameters, load is not None)
    pruning = prune(model, tolerance) if tolerance else None
    if pruning is not None:
        model = CodeModel(
            arm, model.frame, parameters, load is not None, pruning.left_out
        )
    if model.has_load:
        _ = model.load_matrix  # refuse a frame that carries nothing, before any work
    programs = {key: customise(model, FUNCTIONS[key], tries) for key in names}
    code = write_code(prefix, model, PRECISIONS[precision], programs)
    errors = {r.function.name: precision_error(code, r) for r in code.routines}
    notes = tuple(filter(None, (caution, *_notes(arm_or_estimate, pruning))))
    terms = getattr(arm_or_estimate, "friction", ())
    files = _files(code, (*_rounding(code, errors), *notes), runtime, terms)
    about = _about(code, errors, runtime)
    written = write_folder(Path(folder), files, about)
    counts = {r.function.name: r.counts for r in code.routines}
    return GeneratedCode(
        prefix, Path(folder), tuple(written), counts, errors, pruning, notes, code=code
    )


def _files(
    code: CodeText,
    notes: tuple[str, ...],
    runtime: bool,
    terms: Sequence[tuple[FrictionTerm, float]],
) -> dict[str, str]:
    name = code.name
    files = {
        f"{name}.h": header_file(code, notes),
        f"{name}.c": source_file(code),
        f"{name}.hpp": wrapper_file(code),
        f"{name}_selftest.c": selftest_file(code),
        f"{name}_example.c": example_file(code),
        "CMakeLists.txt": cmake_file(code, runtime, bool(terms)),
    }
    if terms:
        files |= friction_files(code, terms)
    return files | (runtime_files(code) if runtime else {})


def _rounding(code: CodeText, errors: dict[str, PrecisionError]) -> tuple[str, ...]:
    return tuple(
        f"Rounding in {code.precision.name} changes {name} by at most {e.bound:.2g} in "
        f"{e.states} random states within limits; {e.measured:.2g} was measured."
        for name, e in errors.items()
    )


def _notes(source: Any, pruning: Pruning | None) -> tuple[str, ...]:
    notes = [pruning.sentence] if pruning is not None else []
    # An arm has neither: only estimates may know more than the code.
    every, own = (getattr(source, k, None) for k in ("all_parameters", "parameters"))
    if every is not None and own is not None and len(every) > len(own):
        notes.append(
            "The estimate has friction terms beyond viscous, Coulomb and offset; they "
            "are in NAME_friction_terms.h, to be added to the torque."
        )
    return tuple(notes)


def _about(
    code: CodeText, errors: dict[str, PrecisionError], runtime: bool
) -> dict[str, object]:
    """What the manifest says: enough to load the code and call it."""
    return {
        "name": code.name,
        "arm": code.model.arm.name,
        "joints": list(code.model.arm.coordinate_names),
        "frame": code.model.frame,
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
