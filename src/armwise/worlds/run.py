"""Result of a simulated world: states, forces, energy ledger, events and files."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np

from armwise.errors import ArgumentError, ArmwiseError
from armwise.files import write_atomically
from armwise.recordings import Recording
from armwise.worlds.articulated import ArticulatedBody
from armwise.worlds.bodies import Point
from armwise.worlds.engine import Snapshot, WorldEngine
from armwise.worlds.layout import Account
from armwise.worlds.methods import Bound, SingularValueDropping
from armwise.worlds.world import World

# Events.


@dataclass(frozen=True, eq=False)
class Moment:
    """A world at one time, as an event sees it."""

    time: float
    state: np.ndarray
    engine: WorldEngine

    def position(self, body: str) -> np.ndarray:
        """Return its coordinates: centre and quaternion of a rigid body or a floating
        base, then q of an arm."""
        return self.state[self.engine.layout.positions[body]]

    def velocity(self, body: str) -> np.ndarray:
        """Return its velocities: of the centre and angular (body axes), then q̇."""
        return self.state[self.engine.layout.velocities[body]]

    def point_position(self, point: Point) -> np.ndarray:
        """Return where a point is in the world in [m]."""
        return np.asarray(self.engine.positions(self.state[None], (point,))[0, 0])


@dataclass(frozen=True, eq=False)
class Event:
    """Something to look for: a function of the moment that crosses zero.

    Attributes:
        name: What the log calls it.
        function: Of the moment; the event is where it changes sign.
        direction: +1: only upwards; −1: only downwards; 0: both.
        releases: Constraints to take away when it happens.
        is_final: Whether the simulation ends there.
    """

    name: str
    function: Callable[[Moment], float]
    direction: int = 0
    releases: tuple[str, ...] = field(default=())
    is_final: bool = False

    def is_crossed(self, before: float, after: float) -> bool:
        """Whether the event lies between two values of its function."""
        # Zero belongs to the new side: an event that was just met is not met again.
        up, down = before < 0 <= after, before > 0 >= after
        return (up and self.direction >= 0) or (down and self.direction <= 0)


@dataclass(frozen=True)
class Happening:
    """A line of the log.

    Attributes:
        time: In [s].
        kind: "broken", "released", "event" or "note".
        name: The constraint, the event or the body.
        cause: In words.
    """

    time: float
    kind: str
    name: str
    cause: str


# Constraint forces of recorded states, in one batch where none is bounded.


@dataclass(frozen=True, eq=False)
class ForceHistory:
    """Forces over time.

    Attributes:
        force: In [N]: (samples, rows); zero where a constraint is gone.
        singular_values: Of A, ascending: (samples, rows); NaN where rows are gone.
        dropped: How many of them were left out: (samples,).
    """

    force: np.ndarray
    singular_values: np.ndarray
    dropped: np.ndarray


def force_history(
    engine: WorldEngine, snapshot: Snapshot, time: np.ndarray, log: Sequence[Happening]
) -> ForceHistory:
    """Solve for the forces at all times, with what was whole at each."""
    # A fresh engine: the run's own has lost what broke, also for earlier times.
    fresh = WorldEngine(engine.world, engine.method, engine.backend)
    samples, rows = snapshot.free.shape
    history = ForceHistory(
        np.zeros((samples, rows)),
        np.full((samples, rows), np.nan),
        np.zeros(samples, dtype=int),
    )
    # In order of time: between two losses one set of constraints holds, and all its
    # samples are solved together.
    gone = sorted((h.time, h.name) for h in log if h.kind in ("broken", "released"))
    edges = [0, *(int(np.searchsorted(time, t)) for t, _ in gone), samples]
    for k, (start, stop) in enumerate(pairwise(edges)):
        if k:
            fresh.remove(gone[k - 1][1])
        if stop > start and rows:
            _fill(history, fresh, snapshot, start, stop)
    return history


def _fill(
    history: ForceHistory,
    engine: WorldEngine,
    snapshot: Snapshot,
    start: int,
    stop: int,
) -> None:
    keep, bounds = engine.whole
    if not len(keep):
        return
    part = slice(start, stop)
    right = (snapshot.free + snapshot.pull)[part][:, keep]
    A = snapshot.matrix[part][:, keep[:, None], keep]
    hard = np.ones(stop - start, dtype=bool)
    # Samples within all bounds are solved in one batch, the others one by one.
    if engine.method.is_exact:
        cutoff = getattr(engine.method, "cutoff", SingularValueDropping.cutoff)
        values, forces, dropped = _smallest_forces(A, right, cutoff)
        # Where the smallest exact forces fit, every exact method returns just these.
        hard = ~_fits(forces, bounds)
        history.singular_values[part, : len(keep)] = values
        history.force[part.start : part.stop, keep] = forces
        history.dropped[part] = dropped
    for k in np.flatnonzero(hard):
        solution = engine.forces(snapshot, start + int(k))
        history.force[start + k] = solution.force
        history.singular_values[start + k, : len(keep)] = solution.singular_values
        history.dropped[start + k] = solution.dropped


def _smallest_forces(
    A: np.ndarray, right: np.ndarray, cutoff: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return singular values, smallest exact forces and how many were zero."""
    values, vectors = np.linalg.eigh(A)
    is_regular = values > cutoff * np.maximum(values[:, -1:], 0.0)
    gains = np.where(is_regular, -1.0 / np.where(is_regular, values, 1.0), 0.0)
    weights = gains * np.einsum("tij,ti->tj", vectors, right)
    forces = np.einsum("tij,tj->ti", vectors, weights)
    return values, forces, (~is_regular).sum(axis=1)


def _fits(forces: np.ndarray, bounds: Sequence[Bound]) -> np.ndarray:
    fits = np.ones(len(forces), dtype=bool)
    for bound in bounds:
        if np.isfinite(bound.max_force):
            fits &= np.linalg.norm(forces[:, bound.rows], axis=1) <= bound.max_force
    return fits


# Energy ledger.


@dataclass(frozen=True, eq=False)
class Ledger:
    """Energy of a world over time, and the work that changed it.

    E(t) = E(0) + Σ work, up to the error of integration, which is `balance`.

    Attributes:
        time: In [s].
        kinetic, gravitational: By body, in [J].
        stored: In springs and pressed stops, by name, in [J].
        work: By account, since the start, in [J]; what a damper takes is negative.
    """

    time: np.ndarray
    kinetic: dict[str, np.ndarray]
    gravitational: dict[str, np.ndarray]
    stored: dict[str, np.ndarray]
    work: dict[Account, np.ndarray]

    @property
    def energy(self) -> np.ndarray:
        """Kinetic, gravitational and stored energy together in [J]."""
        parts = (self.kinetic, self.gravitational, self.stored)
        zero = np.zeros_like(self.time)
        return sum((value for part in parts for value in part.values()), start=zero)

    def work_of(self, kind: str) -> np.ndarray:
        """Return the work of all accounts of one kind in [J]."""
        zero = np.zeros_like(self.time)
        amounts = (w for account, w in self.work.items() if account.kind == kind)
        return sum(amounts, start=zero)

    @property
    def balance(self) -> np.ndarray:
        """E(t) − E(0) − Σ work in [J]: zero but for the error of integration."""
        zero = np.zeros_like(self.time)
        energy = self.energy
        return np.asarray(energy - energy[0] - sum(self.work.values(), start=zero))

    @property
    def scale(self) -> float:
        """The most energy in play at any time in [J]: kinetic, lifted and stored."""
        zero = np.zeros_like(self.time)
        kinetic = sum(self.kinetic.values(), start=zero)
        height = sum(self.gravitational.values(), start=zero)
        stored = sum(self.stored.values(), start=zero)
        return float(np.max(kinetic + np.abs(height - height[0]) + stored))

    @property
    def relative_balance(self) -> float:
        """Largest |balance| relative to the most energy in play."""
        # A world at rest has no energy in play: 0/0 must read as 0.
        return float(np.max(np.abs(self.balance)) / max(self.scale, 1e-300))

    def summary(self) -> dict[str, float]:
        """Return the ledger at the end in [J], one line per kind and account."""
        lines = {
            "kinetic": float(sum(v[-1] for v in self.kinetic.values())),
            "gravitational": float(sum(v[-1] for v in self.gravitational.values())),
            "stored": float(sum(v[-1] for v in self.stored.values())),
        }
        lines |= {f"work of {a}": float(w[-1]) for a, w in self.work.items()}
        lines["balance"] = float(self.balance[-1])
        lines["relative balance"] = self.relative_balance
        return lines


# Run.


@dataclass(frozen=True)
class StepCount:
    """How many steps were taken: by the compiled loop, with care, and rejected."""

    fast: int = 0
    careful: int = 0
    rejected: int = 0


@dataclass(frozen=True, eq=False)
class Run:
    """A world's states over time, and everything that follows from them.

    Attributes:
        world: What was simulated.
        time: Of the kept states in [s].
        states: Kept states, one row each.
        log: What happened when: broken constraints, events.
        steps: How many steps were taken, and how.
        engine: What evaluates the world at these states.
        signals: What came from outside at the kept states.
    """

    world: World
    time: np.ndarray
    states: np.ndarray
    log: tuple[Happening, ...]
    steps: StepCount
    engine: WorldEngine
    signals: np.ndarray

    def __repr__(self) -> str:
        """One line, without the states."""
        return (
            f"<Run of {len(self.world.bodies)} bodies: {len(self.time)} states over "
            f"{self.time[-1] - self.time[0]:.4g} s, {len(self.log)} happenings>"
        )

    def position(self, body: str) -> np.ndarray:
        """Return its coordinates: centre and quaternion of a rigid body or a floating
        base, then q of an arm."""
        self.world.body(body, "The question")
        return self.states[:, self.engine.layout.positions[body]]

    def velocity(self, body: str) -> np.ndarray:
        """Return its velocities: of the centre and angular (body axes), then q̇."""
        self.world.body(body, "The question")
        return self.states[:, self.engine.layout.velocities[body]]

    def point_positions(self, points: Sequence[Point]) -> np.ndarray:
        """Return where points were in the world in [m]: (samples, points, 3)."""
        for point in points:
            self.world.locate(point, "The question")
        return self.engine.positions(self.states, points)

    def deviation(self, name: str) -> np.ndarray:
        """Return D of a constraint (of points) in [m]: (samples, rows)."""
        return self._snapshot.deviation[:, self._rows(name)]

    def deviation_rate(self, name: str) -> np.ndarray:
        """Return Ḋ of a constraint in [m/s]: (samples, rows)."""
        return self._snapshot.error[:, self._rows(name)]

    def force(self, name: str) -> np.ndarray:
        """Return the force of a constraint in [N]: (samples, rows)."""
        return self._history.force[:, self._rows(name)]

    @property
    def largest_deviation(self) -> float:
        """Largest ‖D‖ of any constraint at any time that was not broken, in [m]."""
        gone = {h.name: h.time for h in self.log if h.kind == "broken"}
        deviations = [0.0]
        for name, rows in self.engine.layout.rows.items():
            # What has broken deviates freely; that is no error of the run.
            there = self.time < gone.get(name, np.inf)
            size = np.linalg.norm(self._snapshot.deviation[there, rows], axis=1)
            deviations.append(float(size.max(initial=0.0)))
        return max(deviations)

    @property
    def residual(self) -> np.ndarray:
        """‖A F + β + 2λḊ + λ²D‖ at every time in [m/s²]."""
        snapshot = self._snapshot
        pushed = np.einsum("tij,tj->ti", snapshot.matrix, self._history.force)
        residual = pushed + snapshot.free + snapshot.pull
        for line in self.log:
            if line.kind in ("broken", "released"):
                residual[self.time >= line.time, self._rows(line.name)] = 0.0
        return np.asarray(np.linalg.norm(residual, axis=1))

    @property
    def singular_values(self) -> np.ndarray:
        """Of A at every time, ascending; NaN where constraints are gone."""
        return self._history.singular_values

    @property
    def dropped(self) -> np.ndarray:
        """How many singular values were left out at every time."""
        return self._history.dropped

    @cached_property
    def ledger(self) -> Ledger:
        """Where every joule went."""
        layout = self.engine.layout
        kinetic, gravitational, stored = self.engine.energies(self.states)
        bodies = [body.name for body in self.world.bodies]
        holders = [f.name for f in self.world.forces if hasattr(f, "stiffness")]
        # Bodies come after: of those only the ones with springs inside hold any.
        inside = stored[:, len(holders) :].T
        elastic = {b: e for b, e in zip(bodies, inside, strict=True) if np.any(e)}
        works = self.states[:, layout.works].T
        return Ledger(
            self.time,
            dict(zip(bodies, kinetic.T, strict=True)),
            dict(zip(bodies, gravitational.T, strict=True)),
            dict(zip(holders, stored.T, strict=False)) | elastic,
            dict(zip(layout.accounts, works, strict=True)),
        )

    def to_recording(self, body: str) -> Recording:
        """Return the joint motion of an articulated body as a recording."""
        named_body = self.world.body(body, "The recording")
        if not isinstance(named_body, ArticulatedBody):
            raise ArgumentError(
                f"{body!r} is no articulated body and has no joints to record. "
                "Use `table` for its state."
            )
        return Recording.from_arrays(
            self.time,
            # The joints come last, after a base that floats.
            q=self.position(body)[:, -named_body.arm.dof :],
            qd=self.velocity(body)[:, -named_body.arm.dof :],
            joint_names=named_body.arm.coordinate_names,
            source=f"{self.world.name}/{body}",
        )

    def table(self) -> dict[str, np.ndarray]:
        """Return every recorded number by name: states, deviations, energies."""
        columns: dict[str, np.ndarray] = {"time": self.time}
        for body in self.world.bodies:
            names = [name for part in body.coordinate_names for name in part]
            states = np.hstack([self.position(body.name), self.velocity(body.name)])
            columns |= {f"{body.name}.{n}": states[:, k] for k, n in enumerate(names)}
        for name in self.engine.layout.rows:
            size = np.linalg.norm(self.deviation(name), axis=1)
            columns[f"{name}.deviation"] = size
        columns["energy"] = self.ledger.energy
        columns["balance"] = self.ledger.balance
        return columns

    def _rows(self, name: str) -> slice:
        if name not in self.engine.layout.rows:
            names = ", ".join(self.engine.layout.rows) or "none"
            raise ArgumentError(
                f"{self.world.name} has no constraint {name!r}. It has: {names}."
            )
        return self.engine.layout.rows[name]

    @cached_property
    def _snapshot(self) -> Snapshot:
        return self.engine.snapshot(self.states, self.signals)

    @cached_property
    def _history(self) -> ForceHistory:
        return force_history(self.engine, self._snapshot, self.time, self.log)


# Files.


def write_file(path: Path, data: bytes) -> None:
    """Write a file by renaming a finished one into place."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except (OSError, ArmwiseError) as problem:
        raise ArgumentError(f"{problem}") from problem


def write_table(run: Run, path: str | Path) -> None:
    """Write every recorded number of a run as CSV or Parquet, by the file's name."""
    import io

    import polars as pl

    file = Path(path)
    frame = pl.DataFrame(run.table())
    buffer = io.BytesIO()
    if file.suffix == ".parquet":
        frame.write_parquet(buffer)
    elif file.suffix == ".csv":
        frame.write_csv(buffer)
    else:
        raise ArgumentError(f"{file} must end in .csv or .parquet.")
    write_file(file, buffer.getvalue())


def write_run(run: Run, folder: str | Path) -> list[Path]:
    """Write a run's table and summary into a folder.

    `armwise.report.write_world` adds a page with figures and an animation.

    Returns:
        The files that were written.
    """
    table, report = Path(folder) / "states.csv", Path(folder) / "summary.json"
    write_table(run, table)
    text = json.dumps(summary(run), indent=2, ensure_ascii=False) + "\n"
    write_file(report, text.encode())
    return [table, report]


def summary(run: Run) -> dict[str, object]:
    """Return what a run came to: steps, deviations, ledger and log."""
    return {
        "world": run.world.name,
        "duration": float(run.time[-1]),
        "steps": vars(run.steps),
        "largest_deviation": run.largest_deviation,
        "relative_balance": run.ledger.relative_balance,
        "ledger": run.ledger.summary(),
        "log": [vars(line) for line in run.log],
    }
