"""Inertia one can see: the solid ellipsoid with the same mass, centre and moments."""

from __future__ import annotations

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.arms.poses import pose
from armwise.view.forms import Ball, Color, Solid

SMALLEST = 2e-3
"""In [m]: a point mass is drawn as a ball of this radius."""


def equivalent_ellipsoid(inertia: InertialParameters) -> tuple[Ball, np.ndarray]:
    """Return the uniform solid ellipsoid with a body's ten numbers, and T_link_ball.

    Its principal moments I₁ = m (b² + c²) / 5 … give a² = 5 (I₂ + I₃ − I₁) / (2 m).
    """
    moments, axes = inertia.principal
    squares = 2.5 * (moments.sum() - 2 * moments) / inertia.mass
    a, b, c = np.sqrt(np.maximum(squares, SMALLEST**2)).tolist()
    return Ball((a, b, c)), pose(axes, inertia.center_of_mass)


def ellipsoids_of(
    arm: Arm, layer: str, color: Color
) -> tuple[list[Solid], dict[str, str]]:
    """Draw the links of an arm as ellipsoids.

    Returns:
        The ellipsoids, and the links that are no bodies, with why. Links without mass
        are left out.
    """
    defects = arm.defects()
    solids = []
    for i, link in enumerate(arm.links):
        if link.name not in defects and link.inertia.has_mass:
            ball, T = equivalent_ellipsoid(link.inertia)
            solids.append(Solid(ball, i, T, color, layer, link.name))
    return solids, defects
