"""Which parts of an arm may meet which: what is worth watching."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import BASE, Arm
from armwise.excitation.bounds import Bounds
from armwise.excitation.clearance import (
    Clearance,
    Encounters,
    SphereModel,
    place_boxes,
)
from armwise.excitation.keep_out import KeepOut
from armwise.excitation.spheres import Sphere, cover, joint_point, link_start
from armwise.programs import Backend

if TYPE_CHECKING:
    from jaxtyping import Int

POSTURES = 400
"""Random postures that show what always touches."""

NEIGHBOURS = 2.0
"""Spheres that would touch if the arm between them were shorter by this many times the
thinner one are neighbours: they come close in ordinary postures."""

ALWAYS = 0.95
"""Share of postures in which a pair touches that makes it no news."""

_STILL = 1e-9


def keep_clear(
    arm: Arm, keep_out: KeepOut | None, bounds: Bounds, backend: Backend = "auto"
) -> tuple[Clearance | None, tuple[str, ...]]:
    """Work out what an arm must keep clear of.

    Returns:
        The distances to watch, or None if there are none, and notes on what is not
        watched.
    """
    if keep_out is None:
        return None, ()
    spheres = cover(arm, keep_out)
    if not any(sphere.link != BASE for sphere in spheres):
        return None, ("The arm has no outline and no length: no keep-out is kept.",)
    model = SphereModel(arm, spheres, backend)
    q = np.random.default_rng(1992).uniform(
        bounds.lower, bounds.upper, (POSTURES, arm.dof)
    )
    centers = model.centers(q)
    notes: list[str] = []
    floor, low = _floor(spheres, centers, keep_out, notes)
    pairs = _pairs(arm, spheres, keep_out) if keep_out.avoid_self else _none(2)
    obstacles = place_boxes(arm, keep_out)
    moving = np.array([k for k, s in enumerate(spheres) if s.link != BASE])
    boxed = [(k, b) for b in range(len(obstacles)) for k in moving]
    encounters = Encounters(pairs, low, np.array(boxed, dtype=int).reshape(-1, 2))
    clearance = Clearance(model, encounters, obstacles, floor, keep_out.clearance)
    return _without_permanent(clearance, q, notes), tuple(notes)


def _without_permanent(
    clearance: Clearance, q: np.ndarray, notes: list[str]
) -> Clearance | None:
    """Stop watching pairs of the arm's own parts that touch wherever it goes."""
    touching = np.mean(clearance.room(q) < 0.0, axis=1)
    permanent = touching >= ALWAYS
    permanent[len(clearance.encounters.pairs) :] = False
    if permanent.any():
        notes.append(
            f"{np.count_nonzero(permanent)} pairs of spheres touch in nearly every "
            "posture and are not watched."
        )
    left = clearance.narrowed(~permanent)
    return left if left.encounters.count else None


def _floor(
    spheres: Sequence[Sphere],
    centers: np.ndarray,
    keep_out: KeepOut,
    notes: list[str],
) -> tuple[float, Int[np.ndarray, " low"]]:
    """Height of the floor, and the spheres that go up and down."""
    if keep_out.floor is None:
        return 0.0, _none()
    radii = np.array([s.radius for s in spheres])
    heights = centers[:, 2]
    steady = np.ptp(heights, axis=1) < _STILL
    moving = np.array([s.link != BASE for s in spheres])
    if keep_out.floor == "auto":
        fixed = steady & moving
        lowest = (heights[:, 0] - radii)[fixed].min() if fixed.any() else -np.inf
        if lowest < -_STILL:
            notes.append(
                "The base's frame is not at the foot of the arm: no floor is kept. "
                "Give its height with KeepOut(floor=...)."
            )
            return 0.0, _none()
        return 0.0, np.flatnonzero(~steady)
    return float(keep_out.floor), np.flatnonzero(~steady)


def _pairs(
    arm: Arm, spheres: Sequence[Sphere], keep_out: KeepOut
) -> Int[np.ndarray, "pairs 2"]:
    """Pairs of spheres on different links that are not next to each other."""
    ways = [_way_down(arm, sphere) for sphere in spheres]
    found = []
    for a, first in enumerate(spheres):
        for b in range(a + 1, len(spheres)):
            second = spheres[b]
            if first.link == second.link:
                continue
            thin = 2.0 * min(first.radius, second.radius) + keep_out.clearance
            touching = first.radius + second.radius + keep_out.clearance
            if _along_arm(ways[a], ways[b]) > touching + NEIGHBOURS * thin:
                found.append((a, b))
    return np.array(found, dtype=int).reshape(-1, 2)


_Way = dict[int, tuple[float, np.ndarray]]


def _way_down(arm: Arm, sphere: Sphere) -> _Way:
    """How far it is along the arm from a sphere to each link below, and where."""
    link, point, length = sphere.link, sphere.center, 0.0
    way: _Way = {link: (length, point)}
    while link != BASE:
        length += float(np.linalg.norm(point - link_start(arm, link)))
        point, link = joint_point(arm, link), arm.joints[link].parent
        way[link] = (length, point)
    return way


def _along_arm(first: _Way, second: _Way) -> float:
    """Distance of two spheres along the arm's lines in [m]."""
    meeting = next(link for link in first if link in second)
    (a, p), (b, r) = first[meeting], second[meeting]
    return a + b + float(np.linalg.norm(p - r))


def _none(columns: int | None = None) -> np.ndarray:
    return np.zeros(0 if columns is None else (0, columns), dtype=int)
