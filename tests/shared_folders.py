"""Folders that take long to fill: filled once, by whichever test worker is first."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def shared_folder(
    factory: pytest.TempPathFactory, name: str, fill: Callable[[Path], None]
) -> Path:
    """Return a folder that all workers of a run share; tests must not change it."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # what is above the workers' own
    folder, filled = root / name, root / f"{name}.filled"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # released with the file, however this ends
        if not filled.exists():
            folder.mkdir(exist_ok=True)
            fill(folder)
            filled.touch()
    return folder
