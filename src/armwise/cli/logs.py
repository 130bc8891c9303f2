"""What subcommands on logs share: the arm as the mapping has it, and the logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from armwise.arms import Arm
    from armwise.recordings import LogMapping, Recording


def load_described(arm: str, mapping: Path | None) -> tuple[Arm, LogMapping | None]:
    """Load an arm, with the motors a mapping file adds to it, and that mapping."""
    from armwise.arms import load_arm
    from armwise.recordings import apply_mapping_to_arm, load_mapping

    described = load_arm(arm)
    if mapping is None:
        return described, None
    mapped = load_mapping(mapping)
    return apply_mapping_to_arm(described, mapped), mapped


def read_logs(
    paths: Sequence[Path],
    arm: Arm,
    mapping: LogMapping | None,
    columns: Sequence[str] | None = None,
    skip_bad_rows: bool = False,
) -> list[Recording]:
    """Read several logs of one arm."""
    from armwise.recordings import read_recording

    named = named_columns(columns)
    return [
        read_recording(path, arm, mapping, columns=named, skip_bad_rows=skip_bad_rows)
        for path in paths
    ]


def named_columns(pairs: Sequence[str] | None) -> dict[str, str]:
    """Read options of the form tau_3=NAME."""
    for pair in pairs or ():
        if "=" not in pair:
            raise ArgumentError(f"--column takes CHANNEL=NAME, not {pair!r}.")
    return dict(pair.split("=", 1) for pair in pairs or ())
