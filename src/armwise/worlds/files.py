"""Files of a run: either the old one or the whole new one."""

from __future__ import annotations

import json
from pathlib import Path

from armwise.errors import ArgumentError, ArmwiseError
from armwise.files import write_atomically
from armwise.worlds.run import Run


def write_file(path: Path, data: bytes) -> None:
    """Write a file by renaming a finished one into place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except (OSError, ArmwiseError) as problem:
        raise ArgumentError(f"{problem}") from problem


def write_table(run: Run, path: str | Path) -> None:
    """Write every recorded number of a run as CSV or Parquet, by the file's name."""
    import io

    import polars as pl

    file = Path(path)
    frame = pl.DataFrame(run.table())
    buffer = io.BytesIO()
    if file.suffix == ".parquet":
        frame.write_parquet(buffer)
    elif file.suffix == ".csv":
        frame.write_csv(buffer)
    else:
        raise ArgumentError(f"{file} must end in .csv or .parquet.")
    write_file(file, buffer.getvalue())


def write_run(run: Run, folder: str | Path) -> list[Path]:
    """Write a run's table, ledger, picture and animation into a folder.

    Returns:
        The files that were written.
    """
    from armwise.worlds.animation import write_animation
    from armwise.worlds.figures import write_figures
    from armwise.worlds.pictures import write_picture

    place = Path(folder)
    files = [
        place / name
        for name in (
            "states.csv",
            "summary.json",
            "world.png",
            "figures.html",
            "world.html",
        )
    ]
    write_table(run, files[0])
    text = json.dumps(summary(run), indent=2, ensure_ascii=False) + "\n"
    write_file(files[1], text.encode())
    write_picture(run, files[2])
    write_figures(run, files[3])
    write_animation(run, files[4])
    return files


def summary(run: Run) -> dict[str, object]:
    """Return what a run came to: steps, deviations, ledger and log."""
    return {
        "world": run.world.name,
        "duration": float(run.time[-1]),
        "steps": vars(run.steps),
        "largest_deviation": run.largest_deviation,
        "relative_balance": run.ledger.relative_balance,
        "ledger": run.ledger.summary(),
        "log": [vars(line) for line in run.log],
    }
