"""What subcommands on logs share: the arm as the mapping has it, and the logs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    skip_bad_rows: bool = False,
) -> list[Recording]:
    """Read several logs of one arm."""
    from armwise.recordings import read_recording

    return [
        read_recording(path, arm, mapping, skip_bad_rows=skip_bad_rows)
        for path in paths
    ]
