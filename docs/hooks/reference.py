"""Reference pages made from the code itself: they cannot be out of date."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import typer

import armwise
from armwise.cli.main import COMMANDS, app

_SECTION = re.compile(r"^(Args|Attributes|Raises|Returns):$")
_ITEM = re.compile(r"^ {4}(\w[\w, .*]*): (.*)$")


def on_config(config: Any) -> Any:
    """Put the page of every folder of the package below the list of them."""
    (section,) = [part["Reference"] for part in config.nav if "Reference" in part]
    section.append({"By folder": [f"reference/api/{f}.md" for f in _folders()]})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add a page of public names for every folder of the package."""
    from mkdocs.structure.files import File

    for name, folder in _folders().items():
        text = "\n".join(folder_names(folder))
        files.append(File.generated(config, f"reference/api/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in the lists of folders and of commands."""
    for mark, make in (("{{ api }}", api), ("{{ commands }}", commands)):
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(make()))
    return markdown


def _folders() -> dict[str, ModuleType]:
    """The package's public folders, by their names in it."""
    modules = filter(inspect.ismodule, map(armwise.__getattr__, armwise.__all__))
    return {module.__name__.rpartition(".")[2]: module for module in modules}


def api() -> Iterator[str]:
    """Yield a row for every folder: what it is, and the names in it."""
    yield "| folder | what it is | names |\n|---|---|---|"
    for name, folder in _folders().items():
        names = ", ".join(f"`{x}`" for x in _callables(folder))
        yield f"| [{name}](api/{name}.md) | {_first_line(folder)} | {names} |"


def folder_names(folder: ModuleType) -> Iterator[str]:
    """Yield every public name of a folder with its signature and docstring."""
    yield f"# {folder.__name__}\n"
    yield _first_line(folder)
    for name in _callables(folder):
        yield from _entry(name, getattr(folder, name))


def _callables(folder: ModuleType) -> list[str]:
    """Functions and classes; constants are explained where they are used."""
    names = getattr(folder, "__all__", None) or _classes_of(folder)
    in_order = sorted(names, key=str.lower)
    return [name for name in in_order if callable(getattr(folder, name))]


def _first_line(folder: ModuleType) -> str:
    return (inspect.getdoc(folder) or "").splitlines()[0]


def _classes_of(module: ModuleType) -> list[str]:
    """List the classes that are written in a module itself."""
    found = inspect.getmembers(module, inspect.isclass)
    return [name for name, thing in found if thing.__module__ == module.__name__]


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield f"```python\n{name}{_signature(thing)}\n```\n"
    yield from _described(inspect.getdoc(thing) or "")
    if inspect.isclass(thing):
        for part, member in vars(thing).items():
            text = inspect.getdoc(member) if not part.startswith("_") else None
            if text and (callable(member) or isinstance(member, _PROPERTIES)):
                call = _signature(member) if callable(member) else ""
                yield f"\n`.{part}{call}`: {text.splitlines()[0]}\n"


_PROPERTIES = (property, classmethod, staticmethod)


def _signature(thing: Any) -> str:
    try:
        found = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    return re.sub(r"<[\w.]+ object at 0x\w+>", "…", found).replace("'", "")


def _described(text: str) -> Iterator[str]:
    """Turn sections such as Args into lists; the rest is markdown already."""
    in_section = False
    for line in text.splitlines():
        if found := _SECTION.match(line):
            in_section = True
            yield f"\n**{found[1]}**\n"
        elif in_section and (found := _ITEM.match(line)):
            yield f"* `{found[1]}`: {found[2]}"
        elif in_section and line.startswith("        "):
            yield f"  {line.strip()}"
        else:
            in_section = in_section and not line
            yield line.replace("_", r"\_") if "*" in line else line


def commands() -> Iterator[str]:
    """Yield every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    for name in COMMANDS:
        command = group.get_command(None, name)
        parts = getattr(command, "commands", None) or {"": command}
        for part, leaf in parts.items():
            yield from _command(f"{name} {part}".strip(), leaf)


def _command(name: str, command: Any) -> Iterator[str]:
    yield f"\n## armwise {name}\n"
    for line in inspect.cleandoc(command.help).splitlines():
        example = line.removeprefix("Example: ")
        yield line if example == line else f"```sh\n{example}\n```"
    yield "\n| argument or option | what it is | default |\n|---|---|---|"
    for option in command.params:
        flags = ", ".join(f"`{flag}`" for flag in _flags(option))
        has_default = option.default not in (None, False, ()) and not option.required
        shown = f"`{option.default}`" if has_default else ""
        yield f"| {flags} | {option.help or ''} | {shown} |"


def _flags(option: Any) -> list[str]:
    if option.param_type_name == "argument":
        return [option.metavar or option.name.upper()]
    return sorted(option.opts, key=len, reverse=True)
