"""Simulators: an estimate in theirs, and how far what they show is from the robot."""

from armwise.simulators.export import TARGETS, Export, Loss, export, ranges
from armwise.simulators.gap import HORIZON, Gap, certificate, measure_gap
from armwise.simulators.replay import MotionGap, Replay

__all__ = [
    "HORIZON",
    "TARGETS",
    "Export",
    "Gap",
    "Loss",
    "MotionGap",
    "Replay",
    "certificate",
    "export",
    "measure_gap",
    "ranges",
]
