"""Pinned verdicts: `python -m papers.pin GALLERY` writes those of a gallery's parts.

The tests compare every row's verdict with `tests/reproductions/verdicts.toml`; a change
shows there, line by line, and has to be looked at before it is pinned. Rows that would
survive a perturbed number, or that differ and do not say why, are not pinned.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from armwise.errors import ArgumentError
from armwise.files import write_atomically
from papers.rows import Row, is_explained, survivors

TARGET = Path(__file__).parent.parent / "tests" / "reproductions" / "verdicts.toml"


def pin(gallery: Path) -> str:
    """Return the verdicts of a gallery's finished groups as TOML."""
    lines = ["# Written by python -m papers.pin; look at every changed line."]
    for part in sorted((gallery / "parts").glob("*.json")):
        lines += ["", f"[{part.stem}]"]
        for row in json.loads(part.read_text("utf-8"))["rows"]:
            _refuse_weak(part.stem, row)
            name = json.dumps(f"{row['experiment']}: {row['quantity']}",
                              ensure_ascii=False)  # fmt: skip
            lines.append(f"{name} = {json.dumps(row['verdict'])}")
    return "\n".join(lines) + "\n"


def _refuse_weak(group: str, row: Row) -> None:
    """The mutation test and the probes, of long groups as well, without a new run."""
    what = f"{group}, {row['experiment']}: {row['quantity']}"
    if survived := survivors(row):
        raise ArgumentError(f"{what} cannot fail: {'; '.join(survived)}.")
    if not is_explained(row):
        raise ArgumentError(f"{what} {row['verdict']}, and no probe says why.")


if __name__ == "__main__":
    write_atomically(TARGET, pin(Path(sys.argv[1])))
