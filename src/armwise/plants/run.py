"""Closed-loop runs of a controller on a plant along a motion, as recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import ArgumentError, PlantDiverged
from armwise.motions import Motion, MotionSample
from armwise.plants.protocol import Controller, Plant
from armwise.plants.simulation_loop import SampleLog
from armwise.recordings import WRENCH_NAMES, Recording, SignalTable

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

# Sampling a motion in blocks is vectorised; all at once, a long run would hold
# references of the whole motion several times over.
_BLOCK = 4096
"""Control periods whose references are sampled together."""


def run(
    plant: Plant,
    controller: Controller,
    motion: Motion,
    *,
    duration: float | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> Recording:
    """Follow a motion on one plant.

    The recording holds what each sensor measured (`q_1`, `qd_1`, `tau_1`, `fx`,
    `volts_1`, `current_1` …, with its own time stamps), the torques asked for
    (`command_1` …), the references (`reference_q_1`, …, `reference_qdd_1`) and, if the
    plant keeps it, the truth (`true_q_1`, …, `true_tau_1`).

    Args:
        plant: A batch of one.
        controller: Asked for a torque every control period, from t = 0 on.
        motion: What is wanted.
        duration: How long in [s]; the motion's own when not given.
        q, qd: Where the arm begins; at the beginning of the motion, with its
            velocity, when not given.

    Raises:
        PlantDiverged: If the arm runs away; `.recording` holds what was measured.
    """
    if plant.batch != 1:
        raise ArgumentError(
            f"run is for one plant; this one has a batch of {plant.batch}. "
            "Use run_batch."
        )
    recording = run_batch(plant, controller, motion, duration=duration, q=q, qd=qd)[0]
    if plant.diverged[0]:
        # Plants of hardware stop for reasons of their own; simulated ones run away.
        reason = getattr(plant, "stop_reason", "")
        what = f"The plant stopped: {reason}," if reason else "The arm ran away"
        raise PlantDiverged(
            f"{what} at t = {plant.time:.4f} s. The recording up to there is "
            "kept; lower the gains, or look at the command.",
            recording,
        )
    return recording


def run_batch(
    plant: Plant,
    controller: Controller,
    motion: Motion | Sequence[Motion],
    *,
    duration: float | None = None,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
) -> tuple[Recording, ...]:
    """Follow one motion, or one for each plant, on a batch of plants at once.

    Args:
        plant: A batch of plants.
        controller: Serves all of them.
        motion: What is wanted; several need one for each plant.
        duration, q, qd: As in `run`; the longest motion's duration.

    Returns:
        One recording for each plant. A plant that ran away has a shorter one, and a
        note that says when; `plant.diverged` tells which.
    """
    motions = (motion,) if isinstance(motion, Motion) else tuple(motion)
    _check(plant, motions)
    length = max(m.duration for m in motions) if duration is None else duration
    # Rounded, not truncated: 0.3 / 0.1 is just below 3.
    steps = max(1, round(length / plant.control_period))
    begin = _references(motions, np.zeros(1))
    controller.reset(plant.batch, plant.control_period)
    measurement = plant.reset(
        begin.q[0] if q is None else q, begin.qd[0] if qd is None else qd
    )
    ended = np.full(plant.batch, np.inf)
    commands = _CommandLog(plant, len(motions))
    for log in (*plant.logs.values(), commands.command, *commands.references):
        log.reserve(steps + 1)
    for first in range(0, steps, _BLOCK):
        times = np.arange(first, min(first + _BLOCK, steps)) * plant.control_period
        for t, reference in zip(times.tolist(), _rows(motions, times), strict=True):
            tau = controller.torque(t, reference, measurement)
            commands.append(t, tau, reference)
            measurement = plant.step(tau)
            if plant.diverged.any():
                ended[plant.diverged & np.isinf(ended)] = t
                if plant.diverged.all():
                    return _recordings(plant, commands, ended)
    return _recordings(plant, commands, ended)


class _CommandLog:
    """Logs of what was asked for; references once if all plants share a motion."""

    def __init__(self, plant: Plant, motions: int) -> None:
        self.command = SampleLog(plant.batch, plant.dof, "N m")
        self.references = tuple(
            SampleLog(motions, plant.dof, unit) for unit in ("rad", "rad/s", "rad/s²")
        )

    def append(self, t: float, tau: np.ndarray, reference: MotionSample) -> None:
        """Remember one control period."""
        self.command.append(t, tau)
        for log, row in zip(self.references, reference, strict=True):
            log.append(t, row)


def _check(plant: Plant, motions: tuple[Motion, ...]) -> None:
    if len(motions) not in (1, plant.batch):
        raise ArgumentError(
            f"{len(motions)} motions for {plant.batch} plants; give one, or one each."
        )
    for motion in motions:
        if motion.dof != plant.dof:
            raise ArgumentError(
                f"The motion moves {motion.dof} joints; the plant has {plant.dof}."
            )


def _references(motions: tuple[Motion, ...], times: np.ndarray) -> MotionSample:
    """Sample all motions: arrays (times, motions, dof)."""
    samples = [motion.sample(times) for motion in motions]
    parts = zip(*samples, strict=True)
    return MotionSample(*(np.stack(part, axis=1) for part in parts))


def _rows(motions: tuple[Motion, ...], times: np.ndarray) -> list[MotionSample]:
    return [
        MotionSample(*row) for row in zip(*_references(motions, times), strict=True)
    ]


def _recordings(
    plant: Plant, commands: _CommandLog, ended: Float[np.ndarray, " batch"]
) -> tuple[Recording, ...]:
    names = ("reference_q", "reference_qd", "reference_qdd")
    logs = dict(plant.logs) | {"command": commands.command}
    logs |= dict(zip(names, commands.references, strict=True))
    return tuple(_recording(plant, logs, b, ended[b]) for b in range(plant.batch))


def _recording(
    plant: Plant, logs: dict[str, SampleLog], b: int, ended: float
) -> Recording:
    tables = []
    for signal, log in logs.items():
        # Up to and including the period in which the arm ran away.
        rows = int(np.searchsorted(log.time, ended, side="right"))
        # A shared motion has one row of references for all plants.
        values = log.columns[min(b, len(log.columns) - 1)]
        names = [f"{signal}_{j + 1}" for j in range(len(values))]
        units = [log.unit] * len(values)
        if signal == "wrench":
            names, units = list(WRENCH_NAMES), ["N"] * 3 + ["N m"] * 3
        columns = {name: v[:rows] for name, v in zip(names, values, strict=True)}
        measured_in = dict(zip(names, units, strict=True))
        tables.append(SignalTable(signal, log.time[:rows], columns, measured_in))
    notes = () if np.isinf(ended) else (f"The arm ran away after t = {ended:.4f} s.",)
    return Recording(
        tuple(tables),
        plant.joint_names,
        source=type(plant).__name__,
        notes=notes,
        arm=getattr(plant, "arm", None),
    )
