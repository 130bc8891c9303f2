"""The identification problem: data compressed per joint, in base coordinates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import DRIVE_NAMES
from armwise.dynamics import (
    UNSEEN,
    BaseParameters,
    Grouping,
    Mechanism,
    structural_factor,
    successive_ranks,
)
from armwise.errors import ArgumentError, EstimateWarning
from armwise.recordings import Samples
from armwise.regression import Accumulator, Columns, FrictionTerm, accumulate

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

TERMS = ("links", *DRIVE_NAMES)
"""What can be estimated: the links' inertias, and each number of the drives."""


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """Torques to explain, compressed to one small matrix per joint.

    Attributes:
        columns: What explains the torque.
        data: The samples, run by run.
        accumulator: Their R factors.
        base: The combinations to estimate, over all parameters and friction terms.
        is_estimated: Which parameters are free; the others keep the arm's values.
        friction_candidates: Friction terms that were tried, the selected among them.
        friction_spread: What other terms would move the base parameters by, as in
            `FrictionSelection`.
        validation_data: Samples that are kept out of the fit.
        fine_validation: The first of them again, with faster motion left in; None where
            samples were given, or there are too many.
        data_warnings: What looks wrong with the recordings, before any fit.
    """

    columns: Columns
    data: tuple[Samples, ...]
    accumulator: Accumulator
    base: BaseParameters
    is_estimated: np.ndarray
    friction_candidates: tuple[FrictionTerm, ...] = ()
    friction_spread: Float[np.ndarray, "alternatives base"] | None = None
    validation_data: tuple[Samples, ...] = ()
    fine_validation: Samples | None = None
    data_warnings: tuple[EstimateWarning, ...] = ()

    def __repr__(self) -> str:
        rows = int(self.rows.sum())
        names = ", ".join(term.name for term in self.friction) or "none"
        return (
            f"Problem({self.columns.arm.name}: {self.base.count} base parameters, "
            f"{rows} trusted torques in {round(self.accumulator.samples)} samples, "
            f"friction terms beyond viscous and Coulomb: {names})"
        )

    @property
    def friction(self) -> tuple[FrictionTerm, ...]:
        """Friction terms beyond viscous, Coulomb and offset."""
        return self.columns.friction

    @property
    def rows(self) -> Float[np.ndarray, " dof"]:
        """How many samples each joint is learnt from: its friction does not reverse."""
        return self.accumulator.trusted

    @cached_property
    def weights(self) -> Float[np.ndarray, " dof"]:
        """Weight 1/σ in [1/(N m)] of each joint's rows, σ from its own residuals."""
        from armwise.identification.methods import WeightedLeastSquares

        return np.asarray(1.0 / WeightedLeastSquares().solve(self).torque_std)

    @cached_property
    def prior(self) -> Float[np.ndarray, " parameters"]:
        """The arm's own parameters; friction terms start from zero."""
        extra = np.zeros(len(self.columns.friction))
        return np.concatenate([self.columns.arm.parameters, extra])

    @cached_property
    def prior_base(self) -> Float[np.ndarray, " base"]:
        """The combinations of the arm's own parameters."""
        return self.base.values(self.prior)

    def systems(
        self, accumulator: Accumulator | None = None
    ) -> list[Float[np.ndarray, "rows base+1"]]:
        """Per joint, rows [A, b] with ‖A β − b‖² the sum of its squared residuals.

        Parameters that are not estimated have been moved to the right-hand side.
        """
        factors = (self.accumulator if accumulator is None else accumulator).factors
        return self._systems(factors, self.leaders, self.fixed)

    def _systems(
        self, factors: Sequence[np.ndarray], leaders: np.ndarray, fixed: np.ndarray
    ) -> list[Float[np.ndarray, "rows base+1"]]:
        systems = []
        for support, factor in zip(self.columns.support, factors, strict=True):
            regressor, torques = factor[:, :-1], factor[:, -1]
            # R stands for all rows, so that moving columns to the right needs no data.
            torque = torques - regressor @ fixed[support]
            systems.append(np.column_stack([regressor @ leaders[support], torque]))
        return systems

    @property
    def leaders(self) -> Float[np.ndarray, "columns base"]:
        """What multiplies the columns for a unit of each base parameter.

        A base parameter's column is its leader's: the others are grouped into it. The
        lag follows all of them, as `lag_profile` says.
        """
        leaders = self.columns.user[:, list(self.base.indices)]
        leaders[self.columns.lags] = -self.lag_profile[:-1]
        return leaders

    @property
    def fixed(self) -> Float[np.ndarray, " columns"]:
        """What multiplies the columns if all base parameters are zero."""
        fixed = self.columns.user @ np.where(self.is_estimated, 0.0, self.prior)
        fixed[self.columns.lags] = self.lag_profile[-1]
        return fixed

    @cached_property
    def lag_profile(self) -> Float[np.ndarray, " base+1"]:
        """The lag that fits best beside base parameters β: the last entry − c β.

        Putting it in their place makes the fit, and all that follows from it, that of
        β and lag together (Frisch, Waugh and Lovell), whatever method solves for β.
        """
        columns = self.columns
        if not columns.has_lags:
            return np.zeros(self.base.count + 1)
        leaders = columns.user[:, list(self.base.indices)]
        fixed = columns.user @ np.where(self.is_estimated, 0.0, self.prior)
        factors = self.accumulator.factors
        systems = self._systems(factors, leaders, fixed)
        lags = [factor[:, -2] for factor in factors]
        # Weights as weighted least squares finds them without the lag: what β follows
        # from is then not exactly the best lag, but just as consistent.
        std = self._first_std(systems)
        pairs = list(zip(lags, systems, std, strict=True))
        squares = sum(float(lag @ lag) / d**2 for lag, _, d in pairs)
        if squares == 0.0:
            return np.zeros(self.base.count + 1)
        return np.asarray(sum(lag @ s / d**2 for lag, s, d in pairs) / squares)

    def _first_std(self, systems: Sequence[np.ndarray]) -> np.ndarray:
        from armwise.identification.methods.least_squares import solve_weighted

        count = self.accumulator.samples
        # Two rounds: these weights need no more digits.
        return solve_weighted(systems, self.prior_base, count, 2).torque_std

    def column_weights(self, values: np.ndarray) -> Float[np.ndarray, " columns"]:
        """What multiplies the columns for base parameters β, the lag among it."""
        return np.asarray(self.fixed + self.leaders @ values)

    def lag(self, values: np.ndarray) -> float:
        """What is left of the torque's delay for base parameters β in [s]."""
        return float(self.lag_profile[-1] - self.lag_profile[:-1] @ values)

    def accumulate(self, weights: Sequence[np.ndarray]) -> Accumulator:
        """Run through the data again with weights on its rows."""
        return accumulate(self.columns, self.data, weights)

    def parameters(self, values: np.ndarray) -> Float[np.ndarray, " parameters"]:
        """Return the parameters nearest to the arm's own that have these combinations.

        Nearness is measured relative to each parameter's size, so that a small inertia
        is not moved by kilograms of mass.
        """
        K = self.base.matrix * self.is_estimated
        # 1e-3 (kg, kg m, kg m²): parameters described as zero can still move.
        size = np.maximum(np.abs(self.prior), 1e-3) * self.is_estimated
        scaled = K * size
        # Every combination in its own unit: friction described as zero must not be lost
        # beside the inertia of a link of a ton.
        unit = np.linalg.norm(scaled, axis=1)
        unit[unit == 0.0] = 1.0
        scaled = scaled / unit[:, None]
        right = (values - self.prior_base) / unit
        # The least-norm step in scaled parameters; lstsq, as K may lose rank.
        step = np.linalg.lstsq(scaled @ scaled.T, right, rcond=1e-12)[0]
        return self.prior + size * (scaled.T @ step)

    def with_terms(self, is_kept: Bool[np.ndarray, " terms"]) -> Problem:
        """Return the same problem with some of its friction terms only."""
        pairs = zip(self.columns.friction, is_kept, strict=True)
        columns = self.columns.with_friction(tuple(t for t, has in pairs if has))
        own = np.ones(self.is_estimated.size - is_kept.size, dtype=bool)
        free, spread = self.is_estimated[np.append(own, is_kept)], self.friction_spread
        if spread is not None:
            own = np.ones(spread.shape[1] - is_kept.size, dtype=bool)
            spread = spread[:, np.append(own, is_kept)]
        return replace(
            self,
            columns=columns,
            accumulator=accumulate(columns, self.data),
            base=structural_base(columns, free),
            is_estimated=free,
            friction_spread=spread,
        )

    def with_data(
        self, data: Sequence[Samples], accumulator: Accumulator | None = None
    ) -> Problem:
        """Return the same problem on other data."""
        filled = accumulator or accumulate(self.columns, data)
        return Problem(self.columns, tuple(data), filled, self.base, self.is_estimated)


def pose_problem(
    columns: Columns,
    data: Sequence[Samples],
    terms: Iterable[str] = TERMS,
    accumulator: Accumulator | None = None,
) -> Problem:
    """Decide what can be estimated, and run through the data once."""
    free = _estimated(columns, terms)
    base = structural_base(columns, free)
    filled = accumulator or accumulate(columns, data)
    return Problem(columns, tuple(data), filled, base, free)


def count_base(columns: Columns, terms: Iterable[str] = TERMS) -> int:
    """How many base parameters there are to estimate."""
    return structural_base(columns, _estimated(columns, terms)).count


def structural_base(
    columns: Columns, free: np.ndarray, *, from_tip: bool = False
) -> BaseParameters:
    """Base parameters among the free ones, friction terms last.

    Args:
        columns: What the torque is explained by.
        free: Which parameters are estimated.
        from_tip: Combinations are led by motor inertias and the links nearest the
            tip, as in `izaguirre1992`; else by the links nearest the base.
    """
    names = columns.names
    mechanism = columns.dynamics.mechanism
    width = structural_factor(mechanism).shape[1]
    order = tuple(k for k in _order(columns, from_tip) if free[k] and k < width)
    grouping = _grouped(mechanism, order)
    # In the order of the parameters, not in that of the search for ranks.
    rank = np.argsort(grouping.indices)
    # A friction term is no combination of others, nor part of one: it stands alone.
    extra = len(columns.friction)
    matrix = np.zeros((len(rank) + extra, width + extra))
    matrix[: len(rank), :width] = grouping.matrix[rank]
    matrix[len(rank) :, width:] = np.eye(extra)
    indices = [*(int(grouping.indices[k]) for k in rank), *range(width, width + extra)]
    is_observable = np.any(matrix != 0, axis=0)
    unidentifiable = tuple(
        name
        for name, is_shown, is_free in zip(names, is_observable, free, strict=True)
        if is_free and not is_shown
    )
    return BaseParameters(names, tuple(indices), matrix, unidentifiable)


# One fit asks for the same groups four times, with other friction terms beside them.
@lru_cache(maxsize=16)
def _grouped(mechanism: Mechanism, order: tuple[int, ...]) -> Grouping:
    """Which parameters lead the others, of those that are named, in their order."""
    factor = structural_factor(mechanism)
    is_named = np.zeros(factor.shape[1], dtype=bool)
    is_named[list(order)] = True
    return successive_ranks(factor * is_named, order, UNSEEN)


def _order(columns: Columns, from_tip: bool) -> list[int]:
    layout = columns.arm.layout
    if from_tip:
        links = range(len(columns.arm.links) - 1, -1, -1)
        order = [*layout.drive("rotor_inertia")]
        order += [k for i in links for k in np.arange(layout.size)[layout.link(i)]]
        return [*order, *(k for k in range(len(columns.names)) if k not in set(order))]
    # The first of dependent columns leads its group: with masses last, they are grouped
    # into moments and inertias.
    return [*layout.mass_last, *range(layout.size, len(columns.names))]


def _estimated(columns: Columns, terms: Iterable[str]) -> np.ndarray:
    selection = set(terms)
    if unknown := selection - set(TERMS):
        raise ArgumentError(
            f"There is no term {sorted(unknown)[0]!r} to estimate. "
            f"Choose from: {', '.join(TERMS)}."
        )
    layout = columns.arm.layout
    free = np.ones(len(columns.names), dtype=bool)
    free[layout.links] = "links" in selection
    for name in DRIVE_NAMES:
        free[layout.drive(name)] = name in selection
    return free
