"""Workers may die; results do not change, and one that cannot be had is explained."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import dask
import distributed
import pytest

import armwise as aw
from armwise.errors import WorkerError
from armwise.fleets.identify import DaskCluster
from armwise.jobs import InProcess, ProcessPool
from tests.fleets.conftest import numbers


def doubled(item: int) -> int:
    return 2 * item


def fatal_once(folder: Path, item: int) -> int:
    """Kill the worker the first time item 3 is in hand."""
    mark = folder / "died"
    if item == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * item


def fatal(item: int) -> int:
    """Kill the worker while others are still busy with other items."""
    time.sleep(0.2)
    if item == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.3)
    return item


@pytest.mark.parametrize("engine", [InProcess(), ProcessPool(2)], ids=["here", "two"])
def test_all_items_are_done_once(engine):
    with engine:
        assert sorted(engine.run(doubled, range(7))) == [(k, 2 * k) for k in range(7)]
        assert list(engine.run(doubled, [])) == []


def test_a_worker_that_dies_is_replaced(tmp_path):
    with ProcessPool(2) as engine:
        found = sorted(engine.run(partial(fatal_once, tmp_path), range(8)))
    assert (tmp_path / "died").exists()
    assert found == [(k, 2 * k) for k in range(8)]


def test_what_kills_every_worker_is_named():
    told = r"^3 ended its worker 3 times.*--workers 1"
    with ProcessPool(2) as engine, pytest.raises(WorkerError, match=told):
        list(engine.run(fatal, range(6)))


def kill_a_worker(killed: list[int], what: str, share: float) -> None:
    """Kill one of our own worker processes after the first chunk."""
    if not killed:
        killed.append(active_children()[0].pid)
        os.kill(killed[0], signal.SIGKILL)


@pytest.fixture(scope="module")
def alone(arm, logs):
    return numbers(aw.identify_fleet(arm, logs, cutoff_hz=10.0, workers=1))


def test_a_fleet_is_the_same_after_a_worker_was_killed(arm, logs, alone):
    killed: list[int] = []
    watch = partial(kill_a_worker, killed)
    two = aw.identify_fleet(arm, logs, cutoff_hz=10.0, workers=2, progress=watch)
    assert killed
    assert abs(numbers(two) - alone).max() <= 1e-10
    assert two.work.peak_memory < 300e6


def test_a_fleet_on_dask_is_the_same_after_a_worker_was_killed(arm, logs, alone):
    killed: list[int] = []
    patience = dask.config.set({"distributed.comm.timeouts.connect": "2s"})
    with (
        patience,
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
    ):

        def kill(what: str, share: float) -> None:
            if not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        clustered = aw.identify_fleet(
            arm,
            logs,
            cutoff_hz=10.0,
            cluster=cluster.scheduler_address,
            progress=kill,
        )
    assert killed
    assert abs(numbers(clustered) - alone).max() <= 1e-10


def test_a_local_cluster_is_started_and_shows_its_dashboard():
    links: list[str] = []
    with DaskCluster("local", 1, links.append) as engine:
        assert sorted(engine.run(doubled, range(5))) == [(k, 2 * k) for k in range(5)]
    assert links
    assert links[0].startswith("http")


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr("armwise.fleets.identify._LONGEST_WAIT", 0.3)
    with pytest.raises(WorkerError, match=r"127.0.0.1:1 .*leave out --cluster"):
        DaskCluster("tcp://127.0.0.1:1", 1).__enter__()


def test_dask_that_is_not_installed_is_asked_for(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(aw.errors.MissingExtra, match=r"armwise\[cluster\]"):
        DaskCluster("local", 1).__enter__()


def test_a_script_without_a_guard_is_told(arm, logs, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import armwise as aw\n"
        f"aw.identify_fleet(aw.load_arm('two_link_uno'), {str(logs)!r}, workers=2)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    told = [line for line in done.stderr.splitlines() if "WorkerError: " in line]
    assert len(told) == 1
    assert "__main__" in told[0]


class Broken:
    """A future that fails."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def result(self) -> None:
        raise self._error


def test_what_goes_wrong_on_a_cluster_is_said_in_one_sentence():
    from concurrent.futures import CancelledError

    from armwise.fleets.identify import _result

    killed = distributed.KilledWorker("task", "worker", 3)
    with pytest.raises(WorkerError, match=r"^a\.parquet ended its worker.*memory"):
        _result(Broken(killed), "a.parquet")
    with pytest.raises(WorkerError, match=r"scheduler was lost.*same command again"):
        _result(Broken(CancelledError()), "a.parquet")
    with pytest.raises(WorkerError, match="Install the same armwise"):
        _result(Broken(ImportError("No module named 'armwise'")), "a.parquet")


def test_too_little_memory_is_said_in_one_sentence(arm, logs, monkeypatch):
    def greedy(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("armwise.fleets.job.read_chunk", greedy)
    with pytest.raises(WorkerError, match=r"0\.parquet needs more memory.*--workers 1"):
        aw.identify_fleet(arm, logs, cutoff_hz=10.0, workers=1, skip_bad_logs=True)
