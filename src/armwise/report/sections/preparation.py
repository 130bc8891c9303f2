"""Preparation: how the samples came out of the recordings."""

from __future__ import annotations

from dataclasses import asdict

from armwise.recordings import Samples
from armwise.report.report import Block, Cell, Items, Section, Table, Words
from armwise.report.subject import Subject


def preparation_section(subject: Subject) -> Section:
    """Say what was filtered, shifted and dropped."""
    fitted = subject.fitted
    if fitted is None:
        words = "Not known: the data behind the estimate were not given."
        return Section("preparation", "Preparation", (Words(words),), {"fit": None})
    blocks: list[Block] = [Table(("step", "value"), _steps(fitted))]
    if fitted.preparation.notes:
        blocks.append(Items(fitted.preparation.notes))
    checked = subject.validated
    if checked is not None:
        blocks.append(
            Words(f"Validation data were prepared alike: {len(checked)} samples.")
        )
    return Section(
        "preparation",
        "Preparation",
        tuple(blocks),
        {
            "fit": asdict(fitted.preparation),
            "validation": None if checked is None else asdict(checked.preparation),
        },
    )


def _steps(samples: Samples) -> tuple[tuple[Cell, ...], ...]:
    done = samples.preparation
    cutoff: Cell = "not filtered"
    if done.cutoff_hz is not None:
        chosen = "chosen from the data" if done.cutoff_is_automatic else "asked for"
        cutoff = f"{done.cutoff_hz:.4g} Hz, zero phase, {chosen}"
    dropped = ", ".join(f"{count} {why}" for why, count in done.rows_dropped)
    rate = done.sample_rate_hz
    return (
        ("low-pass", cutoff),
        ("derivatives", done.derivatives),
        ("lag of the torque, taken out [ms]", 1e3 * done.lag),
        ("lag of the velocity, taken out [ms]", 1e3 * done.velocity_lag),
        ("rate before decimation [Hz]", rate),
        ("one sample kept of", done.decimation),
        ("rows read", done.rows_read),
        ("rows dropped", dropped or "none"),
        ("gaps", done.gaps),
        ("samples used", len(samples)),
        ("segments", len(samples.segments)),
    )
