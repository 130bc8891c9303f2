"""Monitoring: a watchdog for joint sensors, while the arm works."""

from armwise.monitoring.settings import WatchdogSettings
from armwise.monitoring.watchdog import Alarm, Visible, Watchdog

__all__ = ["Alarm", "Visible", "Watchdog", "WatchdogSettings"]
