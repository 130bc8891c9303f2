"""Editor of XML attributes that leaves every other byte unchanged."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from armwise.arms.readers.xml import Element
from armwise.errors import ArmError

# What XML would read otherwise, blanks included: attributes are normalised.
_ESCAPES = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "\n": "&#10;",
        "\r": "&#13;",
        "\t": "&#9;",
    }
)

_ATTRIBUTE = re.compile(rb"""\s+([^\s=/>"']+)\s*=\s*("[^"]*"|'[^']*')""")


def quoteattr(text: str) -> str:
    """Quote an attribute's value; the standard library's drags in its web client."""
    return f'"{text.translate(_ESCAPES)}"'


@dataclass
class Editor:
    """Edits collected against the bytes of a file, then made all at once.

    Attributes:
        data: The file.
        changes: (start, end, replacement) in bytes.
    """

    data: bytes
    changes: list[tuple[int, int, bytes]] = field(default_factory=list)

    def set(self, element: Element, values: Mapping[str, str]) -> None:
        """Give attributes other values; add those that are not there."""
        tag = self._tag(element)
        spans = {m.group(1).decode(): m.span(2) for m in _ATTRIBUTE.finditer(tag)}
        added = ""
        for name, value in values.items():
            if name not in spans:
                added += f" {name}={quoteattr(value)}"
            # Equal numbers stay as they were typed: a diff shows only what changed.
            elif not _same_numbers(element.attributes[name], value):
                start, end = (element.start + x for x in spans[name])
                self.changes.append((start, end, quoteattr(value).encode()))
        if added:
            end = element.start + len(tag) - (2 if tag.endswith(b"/>") else 1)
            # Before trailing blanks: the new attribute follows the last one directly.
            end = len(self.data[:end].rstrip())
            self.changes.append((end, end, added.encode()))

    def remove(self, element: Element, names: tuple[str, ...]) -> None:
        """Take attributes away."""
        for match in _ATTRIBUTE.finditer(self._tag(element)):
            if match.group(1).decode() in names:
                start, end = (element.start + x for x in match.span())
                self.changes.append((start, end, b""))

    def insert(self, parent: Element, lines: list[str]) -> None:
        """Put new lines in front of the children of an element."""
        tag, indent = self._tag(parent), self._indent(parent)
        block = b"".join(self._newline + indent + b"  " + x.encode() for x in lines)
        after = parent.start + len(tag)
        if tag.endswith(b"/>"):
            closing = self._newline + indent + b"</" + parent.tag.encode() + b">"
            bare = len(self.data[: after - 2].rstrip())
            self.changes.append((bare, after, b">" + block + closing))
        else:
            self.changes.append((after, after, block))

    def append(self, parent: Element, lines: list[str]) -> None:
        """Put new lines behind the children of an element."""
        if self._tag(parent).endswith(b"/>"):
            self.insert(parent, lines)
            return
        indent = self._indent(parent)
        # Behind the last child, on lines of their own: the end tag keeps its line.
        end = len(self.data[: parent.close].rstrip())
        block = b"".join(self._newline + indent + b"  " + x.encode() for x in lines)
        closing = self._newline + indent
        self.changes.append((end, parent.close, block + closing))

    def replace(self, element: Element, lines: list[str]) -> None:
        """Put lines in the place of a whole element."""
        block = (self._newline + self._indent(element)).join(
            line.encode() for line in lines
        )
        self.changes.append((element.start, self._end(element), block))

    def after_tag(self, element: Element) -> int:
        """Where what is inside an element begins."""
        return element.start + len(self._tag(element))

    def result(self) -> bytes:
        """Return the file with every change made."""
        data = self.data
        # From the end, so that earlier positions stay valid.
        for start, end, new in sorted(self.changes, key=lambda x: x[0], reverse=True):
            data = data[:start] + new + data[end:]
        return data

    @property
    def _newline(self) -> bytes:
        # The file's own line ends; its first lines decide.
        return b"\r\n" if b"\r\n" in self.data[:10_000] else b"\n"

    def _tag(self, element: Element) -> bytes:
        """Return the bytes of a start tag: up to its first ">" outside quotes."""
        match = _START_TAG.match(self.data, element.start)
        if match is None:
            raise ArmError(
                f"{element.file} is in an encoding that cannot be edited in place; "
                "save the template as UTF-8."
            )
        return match.group()

    def _end(self, element: Element) -> int:
        tag = self._tag(element)
        if tag.endswith(b"/>"):
            return element.start + len(tag)
        # `close` is where the end tag begins; it holds no ">" but its own.
        return self.data.index(b">", element.close) + 1

    def _indent(self, element: Element) -> bytes:
        line = self.data.rfind(b"\n", 0, element.start) + 1
        before = self.data[line : element.start]
        return before if not before.strip() else b""


def _same_numbers(old: str, new: str) -> bool:
    """Whether two texts hold the same numbers, 2.0 and 2 alike."""
    try:
        return [float(x) for x in old.split()] == [float(x) for x in new.split()]
    except ValueError:
        return False


_START_TAG = re.compile(rb"""<[^\s"'>/\x00]+(?:[^"'>]|"[^"]*"|'[^']*')*>""")
