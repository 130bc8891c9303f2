"""How a simulated arm is carried through time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from armwise.errors import ArgumentError


@dataclass(frozen=True)
class SemiImplicit:
    """Momentum first, then position; friction and springs at the end of the step.

    First order, one evaluation of the dynamics a step. Joints truly stick: the torque
    of dry friction is solved for, whatever the step. The choice for friction and for
    stiff joints.
    """

    usual_rate_hz: ClassVar[float] = 4000.0


@dataclass(frozen=True)
class RungeKutta4:
    """The classic fourth-order method, fixed step; dry friction is smoothed."""

    usual_rate_hz: ClassVar[float] = 2000.0


@dataclass(frozen=True)
class DormandPrince:
    """Fifth order with a step that adapts to the error; dry friction is smoothed.

    Attributes:
        rtol: Error allowed in a step, relative to the size of the state.
        atol: The same, absolute, in [rad] and [rad/s].
    """

    rtol: float = 1e-9
    atol: float = 1e-10
    usual_rate_hz: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.rtol < 1 and self.atol > 0):
            raise ArgumentError("rtol must lie between 0 and 1, and atol be positive.")


Integrator = SemiImplicit | RungeKutta4 | DormandPrince


_KINDS = (SemiImplicit, RungeKutta4, DormandPrince)


def require_integrator(given: object) -> Integrator:
    """Return what was given, or say that it is no integrator."""
    if isinstance(given, _KINDS):
        return given
    raise ArgumentError(
        "integrator must be SemiImplicit(), RungeKutta4() or DormandPrince(), "
        f"not {given!r}."
    )


def method_number(integrator: Integrator) -> int:
    """Return the number by which the compiled stepper knows an integrator."""
    return _KINDS.index(type(integrator))


# Runge–Kutta steps for arrays of any shape.

Rate = Callable[[np.ndarray], np.ndarray]

_STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_ERROR = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)


def rk4_step(rate: Rate, y: np.ndarray, h: float) -> np.ndarray:
    """Take one classic fourth-order step of h [s]."""
    k1 = rate(y)
    k2 = rate(y + 0.5 * h * k1)
    k3 = rate(y + 0.5 * h * k2)
    k4 = rate(y + h * k3)
    stepped: np.ndarray = y + h / 6.0 * (k1 + 2.0 * (k2 + k3) + k4)
    return stepped


def dormand_prince_span(
    rate: Rate, y: np.ndarray, span: float, trial: float, tolerance: DormandPrince
) -> tuple[np.ndarray, float]:
    """Carry y over a span [s] with steps that keep the error allowed.

    Args:
        rate: dy/dt.
        y: Where to begin.
        span: How long in [s].
        trial: First step to try in [s]; the whole span if 0.
        tolerance: Error allowed in a step.

    Returns:
        y at the end, and the step to try next.
    """
    done, h = 0.0, trial if 0.0 < trial < span else span
    first = rate(y)
    while done < span:
        left = span - done
        is_last = h >= left * (1.0 - 1e-12)
        now = left if is_last else h
        z, last, error = _attempt(rate, y, first, now, tolerance)
        factor = min(5.0, max(0.2, 0.9 * error**-0.2)) if error > 0 else 5.0
        h = now * factor
        if error <= 1.0 or now < 1e-9 * span:
            y, first = z, last
            done = span if is_last else done + now
            if not is_last or factor < 1.0:
                trial = h
        else:
            trial = h
    return y, trial


def _attempt(
    rate: Rate, y: np.ndarray, first: np.ndarray, h: float, tolerance: DormandPrince
) -> tuple[np.ndarray, np.ndarray, float]:
    rates = [first]
    z = y
    for weights in _STAGES:
        z = y + h * sum(w * k for w, k in zip(weights, rates, strict=True))
        rates.append(rate(z))
    miss = h * sum(w * k for w, k in zip(_ERROR, rates, strict=True))
    scaled = np.abs(miss) / (tolerance.atol + tolerance.rtol * np.abs(z))
    return z, rates[-1], float(np.nanmax(scaled, initial=0.0))
