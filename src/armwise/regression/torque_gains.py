"""Torque gains: how far a measured torque may be off by a constant factor.

A motor current becomes a torque through a constant that data sheets give to some ten
per cent, a torque sensor through a calibration of one or two. No log shows a factor
that all joints share, so that it has to be assumed; every interval that follows from
torques states what was.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float

TorqueSignal: TypeAlias = Literal["sensor", "current", "unknown"]
"""What torques were measured with: a joint torque sensor, a motor's current, or what a
log does not say."""

# Strain-gauge joint sensors are specified to 1–2 % of full scale; torque constants
# differ from data sheets by 10 % with magnets, temperature and gear efficiency. A log
# in N m that does not say what it was measured with is taken at its word, unless the
# joints' torques disagree among themselves: `identify` then counts with what they show.
GAIN_STD = MappingProxyType({"sensor": 0.015, "current": 0.10, "unknown": 0.005})
"""Standard deviation of each joint's torque gain by what measured it, relative."""

GainStd: TypeAlias = "TorqueSignal | float | Sequence[float] | np.ndarray"
"""Kind of signal, or the standard deviation itself: one for all joints, or each."""

_LARGEST_STD = 1.0
"""Standard deviation beyond which a torque would not even have a sign."""


def joint_gain_std(
    assumed: GainStd | None, dof: int, default: TorqueSignal = "unknown"
) -> Float[np.ndarray, " dof"]:
    """Standard deviation of every joint's torque gain, joints independent, relative.

    Args:
        assumed: A kind of signal, a number for all joints, or one for each; None: the
            default's.
        dof: How many joints.
        default: Kind of signal where nothing is said.

    Raises:
        ArgumentError: If it is no kind of signal and no such numbers.
    """
    if assumed is None:
        assumed = default
    if isinstance(assumed, str):
        if assumed not in GAIN_STD:
            raise ArgumentError(
                f"There is no torque signal {assumed!r}: choose from "
                f"{', '.join(GAIN_STD)}, or give the gain's standard deviation."
            )
        assumed = GAIN_STD[assumed]
    std = np.asarray(assumed, dtype=float)
    if std.ndim > 1 or std.size not in (1, dof):
        raise ArgumentError(
            f"gain_std is one number, or one for each of {dof} joints, not {std.size}."
        )
    # Written so that NaN is refused as well.
    if not np.all((std >= 0.0) & (std < _LARGEST_STD)):
        raise ArgumentError(
            "gain_std is a fraction of the torque from 0 to below 1: 0.1 is 10 %."
        )
    return np.array(np.broadcast_to(std.reshape(-1), (dof,)))
