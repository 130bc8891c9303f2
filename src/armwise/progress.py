"""Progress of long tasks, as a callback."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with what is being done and the fraction of it that is done, 0 to 1."""
