"""Worlds: what a step costs, how cost grows, an hour of the four-bar, and rivals."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

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
from armwise.worlds.engine import WorldEngine
from benchmarks.figures import Row, best
from papers.mitchell_rivals import (
    FOUR_BAR,
    TIP,
    compare,
    four_bar_angles,
    mjcf,
    three_links,
)

NOTHING = float("nan")


def step_time(world: World, steps: int) -> float:
    """Return the time of one RK4 step of 1 ms in the compiled loop in [s]."""
    engine = WorldEngine(world, SingularValueDropping())
    start = engine.start()
    signal = engine.signal(0.0, start)[None]

    def work() -> None:
        taken = engine.loop.advance(
            start.copy(), 1e-3, signal, RungeKutta4().tableau, steps, steps
        ).taken
        assert taken == steps, f"the loop stopped after {taken} steps"

    return best(work, 200) / steps


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


def growth(
    name: str, make: Callable[[int], World], counts: list[int], steps: int, bar: str
) -> list[Row]:
    """Return times by size, and the exponent of the straight line through them."""
    times = [step_time(make(n), max(2, steps // n)) for n in counts]
    exponent = float(np.polyfit(np.log(counts), np.log(times), 1)[0])
    rows = [
        Row(f"{name} {n}: µs a step", 1e6 * t, NOTHING, NOTHING, "")
        for n, t in zip(counts, times, strict=True)
    ]
    return [*rows, Row(f"{name}: exponent", exponent, NOTHING, NOTHING, bar)]


def mujoco_step_time(world: World, steps: int = 2000) -> float:
    """Return the time of one RK4 step of 1 ms of MuJoCo's in [s]."""
    import mujoco

    model = mujoco.MjModel.from_xml_string(mjcf(world, True, 1e-3))
    data = mujoco.MjData(model)
    data.qpos[:] = world.bodies[0].q
    return best(lambda: mujoco.mj_step(model, data, nstep=steps), 10) / steps


def hour() -> list[Row]:
    """Run the driven four-bar for an hour and look at its ledger."""
    start = time.perf_counter()
    run = simulate(driven_four_bar(), 3600.0, record_every=100)
    took = time.perf_counter() - start
    turns = float(run.position("arm")[-1, 0] / (2 * np.pi))
    balance = run.ledger.relative_balance
    return [
        Row("an hour of the four-bar: s", took, NOTHING, NOTHING, "< 120"),
        Row("turns of its crank", turns, NOTHING, NOTHING, ""),
        Row("its largest deviation: m", run.largest_deviation, NOTHING, NOTHING, ""),
        Row("its ledger, relative", balance, NOTHING, NOTHING, "< 1e-6"),
    ]  # fmt: skip


def rivals() -> list[Row]:
    """Hold the same nails by others for ten seconds."""
    rows = []
    for name, (ours, *others) in compare(10.0).items():
        balance = ours.balance or NOTHING
        rows.append(
            Row(f"{name}: ledger, relative", balance, NOTHING, NOTHING, "< 1e-8")
        )
        for other in others:
            ratio = other.deviation / ours.deviation
            title = f"{name}: deviation beside {other.by}"
            rows.append(Row(title, ours.deviation, other.deviation, ratio, ">= 100"))
    return rows


def run() -> list[Row]:
    """Measure everything."""
    ours, theirs = step_time(three_links(), 1000), mujoco_step_time(three_links())
    return [
        Row("three links: µs a step", 1e6 * ours, 1e6 * theirs, theirs / ours, "< 100"),
        *growth("chain of links", chain, [8, 32, 128], 4000, "< 1.2"),
        *growth("nails in one box", nailed_box, [2, 4, 8, 16, 32], 500, "<= 3"),
        *hour(),
        *rivals(),
    ]


if __name__ == "__main__":
    for line in run():
        print(line)
