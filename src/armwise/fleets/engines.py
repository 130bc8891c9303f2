"""Engines: where the work is done. They differ in speed, never in the result."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from functools import cache
from itertools import islice
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any, Protocol, TypeVar

from armwise.errors import MissingExtra, WorkerError

Item = TypeVar("Item")
Result = TypeVar("Result")

_DEATHS = 3
"""How often an item may end its worker before it is given up."""

_AHEAD = 2
"""Items in hand per worker, so that none waits for the next."""

_THREADS = (
    "POLARS_MAX_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
)
"""Variables that tell libraries how many threads to start."""


class Engine(Protocol):
    """Does the same work on many items, between entering and leaving it."""

    def __enter__(self) -> Engine: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield (number of the item, result) in whatever order they are finished."""
        ...


class InProcess:
    """Works here, one item after the other."""

    def __enter__(self) -> InProcess:
        return self

    def __exit__(self, *problem: object) -> None:
        pass

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield results in order."""
        for number, item in enumerate(items):
            yield number, work(item)


class Processes:
    """Works in so many processes of this machine; one that dies is replaced."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield results as they come; what a dead worker had in hand is done again.

        A broken pool does not say who broke it. Items that were in hand are tried one
        by one, so that one that kills its worker can be named.

        Raises:
            WorkerError: If an item ends its worker again and again.
        """
        deaths: Counter[int] = Counter()
        waiting = list(range(len(items)))[::-1]
        doubtful: list[int] = []
        while waiting or doubtful:
            window = 1 if doubtful else _AHEAD * self._workers
            queue = doubtful or waiting
            in_hand = yield from self._drain(work, items, queue, window)
            deaths.update(in_hand)
            doubtful.extend(in_hand)
            _check(deaths, items)

    def _drain(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        queue: list[int],
        window: int,
    ) -> Generator[tuple[int, Result], None, list[int]]:
        """Empty a queue, or break down; return what was in hand then."""
        running: dict[Future[Result], int] = {}
        try:
            while queue or running:
                while queue and len(running) < window:
                    future = self._opened().submit(work, items[queue[-1]])
                    running[future] = queue.pop()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    result = future.result()
                    yield running.pop(future), result
        except BrokenProcessPool:
            self.__exit__()
            wait(running)
            for future in [f for f in running if f.exception() is None]:
                yield running.pop(future), future.result()
        return sorted(running.values())

    def _opened(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                self._workers, _context(), initializer=keep_to_one_core
            )
        return self._pool


def _context() -> BaseContext:
    """How processes start: as copies of one that has imported what all need.

    Never as copies of this one, whose threads may hold locks.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(["armwise.fleets.job", "scipy.signal"])
    return context


@cache
def keep_to_one_core() -> None:
    """Let a worker use no more threads than its share."""
    from threadpoolctl import threadpool_limits

    os.environ.update(dict.fromkeys(_THREADS, "1"))  # for what is imported later
    threadpool_limits(1)


def _check(deaths: Counter[int], items: Sequence[object]) -> None:
    """Give up on an item that has ended too many workers."""
    number, count = max(deaths.items(), key=lambda pair: pair[1], default=(0, 0))
    if count >= _DEATHS:
        raise WorkerError(
            f"{items[number]} ended its worker {count} times, most likely for want of "
            "memory. Give the workers more, leave that log out, or work in one process "
            "with --workers 1. (A script that calls identify_fleet must do so under "
            '`if __name__ == "__main__":`.)'
        )


# Many machines: dask.distributed carries paths out and sums back.

_PATIENCE = 10.0
"""How long to wait for a scheduler and a first worker in [s]."""


class Cluster:
    """Works on the workers of a dask scheduler.

    Args:
        address: Of the scheduler, such as `tcp://10.0.0.1:8786`; or `local`, to start
            workers on this machine for as long as they are needed.
        workers: How many to start if `local`.
        tell: Called with the address of the dashboard.
    """

    def __init__(
        self, address: str, workers: int, tell: Callable[[str], None] | None = None
    ) -> None:
        self._address = address
        self._workers = workers
        self._tell = tell or (lambda link: None)
        self._open = ExitStack()
        self._client: Any = None

    def __enter__(self) -> Cluster:
        """Reach the scheduler.

        Raises:
            WorkerError: If it does not answer or has no workers.
        """
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtra("distributed", "cluster", "--cluster") from None
        place = self._started() if self._address == "local" else self._address
        try:
            self._client = self._open.enter_context(Client(place, timeout=_PATIENCE))
            self._client.wait_for_workers(1, timeout=_PATIENCE)
        except (OSError, ValueError) as error:
            self._open.close()
            raise WorkerError(
                f"No dask scheduler with workers answers at {self._address} within "
                f"{_PATIENCE:g} s ({str(error).splitlines()[0]}). Start `dask "
                "scheduler` and `dask worker`, or leave out --cluster to work on this "
                "machine."
            ) from None
        self._tell(self._client.dashboard_link)
        return self

    def __exit__(self, *problem: object) -> None:
        self._open.close()

    def _started(self) -> str:
        """Start workers on this machine; return their scheduler's address."""
        from distributed import LocalCluster

        cluster = LocalCluster(
            n_workers=self._workers,
            threads_per_worker=1,
            dashboard_address=":0",
            env={"POLARS_MAX_THREADS": "1"},
        )
        return str(self._open.enter_context(cluster).scheduler_address)

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield results as they come; dask does again what a dead worker had in hand.

        Raises:
            WorkerError: If the scheduler is lost, or an item ends its worker again and
                again.
        """
        return _results(self._client, work, items)


def _results(
    client: Any, work: Callable[[Item], Result], items: Sequence[Item]
) -> Iterator[tuple[int, Result]]:
    """Keep as many items in hand as there are threads to do them."""
    from distributed import as_completed

    numbers = iter(range(len(items)))
    running: dict[Any, int] = {}

    def submitted(number: int) -> Any:
        future = client.submit(_alone, work, items[number], pure=False)
        running[future] = number
        return future

    window = _AHEAD * max(1, sum(client.nthreads().values()))
    finished = as_completed([submitted(n) for n in islice(numbers, window)])
    for future in finished:
        number = running.pop(future)
        yield number, _result(future, items[number])
        if (following := next(numbers, None)) is not None:
            finished.add(submitted(following))


def _alone(work: Callable[[Item], Result], item: Item) -> Result:
    """Work on one core, as dask gives one to each item."""
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
