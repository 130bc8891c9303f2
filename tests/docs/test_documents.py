"""What the documents show is run: the tutorial first, then the how-to pages on it."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.cli.main import COMMANDS
from armwise.regression import FORMS
from tests.cli.conftest import write_held_load, write_practice
from tests.docs.blocks import read_blocks, run_block, run_line
from tests.servos import rig as servo_rig
from tests.shared_folders import shared_folder

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
PAGES = sorted(
    [*DOCS.glob("how-to/*.md"), *DOCS.glob("extend/*.md"), DOCS / "choose.md"]
)
DATA = Path(os.environ.get("ARMWISE_DATA", ROOT / ".." / "shared" / "data")).resolve()


@pytest.fixture(scope="session")
def followed(tmp_path_factory) -> Path:
    """A folder in which someone has followed the tutorial."""
    return shared_folder(tmp_path_factory, "tutorial", follow_the_tutorial)


def follow_the_tutorial(folder: Path) -> None:
    names: dict[str, object] = {}
    with contextlib.chdir(folder):
        for block in read_blocks(TUTORIAL):
            if not block.needs_data:
                run_block(block, names, TUTORIAL)


def test_the_tutorial_leads_to_a_model(followed):
    out = {path.name for path in (followed / "out").iterdir()}
    assert out == {"estimate.json", "identified.urdf", "report.html"}
    assert (followed / "small.json").exists()
    assert (followed / "code" / "ur5.c").exists()


@pytest.mark.skipif(
    not (DATA / "ur10").is_dir(), reason=f"no recordings in {DATA} (ARMWISE_DATA)"
)
def test_three_commands_on_a_real_arm(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARMWISE_DATA", str(DATA))
    (block,) = [block for block in read_blocks(TUTORIAL) if block.needs_data]
    assert len(block.text.splitlines()) == 3
    run_block(block, {}, TUTORIAL)
    assert "wrist_3_joint" in capsys.readouterr().out
    assert (tmp_path / "ur10" / "identified.urdf").exists()
    assert list((tmp_path / "ur10" / "code").glob("*.c"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page, followed, tmp_path, monkeypatch):
    folder = tmp_path / "followed"
    shutil.copytree(followed, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("armwise.view.serve_scene", lambda _, port, tell: tell("URL"))
    names: dict[str, object] = {}
    forms = set(FORMS)
    try:
        for block in read_blocks(page):
            run_block(block, names, page)
    finally:
        # A friction form that a page adds ends with it: other tests count candidates.
        for name in FORMS.keys() - forms:
            del FORMS[name]


README = ROOT / "README.md"
IN_A_TABLE = re.compile(r"`(armwise [^`]+)`")
PLACEHOLDERS = {
    "SERVO_LOG": "servo.csv",
    "ARM": "my_arm.urdf",
    "LOG": "run1.csv",
    "OUT": "out",
    "FRAME": "hand",
    "FILE": str(ROOT / "examples" / "worlds" / "nail.toml"),
}
TILTED = {"ARM": "ddarm", "LOG": "ddarm.csv", "LOADED": "loaded.csv"}
"""For calibration, since a flat arm's joints do not feel gravity."""
QUICKLY = {"excite": "--budget-s 0.5", "realtime": "--duration 0.2",
           "world run": "--duration 0.2"}  # fmt: skip
"""What makes a command quick, and changes nothing else."""


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """What someone has who owns an arm of two joints, called as the README calls it."""
    return shared_folder(tmp_path_factory, "readme", prepare_small_arm)


def prepare_small_arm(folder: Path) -> None:
    with contextlib.chdir(folder):
        aw.save_arm(aw.load_arm("two_link_uno"), "my_arm.urdf")
        for seed in (1, 2):
            run_line(f"armwise simulate my_arm.urdf --seed {seed} -o run{seed}.csv")
            robot = Path(f"logs/robot=arm_{seed}")
            robot.mkdir(parents=True)
            aw.write_recording(aw.read_recording(f"run{seed}.csv"), robot / "a.parquet")
        run_line("armwise simulate ddarm --duration 3 -o ddarm.csv")
        write_loaded_log(Path("loaded.csv"))
        write_servo_log(aw.load_arm("my_arm.urdf"), Path("servo.csv"))
        write_practice(aw.load_arm("my_arm.urdf"))
        write_held_load(aw.load_arm("my_arm.urdf"), PLACEHOLDERS["FRAME"])
        shutil.copy("load/load.json", "load.json")
        run_line("armwise identify my_arm.urdf run1.csv -o out")


def write_loaded_log(path: Path) -> None:
    """Let a ddarm with 2 kg at its last link move for a while."""
    arm = aw.load_arm("ddarm")
    body = aw.arms.InertialParameters.from_center_of_mass(
        2.0, [0.1, 0.0, 0.05], 1e-3 * np.eye(3)
    )
    plant = aw.SimulatedArm(
        arm,
        sensors=(aw.plants.Encoder(), aw.plants.TorqueSensor(0.1)),
        payload=aw.plants.Payload(arm.links[-1].name, body),
        seed=0,
    )
    motion = aw.motions.Sinusoid([3.0, 2.0, 1.0], 0.8, [2.0, 3.1, 4.3], 3.0)
    log = aw.run(plant, aw.control.ComputedTorque(arm, 400.0, 40.0), motion)
    names = [name for name in log.channels if name.split("_")[0] in ("q", "tau")]
    aw.write_recording(log.select(names), path)


def write_servo_log(arm: aw.arms.Arm, path: Path) -> None:
    """Let servos move the arm for a while."""
    aw.write_recording(servo_rig.recording(servo_rig.truth(arm), 1), path)


def commands_of_the_readme() -> list[str]:
    text = README.read_text(encoding="utf-8")
    blocks = [block.text for block in read_blocks(README) if block.kind == "sh"]
    lines = [line for block in blocks for line in block.splitlines()]
    shown = [line for line in lines if line.startswith("armwise")]
    # The demo and the benchmark run with the examples of their own --help.
    return [x for x in shown + IN_A_TABLE.findall(text) if x.split()[1] not in
            ("demo", "bench")]  # fmt: skip


def test_the_readme_speaks_of_every_command():
    text = README.read_text(encoding="utf-8")
    assert set(COMMANDS) - set(re.findall(r"armwise ([a-z-]+)", text)) == set()


@pytest.mark.parametrize("line", dict.fromkeys(commands_of_the_readme()))
def test_a_command_of_the_readme_runs(line, small, tmp_path, monkeypatch):
    folder = tmp_path / "small"
    shutil.copytree(small, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("armwise.view.serve_scene", lambda _, port, tell: tell("URL"))
    shutil.copy("run1.csv", "run.csv")
    special = TILTED if line.startswith("armwise calibrate") else {}
    for word, meaning in (PLACEHOLDERS | special).items():
        line = re.sub(rf"\b{word}\b", meaning, line)
    extra = [words for name, words in QUICKLY.items() if f"armwise {name} " in line]
    run_line(" ".join([line, *extra]))


def test_every_page_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert {page for page in pages if page not in listed} == set()
