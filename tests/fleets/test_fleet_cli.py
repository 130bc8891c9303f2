"""armwise identify-fleet, and what identify says to its options."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest


def armwise(
    *words: object, command: str = "identify-fleet"
) -> subprocess.CompletedProcess:
    code = "from armwise.cli.main import main; main()"
    command = [sys.executable, "-c", code, command, "two_link_uno", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_people_read_tables_and_find_files(logs, tmp_path):
    glob = f"{logs}/**/*.parquet"
    out = tmp_path / "out"
    done = armwise(glob, "--group-by", "robot", "--workers", 1, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "4 robots, 12 logs, 36,000 rows" in done.stdout
    # Of four robots none could ever be flagged: that is not the same as none differs.
    assert "4 robots are too few to tell whether one differs" in done.stderr
    assert "No robot differs" not in done.stdout
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "too few to tell" in page
    assert {"fleet.json", "fleet.urdf", "parts"} <= {p.name for p in out.iterdir()}
    again = armwise(glob, "--like", out / "fleet.json", "--workers", 1, "-o", out)
    assert "(12 of 12 chunks were there already)" in again.stdout


def test_machines_read_json_with_bad_logs_named(logs, tmp_path):
    shutil.copytree(logs, tmp_path / "logs")
    (tmp_path / "logs" / "R1" / "junk.parquet").write_bytes(b"junk")
    words = (tmp_path / "logs", "--group-by", "robot", "--workers", 1)
    refused = armwise(*words)
    assert refused.returncode == 1
    assert "junk.parquet" in refused.stderr
    assert "--skip-bad-logs" in refused.stderr
    done = armwise(*words, "--skip-bad-logs", "--json")
    found = json.loads(done.stdout)
    assert [bad["path"].rsplit("/")[-1] for bad in found["bad_logs"]] == [
        "junk.parquet"
    ]
    assert list(found["robots"]) == ["R0", "R1", "R2", "R3"]
    assert found["base_parameter_count"] > 0
    assert max(found["fit"]["relative_error"]) < 0.1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--validate", "x.csv"], "No such option: --validate"),
        (["--method", "robust"], "Robust needs the samples"),
    ],
)
def test_what_a_fleet_cannot_do_is_said_in_one_sentence(logs, words, said):
    done = armwise(logs, "--group-by", "robot", *words)
    assert done.returncode != 0
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("option", ["--group-by", "--like", "--workers"])
def test_identify_names_the_command_its_old_options_belong_to(logs, option):
    done = armwise(logs, option, "1", command="identify")
    assert done.returncode == 2
    assert (
        f"{option} is an option of a command of its own: armwise identify-fleet."
        in (done.stderr)
    )
    assert done.stderr.count("\n") == 1
