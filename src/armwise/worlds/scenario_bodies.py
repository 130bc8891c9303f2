"""Read bodies and points of a world from TOML."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import load_arm
from armwise.arms.poses import pose, rotation_from_rpy
from armwise.arms.toml import Table
from armwise.worlds.bodies import ArticulatedBody, Body, Point, RigidBody
from armwise.worlds.chains import planar_chain
from armwise.worlds.segments import Segment, box, rod, sphere

Vector = tuple[float, float, float]

_PLACE = ("name", "kind", "position", "rpy", "rpy_deg")


def read_body(row: Table, folder: Path) -> Body:
    """Read one [[body]]; files it names are looked for in `folder` first."""
    kind = row.text("kind", "rigid")
    if kind == "rigid":
        return _rigid(row)
    if kind in ("articulated", "chain"):
        return _articulated(row, folder)
    raise row.error(f'has the unknown kind "{kind}". Known: rigid, articulated, chain.')


def read_point(row: Table, key: str) -> Point:
    """Read a point { body = …, at = […], link = … }."""
    table = row.table(key).only("body", "at", "link")
    if "body" not in table.values:
        raise row.error(f'needs a point {{ body = "…", at = [x, y, z] }} for "{key}".')
    link = table.text("link", "-")
    place = vector(table, "at", (0.0, 0.0, 0.0))
    return Point(table.text("body", "-"), place, None if link == "-" else link)


def read_end(row: Table, key: str) -> Point | Vector:
    """Read a point, or a place [x, y, z] in the world."""
    if isinstance(row.values.get(key), dict):
        return read_point(row, key)
    if key not in row.values:
        raise row.error(f'has no "{key}": give a point or a place [x, y, z].')
    return vector(row, key, (0.0, 0.0, 0.0))


def vector(row: Table, key: str, default: Vector) -> Vector:
    """Read three numbers."""
    x, y, z = row.vector(key, default)
    return x, y, z


def _rigid(row: Table) -> RigidBody:
    row.only(*_PLACE, "segment", "velocity", "angular_velocity")
    segments = [_segment(part) for part in row.tables("segment")]
    if not segments:
        raise row.error("has no [[body.segment]]: a rigid body is made of segments.")
    zero = (0.0, 0.0, 0.0)
    return RigidBody.from_segments(
        row.text("name", "body"),
        segments,
        _pose(row),
        vector(row, "velocity", zero),
        vector(row, "angular_velocity", zero),
    )


def _segment(part: Table) -> Segment:
    kind = part.text("kind", "rod")
    zero = (0.0, 0.0, 0.0)
    if kind == "rod":
        part.only("kind", "mass", "from", "to", "radius")
        ends = vector(part, "from", zero), vector(part, "to", zero)
        return rod(part.number("mass"), *ends, part.number("radius", 0.02))
    if kind == "box":
        part.only("kind", "mass", "extents", "center")
        extents, center = vector(part, "extents", zero), vector(part, "center", zero)
        return box(part.number("mass"), extents, center)
    if kind == "sphere":
        part.only("kind", "mass", "radius", "center")
        center = vector(part, "center", zero)
        return sphere(part.number("mass"), part.number("radius"), center)
    raise part.error(f'has the unknown kind "{kind}". Known: rod, box, sphere.')


def _articulated(row: Table, folder: Path) -> ArticulatedBody:
    if row.text("kind", "articulated") == "chain":
        row.only(*_PLACE, "q", "qd", "links", "length", "mass", "radius", "viscous")
        arm = planar_chain(
            int(row.number("links")),
            _one_or_more(row, "length"),
            _one_or_more(row, "mass"),
            row.number("radius", 0.03),
            row.number("viscous", 0.0),
        )
    else:
        row.only(*_PLACE, "q", "qd", "arm")
        name = row.text("arm", "-")
        file = folder / name
        arm = load_arm(file if file.exists() else name)
    return ArticulatedBody(
        row.text("name", arm.name),
        arm,
        _pose(row),
        _numbers(row, "q"),
        _numbers(row, "qd"),
    )


def _one_or_more(row: Table, key: str) -> float | tuple[float, ...]:
    if isinstance(row.values.get(key), list):
        return _numbers(row, key)
    return row.number(key, 1.0)


def _numbers(row: Table, key: str) -> tuple[float, ...]:
    values: Any = row.values.get(key, [])
    if not isinstance(values, list):
        raise row.error(f'needs a list of numbers for "{key}", not {values!r}.')
    return row.vector(key, (0.0,) * len(values))


def _pose(row: Table) -> np.ndarray:
    zero = (0.0, 0.0, 0.0)
    degrees = row.vector("rpy_deg", zero)
    if "rpy" in row.values and "rpy_deg" in row.values:
        raise row.error('has both "rpy" and "rpy_deg"; keep one.')
    angles = row.vector("rpy", tuple(np.radians(degrees).tolist()))
    return pose(rotation_from_rpy(angles), row.vector("position", zero))
