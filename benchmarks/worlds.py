"""Worlds: what a step costs, how cost grows, an hour of the four-bar, and rivals.

python benchmarks/worlds.py [--hour] [--json]
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np

from armwise.papers.mitchell_rivals import (
    FOUR_BAR,
    TIP,
    compare,
    four_bar_angles,
    three_links,
)
from armwise.worlds import (
    ArticulatedBody,
    JointMotor,
    Point,
    PointToLine,
    PointToNail,
    RigidBody,
    RungeKutta4,
    SingularValueDropping,
    World,
    box,
    planar_chain,
    simulate,
)
from armwise.worlds.engine import Engine


def best_of(work: Callable[[], None], repeats: int = 200) -> float:
    """Return the shortest of several runs in [s]: the least disturbed one."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def step_time(world: World, steps: int) -> float:
    """Return the time of one RK4 step of 1 ms in the compiled loop in [s]."""
    engine = Engine(world, SingularValueDropping())
    start = engine.start()
    signal = engine.signal(0.0, start)[None]

    def work() -> None:
        taken = engine.loop.advance(
            start.copy(), 1e-3, signal, RungeKutta4().tableau, steps, steps
        ).taken
        assert taken == steps, f"the loop stopped after {taken} steps"

    return best_of(work) / steps


def chain(count: int) -> World:
    """Hang a chain between two nails."""
    q = np.full(count, -2.0 / count)
    q[0] = 1.0
    body = ArticulatedBody("arm", planar_chain(count, 1 / count, 1 / count), q=tuple(q))
    angles = np.cumsum(q)
    tip = (float(np.cos(angles).mean()), 0.0, float(-np.sin(angles).mean()))
    return World((body,), (PointToNail("nail", TIP, tip),))


def nailed_box(count: int) -> World:
    """Hold one box by many points."""
    places = np.random.default_rng(0).uniform(-0.5, 0.5, (count, 3))
    body = RigidBody.from_segments("box", [box(1.0, (1, 1, 1))])
    nails = tuple(
        PointToNail(f"n{k}", Point("box", tuple(p)), tuple(p))
        for k, p in enumerate(places)
    )
    return World((body,), nails)


def driven_four_bar() -> World:
    """Drive the four-bar by a motor against friction."""
    lengths, masses, ground = FOUR_BAR
    arm = planar_chain(3, lengths, masses, viscous=1.0)
    body = ArticulatedBody("arm", arm, q=four_bar_angles(-np.pi / 2))
    return World(
        (body,),
        (PointToLine("ground", TIP, (ground, 0.0, 0.0), (0, 1, 0)),),
        (JointMotor("motor", "arm", "joint_1", 8.0),),
    )


def growth(make: Callable[[int], World], counts: list[int], steps: int) -> dict:
    """Return times by size, and the exponent of the straight line through them."""
    times = {n: step_time(make(n), max(2, steps // n)) for n in counts}
    exponent = np.polyfit(np.log(counts), np.log([times[n] for n in counts]), 1)[0]
    micro = {str(n): round(1e6 * t, 3) for n, t in times.items()}
    return {"microseconds_per_step": micro, "exponent": float(exponent)}


def hour(seconds: float) -> dict:
    """Run the driven four-bar for long and look at its ledger."""
    start = time.perf_counter()
    run = simulate(driven_four_bar(), seconds, record_every=1000)
    took = time.perf_counter() - start
    return {
        "simulated_s": seconds,
        "took_s": round(took, 2),
        "largest_deviation_m": run.largest_deviation,
        "relative_balance": run.ledger.relative_balance,
        "work_of_motor_J": float(run.ledger.work_of("actuator")[-1]),
        "turns": float(run.position("arm")[-1, 0] / (2 * np.pi)),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hour", action="store_true", help="run the whole hour")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    report = {
        "three_links_step_us": 1e6 * step_time(three_links(), 1_000),
        "chain": growth(chain, [8, 32, 128], 4_000),
        "constraints_on_one_body": growth(nailed_box, [2, 4, 8, 16, 32], 500),
        "long_run": hour(3600.0 if options.hour else 600.0),
        "rivals": {
            name: [vars(held) for held in found] for name, found in compare(5.0).items()
        },
    }
    if options.json:
        print(json.dumps(report, indent=2))
        return
    for name, value in report.items():
        print(name, json.dumps(value, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
