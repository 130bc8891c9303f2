"""The `armwise` command: its subcommands, and errors as one line.

A subcommand NAME lives in armwise/cli/NAME.py, or with its next of kin (`_FILES`), as a
function NAME (typer reads its signature), or as a typer app called `app`. Nothing of it
is imported until it is used.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import warnings
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from armwise.cli.arguments import with_part_options
from armwise.errors import ArmwiseError

COMMANDS = (
    "demo",
    "inspect",
    "inspect-log",
    "excite",
    "simulate",
    "identify",
    "identify-fleet",
    "identify-servo",
    "excite-load",
    "identify-load",
    "follow-load",
    "follow-contact",
    "recognise",
    "calibrate",
    "calibrate-moving",
    "calibrate-torques",
    "watch",
    "reduce",
    "generate",
    "realtime",
    "export",
    "gap",
    "feedforward",
    "control",
    "learn",
    "world",
    "report",
    "view",
    "papers",
    "bench",
    "doctor",  # in the order of the pipeline
)
"""The subcommands, as the user types them."""

_FILES = {
    "inspect-log": "inspect",
    "excite-load": "excite",
    "follow-load": "follow",
    "follow-contact": "follow",
    "calibrate-moving": "calibrate",
    "calibrate-torques": "calibrate",
    "realtime": "generate",
    "gap": "export",
    "papers": "checkout",
    "bench": "checkout",
}
"""Subcommand → its file, where that has not its name."""

_MOVED = {
    "identify": (
        "identify-fleet",
        ("--group-by", "--cluster", "--workers", "--skip-bad-logs", "--like"),
    ),
    "calibrate": (
        "calibrate-torques",
        ("--loaded", "--load-mass", "--load-center", "--load-frame"),
    ),
}
"""Subcommand → the one that was made of it, and the options that went there."""

FAILED, MISUSED, INTERRUPTED = 1, 2, 130
"""Exit codes beside 0: it could not be done; wrong use; Ctrl-C (128 + SIGINT)."""

# Whether typer carries its own click or uses the installed one, this is its base.
_UsageError: Any = typer.BadParameter.__base__


class _Subcommands(TyperGroup):
    """Imports a subcommand's file only when it is used: a quick start for the rest."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        word = cmd_name.replace("-", "_")
        module = import_module(f"armwise.cli.{_FILES.get(cmd_name, word)}")
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(add_completion=False, rich_markup_mode="markdown")
            app.command(cmd_name)(with_part_options(getattr(module, word)))
        command = typer.main.get_command(app)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_Subcommands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",  # the other kind takes units, [s], for styles
    help="Know a robot arm's body from its motion, and put that to use.",
    epilog="Every command has --help with an example, and --json. Exit codes: 0 done; "
    "1 it could not be done, one line says why; 2 wrong use; 130 Ctrl-C.",
)


def _show_version(requested: bool) -> None:
    if requested:
        from armwise.version import __version__

        typer.echo(f"armwise {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show."),
    ] = False,
) -> None:
    """Know a robot arm's body from its motion, and put that to use."""


def every_validation(words: list[str]) -> list[str]:
    """Let `identify-servo … --validate a b c` mean all three: shells expand *.csv."""
    if words[:1] != ["identify-servo"] or "--validate" not in words:
        return words
    spelt: list[str] = []
    is_listing = False
    for word in words:
        # A word that follows another log of the list is one more of it.
        if is_listing and not word.startswith("-") and spelt[-1] != "--validate":
            spelt.append("--validate")
        is_listing = word == "--validate" or (is_listing and not word.startswith("-"))
        spelt.append(word)
    return spelt


def _keep_freed_memory() -> None:
    """Let C's allocator reuse the memory of arrays rather than hand it back.

    By default glibc returns every array above 128 kB to the system, which gives it out
    again page by page, zeroed: a tenth of an identification's time.
    """
    try:
        adjust = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # another system's C library
        return
    # From malloc.h: M_MMAP_THRESHOLD at its largest, M_TRIM_THRESHOLD, M_TOP_PAD.
    for option, size in ((-3, 32 * 2**20), (-1, 256 * 2**20), (-2, 16 * 2**20)):
        adjust(option, size)


def main() -> None:
    """Run the command line; a mistake of the user's is one line, never a traceback."""
    warnings.showwarning = _warn
    # Matrices here are small: several threads would wait for each other, busily. Set
    # before NumPy is imported; whoever sets it already means it.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Tracing makes a hundred thousand small objects, none of them in circles: looking
    # for circles among them as often as Python does is 3 % of a whole command.
    gc.set_threshold(100_000)
    _keep_freed_memory()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # names of files may hold any bytes
            stream.reconfigure(errors="backslashreplace")
    try:
        words = every_validation(sys.argv[1:])
        code = app(words, prog_name="armwise", standalone_mode=False)
    except _UsageError as problem:
        _refuse(problem)
    except BrokenPipeError:
        # The reader (head, less) has gone: nothing more to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except ArmwiseError as problem:
        _fail(str(problem))
    except KeyboardInterrupt:
        code = INTERRUPTED
    except MemoryError as problem:
        _fail(f"Not enough memory. {problem}")
    except OSError as problem:
        file = f"{problem.filename}: " if problem.filename else ""
        _fail(f"{file}{problem.strerror or problem}")
    except Exception as problem:
        if os.environ.get("ARMWISE_DEBUG"):
            raise
        _fail(
            f"A bug in Armwise: {type(problem).__name__}: {problem} "
            "(ARMWISE_DEBUG=1 shows where)."
        )
    if code == INTERRUPTED:
        _fail("Interrupted.", INTERRUPTED)
    sys.exit(code)


def _refuse(problem: Any) -> NoReturn:
    """Say what is wrong with the arguments, and where to read more."""
    message = problem.format_message()
    if not message:  # the help was shown instead
        sys.exit(MISUSED)
    path = problem.ctx.command_path if problem.ctx else "armwise"
    command, options = _MOVED.get(path.split()[-1], ("", ()))
    option = getattr(problem, "option_name", None)
    if option in options:
        message = f"{option} is an option of a command of its own: armwise {command}."
        path = f"armwise {command}"
    _fail(f"{message} See: {path} --help", MISUSED)


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    from armwise.cli.output import warn

    warn(str(message))


def _fail(message: str, code: int = FAILED) -> NoReturn:
    line = " ".join(message.split())
    typer.echo(f"armwise: {line}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
