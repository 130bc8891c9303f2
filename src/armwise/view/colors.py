"""Colours, in one place; told apart by people who do not tell red from green."""

from __future__ import annotations

from armwise.view.forms import Color

BONES: tuple[Color, ...] = ((206, 212, 218), (173, 181, 189))
"""Links, in turn."""
DRUM: Color = (95, 105, 116)
AXIS: Color = (240, 140, 0)
MEASURED: Color = (73, 80, 87)
MODELS: tuple[Color, Color] = (28, 126, 214), (232, 89, 12)
"""The first and the second set of parameters."""
BODY: Color = (116, 143, 252)
"""A body of the world."""
HELD: Color = (201, 42, 42)
"""A constraint: where it holds, and how hard."""
SPRING: Color = (153, 120, 30)


def to_hex(color: Color) -> str:
    """Return a colour as HTML writes it."""
    return "#{:02x}{:02x}{:02x}".format(*color)
