"""Calibration: what joint sensors say, weighed against gravity."""

from armwise.calibration.alarms import Alarm
from armwise.calibration.calibration import Calibration
from armwise.calibration.flaws import Flaws
from armwise.calibration.observability import Observability, calibratable
from armwise.calibration.offline import calibrate_recording
from armwise.calibration.plan import Plan
from armwise.calibration.procedure import AdaptiveCalibration, calibrate
from armwise.calibration.structure import Structure
from armwise.calibration.torque_gains import TorqueGains, calibrate_torques
from armwise.calibration.watchdog import Visible, Watchdog

__all__ = [
    "AdaptiveCalibration",
    "Alarm",
    "Calibration",
    "Flaws",
    "Observability",
    "Plan",
    "Structure",
    "TorqueGains",
    "Visible",
    "Watchdog",
    "calibratable",
    "calibrate",
    "calibrate_recording",
    "calibrate_torques",
]
