"""What the documents show is run: the tutorial first, then the how-to pages on it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from armwise.cli.main import COMMANDS
from tests.docs.blocks import read_blocks, run_block

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIAL = DOCS / "tutorial.md"
PAGES = sorted(
    [*DOCS.glob("how-to/*.md"), *DOCS.glob("extend/*.md"), DOCS / "choose.md"]
)
DATA = Path(os.environ.get("ARMWISE_DATA", ROOT / ".." / "shared" / "data")).resolve()


@pytest.fixture(scope="session")
def followed(tmp_path_factory) -> Path:
    """A folder in which someone has followed the tutorial."""
    folder = tmp_path_factory.mktemp("tutorial")
    before = Path.cwd()
    os.chdir(folder)
    try:
        names: dict[str, object] = {}
        for block in read_blocks(TUTORIAL):
            if not block.needs_data:
                run_block(block, names, TUTORIAL)
    finally:
        os.chdir(before)
    return folder


def test_the_tutorial_leads_to_a_model(followed):
    out = {path.name for path in (followed / "out").iterdir()}
    assert out == {"estimate.json", "identified.urdf", "report.html"}
    assert (followed / "small.json").exists()
    assert (followed / "code" / "ur5.c").exists()


@pytest.mark.skipif(
    not (DATA / "ur10").is_dir(), reason=f"no recordings in {DATA} (ARMWISE_DATA)"
)
def test_three_commands_on_a_real_arm(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ARMWISE_DATA", str(DATA))
    (block,) = [block for block in read_blocks(TUTORIAL) if block.needs_data]
    assert len(block.text.splitlines()) == 3
    run_block(block, {}, TUTORIAL)
    assert "wrist_3_joint" in capsys.readouterr().out
    assert (tmp_path / "ur10" / "identified.urdf").exists()
    assert list((tmp_path / "ur10" / "code").glob("*.c"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page, followed, tmp_path, monkeypatch):
    folder = tmp_path / "followed"
    shutil.copytree(followed, folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("armwise.view.serve_scene", lambda _, port, tell: tell("URL"))
    names: dict[str, object] = {}
    for block in read_blocks(page):
        run_block(block, names, page)


def test_the_readme_speaks_of_every_command_and_its_own_run(
    followed, tmp_path, monkeypatch
):
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    told = set(re.findall(r"(?:armwise|make) ([a-z-]+)", text))
    assert set(COMMANDS) - told == set()
    folder = tmp_path / "followed"
    shutil.copytree(followed, folder)
    monkeypatch.chdir(folder)
    shutil.copy("run1.csv", "run.csv")
    for block in read_blocks(readme):
        if block.kind == "sh" and block.text.startswith("armwise"):
            run_block(block, {}, readme)


def test_every_page_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert {page for page in pages if page not in listed} == set()
