"""Sensors that fail outright: no number, or one that stays whatever the torque."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.dynamics import Dynamics


_TILE = 0.05
"""Time in [s] whose readings are compared at once."""

_STRAINED = 4
"""Tiles that a reading must stay under strain."""

_MARGIN = 3.0
"""Torques count if so many times larger than in ordinary rests."""

_QUIET = 1.0
"""Time in [s] after which a sensor that comes back may fail anew."""


class Failure(NamedTuple):
    """A sensor that fails.

    Attributes:
        kind: `missing`, `stuck` or `saturated`.
        joint: Index of the joint.
        onset: When it began in [s].
        time: When it was noticed in [s].
        excess: Torque in [N m] or [N] beyond what a resting joint needs.
    """

    kind: str
    joint: int
    onset: float
    time: float
    excess: float = np.nan


class Missing:
    """Looks for readings and torques that are no numbers."""

    def __init__(self, dof: int) -> None:
        self._last = np.full(dof, -np.inf)

    def feed(self, time: np.ndarray, s: np.ndarray, tau: np.ndarray) -> list[Failure]:
        """Return the joints that begin to give no number, at each beginning."""
        bad = ~(np.isfinite(s) & np.isfinite(tau))
        found = []
        for j in np.flatnonzero(bad.any(axis=0)):
            times = time[bad[:, j]]
            begins = np.diff(times, prepend=self._last[j]) > _QUIET
            found += [Failure("missing", int(j), t, t) for t in times[begins].tolist()]
            self._last[j] = times[-1]
        return found


class Stillness:
    """Looks for readings that stay the same under torques no resting joint needs.

    A joint at rest needs what weight and the motion of others ask for, and nothing with
    the brake on; load and friction may add to that.

    Args:
        period: Time between two samples in [s].
        model: The arm, whose weight and inertia are known.
        allowed: Torques in [N m] or [N] that load and friction may add to a motion
            (q, q̇, q̈).
    """

    def __init__(
        self,
        period: float,
        model: Dynamics,
        allowed: Callable[[np.ndarray], np.ndarray],
    ) -> None:
        self._model, self._allowed = model, allowed
        self._size = max(4, round(_TILE / period))
        times = period * (np.arange(self._size) - 0.5 * (self._size - 1))
        columns = [np.ones(self._size), times, 0.5 * times**2]
        self._motion = np.linalg.pinv(np.stack(columns, axis=1))
        dof = model.arm.dof
        self._resolution, self._usual = np.zeros(dof), np.zeros(dof)
        self._lowest, self._highest = np.full(dof, np.inf), np.full(dof, -np.inf)
        self._learned: list[_Tile] | None = []
        self.restart()

    def restart(self) -> None:
        """Forget the last samples: the stream was interrupted."""
        dof = self._usual.size
        self._open = np.empty((0, 1 + 2 * dof))
        self._begin = np.zeros(dof)
        self._still, self._strained = np.zeros((2, dof), dtype=int)
        self._held = np.zeros((2, dof))
        self._is_told = np.zeros(dof, dtype=bool)

    def settle(self, resolution: Float[np.ndarray, " dof"]) -> None:
        """Take what was seen for granted; noise moves readings by a resolution."""
        tiles, self._learned = self._learned or [], None
        self._resolution = resolution
        for tile in tiles:
            self._follow(tile)
            at_rest = np.where(self._still > 1, tile.excess, 0.0)
            self._usual = np.maximum(self._usual, at_rest)

    def feed(
        self,
        time: Float[np.ndarray, " samples"],
        q: Float[np.ndarray, "samples dof"],
        tau: Float[np.ndarray, "samples dof"],
    ) -> list[Failure]:
        """Take a block of any length; return the failures it completes."""
        rows = np.concatenate([self._open, np.column_stack([time, q, tau])])
        whole = len(rows) // self._size * self._size
        self._open = rows[whole:]
        tiles = self._tiles(rows[:whole].reshape(-1, self._size, rows.shape[1]))
        if self._learned is not None:
            self._learned += tiles
            return []
        return [failure for tile in tiles for failure in self._judge(tile)]

    def _tiles(self, rows: Float[np.ndarray, "tiles samples width"]) -> list[_Tile]:
        if not len(rows):
            return []
        dof = self._usual.size
        q, tau = rows[:, :, 1 : 1 + dof], rows[:, :, 1 + dof :].mean(axis=1)
        motion = np.einsum("ks,tsj->ktj", self._motion, q)
        needed = self._model.inverse_dynamics(*motion)
        low, high = np.minimum(needed, 0.0), np.maximum(needed, 0.0)
        excess = np.maximum(tau - high, low - tau)
        ends = rows[:, 0, 0], rows[:, -1, 0], q.min(axis=1), q.max(axis=1)
        parts = (*ends, excess, np.moveaxis(motion, 1, 0))
        return [_Tile(float(a), float(b), *x) for a, b, *x in zip(*parts, strict=True)]

    def _judge(self, tile: _Tile) -> list[Failure]:
        self._follow(tile)
        far = (self._still > 0) & (tile.excess > _MARGIN * self._usual)
        if far.any():
            far &= tile.excess > self._allowed(tile.motion)
        self._strained = np.where(far, self._strained + 1, 0)
        new = (self._strained == _STRAINED) & ~self._is_told
        self._is_told |= new
        return [self._failure(int(j), tile) for j in np.flatnonzero(new)]

    def _follow(self, tile: _Tile) -> None:
        """Go on with rests that last; begin anew those that do not."""
        low = np.minimum(self._held[0], tile.low)
        high = np.maximum(self._held[1], tile.high)
        lasts = (self._still > 0) & (high - low <= self._resolution)
        begins = tile.high - tile.low <= self._resolution
        self._is_told &= lasts
        self._held = np.where(lasts, [low, high], [tile.low, tile.high])
        self._begin = np.where(lasts, self._begin, tile.begin)
        self._still = np.where(lasts, self._still + 1, begins.astype(int))
        self._lowest = np.minimum(self._lowest, tile.low)
        self._highest = np.maximum(self._highest, tile.high)

    def _failure(self, j: int, tile: _Tile) -> Failure:
        at_end = tile.low[j] <= self._lowest[j] or tile.high[j] >= self._highest[j]
        kind = "saturated" if at_end else "stuck"
        excess = float(tile.excess[j])
        return Failure(kind, j, float(self._begin[j]), tile.end, excess)


class _Tile(NamedTuple):
    """Some samples: when, between which positions, torque beyond need, and motion."""

    begin: float
    end: float
    low: np.ndarray
    high: np.ndarray
    excess: np.ndarray
    motion: np.ndarray
