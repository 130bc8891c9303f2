"""Torque gains of motors from recordings with and without a known load.

Without a load stronger motors and lighter links explain the same torques. A body of
known mass at the flange adds torques that are known in [N m], and fixes the scale. The
arm's own parameters are eliminated (Gautier and Briot 2014 solve the same problem).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.from_recording import check_readings, sensed_samples
from armwise.calibration.refine import GaussianPrior, covariance_of, refine
from armwise.calibration.sensor_flaws import Flaws
from armwise.calibration.structure import KnownLoad, Structure, as_structure
from armwise.calibration.variable_projection import Projector, SensorPoint
from armwise.errors import NotIdentifiable
from armwise.plants import Payload, carrying
from armwise.recordings import Recording, Samples

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


_PRIOR_STD = 0.5
"""Relative standard deviation of torque constants about their first guess: wide beside
the 10 % of a data sheet, so that only unobservable gains stay where they were."""

_LARGEST_STD = 0.1
"""Relative standard deviation beyond which a gain counts as unobservable: no better
than a data sheet."""

Log = Recording | Samples | Sequence[Recording | Samples]


@dataclass(frozen=True, eq=False)
class TorqueGains:
    """True torque of every joint over the recorded one.

    Attributes:
        joint_names: Names of the joints.
        gain: Factors by which to multiply recorded torques (or currents).
        std: Their standard deviations; infinite where it is unobservable.
        parameters: The arm's parameters without the load, in true units.
        torque_std: Root mean square residual of each joint's recorded torque.
        notes: What the user should know.
    """

    joint_names: tuple[str, ...]
    gain: Float[np.ndarray, " dof"]
    std: Float[np.ndarray, " dof"]
    parameters: Float[np.ndarray, " parameters"]
    torque_std: Float[np.ndarray, " dof"]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: the factors with their standard deviations."""
        factors = zip(self.gain[:8], self.std[:8], strict=True)
        listed = ", ".join(f"{gain:.4g} ± {std:.2g}" for gain, std in factors)
        more = ", …" if len(self.gain) > 8 else ""
        return f"<TorqueGains: {listed}{more}>"


def calibrate_torques(
    structure: Structure | Arm,
    unloaded: Log,
    loaded: Log,
    load: Payload,
    *,
    guess: ArrayLike = 1.0,
    cutoff_hz: float | None = 10.0,
    torque: str | None = None,
) -> TorqueGains:
    """Estimate the factors that turn recorded torques into true ones.

    Args:
        structure: The arm, or the arm and what is known of it.
        unloaded: Motion without the load, positions in [rad] or [m].
        loaded: Motion with it; another motion is as good.
        load: The known body and the frame it is held at.
        guess: First guess of the gains, such as torque constant times gear ratio; one
            number or one per joint.
        cutoff_hz: Low-pass of the recordings in [Hz].
        torque: Channel of the torques; `tau` where it is.

    Raises:
        NotIdentifiable: If the load shows in no joint's torque.
    """
    from threadpoolctl import threadpool_limits

    structure = replace(
        as_structure(structure), gains_known=True, flaws=Flaws(torque_gain=_PRIOR_STD)
    )
    arm = structure.arm
    first = np.broadcast_to(np.asarray(guess, dtype=float), (arm.dof,)).copy()
    parts = [_samples(log, cutoff_hz, torque) for log in (unloaded, loaded)]
    joined = Samples.concatenate(parts)
    check_readings(joined, arm.coordinate_names)
    sensed = replace(joined, tau=joined.tau * first)
    known_load = KnownLoad(
        carrying(arm, load).parameters - arm.parameters,
        np.repeat([0.0, 1.0], [len(part) for part in parts]),
    )
    with threadpool_limits(limits=1, user_api="blas"):  # small blocks: one is faster
        # First weights, before any residual: 2 % of each joint's torque.
        std = 0.02 * np.sqrt(np.mean(sensed.tau**2, axis=0)) + 1e-12
        projector = Projector(structure, sensed, std, known_load)
        return _solve(structure, projector, first)


def _samples(log: Log, cutoff_hz: float | None, torque: str | None) -> Samples:
    logs = [log] if isinstance(log, Recording | Samples) else log
    return Samples.concatenate([sensed_samples(x, cutoff_hz, torque) for x in logs])


def _solve(
    structure: Structure, projector: Projector, guess: Float[np.ndarray, " dof"]
) -> TorqueGains:
    n = structure.arm.dof
    start = SensorPoint(np.ones(n), np.zeros(n), np.zeros(n))
    prior = GaussianPrior(start, np.repeat([1.0, _PRIOR_STD], n))
    is_free = np.repeat([False, True], n)
    solution, projector = refine(projector, start, is_free, prior)
    deviation = np.sqrt(np.diag(covariance_of(projector, solution, is_free, prior)))[n:]
    factor = 1.0 / (1.0 + solution.point.flaws)
    std = deviation * factor
    hidden = std > _LARGEST_STD
    names = structure.arm.coordinate_names
    if hidden.all():
        raise NotIdentifiable(
            "The load shows in no joint's torque: take a heavier one, or a motion in "
            "which every joint must lift it."
        )
    return TorqueGains(
        joint_names=names,
        gain=guess * np.where(hidden, 1.0, factor),
        std=np.where(hidden, np.inf, guess * factor * std),
        parameters=structure.parameters(solution.values[:-1]),
        torque_std=projector.residual_std(solution) / guess,
        notes=tuple(
            f"{name}: the load hardly shows in its torque; its gain stays as guessed."
            for name, is_hidden in zip(names, hidden, strict=True)
            if is_hidden
        ),
    )
