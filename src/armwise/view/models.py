"""Sets of parameters to look at side by side: the description's, and estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.identification import Estimate
from armwise.identification.columns import Columns
from armwise.identification.friction import FrictionTerm
from armwise.identification.prediction import predict_torque
from armwise.recordings import Samples
from armwise.view.colors import MODELS
from armwise.view.forms import Color

DESCRIBED = "described"
"""Name of the parameters that came with the description."""


@dataclass(frozen=True, eq=False)
class Model:
    """One set of parameters.

    Attributes:
        name: What people call it.
        color: What it is drawn in.
        arm: The arm with these parameters.
        friction: Further friction terms, if it has any.
        parameters: The arm's parameters, friction terms last.
    """

    name: str
    color: Color
    arm: Arm
    friction: tuple[FrictionTerm, ...]
    parameters: np.ndarray

    def predict(self, samples: Samples) -> np.ndarray:
        """Return the torque of a motion in [N m], friction as the filter shows it."""
        if not samples.has_torque:  # the prediction has no use for it
            samples = replace(samples, tau=np.zeros(samples.q.shape))
        columns = Columns(self.arm, self.friction)
        return predict_torque(columns, self.parameters, samples)


def models_of(arm: Arm, estimates: Mapping[str, Estimate]) -> tuple[Model, ...]:
    """Choose the one or two sets of parameters to show.

    Two estimates are compared with each other, one with the description. A description
    without any mass says nothing and is left out.

    Args:
        arm: The description.
        estimates: Estimates by name, two at the most.
    """
    if len(estimates) > len(MODELS):
        raise ArgumentError(
            f"{len(estimates)} estimates are too many to tell apart: compare "
            f"{len(MODELS)} at a time."
        )
    sets: list[tuple[str, Arm, tuple[FrictionTerm, ...], np.ndarray]] = [
        (name, found.arm, found.columns.friction, found.all_parameters)
        for name, found in estimates.items()
    ]
    if len(sets) < len(MODELS) and any(link.inertia.has_mass for link in arm.links):
        sets.insert(0, (DESCRIBED, arm, (), arm.parameters))
    return tuple(
        Model(name, color, known, friction, parameters)
        for color, (name, known, friction, parameters) in zip(
            MODELS, sets, strict=False
        )
    )
