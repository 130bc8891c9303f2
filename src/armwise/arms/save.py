"""Save an arm to a file other programs read."""

from __future__ import annotations

from os import PathLike

from armwise.arms.arm import Arm


def save_arm(
    arm: Arm,
    path: str | PathLike[str],
    template: str | PathLike[str] | None = None,
    *,
    allow_unphysical: bool = False,
) -> None:
    """Write an arm as URDF, or put its inertias back into the user's own file."""
    raise NotImplementedError
