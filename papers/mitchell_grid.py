"""`mitchell1997` ch. 3: the whole grid of cells, run as batches of plants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import load_arm
from armwise.control import Partition
from armwise.motions import MotionSample
from armwise.plants import Encoder, Measurement, SimulatedArm, Tachometer
from papers.mitchell_tasks import ADAPTIVE, TASKS, Scheme, Task, schemes

if TYPE_CHECKING:
    import polars as pl
    from jaxtyping import Float


VISCOSITY = {"two_link_slotine": 0.3, "two_link_uno": 0.03}
"""c of the unmodelled viscosity −c |q̇| q̇ in [N m s²/rad²]; the thesis gives none."""

RATE_HZ = 500.0
"""Control and integration rate; where the discretisation that Mitchell blames is."""


@dataclass(frozen=True)
class Part:
    """Cells that share an arm and its gravity, and so run as one batch."""

    arm: str
    gravity: bool
    cells: tuple[tuple[Scheme, tuple[str, ...]], ...]
    tasks: tuple[Task, ...] = TASKS
    adapt: float = 30.0
    measure: float = 10.0
    rate_hz: float = RATE_HZ


def full_grid() -> tuple[Part, ...]:
    """Figs 3.3–3.9: two arms, 24 tasks, every scheme, three kinds of force."""
    both = ("gradient", "recursive")
    parts = []
    for arm in ("two_link_slotine", "two_link_uno"):
        standard = (Scheme("PD"), *schemes(0.01, both))
        fast = (*schemes(0.1, both), *schemes(0.05, ("gradient",)))
        cells: list[tuple[Scheme, tuple[str, ...]]]
        cells = [(scheme, ("none", "viscosity")) for scheme in standard]
        cells += [(scheme, ("none",)) for scheme in fast]
        parts.append(Part(arm, False, tuple(cells)))
        heavy = tuple((scheme, ("gravity",)) for scheme in standard)
        parts.append(Part(arm, True, heavy))
    return tuple(parts)


@cache
def coarse_instability(eta: float, rate_hz: float = 100.0) -> dict[str, int]:
    """Unstable cells of every scheme on both arms, gradient rule, at coarser steps."""
    found: list[str] = []
    for arm in ("two_link_slotine", "two_link_uno"):
        cells = tuple((scheme, ("none",)) for scheme in schemes(eta, ("gradient",)))
        done = run_part(Part(arm, False, cells, rate_hz=rate_hz))
        found += [cell["controller"] for cell in done if not cell["stable"]]
    return dict(Counter(found))


def run_grid(
    parts: tuple[Part, ...] | None = None,
    workers: int = 2,
    progress: Callable[[int, int], None] | None = None,
) -> pl.DataFrame:
    """Run every cell; one row each, with its L2 error [rad] and whether it was stable.

    Args:
        parts: The cells; all of Figs 3.3–3.9 if not given.
        workers: Processes.
        progress: Told (done, all) after every part.
    """
    import polars as pl

    chosen = full_grid() if parts is None else parts
    rows: list[dict[str, Any]] = []
    for done, found in enumerate(_each(chosen, workers), start=1):
        rows += found
        if progress is not None:
            progress(done, len(chosen))
    return normalised(pl.DataFrame(rows))


_whole: list[pl.DataFrame] = []
"""The whole grid, once it was run: rows and figures share it."""


def whole_grid(
    workers: int = 2, progress: Callable[[int, int], None] | None = None
) -> pl.DataFrame:
    """All of Figs 3.3–3.9, run once a process."""
    if not _whole:
        _whole.append(run_grid(workers=workers, progress=progress))
    return _whole[0]


def normalised(frame: pl.DataFrame) -> pl.DataFrame:
    """Divide every L2 error by PD's on the same task."""
    import polars as pl

    keys = ["arm", "motion", "area", "bandwidth", "force"]
    base = frame.filter(pl.col("controller") == "PD")
    base = base.select(*keys, pl.col("l2").alias("pd"))
    joined = frame.join(base, on=keys, how="left", maintain_order="left")
    return joined.with_columns((pl.col("l2") / pl.col("pd")).alias("normalised"))


def _each(parts: tuple[Part, ...], workers: int) -> Iterator[list[dict[str, Any]]]:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import current_process, get_context

    # A process of a pool may have none of its own.
    if workers <= 1 or len(parts) == 1 or current_process().daemon:
        yield from map(run_part, parts)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(run_part, parts)


def run_part(part: Part) -> list[dict[str, Any]]:
    """Run all cells of one arm side by side."""
    from threadpoolctl import threadpool_limits

    arm = load_arm(part.arm)
    # No controller knows of gravity: their arm stays in its horizontal plane.
    controllers = [(s.build(arm), len(f) * len(part.tasks)) for s, f in part.cells]
    if part.gravity:
        arm = arm.with_gravity([0.0, -9.81, 0.0])
    labels = [
        (scheme, force, task)
        for scheme, forces in part.cells
        for force in forces
        for task in part.tasks
    ]
    drag = np.array([VISCOSITY[part.arm] * (f == "viscosity") for _, f, _ in labels])
    plant = SimulatedArm(
        arm,
        batch=len(labels),
        control_rate_hz=part.rate_hz,
        plant_rate_hz=part.rate_hz,
        sensors=(Encoder(), Tachometer()),
        keeps_truth=False,
    )
    control = Partition(controllers)
    with threadpool_limits(1):  # the matrices are tiny; a second thread only waits
        error, ran_away = _follow(plant, control, part, drag[:, None])
    stopped = np.concatenate(
        [getattr(c, "stopped", np.zeros(n, bool)) for c, n in controllers]
    )
    stable = ~ran_away & ~stopped & (error < 2.0 * np.pi)
    return [
        _row(part.arm, label, float(error[b]), bool(stable[b]))
        for b, label in enumerate(labels)
    ]


def _row(
    arm: str, label: tuple[Scheme, str, Task], error: float, stable: bool
) -> dict[str, Any]:
    scheme, force, task = label
    return {
        "arm": arm,
        "motion": task.motion,
        "area": task.area,
        "bandwidth": task.bandwidth,
        "controller": scheme.name,
        "rule": scheme.rule,
        "eta": scheme.eta,
        "force": force,
        "l2": error if stable else float("nan"),
        "stable": stable,
    }


def _follow(
    plant: SimulatedArm,
    control: Partition,
    part: Part,
    drag: Float[np.ndarray, "batch 1"],
) -> tuple[Float[np.ndarray, " batch"], np.ndarray]:
    """Adapt, then measure: √(1/T ∫ ‖e‖² dt) of every plant (Eq. 3.29)."""
    duration = part.adapt + part.measure
    plans = [task.plan(duration) for task in part.tasks]
    copies = plant.batch // len(plans)
    control.reset(plant.batch, plant.control_period)
    begin = _references(plans, np.zeros(1), copies)
    state = (begin[0][0], begin[1][0])
    squares = np.zeros(plant.batch)
    ran_away = np.zeros(plant.batch, dtype=bool)
    for second in range(round(duration)):
        times = second + np.arange(round(part.rate_hz)) / part.rate_hz
        reference = _references(plans, times, copies)
        counts = times >= part.adapt
        # A plant keeps a log; starting it again every second keeps that log short.
        seen = plant.reset(*state)
        seen = _one_second(
            plant, control, (times, reference, counts), seen, drag, squares
        )
        ran_away |= plant.diverged
        lost = ran_away[:, None]
        state = (
            np.where(lost, 0.0, seen.need("q")),
            np.where(lost, 0.0, seen.need("qd")),
        )
    return np.sqrt(squares / (part.measure * part.rate_hz)), ran_away


def _one_second(
    plant: SimulatedArm,
    control: Partition,
    plan: tuple[np.ndarray, list[np.ndarray], np.ndarray],
    seen: Measurement,
    drag: np.ndarray,
    squares: np.ndarray,
) -> Measurement:
    times, reference, counts = plan
    for k, t in enumerate(times.tolist()):
        wanted = MotionSample(*(x[k] for x in reference))
        tau = control.torque(t, wanted, seen)
        q, qd = seen.need("q"), seen.need("qd")
        if counts[k]:
            away = q - wanted.q
            squares += np.einsum("bi,bi->b", away, away)
        seen = plant.step(tau - drag * np.abs(qd) * qd)
    return seen


def _references(plans: list[Any], times: np.ndarray, copies: int) -> list[np.ndarray]:
    """References (times, batch, dof): every plan once for each scheme and force."""
    samples = [plan.sample(times) for plan in plans]
    parts = (np.stack(part, axis=1) for part in zip(*samples, strict=True))
    return [np.tile(part, (1, copies, 1)) for part in parts]


# Statistics of the grid, scheme by scheme.


def medians(
    frame: pl.DataFrame, rule: str, eta: float, force: str, arm: str | None = None
) -> dict[str, float]:
    """Median normalised error of every adaptive scheme, unstable cells left out."""
    found = errors(frame, rule, eta, force, arm)
    return {name: float(np.median(values)) for name, values in found.items()}


def unstable(frame: pl.DataFrame, rule: str, eta: float) -> dict[str, int]:
    """Number of unstable cells of every scheme, all forces together."""
    import polars as pl

    chosen = frame.filter(
        (pl.col("rule") == rule) & (pl.col("eta") == eta) & ~pl.col("stable")
    )
    counts = chosen["controller"].to_list()
    return {name: counts.count(name) for name in ADAPTIVE if name in counts}


def errors(
    frame: pl.DataFrame,
    rule: str,
    eta: float,
    force: str,
    arm: str | None = None,
    *,
    motion: str | None = None,
    column: str = "normalised",
) -> dict[str, Float[np.ndarray, " cells"]]:
    """Errors of every adaptive scheme in all its cells that were stable."""
    import polars as pl

    wanted = {"rule": rule, "eta": eta, "force": force, "arm": arm, "motion": motion}
    chosen = frame.filter(pl.col("stable"))
    for key, value in wanted.items():
        if value is not None:
            chosen = chosen.filter(pl.col(key) == value)
    return {
        name: chosen.filter(pl.col("controller") == name)[column].to_numpy()
        for name in ADAPTIVE
    }
