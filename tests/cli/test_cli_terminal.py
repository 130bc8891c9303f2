"""Ctrl-C in the midst of writing, colours only for eyes, and the codes of exits."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import armwise as aw

START = [sys.executable, "-c", "from armwise.cli.main import main; main()"]


def interrupt(words: list[str], folder: Path, ready: Callable[[], bool]) -> tuple:
    """Start a command, press Ctrl-C as soon as something is so; how did it end?"""
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*START, *words], cwd=folder, **pipe) as process:
        deadline = time.monotonic() + 60.0
        while not ready() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.0005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60.0)
    return process.returncode, err


@pytest.mark.parametrize("name", ["run.csv", "run.parquet"])
def test_ctrl_c_while_writing_keeps_the_old_file(name, tmp_path):
    (tmp_path / name).write_text("old")
    words = ["simulate", "panda", "--duration", "40", "-o", name]
    code, err = interrupt(words, tmp_path, lambda: any(tmp_path.glob(".armwise-*/*")))
    assert (code, err) == (130, "armwise: Interrupted.\n")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_text() == "old"


def test_ctrl_c_leaves_only_whole_files(prepared, tmp_path):
    words = ["identify", "panda", str(prepared / "run1.csv"), "-o", "out"]
    out = tmp_path / "out"
    code, err = interrupt(words, tmp_path, lambda: (out / "estimate.json").exists())
    assert (code, err) == (130, "armwise: Interrupted.\n")
    assert not list(out.glob(".*"))
    estimate = json.loads((out / "estimate.json").read_text())
    assert estimate["arm"]
    for path in out.glob("*.urdf"):
        assert aw.load_arm(path).dof == 7
    for path in out.glob("*.html"):
        assert path.read_text().rstrip().endswith("</html>")


def on_a_terminal(*words: str, **environment: str) -> str:
    """Run a command on a pseudo-terminal and return all it shows."""
    mine, its = pty.openpty()
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "COLUMNS")}
    kept |= {"TERM": "xterm-256color", **environment}
    with subprocess.Popen([*START, *words], stdout=its, stderr=its, env=kept):
        os.close(its)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error
            while chunk := os.read(mine, 65536):
                shown += chunk
    os.close(mine)
    return shown.decode()


COLOURED = ("inspect", "ddarm")
"""It shows a table, and warns in yellow."""


def test_a_terminal_is_coloured():
    assert "\x1b[33m" in on_a_terminal(*COLOURED)


def test_no_color_is_heeded():
    shown = on_a_terminal(*COLOURED, NO_COLOR="1")
    assert "no body can be" in shown
    assert "\x1b[3" not in shown


@pytest.mark.parametrize("words", [COLOURED, ("--help",), ("identify", "--help")])
def test_a_pipe_is_plain(words):
    done = subprocess.run([*START, *words], capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr


def test_exit_codes_are_told(armwise):
    told = " ".join(armwise("--help").out.split())
    for code in ("0 done", "1 it could not be done", "2 wrong use", "130 Ctrl-C"):
        assert code in told


def test_exit_codes_are_kept(armwise):
    assert armwise("inspect", "panda").code == 0
    assert armwise("inspect", "nobody").code == 1
    misused = armwise("identify", "panda")
    assert misused.code == 2
    assert misused.err == (
        "armwise: Missing argument 'LOG'. See: armwise identify --help\n"
    )


def test_a_command_says_the_same_once(capsys):
    from armwise.cli.output import warn, warnings_once

    with warnings_once():
        warn("Angles with few digits.")
        warn("Angles with few digits.")
    warn("Angles with few digits.")
    assert capsys.readouterr().err.count("few digits") == 2


def test_units_in_brackets_are_shown():
    """Rich takes [rad] for a style, and drops it."""
    from io import StringIO

    from rich.console import Console

    from armwise.cli.output import table

    screen = Console(width=80, file=StringIO())
    rows = table("Errors [mrad]", ["joint", "travel [rad]"])
    rows.add_row("elbow", "1.5")
    screen.print(rows)
    text = screen.file.getvalue()
    assert "Errors [mrad]" in text
    assert "travel [rad]" in text
