"""The arms that come with Armwise, as data files with their sources cited."""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "bundled"


def bundled_arms() -> tuple[str, ...]:
    """List the names `load_arm` knows without a file."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


def bundled_path(name: str) -> Path | None:
    """Return the data file of a bundled arm, or None if there is no such arm."""
    return _FOLDER / f"{name}.toml" if name in bundled_arms() else None
