from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.report.conftest import arm, hostile, identified

from .chromium import Browser, find_chromium

__all__ = ["arm", "hostile", "identified"]


@pytest.fixture(scope="session")
def browser(tmp_path_factory) -> Iterator[Browser]:
    """One browser for all tests; screenshots go to ARMWISE_SCREENSHOTS if set."""
    found = find_chromium()
    if found is None:
        _absent("no Chromium here: apt-get install chromium chromium-driver")
    try:
        import selenium  # noqa: F401
    except ImportError:
        _absent("no selenium here: pip install 'armwise[dev]'")
    shots = os.environ.get("ARMWISE_SCREENSHOTS")
    folder = Path(shots) if shots else tmp_path_factory.mktemp("screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    made = Browser(*found, tmp_path_factory.mktemp("profile"), folder)
    yield made
    made.driver.quit()


def _absent(reason: str) -> None:
    """Skip where a person works; fail where a browser was promised."""
    if os.environ.get("ARMWISE_NEEDS_BROWSER"):
        pytest.fail(reason)
    pytest.skip(reason)
