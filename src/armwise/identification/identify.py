"""Identify an arm's parameters from recorded motion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from armwise.arms import Arm
from armwise.errors import NotIdentifiable
from armwise.identification.diagnosis import diagnose
from armwise.identification.estimate import Estimate, build_estimate
from armwise.identification.friction_choice import select_friction
from armwise.identification.methods import (
    Method,
    PhysicallyConsistent,
    WeightedLeastSquares,
)
from armwise.identification.problem import TERMS, pose_problem
from armwise.identification.uncertainty import review
from armwise.identification.validation import Validation
from armwise.progress import Progress
from armwise.recordings import Recording, Samples, prepare
from armwise.regression import Columns, FrictionTerm


def identify(
    arm: Arm,
    data: Samples | Sequence[Samples],
    method: Method | None = None,
    *,
    terms: Iterable[str] = TERMS,
    friction: Sequence[FrictionTerm] = (),
) -> Estimate:
    """Find the parameters of an arm that explain its measured torques.

    Args:
        arm: The description; what the data cannot tell keeps its values.
        data: Clean samples, one run or several.
        method: How to weigh the evidence.
        terms: What to estimate: "links", "rotor_inertia", "viscous", "coulomb",
            "offset". The rest keeps the arm's values.
        friction: Friction terms beyond these; `select_friction` chooses some.

    Raises:
        NotIdentifiable: If the data determine nothing at all.
    """
    from threadpoolctl import threadpool_limits

    runs = [data] if isinstance(data, Samples) else list(data)
    chosen = WeightedLeastSquares() if method is None else method
    columns = Columns(arm, tuple(friction))
    for run in runs:
        columns.check(run)
    if sum(len(run) for run in runs) == 0:
        raise NotIdentifiable("There are no samples. Record a motion first.")
    with threadpool_limits(limits=1, user_api="blas"):  # small blocks: one is faster
        problem = pose_problem(columns, runs, terms)
        if not problem.base.count:
            raise NotIdentifiable("No term was left to estimate. Name at least one.")
        solution = chosen.solve(problem)
        return build_estimate(
            problem, solution, review(problem, solution), type(chosen).__name__
        )


# From recordings to a model one can trust: fit, choose, constrain, validate, doubt.

FrictionChoiceName = Literal["auto", "linear"]


@dataclass(frozen=True, eq=False)
class Identification:
    """What came of a log.

    Attributes:
        estimate: The estimate, by the method asked for.
        fitted: The samples it was fitted to.
        validated: The samples it was validated on, if any.
        validation: Errors on those; None: not evaluated.
        warnings: What the residuals say about the data, in words.
    """

    estimate: Estimate
    fitted: Samples
    validated: Samples | None
    validation: Validation | None
    warnings: tuple[str, ...]


def identify_recordings(
    arm: Arm,
    recordings: Sequence[Recording],
    validation: Sequence[Recording] = (),
    *,
    method: Method | None = None,
    friction: FrictionChoiceName = "auto",
    terms: Sequence[str] = TERMS,
    cutoff_hz: float | None = None,
    hold_out: float = 0.0,
    progress: Progress | None = None,
) -> Identification:
    """Prepare recordings, choose friction, fit, and validate on data left out.

    Args:
        arm: The description.
        recordings: Logs to fit.
        validation: Logs to validate on; nothing is validated without any.
        method: How to fit; physically consistent if not given.
        friction: "auto" tries terms beyond viscous, Coulomb and offset and keeps what
            predicts better; "linear" does not.
        terms: What to estimate.
        cutoff_hz: Low-pass in [Hz]; chosen if None.
        hold_out: Fraction at the end of the logs that is kept for validation.
        progress: Called with what is being done and how much of it is done.
    """
    tell = progress or (lambda what, share: None)
    tell("prepare", 0.0)
    fitted = prepare(list(recordings), cutoff_hz, arm=arm)
    others = prepare(list(validation), like=fitted) if validation else None
    if hold_out:
        fitted, kept = fitted.split(1.0 - hold_out)
        others = kept if others is None else Samples.concatenate([others, kept])
    tell("choose friction", 0.4)
    chosen: tuple[FrictionTerm, ...] = ()
    if friction == "auto":
        chosen = select_friction(arm, fitted, terms).terms
    tell("fit", 0.7)
    estimate = identify(
        arm, fitted, method or PhysicallyConsistent(), terms=terms, friction=chosen
    )
    tell("validate", 0.9)
    checked = None if others is None else estimate.validate(others)
    warnings = diagnose(estimate, fitted, checked)
    tell("done", 1.0)
    return Identification(estimate, fitted, others, checked, warnings)
