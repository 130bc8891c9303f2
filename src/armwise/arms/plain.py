"""An arm as plain numbers and words: what an estimate's file carries of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from armwise.arms.arm import (
    Arm,
    Coupling,
    Drive,
    Frame,
    Joint,
    Limits,
    Link,
    Mimic,
    Shape,
)
from armwise.arms.inertia import InertialParameters
from armwise.errors import ArmError
from armwise.tables import LARGEST_NUMBER


def arm_to_dict(arm: Arm) -> dict[str, Any]:
    """Return everything an arm is as dictionaries, lists, words and finite numbers."""
    plain: dict[str, Any] = _plain(arm)
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, InertialParameters):
        return value.vector.tolist()
    if is_dataclass(value):
        pairs = ((x.name, getattr(value, x.name)) for x in fields(value))
        # JSON has no infinity; a limit that is not named is infinite.
        return {k: _plain(x) for k, x in pairs if x is not None and not _is_infinite(x)}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, tuple):
        return [_plain(x) for x in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) and math.isinf(value)


def kinematics_digest(arm: Arm) -> str:
    """Digest of how an arm moves: of two alike, numbers for one fit the other.

    Joints, where they sit and what drives several of them; neither names, nor limits,
    inertias, friction or gravity, which differ between copies of one arm.
    """
    parts = [
        (
            joint.kind,
            joint.parent,
            _rounded(joint.origin),
            _rounded(joint.axis),
            _rounded(joint.anchor),
            joint.mimic,
        )
        for joint in arm.joints
    ]
    couplings = [_rounded(coupling.weights) for coupling in arm.couplings]
    return hashlib.sha256(repr((parts, couplings)).encode()).hexdigest()[:32]


def _rounded(values: np.ndarray) -> list[float]:
    # A micrometre and a microradian: below what descriptions mean, above what machines
    # differ by. Adding zero turns −0 into 0.
    flat: list[float] = (np.round(np.asarray(values, dtype=float), 6) + 0.0).tolist()
    return flat


def arm_from_dict(data: Any, where: str) -> Arm:
    """Build an arm from what `arm_to_dict` returned, to the last bit.

    Args:
        data: The dictionary, from a file that anyone may have changed.
        where: The file, for messages.

    Raises:
        ArmError: If it is not the description of an arm.
    """
    try:
        return _arm(data)
    # OverflowError: a whole number beyond the range of float64.
    except (
        *(AttributeError, KeyError, IndexError, TypeError, ValueError),
        *(OverflowError, ArmError),
    ) as problem:
        raise ArmError(
            f"{where} does not describe an arm: {str(problem).rstrip('.')}. Identify "
            "again."
        ) from problem


def _arm(data: Mapping[str, Any]) -> Arm:
    named = (data, *data["joints"], *data["links"], *data["frames"])
    if not all(isinstance(one["name"], str) for one in (*named, *data["couplings"])):
        raise ValueError("a name is not a text")
    return Arm(
        **{
            **data,
            "joints": tuple(_joint(one) for one in data["joints"]),
            "links": tuple(_link(one) for one in data["links"]),
            "gravity": _array(data["gravity"], 3),
            "frames": tuple(_frame(one) for one in data["frames"]),
            "couplings": tuple(_coupling(one) for one in data["couplings"]),
            "base_shapes": tuple(_shape(one) for one in data["base_shapes"]),
            "locked": {str(k): float(x) for k, x in data.get("locked", {}).items()},
            "notes": tuple(str(note) for note in data["notes"]),
        }
    )


def _joint(data: Mapping[str, Any]) -> Joint:
    if data["kind"] not in ("revolute", "prismatic"):
        raise ValueError(f"a joint is not {data['kind']!r}")
    mimic = data.get("mimic")
    return Joint(
        **{
            **data,
            "parent": int(data["parent"]),
            "origin": _pose(data["origin"]),
            "axis": _array(data["axis"], 3),
            "anchor": _array(data["anchor"], 3),
            "limits": Limits(**_numbers(data["limits"])),
            "drive": Drive(**_numbers(data["drive"])),
            "mimic": None if mimic is None else Mimic(**mimic),
            "gear": _gear(data),
        }
    )


def _link(data: Mapping[str, Any]) -> Link:
    shapes = tuple(_shape(one) for one in data["shapes"])
    return Link(**{**data, "inertia": _inertia(data["inertia"]), "shapes": shapes})


def _frame(data: Mapping[str, Any]) -> Frame:
    pose, inertia = _pose(data["pose"]), _inertia(data["inertia"])
    return Frame(**{**data, "pose": pose, "inertia": inertia})


def _coupling(data: Mapping[str, Any]) -> Coupling:
    weights = _array(data["weights"], len(data["weights"]))
    drive = Drive(**_numbers(data["drive"]))
    gear = _gear(data)
    return Coupling(**{**data, "weights": weights, "drive": drive, "gear": gear})


def _gear(data: Mapping[str, Any]) -> float | None:
    gear = None if data.get("gear") is None else float(data["gear"])
    if gear is not None and not 0.0 < gear < math.inf:
        raise ValueError(f"a gear's ratio is not {gear}")
    return gear


def _shape(data: Mapping[str, Any]) -> Shape:
    size = tuple(_array(data["size"], len(data["size"])).tolist())
    color = tuple(_array(data["color"], 3).tolist()) if "color" in data else None
    own = {"size": size, "pose": _pose(data["pose"]), "color": color}
    return Shape(**{**data, **own})


def _inertia(values: Any) -> InertialParameters:
    return InertialParameters(_array(values, 10))


def _pose(values: Any) -> np.ndarray:
    T = _array(values, 4, 4)
    # Rotations are written as they were: off by what rounding makes, and no more.
    is_rotation = np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=1e-9)
    if not is_rotation or not np.array_equal(T[3], [0.0, 0.0, 0.0, 1.0]):
        raise ValueError("a pose is not a rotation and a shift")
    return T


def _array(values: Any, *shape: int) -> np.ndarray:
    array = np.array(values, dtype=float)
    if array.shape != shape or not np.all(np.abs(array) <= LARGEST_NUMBER):
        raise ValueError(f"numbers are not finite or not of shape {shape}")
    return array


def _numbers(data: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(_array(value)) for name, value in data.items()}
