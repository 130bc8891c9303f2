"""Monitoring: joint sensors watched while the arm works."""

from armwise.monitoring.watchdog import Alarm, Visible, Watchdog

__all__ = ["Alarm", "Visible", "Watchdog"]
