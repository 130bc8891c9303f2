"""Load estimates as files: numbers and covariance, to be used again later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import INERTIAL_NAMES, InertialParameters
from armwise.errors import ArgumentError
from armwise.files import write_atomically
from armwise.identification.load.estimate import LoadEstimate

FORMAT = "armwise load 1"


def load_to_dict(load: LoadEstimate) -> dict[str, Any]:
    """Return an estimate as plain numbers; what is not known is None."""
    std = load.std
    return {
        "format": FORMAT,
        "frame": load.frame,
        "mass": _plain(load.mass),
        "center_of_mass": _plain(load.center_of_mass),
        "central_inertia": _plain(load.central_inertia),
        "principal_moments": _plain(load.principal.moments),
        "principal_axes": _plain(load.principal.axes),
        "std": {
            "mass": _plain(std.mass),
            "center_of_mass": _plain(std.center_of_mass),
            "central_inertia": _plain(std.central_inertia),
            "principal_moments": _plain(std.principal_moments),
            "principal_axes": _plain(std.principal_axes),
        },
        "parameters": dict(
            zip(INERTIAL_NAMES, _plain(load.parameters.vector), strict=True)
        ),
        "covariance": _plain(load.covariance),
        "degrees_of_freedom": _plain(load.degrees_of_freedom),
        "is_physical": load.is_physical,
        "condition_number": _plain(load.condition_number),
        "bias": None if load.bias is None else _plain(load.bias),
        "channels": list(load.channels),
        "rigidity": None
        if load.rigidity is None
        else {
            "is_rigid": load.rigidity.is_rigid,
            "excess": _plain(load.rigidity.excess),
            "unexplained": _plain(load.rigidity.unexplained),
            "band_hz": _plain(load.rigidity.band_hz),
        },
        "pose_offset": None if load.pose_offset is None else _plain(load.pose_offset),
        "rmse": None if load.explanation is None else _plain(load.explanation.rmse),
        "notes": list(load.notes),
    }


def write_load_estimate(load: LoadEstimate, path: str | Path) -> Path:
    """Write an estimate as JSON."""
    place = Path(path)
    text = json.dumps(load_to_dict(load), indent=1, ensure_ascii=False)
    write_atomically(place, text + "\n")
    return place


def read_load_estimate(path: str | Path) -> LoadEstimate:
    """Read an estimate that `write_load_estimate` wrote.

    Raises:
        ArgumentError: If the file is no such thing.
    """
    place = Path(path)
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        if found.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        vector = _array([found["parameters"][name] for name in INERTIAL_NAMES])
        covariance = _array(found["covariance"]).reshape(10, 10)
        freedom = _array(found["degrees_of_freedom"]).reshape(10)
        frame = str(found["frame"])
    except OSError as problem:
        raise ArgumentError(f"{place}: {problem.strerror}.") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
        raise ArgumentError(
            f"{place} is no load estimate of Armwise ({problem}). Write one with "
            "identify-load -o."
        ) from None
    return LoadEstimate(frame, InertialParameters(vector), covariance, freedom)


def _plain(value: Any) -> Any:
    array = np.asarray(value, dtype=float)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()


def _array(values: Any) -> np.ndarray:
    return np.array(values, dtype=object).astype(float)
