"""What every method of identification offers."""

from __future__ import annotations

from typing import Protocol

from armwise.identification.problem import Problem
from armwise.identification.solution import Solution


class Method(Protocol):
    """Finds the base parameters of a problem."""

    def solve(self, problem: Problem) -> Solution:
        """Return the base parameters and how far to trust them."""
        ...
