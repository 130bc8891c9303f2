"""Simple geometry carried by a link: for keeping clear of things and for looking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True, eq=False)
class Shape:
    """A body's outline in its link's frame.

    Attributes:
        kind: What it is.
        size: Sphere: radius. Cylinder and capsule: radius, length along z (a capsule
            ends in half spheres beyond it). Box: full x, y, z extents. Mesh: scale.
            All in [m] but the scale.
        pose: T_link_shape.
        mesh: File name of a mesh, as the description gives it.
    """

    kind: Literal["sphere", "cylinder", "capsule", "box", "mesh"]
    size: tuple[float, ...]
    pose: Float[np.ndarray, "4 4"]
    mesh: str | None = None
