"""Regression of torque on the columns that explain it."""

from armwise.regression.accumulator import (
    Accumulator,
    ColumnSource,
    FactorSum,
    GramSum,
    accumulate,
    accumulate_folds,
    accumulate_stretches,
    factor_of_gram,
)
from armwise.regression.columns import BLOCK, SETTLED_DIRECTION, Block, Columns
from armwise.regression.friction import (
    FORMS,
    DriveMotion,
    FrictionColumns,
    FrictionForm,
    FrictionModel,
    FrictionTerm,
    hysteresis_terms,
    load_rows,
)
from armwise.regression.jackknife import (
    STRETCHES,
    StretchScores,
    interval_factor,
    jackknife,
    jackknife_covariance,
    sandwich,
)
from armwise.regression.low_pass import butterworth, low_pass
from armwise.regression.projection import TorqueProjection
from armwise.regression.signals import (
    Signals,
    averaged_sign,
    friction_direction,
    through_torque_filter,
    torque_rate,
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
from armwise.regression.torque_gains import (
    GAIN_STD,
    GainStd,
    TorqueSignal,
    joint_gain_std,
)

__all__ = [
    "BLOCK",
    "FORMS",
    "GAIN_STD",
    "RANK_TOLERANCE",
    "SETTLED_DIRECTION",
    "STRETCHES",
    "Accumulator",
    "Block",
    "ColumnSource",
    "Columns",
    "DriveMotion",
    "FactorSum",
    "FrictionColumns",
    "FrictionForm",
    "FrictionModel",
    "FrictionTerm",
    "GainStd",
    "GramSum",
    "Signals",
    "Solution",
    "StretchScores",
    "TorqueProjection",
    "TorqueSignal",
    "accumulate",
    "accumulate_folds",
    "accumulate_stretches",
    "averaged_sign",
    "butterworth",
    "factor_of_gram",
    "friction_direction",
    "hysteresis_terms",
    "interval_factor",
    "jackknife",
    "jackknife_covariance",
    "joint_gain_std",
    "load_rows",
    "low_pass",
    "residual_std",
    "sandwich",
    "solve_system",
    "stack",
    "through_torque_filter",
    "torque_rate",
    "torque_size",
    "triangle",
]
