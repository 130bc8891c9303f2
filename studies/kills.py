"""Kills at random moments, and disks and caches that fail: what is left on disk.

Commands are killed (SIGKILL) at random moments of their run. Afterwards every file must
be whole, the old one or the new one; the same command must then succeed and leave
nothing behind but its results; and no process may live on.

    python -m studies.kills --kills 1000
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np

from armwise.errors import ArmwiseError

_IN_A_ROW = 5
"""Kills before a run is let finish: what several leave must not add up either."""

_MARK = "ARMWISE_KILLS"
"""Variable that marks every process of a run, to find those that live on."""


@dataclass(frozen=True)
class Scenario:
    """Something that is killed.

    Attributes:
        prepare: Puts what is needed, and an old result, into a folder.
        work: What is killed; a fresh process runs it.
        check: Raises if a file is neither the old one nor the new one.
        is_done: Whether all results are there.
        part: Fraction of all kills: what takes long is killed less often.
    """

    prepare: Callable[[Path], None]
    work: Callable[[Path], None]
    check: Callable[[Path], None]
    is_done: Callable[[Path], bool]
    part: float


def _command(*words: object) -> None:
    from armwise.cli.main import app

    app([str(word) for word in words], standalone_mode=False)


def _log(path: Path, seed: int) -> None:
    from armwise.arms import load_arm
    from armwise.dynamics import Dynamics
    from armwise.recordings import Recording, write_recording

    rng = np.random.default_rng(seed)
    t = np.arange(800) / 100.0
    w, phase = rng.uniform(0.5, 3.0, (3, 2)), rng.uniform(0.0, 6.0, (3, 2))
    angle = w[:, None] * t[:, None] + phase[:, None]
    q = 0.5 * np.sin(angle).sum(axis=0)
    qd = 0.5 * (w[:, None] * np.cos(angle)).sum(axis=0)
    qdd = -0.5 * (w[:, None] ** 2 * np.sin(angle)).sum(axis=0)
    arm = load_arm("two_link_uno")
    tau = Dynamics(arm, backend="numpy").inverse_dynamics(q, qd, qdd)
    tau += 0.01 * rng.normal(size=tau.shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_recording(Recording.from_arrays(t, q=q, tau=tau), path)


def _identified(folder: Path) -> None:
    from armwise.arms import load_arm
    from armwise.identification import read_estimate

    out = folder / "out"
    if (out / "estimate.json").exists():
        read_estimate(out / "estimate.json")
    for urdf in out.glob("*.urdf") if out.exists() else ():
        load_arm(urdf)
    for page in out.glob("*.html") if out.exists() else ():
        assert page.read_text(encoding="utf-8").rstrip().endswith("</html>")


def _generated(folder: Path) -> None:
    from armwise.codegen.folder import read_manifest

    code = folder / "code"
    if code.exists() and any(code.iterdir()):
        read_manifest(code)


def _cached(folder: Path) -> None:
    pass  # whatever lies there is verified, or built again


def _compile(folder: Path) -> None:
    from armwise.arms import load_arm
    from armwise.dynamics import Dynamics
    from armwise.programs import find_compiler

    os.environ["ARMWISE_CACHE"] = str(folder / "cache")
    find_compiler()
    q = np.full((1, 2), 0.3)
    arm = load_arm("two_link_uno")
    tau = Dynamics(arm, backend="c").inverse_dynamics(q, q, q)
    reference = Dynamics(arm, backend="numpy").inverse_dynamics(q, q, q)
    assert np.allclose(tau, reference, rtol=1e-12)


def _fleet_logs(folder: Path) -> None:
    for robot in range(2):
        _log(folder / "logs" / f"R{robot}" / "0.csv", robot)


def _fleet(workers: int) -> Callable[[Path], None]:
    return lambda folder: _command(
        "identify-fleet", "two_link_uno", folder / "logs", "-o", folder / "out",
        "--workers", workers, "--cutoff-hz", 10, "--json",
    )  # fmt: skip


def _fleet_written(folder: Path) -> None:
    from armwise.fleets import read_preparation

    if (folder / "out" / "fleet.json").exists():
        read_preparation(folder / "out" / "fleet.json")


SCENARIOS: dict[str, Scenario] = {
    "identify -o": Scenario(
        lambda folder: _log(folder / "log.csv", 0),
        lambda folder: _command(
            "identify", "two_link_uno", folder / "log.csv", "-o", folder / "out"
        ),
        _identified,
        lambda folder: (folder / "out" / "estimate.json").exists(),
        0.25,
    ),
    "generate, new": Scenario(
        lambda folder: None,
        lambda folder: _command("generate", "two_link_uno", "-o", folder / "code"),
        _generated,
        lambda folder: (folder / "code" / "armwise.json").exists(),
        0.25,
    ),
    "generate, over an old one": Scenario(
        lambda folder: _command(
            "generate", "two_link_uno", "-o", folder / "code", "--name", "old"
        ),
        lambda folder: _command("generate", "two_link_uno", "-o", folder / "code"),
        _generated,
        lambda folder: (folder / "code" / "two_link_uno.c").exists(),
        0.25,
    ),
    "fleet with parts": Scenario(
        _fleet_logs,
        _fleet(1),
        _fleet_written,
        lambda folder: (folder / "out" / "fleet.json").exists(),
        0.06,
    ),
    "fleet, two workers": Scenario(
        _fleet_logs,
        _fleet(2),
        _fleet_written,
        lambda folder: (folder / "out" / "fleet.json").exists(),
        0.04,
    ),
    "compile, empty cache": Scenario(
        lambda folder: None,
        _compile,
        _cached,
        lambda folder: any((folder / "cache").glob("*.so")),
        0.15,
    ),
}


def _start(work: Callable[[Path], None], folder: Path) -> int:
    """Start work in a copy of this process, which has imported everything already."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.setsid()
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1):
            os.dup2(silent, stream)
        os.dup2(os.open(folder / "stderr", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        work(folder)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _succeeds(work: Callable[[Path], None], folder: Path) -> bool:
    _, status = os.waitpid(_start(work, folder), 0)
    return os.waitstatus_to_exitcode(status) == 0


def _litter(folder: Path) -> list[str]:
    """What killed processes left and the next one did not take away."""
    patterns = (".armwise-*", "build-*", ".*-*")
    return sorted({str(p.name) for x in patterns for p in folder.rglob(x)})


def kill_again(
    scenario: Scenario, good: Path, moments: Sequence[float]
) -> Iterator[str]:
    """Kill one run after another in the same folder; yield what is wrong afterwards.

    Args:
        scenario: What is killed.
        good: Folder with what is needed.
        moments: When to kill each, in [s] after its start; then it is let finish.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "run")
        shutil.copytree(good, folder, symlinks=True)
        for moment in moments:
            child = _start(scenario.work, folder)
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            try:
                scenario.check(folder)
            except (ArmwiseError, AssertionError, OSError) as problem:
                yield f"half-written: {problem}"
        if not _succeeds(scenario.work, folder) or not scenario.is_done(folder):
            said = (folder / "stderr").read_text(encoding="utf-8")[-300:]
            yield f"cannot be repeated: {said}"
        elif remains := _litter(folder):
            yield f"litter: {remains}"


def orphans() -> list[int]:
    """Processes of this run that live on, but for this one."""
    mark = f"{_MARK}={os.environ[_MARK]}".encode()
    alive = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            marked = mark in (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marked and int(folder.name) != os.getpid():
            alive.append(int(folder.name))
    return alive


def _measured(scenario: Scenario, good: Path) -> float:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "run")
        shutil.copytree(good, folder)
        began = time.monotonic()
        if not _succeeds(scenario.work, folder):
            said = (folder / "stderr").read_text(encoding="utf-8")[-600:]
            raise SystemExit(f"the command fails without any kill: {said}")
        return time.monotonic() - began


def run_kills(name: str, kills: int, seed: int) -> Counter[str]:
    """Kill one scenario many times; count what went wrong."""
    scenario, rng = SCENARIOS[name], random.Random(f"{seed}-{name}")
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        good = Path(scratch, "good")
        good.mkdir()
        if not _succeeds(scenario.prepare, good):
            raise SystemExit((good / "stderr").read_text(encoding="utf-8"))
        (good / "stderr").unlink()
        duration = _measured(scenario, good)
        for first in range(0, kills, _IN_A_ROW):
            count = min(_IN_A_ROW, kills - first)
            moments = [rng.uniform(0.0, duration) for _ in range(count)]
            for problem in kill_again(scenario, good, moments):
                counts[problem.split(":")[0]] += 1
                print(f"    {problem}", flush=True)
    return counts


# Caches and disks that fail.


def _child(cache: Path, *words: object) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"ARMWISE_CACHE": str(cache)}
    command = [sys.executable, "-m", "armwise", *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def stressed_caches() -> Iterator[tuple[str, bool, str]]:
    """Yield name, whether it held, and details of every trial with a cache."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "crowd")
        folder.mkdir()
        crowd = [_start(_compile, folder) for _ in range(32)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(c, 0)[1]) for c in crowd]
        entries = len(list((folder / "cache").glob("*.so")))
        held = not any(codes) and not _litter(folder)
        yield "32 processes, empty cache", held, f"{entries} entries"

        rng, wrong = random.Random(0), 0
        objects = sorted((folder / "cache").glob("*.so"))
        for _ in range(10):
            path = rng.choice(objects)
            data = bytearray(path.read_bytes())
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
            wrong += not _succeeds(_compile, folder)
        yield "10 flipped bits", not wrong, f"{wrong} wrong"

        blocked = Path(scratch, "file")
        blocked.write_text("")
        log = Path(scratch, "x.csv")
        done = _child(blocked / "cache", "simulate", "two_link_uno", "-o", log)
        notes = [x for x in done.stderr.splitlines() if "compile cache" in x]
        yield "no cache can be made", done.returncode == 0 and len(notes) == 1, notes[0]

    small = Path("/dev/full")
    if small.exists():
        done = subprocess.run(
            [sys.executable, "-m", "armwise", "inspect", "two_link_uno"],
            stdout=small.open("w"),
            stderr=subprocess.PIPE,
            text=True,
        )
        lines = done.stderr.strip().splitlines()
        held = "Traceback" not in done.stderr
        yield "full disk for output", held, (lines or [""])[-1][:80]


def main() -> None:
    """Run from the command line; exit 1 if anything was lost."""
    parser = ArgumentParser(description="Kill commands at random moments.")
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ[_MARK] = str(os.getpid())
    # Imported once, so that every run begins with its work.
    for module in ("cli.identify", "cli.generate", "cli.identify_fleet", "report"):
        import_module(f"armwise.{module}")
    failed = False
    names = ("half-written", "cannot be repeated", "litter")
    print(f"{'killed':28} {'kills':>6} " + " ".join(f"{n:>18}" for n in names))
    for name, scenario in SCENARIOS.items():
        each = max(1, round(scenario.part * options.kills))
        counts = run_kills(name, each, options.seed)
        failed |= bool(counts)
        cells = " ".join(f"{counts[n]:>18}" for n in names)
        print(f"{name:28} {each:>6} {cells}", flush=True)
    time.sleep(10.0)  # workers look every two seconds for who they work for
    left_over = orphans()
    print(f"processes that live on: {len(left_over)}")
    for name, held, detail in stressed_caches():
        failed |= not held
        print(f"{name:28} {'held' if held else 'FAILED':>6}  {detail}", flush=True)
    sys.exit(int(failed or bool(left_over)))


if __name__ == "__main__":
    main()
