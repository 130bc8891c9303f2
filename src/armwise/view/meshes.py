"""Mesh files of a description, read as untrusted input: folder, format, bounded size.

A description may name any path. Only files below its own package (or a folder the user
names) are opened, and only the file itself. Errors say only what is wrong: the caller
adds the link and the mesh's name.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from armwise.arms import Element, read_xml, rotation_about
from armwise.errors import ArmError, MissingExtra
from armwise.view.forms import Surface

KINDS = (".stl", ".obj", ".ply", ".glb", ".dae")
"""Formats that are one file; others refer to further files, which are not opened."""

LARGEST_FILE = 64 * 2**20
"""Bytes of one mesh: room for MOST_FACES triangles of binary STL (50 bytes each), and
for their text."""

MOST_FACES = 400_000
"""Triangles of one mesh; the finest published arms have a tenth of it per link."""

MOST_FACES_IN_ALL = 2_000_000
"""Triangles of one arm: what a browser without a graphics card still turns."""


@dataclass(frozen=True)
class MeshFolders:
    """Folders that the meshes of a description may be read from.

    Attributes:
        home: Folder of the description, for relative names.
        root: Folder that no name may lead out of: the package around it, else `home`.
        others: Further folders the user trusts.
    """

    home: Path
    root: Path
    others: tuple[Path, ...] = ()

    @classmethod
    def around(cls, description: Path, others: Sequence[Path] = ()) -> MeshFolders:
        """Find the package of a description: the nearest folder with a package.xml."""
        home = description.resolve().parent
        for folder in (home, *home.parents):
            if (folder / "package.xml").is_file():
                return cls(home, folder, _resolved(others))
        return cls(home, home, _resolved(others))

    def find(self, name: str) -> Path:
        """Return the file a description means.

        Raises:
            ArmError: If it is missing, or outside the folders that may be read.
        """
        try:
            # Resolved first: links and ".." cannot lead outside.
            allowed = [p for p in self._candidates(name) if self._is_inside(p)]
            files = [path for path in allowed if path.is_file()]
        except (OSError, ValueError):
            raise ArmError("no file can have this name") from None
        if files:
            return files[0]
        if not allowed:
            raise ArmError(
                f"outside {self.root} and not opened; name its folder with --meshes"
            )
        raise ArmError(
            f"not below {self.root}; name the folder that holds it with --meshes"
        )

    def _candidates(self, name: str) -> list[Path]:
        scheme, _, path = name.rpartition("://")
        if scheme not in ("", "package", "model", "file"):
            raise ArmError("not a file on this machine")
        if scheme == "":
            candidates = [folder / name for folder in (self.home, *self.others)]
        elif scheme == "file":
            candidates = [Path(path)]
        else:
            candidates = self._in_package(*path.partition("/")[::2])
        return [candidate.resolve() for candidate in candidates]

    def _in_package(self, package: str, inside: str) -> list[Path]:
        above = [f for f in (self.home, *self.home.parents) if f.name == package]
        roots = [*above, self.root]
        for folder in self.others:
            roots += [folder / package, folder]
        return [folder / inside for folder in roots]

    def _is_inside(self, path: Path) -> bool:
        return any(path.is_relative_to(folder) for folder in (self.root, *self.others))


def read_mesh(path: Path, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> Surface:
    """Read triangles from a file, times a scale.

    Raises:
        ArmError: If its format is not read, or it is too large, empty or not finite.
        MissingExtra: Without trimesh, which comes with the extra `view`.
    """
    try:
        import trimesh
    except ImportError:
        raise MissingExtra("trimesh", "view", "Showing meshes") from None
    if path.suffix.lower() not in KINDS:
        raise ArmError(f"not one of {', '.join(KINDS)}; convert it")
    if path.stat().st_size > LARGEST_FILE:
        raise ArmError(f"larger than {LARGEST_FILE // 2**20} MB; simplify it")
    if path.suffix.lower() == ".dae":
        mesh = read_collada(read_xml(path, path.read_bytes()), path)
        corners = mesh.vertices * np.asarray(scale, dtype=float)
        return replace(checked_surface(corners, mesh.faces), color=mesh.color)
    try:
        # Bytes instead of a name: nothing the file refers to can be opened.
        loaded = trimesh.load_mesh(
            io.BytesIO(path.read_bytes()),
            file_type=path.suffix[1:].lower(),
            process=False,
        )
        vertices, faces = np.asarray(loaded.vertices), np.asarray(loaded.faces)
    except Exception as problem:  # a parser of foreign bytes may fail in any way
        reason = " ".join(str(problem).split())[:120] or type(problem).__name__
        raise ArmError(f"it cannot be read ({reason})") from None
    return checked_surface(vertices * np.asarray(scale, dtype=float), faces)


def checked_surface(vertices: np.ndarray, faces: np.ndarray) -> Surface:
    """Return triangles that a browser can draw, or refuse them."""
    if vertices.ndim != 2 or faces.ndim != 2 or not len(faces):
        raise ArmError("it has no triangles")
    if len(faces) > MOST_FACES:
        raise ArmError(
            f"it has {len(faces)} triangles, more than {MOST_FACES}; simplify it"
        )
    if not np.all(np.isfinite(vertices)):
        raise ArmError("it has corners that are not finite")
    return Surface(vertices, faces)


def _resolved(folders: Sequence[Path]) -> tuple[Path, ...]:
    return tuple(folder.resolve() for folder in folders)


# COLLADA meshes (.dae): triangles of the scene, in metres, and their main colour.
#
# The file's own up axis is not applied: descriptions of robots mean it that way, and
# viewers of the field ignore it.

MOST_NODES = 10_000
"""Nodes of a scene; instances of instances could otherwise grow without bound."""


@dataclass(frozen=True, eq=False)
class _Piece:
    """Triangles of one material, as a geometry has them."""

    vertices: np.ndarray
    faces: np.ndarray
    material: str


@dataclass(frozen=True, eq=False)
class ColladaMesh:
    """All triangles of a file.

    Attributes:
        vertices: Corners (n, 3) in [m].
        faces: Which three make each (m, 3).
        color: Red, green and blue, 0 to 1, of the material with most triangles; None
            if it has none.
    """

    vertices: np.ndarray
    faces: np.ndarray
    color: tuple[float, float, float] | None


def read_collada(root: Element, path: Path) -> ColladaMesh:
    """Read the triangles of a COLLADA document.

    Raises:
        ArmError: If it has none, or refers to what is not there.
    """
    if root.tag.rpartition(":")[2] != "COLLADA":
        raise ArmError("it is no COLLADA file")
    geometries = {g.text("id"): g for g in _library(root, "geometries", "geometry")}
    nodes = {n.attributes.get("id"): n for n in _library(root, "nodes", "node")}
    vertices, faces, count = [], [], 0
    triangles: dict[str, int] = {}
    for T, name, bound in _instances(root, nodes):
        if name not in geometries:
            raise ArmError(f"it has no geometry {name!r}")
        for part in _pieces(geometries[name]):
            faces.append(part.faces + count)
            vertices.append(part.vertices @ T[:3, :3].T + T[:3, 3])
            count += len(part.vertices)
            material = bound.get(part.material, part.material)
            triangles[material] = triangles.get(material, 0) + len(part.faces)
    if not faces:
        raise ArmError("it has no triangles")
    main = max(triangles, key=lambda name: triangles[name])
    corners = np.concatenate(vertices) * _metres(root)
    return ColladaMesh(corners, np.concatenate(faces), _colors(root).get(main))


def _library(root: Element, library: str, tag: str) -> Iterator[Element]:
    for shelf in root.all(f"library_{library}"):
        yield from shelf.all(tag)


def _metres(root: Element) -> float:
    asset = root.find("asset")
    unit = asset.find("unit") if asset else None
    return unit.number("meter", 1.0) if unit else 1.0


# The scene: where each geometry stands.


def _instances(
    root: Element, nodes: Mapping[str | None, Element]
) -> Iterator[tuple[np.ndarray, str, dict[str, str]]]:
    """Go through the geometries of the scene: T, which, and names of materials."""
    scenes = list(_library(root, "visual_scenes", "visual_scene"))
    todo = [(np.eye(4), node) for scene in scenes[:1] for node in scene.all("node")]
    count = 0
    while todo:
        T, node = todo.pop()
        count += 1
        if count > MOST_NODES:
            raise ArmError(f"its scene has more than {MOST_NODES} nodes")
        T = T @ _transform(node)
        for instance in node.all("instance_geometry"):
            bound = {
                material.text("symbol"): material.text("target").removeprefix("#")
                for material in _materials(instance)
            }
            yield T, instance.text("url").removeprefix("#"), bound
        todo += [(T, child) for child in node.all("node")]
        for instance in node.all("instance_node"):
            child = nodes.get(instance.text("url").removeprefix("#"))
            todo += [(T, child)] if child is not None else []


def _materials(instance: Element) -> Iterator[Element]:
    for bind in instance.all("bind_material"):
        for common in bind.all("technique_common"):
            yield from common.all("instance_material")


def _transform(node: Element) -> np.ndarray:
    T = np.eye(4)
    for child in node.children:
        step = np.eye(4)
        match child.tag:
            case "matrix":
                step = np.array(child.numbers(16)).reshape(4, 4)
            case "translate":
                step[:3, 3] = child.numbers(3)
            case "scale":
                step[:3, :3] = np.diag(child.numbers(3))
            case "rotate":
                *axis, degrees = child.numbers(4)
                length = float(np.linalg.norm(axis))
                if length > 0:
                    unit = np.array(axis) / length
                    step[:3, :3] = rotation_about(unit, float(np.radians(degrees)))
        T = T @ step
    return T


# Geometries: positions and which of them make a triangle.


def _pieces(geometry: Element) -> Iterator[_Piece]:
    mesh = geometry.find("mesh")
    for element in mesh.children if mesh else ():
        if mesh is None or element.tag not in ("triangles", "polylist", "polygons"):
            continue
        inputs = list(element.all("input"))
        offsets = [int(x.number("offset", 0.0)) for x in inputs]
        stride = max(offsets, default=0) + 1
        vertex = next((x for x in inputs if x.text("semantic") == "VERTEX"), None)
        if vertex is None:
            continue
        points = _positions(mesh, vertex.text("source").removeprefix("#"))
        offset = int(vertex.number("offset", 0.0))
        faces = _faces(element, stride, offset)
        if len(faces) and (faces.min() < 0 or faces.max() >= len(points)):
            raise ArmError("a triangle has a corner that is not there")
        if len(faces):
            yield _Piece(points, faces, element.attributes.get("material", ""))


def _positions(mesh: Element, vertices: str) -> np.ndarray:
    for group in mesh.all("vertices"):
        if group.text("id") == vertices:
            for x in group.all("input"):
                if x.text("semantic") == "POSITION":
                    return _source(mesh, x.text("source").removeprefix("#"))
    raise ArmError("its positions are missing")


def _source(mesh: Element, name: str) -> np.ndarray:
    for source in mesh.all("source"):
        if source.text("id") == name:
            values = _array(source.require("float_array"), float)
            common = source.find("technique_common")
            accessor = common.find("accessor") if common else None
            stride = int(accessor.number("stride", 3.0)) if accessor else 3
            if stride < 3 or values.size % stride:
                raise ArmError("its positions are not triples")
            return values.reshape(-1, stride)[:, :3]
    raise ArmError("its positions are missing")


def _faces(element: Element, stride: int, offset: int) -> np.ndarray:
    indices = [_array(p, int).reshape(-1) for p in element.all("p")]
    if any(x.size % stride for x in indices):
        raise ArmError("its triangles are cut off")
    corners = [x.reshape(-1, stride)[:, offset] for x in indices]
    if element.tag == "triangles":
        return np.concatenate(corners or [np.zeros(0, int)]).reshape(-1, 3)
    if element.tag == "polygons":
        return _fans(np.array([x.size for x in corners]), np.concatenate(corners))
    sizes = element.find("vcount")
    counts = _array(sizes, int) if sizes else np.zeros(0, int)
    return _fans(counts, np.concatenate(corners or [np.zeros(0, int)]))


def _fans(counts: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Cut convex polygons into triangles around their first corner."""
    if counts.sum() != corners.size or (counts < 0).any():
        raise ArmError("its polygons are cut off")
    starts = np.cumsum(counts) - counts
    triangles = np.maximum(counts - 2, 0)
    polygon = np.repeat(np.arange(len(counts)), triangles)
    step = np.arange(len(polygon)) - np.repeat(
        np.cumsum(triangles) - triangles, triangles
    )
    first = starts[polygon]
    ends = (first, first + step + 1, first + step + 2)
    return np.stack([corners[k] for k in ends], axis=1)


def _array(element: Element, kind: type) -> np.ndarray:
    try:
        return np.array(element.content.split(), dtype=kind)
    except (ValueError, OverflowError):
        raise ArmError(f"<{element.tag}> holds what is not a number") from None


# Materials.


def _colors(root: Element) -> dict[str, tuple[float, float, float]]:
    """Diffuse colours of materials, by id."""
    effects = {}
    for effect in _library(root, "effects", "effect"):
        for color in _diffuse(effect):
            numbers = color.numbers(4)
            effects[effect.attributes.get("id", "")] = numbers[:3]
    colors = {}
    for material in _library(root, "materials", "material"):
        instance = material.find("instance_effect")
        if instance is not None:
            effect_id = instance.text("url").removeprefix("#")
            if effect_id in effects:
                r, g, b = effects[effect_id]
                colors[material.attributes.get("id", "")] = (r, g, b)
    return colors


def _diffuse(effect: Element) -> Iterator[Element]:
    for profile in effect.all("profile_COMMON"):
        for technique in profile.all("technique"):
            for shading in technique.children:
                diffuse = shading.find("diffuse")
                color = diffuse.find("color") if diffuse else None
                if color is not None:
                    yield color
