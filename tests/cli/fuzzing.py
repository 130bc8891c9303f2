"""Bad input for commands: files that are not what they should be, senseless words."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

NUMBER = re.compile(rb"-?\d+\.?\d*(?:e[-+]?\d+)?")
SENSELESS = (b"nan", b"1e308", b"-1e308", b"inf", b"-7", b"0", b"text", b"", b"[]")

NUMBERS = ("nan", "1e308", "99999999999999999999", "-inf", "text")
"""For options that take a number."""
WORDS = ("nonsense", "\udcff")
"""For options that take a word."""
PLACES = ("a_file/inside", "a_file/inside/deeper.toml")
"""For options that take a file or a folder."""


def damaged(good: bytes, rng: random.Random) -> Iterator[bytes]:
    """Yield what becomes of a file: cut short, bytes changed, numbers senseless."""
    yield good[: rng.randrange(1, max(2, len(good)))]
    noisy = bytearray(good)
    for _ in range(20):
        noisy[rng.randrange(len(noisy))] = rng.randrange(256)
    yield bytes(noisy)
    for _ in range(3):
        found = list(NUMBER.finditer(good))
        chosen = rng.choice(found)
        yield good[: chosen.start()] + rng.choice(SENSELESS) + good[chosen.end() :]


def no_files(folder: Path, suffix: str, rng: random.Random) -> Iterator[Path]:
    """Yield paths of what cannot be a file of any kind that is wanted."""
    yield folder / f"missing{suffix}"
    yield folder / "no" / "such" / f"folder{suffix}"
    yield folder / f"{'long' * 100}{suffix}"
    yield folder / f"\udcff{suffix}"
    contents = {
        "empty": b"",
        "noise": rng.randbytes(3000),
        "zeros": bytes(3000),
        "words": b"The arm moved, and no one wrote down how.\n" * 9,
        "nested": b"[" * 100_000,
        "list": b"[1, 2, 3]",
        "table": b'{"arm": {"links": 3}, "version": "x", "values": null}',
        "toml": b"[arm]\nname = 3\n[time]\ncolumn = [1]\n",
        "xml": b"<robot name='x'><link/><joint type='revolute'/></robot>",
        "header": b"time,q_1,q_2,tau_1,tau_2\n",
        "row": b"time,q_1,q_2,tau_1,tau_2\n0,0,0,0,0\n",
        "nan": b"time,q_1,q_2,tau_1,tau_2\n" + b"nan,nan,nan,nan,nan\n" * 50,
        "huge": b"time,q_1,q_2,tau_1,tau_2\n"
        + b"".join(b"%d,1e308,-1e308,1e308,1e308\n" % k for k in range(50)),
    }
    for name, content in contents.items():
        path = folder / f"{name}{suffix}"
        path.write_bytes(content)
        yield path
    directory = folder / f"directory{suffix}"
    directory.mkdir(exist_ok=True)
    yield directory
