"""A fleet's estimate as one JSON file."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from armwise.errors import ArmwiseError
from armwise.files import write_atomically
from armwise.fleets.estimate import FleetEstimate
from armwise.fleets.flags import Flag
from armwise.recordings.preparation import Preparation

VERSION = 1
"""Version of the file format."""


def write_fleet(fleet: FleetEstimate, path: str | Path) -> None:
    """Write all that is known of a fleet as JSON, under a temporary name first."""
    text = json.dumps(fleet_to_dict(fleet), indent=1, ensure_ascii=False)
    write_atomically(path, text)


def fleet_to_dict(fleet: FleetEstimate) -> dict[str, Any]:
    """Return a fleet as plain numbers and words; what is not known is null."""
    return {
        "version": VERSION,
        "arm": fleet.problem.columns.arm.name,
        "base_parameter_count": fleet.problem.base.count,
        "condition_number": _plain([fleet.pooled.condition_number])[0],
        "fit": {"relative_error": _plain(fleet.pooled.fit.relative_error)},
        "validation": None,
        "preparation": asdict(fleet.preparation),
        "work": asdict(fleet.work),
        "bad_logs": [
            {"path": str(bad.path), "problem": bad.problem} for bad in fleet.bad_logs
        ],
        "flagged": [flag_to_dict(one) for one in fleet.flagged],
        "base_parameters": list(fleet.problem.base.expressions),
        "mean": _plain(fleet.mean),
        "mean_std": _plain(fleet.mean_std),
        "spread": _plain(np.sqrt(np.diag(fleet.spread))),
        "pooled": {
            "method": fleet.pooled.method,
            "values": _plain(fleet.pooled.base_values),
            "std": _plain(fleet.pooled.base_std),
        },
        "robots": {name: _robot(fleet, name) for name in fleet.robots},
    }


def read_preparation(path: str | Path) -> Preparation:
    """Read from a fleet's file how its logs were prepared.

    Raises:
        ArmwiseError: If the file is not of a fleet.
    """
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))["preparation"]
        dropped = tuple((str(why), int(rows)) for why, rows in told["rows_dropped"])
        lists = {name: tuple(told[name]) for name in ("speed_resolution", "notes")}
        return Preparation(**told | lists | {"rows_dropped": dropped})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArmwiseError(
            f"{path} does not say how a fleet's logs were prepared ({error}). Name a "
            "fleet.json that armwise identify --group-by wrote."
        ) from None


def _robot(fleet: FleetEstimate, name: str) -> dict[str, Any]:
    estimate = fleet.robots[name]
    return {
        "samples": estimate.fit.samples,
        "relative_error": _plain(estimate.fit.relative_error),
        "values": _plain(estimate.base_values),
        "std": _plain(estimate.base_std),
        "deviation": _plain(fleet.deviations[name]),
        "deviation_std": _plain(fleet.deviation_std[name]),
    }


def flag_to_dict(flag: Flag) -> dict[str, Any]:
    """Return a flag as plain numbers and words."""
    return asdict(flag) | {
        "name": str(flag.defect) if flag.defect else "differs, for no reason known here"
    }


def _plain(values: Iterable[float]) -> list[float | None]:
    return [float(v) if math.isfinite(v) else None for v in values]
