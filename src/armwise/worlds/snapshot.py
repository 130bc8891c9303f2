"""The constraint equation in numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The constraint equation at some states, samples first.

    Attributes:
        rate: Rate of the state without constraint forces.
        response: U = M⁻¹Jᵀ.
        matrix, free, pull: A, β and 2λḊ + λ²D.
        deviation: D.
        error, carrier: Velocities that do the work of violation, and of the target.
    """

    rate: np.ndarray
    response: np.ndarray
    matrix: np.ndarray
    free: np.ndarray
    pull: np.ndarray
    deviation: np.ndarray
    error: np.ndarray
    carrier: np.ndarray

    @classmethod
    def from_outputs(cls, outputs: list[np.ndarray]) -> Snapshot:
        """Form A = J U from what the traced equation gives."""
        rate, response, jacobian, *rest = outputs
        return cls(rate, response, jacobian @ response, *rest)
