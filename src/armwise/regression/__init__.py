"""Regression of torque on the columns that explain it."""

from armwise.regression.accumulator import Accumulator, accumulate, triangle
from armwise.regression.columns import BLOCK, FORMS, Block, Columns, FrictionTerm
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
    "Solution",
    "accumulate",
    "residual_std",
    "solve_system",
    "stack",
    "torque_size",
    "triangle",
]
