"""Measured motion: read it, write it, and turn it into clean samples."""

from armwise.recordings.mapping import LogMapping, apply_mapping_to_arm
from armwise.recordings.mapping_file import load_mapping
from armwise.recordings.preparation import Preparation
from armwise.recordings.prepare import prepare
from armwise.recordings.read import read_recording
from armwise.recordings.recording import WRENCH_NAMES, Channel, Recording
from armwise.recordings.samples import Samples
from armwise.recordings.sensor_calibration import (
    SensorCalibration,
    read_calibration,
    write_calibration,
)
from armwise.recordings.spectra import NoiseSpectra, noise_spectra
from armwise.recordings.write import write_recording

__all__ = [
    "WRENCH_NAMES",
    "Channel",
    "LogMapping",
    "NoiseSpectra",
    "Preparation",
    "Recording",
    "Samples",
    "SensorCalibration",
    "apply_mapping_to_arm",
    "load_mapping",
    "noise_spectra",
    "prepare",
    "read_calibration",
    "read_recording",
    "write_calibration",
    "write_recording",
]
