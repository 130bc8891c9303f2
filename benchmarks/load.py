"""Loads: time per sample online, time of a fit, and coverage of the intervals.

    python benchmarks/load.py [--runs 200]

The peer is the plain recursion as textbooks print it: NumPy regressor, inverse every
step, measured in the same run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from armwise.loads import OnlineLoad, identify_load
from tests.loads import rig


def best_of(function: Callable[[], object], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def textbook(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, w: np.ndarray) -> None:
    from armwise.dynamics.wrench import HeldBody

    body = HeldBody(rig.puma(), "wrist", "numpy")
    information = 1e-6 * np.eye(16)
    vector = np.zeros(16)
    for one in zip(q, qd, qdd, w, strict=True):
        H = np.hstack([body.regressor(*one[:3]), np.eye(6)])
        information = 0.999 * information + H.T @ H
        vector = 0.999 * vector + H.T @ one[3]
        np.linalg.inv(information) @ vector


def online() -> None:
    t = np.arange(2000) / 1000.0
    q, qd, qdd = rig.motion(5.0).sample(t)
    w = rig.body().regressor(q, qd, qdd) @ rig.BRICK.vector
    w = w + 0.2 * np.random.default_rng(0).normal(size=w.shape)
    load = OnlineLoad(rig.puma())

    def single() -> None:
        load.reset()
        for i in range(2000):
            load.update(q[i], qd[i], qdd[i], w[i])

    def blocks() -> None:
        load.reset()
        for i in range(0, 2000, 100):
            part = slice(i, i + 100)
            load.update(q[part], qd[part], qdd[part], w[part])

    peer = best_of(lambda: textbook(q[:200], qd[:200], qdd[:200], w[:200]), 2) / 200
    for name, function in (("singly", single), ("blocks of 100", blocks)):
        each = best_of(function) / 2000
        print(
            f"online, {name}: {1e6 * each:.1f} µs a sample, {peer / each:.1f} times "
            f"the textbook's {1e6 * peer:.0f} µs"
        )


def fit() -> None:
    data = rig.samples(duration=10.0, bias=1.0, drift=1.0)
    took = best_of(lambda: identify_load(data, rig.puma()), 3)
    print(f"identify_load, 2000 samples: {1e3 * took:.0f} ms")


def coverage(runs: int) -> None:
    inside = []
    for seed in range(runs):
        data = rig.samples(duration=5.0, bias=1.0, drift=1.0, seed=seed)
        found = identify_load(data, rig.puma(), checked=False)
        low, high = found.interval(0.95).T
        inside.append((low < rig.BAR.vector) & (rig.BAR.vector < high))
    each = 100.0 * np.mean(inside, axis=0)
    print(
        f"coverage of 95 % intervals over {runs} runs, bias and drift present: "
        f"{each.mean():.1f} %, per parameter {each.min():.1f} to {each.max():.1f} %"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    chosen = parser.parse_args()
    online()
    fit()
    coverage(chosen.runs)
