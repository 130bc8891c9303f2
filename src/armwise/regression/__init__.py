"""Regression of torque on the columns that explain it."""

from armwise.regression.accumulator import Accumulator, accumulate, triangle
from armwise.regression.columns import BLOCK, FORMS, Block, Columns, FrictionTerm
from armwise.regression.low_pass import butterworth, low_pass
from armwise.regression.projection import TorqueProjection
from armwise.regression.signals import (
    Signals,
    averaged_sign,
    friction_direction,
    through_torque_filter,
)
from armwise.regression.solution import (
    RANK_TOLERANCE,
    Solution,
    residual_std,
    solve_system,
    stack,
    torque_size,
)

__all__ = [
    "BLOCK",
    "FORMS",
    "RANK_TOLERANCE",
    "Accumulator",
    "Block",
    "Columns",
    "FrictionTerm",
    "Signals",
    "Solution",
    "TorqueProjection",
    "accumulate",
    "averaged_sign",
    "butterworth",
    "friction_direction",
    "low_pass",
    "residual_std",
    "solve_system",
    "stack",
    "through_torque_filter",
    "torque_size",
    "triangle",
]
