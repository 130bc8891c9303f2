"""Files of a load: its estimate as JSON, drivers' text, ROS 2 and URDF."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import INERTIAL_NAMES, Arm, InertialParameters
from armwise.errors import (
    ArgumentError,
    ArmwiseError,
    NotIdentifiable,
    NotPhysical,
)
from armwise.files import json_text, write_atomically
from armwise.loads.estimate import LoadEstimate
from armwise.tables import LARGEST_NUMBER, read_json

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

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
        "kind": None
        if load.kind is None
        else {
            "kind": load.kind.kind,
            "probability": load.kind.probability,
            "errors": load.kind.errors,
            **load.kind.values,
        },
        "pose_offset": None if load.pose_offset is None else _plain(load.pose_offset),
        "rmse": None if load.prediction is None else _plain(load.prediction.rmse),
        "accelerometer": None
        if load.accelerometer is None
        else {
            "lag": load.accelerometer.lag,
            "lag_std": load.accelerometer.lag_std,
            "axis_lags": load.accelerometer.axis_lags.tolist(),
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
    text = json_text(load_to_dict(load))
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
    determined = covariance[np.ix_(is_known, is_known)]
    is_sound = (
        isinstance(table["frame"], str)
        and is_known[0]
        and np.all(np.isnan(variance[~is_known]) | (variance[~is_known] >= 0.0))
        and np.all(np.diag(determined) >= 0.0)
        and np.allclose(determined, determined.T, equal_nan=True)
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
    the flange frame, inertia about the centre in the flange's axes; without an inertia,
    which then counts as zero, the first two (URScript manual, set_target_payload). The
    estimate has to be in the flange frame.
    """
    _require_physical(load)
    center = _numbers(load.center_of_mass)
    if not load.is_complete:
        return f"set_target_payload({load.mass:.6g}, [{center}])"
    I = load.central_inertia
    six = _numbers([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
    return f"set_target_payload({load.mass:.6g}, [{center}], [{six}])"


def to_franka_json(load: LoadEstimate) -> str:
    """Return the arguments of libfranka's `setLoad` as JSON, inertia column-major."""
    _require_complete(load, "setLoad")
    return json.dumps(
        {
            "load_mass": _plain_digits([load.mass])[0],
            "F_x_Cload": _plain_digits(load.center_of_mass),
            "load_inertia": _plain_digits(load.central_inertia.T),
        },
        indent=2,
    )


def _plain_digits(values: ArrayLike) -> list[float]:
    """Numbers without what arithmetic leaves: 0.02032, not 0.020319999999999998."""
    return [float(f"{value:.12g}") for value in np.ravel(values)]


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


def to_kuka_load(load: LoadEstimate) -> str:
    """Return the KRL aggregate of a LOAD, for `LOAD_DATA[n]` or `$LOAD`.

    Mass in [kg]; CM: centre of mass in [mm] in the flange frame, and in A, B, C [°]
    (about Z, then the new Y, then the new X) the principal axes of inertia; J: the
    principal moments about them in [kg m²].
    """
    from scipy.spatial.transform import Rotation

    _require_complete(load, "KUKA's LOAD_DATA")
    moments, axes = load.principal
    # Columns of a rotation have a handedness; principal axes have none.
    axes = axes * np.array([1.0, 1.0, np.sign(np.linalg.det(axes))])
    a, b, c = Rotation.from_matrix(axes).as_euler("ZYX", degrees=True)
    x, y, z = 1e3 * load.center_of_mass
    center = f"X {x:.6g},Y {y:.6g},Z {z:.6g},A {a:.6g},B {b:.6g},C {c:.6g}"
    j = ",".join(f"{n} {v:.6g}" for n, v in zip("XYZ", moments, strict=True))
    return f"{{M {load.mass:.6g},CM {{{center}}},J {{{j}}}}}"


def to_ros_payload(load: LoadEstimate) -> str:
    """Return a request of ur_msgs/srv/SetPayload as YAML.

    The inertia's fields are comments: the message of ROS 2 Jazzy has them, older ones
    refuse them.
    """
    _require_physical(load)
    x, y, z = (float(v) for v in load.center_of_mass)
    lines = [f"mass: {load.mass:.6g}", "center_of_gravity:"]
    lines += [f"  {k}: {v:.6g}" for k, v in (("x", x), ("y", y), ("z", z))]
    if load.is_complete:
        I = load.central_inertia
        lines.append("# about the centre of mass; from ROS 2 Jazzy on, take them in:")
        order = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        lines += [f"# {name}: {float(I[_INERTIA[name]]):.6g}" for name in order]
    return "\n".join(lines) + "\n"


DRIVERS = {
    "ur": to_ur_script,
    "franka": to_franka_json,
    "kuka": to_kuka_load,
    "ros2": to_ros_payload,
}
"""Driver → how it takes a load: UR script, libfranka's setLoad, KRL, SetPayload."""

_FLANGES = ("flange", "tool0", "link8")
"""How the frame is called, or ends, in which drivers take a load."""


def driver_text(load: LoadEstimate, driver: str, arm: Arm | None = None) -> str:
    """Return a load exactly as a driver takes it, in its frame and units.

    Numbers are rounded to a tenth of their standard deviations, and stay those of a
    physical body.

    Args:
        load: The load; of a frame that is not the flange, expressed in the flange's if
            the arm has one on the same link.
        driver: One of `DRIVERS`.
        arm: The arm that holds it.

    Raises:
        NotPhysical: If no body has these numbers.
        ArgumentError: If there is no such driver.
    """
    if driver not in DRIVERS:
        raise ArgumentError(f"{driver!r} is none of {', '.join(DRIVERS)}.")
    _require_physical(load)
    return DRIVERS[driver](_rounded(_at_flange(load, arm)))


def _at_flange(load: LoadEstimate, arm: Arm | None) -> LoadEstimate:
    if arm is None or load.frame.endswith(_FLANGES):
        return load
    link, T_link_frame = arm.find_frame(load.frame)
    for name in (frame.name for frame in arm.frames):
        if name.endswith(_FLANGES) and arm.find_frame(name)[0] == link:
            T_link_flange = arm.find_frame(name)[1]
            return load.in_frame(np.linalg.inv(T_link_flange) @ T_link_frame, name)
    return load


def _rounded(load: LoadEstimate) -> LoadEstimate:
    """Round mass, centre and central inertia to a tenth of their deviations."""
    std = load.std
    for finer in (0, 2, 4, 8):
        mass = _digits(load.mass, std.mass, finer)
        center = _digits(load.center_of_mass, std.center_of_mass, finer)
        if not load.is_complete:
            vector = load.parameters.vector.copy()
            vector[0], vector[1:4] = mass, mass * center
            return replace(load, parameters=InertialParameters(vector))
        I = load.central_inertia
        spread = np.minimum(std.central_inertia, np.abs(I) + np.abs(I).max() * 1e-3)
        body = InertialParameters.from_center_of_mass(
            float(mass), center, _digits(I, spread, finer)
        )
        # A thin rod's inertia may lie within rounding of no body's: keep more digits.
        if body.is_physical():
            return replace(load, parameters=body)
    return load


def _digits(values: Any, std: Any, finer: int) -> Any:
    """Round to the decimal below a tenth of each deviation, or finer."""
    values, std = np.asarray(values, float), np.asarray(std, float)
    positive = np.where(np.isfinite(std) & (std > 0.0), std, 1e-9)
    step = 10.0 ** (np.floor(np.log10(positive)) - 1 - finer)
    return np.where(np.isfinite(values), np.round(values / step) * step, values)


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
    lost = [k for k, x in zip("xyz", load.center_of_mass, strict=True) if np.isnan(x)]
    if load.mass > 0.0 and lost:
        raise NotIdentifiable(
            f"A controller needs the whole centre of mass, of which {', '.join(lost)} "
            f"at {load.frame} was not determined. Turn the load against gravity that "
            "way; a joint about a vertical axis, or one that slides, does not."
        )
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
