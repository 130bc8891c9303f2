"""Loading an arm from a file of any kind, or a bundled one by name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from armwise.arms.arm import Arm
from armwise.arms.chain import outside_chain, with_locked_joints
from armwise.arms.plain import arm_from_dict, kinematics_digest
from armwise.arms.readers.dh import is_specification, read_dh, read_specification
from armwise.arms.readers.urdf import read_urdf
from armwise.arms.readers.xml import read_xml
from armwise.errors import ArmError
from armwise.tables import LARGEST_NUMBER, read_bounded, read_json

_FOLDER = Path(__file__).parent / "bundled"


def bundled_arms() -> tuple[str, ...]:
    """List the names `load_arm` knows without a file."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def bundled_path(name: str) -> Path | None:
    """Return the data file of a bundled arm, or None if there is no such arm."""
    return _FOLDER / f"{name}.toml" if name in bundled_arms() else None


def load_arm(
    path_or_name: str | PathLike[str],
    *,
    chain: tuple[str, str] | None = None,
    lock: Mapping[str, float] | None = None,
    allow_unphysical: bool = False,
) -> Arm:
    """Load an arm from a file or by the name of a bundled one.

    The kind of a file follows from its content: URDF, MJCF, SDF, a DH table in TOML, a
    specification file of Izaguirre et al. (1992), or an estimate, which gives the arm
    as it was identified. A file whose name ends in .xacro is expanded first, if the
    package `xacro` is installed.

    Args:
        path_or_name: A path, or a name `bundled_arms` lists, such as "panda".
        chain: First and last link (or frame) of the part that moves; every other joint
            is locked where the description shows it.
        lock: Joint → where it is held, in [rad] or [m].
        allow_unphysical: Take negative masses and moments as they are.

    Returns:
        The arm; `notes` say what was taken otherwise than the file says, `locked`
        which joints are held.

    Raises:
        ArmError: If the file does not describe an arm; the message says where and why.
        ArgumentError: If `chain` or `lock` name what the arm does not have.
    """
    arm = _load(path_or_name, allow_unphysical)
    positions = dict(lock or {})
    if chain is not None:
        positions = {**outside_chain(arm, *chain), **positions}
    return with_locked_joints(arm, positions)


def _load(path_or_name: str | PathLike[str], allow_unphysical: bool) -> Arm:
    path = Path(fspath(path_or_name))
    if not path.is_file():
        if (bundled := bundled_path(str(path_or_name))) is not None:
            return read_dh(bundled)
        if path.exists():
            raise ArmError(
                f"{path} is not a file; give a URDF, MJCF or DH .toml file, "
                "or an estimate."
            )
        raise ArmError(_unknown(str(path_or_name)))
    arm = _read(path, read_bounded(path), allow_unphysical)
    if not (defects := arm.defects()):
        return arm
    name, why = next(iter(defects.items()))
    others = f", and {len(defects) - 1} more links" if len(defects) > 1 else ""
    note = f"No body can be {name}{others}: {why}."
    return replace(arm, notes=(*arm.notes, note))


_LOGS = (".csv", ".tsv", ".txt", ".parquet", ".npz", ".mat", ".db3", ".mcap", ".jsonl")
"""Endings of files that describe no arm."""


def _read(path: Path, data: bytes, allow_unphysical: bool) -> Arm:
    # By suffix first: TOML has no mark of its own to recognise its content by.
    if path.suffix.lower() == ".toml":
        return read_dh(path, data)
    if is_specification(data):
        return read_specification(path, data)
    if data.lstrip()[:1] == b"{":
        return _read_estimated(path)
    if path.suffix.lower() == ".xacro":
        data = expanded_xacro(path)
    if data.lstrip()[:1] != b"<" and path.suffix.lower() in _LOGS:
        raise ArmError(
            f"{path} is a table, such as a log, not an arm. Give a URDF, MJCF or SDF "
            "file, a DH table in .toml, or an estimate."
        )
    if data.lstrip()[:15].lower() == b"<!doctype html>":
        raise ArmError(
            f"{path} is a page for people. Give the estimate.json or the description "
            "that lies beside it."
        )
    root = read_xml(path, data)
    if root.tag == "mujocoinclude":
        raise ArmError(
            f"{path} is a part (<mujocoinclude>) that MJCF files include, not an arm. "
            "Name the file that includes it."
        )
    if root.tag == "mujoco":
        from armwise.arms.readers.mjcf import read_mjcf

        return read_mjcf(path)
    if root.tag in ("sdf", "gazebo"):
        from armwise.arms.readers.sdf import read_sdf

        return read_sdf(path, root, allow_unphysical=allow_unphysical)
    return read_urdf(path, root=root, allow_unphysical=allow_unphysical)


def expanded_xacro(path: Path) -> bytes:
    """Expand a xacro file to URDF, by the package `xacro`.

    Only asked for by the file's own ending: xacro evaluates expressions and includes
    other files.
    """
    try:
        xacro = import_module("xacro")
    except ImportError:
        raise ArmError(
            f"{path} is xacro: pip install xacro, or expand it first "
            "(xacro FILE > arm.urdf)."
        ) from None
    try:
        return bytes(xacro.process_file(str(path)).toxml().encode())
    except Exception as problem:  # it evaluates what the file says, which may fail
        reason = " ".join(str(problem).split())[:300] or type(problem).__name__
        raise ArmError(f"{path}: xacro cannot expand it: {reason}") from None


def _read_estimated(path: Path) -> Arm:
    """Read the arm of an estimate's file, with the numbers that were identified."""
    document = read_json(path, "an estimate", ArmError)
    if not {"description", "kinematics", "parameters"} <= document.keys():
        raise ArmError(
            f"{path} is JSON but no estimate with its arm's description in it. Give an "
            "estimate.json that armwise identify or reduce of this version wrote."
        )
    arm = arm_from_dict(document["description"], str(path))
    if document["kinematics"] != kinematics_digest(arm):
        raise ArmError(
            f"{path} was changed: its description is not the one it was made from. "
            "Identify again."
        )
    try:
        values = np.array(document["parameters"], dtype=float)
    except (TypeError, ValueError, OverflowError) as problem:
        raise ArmError(f"{path}: its parameters are not numbers.") from problem
    # Friction terms beyond those of a drive follow the arm's own parameters.
    is_vector = values.ndim == 1 and values.size >= arm.parameters.size
    if not is_vector or not np.all(np.abs(values) <= LARGEST_NUMBER):
        raise ArmError(f"{path}: its parameters are not those of its arm.")
    return arm.with_parameters(values[: arm.parameters.size])


def _unknown(name: str) -> str:
    bundled = bundled_arms()
    close = difflib.get_close_matches(name, bundled, n=1)
    guess = f" Did you mean {close[0]!r}?" if close else ""
    return (
        f"{name} is neither a file nor a bundled arm.{guess} "
        f"Bundled: {', '.join(bundled)}."
    )
