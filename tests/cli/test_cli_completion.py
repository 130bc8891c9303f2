"""Shell completion, asked as the shells ask."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

START = [sys.executable, "-c", "from armwise.cli.main import main; main()"]


def ask(**environment: str) -> str:
    done = subprocess.run(
        START, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def complete(line: str) -> list[str]:
    """Return what bash would offer for the last word of a line."""
    words = line.split(" ")
    return ask(
        _ARMWISE_COMPLETE="complete_bash",
        COMP_WORDS=line,
        COMP_CWORD=str(len(words) - 1),
    ).split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (
            "armwise ident",
            {"identify", "identify-fleet", "identify-load", "identify-servo"},
        ),
        ("armwise inspect pan", {"panda"}),
        ("armwise identify two", {"two_link_slotine", "two_link_uno"}),
        ("armwise inspect-log run.csv --arm tx", {"tx40"}),
        ("armwise learn ddarm --model ur1", {"ur10"}),
        ("armwise control compare ddar", {"ddarm", "ddarm_identified"}),
        ("armwise identify panda run.csv --valid", {"--validate"}),
        ("armwise papers iz", {"izaguirre1992"}),
        ("armwise papers aah1986 li", {"links"}),
        ("armwise bench dyn", {"dynamics"}),
        ("armwise inspect my_own", set()),  # the shell completes files then
    ],
)
def test_bash_is_offered(line, offered):
    assert set(complete(line)) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_are_offered_the_same(shell):
    told = ask(
        _ARMWISE_COMPLETE=f"complete_{shell}",
        _TYPER_COMPLETE_ARGS="armwise inspect iiw",
        _TYPER_COMPLETE_FISH_ACTION="get-args",
    )
    assert "iiwa" in told
    assert "panda" not in told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell):
    script = ask(_ARMWISE_COMPLETE=f"source_{shell}")
    assert "_ARMWISE_COMPLETE=complete_" in script
    assert "armwise" in script


def test_it_can_be_installed(tmp_path):
    words = [*START, "--install-completion", "bash"]
    home = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    home["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    done = subprocess.run(words, capture_output=True, text=True, env=home)
    assert done.returncode == 0, done.stderr
    (script,) = tmp_path.rglob("armwise.sh")
    assert "_ARMWISE_COMPLETE" in script.read_text()
