"""Where every joule went."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from armwise.worlds.layout import Account


@dataclass(frozen=True, eq=False)
class Ledger:
    """Energy of a world over time, and the work that changed it.

    E(t) = E(0) + Σ work, up to the error of integration, which is `balance`.

    Attributes:
        time: In [s].
        kinetic, gravitational: By body, in [J].
        stored: In springs and pressed stops, by name, in [J].
        work: By account, since the start, in [J]; what a damper takes is negative.
    """

    time: np.ndarray
    kinetic: dict[str, np.ndarray]
    gravitational: dict[str, np.ndarray]
    stored: dict[str, np.ndarray]
    work: dict[Account, np.ndarray]

    @property
    def energy(self) -> np.ndarray:
        """Kinetic, gravitational and stored energy together in [J]."""
        parts = (self.kinetic, self.gravitational, self.stored)
        zero = np.zeros_like(self.time)
        return sum((value for part in parts for value in part.values()), start=zero)

    def work_of(self, kind: str) -> np.ndarray:
        """Return the work of all accounts of one kind in [J]."""
        zero = np.zeros_like(self.time)
        chosen = (w for account, w in self.work.items() if account.kind == kind)
        return sum(chosen, start=zero)

    @property
    def balance(self) -> np.ndarray:
        """E(t) − E(0) − Σ work in [J]: zero but for the error of integration."""
        zero = np.zeros_like(self.time)
        energy = self.energy
        return np.asarray(energy - energy[0] - sum(self.work.values(), start=zero))

    @property
    def scale(self) -> float:
        """The most energy in play at any time in [J]: kinetic, lifted and stored."""
        zero = np.zeros_like(self.time)
        kinetic = sum(self.kinetic.values(), start=zero)
        height = sum(self.gravitational.values(), start=zero)
        stored = sum(self.stored.values(), start=zero)
        return float(np.max(kinetic + np.abs(height - height[0]) + stored))

    @property
    def relative_balance(self) -> float:
        """Largest |balance| relative to the most energy in play."""
        return float(np.max(np.abs(self.balance)) / max(self.scale, 1e-300))

    def summary(self) -> dict[str, float]:
        """Return the ledger at the end in [J], one line per kind and account."""
        lines = {
            "kinetic": float(sum(v[-1] for v in self.kinetic.values())),
            "gravitational": float(sum(v[-1] for v in self.gravitational.values())),
            "stored": float(sum(v[-1] for v in self.stored.values())),
        }
        lines |= {f"work of {a}": float(w[-1]) for a, w in self.work.items()}
        lines["balance"] = float(self.balance[-1])
        lines["relative balance"] = self.relative_balance
        return lines
