"""Measured motion: read it, write it, and turn it into clean samples."""

from armwise.recordings.prepare import prepare
from armwise.recordings.recording import WRENCH_NAMES, Channel, Recording
from armwise.recordings.samples import Preparation, Samples
from armwise.recordings.spectra import NoiseSpectra, noise_spectra

__all__ = [
    "WRENCH_NAMES",
    "Channel",
    "NoiseSpectra",
    "Preparation",
    "Recording",
    "Samples",
    "noise_spectra",
    "prepare",
]
