"""Identify an arm's parameters from recorded motion."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from armwise.arms import Arm
from armwise.errors import NotIdentifiable
from armwise.identification.columns import Columns
from armwise.identification.estimate import Estimate, build_estimate
from armwise.identification.friction import FrictionTerm
from armwise.identification.methods import Method, WeightedLeastSquares
from armwise.identification.problem import TERMS, pose_problem
from armwise.identification.uncertainty import review
from armwise.recordings import Samples


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
