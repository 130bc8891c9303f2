"""Measured motion: read it, write it, and turn it into clean samples."""

from armwise.recordings.recording import WRENCH_NAMES, Channel, Recording
from armwise.recordings.samples import Preparation, Samples

__all__ = ["WRENCH_NAMES", "Channel", "Preparation", "Recording", "Samples"]
