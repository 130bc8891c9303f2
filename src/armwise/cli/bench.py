"""armwise bench: how fast, beside a named peer measured in the same run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from armwise.cli.output import AsJson, console, figure, print_json, table, warn
from armwise.errors import ArgumentError

if TYPE_CHECKING:
    from types import ModuleType


def _complete(incomplete: str) -> list[str]:
    try:
        return [name for name in _benchmarks() if name.startswith(incomplete)]
    except ArgumentError:  # not in a checkout
        return []


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Which ones; all if none.", metavar="NAME", autocompletion=_complete
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Measure speed and accuracy beside others. Ratios hold; times are this machine's.

    Example: armwise bench dynamics
    """
    known = _benchmarks()
    wanted = list(known) if not names or names == ["all"] else names
    if unknown := [name for name in wanted if name not in known]:
        raise ArgumentError(
            f"There is no benchmark {unknown[0]!r}. Known: {', '.join(known)}."
        )
    collected: dict[str, list[dict[str, Any]]] = {}
    for name in wanted:
        collected[name] = _measure(name, known[name])
        if not json:
            _show(name, collected[name])
    if json:
        print_json(collected)


def _measure(name: str, path: Path) -> list[dict[str, Any]]:
    """Run a benchmark: its rows of figures, or the lines it prints for itself."""
    module = _load(name, path)
    if hasattr(module, "run"):
        return [_plain(row) for row in module.run()]
    printed = StringIO()
    with redirect_stdout(printed), _without_arguments():
        module.main()
    return [{"figures": line} for line in printed.getvalue().splitlines() if line]


@contextmanager
def _without_arguments() -> Iterator[None]:
    """Let a script see no command-line arguments of ours."""
    kept = sys.argv
    sys.argv = kept[:1]
    try:
        yield
    finally:
        sys.argv = kept


def _benchmarks() -> dict[str, Path]:
    """Benchmarks live in the source tree, beside the package or where we stand."""
    import armwise

    places = (Path(armwise.__file__).parents[2], Path.cwd())
    for place in places:
        found = sorted((place / "benchmarks").glob("*.py"))
        chosen = {path.stem: path for path in found if path.stem != "figures"}
        if chosen:
            return chosen
    raise ArgumentError(
        "Benchmarks come with the source tree, not with the installed package. Run "
        "armwise bench from a checkout."
    )


def _load(name: str, path: Path) -> ModuleType:
    root = str(path.parents[1])
    if root not in sys.path:
        sys.path.insert(0, root)
    spec = importlib.util.spec_from_file_location(f"benchmarks.{name}", path)
    if spec is None or spec.loader is None:
        raise ArgumentError(f"{path} cannot be loaded.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _plain(row: Any) -> dict[str, Any]:
    return dict(row._asdict()) if hasattr(row, "_asdict") else dict(row)


def _show(name: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        warn(f"{name}: nothing was measured.")
        return
    columns = list(rows[0])
    shown = table(name, columns)
    for row in rows:
        shown.add_row(*[_text(row.get(column)) for column in columns])
    console().print(shown)


def _text(value: Any) -> str:
    from rich.markup import escape

    return figure(value, 4) if isinstance(value, float) else escape(str(value))
