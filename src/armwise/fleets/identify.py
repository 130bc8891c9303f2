"""Identification of a fleet from many logs, each read once by some worker."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from armwise.arms import Arm
from armwise.errors import ArgumentError, ArmwiseError, RecordingError
from armwise.fleets.chunks import (
    LogChunk,
    LogReading,
    cut_into_chunks,
    find_logs,
    read_chunk,
)
from armwise.fleets.cluster import DaskCluster
from armwise.fleets.estimate import FleetEstimate, FleetWork
from armwise.fleets.flags import Flag, differing_robots, flag, slip_directions
from armwise.fleets.hierarchy import Hierarchy, RobotFit, fit, fit_family, join
from armwise.fleets.job import Job
from armwise.fleets.results import FleetResults, run_chunks, separate_unreadable
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
from armwise.jobs import JobRunner, ResultFolder, cores, open_runner
from armwise.progress import Progress
from armwise.recordings import LogMapping, Preparation, prepare
from armwise.regression import Columns, FrictionTerm

# One preparation for the logs of a whole fleet, so that robots can be compared.

_ROBOTS = 3
"""Robots whose first chunk is prepared by itself: the median of three is the least that
one odd robot cannot decide."""

_MOST_ROWS = 40_000
"""Rows of it that are looked at: 40 s at 1 kHz show the bandwidth and the lag."""


def choose_shared_preparation(
    arm: Arm,
    reading: LogReading,
    cutoff_hz: float | None,
    chunks: Sequence[LogChunk],
    runner: JobRunner,
) -> Preparation:
    """Choose cut-off, lag and velocity: those of the median of a few robots.

    Args:
        arm: The arm; lag and cut-off follow from its own dynamics.
        reading: How logs are understood.
        cutoff_hz: Low-pass in [Hz]; chosen when None.
        chunks: The chunks, in order.
        runner: Who looks at them.

    Raises:
        RecordingError: If no log can be used.
    """
    work = partial(suggest_preparation, arm, reading, cutoff_hz)
    suggestions: list[Preparation] = []
    problem = ""
    candidates = _candidates(chunks)
    while len(suggestions) < _ROBOTS:
        batch = list(islice(candidates, _ROBOTS - len(suggestions)))
        if not batch:
            break
        # Sorted by number: the choice must not depend on who finishes first.
        for _, answer in sorted(runner.run(work, batch), key=lambda pair: pair[0]):
            if isinstance(answer, str):
                problem = problem or f" The first of them: {answer}"
            else:
                suggestions.append(answer)
    if not suggestions:
        raise RecordingError(f"No log can be used.{problem}")
    # The whole preparation of one robot, not medians setting by setting: its lag and
    # velocity were chosen for its cut-off.
    ranked = sorted(suggestions, key=lambda one: one.cutoff_hz or float("inf"))
    return ranked[len(ranked) // 2]


def suggest_preparation(
    arm: Arm, reading: LogReading, cutoff_hz: float | None, chunk: LogChunk
) -> Preparation | str:
    """Return how a chunk would best be prepared, or why it cannot be."""
    rows = None if chunk.rows is None else min(chunk.rows, _MOST_ROWS)
    try:
        recording = read_chunk(replace(chunk, rows=rows), arm, reading)
        skip = reading.skip_bad_rows
        samples = prepare(recording, cutoff_hz, arm=arm, skip_bad_rows=skip)
    except (ArmwiseError, OSError) as error:
        return str(error)
    # One delay for the fleet, taken as known: sums of robots have no column for it.
    return replace(samples.preparation, lag_std=None)


def _candidates(chunks: Sequence[LogChunk]) -> Iterator[LogChunk]:
    """Chunks in the order they are tried: robots from all over the fleet first."""
    firsts: dict[str, LogChunk] = {}
    for chunk in chunks:
        firsts.setdefault(chunk.log.robot, chunk)
    order = list(firsts.values())
    # Neighbours in a list of robots are often neighbours in the hall.
    step = max(1, len(order) // _ROBOTS)
    yield from (chunk for k in range(step) for chunk in order[k::step])
    yield from (chunk for chunk in chunks if firsts[chunk.log.robot] is not chunk)


# identify_fleet: many robots from many logs, each read once by some worker.

# Their weights or instruments depend on residuals sample by sample, or they
# use another regressor than the summed one, or the order of samples.
_NEED_SAMPLES = (InstrumentalVariables, MomentumBalance, Recursive, Robust)

_FEW_ROBOTS = 4
"""Robots below which the jackknife of the pool leaves out stretches, not robots: the
scatter of three says too little."""


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
    # Judgement: per fleet, not per test; one false flag in a thousand clean fleets.
    false_alarms: float = 1e-3,
    progress: Progress | None = None,
    dashboard: Callable[[str], None] | None = None,
) -> FleetEstimate:
    """Identify many like arms from many logs, and flag those that differ.

    Logs are read once, chunk by chunk, in processes of this machine or on a cluster;
    only paths go out and only sums come back. The result is the same however the work
    is shared. In a script, call it under `if __name__ == "__main__":`.

    Args:
        arm: The description they share.
        logs: Files, folders and globs.
        group_by: What distinguishes robots: a folder `robot=NAME`, a column of that
            name, or else the folder a log lies in.
        method: How the pool of all robots is fitted; weighted least squares if None.
        terms: What to estimate; others keep the arm's values.
        friction: Friction terms beyond viscous, Coulomb and offset.
        cutoff_hz: Low-pass in [Hz]; chosen for the fleet if None.
        like: Preparation of an earlier run to repeat: only then are the parts that it
            finished reused.
        mapping: How to understand the logs.
        columns: Channel → column, for a few columns with other names.
        skip_bad_logs: Leave out, and name, logs that cannot be used.
        skip_bad_rows: Leave out rows that cannot be used.
        workers: Processes; one for each core of this machine if None. 1: none beside
            this one.
        cluster: Address of a dask scheduler, or "local".
        parts: Folder of finished sums, from which a run that was stopped goes on.
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
    readable, unreadable = separate_unreadable(find_logs(logs, group_by), skip_bad_logs)
    chunks = cut_into_chunks(readable)
    reading = LogReading(mapping, tuple((columns or {}).items()), skip_bad_rows)
    with (
        _folder(parts) as folder,
        _runner(workers, cluster, dashboard) as runner,
        # Workers already occupy every core, and matrices of a fit are small.
        threadpool_limits(1),
    ):
        preparation = like or choose_shared_preparation(
            arm, reading, cutoff_hz, chunks, runner
        )
        run = partial(
            run_chunks,
            folder=folder,
            runner=runner,
            skip_bad_logs=skip_bad_logs,
            progress=progress,
        )
        results = run(Job.describe(arm, preparation, friction, reading), chunks)
        problem = pose_problem(Columns(arm, tuple(friction)), (), terms)
        fits = {name: fit(problem, results.sums_of(name)) for name in results.robots}
        family = fit_family(list(fits.values()), false_alarms)
        pooled = _pooled(problem, results, list(fits.values()), method)
        flagged = _flagged(problem, family, fits, results, run, false_alarms)
    return FleetEstimate(
        pooled=pooled,
        robots={name: one.estimate for name, one in fits.items()},
        family=family,
        flagged=flagged,
        bad_logs=(*unreadable, *results.bad_logs),
        preparation=preparation,
        work=_work(results, list(fits.values()), time.perf_counter() - began),
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


def _runner(
    workers: int | None, cluster: str | None, dashboard: Callable[[str], None] | None
) -> JobRunner:
    if cluster is not None:
        return DaskCluster(cluster, workers or cores(), dashboard)
    return open_runner(workers, preload=["armwise.fleets.job", "scipy.signal"])


@contextmanager
def _folder(parts: str | Path | None) -> Iterator[ResultFolder]:
    """Open the folder of results; without one, they are gone at the end."""
    if parts is not None:
        yield ResultFolder(parts)
        return
    with tempfile.TemporaryDirectory(prefix="armwise-parts-") as folder:
        yield ResultFolder(folder)


def _pooled(
    problem: Problem,
    results: FleetResults,
    fits: Sequence[RobotFit],
    method: Method | None,
) -> Estimate:
    """Fit all robots as one arm; the jackknife leaves out a robot at a time."""
    # Robots are the independent units: leaving out one at a time also covers what
    # differs between them. Too few of those, and stretches must do.
    if len(fits) < _FEW_ROBOTS:
        sums = [results.sums_of(robot) for robot in results.robots]
    else:
        sums = [one.total for one in fits]
    return fit(problem, join(sums), method).estimate


def _flagged(
    problem: Problem,
    family: Hierarchy,
    fits: Mapping[str, RobotFit],
    results: FleetResults,
    run: Callable[[Job, Sequence[LogChunk]], FleetResults],
    false_alarms: float,
) -> tuple[Flag, ...]:
    """Look again at the logs of robots that differ, for slipped encoders, and name."""
    robots = list(fits)
    numbers = differing_robots(family, false_alarms)
    described = problem.columns.arm
    mean = problem.parameters(family.mean)[: described.parameters.size]
    arm = described.with_parameters(mean)
    names = {robots[r] for r in numbers}
    widened = run(
        results.job.seeking_slips(arm),
        [chunk for chunk in results.chunks if chunk.log.robot in names],
    )
    slips = {
        r: slip_directions(
            problem, widened.sums_of(robots[r]), fits[robots[r]].estimate.torque_std
        )
        for r in numbers
    }
    return flag(problem, arm, family, robots, slips)


def _work(results: FleetResults, fits: Sequence[RobotFit], seconds: float) -> FleetWork:
    return FleetWork(
        logs=len({chunk.log for chunk in results.chunks}),
        rows=sum(one.total.rows for one in fits),
        samples=int(sum(one.total.samples[0] for one in fits)),
        chunks=len(results.chunks),
        reused=results.reused,
        peak_memory=results.peak_memory,
        seconds=seconds,
    )
