"""Ways to take a step in time.

An integrator is a frozen object. `step` needs only the rate of the state at a stage;
the compiled loop takes the same steps from `tableau`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from armwise import plants
from armwise.errors import ArgumentError
from armwise.worlds.layout import Layout

Rates = Callable[[np.ndarray, float], np.ndarray]
"""Rate of the state, given the state and the fraction of the step that has passed."""


Tableau = tuple[np.ndarray, np.ndarray]
"""Coefficients a (stages, stages) and b (stages,) of a Runge–Kutta method."""


def _tableau(rows: list[list[float]], weights: list[float]) -> Tableau:
    a = np.zeros((len(weights), len(weights)))
    for k, row in enumerate(rows, 1):
        a[k, : len(row)] = row
    return a, np.array(weights)


_CLASSICAL = _tableau([[1 / 2], [0, 1 / 2], [0, 0, 1]], [1 / 6, 1 / 3, 1 / 3, 1 / 6])
_CASH_KARP = _tableau(
    [
        [1 / 5],
        [3 / 40, 9 / 40],
        [3 / 10, -9 / 10, 6 / 5],
        [-11 / 54, 5 / 2, -70 / 27, 35 / 27],
        [1631 / 55296, 175 / 512, 575 / 13824, 44275 / 110592, 253 / 4096],
    ],
    [37 / 378, 0, 250 / 621, 125 / 594, 0, 512 / 1771],
)
_CASH_KARP_ERRORS = _CASH_KARP[1] - np.array(
    [2825 / 27648, 0, 18575 / 48384, 13525 / 55296, 277 / 14336, 1 / 4]
)


class Integrator(Protocol):
    """A way to take a step."""

    @property
    def nodes(self) -> tuple[float, ...]:
        """Fractions of the step at which rates are asked for."""
        ...

    @property
    def tableau(self) -> Tableau | None:
        """Runge–Kutta coefficients for the compiled loop; None: semi-implicit."""
        ...

    @property
    def stiffest(self) -> float:
        """Largest λh of a constraint for which a step is stable."""
        ...

    def step(
        self, rates: Rates, state: np.ndarray, h: float, layout: Layout
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the next state and an estimate of its error (zero if unknown)."""
        ...


@dataclass(frozen=True)
class RungeKutta4:
    """The classical method of order four."""

    stiffest: float = 2.5

    @property
    def nodes(self) -> tuple[float, ...]:
        """Start, middle twice, end."""
        return (0.0, 0.5, 0.5, 1.0)

    @property
    def tableau(self) -> Tableau:
        """Coefficients a and b."""
        return _CLASSICAL

    def step(
        self, rates: Rates, state: np.ndarray, h: float, layout: Layout
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take one step; it does not know its error."""
        a, b = _CLASSICAL
        slopes = _stages(rates, state, h, self.nodes, a)
        return state + h * (b @ slopes), np.zeros_like(state)


@dataclass(frozen=True)
class CashKarp:
    """Order five with an error estimate of order four; the step adapts.

    Attributes:
        tolerance: Largest error per step, relative to 1 + |state|.
        smallest: Smallest step in [s] before giving up.
    """

    tolerance: float = 1e-9
    smallest: float = 1e-9
    stiffest: float = np.inf

    @property
    def errors(self) -> np.ndarray:
        """Weights of the stages in the error: fifth order minus fourth."""
        return _CASH_KARP_ERRORS

    @property
    def nodes(self) -> tuple[float, ...]:
        """Six of them."""
        return (0.0, 1 / 5, 3 / 10, 3 / 5, 1.0, 7 / 8)

    @property
    def tableau(self) -> Tableau:
        """Coefficients a and the fifth-order b (Cash and Karp 1990)."""
        return _CASH_KARP

    def step(
        self, rates: Rates, state: np.ndarray, h: float, layout: Layout
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take one step and estimate its error from the embedded fourth order."""
        a, b = _CASH_KARP
        slopes = _stages(rates, state, h, self.nodes, a)
        return state + h * (b @ slopes), h * (self.errors @ slopes)


@dataclass(frozen=True)
class SemiImplicit:
    """Velocities first, then positions with the new velocities: cheap and steady."""

    stiffest: float = 0.8

    @property
    def nodes(self) -> tuple[float, ...]:
        """The start."""
        return (0.0,)

    @property
    def tableau(self) -> None:
        """It has none."""
        return None

    def step(
        self, rates: Rates, state: np.ndarray, h: float, layout: Layout
    ) -> tuple[np.ndarray, np.ndarray]:
        """Take one step; work is booked at the mean of both velocities."""
        first = rates(state, 0.0)
        new = state.copy()
        part = layout.velocity_slice
        new[part] += h * first[part]
        second = rates(new, 0.0)
        new[: part.start] += h * second[: part.start]
        new[part.stop :] += 0.5 * h * (first[part.stop :] + second[part.stop :])
        return new, np.zeros_like(state)


def require_integrator(given: object) -> Integrator:
    """Return an integrator for worlds; the plants' own of the same name will do."""
    if given is None or isinstance(given, plants.RungeKutta4):
        return RungeKutta4()
    if isinstance(given, plants.SemiImplicit):
        return SemiImplicit()
    if isinstance(given, RungeKutta4 | CashKarp | SemiImplicit):
        return given
    raise ArgumentError(
        "integrator must be RungeKutta4(), CashKarp() or SemiImplicit(), "
        f"not {given!r}."
    )


def _stages(
    rates: Rates, state: np.ndarray, h: float, nodes: tuple[float, ...], a: np.ndarray
) -> np.ndarray:
    slopes = np.zeros((len(nodes), len(state)))
    for k, node in enumerate(nodes):
        slopes[k] = rates(state + h * (a[k, :k] @ slopes[:k]), node)
    return slopes
