"""Friction beyond viscous, Coulomb and offset: terms that are linear once shaped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float

Form = Literal["asymmetric", "stribeck", "root", "cubic"]

FORMS: dict[Form, str] = {
    "asymmetric": "|q̇|: viscous friction that differs between the two directions",
    "stribeck": "sign(q̇) exp(−|q̇|/v): friction that falls as motion starts",
    "root": "sign(q̇) √|q̇|: lubricant that thins with speed",
    "cubic": "q̇ |q̇|: drag that grows faster than speed",
}


@dataclass(frozen=True)
class FrictionTerm:
    """One more friction torque of one joint: coefficient × shape(q̇).

    Attributes:
        joint: Which coordinate.
        joint_name: What it is called.
        form: The shape.
        speed: Its speed v in [rad/s] or [m/s], for forms that have one.
    """

    joint: int
    joint_name: str
    form: Form
    speed: float = 1.0

    @property
    def name(self) -> str:
        """Name of its coefficient."""
        if self.form == "stribeck":
            return f"{self.joint_name}.stribeck({self.speed:.3g})"
        return f"{self.joint_name}.{self.form}"

    def column(self, samples: Samples) -> Float[np.ndarray, " samples"]:
        """Torque of a unit coefficient, seen as the prepared torque shows it."""
        speed = samples.qd[:, self.joint]
        if self.form == "asymmetric":
            return np.abs(speed)
        if self.form == "cubic":
            return np.asarray(speed * np.abs(speed))
        direction = samples.direction()[:, self.joint]
        if self.form == "stribeck":
            shaped = direction * np.exp(-np.abs(speed) / self.speed)
        else:
            shaped = direction * np.sqrt(np.abs(speed))
        return np.asarray(shaped)
