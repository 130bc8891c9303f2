"""An estimate: parameters, how far to trust them, and what was not found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import Arm
from armwise.dynamics.base import BaseParameters
from armwise.identification.columns import Columns
from armwise.identification.prediction import block_errors, predict_torque
from armwise.identification.problem import Problem
from armwise.identification.solution import Solution
from armwise.identification.uncertainty import Review
from armwise.identification.validation import Tally, Validation
from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

Origin = Literal["identified", "in combination", "prior"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """The outcome of an identification.

    Attributes:
        columns: What the torque was explained by; friction terms among it.
        base: The combinations that were sought.
        base_values: Their values β.
        base_covariance: Their covariance, correlated residuals accounted for; infinite
            where the data say nothing.
        all_parameters: Standard parameters with those combinations, friction terms
            last; nearest to the description where the data leave a choice.
        fit: How well the data of the fit are explained.
        torque_std: Standard deviation of each joint's residual in [N m].
        condition_number: Of the weighted base regressor, columns scaled to one.
        singular_values: Of the same matrix.
        directions: Its right singular vectors, one row each.
        method: What found it, in words.
        notes: What the user should know.
    """

    columns: Columns
    base: BaseParameters
    base_values: Float[np.ndarray, " base"]
    base_covariance: Float[np.ndarray, "base base"]
    all_parameters: Float[np.ndarray, " parameters"]
    fit: Validation
    torque_std: Float[np.ndarray, " dof"]
    condition_number: float
    singular_values: Float[np.ndarray, " base"]
    directions: Float[np.ndarray, "base base"]
    method: str
    notes: tuple[str, ...] = ()

    @property
    def prior_arm(self) -> Arm:
        """The arm as it was described."""
        return self.columns.arm

    @property
    def parameters(self) -> Float[np.ndarray, " parameters"]:
        """The arm's parameters, in the order of `arm.parameter_names`."""
        return self.all_parameters[: self.prior_arm.parameters.size]

    @cached_property
    def arm(self) -> Arm:
        """The arm with the identified parameters."""
        return self.prior_arm.with_parameters(self.parameters)

    @property
    def base_std(self) -> Float[np.ndarray, " base"]:
        """Standard deviation of each combination; infinite where nothing is known."""
        return np.sqrt(np.diag(self.base_covariance))

    @cached_property
    def origin(self) -> dict[str, Origin]:
        """Where every parameter's value comes from."""
        std = self.base_std
        found: dict[str, Origin] = {}
        for k, name in enumerate(self.base.names):
            rows = np.flatnonzero(self.base.matrix[:, k])
            known = rows.size and np.all(np.isfinite(std[rows]))
            alone = rows.size == 1 and np.count_nonzero(self.base.matrix[rows[0]]) == 1
            if not known:
                found[name] = "prior"
            else:
                found[name] = "identified" if alone else "in combination"
        return found

    @cached_property
    def std(self) -> Float[np.ndarray, " parameters"]:
        """Standard deviation of each parameter; infinite unless it is seen alone."""
        std = np.full(self.parameters.size, np.inf)
        leader = {index: row for row, index in enumerate(self.base.indices)}
        for k, name in enumerate(self.base.names[: std.size]):
            if self.origin[name] == "identified":
                std[k] = self.base_std[leader[k]]
        return std

    def predict(self, samples: Samples) -> Float[np.ndarray, "samples dof"]:
        """Torque in [N m] for a motion, every friction term included."""
        return predict_torque(self.columns, self.all_parameters, samples)

    def validate(self, data: Samples | Sequence[Samples]) -> Validation:
        """Predict the torques of other data and compare."""
        runs = [data] if isinstance(data, Samples) else list(data)
        weights = self.columns.user @ self.all_parameters
        tally = Tally(self.prior_arm.dof)
        for block in self.columns.blocks(runs):
            errors = block_errors(self.columns, block, weights)
            tally.add(block.samples.tau[block.rows], errors)
        return tally.result()


def build_estimate(
    problem: Problem,
    solution: Solution,
    review: Review,
    method: str,
) -> Estimate:
    """Put together what was found."""
    parameters = solution.parameters
    if parameters is None:
        parameters = problem.parameters(solution.values)
    return Estimate(
        columns=problem.columns,
        base=problem.base,
        base_values=solution.values,
        base_covariance=review.covariance,
        all_parameters=parameters,
        fit=review.fit,
        torque_std=solution.torque_std,
        condition_number=solution.condition_number,
        singular_values=solution.singular_values,
        directions=solution.directions,
        method=method,
        notes=solution.notes,
    )
