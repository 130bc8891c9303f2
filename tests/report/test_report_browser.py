"""The report in a real browser, where one can be had.

`npm i @sparticuz/chromium playwright-core` in some folder, then ARMWISE_BROWSER=folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from armwise.report import write_report

MODULES = os.environ.get("ARMWISE_BROWSER", "")
SCRIPT = Path(__file__).with_name("browser.mjs")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (MODULES and (Path(MODULES) / "node_modules").is_dir()),
        reason="ARMWISE_BROWSER names no folder with Chromium and playwright-core",
    ),
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
]


def visit(path: Path, screenshot: Path) -> dict:
    done = subprocess.run(
        ["node", SCRIPT, MODULES, path.as_uri(), screenshot],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_opens_draws_and_asks_no_one(identified, tmp_path: Path):
    seen = visit(write_report(identified, tmp_path / "r.html"), tmp_path / "shot.png")
    assert seen["errors"] == []
    assert seen["requests"] == []
    assert seen["drawn"] == seen["places"] > 5
    assert seen["light"] != seen["dark"]
    assert (tmp_path / "shot.png").stat().st_size > 10_000


def test_names_that_mean_harm_do_none(hostile, tmp_path: Path):
    seen = visit(write_report(hostile, tmp_path / "r.html"), tmp_path / "shot.png")
    assert seen["errors"] == []
    assert seen["drawn"] == seen["places"]
    assert "<script>" in seen["heading"]  # shown, not run
