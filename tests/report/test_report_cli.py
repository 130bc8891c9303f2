"""`armwise report` and `armwise demo` as their users meet them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import armwise as aw
from armwise.cli import demo
from armwise.cli import main as cli
from tests.report.conftest import fitted


@pytest.fixture
def armwise(capsys, monkeypatch):
    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["armwise", *words])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return (exit_.value.code or 0), out, err

    return run


@pytest.fixture(scope="module")
def estimate(identified, tmp_path_factory) -> tuple[str, str]:
    """An arm's file and an estimate's."""
    folder = tmp_path_factory.mktemp("estimate")
    aw.save_arm(identified.prior_arm, folder / "arm.urdf")
    described = aw.load_arm(folder / "arm.urdf")
    found = fitted(described, identified.samples[0])
    aw.write_estimate(found, folder / "estimate.json")
    return str(folder / "arm.urdf"), str(folder / "estimate.json")


def test_text_on_the_terminal(armwise, estimate):
    code, out, _ = armwise("report", *estimate)
    assert code == 0
    assert "Singular spectrum" in out
    assert "not evaluated" in out


def test_json_for_machines(armwise, estimate):
    _, out, _ = armwise("report", *estimate, "--json")
    told = json.loads(out)
    assert told["summary"]["validation"] is None
    assert told["spectrum"]["condition_number"] > 1


def test_logs_bring_figures_and_validation(armwise, estimate, identified, tmp_path):
    logs = []
    for name, data in (
        ("a", identified.samples[0]),
        ("b", identified.validation_samples[0]),
    ):
        columns = {"q": data.q, "qd": data.qd, "tau": data.tau}
        log = aw.Recording.from_arrays(data.time, **columns)
        aw.write_recording(log, tmp_path / f"{name}.csv")
        logs.append(str(tmp_path / f"{name}.csv"))
    target = tmp_path / "report.json"
    code, _, err = armwise(
        "report", *estimate, logs[0], "--validate", logs[1], "-o", str(target)
    )
    assert code == 0, err
    told = json.loads(target.read_text(encoding="utf-8"))
    assert max(told["summary"]["validation"]["relative_error"]) < 0.05
    assert told["torques"]["shown"] == ["validation", "fit"]
    assert told["preparation"]["fit"]["rows_read"] == len(identified.samples[0])


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (("nowhere.urdf", "estimate.json"), "nowhere.urdf"),
        (("ARM", "nowhere.json"), "nowhere.json"),
        (("ARM", "EST", "--validate", "x.csv"), "logs of the fit"),
        (("ARM", "EST", "-o", "report.pdf"), ".html"),
    ],
)
def test_mistakes_are_one_line(armwise, estimate, words, needle):
    known = {"ARM": estimate[0], "EST": estimate[1]}
    code, _, err = armwise("report", *[known.get(w, w) for w in words])
    assert code == 1
    assert needle in err
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1


@pytest.mark.slow
def test_the_demo_goes_from_nothing_to_a_model(armwise, tmp_path: Path, monkeypatch):
    pytest.importorskip("mujoco")
    monkeypatch.setattr(demo, "BUDGET", (1.5, 0.5))
    monkeypatch.setattr(demo, "DURATION", 5.0)
    code, out, err = armwise("demo", "-o", str(tmp_path / "demo"), "--json")
    assert code == 0, err
    told = json.loads(out)
    described = told["description"]["relative_error"]
    found = told["validation"]["relative_error"]
    assert all(f < 0.5 * d for f, d in zip(found, described, strict=True))
    assert told["reduced_parameter_count"] < told["determined_count"]
    assert told["code"]["error"] < 1e-9
    assert Path(told["code"]["source"]).is_file()
    for path in told["files"].values():
        assert Path(path).is_file()
    assert not aw.load_arm(told["files"]["urdf"]).defects()
    page = Path(told["files"]["report"]).read_text(encoding="utf-8")
    assert '<section id="torques">' in page
