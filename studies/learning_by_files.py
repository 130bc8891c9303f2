"""Study of learning by files: four attempts of a MuJoCo arm, each written and read.

The arm takes positions (P gains as of menagerie's actuators) or torques beside a soft
PD; its description is 5 % off and knows no friction. `armwise learn` sees files alone:
the plan, and the recording of each attempt.

    python -m studies.learning_by_files --plans 1 --first 0
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm, Drive, load_arm, save_arm
from armwise.control import PD
from armwise.dynamics import Dynamics
from armwise.motions import Motion, random_motion, read_motion, write_motion
from armwise.plants import (
    Encoder,
    Measurement,
    MujocoArm,
    Tachometer,
    TorqueSensor,
    perturbed,
    run,
)
from armwise.recordings import Recording, write_recording

if TYPE_CHECKING:
    from jaxtyping import Float

STIFFNESS = {
    "panda": (4500.0, 4500.0, 3500.0, 3500.0, 2000.0, 2000.0, 2000.0),
    "ur10": (2000.0, 2000.0, 2000.0, 500.0, 500.0, 500.0),
}
"""P gains of position servos in [N m/rad]."""

DAMPING = {
    "panda": (450.0, 450.0, 350.0, 350.0, 200.0, 200.0, 200.0),
    "ur10": (400.0, 400.0, 400.0, 100.0, 100.0, 100.0),
}
"""Their damping in [N m s/rad], which MuJoCo has in the joints."""

ATTEMPTS = 4


def with_drives(arm: Arm, drives: list[Drive]) -> Arm:
    """The arm with other motors and friction."""
    pairs = zip(arm.joints, drives, strict=True)
    return replace(arm, joints=tuple(replace(j, drive=d) for j, d in pairs))


@dataclass
class Played:
    """Torques of a file, and soft feedback beside them."""

    motion: Any
    feedback: PD

    def reset(self, batch: int, period: float) -> None:
        """Begin anew."""
        self.feedback.reset(batch, period)

    def torque(
        self, t: float, reference: Any, measurement: Measurement
    ) -> Float[np.ndarray, "batch dof"]:
        """What the file says now, corrected."""
        feedback = self.feedback.torque(t, reference, measurement)
        return np.asarray(self.motion.effort_at(t) + feedback)


def learnt(folder: Path, takes: str, *more: str) -> dict[str, Any]:
    """`armwise learn` in a folder: from the plan and an attempt, the next one."""
    command = [
        sys.executable, "-m", "armwise.cli.main", "learn", "arm.urdf",
        "--motion", "plan.csv", "-o", "next.csv", "--takes", takes, "--json", *more,
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return dict(json.loads(done.stdout))


def attempts(name: str, takes: str, seed: int) -> list[float]:
    """Root mean square position error in [rad] of attempt after attempt."""
    soft = 1.0 if takes == "position" else 0.1
    stiffness = soft * np.array(STIFFNESS[name])
    damping = soft * np.array(DAMPING[name])
    described = load_arm(name)
    # Menagerie's armature: motors that descriptions leave out.
    arm = with_drives(described, [Drive(rotor_inertia=0.1)] * described.dof)
    plan = random_motion(arm, seed, 6.0)
    sample = plan.sample(np.linspace(0.0, 6.0, 300))
    peak = np.abs(Dynamics(arm).inverse_dynamics(*sample)).max(axis=0)
    servo = damping if takes == "position" else np.zeros(arm.dof)
    true = with_drives(
        arm,
        [
            Drive(0.1, viscous=0.05 * p + d, coulomb=0.2 + 0.03 * p)
            for p, d in zip(peak, servo, strict=True)
        ],
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        save_arm(perturbed(arm, 0.05, seed), folder / "arm.urdf")
        model = load_arm(folder / "arm.urdf")
        write_motion(plan, folder / "plan.csv", 200.0, model.coordinate_names)
        report = learnt(folder, takes)
        for k in range(ATTEMPTS):
            plant = MujocoArm(
                true,
                sensors=(
                    Encoder(resolution=2.0 * np.pi / 2**17),
                    Tachometer(noise_std=1e-3),
                    TorqueSensor(noise_std=0.01 * peak),
                ),
                seed=seed + k,
            )
            log = attempt(plant, plan, folder / "next.csv", model, stiffness, damping,
                          takes)  # fmt: skip
            file = f"run{k}.csv"
            write_recording(log, folder / file)
            report = learnt(folder, takes, "--attempt", file)
    return [float(error) for error in report["overall_error"]]


def attempt(
    plant: MujocoArm,
    plan: Motion,
    file: Path,
    model: Arm,
    stiffness: np.ndarray,
    damping: np.ndarray,
    takes: str,
) -> Recording:
    """Carry out a file; return what a user would have recorded."""
    following = read_motion(file, model)
    if takes == "position":
        start = plan.sample(0.0)
        # Damping is in the plant's joints.
        servo = PD(stiffness, 1e-9, velocity_reference=False)
        log = run(plant, servo, following, q=start.q, qd=start.qd)
        return log.select(x for x in log.channels if x.startswith("q_"))
    log = run(plant, Played(following, PD(stiffness, damping)), plan)
    return log.select(x for x in log.channels if x.split("_")[0] in ("q", "tau"))


def main() -> None:
    """Print what four attempts gain."""
    from argparse import ArgumentParser

    parser = ArgumentParser(description="Learning by files on MuJoCo arms.")
    parser.add_argument("--plans", type=int, default=1, help="Motions of each arm.")
    parser.add_argument("--first", type=int, default=0, help="First seed.")
    parser.add_argument("--arms", nargs="*", default=list(STIFFNESS))
    parser.add_argument("--takes", nargs="*", default=["position", "torque"])
    options = parser.parse_args()
    print("arm    takes     seed   error of each attempt [mrad]          first / last")
    for name in options.arms:
        for takes in options.takes:
            for seed in range(options.first, options.first + options.plans):
                errors = attempts(name, takes, seed)
                row = " ".join(f"{1e3 * x:8.3f}" for x in errors)
                gain = errors[0] / errors[-1]
                print(
                    f"{name:<6} {takes:<8} {seed:>5}   {row}   {gain:.1f}", flush=True
                )


if __name__ == "__main__":
    main()
