"""The fenced blocks of a document, and how to run them."""

from __future__ import annotations

import os
import re
import shlex
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from armwise.cli import main as cli

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<head>[^\n`]+)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S
)


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        kind: Its language: sh and python are run, toml with a title is written to a
            file of that name, anything else is left alone.
        text: What is in it.
        title: Name of the file it stands for.
        needs_data: Whether it works on the public recordings.
    """

    kind: str
    text: str
    title: str = ""
    needs_data: bool = False


def read_blocks(path: Path) -> list[Block]:
    """Find the blocks of a document, in order."""
    found = []
    for match in _FENCE.finditer(path.read_text(encoding="utf-8")):
        head = match["head"]
        kind = re.search(r"\w+", head)
        title = re.search(r'title="(.*?)"', head)
        found.append(
            Block(
                kind[0] if kind else "",
                textwrap.dedent(match["body"]),
                title[1] if title else "",
                ".data" in head,
            )
        )
    return found


def run_block(block: Block, names: dict[str, Any], path: Path) -> None:
    """Do in the current folder what a block says."""
    if block.kind == "python":
        exec(compile(block.text, str(path), "exec"), names)
    elif block.kind == "sh":
        for line in block.text.replace("\\\n", " ").splitlines():
            run_line(line)
    elif block.title:
        Path(block.title).write_text(block.text, encoding="utf-8")


def run_line(line: str) -> None:
    """Run one line of a shell: an armwise command, and nothing else."""
    words = shlex.split(os.path.expandvars(line), comments=True)
    assert words[0] == "armwise", line
    kept, sys.argv = sys.argv, words
    try:
        with pytest.raises(SystemExit) as exit_:
            cli.main()
        assert not exit_.value.code, line
    finally:
        sys.argv = kept
