"""Simulators: an estimate in theirs, and how far what they show is from the robot."""

from armwise.simulators.export import (
    TARGETS,
    Export,
    Loss,
    export,
    ranges,
)

__all__ = ["TARGETS", "Export", "Loss", "export", "ranges"]
