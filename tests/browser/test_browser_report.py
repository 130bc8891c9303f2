"""The report, as a reader sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from armwise.report import write_report

from .chromium import Browser

pytestmark = pytest.mark.slow

PAPER = "getComputedStyle(document.body).backgroundColor"
INK = "getComputedStyle(document.querySelector('.figure .gtitle')).fill"


def open_report(browser: Browser, found, folder: Path) -> int:
    """Open a report, scroll through it, and return its number of figures."""
    browser.open(write_report(found, folder / "report.html").as_uri())
    return browser.draw_figures()


def test_the_report_draws_every_figure_and_asks_no_one(
    browser: Browser, identified, tmp_path: Path
):
    assert open_report(browser, identified, tmp_path) > 5
    assert "two_link_slotine" in browser.run("document.querySelector('h1').innerText")
    assert browser.errors() == []
    assert browser.requests() == []
    assert browser.shoot("report-light").stat().st_size > 20_000


def test_the_report_turns_dark_and_prints_on_white(
    browser: Browser, identified, tmp_path: Path
):
    open_report(browser, identified, tmp_path)
    assert browser.run(PAPER) == "rgb(255, 255, 255)"
    light = browser.run(INK)
    browser.emulate("dark")
    dark_paper = browser.run(PAPER)
    assert max(int(x) for x in dark_paper[4:-1].split(",")) < 60
    browser.until(lambda: browser.run(INK) != light)
    browser.shoot("report-dark")
    browser.emulate("dark", "print")
    assert browser.run(PAPER) == "rgb(255, 255, 255)"
    browser.until(lambda: browser.run(INK) == "rgb(0, 0, 0)")
    for unwanted in ("nav", ".modebar"):
        shown = f"getComputedStyle(document.querySelector('{unwanted}')).display"
        assert browser.run(shown) == "none"
    browser.shoot("report-print")
    assert browser.errors() == []


def test_names_that_mean_harm_are_shown_and_not_run(
    browser: Browser, hostile, tmp_path: Path
):
    open_report(browser, hostile, tmp_path)
    assert "<script>" in browser.run("document.querySelector('h1').innerText")
    assert browser.errors() == []
