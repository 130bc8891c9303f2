"""Calibration: gains and offsets of joint sensors, estimated against gravity."""

from armwise.calibration.by_adaptation import (
    AdaptiveCalibration,
    calibrate_by_adaptation,
)
from armwise.calibration.by_moving import calibrate, calibrate_batch, prospects
from armwise.calibration.from_recording import calibrate_recording
from armwise.calibration.gravity_expansion import CosineFit
from armwise.calibration.moves import Moves
from armwise.calibration.observability import Observability, calibratable
from armwise.calibration.rehearsal import (
    FULL_SCALE,
    Rehearsal,
    UnknownSensors,
    rehearse,
)
from armwise.calibration.result import Calibration, Evidence
from armwise.calibration.sensor_control import GRAVITY, PARAMETER_STRIDE, Trace
from armwise.calibration.stages import Plan
from armwise.calibration.structure import Flaws, Structure, as_structure
from armwise.calibration.torque_gains import calibrate_torques

__all__ = [
    "FULL_SCALE",
    "GRAVITY",
    "PARAMETER_STRIDE",
    "AdaptiveCalibration",
    "Calibration",
    "CosineFit",
    "Evidence",
    "Flaws",
    "Moves",
    "Observability",
    "Plan",
    "Rehearsal",
    "Structure",
    "Trace",
    "UnknownSensors",
    "as_structure",
    "calibratable",
    "calibrate",
    "calibrate_batch",
    "calibrate_by_adaptation",
    "calibrate_recording",
    "calibrate_torques",
    "prospects",
    "rehearse",
]
