"""The report, as a reader sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from armwise.report import write_report

from .chromium import Browser

pytestmark = pytest.mark.slow

PAPER = "getComputedStyle(document.body).backgroundColor"
INK = "getComputedStyle(document.querySelector('.figure .title')).color"


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
    shown = "getComputedStyle(document.querySelector('nav')).display"
    assert browser.run(shown) == "none"
    browser.shoot("report-print")
    assert browser.errors() == []


def test_names_that_mean_harm_are_shown_and_not_run(
    browser: Browser, hostile, tmp_path: Path
):
    open_report(browser, hostile, tmp_path)
    assert "<script>" in browser.run("document.querySelector('h1').innerText")
    assert browser.errors() == []


def test_the_story_fits_one_screen_and_a_phone(
    browser: Browser, identified, tmp_path: Path
):
    browser.open(write_report(identified, tmp_path / "report.html").as_uri())
    size = "document.querySelector('#story').getBoundingClientRect()"
    assert browser.run(f"{size}.bottom") < 900
    # A link to a part that is folded opens it.
    browser.run("document.querySelector('nav a[href=\"#residuals\"]').click()")
    opened = "document.querySelector('#residuals details.part').open"
    browser.until(lambda: browser.run(opened))
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    try:
        browser.draw_figures()
        assert browser.run("document.documentElement.scrollWidth") == 390
        browser.shoot("report-phone")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.errors() == []


def test_curves_are_read_off_and_enlarged(browser: Browser, identified, tmp_path: Path):
    from selenium.webdriver import ActionChains

    browser.open(write_report(identified, tmp_path / "report.html").as_uri())
    figure = browser.find("//section[@id='story']//div[@data-figure='1']")
    cover = browser.until(lambda: figure.find_elements("css selector", ".cover"))[0]
    ActionChains(browser.driver).move_to_element(cover).perform()
    values = "[...document.querySelectorAll('[data-figure=\"1\"] .key b')]"
    read = browser.run(f"{values}.map(b => b.textContent)")
    assert len(read) == 4
    assert all(read)
    drag = ActionChains(browser.driver).move_to_element(cover).click_and_hold()
    drag.move_by_offset(60, 0).release().perform()
    ticks = "[...document.querySelectorAll('[data-figure=\"1\"] .tick')]"
    near = browser.run(f"{ticks}.map(t => t.textContent)")
    cover = figure.find_element("css selector", ".cover")
    ActionChains(browser.driver).double_click(cover).perform()
    assert browser.run(f"{ticks}.map(t => t.textContent)") != near
    assert browser.errors() == []
