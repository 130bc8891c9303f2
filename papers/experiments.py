"""Every table and figure of the five papers, and where it is done again.

The list itself is data, `experiments.toml`; a test asks that nothing in it is missing.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Experiment:
    """A table, a figure or a numbered claim of a paper.

    Attributes:
        paper: The paper's short name.
        name: As the paper numbers it, such as `Table 2`.
        at: Its page, or its section if pages are lost; empty if its name says it.
        title: What it is.
        did: What the paper did, in a sentence or two.
        group: Which group of ours redoes it; empty for an illustration.
        labels: What rows and drawings call it.
        illustration: What it is where there is nothing to compute: a photograph, ….
        is_ours: Whether the paper has no such thing: we went on from there.
    """

    paper: str
    name: str
    title: str
    at: str = ""
    did: str = ""
    group: str = ""
    labels: tuple[str, ...] = ()
    illustration: str = ""
    is_ours: bool = False

    @property
    def anchor(self) -> str:
        """Its place on a page."""
        kept = (c if c.isascii() and c.isalnum() else "-" for c in self.name.lower())
        return "-".join(part for part in "".join(kept).split("-") if part)

    def covers(self, label: str) -> bool:
        """Whether a row or drawing with this label belongs to it.

        `Table 1` covers `Table 1` and `Table 1, static`, but not `Table 10`.
        """
        return any(label == own or label.startswith(f"{own},") for own in self.labels)


@cache
def experiments(paper: str) -> tuple[Experiment, ...]:
    """List the experiments of a paper, in its order."""
    return tuple(_experiment(paper, entry) for entry in _listed().get(paper, ()))


def expected_seconds(module: str) -> float:
    """How long a module took on one core of an ordinary machine in [s]."""
    return float(_listed()["seconds"].get(module.rpartition(".")[2], 10.0))


def what_we_did(module: str) -> str:
    """What a module did, in a sentence or two for the page's reader."""
    return str(_listed()["ours"][module.rpartition(".")[2]])


def unlisted(paper: str, labels: Iterable[str]) -> list[str]:
    """Labels that belong to no experiment of a paper."""
    own = experiments(paper)
    return [x for x in dict.fromkeys(labels) if not any(e.covers(x) for e in own)]


@cache
def _listed() -> dict[str, Any]:
    text = Path(__file__).with_name("experiments.toml").read_text("utf-8")
    return tomllib.loads(text)


def _experiment(paper: str, entry: dict[str, Any]) -> Experiment:
    labels = tuple(entry.get("labels", [entry["name"]]))
    return Experiment(paper, **{**entry, "labels": labels})
