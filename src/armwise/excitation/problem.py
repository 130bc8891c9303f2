"""The optimisation: free numbers in, lost information and price out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from armwise.excitation.information import RIDGE, InformationModel
from armwise.excitation.penalty import Penalty
from armwise.excitation.requirements import Requirements
from armwise.excitation.score import regularised_log_det
from armwise.excitation.series import Basis, Series

if TYPE_CHECKING:
    from jaxtyping import Float

COARSE, FINE = 16, 64
"""Samples in a period of the highest harmonic: to optimise, and to repair at last."""

LARGEST_MOVE, MOST_SAMPLES = 0.12, 500
"""How far in [rad] or [m] a joint may move between samples of the coarse grid, so that
an arm does not leap over obstacles, unless that takes more samples than this."""

MISSED_SHARE, MISSED_ROOM = 0.16, 0.06
"""Share of a limit, and distance in [m], that peaks between samples may hide, times the
samples in a period of the highest harmonic: what a search aims to leave free."""

ACCEPTED = 0.4
"""Part of that which is enough when a motion is judged on the same grid."""

PULL = 1.0
"""What it costs to bend a motion while repairing it."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Find the free numbers of a series that tell most and break nothing.

    Attributes:
        series: The motions to choose from.
        model: What they tell.
        requirements: What they must respect.
        known: What is known before, scaled and per sample like the model's.
        share: Share of every limit that may be used.
        density: Samples in a period of the highest harmonic.
    """

    series: Series
    model: InformationModel
    requirements: Requirements
    known: Float[np.ndarray, "count count"]
    share: float
    density: int = COARSE

    def simplified(self) -> Problem:
        """Return the same problem without what the arm hardly ever comes near."""
        return replace(self, requirements=self.requirements.nearby())

    def refined(self) -> Problem:
        """Return the same problem on a finer grid."""
        return replace(self, density=FINE)

    @cached_property
    def basis(self) -> Basis:
        """The series on the grid of the optimisation."""
        series = self.series
        moves = series.period * float(series.bounds.velocity.max()) / LARGEST_MOVE
        count = max(series.harmonics, min(moves, MOST_SAMPLES) / COARSE)
        count = int(np.ceil(self.density * count))
        return series.basis(np.arange(count) * (series.period / count))

    def states(self, z: np.ndarray) -> tuple[np.ndarray, ...]:
        """q, q̇, q̈ on that grid."""
        return self.basis.states(self.series.coefficients(z))

    def excess(self, z: np.ndarray) -> float:
        """How far a motion is outside on that grid; negative if it is inside."""
        usage = self.requirements.usage(self.states(z))
        missed = ACCEPTED * MISSED_SHARE / self.density
        return float(usage.excess(self.share * (1.0 - missed)).max())

    def penalty(self) -> Penalty:
        """Return a new price of breaking requirements on that grid."""
        share = self.share * (1.0 - MISSED_SHARE / self.density)
        return Penalty(self.requirements, share, MISSED_ROOM / self.density)

    def log_det(self, z: np.ndarray) -> float:
        """Regularised log det of all that would be known."""
        information = self.model.of_states(self.states(z))
        return regularised_log_det(information + self.known)

    def lost(
        self, penalty: Penalty, shape: tuple[int, int]
    ) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return −log det + price and its gradient, as a function of flat z."""

        def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
            states = self.states(flat.reshape(shape))
            information, columns = self.model.softened(states)
            total = information + self.known + RIDGE * np.eye(len(information))
            factor = np.linalg.cholesky(total)
            inverse = np.linalg.inv(factor)
            value = -2.0 * float(np.log(np.diag(factor)).sum())
            slopes = self.model.slopes(states, columns, -inverse.T @ inverse)
            price, forces = penalty(states)
            sums = tuple(a + b for a, b in zip(slopes, forces, strict=True))
            pulled = self.series.pull_back(self.basis.gather(sums))
            return value + price, pulled.ravel()

        return evaluate

    def broken(
        self, penalty: Penalty, near: np.ndarray
    ) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Return the price, and that of leaving `near`, as a function of flat z."""

        def evaluate(flat: np.ndarray) -> tuple[float, np.ndarray]:
            price, forces = penalty(self.states(flat.reshape(near.shape)))
            pulled = self.series.pull_back(self.basis.gather(tuple(forces)))
            away = flat - near.ravel()
            return price + 0.5 * PULL * float(away @ away), pulled.ravel() + PULL * away

        return evaluate
