"""Regression of torque on the columns that explain it."""

from armwise.regression.accumulator import (
    Accumulator,
    ColumnSource,
    FactorSum,
    GramSum,
    accumulate,
    accumulate_stretches,
    factor_of_gram,
)
from armwise.regression.columns import BLOCK, FORMS, Block, Columns, FrictionTerm
from armwise.regression.jackknife import (
    STRETCHES,
    StretchScores,
    jackknife,
    jackknife_covariance,
    sandwich,
)
from armwise.regression.solution import (
    RANK_TOLERANCE,
    Solution,
    residual_std,
    solve_system,
    stack,
    torque_size,
    triangle,
)

__all__ = [
    "BLOCK",
    "FORMS",
    "RANK_TOLERANCE",
    "STRETCHES",
    "Accumulator",
    "Block",
    "ColumnSource",
    "Columns",
    "FactorSum",
    "FrictionTerm",
    "GramSum",
    "Solution",
    "StretchScores",
    "accumulate",
    "accumulate_stretches",
    "factor_of_gram",
    "jackknife",
    "jackknife_covariance",
    "residual_std",
    "sandwich",
    "solve_system",
    "stack",
    "torque_size",
    "triangle",
]
