"""TOML tables whose every wrong key or value is named."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import radians
from pathlib import Path
from typing import Any

from armwise.arms.readers.xml import LARGEST_NUMBER, read_bytes
from armwise.errors import ArmError


@dataclass(frozen=True)
class Table:
    """A table of a TOML file and where it stands.

    Attributes:
        where: File and table, for messages.
        values: The table itself.
    """

    where: str
    values: Mapping[str, Any]

    def error(self, problem: str) -> ArmError:
        """Say what is wrong with this table."""
        return ArmError(f"{self.where} {problem}")

    def only(self, *known: str) -> Table:
        """Refuse keys that mean nothing here."""
        for key in self.values:
            if key not in known:
                raise self.error(
                    f'has the unknown key "{key}". Known: {", ".join(known)}.'
                )
        return self

    def table(self, key: str) -> Table:
        """Return a table inside this one, empty if it is not there."""
        value = self.values.get(key, {})
        if not isinstance(value, dict):
            raise self.error(f'needs a table for "{key}", not {value!r}.')
        return Table(f"{self.where}, {key}", value)

    def tables(self, key: str) -> Iterator[Table]:
        """Go through an array of tables [[key]]."""
        rows = self.values.get(key, [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise self.error(f'needs tables [[{key}]] for "{key}".')
        for i, row in enumerate(rows, 1):
            yield Table(f"{self.where}, {key} {row.get('name', i)}", row)

    def text(self, key: str, default: str) -> str:
        """Return a string."""
        value = self.values.get(key, default)
        if not isinstance(value, str) or not value:
            raise self.error(f'needs a text for "{key}", not {value!r}.')
        return value

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

    def _number(self, key: str, value: object) -> float:
        numeric = isinstance(value, int | float) and not isinstance(value, bool)
        if not numeric or not abs(value) <= LARGEST_NUMBER:  # type: ignore[arg-type]
            short = repr(value) if len(repr(value)) < 40 else "this"
            raise self.error(f'needs a finite number for "{key}", not {short}.')
        return float(value)  # type: ignore[arg-type]


def read_toml(path: Path, data: bytes | None = None) -> Table:
    """Read a TOML file."""
    data = read_bytes(path) if data is None else data
    try:
        return Table(f"{path}:", tomllib.loads(data.decode()))
    except UnicodeDecodeError:
        raise ArmError(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    except (ValueError, RecursionError) as problem:
        raise ArmError(f"{path} is not TOML: {problem}.") from None
