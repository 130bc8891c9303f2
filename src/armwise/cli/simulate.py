"""armwise simulate: log of a simulated arm that follows a motion."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from armwise.cli.arguments import (
    ArmName,
    Duration,
    Seed,
    load_named,
    number,
    output_file,
)
from armwise.cli.output import AsJson, console, print_json


def simulate(
    arm: ArmName,
    output: Annotated[Path, output_file("Log to write: .csv, .parquet or .mcap.")],
    duration: Duration = 10.0,
    seed: Seed = 0,
    mujoco: Annotated[bool, typer.Option(help="Simulate with MuJoCo.")] = False,
    torque_noise: Annotated[
        float, number("Noise of the torque, as a fraction of its largest.", 0.0, 100.0)
    ] = 0.01,
    encoder_counts: Annotated[
        int, number("Counts of an encoder per turn.", 1, 1e12)
    ] = 2**17,
    json: AsJson = False,
) -> None:
    """Run a simulated arm along a random periodic motion and write its log.

    Example: armwise simulate panda --seed 1 -o run1.csv
    """
    from armwise.cli.output import progress_bar
    from armwise.control import simulate_log
    from armwise.motions import random_motion
    from armwise.recordings import write_recording

    described = load_named(arm)
    motion = random_motion(described, seed, duration)
    with progress_bar("Simulate", quiet=json):
        recording = simulate_log(
            described,
            motion,
            encoder_counts=encoder_counts,
            torque_noise=torque_noise,
            mujoco=mujoco,
            seed=seed,
        )
    write_recording(recording, output)
    rows = len(next(iter(recording.channels.values())).time)
    if json:
        print_json({"log": str(output), "rows": rows, "seconds": motion.duration})
        return
    console().print(f"{rows} rows, {motion.duration:g} s: {output}")
