"""Calibrate sensors from a recording alone: separable nonlinear least squares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from armwise.arms import Arm
from armwise.calibration.observability import Observability, calibratable
from armwise.calibration.refine import Prior, descend, polish
from armwise.calibration.result import (
    Calibration,
    faint_joints,
    outcome,
    refusal,
    rubbing_joints,
)
from armwise.calibration.search import Minimum, lowest, search
from armwise.calibration.search_region import Domain, Point
from armwise.calibration.structure import Structure, as_structure
from armwise.calibration.variable_projection import Projected, Projector
from armwise.errors import ArgumentError, NotIdentifiable, NotPhysical, RecordingError
from armwise.recordings import Channel, Recording, Samples, prepare

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike


# Samples in the sensors' own units, and whether they can be used.

_SETTLING = 3.0
"""Time a low-pass needs at either end, over one by its cut-off in [Hz]."""

RAW = ("volts", "q")
"""Channels a joint's sensor may be found under, the first one that is there."""


def sensed_samples(
    recording: Recording | Samples,
    cutoff_hz: float | None = None,
    torque: str | None = None,
) -> Samples:
    """Prepare a recording with positions in the sensors' units.

    Args:
        recording: With `volts_1 …` or `q_1 …` and torques; samples are taken as they
            are.
        cutoff_hz: Low-pass in [Hz]; chosen from the data when None.
        torque: Channels to take torques from: `tau`, or `command` when that is all
            there is.
    """
    if isinstance(recording, Samples):
        return recording
    raw = raw_recording(recording, torque)
    return _settled(prepare(raw, cutoff_hz, velocity="position"))


def _settled(sensed: Samples) -> Samples:
    """Leave out where the low-pass of a heavy torque still feels the ends."""
    bandwidth = sensed.preparation.torque_bandwidth_hz
    if bandwidth is None:
        return sensed
    ends = round(_SETTLING / bandwidth * sensed.rate_hz)
    parts = [
        sensed[rows.start + ends : rows.stop - ends]
        for rows in sensed.segments
        if rows.stop - rows.start > 4 * ends
    ]
    return Samples.concatenate(parts) if parts else sensed


def raw_recording(recording: Recording, torque: str | None = None) -> Recording:
    """Name the sensors' channels q_1 … and the torques tau_1 …."""
    sensor = next((name for name in RAW if recording.count(name)), None)
    chosen = torque or next((x for x in ("tau", "command") if recording.count(x)), "")
    if sensor is None or not recording.count(chosen):
        raise RecordingError(
            f"{recording.source} needs sensor readings (volts_1 … or q_1 …) and "
            f"torques (tau_1 … or command_1 …). Found: {', '.join(recording.channels)}."
        )
    channels: dict[str, Channel] = {}
    for name, source in (("q", sensor), ("tau", chosen)):
        for j in range(recording.count(source)):
            channels[f"{name}_{j + 1}"] = recording[f"{source}_{j + 1}"]
    return Recording.from_channels(
        channels, joint_names=recording.joint_names, source=recording.source
    )


def check_readings(sensed: Samples, names: tuple[str, ...]) -> None:
    """Refuse readings of sensors that saturate or do not move.

    Raises:
        RecordingError: Naming the joint and the remedy.
    """
    if sensed.dof != len(names):
        raise ArgumentError(
            f"The samples have {sensed.dof} joints, but the arm has {len(names)}."
        )
    if not sensed.has_torque:
        raise RecordingError("The samples hold no joint torques; nothing to weigh.")
    for j, name in enumerate(names):
        reading = sensed.q[:, j]
        span = float(np.ptp(reading)) if reading.size else 0.0
        if span <= 1e-6 * max(1.0, float(np.max(np.abs(reading), initial=0.0))):
            raise RecordingError(
                f"{name} does not move in this recording. Move every joint that is to "
                "be calibrated, or look at its sensor."
            )


def check_saturation(recording: Recording, sensor: str, names: tuple[str, ...]) -> None:
    """Refuse raw readings that stay at the end of a converter's range."""
    for j, name in enumerate(names):
        values = recording[f"{sensor}_{j + 1}"].values
        moving = np.ptp(values) > 0 if values.size else False
        if not moving:
            continue
        for end in (values.max(), values.min()):
            stuck = _longest_run(values == end)
            if stuck > max(20, 0.02 * values.size) and stuck > _longest_rest(values):
                raise RecordingError(
                    f"{name}: the sensor rests at {end:.6g}, the end of its range, for "
                    f"{stuck} samples in a row: it is saturated. Move less far, or "
                    "lower the sensor's amplification."
                )


def _longest_rest(values: np.ndarray) -> int:
    """Longest run of equal readings away from both ends of the range."""
    inside = (values != values.max()) & (values != values.min())
    return _longest_run((np.diff(values, prepend=np.nan) == 0.0) & inside)


def _longest_run(is_true: np.ndarray) -> int:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_true, [0]])))
    return int(np.max(edges[1::2] - edges[::2], initial=0))


# Calibrate sensors from a recording alone: separable nonlinear least squares.

_SHARE = 0.02
"""Error expected of torques, as a share of them, before residuals are known."""

_GOOD = (0.03 / _SHARE) ** 2
"""Cost per torque when 3 % of them stay unexplained."""

_FEW = 300
"""Samples that are enough to find the right valley."""


def calibrate_recording(
    structure: Structure | Arm,
    recording: Recording | Samples | Sequence[Recording],
    *,
    alpha: ArrayLike | None = None,
    beta: ArrayLike | None = None,
    gain_range: float | None = None,
    offset_range: float = np.pi,
    cutoff_hz: float | None = 10.0,
    torque: str | None = None,
    outlook: Observability | None = None,
    starts: int = 256,
    seed: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> Calibration:
    """Find θ = α s + β of every joint from readings and torques.

    The arm's parameters are unknown too, but the torques are linear in them: they are
    eliminated, and what is left is searched from many starting points.

    Args:
        structure: The arm, or the arm and what is known of it.
        recording: Readings `volts_1 …` (or `q_1 …`) and torques; or samples whose q,
            qd, qdd are in the sensors' units.
        alpha, beta: First guess; without one gains are guessed from the readings'
            span, of either sign.
        gain_range: Factor by which gains may differ from the guess, 1.3 by default;
            without a guess whatever the joints' limits allow.
        offset_range: How far offsets may differ from the guess in [rad]; all round by
            default.
        cutoff_hz: Low-pass of the recording in [Hz]; well above the motion, or the
            harmonics of gravity's torque are lost. Chosen from the data when None.
        torque: Channel of the torques, such as `command`; `tau` where it is.
        outlook: What can be calibrated, from `calibratable`, if it was asked already.
        starts: Places to look at for each combination of the gains' signs.
        seed: Of the starting points.
        progress: Called with what is being done and how much of it is done.

    Raises:
        NotIdentifiable: If nothing can be calibrated, or friction hides gravity.
        NotPhysical: If only an impossible arm would explain the recording.
        RecordingError: If a joint does not move, or its sensor saturates.
    """
    from threadpoolctl import threadpool_limits

    known = as_structure(structure)
    sensed = _sensed(known, recording, cutoff_hz, torque)
    outlook = calibratable(known) if outlook is None else outlook
    if not outlook.is_sought.any():
        raise NotIdentifiable(
            f"No sensor of {known.arm.name} can be calibrated: "
            f"{outlook.prospects[-1].reason}."
        )
    domain = Domain.of(known, sensed, alpha, beta, gain_range, offset_range)
    spread = (gain_range or (1.3 if alpha is not None else 1.5)) - 1.0
    spread = float(np.clip(spread, 1e-3, 0.5))
    projector = Projector(known, sensed, _first_std(sensed))
    with threadpool_limits(limits=1, user_api="blas"):  # small blocks: one is faster
        best = _best(projector, domain, outlook, starts, seed, progress)
        prior = _prior(known, best.projected.point, outlook, spread)
        refined, projector = _refined(projector, best.projected, outlook, prior)
        is_free = _is_free(outlook, prior)
        return outcome(projector, refined, outlook, domain, prior, is_free)


def _sensed(
    known: Structure,
    recording: Recording | Samples | Sequence[Recording],
    cutoff_hz: float | None,
    torque: str | None,
) -> Samples:
    """Prepare and check what was recorded."""
    names = known.arm.coordinate_names
    if isinstance(recording, Recording | Samples):
        recording = [recording]  # type: ignore[list-item]
    parts = []
    for one in recording:
        if isinstance(one, Recording):
            check_saturation(raw_recording(one, torque), "q", names)
        parts.append(sensed_samples(one, cutoff_hz, torque))
        cutoff_hz = cutoff_hz or parts[0].preparation.cutoff_hz
    sensed = Samples.concatenate(parts)
    check_readings(sensed, names)
    return sensed


def _first_std(sensed: Samples) -> Float[np.ndarray, " dof"]:
    """Weights before any residual is known: a share of each joint's torque."""
    usual = np.sqrt(np.mean(sensed.tau**2, axis=0))
    return _SHARE * np.maximum(usual, 0.05 * max(float(usual.max()), 1e-12))


def _best(
    projector: Projector,
    domain: Domain,
    outlook: Observability,
    starts: int,
    seed: int,
    progress: Callable[[str, float], None] | None,
) -> Minimum:
    """Search on a thinned recording; refuse what no arm can be."""
    few = projector.thinned(max(1, len(projector.sensed) // _FEW))
    ways = 2 ** min(domain.span.size, 3)
    count = starts * ways if domain.is_blind else starts
    sought = outlook.is_sought
    places = [p.held(domain.guess, sought) for p in domain.points(count, seed)]
    found = search(few, domain, places, sought, _GOOD, progress)
    best = lowest(found)
    if not domain.is_blind and (best is None or best.projected.share > _GOOD):
        others = domain.reversed_points(starts * ways, seed)  # does one count back?
        found += search(few, domain, others, sought, _GOOD, progress)
        best = lowest(found)
    if best is None:
        _refuse(few, min(found, key=lambda m: m.projected.cost), outlook)
    return best


def _refuse(projector: Projector, nearest: Minimum, outlook: Observability) -> NoReturn:
    """Say why no arm explains a recording."""
    sought = [p.name for p in outlook.prospects if p.is_calibratable]
    weak = faint_joints(projector, nearest.projected)
    weak += rubbing_joints(projector, nearest.projected)
    hidden = [name for name in sought if name.rsplit(".", 1)[0] in weak]
    if hidden:
        raise refusal(projector, nearest.projected, hidden)
    raise NotPhysical(
        f"Only an arm that cannot exist explains this recording: {nearest.defect}. Is "
        "the sign of a sensor or of a torque reversed?"
    )


def _refined(
    projector: Projector, found: Projected, outlook: Observability, prior: Prior
) -> tuple[Projected, Projector]:
    """Descend on all samples, flaws free.

    Unknowns too faint to calibrate are freed as well, held by what was believed of
    them, so that what is not known of them shows in the others' uncertainty.
    """
    now = descend(projector, found.point, outlook.is_sought, None, 1e-6)
    start = replace(now.point, flaws=np.zeros_like(prior.point.flaws))
    return polish(projector, start, _is_free(outlook, prior), prior)


def _is_free(outlook: Observability, prior: Prior) -> np.ndarray:
    """What is moved in the end: all that can be seen, and all flaws."""
    return np.concatenate([outlook.is_visible, np.ones(prior.point.flaws.size, bool)])


def _prior(
    known: Structure, point: Point, outlook: Observability, spread: float
) -> Prior:
    """Wide for what is calibratable, the believed range for what is not."""
    width = [
        spread if p.quantity == "gain" else 2.0 * spread for p in outlook.prospects
    ]
    believed = known.flaws.std(known.arm.dof)
    flawless = replace(point, flaws=np.zeros(believed.size))
    sought = np.where(outlook.is_sought, 1e3, np.array(width))
    return Prior(flawless, np.concatenate([sought, believed]))
