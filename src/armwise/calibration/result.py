"""What came of a search, in words and numbers; refused where there is nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.observability import Observability
from armwise.calibration.refine import Prior, covariance_of, torque_errors
from armwise.calibration.search_region import Domain, Point
from armwise.calibration.structure import Structure, as_structure
from armwise.calibration.variable_projection import Projected, Projector
from armwise.errors import NotIdentifiable
from armwise.recordings import SensorCalibration

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike


# What a calibration explains: torques as measured, as predicted, and their gravity.

_MOST = 4000
"""Samples that are kept of a recording."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Some of the samples behind a calibration, thinned evenly.

    Attributes:
        time: In [s].
        q: Joint positions in [rad] or [m], sensors as calibrated.
        measured, predicted: Torques in [N m] or [N].
        gravity: The part of the predicted torque that stays at rest.
        is_heard: Torques that counted: their joints surely slid.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    measured: Float[np.ndarray, "samples dof"]
    predicted: Float[np.ndarray, "samples dof"]
    gravity: Float[np.ndarray, "samples dof"]
    is_heard: Bool[np.ndarray, "samples dof"]

    @property
    def weighed(self) -> Float[np.ndarray, "samples dof"]:
        """The measured torques less all that moves: gravity as it was weighed."""
        return np.asarray(self.measured - self.predicted + self.gravity)


def evidence_of(projector: Projector, found: Projected) -> Evidence:
    """Collect what was measured and what the model says, at a solution."""
    few = projector.thinned(max(1, len(projector.sensed) // _MOST))
    parts = [_part(few, found, rows) for rows in few.stretches()]
    q, predicted, gravity, heard = (np.concatenate(x) for x in zip(*parts, strict=True))
    sensed = few.sensed
    return Evidence(sensed.time, q, sensed.tau, predicted, gravity, heard > 0.0)


def _part(
    projector: Projector, found: Projected, rows: slice
) -> tuple[np.ndarray, ...]:
    structure, point = projector.structure, found.point
    parameters = structure.parameters(found.values[:-1])
    predicted = projector.regressor(point, rows) @ parameters
    predicted -= found.values[-1] * projector.torque_rate[rows]
    q = projector.motion(point, rows)[0]
    still = np.zeros_like(q)
    bodies = np.where(structure.arm.layout.is_inertial, parameters, 0.0)
    weight = structure.dynamics.regressor(q, still, still) @ bodies
    gravity = weight * projector.torque_scale(point)
    return q, predicted, gravity, projector.sliding.weights(rows)


# What a calibration found, and how far to trust it.


@dataclass(frozen=True, eq=False)
class Calibration:
    """Joint sensors θ = α s + β, found against gravity.

    Attributes:
        joint_names: Names of the joints.
        alpha: α in [rad] (or [m]) per unit of the sensor.
        beta: β in [rad] or [m], between −π and π.
        alpha_std, beta_std: Their standard deviations; infinite where not calibrated.
        covariance: Of the sought unknowns (α relative, β in [rad], flaws), in the
            order of `unknowns`; NaN elsewhere.
        unknowns: Names of the unknowns, and of the flaws found along with them.
        flaws: Sizes of the flaws, in the order of their names.
        parameters: The arm's parameters found along with it; only combinations that
            motion reveals have a meaning.
        torque_std: What is left of each joint's torque in [N m] or [N].
        observability: What could be told beforehand.
        evidence: What it explains, for reports; None for one that was given.
        notes: What the user should know.
        method: How it was found.
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

    @classmethod
    def given(
        cls,
        structure: Structure | Arm,
        alpha: ArrayLike = 1.0,
        beta: ArrayLike = 0.0,
        torque_std: ArrayLike = 1.0,
    ) -> Calibration:
        """A calibration known from elsewhere, with the arm's own parameters.

        Args:
            structure: The arm.
            alpha, beta: Gains and offsets, one number or one per joint.
            torque_std: Error to be expected of each joint's torque in [N m] or [N].
        """
        known = as_structure(structure)
        n, unknowns = known.arm.dof, known.unknowns
        numbers = (np.broadcast_to(np.asarray(x, float), (n,)).copy()
                   for x in (alpha, beta, torque_std))  # fmt: skip
        gains, offsets, errors = numbers
        return cls(
            joint_names=known.arm.coordinate_names,
            alpha=gains,
            beta=offsets,
            alpha_std=np.zeros(n),
            beta_std=np.zeros(n),
            covariance=np.zeros((len(unknowns), len(unknowns))),
            unknowns=unknowns,
            flaws=np.zeros(0),
            parameters=known.arm.parameters.copy(),
            torque_std=errors,
            observability=Observability(()),
            method="given",
        )

    @property
    def not_calibrated(self) -> tuple[str, ...]:
        """Names of the unknowns that keep the values they were given."""
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


def wrapped(angle: Float[np.ndarray, " dof"]) -> Float[np.ndarray, " dof"]:
    """The same angles between −π and π."""
    return np.asarray(np.angle(np.exp(1j * angle)))


# What came of a search, in words and numbers; refused where there is nothing.

_UNCLEAR = 0.1
"""Standard deviation in [rad], and of relative gains, beyond which nothing is known."""


def outcome(
    projector: Projector,
    found: Projected,
    outlook: Observability,
    domain: Domain,
    prior: Prior,
    is_free: Bool[np.ndarray, " unknowns"],
) -> Calibration:
    """Put a solution into words and numbers.

    Args:
        projector: With the weights the solution was found with.
        found: The solution.
        outlook: What could be told beforehand.
        domain: With what was given; what was not calibrated goes back to it.
        prior: What was believed.
        is_free: What was moved.

    Raises:
        NotIdentifiable: If something that was sought is as good as unknown.
    """
    known = projector.structure
    covariance = covariance_of(projector, found, is_free, prior)
    n, guess = known.arm.dof, domain.guess
    deviation = np.sqrt(np.diag(covariance))[: len(known.unknowns)]
    left = _less_unclear(outlook, deviation)
    lost = [x for x in left.hidden if x not in outlook.hidden]
    if lost and (domain.is_blind or not left.is_sought.any()):
        raise refusal(projector, found, lost)
    outlook = left
    sought = outlook.is_sought
    deviation = np.where(sought, deviation, np.inf)
    gains = deviation[:-n] if deviation.size > n else np.zeros(n)
    point = found.point.held(guess, sought)
    found = projector.at(replace(point, beta=wrapped(point.beta)))
    point = found.point
    return Calibration(
        joint_names=known.arm.coordinate_names,
        alpha=point.alpha,
        beta=point.beta,
        alpha_std=gains * np.abs(point.alpha),
        beta_std=deviation[-n:],
        covariance=covariance,
        unknowns=(*known.unknowns, *known.flaw_names),
        flaws=point.flaws,
        parameters=known.parameters(found.values[:-1]),
        torque_std=torque_errors(projector, found),
        observability=outlook,
        evidence=evidence_of(projector, found),
        notes=(*_reversals(projector, found, guess), *_frictions(projector, found)),
    )


def _less_unclear(outlook: Observability, deviation: np.ndarray) -> Observability:
    """Leave out what this recording does not tell: it stays as it was given."""
    unclear = outlook.is_sought & ~(deviation < _UNCLEAR)
    reasons = {
        p.name: f"this recording tells it only to ± {p.with_unit(float(std))}"
        for p, std, bad in zip(outlook.prospects, deviation, unclear, strict=True)
        if bad
    }
    return outlook.without(reasons)


def refusal(
    projector: Projector, found: Projected, names: Sequence[str]
) -> NotIdentifiable:
    """Say what hides some unknowns: friction, or that gravity does not act."""
    joints = {name.rsplit(".", 1)[0] for name in names}
    rubbing = rubbing_joints(projector, found)
    notes = [friction_note(*x) for x in rubbing.items() if x[0] in joints]
    return NotIdentifiable(" ".join(notes)) if notes else without_gravity(names)


def without_gravity(names: Sequence[str]) -> NotIdentifiable:
    """What to say of joints that gravity does not weigh."""
    return NotIdentifiable(
        f"This recording does not tell {', '.join(names)}: gravity hardly shows in the "
        "torques. Does it act in the plane of motion? Move further, or more slowly "
        "where friction hides it."
    )


def faint_joints(projector: Projector, found: Projected) -> list[str]:
    """Name the joints whose gravity swings no more than what is left unexplained."""
    swing = evidence_of(projector, found).gravity.std(axis=0)
    left = torque_errors(projector, found)
    names = projector.structure.arm.coordinate_names
    return [x for x, bad in zip(names, swing < 3.0 * left, strict=True) if bad]


def _reversals(projector: Projector, found: Projected, guess: Point) -> tuple[str, ...]:
    names = projector.structure.arm.coordinate_names
    return tuple(
        f"{name}: the sensor counts against the joint's direction."
        for j, name in enumerate(names)
        if found.point.alpha[j] * guess.alpha[j] < 0.0
    )


def _frictions(projector: Projector, found: Projected) -> tuple[str, ...]:
    rubbing = rubbing_joints(projector, found)
    return tuple(friction_note(*item) for item in rubbing.items())


def rubbing_joints(projector: Projector, found: Projected) -> dict[str, float]:
    """Joints whose motors work against little but dry friction, and how much of it."""
    known = projector.structure
    dry = known.parameters(found.values[:-1])[known.arm.layout.drive("coulomb")]
    usual = np.sqrt(np.mean(projector.sensed.tau**2, axis=0))
    loads = np.abs(known.drive_weights) @ usual
    joints = np.abs(known.drive_weights).argmax(axis=1)
    return {
        known.arm.coordinate_names[j]: abs(float(friction))
        for j, friction, load in zip(joints, dry, loads, strict=True)
        if abs(friction) > 0.9 * load
    }


def friction_note(joint: str, friction: float) -> str:
    """What to say of such a joint."""
    return (
        f"{joint}: dry friction of {friction:.3g} is most of its torque; gravity "
        "hardly shows."
    )
