"""Saving an arm as URDF or MJCF, or into the file it came from."""

from __future__ import annotations

from os import PathLike, fspath
from pathlib import Path

from armwise.arms.arm import Arm
from armwise.arms.readers.xml import read_xml
from armwise.arms.writers.link_inertia import (
    divide_inertia,
    frames_on,
    require_writable,
)
from armwise.arms.writers.urdf import fill_urdf, urdf_text
from armwise.files import write_atomically
from armwise.tables import read_bounded

_MJCF = ".xml"


def save_arm(
    arm: Arm,
    path: str | PathLike[str],
    template: str | PathLike[str] | None = None,
    *,
    allow_unphysical: bool = False,
) -> tuple[str, ...]:
    """Write an arm as URDF or MJCF, or put its numbers back into the user's own file.

    Without a template the file is complete: MJCF if the name ends in .xml, else URDF.
    With one, inertias, friction and rotor inertias that differ from the template's are
    put into it, and every other byte stays as it is.

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
        data, notes = _fill(arm, Path(fspath(template)), allow_unphysical)
    else:
        # Before anything is written: a refused arm must leave no half file behind.
        require_writable(arm, range(len(arm.links)), allow_unphysical)
        notes = _emptied(arm)
        if target.suffix.lower() == _MJCF:
            from armwise.arms.writers.mjcf import mjcf_text

            data = mjcf_text(arm).encode()
        else:
            data = urdf_text(arm).encode()
    write_atomically(target, data)
    return notes


def _fill(arm: Arm, template: Path, force: bool) -> tuple[bytes, tuple[str, ...]]:
    data = read_bounded(template)
    root = read_xml(template, data)
    if root.tag == "mujoco":
        from armwise.arms.writers.mjcf import fill_mjcf

        return fill_mjcf(arm, template, data, root, allow_unphysical=force)
    return fill_urdf(arm, template, data, root, allow_unphysical=force)


def _emptied(arm: Arm) -> tuple[str, ...]:
    """Say which fixed links lost their inertia to the link that carries them."""
    return tuple(
        f"{link.name} carries the inertia of the links fixed to it, which are emptied."
        for i, link in enumerate(arm.links)
        if not divide_inertia(link.inertia, frames_on(arm, i)).keeps_frames
    )
