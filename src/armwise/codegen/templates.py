"""C files with places to fill in: @LIKE_THIS@."""

from __future__ import annotations

import re
from pathlib import Path

_PLACE = re.compile(r"@([A-Z_]+)@")
_FOLDER = Path(__file__).parent / "templates"


def fill(template: str, **values: object) -> str:
    """Return a template of the package with its places filled in."""
    text = (_FOLDER / template).read_text(encoding="utf-8")
    return _PLACE.sub(lambda match: str(values[match.group(1)]), text)
