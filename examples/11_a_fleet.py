"""11: a fleet of like arms; one of them has a bearing that drags."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import armwise as aw
from armwise.arms import Drive

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "armwise-examples")

described = aw.load_arm("ddarm")
drive = Drive(viscous=0.8, coulomb=2.0, offset=0.1)
joints = tuple(replace(joint, drive=drive) for joint in described.joints)
described = replace(described, joints=joints)


def write_logs(robots: int = 16) -> None:
    """Let every robot, none quite like the others, follow the same motion."""
    rng = np.random.default_rng(0)
    numbers = described.parameters * rng.uniform(
        0.95, 1.05, (robots, described.parameters.size)
    )
    numbers[5, described.parameter_names.index("joint_2.coulomb")] *= 2.0
    sensors = (
        aw.plants.Encoder(resolution=1e-5),
        aw.plants.TorqueSensor(noise_std=[1.0, 0.5, 0.3]),
    )
    plant = aw.SimulatedArm(
        described,
        true_arm=[described.with_parameters(row) for row in numbers],
        sensors=sensors,
        seed=0,
    )
    motion = aw.motions.Sinusoid([3.0, 2.0, 1.0], 0.8, [2.0, 3.1, 4.3], 8.0)
    controller = aw.control.ComputedTorque(described, 400.0, 40.0)
    for k, recording in enumerate(aw.plants.run_batch(plant, controller, motion)):
        robot = folder / "logs" / f"robot=R{k:02}"
        robot.mkdir(parents=True, exist_ok=True)
        names = [f"{signal}_{j}" for signal in ("q", "tau") for j in (1, 2, 3)]
        aw.write_recording(recording.select(names), robot / "monday.parquet")


if __name__ == "__main__":  # the workers are processes that read this file, too
    write_logs()
    fleet = aw.identify_fleet(described, folder / "logs", group_by="robot", workers=2)
    print(f"{len(fleet.robots)} robots, {fleet.work.rows} rows")
    spread = np.sqrt(np.diag(fleet.spread))
    for text, mean, own in zip(
        fleet.problem.base.expressions, fleet.mean, spread, strict=True
    ):
        print(f"  {mean:9.4f}, robots spread by {own:.4f}  {text}")
    for flag in fleet.flagged:
        print(f"{flag.robot}: {flag.defect}, by chance {flag.false_alarm:.0e}")
