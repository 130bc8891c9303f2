"""A load as robot drivers take it: UR script, Franka, ROS 2, URDF."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from armwise.errors import ArgumentError, NotIdentifiable, NotPhysical
from armwise.files import write_atomically
from armwise.loads.estimate import LoadEstimate


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
    entries = {
        name: float(I[i, j])
        for name, (i, j) in zip(
            ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"),
            ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)),
            strict=True,
        )
    }
    lines = [
        "# geometry_msgs/msg/InertiaStamped, inertia about the centre of mass",
        "header:",
        f"  frame_id: {json.dumps(load.frame)}",
        "inertia:",
        f"  m: {load.mass!r}",
        "  com:",
        *(f"    {k}: {float(v)!r}" for k, v in (("x", x), ("y", y), ("z", z))),
        *(f"  {name}: {value!r}" for name, value in entries.items()),
    ]
    return "\n".join(lines) + "\n"


def to_urdf(load: LoadEstimate, name: str = "load") -> str:
    """Return a URDF link for the load, and the fixed joint that holds it."""
    from xml.sax.saxutils import quoteattr

    _require_complete(load, "a URDF link")
    I = load.central_inertia
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    places = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))
    inertia = " ".join(
        f'{n}="{float(I[p]):.9g}"' for n, p in zip(names, places, strict=True)
    )
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
    """Write a load for a driver; the suffix says which one.

    Raises:
        ArgumentError: If the suffix is none of `.script`, `.json`, `.yaml`, `.urdf`.
        NotPhysical: If no body can have these numbers.
    """
    place = Path(path)
    writer = WRITERS.get(place.suffix.lower())
    if writer is None:
        raise ArgumentError(
            f"{place.name}: a load is written as {', '.join(WRITERS)}, not "
            f"{place.suffix or 'a file without a suffix'}."
        )
    write_atomically(place, (writer(load).rstrip("\n") + "\n").encode())
    return place


def _require_complete(load: LoadEstimate, what: str) -> None:
    if not load.is_complete:
        raise NotIdentifiable(
            f"{what} needs an inertia, which was not determined. Identify the load in "
            "motion."
        )
    _require_physical(load)


def _require_physical(load: LoadEstimate) -> None:
    """Never hand numbers to a robot that no body can have."""
    defect = load.parameters.defect() if load.is_complete else None
    if defect is None and not load.mass > 0:
        defect = f"the mass {load.mass:g} kg is not positive"
    if defect is not None:
        raise NotPhysical(
            f"The load is not exported: {defect}. Identify it with consistent=True."
        )


def _numbers(values: np.ndarray | list[float]) -> str:
    return ", ".join(f"{float(x):.6g}" for x in values)
