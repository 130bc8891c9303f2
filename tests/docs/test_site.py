"""The documents as a site: it builds without a warning and needs no network."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import armwise
from armwise.cli.main import COMMANDS
from armwise.moved import MOVED

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", folder]
    done = subprocess.run(
        words,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_nothing_is_fetched_from_elsewhere(site):
    fetched = r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?:[^"]*)"'
    for page in site.rglob("*.html"):
        assert re.findall(fetched, page.read_text(encoding="utf-8")) == [], page
    # Nor when somebody searches: the index and the worker are in the site.
    assert 'iframe-worker.js"' in (site / "index.html").read_text(encoding="utf-8")
    assert "unpkg.com" not in (site / "index.html").read_text(encoding="utf-8")
    assert (site / "search" / "search_index.js").stat().st_size > 100_000


def test_the_first_page_has_a_picture(site):
    page = (site / "index.html").read_text(encoding="utf-8")
    assert 'src="pictures/gain.svg"' in page
    assert 10_000 < (site / "pictures" / "gain.svg").stat().st_size < 150_000


def test_equations_are_mathml(site):
    pages = [path.read_text(encoding="utf-8") for path in site.glob("theory/*.html")]
    equations = re.findall("<math.*?</math>", "".join(pages), re.S)
    assert len(equations) > 50
    assert [text for text in equations if "\\" in text] == []  # all was understood
    assert "arithmatex" not in "".join(pages)


def test_the_reference_holds_every_name_and_command(site):
    pages = [site / "reference" / "api.html", *site.glob("reference/api/*.html")]
    names = "".join(page.read_text(encoding="utf-8") for page in pages)
    folders = {
        name for name in armwise.__all__ if inspect.ismodule(getattr(armwise, name))
    }
    assert {page.stem for page in pages} == {"api", *folders}
    public = {*armwise.__all__, *MOVED} - folders - {"__version__", "reproduce"}
    for name in public:
        assert f'id="{name.lower()}' in names, name
    commands = (site / "reference" / "commands.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f'id="armwise-{name}' in commands, name
    assert "{{" not in re.sub(r"<script.*?</script>", "", names + commands, flags=re.S)
