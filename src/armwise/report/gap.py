"""Report on the gap between a simulator and the robot."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.report.formats import save_report
from armwise.report.report import (
    Block,
    BulletList,
    Figure,
    KeyNumber,
    KeyNumbers,
    Paragraph,
    Report,
    ReportTable,
    Section,
    Series,
    envelope_rows,
    points_per_curve,
)

if TYPE_CHECKING:
    from armwise.simulators import Gap, MotionGap

# Judgement: four motions of traces are what one looks at.
_SHOWN = 4

_SECONDS = 10.0
"""Length in [s] of a trace: of a minute and a half nothing can be seen."""

# Judgement: as far again as the robot moved, to both sides.
_BEYOND = 0.5
"""What is shown above and below the robot's own range, as a fraction of it: an arm that
runs away would leave nothing of the robot to be seen."""


def write_gap_report(gap: Gap, path: str | Path, certificate: str) -> Path:
    """Write a gap as .html (self-contained), .json or .txt.

    Args:
        gap: What was measured.
        path: Where to; its suffix says which kind.
        certificate: The line that says what it is about.
    """
    return save_report(path, lambda: make_gap_report(gap, certificate))


def make_gap_report(gap: Gap, certificate: str) -> Report:
    """Collect the certificate, the figures and overlaid traces."""
    title = f"{gap.name}: simulated beside the robot"
    sections = (_summary(gap, certificate), _traces(gap), _details(gap))
    return Report(title, sections, certificate)


def _summary(gap: Gap, certificate: str) -> Section:
    size = 1e3 * gap.position_error
    worst = int(np.argmax(size))
    most = f"{size[worst]:.2f} {gap.units[worst]}"
    mean = f"{size.mean():.2f} {gap.unit}"
    numbers = [
        KeyNumber("mean error", mean, "over joints and samples"),
        KeyNumber("worst joint", most, gap.joints[worst]),
    ]
    columns = ["joint", f"{gap.label} [{gap.unit}]"]
    rows: list[list[str | float]] = [
        [name, float(e)] for name, e in zip(gap.joints, size, strict=True)
    ]
    if gap.described is not None:
        before = 1e3 * gap.described.position_error
        other = _before(gap)
        remark = "the command, late" if other == "delay line" else "before"
        numbers.append(KeyNumber(other, f"{before.mean():.2f} {gap.unit}", remark))
        columns.append(f"{other} [{gap.unit}]")
        rows = [[*row, float(b)] for row, b in zip(rows, before, strict=True)]
    how = (
        "Commands are replayed over whole motions."
        if gap.horizon is None
        else f"Logged torques drive the arm freely for {gap.horizon:g} s, again and "
        "again from where the robot was."
    )
    blocks: list[Block] = [
        KeyNumbers(tuple(numbers)),
        Paragraph(how),
        ReportTable(
            tuple(columns),
            tuple(tuple(row) for row in rows),
            "Mean distance of the simulated joint from the real one",
            digits=3,
        ),
    ]
    if gap.notes:
        blocks.append(BulletList(gap.notes))
    data = {"gap": gap.to_dict(), "certificate": certificate}
    return Section("summary", "Summary", tuple(blocks), data)


def _traces(gap: Gap) -> Section:
    figures: list[Block] = [
        Paragraph(
            f"Of each motion the {_SECONDS:g} s in which a joint moves most. What is "
            "far from the robot is cut off."
        )
    ]
    shown = list(gap.motions.items())[:_SHOWN]
    most = points_per_curve(3 * len(shown) * len(gap.joints))
    for name, motion in shown:
        before = gap.described.motions.get(name) if gap.described else None
        for j, joint in enumerate(gap.joints):
            title = f"{joint}, {name}"
            names = (_before(gap), gap.label)
            figure = _figure(title, motion, before, names, j, most)
            axis = f"position [{gap.units[j].removeprefix('m')}]"
            figures.append(replace(figure, y_label=axis))
    return Section("traces", "Robot and simulator", tuple(figures), {})


def _before(gap: Gap) -> str:
    """What one has before identification, in words."""
    return "described" if gap.driven_by == "torques" else "delay line"


def _figure(
    title: str,
    motion: MotionGap,
    before: MotionGap | None,
    names: tuple[str, str],
    j: int,
    most: int,
) -> Figure:
    replay = motion.replay
    rows = _liveliest(replay.time, replay.q[:, j])
    time, q = replay.time[rows], replay.q[rows, j]
    starts = tuple(k - rows.start for k in replay.starts if rows.start < k < rows.stop)
    reach = _BEYOND * max(float(np.ptp(q)), 1e-3)

    def shown(values: np.ndarray) -> np.ndarray:
        is_near = (values > q.min() - reach) & (values < q.max() + reach)
        return np.where(is_near, values, np.nan)

    curves = [_series("robot", time, q, (), most)]
    if before is not None:
        values = shown(before.replay.simulated[rows, j])
        curves.append(_series(names[0], time, values, starts, most))
    values = shown(replay.simulated[rows, j])
    curves.append(_series(names[1], time, values, starts, most))
    roles = ("measured", "described", "predicted")
    if before is None:
        roles = ("measured", "predicted", "predicted")
    dressed = [
        Series(name, x, y, role)  # type: ignore[arg-type]
        for (name, x, y), role in zip(curves, roles, strict=False)
    ]
    return Figure(title, "time [s]", "position [rad]", tuple(dressed), is_small=True)


def _liveliest(time: np.ndarray, q: np.ndarray) -> slice:
    """Rows of the stretch in which a joint travels furthest."""
    travel = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(q)))])
    ends = np.searchsorted(time, time + _SECONDS)
    ends = np.where(ends > np.arange(time.size), ends, time.size)
    last = np.minimum(ends, time.size) - 1
    start = int(np.argmax(travel[last] - travel))
    return slice(start, int(last[start]) + 1)


def _series(
    name: str, time: np.ndarray, values: np.ndarray, starts: tuple[int, ...], most: int
) -> tuple[str, np.ndarray, np.ndarray]:
    rows = envelope_rows(np.nan_to_num(values), most)
    # A gap before every free run: no line from the end of one to the start of another.
    breaks = np.searchsorted(rows, np.asarray(starts, dtype=int))
    breaks = breaks[breaks < rows.size]
    return (
        name,
        np.insert(time[rows], breaks, np.nan),
        np.insert(values[rows], breaks, np.nan),
    )


def _details(gap: Gap) -> Section:
    tables = []
    what = "torque" if gap.driven_by == "torques" else "position"
    for name, motion in gap.motions.items():
        rows = []
        for j, joint in enumerate(gap.joints):
            error = motion.torque_error
            rows.append(
                (
                    joint,
                    1e3 * float(motion.replay.error[j]),
                    None if error is None else 100.0 * float(error[j]),
                    _cell(1e3 * float(motion.delay[j])),
                    float(motion.gain[j]),
                    *(_cell(1e3 * float(part[j])) for part in motion.where.values()),
                )
            )
        columns = (
            "joint",
            f"[{gap.unit}]",
            "torque error [%]",
            f"{what} early by [ms]",
            f"{what} gain",
            *(f"{part} [{gap.unit}]" for part in motion.where),
        )
        tables.append(ReportTable(columns, tuple(rows), name, digits=3))
    return Section("details", "Where it arises", tuple(tables), {})


def _cell(value: float) -> float | None:
    return value if np.isfinite(value) else None
