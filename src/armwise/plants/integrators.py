"""How a simulated arm is carried through time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

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
