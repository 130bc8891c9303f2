"""A world in viser: bodies, the points they are held at, and the forces there."""

from __future__ import annotations

from typing import Any

import numpy as np

from armwise.view.colors import HELD, SPRING
from armwise.view.drawing import add_frames, draw, place
from armwise.view.surroundings import Surroundings

LONGEST_ARROW = 0.3
"""Of the scene's size."""


class WorldCanvas:
    """What stands around the arm.

    Attributes:
        layers: What is shown and hidden together: "world" and "constraints".
    """

    def __init__(self, server: Any, around: Surroundings, size: float) -> None:
        self._scene, self._around, self._size = server.scene, around, size
        self._frames = add_frames(server, "world", around.poses.shape[1])
        bodies = [
            draw(server, f"/world/{solid.frame}/{k}", solid)
            for k, solid in enumerate(around.solids)
        ]
        self._balls = [self._add_ball(k) for k in range(len(self._places(0)))]
        self._arrows = self._add_arrows()
        self._springs = self._add_lines("springs", around.springs[0], SPRING)
        paths = [
            self._add_lines(f"paths/{k}", np.stack([p[:-1], p[1:]], axis=1), HELD)
            for k, hold in enumerate(around.holds)
            if (p := hold.path) is not None
        ]
        held = [*self._balls, self._arrows, self._springs, *paths]
        self.layers = {"world": bodies, "constraints": [x for x in held if x]}
        self.move(0.0)

    def move(self, t: float) -> None:
        """Show a moment [s]."""
        row = self._around.row_at(t)
        place(self._frames, self._around.poses[row])
        for ball, where in zip(self._balls, self._places(row), strict=True):
            ball.position = where
        if self._arrows is not None:
            self._arrows.points = self._forces(row)
        if self._springs is not None:
            self._springs.points = self._around.springs[row]

    def _places(self, row: int) -> np.ndarray:
        """Points that are held, and the places that hold them."""
        holds = self._around.holds
        found = [hold.points[row, 0] for hold in holds]
        found += [hold.anchor[row] for hold in holds if hold.anchor is not None]
        return np.array(found).reshape(-1, 3)

    def _forces(self, row: int) -> np.ndarray:
        """One arrow per constraint, from its point along the force on it."""
        starts = np.array([hold.points[row, 0] for hold in self._around.holds])
        forces = np.nan_to_num([hold.force[row] for hold in self._around.holds])
        shares = forces / max(self._around.usual_force, 1e-12)
        sizes = np.maximum(np.linalg.norm(shares, axis=1, keepdims=True), 1.0)
        arrows = LONGEST_ARROW * self._size * shares / sizes
        return np.stack([starts, starts + arrows], axis=1)

    def _add_ball(self, k: int) -> Any:
        return self._scene.add_icosphere(f"/held/{k}", 0.014 * self._size, HELD)

    def _add_arrows(self) -> Any:
        if not self._around.holds:
            return None
        thin = 0.005 * self._size
        return self._scene.add_arrows(
            "/forces", self._forces(0), HELD,
            shaft_radius=thin, head_radius=2.5 * thin, head_length=6 * thin,
        )  # fmt: skip

    def _add_lines(self, name: str, points: np.ndarray, color: Any) -> Any:
        if not len(points):
            return None
        thin = 0.005 * self._size
        return self._scene.add_line_segments(f"/{name}", points, color, thickness=thin)
