"""Independent jobs: process pools that survive dead workers, and remembered results."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.context import BaseContext
from pathlib import Path
from threading import Thread
from time import sleep
from types import TracebackType
from typing import Protocol, TypeVar

from armwise.errors import FileError, WorkerError
from armwise.files import write_atomically

Item = TypeVar("Item")
Result = TypeVar("Result")

_MOST_DEATHS = 3
"""How often an item may end its worker before it is given up. A machine that is short
of memory kills whichever process is largest, so one death does not convict an item."""

QUEUE_PER_WORKER = 2
"""Items submitted per worker, so that none waits for the next."""

_THREAD_VARIABLES = (
    "POLARS_MAX_THREADS",
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
)
"""Variables that set how many threads libraries start."""


class JobRunner(Protocol):
    """Does the same work on many items, between entering and leaving it."""

    def __enter__(self) -> JobRunner: ...

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
    """Works in this process, one item after the other."""

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


class ProcessPool:
    """Works in so many processes of this machine; one that dies is replaced.

    Args:
        workers: How many processes.
        preload: Modules that are imported once, before processes are copied.
    """

    def __init__(self, workers: int, preload: Sequence[str] = ()) -> None:
        self._workers = workers
        self._preload = tuple(preload)
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> ProcessPool:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def run(
        self, work: Callable[[Item], Result], items: Sequence[Item]
    ) -> Iterator[tuple[int, Result]]:
        """Yield results as they come; what a dead worker was doing is done again.

        Raises:
            WorkerError: If an item ends its worker again and again.
        """
        deaths: Counter[int] = Counter()
        waiting = list(range(len(items)))[::-1]
        suspects: list[int] = []
        while waiting or suspects:
            # A broken pool does not say which item broke it: those that were running
            # are tried one by one, so that the one that kills its worker can be named.
            window = 1 if suspects else QUEUE_PER_WORKER * self._workers
            queue = suspects or waiting
            interrupted = yield from self._drain(work, items, queue, window)
            deaths.update(interrupted)
            suspects.extend(interrupted)
            _check_deaths(deaths, items)

    def _drain(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        queue: list[int],
        window: int,
    ) -> Generator[tuple[int, Result], None, list[int]]:
        """Empty a queue, or break down; return what was running then."""
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
                self._workers,
                _context(self._preload),
                initializer=_begin_work,
                initargs=(os.getpid(),),
            )
        return self._pool


def open_runner(workers: int | None, preload: Sequence[str] = ()) -> JobRunner:
    """Return a runner with so many processes: None for all cores, 1 for none."""
    count = workers or cores()
    return InProcess() if count == 1 else ProcessPool(count, preload)


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _context(preload: Sequence[str]) -> BaseContext:
    """How processes start: as copies of one that has imported what all need.

    Never as copies of this one, whose threads may hold locks.
    """
    if "forkserver" not in get_all_start_methods():
        return get_context("spawn")
    context = get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context


_WATCH_EVERY = 2.0
"""Seconds between looking whether the process that asked for work is still there."""


def _begin_work(parent: int) -> None:
    """Prepare a worker; it ends itself when the process it works for is gone.

    A worker waits for work without end, and the fork server for orders: nobody tells
    them that the process which started them was killed.
    """
    keep_to_one_core()
    Thread(target=_end_without, args=(parent,), daemon=True).start()


def _end_without(parent: int) -> None:
    while _is_alive(parent):
        sleep(_WATCH_EVERY)
    os._exit(1)  # the fork server ends with its last worker


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # someone else's now: it was given to another process
        return False
    return True


@cache
def keep_to_one_core() -> None:
    """Limit a worker's libraries to one thread each."""
    from threadpoolctl import threadpool_limits

    # The environment is for what is imported later, the limit for what is here.
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    threadpool_limits(1)


def _check_deaths(deaths: Counter[int], items: Sequence[object]) -> None:
    """Give up on an item that has ended too many workers."""
    number, count = max(deaths.items(), key=lambda pair: pair[1], default=(0, 0))
    if count >= _MOST_DEATHS:
        raise WorkerError(
            f"{items[number]} ended its worker {count} times, most likely for want of "
            "memory. Give the workers more, leave that log out, or work in one process "
            "with --workers 1. (A script that starts workers must do so under "
            '`if __name__ == "__main__":`.)'
        )


# Results on disk: private, verified, and there again after a crash.

_HEADER = b"armwise part 1\n"
_DIGEST_SIZE = hashlib.sha256().digest_size


class ResultFolder:
    """Finished results, each under the digest of everything that made it.

    A result is used only if it lies in a folder of this user that no one else can write
    to, and still has the bytes that were written; anything else is made again.

    Args:
        path: The folder; made if it is not there.
        ending: What the files' names end in.
    """

    def __init__(self, path: str | Path, ending: str = ".part") -> None:
        self.path = Path(path)
        self._ending = ending
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            state = self.path.lstat()
        except OSError as error:
            raise FileError(f"{path} cannot hold parts: {error.strerror}.") from error
        if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.getuid():
            raise FileError(f"{path} is not a folder of yours. Name another for parts.")
        if state.st_mode & 0o077:
            self.path.chmod(0o700)

    def write(self, key: str, data: bytes) -> None:
        """Remember a result; it appears whole or not at all."""
        write_atomically(self._file(key), _HEADER + _seal(key, data) + data)

    def read(self, key: str) -> bytes | None:
        """Return a result, or None if there is none that is sound."""
        try:
            content = self._file(key).read_bytes()
        except OSError:
            return None
        data = content[len(_HEADER) + _DIGEST_SIZE :]
        return data if content.startswith(_HEADER + _seal(key, data)) else None

    def _file(self, key: str) -> Path:
        return self.path / f"{key}{self._ending}"


def digest(*things: object) -> str:
    """Name a result by all that decides on it, each of which tells itself by repr."""
    return hashlib.sha256(repr(things).encode()).hexdigest()


def _seal(key: str, data: bytes) -> bytes:
    """Digest of key and content: a file that was renamed is as invalid as a changed."""
    return hashlib.sha256(key.encode() + data).digest()
