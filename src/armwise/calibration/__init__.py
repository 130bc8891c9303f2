"""Calibration: what joint sensors say, weighed against gravity."""

from armwise.calibration.calibration import Calibration
from armwise.calibration.observability import Observability, calibratable
from armwise.calibration.offline import calibrate_recording
from armwise.calibration.structure import Structure

__all__ = [
    "Calibration",
    "Observability",
    "Structure",
    "calibratable",
    "calibrate_recording",
]
