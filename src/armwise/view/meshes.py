"""Mesh files of a description, read as untrusted input: folder, format, bounded size.

A description may name any path. Only files below its own package (or a folder the user
names) are opened, and only the file itself. Errors say only what is wrong: the caller
adds the link and the mesh's name.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from armwise.arms import read_xml
from armwise.errors import ArmError, MissingExtra
from armwise.view.collada import read_collada
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
