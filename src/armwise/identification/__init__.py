"""Identification: the parameters of an arm, with their uncertainty.

To read in this order: `identify` (the verb), `problem`, `friction_selection`,
`methods/`, `validation`, `estimate`; then what looks wrong: `diagnosis`, `data_checks`,
`mismatch`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from armwise.errors import EstimateWarning
from armwise.identification.data_checks import DOUBTFUL_DATA, WRONG_DATA
from armwise.identification.diagnosis import (
    diagnose,
    faster_motion,
    negative_friction,
    worsening,
)
from armwise.identification.estimate import (
    Estimate,
    Identification,
    PlannedTorque,
    build_estimate,
    torque_along,
)
from armwise.identification.estimate_file import (
    estimate_to_dict,
    read_estimate,
    write_estimate,
)
from armwise.identification.export import (
    arm_for_file,
    file_error,
    nearest_bodies,
    read_back,
)
from armwise.identification.friction_selection import FrictionSelection, select_friction
from armwise.identification.identify import (
    build_problem,
    identify,
    identify_recordings,
)
from armwise.identification.methods import (
    InstrumentalVariables,
    Method,
    MomentumBalance,
    OrdinaryLeastSquares,
    OutputError,
    PhysicallyConsistent,
    Prefiltered,
    PriorWeighted,
    Recursive,
    Ridge,
    Robust,
    TotalLeastSquares,
    WeightedLeastSquares,
    method_named,
)
from armwise.identification.mismatch import MISMATCH
from armwise.identification.online import OnlineIdentification
from armwise.identification.posterior import PRIOR_STD
from armwise.identification.problem import TERMS, Problem, pose_problem, structural_base
from armwise.identification.reduce import (
    ReductionCost,
    led_from_tip,
    reduce,
    reduction_cost,
    significance,
    standing_of,
)
from armwise.identification.validation import (
    PartErrors,
    Review,
    Tally,
    Validation,
    at_usual_temperature,
    fit_from_sums,
    part_masks,
    predict_torque,
    review,
)
from armwise.regression import Accumulator, Columns, FrictionTerm, accumulate

if TYPE_CHECKING:
    from armwise.identification.coverage import coverage_study
    from armwise.identification.loop_validation import validate_in_loop

# These simulate: they bring plants and controllers along, so they wait until used.
_IMPORTED_WHEN_USED = {
    "coverage_study": "armwise.identification.coverage",
    "validate_in_loop": "armwise.identification.loop_validation",
}


def __getattr__(name: str) -> Any:
    if name in _IMPORTED_WHEN_USED:
        return getattr(import_module(_IMPORTED_WHEN_USED[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "DOUBTFUL_DATA",
    "MISMATCH",
    "PRIOR_STD",
    "TERMS",
    "WRONG_DATA",
    "Accumulator",
    "Columns",
    "Estimate",
    "EstimateWarning",
    "FrictionSelection",
    "FrictionTerm",
    "Identification",
    "InstrumentalVariables",
    "Method",
    "MomentumBalance",
    "OnlineIdentification",
    "OrdinaryLeastSquares",
    "OutputError",
    "PartErrors",
    "PhysicallyConsistent",
    "PlannedTorque",
    "Prefiltered",
    "PriorWeighted",
    "Problem",
    "Recursive",
    "ReductionCost",
    "Review",
    "Ridge",
    "Robust",
    "Tally",
    "TotalLeastSquares",
    "Validation",
    "WeightedLeastSquares",
    "accumulate",
    "arm_for_file",
    "at_usual_temperature",
    "build_estimate",
    "build_problem",
    "coverage_study",
    "diagnose",
    "estimate_to_dict",
    "faster_motion",
    "file_error",
    "fit_from_sums",
    "identify",
    "identify_recordings",
    "led_from_tip",
    "method_named",
    "nearest_bodies",
    "negative_friction",
    "part_masks",
    "pose_problem",
    "predict_torque",
    "read_back",
    "read_estimate",
    "reduce",
    "reduction_cost",
    "review",
    "select_friction",
    "significance",
    "standing_of",
    "structural_base",
    "torque_along",
    "validate_in_loop",
    "worsening",
    "write_estimate",
]
