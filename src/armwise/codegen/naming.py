"""Names for C: prefixes that are identifiers, comments that stay comments."""

from __future__ import annotations

import keyword
import re

from armwise.errors import ArgumentError

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*\Z")
_LONGEST = 40

_WORDS = """
auto break case char const continue default do double else enum extern float for goto
if inline int long register restrict return short signed sizeof static struct switch
typedef union unsigned void volatile while main sin cos exp sqrt class new namespace
template this bool true false
"""
_RESERVED = frozenset(_WORDS.split())


def prefix_for(arm_name: str, wanted: str | None) -> str:
    """Return the prefix of all generated names.

    Args:
        arm_name: The arm's own name: what is not a letter, digit or `_` becomes `_`.
        wanted: What the user asked for instead; must be an identifier as it is.
    """
    if wanted is not None:
        if not is_identifier(wanted):
            raise ArgumentError(
                f"name={wanted!r} cannot begin a C name. Use up to {_LONGEST} letters, "
                "digits and underscores, a letter first, and no word of C."
            )
        return wanted
    made = re.sub(r"[^A-Za-z0-9_]+", "_", arm_name).strip("_")[:_LONGEST]
    if made and made[0].isdigit():
        made = f"arm_{made}"[:_LONGEST]
    if not is_identifier(made):
        raise ArgumentError(
            f"No C name can be made of the arm's name {arm_name!r}. "
            "Choose one: generate(..., name='my_arm')."
        )
    return made


def is_identifier(text: str) -> bool:
    """Whether a text may stand as a name in C, C++ and Python."""
    return (
        bool(_IDENTIFIER.match(text))
        and len(text) <= _LONGEST
        and text not in _RESERVED
        and not keyword.iskeyword(text)
    )


def comment(text: str) -> str:
    """Return a text that cannot end a C comment or confuse a reader."""
    plain = "".join(c if c.isascii() and c.isprintable() else "?" for c in str(text))
    return plain.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/")
