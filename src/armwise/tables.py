"""Strict TOML tables: every unknown key and wrong value is refused by name."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import radians
from pathlib import Path
from typing import Any

from armwise.errors import ArmError, ArmwiseError

LARGEST_FILE = 64 * 2**20
"""Bytes; tables are written by hand, and the largest published URDFs are under 2 MB."""
LARGEST_NUMBER = 1e30
"""Of any length, mass or inertia: products of such numbers are finite."""


@dataclass(frozen=True)
class TomlTable:
    """A table of a TOML file, read key by key.

    Attributes:
        where: File and table, for messages.
        values: The table itself.
        error_type: What to raise: it says whose file is to be mended.
    """

    where: str
    values: Mapping[str, Any]
    error_type: type[ArmwiseError] = ArmError

    def error(self, problem: str) -> ArmwiseError:
        """Say what is wrong with this table."""
        return self.error_type(f"{self.where} {problem}")

    def only(self, *known: str) -> TomlTable:
        """Refuse keys that mean nothing here."""
        for key in self.values:
            if key not in known:
                raise self.error(
                    f'has the unknown key "{key}". Known: {", ".join(known)}.'
                )
        return self

    def table(self, key: str) -> TomlTable:
        """Return a table inside this one, empty if it is not there."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f'needs a table for "{key}", not {value!r}.')
        return replace(self, where=self._inside(key), values=value)

    def tables(self, key: str) -> Iterator[TomlTable]:
        """Go through an array of tables [[key]]."""
        rows = self.values.get(key, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.error(f'needs tables [[{key}]] for "{key}".')
        for i, row in enumerate(rows, 1):
            where = self._inside(f"{key} {row.get('name', i)}")
            yield replace(self, where=where, values=row)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; without a default it must be there.

        It may be empty only if that is the default.
        """
        value = self.values.get(key, "" if default is None else default)
        if not isinstance(value, str) or not (value or default == ""):
            raise self.error(f'needs a text for "{key}", not {value!r}.')
        return value

    def choice(self, key: str, *known: str) -> str:
        """Return one of some words; the first is the default."""
        value = self.text(key, known[0])
        if value not in known:
            raise self.error(
                f'needs one of {", ".join(known)} for "{key}", not {value!r}.'
            )
        return value

    def names(self, key: str) -> tuple[str, ...]:
        """Return one or more words, or numbers as words; none if it is not there."""
        value = self.values.get(key, [])
        items = value if isinstance(value, list) else [value]
        if not all(isinstance(x, str | int) for x in items):
            raise self.error(f'needs names or numbers for "{key}", not {value!r}.')
        return tuple(str(x) for x in items)

    def numbers(self, key: str, default: float | None = None) -> tuple[float, ...]:
        """Return one or more finite numbers; without a default they must be there."""
        value = self.values.get(key, default)
        if value is None:
            raise self.error(f'has no "{key}"; add it.')
        items = value if isinstance(value, list) else [value]
        return tuple(self._number(key, x) for x in items)

    def number(self, key: str, default: float | None = None) -> float:
        """Return a finite number; without a default it must be there."""
        if key not in self.values and default is not None:
            return default
        if key not in self.values:
            raise self.error(f'has no "{key}"; add it.')
        return self._number(key, self.values[key])

    def vector(self, key: str, default: tuple[float, ...]) -> tuple[float, ...]:
        """Return as many numbers as the default has."""
        value = self.values.get(key, default)
        if not isinstance(value, list | tuple) or len(value) != len(default):
            raise self.error(
                f'needs {len(default)} numbers for "{key}", not {value!r}.'
            )
        return tuple(self._number(key, x) for x in value)

    def angle(self, key: str, default: float | None = None) -> float:
        """Return an angle in [rad], given as `key` or in degrees as `key_deg`."""
        degrees = f"{key}_deg"
        if key in self.values and degrees in self.values:
            raise self.error(f'has both "{key}" and "{degrees}"; keep one.')
        if degrees in self.values:
            return radians(self.number(degrees))
        if key not in self.values and default is None:
            raise self.error(f'has no "{key}" (or "{degrees}"); add the column.')
        return self.number(key, default)

    def _inside(self, name: str) -> str:
        """Where a table of this one stands: `file: outer, inner`."""
        return f"{self.where}{' ' if self.where.endswith(':') else ', '}{name}"

    def _number(self, key: str, value: object) -> float:
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if not numeric or not abs(value) <= LARGEST_NUMBER:  # type: ignore[arg-type]
            short = repr(value) if len(repr(value)) < 40 else "this"
            raise self.error(f'needs a finite number for "{key}", not {short}.')
        return float(value)  # type: ignore[arg-type]


def read_toml(
    path: Path, data: bytes | None = None, error_type: type[ArmwiseError] = ArmError
) -> TomlTable:
    """Read a TOML file.

    Args:
        path: The file.
        data: Its bytes, if they have been read already.
        error_type: What to raise if it, or a table of it, is not as it should be.
    """
    data = read_bounded(path, error_type) if data is None else data
    try:
        return TomlTable(f"{path}:", tomllib.loads(data.decode()), error_type)
    except UnicodeDecodeError:
        raise error_type(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except (ValueError, RecursionError) as problem:
        raise error_type(f"{path} is not TOML: {problem}.") from None


def read_bounded(path: Path, error_type: type[ArmwiseError] = ArmError) -> bytes:
    """Read a whole file that must not be huge."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise error_type(
                f"{path} is larger than {LARGEST_FILE // 2**20} MB, too large for a "
                "description; remove embedded geometry or data."
            )
        return path.read_bytes()
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise error_type(f"{path} cannot be read: {reason}.") from problem
