"""The README's code runs, and prints something true."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def test_fifteen_lines(capsys):
    (code,) = re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    )
    exec(compile(code, str(README), "exec"), {})
    count, inside = re.match(
        r"(\d+) base parameters, (\d+)%", capsys.readouterr().out
    ).groups()
    assert int(count) == 69
    assert 85 <= int(inside) <= 100
