"""Readers of Denavit–Hartenberg tables: TOML, and Izaguirre's specification files.

A table in TOML:

    name = "arm"                   convention = "modified"    # "standard", "frames"
    gravity = [0.0, 0.0, -9.81]    base = "base"
    [[joint]]                      # one per row; a missing alpha, a or d is an error
    alpha_deg = 90                 # or alpha in [rad]
    a = 0.0
    d = 0.333                      # prismatic joints add q to it
    theta_deg = 0                  # revolute joints add q to it; 0 when not given
    kind = "revolute"              # or "prismatic"
    name = "joint_1"
    link = "link_1"
    limits = {lower_deg = -170, upper_deg = 170, velocity = 2.0, effort = 87}
    drive = {rotor_inertia = 0.0, viscous = 0.0, coulomb = 0.0, offset = 0.0}
    gear = 100                     # turns of the motor for one of the joint, if known
    inertial = {mass = 1.0, center_of_mass = [0, 0, 0], inertia = [1, 0, 0, 1, 0, 1]}
    # or, about the frame's origin: moments = {m = 1.0, mx = 0.1, Ixx = 0.02}
    [[frame]]                      # name, link, xyz, rpy (or rpy_deg)
    [[coupling]]                   # name, weights = {joint_5 = 1, joint_6 = 1}, drive

Modified: T = Rx(α) Tx(a) Rz(θ) Tz(d). Standard: T = Rz(θ) Tz(d) Tx(a) Rx(α), and the
link's numbers belong to the frame after the whole of it. With the convention "frames"
a row has xyz and rpy (or rpy_deg) in place of alpha, a, theta and d: the pose of the
link's frame on its parent at q = 0, with its joint along z.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import isfinite, radians
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms.arm import Arm, Drive, Frame, Joint, Limits, Link
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import BASE, DRIVE_NAMES, INERTIAL_NAMES
from armwise.arms.poses import inverse, pose, rotation_about, rotation_from_rpy
from armwise.errors import ArmError
from armwise.tables import TomlTable, read_toml

if TYPE_CHECKING:
    from jaxtyping import Float

_X, _Z = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
_ANGLES = ("alpha", "alpha_deg", "theta", "theta_deg")
_TABLE = (*_ANGLES, "a", "d")
_POSE = ("xyz", "rpy", "rpy_deg")
_ROW = (
    "kind", "name", "link", "parent", "limits", "drive", "gear", "inertial", "moments",
)  # fmt: skip


def read_dh(path: Path, data: bytes | None = None) -> Arm:
    """Read an arm from a DH table in TOML; the module says what it holds."""
    table = read_toml(path, data)
    table.only("name", "convention", "gravity", "base", "joint", "frame", "coupling")
    convention = table.text("convention", "missing")
    rows = list(table.tables("joint"))
    if not rows:
        raise table.error("has no [[joint]]; add one per row of the DH table.")
    joints: list[Joint] = []
    links: list[Link] = []
    for i, row in enumerate(rows):
        row.only(*_ROW, *(_POSE if convention == "frames" else _TABLE))
        link = Link(row.text("link", f"link_{i + 1}"), _read_inertia(row))
        joints.append(_read_joint(row, i, convention, [x.name for x in links]))
        links.append(link)
    arm = Arm(
        name=table.text("name", path.stem),
        joints=tuple(joints),
        links=tuple(links),
        gravity=np.array(table.vector("gravity", (0.0, 0.0, -9.81))),
        frames=tuple(_read_frame(x, links) for x in table.tables("frame")),
        base=table.text("base", "base"),
    )
    for coupling in table.tables("coupling"):
        arm = _with_coupling(arm, coupling)
    return arm


def _read_joint(row: TomlTable, i: int, convention: str, links: list[str]) -> Joint:
    kind = row.text("kind", "revolute")
    if kind not in ("revolute", "prismatic"):
        raise row.error(f'has the kind "{kind}"; use "revolute" or "prismatic".')
    joint = _read_geometry(row, convention)
    return replace(
        joint,
        name=row.text("name", f"joint_{i + 1}"),
        kind="revolute" if kind == "revolute" else "prismatic",
        parent=_read_parent(row, links),
        limits=_read_limits(row.table("limits")),
        drive=_read_drive(row.table("drive")),
        gear=_read_gear(row),
    )


def _read_geometry(row: TomlTable, convention: str) -> Joint:
    if convention == "frames":
        return Joint("", "revolute", BASE, _read_pose(row), np.array(_Z))
    alpha, a, d = row.angle("alpha"), row.number("a"), row.number("d")
    numbers = (alpha, a, row.angle("theta", 0.0), d)
    if convention == "standard":
        return dh_joint("standard", *numbers)
    if convention == "modified":
        return dh_joint("modified", *numbers)
    raise row.error(
        f'needs a convention at the top of the file, "standard", "modified" or '
        f'"frames", not "{convention}".'
    )


def dh_joint(
    convention: Literal["standard", "modified"],
    alpha: float,
    a: float,
    theta: float,
    d: float,
) -> Joint:
    """Build a bare revolute joint from a row α [rad], a [m], θ [rad], d [m]."""
    # Both conventions are these two screws; only their order differs.
    across = pose(rotation_about(_X, alpha), (a, 0.0, 0.0))
    along = pose(rotation_about(_Z, theta), (0.0, 0.0, d))
    # Modified DH: the axis is z of the link's own frame.
    if convention == "modified":
        return Joint("", "revolute", BASE, across @ along, np.array(_Z))
    # The joint turns about z of the frame before `across`: seen from after it,
    # that axis passes beside the origin.
    back = inverse(across)
    axis, anchor = back[:3, 2] + 0.0, back[:3, 3] + 0.0
    return Joint("", "revolute", BASE, along @ across, axis, anchor=anchor)


def _read_parent(row: TomlTable, links: list[str]) -> int:
    """Return the link before, unless the row names another: tables may branch."""
    if "parent" not in row.values:
        return len(links) - 1
    return _read_link(row, "parent", links)


def _read_link(row: TomlTable, key: str, links: list[str]) -> int:
    name = row.text(key)
    if name == "base":
        return BASE
    if name not in links:
        raise row.error(f'has the {key} "{name}". Known: base, {", ".join(links)}.')
    return links.index(name)


def _read_limits(table: TomlTable) -> Limits:
    names = ("lower", "upper", "velocity", "acceleration")
    table.only(*names, *(f"{name}_deg" for name in names), "effort")
    lower, upper = table.angle("lower", -np.inf), table.angle("upper", np.inf)
    if lower > upper:
        raise table.error(f"has lower {lower:g} > upper {upper:g} [rad]; swap them.")
    rates = {name: table.angle(name, np.inf) for name in names[2:]}
    rates["effort"] = table.number("effort", np.inf)
    for name, value in rates.items():
        if value <= 0:
            raise table.error(f'needs a positive "{name}", not {value:g}.')
    return Limits(lower, upper, **rates)


def _read_gear(row: TomlTable) -> float | None:
    """Return turns of the motor for one of its joint, if the row has them."""
    if "gear" not in row.values:
        return None
    gear = abs(row.number("gear"))
    if gear == 0.0:
        raise row.error('needs a "gear" that is not zero; leave out what is not known.')
    return gear


def _read_drive(table: TomlTable) -> Drive:
    table.only(*DRIVE_NAMES)
    return Drive(*(table.number(name, 0.0) for name in DRIVE_NAMES))


def _read_inertia(row: TomlTable) -> InertialParameters:
    if "inertial" in row.values and "moments" in row.values:
        raise row.error('has both "inertial" and "moments"; keep one.')
    if "moments" in row.values:
        moments = row.table("moments").only(*INERTIAL_NAMES)
        return InertialParameters(
            np.array([moments.number(name, 0.0) for name in INERTIAL_NAMES])
        )
    if "inertial" not in row.values:
        return InertialParameters.zero()
    inertial = row.table("inertial").only("mass", "center_of_mass", "inertia")
    mass = inertial.number("mass")
    if mass < 0:
        raise inertial.error(f"has the negative mass {mass:g} kg; correct it.")
    xx, xy, xz, yy, yz, zz = inertial.vector("inertia", (0.0,) * 6)
    return InertialParameters.from_center_of_mass(
        mass,
        inertial.vector("center_of_mass", (0.0,) * 3),
        np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]),
    )


def _with_coupling(arm: Arm, table: TomlTable) -> Arm:
    table.only("name", "weights", "drive")
    weights = table.table("weights").only(*arm.coordinate_names)
    return arm.with_coupling(
        table.text("name"),
        {name: weights.number(name, 0.0) for name in arm.coordinate_names},
        _read_drive(table.table("drive")),
    )


def _read_frame(table: TomlTable, links: list[Link]) -> Frame:
    table.only("name", "link", "xyz", "rpy", "rpy_deg")
    link = _read_link(table, "link", [x.name for x in links])
    return Frame(table.text("name"), link, _read_pose(table))


def _read_pose(table: TomlTable) -> Float[np.ndarray, "4 4"]:
    if "rpy_deg" in table.values:
        rpy = tuple(np.radians(table.vector("rpy_deg", (0.0,) * 3)))
    else:
        rpy = table.vector("rpy", (0.0,) * 3)
    return pose(rotation_from_rpy(rpy), table.vector("xyz", (0.0,) * 3))


# Specification files of Izaguirre, Hashimoto, Paul and Hayward (1992).
#
# A line is a keyword and one value per link; `%` starts a comment; a value is a number
# or a name that a `variable` or `constant` line defines. Standard DH, angles in
# degrees, distances in [m]; adyna … fdyna are Ixx, Iyy, Izz, Ixy, Iyz, Ixz and xgrav …
# zgrav the first moments, about the frame after the joint; `ia1 … ian` the motor
# inertias.

MOMENTS = {
    "mass": "m",
    "xgrav": "mx",
    "ygrav": "my",
    "zgrav": "mz",
    "adyna": "Ixx",
    "bdyna": "Iyy",
    "cdyna": "Izz",
    "ddyna": "Ixy",
    "edyna": "Iyz",
    "fdyna": "Ixz",
}
"""The file's word for each inertial parameter."""

KINEMATICS = ("sigma", "alpha", "dpar", "apar")
MOTORS = "motor inertia"
# Keywords that are accepted and say nothing about the arm.
_IGNORED = ("option", "option_update")
_START = re.compile(rb"\A(?:\s|%[^\n]*\n)*number_links\b")


def is_specification(data: bytes) -> bool:
    """Whether a file begins as these specification files do."""
    return _START.match(data) is not None


@dataclass
class _File:
    """The lines of a file, by keyword, with their numbers."""

    path: Path
    rows: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
    names: dict[str, float] = field(default_factory=dict)

    def error(self, line: int, problem: str) -> ArmError:
        return ArmError(f"{self.path}, line {line}: {problem}")

    @property
    def count(self) -> int:
        line, words = self.rows["number_links"]
        # 999 (judgement): a number of links that memory can bear, whatever a file says.
        if len(words) != 1 or not words[0].isdigit() or not 0 < int(words[0]) < 1000:
            raise self.error(line, "number_links needs one whole number, 1 to 999.")
        return int(words[0])

    def values(self, key: str, needed: bool = False) -> list[float]:
        """Return one value per link of a keyword, zeros if it may be left out."""
        if key not in self.rows:
            if needed:
                raise ArmError(f'{self.path} has no line "{key}"; add it.')
            return [0.0] * self.count
        line, words = self.rows[key]
        if len(words) != self.count:
            raise self.error(
                line, f"{key} needs {self.count} values, not {len(words)}."
            )
        return [self.value(line, word) for word in words]

    def value(self, line: int, word: str) -> float:
        try:
            value = float(word)
        except ValueError:
            if word not in self.names:
                raise self.error(
                    line, f'"{word}" is not defined; add "variable {word} VALUE".'
                ) from None
            return self.names[word]
        if not isfinite(value):
            raise self.error(line, f'"{word}" is not a finite number.')
        return value


def read_specification(path: Path, data: bytes) -> Arm:
    """Read an arm from a specification file; the module says what it holds."""
    file = _scan(path, data)
    kinds, alpha = file.values("sigma"), file.values("alpha", needed=True)
    d, a = file.values("dpar", needed=True), file.values("apar", needed=True)
    motors = file.values(MOTORS)
    joints = []
    for i in range(file.count):
        if kinds[i] not in (0.0, 1.0):
            line = file.rows["sigma"][0]
            raise file.error(line, "sigma is 0 (revolute) or 1 (prismatic).")
        joint = replace(
            dh_joint("standard", radians(alpha[i]), a[i], 0.0, d[i]),
            name=f"joint_{i + 1}",
            kind="prismatic" if kinds[i] else "revolute",
            parent=i - 1,
            drive=Drive(rotor_inertia=motors[i]),
        )
        joints.append(joint)
    return Arm(path.stem, tuple(joints), _links(file))


def _links(file: _File) -> tuple[Link, ...]:
    columns = {MOMENTS[key]: file.values(key) for key in MOMENTS}
    table = np.array([columns[name] for name in INERTIAL_NAMES])
    return tuple(
        Link(f"link_{i + 1}", InertialParameters(table[:, i]))
        for i in range(file.count)
    )


def _scan(path: Path, data: bytes) -> _File:
    file = _File(path)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise ArmError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("%")[0].split()
        if words:
            _keep(file, number, words)
    return file


def _keep(file: _File, number: int, words: list[str]) -> None:
    key, *values = words
    if key in ("variable", "constant"):
        if len(values) != 2:
            raise file.error(number, f'write "{key} NAME VALUE".')
        file.names[values[0]] = file.value(number, values[1])
    # The motors' line has no keyword of its own: its values are the names ia1, ia2, …,
    # so that the first word is a value too.
    elif key == "ia1":
        file.rows[MOTORS] = (number, words)
    elif key in ("number_links", *KINEMATICS, *MOMENTS):
        file.rows[key] = (number, values)
    elif key not in _IGNORED:
        names = ", ".join(
            ("number_links", *KINEMATICS, *MOMENTS, "variable", "constant")
        )
        raise file.error(number, f'"{key}" is not a keyword. Known: {names}.')
