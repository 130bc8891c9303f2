"""Progress of long work, as functions report it to whoever shows it."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
"""Called with what is being done and how much of it is done, 0 … 1."""
