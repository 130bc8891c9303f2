"""Integrators: one frozen object per method, for simulated arms and for worlds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armwise.errors import ArgumentError

Rates = Callable[[np.ndarray, float], np.ndarray]
"""Rate of a state, given the state and the fraction of the step that has passed."""


@dataclass(frozen=True, eq=False)
class Tableau:
    """Coefficients of an explicit Runge–Kutta method.

    Attributes:
        a: Weights of earlier stages in the state of each stage (stages, stages).
        b: Weights of the stages in the step.
        nodes: Fractions of the step at which the stages stand.
        errors: Weights of the stages in the error; None if the method has no estimate.
    """

    a: np.ndarray
    b: np.ndarray
    nodes: tuple[float, ...]
    errors: np.ndarray | None = None

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Sequence[float]],
        b: Sequence[float],
        lower_order: Sequence[float] | None = None,
    ) -> Tableau:
        """Build it from the rows of the lower triangle and the weights b.

        Args:
            rows: Row k holds the weights of the k stages before stage k.
            b: Weights of the step.
            lower_order: Weights of the embedded method whose difference is the error.
        """
        a = np.zeros((len(b), len(b)))
        for k, row in enumerate(rows, 1):
            a[k, : len(row)] = row
        errors = None if lower_order is None else np.subtract(b, lower_order)
        # A row of weights sums up to its node; rounding removes the last digit's noise.
        nodes = tuple(np.round(a.sum(axis=1), 14).tolist())
        return cls(a, np.array(b), nodes, errors)


@dataclass(frozen=True)
class SemiImplicit:
    """Momentum first, then position with the new velocity; friction and springs last.

    First order, one evaluation of an arm's dynamics a step. Joints truly stick: the
    torque of dry friction is solved for, whatever the step. The choice for friction
    and for stiff joints.
    """

    tableau: ClassVar[None] = None
    # Judgement: first order, hence twice the rate of RungeKutta4, whose step costs four
    # evaluations.
    default_rate_hz: ClassVar[float] = 4000.0
    stability_limit: ClassVar[float] = 0.8


@dataclass(frozen=True)
class RungeKutta4:
    """The classic method of order four, fixed step; dry friction is smoothed."""

    tableau: ClassVar[Tableau] = Tableau.from_rows(
        [[1 / 2], [0, 1 / 2], [0, 0, 1]], [1 / 6, 1 / 3, 1 / 3, 1 / 6]
    )
    # Judgement: two steps within a usual control period of 1 ms.
    default_rate_hz: ClassVar[float] = 2000.0
    # Stable on the real axis up to 2.78; a constraint's double pole needs a margin.
    stability_limit: ClassVar[float] = 2.5


@dataclass(frozen=True)
class CashKarp:
    """Order five with an error estimate of order four; the step adapts. For worlds.

    Cash and Karp, "A variable order Runge-Kutta method for initial value problems with
    rapidly varying right-hand sides", 1990.

    Attributes:
        tolerance: Largest error per step, relative to 1 + |state|.
        smallest: Smallest step in [s] before giving up.
    """

    tolerance: float = 1e-9
    smallest: float = 1e-9
    tableau: ClassVar[Tableau] = Tableau.from_rows(
        [
            [1 / 5],
            [3 / 40, 9 / 40],
            [3 / 10, -9 / 10, 6 / 5],
            [-11 / 54, 5 / 2, -70 / 27, 35 / 27],
            [1631 / 55296, 175 / 512, 575 / 13824, 44275 / 110592, 253 / 4096],
        ],
        [37 / 378, 0, 250 / 621, 125 / 594, 0, 512 / 1771],
        [2825 / 27648, 0, 18575 / 48384, 13525 / 55296, 277 / 14336, 1 / 4],
    )
    stability_limit: ClassVar[float] = np.inf


@dataclass(frozen=True)
class DormandPrince:
    """Order five with a step that adapts to the error; dry friction is smoothed.

    For simulated arms.

    Attributes:
        rtol: Error allowed in a step, relative to the size of the state.
        atol: The same, absolute, in [rad] and [rad/s].
    """

    rtol: float = 1e-9
    atol: float = 1e-10
    # The last stage is the first one of the next step.
    tableau: ClassVar[Tableau] = Tableau.from_rows(
        [
            [1 / 5],
            [3 / 40, 9 / 40],
            [44 / 45, -56 / 15, 32 / 9],
            [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
            [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
            [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
        ],
        [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0],
        [5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40],
    )
    # No rate of its own: it takes the controller's and subdivides as errors demand.
    default_rate_hz: ClassVar[float] = 0.0
    stability_limit: ClassVar[float] = np.inf

    def __post_init__(self) -> None:
        if not (0 < self.rtol < 1 and self.atol > 0):
            raise ArgumentError("rtol must lie between 0 and 1, and atol be positive.")


Integrator = SemiImplicit | RungeKutta4 | CashKarp | DormandPrince
ArmIntegrator = SemiImplicit | RungeKutta4 | DormandPrince
"""What simulated arms are stepped with, in the compiled stepper's order."""

_ARM_INTEGRATORS = (SemiImplicit, RungeKutta4, DormandPrince)


def require_arm_integrator(value: object) -> ArmIntegrator:
    """Return an integrator that simulated arms have, or refuse it."""
    if isinstance(value, _ARM_INTEGRATORS):
        return value
    raise unsupported_integrator(value, _ARM_INTEGRATORS)


def unsupported_integrator(value: object, supported: Sequence[type]) -> ArgumentError:
    """Return the refusal of an integrator that is none of some."""
    *names, last = [f"{kind.__name__}()" for kind in supported]
    return ArgumentError(
        f"integrator must be {', '.join(names)} or {last}, not {value!r}."
    )


def method_number(integrator: ArmIntegrator) -> int:
    """Return the compiled stepper's number of an integrator."""
    return _ARM_INTEGRATORS.index(type(integrator))


def explicit_step(
    tableau: Tableau,
    rates: Rates,
    y: np.ndarray,
    h: float,
    first: np.ndarray | None = None,
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Take one Runge–Kutta step of h [s].

    Args:
        tableau: The method.
        rates: dy/dt.
        y: The state.
        h: Step in [s].
        first: dy/dt at the start if it is known.

    Returns:
        The next state, and dy/dt at every stage.
    """
    slopes = [rates(y, 0.0) if first is None else first]
    for row, node in zip(tableau.a[1:], tableau.nodes[1:], strict=True):
        slopes.append(rates(y + h * _weighted(row, slopes), node))
    return y + h * _weighted(tableau.b, slopes), slopes


def step_error(tableau: Tableau, slopes: list[np.ndarray], h: float) -> np.ndarray:
    """Return the estimated error of a step of h [s]; zero if the method has none."""
    if tableau.errors is None:
        return np.zeros_like(slopes[0])
    return h * _weighted(tableau.errors, slopes)


def _weighted(weights: np.ndarray, slopes: list[np.ndarray]) -> np.ndarray:
    """Sum slopes by their weights; a row may have more weights than slopes so far."""
    total: np.ndarray = np.tensordot(weights[: len(slopes)], np.stack(slopes), axes=1)
    return total


def dormand_prince_span(
    rates: Rates, y: np.ndarray, span: float, trial: float, tolerance: DormandPrince
) -> tuple[np.ndarray, float]:
    """Advance y over a span [s] with steps that keep the error allowed.

    Args:
        rates: dy/dt.
        y: State at the start.
        span: How long in [s].
        trial: First step to try in [s]; the whole span if 0.
        tolerance: Error allowed in a step.

    Returns:
        y at the end, and the step to try next.
    """
    tableau = DormandPrince.tableau
    done, h = 0.0, trial if 0.0 < trial < span else span
    first = rates(y, 0.0)
    while done < span:
        remaining = span - done
        # A step that ends within rounding of the span ends the span.
        is_last = h >= remaining * (1.0 - 1e-12)
        now = remaining if is_last else h
        z, slopes = explicit_step(tableau, rates, y, now, first)
        allowed = tolerance.atol + tolerance.rtol * np.abs(z)
        miss = np.abs(step_error(tableau, slopes, now)) / allowed
        # NaN is skipped: an arm that ran away must not stop the others of its batch.
        error = float(np.nanmax(miss, initial=0.0))
        # Order five: the error grows with h⁵; 0.9 leaves room, 0.2 and 5 damp jumps.
        factor = min(5.0, max(0.2, 0.9 * error**-0.2)) if error > 0 else 5.0
        h = now * factor
        # Below a billionth of the span a step cannot shrink usefully any more.
        if error <= 1.0 or now < 1e-9 * span:
            y, first = z, slopes[-1]
            done = span if is_last else done + now
            # The last step was cut short by the span: its success says nothing against
            # the longer step that was on trial.
            if not is_last or factor < 1.0:
                trial = h
        else:
            trial = h
    return y, trial
