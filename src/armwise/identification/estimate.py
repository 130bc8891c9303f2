"""The estimate: parameters, their uncertainty, warnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import BaseParameters, Dynamics
from armwise.errors import ArgumentError
from armwise.identification.left_out import LeftOut, leave_out
from armwise.identification.methods import Method, PhysicallyConsistent
from armwise.identification.posterior import (
    BAND_DRAWS,
    Posterior,
    torque_band,
)
from armwise.identification.validation import (
    Review,
    Tally,
    TorqueLag,
    Validation,
    at_usual_temperature,
    block_masks,
    filter_effect,
    noise_memory,
    predict_torque,
    predicted_block,
)
from armwise.recordings import (
    PredictionBand,
    Preparation,
    Recording,
    Samples,
    prepare,
)
from armwise.regression import (
    Block,
    Columns,
    FrictionTerm,
    Solution,
    few_threads,
)

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.errors import EstimateWarning
    from armwise.identification.problem import Problem
    from armwise.motions import Motion


Origin = Literal["identified", "in combination", "prior"]

_ENOUGH_ROWS = 4000
"""Samples from which on every so manieth is compared with its interval: neighbours
repeat each other, and a quantile of these is known to half a per cent."""

_FEW_ROWS = 20
"""Rows below which nine tenths of them are no quantile: all rows are judged then, by
the residual of the fit alone."""

_NINE_TENTHS = 1.645
"""Standard deviations that hold nine tenths of Gaussian errors."""


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
        torque_lag: Delay of the torque behind the motion with its uncertainty, which
            is part of every interval: fitted beside the parameters or, if it is hardly
            determined, taken as it is. None: it was given.
        gain_std: Standard deviation of each joint's torque gain that is part of the
            covariance, assumed or found; None: no interval knows of gains.
        same_effects: Columns whose products with themselves are the covariance's part
            due to gains, to other friction terms that do as well, and to what the model
            leaves out: the same drives, through sensors of the same gains, show the
            same torques in spite of it.
        friction_effects: Those of them that are due to other friction terms.
        solved: The problem and the method, to leave out stretches by; None: a file's,
            or one that keeps sums and no samples.
        known_left_out: What `leave_out` gave, of a file; None: see `left_out_fits`.
        known_plain: Parameters whose viscous, Coulomb and constant friction stand for
            all of it, once `arm_for_file` was asked; None: it was not.
        method: Name of the method that solved for it.
        known_preparation: How the logs of a file's fit were prepared; see
            `preparation`.
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
    same_effects: Float[np.ndarray, "base effects"] | None = None
    friction_effects: Float[np.ndarray, "base effects"] | None = None
    solved: tuple[Problem, Method] | None = None
    known_left_out: LeftOut | None = None
    known_plain: Float[np.ndarray, " parameters"] | None = None
    known_preparation: Preparation | None = None
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

    @property
    def preparation(self) -> Preparation | None:
        """How the logs of the fit were prepared, for others: `prepare(…, like=)`.

        None where samples were given, and in files of earlier versions.
        """
        if not self.samples:
            return self.known_preparation
        own = self.samples[0].preparation
        return None if own.derivatives == "given" else own.settings

    @cached_property
    def std(self) -> Float[np.ndarray, " parameters"]:
        """Standard deviation of each parameter; infinite unless it stands alone.

        Of the consistent fit, from which bodies and friction that cannot be are half
        taken out: half-way, in variance, between the fit without constraints and draws
        of bodies that can exist.
        """
        std = np.full(self.parameters.size, np.inf)
        leader = {index: row for row, index in enumerate(self.base.indices)}
        spread = self.base_std
        if self.method == PhysicallyConsistent.__name__:
            # About the estimate and not about their mean: at a bound it is at the edge
            # of its own draws. 400 draws know a deviation to 3.5 %.
            deviations = self._posterior.draw(400, 0) - self.all_parameters
            cut = np.mean(deviations**2, axis=0)[list(self.base.indices)]
            # The combination's own half, not that of draws before the cut: these count
            # with the description, which the fit did not.
            spread = np.sqrt(0.5 * (spread**2 + cut))
        for k, name in enumerate(self.base.names[: std.size]):
            # Within a combination a single parameter has no variance of its own.
            if self.origin[name] == "identified":
                std[k] = spread[leader[k]]
        return std

    @cached_property
    def _posterior(self) -> Posterior:
        return self._posterior_of(self.base_covariance)

    @cached_property
    def _posterior_of_draws(self) -> Posterior:
        """What is known of the parameters if friction is of the terms selected.

        Other terms, with the parameters that go with them, do as well; these parameters
        without those terms are far from the torques that were measured.
        """
        if (effects := self.friction_effects) is None:
            return self._posterior
        return self._posterior_of(self.base_covariance - effects @ effects.T)

    @cached_property
    def _posterior_as_measured(self) -> Posterior:
        """What is known of the parameters if drives and sensors are those of the fit.

        What the model leaves out moved the parameters to where they explain it best: it
        does so again, and what is then unexplained is in the residual.
        """
        if (effects := self.same_effects) is None:
            return self._posterior
        return self._posterior_of(self.base_covariance - effects @ effects.T)

    def _posterior_of(self, covariance: np.ndarray) -> Posterior:
        with few_threads():
            return Posterior.of(
                self.columns, self.base, self.all_parameters, covariance
            )

    @cached_property
    def left_out_fits(self) -> LeftOut | None:
        """Fits without a stretch of the data each; None if there are none."""
        # When asked for, as they take as long as all else.
        if self.known_left_out is None and self.solved is not None:
            return leave_out(*self.solved, self.all_parameters)
        return self.known_left_out

    def sample(self, n: int, seed: int = 0) -> Float[np.ndarray, "n parameters"]:
        """Draw parameters as uncertain as the estimate, every row a body that can be.

        Combinations that the data determine scatter as their covariance says, all
        others as far as the description may be off (`identification.PRIOR_STD`).
        Friction is of the terms selected; what others in their place would make of the
        parameters is in `std`, not in the draws.

        Args:
            n: How many.
            seed: Same seed, same draws.
        """
        return self._posterior_of_draws.draw(n, seed)[:, : self.parameters.size]

    def band(
        self,
        samples: Samples,
        level: float = 0.9,
        *,
        residual: bool = True,
        seed: int = 0,
    ) -> PredictionBand:
        """Interval that shall hold the torque of a motion.

        Args:
            samples: The motion.
            level: Fraction of samples that it shall hold.
            residual: Whether the torque is measured, by the sensors of the fit: errors
                are then those on stretches left out, and what is not known of the
                sensors' gains cancels; else it is the torque itself, by draws of the
                parameters.
            seed: Of the draws.
        """
        if not 0.0 < level < 1.0:
            raise ArgumentError(f"A band's level is between 0 and 1, not {level}.")
        if residual and (fits := self.left_out_fits) is not None:
            center = self.predict(samples)
            half = fits.half_width(self.columns, self.all_parameters, samples, level)
            return PredictionBand(center - half, center + half, level)
        extra = self.fit.rmse if residual else np.zeros(self.prior_arm.dof)
        draws = (
            self._posterior_as_measured.draw(BAND_DRAWS, seed)
            if residual
            else self._posterior.scatter(BAND_DRAWS, seed)
        )
        return torque_band(
            self.columns,
            draws,
            self.all_parameters,
            samples,
            level,
            extra,
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
        variance = np.empty((len(samples), self.prior_arm.dof))
        for block in self.columns.blocks([samples]):
            rows = [self._variance(Y) for Y in self._base_columns(block)]
            variance[block.rows] = np.stack(rows, axis=1)
        return np.sqrt(variance + self.torque_std**2)

    def _base_columns(self, block: Block) -> list[Float[np.ndarray, "base rows"]]:
        """For each joint the torque of a unit of every combination."""
        leaders = self.columns.user[:, list(self.base.indices)]
        pairs = zip(self.columns.support, block.joints, strict=True)
        return [leaders[support].T @ matrix[:-1] for support, matrix in pairs]

    def _variance(self, Y: Float[np.ndarray, "base rows"]) -> np.ndarray:
        """Variance of such a torque in [N² m²] due to the parameters alone."""
        is_known = np.isfinite(self.base_std)
        # Infinity times zero is not a number: unknown ones are looked at apart.
        covariance = np.where(np.outer(is_known, is_known), self.base_covariance, 0.0)
        own = np.sum(Y * (covariance @ Y), axis=0)
        # Below rounding of the largest column a torque does not depend on it.
        floor = 1e-12 * np.abs(Y).max(initial=0.0)
        is_open = (np.abs(Y[~is_known]) > floor).any(axis=0)
        return np.where(is_open, np.inf, np.maximum(own, 0.0))

    def validate(
        self,
        data: Samples | Recording | Sequence[Samples | Recording],
        fine: Samples | None = None,
    ) -> Validation:
        """Predict the torques of other data and compare.

        Args:
            data: The data, one run or several; recordings are prepared as the fit's.
            fine: The first run again with faster motion left in, to know what its
                low-pass does to torques; `Validation.interval_ratio` is without that.
        """
        every = [data] if isinstance(data, Samples | Recording) else list(data)
        runs = [
            run if isinstance(run, Samples) else prepare(run, like=self)
            for run in every
        ]
        weights = self.columns.user @ self.all_parameters
        tally = Tally(self.prior_arm.dof)
        for block in self.columns.blocks(runs):
            measured = block.samples.tau[block.rows]
            predicted = predicted_block(self.columns, block, weights)
            memory = noise_memory(block.samples)
            tally.add(measured, measured - predicted, block_masks(block), memory)
        return replace(tally.result(), interval_ratio=self._interval_ratio(runs, fine))

    def _interval_ratio(
        self, runs: Sequence[Samples], fine: Samples | None
    ) -> Float[np.ndarray, " dof"]:
        """See `Validation.interval_ratio`."""
        weights = self.columns.user @ self.all_parameters
        step = max(1, sum(len(run) for run in runs) // _ENOUGH_ROWS)
        parts = []
        for k, run in enumerate(runs):
            measured = run.tau
            if fine is not None and k == 0:
                parameters = self.all_parameters
                effect = filter_effect(self.columns, parameters, run, fine)
                measured = measured - effect
            for block in self.columns.blocks([run], [slice(0, len(run), step)]):
                predicted = predicted_block(self.columns, block, weights)
                # At rest and while friction reverses it may have any value.
                is_judged = block_masks(block)[0]
                if block.trust is not None:
                    is_judged = is_judged & (block.trust > 0.0)
                error = np.abs(measured[block.rows] - predicted)
                parts.append((error, predicted, is_judged, self._base_columns(block)))
        error, predicted, is_judged = (
            np.concatenate([part[k] for part in parts]) for k in range(3)
        )
        ratio = np.empty(error.shape[1])
        for j, std in enumerate(self.torque_std):
            Y = np.concatenate([part[3][j] for part in parts], axis=1)
            own, rows = self._variance(Y), is_judged[:, j]
            if self.gain_std is not None:
                # The same sensors: a factor common to a joint's torques cancels. What
                # is known of the torque beside such a factor is known in any case.
                torque = predicted[:, j]
                power = max(float(torque @ torque), 1e-300)
                beside = self._variance(Y - np.outer(Y @ torque / power, torque))
                without = own - (self.gain_std[j] * torque) ** 2
                own = np.minimum(own, np.maximum(without, beside))
            rows = rows & np.isfinite(own)
            if rows.sum() < _FEW_ROWS:
                own, rows = np.zeros(own.shape), np.ones(own.shape, dtype=bool)
            # Exact data have no residual: a billionth of the torque, for rounding.
            least = 1e-9 * np.abs(predicted[:, j]).max(initial=0.0) + 1e-300
            sizes = np.sqrt(own[rows] + std**2) + least
            ratio[j] = np.quantile(error[rows, j] / sizes, 0.9) / _NINE_TENTHS
        return ratio


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
    planned = at_usual_temperature(model.columns, planned)
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
        columns=loaded_columns(problem.columns, parameters).seen_in(problem.data),
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


def loaded_columns(columns: Columns, parameters: np.ndarray) -> Columns:
    """Columns whose gears carry what these parameters say."""
    if not columns.follows_estimate:
        return columns
    return replace(columns, load=parameters[: columns.arm.layout.size])
