"""The gallery of papers, as a student sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from papers import PAPERS, groups, write_gallery

from .chromium import Browser

pytestmark = pytest.mark.slow

VISIBLE = "[...document.querySelectorAll('tr[data-verdict]')].filter(r => !r.hidden)\
.length"


@pytest.fixture(scope="module")
def gallery(tmp_path_factory) -> Path:
    """The whole site, of which only one cheap group was run."""
    folder = tmp_path_factory.mktemp("gallery")
    cheap = [group for group in groups("aah1986") if group.name == "links"]
    assert cheap
    write_gallery(folder, cheap, workers=1)
    return folder


def test_the_index_lists_every_paper_and_filters(browser: Browser, gallery: Path):
    browser.open((gallery / "index.html").as_uri())
    links = browser.run("[...document.links].map(a => a.getAttribute('href'))")
    assert {f"{paper.name}.html" for paper in PAPERS} <= set(links)
    every = browser.run(VISIBLE)
    assert every > 50
    browser.find("//input[@value='not run']").click()
    assert 0 < browser.run(VISIBLE) < every
    browser.shoot("gallery-index")
    assert browser.errors() == []
    assert browser.requests() == []


def test_a_paper_draws_its_figures_in_both_lights(browser: Browser, gallery: Path):
    browser.open((gallery / "aah1986.html").as_uri())
    assert browser.draw_figures() > 0
    browser.driver.execute_script(
        "document.querySelector('.figure').closest('section').scrollIntoView()"
    )
    browser.shoot("gallery-paper-light")
    browser.emulate("dark")
    browser.shoot("gallery-paper-dark")
    assert browser.errors() == []
    assert browser.requests() == []
