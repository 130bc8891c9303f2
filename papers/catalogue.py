"""The catalogue of papers: what each built, and which modules here redo it.

A module `atkeson_learning.py` with a function `rows()` is the group `learning` of
`atkeson1986`: the first word of its name says which paper, the rest names the group. A
function `figures()` beside it draws; what both need is computed once and cached there.
"""

from __future__ import annotations

import pkgutil
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from inspect import signature
from time import perf_counter
from types import ModuleType

from armwise.errors import ArgumentError, MissingExtra
from armwise.progress import Progress
from papers.drawings import Drawing
from papers.experiments import expected_seconds, experiments
from papers.rows import Row, not_run


@dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes:
        name: Its short name.
        title: What readers know it by.
        prefix: First word of the modules that redo it.
        citation: Who, what, where.
        about: What it built, in a sentence.
    """

    name: str
    title: str
    prefix: str
    citation: str
    about: str


@dataclass(frozen=True)
class GroupResult:
    """Rows and figures of a group.

    Attributes:
        rows: Ours beside the paper's.
        drawings: Its figures.
        seconds: How long it took in [s].
    """

    rows: tuple[Row, ...]
    drawings: tuple[Drawing, ...] = ()
    seconds: float = 0.0

    @property
    def labels(self) -> list[str]:
        """Which experiments it speaks of, by the names it gives them."""
        return [str(row["experiment"]) for row in self.rows] + [
            drawing.experiment for drawing in self.drawings
        ]


@dataclass(frozen=True)
class Group:
    """Experiments of a paper that are redone together.

    Attributes:
        paper: The paper's short name.
        name: Its own.
        module: The module that redoes them.
        title: What they are, from that module's description.
    """

    paper: str
    name: str
    module: str
    title: str

    @property
    def seconds(self) -> float:
        """How long it is expected to take in [s]."""
        return expected_seconds(self.module)

    def redo(self, progress: Progress | None = None) -> GroupResult:
        """Redo the experiments and draw their figures."""
        began = perf_counter()
        rows, drawings = self.rows(progress), tuple[Drawing, ...]()
        draw = getattr(import_module(self.module), "figures", tuple)
        with suppress(MissingExtra):  # the rows say so
            drawings = tuple(draw())
        return GroupResult(tuple(rows), drawings, perf_counter() - began)

    def rows(self, progress: Progress | None = None) -> list[Row]:
        """Redo the experiments; ours beside the paper's."""
        redo = import_module(self.module).rows
        extra = {}
        if progress is not None and "progress" in signature(redo).parameters:
            extra["progress"] = lambda done, every: progress(self.name, done / every)
        try:
            rows = redo(**extra)
        except MissingExtra as missing:
            return _not_run(self, str(missing))
        return list(rows)


PAPERS = (
    Paper(
        "atkeson1986",
        "Atkeson 1986: knowledge in motor learning",
        "atkeson",
        "C. G. Atkeson, Roles of Knowledge in Motor Learning, thesis, Massachusetts "
        "Institute of Technology, 1986",
        "Load and link identification, optimal filtering, learning from practice, "
        "feedforward and computed-torque control.",
    ),
    Paper(
        "aah1986",
        "Atkeson, An, Hollerbach 1986: inertia of loads and links",
        "aah",
        "C. G. Atkeson, C. H. An, J. M. Hollerbach, Estimation of Inertial Parameters "
        "of Manipulator Loads and Links, IJRR 5(3), 1986",
        "Inertial parameters of loads and links from wrist force and joint torque.",
    ),
    Paper(
        "izaguirre1992",
        "Izaguirre et al. 1992: dynamics in real time",
        "izaguirre",
        "A. Izaguirre, M. Hashimoto, R. P. Paul, V. Hayward, A New Computational "
        "Structure for Real-Time Dynamics, IJRR 11(4), 1992",
        "Reduced models, generated code, background and synchronous tasks.",
    ),
    Paper(
        "astley1996",
        "Astley 1996: arms that calibrate themselves",
        "astley",
        "O. R. Astley, Autonomous Joint Calibration Using Adaptive Control, thesis, "
        "McGill University, 1996",
        "Autonomous calibration of joint sensors with adaptive control, gravity as the "
        "reference.",
    ),
    Paper(
        "mitchell1997",
        "Mitchell 1997: simulation and control of limbs",
        "mitchell",
        "M. Q. Mitchell, Dynamical Simulation and Control of Articulated Limbs, "
        "thesis, California Institute of Technology, 1997",
        "Simulation of articulated bodies under dynamic constraints; mixture "
        "compensators for adaptive tracking.",
    ),
)
"""The five papers, oldest first."""


SHARED = {
    "atkeson1986": ("aah_links", "aah_signals", "aah_uses"),
    "aah1986": ("atkeson_tables",),
}
"""Modules of one paper that redo another's experiments as well: `aah1986` is the clean
print of chapters 3 and 4 of `atkeson1986`."""


def find_paper(name: str) -> Paper:
    """Return a paper by its short name."""
    for paper in PAPERS:
        if paper.name == name:
            return paper
    known = ", ".join(paper.name for paper in PAPERS)
    raise ArgumentError(f"There is no paper {name!r} here. Known: {known}.")


def owner(group: Group) -> Paper:
    """The paper to which a group's module belongs, though another may share it."""
    word = group.module.rpartition(".")[2].partition("_")[0]
    return next(paper for paper in PAPERS if paper.prefix == word)


@cache
def groups(paper: str) -> tuple[Group, ...]:
    """List the groups of experiments of a paper."""
    import papers

    prefix = f"{find_paper(paper).prefix}_"
    names = [entry.name for entry in pkgutil.iter_modules(papers.__path__)]
    own = [name for name in names if name.startswith(prefix)]
    shared = [name for name in SHARED.get(paper, ()) if name in names]
    result = []
    for name in (*own, *shared):
        module = import_module(f"papers.{name}")
        if hasattr(module, "rows"):
            short = name.split("_", 1)[1]
            result.append(Group(paper, short, module.__name__, _title(module)))
    return tuple(result)


def _title(module: ModuleType) -> str:
    """What a module is about: the first line of its description, from the colon on."""
    first = (module.__doc__ or "").strip().split("\n")[0]
    title = first.partition(": ")[2] or first
    return title[:1].upper() + title[1:]


def find_groups(paper: str, group: str | None = None) -> tuple[Group, ...]:
    """Return all groups of a paper, or the one that is named."""
    every = groups(paper)
    if group is None:
        return every
    selection = tuple(g for g in every if g.name == group)
    if not selection:
        names = ", ".join(g.name for g in every)
        raise ArgumentError(f"{paper} has no group {group!r}. Known: {names}.")
    return selection


def _not_run(group: Group, why: str) -> list[Row]:
    own = [e for e in experiments(group.paper) if e.group == group.name]
    return [not_run(e.labels[0], e.title, why) for e in own]
