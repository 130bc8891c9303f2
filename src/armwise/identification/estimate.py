"""The estimate: parameters, their uncertainty, warnings; and its file."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.arms import Arm, arm_from_dict, arm_to_dict, kinematics_digest
from armwise.dynamics import BaseParameters, Dynamics
from armwise.errors import ArmwiseError, EstimateWarning
from armwise.files import write_atomically
from armwise.identification.methods import PhysicallyConsistent
from armwise.identification.posterior import Posterior, TorqueBand, torque_band
from armwise.identification.problem import Problem
from armwise.identification.validation import (
    PARTS,
    Masks,
    PartErrors,
    Review,
    Tally,
    TorqueLag,
    Validation,
    noise_memory,
    predict_torque,
    predicted_block,
)
from armwise.motions import Motion
from armwise.recordings import Samples
from armwise.regression import Columns, FrictionTerm, Solution
from armwise.tables import LARGEST_NUMBER, read_json

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
        torque_lag: Delay of the torque behind the motion, fitted beside the parameters,
            with its uncertainty; None: it was given, or is hardly determined.
        gain_std: Standard deviation of each joint's torque gain that is part of the
            covariance, assumed or found; None: no interval knows of gains.
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
    torque_lag: TorqueLag | None = None
    gain_std: Float[np.ndarray, " dof"] | None = None
    notes: tuple[str, ...] = ()
    warnings: tuple[EstimateWarning, ...] = ()
    samples: tuple[Samples, ...] = ()
    validation: Validation | None = None
    validation_samples: tuple[Samples, ...] = ()
    left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: what was estimated, and how far predictions are off."""
        judged = self.validation or self.fit
        where = "unseen data" if self.validation else "the fit"
        errors = " ".join(f"{100.0 * e:.3g}" for e in judged.relative_error[:8])
        more = " …" if len(judged.relative_error) > 8 else ""
        return (
            f"<Estimate of {self.prior_arm.name}: {self.base.count} base parameters, "
            f"{self.method}; error on {where} {errors}{more} %, "
            f"{len(self.warnings)} warnings>"
        )

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
    def friction(self) -> tuple[tuple[FrictionTerm, float], ...]:
        """Friction beyond viscous, Coulomb and offset: terms and their coefficients."""
        values = self.all_parameters[self.parameters.size :].tolist()
        return tuple(zip(self.columns.friction, values, strict=True))

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
        """Standard deviation of each parameter; infinite unless it stands alone.

        Of the consistent fit, which bodies and friction that cannot be are no part of:
        the root mean square deviation of draws (`sample`) from the estimate.
        """
        std = np.full(self.parameters.size, np.inf)
        leader = {index: row for row, index in enumerate(self.base.indices)}
        spread = self.base_std
        if self.method == PhysicallyConsistent.__name__:
            # About the estimate and not about their mean: at a bound it is at the edge
            # of its own draws. 800 draws know a deviation to 2.5 %.
            deviations = self._posterior.draw(800, 0) - self.all_parameters
            own = np.sqrt(np.mean(deviations**2, axis=0))[list(self.base.indices)]
            spread = np.where(np.isfinite(spread), own, spread)
        for k, name in enumerate(self.base.names[: std.size]):
            # Within a combination a single parameter has no variance of its own.
            if self.origin[name] == "identified":
                std[k] = spread[leader[k]]
        return std

    @cached_property
    def _posterior(self) -> Posterior:
        from threadpoolctl import threadpool_limits

        with threadpool_limits(limits=1, user_api="blas"):  # small: one is faster
            return Posterior.of(
                self.columns, self.base, self.all_parameters, self.base_covariance
            )

    def sample(self, n: int, seed: int = 0) -> Float[np.ndarray, "n parameters"]:
        """Draw parameters as uncertain as the estimate, every row a body that can be.

        Combinations that the data determine scatter as their covariance says, all
        others as far as the description may be off (`identification.PRIOR_STD`).

        Args:
            n: How many.
            seed: Same seed, same draws.
        """
        return self._posterior.draw(n, seed)[:, : self.parameters.size]

    def band(
        self,
        samples: Samples,
        level: float = 0.9,
        *,
        residual: bool = True,
        seed: int = 0,
    ) -> TorqueBand:
        """Interval that shall hold the torque of a motion, by draws of the parameters.

        Args:
            samples: The motion.
            level: Fraction of samples that it shall hold.
            residual: Whether the torque is measured, by the sensors of the fit: what it
                left unexplained is then added, and what is not known of their gains
                cancels; else it is the torque itself.
            seed: Of the draws.
        """
        extra = self.fit.rmse if residual else np.zeros(self.prior_arm.dof)
        return torque_band(
            self.columns,
            self._posterior,
            self.all_parameters,
            samples,
            level,
            extra,
            same_sensor=residual and self.gain_std is not None,
            seed=seed,
        )

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
        tally, masks = Tally(self.prior_arm.dof), Masks()
        for block in self.columns.blocks(runs):
            measured = block.samples.tau[block.rows]
            predicted = predicted_block(self.columns, block, weights)
            memory = noise_memory(block.samples)
            tally.add(measured, measured - predicted, masks.of(block), memory)
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
        columns=_loaded(problem.columns, parameters),
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
        torque_lag=review.lag,
        notes=solution.notes,
        samples=problem.data,
        validation_samples=problem.validation_data,
    )


def _loaded(columns: Columns, parameters: np.ndarray) -> Columns:
    """Columns whose gears carry what these parameters say."""
    if not columns.uses_load:
        return columns
    return replace(columns, load=parameters[: columns.arm.layout.size])


# The file: complete but for the samples, versioned, and read back as it was.

VERSION = 2
"""Version of the file format; a reader refuses any other."""
LARGEST_ERROR = 1e6
"""Relative error beyond which a fit predicts nothing: the file is broken."""


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
    data = read_json(Path(path), "an estimate")
    # No guess at other versions: a wrong model on a robot costs more than a refusal.
    if data.get("version") != VERSION:
        raise ArmwiseError(
            f"{path} is not an estimate of version {VERSION}. Identify again."
        )
    described = arm_from_dict(data.get("description"), str(path))
    digest = kinematics_digest(described)
    if data.get("kinematics") != digest:
        raise ArmwiseError(
            f"{path} was changed: its description is not the one it was made from. "
            "Identify again."
        )
    if arm is not None and kinematics_digest(arm) != digest:
        raise ArmwiseError(
            f"{path} is an estimate of {described.name}, whose joints are not those of "
            f"{arm.name}. Name the arm it was made from, or identify this one."
        )
    try:
        return _estimate(data, described if arm is None else arm)
    except (
        *(AttributeError, KeyError, IndexError, TypeError, ValueError),
        *(OverflowError, ArmwiseError),
    ) as error:
        raise ArmwiseError(f"{path} is not a complete estimate: {error}.") from error


def estimate_to_dict(estimate: Estimate) -> dict[str, Any]:
    """Return all of an estimate as plain numbers and words; infinity is null."""
    validation, lag = estimate.validation, estimate.torque_lag
    gains = estimate.gain_std
    return {
        "version": VERSION,
        "arm": estimate.prior_arm.name,
        "description": arm_to_dict(estimate.prior_arm),
        "kinematics": kinematics_digest(estimate.prior_arm),
        "method": estimate.method,
        "torque_lag": None if lag is None else asdict(lag),
        "gain_std": None if gains is None else gains.tolist(),
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
    term = FrictionTerm(**stored)
    # Columns ask for the drive's name; numbers of another type would pass that.
    if type(term.joint) is not int or term.scale > LARGEST_NUMBER:
        raise ValueError("a friction term is none of the arm's")
    return term


def _estimate(data: dict[str, Any], arm: Arm) -> Estimate:
    """Build an estimate from a file that anyone may have changed."""
    columns = Columns(arm, tuple(_friction_term(x) for x in data["friction"]))
    names = columns.names
    if tuple(data["names"]) != names:
        raise ValueError(f"it names other parameters than {arm.name} has")
    parameters = _array(data["parameters"], len(names))
    columns = _loaded(columns, parameters)
    base = _base(data["base"], names)
    count = base.count
    covariance = _array(data["base"]["covariance"], count, count, infinite=True)
    if np.any(np.diag(covariance) < 0.0) or not np.allclose(covariance, covariance.T):
        raise ValueError("its covariance is none")
    condition = float(_array(data["condition_number"], infinite=True))
    if condition < 1.0:
        raise ValueError(f"its condition number is {condition:g}")
    validation, gains = data.get("validation"), data.get("gain_std")
    warnings = tuple(EstimateWarning(**one) for one in data["warnings"])
    left_out = _words(data["left_out"])
    if not set(left_out) <= set(names):
        raise ValueError("it left out parameters that the arm does not have")
    return Estimate(
        columns=columns,
        base=base,
        base_values=_array(data["base"]["values"], count),
        base_covariance=covariance,
        all_parameters=parameters,
        fit=_validation(data["fit"], arm.dof),
        torque_std=_array(data["torque_std"], arm.dof, least=0.0),
        condition_number=condition,
        singular_values=_array(data["singular_values"], count, least=0.0),
        directions=_array(data["directions"], count, count),
        method=_words([data["method"]])[0],
        torque_lag=_lag(data.get("torque_lag")),  # older files have none
        gain_std=None if gains is None else _array(gains, arm.dof, least=0.0),
        notes=_words(data["notes"]),
        warnings=warnings,
        validation=None if validation is None else _validation(validation, arm.dof),
        left_out=left_out,
    )


def _base(stored: dict[str, Any], names: tuple[str, ...]) -> BaseParameters:
    indices = tuple(stored["indices"])
    matrix = _array(stored["matrix"], len(indices), len(names))
    is_whole = all(type(i) is int and 0 <= i < len(names) for i in indices)
    # The columns of what leads a combination are the identity.
    if not is_whole or not np.array_equal(matrix[:, indices], np.eye(len(indices))):
        raise ValueError("its combinations are none of the arm's parameters")
    unidentifiable = _words(stored["unidentifiable"])
    if not set(unidentifiable) <= set(names):
        raise ValueError("it calls parameters unidentifiable that the arm has not")
    return BaseParameters(names, indices, matrix, unidentifiable)


def _validation(data: dict[str, Any], dof: int) -> Validation:
    parts = {k: _part(data[k], dof) for k in PARTS if k in data}
    whole = {k: v for k, v in data.items() if k not in (*PARTS, "samples")}
    arrays = {k: _array(v, dof) for k, v in whole.items()}
    errors = Validation(samples=data["samples"], **arrays, **parts)  # type: ignore[arg-type]
    is_sound = (
        type(errors.samples) is int
        and errors.samples >= 0
        and np.all((errors.relative_error >= 0) & (errors.rmse >= 0))
        and np.all(errors.relative_error < LARGEST_ERROR)
        # One but for rounding.
        and np.all((errors.r2 <= 1.0) & (np.abs(errors.whiteness) <= 1.0 + 1e-6))
    )
    if not is_sound:
        raise ValueError("its errors are none")
    return errors


def _lag(stored: dict[str, Any] | None) -> TorqueLag | None:
    if stored is None:
        return None
    seconds = float(_array(stored["seconds"]))
    return TorqueLag(seconds, float(_array(stored["std"], least=0.0)))


def _part(data: dict[str, Any], dof: int) -> PartErrors:
    arrays = {k: _array(v, dof, least=0.0, infinite=True) for k, v in data.items()}
    # Null is what is not known here, as joints without such rows have no error.
    return PartErrors(
        **{k: np.where(np.isinf(v), np.nan, v) for k, v in arrays.items()}
    )


def _words(values: Any) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(x, str) for x in values):
        raise ValueError("words are expected where it has something else")
    return tuple(values)


def _array(
    values: Any, *shape: int, least: float = -math.inf, infinite: bool = False
) -> np.ndarray:
    """Numbers of a shape; null is infinity where that may be."""
    array = np.array(values, dtype=object)
    if infinite:
        array[array == None] = math.inf  # noqa: E711
    array = array.astype(float)
    is_number = (array >= least) & (np.abs(array) <= LARGEST_NUMBER)
    if infinite:
        is_number |= np.isposinf(array)
    if array.shape != shape or not np.all(is_number):
        raise ValueError("it holds numbers no estimate has")
    return array


def _finite(values: np.ndarray) -> list[float | None]:
    # JSON has no infinity.
    return [float(v) if math.isfinite(v) else None for v in values]
