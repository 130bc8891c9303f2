"""Worlds in files: read, run from the command line, drawn."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from armwise.errors import ArmwiseError
from armwise.report import write_world
from armwise.report.simulation import animation, make_world_report
from armwise.worlds import CashKarp, Run, Yielding, read_world
from armwise.worlds.drawing import nails_of, outline_of
from armwise.worlds.run import write_table

EXAMPLES = Path(__file__).parents[2] / "examples" / "worlds"
NAIL = EXAMPLES / "nail.toml"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.toml")), ids=lambda p: p.stem)
def test_every_example_can_be_read_and_drawn(path: Path) -> None:
    scenario = read_world(path)
    assert scenario.duration > 0
    assert outline_of(scenario.world)


@pytest.mark.parametrize("name", ["chain", "hinge", "four_bar", "two_arms"])
def test_every_example_runs_with_its_ledger_closed(name: str) -> None:
    from dataclasses import replace

    run = replace(read_world(EXAMPLES / f"{name}.toml"), duration=1.0).run()
    assert run.steps.fast == 1000
    assert run.ledger.relative_balance < 1e-8


@pytest.fixture(scope="module")
def run() -> Run:
    from dataclasses import replace

    return replace(read_world(NAIL), duration=0.5).run()


def test_a_run_fills_a_folder(run: Run, tmp_path: Path) -> None:
    files = write_world(run, tmp_path / "out")
    names = ["states.csv", "summary.json", "world.html"]
    assert [file.name for file in files] == names
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == sorted(names)
    table = pl.read_csv(files[0])
    assert table.height == 501
    assert table["cylinder.z"].to_numpy() == pytest.approx(
        run.position("cylinder")[:, 2]
    )
    said = json.loads(files[1].read_text())
    assert said["relative_balance"] == run.ledger.relative_balance


def test_pages_hold_their_figures(run: Run, tmp_path: Path) -> None:
    page = write_world(run, tmp_path)[-1].read_text()
    scene, *figures = json.loads(page.split('id="figures">')[1].split("</script>")[0])
    names = {curve["name"] for figure in figures for curve in figure["curves"]}
    assert {"nail", "kinetic", "balance"} <= names
    assert len(scene["frames"]) == 120
    assert page.count('class="figure') == 1 + len(figures)


def test_the_report_has_motion_constraints_and_energy(run: Run) -> None:
    report = make_world_report(run, frames=5)
    names = [section.name for section in report.sections]
    assert names == ["motion", "constraints", "energy"]
    assert report.to_dict()["energy"]["ledger"] == run.ledger.summary()


def _numbers(array: dict) -> np.ndarray:
    """Decode an array as Plotly writes it in JSON."""
    return np.frombuffer(b64decode(array["bdata"]), array["dtype"])


def test_the_animation_moves(run: Run) -> None:
    frames = animation(run, frames=5)["frames"]
    assert len(frames) == 5
    first, last = (_numbers(frames[k]["data"][0]["z"]) for k in (0, -1))
    assert np.nanmax(np.abs(first - last)) > 0.05
    assert nails_of(run.world) == [(0.6, 0.2, 0.4)]


def test_a_table_can_be_parquet_and_nothing_else(run: Run, tmp_path: Path) -> None:
    write_table(run, tmp_path / "a.parquet")
    assert pl.read_parquet(tmp_path / "a.parquet").height == 501
    with pytest.raises(ArmwiseError, match=r"\.csv or \.parquet"):
        write_table(run, tmp_path / "a.xls")


def test_a_run_of_an_arm_becomes_a_recording() -> None:
    from dataclasses import replace

    result = replace(read_world(EXAMPLES / "four_bar.toml"), duration=0.1).run()
    recording = result.to_recording("linkage")
    assert recording.dof == 3
    assert recording["q_2"].values == pytest.approx(result.position("linkage")[:, 1])


def test_the_command_line_runs_a_world() -> None:
    from armwise.cli.world import app

    arguments = ["run", str(NAIL), "--duration", "0.2", "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["duration"] == pytest.approx(0.2)
    assert said["steps"]["fast"] == 200
    shown = CliRunner().invoke(app, ["run", str(NAIL), "--duration", "0.2"])
    assert "ledger closes to" in shown.stdout


def write(folder: Path, text: str) -> Path:
    path = folder / "w.toml"
    path.write_text(text)
    return path


BODY = """
[[body]]
name = "b"
segment = [{ kind = "sphere", mass = 1.0, radius = 0.1 }]
"""


def test_choices_are_read(tmp_path: Path) -> None:
    head = 'integrator = "cash-karp"\nmethod = "yielding"\nstep = 0.002\n'
    scenario = read_world(write(tmp_path, head + BODY))
    assert isinstance(scenario.integrator, CashKarp)
    assert isinstance(scenario.method, Yielding)
    assert scenario.step == 0.002


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no bodies"),
        ("colour = 1", 'unknown key "colour"'),
        ("duration = 0.0" + BODY, 'positive "duration"'),
        ("step = -1.0" + BODY, 'positive "step"'),
        ('integrator = "euler"' + BODY, "Known: rk4, cash-karp, semi-implicit"),
        ('[[body]]\nkind = "soft"', 'unknown kind "soft"'),
        ('[[body]]\nname = "b"', "no .*segment"),
        ('[[body]]\nsegment = [{ kind = "sphere", radius = 0.1 }]', 'no "mass"'),
        ('[[body]]\nsegment = [{ kind = "cone" }]', "Known: rod, box, sphere"),
        ('[[body]]\nkind = "chain"\nlinks = 2\nq = [1]', "2 finite numbers"),
        (BODY + '[[constraint]]\nkind = "glue"', "Known: nail, pin"),
        (BODY + '[[constraint]]\nkind = "nail"', "has no name"),
        (BODY + '[[constraint]]\nname = "n"\nat = [0, 0]', "point"),
        (
            BODY + '[[constraint]]\nname = "n"\npoint = { body = "x" }',
            "names the body 'x'",
        ),
        (BODY + '[[force]]\nname = "f"', "Known: spring"),
        (BODY + '[[force]]\nkind = "drag"', "has no name"),
        (
            BODY + '[[force]]\nname = "f"\nkind = "drag"\npoint = { at = [0, 0, 0] }',
            "body",
        ),
        ("[[body", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_used_says_where_and_why(
    text: str, words: str, tmp_path: Path
) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ArmwiseError, match=words) as caught:
        read_world(path)
    assert "w.toml" in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ArmwiseError, match=r"missing\.toml"):
        read_world(tmp_path / "missing.toml")
