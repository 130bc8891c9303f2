"""Identification of a fleet: logs spread over workers, one machine's or a cluster's."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from armwise.arms import Arm
from armwise.errors import (
    ArgumentError,
    ArmwiseError,
    MissingExtra,
    RecordingError,
    WorkerError,
)
from armwise.fleets.chunks import (
    LogChunk,
    LogReading,
    cut_into_chunks,
    find_logs,
    read_chunk,
)
from armwise.fleets.estimate import FleetEstimate, FleetWork
from armwise.fleets.flags import (
    compare_robots,
    flag,
    flag_lags,
    gain_directions,
    slip_directions,
)
from armwise.fleets.hierarchy import Hierarchy, RobotFit, fit, fit_family
from armwise.fleets.job import FleetResults, Job, join, run_chunks, separate_unreadable
from armwise.identification import (
    TERMS,
    Estimate,
    InstrumentalVariables,
    Method,
    MomentumBalance,
    Prefiltered,
    Problem,
    Recursive,
    Robust,
    pose_problem,
)
from armwise.jobs import (
    QUEUE_PER_WORKER,
    JobRunner,
    ResultFolder,
    cores,
    keep_to_one_core,
    open_runner,
)
from armwise.progress import Progress
from armwise.recordings import LogMapping, Preparation, prepare, require_torques
from armwise.regression import Columns, FrictionTerm

# One preparation for the logs of a whole fleet, so that robots can be compared.

_MOST_ROWS = 40_000
"""Rows of a robot's first chunk that are looked at: 40 s at 1 kHz show the bandwidth
and the lag."""


def choose_shared_preparation(
    arm: Arm,
    reading: LogReading,
    cutoff_hz: float | None,
    chunks: Sequence[LogChunk],
    runner: JobRunner,
) -> tuple[Preparation, dict[str, float]]:
    """Choose cut-off and velocity for all robots, and the lag of each.

    Cut-off and velocity are those of the median robot; the lag is the median of all,
    and a robot's own where it differs by more than a sample.

    Args:
        arm: The arm; lag and cut-off follow from its own dynamics.
        reading: How logs are understood.
        cutoff_hz: Low-pass in [Hz]; chosen when None.
        chunks: The chunks, in order.
        runner: Who looks at them.

    Returns:
        The preparation that all share, and every robot's lag in [s].

    Raises:
        RecordingError: If no log can be used.
    """
    work = partial(suggest_preparation, arm, reading, cutoff_hz)
    suggestions: dict[str, Preparation] = {}
    waiting, problem = list(chunks), ""
    while waiting:
        # The first chunk of every robot, and where that is no use, its next.
        firsts = list({c.log.robot: c for c in reversed(waiting)}.values())
        # Sorted by number: the choice must not depend on who finishes first.
        for k, answer in sorted(runner.run(work, firsts), key=lambda pair: pair[0]):
            if isinstance(answer, str):
                problem = problem or f" The first of them: {answer}"
            else:
                suggestions[firsts[k].log.robot] = answer
        waiting = [
            chunk
            for chunk in waiting
            if chunk not in firsts and chunk.log.robot not in suggestions
        ]
    if not suggestions:
        raise RecordingError(f"No log can be used.{problem}")
    # The whole preparation of one robot, not medians setting by setting: its velocity
    # was chosen for its cut-off.
    ranked = sorted(suggestions.values(), key=lambda one: one.cutoff_hz or float("inf"))
    shared = ranked[len(ranked) // 2]
    lags = {robot: one.lag for robot, one in sorted(suggestions.items())}
    shared = replace(shared, lag=float(np.median(list(lags.values()))))
    # Below a sample, a lag of one robot is not told from the others'.
    least = 1.0 / shared.sample_rate_hz if shared.sample_rate_hz else 0.0
    own = {r: x if abs(x - shared.lag) > least else shared.lag for r, x in lags.items()}
    return shared, own


def suggest_preparation(
    arm: Arm, reading: LogReading, cutoff_hz: float | None, chunk: LogChunk
) -> Preparation | str:
    """Return how a chunk would best be prepared, or why it cannot be."""
    rows = None if chunk.rows is None else min(chunk.rows, _MOST_ROWS)
    try:
        recording = read_chunk(replace(chunk, rows=rows), arm, reading)
        require_torques(recording)
        skip = reading.skip_bad_rows
        samples = prepare(recording, cutoff_hz, arm=arm, skip_bad_rows=skip)
    except (ArmwiseError, OSError) as error:
        return str(error)
    # One delay for the fleet, taken as known: sums of robots have no column for it.
    return replace(samples.preparation, lag_std=None)


# identify_fleet: many robots from many logs, each read once by some worker.

# Their weights or instruments depend on residuals sample by sample, or they
# use another regressor than the summed one, or the order of samples.
_NEED_SAMPLES = (
    InstrumentalVariables,
    MomentumBalance,
    Prefiltered,
    Recursive,
    Robust,
)

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
    lags: Mapping[str, float] | None = None,
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
        lags: Lags of that run, by robot, in [s]; others have the preparation's.
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
        preparation, own_lags = (
            choose_shared_preparation(arm, reading, cutoff_hz, chunks, runner)
            if like is None
            else (like, dict(lags or {}))
        )
        run = partial(
            run_chunks,
            folder=folder,
            runner=runner,
            skip_bad_logs=skip_bad_logs,
            progress=progress,
        )
        late = tuple((r, x) for r, x in own_lags.items() if x != preparation.lag)
        job = Job.describe(arm, preparation, friction, reading, lags=late)
        results = run(job, chunks)
        problem = pose_problem(Columns(arm, tuple(friction)), (), terms)
        fits = {name: fit(problem, results.sums_of(name)) for name in results.robots}
        family = fit_family(list(fits.values()), false_alarms)
        pooled = _pooled(problem, results, list(fits.values()), method)
        measured = {
            name: own_lags.get(name, preparation.lag) for name in results.robots
        }
        described = _with_mean(problem, family)
        gains = np.stack([_gains(problem, one) for one in fits.values()])
        tests = compare_robots(problem, described, family, gains, false_alarms)
        slips = _slips(problem, described, fits, results, run, tests.differing)
        flagged = (
            *flag(problem, described, family, list(fits), slips, gains, tests),
            *flag_lags(measured, preparation, false_alarms),
        )
    return FleetEstimate(
        pooled=pooled,
        robots={name: one.estimate for name, one in fits.items()},
        family=family,
        flagged=flagged,
        bad_logs=(*unreadable, *results.bad_logs),
        preparation=preparation,
        lags=measured,
        limit=tests.limit,
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


def _with_mean(problem: Problem, family: Hierarchy) -> Arm:
    """Return the arm with the fleet's mean parameters."""
    described = problem.columns.arm
    mean = problem.parameters(family.mean)[: described.parameters.size]
    return described.with_parameters(mean)


def _gains(problem: Problem, one: RobotFit) -> np.ndarray:
    return gain_directions(problem, one.total, one.estimate.torque_std)


def _slips(
    problem: Problem,
    arm: Arm,
    fits: Mapping[str, RobotFit],
    results: FleetResults,
    run: Callable[[Job, Sequence[LogChunk]], FleetResults],
    numbers: Sequence[int],
) -> dict[int, np.ndarray]:
    """Look again at the logs of robots that differ, for slipped encoders."""
    robots = list(fits)
    names = {robots[r] for r in numbers}
    widened = run(
        results.job.seeking_slips(arm),
        [chunk for chunk in results.chunks if chunk.log.robot in names],
    )
    return {
        r: slip_directions(
            problem, widened.sums_of(robots[r]), fits[robots[r]].estimate.torque_std
        )
        for r in numbers
    }


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


# Cluster of workers on many machines, through dask.distributed.

Item = TypeVar("Item")
Result = TypeVar("Result")

_LONGEST_WAIT = 10.0
"""How long to wait for a scheduler and a first worker in [s]: a network answers within
one, a machine that is just starting its workers within ten."""


class DaskCluster:
    """Works on the workers of a dask scheduler.

    Args:
        address: Of the scheduler, such as `tcp://10.0.0.1:8786`; or `local`, to start
            workers on this machine for as long as they are needed.
        workers: How many to start if `local`.
        dashboard: Called with the address of the dashboard.
    """

    def __init__(
        self,
        address: str,
        workers: int,
        dashboard: Callable[[str], None] | None = None,
    ) -> None:
        self._address = address
        self._workers = workers
        self._dashboard = dashboard or (lambda link: None)
        self._open = ExitStack()
        self._client: Any = None

    def __enter__(self) -> DaskCluster:
        """Reach the scheduler.

        Raises:
            WorkerError: If it does not answer or has no workers.
        """
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtra("distributed", "cluster", "--cluster") from None
        address = self._started() if self._address == "local" else self._address
        try:
            self._client = self._open.enter_context(
                Client(address, timeout=_LONGEST_WAIT)
            )
            self._client.wait_for_workers(1, timeout=_LONGEST_WAIT)
        except (OSError, ValueError) as error:
            self._open.close()
            raise WorkerError(
                f"No dask scheduler with workers answers at {self._address} within "
                f"{_LONGEST_WAIT:g} s ({str(error).splitlines()[0]}). Start `dask "
                "scheduler` and `dask worker`, or leave out --cluster to work on this "
                "machine."
            ) from None
        self._dashboard(self._client.dashboard_link)
        return self

    def __exit__(self, *problem: object) -> None:
        self._open.close()

    def _started(self) -> str:
        """Start workers on this machine; return their scheduler's address."""
        from distributed import LocalCluster

        cluster = LocalCluster(
            n_workers=self._workers,
            # Processes, not threads: work between compiled kernels holds Python's lock.
            threads_per_worker=1,
            # This machine only, as it has no password; any free port: a fixed one
            # would collide with another dask here.
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            env={"POLARS_MAX_THREADS": "1"},
        )
        return str(self._open.enter_context(cluster).scheduler_address)

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield results as they come; dask repeats what a dead worker was doing.

        Raises:
            WorkerError: If the scheduler is lost, or an item ends its worker again and
                again.
        """
        return _results(self._client, work, items)


def _results(
    client: Any, work: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[tuple[int, Result]]:
    """Keep as many items submitted as there are threads to do them."""
    from distributed import as_completed

    numbers = iter(range(len(items)))
    running: dict[Any, int] = {}

    def submitted(number: int) -> Any:
        # pure=False: dask would otherwise identify tasks by a hash of their arguments
        # and reuse results, which `ResultFolder` already does by content.
        future = client.submit(_on_one_core, work, items[number], pure=False)
        running[future] = number
        return future

    # A bounded window: results are consumed before more is submitted, so that neither
    # the scheduler nor this process holds the sums of all chunks at once.
    window = QUEUE_PER_WORKER * max(1, sum(client.nthreads().values()))
    finished = as_completed([submitted(n) for n in islice(numbers, window)])
    for future in finished:
        # Forgotten here, so that dask may free the result once it has been used.
        number = running.pop(future)
        yield number, _result(future, items[number])
        if (following := next(numbers, None)) is not None:
            finished.add(submitted(following))


def _on_one_core(work: Callable[[Item], Result], item: Item) -> Result:
    """Work on one core: dask gives one to each item."""
    keep_to_one_core()
    return work(item)


def _result(future: Any, item: object) -> Any:
    """Wait for a result, and say in one sentence why there is none."""
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    try:
        return future.result()
    except KilledWorker:
        raise WorkerError(
            f"{item} ended its worker again and again, most likely for want of memory. "
            "Give the workers more (`dask worker --memory-limit`), leave that log out, "
            "or leave out --cluster to work on this machine."
        ) from None
    except CancelledError:
        raise WorkerError(
            "The connection to the dask scheduler was lost. Parts that were finished "
            "are kept if results have a folder (-o): run the same command again, or "
            "leave out --cluster."
        ) from None
    except ImportError as error:
        raise WorkerError(
            f"The workers cannot import what they need ({error}). Install the same "
            "armwise on every machine, or leave out --cluster."
        ) from None
