"""Identify a fleet: every log read once, by however many workers there are."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.fleets.chunks import Piece, Reading, cut, find_logs
from armwise.fleets.engines import Cluster, Engine, InProcess, Processes
from armwise.fleets.estimate import FleetEstimate, Work
from armwise.fleets.flags import Flag, flag, slip_directions, unlike
from armwise.fleets.hierarchy import Hierarchy, family
from armwise.fleets.job import Order
from armwise.fleets.results import (
    Harvest,
    PartsFolder,
    gather,
    without_closed,
)
from armwise.fleets.robot import Fit, fit, joined
from armwise.fleets.shared_preparation import Look, choose_treatment
from armwise.identification import (
    TERMS,
    Estimate,
    InstrumentalVariables,
    Method,
    MomentumBalance,
    Problem,
    Recursive,
    Robust,
    pose_problem,
)
from armwise.progress import Progress
from armwise.recordings import LogMapping, Preparation
from armwise.regression import Columns, FrictionTerm

_NEED_SAMPLES = (InstrumentalVariables, MomentumBalance, Recursive, Robust)

_FEW = 4
"""Robots below which it is their stretches that tell how far to trust the pool."""


def identify_fleet(
    arm: Arm,
    logs: str | Path | Sequence[str | Path],
    *,
    group_by: str = "robot",
    method: Method | None = None,
    terms: Sequence[str] = TERMS,
    friction: Sequence[FrictionTerm] = (),
    cutoff_hz: float | None = None,
    like: Preparation | None = None,
    mapping: LogMapping | None = None,
    columns: Mapping[str, str] | None = None,
    skip_bad_logs: bool = False,
    skip_bad_rows: bool = False,
    workers: int | None = None,
    cluster: str | None = None,
    parts: str | Path | None = None,
    false_alarms: float = 1e-3,
    progress: Progress | None = None,
    dashboard: Callable[[str], None] | None = None,
) -> FleetEstimate:
    """Identify many like arms from many logs, and find those that differ.

    Logs are read once, piece by piece, in processes of this machine or on a cluster;
    only paths go out and only sums come back. The result is the same however the work
    is shared. In a script, call it under `if __name__ == "__main__":`.

    Args:
        arm: The description they share.
        logs: Files, folders and globs.
        group_by: What tells robots apart: a folder `robot=NAME`, a column of that name,
            or else the folder a log lies in.
        method: How the pool of all robots is fitted; weighted least squares if None.
        terms: What to estimate; the rest keeps the arm's values.
        friction: Friction terms beyond viscous, Coulomb and offset.
        cutoff_hz: Low-pass in [Hz]; chosen for the fleet if None.
        like: Preparation of an earlier run to repeat: parts that it left are found
            again only so.
        mapping: How to understand the logs.
        columns: Channel → column, for a few columns with other names.
        skip_bad_logs: Leave out, and name, logs that cannot be used.
        skip_bad_rows: Leave out rows that cannot be used.
        workers: Processes; one for each core of this machine if None. 1: none beside
            this one.
        cluster: Address of a dask scheduler, or "local".
        parts: Folder of finished parts, from which a run that was stopped goes on.
        false_alarms: Chance that a fleet without defects has any robot flagged.
        progress: Called with what is being done and how much of it is done.
        dashboard: Called with the address of the cluster's dashboard.

    Raises:
        RecordingError: If a log cannot be used and none may be skipped.
        WorkerError: If workers or scheduler fail.
    """
    from threadpoolctl import threadpool_limits

    began = time.perf_counter()
    _check(method, workers)
    opened, closed = without_closed(find_logs(logs, group_by), skip_bad_logs)
    pieces = cut(opened)
    reading = Reading(mapping, tuple((columns or {}).items()), skip_bad_rows)
    with (
        _folder(parts) as folder,
        _engine(workers, cluster, dashboard) as engine,
        threadpool_limits(1),
    ):
        look_first = Look(arm, reading, cutoff_hz)
        treatment = like or choose_treatment(look_first, pieces, engine)
        order = Order.of(arm, treatment, friction, reading)
        look = partial(
            gather,
            folder=folder,
            engine=engine,
            skip_bad_logs=skip_bad_logs,
            progress=progress,
        )
        harvest = look(order, pieces)
        problem = pose_problem(Columns(arm, tuple(friction)), (), terms)
        fits = {name: fit(problem, harvest.of(name)) for name in harvest.robots}
        related = family(list(fits.values()), false_alarms)
        pooled = _pooled(problem, harvest, list(fits.values()), method)
        flagged = _flagged(problem, related, fits, harvest, look, false_alarms)
    return FleetEstimate(
        pooled=pooled,
        robots={name: one.estimate for name, one in fits.items()},
        family=related,
        flagged=flagged,
        bad_logs=(*closed, *harvest.bad_logs),
        preparation=treatment,
        work=_work(harvest, list(fits.values()), time.perf_counter() - began),
        problem=problem,
    )


def _check(method: Method | None, workers: int | None) -> None:
    if isinstance(method, _NEED_SAMPLES):
        raise ArgumentError(
            f"{type(method).__name__} needs the samples themselves, and a fleet keeps "
            "only their sums. Use WeightedLeastSquares or PhysicallyConsistent."
        )
    if workers is not None and workers < 1:
        raise ArgumentError(f"There must be at least one worker, not {workers}.")


def _engine(
    workers: int | None, cluster: str | None, dashboard: Callable[[str], None] | None
) -> Engine:
    count = workers or _cores()
    if cluster is not None:
        return Cluster(cluster, count, dashboard)
    return InProcess() if count == 1 else Processes(count)


def _cores() -> int:
    """Return how many cores we may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def _folder(parts: str | Path | None) -> Iterator[PartsFolder]:
    """Open the folder of parts; without one, parts are gone at the end."""
    if parts is not None:
        yield PartsFolder(parts)
        return
    with tempfile.TemporaryDirectory(prefix="armwise-parts-") as folder:
        yield PartsFolder(folder)


def _pooled(
    problem: Problem, harvest: Harvest, fits: Sequence[Fit], method: Method | None
) -> Estimate:
    """Fit all robots as one arm; how they scatter tells how far to trust it."""
    if len(fits) < _FEW:
        parts = [harvest.of(robot) for robot in harvest.robots]
    else:
        parts = [one.total for one in fits]
    return fit(problem, joined(parts), method).estimate


def _flagged(
    problem: Problem,
    related: Hierarchy,
    fits: Mapping[str, Fit],
    harvest: Harvest,
    look: Callable[[Order, Sequence[Piece]], Harvest],
    false_alarms: float,
) -> tuple[Flag, ...]:
    """Look again at the logs of robots that differ, for slipped encoders, and name."""
    robots = list(fits)
    numbers = unlike(related, false_alarms)
    described = problem.columns.arm
    mean = problem.parameters(related.mean)[: described.parameters.size]
    arm = described.with_parameters(mean)
    names = {robots[r] for r in numbers}
    again = look(
        harvest.order.seeking_slips(arm),
        [piece for piece in harvest.pieces if piece.log.robot in names],
    )
    slips = {
        r: slip_directions(
            problem, again.of(robots[r]), fits[robots[r]].estimate.torque_std
        )
        for r in numbers
    }
    return flag(problem, arm, related, robots, slips)


def _work(harvest: Harvest, fits: Sequence[Fit], seconds: float) -> Work:
    return Work(
        logs=len({piece.log for piece in harvest.pieces}),
        rows=sum(one.total.rows for one in fits),
        samples=int(sum(one.total.samples[0] for one in fits)),
        pieces=len(harvest.pieces),
        found=harvest.found,
        peak_memory=harvest.peak_memory,
        seconds=seconds,
    )
