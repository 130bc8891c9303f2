"""The catalogue of papers, and running its groups."""

from __future__ import annotations

import pytest

from armwise.errors import ArgumentError, MissingExtra
from papers import PAPERS, groups, reproduce, run_groups
from papers.catalogue import find_groups
from papers.gallery import cell
from papers.rows import agrees


def test_every_paper_has_groups_that_can_be_run():
    names = [paper.name for paper in PAPERS]
    assert names == [
        "atkeson1986",
        "aah1986",
        "izaguirre1992",
        "astley1996",
        "mitchell1997",
    ]
    for name in names:
        found = groups(name)
        assert found
        assert all(group.title for group in found)
        assert len({group.name for group in found}) == len(found)


def test_every_part_of_the_papers_has_its_group():
    wanted = {
        "atkeson1986": {"tables", "links", "filtering", "learning", "control"},
        "aah1986": {"tables", "links"},
        "izaguirre1992": {"reduction", "code"},
        "astley1996": {"adaptive"},
        "mitchell1997": {"worlds", "mixtures"},
    }
    for paper, names in wanted.items():
        assert names <= {group.name for group in groups(paper)}


def test_shared_experiments_are_done_once(monkeypatch):
    import papers.aah_links as module

    calls = []
    monkeypatch.setattr(module, "rows", lambda: calls.append(1) or [])
    monkeypatch.setattr(module, "figures", list)
    (ours,) = find_groups("aah1986", "links")
    (shared,) = find_groups("atkeson1986", "links")
    assert set(run_groups([ours, shared])) == {ours, shared}
    assert len(calls) == 1


def test_unknown_names_list_the_known_ones():
    with pytest.raises(ArgumentError, match="aah1986"):
        groups("knuth1968")
    with pytest.raises(ArgumentError, match="links"):
        find_groups("aah1986", "figures")
    with pytest.raises(ArgumentError):
        reproduce("aah1986", "nothing")


def test_a_missing_package_is_not_run_rather_than_passed(monkeypatch):
    import papers.aah_links as module

    def refuse():
        raise MissingExtra("mujoco", "sim", "This")

    monkeypatch.setattr(module, "rows", refuse)
    monkeypatch.setattr(module, "figures", refuse)
    made = reproduce("aah1986", "links")
    assert {row["experiment"] for row in made} >= {"Table 4", "Table 5", "Fig. 8"}
    assert all(row["verdict"] == "not run" for row in made)
    assert all("mujoco" in row["note"] for row in made)


def test_groups_tell_how_far_they_are(monkeypatch):
    import papers.aah_links as module

    def slow(progress=None):
        progress(1, 2)
        return [agrees("Table 1", "x", "1", 1)]

    monkeypatch.setattr(module, "rows", slow)
    monkeypatch.setattr(module, "figures", list)
    told: list[float] = []
    run_groups(find_groups("aah1986", "links"), lambda what, share: told.append(share))
    assert told == [0.0, 0.5, 1.0, 1.0]


def test_cells_are_readable():
    assert cell(0.123456789) == "0.123457"
    assert cell(15.7029) == "15.7029"  # a paper's digits stay
    assert cell((1, 2.0, "three")) == "1, 2, three"
    assert cell("±") == "±"
