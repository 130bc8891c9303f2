"""armwise doctor: checks of the installation, with remedies."""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer
from packaging.requirements import Requirement

from armwise.cli.output import AsJson, console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence


_STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}


def doctor(json: AsJson = False) -> None:
    """Look at the installation: packages, compiler, cache, GPU, browser.

    Exits with 1 if something that is needed is broken.

    Example: armwise doctor
    """

    checks = examine()
    broken = [check.name for check in checks if check.state == "broken"]
    if json:
        print_json({"broken": broken, "findings": checks})
    else:
        _show(checks, broken)
    if broken:
        raise typer.Exit(1)


def _show(checks: Sequence[Check], broken: Sequence[str]) -> None:
    from rich.text import Text

    shown = table("", ("what", "state", "detail"))
    for column in shown.columns:
        column.justify = "left"
    for check in checks:
        detail = check.detail + (f"\n→ {check.remedy}" if check.remedy else "")
        state = Text(check.state, style=_STYLES[check.state])
        shown.add_row(Text(check.name), state, Text(detail))
    out = console()
    out.print(shown)
    out.print(
        f"Broken: {', '.join(broken)}."
        if broken
        else "Everything that is needed works.",
        markup=False,
    )


# The checks.

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
class Check:
    """One thing that was checked.

    Attributes:
        topic: What kind of thing: needed, extra, compiler, cache, GPU, browser.
        name: Its name.
        state: ok; missing, and not needed; or broken: needed, and not as it must be.
        detail: Version, path, or what is wrong.
        remedy: What to do about it, if anything.
    """

    topic: str
    name: str
    state: State
    detail: str
    remedy: str = ""


def examine() -> list[Check]:
    """Look at everything, nearest first."""
    return [_python(), *_packages(), _compiler(), _cache(), _gpu(), _browser()]


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("needed", "python", "ok", f"{version} at {sys.executable}")


def _packages() -> list[Check]:
    """Compare what the package asks for with what is installed."""
    import armwise
    from armwise.version import __version__

    home = Path(armwise.__file__).parent
    checks = [Check("needed", "armwise", "ok", f"{__version__} at {home}")]
    for line in metadata.requires("armwise") or []:
        requirement = Requirement(line)
        extra = extra_of(requirement)
        if requirement.name != "armwise" and (extra is None or extra in PURPOSES):
            checks.append(_package(requirement, extra))
    return checks


def extra_of(requirement: Requirement) -> str | None:
    """Return which extra asks for a package; None: the package itself does."""
    marker = requirement.marker
    # A marker may name an extra among other conditions, so it is asked, not parsed.
    if marker is None or marker.evaluate({"extra": ""}):
        return None
    return next((name for name in PURPOSES if marker.evaluate({"extra": name})), "")


def _package(requirement: Requirement, extra: str | None) -> Check:
    name = requirement.name
    topic = "extra" if extra else "needed"
    label = f"{name} [{extra}]" if extra else name
    purpose = f"; {PURPOSES[extra]}" if extra else ""
    install = f"pip install 'armwise[{extra}]'" if extra else f"pip install '{name}'"
    try:
        version = metadata.version(name)
    except metadata.PackageNotFoundError:
        state: State = "missing" if extra else "broken"
        return Check(topic, label, state, f"not installed{purpose}", install)
    if not requirement.specifier.contains(version, prereleases=True):
        detail = f"{version}, not {requirement.specifier}"
        return Check(topic, label, "broken", detail, f"{install} --upgrade")
    return Check(topic, label, "ok", f"{version}{purpose}")


def _compiler() -> Check:
    """Find a C compiler and let it compile something that must come out right."""
    from armwise.errors import ArmwiseError
    from armwise.programs import find_compiler

    compiler = find_compiler()
    if compiler is None:
        detail = "none found: NumPy does the work, 10 to 50 times slower"
        remedy = "install gcc or clang, or pip install ziglang"
        return Check("compiler", "C compiler", "missing", detail, remedy)
    named = f"{' '.join(compiler.command)}: {compiler.version}"
    try:
        error = compiled_error()
    except (ArmwiseError, OSError) as problem:
        detail, remedy = f"{named}; {problem}", "set CC to another compiler"
        return Check("compiler", "C compiler", "broken", detail, remedy)
    # A product of a sine: a few roundings of 1e-16, so more is a broken compiler.
    if not error < 1e-14:
        detail = f"{named}; its program is wrong by {error:.1e}"
        return Check(
            "compiler", "C compiler", "broken", detail, "set CC to another compiler"
        )
    return Check("compiler", "C compiler", "ok", f"{named}; a program compiles, runs")


def compiled_error() -> float:
    """Compile a small program afresh; how far it is from NumPy's answer."""
    import numpy as np

    from armwise.programs import Kernel, Scalar, cos, sin, trace

    def turn(q: list[Scalar]) -> dict[str, object]:
        return {"xy": [q[1] * cos(q[0]), q[1] * sin(q[0])]}

    program = trace("doctor", turn, {"q": 2})
    states = np.random.default_rng(0).normal(size=(100, 2))
    cache = os.environ.get("ARMWISE_CACHE")
    with tempfile.TemporaryDirectory(prefix="armwise-") as folder:
        os.environ["ARMWISE_CACHE"] = folder  # or an old result would be found
        try:
            (compiled,) = Kernel(program, "c")([states])
        finally:
            del os.environ["ARMWISE_CACHE"]
            if cache is not None:
                os.environ["ARMWISE_CACHE"] = cache
    (reference,) = Kernel(program, "numpy")([states])
    return float(np.abs(compiled - reference).max())


def _cache() -> Check:
    from armwise.programs import cache_folder

    remedy = "set ARMWISE_CACHE to a folder of yours"
    try:
        folder = cache_folder()
    except OSError as problem:
        return Check("cache", "compile cache", "broken", str(problem), remedy)
    status = folder.stat()
    count = len(list(folder.glob("*.so")))
    detail = f"{folder}, mode {status.st_mode & 0o777:o}, {count} programs"
    if status.st_uid != os.getuid() or not os.access(folder, os.W_OK):
        return Check("cache", "compile cache", "broken", detail, remedy)
    return Check("cache", "compile cache", "ok", detail)


def _gpu() -> Check:
    from armwise.programs import CudaError, device

    try:
        gpu = device()
    except CudaError as problem:
        return Check("GPU", "GPU", "missing", str(problem))
    return Check("GPU", "GPU", "ok", f"{gpu.multiprocessors} multiprocessors")


def _browser() -> Check:
    import webbrowser

    try:
        webbrowser.get()
    except webbrowser.Error:
        detail = "none that can be started from here; reports are plain files"
        return Check("browser", "browser", "missing", detail)
    return Check("browser", "browser", "ok", "reports and armwise view can be opened")
