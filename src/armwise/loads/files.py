"""Files of a load: its estimate as JSON, and UR script, Franka, ROS 2 and URDF."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import INERTIAL_NAMES, InertialParameters
from armwise.errors import (
    ArgumentError,
    ArmwiseError,
    NotIdentifiable,
    NotPhysical,
)
from armwise.files import write_atomically
from armwise.loads.estimate import LoadEstimate
from armwise.tables import LARGEST_NUMBER, read_json

FORMAT = "armwise load 1"


def load_to_dict(load: LoadEstimate) -> dict[str, Any]:
    """Return an estimate as plain numbers; what was not determined is None."""
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
        "rmse": None if load.prediction is None else _plain(load.prediction.rmse),
        "accelerometer": None
        if load.accelerometer is None
        else {
            "lag": load.accelerometer.lag,
            "lag_std": load.accelerometer.lag_std,
            "rotation": load.accelerometer.rotation.tolist(),
            "unit": load.accelerometer.unit,
        },
        "contact": None
        if load.contact is None
        else {
            "began": load.contact.began,
            "ended": load.contact.ended,
            "wrench": load.contact.wrench.tolist(),
        },
        "notes": [warning.text for warning in load.warnings],
        "warnings": [{"code": w.code, "text": w.text} for w in load.warnings],
    }


def write_load_estimate(load: LoadEstimate, path: str | Path) -> Path:
    """Write an estimate as JSON."""
    path = Path(path)
    text = json.dumps(load_to_dict(load), indent=1, ensure_ascii=False)
    write_atomically(path, text + "\n")
    return path


def read_load_estimate(path: str | Path) -> LoadEstimate:
    """Read an estimate that `write_load_estimate` wrote.

    Raises:
        ArgumentError: If the file is not a load estimate.
    """
    table = read_json(Path(path), "a load estimate", ArgumentError)
    try:
        if table.get("format") != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        return _load(table)
    except (
        *(ValueError, KeyError, TypeError, AttributeError, OverflowError),
        ArmwiseError,
    ) as problem:
        raise ArgumentError(
            f"{path} is no load estimate of Armwise ({problem}). Write one with "
            "identify-load -o."
        ) from None


def _load(table: dict[str, Any]) -> LoadEstimate:
    """A load from a file that anyone may have changed; null was not determined."""
    vector = _array([table["parameters"][name] for name in INERTIAL_NAMES], 10)
    covariance = _array(table["covariance"], 10, 10)
    freedom = _array(table["degrees_of_freedom"], 10)
    is_known, variance = np.isfinite(vector), np.diag(covariance)
    known = covariance[np.ix_(is_known, is_known)]
    is_sound = (
        isinstance(table["frame"], str)
        and is_known[0]
        and np.all(np.isnan(variance[~is_known]) | (variance[~is_known] >= 0.0))
        and np.all(np.diag(known) >= 0.0)
        and np.allclose(known, known.T, equal_nan=True)
        and not np.any(freedom < 0.0)
    )
    if not is_sound:
        raise ValueError("its numbers are none of a load")
    load = LoadEstimate(table["frame"], InertialParameters(vector), covariance, freedom)
    # What the file says of the body must be what the numbers say.
    if load.is_physical != table["is_physical"]:
        raise ValueError("its parameters were changed")
    return load


def _plain(value: Any) -> Any:
    # JSON has no NaN.
    array = np.asarray(value, dtype=float)
    plain = array.astype(object)
    plain[~np.isfinite(array)] = None
    return plain.tolist()


def _array(values: Any, *shape: int) -> np.ndarray:
    array = np.array(values, dtype=object).astype(float)
    if array.shape != shape or np.any(np.abs(array) > LARGEST_NUMBER):
        raise ValueError("it holds numbers no load has")
    return array


# Files for robot drivers.

_INERTIA = {
    "ixx": (0, 0),
    "ixy": (0, 1),
    "ixz": (0, 2),
    "iyy": (1, 1),
    "iyz": (1, 2),
    "izz": (2, 2),
}
"""Names of an inertia's entries in ROS and URDF."""


def to_ur_script(load: LoadEstimate) -> str:
    """Return the line of UR script that sets the payload.

    `set_target_payload(m, [cx, cy, cz], [Ixx, Iyy, Izz, Ixy, Ixz, Iyz])`: centre in
    the flange frame, inertia about the centre; without an inertia, the older
    `set_payload(m, [cx, cy, cz])`. The estimate has to be in the flange frame.
    """
    _require_physical(load)
    center = _numbers(load.center_of_mass)
    if not load.is_complete:
        return f"set_payload({load.mass:.6g}, [{center}])"
    I = load.central_inertia
    six = _numbers([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
    return f"set_target_payload({load.mass:.6g}, [{center}], [{six}])"


def to_franka_json(load: LoadEstimate) -> str:
    """Return the arguments of libfranka's `setLoad` as JSON, inertia column-major."""
    _require_complete(load, "setLoad")
    return json.dumps(
        {
            "load_mass": load.mass,
            "F_x_Cload": load.center_of_mass.tolist(),
            "load_inertia": load.central_inertia.T.reshape(-1).tolist(),
        },
        indent=2,
    )


def to_ros_yaml(load: LoadEstimate) -> str:
    """Return a geometry_msgs/msg/InertiaStamped as YAML; inertia about the centre."""
    _require_complete(load, "geometry_msgs/msg/Inertia")
    x, y, z = load.center_of_mass
    I = load.central_inertia
    lines = [
        "# geometry_msgs/msg/InertiaStamped, inertia about the centre of mass",
        "header:",
        f"  frame_id: {json.dumps(load.frame)}",
        "inertia:",
        f"  m: {load.mass!r}",
        "  com:",
        *(f"    {k}: {float(v)!r}" for k, v in (("x", x), ("y", y), ("z", z))),
        *(f"  {name}: {float(I[entry])!r}" for name, entry in _INERTIA.items()),
    ]
    return "\n".join(lines) + "\n"


def to_urdf(load: LoadEstimate, name: str = "load") -> str:
    """Return a URDF link for the load, and the fixed joint that holds it."""
    from xml.sax.saxutils import quoteattr

    _require_complete(load, "a URDF link")
    I = load.central_inertia
    inertia = " ".join(f'{n}="{float(I[entry]):.9g}"' for n, entry in _INERTIA.items())
    center = " ".join(f"{x:.9g}" for x in load.center_of_mass)
    return (
        f"<link name={quoteattr(name)}>\n"
        "  <inertial>\n"
        f'    <origin xyz="{center}" rpy="0 0 0"/>\n'
        f'    <mass value="{load.mass:.9g}"/>\n'
        f"    <inertia {inertia}/>\n"
        "  </inertial>\n"
        "</link>\n"
        f'<joint name={quoteattr(name + "_joint")} type="fixed">\n'
        f"  <parent link={quoteattr(load.frame)}/>\n"
        f"  <child link={quoteattr(name)}/>\n"
        "</joint>\n"
    )


WRITERS = {
    ".script": to_ur_script,
    ".json": to_franka_json,
    ".yaml": to_ros_yaml,
    ".urdf": to_urdf,
}
"""Suffix → how to write a load: UR script, Franka JSON, ROS 2 YAML, URDF."""


def write_load(load: LoadEstimate, path: str | Path) -> Path:
    """Write a load for a robot driver; the suffix says which one.

    Raises:
        ArgumentError: If the suffix is none of `.script`, `.json`, `.yaml`, `.urdf`.
        NotPhysical: If the load is not physically realisable.
    """
    path = Path(path)
    writer = WRITERS.get(path.suffix.lower())
    if writer is None:
        raise ArgumentError(
            f"{path.name}: a load is written as {', '.join(WRITERS)}, not "
            f"{path.suffix or 'a file without a suffix'}."
        )
    write_atomically(path, (writer(load).rstrip("\n") + "\n").encode())
    return path


def _require_complete(load: LoadEstimate, what: str) -> None:
    if not load.is_complete:
        raise NotIdentifiable(
            f"{what} needs an inertia, which was not determined. Identify the load in "
            "motion."
        )
    _require_physical(load)


def _require_physical(load: LoadEstimate) -> None:
    """Refuse to export a load that is not physically realisable.

    A robot's controller feeds it forward: a negative inertia would accelerate the arm.
    """
    defect = load.parameters.defect() if load.is_complete else None
    if defect is None and not load.mass > 0:
        defect = f"the mass {load.mass:g} kg is not positive"
    if defect is not None:
        raise NotPhysical(
            f"The load is not exported: {defect}. Identify it with consistent=True "
            "(--consistent)."
        )


def _numbers(values: np.ndarray | list[float]) -> str:
    return ", ".join(f"{float(x):.6g}" for x in values)
