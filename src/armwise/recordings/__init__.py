"""Measured motion: reading, writing, and preparation as clean samples."""

from armwise.recordings.filters import differentiate
from armwise.recordings.formats.arrays import table_of_frame
from armwise.recordings.mapping import (
    LogMapping,
    TimeMapping,
    apply_mapping_to_arm,
    load_mapping,
)
from armwise.recordings.plausibility import require_torques, suspicions
from armwise.recordings.prepare import prepare
from armwise.recordings.read import (
    BAGS,
    JSON_LINES,
    TEXT,
    joint_names_in_log,
    read_recording,
    recording_of,
)
from armwise.recordings.recording import (
    WRENCH_NAMES,
    Channel,
    Recording,
    SignalTable,
)
from armwise.recordings.repairs import repaired
from armwise.recordings.samples import (
    ERROR_LEVELS,
    LEAST_KNOWN_LAG,
    LONGEST_STORED_LAG,
    UNKNOWN_LAG,
    PredictionBand,
    Preparation,
    Samples,
    error_within,
    plain_number,
    preparation_from_dict,
    preparation_to_dict,
    summarise_log,
)
from armwise.recordings.sensor_calibration import (
    SensorCalibration,
    read_calibration,
    write_calibration,
)
from armwise.recordings.spectra import NoiseSpectra, noise_spectra
from armwise.recordings.write import write_recording
from armwise.regression import low_pass

__all__ = [
    "BAGS",
    "ERROR_LEVELS",
    "JSON_LINES",
    "LEAST_KNOWN_LAG",
    "LONGEST_STORED_LAG",
    "TEXT",
    "UNKNOWN_LAG",
    "WRENCH_NAMES",
    "Channel",
    "LogMapping",
    "NoiseSpectra",
    "PredictionBand",
    "Preparation",
    "Recording",
    "Samples",
    "SensorCalibration",
    "SignalTable",
    "TimeMapping",
    "apply_mapping_to_arm",
    "differentiate",
    "error_within",
    "joint_names_in_log",
    "load_mapping",
    "low_pass",
    "noise_spectra",
    "plain_number",
    "preparation_from_dict",
    "preparation_to_dict",
    "prepare",
    "read_calibration",
    "read_recording",
    "recording_of",
    "repaired",
    "require_torques",
    "summarise_log",
    "suspicions",
    "table_of_frame",
    "write_calibration",
    "write_recording",
]
