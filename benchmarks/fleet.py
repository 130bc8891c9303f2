"""A fleet: many logs on two workers, and defective arms found and named by their logs.

The logs are synthetic: `panda` at 1 kHz, 100 s each, positions and torques as 32-bit
floats (what loggers write; 20,000,000 rows take 1.2 GB of temporary space).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from benchmarks.figures import Row

import armwise as aw
from armwise.arms import Arm, Drive
from armwise.control import PD, Feedforward
from armwise.fleets import FleetEstimate, identify_fleet
from armwise.fleets.defects import point_mass
from armwise.identification.coverage import largest_torque, random_motion
from armwise.recordings import Recording

LOGS = 200
ROWS = 100_000
ROBOTS = 20
REPETITIONS = 20
NOTHING = float("nan")


def run() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="armwise-fleet-") as folder:
        return [*scale(Path(folder)), *defects(Path(folder))]


def panda() -> Arm:
    arm = aw.load_arm("panda")
    drive = Drive(rotor_inertia=0.1, viscous=0.4, coulomb=0.4, offset=0.1)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


# Scale -------------------------------------------------------------------------------


def scale(folder: Path, logs: int = LOGS) -> list[Row]:
    """Time, memory and equality of one process and two workers."""
    arm = panda()
    paths = [write_log(arm, folder / f"R{k % ROBOTS}", k) for k in range(logs)]
    alone = {n: _timed(arm, paths[:n], 1) for n in (logs // 4, logs // 2, logs)}
    counts, times = list(alone), [one.work.seconds for one in alone.values()]
    exponent = float(np.polyfit(np.log(counts), np.log(times), 1)[0])
    one, two = alone[logs], _timed(arm, paths, 2)
    clustered = _timed(arm, paths[: logs // 4], 2, "local")
    ratio = one.work.seconds / two.work.seconds
    rate = one.work.rows / one.work.seconds
    memory = two.work.peak_memory / 1e6
    return [
        Row("two workers, one process [s]", *_seconds(two, one), ratio, "≥ 1.7"),
        Row("rows a second and core", rate, NOTHING, NOTHING, ""),
        Row("difference of two workers", distance(two, one), *[NOTHING] * 2, "≤ 1e-10"),
        Row(
            "difference on dask, a quarter",
            distance(clustered, alone[logs // 4]),
            *[NOTHING] * 2,
            "≤ 1e-10",
        ),
        Row("memory of a worker [MB]", memory, *[NOTHING] * 2, "< 300"),
        Row("exponent of time in logs", exponent, *[NOTHING] * 2, "1.00 ± 0.05"),
    ]


def write_log(arm: Arm, folder: Path, seed: int, rows: int = ROWS) -> Path:
    """Write a log of an arm along a random motion, exact but for noise."""
    rng = np.random.default_rng(seed)
    motion = random_motion(arm, seed)
    time_ = np.arange(rows) * 1e-3
    q, qd, qdd = motion.sample(time_ % motion.duration)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += rng.normal(0.0, 0.01, tau.shape) * np.abs(tau).max(axis=0)
    q = q + rng.normal(0.0, 1e-5, q.shape)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{seed:05}.parquet"
    _write(path, time_, q, tau)
    return path


def _write(path: Path, time_: np.ndarray, q: np.ndarray, tau: np.ndarray) -> None:
    import polars as pl

    columns = {"time": time_}
    for name, block in (("q", q), ("tau", tau)):
        for j, column in enumerate(block.T):
            columns[f"{name}_{j + 1}"] = column.astype(np.float32)
    pl.DataFrame(columns).write_parquet(path)


def _timed(
    arm: Arm, paths: list[Path], workers: int, cluster: str | None = None
) -> FleetEstimate:
    return identify_fleet(arm, paths, cutoff_hz=10.0, workers=workers, cluster=cluster)


def _seconds(ours: FleetEstimate, theirs: FleetEstimate) -> tuple[float, float]:
    return ours.work.seconds, theirs.work.seconds


def distance(one: FleetEstimate, other: FleetEstimate) -> float:
    """Largest difference of any robot's base parameters, relative to the largest."""
    pairs = [(one.pooled, other.pooled)]
    pairs += [(one.robots[name], other.robots[name]) for name in other.robots]
    return max(
        float(np.abs(a.base_values - b.base_values).max() / np.abs(b.base_values).max())
        for a, b in pairs
    )


# Defects -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Truth:
    """What is wrong with three robots of a simulated fleet: robot → (kind, place)."""

    defects: dict[str, tuple[str, str]]


def defects(folder: Path, repetitions: int = REPETITIONS) -> list[Row]:
    """Find and name three defects among a hundred arms, again and again."""
    found = named = false = 0
    for seed in range(repetitions):
        place = folder / f"fleet_{seed}"
        truth = simulate_fleet(place, seed)
        fleet = identify_fleet(panda(), place, cutoff_hz=10.0)
        flags = {one.robot: one.defect for one in fleet.flagged}
        found += len(flags.keys() & truth.keys())
        false += len(flags.keys() - truth.keys())
        for robot, (kind, where) in truth.items():
            guess = flags.get(robot)
            named += guess is not None and (guess.kind, guess.place) == (kind, where)
        print(seed, *[f"{one.robot}: {one.defect}" for one in fleet.flagged], sep="; ")
    total = float(3 * repetitions)
    return [
        Row("defects found, of", float(found), total, found / total, "all"),
        Row("defects named, of", float(named), total, named / total, "all"),
        Row("robots flagged falsely", float(false), NOTHING, NOTHING, "0"),
    ]


def simulate_fleet(
    folder: Path, seed: int, robots: int = 100
) -> dict[str, tuple[str, str]]:
    """Write 10 s of closed-loop motion of every robot; return who has which defect.

    Parameters spread by ±5 %. A bolt of 100 g is missing from the flange, friction of
    one joint has doubled, and one encoder of the joints that carry the arm's weight has
    slipped by 2°. (Joint 1 turns about the vertical: no torque knows its zero. Behind
    joint 4 the arm is too light for 2° to show.)
    """
    arm, rng = panda(), np.random.default_rng(seed)
    bolt, bearing, encoder = rng.choice(robots, 3, replace=False)
    joint, slipped = int(rng.integers(7)), int(rng.choice([1, 2, 3]))
    numbers = arm.parameters * rng.uniform(0.95, 1.05, (robots, arm.parameters.size))
    angle = rng.uniform(0.0, 2.0 * np.pi)
    place = np.array([0.04 * np.cos(angle), 0.04 * np.sin(angle), 0.1])
    numbers[bolt, 60:70] -= point_mass(0.1, place)
    at = [
        arm.parameter_names.index(f"{arm.joints[joint].name}.{term}")
        for term in ("viscous", "coulomb")
    ]
    numbers[bearing, at] *= 2.0
    recordings = _run([arm.with_parameters(row) for row in numbers], seed)
    for k, recording in enumerate(recordings):
        q = np.stack([recording[f"q_{j + 1}"].values for j in range(7)], axis=1)
        tau = np.stack([recording[f"tau_{j + 1}"].values for j in range(7)], axis=1)
        if k == encoder:
            q[:, slipped] += np.deg2rad(2.0)
        (folder / f"R{k:03}").mkdir(parents=True)
        _write(folder / f"R{k:03}" / "log.parquet", recording["q_1"].time, q, tau)
    return {
        f"R{bolt:03}": ("lost bolt", arm.links[6].name),
        f"R{bearing:03}": ("dragging bearing", arm.joints[joint].name),
        f"R{encoder:03}": ("slipped encoder", arm.joints[slipped].name),
    }


def _run(arms: list[Arm], seed: int) -> tuple[Recording, ...]:
    """Let every robot follow the same motion, all believing in the description."""
    arm, motion = panda(), random_motion(panda(), 0)
    size = largest_torque(arm, motion)
    sensors = [
        aw.Encoder(resolution=2 * np.pi / 2**17),
        aw.TorqueSensor(noise_std=0.01 * size),
    ]
    plant = aw.SimulatedArm(
        arm, true_arm=arms, sensors=sensors, seed=seed, batch=len(arms)
    )
    return aw.run_batch(plant, Feedforward(PD(20 * size, 2 * size), arm), motion)


if __name__ == "__main__":
    for row in run():
        print(row)
