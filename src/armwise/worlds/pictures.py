"""Pictures of a run without any further package: PNG files, drawn line by line."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np

from armwise.worlds.drawing import frames_of, nails_of
from armwise.worlds.run import Run, write_file

_INK = {"body": (31, 78, 121), "spring": (200, 120, 30)}
_NAIL = (190, 30, 45)
_FINER = 2
"""Drawn this much larger and averaged, so that lines are smooth."""


def write_picture(
    run: Run, path: str | Path, frames: int = 9, width: int = 900, view: str = "xz"
) -> None:
    """Draw a run as a PNG file: early frames pale, the last one dark.

    Args:
        run: What to draw.
        path: Of the PNG file.
        frames: How many moments to draw.
        width: Of the picture in pixels; the height follows the world's shape.
        view: The two axes to look at, "xz", "xy" or "yz".
    """
    axes = ["xyz".index(letter) for letter in view]
    found = frames_of(run, frames)
    ends = found.ends[..., axes]
    nails = np.array(nails_of(run.world)).reshape(-1, 3)[:, axes]
    scale, corner, height = _fit(np.vstack([ends.reshape(-1, 2), nails]), width)
    canvas = np.full((height * _FINER, width * _FINER, 3), 255.0)
    for k, frame in enumerate(ends):
        strength = 0.12 + 0.88 * (k + 1) / len(ends)
        for stroke, (a, b) in zip(found.strokes, frame, strict=True):
            ink = _INK[stroke.kind]
            thick = 1.6 if stroke.kind == "spring" else 3.0
            _line(
                canvas,
                (a - corner) * scale,
                (b - corner) * scale,
                ink,
                strength**2,
                thick,
            )
    for nail in nails:
        place = (nail - corner) * scale
        _line(canvas, place, place + 0.01, _NAIL, 1.0, 9.0)
    small = canvas.reshape(height, _FINER, width, _FINER, 3).mean(axis=(1, 3))
    write_file(Path(path), _png(np.clip(small[::-1], 0, 255).astype(np.uint8)))


def _fit(points: np.ndarray, width: int) -> tuple[float, np.ndarray, int]:
    """Return pixels per metre, the lower left corner [m] and the height [pixels]."""
    low, high = points.min(axis=0), points.max(axis=0)
    extent = np.maximum(high - low, 1e-3)
    margin = 0.08 * extent.max()
    extent = extent + 2 * margin
    height = int(np.clip(width * extent[1] / extent[0], 0.25 * width, 1.5 * width))
    scale = float(min(width / extent[0], height / extent[1])) * _FINER
    middle = (low + high) / 2
    corner = middle - np.array([width, height]) * _FINER / scale / 2
    return scale, corner, height


def _line(
    canvas: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    ink: tuple[int, int, int],
    strength: float,
    thick: float,
) -> None:
    """Mix ink into every pixel nearer to a line than half its thickness."""
    reach = thick * _FINER / 2
    low = np.floor(np.minimum(a, b) - reach - 1).astype(int)
    high = np.ceil(np.maximum(a, b) + reach + 2).astype(int)
    rows, columns = canvas.shape[:2]
    x = np.arange(max(low[0], 0), min(high[0], columns))
    y = np.arange(max(low[1], 0), min(high[1], rows))
    if not (len(x) and len(y)):
        return
    gap = np.stack(np.meshgrid(x, y), axis=-1) - a
    along = b - a
    share = np.clip(gap @ along / max(float(along @ along), 1e-12), 0, 1)
    distance = np.linalg.norm(gap - share[..., None] * along, axis=-1)
    cover = np.clip(reach + 0.5 - distance, 0, 1)[..., None] * strength
    part = canvas[y[0] : y[-1] + 1, x[0] : x[-1] + 1]
    part += cover * (np.array(ink) - part)


def _png(pixels: np.ndarray) -> bytes:
    """Return an image (rows, columns, 3) of bytes as a PNG file."""
    rows, columns, _ = pixels.shape
    lines = np.concatenate([np.zeros((rows, 1), np.uint8), pixels.reshape(rows, -1)], 1)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    body = zlib.compress(lines.tobytes(), 6)
    parts = ((b"IHDR", header), (b"IDAT", body), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    check = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)
