"""The same flag means the same in every command that has it."""

from __future__ import annotations

import re
from typing import Any

import typer

from armwise.cli.main import app
from tests.cli.test_cli_examples import kind_of, leaves

LOG_FLAGS = {"--mapping", "--column", "--skip-bad-rows"}
UNIT_SUFFIXES = {"-hz": "[Hz]", "-deg": "[°]", "-percent": "[%]", "-mrad": "[mrad]"}
"""What is not in SI, and rates, say so in the flag itself."""
UNIT = re.compile(
    r"\[(1|Hz|s|1/h|m|rad|mrad|rad/s|kg|N|N m|°|%)\]|[Ff]raction|[Rr]elative"
)


def options_of(words: tuple[str, ...]) -> dict[str, Any]:
    """Return a command's arguments and options, by every name they have."""
    command: Any = typer.main.get_command(app)
    for word in words:
        command = command.get_command(None, word)
    return {name: option for option in command.params for name in option.opts}


COMMANDS = {" ".join(words): options_of(words) for words in leaves()}


def test_every_command_speaks_to_machines():
    assert [name for name, options in COMMANDS.items() if "--json" not in options] == []


def test_o_is_output():
    for name, options in COMMANDS.items():
        assert options.get("-o") is options.get("--output"), name
    assert sum("-o" in options for options in COMMANDS.values()) > 10


def test_commands_on_logs_read_any_log():
    reading = {
        name: set(options)
        for name, options in COMMANDS.items()
        if any(option.metavar == "LOG" for option in options.values())
    }
    assert {"inspect-log", "identify", "identify-load", "calibrate"} <= set(reading)
    assert [name for name, flags in reading.items() if not flags >= LOG_FLAGS] == []


def numbers() -> dict[str, Any]:
    """Every option that takes a number with a fraction, by command and flag."""
    return {
        f"{name} {flag}": option
        for name, options in COMMANDS.items()
        for flag, option in options.items()
        if flag.startswith("--") and kind_of(option) == "float"
    }


def test_every_number_says_its_unit():
    assert len(numbers()) > 30
    silent = [
        name for name, option in numbers().items() if not UNIT.search(option.help)
    ]
    assert silent == []


def test_a_flag_and_its_help_have_the_same_unit():
    differing = [
        name
        for name, option in numbers().items()
        for suffix, unit in UNIT_SUFFIXES.items()
        if name.endswith(suffix) != (unit in option.help)
    ]
    assert differing == []


def test_an_arm_can_be_completed():
    arms = {
        f"{name} {flag}": option
        for name, options in COMMANDS.items()
        for flag, option in options.items()
        if flag in ("arm", "--arm", "--model")
    }
    assert len(arms) > 10
    assert [name for name, arm in arms.items() if not arm._custom_shell_complete] == []
