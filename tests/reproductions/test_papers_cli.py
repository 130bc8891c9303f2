"""`armwise papers` as its users meet it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from armwise.cli import main as cli
from armwise.report import Figure
from papers.drawings import Drawing, line
from papers.rows import agrees


@pytest.fixture
def armwise(capsys, monkeypatch):
    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["armwise", "papers", *words])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return (exit_.value.code or 0), out, err

    return run


@pytest.fixture
def quick(monkeypatch):
    """Stand-ins for experiments that take their time."""
    import papers.catalogue as catalogue

    def redo(self, progress=None):
        only = agrees("Table 4", f"of {self.name}", "1.0", 1.25, note="said why")
        figure = Figure("Torque", "time [s]", "torque [N m]", (line("τ", [0], [1]),))
        return catalogue.GroupResult((only,), (Drawing("Fig. 8", figure),))

    monkeypatch.setattr(catalogue.Group, "redo", redo)


def test_lists_papers_and_groups(armwise):
    code, out, _ = armwise()
    assert code == 0
    for word in ("atkeson1986", "aah1986", "links", "reduction", "mitchell1997"):
        assert word in out
    _, out, _ = armwise("--json")
    assert {p["name"] for p in json.loads(out)} >= {"aah1986", "izaguirre1992"}


def test_rows_for_machines(armwise, quick):
    code, out, _ = armwise("aah1986", "links", "--json")
    assert code == 0
    (only,) = json.loads(out)
    assert only == {
        "experiment": "Table 4",
        "quantity": "of links",
        "paper": "1.0",
        "beside": "",
        "ours": "1.25",
        "verdict": "differs",
        "tolerance": "± 10 %",
        "note": "said why",
        "kind": "agrees",
        "values": [1.25],
        "low": [0.9],
        "high": [1.1],
        "sign": [],
        "printed": ["1.0"],
        "probe": {},
    }


def test_rows_for_people(armwise, quick):
    _, out, _ = armwise("aah1986", "links")
    assert "Table 4" in out
    assert "1.25" in out
    assert "said why" in out
    assert "Fig. 8: Torque; torque [N m]" in out


def test_all_writes_the_site(armwise, quick, tmp_path: Path):
    code, out, err = armwise("all", "-o", str(tmp_path / "gallery"), "--workers", "1")
    assert code == 0
    assert "151 experiments" in out
    assert "index.html" in out
    assert "differs" in err
    assert "not run yet" in err  # stand-ins show little
    assert (tmp_path / "gallery" / "izaguirre1992.html").is_file()


@pytest.mark.parametrize(
    ("words", "needle"),
    [
        (("knuth1968",), "Known: atkeson1986"),
        (("aah1986", "nothing"), "Known: "),
    ],
)
def test_mistakes_are_one_line(armwise, words, needle):
    code, _, err = armwise(*words)
    assert code == 1
    assert needle in err
    assert len(err.strip().splitlines()) == 1
    assert "Traceback" not in err


def test_a_folder_that_cannot_be_fails_before_the_work(armwise, monkeypatch, tmp_path):
    import papers.catalogue as catalogue

    def never(*_, **__):
        raise AssertionError("worked for nothing")

    monkeypatch.setattr(catalogue.Group, "redo", never)
    (tmp_path / "file").write_text("in the way")
    code, _, err = armwise("aah1986", "-o", str(tmp_path / "file"))
    assert code == 2  # the option itself is refused
    assert "file" in err


def test_all_takes_no_group(armwise):
    code, _, err = armwise("all", "links")
    assert code != 0
    assert "Traceback" not in err


@pytest.fixture
def without_checkout(monkeypatch, tmp_path):
    """Stand where neither the package nor the working directory has papers/."""
    from armwise.cli import checkout

    monkeypatch.setattr(checkout.armwise, "__file__", str(tmp_path / "a/b/c/d.py"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", [(), ("aah1986", "links"), ("all",)])
def test_without_a_checkout_one_sentence_says_so(armwise, without_checkout, words):
    code, out, err = armwise(*words)
    assert (code, out) == (1, "")
    assert "papers/ comes with the source tree" in err
    assert len(err.strip().splitlines()) == 1


def test_without_a_checkout_nothing_is_completed(without_checkout):
    from types import SimpleNamespace

    from armwise.cli.checkout import _group_names, _paper_names

    assert _paper_names("a") == []
    assert _group_names(SimpleNamespace(params={"name": "aah1986"}), "l") == []


def test_works_from_any_directory(armwise, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    code, out, _ = armwise("--json")
    assert code == 0
    assert "aah1986" in out


def test_kept_groups_count_only_for_the_program_that_made_them(monkeypatch, tmp_path):
    """A change in papers/ or in the package makes what was kept out of date."""
    import papers.running as store

    package, own = tmp_path / "armwise", tmp_path / "papers"
    names = set()
    for folder in (package, own):
        folder.mkdir()
        (folder / "a.css").write_text("1")
    monkeypatch.setattr("armwise.__file__", str(package / "__init__.py"))
    monkeypatch.setattr(store, "__file__", str(own / "running.py"))
    for path in (None, package / "a.css", own / "a.css"):
        if path is not None:
            path.write_text("2")
        store.program_hash.cache_clear()
        names.add(store.program_hash())
    store.program_hash.cache_clear()
    assert len(names) == 3
