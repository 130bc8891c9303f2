"""Finished groups on disk, so that an interrupted gallery goes on where it stopped."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from armwise.files import write_atomically
from papers.catalogue import Made
from papers.drawings import from_plain, to_plain
from papers.rows import Row


@dataclass(frozen=True)
class Store:
    """A folder with one file per finished group.

    What was made by another version of any source file, or by a package that was
    missing then, does not count.
    """

    folder: Path

    def read(self, module: str) -> Made | None:
        """Return what a module made, if this very program made it."""
        try:
            kept = json.loads(self._file(module).read_text("utf-8"))
            if kept["program"] != program_hash():
                return None
            drawings = tuple(from_plain(plain) for plain in kept["drawings"])
            return Made(tuple(kept["rows"]), drawings, float(kept["seconds"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None  # not there, or not ours: it is made again

    def write(self, module: str, made: Made) -> None:
        """Keep what a module made, unless it could not run."""
        if any(row["verdict"] == "not run" for row in made.rows):
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = {
            "program": program_hash(),
            "seconds": round(made.seconds, 1),
            "rows": [plain_row(row) for row in made.rows],
            "drawings": [to_plain(drawing) for drawing in made.drawings],
        }
        text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"))
        write_atomically(self._file(module), text)

    def _file(self, module: str) -> Path:
        return self.folder / f"{module.rpartition('.')[2]}.json"


@cache
def program_hash() -> str:
    """Name this program by all source and data files of the package and of papers/."""
    import armwise

    digest = sha256()
    for root in (Path(armwise.__file__).parent, Path(__file__).parent):
        for path in sorted(root.rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{root.name}/{path.relative_to(root)}\n".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def plain_row(row: Row) -> Row:
    """Return a row as JSON has it."""
    return {key: _plain(value) for key, value in row.items()}


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | bool | int | float) else str(value)
