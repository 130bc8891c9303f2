"""armwise doctor: what is installed, what is missing, and how to get it."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from armwise.cli.output import AsJson, console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence


_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(json: AsJson = False) -> None:
    """Look at the installation: packages, compiler, cache, GPU, browser.

    Exits with 1 if something that is needed is broken.

    Example: armwise doctor
    """

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


# What Armwise needs of this machine, and how each of it is doing.

State = Literal["ok", "missing", "broken"]

PURPOSES = {
    "ros": "ROS 2 bags and MCAP",
    "sim": "MuJoCo: armwise demo, MJCF meshes, --mujoco",
    "view": "armwise view: the arm in the browser",
    "jax": "programs as JAX functions",
    "cluster": "many machines",
}
"""What each extra is good for; those for developers of Armwise are left out."""


@dataclass(frozen=True)
class Finding:
    """One thing looked at.

    Attributes:
        topic: What kind of thing: needed, extra, compiler, cache, GPU, browser.
        name: Its name.
        state: ok; missing, and not needed; or broken: needed, and not as it must be.
        detail: What was found.
        remedy: What to do about it, if anything.
    """

    topic: str
    name: str
    state: State
    detail: str
    remedy: str = ""


def examine() -> list[Finding]:
    """Look at everything, nearest first."""
    return [_python(), *_packages(), _compiler(), _cache(), _gpu(), _browser()]


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("needed", "python", "ok", f"{version} at {sys.executable}")


def _packages() -> list[Finding]:
    """Compare what the package asks for with what is installed."""
    from armwise.version import __version__

    found = [Finding("needed", "armwise", "ok", f"{__version__} at {_home()}")]
    for line in metadata.requires("armwise") or []:
        name, least, extra = parse_requirement(line)
        if name != "armwise" and (extra is None or extra in PURPOSES):
            found.append(_package(name, least, extra))
    return found


def _home() -> Path:
    import armwise

    return Path(armwise.__file__).parent


def parse_requirement(line: str) -> tuple[str, str, str | None]:
    """Split `rosbags>=0.10; extra == 'ros'` into name, least version and extra."""
    match = re.match(r"([\w.-]+)[^;>]*(?:>=\s*([\w.]+))?", line)
    extra = re.search(r"extra\s*==\s*['\"](\w+)", line)
    if match is None:
        raise ValueError(f"{line!r} is no requirement.")
    return match[1], match[2] or "0", extra[1] if extra else None


def _package(name: str, least: str, extra: str | None) -> Finding:
    topic = "extra" if extra else "needed"
    label = f"{name} [{extra}]" if extra else name
    purpose = f"; {PURPOSES[extra]}" if extra else ""
    install = f"pip install 'armwise[{extra}]'" if extra else f"pip install '{name}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        state: State = "missing" if extra else "broken"
        return Finding(topic, label, state, f"not installed{purpose}", install)
    if _numbers(version) < _numbers(least):
        detail = f"{version}, older than {least}"
        return Finding(topic, label, "broken", detail, f"{install} --upgrade")
    return Finding(topic, label, "ok", f"{version}{purpose}")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _compiler() -> Finding:
    """Find a C compiler and let it compile something that must come out right."""
    from armwise.errors import ArmwiseError
    from armwise.programs import find_compiler

    compiler = find_compiler()
    if compiler is None:
        detail = "none found: NumPy does the work, 10 to 50 times slower"
        remedy = "install gcc or clang, or pip install ziglang"
        return Finding("compiler", "C compiler", "missing", detail, remedy)
    named = f"{' '.join(compiler.command)}: {compiler.version}"
    try:
        error = compiled_error()
    except (ArmwiseError, OSError) as problem:
        detail, remedy = f"{named}; {problem}", "set CC to another compiler"
        return Finding("compiler", "C compiler", "broken", detail, remedy)
    if not error < 1e-14:
        detail = f"{named}; its program is wrong by {error:.1e}"
        return Finding(
            "compiler", "C compiler", "broken", detail, "set CC to another compiler"
        )
    return Finding("compiler", "C compiler", "ok", f"{named}; a program compiles, runs")


def compiled_error() -> float:
    """Compile a small program afresh; how far it is from NumPy's answer."""
    import numpy as np

    from armwise.programs import Kernel, Scalar, cos, sin, trace

    def turn(q: list[Scalar]) -> dict[str, object]:
        return {"xy": [q[1] * cos(q[0]), q[1] * sin(q[0])]}

    program = trace("doctor", turn, {"q": 2})
    states = np.random.default_rng(0).normal(size=(100, 2))
    kept = os.environ.get("ARMWISE_CACHE")
    with tempfile.TemporaryDirectory(prefix="armwise-") as folder:
        os.environ["ARMWISE_CACHE"] = folder  # or an old result would be found
        try:
            (ours,) = Kernel(program, "c")([states])
        finally:
            del os.environ["ARMWISE_CACHE"]
            if kept is not None:
                os.environ["ARMWISE_CACHE"] = kept
    (theirs,) = Kernel(program, "numpy")([states])
    return float(np.abs(ours - theirs).max())


def _cache() -> Finding:
    from armwise.programs import cache_folder

    remedy = "set ARMWISE_CACHE to a folder of yours"
    try:
        folder = cache_folder()
    except OSError as problem:
        return Finding("cache", "compile cache", "broken", str(problem), remedy)
    found = folder.stat()
    count = len(list(folder.glob("*.so")))
    detail = f"{folder}, mode {found.st_mode & 0o777:o}, {count} programs"
    ours = found.st_uid == os.getuid() and os.access(folder, os.W_OK)
    if not ours:
        return Finding("cache", "compile cache", "broken", detail, remedy)
    return Finding("cache", "compile cache", "ok", detail)


def _gpu() -> Finding:
    from armwise.programs import CudaError, device

    try:
        gpu = device()
    except CudaError as problem:
        return Finding("GPU", "GPU", "missing", str(problem))
    return Finding("GPU", "GPU", "ok", f"{gpu.multiprocessors} multiprocessors")


def _browser() -> Finding:
    import webbrowser

    try:
        webbrowser.get()
    except webbrowser.Error:
        detail = "none that can be started from here; reports are plain files"
        return Finding("browser", "browser", "missing", detail)
    return Finding("browser", "browser", "ok", "reports and armwise view can be opened")
