"""Gallery as data: every experiment of every paper, with rows and figures.

A gallery is data; `pages.py` writes it as a static site, `to_dict` as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from papers.catalogue import PAPERS, Group, GroupResult, Paper
from papers.drawings import Drawing, to_plain
from papers.experiments import Experiment, experiments, unlisted
from papers.rows import Row
from papers.running import plain_row, program_hash

VERDICTS = ("agrees", "differs", "shown", "not run", "illustration")
"""What can become of an experiment."""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One experiment with all we have of it.

    Attributes:
        experiment: What the paper did.
        rows: Ours beside the paper's.
        drawings: Its figures.
    """

    experiment: Experiment
    rows: tuple[Row, ...] = ()
    drawings: tuple[Drawing, ...] = ()

    @property
    def verdict(self) -> str:
        """The gravest of its rows; `shown` if it is only drawn."""
        if self.experiment.illustration:
            return "illustration"
        found = {str(row["verdict"]) for row in self.rows}
        for verdict in ("not run", "differs", "agrees"):
            if verdict in found:
                return verdict
        return "shown" if self.rows or self.drawings else "not run"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain numbers and words."""
        own = self.experiment
        return {
            "name": own.name,
            "title": own.title,
            "did": own.did,
            "group": own.group,
            "is_ours": own.is_ours,
            "illustration": own.illustration,
            "verdict": self.verdict,
            "rows": [plain_row(row) for row in self.rows],
            "figures": [to_plain(drawing) for drawing in self.drawings],
        }


@dataclass(frozen=True, eq=False)
class Gallery:
    """All exhibits, paper by paper."""

    exhibits: Mapping[Paper, tuple[Exhibit, ...]]

    def missing(self) -> list[str]:
        """Experiments that were asked for and of which there is nothing."""
        return [
            f"{paper.name} {exhibit.experiment.name}"
            for paper, shown in self.exhibits.items()
            for exhibit in shown
            if exhibit.verdict == "not run"
        ]

    def rows(self, paper: Paper) -> list[Row]:
        """All rows of a paper, each once."""
        found = [row for x in self.exhibits[paper] for row in x.rows]
        return list({id(row): row for row in found}.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the gallery as plain numbers and words."""
        return {
            "program": program_hash(),
            "papers": [
                {
                    "name": paper.name,
                    "citation": paper.citation,
                    "about": paper.about,
                    "experiments": [exhibit.to_dict() for exhibit in shown],
                }
                for paper, shown in self.exhibits.items()
            ],
        }


def arrange(made: Mapping[Group, GroupResult]) -> Gallery:
    """Hang what groups made under the experiments it belongs to."""
    return Gallery({paper: _hung(paper, made) for paper in PAPERS})


def unplaced(made: Mapping[Group, GroupResult]) -> list[str]:
    """Rows and drawings that belong to no experiment of the list."""
    return [
        f"{group.paper} {label}"
        for group, part in made.items()
        for label in unlisted(group.paper, part.labels)
    ]


def cell(value: Any) -> str:
    """Write what a row holds for people: numbers short, several with commas."""
    if isinstance(value, bool | str):
        return str(value)
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Iterable):
        return ", ".join(cell(item) for item in value)
    return str(value)


def count_verdicts(rows: Iterable[Row]) -> Counter[str]:
    """How many rows agree, differ, are only shown, or were not run."""
    return Counter(str(row["verdict"]) for row in rows)


def count_exhibits(shown: Sequence[Exhibit]) -> Counter[str]:
    """How many experiments agree, differ, …"""
    return Counter(exhibit.verdict for exhibit in shown)


def _hung(paper: Paper, made: Mapping[Group, GroupResult]) -> tuple[Exhibit, ...]:
    own = [part for group, part in made.items() if group.paper == paper.name]
    return tuple(
        Exhibit(
            experiment,
            tuple(r for p in own for r in p.rows if experiment.covers(r["experiment"])),
            tuple(
                d for p in own for d in p.drawings if experiment.covers(d.experiment)
            ),
        )
        for experiment in experiments(paper.name)
    )
