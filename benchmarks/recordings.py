"""How fast a big log is read and prepared, and how much memory that takes.

A fresh process reads a CSV of 1,000,000 rows × 22 columns and prepares it with the
arm's own dynamics; the peer is polars reading the same file, and nothing more.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.figures import Row

ROWS = 1_000_000

OURS = """
import json, resource, sys, time
import armwise as aw
arm = aw.load_arm("panda")
start, cpu = time.perf_counter(), time.process_time()
data = aw.prepare(aw.read_recording(sys.argv[1], arm=arm), arm=arm)
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "samples": len(data)}))
"""

THEIRS = """
import json, resource, sys, time
import polars as pl
start, cpu = time.perf_counter(), time.process_time()
frame = pl.read_csv(sys.argv[1])
wall, cpu = time.perf_counter() - start, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"wall": wall, "cpu": cpu, "peak": peak, "samples": frame.height}))
"""


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write_log(path)
        ours, theirs = measure(OURS, path), measure(THEIRS, path)
    return [
        _row(
            "read and prepare 1,000,000 × 22, wall [s]", ours, theirs, "wall", "< 5 s"
        ),
        _row("the same, processor time [s]", ours, theirs, "cpu", ""),
        _row("peak memory [MB]", ours, theirs, "peak", "< 1500 MB"),
    ]


def _row(name: str, ours: dict, theirs: dict, key: str, bar: str) -> Row:
    return Row(name, ours[key], theirs[key], ours[key] / theirs[key], bar)


def measure(program: str, path: Path) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))


def write_log(path: Path) -> None:
    """Write seven joints in slow motion with noise on every signal."""
    import polars as pl

    rng = np.random.default_rng(0)
    time = np.arange(ROWS) * 1e-3
    columns = {"time": time}
    omega = 2 * np.pi * rng.uniform(0.1, 0.5, 7)
    centre = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.8, 0.0])
    for j in range(7):
        q = centre[j] + 0.5 * np.sin(omega[j] * time)
        qd = 0.5 * omega[j] * np.cos(omega[j] * time)
        tau = np.sign(qd) + qd + 5 * np.cos(q) - 3 * omega[j] ** 2 * q
        columns[f"q_{j + 1}"] = q + rng.normal(0, 1e-5, ROWS)
        columns[f"qd_{j + 1}"] = qd + rng.normal(0, 1e-3, ROWS)
        columns[f"tau_{j + 1}"] = tau + rng.normal(0, 0.1, ROWS)
    pl.DataFrame(columns).write_csv(path)


if __name__ == "__main__":
    for row in run():
        print(row)
