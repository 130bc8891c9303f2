"""A name for everything that decides on a result, so that it can be remembered."""

from __future__ import annotations

import dataclasses
import hashlib
from functools import partial
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np


class NotDescribable(TypeError):  # noqa: N818
    """Something whose content cannot be told from outside."""


def fingerprint(*things: object) -> str | None:
    """Return a digest of what things are made of; None if that cannot be told.

    Functions and classes count by name, frozen data by content, so that equal
    descriptions agree between processes and after use. Lambdas cannot be told.
    """
    digest = hashlib.sha256()
    try:
        for thing in things:
            _feed(digest, thing)
    except NotDescribable:
        return None
    return digest.hexdigest()[:32]


def _feed(digest: Any, thing: object) -> None:
    digest.update(f"<{type(thing).__module__}.{type(thing).__qualname__}>".encode())
    if thing is None or isinstance(thing, bool | int | float | complex | str | Path):
        digest.update(repr(thing).encode())
    elif isinstance(thing, bytes):
        digest.update(thing)
    elif isinstance(thing, np.ndarray | np.generic):
        array = np.ascontiguousarray(thing)
        digest.update(f"{array.dtype}{array.shape}".encode() + array.tobytes())
    elif isinstance(thing, partial):
        _feed_all(digest, (thing.func, thing.args, thing.keywords))
    elif isinstance(thing, list | tuple):
        _feed_all(digest, thing)
    elif isinstance(thing, dict):
        _feed_all(digest, [x for item in thing.items() for x in item])
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        _feed_all(digest, [getattr(thing, f.name) for f in dataclasses.fields(thing)])
    else:
        _feed_name(digest, thing)


def _feed_all(digest: Any, things: Any) -> None:
    digest.update(f"{len(things)}:".encode())
    for thing in things:
        _feed(digest, thing)


def _feed_name(digest: Any, thing: object) -> None:
    if not isinstance(thing, type | FunctionType | BuiltinFunctionType):
        raise NotDescribable(type(thing).__name__)
    name = f"{thing.__module__}.{thing.__qualname__}"
    if "<" in name or isinstance(thing, MethodType):
        raise NotDescribable(name)
    digest.update(name.encode())
