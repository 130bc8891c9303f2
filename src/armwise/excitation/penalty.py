"""Augmented Lagrangian: limits turned into a smooth price, dearer where it failed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from armwise.excitation.clearance import Clearance
from armwise.excitation.requirements import Requirements

_FIRST, _GROWTH, _MOST = 30.0, 2.0, 2000.0


class Penalty:
    """The price of breaking requirements; it learns which ones resist.

    Each requirement is c ≤ 0 at every sample. The price is that of Powell, Hestenes
    and Rockafellar, Σ (max(0, λ + ρ c)² − λ²) / 2ρ; after a round λ takes the force
    that was needed and ρ grows.

    Args:
        requirements: What to keep.
        share: Share of each limit that may be used.
        spare: Room in [m] to keep beyond what is required.
    """

    def __init__(self, requirements: Requirements, share: float, spare: float) -> None:
        self._requirements, self._share, self._spare = requirements, share, spare
        self._stiffness = _FIRST
        self._forces: list[np.ndarray] = []
        self._latest: list[np.ndarray] = []
        self._pressed: tuple[np.ndarray, np.ndarray] | None = None
        self._pushed: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, states: Sequence[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        """Return the price and its gradient by q, q̇, q̈ at every sample."""
        price, weights = self._limits(self._requirements.shares(states))
        slopes = self._requirements.slopes(states, weights)
        clearance = self._requirements.clearance
        if clearance is not None:
            more, push = self._room(clearance, states[0])
            price += more
            if push is not None:
                slopes[0] = slopes[0] + clearance.slopes(states[0], push)
        return price, slopes

    def stiffen(self) -> None:
        """End a round: remember the forces of the latest call and press harder."""
        self._forces, self._pressed = self._latest, self._pushed
        self._stiffness = min(self._stiffness * _GROWTH, _MOST)

    def _limits(self, shares: Sequence[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        """Price of limits, and the net force on each share."""
        broken = [c for s in shares for c in (s - self._share, -s - self._share)]
        before = self._forces or [np.zeros_like(c) for c in broken]
        self._latest = []
        price = 0.0
        for force, c in zip(before, broken, strict=True):
            more, after = self._price(force, c)
            price += more
            self._latest.append(after)
        pairs = zip(self._latest[::2], self._latest[1::2], strict=True)
        return price, [up - down for up, down in pairs]

    def _room(
        self, clearance: Clearance, q: np.ndarray
    ) -> tuple[float, np.ndarray | None]:
        """Price of coming too close, and the force on each room, if there is any.

        Most encounters are far off most of the time: only the others are looked at.
        """
        room = clearance.room(q)
        close = np.any(room < self._spare, axis=1)
        if self._pressed is not None:
            close[self._pressed[0]] = True
        rows = np.flatnonzero(close)
        if not rows.size:
            self._pushed = None
            return 0.0, None
        before = np.zeros((len(room), len(q)))
        if self._pressed is not None:
            before[self._pressed[0]] = self._pressed[1]
        broken = (self._spare - room[rows]) / clearance.unit
        price, force = self._price(before[rows], broken)
        self._pushed = (rows, force)
        push = np.zeros_like(room)
        push[rows] = -force / clearance.unit
        return price, push

    def _price(self, before: np.ndarray, c: np.ndarray) -> tuple[float, np.ndarray]:
        after = np.maximum(0.0, before + self._stiffness * c)
        gained = float(np.vdot(after, after)) - float(np.vdot(before, before))
        return gained / (2.0 * self._stiffness), after
