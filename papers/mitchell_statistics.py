"""`mitchell1997` ch. 3: what the grid of cells says about every scheme."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from papers.mitchell_tasks import ADAPTIVE

if TYPE_CHECKING:
    import polars as pl
    from jaxtyping import Float


def medians(
    frame: pl.DataFrame, rule: str, eta: float, force: str, arm: str | None = None
) -> dict[str, float]:
    """Median normalised error of every adaptive scheme, unstable cells left out."""
    found = errors(frame, rule, eta, force, arm)
    return {name: float(np.median(values)) for name, values in found.items()}


def unstable(frame: pl.DataFrame, rule: str, eta: float) -> dict[str, int]:
    """Number of unstable cells of every scheme, all forces together."""
    import polars as pl

    chosen = frame.filter(
        (pl.col("rule") == rule) & (pl.col("eta") == eta) & ~pl.col("stable")
    )
    counts = chosen["controller"].to_list()
    return {name: counts.count(name) for name in ADAPTIVE if name in counts}


def errors(
    frame: pl.DataFrame,
    rule: str,
    eta: float,
    force: str,
    arm: str | None = None,
    *,
    motion: str | None = None,
    column: str = "normalised",
) -> dict[str, Float[np.ndarray, " cells"]]:
    """Errors of every adaptive scheme in all its cells that were stable."""
    import polars as pl

    wanted = {"rule": rule, "eta": eta, "force": force, "arm": arm, "motion": motion}
    chosen = frame.filter(pl.col("stable"))
    for key, value in wanted.items():
        if value is not None:
            chosen = chosen.filter(pl.col(key) == value)
    return {
        name: chosen.filter(pl.col("controller") == name)[column].to_numpy()
        for name in ADAPTIVE
    }
