"""What the documents name exists: in Python, in the tree, under the same name."""

from __future__ import annotations

import dataclasses
import inspect
import re
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import armwise as aw
from armwise.moved import MOVED

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *ROOT.glob("docs/**/*.md")]
IN_PYTHON = re.compile(r"\b(?:aw|armwise)((?:\.[A-Za-z_]\w*)+)")
A_FILE = re.compile(r"`((?:[\w-]+/)+[a-z_-]+\.(?:py|toml|md|in))`|`((?:[a-z_]+/)+)`")


def missing(names: list[str]) -> str | None:
    """Say which part of a dotted name there is not; instances are not looked into."""
    value = aw
    for name in names:
        if not (inspect.ismodule(value) or inspect.isclass(value)):
            return None
        fields = getattr(value, "__dataclass_fields__", {})
        if value is aw and name in MOVED:
            return f"{name}, which is now {MOVED[name]}"
        if value is aw and find_spec(f"armwise.{name}"):
            import_module(f"armwise.{name}")  # as `from armwise.view import …` does
        if not hasattr(value, name):
            return None if name in fields else name
        value = getattr(value, name)
        if isinstance(value, dataclasses.Field):
            return None
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_in_documents_exist(page):
    dotted = set(IN_PYTHON.findall(page.read_text(encoding="utf-8")))
    wrong = {name: missing(name[1:].split(".")) for name in sorted(dotted)}
    assert {name: part for name, part in wrong.items() if part} == {}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_in_documents_exist(page):
    text = page.read_text(encoding="utf-8")
    named = {a or b for a, b in A_FILE.findall(text)}
    places = (ROOT, ROOT / "src" / "armwise", page.parent)
    assert {x for x in named if not any((p / x).exists() for p in places)} <= WRITTEN


WRITTEN = {"out/", "out/parts/", "code/", "load/", "nail/", "site/", "gallery/"}
"""Folders that commands write."""
