"""Every command's --help teaches with examples, and they run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
import typer

from armwise.cli import demo
from armwise.cli.main import COMMANDS, app


def leaves() -> Iterator[tuple[str, ...]]:
    """Name every command that does something: `identify`, `world run`."""
    group = typer.main.get_command(app)
    for name in COMMANDS:
        command = group.get_command(None, name)
        parts = getattr(command, "commands", {})
        yield from ((name, part) for part in parts) if parts else [(name,)]


def kind_of(option: Any) -> str:
    """What an option takes: "float", "int", "path", … in any version of typer."""
    descriptor = getattr(option, "type_descriptor", None)  # from 0.29 on
    name = option.type.name if descriptor is None else str(descriptor.annotation)
    return next((k for k in ("float", "int", "path") if k in name.lower()), name)


def examples() -> Iterator[tuple[tuple[str, ...], str]]:
    group = typer.main.get_command(app)
    for words in leaves():
        command = group.get_command(None, words[0])
        for word in words[1:]:
            command = command.commands[word]
        for line in command.help.splitlines():
            if line.strip().startswith("Example: "):
                yield words, line.strip().removeprefix("Example: ")


EXAMPLES = list(examples())
TEXTS = [text for _, text in EXAMPLES]


@pytest.mark.parametrize("words", list(leaves()), ids=" ".join)
def test_every_command_has_an_example(words):
    assert [text for owner, text in EXAMPLES if owner == words]


@pytest.mark.parametrize(
    ("words", "text"), EXAMPLES, ids=[text for _, text in EXAMPLES]
)
def test_the_example_is_shown_whole(words, text, armwise, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = [line.strip() for line in armwise(*words, "--help").out.splitlines()]
    assert f"Example: {text}" in shown
    assert text.split()[1 : 1 + len(words)] == list(words)


@pytest.mark.parametrize("text", TEXTS)
def test_the_example_runs(text, armwise, workplace, monkeypatch):
    monkeypatch.setattr("armwise.view.serve_scene", lambda _, port, tell: tell("URL"))
    monkeypatch.setattr(demo, "BUDGET", (0.5, 0.2))
    monkeypatch.setattr(demo, "DURATION", 3.0)
    said = armwise(*shlex.split(text)[1:])
    assert said.code == 0, said.err
    assert said.out
    for path in written(text):
        assert (workplace / path).exists(), path


def written(text: str) -> list[str]:
    """What an example says it writes."""
    words = shlex.split(text)
    return [path for flag, path in pairwise(words) if flag == "-o"]
