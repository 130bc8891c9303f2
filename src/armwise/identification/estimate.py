"""The estimate: parameters, their uncertainty, warnings; and its file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.arms import Arm, arm_from_dict, arm_to_dict
from armwise.dynamics import BaseParameters, Dynamics
from armwise.errors import ArmwiseError, EstimateWarning
from armwise.files import write_atomically
from armwise.identification.problem import Problem
from armwise.identification.validation import (
    Review,
    Tally,
    Validation,
    predict_torque,
    predicted_block,
)
from armwise.motions import Motion
from armwise.recordings import Samples
from armwise.regression import Columns, FrictionTerm, Solution
from armwise.tables import read_bounded

if TYPE_CHECKING:
    from jaxtyping import Float


Origin = Literal["identified", "in combination", "prior"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """The outcome of an identification.

    Attributes:
        columns: What the torque was explained by; friction terms among it.
        base: The combinations that were estimated.
        base_values: Their values β.
        base_covariance: Their covariance, correlated residuals accounted for; infinite
            where the data determine nothing.
        all_parameters: Standard parameters with those combinations, friction terms
            last; nearest to the description where the data leave a choice.
        fit: How well the data of the fit are explained.
        torque_std: Standard deviation of each joint's residual in [N m].
        condition_number: Of the weighted base regressor, columns scaled to one.
        singular_values: Of the same matrix.
        directions: Its right singular vectors, one row each.
        method: Name of the method that solved for it.
        notes: How it was made, where that is not plain from the method.
        warnings: What looks wrong, each with a code.
        samples: The samples of the fit, run by run; empty if they were not kept.
        validation: Errors on samples kept out of the fit; None: not evaluated.
        validation_samples: Those samples.
        left_out: Leaders of the combinations that `reduce` dropped: zero here.
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
    warnings: tuple[EstimateWarning, ...] = ()
    samples: tuple[Samples, ...] = ()
    validation: Validation | None = None
    validation_samples: tuple[Samples, ...] = ()
    left_out: tuple[str, ...] = ()

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
        """Standard deviation of each combination; infinite where undetermined."""
        return np.sqrt(np.diag(self.base_covariance))

    @cached_property
    def origin(self) -> dict[str, Origin]:
        """Where every parameter's value comes from."""
        is_finite = np.isfinite(self.base_std)
        origins: dict[str, Origin] = {}
        for k, name in enumerate(self.base.names):
            rows = np.flatnonzero(self.base.matrix[:, k])
            alone = rows.size == 1 and np.count_nonzero(self.base.matrix[rows[0]]) == 1
            # One undetermined combination is enough: the split is then the
            # description's.
            if not rows.size or not np.all(is_finite[rows]):
                origins[name] = "prior"
            else:
                origins[name] = "identified" if alone else "in combination"
        return origins

    @cached_property
    def std(self) -> Float[np.ndarray, " parameters"]:
        """Standard deviation of each parameter; infinite unless it stands alone."""
        std = np.full(self.parameters.size, np.inf)
        leader = {index: row for row, index in enumerate(self.base.indices)}
        for k, name in enumerate(self.base.names[: std.size]):
            # Within a combination a single parameter has no variance of its own.
            if self.origin[name] == "identified":
                std[k] = self.base_std[leader[k]]
        return std

    def predict(self, samples: Samples) -> Float[np.ndarray, "samples dof"]:
        """Torque in [N m] for a motion, every friction term included."""
        return predict_torque(self.columns, self.all_parameters, samples)

    def predict_std(self, samples: Samples) -> Float[np.ndarray, "samples dof"]:
        """Standard deviation of the predicted torque in [N m].

        Of what is not known of the parameters, and of the residual of the fit: friction
        that the model lacks is in it as far as the fitted motion showed it. Infinite
        where a combination that the data left open takes part.
        """
        covariance = self.base_covariance
        is_known = np.isfinite(np.diag(covariance))
        # Infinity times zero is not a number: unknown ones are looked at apart.
        known = np.where(np.outer(is_known, is_known), covariance, 0.0)
        leaders = self.columns.user[:, list(self.base.indices)]
        variance = np.empty((len(samples), self.prior_arm.dof))
        for block in self.columns.blocks([samples]):
            pairs = zip(self.columns.support, block.joints, strict=True)
            for i, (support, matrix) in enumerate(pairs):
                Y = leaders[support].T @ matrix[:-1]
                own = np.einsum("bs,bc,cs->s", Y, known, Y)
                # Below rounding of the largest column a torque does not depend on it.
                floor = 1e-12 * np.abs(Y).max(initial=0.0)
                is_open = (np.abs(Y[~is_known]) > floor).any(axis=0)
                variance[block.rows, i] = np.where(is_open, np.inf, own)
        return np.sqrt(variance + self.torque_std**2)

    def validate(self, data: Samples | Sequence[Samples]) -> Validation:
        """Predict the torques of other data and compare."""
        runs = [data] if isinstance(data, Samples) else list(data)
        weights = self.columns.user @ self.all_parameters
        tally = Tally(self.prior_arm.dof)
        for block in self.columns.blocks(runs):
            measured = block.samples.tau[block.rows]
            predicted = predicted_block(self.columns, block, weights)
            tally.add(measured, measured - predicted)
        return tally.result()


@dataclass(frozen=True, eq=False)
class PlannedTorque:
    """Torques along a planned motion.

    Attributes:
        tau: In [N m] or [N].
        std: Standard deviation of each; None from a description, which knows none.
    """

    tau: Float[np.ndarray, "times dof"]
    std: Float[np.ndarray, "times dof"] | None


def torque_along(
    model: Arm | Estimate, motion: Motion, times: Float[np.ndarray, " times"]
) -> PlannedTorque:
    """Work out what a planned motion takes, with all friction the model knows.

    Args:
        model: A description, or an estimate, which gives an interval as well.
        motion: What is planned.
        times: When, in [s].
    """
    q, qd, qdd = motion.sample(times)
    if isinstance(model, Arm):
        return PlannedTorque(Dynamics(model).inverse_dynamics(q, qd, qdd), None)
    planned = Samples(times, q, qd, qdd, np.zeros_like(q), arm=model.prior_arm)
    return PlannedTorque(model.predict(planned), model.predict_std(planned))


@dataclass(frozen=True, eq=False)
class Identification:
    """What `identify_recordings` returns; `identify` puts all of it in the estimate."""

    estimate: Estimate
    fitted: Samples
    validated: Samples | None
    validation: Validation | None
    warnings: tuple[str, ...]


def build_estimate(
    problem: Problem,
    solution: Solution,
    review: Review,
    method: str,
) -> Estimate:
    """Put a solution and its review together."""
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
        samples=problem.data,
        validation_samples=problem.validation_data,
    )


# The file: complete but for the samples, versioned, and read back as it was.

VERSION = 1
"""Version of the file format; a reader refuses any other."""
LARGEST = 1e100
"""No estimate has such a number, so a file that holds one is broken. Products of three
still fit float64."""


def write_estimate(estimate: Estimate, path: str | Path) -> None:
    """Write an estimate as JSON, under a temporary name first."""
    # Floats are written by repr, so that they are read back bit by bit.
    text = json.dumps(estimate_to_dict(estimate), indent=1, ensure_ascii=False)
    write_atomically(path, text)


def read_estimate(path: str | Path, arm: Arm | None = None) -> Estimate:
    """Read an estimate of an arm back.

    Args:
        path: What `write_estimate` wrote.
        arm: The description it was made from; the one in the file if not given.
    """
    try:
        data = json.loads(read_bounded(Path(path), ArmwiseError))
    # RecursionError: brackets nested without end in a damaged file.
    except (OSError, ValueError, RecursionError) as error:
        raise ArmwiseError(f"{path} cannot be read as an estimate: {error}.") from error
    # No guess at other versions: a wrong model on a robot costs more than a refusal.
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ArmwiseError(
            f"{path} is not an estimate of version {VERSION}. Identify again."
        )
    if arm is None and "description" not in data:
        raise ArmwiseError(
            f"{path} is of an older version, without its arm's description. Name the "
            "arm as well, or identify again."
        )
    try:
        if arm is None:
            arm = arm_from_dict(data["description"], str(path))
        return _estimate(data, arm)
    except (KeyError, TypeError, ValueError) as error:
        raise ArmwiseError(f"{path} is not a complete estimate: {error}.") from error


def estimate_to_dict(estimate: Estimate) -> dict[str, Any]:
    """Return all of an estimate as plain numbers and words; infinity is null."""
    validation = estimate.validation
    return {
        "version": VERSION,
        "arm": estimate.prior_arm.name,
        "description": arm_to_dict(estimate.prior_arm),
        "method": estimate.method,
        "notes": list(estimate.notes),
        "warnings": [asdict(warning) for warning in estimate.warnings],
        "friction": [asdict(term) for term in estimate.columns.friction],
        "names": list(estimate.base.names),
        "parameters": estimate.all_parameters.tolist(),
        "std": _finite(estimate.std),
        "origin": estimate.origin,
        "base": {
            "indices": list(estimate.base.indices),
            "matrix": estimate.base.matrix.tolist(),
            "unidentifiable": list(estimate.base.unidentifiable),
            "expressions": list(estimate.base.expressions),
            "values": estimate.base_values.tolist(),
            "std": _finite(estimate.base_std),
            "covariance": [_finite(row) for row in estimate.base_covariance],
        },
        "torque_std": estimate.torque_std.tolist(),
        "condition_number": _finite(np.array([estimate.condition_number]))[0],
        "singular_values": estimate.singular_values.tolist(),
        "directions": estimate.directions.tolist(),
        "fit": estimate.fit.to_dict(),
        "validation": None if validation is None else validation.to_dict(),
        "left_out": list(estimate.left_out),
    }


def _friction_term(stored: dict[str, Any]) -> FrictionTerm:
    # Until 2026-11 files called the drag q̇ |q̇| cubic.
    form = "quadratic" if stored["form"] == "cubic" else stored["form"]
    return FrictionTerm(**{**stored, "form": form})


def _estimate(data: dict[str, Any], arm: Arm) -> Estimate:
    columns = Columns(arm, tuple(_friction_term(term) for term in data["friction"]))
    if tuple(data["names"]) != columns.names:
        raise ValueError(f"it names other parameters than {arm.name} has")
    base = data["base"]
    validation = data.get("validation")  # files of older versions have none
    return Estimate(
        columns=columns,
        base=BaseParameters(
            columns.names,
            tuple(base["indices"]),
            _array(base["matrix"]),
            tuple(base["unidentifiable"]),
        ),
        base_values=_array(base["values"]),
        base_covariance=np.array([_infinite(row) for row in base["covariance"]]),
        all_parameters=_array(data["parameters"]),
        fit=_validation(data["fit"]),
        torque_std=_array(data["torque_std"]),
        condition_number=_infinite([data["condition_number"]])[0],
        singular_values=_array(data["singular_values"]),
        directions=_array(data["directions"]),
        method=data["method"],
        notes=tuple(data["notes"]),
        warnings=tuple(EstimateWarning(**one) for one in data.get("warnings", ())),
        validation=None if validation is None else _validation(validation),
        left_out=tuple(data.get("left_out", ())),
    )


def _validation(data: dict[str, Any]) -> Validation:
    arrays = {k: np.array(v, float) for k, v in data.items() if k != "samples"}
    return Validation(**arrays, samples=int(data["samples"]))


def _array(values: list[Any]) -> np.ndarray:
    array = np.array(values, dtype=float)
    if not (np.abs(array) < LARGEST).all():
        raise ValueError("it holds numbers no estimate has")
    return array


def _finite(values: np.ndarray) -> list[float | None]:
    # JSON has no infinity.
    return [float(v) if math.isfinite(v) else None for v in values]


def _infinite(values: list[float | None]) -> list[float]:
    return [math.inf if v is None else float(v) for v in values]
