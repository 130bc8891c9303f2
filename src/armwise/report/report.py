"""Report as data: sections of paragraphs, lists, tables and figures.

`formats.py` writes the same blocks as HTML, JSON or text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from armwise.recordings import Samples

if TYPE_CHECKING:
    from jaxtyping import Float, Int


Cell = str | float | int | None
Verdict = Literal["pass", "look", "fail", "not evaluated"]
VERDICTS: tuple[Verdict, ...] = ("pass", "look", "fail", "not evaluated")
Role = Literal[
    "measured",
    "described",
    "predicted",
    "residual",
    "other",
    "level",
    "series",
    "printed",
    "points",
]
"""What a curve is: `described` is what was predicted before anything was identified,
`series` one of several alike, `printed` a paper's numbers, `points` single
measurements. A `residual` is drawn below
where its figure shows what was measured, too."""


@dataclass(frozen=True)
class Paragraph:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class BulletList:
    """A list of sentences, under a heading where it has one."""

    texts: tuple[str, ...]
    heading: str = ""


@dataclass(frozen=True)
class KeyNumber:
    """A number that matters.

    Attributes:
        label: What it is.
        value: With its unit, in words.
        remark: What to compare it with.
        verdict: How it is to be taken; None: it is neither good nor bad.
    """

    label: str
    value: str
    remark: str = ""
    verdict: Verdict | None = None


@dataclass(frozen=True)
class KeyNumbers:
    """The few numbers that matter, side by side."""

    numbers: tuple[KeyNumber, ...]


@dataclass(frozen=True)
class Drawing:
    """A drawing in the page itself.

    Attributes:
        title: Words for those who do not see it.
        svg: The drawing, an `svg` element; every name in it is escaped.
    """

    title: str
    svg: str


@dataclass(frozen=True)
class ReportTable:
    """Rows under named columns; None is shown as a dash, numbers with their digits.

    Attributes:
        columns: Their names, units in brackets.
        rows: One cell per column.
        caption: What it shows.
        digits: Significant digits of its numbers.
        is_folded: Whether a page shows it only when asked to; it is long.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""
    digits: int = 4
    is_folded: bool = False


@dataclass(frozen=True, eq=False)
class Series:
    """One line or set of points of a figure.

    Attributes:
        name: As the legend shows it.
        x, y: The points; NaN breaks the line.
        role: What it is, which decides how it looks.
    """

    name: str
    x: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    role: Role = "other"


@dataclass(frozen=True, eq=False)
class Figure:
    """Curves over a common axis.

    Attributes:
        title, x_label, y_label: Words beside it.
        curves: What it shows.
        is_logarithmic: Whether the y axis is.
        is_stems: Whether points are drawn one by one instead of joined.
        is_folded: Whether a page shows it only when asked to.
        is_small: Whether it stands beside others of its kind, as many as fit.
        is_x_logarithmic: Whether the x axis is.
        x_names: Words for x = 0, 1, 2, … where it counts things.
    """

    title: str
    x_label: str
    y_label: str
    curves: tuple[Series, ...]
    is_logarithmic: bool = False
    is_stems: bool = False
    is_folded: bool = False
    is_small: bool = False
    is_x_logarithmic: bool = False
    x_names: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class PlotlyFigure:
    """A figure that curves over an axis cannot show, such as a scene in motion.

    Attributes:
        title: Words for those who do not see it.
        description: `data`, `layout` and `frames` as Plotly has them in JSON.
    """

    title: str
    description: dict[str, Any]


Block = (
    Paragraph | BulletList | KeyNumbers | Drawing | ReportTable | Figure | PlotlyFigure
)


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        name: One word, its anchor.
        title: Its heading.
        blocks: What it says.
        data: The same for machines.
        is_folded: Whether a page shows it only when asked to.
    """

    name: str
    title: str
    blocks: tuple[Block, ...]
    data: dict[str, Any]
    is_folded: bool = False


@dataclass(frozen=True)
class Report:
    """All there is to say about an estimate.

    Attributes:
        title: Its heading.
        sections: In the order to read them.
        origin: Where it comes from: files, version, date; one line below the heading.
    """

    title: str
    sections: tuple[Section, ...]
    origin: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain numbers and words."""
        return {
            "title": self.title,
            **({"origin": self.origin} if self.origin else {}),
            **{section.name: section.data for section in self.sections},
        }


def finite(values: Sequence[float] | np.ndarray) -> list[float | None]:
    """Return numbers as JSON has them: None where they are not finite."""
    return [float(v) if np.isfinite(v) else None for v in values]


# Thinning and breaking curves.

# 1000 pixels, and two values in each: the envelope.
POINTS = 2000
"""Most points of one curve: twice the pixels of a wide page, so nothing is lost."""

# Some eight characters a number.
_TOTAL = 130_000
"""Most points of all curves of a report: about a megabyte of digits."""


def points_per_curve(curves: int) -> int:
    """How many points each of so many curves may have."""
    # Below 50 points even a slow motion looks like a polygon.
    return max(50, min(POINTS, _TOTAL // max(curves, 1)))


def envelope_rows(
    values: Float[np.ndarray, " samples"], most: int
) -> Int[np.ndarray, " rows"]:
    """Choose rows, in order: the least and the greatest value of each stretch.

    Taking every k-th row would hide the very spikes one looks for.
    """
    if values.size <= most:
        return np.arange(values.size)
    # Two rows of each stretch, so half as many stretches as rows.
    edges = np.linspace(0, values.size, most // 2 + 1).astype(int)
    rows: set[int] = set()
    for first, last in pairwise(edges.tolist()):
        stretch = values[first:last]
        rows |= {first + int(stretch.argmin()), first + int(stretch.argmax())}
    return np.array(sorted(rows))


def continued_time(samples: Samples) -> Float[np.ndarray, " samples"]:
    """Time in [s] that goes on from run to run, one second between them."""
    time = np.array(samples.time)
    for start in samples.starts[1:]:
        if time[start] <= time[start - 1]:
            # Judgement: a second, so that one sees where a run begins.
            time[start:] += time[start - 1] - time[start] + 1.0
    return time


def with_breaks(
    rows: Int[np.ndarray, " rows"], values: np.ndarray, samples: Samples
) -> np.ndarray:
    """Pick rows and put NaN where a segment begins, so that no line crosses a gap."""
    picked = np.array(values, dtype=float)[rows]
    starts = np.searchsorted(rows, np.asarray(samples.starts[1:], dtype=int))
    return np.insert(picked, starts[starts < rows.size], np.nan)
