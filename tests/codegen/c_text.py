"""Read generated C as a stranger would: count what is written."""

from __future__ import annotations

import re
from collections import Counter

_TOKEN = re.compile(
    r"[A-Za-z_]\w*|\d[\w.]*(?:[eE][+-]?\d+)?\w*|->|[-+*/]|[()\[\]{},;=<>]"
)


def body_of(source: str, function: str) -> str:
    """The text between a function's braces."""
    start = source.index("{", source.index(f"void {function}("))
    return source[start + 1 : source.index("\n}", start)]


def written_operations(text: str) -> dict[str, int]:
    """Operators between operands; signs before one are free."""
    found: Counter[str] = Counter()
    before = ""
    for token in _TOKEN.findall(re.sub(r"/\*.*?\*/", " ", text, flags=re.S)):
        operand = bool(re.match(r"[\w)\]]", before)) and before != "return"
        if token in "+-*/" and operand:
            found[token] += 1
        before = token
    return {
        "multiplications": found["*"],
        "additions": found["+"] + found["-"],
        "divisions": found["/"],
    }
