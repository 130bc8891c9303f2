"""What a motor's torque really is, weighed against a known load.

Without a load nothing tells stronger motors from heavier links. A body of known mass at
the flange adds torques that are known in [N m]: they are the weight on the scales. The
arm's own parameters are eliminated (Gautier and Briot 2014 solve the same problem).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.from_recording import check_readings, sensed_samples
from armwise.calibration.refine import Prior, covariance_of, polish, torque_errors
from armwise.calibration.search_region import Point
from armwise.calibration.sensor_flaws import Flaws
from armwise.calibration.structure import Carried, Structure, as_structure
from armwise.calibration.variable_projection import Projector
from armwise.errors import NotIdentifiable
from armwise.plants import Payload, carrying
from armwise.recordings import Recording, Samples

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


_BELIEVED = 0.5
"""How far torque constants may be from their first guess, relative."""

_USELESS = 0.1
"""Relative standard deviation beyond which a gain was not found."""

Log = Recording | Samples | Sequence[Recording | Samples]


@dataclass(frozen=True, eq=False)
class TorqueGains:
    """True torque of every joint over the recorded one.

    Attributes:
        joint_names: Names of the joints.
        gain: Factors by which to multiply recorded torques (or currents).
        std: Their standard deviations; infinite where the load says nothing.
        parameters: The arm's parameters without the load, in true units.
        torque_std: What is left of each joint's recorded torque.
        notes: What the user should know.
    """

    joint_names: tuple[str, ...]
    gain: Float[np.ndarray, " dof"]
    std: Float[np.ndarray, " dof"]
    parameters: Float[np.ndarray, " parameters"]
    torque_std: Float[np.ndarray, " dof"]
    notes: tuple[str, ...] = ()


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
    """Find what recorded torques must be multiplied by to be torques.

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

    known = replace(
        as_structure(structure), gains_known=True, flaws=Flaws(torque_gain=_BELIEVED)
    )
    arm = known.arm
    first = np.broadcast_to(np.asarray(guess, dtype=float), (arm.dof,)).copy()
    parts = [_samples(log, cutoff_hz, torque) for log in (unloaded, loaded)]
    joined = Samples.concatenate(parts)
    sensed = replace(joined, tau=joined.tau * first)
    check_readings(sensed, arm.coordinate_names)
    carried = Carried(
        carrying(arm, load).parameters - arm.parameters,
        np.repeat([0.0, 1.0], [len(part) for part in parts]),
    )
    with threadpool_limits(limits=1, user_api="blas"):  # small blocks: one is faster
        usual = np.sqrt(np.mean(sensed.tau**2, axis=0))
        projector = Projector(known, sensed, 0.02 * usual + 1e-12, carried)
        return _weighed(known, projector, first)


def _samples(log: Log, cutoff_hz: float | None, torque: str | None) -> Samples:
    logs = [log] if isinstance(log, Recording | Samples) else log
    return Samples.concatenate([sensed_samples(x, cutoff_hz, torque) for x in logs])


def _weighed(
    known: Structure, projector: Projector, guess: Float[np.ndarray, " dof"]
) -> TorqueGains:
    n = known.arm.dof
    start = Point(np.ones(n), np.zeros(n), np.zeros(n))
    prior = Prior(start, np.repeat([1.0, _BELIEVED], n))
    is_free = np.repeat([False, True], n)
    found, projector = polish(projector, start, is_free, prior)
    deviation = np.sqrt(np.diag(covariance_of(projector, found, is_free, prior)))[n:]
    factor = 1.0 / (1.0 + found.point.flaws)
    std = deviation * factor
    hidden = std > _USELESS
    names = known.arm.coordinate_names
    if hidden.all():
        raise NotIdentifiable(
            "The load shows in no joint's torque: take a heavier one, or a motion in "
            "which every joint must lift it."
        )
    return TorqueGains(
        joint_names=names,
        gain=guess * np.where(hidden, 1.0, factor),
        std=np.where(hidden, np.inf, guess * factor * std),
        parameters=known.parameters(found.values[:-1]),
        torque_std=torque_errors(projector, found) / guess,
        notes=tuple(
            f"{name}: the load hardly shows in its torque; its gain stays as guessed."
            for name, lost in zip(names, hidden, strict=True)
            if lost
        ),
    )
