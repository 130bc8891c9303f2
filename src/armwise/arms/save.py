"""Saving an arm as URDF, MJCF or SDF, or into the file it came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from os import path as paths
from pathlib import Path
from typing import TYPE_CHECKING

from armwise.arms.arm import Arm
from armwise.arms.readers.xml import read_xml
from armwise.arms.writers.link_inertia import (
    divide_inertia,
    frames_on,
    require_writable,
)
from armwise.arms.writers.urdf import fill_urdf, urdf_text
from armwise.arms.writers.xml_edit import Editor, quoteattr
from armwise.errors import ArmError, NotPhysical
from armwise.files import write_atomically
from armwise.tables import read_bounded

if TYPE_CHECKING:
    from armwise.arms.writers.mjcf import MjcfScene


def save_arm(
    arm: Arm,
    path: str | PathLike[str],
    template: str | PathLike[str] | None = None,
    *,
    allow_unphysical: bool = False,
) -> tuple[str, ...]:
    """Write an arm as a file, or put its numbers back into the user's own.

    Without a template the file is complete: MJCF if the name ends in .xml, SDF if it
    ends in .sdf, else URDF.
    With one, inertias, friction and rotor inertias that differ from the template's are
    put into it, and every other byte stays as it is; only meshes of an MJCF that is
    written to another folder are looked for where they were.

    Args:
        arm: What to write.
        path: Where to; written whole or not at all.
        template: The URDF or MJCF file the arm was loaded from.
        allow_unphysical: Write negative masses and moments all the same.

    Returns:
        Notes on what could not be written as it was; empty as a rule.

    Raises:
        NotPhysical: If no body has the numbers of a link, which the message names.
        ArmError: If the template is another arm's.
    """
    target = Path(fspath(path))
    if template is not None:
        data, notes = _fill(arm, Path(fspath(template)), target, allow_unphysical)
    else:
        data, notes = _complete(arm, target.suffix.lower(), allow_unphysical)
    write_atomically(target, data)
    return notes


def simulator_file(
    arm: Arm,
    target: Path,
    actuators: Mapping[str, str],
    template: Path | None = None,
    scene: MjcfScene | None = None,
) -> tuple[bytes, tuple[str, ...]]:
    """Return an MJCF that MuJoCo simulates as it is, and notes for the user.

    Friction holds, motors that several joints turn are tendons, and joints without an
    actuator get one. A template's meshes are looked for where they were.

    Args:
        arm: What to write.
        target: Where the file will be.
        actuators: Joint → line of <actuator>.
        template: The MJCF file the arm was loaded from.
        scene: What the arm touches, in a file of its own; a template has its
            own.
    """
    from armwise.arms.writers.mjcf import fill_mjcf, mjcf_text

    if template is None:
        require_writable(arm, range(len(arm.links)), False)
        text = mjcf_text(arm, list(actuators.values()), scene)
        return text.encode(), _lighter(arm)
    data = read_bounded(template)
    root = read_xml(template, data)
    if root.tag != "mujoco":
        raise ArmError(f"{template} is no MJCF: it begins with <{root.tag}>.")
    filled, notes = fill_mjcf(arm, template, data, root, actuators=actuators)
    return _with_asset_folders(filled, template, target), notes


def _with_asset_folders(data: bytes, template: Path, target: Path) -> bytes:
    """Let a file in another folder find the meshes and textures of its template."""
    here, there = target.resolve().parent, template.resolve().parent
    if here == there:
        return data
    root, editor = read_xml(template, data), Editor(data)
    has_files = any(
        "file" in x.attributes for a in root.all("asset") for x in a.children
    )
    if not has_files:
        return data
    compilers = list(root.all("compiler"))
    folders = {"meshdir": "", "texturedir": ""}
    for compiler in compilers:
        if "assetdir" in compiler.attributes:
            folders = dict.fromkeys(folders, compiler.attributes["assetdir"])
        folders |= {k: v for k, v in compiler.attributes.items() if k in folders}
    moved = {k: paths.relpath(there / v, here) for k, v in folders.items()}
    if compilers:
        # The last of several is the one that counts.
        editor.remove(compilers[-1], ("assetdir",))
        editor.set(compilers[-1], moved)
    else:
        words = " ".join(f"{k}={quoteattr(v)}" for k, v in moved.items())
        editor.insert(root, [f"<compiler {words}/>"])
    return editor.result()


def _complete(arm: Arm, kind: str, force: bool) -> tuple[bytes, tuple[str, ...]]:
    # Before anything is written: a refused arm must leave no half file behind.
    require_writable(arm, range(len(arm.links)), force)
    write: Callable[[Arm], str] = urdf_text
    if kind == ".xml":
        _require_bodies(arm, force)
        from armwise.arms.writers.mjcf import mjcf_text as write
    elif kind == ".sdf":
        from armwise.arms.writers.sdf import sdf_text as write
    return write(arm).encode(), _lighter(arm)


def _require_bodies(arm: Arm, force: bool) -> None:
    """Refuse links that MuJoCo refuses, where other readers only warn of them."""
    if (defects := arm.defects()) and not force:
        name, why = next(iter(defects.items()))
        raise NotPhysical(
            f"{arm.name}: {name}: {why}; MuJoCo reads no such file. `armwise export` "
            "writes the nearest body, allow_unphysical=True these numbers."
        )


def _fill(
    arm: Arm, template: Path, target: Path, force: bool
) -> tuple[bytes, tuple[str, ...]]:
    data = read_bounded(template)
    root = read_xml(template, data)
    if root.tag == "mujoco":
        from armwise.arms.writers.mjcf import fill_mjcf

        filled, notes = fill_mjcf(arm, template, data, root, allow_unphysical=force)
        return _with_asset_folders(filled, template, target), notes
    return fill_urdf(arm, template, data, root, allow_unphysical=force)


def _lighter(arm: Arm) -> tuple[str, ...]:
    """Say which fixed links lost inertia to the link that carries them."""
    divisions = {
        link.name: divide_inertia(link.inertia, frames_on(arm, i))
        for i, link in enumerate(arm.links)
    }
    return tuple(x.note(name) for name, x in divisions.items() if x.fraction != 1.0)
