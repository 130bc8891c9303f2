"""What generate is asked for: refused with a clear sentence, or put in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from armwise.arms import Arm
from armwise.codegen.companions import RUNTIME_FUNCTIONS
from armwise.codegen.functions import FUNCTIONS
from armwise.codegen.reference import random_states
from armwise.codegen.statements import PRECISIONS
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotPhysical


def arm_of(given: Any) -> Arm:
    """Return the arm of what was given; refuse one without joints."""
    arm = given if isinstance(given, Arm) else getattr(given, "arm", None)
    if not isinstance(arm, Arm):
        raise ArgumentError(
            f"generate needs an Arm or an Estimate, not {type(given).__name__}."
        )
    if arm.dof == 0:
        raise ArgumentError(f"{arm.name} has no joints: there is nothing to generate.")
    return arm


def chosen_functions(functions: Sequence[str], runtime: bool) -> list[str]:
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


def place_on(arm: Arm, place: str | None) -> str:
    """Return the name of a place on the arm; the last link if none is given."""
    if place is None:
        return arm.links[-1].name
    arm.place(place)
    return place


def require_physical(arm: Arm, chosen: Sequence[str], allowed: bool) -> None:
    """Refuse a mass matrix that is not positive definite within the limits."""
    q = random_states(arm, 1000, 0).q
    least = np.linalg.eigvalsh(Dynamics(arm).mass_matrix(q)).min(axis=1)
    if not np.any(least <= 0):
        return
    share = float(np.mean(least <= 0))
    what = (
        f"No arm can have these parameters: the mass matrix of {arm.name} is not "
        f"positive definite in {share:.0%} of 1000 random poses within its limits "
        f"(smallest eigenvalue {least.min():.3g})."
    )
    if "forward_dynamics" in chosen:
        raise NotPhysical(
            f"{what} Forward dynamics would divide by it: identify under physical "
            "constraints, or leave forward_dynamics out."
        )
    if not allowed:
        raise NotPhysical(
            f"{what} Identify under physical constraints, or accept it with "
            "allow_unphysical=True (--allow-unphysical)."
        )
