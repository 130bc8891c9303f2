"""Constraint forces at every kept state, in one batch where nothing is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from armwise.worlds.engine import Engine
from armwise.worlds.events import Happening
from armwise.worlds.methods import Bound, SingularValueDropping
from armwise.worlds.snapshot import Snapshot


@dataclass(frozen=True, eq=False)
class ForceHistory:
    """Forces over time.

    Attributes:
        force: In [N]: (samples, rows); zero where a constraint is gone.
        singular_values: Of A, ascending: (samples, rows); NaN where rows are gone.
        dropped: How many of them were left out: (samples,).
    """

    force: np.ndarray
    singular_values: np.ndarray
    dropped: np.ndarray


def force_history(
    engine: Engine, found: Snapshot, time: np.ndarray, log: Sequence[Happening]
) -> ForceHistory:
    """Solve for the forces at all times, with what was whole at each."""
    fresh = Engine(engine.world, engine.method, engine.backend)
    samples, rows = found.free.shape
    history = ForceHistory(
        np.zeros((samples, rows)),
        np.full((samples, rows), np.nan),
        np.zeros(samples, dtype=int),
    )
    gone = sorted((h.time, h.name) for h in log if h.kind in ("broken", "released"))
    edges = [0, *(int(np.searchsorted(time, t)) for t, _ in gone), samples]
    for k, (start, stop) in enumerate(pairwise(edges)):
        if k:
            fresh.remove(gone[k - 1][1])
        if stop > start and rows:
            _fill(history, fresh, found, start, stop)
    return history


def _fill(
    history: ForceHistory, engine: Engine, found: Snapshot, start: int, stop: int
) -> None:
    keep, bounds = engine.whole
    if not len(keep):
        return
    part = slice(start, stop)
    right = (found.free + found.pull)[part][:, keep]
    A = found.matrix[part][:, keep[:, None], keep]
    hard = np.ones(stop - start, dtype=bool)
    if engine.method.is_exact:
        cutoff = getattr(engine.method, "cutoff", SingularValueDropping.cutoff)
        values, forces, dropped = _smallest_forces(A, right, cutoff)
        hard = ~_fits(forces, bounds)
        history.singular_values[part, : len(keep)] = values
        history.force[part.start : part.stop, keep] = forces
        history.dropped[part] = dropped
    for k in np.flatnonzero(hard):
        solution = engine.forces(found, start + int(k))
        history.force[start + k] = solution.force
        history.singular_values[start + k, : len(keep)] = solution.singular_values
        history.dropped[start + k] = solution.dropped


def _smallest_forces(
    A: np.ndarray, right: np.ndarray, cutoff: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return singular values, smallest exact forces and how many were zero."""
    values, vectors = np.linalg.eigh(A)
    kept = values > cutoff * np.maximum(values[:, -1:], 0.0)
    gains = np.where(kept, -1.0 / np.where(kept, values, 1.0), 0.0)
    weights = gains * np.einsum("tij,ti->tj", vectors, right)
    forces = np.einsum("tij,tj->ti", vectors, weights)
    return values, forces, (~kept).sum(axis=1)


def _fits(forces: np.ndarray, bounds: Sequence[Bound]) -> np.ndarray:
    fits = np.ones(len(forces), dtype=bool)
    for bound in bounds:
        if np.isfinite(bound.max_force):
            fits &= np.linalg.norm(forces[:, bound.rows], axis=1) <= bound.max_force
    return fits
