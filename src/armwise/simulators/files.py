"""Files of simulators: written whole, and only what loads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from armwise.arms import Arm, Editor, number, quoteattr, read_xml, save_arm
from armwise.errors import ArmError
from armwise.files import scratch_folder, write_atomically

if TYPE_CHECKING:
    from jaxtyping import Float


class WrittenFiles(NamedTuple):
    """Files that were written, and what the user should know of them."""

    files: list[Path]
    notes: list[str]


def column_ranges(columns: Mapping[str, Float[np.ndarray, " draws"]]) -> dict[str, Any]:
    """Mean, deviation and 90 % range of drawn parameters, and their correlations."""
    table = np.stack(list(columns.values()), axis=1)
    std = table.std(axis=0)
    unit = np.where(std > 0, std, 1.0)
    whitened = (table - table.mean(axis=0)) / unit
    low, high = np.quantile(table, [0.05, 0.95], axis=0)
    return {
        "draws": len(table),
        "parameters": {
            name: {
                "mean": float(table[:, k].mean()),
                "std": float(std[k]),
                "low": float(low[k]),
                "high": float(high[k]),
            }
            for k, name in enumerate(columns)
        },
        "correlation": (whitened.T @ whitened / len(table)).tolist(),
    }


def ranges_text(measured: Mapping[str, Any]) -> list[str]:
    """The same as lines of Python."""
    lines = ["", "# 90 % ranges of what was identified, by draws from its uncertainty."]
    lines += ["# Joint by joint they are not independent: CORRELATION has their order."]
    lines += ["RANDOMIZATION = {"]
    for name, values in measured["parameters"].items():
        lines.append(f"    {name!r}: {values!r},")
    return [*lines, "}", f"CORRELATION = {json.dumps(measured['correlation'])}"]


def require_bodies(arm: Arm) -> None:
    """Refuse numbers that no body has."""
    for name, why in arm.defects().items():
        raise ArmError(
            f"{arm.name}: {name}: {why}; no simulator takes that. Identify with the "
            "default method, whose bodies can exist."
        )


def write_arm(arm: Arm, path: Path, kind: str, template: Path | None) -> WrittenFiles:
    """Write an arm as urdf, sdf or, with transmissions, drake."""
    if kind == "drake":
        return _write_drake(arm, path, template)
    data, notes = _saved(arm, path, kind, template)
    write_atomically(path, data)
    return WrittenFiles([path], notes)


def _saved(
    arm: Arm, path: Path, kind: str, template: Path | None
) -> tuple[bytes, list[str]]:
    """What save_arm writes; it decides by the name, and a file may have any."""
    with scratch_folder(path.parent) as folder:
        file = folder / f"{path.stem}.{kind}"
        notes = save_arm(arm, file, template)
        return file.read_bytes(), list(notes)


def write_checked_mjcf(path: Path, data: bytes) -> None:
    """Write an MJCF that MuJoCo has loaded, under another name, without complaint."""
    try:
        import mujoco
    except ImportError:
        write_atomically(path, data)
        return
    with scratch_folder(path.parent) as folder:
        # Beside the target, so that relative names mean the same.
        trial = folder / path.name
        trial.write_bytes(_one_level_up(data))
        try:
            mujoco.MjModel.from_xml_path(str(trial))
        except ValueError as problem:
            reason = " ".join(str(problem).split())
            raise ArmError(f"{path}: MuJoCo refuses it: {reason}") from None
    write_atomically(path, data)


def _one_level_up(data: bytes) -> bytes:
    """The same file as one folder further down has to say it."""
    root, editor = read_xml(Path("export.xml"), data), Editor(data)
    compilers = list(root.all("compiler"))
    for compiler in compilers:
        names = ("meshdir", "texturedir", "assetdir")
        own = {k: v for k, v in compiler.attributes.items() if k in names}
        editor.set(compiler, {k: f"../{v}" for k, v in own.items() if v[:1] != "/"})
    has_folder = any("meshdir" in c.attributes for c in compilers)
    if not has_folder and not any("assetdir" in c.attributes for c in compilers):
        editor.insert(root, ['<compiler meshdir=".." texturedir=".."/>'])
    return editor.result()


_DRAKE = "http://drake.mit.edu"


def _write_drake(arm: Arm, path: Path, template: Path | None) -> WrittenFiles:
    """URDF with a transmission for every joint, whose rotor turns as the joint does."""
    data, notes = _saved(arm, path, "urdf", template)
    root, editor = read_xml(path, data), Editor(data)
    if "xmlns:drake" not in root.attributes:
        editor.set(root, {"xmlns:drake": _DRAKE})
    ranges = {}
    for transmission in root.all("transmission"):
        end, actuator = transmission.find("joint"), transmission.find("actuator")
        if end is not None and actuator is not None:
            ranges[end.attributes.get("name")] = actuator
    added: list[str] = []
    for i in arm.coordinates:
        joint = arm.joints[i]
        inertia = number(joint.drive.rotor_inertia)
        words = [
            f'<drake:rotor_inertia value="{inertia}"/>',
            '<drake:gear_ratio value="1"/>',
        ]
        if joint.name in ranges:
            actuator = ranges[joint.name]
            for tag in ("drake:rotor_inertia", "drake:gear_ratio"):
                old = actuator.find(tag)
                value = inertia if tag == "drake:rotor_inertia" else "1"
                if old is not None:
                    editor.set(old, {"value": value})
                    words = [word for word in words if tag not in word]
            if words:
                editor.insert(actuator, words)
            continue
        name = quoteattr(joint.name)
        added += [
            f"<transmission name={quoteattr(joint.name + '_transmission')}>",
            "  <type>transmission_interface/SimpleTransmission</type>",
            f"  <joint name={name}>",
            "    <hardwareInterface>EffortJointInterface</hardwareInterface>",
            "  </joint>",
            f"  <actuator name={name}>",
            *(f"    {word}" for word in words),
            "  </actuator>",
            "</transmission>",
        ]
    if added:
        editor.insert(root, added)
    write_atomically(path, editor.result())
    return WrittenFiles([path], notes)


def write_python(path: Path, lines: Sequence[str]) -> None:
    """Write lines of Python that parse."""
    text = "\n".join([*lines, ""])
    compile(text, str(path), "exec")  # names of joints can be anything: it must parse
    write_atomically(path, text)


def identifier(name: str) -> str:
    """A name as Python takes it."""
    return "".join(c if c.isalnum() else "_" for c in name) or "arm"
