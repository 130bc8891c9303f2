"""How an arm is moved to be calibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Plan:
    """How the arm is moved; times in [s], amplitudes of the scaled reading.

    Attributes:
        amplitude: Of the triangular waves, as a share of the sensors' scale.
        friction_period: Of the slow wave that shows friction.
        period: Of the wave of the first joint; others differ by the golden ratio.
        gain_time: Longest adaptation of one joint's parabola.
        offset_time: Longest adaptation of all joints together.
        push: Share of the effort limit used to find directions.
        stiffness: Natural frequency of PD control in [rad/s].
        forgetting: λ0 in [1/s].
        gain_std: Relative standard deviation of a gain at which its adaptation ends.
        offset_std: Standard deviation of offsets in [rad] at which theirs ends.
    """

    amplitude: float = 0.8
    friction_period: float = 12.0
    period: float = 5.0
    gain_time: float = 30.0
    offset_time: float = 45.0
    push: float = 0.2
    stiffness: float = 60.0
    forgetting: float = 0.05
    gain_std: float = 0.012
    offset_std: float = float(np.deg2rad(0.15))
