"""A report's page: complete by itself, safe, light, and the same in three forms."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import armwise.report
from armwise.errors import ArgumentError, FileError
from armwise.report import (
    make_report,
    report_to_html,
    report_to_json,
    report_to_text,
    write_report,
)

SECTIONS = (
    "summary",
    "warnings",
    "torques",
    "residuals",
    "parameters",
    "unidentified",
    "spectrum",
    "friction",
    "preparation",
)


@pytest.fixture(scope="module")
def page(identified) -> str:
    return report_to_html(make_report(identified))


def figures(page: str) -> list[dict]:
    return json.loads(re.search(r'id="figures">(.*?)</script>', page, re.S)[1])


def outside_scripts(page: str) -> str:
    return re.sub(r"<script>.*?</script>", "", page, flags=re.S)


def test_needs_nothing_else(page):
    assert len(page.encode()) < 6e6
    places = re.findall(r"(?:src|href)\s*=\s*(\S+)", outside_scripts(page))
    assert places
    assert all(place.startswith('"#') for place in places)
    assert "url(" not in outside_scripts(page)
    assert "default-src 'none'" in page
    assert page.count("* plotly.js v") == 1


def test_has_every_section_and_dark_light_and_print(page):
    for name in SECTIONS:
        assert f'<section id="{name}">' in page
        assert f'<a href="#{name}">' in page
    assert "prefers-color-scheme: dark" in page
    assert "@media print" in page


def test_every_place_has_its_figure(page):
    drawn = figures(page)
    places = [int(k) for k in re.findall(r'data-figure="(\d+)"', page)]
    assert places
    assert sorted(places) == list(range(len(drawn)))
    for figure in drawn:
        for curve in figure["curves"]:
            assert len(curve["x"]) == len(curve["y"]) <= 2010


def test_names_from_files_cannot_become_markup(hostile):
    page = report_to_html(make_report(hostile))
    assert "<script>alert" not in page
    assert 'alert("x")' not in outside_scripts(page)
    assert "&lt;script&gt;alert" in page
    titles = [figure["title"] for figure in figures(page)]
    assert any("&lt;script&gt;" in title for title in titles)


def test_nothing_evaluated_is_never_a_pass(still):
    told = make_report(still).to_dict()["summary"]
    (validation,) = [
        v["verdict"] for v in told["verdicts"] if "not fitted" in v["question"]
    ]
    assert validation == "not evaluated"
    assert told["validation"] is None
    assert "not evaluated" in report_to_html(make_report(still))


def test_estimate_alone_says_what_is_not_known(identified):
    alone = replace(identified, samples=(), validation=None, validation_samples=())
    report = make_report(alone)
    text = report_to_text(report)
    assert report.to_dict()["warnings"]["warnings"] is None
    assert "The data behind the estimate were not given." in text
    assert report.to_dict()["preparation"]["fit"] is None


def test_estimate_with_samples_is_validated(identified):
    alone = replace(identified, samples=(), validation=None, validation_samples=())
    report = make_report(
        alone, fitted=identified.samples[0], validated=identified.validation_samples[0]
    )
    told = report.to_dict()["summary"]["validation"]
    assert told == identified.validation.to_dict()


def test_json_and_text_tell_the_same(still):
    report = make_report(still)
    told = json.loads(report_to_json(report))
    assert set(SECTIONS) < set(told)
    assert "mind this" in told["warnings"]["warnings"]
    assert told["warnings"]["codes"] == [w.code for w in still.warnings]
    unknown = [c for c in told["parameters"]["combinations"] if c["std"] is None]
    assert unknown  # a joint that stands still hides something
    text = report_to_text(report)
    for section in report.sections:
        assert section.title in text
    assert unknown[0]["expression"] in text


def test_suffix_decides_the_form(identified, tmp_path: Path):
    for suffix, begins in ((".html", "<!DOCTYPE"), (".json", "{"), (".txt", "slotine")):
        path = write_report(identified, tmp_path / f"r{suffix}", title="slotine")
        assert path.read_text(encoding="utf-8").startswith(begins)
    with pytest.raises(ArgumentError, match=r"r\.pdf.*\.html, \.json, \.txt"):
        write_report(identified, tmp_path / "r.pdf")


def test_a_failed_write_leaves_nothing(identified, tmp_path: Path, monkeypatch):
    target = tmp_path / "report.txt"
    target.write_text("before")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", refuse)
    with pytest.raises(FileError, match="No space left"):
        write_report(identified, target)
    assert [p.name for p in tmp_path.iterdir()] == ["report.txt"]
    assert target.read_text() == "before"


def test_only_estimates_are_reported_on():
    with pytest.raises(ArgumentError, match="not str"):
        make_report("estimate.json")  # type: ignore[arg-type]


STAND_INS = """
const shown = [];
const place = { dataset: { figure: '0' } };
globalThis.document = { documentElement: {},
  getElementById: () => ({ textContent: process.argv[2] }),
  querySelectorAll: what => what === '.figure' ? [place] : [] };
globalThis.getComputedStyle = () => ({ getPropertyValue: name => ' colour' + name });
globalThis.matchMedia = () => ({ addEventListener() {} });
globalThis.addEventListener = () => {};
globalThis.IntersectionObserver = class {
  constructor(told) { this.told = told; }
  observe(target) { this.told([{ isIntersecting: true, target }]); } };
globalThis.Plotly = { react: (...all) => shown.push(all.slice(1)) };
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_script_draws_what_comes_into_view(page, tmp_path: Path):
    script = tmp_path / "drawing.js"
    drawing = Path(armwise.report.__file__).parent / "templates" / "figures.js"
    script.write_text(
        f"{STAND_INS}{drawing.read_text()}console.log(JSON.stringify(shown));"
    )
    first = figures(page)[0]
    done = subprocess.run(
        ["node", script, json.dumps([first])], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    ((traces, layout, _),) = json.loads(done.stdout)
    assert [t["name"] for t in traces] == ["measured", "predicted"]
    assert traces[0]["y"] == first["curves"][0]["y"]
    assert traces[0]["line"]["color"] == "colour--measured"
    assert layout["title"]["text"] == first["title"]
