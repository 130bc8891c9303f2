"""What a motion must keep clear of: the floor, boxes, and the arm itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from armwise.errors import ArgumentError


@dataclass(frozen=True)
class Box:
    """A box that stands still, its sides along the axes of a frame.

    Attributes:
        lower, upper: Opposite corners in [m].
        frame: Name of the base or of a frame that is fixed to it; the base if None.
    """

    lower: Sequence[float]
    upper: Sequence[float]
    frame: str | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            corner = np.asarray(getattr(self, name), dtype=float)
            if corner.shape != (3,) or not np.all(np.isfinite(corner)):
                raise ArgumentError(
                    f"A box's {name} corner must be three finite numbers in [m], "
                    f"not {getattr(self, name)!r}."
                )
            object.__setattr__(self, name, tuple(map(float, corner)))
        if not all(a < b for a, b in zip(self.lower, self.upper, strict=True)):
            raise ArgumentError(
                f"A box's lower corner {self.lower} must lie below its upper corner "
                f"{self.upper} in every direction."
            )


@dataclass(frozen=True)
class KeepOut:
    """Where the arm must not go.

    The arm is covered with spheres: from the outlines of its links where it has them
    (meshes are not read), else along the lines between its joints.

    Attributes:
        floor: Height in [m], along the base's z axis, that the arm stays above; None
            for no floor; "auto" for 0, unless the base's frame sits so high in the arm
            (at a shoulder, say) that it cannot be the floor.
        avoid_self: Whether links keep clear of each other.
        boxes: What else stands there.
        clearance: Distance kept from everything in [m].
        radius: How thick links without outlines are in [m]; 4 % of the arm's length
            if None.
        tools: Name of a frame → radius in [m] of a sphere carried there.
    """

    floor: float | Literal["auto"] | None = "auto"
    avoid_self: bool = True
    boxes: Sequence[Box] = ()
    clearance: float = 0.02
    radius: float | None = None
    tools: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.floor, str) and self.floor != "auto":
            raise ArgumentError(
                f'floor must be a height in [m], None or "auto", not {self.floor!r}.'
            )
        sizes = {"clearance": self.clearance, "radius": self.radius, **self.tools}
        for name, size in sizes.items():
            if size is not None and not (np.isfinite(size) and size >= 0.0):
                raise ArgumentError(
                    f"{name} must be a finite length in [m], not {size}."
                )
