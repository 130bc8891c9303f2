"""Where generated files go: nothing of the user's is ever overwritten."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from armwise.errors import ArgumentError

MANIFEST = "armwise.json"
"""Says what was generated, with a hash of every file."""


def write_folder(
    folder: Path, files: Mapping[str, str], about: Mapping[str, object]
) -> list[Path]:
    """Write files into a folder that is new, empty, or holds what was generated before.

    Raises:
        ArgumentError: If the folder holds anything else; nothing is changed then.
    """
    replaceable = _require_ours(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    hashes = {name: digest(text) for name, text in files.items()}
    manifest = json.dumps({**about, "files": hashes}, indent=2) + "\n"
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for name, text in {**files, MANIFEST: manifest}.items():
            (scratch / name).write_text(text, encoding="utf-8")
        scratch.chmod(0o755)
        folder.mkdir(exist_ok=True)
        for old in replaceable - set(files):
            with contextlib.suppress(FileNotFoundError):
                (folder / old).unlink()
        for name in (*files, MANIFEST):
            os.replace(scratch / name, folder / name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return [folder / name for name in (*files, MANIFEST)]


def digest(text: str) -> str:
    """Return the SHA-256 of a file's text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read_manifest(folder: Path) -> dict[str, object]:
    """Read what a folder of generated code says of itself.

    Raises:
        ArgumentError: If it is not such a folder, or a file was changed since.
    """
    path = folder / MANIFEST
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        hashes = dict(about["files"])
    except FileNotFoundError:
        raise ArgumentError(
            f"{folder} holds no generated code: it has no {MANIFEST}. "
            "Make it with armwise generate."
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ArgumentError(f"{path} cannot be read: {problem}.") from None
    for name, expected in hashes.items():
        if Path(name).name != name:
            raise ArgumentError(f"{path} names a file outside its folder: {name!r}.")
        try:
            text = (folder / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise ArgumentError(
                f"{folder / name} is missing or unreadable. Generate the code again."
            ) from None
        if digest(text) != expected:
            raise ArgumentError(
                f"{folder / name} was changed after it was generated. "
                "Generate into another folder, or restore the file."
            )
    return dict(about)


def _require_ours(folder: Path) -> set[str]:
    """Return the files that may be replaced; refuse a folder with anything else."""
    if not folder.exists():
        return set()
    if not folder.is_dir():
        raise ArgumentError(
            f"{folder} is a file. Name a folder for the generated code."
        )
    present = {entry.name for entry in folder.iterdir()}
    if not present:
        return set()
    ours: set[str] = set()
    if MANIFEST in present:
        about = read_manifest(folder)
        ours = {MANIFEST, *about["files"]}  # type: ignore[misc]
    foreign = sorted(present - ours)
    if foreign:
        raise ArgumentError(
            f"{folder} holds other files ({', '.join(foreign[:3])}). "
            "Name a new or empty folder; nothing was written."
        )
    return ours - {MANIFEST}
