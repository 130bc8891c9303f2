"""What every link looks like: its own geometry, else a skeleton."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from armwise.arms import BASE, Arm, Shape
from armwise.arms.urdf_link import read_shape
from armwise.arms.xml import read_xml
from armwise.errors import ArmError
from armwise.view.forms import Form, Surface, primitive
from armwise.view.meshes import MOST_FACES_IN_ALL, MeshFolders, read_mesh

Placed = tuple[Form, np.ndarray]
"""A form and T_link_form."""


@dataclass(frozen=True)
class Looks:
    """The geometry of an arm that could be had.

    Attributes:
        forms: Link index (or BASE) → its forms; links without any are missing.
        notes: Why some geometry is not shown, one sentence each.
    """

    forms: dict[int, list[Placed]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def looks_of(
    arm: Arm, description: Path | None = None, meshes: Sequence[Path] = ()
) -> Looks:
    """Find out what an arm's links look like.

    Where its file is known, what it shows (visual geometry) comes first, then what it
    collides with. A link whose meshes cannot be had has no look at all: half a link
    would deceive.

    Args:
        arm: The arm.
        description: The file it was loaded from, if it was.
        meshes: Folders, beside the description's own, that meshes may be read from.
    """
    if description is None:
        return _gather([_outlines(arm)], arm, _no_mesh)
    if description.suffix.lower() == ".toml":
        return _gather([_outlines(arm)], arm, _no_mesh)
    if read_xml(description).tag == "mujoco":
        from armwise.view.mjcf_looks import read_mjcf_looks

        shapes, load = read_mjcf_looks(description, arm)
        return _gather([shapes, _outlines(arm)], arm, load)
    folders = MeshFolders.around(description, meshes)
    sources = [read_urdf_visuals(description, arm), _outlines(arm)]
    return _gather(sources, arm, lambda shape: _mesh_file(shape, folders))


def read_urdf_visuals(path: Path, arm: Arm) -> dict[int, list[Shape]]:
    """Return the visual geometry in a URDF, by moving link."""
    found: dict[int, list[Shape]] = defaultdict(list)
    for link in read_xml(path).all("link"):
        for visual in link.all("visual"):
            index, T = arm.place(link.text("name"))
            shape = read_shape(visual, T)
            if shape is not None:
                found[index].append(shape)
    return found


def _outlines(arm: Arm) -> dict[int, list[Shape]]:
    moving = {i: list(link.shapes) for i, link in enumerate(arm.links)}
    return {BASE: list(arm.base_shapes), **moving}


def _gather(
    sources: Sequence[dict[int, list[Shape]]],
    arm: Arm,
    load: Callable[[Shape], Surface],
) -> Looks:
    """Take each link's geometry from the first source that has all of it."""
    load = _Bounded(load)
    forms: dict[int, list[Placed]] = {}
    failed: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for i in range(BASE, len(arm.links)):
        name = arm.base if i == BASE else arm.links[i].name
        for source in sources:
            found = [(_form(shape, load), shape) for shape in source.get(i, ())]
            for made, shape in found:
                if isinstance(made, str):
                    failed[made][name, _called(shape)] = None
            whole = [(made, s.pose) for made, s in found if not isinstance(made, str)]
            if found and len(whole) == len(found):
                forms[i] = whole
                break
    return Looks(forms, tuple(_note(why, list(which)) for why, which in failed.items()))


@dataclass
class _Bounded:
    """Loads meshes until there are too many triangles in all."""

    load: Callable[[Shape], Surface]
    left: int = MOST_FACES_IN_ALL

    def __call__(self, shape: Shape) -> Surface:
        if self.left >= 0:
            surface = self.load(shape)
            self.left -= len(surface.faces)
        if self.left < 0:
            raise ArmError(f"more than {MOST_FACES_IN_ALL} triangles in all; simplify")
        return surface


def _form(shape: Shape, load: Callable[[Shape], Surface]) -> Form | str:
    """Return a shape's form, or why it has none."""
    made = primitive(shape)
    if made is not None:
        return made if min(shape.size) > 0 else "it has no extent"
    try:
        return load(shape)
    except ArmError as problem:
        return str(problem)


def _called(shape: Shape) -> str:
    return shape.mesh[:100] if shape.mesh else f"a {shape.kind}"


def _note(reason: str, failed: Sequence[tuple[str, str]]) -> str:
    links = ", ".join(dict.fromkeys(link for link, _ in failed))
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"{links}: {failed[0][1]}{more}: {reason}."


def _mesh_file(shape: Shape, folders: MeshFolders) -> Surface:
    return read_mesh(folders.find(shape.mesh or ""), shape.size)


def _no_mesh(shape: Shape) -> Surface:
    raise ArmError("not looked for without the file of the description")
