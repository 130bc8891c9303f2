"""armwise simulate: let a simulated arm follow a motion, and keep the log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from armwise.cli.arguments import ArmName, Duration, Seed, number, output_file
from armwise.cli.output import AsJson, console, print_json

STIFFNESS, DAMPING = 400.0, 40.0
"""Of the arm that follows, per unit of inertia [1/s²], [1/s]: 3 Hz, critical."""


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
    """Run a simulated arm along a random periodic motion and write what it measured.

    Example: armwise simulate panda --seed 1 -o run1.csv
    """
    from armwise.arms import load_arm
    from armwise.cli.output import progress_bar
    from armwise.motions import random_motion
    from armwise.recordings import write_recording

    described = load_arm(arm)
    motion = random_motion(described, seed, duration)
    with progress_bar("Simulate", quiet=json):
        recording = _run(described, motion, seed, mujoco, torque_noise, encoder_counts)
    write_recording(_measured(recording), output)
    rows = len(next(iter(recording.channels.values())).time)
    if json:
        print_json({"log": str(output), "rows": rows, "seconds": motion.duration})
        return
    console().print(f"{rows} rows, {motion.duration:g} s: {output}")


def _run(
    arm: Any, motion: Any, seed: int, mujoco: bool, torque_noise: float, counts: int
) -> Any:
    import numpy as np

    from armwise.control import ComputedTorque
    from armwise.errors import ArmError, PlantDiverged
    from armwise.identification import largest_torque
    from armwise.plants import Encoder, MujocoArm, SimulatedArm, TorqueSensor, run

    size = largest_torque(arm, motion)
    sensors: list[Any] = [
        Encoder(resolution=2 * np.pi / counts),
        TorqueSensor(noise_std=torque_noise * size),
    ]
    kind = MujocoArm if mujoco else SimulatedArm
    plant = kind(arm, sensors=sensors, seed=seed)
    try:
        return run(plant, ComputedTorque(arm, STIFFNESS, DAMPING), motion)
    except PlantDiverged as problem:
        raise ArmError(
            f"{arm.name} ran away; nothing was written. Can bodies have its inertias? "
            "armwise inspect tells."
        ) from problem


def _measured(recording: Any) -> Any:
    """Keep what a real arm's log would hold."""
    return recording.select(
        name for name in recording.channels if name.split("_")[0] in ("q", "tau")
    )
