"""Calibration from a recording alone: separable nonlinear least squares.

Prepare the samples in the sensors' units, search on a few of them, refine on all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from armwise.arms import Arm
from armwise.calibration.observability import Observability, calibratable
from armwise.calibration.refine import GaussianPrior, descend, refine
from armwise.calibration.result import (
    Calibration,
    friction_dominated,
    joints_without_gravity,
    refusal,
    result_of,
)
from armwise.calibration.search import (
    Minimum,
    SearchRegion,
    described_points,
    lowest,
    search,
)
from armwise.calibration.structure import Structure, as_structure
from armwise.calibration.variable_projection import (
    SETTLING,
    Projector,
    SensorPoint,
)
from armwise.errors import ArgumentError, NotIdentifiable, NotPhysical, RecordingError
from armwise.progress import Progress
from armwise.recordings import Channel, Preparation, Recording, Samples, prepare
from armwise.regression import few_threads

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from numpy.typing import ArrayLike

_TORQUE_ERROR = 0.02
"""Error expected of torques, as a fraction of them, before residuals are known."""

_GOOD_COST = (0.03 / _TORQUE_ERROR) ** 2
"""Cost per torque when residuals are 3 % of them: friction and elasticity leave that
much in a right solution, a wrong minimum leaves tens of per cent."""

_SEARCH_SAMPLES = 300
"""Samples of a search: ten times as many rows as unknowns, so that the right minimum is
the lowest; its last digits come from all samples later."""


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
    progress: Progress | None = None,
) -> Calibration:
    """Estimate θ = α s + β of every joint from readings and torques.

    The arm's parameters are unknown too, but the torques are linear in them: they are
    eliminated, and gains and offsets are searched for from many starting points.

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
        outlook: What can be calibrated, from `calibratable`; computed when None.
        starts: Starting points to rank for each combination of the gains' signs.
        seed: Of the starting points.
        progress: Called with the step and the fraction that is done.

    Raises:
        NotIdentifiable: If nothing can be calibrated, or friction hides gravity.
        NotPhysical: If only an impossible arm would explain the recording.
        RecordingError: If a joint does not move, or its sensor saturates.
    """
    structure = as_structure(structure)
    sensed = _sensed(structure, recording, cutoff_hz, torque)
    outlook = calibratable(structure) if outlook is None else outlook
    if not outlook.is_sought.any():
        raise NotIdentifiable(
            f"No sensor of {structure.arm.name} can be calibrated: "
            f"{outlook.prospects[-1].reason}."
        )
    region = SearchRegion.from_guess(
        structure, sensed, alpha, beta, gain_range, offset_range
    )
    projector = Projector(structure, sensed, first_std(sensed))
    with few_threads():
        best = _best(projector, region, outlook, starts, seed, progress)
        # Unknowns that no data determine may vary by the range of the guess.
        width = (gain_range or (1.3 if alpha is not None else 1.5)) - 1.0
        width = float(np.clip(width, 1e-3, 0.5))
        prior = _prior(structure, best.problem.point, outlook, width)
        is_free = _is_free(outlook, prior)
        now = descend(projector, best.problem.point, outlook.is_sought, None, 1e-6)
        start = replace(now.point, flaws=np.zeros_like(prior.point.flaws))
        solution, projector = refine(projector, start, is_free, prior)
        return result_of(projector, solution, outlook, region, prior, is_free)


def first_std(sensed: Samples) -> Float[np.ndarray, " dof"]:
    """Weights before any residual is known: a fraction of each joint's torque."""
    rms = np.sqrt(np.mean(sensed.tau**2, axis=0))
    # A joint of little torque shall not outweigh the others: a twentieth at least.
    return _TORQUE_ERROR * np.maximum(rms, 0.05 * max(float(rms.max()), 1e-12))


def _best(
    projector: Projector,
    region: SearchRegion,
    outlook: Observability,
    starts: int,
    seed: int,
    progress: Progress | None,
) -> Minimum:
    """Search on a thinned recording; refuse what no arm can be."""
    few = projector.thinned(max(1, len(projector.sensed) // _SEARCH_SAMPLES))
    # Signs double the region per joint; beyond three joints the count stays payable.
    signs = 2 ** min(region.span.size, 3)
    count = starts * signs if region.is_sign_unknown else starts
    sought = outlook.is_sought
    # Where the description has masses, begin where they explain the torques best.
    points = [
        p.held(region.guess, sought)
        for p in described_points(few, region, sought, seed)
    ]
    minima = search(few, region, points, sought, _GOOD_COST, progress) if points else []
    best = lowest(minima)
    is_good = best is not None and best.problem.mean_cost <= _GOOD_COST
    if not is_good:
        points = [p.held(region.guess, sought) for p in region.points(count, seed)]
        minima += search(few, region, points, sought, _GOOD_COST, progress)
        best = lowest(minima)
        is_good = best is not None and best.problem.mean_cost <= _GOOD_COST
    if not region.is_sign_unknown and not is_good:
        # Perhaps a sensor counts backwards, whatever the guess says.
        points = region.reversed_points(starts * signs, seed)
        minima += search(few, region, points, sought, _GOOD_COST, progress)
        best = lowest(minima)
    if best is None:
        _refuse(few, min(minima, key=lambda m: m.problem.cost), outlook)
    return best


def _refuse(projector: Projector, nearest: Minimum, outlook: Observability) -> NoReturn:
    """Say why no arm explains a recording."""
    sought = [p.name for p in outlook.prospects if p.is_calibratable]
    weak = joints_without_gravity(projector, nearest.problem)
    weak += friction_dominated(projector, nearest.problem)
    hidden = [name for name in sought if name.rsplit(".", 1)[0] in weak]
    if hidden:
        raise refusal(projector, nearest.problem, hidden)
    raise NotPhysical(
        f"Only an arm that cannot exist explains this recording: {nearest.defect}. Is "
        "the sign of a sensor or of a torque reversed?"
    )


def _is_free(
    outlook: Observability, prior: GaussianPrior
) -> Bool[np.ndarray, " unknowns"]:
    """What is estimated in the end: all that is observable at all, and all flaws.

    Unknowns too faint to calibrate are free as well, held by their prior, so that their
    own uncertainty adds to that of the others.
    """
    return np.concatenate([outlook.is_visible, np.ones(prior.point.flaws.size, bool)])


def _prior(
    structure: Structure, point: SensorPoint, outlook: Observability, width: float
) -> GaussianPrior:
    """Wide for what is calibratable, the range of the guess for what is not."""
    range_std = np.array(
        [width if p.quantity == "gain" else 2.0 * width for p in outlook.prospects]
    )
    flaw_std = structure.flaws.std(structure.arm.dof)
    flawless = replace(point, flaws=np.zeros(flaw_std.size))
    # A thousand radians: no prior at all, but finite.
    unknown_std = np.where(outlook.is_sought, 1e3, range_std)
    return GaussianPrior(flawless, np.concatenate([unknown_std, flaw_std]))


# Samples in the sensors' own units, and whether they can be used.

_SENSOR_CHANNELS = ("volts", "q")
"""Channels of a joint's sensor; the first that is recorded is used."""

_SATURATED_SAMPLES, _SATURATED_FRACTION = 20, 0.02
"""A reading is saturated if it stays at an end of its range for this many samples and
this fraction of the recording: turning points of slow motion are shorter."""


def sensed_samples(
    recording: Recording | Samples,
    cutoff_hz: float | None = None,
    torque: str | None = None,
    like: Preparation | None = None,
) -> Samples:
    """Prepare a recording with positions in the sensors' units.

    Args:
        recording: With `volts_1 …` or `q_1 …` and torques; samples are taken as they
            are.
        cutoff_hz: Low-pass in [Hz]; chosen from the data when None.
        torque: Channels to take torques from: `tau`, or `command` when that is all
            there is.
        like: How to prepare it, if that is known.
    """
    if isinstance(recording, Samples):
        return recording
    raw = raw_recording(recording, torque)
    return _settled(prepare(raw, cutoff_hz, velocity="position", like=like))


def _settled(sensed: Samples) -> Samples:
    """Drop the ends of segments, which disturb the low-pass of the torques."""
    bandwidth = sensed.preparation.torque_bandwidth_hz
    if bandwidth is None:
        return sensed
    ends = round(SETTLING / bandwidth * sensed.rate_hz)
    parts = [
        sensed[rows.start + ends : rows.stop - ends]
        for rows in sensed.segments
        if rows.stop - rows.start > 4 * ends
    ]
    return Samples.concatenate(parts) if parts else sensed


def raw_recording(recording: Recording, torque: str | None = None) -> Recording:
    """Name the sensors' channels q_1 … and the torques tau_1 …."""
    sensor = next((name for name in _SENSOR_CHANNELS if recording.count(name)), None)
    channel = torque or next((x for x in ("tau", "command") if recording.count(x)), "")
    if sensor is None or not recording.count(channel):
        raise RecordingError(
            f"{recording.source} needs sensor readings (volts_1 … or q_1 …) and "
            f"torques (tau_1 … or command_1 …). Found: {', '.join(recording.channels)}."
        )
    channels: dict[str, Channel] = {}
    for name, source in (("q", sensor), ("tau", channel)):
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
            f"The samples have {sensed.dof} joints, but the arm has {len(names)}: "
            f"{', '.join(names)}. Name the description of the arm that was recorded."
        )
    if not sensed.has_torque:
        raise RecordingError(
            "The samples hold no joint torques; nothing to calibrate against."
        )
    for j, name in enumerate(names):
        reading = sensed.q[:, j]
        span = float(np.ptp(reading)) if reading.size else 0.0
        # Rounding of a constant, whatever its unit.
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
            least = max(_SATURATED_SAMPLES, _SATURATED_FRACTION * values.size)
            # An arm that rests elsewhere for as long may rest at an end as well.
            if stuck > least and stuck > _longest_rest(values):
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


def _sensed(
    structure: Structure,
    recording: Recording | Samples | Sequence[Recording],
    cutoff_hz: float | None,
    torque: str | None,
) -> Samples:
    """Prepare and check recordings."""
    names = structure.arm.coordinate_names
    if isinstance(recording, Recording | Samples):
        recording = [recording]  # type: ignore[list-item]
    parts = []
    for one in recording:
        if isinstance(one, Recording):
            check_saturation(raw_recording(one, torque), "q", names)
        parts.append(sensed_samples(one, cutoff_hz, torque))
        # The first recording's cut-off for all: they are fitted together.
        cutoff_hz = cutoff_hz or parts[0].preparation.cutoff_hz
    sensed = Samples.concatenate(parts)
    check_readings(sensed, names)
    return sensed
