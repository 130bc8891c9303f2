"""A folder's `__init__` is its interface, and no two modules need each other.

import-linter keeps the order of the folders (`make contract`); these laws are finer.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "armwise"
FOLDERS = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
BESIDE = [folder for folder in ("papers", "studies") if (ROOT / folder).is_dir()]


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports(nodes: Iterator[ast.AST]) -> Iterator[tuple[int, str, str]]:
    """Yield line, module and name of what is imported; no name for a whole module."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, node.module or "", a.name) for a in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, a.name, "") for a in node.names)


@cache
def interface(folder: str) -> set[str]:
    """Return the names that a folder offers to the others."""
    for node in parsed(PACKAGE / folder / "__init__.py").body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def trespasses(path: Path, own: str) -> Iterator[str]:
    """Yield imports that reach past the `__init__` of another folder."""
    for line, module, name in imports(ast.walk(parsed(path))):
        parts = module.split(".")
        if parts[0] != "armwise" or len(parts) < 2 or parts[1] not in FOLDERS - {own}:
            continue
        if len(parts) > 2 or (name and name not in interface(parts[1])):
            yield f"{path.relative_to(ROOT)}:{line}: from {module} import {name}"


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_other_folders_are_entered_by_the_door(folder):
    paths = sorted((PACKAGE / folder).rglob("*.py"))
    assert [text for path in paths for text in trespasses(path, folder)] == []


@pytest.mark.parametrize("folder", BESIDE)
def test_reproductions_and_studies_take_what_is_offered_at_the_door(folder):
    """They may look inside the package, but not for what a folder offers."""
    reached = [
        f"{path.relative_to(ROOT)}:{line}: from {module} import {name}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, module, name in imports(ast.walk(parsed(path)))
        if module.startswith("armwise.")
        and module.count(".") > 1
        and name in interface(module.split(".")[1])
    ]
    assert reached == []


@pytest.mark.parametrize("folder", sorted(FOLDERS - {"cli"}))
def test_an_interface_offers_what_it_has(folder):
    """What `__init__` imports is in `__all__`; ruff sees to the converse."""
    tree = parsed(PACKAGE / folder / "__init__.py")
    held = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("armwise")
        for alias in node.names
    }
    assert held - interface(folder) == set()


def loaded(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what runs when a module is loaded: no functions, nothing for checkers."""
    for child in ast.iter_child_nodes(node):
        is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef)
        for_checkers = isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(
            child.test
        )
        if not (is_function or for_checkers):
            yield child
            yield from loaded(child)


@cache
def exports(package: str) -> dict[str, str]:
    """Name → the module an `__init__` has it from."""
    return {
        name: module
        for _, module, name in imports(iter(parsed(MODULES[package]).body))
        if module in MODULES
    }


def source_of(module: str, name: str) -> str:
    """Return the module in which an imported name is written."""
    if f"{module}.{name}" in MODULES:
        return f"{module}.{name}"
    if module in MODULES and MODULES[module].name == "__init__.py":
        return (
            source_of(origin, name) if (origin := exports(module).get(name)) else module
        )
    return module


def needs(module: str) -> set[str]:
    found = imports(loaded(parsed(MODULES[module])))
    return {source_of(base, name) for _, base, name in found} & MODULES.keys() - {
        module
    }


def test_no_modules_need_each_other():
    plain = [name for name, path in MODULES.items() if path.name != "__init__.py"]
    try:
        TopologicalSorter({name: needs(name) for name in plain}).prepare()
    except CycleError as cycle:
        pytest.fail(" → ".join(cycle.args[1]))
