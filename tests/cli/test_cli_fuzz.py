"""Whatever it is fed, a command ends with one line and 1 or 2, never a traceback.

Every command is fuzzed from its own examples: each file that is named gives way to
files that are something else or damaged, and each option gets senseless values. The
quick tests take one bad file for each kind of argument and one bad value for each kind
of option of a command; the slow ones, some 1,500 runs, take all.
"""

from __future__ import annotations

import random
import re
import shlex
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from scipy.io import savemat

import armwise as aw
from armwise.arms import bundled_arms
from armwise.cli import demo
from armwise.cli.main import app
from tests.cli import fuzzing
from tests.cli.conftest import Said, run_quietly, write_fleet
from tests.cli.test_cli_examples import EXAMPLES, TEXTS, kind_of

ARM = "two_link_uno"
MAPPINGS = Path(__file__).parents[2] / "examples" / "real"

QUICK = 10.0
"""Longer than this [s], by the processor's clock, nothing senseless is worked on."""

ANY_NUMBER_WILL_DO = {"seed", "port", "workers"}

FIRST = dict(reversed(EXAMPLES))
"""One example of each command."""


class TooSlow(BaseException):
    """Raised in whatever runs too long; nothing catches it."""


@pytest.fixture(scope="module")
def small(prepared, tmp_path_factory) -> Path:
    """The files of the examples, for an arm of two joints."""
    folder = tmp_path_factory.mktemp("small")
    for path in prepared.iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    for name in ("run1.csv", "run2.csv", "run.parquet", "run.mcap"):
        run_quietly("simulate", ARM, "--duration", 2, "-o", folder / name)
    write_fleet(folder)
    world = (folder / "nail.toml").read_text()
    (folder / "nail.toml").write_text(
        world.replace("duration = 10.0", "duration = 0.2")
    )
    columns = aw.read_recording(folder / "run1.csv").channels
    arrays = {name: channel.values for name, channel in columns.items()}
    arrays["time"] = columns["q_1"].time
    np.savez(folder / "run.npz", **arrays)
    savemat(folder / "run.mat", arrays)
    fast = ("--friction", "linear", "--method", "weighted")
    run_quietly("identify", ARM, folder / "run1.csv", *fast, "-o", folder / "out")
    return folder


@pytest.fixture
def feed(small, armwise, tmp_path, monkeypatch):
    """Stand in a copy of the small files; run commands there, and judge their end."""
    folder = tmp_path / "fed"
    shutil.copytree(small, folder)
    (folder / "a_file").write_text("here already")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ARMWISE_DEBUG", raising=False)
    monkeypatch.setattr("armwise.view.serve_scene", lambda _, port, tell: tell("URL"))
    monkeypatch.setattr(demo, "BUDGET", (0.5, 0.2))
    monkeypatch.setattr(demo, "DURATION", 3.0)

    def stop(*_: object) -> None:
        raise TooSlow

    def run(words: list[str]) -> str | None:
        signal.setitimer(signal.ITIMER_PROF, QUICK)
        try:
            return fault(armwise(*words))
        except TooSlow:
            return f"still running after {QUICK} s"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0.0)

    before = signal.signal(signal.SIGPROF, stop)
    yield run
    signal.signal(signal.SIGPROF, before)


def fault(said: Said) -> str | None:
    """Say what is wrong with how a command ended, if anything is."""
    if said.code not in (0, 1, 2):
        return f"exit code {said.code}"
    if "Traceback" in said.err or "A bug in Armwise" in said.err:
        return said.err.strip()
    *before, last = said.err.splitlines() or [""]
    if said.code and not last.startswith("armwise: "):
        return f"it does not say why it failed: {said.err!r}"
    if said.code and not all(line.startswith("Warning: ") for line in before):
        return f"more than one line: {said.err!r}"
    return None


def baseline(text: str) -> list[str]:
    """Return an example's words, for the small arm."""
    return [ARM if word == "panda" else word for word in shlex.split(text)[1:]]


def bad_copies(word: str, place: Path, rng: random.Random) -> Iterator[Path]:
    """Yield files to stand in for the one a word names, or for an arm."""
    is_arm = word in bundled_arms()
    good = Path("out/identified.urdf" if is_arm else word)
    place.mkdir()
    yield from fuzzing.no_files(place, good.suffix, rng)
    content = good.read_bytes()
    for j, bad in enumerate(fuzzing.damaged(content, rng)):
        path = place / f"damaged{j}{good.suffix}"
        path.write_bytes(bad)
        yield path
    if not is_arm:  # arms are recognised by their contents, not by their endings
        other = place / f"good{'.npz' if good.suffix == '.csv' else '.csv'}"
        other.write_bytes(content)
        yield other


def inputs(words: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the index of each file and each arm that is named, and what kind it is."""
    for k, word in enumerate(words):
        if word in bundled_arms():
            yield k, "arm"
        elif Path(word).is_file() and words[k - 1] not in ("-o", "--output"):
            yield k, f"{words[0]} {re.sub('[0-9]', '', word)}"


def with_bad_files(words: list[str], rng: random.Random) -> Iterator[list[str]]:
    """Replace each file and each arm that is named, one at a time."""
    for k, _ in inputs(words):
        for path in bad_copies(words[k], Path(f"bad{k}").absolute(), rng):
            yield [*words[:k], str(path), *words[k + 1 :]]


def with_bad_options(
    owner: tuple[str, ...], words: list[str], *, is_quick: bool = False
) -> Iterator[list[str]]:
    """Add each option with senseless values; quickly: one of each kind, one value."""
    kinds = set[str]()
    command: Any = typer.main.get_command(app)
    for word in owner:
        command = command.get_command(None, word)
    for option in command.params:
        flag = max(option.opts, key=len)
        if not flag.startswith("--") or getattr(option, "is_flag", False):
            continue
        kind = kind_of(option)
        values = fuzzing.PLACES if kind == "path" else fuzzing.WORDS
        if kind in ("float", "int"):
            values = ("text",) if option.name in ANY_NUMBER_WILL_DO else fuzzing.NUMBERS
        if is_quick and kind in kinds:
            continue
        kinds.add(kind)
        for value in values[:1] if is_quick else values:
            yield [*words, flag, value]


def faults(feed, cases: Iterator[list[str]]) -> list[tuple[str, str]]:
    found = [(" ".join(words), feed(words)) for words in cases]
    return [(words, wrong) for words, wrong in found if wrong]


LOGS = ["run.parquet", "run.mcap", "run.npz", "run.mat"]


def on_log(log: str) -> list[str]:
    return ["inspect-log", log, "--arm", ARM]


def test_one_bad_file_for_each_kind_of_argument(feed):
    cases: dict[str, list[str]] = {}
    for number, words in enumerate([*map(baseline, TEXTS), *map(on_log, LOGS)]):
        for k, kind in inputs(words):
            folder = Path(f"bad_{number}_{k}").absolute()
            if kind not in cases:
                rng = random.Random(kind)
                path = rng.choice(list(bad_copies(words[k], folder, rng)))
                cases[kind] = [*words[:k], str(path), *words[k + 1 :]]
    assert len(cases) > 15
    assert faults(feed, iter(cases.values())) == []


@pytest.mark.parametrize("owner", list(FIRST), ids=" ".join)
def test_one_bad_value_for_each_kind_of_option(owner, feed):
    words = baseline(FIRST[owner])
    assert faults(feed, with_bad_options(owner, words, is_quick=True)) == []


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS)
def test_bad_files(text, feed):
    assert faults(feed, with_bad_files(baseline(text), random.Random(text))) == []


@pytest.mark.slow
@pytest.mark.parametrize("owner", list(FIRST), ids=" ".join)
def test_bad_options(owner, feed):
    assert faults(feed, with_bad_options(owner, baseline(FIRST[owner]))) == []


@pytest.mark.slow
@pytest.mark.parametrize("log", LOGS)
def test_damaged_logs_of_every_kind(log, feed):
    assert faults(feed, with_bad_files(on_log(log), random.Random(log))) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "mapping", sorted(MAPPINGS.glob("*.toml")), ids=lambda p: p.stem
)
def test_damaged_mappings(mapping, feed):
    shutil.copy(mapping, "mapping.toml")
    words = ["inspect-log", "run1.csv", "--arm", ARM, "--mapping", "mapping.toml"]
    assert faults(feed, with_bad_files(words, random.Random(mapping.stem))) == []
