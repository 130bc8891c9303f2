"""armwise simulate: log of a simulated arm that follows a motion."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from armwise.cli.arguments import (
    ArmName,
    Duration,
    Seed,
    load_named,
    number,
    output_file,
)
from armwise.cli.output import AsJson, console, print_json, warn

if TYPE_CHECKING:
    from armwise.motions import Motion

FASTEST_JOINT = 1e3
"""In [rad/s] or [m/s]: no joint's own limit is higher; theirs hold instead."""


def simulate(
    arm: ArmName,
    output: Annotated[Path, output_file("Log to write: .csv, .parquet or .mcap.")],
    duration: Duration = 10.0,
    seed: Seed = 0,
    motion: Annotated[
        Path | None,
        typer.Option(help="Motion of excite to follow (.csv, .json), approached."),
    ] = None,
    mujoco: Annotated[bool, typer.Option(help="Simulate with MuJoCo.")] = False,
    torque_noise: Annotated[
        float, number("Noise of the torque, as a fraction of its largest.", 0.0, 100.0)
    ] = 0.01,
    encoder_counts: Annotated[
        int, number("Counts of an encoder per turn.", 1, 1e12)
    ] = 2**17,
    json: AsJson = False,
) -> None:
    """Run a simulated arm along a motion, random and periodic, and write its log.

    Example: armwise simulate panda --seed 1 -o run1.csv

    Example: armwise simulate panda --motion plan.csv -o run2.csv
    """
    from armwise.cli.output import progress_bar
    from armwise.control import simulate_log
    from armwise.motions import check_limits, random_motion, read_motion, with_approach
    from armwise.recordings import write_recording

    described, approach = load_named(arm), 0.0
    if motion is None:
        followed: Motion = random_motion(
            described, seed, duration, fastest=FASTEST_JOINT
        )
    else:
        planned = read_motion(motion, described)
        followed = with_approach(planned, described)
        check_limits(followed, described)
        approach = followed.duration - planned.duration
    with progress_bar("Simulate", quiet=json):
        recording = simulate_log(
            described,
            followed,
            encoder_counts=encoder_counts,
            torque_noise=torque_noise,
            mujoco=mujoco,
            seed=seed,
        )
    for note in recording.notes:
        warn(note)
    write_recording(recording, output)
    rows = len(next(iter(recording.channels.values())).time)
    if json:
        report = {"log": str(output), "rows": rows, "seconds": followed.duration}
        print_json(
            {**report, "approach_seconds": approach, "notes": list(recording.notes)}
        )
        return
    before = f", the plan from {approach:.2f} s on" if approach else ""
    console().print(f"{rows} rows, {followed.duration:g} s{before}: {output}")
