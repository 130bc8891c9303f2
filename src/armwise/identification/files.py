"""Estimates as files: complete, versioned, and read back as they were."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import Arm
from armwise.dynamics.base import BaseParameters
from armwise.errors import ArmwiseError
from armwise.files import write_atomically
from armwise.identification.columns import Columns
from armwise.identification.estimate import Estimate
from armwise.identification.friction import FrictionTerm
from armwise.identification.validation import Validation

VERSION = 1
"""Version of the file format; a reader refuses what it does not know."""
LARGEST = 1e100
"""Products of numbers beyond this overflow."""


def write_estimate(estimate: Estimate, path: str | Path) -> None:
    """Write an estimate as JSON, under a temporary name first."""
    text = json.dumps(estimate_to_dict(estimate), indent=1, ensure_ascii=False)
    write_atomically(path, text)


def read_estimate(path: str | Path, arm: Arm) -> Estimate:
    """Read an estimate of an arm back.

    Args:
        path: What `write_estimate` wrote.
        arm: The description it was made from.
    """
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ArmwiseError(f"{path} cannot be read as an estimate: {error}.") from error
    if not isinstance(data, dict) or data.get("version") != VERSION:
        raise ArmwiseError(
            f"{path} is not an estimate of version {VERSION}. Identify again."
        )
    try:
        return _estimate(data, arm)
    except (KeyError, TypeError, ValueError) as error:
        raise ArmwiseError(f"{path} is not a complete estimate: {error}.") from error


def estimate_to_dict(estimate: Estimate) -> dict[str, Any]:
    """Return all of an estimate as plain numbers and words; infinity is null."""
    fit = estimate.fit.to_dict()
    return {
        "version": VERSION,
        "arm": estimate.prior_arm.name,
        "method": estimate.method,
        "notes": list(estimate.notes),
        "friction": [asdict(term) for term in estimate.columns.friction],
        "names": list(estimate.base.names),
        "parameters": estimate.all_parameters.tolist(),
        "std": _finite(estimate.std),
        "origin": estimate.origin,
        "base": {
            "indices": list(estimate.base.indices),
            "matrix": estimate.base.matrix.tolist(),
            "unidentifiable": list(estimate.base.unidentifiable),
            "expressions": list(estimate.base.expressions),
            "values": estimate.base_values.tolist(),
            "std": _finite(estimate.base_std),
            "covariance": [_finite(row) for row in estimate.base_covariance],
        },
        "torque_std": estimate.torque_std.tolist(),
        "condition_number": _finite(np.array([estimate.condition_number]))[0],
        "singular_values": estimate.singular_values.tolist(),
        "directions": estimate.directions.tolist(),
        "fit": fit,
    }


def _estimate(data: dict[str, Any], arm: Arm) -> Estimate:
    columns = Columns(arm, tuple(FrictionTerm(**term) for term in data["friction"]))
    if tuple(data["names"]) != columns.names:
        raise ValueError(f"it names other parameters than {arm.name} has")
    base = data["base"]
    fit = {k: np.array(v) for k, v in data["fit"].items() if k != "samples"}
    return Estimate(
        columns=columns,
        base=BaseParameters(
            columns.names,
            tuple(base["indices"]),
            _array(base["matrix"]),
            tuple(base["unidentifiable"]),
        ),
        base_values=_array(base["values"]),
        base_covariance=np.array([_infinite(row) for row in base["covariance"]]),
        all_parameters=_array(data["parameters"]),
        fit=Validation(**fit, samples=int(data["fit"]["samples"])),
        torque_std=_array(data["torque_std"]),
        condition_number=_infinite([data["condition_number"]])[0],
        singular_values=_array(data["singular_values"]),
        directions=_array(data["directions"]),
        method=data["method"],
        notes=tuple(data["notes"]),
    )


def _array(values: list[Any]) -> np.ndarray:
    array = np.array(values, dtype=float)
    if not (np.abs(array) < LARGEST).all():
        raise ValueError("it holds numbers no estimate has")
    return array


def _finite(values: np.ndarray) -> list[float | None]:
    return [float(v) if math.isfinite(v) else None for v in values]


def _infinite(values: list[float | None]) -> list[float]:
    return [math.inf if v is None else float(v) for v in values]
