"""The same flag means the same in every command that has it."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from armwise.cli.main import app
from tests.cli.test_cli_examples import leaves

LOG_FLAGS = {"--mapping", "--column", "--skip-bad-rows"}


@pytest.fixture(params=list(leaves()), ids=" ".join)
def options(request) -> dict[str, Any]:
    """A command's arguments and options, by every name they have."""
    command: Any = typer.main.get_command(app)
    for word in request.param:
        command = command.get_command(None, word)
    return {name: option for option in command.params for name in option.opts}


def test_every_command_speaks_to_machines(options):
    assert "--json" in options


def test_o_is_output(options):
    assert ("-o" in options) == ("--output" in options)
    assert options.get("-o") is options.get("--output")


def test_commands_on_logs_read_any_log(options):
    if any(option.metavar == "LOG" for option in options.values()):
        assert set(options) >= LOG_FLAGS


def test_units_are_in_the_help_or_the_name(options):
    for name, option in options.items():
        if "[Hz]" in (option.help or "") and name.startswith("--"):
            assert name.endswith("-hz")


def test_an_arm_can_be_completed(options):
    for name in ("arm", "--arm", "--model"):
        if name in options:
            assert options[name]._custom_shell_complete is not None
