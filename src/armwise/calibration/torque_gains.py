"""Torque gains of motors from recordings with and without a known load.

Without a load stronger motors and lighter links explain the same torques. A body of
known mass in the hand adds torques that are known in [N m], and fixes the scale
(Gautier and Briot 2014). Its centre and inertia may be unknown: they are estimated
along with the gains, friction and lag, as `identify_load` does for an unknown load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.from_recording import check_readings, sensed_samples
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification import Estimate, WeightedLeastSquares, identify
from armwise.loads import TorqueGains, WeighedLoad, is_same_motion, load_from_torques
from armwise.plants import Payload
from armwise.recordings import Recording, Samples, prepare

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_PRIOR_STD = 0.5
"""Relative standard deviation of torque constants about their first guess: wide beside
the 10 % of a data sheet, so that only unobservable gains stay where they were."""

_LARGEST_STD = 0.1
"""Relative standard deviation beyond which a gain counts as unobservable: no better
than a data sheet."""

Log = Recording | Samples | Sequence[Recording | Samples]


def calibrate_torques(
    arm: Arm,
    unloaded: Log,
    loaded: Log,
    load: Payload | None = None,
    *,
    load_mass: float | None = None,
    load_center: ArrayLike | None = None,
    frame: str | None = None,
    guess: ArrayLike = 1.0,
    cutoff_hz: float | None = None,
    torque: str | None = None,
) -> TorqueGains:
    """Estimate the factors that turn recorded torques into true ones.

    Args:
        arm: The arm.
        unloaded: Motion without the load, positions in [rad] or [m]. The same motion
            as the loaded one is best; of another, the arm is identified first.
        loaded: Motion with it.
        load: The known body and the frame it is held at; or its mass only:
        load_mass: In [kg].
        load_center: Its centre of mass in the frame in [m]; None: not known.
        frame: Where it is held; the last link.
        guess: First guess of the gains, such as torque constant times gear ratio; one
            number or one per joint.
        cutoff_hz: Low-pass of the recordings in [Hz]; chosen from the data if None.
        torque: Channel of the torques; `tau` where it is.

    Raises:
        NotIdentifiable: If the load shows in no joint's torque.
    """
    weighed, frame = _known_load(arm, load, load_mass, load_center, frame)
    first = np.broadcast_to(np.asarray(guess, dtype=float), (arm.dof,)).copy()
    carrying = _samples(loaded, arm, cutoff_hz, torque, None)
    empty = _samples(unloaded, arm, cutoff_hz, torque, carrying)
    for part in (carrying, empty):
        check_readings(part, arm.coordinate_names)
    wide = TorqueGains(
        arm.coordinate_names,
        first,
        _PRIOR_STD**2 * np.eye(arm.dof),
        is_calibrated=False,
    )
    model: Arm | Estimate = arm
    if not is_same_motion(carrying, empty):
        model = identify(arm, empty, method=WeightedLeastSquares())
    gains = load_from_torques(carrying, model, frame, empty, wide, weighed).gains
    return _named(gains, first)


def _known_load(
    arm: Arm,
    load: Payload | None,
    mass: float | None,
    center: ArrayLike | None,
    frame: str | None,
) -> tuple[WeighedLoad, str]:
    if load is not None:
        values = load.inertia.vector
        weighed = WeighedLoad.of_mass(max(load.inertia.mass, 1e-12))
        std = np.array([weighed.std[0], *np.abs(values[1:]) * weighed.std[0] + 1e-9])
        return WeighedLoad(values, std), load.frame
    if mass is None or not mass > 0.0:
        raise ArgumentError("A calibration of torques needs load_mass in [kg].")
    return WeighedLoad.of_mass(mass, center), frame or arm.links[-1].name


def _samples(
    log: Log,
    arm: Arm,
    cutoff_hz: float | None,
    torque: str | None,
    like: Samples | None,
) -> Samples:
    """Prepare a log as the arm's dynamics suggest, or as another was."""
    logs = [log] if isinstance(log, Recording | Samples) else list(log)
    recordings = [x for x in logs if isinstance(x, Recording)]
    if len(recordings) < len(logs) or torque is not None:
        return Samples.concatenate([sensed_samples(x, cutoff_hz, torque) for x in logs])
    # Samples that were given have no settings to repeat.
    repeated = like if like is not None and like.speed_resolution else None
    return prepare(recordings, cutoff_hz, arm=arm, like=repeated)


def _named(gains: TorqueGains, guess: np.ndarray) -> TorqueGains:
    """Keep the guess of gains that the load does not show, and name them."""
    relative = np.sqrt(np.diag(gains.covariance))
    hidden = relative > _LARGEST_STD
    if hidden.all():
        raise NotIdentifiable(
            "The load shows in no joint's torque: take a heavier one, or a motion in "
            "which every joint must lift it."
        )
    covariance = gains.covariance.copy()
    covariance[hidden, :] = 0.0
    covariance[:, hidden] = 0.0
    covariance[hidden, hidden] = _LARGEST_STD**2
    notes = tuple(
        f"{name}: the load hardly shows in its torque; its gain stays as guessed, "
        f"± {100.0 * _LARGEST_STD:.0f} %."
        for name, is_hidden in zip(gains.joint_names, hidden, strict=True)
        if is_hidden
    )
    return replace(
        gains,
        gain=np.where(hidden, guess, gains.gain),
        covariance=covariance,
        notes=notes,
    )
