"""Watchdog: delay of alarms after a 1° shift, and false alarms in ten hours.

python -m benchmarks.watchdog [jumps] [unseen] [hours]

Arms do pick and place as in `cells/pick_and_place.py`; the watchdog has the same
slightly wrong model as their controller, and does not know of loads.
"""

from __future__ import annotations

import sys
import time
from typing import NamedTuple

import numpy as np

from armwise.arms import load_arm
from armwise.calibration import Calibration
from armwise.monitoring import Alarm, Watchdog
from benchmarks.cells.pick_and_place import CYCLE, DRIVES, NOISE, PERIOD, Cell

LEARNING = 150.0
JUMP = np.deg2rad(1.0)


class Figure(NamedTuple):
    """One figure, what is asked of it, and what it was measured on."""

    name: str
    value: float
    asked: str
    note: str


def _dogs(cell: Cell) -> list[Watchdog]:
    """One watchdog for each arm."""
    given = Calibration.from_values(cell.model, torque_std=NOISE)
    return [
        Watchdog(cell.model, given, PERIOD, learning=LEARNING)
        for _ in range(cell.batch)
    ]


def _faults(dof: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Jumps of every joint in turn: the first two of each at rest, others moving."""
    shift = np.kron(np.eye(dof), JUMP * np.ones((each, 1)))
    random = np.random.default_rng(seed)
    cycles = LEARNING + CYCLE * random.integers(2, 6, dof * each)
    phases = random.uniform(0.4, 1.2, dof * each)
    phases[np.arange(dof * each) % each < 2] = 2.3
    return shift, cycles + np.round(phases, 3)


class Watched(NamedTuple):
    """A joint's arms and the alarms about them.

    Attributes:
        joint: Whose sensor jumped.
        onsets: When, in [s].
        firsts: First alarm about it on each arm, if any.
        others: Alarms about anything else.
        visible: Smallest shifts in [°] predicted to be noticed within 60 s.
    """

    joint: str
    onsets: np.ndarray
    firsts: list[Alarm | None]
    others: int
    visible: np.ndarray

    @property
    def delays(self) -> np.ndarray:
        """From onset to alarm in [s]."""
        pairs = zip(self.firsts, self.onsets, strict=True)
        return np.array([np.inf if x is None else x.time - t for x, t in pairs])

    @property
    def sizes(self) -> np.ndarray:
        """As reported, in [°]."""
        return np.rad2deg([np.nan if x is None else x.size for x in self.firsts])


def _watch(name: str, each: int, hole: float, seconds: float) -> list[Watched]:
    """Let every joint jump in turn; nothing is recorded for some time around it."""
    shift, onset = _faults(load_arm(name).dof, each, 5)
    cell = Cell(name, shift, onset, 5)
    dogs = _dogs(cell)
    for block in cell.work(LEARNING + 5 * CYCLE + seconds):
        for k, dog in enumerate(dogs):
            seen = np.abs(block.time - onset[k]) >= 0.5 * hole
            dog.update(block.time[seen], block.q[k, seen], block.tau[k, seen])
    made = []
    for j, joint in enumerate(cell.model.coordinate_names):
        mine = slice(j * each, (j + 1) * each)
        firsts = [
            next((a for a in dog.alarms if a.joint == joint and a.time >= t), None)
            for dog, t in zip(dogs[mine], onset[mine], strict=True)
        ]
        told = sum(len(dog.alarms) for dog in dogs[mine])
        others = told - sum(x is not None for x in firsts)
        visible = np.rad2deg([dog.visible(60.0)[j].drift for dog in dogs[mine]])
        made.append(Watched(joint, onset[mine], firsts, others, visible))
    return made


def jumps(name: str, each: int = 6) -> list[Figure]:
    """1° in every joint in turn, moving and at rest, in closed loop."""
    made = []
    for x in _watch(name, each, 0.0, 4 * CYCLE):
        late = [abs(a.onset - t) for a, t in zip(x.firsts, x.onsets, strict=True) if a]
        note = (
            f"{np.isfinite(x.delays).sum()} of {each}; size {x.sizes.mean():.4f}° ± "
            f"{x.sizes.std():.4f}°; onset to {1e3 * max(late, default=np.nan):.1f} ms; "
            f"other alarms: {x.others}"
        )
        what = f"{name} {x.joint}: 1° jump found after [s]"
        made.append(Figure(what, float(x.delays.max()), "< 5", note))
    return made


def unseen(name: str, each: int = 4) -> list[Figure]:
    """The same while nothing is recorded: only the links' weight can tell."""
    made = []
    for x in _watch(name, each, 1.0, 60.0):
        promised = x.visible <= 1.0
        note = (
            f"found after {np.round(x.delays, 1)} s, {np.round(x.sizes, 2)}°; said "
            f"to be visible in 60 s: {np.round(x.visible, 2)}°; others: {x.others}"
        )
        kept = np.isfinite(x.delays[promised])
        what = f"{name} {x.joint}: unseen 1°, promises broken"
        made.append(Figure(what, float(np.sum(~kept)), f"0 of {kept.size}", note))
    return made


def hours(
    name: str, total: float = 10.0, arms: int = 24, seed: int = 77
) -> list[Figure]:
    """Undisturbed work for so many hours, not counting what is learned from."""
    dof = load_arm(name).dof
    cell = Cell(name, np.zeros((arms, dof)), np.full(arms, np.inf), seed)
    dogs, spent, count = _dogs(cell), 0.0, 0
    begin, worst = time.perf_counter(), 0.0
    for block in cell.work(LEARNING + 3600.0 * total / arms + CYCLE):
        start = time.process_time()
        for dog, q, tau in zip(dogs, block.q, block.tau, strict=True):
            dog.update(block.time, q, tau)
        spent += time.process_time() - start
        count += block.time.size * arms
        worst = max(worst, *(dog.evidence for dog in dogs))
    wall = time.perf_counter() - begin
    said = [a.message for dog in dogs for a in dog.alarms]
    note = f"{arms} arms at 1 kHz, {count / 1e6:.1f} M samples; {' '.join(said)}"
    return [
        Figure(f"{name}: false alarms in {total:g} h", len(said), "0", note),
        Figure(f"{name}: largest evidence of drift", worst, "< 1", "share of an alarm"),
        Figure(f"{name}: cost [µs] per sample", 1e6 * spent / count, "constant",
               f"all {dof} joints, one core; {wall:.0f} s in all with the plants"),
    ]  # fmt: skip


def run(parts: tuple[str, ...] = ()) -> list[Figure]:
    """Measure everything, or the named parts."""
    made: list[Figure] = []
    for name in DRIVES:
        if not parts or "jumps" in parts:
            made += jumps(name)
        if not parts or "unseen" in parts:
            made += unseen(name)
    if not parts or "hours" in parts:
        made += [*hours("panda"), *hours("ur10", total=2.0, arms=12)]
    return made


if __name__ == "__main__":
    for figure in run(tuple(sys.argv[1:])):
        print(
            f"{figure.name:56s} {figure.value:10.4g}  ({figure.asked})  {figure.note}"
        )
