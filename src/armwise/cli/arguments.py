"""Arguments and options that mean the same wherever they stand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DESCRIPTIONS = "URDF, MJCF, DH .toml or bundled name."


def bundled_names(incomplete: str) -> list[str]:
    """Complete the name of a bundled arm; the shell completes files."""
    from armwise.arms.library import bundled_arms

    return [name for name in bundled_arms() if name.startswith(incomplete)]


ArmName = Annotated[
    str,
    typer.Argument(metavar="ARM", help=DESCRIPTIONS, autocompletion=bundled_names),
]
"""The arm a command is about."""

Model = Annotated[
    str | None,
    typer.Option(
        help="What the controller believes (default: the arm, perturbed).",
        autocompletion=bundled_names,
    ),
]
"""Another arm, which stands for what is known of the first."""

Logs = Annotated[
    list[Path], typer.Argument(metavar="LOG", help="CSV, Parquet, NPZ, MAT, bag.")
]
"""Logs of the arm's motion."""

Validate = Annotated[
    list[Path] | None,
    typer.Option("--validate", help="A log to validate on; repeatable."),
]
"""Logs that are kept out of the fit."""

MappingFile = Annotated[
    Path | None, typer.Option("--mapping", help="TOML that describes the logs.")
]
"""What the columns and units of foreign logs are."""

Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="A column by another name: tau_3=NAME; repeatable."),
]
"""The short way for single columns."""

SkipBadRows = Annotated[
    bool, typer.Option("--skip-bad-rows", help="Leave out and count bad rows.")
]
"""Whether rows that make no sense are left out, or an error."""

CutoffHz = Annotated[
    float | None, typer.Option("--cutoff-hz", help="Low-pass [Hz]; chosen if absent.")
]
"""Where measured signals are cut off."""

Folder = Annotated[
    Path | None, typer.Option("-o", "--output", help="Folder for the results.")
]
"""Where a command that writes several files puts them."""
