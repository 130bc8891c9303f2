"""Command `armwise identify-load`: from logs to files for robot drivers."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArgumentError
from armwise.loads import identify_load, read_load_estimate, write_load_estimate
from tests.loads import rig


def armwise(*words: object) -> subprocess.CompletedProcess:
    code = "from armwise.cli.main import main; main()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def _log(data: aw.Samples, path: Path) -> Path:
    names = [f"{x}_{j}" for x in ("q", "qd") for j in range(1, 7)]
    header = ",".join(["time", *names, "fx,fy,fz,tx,ty,tz"])
    table = np.column_stack([data.time, data.q, data.qd, data.wrench])
    np.savetxt(path, table, delimiter=",", header=header, comments="", fmt="%.12g")
    return path


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("load")
    return _log(rig.samples(rig.BRICK, bias=1.0), folder / "held.csv")


def test_from_a_log_to_drivers(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["puma600", log, "--frame", "wrist", "--cutoff-hz", 10]
    done = armwise("identify-load", *words, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["mass"] == pytest.approx(1.2, abs=0.01)
    assert report["std"]["mass"] < 0.01
    assert report["is_physical"]
    assert set(report["files"]) == {
        "estimate", "report", "ur", "franka", "ros", "urdf",
    }  # fmt: skip
    page = (out / "report.html").read_text()
    assert "measured" in page
    assert "predicted" in page
    reread = read_load_estimate(out / "load.json")
    assert reread.mass == pytest.approx(report["mass"])
    spoken = armwise("identify-load", *words, "--gripper", out / "load.json")
    assert spoken.returncode == 0, spoken.stderr
    assert "hand may be empty" in spoken.stdout


def test_noise_is_found_where_velocities_were_measured(tmp_path: Path) -> None:
    data = rig.samples(rig.BRICK, duration=6.0, bias=1.0)
    random = np.random.default_rng(1)
    q, qd = (
        x + std * random.normal(size=x.shape)
        for x, std in ((data.q, 1e-3), (data.qd, 0.02))
    )
    noisy = _log(replace(data, q=q, qd=qd), tmp_path / "noisy.csv")
    done = armwise("identify-load", "puma600", noisy, "--method", "optimal", "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["mass"] == pytest.approx(1.2, abs=4.0 * report["std"]["mass"])
    assert report["std"]["mass"] < 0.01


def test_mistakes_are_one_line(log: Path, tmp_path: Path) -> None:
    wrong = armwise("identify-load", "puma600", log, "--frame", "palm")
    assert wrong.returncode == 1
    assert "no link or frame 'palm'" in wrong.stderr
    assert wrong.stderr.count("\n") == 1
    needs = armwise("identify-load", "puma600", log, "--method", "optimal")
    assert needs.returncode == 1
    assert "Velocities were not measured" in needs.stderr
    assert needs.stderr.count("\n") == 1
    text = tmp_path / "load.json"
    text.write_text("{}")
    bad = armwise("identify-load", "puma600", log, "--gripper", text)
    assert bad.returncode == 1
    assert "no load estimate" in bad.stderr


def test_an_estimate_survives_its_file(tmp_path: Path) -> None:
    static = identify_load(
        rig.static_samples(), rig.puma(), method=aw.loads.StaticPoses()
    )
    path = write_load_estimate(static, tmp_path / "static.json")
    reread = read_load_estimate(path)
    np.testing.assert_array_equal(reread.parameters.vector, static.parameters.vector)
    np.testing.assert_array_equal(reread.covariance, static.covariance)
    with pytest.raises(ArgumentError, match="No such file"):
        read_load_estimate(tmp_path / "nothing.json")
