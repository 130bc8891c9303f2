"""A report's page: complete by itself, safe, light, and the same in three forms."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import armwise
import armwise.report
from armwise.arms import InertialParameters
from armwise.errors import ArgumentError, FileError
from armwise.identification import torque_along
from armwise.motions import random_motion
from armwise.regression import Columns, FrictionTerm
from armwise.report import (
    make_report,
    report_to_html,
    report_to_json,
    report_to_text,
    write_report,
)
from armwise.report.formats import figure_to_html, page_to_html
from armwise.report.report import Figure, ReportTable, Series
from armwise.report.sections.parameters import friction_section
from armwise.report.subject import Subject

from .conftest import fitted, samples

SECTIONS = (
    "story",
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
    assert len(page.encode()) < 2e6
    places = re.findall(r"(?:src|href)\s*=\s*(\S+)", outside_scripts(page))
    assert places
    assert all(place.startswith('"#') for place in places)
    assert "url(" not in outside_scripts(page)
    assert "default-src 'none'" in page
    assert "plotly.js v" not in page


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
        x = None
        for curve in figure["curves"]:
            # No x: that of the curve before, which the first cannot lack.
            x = curve["x"] or x
            assert len(x) == len(curve["y"]) <= 2010


def test_friction_is_drawn_over_speed_load_and_position_with_measurements(arm):
    data = samples(arm, 0)
    names = [driven.name for driven in arm.driven]
    terms = [
        FrictionTerm(0, names[0], "hysteresis", 0.05),
        FrictionTerm(1, names[1], "load"),
    ]
    truth = Columns(arm, tuple(terms)).friction_columns(data, slice(0, len(data)))
    bent = replace(data, tau=data.tau + truth @ [1.5, 0.2])
    estimate = armwise.identify(arm, bent, friction=terms)
    section = friction_section(Subject.of(estimate, bent))
    drawn = {b.title: b for b in section.blocks if isinstance(b, Figure)}
    assert set(drawn) == {
        f"{names[0]}: friction over speed",
        f"{names[0]}: friction over position, reversing",
        f"{names[1]}: friction over speed",
        f"{names[1]}: friction over load",
    }
    for figure in drawn.values():
        assert [curve.role for curve in figure.curves] == ["points", "predicted"]
    loop = drawn[f"{names[0]}: friction over position, reversing"]
    seen, model = (curve.y for curve in loop.curves)
    assert np.ptp(model) == pytest.approx(3.0, rel=0.1)
    assert np.abs(seen - model[:: len(model) // len(seen)][: len(seen)]).max() < 0.1
    seen, model = drawn[f"{names[1]}: friction over load"].curves
    slope = np.polyfit(seen.x, seen.y, 1)[0]
    assert slope == pytest.approx(0.2, abs=0.02)
    assert np.diff(model.y)[0] / np.diff(model.x)[0] == pytest.approx(slope, abs=0.02)


def test_dry_friction_is_listed_as_a_whole(arm):
    """Widths share it in many ways; their sum is known, and is what moves the arm."""
    data = samples(arm, 0)
    name = arm.driven[0].name
    widths = [FrictionTerm(0, name, "hysteresis", width) for width in (0.01, 0.04)]
    truth = Columns(arm, tuple(widths)).friction_columns(data, slice(0, len(data)))
    bent = replace(data, tau=data.tau + truth @ [0.5, 0.7])
    estimate = armwise.identify(arm, bent, friction=widths)
    section = friction_section(Subject.of(estimate, bent))
    rows = [r for b in section.blocks if isinstance(b, ReportTable) for r in b.rows]
    ((_, value, std, _),) = [r for r in rows if r[0] == f"{name}: dry friction"]
    coulomb = arm.parameters[list(arm.parameter_names).index(f"{name}.coulomb")]
    assert value == pytest.approx(coulomb + 1.2, abs=4.0 * std + 1e-3)
    (first, second) = [r[2] for r in rows if "hysteresis" in str(r[0])]
    assert std < np.hypot(first, second)


def test_friction_is_drawn_as_it_warms_up(arm, tmp_path):
    data = samples(arm, 0)
    data = replace(data, temperature=np.stack([30.0 + 3.0 * data.time] * 2, axis=1))
    names = [driven.name for driven in arm.driven]
    terms = [
        FrictionTerm(0, names[0], "coulomb_warming", 2.0),
        FrictionTerm(1, names[1], "coulomb_temperature", 36.0),
    ]
    plain = arm.parameters.copy()
    plain[arm.layout.drive("coulomb")] = 2.0
    arm = arm.with_parameters(plain)
    truth = Columns(arm, tuple(terms)).friction_columns(data, slice(0, len(data)))
    tau = armwise.Dynamics(arm).inverse_dynamics(data.q, data.qd, data.qdd)
    bent = replace(data, tau=tau + truth @ [-0.2, -0.1])
    estimate = armwise.identify(arm, bent, friction=terms)
    warming, cooling = (value for _, value in estimate.friction)
    assert warming == pytest.approx(-0.2, abs=0.02)
    assert cooling == pytest.approx(-0.1, abs=0.01)
    section = friction_section(Subject.of(estimate, bent))
    drawn = {b.title: b for b in section.blocks if isinstance(b, Figure)}
    figure = drawn[f"{names[1]}: friction as it warms up"]
    seen, model = figure.curves
    assert np.polyfit(seen.x, seen.y, 1)[0] == pytest.approx(-0.1, abs=0.02)
    np.testing.assert_allclose(seen.y, model.y, atol=0.1)
    # From a file, and for a plan without a thermometer.
    armwise.write_estimate(estimate, tmp_path / "estimate.json")
    again = armwise.read_estimate(tmp_path / "estimate.json")
    np.testing.assert_allclose(again.predict(bent), estimate.predict(bent), atol=1e-9)
    motion = random_motion(arm, 0, 2.0)
    planned = torque_along(again, motion, np.linspace(0.0, 1.0, 20))
    assert np.isfinite(planned.tau).all()
    assert "as it warms up" in report_to_html(make_report(estimate))


def test_names_from_files_cannot_become_markup(hostile):
    page = report_to_html(make_report(hostile))
    assert "<script>alert" not in page
    assert 'alert("x")' not in outside_scripts(page)
    assert "&lt;script&gt;alert" in page
    # The script writes titles as text; in the page itself they cannot end an element.
    assert any("<script>" in figure["title"] for figure in figures(page))
    assert (
        "<script>alert" not in re.search(r'id="figures">(.*?)</script>', page, re.S)[1]
    )


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


def test_the_first_screen_tells_the_story(identified, page):
    report = make_report(identified, sources=["my/arm.urdf", Path("logs/run1.csv")])
    told = report.to_dict()
    assert "arm.urdf, run1.csv" in report.origin
    assert armwise.__version__ in report.origin
    assert re.search(r"\d{4}-\d\d-\d\d", report.origin)
    assert "my/" not in report_to_html(report)
    story = told["story"]
    assert len(story["numbers"]) == 5
    assert story["on"] == "validation"
    assert (
        story["identified_error"]
        == told["summary"]["validation"]["moving"]["relative_error"]
    )
    first = page[page.index('id="story"') : page.index('id="summary"')]
    assert '<svg viewBox="' in first
    assert first.count("<dt>") == 5
    assert "What to do next" in first
    places = [int(k) for k in re.findall(r'data-figure="(\d+)"', first)]
    gain, trace = (figures(page)[k] for k in places)
    assert [c["name"] for c in gain["curves"]] == ["description", "identified"]
    assert [c["role"] for c in trace["curves"]] == [
        "measured", "described", "predicted", "residual",
    ]  # fmt: skip
    assert page.count('<details class="part">') == len(SECTIONS) - 1


def test_a_better_description_gains_nothing_a_worse_one_much(arm, identified):
    """The simulated arm is its own description: nothing is to be gained."""
    exact = make_report(identified).to_dict()["story"]
    assert max(exact["described_error"]) < 2 * max(exact["identified_error"])
    heavy = arm.with_parameters(1.5 * arm.parameters)
    data = samples(heavy, 0)
    gained = fitted(arm, data, validation=samples(heavy, 1))
    story = make_report(gained).to_dict()["story"]
    # Torques are linear in parameters: the description explains two thirds.
    for error in story["described_error"]:
        assert error == pytest.approx(1 / 3, abs=0.02)
    assert max(story["identified_error"]) < 0.02


def test_what_to_do_next_repeats_warnings_and_asks_for_validation(still):
    story = make_report(still).to_dict()["story"]
    assert story["on"] == "fit"
    assert story["next"][0] == "mind this"
    assert "--validate" in story["next"][-1]


@pytest.mark.slow
def test_thirty_two_joints_fit_in_two_megabytes():
    arm = chain(32)
    rng = np.random.default_rng(0)
    t = np.arange(0.0, 8.0, 0.01)
    w, phase = rng.uniform(1, 4, 32), rng.uniform(0, 6, 32)
    angle = w * t[:, None] + phase
    q, qd, qdd = np.sin(angle), w * np.cos(angle), -(w**2) * np.sin(angle)
    tau = armwise.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau = tau + 0.01 * rng.normal(size=tau.shape)
    data = armwise.Samples(t, q, qd, qdd, tau)
    estimate = fitted(arm, data[:600], validation=data[600:])
    page = report_to_html(make_report(estimate))
    assert len(page.encode()) < 2e6
    part = page[page.index('id="torques"') : page.index('id="residuals"')]
    shown, folded = part.split("<details><summary>")
    # Two rows at once, the others when asked for.
    assert shown.count("data-figure") == 6
    assert folded.count("data-figure") == 2 * 32 - 6
    first = page[page.index('id="story"') : page.index('id="summary"')]
    assert first.count("<circle") == 32


def chain(count: int) -> armwise.Arm:
    """A chain whose joints turn about x, y and z in turn."""
    arm = armwise.load_arm("two_link_slotine")
    base, link = arm.joints[0], arm.links[0]
    origin = np.eye(4)
    origin[:3, 3] = (0.1, 0.0, 0.05)
    joints = tuple(
        replace(base, name=f"j{i}", parent=i - 1, origin=origin, axis=np.eye(3)[i % 3])
        for i in range(count)
    )
    inertia = InertialParameters.from_center_of_mass(
        0.5, [0.05, 0.01, 0.02], np.diag([0.002, 0.003, 0.0025])
    )
    links = tuple(replace(link, name=f"l{i}", inertia=inertia) for i in range(count))
    return replace(arm, name="chain", joints=joints, links=links, frames=())


AXES = """
globalThis.document = { getElementById: () => ({ textContent: '[]' }),
  querySelectorAll: () => [] };
globalThis.matchMedia = () => ({ addEventListener() {} });
globalThis.addEventListener = () => {};
globalThis.IntersectionObserver = class {};
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_axes_have_round_numbers(tmp_path: Path):
    script = tmp_path / "drawing.js"
    drawing = Path(armwise.report.__file__).parent / "templates" / "figures.js"
    asked = """console.log(JSON.stringify([ticks(-0.13, 0.31, 5), decades(-2.2, 1.1, 9),
      [0, -2.5, 12345, 1.5e-7, 3e6].map(label), extent([1, null, 3], false),
      extent([], true), [-1, 7].map(power)]));"""
    script.write_text(f"{AXES}{drawing.read_text()}{asked}")
    done = subprocess.run(["node", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    marks, powers, labels, wide, empty, short = json.loads(done.stdout)
    assert marks == pytest.approx([-0.1, 0.0, 0.1, 0.2, 0.3])
    assert powers == [-2, -1, 0, 1]
    assert labels == ["0", "−2.5", "12350", "1.5·10⁻⁷", "3·10⁶"]
    assert wide == pytest.approx([0.9, 3.1])
    assert empty == [0, 1]
    assert short == ["0.1", "10⁷"]


@pytest.mark.parametrize("is_logarithmic", [False, True])
def test_curves_are_drawn_where_they_are(is_logarithmic):
    x = np.linspace(0.0, 37.123, 500)
    y = np.exp(np.sin(x)) * 1e-7 if is_logarithmic else 4321.0 * np.sin(x)
    y[7] = np.nan
    curves = (Series("a", x, y), Series("b", x, 2.0 * y))
    figure = Figure("t", "x", "y", curves, is_logarithmic=is_logarithmic)
    room: list = []
    drawn = figures(page_to_html("t", figure_to_html(figure, room), room))[0]["curves"]
    assert drawn[1]["x"] is None
    for curve, values in ((drawn[0]["x"], x), (drawn[0]["y"], y)):
        is_log = is_logarithmic and values is y
        k = np.array(curve["whole"], dtype=float)
        shown = (
            10.0 ** (k * 10.0 ** curve["power"])
            if is_log
            else k * 10.0 ** curve["power"]
        )
        assert np.isnan(shown).tolist() == np.isnan(values).tolist()
        largest = np.nanmax(np.abs(np.log10(values) if is_log else values))
        errors = np.log10(shown / values) if is_log else shown - values
        assert np.nanmax(np.abs(errors)) <= 1e-6 * largest
