"""XML from untrusted files: no DTD, no entities, bounded size and depth."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from armwise.errors import ArmError
from armwise.tables import LARGEST_NUMBER, read_bounded

# Judgement: robots have thousands; a million elements still fit in memory.
MOST_ELEMENTS = 1_000_000
# Python's own default limit of recursion, for whoever walks the tree recursively.
DEEPEST = 1000


@dataclass(eq=False)
class Element:
    """An element and where it stands in the file.

    Attributes:
        tag, attributes, children: As in the document.
        file: Path of the document, for messages.
        line: Line of its start tag.
        start, close: Bytes where its start tag and its end tag begin; the second
            means nothing for <a/>.
        content: The text inside it, without that of its children.
    """

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    start: int
    close: int = -1
    children: list[Element] = field(default_factory=list)
    content: str = ""

    def all(self, tag: str) -> Iterator[Element]:
        """Go through the children with this tag."""
        return (child for child in self.children if child.tag == tag)

    def find(self, tag: str) -> Element | None:
        """Return the first child with this tag, if any."""
        return next(self.all(tag), None)

    def require(self, tag: str) -> Element:
        """Return the first child with this tag, or say that it is missing."""
        child = self.find(tag)
        if child is None:
            raise self.error(f"has no <{tag}>; add one.")
        return child

    def error(self, problem: str) -> ArmError:
        """Say what is wrong with this element, and where it stands."""
        name = self.attributes.get("name")
        called = f' name="{name}"' if name is not None else ""
        return ArmError(
            f"{self.file}, line {self.line}: <{self.tag}{called}> {problem}"
        )

    def text(self, attribute: str) -> str:
        """Return an attribute that must be there."""
        value = self.attributes.get(attribute)
        if not value:
            raise self.error(f'has no attribute "{attribute}"; add it.')
        return value

    def number(
        self,
        attribute: str,
        default: float | None = None,
        largest: float = LARGEST_NUMBER,
    ) -> float:
        """Return one finite number; without a default it must be there."""
        if default is not None and attribute not in self.attributes:
            return default
        return self._number(attribute, self.text(attribute), largest)

    def vector(
        self, attribute: str, default: tuple[float, ...], size: int = 3
    ) -> tuple[float, ...]:
        """Return a fixed number of finite numbers separated by blanks."""
        if attribute not in self.attributes:
            return default
        words = self.attributes[attribute].split()
        if len(words) != size:
            raise self.error(
                f'needs {size} numbers in "{attribute}", not {len(words)}.'
            )
        return tuple(self._number(attribute, word) for word in words)

    def numbers(self, size: int) -> tuple[float, ...]:
        """Return a fixed number of finite numbers that are the element's text."""
        words = self.content.split()
        if len(words) != size:
            raise self.error(f"needs {size} numbers, not {len(words)}.")
        # As large as a float: SDF writes "no limit" as 1e16 or 1.8e308.
        return tuple(self._number(self.tag, word, math.inf) for word in words)

    def _number(
        self, attribute: str, word: str, largest: float = LARGEST_NUMBER
    ) -> float:
        try:
            # Python reads 1_000 as a number; no other XML reader does.
            value = float(word) if "_" not in word else math.nan
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or abs(value) > largest:
            raise self.error(
                f'has {attribute}="{_short(word)}", which is not a finite number of '
                "sensible size; write one."
            )
        return value


def read_xml(path: Path, data: bytes | None = None) -> Element:
    """Read an XML file into its root element."""
    data = read_bounded(path) if data is None else data
    if not data.strip():
        raise ArmError(f"{path} is empty; give a URDF, MJCF, DH .toml or bundled name.")
    return _Builder(str(path), data).build()


class _Builder:
    """Feeds expat and keeps the open elements on a stack (no recursion)."""

    def __init__(self, file: str, data: bytes) -> None:
        self.file, self.data = file, data
        self.open: list[Element] = []
        self.texts: list[list[str]] = []
        self.root: Element | None = None
        self.count = 0
        parser = self.parser = expat.ParserCreate()
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.finish
        parser.CharacterDataHandler = self.add_text
        parser.StartDoctypeDeclHandler = self.refuse
        # Entities may expand exponentially ("billion laughs") or read other files.
        parser.EntityDeclHandler = self.refuse

    def build(self) -> Element:
        try:
            self.parser.Parse(self.data, True)
        except expat.ExpatError as problem:
            what = expat.ErrorString(problem.code)
            raise ArmError(
                f"{self.file}, line {problem.lineno}: not well-formed XML ({what}); "
                "mend it, or save it in the encoding its first line declares (UTF-8)."
            ) from None
        except (LookupError, ValueError) as problem:
            raise ArmError(
                f"{self.file}: its encoding cannot be read ({problem}); save it as "
                "UTF-8."
            ) from None
        assert self.root is not None  # expat refuses a document without one
        return self.root

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        line, offset = self.parser.CurrentLineNumber, self.parser.CurrentByteIndex
        self.count += 1
        # Bounds memory and recursion of later readers, whatever the file holds.
        if self.count > MOST_ELEMENTS or len(self.open) >= DEEPEST:
            raise ArmError(
                f"{self.file}, line {line}: more than {MOST_ELEMENTS} elements or "
                f"{DEEPEST} levels; no arm needs that many."
            )
        element = Element(tag, attributes, self.file, line, offset)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)
        self.texts.append([])

    def add_text(self, text: str) -> None:
        self.texts[-1].append(text)

    def finish(self, tag: str) -> None:
        element = self.open.pop()
        element.close = self.parser.CurrentByteIndex
        # Joined once: adding to a long text, chunk by chunk, takes quadratic time.
        element.content = "".join(self.texts.pop()).strip()

    def refuse(self, *_: object) -> None:
        raise ArmError(
            f"{self.file}, line {self.parser.CurrentLineNumber}: it declares a DOCTYPE "
            "or entities, which are refused; remove the declaration."
        )


def _short(word: str) -> str:
    return word if len(word) <= 40 else word[:37] + "..."
