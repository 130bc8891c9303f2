"""Arms, plants and controllers that the tests of control share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armwise.arms import Arm, load_arm
from armwise.control import (
    PD,
    Composite,
    ComputedTorque,
    CraigHsuSastry,
    Feedforward,
    Gating,
    Indirect,
    MixtureCompensator,
    ParameterSet,
    PhysicalProjection,
    Playback,
    ResumableController,
    RobustTerm,
    SlotineLi,
    UpdateLaw,
)
from armwise.motions import Sinusoid

RATE, KD = 10.0, np.array([20.0, 10.0])
KP = RATE * KD


@pytest.fixture(scope="session")
def arm() -> Arm:
    """A two-link arm that hangs in gravity."""
    return load_arm("two_link_slotine").with_gravity([0.0, -9.81, 0.0])


@pytest.fixture(scope="session")
def motion() -> Sinusoid:
    return Sinusoid(
        np.array([0.0, 0.5]), np.array([0.8, 0.9]), np.array([2.1, 3.3]), 3.0
    )


Builder = Callable[[Arm], ResumableController]


def _craig(arm: Arm) -> ResumableController:
    every = ParameterSet.standard(arm)
    return CraigHsuSastry(
        every,
        100.0,
        20.0,
        UpdateLaw.gradient(0.02),
        1.3 * arm.parameters,
        10.0,
        projection=PhysicalProjection(every),
    )


CONTROLLERS: dict[str, Builder] = {
    "pd": lambda arm: PD(KP, KD),
    "pd, position only": lambda arm: PD(KP, KD, velocity_reference=False),
    "pd, matrix gains": lambda arm: PD(np.diag(KP), np.diag(KD)),
    "pd + gravity": lambda arm: Feedforward(PD(KP, KD), arm, "gravity"),
    "feedforward": lambda arm: Feedforward(PD(KP, KD), arm),
    "computed torque": lambda arm: ComputedTorque(arm, 100.0, 20.0),
    "computed torque, robust": lambda arm: ComputedTorque(
        arm, 100.0, 20.0, RobustTerm(2.0)
    ),
    "slotine-li": lambda arm: SlotineLi(
        ParameterSet.base(arm, ()), RATE, KD, UpdateLaw.gradient(1.0)
    ),
    "slotine-li, standard": lambda arm: SlotineLi(
        ParameterSet.standard(arm), RATE, KD, UpdateLaw.gradient(0.3)
    ),
    "slotine-li, robust": lambda arm: SlotineLi(
        ParameterSet.base(arm, ()),
        RATE,
        KD,
        UpdateLaw.gradient(1.0),
        robust=RobustTerm(2.0),
    ),
    "indirect": lambda arm: Indirect(
        ParameterSet.base(arm, ()), 100.0, 20.0, UpdateLaw.least_squares(50.0), KD
    ),
    "composite": lambda arm: Composite(
        ParameterSet.base(arm, ()), RATE, KD, UpdateLaw.bounded_gain(10.0, 0.5, 1e3)
    ),
    "craig-hsu-sastry": _craig,
    "mixture": lambda arm: MixtureCompensator(
        Gating.over([-1.0, -1.0], [1.0, 2.0], 4), RATE, KD, UpdateLaw.gradient(0.1)
    ),
    "mixture, recursive": lambda arm: MixtureCompensator(
        Gating.over([-1.0, -1.0], [1.0, 2.0], 3), RATE, KD, UpdateLaw.least_squares(0.1)
    ),
    "playback": lambda arm: Playback(PD(KP, KD), np.zeros((4, 2))),
}
"""One of every kind; each passes the conformance suite."""


@pytest.fixture(params=CONTROLLERS)
def build(request: pytest.FixtureRequest) -> Builder:
    return CONTROLLERS[request.param]
