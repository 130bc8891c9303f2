"""Armwise: a robot arm's knowledge of its own body."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC: dict[str, str] = {
    "Arm": "armwise.arms",
    "Joint": "armwise.arms",
    "Link": "armwise.arms",
    "InertialParameters": "armwise.arms",
    "Recording": "armwise.recordings",
    "Samples": "armwise.recordings",
}
"""Public name → the module it lives in; imported when first used."""

__all__ = ["__version__", *_PUBLIC]


def __getattr__(name: str) -> Any:
    if name in _PUBLIC:
        value = getattr(import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'armwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


if TYPE_CHECKING:
    from armwise.arms import Arm as Arm
    from armwise.arms import InertialParameters as InertialParameters
    from armwise.arms import Joint as Joint
    from armwise.arms import Link as Link
    from armwise.recordings import Recording as Recording
    from armwise.recordings import Samples as Samples
