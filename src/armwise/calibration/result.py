"""Result of a calibration: values, uncertainty, the samples behind it, and notes.

`result_of` turns a refined solution into a `Calibration`; unknowns that the recording
does not determine go back to their first guess, and a recording that determines nothing
is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.observability import Observability
from armwise.calibration.refine import GaussianPrior, covariance_of
from armwise.calibration.structure import Structure, as_structure
from armwise.calibration.variable_projection import (
    ProjectedProblem,
    Projector,
    SensorPoint,
)
from armwise.errors import NotIdentifiable
from armwise.recordings import Recording, SensorCalibration

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

    from armwise.calibration.search import SearchRegion

_MOST_SAMPLES = 4000
"""Samples of a recording that stay with its calibration: enough for any figure."""

_LARGEST_STD = 0.1
"""Standard deviation in [rad], and of relative gains, beyond which an unknown counts as
undetermined: 6°, beyond which the linearisation behind it does not hold either."""

_FRICTION_DOMINATED = 0.9
"""Fraction of a motor's load that is dry friction from which on gravity is hidden: the
friction model is good to a tenth of itself at best."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Some of the samples behind a calibration, thinned evenly.

    Attributes:
        time: In [s].
        q: Joint positions in [rad] or [m], sensors as calibrated.
        measured, predicted: Torques in [N m] or [N].
        gravity: The part of the predicted torque that stays at rest.
        is_used: Torques that were used: their joints slid.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    measured: Float[np.ndarray, "samples dof"]
    predicted: Float[np.ndarray, "samples dof"]
    gravity: Float[np.ndarray, "samples dof"]
    is_used: Bool[np.ndarray, "samples dof"]

    @property
    def measured_gravity(self) -> Float[np.ndarray, "samples dof"]:
        """The measured torques less the predicted inertia and friction."""
        return np.asarray(self.measured - self.predicted + self.gravity)


@dataclass(frozen=True, eq=False)
class Calibration:
    """Joint sensors θ = α s + β, estimated against gravity.

    Attributes:
        joint_names: Names of the joints.
        alpha: α in [rad] (or [m]) per unit of the sensor.
        beta: β in [rad] or [m], between −π and π.
        alpha_std, beta_std: Their standard deviations; infinite where not calibrated.
        covariance: Of the sought unknowns (α relative, β in [rad], flaws), in the
            order of `unknowns`; NaN elsewhere.
        unknowns: Names of the unknowns, and of the flaws estimated along with them.
        flaws: Sizes of the flaws, in the order of their names.
        parameters: The arm's parameters estimated along with it; only identifiable
            combinations have a meaning.
        torque_std: Root mean square residual of each joint's torque in [N m] or [N].
        observability: What was predicted to be observable.
        evidence: Samples behind it, for reports; None for values from elsewhere.
        notes: What the user should know.
        method: How it was estimated.
        recordings: The moves it was estimated from, where it moved the arm itself.
    """

    joint_names: tuple[str, ...]
    alpha: Float[np.ndarray, " dof"]
    beta: Float[np.ndarray, " dof"]
    alpha_std: Float[np.ndarray, " dof"]
    beta_std: Float[np.ndarray, " dof"]
    covariance: Float[np.ndarray, "unknowns unknowns"]
    unknowns: tuple[str, ...]
    flaws: Float[np.ndarray, " flaws"]
    parameters: Float[np.ndarray, " parameters"]
    torque_std: Float[np.ndarray, " dof"]
    observability: Observability
    evidence: Evidence | None = None
    notes: tuple[str, ...] = ()
    method: str = "separable least squares"
    recordings: tuple[Recording, ...] = ()

    def __repr__(self) -> str:
        """One line: how many joints, how well."""
        calibrated = np.isfinite(self.beta_std)
        worst = self.beta_std[calibrated].max(initial=0.0)
        return (
            f"<Calibration: {calibrated.sum()} of {len(calibrated)} joints, "
            f"largest std of an offset {worst:.2g} rad or m, {self.method}>"
        )

    @classmethod
    def from_values(
        cls,
        structure: Structure | Arm,
        alpha: ArrayLike = 1.0,
        beta: ArrayLike = 0.0,
        torque_std: ArrayLike = 1.0,
    ) -> Calibration:
        """A calibration from elsewhere, with the arm's own parameters.

        Args:
            structure: The arm.
            alpha, beta: Gains and offsets, one number or one per joint.
            torque_std: Error to be expected of each joint's torque in [N m] or [N].
        """
        structure = as_structure(structure)
        n, unknowns = structure.arm.dof, structure.unknowns
        numbers = (np.broadcast_to(np.asarray(x, float), (n,)).copy()
                   for x in (alpha, beta, torque_std))  # fmt: skip
        gains, offsets, errors = numbers
        return cls(
            joint_names=structure.arm.coordinate_names,
            alpha=gains,
            beta=offsets,
            alpha_std=np.zeros(n),
            beta_std=np.zeros(n),
            covariance=np.zeros((len(unknowns), len(unknowns))),
            unknowns=unknowns,
            flaws=np.zeros(0),
            parameters=structure.arm.parameters.copy(),
            torque_std=errors,
            observability=Observability(()),
            method="from values",
        )

    @property
    def not_calibrated(self) -> tuple[str, ...]:
        """Names of the unknowns that keep their first guess."""
        return self.observability.hidden

    @property
    def sensors(self) -> SensorCalibration:
        """What `read_recording` applies."""
        return SensorCalibration(
            self.joint_names,
            tuple(map(float, self.alpha)),
            tuple(map(float, self.beta)),
        )

    def angles(
        self, readings: Float[np.ndarray, "... dof"]
    ) -> Float[np.ndarray, "... dof"]:
        """Turn sensor readings into joint positions in [rad] or [m]."""
        return np.asarray(readings) * self.alpha + self.beta


def result_of(
    projector: Projector,
    solution: ProjectedProblem,
    outlook: Observability,
    region: SearchRegion,
    prior: GaussianPrior,
    is_free: Bool[np.ndarray, " unknowns"],
) -> Calibration:
    """Turn a solution into a calibration.

    Args:
        projector: With the weights of the solution.
        solution: The refined solution.
        outlook: What was predicted to be observable.
        region: With the guess, to which undetermined unknowns return.
        prior: Prior of the unknowns.
        is_free: Which unknowns were estimated.

    Raises:
        NotIdentifiable: If an unknown that was sought is undetermined, and there is no
            guess to return to.
    """
    structure = projector.structure
    covariance = covariance_of(projector, solution, is_free, prior)
    n, guess = structure.arm.dof, region.guess
    deviation = np.sqrt(np.diag(covariance))[: len(structure.unknowns)]
    determined = _determined(outlook, deviation)
    lost = [x for x in determined.hidden if x not in outlook.hidden]
    if lost and (region.is_sign_unknown or not determined.is_sought.any()):
        raise refusal(projector, solution, lost)
    sought = determined.is_sought
    deviation = np.where(sought, deviation, np.inf)
    gains = deviation[:-n] if deviation.size > n else np.zeros(n)
    point = solution.point.held(guess, sought)
    # Parameters must fit the values that are reported: solved for once more.
    solution = projector.at(replace(point, beta=wrapped(point.beta)))
    point = solution.point
    return Calibration(
        joint_names=structure.arm.coordinate_names,
        alpha=point.alpha,
        beta=point.beta,
        alpha_std=gains * np.abs(point.alpha),
        beta_std=deviation[-n:],
        covariance=covariance,
        unknowns=(*structure.unknowns, *structure.flaw_names),
        flaws=point.flaws,
        parameters=structure.parameters(solution.values[:-1]),
        torque_std=projector.residual_std(solution),
        observability=determined,
        evidence=evidence_of(projector, solution),
        notes=_notes(projector, solution, guess),
    )


def _determined(outlook: Observability, deviation: np.ndarray) -> Observability:
    """Exclude what this recording does not determine: it keeps its first guess."""
    is_unclear = outlook.is_sought & ~(deviation < _LARGEST_STD)
    reasons = {
        p.name: f"this recording determines it only to ± {p.with_unit(float(std))}"
        for p, std, bad in zip(outlook.prospects, deviation, is_unclear, strict=True)
        if bad
    }
    return outlook.without(reasons)


def wrapped(angle: Float[np.ndarray, " dof"]) -> Float[np.ndarray, " dof"]:
    """The same angles between −π and π."""
    return np.asarray(np.angle(np.exp(1j * angle)))


def evidence_of(projector: Projector, solution: ProjectedProblem) -> Evidence:
    """Collect measured and predicted torques at a solution."""
    few = projector.thinned(max(1, len(projector.sensed) // _MOST_SAMPLES))
    parts = [_predicted(few, solution, rows) for rows in few.block_rows()]
    q, predicted, gravity, used = (np.concatenate(x) for x in zip(*parts, strict=True))
    sensed = few.sensed
    return Evidence(sensed.time, q, sensed.tau, predicted, gravity, used > 0.0)


def _predicted(
    projector: Projector, solution: ProjectedProblem, rows: slice
) -> tuple[np.ndarray, ...]:
    """Positions, predicted torques, their gravity, and which rows are used."""
    structure, point = projector.structure, solution.point
    parameters = structure.parameters(solution.values[:-1])
    predicted = projector.regressor(point, rows) @ parameters
    predicted -= solution.values[-1] * projector.torque_rate[rows]
    q = projector.motion(point, rows)[0]
    still = np.zeros_like(q)
    # Without the drives: their constant offset of torque is not gravity.
    bodies = np.where(structure.arm.layout.is_inertial, parameters, 0.0)
    weight = structure.dynamics.regressor(q, still, still) @ bodies
    gravity = weight * projector.torque_scale(point)
    return q, predicted, gravity, projector.mask.weights(rows)


# Notes on a result, and why there is none.


def _notes(
    projector: Projector, solution: ProjectedProblem, guess: SensorPoint
) -> tuple[str, ...]:
    names = projector.structure.arm.coordinate_names
    is_reversed = solution.point.alpha * guess.alpha < 0.0
    return (
        *(
            f"{name}: the sensor counts against the joint's direction."
            for name, reverse in zip(names, is_reversed, strict=True)
            if reverse
        ),
        *(_friction_note(*x) for x in friction_dominated(projector, solution).items()),
    )


def refusal(
    projector: Projector, solution: ProjectedProblem, names: Sequence[str]
) -> NotIdentifiable:
    """Say what hides some unknowns: friction, or that gravity does not act."""
    joints = {name.rsplit(".", 1)[0] for name in names}
    dominated = friction_dominated(projector, solution)
    notes = [_friction_note(*x) for x in dominated.items() if x[0] in joints]
    if notes:
        return NotIdentifiable(" ".join(notes))
    return NotIdentifiable(
        f"This recording does not determine {', '.join(names)}: gravity hardly shows "
        "in the torques. Does it act in the plane of motion? Move further, or more "
        "slowly where friction hides it."
    )


def joints_without_gravity(
    projector: Projector, solution: ProjectedProblem
) -> list[str]:
    """Joints whose gravity varies by less than 3 standard deviations of residuals."""
    variation = evidence_of(projector, solution).gravity.std(axis=0)
    is_faint = variation < 3.0 * projector.residual_std(solution)
    names = projector.structure.arm.coordinate_names
    return [name for name, faint in zip(names, is_faint, strict=True) if faint]


def friction_dominated(
    projector: Projector, solution: ProjectedProblem
) -> dict[str, float]:
    """Joints whose motors work against little but dry friction, and how much of it."""
    structure = projector.structure
    coulomb = structure.arm.layout.drive("coulomb")
    dry = structure.parameters(solution.values[:-1])[coulomb]
    joints = np.abs(structure.drive_weights).argmax(axis=1)
    return {
        structure.arm.coordinate_names[j]: abs(float(friction))
        for j, friction, load in zip(joints, dry, projector.drive_loads, strict=True)
        if abs(friction) > _FRICTION_DOMINATED * load
    }


def _friction_note(joint: str, friction: float) -> str:
    return (
        f"{joint}: dry friction of {friction:.3g} is most of its torque; gravity "
        "hardly shows."
    )
