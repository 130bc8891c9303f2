"""armwise excite: a file to follow, JSON for machines, one line for mistakes."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from armwise.cli.main import app

RUN = ("excite", "two_link_uno", "--duration", "2")


def invoke(*arguments):
    return CliRunner().invoke(app, [*RUN, *arguments])


def test_writes_a_motion_and_says_what_it_is(tmp_path):
    path = tmp_path / "motion.csv"
    result = invoke("-o", str(path), "--json", "--floor", "none")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["condition_number"] < 20.0
    assert max(report["verified"]["velocity"]) <= 0.95
    assert report["file"] == str(path)
    header, *rows = path.read_text().splitlines()
    assert header.startswith("time,q_joint_1,q_joint_2,qd_joint_1")
    assert len(rows) == 201


def test_shows_a_table():
    result = invoke("--no-keep-out", "--seed", "3")
    assert result.exit_code == 0, result.output
    assert "condition number" in result.output
    assert "joint_2" in result.output
    assert "Closest approach" not in result.output


@pytest.mark.parametrize("bad", [("--floor", "deep"), ("--box", "1,2,3")])
def test_refuses_what_it_cannot_read(bad):
    result = invoke(*bad)
    assert result.exit_code == 2
    assert bad[1] in result.output
