"""`armwise view` in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def viewing(*words: str) -> Iterator[str]:
    """Start it, yield its address, and end it by Ctrl-C, which must be quiet."""
    command = [sys.executable, "-m", "armwise.cli.main", "view", *words, "--json"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith("}"):
                break
        assert lines, process.stderr and process.stderr.read()
        yield json.loads("".join(lines))["address"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
        # Notes on the description come first; nothing else may be said.
        notes = [x for x in err.splitlines() if not x.startswith("Warning: ")]
        assert (process.returncode, out, notes) == (0, "", [])
    finally:
        process.kill()
        process.communicate()
