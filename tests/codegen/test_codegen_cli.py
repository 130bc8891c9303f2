"""armwise generate and armwise realtime."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from armwise.cli.main import app
from armwise.programs.compiler import find_compiler


def call(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_generate_prints_counts(tmp_path):
    done = call(
        "generate", "two_link_uno", "-o", tmp_path / "out", "--functions",
        "inverse_dynamics,jacobian", "--precision", "float", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert set(report["counts"]) == {"inverse_dynamics", "jacobian"}
    assert (tmp_path / "out" / "two_link_uno.h").exists()


def test_generate_shows_a_table(tmp_path):
    done = call("generate", "two_link_uno", "-o", tmp_path / "out", "--runtime")
    assert done.exit_code == 0, done.output
    assert "synchronous_torque" in done.output


def test_generate_needs_a_folder():
    assert call("generate", "two_link_uno").exit_code == 2


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def test_realtime_reports():
    done = call(
        "realtime", "two_link_uno", "--rate-hz", 500, "--duration", 0.2, "--json"
    )
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert report["samples"] == 100
    assert report["synchronous"]["worst"] >= report["synchronous"]["median"]
