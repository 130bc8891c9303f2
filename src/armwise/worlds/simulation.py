"""Run a world: the compiled loop while all is well, step by careful step else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

import numpy as np

from armwise.errors import ArgumentError
from armwise.programs.kernel import Backend
from armwise.worlds.diagnosis import check_step
from armwise.worlds.engine import Engine
from armwise.worlds.events import Event
from armwise.worlds.integrators import require_integrator
from armwise.worlds.methods import ForceMethod, SingularValueDropping
from armwise.worlds.run import Run
from armwise.worlds.runner import Runner
from armwise.worlds.world import World

_LARGEST_RUN = 2 * 1024**3
"""Largest size of the kept states in bytes."""


def simulate(
    world: World,
    duration: float,
    *,
    step: float = 1e-3,
    integrator: object = None,
    method: ForceMethod | None = None,
    record_every: int = 1,
    events: Sequence[Event] = (),
    backend: Backend = "auto",
    progress: Callable[[float], None] | None = None,
) -> Run:
    """Let a world run for a while.

    Args:
        world: What to run.
        duration: How long in [s].
        step: Step in [s]; for CashKarp the largest, at whose ends states are kept.
        integrator: How steps are taken; RungeKutta4 if not given.
        method: How constraint forces are found; SingularValueDropping if not given.
        record_every: Keep every so many-th state.
        events: Things to look for.
        backend: What runs traced programs.
        progress: Told the fraction done now and then.

    Raises:
        ArgumentError: If the step or the duration make no sense.
        WorldError: If the world cannot go on; its `run` holds all up to there.
    """
    chosen = require_integrator(integrator)
    check_step(world, chosen, step)
    if not (np.isfinite(duration / step) and duration > 0):
        raise ArgumentError(f"The duration must be positive in [s], not {duration!r}.")
    releasable = {name for event in events for name in event.releases}
    engine = Engine(world, method or SingularValueDropping(), backend, releasable)
    count = ceil(duration / step - 1e-9)
    if (
        record_every < 1
        or count // record_every * engine.layout.size * 8 > _LARGEST_RUN
    ):
        raise ArgumentError(
            f"Keeping every {record_every}. of {count} states of {engine.layout.size} "
            "numbers is too much or too little: choose another record_every."
        )
    runner = Runner(engine, chosen, step, count, record_every, tuple(events))
    return runner.go(progress or (lambda fraction: None))
