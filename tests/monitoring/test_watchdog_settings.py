"""The watchdog's thresholds: in one place, explained, and in effect."""

from __future__ import annotations

import ast
import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest

from armwise import monitoring
from armwise.monitoring import WatchdogSettings
from armwise.monitoring.drift import Baseline, ShiftTest
from tests.monitoring.watching import JUMP, alarms_of, worked

FOLDER = Path(monitoring.__file__).parent
NAMES = [f.name for f in fields(WatchdogSettings)]
OTHERS = "".join(p.read_text() for p in FOLDER.glob("*.py") if p.stem != "settings")


@pytest.mark.parametrize("name", NAMES)
def test_each_is_explained_and_used(name):
    lines = (FOLDER / "settings.py").read_text().splitlines()
    (k,) = (i for i, x in enumerate(lines) if re.match(rf"    {name}: ", x))
    while lines[k].strip() and not lines[k].strip().startswith("#"):
        k -= 1  # fields that share a comment follow each other
    assert lines[k].strip().startswith("#")
    assert f"settings.{name}" in OTHERS


def test_no_other_module_has_a_threshold_of_its_own():
    """Module constants elsewhere are steps of derivatives and guards of divisions."""
    constants = {
        target.id
        for path in FOLDER.glob("*.py")
        if path.stem != "momentum_observer"  # no part of the watchdog
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert constants == {"SIDE", "_STEP", "_NO_INFORMATION"}


def test_settings_cannot_change_under_a_watchdog():
    with pytest.raises(FrozenInstanceError):
        WatchdogSettings().drift_threshold = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    ("field", "value", "kinds"),
    [("drift_threshold", 100.0, {"drift"}), ("drift_threshold", 1e9, set())],
)
def test_a_watchdog_obeys_them(field, value, kinds):
    time, q, tau = worked(75.0)
    moved = q + 3.0 * JUMP * ((time - 30.0).clip(0, 10) / 10)[:, None]
    alarms = alarms_of((time, moved, tau), settings=WatchdogSettings(**{field: value}))
    assert {a.kind for a in alarms} == kinds


def test_seven_epochs_at_least_decide_on_a_drift():
    """However precise and large: w s² ≤ 16 an epoch, and 100 / 16 > 6."""
    information = np.full((100, 1), 1e8)
    pulls = np.sqrt(information) * np.random.default_rng(0).normal(size=(100, 1))
    test = ShiftTest(Baseline.from_epochs(pulls, information))
    shifts = [
        test.add(float(k), 0.1 * information[k], information[k]) for k in range(7)
    ]
    assert shifts[:6] == [None] * 6
    assert shifts[6] is not None
