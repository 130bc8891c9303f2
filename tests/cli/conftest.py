"""The command line in this very process, and a folder with files to work on."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from typer.testing import CliRunner

import armwise as aw
from armwise.cli import main as cli
from tests.loads.test_load_wrist_log import _write as write_wrist_logs
from tests.servos import rig as servo_rig
from tests.shared_folders import shared_folder

BRICK = aw.arms.InertialParameters.from_center_of_mass(
    1.2, [0.02, -0.01, 0.06], np.diag([0.004, 0.006, 0.009])
)
WORLDS = Path(__file__).parents[2] / "examples" / "worlds"


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def armwise(capsys, monkeypatch) -> Callable[..., Said]:
    """Run a command; return its exit code and what it printed."""

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["armwise", *map(str, words)])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        return Said(exit_.value.code or 0, *capsys.readouterr())

    return run


def run_quietly(*words: object) -> None:
    """Run a command for what it writes."""
    done = CliRunner().invoke(cli.app, [*map(str, words), "--json"])
    assert done.exit_code == 0, (words, done.output, done.exception)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory) -> Path:
    """The files that the examples of --help name; not to be changed."""
    return shared_folder(tmp_path_factory, "prepared", prepare_files)


def prepare_files(folder: Path) -> None:
    for seed in (1, 2):
        run_quietly(
            "simulate", "panda", "--seed", seed, "-o", folder / f"run{seed}.csv"
        )
    run_quietly("simulate", "ddarm", "--duration", 3, "-o", folder / "ddarm.csv")
    run_quietly(
        "identify", "panda", folder / "run1.csv", "--friction", "linear",
        "-o", folder / "out",
    )  # fmt: skip
    for name, held in (("held", BRICK), ("empty", None)):
        write_wrist_log(held, folder / f"{name}.csv")
    write_fleet(folder)
    for name, mass in (("a", 0.0), ("b", 5.0)):
        write_loaded_log(mass, folder / f"{name}.csv")
    write_wrist_logs(folder)  # wrench.csv, accelerometer.csv, orientation.csv
    write_servo_logs(folder)
    shutil.copy(WORLDS / "nail.toml", folder)
    with contextlib.chdir(folder):
        write_practice(aw.load_arm("panda"))
        write_held_load(aw.load_arm("panda"), "link_7")


def write_servo_logs(folder: Path) -> None:
    """One link that a servo turns, under the name of an arm people have."""
    robot = servo_rig.arm(folder, joints=1)
    Path(folder / "fingers1.urdf").rename(folder / "so101.urdf")
    aw.servos.write_servo(servo_rig.truth(robot), folder / "servo.json")
    for seed in (1, 2):
        log = servo_rig.recording(servo_rig.truth(robot), seed)
        aw.write_recording(log, folder / f"move{seed}.csv")


def write_practice(arm: aw.Arm) -> None:
    """A plan of two seconds and the log of a stiff arm that follows it."""
    middle = aw.control.middle_posture(arm)
    plan = aw.motions.Quintic(middle - 0.4, middle + 0.4, 2.0)
    aw.motions.write_motion(plan, "plan.csv", 100.0, arm.coordinate_names)
    inertia = aw.control.effective_inertia(arm, middle)
    servo = aw.control.PD(4000.0 * inertia, 120.0 * inertia, velocity_reference=False)
    log = aw.run(aw.SimulatedArm(arm), servo, plan)
    names = [name for name in log.channels if name.startswith("q_")]
    for name in ("attempt.csv", "try.csv"):
        aw.write_recording(log.select(names), name)


def write_held_load(arm: aw.Arm, frame: str) -> None:
    """A log with the wrench of a held box, its estimate, and a catalogue with it."""
    from armwise.dynamics import HeldBody
    from armwise.loads import write_load_estimate
    from tests.loads import rig

    t = np.arange(2000) / 200.0
    motion = aw.motions.random_motion(arm, 1, 10.0).sample(t)
    wrench = HeldBody(arm, frame).regressor(*motion) @ rig.BRICK.vector
    header = ["time", *(f"q_{j + 1}" for j in range(arm.dof))]
    header += ["fx", "fy", "fz", "tx", "ty", "tz"]
    columns = np.column_stack([t, *motion.q.T, *wrench.T])
    names = ",".join(header)
    np.savetxt("pick.csv", columns, delimiter=",", comments="", header=names)
    estimate = aw.identify_load(rig.samples(rig.BRICK), rig.puma())
    Path("load").mkdir()
    write_load_estimate(estimate, "load/load.json")
    brick, inertia = rig.BRICK, rig.BRICK.central_inertia
    entries = zip(("ixx", "iyy", "izz"), np.diag(inertia), strict=True)
    lines = [f"{name} = {value!r}" for name, value in entries]
    Path("objects.toml").write_text(
        f'[[objects]]\nname = "bracket"\nmass = {brick.mass!r}\nmass_std = 0.01\n'
        f"center_of_mass = {brick.center_of_mass.tolist()!r}\n"
        + "\n".join(lines).replace("np.float64(", "").replace(")", "")
        + "\n"
    )


def write_fleet(folder: Path) -> None:
    """Let the two runs be those of two robots."""
    for k in (1, 2):
        place = folder / "logs" / f"robot=arm_{k}"
        place.mkdir(parents=True)
        log = aw.read_recording(folder / f"run{k}.csv")
        aw.write_recording(log, place / "run.parquet")


def write_loaded_log(mass: float, path: Path) -> None:
    """Let the direct-drive arm wave a body of a mass in [kg], and write the log."""
    arm = aw.load_arm("ddarm").with_gravity([0.0, 0.0, -9.81])
    body = aw.arms.InertialParameters.from_center_of_mass(
        mass, [0.0, 0.0, 0.0], np.zeros((3, 3))
    )
    payload = aw.plants.Payload(arm.links[-1].name, body) if mass else None
    sensors = (aw.plants.Encoder(), aw.plants.TorqueSensor(0.1))
    plant = aw.SimulatedArm(arm, sensors=sensors, payload=payload, seed=0)
    motion = aw.motions.Sinusoid([3.0, 2.0, 1.0], 0.8, [2.0, 3.1, 4.3], 4.0)
    log = aw.run(plant, aw.control.ComputedTorque(arm, 400.0, 40.0), motion)
    measured = [name for name in log.channels if name.split("_")[0] in ("q", "tau")]
    aw.write_recording(log.select(measured), path)


def write_wrist_log(held: aw.arms.InertialParameters | None, path: Path) -> None:
    """Let a PUMA with a wrist sensor wave a body, or nothing, and write the log."""
    arm = aw.load_arm("puma600")
    plant = aw.SimulatedArm(
        arm,
        sensors=(
            aw.plants.Encoder(),
            aw.plants.TorqueSensor(0.1),
            aw.plants.WristSensor("wrist", 0.05),
        ),
        payload=None if held is None else aw.plants.Payload("wrist", held),
        seed=0,
    )
    size = 0.15 * np.random.default_rng(3).normal(size=(2, 6, 3))
    motion = aw.motions.Fourier([0, -1, 1, 0, 0.3, 0], size[0], size[1], 0.2)
    log = aw.run(plant, aw.control.ComputedTorque(arm, 400.0, 40.0), motion)
    kinds = ("q", "tau", *["fx", "fy", "fz", "tx", "ty", "tz"])
    measured = {k: c for k, c in log.channels.items() if k.split("_")[0] in kinds}
    aw.write_recording(log.select(measured), path)


@pytest.fixture
def workplace(prepared, tmp_path, monkeypatch) -> Path:
    """A copy of the prepared files, as the current folder."""
    folder = tmp_path / "workplace"
    shutil.copytree(prepared, folder, copy_function=_link)
    monkeypatch.chdir(folder)
    return folder


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)  # files are replaced, never written into
