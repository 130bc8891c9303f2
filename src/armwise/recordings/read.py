"""Reading of logs: any supported file, mapped, checked and without bad rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.progress import Progress
from armwise.recordings.channels import Sources, contents_of
from armwise.recordings.column_names import (
    joints_of,
    recognise,
    seconds_and_nanoseconds,
    with_columns,
)
from armwise.recordings.formats.table import RawTable
from armwise.recordings.mapping import LogMapping, load_mapping
from armwise.recordings.plausibility import check_against_arm, degrees_note
from armwise.recordings.recording import Recording, SignalTable
from armwise.recordings.repairs import repaired
from armwise.recordings.sensor_calibration import read_calibration

if TYPE_CHECKING:
    from armwise.arms import Arm


# Rows that cannot be used: refused, or skipped and counted.

LARGEST = 1e30
"""No joint is further and no torque larger: such a number is damage. Products of some
ten of them are still finite in float64."""


def without_bad_rows(recording: Recording, skip: bool) -> Recording:
    """Refuse, or drop and count, rows with stamps or values that cannot be used."""
    if not recording.channels:
        raise RecordingError(
            f"{recording.source} has no column that is understood, such as q_1. "
            "Describe the log by a mapping: [position] columns = [2, 3, …] and so on."
        )
    tables, dropped = [], 0
    for table in recording.tables:
        bad = _bad_rows(recording.source, table, skip)
        dropped += int(bad.sum())
        tables.append(table.take(~bad) if bad.any() else table)
    skipped = recording.skipped_rows + dropped
    return replace(recording, tables=tuple(tables), skipped_rows=skipped)


def _bad_rows(source: str, table: SignalTable, skip: bool) -> np.ndarray:
    """Return a mask of one table's bad rows."""
    time = table.time
    bad = np.zeros(time.size, bool)
    for label, values in [("time", time), *table.columns.items()]:
        # Other columns may hold anything; what uses them checks them.
        if label != "time" and not _is_standard(label):
            continue
        # NaN compares false, and is refused by the same test.
        sensible = np.abs(values) < LARGEST
        if sensible.all():
            continue
        if not skip:
            row = int(np.argmin(sensible))
            raise RecordingError(
                f'{source}, row {row + 1}: column "{label}" is '
                f"{values[row]}. Repair the log, or skip such rows (--skip-bad-rows)."
            )
        bad |= ~sensible
    # A stamp that is far ahead must not make all that follow run backwards.
    sound = np.where(bad, -np.inf, time)
    backwards = ~bad & (time < np.maximum.accumulate(sound))
    if backwards.any() and not skip:
        row = int(np.argmax(backwards))
        raise RecordingError(
            f"{source}, row {row + 1}: time runs backwards "
            f"({time[row - 1]:.9g} s, then {time[row]:.9g} s). Cut the log there, or "
            "skip such rows (--skip-bad-rows)."
        )
    return np.asarray(bad | backwards)


def _is_standard(name: str) -> bool:
    # Names of two letters are taken for a wrench's: fx … tz.
    return name.split("_")[0] in ("q", "qd", "qdd", "tau") or len(name) == 2


# Files and bags.

TEXT = (".csv", ".tsv", ".txt", ".dat", ".log")
JSON_LINES = (".jsonl", ".ndjson")
BAGS = (".db3", ".mcap", ".bag")


def read_recording(
    path: str | Path,
    arm: Arm | None = None,
    mapping: str | Path | LogMapping | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    calibration: str | Path | None = None,
    skip_bad_rows: bool = False,
    progress: Progress | None = None,
) -> Recording:
    """Read a log of motion: CSV, JSON lines, Parquet, NPZ, MAT or a ROS bag.

    The standard log has the columns `time, q_1 …, qd_1 …, tau_1 …` (joint names may
    stand for the numbers) and `fx … tz`, in SI; anything else is described once by a
    mapping file. Joints come in the arm's order whatever the file's.

    Args:
        path: The file, a bag's folder, or a folder of files the mapping names.
        arm: The arm, whose joints give names, order and limits to check against.
        mapping: TOML file (or its contents) that describes a foreign log.
        columns: Channel → column, for a few columns with other names.
        calibration: File that `armwise calibrate` wrote: sensors to joint angles.
        skip_bad_rows: Leave out and count rows that cannot be used.
        progress: Called with what is being done and how much of it is done.

    Raises:
        RecordingError: Naming the file, the row or column, and the remedy.
    """
    file = Path(path)
    _check_file(file)
    described = mapping if isinstance(mapping, LogMapping) else None
    if mapping is not None and described is None:
        described = load_mapping(mapping)  # type: ignore[arg-type]
    described = described or LogMapping()
    if _is_bag(file):
        recording = _from_bag(file, described, arm, progress)
    else:
        recording = _from_tables(
            file, described, arm, columns or {}, skip_bad_rows, progress
        )
    recording = without_bad_rows(recording, skip_bad_rows)
    if calibration is not None:
        recording = read_calibration(calibration).applied(recording)
    return _checked(recording, arm)


def joint_names_in_log(
    path: str | Path, mapping: str | Path | LogMapping | None = None
) -> tuple[str, ...]:
    """Names of the joints whose positions a log holds, in the log's own order.

    A log that only counts its joints gives their numbers from one; one without
    positions gives none. Only headings are read, of bags all messages.

    Args:
        path: The file, a bag's folder, or a folder of files the mapping names.
        mapping: TOML file (or its contents) that describes a foreign log.
    """
    file = Path(path)
    _check_file(file)
    described = mapping if isinstance(mapping, LogMapping) else None
    if mapping is not None and described is None:
        described = load_mapping(mapping)  # type: ignore[arg-type]
    if described is not None and (described.joints or "q" in described.signals):
        count = described.joint_count or 0
        return described.joints or tuple(str(j + 1) for j in range(count))
    if _is_bag(file):
        return _from_bag(file, described or LogMapping(), None, None).joint_names
    return joints_of(_headings(file))


def _headings(path: Path) -> list[str]:
    """Names of a table's columns."""
    from armwise.recordings.formats.csv import read_layout
    from armwise.recordings.formats.json_lines import json_line_names

    if path.suffix.lower() in TEXT:
        return list(read_layout(path).names)
    if path.suffix.lower() in JSON_LINES:
        return list(json_line_names(path))
    return list(_table(path, "", LogMapping(), None, {}, False, None).columns)


def _check_file(path: Path) -> None:
    if not path.exists():
        raise RecordingError(f"{path} does not exist.")
    # A pipe or a device may have no end.
    if not (path.is_file() or path.is_dir()):
        raise RecordingError(f"{path} is neither a file nor a folder. Copy it to one.")


def recording_of(
    table: RawTable,
    arm: Arm | None = None,
    mapping: LogMapping | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    skip_bad_rows: bool = False,
) -> Recording:
    """Understand a table that was read elsewhere, such as some rows of a file."""
    sources = Sources({"": table}, mapping or LogMapping(), arm, columns or {})
    read = contents_of(sources)
    recording = Recording(
        read.tables, read.joint_names, table.source, table.skipped_rows, read.notes
    )
    return _checked(without_bad_rows(recording, skip_bad_rows), arm)


def _checked(recording: Recording, arm: Arm | None) -> Recording:
    """Mend what is safe, refuse what the arm cannot have done, note what is odd."""
    recording = repaired(recording, arm)
    if arm is not None:
        check_against_arm(recording, arm)
        return replace(recording, arm=arm)
    if note := degrees_note(recording):
        return replace(recording, notes=(*recording.notes, note))
    return recording


def _is_bag(path: Path) -> bool:
    if path.is_dir():
        return (path / "metadata.yaml").exists() or any(
            child.suffix in BAGS for child in path.iterdir()
        )
    return path.suffix in BAGS


def _from_bag(
    path: Path, mapping: LogMapping, arm: Arm | None, progress: Progress | None
) -> Recording:
    from armwise.recordings.formats.bags import read_bag

    file = path
    if path.is_dir() and not (path / "metadata.yaml").exists():
        files = sorted(child for child in path.iterdir() if child.suffix in BAGS)
        if len(files) > 1:
            raise RecordingError(
                f"{path} has no metadata.yaml and {len(files)} bag files; name one: "
                f"{', '.join(file.name for file in files)}."
            )
        file = files[0]
    report = (lambda fraction: progress("reading", fraction)) if progress else None
    tables, names = read_bag(file, mapping.bag, arm, report)
    return Recording(tables, names, str(path))


def _from_tables(
    path: Path,
    mapping: LogMapping,
    arm: Arm | None,
    columns: Mapping[str, str],
    skip_bad_rows: bool,
    progress: Progress | None,
) -> Recording:
    """Read the log's file, or the several files its mapping names, and join them."""
    folder = path if path.is_dir() else path.parent
    parts = {signal.file for signal in mapping.signals.values()} | {mapping.time.file}
    parts.discard("")
    # A log whose signals are all in files of their own need not be a table itself.
    main_needed = not path.is_dir() and (
        path.name not in parts or any(not s.file for s in mapping.signals.values())
    )
    if path.is_dir() and not parts:
        raise RecordingError(f"{path} is a folder, but no bag. Name a file in it.")
    files = {name: folder / name for name in sorted(parts)}
    if main_needed or not parts:
        files[""] = path
    tables = {}
    for i, (name, file) in enumerate(files.items()):
        report = _part_of(progress, i, len(files))
        tables[name] = _table(file, name, mapping, arm, columns, skip_bad_rows, report)
    read = contents_of(Sources(tables, mapping, arm, columns))
    skipped = sum(table.skipped_rows for table in tables.values())
    return Recording(read.tables, read.joint_names, str(path), skipped, read.notes)


def _part_of(
    progress: Progress | None, i: int, count: int
) -> Callable[[float], None] | None:
    if progress is None:
        return None
    return lambda fraction: progress("reading", (i + fraction) / count)


def _table(
    path: Path,
    name: str,
    mapping: LogMapping,
    arm: Arm | None,
    columns: Mapping[str, str],
    skip_bad_rows: bool,
    progress: Callable[[float], None] | None,
) -> RawTable:
    """Read one file by its ending."""
    from armwise.recordings.formats import arrays
    from armwise.recordings.formats.csv import read_csv
    from armwise.recordings.formats.json_lines import read_json_lines

    if not path.is_file():
        state = "is no file" if path.exists() else "does not exist"
        raise RecordingError(f"{path} {state}; {mapping.source} names it.")
    readers = {
        ".parquet": arrays.read_parquet,
        ".pq": arrays.read_parquet,
        ".npz": arrays.read_npz,
        ".mat": arrays.read_mat,
    }
    if path.suffix.lower() in readers:
        return readers[path.suffix.lower()](path)
    if path.suffix.lower() not in (*TEXT, *JSON_LINES):
        endings = ", ".join((*TEXT, *JSON_LINES, *readers, *BAGS))
        raise RecordingError(
            f"{path}: the ending {path.suffix!r} is not known. Known: {endings}."
        )

    def needed(headings: tuple[str, ...]) -> set[str]:
        return _needed(headings, str(path), name, mapping, arm, columns)

    if path.suffix.lower() in JSON_LINES:
        return read_json_lines(
            path, needed, skip_bad_rows=skip_bad_rows, progress=progress
        )
    return read_csv(
        path,
        needed,
        separator=mapping.separator or None,
        skip_bad_rows=skip_bad_rows,
        progress=progress,
    )


def _needed(
    headings: tuple[str, ...],
    source: str,
    name: str,
    mapping: LogMapping,
    arm: Arm | None,
    columns: Mapping[str, str],
) -> set[str]:
    """Tell which columns of a text log must be sound."""
    standard = recognise(headings, source, arm, set(mapping.signals)).columns
    standard = with_columns(standard, columns if not name else {}, headings, source)
    # A thermometer that stops is said, and left out: the motion is as good without it.
    needed = {
        heading
        for channel, heading in standard.items()
        if not channel.startswith("temperature_")
    }
    needed |= set(seconds_and_nanoseconds(headings) or ())
    for signal in mapping.signals.values():
        if signal.file == name and signal.layout == "numbers":
            needed |= set(headings[:1])
        elif signal.file == name:
            needed |= set(signal.columns)
    if mapping.time.column:
        needed.add(mapping.time.column)
    if mapping.phases is not None:
        needed |= {column for triple in mapping.phases.columns for column in triple}
    numbered = {headings[int(w) - 1] for w in needed if _is_number_of(w, headings)}
    return (needed & set(headings)) | numbered


def _is_number_of(name: str, headings: tuple[str, ...]) -> bool:
    is_count = name not in headings and name.isascii() and name.isdigit()
    return is_count and 1 <= int(name) <= len(headings)
