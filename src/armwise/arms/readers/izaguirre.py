"""Reader of specification files of Izaguirre, Hashimoto, Paul and Hayward (1992).

A line is a keyword and one value per link; `%` starts a comment; a value is a number or
a name that a `variable` or `constant` line defines. Standard DH, angles in degrees,
distances in [m]; adyna … fdyna are Ixx, Iyy, Izz, Ixy, Iyz, Ixz and xgrav … zgrav the
first moments, about the frame after the joint; `ia1 … ian` the motor inertias.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from math import isfinite, radians
from pathlib import Path

import numpy as np

from armwise.arms.arm import Arm, Drive, Link
from armwise.arms.inertia import InertialParameters
from armwise.arms.layout import INERTIAL_NAMES
from armwise.arms.readers.dh import dh_joint
from armwise.errors import ArmError

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
