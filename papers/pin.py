"""Pinned verdicts: `python -m papers.pin GALLERY` writes those of a gallery's parts.

The tests compare every row's verdict with `tests/reproductions/verdicts.toml`; a change
shows there, line by line, and has to be looked at before it is pinned.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from armwise.files import write_atomically

TARGET = Path(__file__).parent.parent / "tests" / "reproductions" / "verdicts.toml"


def pin(gallery: Path) -> str:
    """Return the verdicts of a gallery's finished groups as TOML."""
    lines = ["# Written by python -m papers.pin; look at every changed line."]
    for part in sorted((gallery / "parts").glob("*.json")):
        lines += ["", f"[{part.stem}]"]
        for row in json.loads(part.read_text("utf-8"))["rows"]:
            name = json.dumps(f"{row['experiment']}: {row['quantity']}",
                              ensure_ascii=False)  # fmt: skip
            lines.append(f"{name} = {json.dumps(row['verdict'])}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_atomically(TARGET, pin(Path(sys.argv[1])))
