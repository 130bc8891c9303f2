"""`armwise view` at the terminal; what it shows is tested in tests/browser."""

from __future__ import annotations

import builtins
import json
import socket
import sys
from pathlib import Path

import pytest

import armwise as aw
from armwise.cli import main as cli
from armwise.errors import ArgumentError, MissingExtra
from armwise.view import distinct_names, make_scene, serve_scene
from armwise.view.serve import HOST, PORT, Player, free_port


@pytest.fixture
def armwise(capsys, monkeypatch):
    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["armwise", *words])
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        out, err = capsys.readouterr()
        return (exit_.value.code or 0), out, err

    return run


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl-C as soon as the page can be opened."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Player, "step", stop)


@pytest.mark.usefixtures("interrupted")
def test_it_says_where_to_look_and_ends_quietly(armwise):
    code, out, err = armwise("view", "two_link_uno")
    assert (code, err) == (0, "")
    *notes, last = out.splitlines()
    assert last.startswith(f"Open http://{HOST}:")
    assert "bones" in " ".join(notes)


@pytest.mark.usefixtures("interrupted")
def test_machines_are_told_the_address(armwise):
    code, out, _ = armwise("view", "two_link_uno", "--json")
    printed = json.loads(out)
    assert code == 0
    assert printed["address"].startswith("http://127.0.0.1:")
    assert printed["arm"] == "two_link_uno"


@pytest.mark.usefixtures("interrupted")
def test_a_busy_port_is_one_sentence(armwise):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = armwise("view", "two_link_uno", "--port", str(port))
        assert code == 1
        assert f"Port {port} cannot be used" in err
        assert "--port" in err
    assert armwise("view", "two_link_uno", "--port", "99999")[0] == 2


def test_without_a_wish_any_free_port_will_do():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, PORT))
            taken.listen()
        except OSError:
            pass  # somebody else has it: as good
        assert free_port(None) not in (0, PORT)


def test_without_viser_it_says_what_to_install(monkeypatch):
    real = builtins.__import__

    def without(name: str, *more: object, **options: object):
        if name == "viser":
            raise ImportError(name)
        return real(name, *more, **options)

    scene = make_scene(aw.load_arm("two_link_uno"))
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtra, match=r"armwise\[view\]"):
        serve_scene(scene)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no_such_arm"], "neither a file nor a bundled arm"),
        (["panda", "missing.csv"], "does not exist"),
        (["panda", "--estimate", "missing.json"], "cannot be read"),
        (["panda", "--world", "missing.toml"], "missing.toml"),
    ],
)
def test_mistakes_are_one_line(armwise, words: list[str], why: str):
    code, out, err = armwise("view", *words)
    assert code != 0
    assert out == ""
    assert why in err
    assert len(err.splitlines()) == 1


def test_estimates_are_called_by_what_tells_them_apart():
    assert distinct_names([]) == {}
    assert list(distinct_names([Path("out/estimate.json")])) == ["estimate"]
    two = [Path("a/x/estimate.json"), Path("b/x/estimate.json")]
    assert list(distinct_names(two)) == ["a/x/estimate", "b/x/estimate"]


def test_ports_must_be_ports():
    with pytest.raises(ArgumentError):
        free_port(-1)
