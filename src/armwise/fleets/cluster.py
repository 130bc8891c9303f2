"""Cluster of workers on many machines, through dask.distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from typing import Any, TypeVar

from armwise.errors import MissingExtra, WorkerError
from armwise.jobs import QUEUE_PER_WORKER, keep_to_one_core

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
