"""armwise doctor: what is installed, what is missing, and how to get it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from armwise.cli.output import AsJson, console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from armwise.cli.checkup import Finding

_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(json: AsJson = False) -> None:
    """Look at the installation: packages, compiler, cache, GPU, browser.

    Exits with 1 if something that is needed is broken.

    Example: armwise doctor
    """
    from armwise.cli.checkup import examine

    found = examine()
    broken = [finding.name for finding in found if finding.state == "broken"]
    if json:
        print_json({"broken": broken, "findings": found})
    else:
        _show(found, broken)
    if broken:
        raise typer.Exit(1)


def _show(found: Sequence[Finding], broken: Sequence[str]) -> None:
    from rich.text import Text

    made = table("", ("what", "state", "found"))
    for column in made.columns:
        column.justify = "left"
    for finding in found:
        detail = finding.detail + (f"\n→ {finding.remedy}" if finding.remedy else "")
        state = Text(finding.state, style=_STYLES[finding.state])
        made.add_row(Text(finding.name), state, Text(detail))
    out = console()
    out.print(made)
    out.print(
        f"Broken: {', '.join(broken)}."
        if broken
        else "Nothing that is needed is amiss.",
        markup=False,
    )
