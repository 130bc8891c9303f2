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


def on_page_markdown(markdown: str, **_: object) -> str:
    """Fill in the lists of public names and of commands."""
    for mark, make in (("{{ api }}", api), ("{{ commands }}", commands)):
        if mark in markdown:
            markdown = markdown.replace(mark, "\n".join(make()))
    return markdown


def api() -> Iterator[str]:
    """Yield every public name, folder by folder, with its signature and docstring."""
    for folder in filter(inspect.ismodule, map(armwise.__getattr__, armwise.__all__)):
        yield f"\n## {folder.__name__}\n"
        yield (inspect.getdoc(folder) or "").splitlines()[0]
        names = getattr(folder, "__all__", None) or _classes_of(folder)
        for name in sorted(names, key=str.lower):
            thing = getattr(folder, name)
            if callable(thing):  # constants are explained where they are used
                yield from _entry(name, thing)


def _classes_of(module: ModuleType) -> list[str]:
    """List the classes that are written in a module itself."""
    found = inspect.getmembers(module, inspect.isclass)
    return [name for name, thing in found if thing.__module__ == module.__name__]


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"\n### {name}\n"
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
