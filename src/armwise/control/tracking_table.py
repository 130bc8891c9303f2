"""The outcome of a comparison of controllers: a tidy table and its figures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.errors import ArgumentError
from armwise.files import replacing, write_atomically

if TYPE_CHECKING:
    import polars as pl

KEYS = ("task", "plant", "controller", "seed")


@dataclass(frozen=True, eq=False)
class TrackingTable:
    """One row per task, plant, controller, seed and joint.

    Attributes:
        frame: Columns task, plant, controller, seed, seconds (of computing), joint,
            stable, rms_error and peak_error in [rad] or [m] (NaN where unstable),
            rms_torque in [N m] or [N].
    """

    frame: pl.DataFrame

    @classmethod
    def from_rows(cls, rows: list[dict[str, Any]]) -> TrackingTable:
        """Build from rows as dictionaries."""
        import polars as pl

        return cls(pl.DataFrame(rows))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return self.frame.to_dicts()

    @property
    def unstable(self) -> int:
        """How many runs ran away."""
        import polars as pl

        return self.frame.filter(~pl.col("stable")).select(KEYS).unique().height

    def overall(self) -> pl.DataFrame:
        """Errors over all joints: one row per task, plant, controller and seed."""
        import polars as pl

        squares = (pl.col("rms_error") ** 2).mean().sqrt()
        return self.frame.group_by(KEYS, maintain_order=True).agg(
            squares.alias("rms_error"),
            pl.col("peak_error").max(),
            pl.col("stable").all(),
        )

    def normalised(self, baseline: str) -> pl.DataFrame:
        """Overall errors divided by another controller's on the same run.

        Args:
            baseline: Name of the controller to divide by.
        """
        import polars as pl

        overall = self.overall()
        if baseline not in overall["controller"].to_list():
            known = overall["controller"].unique(maintain_order=True).to_list()
            raise ArgumentError(
                f"There is no controller {baseline!r} to compare with. "
                f"There is: {', '.join(known)}."
            )
        keys = [key for key in KEYS if key != "controller"]
        base = overall.filter(pl.col("controller") == baseline)
        base = base.select(*keys, pl.col("rms_error").alias("baseline"))
        joined = overall.join(base, on=keys, how="left", maintain_order="left")
        ratio = pl.col("rms_error") / pl.col("baseline")
        return joined.with_columns(ratio.alias("normalised")).drop("baseline")

    def figures(self, baseline: str | None = None) -> dict[str, Any]:
        """Interactive figures: errors by controller, and ratios to a baseline."""
        import plotly.graph_objects as go

        overall = self.overall()
        names = overall["controller"].unique(maintain_order=True).to_list()
        box = go.Figure(layout={"title": "Tracking error", "yaxis_type": "log"})
        for name in names:
            values = overall.filter(overall["controller"] == name)
            box.add_box(y=values["rms_error"].to_numpy(), name=name, boxpoints="all")
        box.update_yaxes(title="RMS error over all joints [rad, m]")
        made = {"errors": box}
        if baseline is not None:
            made["normalised"] = self._normalised_figure(baseline, names)
        return made

    def _normalised_figure(self, baseline: str, names: list[str]) -> Any:
        import plotly.graph_objects as go

        table = self.normalised(baseline)
        figure = go.Figure(layout={"title": f"Error relative to {baseline}"})
        for name in names:
            values = table.filter(table["controller"] == name)["normalised"].to_numpy()
            finite = values[np.isfinite(values)]
            spread = float(finite.std()) if finite.size else 0.0
            mean = float(finite.mean()) if finite.size else float("nan")
            figure.add_bar(x=[name], y=[mean], error_y={"array": [spread]}, name=name)
        figure.update_yaxes(title="normalised RMS error")
        return figure

    def write_figures(self, path: str | Path, baseline: str | None = None) -> None:
        """Write the figures to one HTML file that needs no network."""
        from plotly.io import to_html

        made = self.figures(baseline).values()
        parts = [
            to_html(figure, include_plotlyjs=i == 0, full_html=False)
            for i, figure in enumerate(made)
        ]
        page = f"<!doctype html><meta charset='utf-8'>{''.join(parts)}"
        write_atomically(path, page)

    def write(self, path: str | Path) -> None:
        """Write to a Parquet file, all at once or not at all."""
        with replacing(path) as temporary:
            self.frame.write_parquet(temporary)

    @classmethod
    def read(cls, path: str | Path) -> TrackingTable:
        """Read what `write` wrote."""
        import polars as pl

        try:
            return cls(pl.read_parquet(path))
        except FileNotFoundError:
            raise
        except Exception as error:
            raise ArgumentError(
                f"{path} is no table of tracking errors ({error})."
            ) from error
