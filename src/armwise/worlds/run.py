"""What happened in a simulated world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from armwise.errors import ArgumentError
from armwise.recordings import Recording
from armwise.worlds.bodies import ArticulatedBody, Point
from armwise.worlds.engine import Engine
from armwise.worlds.events import Happening
from armwise.worlds.history import ForceHistory, force_history
from armwise.worlds.ledger import Ledger
from armwise.worlds.snapshot import Snapshot
from armwise.worlds.world import World


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
    engine: Engine
    signals: np.ndarray

    def position(self, body: str) -> np.ndarray:
        """Return q of an articulated body; centre and quaternion of a rigid one."""
        self.world.body(body, "The question")
        return self.states[:, self.engine.layout.positions[body]]

    def velocity(self, body: str) -> np.ndarray:
        """Return q̇, or the velocity of the centre and the angular one (body axes)."""
        self.world.body(body, "The question")
        return self.states[:, self.engine.layout.velocities[body]]

    def places(self, points: Sequence[Point]) -> np.ndarray:
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
        found = [0.0]
        for name, rows in self.engine.layout.rows.items():
            there = self.time < gone.get(name, np.inf)
            size = np.linalg.norm(self._snapshot.deviation[there, rows], axis=1)
            found.append(float(size.max(initial=0.0)))
        return max(found)

    @property
    def residual(self) -> np.ndarray:
        """‖A F + β + 2λḊ + λ²D‖ at every time in [m/s²]."""
        found = self._snapshot
        pushed = np.einsum("tij,tj->ti", found.matrix, self._history.force)
        rest = pushed + found.free + found.pull
        for line in self.log:
            if line.kind in ("broken", "released"):
                rest[self.time >= line.time, self._rows(line.name)] = 0.0
        return np.asarray(np.linalg.norm(rest, axis=1))

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
        works = self.states[:, layout.works].T
        return Ledger(
            self.time,
            dict(zip(bodies, kinetic.T, strict=True)),
            dict(zip(bodies, gravitational.T, strict=True)),
            dict(zip(holders, stored.T, strict=False)),
            dict(zip(layout.accounts, works, strict=True)),
        )

    def to_recording(self, body: str) -> Recording:
        """Return the joint motion of an articulated body as a recording."""
        found = self.world.body(body, "The recording")
        if not isinstance(found, ArticulatedBody):
            raise ArgumentError(
                f"{body!r} is one rigid body and has no joints to record. "
                "Use `table` for its state."
            )
        return Recording.from_arrays(
            self.time,
            q=self.position(body),
            qd=self.velocity(body),
            joint_names=found.arm.coordinate_names,
            source=f"{self.world.name}/{body}",
        )

    def table(self) -> dict[str, np.ndarray]:
        """Return every recorded number by name: states, deviations, energies."""
        columns: dict[str, np.ndarray] = {"time": self.time}
        for body in self.world.bodies:
            names = _coordinate_names(body)
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
            known = ", ".join(self.engine.layout.rows) or "none"
            raise ArgumentError(
                f"{self.world.name} has no constraint {name!r}. It has: {known}."
            )
        return self.engine.layout.rows[name]

    @cached_property
    def _snapshot(self) -> Snapshot:
        return self.engine.snapshot(self.states, self.signals)

    @cached_property
    def _history(self) -> ForceHistory:
        return force_history(self.engine, self._snapshot, self.time, self.log)


def _coordinate_names(body: object) -> list[str]:
    if isinstance(body, ArticulatedBody):
        names = body.arm.coordinate_names
        return [*(f"q_{n}" for n in names), *(f"qd_{n}" for n in names)]
    place = ["x", "y", "z", "qw", "qx", "qy", "qz"]
    return [*place, "vx", "vy", "vz", "wx", "wy", "wz"]
