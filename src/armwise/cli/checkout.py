"""Folders that come with a checkout and not with the installed package."""

from __future__ import annotations

import sys
from pathlib import Path

import armwise
from armwise.errors import ArgumentError


def checkout_folder(name: str) -> Path:
    """Return a folder of the checkout, such as benchmarks, and make it importable.

    The checkout is the one the package runs from or, where the package is installed,
    the working directory.

    Raises:
        ArgumentError: If there is no checkout.
    """
    for root in (Path(armwise.__file__).parents[2], Path.cwd()):
        # A folder of that name is not enough: its code will be run, so it must be ours.
        if (root / name).is_dir() and (root / "src" / "armwise").is_dir():
            if sys.path[0] != str(root):  # first: others ship packages of this name
                sys.path.insert(0, str(root))
            return root / name
    raise ArgumentError(
        f"{name}/ comes with the source tree, not with the installed package. Run this "
        "command in a checkout of Armwise."
    )
