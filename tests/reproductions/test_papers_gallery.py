"""The gallery: every experiment under its name, pages that open from disk, resuming."""

from __future__ import annotations

import json
import re
from html import escape
from pathlib import Path

import numpy as np
import pytest

from armwise.errors import ArgumentError
from armwise.report import Figure
from papers import PAPERS, experiments, run_groups
from papers.catalogue import Group, GroupResult
from papers.drawings import Drawing, from_plain, line, paper_points, to_plain
from papers.experiments import what_we_did
from papers.gallery import Exhibit, arrange, unplaced
from papers.pages import claim_drawing, ratio_drawing, write_pages
from papers.pin import pin
from papers.rows import agrees, claim, explained
from papers.running import Store

GROUP = Group("aah1986", "links", "papers.aah_links", "Links")


def drawing(experiment: str = "Fig. 8", title: str = "Torque <i>") -> Drawing:
    time = np.linspace(0.0, 1.0, 5000)
    curves = (
        line("ours", time, np.sin(time)),
        paper_points("paper", [0.5], [0.4]),
    )
    return Drawing(experiment, Figure(title, "time [s]", "[N m]", curves), "a note")


@pytest.fixture
def made() -> dict[Group, GroupResult]:
    rows = (
        agrees("Table 4", "<b>mass</b>", "1.0", 1.2, note="because & so"),
        agrees("Table 5", "sum", ("2.0", "3.0"), (2.0, 3.01)),
        agrees(
            "Table 5", "other sum", ("2.0", "3.0"), np.array([2.0, 3.0]), note="said"
        ),
    )
    return {GROUP: GroupResult(rows, (drawing(),), 1.5)}


@pytest.fixture
def site(made, tmp_path: Path) -> Path:
    write_pages(tmp_path / "gallery", arrange(made))
    return tmp_path / "gallery"


def test_a_label_belongs_to_its_experiment_and_to_no_longer_number():
    table = next(e for e in experiments("aah1986") if e.name == "Table 1")
    assert table.covers("Table 1")
    assert table.covers("Table 1, static")
    assert not table.covers("Table 10")
    assert not table.covers("Table 2")


def test_every_experiment_hangs_with_its_verdict(made):
    gallery = arrange(made)
    shown = {
        exhibit.experiment.name: exhibit
        for paper, exhibits in gallery.exhibits.items()
        for exhibit in exhibits
        if paper.name == "aah1986"
    }
    assert shown["Table 4"].verdict == "differs"
    assert shown["Table 5"].verdict == "agrees"
    assert shown["Fig. 8"].verdict == "drawn"
    assert shown["Table 5"].outcome == "2 agree with the paper."
    assert shown["Fig. 2"].verdict == "illustration"
    assert shown["Table 1"].verdict == "not run"
    assert "aah1986 Table 1" in gallery.missing()
    assert "aah1986 Fig. 2" not in gallery.missing()


def test_an_exhibit_tells_what_was_claimed_done_and_found(made, site: Path):
    rows = (
        *made[GROUP].rows[1:],
        claim("Table 5", "heavier", "it is heavy", 3.0, above=2.0, why="w"),
        explained(
            claim("Table 5", "lighter", "it is light", 3.0, below=2.0, why="w"),
            "on the moon it is {:.1f}", 0.5, below=1.0,
        ),
    )  # fmt: skip
    gallery = arrange({GROUP: GroupResult(rows)})
    shown = next(x for x in _of(gallery, "aah1986") if x.experiment.name == "Table 5")
    assert shown.claims.startswith(
        "“it is heavy”; “it is light”, and 4 printed numbers"
    )
    assert shown.ours == what_we_did(GROUP.module)
    assert shown.reason == "Why: on the moon it is 0.5"
    write_pages(site, gallery)
    page = (site / "aah1986.html").read_text(encoding="utf-8")
    assert "Table 5 (§4.2.1)" in page
    for text in (shown.claims, shown.outcome, shown.reason):
        assert escape(text) in page


def test_the_papers_value_is_drawn_beside_every_judged_row():
    table = next(e for e in experiments("aah1986") if e.name == "Table 5")
    one = Exhibit(table, (agrees("Table 5", "x", "2.0", 2.1),))
    bound = Exhibit(table, (claim("Table 5", "x", "small", 0.1, below=0.2, why="w"),))
    ratio, against = ratio_drawing(one), claim_drawing(bound)
    assert claim_drawing(one) is None
    assert ratio_drawing(bound) is None
    for drawn, ours in ((ratio, 2.1 / 2.0), (against, 0.5)):
        curves = {curve.role: curve for curve in drawn.figure.curves}
        assert curves["series"].y == pytest.approx([ours])
        assert np.all(curves["printed"].y == 1.0)


def _of(gallery, paper: str):
    return next(x for p, x in gallery.exhibits.items() if p.name == paper)


def test_what_is_on_no_list_is_noticed(made):
    assert unplaced(made) == []
    made[GROUP] = GroupResult((agrees("Table 99", "x", "1", 1),), (drawing("Fig. 99"),))
    assert unplaced(made) == ["aah1986 Table 99", "aah1986 Fig. 99"]


def test_pages_link_only_to_what_is_there(site: Path):
    files = {path.name for path in site.iterdir()}
    pages = {f"{p.name}.html" for p in PAPERS}
    assert files == {"index.html", "gallery.json", "plotly.js", *pages}
    for path in site.glob("*.html"):
        text = path.read_text(encoding="utf-8")
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            name, _, anchor = target.partition("#")
            assert not name or name in files
            if anchor:
                there = (site / (name or path.name)).read_text(encoding="utf-8")
                assert f'id="{anchor}"' in there
        # SVG's namespace is a name; nobody asks there for anything.
        names = r"http-equiv|http://www\.w3\.org/2000/svg"
        assert "http" not in re.sub(names, "", text)


def test_every_experiment_is_on_the_index_and_on_its_page(site: Path):
    index = (site / "index.html").read_text(encoding="utf-8")
    for paper in PAPERS:
        page = (site / f"{paper.name}.html").read_text(encoding="utf-8")
        anchors = [e.anchor for e in experiments(paper.name)]
        assert len(set(anchors)) == len(anchors)
        for anchor in anchors:
            assert f'href="{paper.name}.html#{anchor}"' in index
            assert f'id="{anchor}"' in page


def test_pages_escape_and_draw(site: Path):
    page = (site / "aah1986.html").read_text(encoding="utf-8")
    assert "<b>mass" not in page
    assert "&lt;b&gt;mass" in page
    assert "because &amp; so" in page
    assert 'data-figure="0"' in page
    assert "a note" in page
    assert "2.0, 3.0" in page


def test_the_json_is_the_same_gallery(site: Path, made):
    plain = json.loads((site / "gallery.json").read_text(encoding="utf-8"))
    assert [paper["name"] for paper in plain["papers"]] == [p.name for p in PAPERS]
    found = {e["name"]: e for e in plain["papers"][1]["experiments"]}
    assert found["Table 5"]["rows"][1]["values"] == [2.0, 3.0]
    assert found["Fig. 8"]["figures"][0]["curves"][1] == {
        "name": "paper",
        "role": "printed",
        "x": [0.5],
        "y": [0.4],
    }


def test_drawings_survive_being_written():
    plain = json.loads(json.dumps(to_plain(drawing())))
    assert to_plain(from_plain(plain)) == plain
    assert len(plain["curves"][0]["x"]) <= 400


def test_finished_groups_are_not_done_again(made, tmp_path: Path, monkeypatch):
    store, calls = Store(tmp_path / "parts"), []

    def redo(self, progress=None):
        calls.append(self.name)
        return made[GROUP]

    monkeypatch.setattr(Group, "redo", redo)
    first = run_groups([GROUP], store=store)
    again = run_groups([GROUP], store=store)
    assert calls == ["links"]
    assert [r["verdict"] for r in again[GROUP].rows] == ["differs", "agrees", "agrees"]
    assert to_plain(again[GROUP].drawings[0]) == to_plain(first[GROUP].drawings[0])


def test_what_another_program_made_does_not_count(made, tmp_path: Path, monkeypatch):
    import papers.running as module

    store = Store(tmp_path)
    store.write(GROUP.module, made[GROUP])
    assert store.read(GROUP.module) is not None
    monkeypatch.setattr(module, "program_hash", lambda: "another")
    assert store.read(GROUP.module) is None


def test_half_a_file_and_what_was_not_run_do_not_count(made, tmp_path: Path):
    store = Store(tmp_path)
    store.write(GROUP.module, made[GROUP])
    (kept,) = tmp_path.iterdir()
    kept.write_text(kept.read_text()[:100])
    assert store.read(GROUP.module) is None
    kept.unlink()
    absent = {**agrees("Table 4", "x", "1", 1), "verdict": "not run"}
    store.write(GROUP.module, GroupResult((absent,)))
    assert store.read(GROUP.module) is None


def test_weak_rows_are_not_pinned(tmp_path: Path):
    store = Store(tmp_path / "parts")
    good = agrees("Table 4", "x", "1.0", 1.0)
    store.write(GROUP.module, GroupResult((good,)))
    assert '"Table 4: x" = "agrees"' in pin(tmp_path)
    for weak, message in (
        (agrees("Table 4", "x", "1.0", 1.2), "no probe"),
        (claim("Table 4", "x", "s", 0.1, below=1e9, why="w"), "cannot fail"),
    ):
        store.write(GROUP.module, GroupResult((weak,)))
        with pytest.raises(ArgumentError, match=message):
            pin(tmp_path)
