"""A fleet: many logs on two workers, and defective arms found and named by their logs.

The logs are synthetic: `panda` at 125 Hz, 800 s each, positions, velocities and torques
as 32-bit floats, as loggers write them: 20,000,000 rows take 1.5 GB of temporary space.
At a cut-off of 10 Hz every row becomes a sample. The logs are prepared as an earlier
run did, as on every night after the first.
"""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.arms import Arm, Drive
from armwise.control import PD, Feedforward, largest_torque
from armwise.fleets import FleetEstimate, identify_fleet
from armwise.fleets.flags import point_mass
from armwise.motions import random_motion
from armwise.recordings import Recording
from benchmarks.figures import Row

LOGS = 200
ROWS = 100_000
PER_ROBOT = 10
REPETITIONS = 20
RATE_HZ = 125.0
CUTOFF_HZ = 10.0

Tell = Callable[[str], None]
Truth = dict[str, tuple[str, str]]
"""Robot → what is wrong with it, and where."""


def run(tell: Tell = lambda text: None) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="armwise-fleet-") as folder:
        return [*scale(Path(folder, "scale")), *defects(Path(folder, "defects"), tell)]


def panda() -> Arm:
    arm = aw.load_arm("panda")
    drive = Drive(rotor_inertia=0.1, viscous=0.4, coulomb=0.4, offset=0.1)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


def figure(name: str, ours: float, bar: str) -> Row:
    return Row(name, ours, float("nan"), float("nan"), bar)


def scale(folder: Path, logs: int = LOGS) -> list[Row]:
    """Time, memory and equality: one process, two workers, dask, a worker killed."""
    arm = panda()
    paths = [write_log(arm, folder / f"R{k // PER_ROBOT:02}", k) for k in range(logs)]
    first = aw.read_recording(paths[0], arm)
    like = aw.prepare(first, CUTOFF_HZ, arm=arm).preparation
    identified = partial(identify_fleet, arm, like=like)
    alone = {n: identified(paths[:n], workers=1) for n in (logs // 4, logs // 2, logs)}
    times = {n: one.work.seconds for n, one in alone.items()}
    exponent = np.polyfit(np.log(list(times)), np.log(list(times.values())), 1)[0]
    two = identified(paths, workers=2)
    quarter, few = paths[: logs // 4], alone[logs // 4]
    killed = identified(quarter, workers=2, progress=Killer())
    clustered = identified(quarter, workers=2, cluster="local")
    seconds = (two.work.seconds, times[logs])
    return [
        Row("two workers, one [s]", *seconds, seconds[1] / seconds[0], "≥ 1.7"),
        figure("rows a second and core", alone[logs].work.rows / times[logs], ""),
        figure("two workers: difference", distance(two, alone[logs]), "≤ 1e-10"),
        figure("one killed midway: difference", distance(killed, few), "≤ 1e-10"),
        figure("on dask: difference", distance(clustered, few), "≤ 1e-10"),
        figure("memory of a worker [MB]", two.work.peak_memory / 1e6, "< 300"),
        figure("exponent of time in logs", float(exponent), "1.00 ± 0.05"),
    ]


class Killer:
    """Kills one of our workers when a third of the work is done."""

    def __init__(self) -> None:
        self._is_done = False

    def __call__(self, what: str, share: float) -> None:
        if share > 0.33 and not self._is_done:
            os.kill(active_children()[0].pid, signal.SIGKILL)
            self._is_done = True


def distance(one: FleetEstimate, other: FleetEstimate) -> float:
    """Largest difference of any base parameter, relative to the largest of them."""
    pairs = [(one.pooled, other.pooled)]
    pairs += [(one.robots[name], other.robots[name]) for name in other.robots]
    return max(
        float(np.abs(a.base_values - b.base_values).max() / np.abs(b.base_values).max())
        for a, b in pairs
    )


def write_log(arm: Arm, folder: Path, seed: int, rows: int = ROWS) -> Path:
    """Write a log of an arm along a random motion, exact but for noise."""
    rng = np.random.default_rng(seed)
    motion = random_motion(arm, seed)
    time = np.arange(rows) / RATE_HZ
    q, qd, qdd = motion.sample(time % motion.duration)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += 0.01 * np.abs(tau).max(axis=0) * rng.normal(size=tau.shape)
    path = folder / f"{seed:05}.parquet"
    q, qd = q + rng.normal(0.0, 1e-5, q.shape), qd + rng.normal(0.0, 1e-3, qd.shape)
    write_table(path, time, q=q, qd=qd, tau=tau)
    return path


def write_table(path: Path, time: np.ndarray, **signals: np.ndarray) -> None:
    import polars as pl

    path.parent.mkdir(parents=True, exist_ok=True)
    columns = {"time": time}
    for name, block in signals.items():
        for j, column in enumerate(block.T):
            columns[f"{name}_{j + 1}"] = column.astype(np.float32)
    pl.DataFrame(columns).write_parquet(path)


def defects(folder: Path, tell: Tell, repetitions: int = REPETITIONS) -> list[Row]:
    """Find and name three defects among a hundred arms, again and again."""
    found = named = false = 0
    for seed in range(repetitions):
        truth = simulate_fleet(folder / str(seed), seed)
        fleet = identify_fleet(panda(), folder / str(seed), cutoff_hz=CUTOFF_HZ)
        flags = {one.robot: one.defect for one in fleet.flagged}
        names = {robot: (d.kind, d.component) for robot, d in flags.items() if d}
        found += len(flags.keys() & truth.keys())
        named += sum(names.get(robot) == what for robot, what in truth.items())
        false += len(flags.keys() - truth.keys())
        tell(f"{seed}: " + "; ".join(f"{robot} {d}" for robot, d in flags.items()))
    total = 3.0 * repetitions
    return [
        Row("defects found, of", float(found), total, found / total, "all"),
        Row("defects named, of", float(named), total, named / total, "all"),
        figure("robots flagged falsely", float(false), "0"),
    ]


def simulate_fleet(folder: Path, seed: int, robots: int = 100) -> Truth:
    """Write 10 s of closed-loop motion of every robot; return who has which defect.

    Parameters spread by ±5 %. A bolt of 100 g is missing from the flange, friction of
    one joint has doubled, and one encoder of the joints that carry the arm's weight has
    slipped by 2°. (Joint 1 turns about the vertical: no torque knows its zero. Behind
    joint 4 the arm is too light for 2° to show.)
    """
    arm, rng = panda(), np.random.default_rng(seed)
    numbers = arm.parameters * rng.uniform(0.95, 1.05, (robots, arm.parameters.size))
    bolt, bearing, encoder = (int(r) for r in rng.choice(robots, 3, replace=False))
    joint, slipped = arm.joints[rng.integers(7)].name, int(rng.choice([1, 2, 3]))
    angle = rng.uniform(0.0, 2.0 * np.pi)
    place = np.array([0.04 * np.cos(angle), 0.04 * np.sin(angle), 0.1])
    numbers[bolt, 60:70] -= point_mass(0.1, place)
    for term in ("viscous", "coulomb"):
        numbers[bearing, arm.parameter_names.index(f"{joint}.{term}")] *= 2.0
    recordings = followed([arm.with_parameters(row) for row in numbers], seed)
    for k, recording in enumerate(recordings):
        q, tau = (
            np.stack([recording[f"{name}_{j + 1}"].values for j in range(7)], axis=1)
            for name in ("q", "tau")
        )
        if k == encoder:
            q[:, slipped] += np.deg2rad(2.0)
        path = folder / f"R{k:03}" / "log.parquet"
        write_table(path, recording["q_1"].time, q=q, tau=tau)
    return {
        f"R{bolt:03}": ("lost bolt", arm.links[6].name),
        f"R{bearing:03}": ("dragging bearing", joint),
        f"R{encoder:03}": ("slipped encoder", arm.joints[slipped].name),
    }


def followed(arms: list[Arm], seed: int) -> tuple[Recording, ...]:
    """Let every robot follow the same motion, all believing in the description."""
    arm, motion = panda(), random_motion(panda(), 0)
    size = largest_torque(arm, motion)
    sensors = [
        aw.plants.Encoder(resolution=2 * np.pi / 2**17),
        aw.plants.TorqueSensor(noise_std=0.01 * size),
    ]
    plant = aw.SimulatedArm(
        arm, true_arm=arms, sensors=sensors, seed=seed, batch=len(arms)
    )
    return aw.plants.run_batch(plant, Feedforward(PD(20 * size, 2 * size), arm), motion)


if __name__ == "__main__":
    for row in run(print):
        print(row)
