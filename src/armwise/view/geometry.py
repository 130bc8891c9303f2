"""Geometry of an arm's links: as described in its file, else a skeleton."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import (
    BASE,
    Arm,
    Element,
    Joint,
    Shape,
    body_name,
    compile_mjcf,
    read_geom,
    read_shape,
    read_xml,
)
from armwise.errors import ArmError
from armwise.view.forms import (
    AXIS,
    BONES,
    DRUM,
    Ball,
    Color,
    Cuboid,
    Form,
    Rod,
    Solid,
    Surface,
    color_of,
    pose_along,
    primitive,
    rotation_to,
)
from armwise.view.meshes import (
    MOST_FACES_IN_ALL,
    MeshFolders,
    checked_surface,
    read_mesh,
)

if TYPE_CHECKING:
    from jaxtyping import Float


PosedForm = tuple[Form, np.ndarray, Color | None]
"""A form, T_link_form, and the description's colour if it gives one."""


@dataclass(frozen=True)
class ArmGeometry:
    """The geometry of an arm, as far as it could be read.

    Attributes:
        forms: Link index (or BASE) → its forms; links without any are missing.
        notes: Why some geometry is not shown, one sentence each.
    """

    forms: dict[int, list[PosedForm]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def geometry_of(
    arm: Arm, description: Path | None = None, meshes: Sequence[Path] = ()
) -> ArmGeometry:
    """Read the geometry of an arm's links.

    Visual geometry comes first, if the arm's file is known, then collision geometry. A
    link whose meshes cannot be read has none at all: half a link would deceive.

    Args:
        arm: The arm.
        description: The file it was loaded from, if any.
        meshes: Folders, beside the description's own, that meshes may be read from.
    """
    if description is None:
        return _gather([_outlines(arm)], arm, _no_mesh)
    if description.suffix.lower() == ".toml":
        return _gather([_outlines(arm)], arm, _no_mesh)
    if read_xml(description).tag == "mujoco":
        shapes, load = read_mjcf_geometry(description, arm)
        return _gather([shapes, _outlines(arm)], arm, load)
    folders = MeshFolders.around(description, meshes)
    sources = [read_urdf_visuals(description, arm), _outlines(arm)]
    return _gather(sources, arm, lambda shape: _mesh_file(shape, folders))


def read_urdf_visuals(path: Path, arm: Arm) -> dict[int, list[Shape]]:
    """Return the visual geometry in a URDF, by moving link, with its colours."""
    robot = read_xml(path)
    colors = _urdf_colors(robot)
    shapes: dict[int, list[Shape]] = defaultdict(list)
    for link in robot.all("link"):
        for visual in link.all("visual"):
            index, T = arm.find_frame(link.text("name"))
            shape = read_shape(visual, T)
            if shape is not None:
                material = visual.find("material")
                name = material.attributes.get("name", "") if material else ""
                own = _urdf_color(material) or colors.get(name)
                shapes[index].append(replace(shape, color=own))
    return shapes


def _urdf_colors(robot: Element) -> dict[str, tuple[float, float, float]]:
    """Colours by the names of materials, wherever the file defines them first."""
    visuals = (v for link in robot.all("link") for v in link.all("visual"))
    colors: dict[str, tuple[float, float, float]] = {}
    for parent in (robot, *visuals):
        for material in parent.all("material"):
            color = _urdf_color(material)
            if color is not None:
                colors.setdefault(material.attributes.get("name", ""), color)
    return colors


def _urdf_color(material: Element | None) -> tuple[float, float, float] | None:
    color = material.find("color") if material else None
    if color is None or "rgba" not in color.attributes:
        return None
    red, green, blue, _ = color.vector("rgba", (), size=4)
    return red, green, blue


def _outlines(arm: Arm) -> dict[int, list[Shape]]:
    moving = {i: list(link.shapes) for i, link in enumerate(arm.links)}
    return {BASE: list(arm.base_shapes), **moving}


def _gather(
    sources: Sequence[dict[int, list[Shape]]],
    arm: Arm,
    load: Callable[[Shape], Surface],
) -> ArmGeometry:
    """Use for each link the first source whose geometry can be read completely."""
    # One bound for all sources: a link may be tried twice, but is drawn once.
    load = _Bounded(load)
    forms: dict[int, list[PosedForm]] = {}
    # Reason → what failed for it, in order and once each: one note per reason.
    failed: dict[str, dict[tuple[str, str], None]] = defaultdict(dict)
    for i in range(BASE, len(arm.links)):
        name = arm.base if i == BASE else arm.links[i].name
        for source in sources:
            shapes = source.get(i, ())
            results = [(_form(shape, load), shape) for shape in shapes]
            for form, shape in results:
                if isinstance(form, str):
                    failed[form][name, _shape_name(shape)] = None
            whole = [
                (form, shape.pose, _color(form, shape))
                for form, shape in results
                if not isinstance(form, str)
            ]
            if shapes and len(whole) == len(shapes):
                forms[i] = whole
                break
    return ArmGeometry(
        forms, tuple(_note(why, list(which)) for why, which in failed.items())
    )


@dataclass
class _Bounded:
    """Loads meshes until there are too many triangles in all."""

    load: Callable[[Shape], Surface]
    remaining: int = MOST_FACES_IN_ALL

    def __call__(self, shape: Shape) -> Surface:
        if self.remaining >= 0:
            surface = self.load(shape)
            self.remaining -= len(surface.faces)
        if self.remaining < 0:
            raise ArmError(f"more than {MOST_FACES_IN_ALL} triangles in all; simplify")
        return surface


def _form(shape: Shape, load: Callable[[Shape], Surface]) -> Form | str:
    """Return a shape's form, or why it has none."""
    form = primitive(shape)
    if form is not None:
        return form if min(shape.size) > 0 else "it has no extent"
    try:
        return load(shape)
    except ArmError as problem:
        return str(problem)


def _color(form: Form, shape: Shape) -> Color | None:
    """Colour of a shape: the description's, else the mesh file's own."""
    own = form.color if isinstance(form, Surface) else None
    rgb = shape.color if shape.color is not None else own
    return None if rgb is None else color_of(rgb)


def _shape_name(shape: Shape) -> str:
    return shape.mesh[:100] if shape.mesh else f"a {shape.kind}"


def _note(reason: str, failed: Sequence[tuple[str, str]]) -> str:
    links = ", ".join(dict.fromkeys(link for link, _ in failed))
    more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
    return f"{links}: {failed[0][1]}{more}: {reason}."


def _mesh_file(shape: Shape, folders: MeshFolders) -> Surface:
    return read_mesh(folders.find(shape.mesh or ""), shape.size)


def _no_mesh(shape: Shape) -> Surface:
    raise ArmError("not looked for without the file of the description")


# Geometry of MJCF bodies; their meshes come from the compiled model.


def read_mjcf_geometry(
    path: Path, arm: Arm
) -> tuple[dict[int, list[Shape]], Callable[[Shape], Surface]]:
    """Return the shapes of each moving link, and a loader of meshes by name."""
    model = compile_mjcf(path)
    shapes: dict[int, list[Shape]] = defaultdict(list)
    for body in range(model.nbody):
        index, T = arm.find_frame(arm.base if body == 0 else body_name(model, body))
        first, count = int(model.body_geomadr[body]), int(model.body_geomnum[body])
        geoms = range(first, first + count)
        # Models mark visual geometry by letting it collide with nothing.
        visual = [g for g in geoms if not _collides(model, g)] or geoms
        own = (read_geom(model, g, T) for g in visual)
        shapes[index] += [shape for shape in own if shape is not None]
    return shapes, lambda shape: _surface(model, shape)


def _collides(model: Any, geom: int) -> bool:
    return bool(model.geom_contype[geom] or model.geom_conaffinity[geom])


def _surface(model: Any, shape: Shape) -> Surface:
    mesh = model.mesh(shape.mesh).id
    corner, face = int(model.mesh_vertadr[mesh]), int(model.mesh_faceadr[mesh])
    corners = model.mesh_vert[corner : corner + int(model.mesh_vertnum[mesh])]
    faces = model.mesh_face[face : face + int(model.mesh_facenum[mesh])]
    return checked_surface(np.array(corners, dtype=float), np.array(faces))


# Skeleton: rods between the joints, for links without geometry.

_BONE_RADIUS = 0.022
"""Radius of a bone as a fraction of the arm's length: a stout, not a thin, arm."""

_SAME_POINT = 1e-6
"""Distance in [m] below which two points are one: files have six digits or so."""


def arm_length(arm: Arm) -> float:
    """Sum of the distances from joint to joint, along the longest branch, in [m]."""
    reach = [0.0] * len(arm.joints)
    longest = 0.0
    for i, joint in enumerate(arm.joints):
        before = 0.0 if joint.parent == BASE else reach[joint.parent]
        start = np.zeros(3) if joint.parent == BASE else arm.joints[joint.parent].anchor
        reach[i] = before + float(np.linalg.norm(_on_parent(joint) - start))
        tips = [np.linalg.norm(tip - joint.anchor) for tip in _tips(arm, i)]
        longest = max(longest, reach[i] + float(max(tips, default=0.0)))
    # All joints in one point, a wrist alone: any size will do.
    return longest if longest > _SAME_POINT else 1.0


def bones_of(arm: Arm, link: int) -> list[Solid]:
    """Return a link as rods from its own joint to the next ones and to its tips.

    The base stands on a foot.
    """
    start = np.zeros(3) if link == BASE else arm.joints[link].anchor
    ends = [_on_parent(joint) for joint in arm.joints if joint.parent == link]
    ends += _tips(arm, link)
    radius = _BONE_RADIUS * arm_length(arm)
    foot = [Solid(Rod(3 * radius, radius), BASE, np.eye(4), DRUM, "skeleton", arm.base)]
    return (foot if link == BASE else []) + [
        Solid(
            Rod(radius, float(np.linalg.norm(end - start)), is_round=True),
            link,
            pose_along(start, end),
            BONES[link % len(BONES)],
            "skeleton",
            arm.base if link == BASE else arm.links[link].name,
        )
        for end in ends
        if np.linalg.norm(end - start) > _SAME_POINT
    ]


def joints_of(arm: Arm) -> list[Solid]:
    """Return every joint: a drum if it turns, a cuboid if it slides."""
    radius = 1.6 * _BONE_RADIUS * arm_length(arm)  # wider than the bones it joins
    solids = []
    for i, joint in enumerate(arm.joints):
        width = 2 * radius
        drum = Rod(radius, 2.4 * radius)
        form = drum if joint.is_revolute else Cuboid((width, width, 1.5 * width))
        solids.append(Solid(form, i, _axis_pose(joint), DRUM, "skeleton", joint.name))
    return solids


def axes_of(arm: Arm) -> list[Solid]:
    """Return every joint's axis as a thin rod with a ball at its positive end."""
    length = 0.16 * arm_length(arm)
    solids = []
    for i, joint in enumerate(arm.joints):
        tip = joint.anchor + length * joint.axis
        thin = Rod(0.05 * length, 2 * length)
        ball = Ball((0.12 * length,) * 3)
        end = np.eye(4)
        end[:3, 3] = tip
        solids.append(Solid(thin, i, _axis_pose(joint), AXIS, "axes", joint.name))
        solids.append(Solid(ball, i, end, AXIS, "axes", joint.name))
    return solids


def _tips(arm: Arm, link: int) -> list[Float[np.ndarray, " 3"]]:
    """Ends of a last link: its frames, else its centre of mass."""
    if link == BASE:
        return []
    named = [frame.pose[:3, 3] for frame in arm.frames if frame.link == link]
    start = arm.joints[link].anchor
    far = [tip for tip in named if np.linalg.norm(tip - start) > _SAME_POINT]
    is_last = all(joint.parent != link for joint in arm.joints)
    if is_last and not far and arm.links[link].inertia.mass > 0:
        return [arm.links[link].inertia.center_of_mass]
    return far if is_last else []


def _on_parent(joint: Joint) -> Float[np.ndarray, " 3"]:
    """A point of a joint's axis, in the frame of the link that carries it."""
    point: np.ndarray = joint.origin[:3, :3] @ joint.anchor + joint.origin[:3, 3]
    return point


def _axis_pose(joint: Joint) -> Float[np.ndarray, "4 4"]:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = rotation_to(joint.axis), joint.anchor
    return T
