"""Calibration by adaptive control alone, as `astley1996` did it on two links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.gravity_expansion import (
    CosineFit,
    fit_by_arccos,
    is_planar_chain,
)
from armwise.calibration.sensor_control import Bench, Trace
from armwise.calibration.stages import GainStage, OffsetStage, Plan, Stages
from armwise.calibration.structure import Structure, as_structure
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.plants import Plant
from armwise.progress import Progress
from armwise.regression import few_threads

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.recordings import Recording


@dataclass(frozen=True, eq=False)
class AdaptiveCalibration:
    """Result of the procedure, one row per arm.

    Attributes:
        alpha, beta: θ = α v + β in [rad/V] and [rad].
        alpha_std, beta_std: Their standard deviations, from the adaptation's gain
            matrix and its prediction errors.
        alpha_by_arccos: α as the thesis reads it off the parabola.
        single_phase: Angle above the horizontal of the centre of mass that each joint
            carries, at a reading of zero, the other joints held, in [rad].
        friction: Coulomb friction in [N m].
        traces: Recorded runs, stage by stage.
        recordings: Per arm, volts and torques of every stage.
        fits: Per joint and arm, the cosine read off its parabola.
    """

    alpha: Float[np.ndarray, "batch dof"]
    beta: Float[np.ndarray, "batch dof"]
    alpha_std: Float[np.ndarray, "batch dof"]
    beta_std: Float[np.ndarray, "batch dof"]
    alpha_by_arccos: Float[np.ndarray, "batch dof"]
    single_phase: Float[np.ndarray, "batch dof"]
    friction: Float[np.ndarray, "batch dof"]
    traces: dict[str, Trace]
    recordings: list[list[Recording]]
    fits: tuple[tuple[CosineFit, ...], ...]


def calibrate_by_adaptation(
    plant: Plant,
    structure: Structure | Arm,
    *,
    posture: ArrayLike | None = None,
    full_scale: ArrayLike = 6.0,
    torque_step: ArrayLike = 0.0,
    plan: Plan | None = None,
    progress: Progress | None = None,
) -> AdaptiveCalibration:
    """Estimate θ = α v + β of every joint of a plant by moving it, without a guess.

    Friction is measured by a slow wave; each joint moves alone under composite
    adaptive control with gravity as a parabola, which gives α; then all move together
    with gravity expanded by the offsets' cosines and sines, which gives β. A stage ends
    when its own uncertainty is small enough.

    Args:
        plant: With sensors that give volts; a batch is calibrated at once.
        structure: The arm: one or two links in a vertical plane, z their axes, their
            centres of mass on their x axes.
        posture: Where a simulated plant is at power-up, in its own coordinates, zero
            when not given; not used by the procedure.
        full_scale: Reading in [V] the joints may reach, one number or one per joint.
        torque_step: Step of the torques' converter in [N m]; commands are rounded to
            it, so that recorded and applied torques are the same.
        plan: How to move.
        progress: Called with the step and the fraction that is done.

    Raises:
        NotIdentifiable: If the arm is another, gravity does not act on a joint, or
            friction hides it.
        RecordingError: If a joint or its reading does not follow.
    """
    structure, plan = as_structure(structure), plan or Plan()
    _check(plant, structure)
    report = progress or (lambda step, fraction: None)
    names = structure.arm.coordinate_names
    scale, step = (
        np.broadcast_to(np.asarray(x, float), (structure.arm.dof,)).copy()
        for x in (full_scale, torque_step)
    )
    with few_threads():
        start = np.zeros(structure.arm.dof) if posture is None else posture
        bench = Bench(plant, scale, start, cutoff_hz=40.0, torque_step=step)
        stages = Stages(structure, bench, plan, _effort(structure.arm))
        report("directions", 0.0)
        stages.find_feedback()
        slow = []
        for j, name in enumerate(names):
            report(f"friction of {name}", 0.05 + 0.25 * j / len(names))
            slow.append(stages.measure_friction(j))
        alone = []
        for j, name in enumerate(names):
            report(f"gain of {name}", 0.3 + 0.4 * j / len(names))
            alone.append(stages.adapt_parabola(j))
        report("offsets", 0.7)
        gains = np.array([[fit.gain for fit in s.fits] for s in alone]).T * bench.sense
        together = stages.adapt_offsets(gains)
        report("done", 1.0)
        return _result(stages, gains / scale, slow, alone, together)


def _result(
    stages: Stages,
    alpha: Float[np.ndarray, "batch dof"],
    slow: list[Trace],
    alone: list[GainStage],
    together: OffsetStage,
) -> AdaptiveCalibration:
    sense, scale = stages.bench.sense, stages.bench.scale
    arccos = [
        [fit_by_arccos(_parabola_of(fit), (-1.0, 1.0)).gain for fit in stage.fits]
        for stage in alone
    ]
    traces = {f"friction_{j + 1}": trace for j, trace in enumerate(slow)}
    traces |= {f"gain_{j + 1}": stage.trace for j, stage in enumerate(alone)}
    return AdaptiveCalibration(
        alpha=alpha,
        beta=together.beta,
        alpha_std=np.abs(alpha) * np.array([stage.std for stage in alone]).T,
        beta_std=together.std,
        alpha_by_arccos=np.array(arccos).T * sense / scale,
        single_phase=_joint_phase([stage.fits for stage in alone], sense),
        friction=stages.friction,
        traces=traces | {"offsets": together.trace},
        recordings=stages.bench.recordings(),
        fits=tuple(stage.fits for stage in alone),
    )


def _joint_phase(fits: list[tuple[CosineFit, ...]], sense: np.ndarray) -> np.ndarray:
    """The cosine's phase in the joint's own sense: −m cos(x − φ) = m cos(x − φ + π)."""
    phase = np.array([[fit.phase for fit in row] for row in fits]).T
    turned = np.where(sense > 0.0, phase, np.pi - phase)
    return np.asarray(np.angle(np.exp(1j * turned)))


def _parabola_of(fit: CosineFit) -> np.ndarray:
    """The best parabola of a cosine over the scaled reach."""
    q = np.linspace(-1.0, 1.0, 101)
    curve = fit.moment * np.cos(fit.gain * q + fit.phase)
    return np.asarray(np.polynomial.polynomial.polyfit(q, curve, 2))


def _effort(arm: Arm) -> np.ndarray:
    effort = arm.limits("effort")
    if not np.all(np.isfinite(effort)):
        raise ArgumentError(
            f"{arm.name} has no effort limits; they say how hard joints may be pushed."
        )
    return effort


def _check(plant: Plant, structure: Structure) -> None:
    arm = structure.arm
    if plant.dof != arm.dof:
        raise ArgumentError(
            f"The plant has {plant.dof} joints, {arm.name} has {arm.dof}."
        )
    if not is_planar_chain(arm) or arm.dof > 2:
        raise NotIdentifiable(
            f"{arm.name} is not a chain of one or two links with parallel z axes "
            "across gravity, which this procedure is made for. Use calibrate."
        )
