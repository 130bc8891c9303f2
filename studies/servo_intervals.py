"""Servos with known truth: intervals that hold it, contact, and random starts.

Two-joint arms whose servos are drawn at random move from commands, in our rollouts or
in MuJoCo; their positions are rounded to an encoder's ticks. In the last motion of
every arm a wall stops one joint.

    python -m studies.servo_intervals --runs 20
    python -m studies.servo_intervals --runs 100 --simulator mujoco --processes 16
    python -m studies.servo_intervals --runs 10 --zeros
    python -m studies.servo_intervals --starts 10
    python -m studies.servo_intervals --starts 10 --arm so101.urdf --logs move*.parquet
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

import armwise as aw
from armwise.arms import Arm
from armwise.recordings import Channel, Recording
from armwise.servos import (
    PARAMETERS,
    Servo,
    identify_servo,
    set_points,
    write_servo_mjcf,
)

TICK = 2.0 * np.pi / 4096
NAMES = ("stiffness", "damping", "coulomb", "armature", "delay", "acceleration")
MOTIONS = 5

_LINK = """<link name="l{k}"><inertial><origin xyz="0 0 {c}"/><mass value="{m}"/>
<inertia ixx="{i}" iyy="{i}" izz="{i}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j{k}" type="revolute"><parent link="{parent}"/><child link="l{k}"/>
<origin xyz="0 0 {z}"/><axis xyz="0 1 0"/>
<limit lower="-3" upper="3" effort="5" velocity="20"/></joint>"""


def drawn_arm(random: np.random.Generator, folder: Path) -> Arm:
    """Draw an arm of two links that swing in one vertical plane."""
    links = []
    for k in range(2):
        m, c = random.uniform(0.08, 0.25), -random.uniform(0.05, 0.12)
        i, parent, z = 0.3 * m * c * c, ("base", "l0")[k], (0.0, -0.12)[k]
        links.append(_LINK.format(k=k, c=c, m=m, i=i, parent=parent, z=z))
    path = folder / "arm.urdf"
    path.write_text(f'<robot name="two"><link name="base"/>{"".join(links)}</robot>')
    return aw.load_arm(path)


def drawn_servo(random: np.random.Generator, arm: Arm) -> Servo:
    """Draw servos of one type, some percent apart."""
    values = {name: np.full(2, p.absent) for name, p in PARAMETERS.items()}
    middle = {
        "stiffness": 10.0 ** random.uniform(0.6, 1.1),
        "damping": 10.0 ** random.uniform(-0.8, -0.3),
        "coulomb": 10.0 ** random.uniform(-1.5, -1.0),
        "armature": 10.0 ** random.uniform(-2.5, -1.9),
        "delay": random.uniform(0.005, 0.03),
        "acceleration": random.uniform(30.0, 90.0),
    }
    for name, value in middle.items():
        apart = 0.0 if name in ("delay", "acceleration") else 0.05
        values[name] = value * np.exp(apart * random.normal(size=2))
    zeros = {name: np.zeros(2) for name in values}
    return Servo(arm, np.ones(2), values, zeros)


def commands(random: np.random.Generator) -> np.ndarray:
    """Draw 16 s of commands at 50 Hz: sines, steps and rests."""
    t = np.arange(0.0, 14.0, 0.02)
    columns = []
    for _ in range(2):
        sines = 0.2 * np.sin(2 * np.pi * random.uniform(0.15, 0.3) * t)
        sines += 0.15 * np.sin(2 * np.pi * random.uniform(0.5, 1.3) * t)
        steps = random.uniform(-0.3, 0.3, 8)[(t / 14.0 * 7.99).astype(int)]
        columns.append(0.4 + np.where(np.sin(0.9 * t) > 0, sines, 0.0) + steps)
    moving = np.column_stack(columns)
    rests = [np.tile(moving[k], (50, 1)) for k in (0, -1)]
    return np.round(np.vstack([rests[0], moving, rests[1]]) / TICK) * TICK


def recording(
    time: np.ndarray, q: np.ndarray, command: np.ndarray, k: int
) -> Recording:
    """Return a log of rounded positions."""
    extra = {f"command_{j + 1}": Channel(time, x) for j, x in enumerate(command.T)}
    rounded = np.round(q / TICK) * TICK
    return Recording.from_arrays(time, q=rounded, extra=extra, source=f"motion{k}")


def simulated(servo: Servo, command: np.ndarray, k: int, by: str) -> Recording:
    """Return what the servos do, by our rollouts or by MuJoCo."""
    time = np.arange(len(command)) * 0.02
    start = np.tile(command[0], (len(time), 1))
    bare = recording(time, start, command, k)
    if by == "ours":
        return recording(time, servo.predict(bare), command, k)
    import mujoco

    with tempfile.TemporaryDirectory() as folder:
        write_servo_mjcf(servo, Path(folder) / "servo.xml")
        model = mujoco.MjModel.from_xml_path(str(Path(folder) / "servo.xml"))
    # MuJoCo damps by the speed after each step, which weighs like half a step's
    # damping: an eighth of a millisecond's here, within the intervals.
    model.opt.timestep = 0.00025
    data = mujoco.MjData(model)
    data.qpos[:] = start[0]
    points = set_points(servo, servo.motion(bare), model.opt.timestep)
    rows = [start[0]]
    for step, point in enumerate(points, start=1):
        data.ctrl[:] = point
        mujoco.mj_step(model, data)
        if step % 80 == 0:
            rows.append(data.qpos.copy())
    # The last stamp falls between two steps: it repeats the one before.
    rows += rows[-1:] * (len(time) - len(rows))
    return recording(time, np.array(rows[: len(time)]), command, k)


def logs(
    servo: Servo, random: np.random.Generator, by: str, wall: bool
) -> list[Recording]:
    """Return the motions of one arm; a wall stands in the last if asked for."""
    results = []
    for k in range(MOTIONS):
        command = commands(random)
        used = servo
        if wall and k == MOTIONS - 1:
            # Only our rollouts have walls; 0.15 rad short of the farthest command.
            upper = np.array([np.inf, float(command[:, 1].max()) - 0.15])
            used = replace(servo, values=dict(servo.values) | {"upper": upper})
        results.append(simulated(used, command, k, "ours" if used is not servo else by))
    return results


class Trial(NamedTuple):
    """An arm with known servos, its motions, and what was made of them."""

    truth: Servo
    motions: list[Recording]
    servo: Servo | None = None


def drawn_trial(seed: int, by: str) -> Trial:
    """Draw an arm, its servos, and motions of which the last meets a wall."""
    random = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        arm = drawn_arm(random, Path(folder))
    true = drawn_servo(random, arm)
    return Trial(true, logs(true, random, by, wall=True))


def identified(trial: Trial, backend: str = "c") -> Trial:
    """Identify the servos of a trial."""
    servo = identify_servo(trial.truth.arm, trial.motions, backend=backend)
    return trial._replace(servo=servo)


class Counts:
    """Truths inside, outside and without an interval; walls found, and false ones."""

    def __init__(self) -> None:
        self.inside = {name: [0, 0, 0] for name in NAMES}
        self.runs = self.walls = self.false = 0
        self.worst: list[tuple[float, str, int]] = []

    def add(self, trial: Trial) -> None:
        """Count one trial."""
        assert trial.servo is not None
        last = f"motion{MOTIONS - 1}"
        for name in NAMES:
            for j in range(2):
                std = trial.servo.std[name][j]
                off = abs(trial.servo.values[name][j] - trial.truth.values[name][j])
                if not np.isfinite(std):
                    self.inside[name][2] += 1
                else:
                    self.inside[name][int(off > 1.96 * std)] += 1
                    self.worst.append((float(off / max(std, 1e-300)), name, self.runs))
        self.runs += 1
        self.walls += any(last in name for name in trial.servo.contact)
        self.false += any(last not in name for name in trial.servo.contact)

    def join(self, other: Counts) -> None:
        """Add the counts of later arms."""
        for name, more in other.inside.items():
            self.inside[name] = [
                a + b for a, b in zip(self.inside[name], more, strict=True)
            ]
        self.worst += [(size, name, run + self.runs) for size, name, run in other.worst]
        self.runs += other.runs
        self.walls += other.walls
        self.false += other.false

    def lines(self) -> list[str]:
        """Return what was counted."""
        total = np.sum(list(self.inside.values()), axis=0)
        known = max(int(total[0] + total[1]), 1)
        far = ", ".join(
            f"{name} of arm {run} {size:.1f}"
            for size, name, run in sorted(self.worst, reverse=True)[:5]
        )
        return [
            "inside, outside, unknown:",
            *(
                f"  {n:14s} {c[0]:4d} {c[1]:4d} {c[2]:4d}"
                for n, c in self.inside.items()
            ),
            f"95 % intervals hold {100.0 * total[0] / known:.1f} % of {known} values.",
            f"Farthest off, in standard deviations: {far}.",
            f"The wall was found in {self.walls} of {self.runs} arms, another in "
            f"{self.false}.",
        ]


def intervals(runs: int, by: str, seed: int, backend: str, processes: int) -> None:
    """Count truths inside 95 % intervals, and walls that were found."""
    counts = Counts()
    jobs = [(seed + run, by, backend) for run in range(runs)]
    # Fresh processes: threads of rollouts do not survive a fork.
    with get_context("spawn").Pool(processes) as pool:
        for one in pool.imap(_counted, jobs):
            counts.join(one)
            print(f"run {counts.runs}: {counts.inside}", flush=True)
    print("\n".join(counts.lines()))


def _counted(job: tuple[int, str, str]) -> Counts:
    """Count one arm."""
    seed, by, backend = job
    counts = Counts()
    counts.add(identified(drawn_trial(seed, by), backend))
    return counts


def wrong_zeros(runs: int, seed: int) -> None:
    """Put joints 5° to 20° off, none in every third arm, and look for them."""
    inside = told = wrong = 0
    for run in range(runs):
        random = np.random.default_rng(seed + run)
        with tempfile.TemporaryDirectory() as folder:
            arm = drawn_arm(random, Path(folder))
            true = drawn_servo(random, arm)
            size, side = random.uniform(5.0, 20.0, 2), random.choice([-1.0, 1.0], 2)
            zeros = np.radians(size * side) if run % 3 else np.zeros(2)
            true = replace(true, values=dict(true.values) | {"zero": zeros})
            servo = identify_servo(arm, logs(true, random, "ours", wall=False))
        off, std = servo.values["zero"] - zeros, servo.std["zero"]
        inside += int(np.sum(np.abs(off) <= 1.96 * std))
        said = any("description's zero" in note for note in servo.notes)
        told += int(said and bool(zeros.any()))
        wrong += int(said and not zeros.any())
        print(
            f"run {run + 1}: {np.degrees(zeros).round(1)} found "
            f"{np.degrees(servo.values['zero']).round(1)} ± "
            f"{np.degrees(1.96 * std).round(1)} deg",
            flush=True,
        )
    put = runs - len(range(0, runs, 3))
    print(f"95 % intervals hold {inside} of {2 * runs} zeros; wrong zeros were told in")
    print(f"{told} of {put} arms that had them, and in {wrong} of {runs - put} others.")


def random_starts(
    count: int, arm: Arm, motions: Sequence[Recording], first: int, backend: str
) -> None:
    """Compare the errors that other starting points lead to."""
    errors = []
    for start in range(first, first + count):
        servo = identify_servo(arm, motions, seed=start, backend=backend)
        assert servo.fit is not None
        errors.append(1e3 * servo.fit.joints)
        print(f"start {start}: {errors[-1].mean():.4f} mrad", flush=True)
    joints = np.array(errors)
    for name, own in (
        ("all joints", joints.mean(axis=1)),
        *((joint.name, joints[:, j]) for j, joint in enumerate(arm.joints)),
    ):
        best = float(own.min())
        near = int(np.sum(own <= 1.05 * best))
        print(
            f"{name}: {near} of {count} starts are within 5 % of the best, "
            f"{best:.4f} mrad; the worst is {own.max() / best:.3f} of it"
        )


def main() -> None:
    """Run the study that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="arms to draw")
    parser.add_argument("--starts", type=int, default=0, help="starts of one arm")
    parser.add_argument("--simulator", choices=("ours", "mujoco"), default="ours")
    parser.add_argument("--backend", choices=("c", "cuda"), default="c")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1, help="arms at once")
    parser.add_argument("--zeros", action="store_true", help="joints 5° to 20° off")
    parser.add_argument("--arm", help="URDF of a real arm, for --starts")
    parser.add_argument("--logs", nargs="+", default=[], help="its recordings")
    words = parser.parse_args()
    if words.starts and words.arm:
        arm = aw.load_arm(words.arm)
        recorded = [aw.read_recording(path, arm=arm) for path in words.logs]
        random_starts(words.starts, arm, recorded, words.seed, words.backend)
    elif words.starts:
        random = np.random.default_rng(words.seed)
        with tempfile.TemporaryDirectory() as folder:
            arm = drawn_arm(random, Path(folder))
        drawn = logs(drawn_servo(random, arm), random, words.simulator, wall=False)
        random_starts(words.starts, arm, drawn, 0, words.backend)
    elif words.zeros:
        wrong_zeros(words.runs, words.seed)
    else:
        intervals(words.runs, words.simulator, words.seed, words.backend,
                  words.processes)  # fmt: skip


if __name__ == "__main__":
    main()
