"""Fuzzing of every reader: thousands of files that are nearly right, per reader.

A mutant is made of a good file by changing its structure (elements of XML, values of
TOML and JSON, arrays, cells) or its bytes. Reading it must end in an error of Armwise,
one line of at most 300 characters, or in something finite and physical; within 5 s and
500 MB. Every mutant follows from the seed and its number, so each can be made again:

    python -m studies.fuzz --mutants 20000
    python -m studies.fuzz urdf --mutants 1 --first 4711 --show
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
import tomllib
import warnings
import xml.etree.ElementTree as ElementTree
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from armwise.arms import Arm, load_arm, save_arm
from armwise.control import ParameterSet, SlotineLi, UpdateLaw, load_state, save_state
from armwise.control.feedback import _kind, _seal
from armwise.dynamics import Dynamics
from armwise.errors import LONGEST_MESSAGE, ArmwiseError
from armwise.files import write_atomically
from armwise.motions import MotionSample
from armwise.plants import Measurement

LONGEST = 5.0
"""Seconds of processor time that a mutant may take."""
LARGEST = 500 * 2**20
"""Bytes that it may take beside what is there."""
_PATIENCE = 60
"""Seconds on the clock after which reading is interrupted, whatever it waits for."""
_BATCH = 1000
"""Mutants of one process: programs of every arm that was accepted stay in memory."""
_LOOKS = 50
"""Mutants after which the memory they took is looked at, all of them at once: to ask
the kernel for it takes as long as to read one. Should one have taken too much, they are
examined again, one by one."""

_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None

ODD: tuple[Any, ...] = (
    *(float("nan"), float("inf"), -float("inf"), 1e308, -1e308, 1e-308, 5e-21, 1e20),
    *(0, -1, -0.0, 1, 2**31, 2**63, -(2**63), 10**400, True, False, None, 0.5, 1e6),
    *("", " ", "nan", "²", "٣", "1_000", "a" * 70_000, "../../../etc/passwd", "\0"),
    *("</script>", "$(id)", "日本", "\ud83d", [], {}, [[]], [1], ["a"], {"a": 1}),
    *([[1.0, 2.0], [3.0]], [[[[[[[[1]]]]]]]], [0.0] * 1000, "x.y", "-", "1e400"),
)
"""Values that do not belong where they are put."""


# Trees of JSON and TOML, XML, arrays, cells, bytes.


def _paths(tree: Any, at: tuple = ()) -> list[tuple]:
    """Where every value of a tree stands."""
    paths = [at]
    pairs: Any = tree.items() if isinstance(tree, dict) else ()
    if isinstance(tree, list):
        pairs = enumerate(tree)
    for key, value in pairs:
        paths += _paths(value, (*at, key))
    return paths


def _changed_tree(tree: Any, rng: random.Random) -> Any:
    """Change a value, drop it, double it, or give it another's."""
    tree = json.loads(json.dumps(tree))
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        paths = [path for path in _paths(tree) if path]
        if not paths:
            return tree
        path = rng.choice(paths)
        parent = tree
        for key in path[:-1]:
            parent = parent[key]
        key, kind = path[-1], rng.randrange(6)
        value = parent[key]
        if kind == 0:
            del parent[key]
        elif kind == 1 and isinstance(parent, list):
            parent.insert(key, value)
        elif kind == 2 and isinstance(parent, dict):
            parent[rng.choice(["extra", "", "é", f"{key}_", "x" * 5000])] = value
        elif kind == 3 and isinstance(value, int | float):
            scale = rng.choice((-1.0, 0.0, 1e-12, 1e3, 1e12, 1e300))
            parent[key] = _scaled(value, scale)
        elif kind == 4:
            other = tree
            for step in rng.choice(paths):
                other = other[step]
            parent[key] = json.loads(json.dumps(other))
        else:
            parent[key] = deepcopy(rng.choice(ODD))  # it may be changed in turn
    return tree


def _scaled(value: float, scale: float) -> float:
    try:
        return value * scale
    except OverflowError:
        return float("inf")


_parsed_json = cache(json.loads)


def _json(good: bytes, rng: random.Random) -> bytes:
    tree = _changed_tree(_parsed_json(good), rng)
    return json.dumps(tree).encode()


def _json_lines(good: bytes, rng: random.Random) -> bytes:
    tree = _changed_tree([_parsed_json(line) for line in good.splitlines()], rng)
    rows = tree if isinstance(tree, list) else [tree]
    return "\n".join(map(json.dumps, rows)).encode()


_parsed_toml = cache(tomllib.loads)


def _toml(good: bytes, rng: random.Random) -> bytes:
    tree = _changed_tree(_parsed_toml(good.decode()), rng)
    lines = [f"{json.dumps(k)} = {_toml_value(v)}" for k, v in tree.items()]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{json.dumps(k)} = {_toml_value(v)}" for k, v in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return '""'
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value) if isinstance(value, str) else str(value)


_NUMBERS = ("nan", "inf", "-1", "0", "1e308", "-1e308", "1e-320", "1e31", "1e7", "٣",
            "0x10", "1_0", "", "a", "1 2 3", "0 0 0", "1e400", "9" * 400)  # fmt: skip


def _xml(good: bytes, rng: random.Random) -> bytes:
    root = ElementTree.fromstring(good)  # noqa: S314, our own text
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        elements = list(root.iter())
        parents = {child: parent for parent in elements for child in parent}
        one = rng.choice(elements)
        kind = rng.randrange(8)
        if kind == 0 and one in parents:
            parents[one].remove(one)
        elif kind == 1 and one in parents:
            parents[one].insert(0, one)
        elif kind == 2 and one in parents:
            parents[one].remove(one)
            inside = set(one.iter())  # one that holds itself would never end
            rng.choice([e for e in elements if e not in inside]).append(one)
        elif kind == 3:
            one.tag = rng.choice(["link", "joint", "inertial", "x", "body", "mimic"])
        elif one.attrib:
            name = rng.choice(list(one.attrib))
            value = one.attrib[name]
            if kind == 4:
                del one.attrib[name]
            elif kind == 5:
                one.attrib[rng.choice([name.upper(), "name", "type"])] = value
            else:
                words = value.split() or [""]
                words[rng.randrange(len(words))] = rng.choice(_NUMBERS)
                odd = str(rng.choice(ODD)).replace("\0", "").replace("\ud83d", "")
                one.attrib[name] = rng.choice([" ".join(words), odd])
        elif one.text and one.text.strip():
            one.text = rng.choice(_NUMBERS)
    try:
        return ElementTree.tostring(root)
    except (RecursionError, TypeError):
        return b"<robot>" * 5000


def _bytes(good: bytes, rng: random.Random) -> bytes:
    data = bytearray(good)
    for _ in range(rng.choice((1, 3, 20))):
        at = rng.randrange(max(1, len(data)))
        kind = rng.randrange(5)
        if kind == 0:
            data[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            del data[at : at + rng.choice((1, 10, len(data)))]
        elif kind == 2:
            data[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 9))))
        elif kind == 3:
            data[at:at] = data[at : at + rng.randrange(1, 200)]
        else:
            data[at:at] = rng.choice(
                [b"\0" * 50, b"[" * 9999, b'"', b"nan", b"\xff\xfe"]
            )
    return bytes(data)


def _cells(good: bytes, rng: random.Random) -> bytes:
    rows = [line.split(",") for line in good.decode().splitlines()]
    for _ in range(rng.choice((1, 1, 3, 20))):
        if not rows:
            break
        r = rng.choice((0, rng.randrange(len(rows))))
        kind = rng.randrange(7)
        c = rng.randrange(max(1, len(rows[r])))
        if kind == 0:
            rows[r][c : c + 1] = [str(rng.choice(ODD)).replace("\ud83d", "")[:2000]]
        elif kind == 1:
            del rows[r]
        elif kind == 2:
            rows.insert(r, list(rows[r]))
        elif kind == 3:
            rows = [row[:c] + row[c + 1 :] for row in rows]
        elif kind == 4:
            rows = [[*row, row[c] if c < len(row) else ""] for row in rows]
        elif kind == 5:
            rows[r] = rows[r][:c]
        else:
            rows[r][c : c + 1] = [rng.choice(["time", "q_1", "q_²", "tau_0", "q_-1"])]
    return "\n".join(",".join(row) for row in rows).encode()


def _changed_array(value: np.ndarray, rng: random.Random) -> np.ndarray:
    kind = rng.randrange(9)
    number = value.astype(float) if value.dtype.kind in "fiub" else np.zeros(3)
    if kind == 0:
        return number * np.nan
    if kind == 1:
        return number * rng.choice([-1.0, 0.0, 1e6, 1e-9, 1e300])
    if kind == 2:
        return number.reshape(-1)[: rng.randrange(number.size + 1)]
    if kind == 3:
        return np.stack([number] * rng.randrange(1, 4))
    if kind == 4:
        return number.T
    if kind == 5:
        return number.astype(rng.choice(["f4", "i4", "c16", "U8", "?", "f2"]))
    if kind == 6:
        flat = number.copy().reshape(-1)
        if flat.size:
            odd = rng.choice([np.nan, np.inf, -1.0, 1e308])
            flat[rng.randrange(flat.size)] = odd
        return flat.reshape(number.shape)
    if kind == 7:
        return np.array(rng.choice(["text", "", "trials done"]))
    return np.zeros(rng.choice([(0,), (0, 3), (1,), (2, 2, 2)]))


def _npz(good: bytes, rng: random.Random) -> bytes:
    with np.load(io.BytesIO(good), allow_pickle=False) as stored:
        arrays = dict(stored)
    for _ in range(rng.choice((1, 1, 2, 4))):
        name = rng.choice(list(arrays))
        kind = rng.randrange(6)
        if kind == 0 and len(arrays) > 1:
            del arrays[name]
        elif kind == 1:
            arrays[rng.choice(["extra", "a/b", "x" * 500, "q_²"])] = arrays[name]
        elif kind == 2:
            arrays[name] = arrays[rng.choice(list(arrays))]
        else:
            with np.errstate(all="ignore"):
                arrays[name] = _changed_array(arrays[name], rng)
    if "seal" in arrays and rng.random() < 0.8:
        # Else every change would be refused for the seal alone.
        state = {k: v for k, v in arrays.items() if k not in ("kind", "seal")}
        arrays["seal"] = np.array(_seal(state, str(arrays.get("kind", ""))))
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


# What is read, and what may be accepted.


@dataclass(frozen=True)
class Target:
    """A reader under attack.

    Attributes:
        suffix: Of its files.
        make: Writes a good file.
        read: Reads a file, and returns what came of it.
        check: Raises AssertionError if that is not finite or not physical.
        mutate: How the structure of a file is changed.
    """

    suffix: str
    make: Callable[[Path], object]
    read: Callable[[Path], Any]
    check: Callable[[Any], None]
    mutate: Callable[[bytes, random.Random], bytes]

    def mutant(self, good: bytes, seed: int, number: int) -> bytes:
        """Return one mutant; the same for the same numbers."""
        rng = random.Random(f"{seed}-{number}")
        # Three of four keep the form and break the meaning.
        return (self.mutate if rng.random() < 0.75 else _bytes)(good, rng)


def _check_arm(arm: Arm) -> None:
    assert arm.dof >= 1
    assert np.all(np.isfinite(arm.parameters))
    said = " ".join(arm.notes)
    assert not arm.defects() or "No body can be" in said, "a body that cannot exist"
    if arm.dof <= 3:
        q = np.full((1, arm.dof), 0.3)
        tau = Dynamics(arm, backend="numpy").inverse_dynamics(q, q, q)
        assert np.all(np.isfinite(tau))


def _check_identified(arm: Arm) -> None:
    assert np.all(np.isfinite(arm.parameters))


def _check_estimate(estimate: Any) -> None:
    arm = estimate.prior_arm
    assert estimate.parameters.shape == arm.parameters.shape
    assert np.all(np.isfinite(estimate.all_parameters))
    assert np.all(np.isfinite(estimate.fit.relative_error))
    assert not np.any(np.isnan(estimate.base_std))
    assert estimate.condition_number >= 1.0
    estimate.origin, estimate.std, estimate.arm  # noqa: B018


def _check_load(load: Any) -> None:
    assert np.isfinite(load.mass)
    assert not load.is_complete or np.all(np.isfinite(load.parameters.vector))


def _check_learned(learned: Any) -> None:
    assert np.all(np.isfinite(learned.command))
    assert learned.next_command.shape == learned.command.shape
    assert learned.period > 0
    learned.best, learned.overall_floor  # noqa: B018


def _check_controller(controller: Any) -> None:
    seen = Measurement(q=np.full((1, 2), 0.1))
    for k in range(2):
        tau = controller.torque(1e-3 * k, MotionSample(*np.zeros((3, 1, 2))), seen)
        assert tau.shape == (1, 2)
        assert np.all(np.abs(tau) < 1e9), "an absurd torque"


def _check_recording(recording: Any) -> None:
    for channel in recording.channels.values():
        assert np.all(np.isfinite(channel.time))
        assert channel.time.size == channel.values.size


def _check_numbers(value: Any) -> None:
    """Every number that was read is finite, however deep it lies."""
    if isinstance(value, bool | str | bytes | None):
        return
    if isinstance(value, int | float | np.ndarray):
        numbers = np.asarray(value)
        assert numbers.dtype.kind not in "fc" or np.all(np.isfinite(numbers)), value
    elif isinstance(value, Mapping):
        _check_numbers(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            _check_numbers(item)
    elif is_dataclass(value):
        for item in fields(value):
            number = getattr(value, item.name)
            # What is never reached by default is infinite.
            if not (item.default == np.inf and isinstance(number, float)):
                _check_numbers(number)


def _check_calibration(calibration: Any) -> None:
    numbers = np.array([calibration.alpha, calibration.beta])
    # NaN stands for what nobody knows; nothing is calibrated with it.
    assert not np.any(np.isinf(numbers))
    assert np.all(numbers[0] != 0.0)


def _check_world(scenario: Any) -> None:
    _check_numbers(scenario)
    assert scenario.duration > 0.0
    assert scenario.step > 0.0


@cache
def _small_arm() -> Arm:
    return load_arm("two_link_slotine").with_gravity([0.0, -9.81, 0.0])


def _estimate(path: Path) -> None:
    from armwise.identification import identify, write_estimate
    from armwise.recordings import Samples

    arm = load_arm("two_link_uno")
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 300, 2))
    tau = Dynamics(arm, backend="numpy").inverse_dynamics(q, qd, qdd)
    time_ = np.arange(300) / 100.0
    data = Samples(
        time=time_, q=q, qd=qd, qdd=qdd, tau=tau + rng.normal(size=tau.shape)
    )
    write_estimate(identify(arm, data, friction="linear"), path)


def _load(path: Path) -> None:
    from armwise.arms import InertialParameters
    from armwise.loads import LoadEstimate, write_load_estimate

    box = InertialParameters.from_center_of_mass(
        1.0, np.array([0.0, 0.0, 0.1]), np.diag([0.01, 0.02, 0.015])
    )
    load = LoadEstimate("wrist", box, 1e-6 * np.eye(10), np.full(10, 50.0))
    write_load_estimate(load, path)


def _learned(path: Path) -> None:
    from armwise.learning import Learned, save_learned

    errors = np.ones((3, 2))
    command = np.ones((20, 2))
    save_learned(Learned(command, command, 0.01, errors, errors, np.ones(2)), path)


@cache
def _base_set() -> ParameterSet:
    return ParameterSet.base(_small_arm(), ())


def _controller() -> SlotineLi:
    law = UpdateLaw.bounded_gain(1.0, 0.1, 1e3)
    controller = SlotineLi(_base_set(), 10.0, 10.0, law)
    controller.reset(1, 1e-3)
    return controller


def _state(path: Path) -> None:
    controller = _controller()
    _check_controller(controller)
    save_state(controller, path)
    assert _kind(controller)


def _restored(path: Path) -> SlotineLi:
    controller = _controller()
    load_state(controller, path)
    return controller


def _fleet(path: Path) -> None:
    from dataclasses import asdict

    from armwise.recordings import Preparation

    prepared = Preparation(
        10.0, True, 500.0, 5, 10.0, 1e-3, speed_resolution=(0.1, 0.2), rows_read=9,
        velocity="position", derivatives="differences", notes=("a note",),
    )  # fmt: skip
    table = {"preparation": asdict(prepared), "lags": {"R1": 0.001, "R2": 0.002}}
    write_atomically(path, json.dumps(table))


def _manifest(path: Path) -> None:
    table = {"name": "arm", "files": {"arm.c": "0" * 64}, "functions": {}}
    write_atomically(path, json.dumps(table))


def _read_manifest(path: Path) -> Any:
    from armwise.codegen.folder import MANIFEST, read_manifest

    path.replace(path.with_name(MANIFEST))
    return read_manifest(path.parent)


_CALIBRATION = """
[[joint]]
name = "a"
alpha = 0.1
beta = 0.2
[[joint]]
name = "b"
alpha_deg = 10.0
beta = -0.3
"""

_MAPPING = """
joints = 2
[time]
column = "t"
unit = "ms"
[position]
columns = ["a", "b"]
unit = "deg"
[torque]
columns = ["c", "d"]
unit = "N m"
[csv]
separator = ";"
"""

_WORLD = """
name = "hanging cylinder"
gravity = [0.0, 0.0, -9.81]
duration = 1.0
step = 0.01
[[body]]
name = "cylinder"
rpy = [0.0, 1.0, 0.0]
[[body.segment]]
kind = "rod"
mass = 1.0
from = [0, 0, -0.5]
to = [0, 0, 0.5]
radius = 0.05
[[constraint]]
name = "nail"
kind = "nail"
point = { body = "cylinder", at = [0, 0, 0.5] }
at = [0.6, 0.2, 0.4]
frequency = 5.0
"""

_SDF = """<sdf version="1.7"><model name="m"><link name="base"/>
<link name="a"><inertial><mass>1</mass><pose>0 0 0.1 0 0 0</pose><inertia><ixx>0.1</ixx>
<iyy>0.1</iyy><izz>0.1</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial>
</link><joint name="j" type="revolute"><parent>base</parent><child>a</child>
<axis><xyz>0 0 1</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis></joint>
<joint name="w" type="fixed"><parent>world</parent><child>base</child></joint>
</model></sdf>"""

_MJCF = """<mujoco model="m"><option gravity="0 0 -9.81"/><worldbody>
<body name="a"><inertial mass="1" pos="0 0 0.1" diaginertia="0.1 0.1 0.1"/>
<joint name="j1" axis="0 0 1" damping="0.1" armature="0.01" range="-1 1"/>
<geom type="box" size="0.1 0.1 0.1"/><site name="tool" pos="0 0 1"/>
<body name="b" pos="0 0 0.5">
<inertial mass="1" pos="0 0 0.1" diaginertia="0.1 0.1 0.1"/>
<joint name="j2" axis="0 1 0" frictionloss="0.1"/></body></body></worldbody>
<equality><joint joint1="j1" joint2="j2" polycoef="0 1 0 0 0"/></equality></mujoco>"""


def _log(path: Path) -> None:
    rng = np.random.default_rng(0)
    t = np.arange(300) / 100.0
    names = ("time", "q_1", "q_2", "tau_1", "tau_2")
    values = np.column_stack(
        [t, np.sin(np.outer(t, [1.0, 2.0])), rng.normal(size=(300, 2))]
    )
    if path.suffix == ".csv":
        header = ",".join(names)
        np.savetxt(path, values[:60], delimiter=",", header=header, comments="")
    elif path.suffix == ".jsonl":
        rows = (dict(zip(names, row, strict=True)) for row in values[:60].tolist())
        path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    elif path.suffix == ".npz":
        np.savez(path, **dict(zip(names, values.T, strict=True)))
    elif path.suffix == ".mat":
        from scipy.io import savemat

        savemat(path, dict(zip(names, values.T, strict=True)))
    else:
        import polars as pl

        pl.DataFrame(dict(zip(names, values.T, strict=True))).write_parquet(path)


def _read_log(path: Path) -> Any:
    from armwise.recordings import read_recording

    return read_recording(path, arm=_small_arm())


def _read_estimate(path: Path) -> Any:
    from armwise.identification import read_estimate

    return read_estimate(path)


def _read_load(path: Path) -> Any:
    from armwise.loads import read_load_estimate

    return read_load_estimate(path)


def _read_learned(path: Path) -> Any:
    from armwise.learning import load_learned

    return load_learned(path)


def _read_fleet(path: Path) -> Any:
    from armwise.fleets import read_preparation

    return read_preparation(path)


def _read_calibration(path: Path) -> Any:
    from armwise.recordings import read_calibration

    return read_calibration(path)


def _read_mapping(path: Path) -> Any:
    from armwise.recordings import load_mapping

    return load_mapping(path)


def _read_world(path: Path) -> Any:
    from armwise.worlds import read_world

    return read_world(path)


def _bundled(path: Path) -> None:
    import armwise.arms

    folder = Path(armwise.arms.__file__).parent / "bundled"
    path.write_bytes((folder / "two_link_uno.toml").read_bytes())


def _urdf(path: Path) -> None:
    save_arm(load_arm("two_link_uno"), path)


def _text(content: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(content, encoding="utf-8")


TARGETS: dict[str, Target] = {
    "urdf": Target(".urdf", _urdf, load_arm, _check_arm, _xml),
    "mjcf": Target(".xml", _text(_MJCF), load_arm, _check_arm, _xml),
    "sdf": Target(".sdf", _text(_SDF), load_arm, _check_arm, _xml),
    "dh": Target(".toml", _bundled, load_arm, _check_arm, _toml),
    "estimate": Target(".json", _estimate, _read_estimate, _check_estimate, _json),
    "estimate as arm": Target(".json", _estimate, load_arm, _check_identified, _json),
    "load": Target(".json", _load, _read_load, _check_load, _json),
    "learned": Target(".npz", _learned, _read_learned, _check_learned, _npz),
    "state": Target(".npz", _state, _restored, _check_controller, _npz),
    "fleet": Target(".json", _fleet, _read_fleet, _check_numbers, _json),
    "manifest": Target(".json", _manifest, _read_manifest, _check_numbers, _json),
    "calibration": Target(
        ".toml", _text(_CALIBRATION), _read_calibration, _check_calibration, _toml
    ),
    "mapping": Target(".toml", _text(_MAPPING), _read_mapping, _check_numbers, _toml),
    "world": Target(".toml", _text(_WORLD), _read_world, _check_world, _toml),
    "csv": Target(".csv", _log, _read_log, _check_recording, _cells),
    "json lines": Target(".jsonl", _log, _read_log, _check_recording, _json_lines),
    "npz": Target(".npz", _log, _read_log, _check_recording, _npz),
    "parquet": Target(".parquet", _log, _read_log, _check_recording, _bytes),
    "mat": Target(".mat", _log, _read_log, _check_recording, _bytes),
}
"""Every reader of files that come from outside."""


# One mutant after the other, in processes that may die.

FAILURES = ("wrong", "foreign", "long", "slow", "large", "crash")
"""What must not come of a mutant: accepted though senseless, an error that is not ours,
more than a line, seconds or megabytes too many, the end of the process."""


class _Stuck(BaseException):
    """Reading took longer than patience allows."""


def _interrupt(_: int, __: FrameType | None) -> None:
    raise _Stuck


def _peak() -> int:
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.partition("VmHWM:")[2].split()[0])


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def examine(target: Target, data: bytes, folder: Path) -> tuple[str, str]:
    """Read one mutant; return what came of it, and the words that go with it."""
    path = folder / f"mutant{target.suffix}"
    path.write_bytes(data)
    began = time.process_time()
    outcome, words = "accepted", ""
    signal.alarm(_PATIENCE)
    try:
        result = target.read(path)
        try:
            with np.errstate(all="ignore"):
                target.check(result)
        except (AssertionError, ArmwiseError) as problem:
            outcome, words = "wrong", str(problem)
    except ArmwiseError as problem:
        outcome, words = "refused", str(problem)
        if len(words) > LONGEST_MESSAGE or "\n" in words:
            outcome = "long"
    except _Stuck:
        outcome = "slow"
    except Exception as problem:
        outcome, words = "foreign", f"{type(problem).__name__}: {problem}"[:300]
    finally:
        signal.alarm(0)
    if time.process_time() - began > LONGEST:
        outcome = "slow"
    return outcome, words


def run_batch(
    name: str, content: bytes, seed: int, first: int, count: int, report: Any
) -> None:
    """Examine mutants of a good file one after the other, and report each."""
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _interrupt)
    # Address space, far above the limit: what asks for terabytes gets an error.
    resource.setrlimit(resource.RLIMIT_AS, (16 * 2**30, 16 * 2**30))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MuJoCo writes there
    target = TARGETS[name]
    # In memory where there is such a folder: a disk takes longer than most readers.
    with tempfile.TemporaryDirectory(dir=_MEMORY) as scratch:
        inside = Path(scratch)

        def took_much(numbers: Sequence[int], is_reported: bool) -> bool:
            _forget_peak()
            before = _peak()
            for number in numbers:
                data = target.mutant(content, seed, number)
                outcome = examine(target, data, inside)
                if is_reported:
                    report.send((number, *outcome))
            return _peak() - before > LARGEST

        for start in range(first, first + count, _LOOKS):
            numbers = range(start, min(start + _LOOKS, first + count))
            if took_much(numbers, True):
                for number in numbers:
                    if took_much([number], False):
                        report.send((number, "large", ""))
    report.send(None)


def fuzz(name: str, mutants: int, seed: int = 0, first: int = 0) -> dict[str, list]:
    """Examine mutants of one reader; return their numbers and words by outcome."""
    outcomes: dict[str, list] = {}
    # Not a plain fork: threads of whoever calls (array libraries' pools) would leave
    # their locks held in the child for good.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    number, end = first, first + mutants
    with tempfile.TemporaryDirectory() as scratch:
        good = Path(scratch, f"good{TARGETS[name].suffix}")
        TARGETS[name].make(good)
        content = good.read_bytes()
    while number < end:
        receiver, sender = context.Pipe(duplex=False)
        count = min(_BATCH, end - number)
        process = context.Process(
            target=run_batch, args=(name, content, seed, number, count, sender)
        )
        process.start()
        sender.close()
        try:
            while (answer := receiver.recv()) is not None:
                number = max(number, answer[0] + 1)
                outcomes.setdefault(answer[1], []).append((answer[0], answer[2]))
        except EOFError:  # the process died over the mutant after the last answer
            outcomes.setdefault("crash", []).append((number, ""))
            number += 1
        process.join()
    return outcomes


def main() -> None:
    """Run from the command line; exit 1 if any mutant got through."""
    parser = ArgumentParser(description="Fuzz the readers of Armwise.")
    parser.add_argument("readers", nargs="*", help=", ".join(TARGETS))
    parser.add_argument("--mutants", type=int, default=20_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", action="store_true", help="Show what went wrong.")
    options = parser.parse_args()
    kinds = (
        "refused",
        "accepted",
        "wrong",
        "foreign",
        "long",
        "slow",
        "large",
        "crash",
    )
    print(f"{'reader':16} {'mutants':>8} " + " ".join(f"{k:>9}" for k in kinds))
    failed = False
    for name in options.readers or TARGETS:
        outcomes = fuzz(name, options.mutants, options.seed, options.first)
        counts = Counter({kind: len(rows) for kind, rows in outcomes.items()})
        cells = " ".join(f"{counts[kind]:>9}" for kind in kinds)
        print(f"{name:16} {options.mutants:>8} {cells}", flush=True)
        bad = [kind for kind in FAILURES if counts[kind]]
        failed |= bool(bad)
        for kind in bad if options.show else ():
            for number, words in outcomes[kind][:5]:
                print(f"    {kind} {number}: {words[:200]!r}", flush=True)
    sys.exit(int(failed))


if __name__ == "__main__":
    main()
