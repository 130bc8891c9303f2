"""Steps in C: the traced rates in a loop, for as long as all is well.

The loop knows no physics. It takes steps with the program's rates until the work is
done or the program's health says that a step needs a closer look; that step is then
taken by the slower path, which can drop singular values, break things and explain.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np

from armwise.programs.cache import cached_object
from armwise.programs.compiler import Compiler
from armwise.programs.program import Program
from armwise.worlds.layout import Layout

_LARGE = 30_000
"""Programs of more steps than this are compiled with less effort."""


@dataclass(frozen=True, eq=False)
class Steps:
    """How far the loop came: steps taken, and the states it was asked to keep."""

    taken: int
    kept: np.ndarray


class NativeLoop:
    """A world's rates compiled for one state at a time, and loops around them."""

    def __init__(
        self, program: Program, source: str, layout: Layout, compiler: Compiler
    ) -> None:
        extra = ("-O1",) if len(program.steps) > _LARGE else ()
        self._library = ctypes.CDLL(str(cached_object(source, compiler, extra)))
        self._size = layout.size
        number, pointer, real = ctypes.c_long, ctypes.c_void_p, ctypes.c_double
        keep = [pointer, number, number]
        start = [number, real, pointer, pointer, number]
        self._rates = self._function(f"rates_{program.name}", [pointer] * 3)
        self._explicit = self._function(
            f"advance_{program.name}", [*start, number, pointer, pointer, *keep]
        )
        self._attempt = self._function(
            f"attempt_{program.name}",
            [real, pointer, pointer, number, number, *[pointer] * 5],
        )
        self._softly = self._function(f"advance_softly_{program.name}", [*start, *keep])

    def _function(self, name: str, arguments: list[Any]) -> Any:
        function = getattr(self._library, name)
        function.restype, function.argtypes = ctypes.c_long, arguments
        return function

    def rates(self, state: np.ndarray, signal: np.ndarray, out: np.ndarray) -> bool:
        """Fill the rate of the state; return whether all is well."""
        bad = self._rates(state.ctypes.data, signal.ctypes.data, out.ctypes.data)
        return not bad

    def attempt(
        self,
        state: np.ndarray,
        h: float,
        signal: np.ndarray,
        tableau: tuple[np.ndarray, np.ndarray],
        errors: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the state after one step and its error, or None if not all is well.

        Args:
            state: The state, unchanged.
            h: Step in [s].
            signal: One row per stage.
            tableau: Runge–Kutta coefficients.
            errors: Weights of the stages in the error.
        """
        a, b = tableau
        new, error = np.empty(self._size), np.empty(self._size)
        bad = self._attempt(
            h, state.ctypes.data, signal.ctypes.data, signal.shape[1], len(b),
            a.ctypes.data, b.ctypes.data, errors.ctypes.data, new.ctypes.data,
            error.ctypes.data,
        )  # fmt: skip
        return None if bad else (new, error)

    def advance(
        self,
        state: np.ndarray,
        h: float,
        signal: np.ndarray,
        tableau: tuple[np.ndarray, np.ndarray] | None,
        steps: int,
        every: int = 1,
        phase: int = 0,
    ) -> Steps:
        """Take up to `steps` steps in place.

        Args:
            state: The state, changed in place to the last good one.
            h: Step in [s].
            signal: One row per stage of each step, or one row if nothing changes.
            tableau: Runge–Kutta coefficients (stages, stages) and (stages,); None
                for semi-implicit steps.
            steps: How many.
            every: Keep every so many-th state.
            phase: Steps taken since the last one that was kept.
        """
        kept = np.empty(((phase + steps) // every, self._size))
        stride = signal.shape[1] if len(signal) > 1 else 0
        start = (steps, h, state.ctypes.data, signal.ctypes.data, stride)
        keep = (kept.ctypes.data, every, phase)
        if tableau is None:
            taken = self._softly(*start, *keep)
        else:
            a, b = tableau
            stages = (len(b), a.ctypes.data, b.ctypes.data)
            taken = self._explicit(*start, *stages, *keep)
        return Steps(int(taken), kept[: (phase + taken) // every])
