"""Monitoring while the arm works: a watchdog for joint sensors, contact."""

from armwise.monitoring.momentum_observer import (
    MomentumObserver,
    ObservedTorque,
    Thresholds,
)
from armwise.monitoring.settings import WatchdogSettings
from armwise.monitoring.watchdog import Alarm, Visible, Watchdog

__all__ = [
    "Alarm",
    "MomentumObserver",
    "ObservedTorque",
    "Thresholds",
    "Visible",
    "Watchdog",
    "WatchdogSettings",
]
