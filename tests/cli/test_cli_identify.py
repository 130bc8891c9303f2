"""simulate → identify → reduce at the command line, and what goes wrong there."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


def armwise(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess:
    code = "from armwise.cli.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for seed in (1, 2):
        done = armwise(
            "simulate", "two_link_uno", "--seed", seed, "-o", folder / f"{seed}.csv"
        )
        assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def identified(runs):
    done = armwise(
        "identify", "two_link_uno", runs / "1.csv", "--validate", runs / "2.csv",
        "-o", runs / "out", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_one_json_object_says_it_all(identified):
    assert identified["base_parameter_count"] > 0
    assert identified["condition_number"] >= 1
    assert max(identified["fit"]["relative_error"]) < 0.05
    assert max(identified["validation"]["relative_error"]) < 0.05
    assert all(Path(path).exists() for path in identified["files"].values())


def test_the_folder_holds_model_estimate_and_report(identified, runs):
    names = {path.name for path in (runs / "out").iterdir()}
    assert {"identified.urdf", "estimate.json", "report.html"} <= names


def test_without_validation_nothing_is_claimed(runs):
    done = armwise("identify", "two_link_uno", runs / "1.csv", "--json")
    assert json.loads(done.stdout)["validation"] is None
    shown = armwise("identify", "two_link_uno", runs / "1.csv")
    assert "not evaluated" in shown.stdout


def test_a_wrong_log_is_told_before_and_fails_where_asked(runs, tmp_path):
    lines = (runs / "1.csv").read_text().splitlines()
    names = lines[0].split(",")
    j = names.index("tau_1")
    spoilt = tmp_path / "reversed.csv"
    rows = [line.split(",") for line in lines[1:]]
    turned = [[*row[:j], str(-float(row[j])), *row[j + 1 :]] for row in rows]
    spoilt.write_text("\n".join([lines[0], *(",".join(row) for row in turned)]))
    words = ("--arm", "two_link_uno", "--json")
    seen, sound = (
        json.loads(armwise("inspect-log", log, *words).stdout)["warnings"]
        for log in (spoilt, runs / "1.csv")
    )
    assert "torque" in seen[0]
    assert not sound
    words = ("identify", "two_link_uno", spoilt, "--json")
    done, strict = armwise(*words), armwise(*words, "--strict")
    assert (done.returncode, strict.returncode) == (0, 1)
    assert "fail" in [one["verdict"] for one in json.loads(strict.stdout)["verdicts"]]
    right = armwise("identify", "two_link_uno", runs / "1.csv", "--strict")
    assert right.returncode == 0


def test_the_end_of_a_log_can_be_held_out(runs):
    done = armwise(
        "identify", "two_link_uno", runs / "1.csv", "--hold-out", 0.3, "--json"
    )
    assert json.loads(done.stdout)["validation"]["samples"] > 0


def test_reduce_reads_what_identify_wrote(identified, runs):
    done = armwise(
        "reduce", "two_link_uno", runs / "out/estimate.json", runs / "1.csv",
        "-o", runs / "small.json", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["kept"] <= said["base_parameters"]
    assert (runs / "small.json").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["identify", "nobody", "1.csv"], "neither a file nor a bundled arm"),
        (["identify", "two_link_uno", "none.csv"], "none.csv"),
        (["identify", "two_link_uno", "empty.csv"], "empty.csv"),
        (["identify", "two_link_uno", "noise.csv"], "noise.csv"),
        (["identify", "panda", "1.csv"], "1.csv"),
        (["identify", "two_link_uno", "1.csv", "--method", "magic"], "magic"),
        (["identify", "two_link_uno", "1.csv", "--fix", "wings"], "wings"),
        (["identify", "two_link_uno", "1.csv", "--hold-out", "1.5"], "fraction"),
        (["reduce", "two_link_uno", "1.csv", "1.csv"], "1.csv"),
        (["simulate", "two_link_uno", "-o", "no/such/folder/x.csv"], "written"),
        (["simulate", "puma260_full", "-o", "x.csv"], "there is no mass, yet moments"),
        (["bench", "nothing"], "nothing"),
    ],
)
def test_a_users_mistake_is_one_sentence(runs, words, said):
    (runs / "empty.csv").write_text("")
    (runs / "noise.csv").write_bytes(bytes(range(256)) * 4)
    done = armwise(*words, cwd=runs)
    assert done.returncode != 0
    assert said in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
