"""Strict reading of small files: bounded bytes, TOML tables, JSON, stored arrays.

Every file may be damaged or hostile: what is read is a regular file of bounded size,
and each key and value that makes no sense is refused by name.
"""

from __future__ import annotations

import io
import json
import os
import stat
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import radians
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from armwise.errors import ArmError, ArmwiseError

if TYPE_CHECKING:
    import numpy as np

LARGEST_FILE = 64 * 2**20
"""Bytes; tables are written by hand, and the largest published URDFs are under 2 MB."""
LARGEST_TOML = 2**20
"""Bytes of a TOML file: thousands of joints, and no more than a second to parse."""
LARGEST_ARRAYS = 256 * 2**20
"""Bytes of all arrays of an .npz file together, however well they are compressed."""
DEEPEST_KEY = 20
"""Parts of a dotted TOML key: parsing takes the square of them, in time and memory."""
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
            raise self.error(f'needs a table for "{key}", not {_short(value)}.')
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
            raise self.error(f'needs a text for "{key}", not {_short(value)}.')
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
        if not all(isinstance(x, str | int) and _is_short(x) for x in items):
            raise self.error(
                f'needs names or numbers for "{key}", not {_short(value)}.'
            )
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
                f'needs {len(default)} numbers for "{key}", not {_short(value)}.'
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
            raise self.error(f'needs a finite number for "{key}", not {_short(value)}.')
        return float(value)  # type: ignore[arg-type]


def _is_short(value: object) -> bool:
    # Python refuses to print whole numbers of more than 4300 digits.
    return not isinstance(value, int) or value.bit_length() < 64


def _short(value: object) -> str:
    """What was found in place of something else, if it can be shown in a line."""
    if isinstance(value, dict | list | tuple):
        return f"a list of {len(value)}" if len(value) != 1 else "a list of one"
    text = repr(value) if _is_short(value) else "a huge number"
    return text if len(text) < 40 else "this"


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
    if len(data) > LARGEST_TOML:
        raise error_type(f"{path} is larger than a megabyte, too large for a table.")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise error_type(f"{path} is not UTF-8 text; save it as UTF-8.") from None
    if _has_deep_key(text):
        raise error_type(f"{path} has a dotted key of more than {DEEPEST_KEY} parts.")
    try:
        return TomlTable(f"{path}:", tomllib.loads(text), error_type)
    except (ValueError, RecursionError) as problem:
        raise error_type(f"{path} is not TOML: {problem}.") from None


def _has_deep_key(text: str) -> bool:
    """Whether a line has a run of many parts with dots between them."""
    deep = (line for line in text.splitlines() if line.count(".") >= DEEPEST_KEY)
    for line in deep:
        # Numbers of an array have commas between them, and one dot each.
        for run in line.translate(_SEPARATORS).split(","):
            parts = run.split(".")
            if len(parts) > DEEPEST_KEY and all(part.strip() for part in parts):
                return True
    return False


_SEPARATORS = str.maketrans("=[]{}#", ",,,,,,")


def read_json(
    path: Path, what: str, error_type: type[ArmwiseError] = ArmwiseError
) -> dict[str, Any]:
    """Read a JSON file whose outermost value is an object.

    Args:
        path: The file.
        what: What it should hold, for messages: "an estimate".
        error_type: What to raise if it does not.
    """
    data = read_bounded(path, error_type)
    try:
        table = json.loads(data)
    # RecursionError: brackets nested without end in a damaged file.
    except (ValueError, RecursionError) as problem:
        raise error_type(
            f"{path} cannot be read as {what}: it is cut off or damaged ({problem})."
        ) from problem
    if not isinstance(table, dict):
        raise error_type(f"{path} is not {what}.")
    return table


def read_arrays(
    path: Path, what: str, error_type: type[ArmwiseError]
) -> dict[str, np.ndarray]:
    """Read an .npz file of bounded size; nothing in it is ever executed.

    Args:
        path: The file.
        what: What it should hold, for messages: "a controller's state".
        error_type: What to raise if it does not.
    """
    import numpy as np

    data = read_bounded(path, error_type)
    try:
        with ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
        # Zeros are compressed a thousandfold; the size is known before it is taken.
        if sum(member.file_size for member in members) > LARGEST_ARRAYS:
            raise error_type(
                f"{path} unpacks to more than {LARGEST_ARRAYS // 2**20} MB, too much "
                f"for {what}."
            )
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            arrays = {name: np.asarray(stored[name]) for name in stored.files}
        # Linear algebra knows no half precision.
        for name, array in arrays.items():
            if array.dtype == np.float16:
                arrays[name] = array.astype(float)
    except ArmwiseError:
        raise
    # zipfile and NumPy have no common base for all that is wrong with an archive.
    except Exception as problem:
        raise error_type(f"{path} does not hold {what} ({problem}).") from problem
    return arrays


def read_bounded(path: Path, error_type: type[ArmwiseError] = ArmError) -> bytes:
    """Read a whole file that must be a regular one and not huge."""
    try:
        # Not blocking: a pipe without a writer would be waited for without end.
        with open(path, "rb", opener=_open_at_once) as file:
            state = os.fstat(file.fileno())
            is_regular = stat.S_ISREG(state.st_mode)
            if is_regular and state.st_size <= LARGEST_FILE:
                return file.read(LARGEST_FILE)
    except OSError as problem:
        reason = problem.strerror or str(problem)
        raise error_type(f"{path} cannot be read: {reason}.") from problem
    except ValueError as problem:  # a zero byte in the name
        raise error_type(f"{str(path)!r} cannot be read: {problem}.") from problem
    if not is_regular:
        raise error_type(f"{path} is not a regular file; name one that is.")
    raise error_type(
        f"{path} is larger than {LARGEST_FILE // 2**20} MB, too large for a "
        "description; remove embedded geometry or data."
    )


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
