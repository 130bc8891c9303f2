"""Gallery as data: every experiment of every paper, with rows and figures.

A gallery is data; `pages.py` writes it as a static site, `to_dict` as JSON.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from papers.catalogue import PAPERS, Group, GroupResult, Paper, owner
from papers.drawings import Drawing, to_plain
from papers.experiments import Experiment, experiments, unlisted, what_we_did
from papers.rows import VERDICTS, Row
from papers.running import plain_row, program_hash

OUTCOMES = (*VERDICTS, "drawn", "illustration")
"""What can become of an experiment: the gravest verdict of its rows, or none."""

_GRAVITY = (
    "not run", "differs", "claim fails", "agrees", "better", "recovered", "claim holds",
    "paper's slip", "ours", "not comparable",
)  # fmt: skip
"""Which row speaks for its experiment, first to last."""


@dataclass(frozen=True, eq=False)
class Exhibit:
    """One experiment with all we have of it.

    Attributes:
        experiment: What the paper did.
        rows: Ours beside the paper's.
        drawings: Its figures.
        counted_for: The other paper for which its rows are counted, if any:
            `aah1986` is the clean print of two chapters of `atkeson1986`.
        ours: What we did, in a sentence or two.
    """

    experiment: Experiment
    rows: tuple[Row, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    counted_for: str = ""
    ours: str = ""

    @property
    def verdict(self) -> str:
        """The gravest of its rows; `drawn` if there are only figures."""
        if self.experiment.illustration:
            return "illustration"
        verdicts = {str(row["verdict"]) for row in self.rows}
        for verdict in _GRAVITY:
            if verdict in verdicts:
                return verdict
        return "drawn" if self.drawings else "not run"

    @property
    def outcome(self) -> str:
        """What came out, in a sentence: how many rows of each kind."""
        counts = count_verdicts(self.rows)
        parts = [
            f"{counts[v]} {_WORDS[v][counts[v] > 1]}" for v in VERDICTS if counts[v]
        ]
        return f"{'; '.join(parts)}." if parts else ""

    @property
    def claims(self) -> str:
        """What the paper says of it: its sentences, and how many numbers it prints."""
        said = [str(row["paper"]) for row in self.rows if row["kind"] == "claim"]
        sentences = "; ".join(f"“{text}”" for text in dict.fromkeys(said))
        numbers = sum(
            len(row["values"])
            for row in self.rows
            if row["kind"] in ("agrees", "better", "slip") and row["paper"] != "—"
        )
        plural = "numbers" if numbers > 1 else "number"
        counted = f"{numbers} printed {plural} (below)" if numbers else ""
        return ", and ".join(text for text in (sentences, counted) if text)

    @property
    def reason(self) -> str:
        """Why the first row that differs does so, as its probe says."""
        for row in self.rows:
            if row["probe"]:
                return str(row["note"]).partition(". ")[0]
        return ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain numbers and words."""
        own = self.experiment
        return {
            "name": own.name,
            "title": own.title,
            "at": own.at,
            "did": own.did,
            "group": own.group,
            "is_ours": own.is_ours,
            "illustration": own.illustration,
            "verdict": self.verdict,
            "claims": self.claims,
            "ours": self.ours,
            "outcome": self.outcome,
            "reason": self.reason,
            "counted_for": self.counted_for,
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
        """The rows that count for a paper: each row counts for one paper only."""
        own = [r for x in self.exhibits[paper] if not x.counted_for for r in x.rows]
        return list({id(row): row for row in own}.values())

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
    """How many rows there are of each verdict."""
    return Counter(str(row["verdict"]) for row in rows)


_WORDS = {
    "agrees": ("agrees with the paper", "agree with the paper"),
    "better": ("better than the paper",) * 2,
    "recovered": ("found again as simulated",) * 2,
    "claim holds": ("claim holds", "claims hold"),
    "claim fails": ("claim fails", "claims fail"),
    "differs": ("differs", "differ"),
    "paper's slip": ("slip of the paper", "slips of the paper"),
    "ours": ("of our own",) * 2,
    "not comparable": ("not comparable",) * 2,
    "not run": ("not run",) * 2,
}
"""Verdicts in a sentence, of one row and of several."""


def count_exhibits(shown: Sequence[Exhibit]) -> Counter[str]:
    """How many experiments there are of each verdict."""
    return Counter(exhibit.verdict for exhibit in shown)


def _hung(paper: Paper, made: Mapping[Group, GroupResult]) -> tuple[Exhibit, ...]:
    own = {g: part for g, part in made.items() if g.paper == paper.name}
    exhibits = []
    for experiment in experiments(paper.name):
        sources = {
            g: part
            for g, part in own.items()
            if any(experiment.covers(label) for label in part.labels)
        }
        rows = tuple(
            r
            for part in sources.values()
            for r in part.rows
            if experiment.covers(r["experiment"])
        )
        drawings = tuple(
            d
            for part in sources.values()
            for d in part.drawings
            if experiment.covers(d.experiment)
        )
        owners = {owner(g).name for g in sources}
        other = "" if paper.name in owners or not owners else min(owners)
        did = " ".join(what_we_did(g.module) for g in sources)
        exhibits.append(Exhibit(experiment, rows, drawings, other, did))
    return tuple(exhibits)
