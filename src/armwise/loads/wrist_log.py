"""Logs of a wrist sensor without joints: wrench, accelerometer, orientation.

Each has a clock of its own, the accelerometer axes and a unit of its own. Gravity, as
the orientation shows it, says how the axes lie and which sign the wrench has; what
shakes both says how late the accelerometer is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import EstimateWarning, RecordingError
from armwise.loads.problem import LEAST_SPEED, WristSamples, refuse_saturation
from armwise.recordings import WRENCH_NAMES, Recording, low_pass, read_recording

if TYPE_CHECKING:
    from jaxtyping import Float

GRAVITY = 9.81
"""Free fall in [m/s²]; it differs by 0.3 % over the Earth, and a mass with it."""

_ACCELEROMETER = ("ax", "ay", "az")
_MATRIX = tuple(f"r{i}{j}" for i in (1, 2, 3) for j in (1, 2, 3))
_QUATERNIONS = (("qx", "qy", "qz", "qw"), ("quat_x", "quat_y", "quat_z", "quat_w"))

_STAMP_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Stamps since 1970 beyond these sizes count nano-, micro- or milliseconds: in seconds
they would lie a thousand years ahead."""

_SLOW_HZ = 2.0
"""Low-pass in [Hz] under which an arm's acceleration is small beside gravity."""

_MOTION_HZ = 10.0
"""Low-pass in [Hz] of the angular velocity: a tenth of a period of the orientation's
usual 100 Hz, above which twice differentiated angles are noise."""

_UNITS = (GRAVITY, 1.0, GRAVITY / 1000.0)
"""Units of accelerometers in [m/s²]: g, m/s², mg."""

_TURNING = 0.99
"""Fraction of gravity's turning below half the band that is used."""

_LARGEST_LAG = 0.05
"""Delays in [s] that are looked for, either way."""

_CONTACT = 0.1
"""Slow force beyond the load's, as a fraction of its weight, that counts as contact:
misalignments and a drifting zero leave a few per cent."""

_BEGINNING = 0.05
"""Fraction of a run, its beginning, in which the tool is taken to be free."""


@dataclass(frozen=True, eq=False)
class WristLog:
    """What was measured at a wrist, every signal with its own clock.

    Attributes:
        wrench_time, wrench: In [s]; force [N] and torque [N m], (n, 6).
        orientation_time, orientation: Rotation of the sensor in the world, (n, 3, 3).
        acceleration_time, acceleration: As read, any axes and unit; empty if there is
            no accelerometer.
        is_static: Whether every row is one pose at rest, without times.
        source: For messages.
    """

    wrench_time: Float[np.ndarray, " wrenches"]
    wrench: Float[np.ndarray, "wrenches 6"]
    orientation_time: Float[np.ndarray, " orientations"]
    orientation: Float[np.ndarray, "orientations 3 3"]
    acceleration_time: Float[np.ndarray, " accelerations"]
    acceleration: Float[np.ndarray, "accelerations 3"]
    is_static: bool = False
    source: str = "log"


@dataclass(frozen=True, eq=False)
class Accelerometer:
    """How an accelerometer reads what the wrist sensor feels.

    Attributes:
        rotation: Its axes as columns, in the sensor's.
        bias: Its zero, in its unit.
        unit: One of its units in [m/s²].
        axis_lags: How late its stamps are beside the wrench's in [s], axis by axis:
            some are read one after the other, and stamped once.
        lag: How late they are beside the beginning of a reading.
        lag_std: Standard deviation of that, with where in its period a wrench is read.
    """

    rotation: Float[np.ndarray, "3 3"]
    bias: Float[np.ndarray, " 3"]
    unit: float
    axis_lags: Float[np.ndarray, " 3"]
    lag: float
    lag_std: float


@dataclass(frozen=True, eq=False)
class WristPreparation:
    """Motion and wrench on one time base, and what was found on the way.

    Attributes:
        samples: For `identify_load`; of static poses one segment each.
        accelerometer: None without one.
        sign: −1 where the log holds what the load exerts on the sensor.
        warnings: What the user should know.
    """

    samples: WristSamples
    accelerometer: Accelerometer | None
    sign: int
    warnings: tuple[EstimateWarning, ...] = ()


@dataclass(frozen=True, eq=False)
class Contact:
    """A force on the tool that is none of its load.

    Attributes:
        began, ended: First and last time in [s] at which it counts, from the log's
            beginning.
        wrench: Where it is largest: force [N] and torque [N m] on the sensor's frame,
            with the sign of the prepared wrench.
    """

    began: float
    ended: float
    wrench: Float[np.ndarray, " 6"]

    @property
    def force(self) -> float:
        """Size of the largest force in [N]."""
        return float(np.linalg.norm(self.wrench[:3]))


def find_contact(
    samples: WristSamples, parameters: Float[np.ndarray, " 10"]
) -> Contact | None:
    """Look for slow forces that neither gravity nor motion of the load explains.

    Slower than 2 Hz: vibration, and errors of accelerations, are faster. Counted from
    the beginning of the run, in which the tool is taken to be free.

    Args:
        samples: Motion and wrench.
        parameters: The load; what was not determined of it counts as zero.
    """
    from armwise.dynamics import wrench_regressor

    rate = 1.0 / float(np.median(np.diff(samples.time)))
    A = wrench_regressor(samples.acceleration, samples.omega, samples.alpha)
    extra = _smooth(samples.wrench - A @ np.nan_to_num(parameters), _SLOW_HZ, rate)
    extra = extra - np.median(extra[: max(1, round(_BEGINNING * len(extra)))], axis=0)
    force = np.linalg.norm(extra[:, :3], axis=1)
    touched = np.flatnonzero(force > _CONTACT * abs(parameters[0]) * GRAVITY)
    if not touched.size:
        return None
    time = samples.time - samples.time[0]
    return Contact(
        float(time[touched[0]]), float(time[touched[-1]]), extra[int(np.argmax(force))]
    )


def read_wrist_log(paths: Sequence[str | Path]) -> WristLog:
    """Read wrench, orientation and accelerometer from one file or several.

    Columns fx, fy, fz, tx, ty, tz; r11 … r33 or qx, qy, qz, qw; ax, ay, az.

    Raises:
        RecordingError: If the wrench or the orientation is missing.
    """
    columns: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    static = False
    for path in paths:
        recording, has_times = _read(Path(path))
        static |= not has_times
        for name, channel in recording.channels.items():
            if name in columns:
                raise RecordingError(
                    f"{path} holds {name} once more: give the files of one run."
                )
            columns[name] = _seconds(channel.time), channel.values
    source = Path(paths[0]).name
    wrench = _table(columns, WRENCH_NAMES)
    orientation = _orientation(columns)
    if wrench is None or orientation is None:
        what = ", ".join(WRENCH_NAMES) if wrench is None else "r11 … r33 or qx … qw"
        raise RecordingError(
            f"{source}: without an arm, a load needs the sensor's orientation and its "
            f"wrench, and there is no {what}. Give all files of the run."
        )
    none = np.zeros(0), np.zeros((0, 3))
    stamps, acceleration = _table(columns, _ACCELEROMETER) or none
    return WristLog(
        wrench_time=wrench[0],
        wrench=wrench[1],
        orientation_time=orientation[0],
        orientation=orientation[1],
        acceleration_time=stamps,
        acceleration=acceleration,
        is_static=static,
        source=source,
    )


def _read(path: Path) -> tuple[Recording, bool]:
    """Read one file; rows without times are poses."""
    from armwise.recordings import LogMapping, TimeMapping

    try:
        return read_recording(path), True
    except RecordingError as problem:
        if 'no column "time"' not in str(problem):
            raise
    return read_recording(path, None, LogMapping(time=TimeMapping(rate_hz=1.0))), False


def _seconds(time: np.ndarray) -> np.ndarray:
    largest = float(np.abs(time).max(initial=0.0))
    scale = next((unit for least, unit in _STAMP_UNITS if largest > least), 1.0)
    return time * scale


def _table(
    columns: dict[str, tuple[np.ndarray, np.ndarray]], names: Sequence[str]
) -> tuple[np.ndarray, np.ndarray] | None:
    if not all(name in columns for name in names):
        return None
    time = columns[names[0]][0]
    return time, np.stack([columns[name][1] for name in names], axis=1)


def _orientation(
    columns: dict[str, tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray] | None:
    matrix = _table(columns, _MATRIX)
    if matrix is not None:
        R = matrix[1].reshape(-1, 3, 3)
        # Sizes first, for products of huge ones overflow; NaN, of a line that is cut
        # off, is not within anything.
        is_small = bool(np.abs(R).max() <= 1.01)
        if not is_small or np.abs(R @ R.transpose(0, 2, 1) - np.eye(3)).max() > 0.01:
            raise RecordingError("The orientation r11 … r33 is no rotation matrix.")
        return matrix[0], R
    for names in _QUATERNIONS:
        table = _table(columns, names)
        if table is not None:
            from scipy.spatial.transform import Rotation

            return table[0], Rotation.from_quat(table[1]).as_matrix()
    return None


def prepare_wrist(log: WristLog, rate_hz: float = 250.0) -> WristPreparation:
    """Put a wrist log on one time base, and find axes, unit, sign and lag.

    Args:
        log: The log.
        rate_hz: Of the time base in [Hz]; not above that of the wrench.

    Raises:
        RecordingError: If the clocks have no time in common, or the wrench does not
            follow gravity in the sensor's axes.
    """
    if log.is_static:
        return _poses(log)
    time = _common_time(log, rate_hz)
    R, omega, alpha = _turning(log, time)
    rate = 1.0 / float(time[1] - time[0])
    up = R[:, 2, :]  # world's z, which the world's third row is, in the sensor's axes
    speed = np.linalg.norm(omega, axis=1)
    # As it was read: a low-pass makes equal readings unequal.
    moving = np.interp(log.wrench_time, time, speed, 0.0, 0.0) > LEAST_SPEED
    refuse_saturation(log.wrench, moving)
    wrench = _averaged(log.wrench_time, log.wrench, time)
    sign, warnings = _wrench_sign(up, wrench, rate, log.source)
    wrench = sign * wrench
    samples = WristSamples(
        time, GRAVITY * up, omega, alpha, wrench, highest_hz=_band_hz(up, rate)
    )
    if not len(log.acceleration):
        note = EstimateWarning(
            "no-accelerometer",
            "Without an accelerometer the sensor's own acceleration counts as noise: "
            "move slowly, or log ax, ay, az.",
        )
        return WristPreparation(samples, None, sign, (*warnings, note))
    raw = _averaged(log.acceleration_time, log.acceleration, time)
    meter = _mounted(up, raw, rate)
    lags, lag, std = _reading_lag(*_delays(meter, log, wrench, time))
    # Nor does anyone know where in its period a wrench was read: ± 0.29 of it.
    period = float(np.median(np.diff(log.wrench_time)))
    std = float(np.hypot(std, period / np.sqrt(12.0)))
    # Ends that the shift leaves without readings repeat the last one.
    late = np.concatenate(
        [
            _averaged(log.acceleration_time, log.acceleration[:, [k]], time + lags[k])
            for k in range(3)
        ],
        axis=1,
    )
    felt = (late - meter.bias) @ meter.rotation.T * meter.unit
    meter = replace(meter, axis_lags=lags, lag=lag, lag_std=std)
    samples = replace(samples, acceleration=felt)
    return WristPreparation(samples, meter, sign, warnings)


def _common_time(log: WristLog, rate_hz: float) -> np.ndarray:
    clocks = {
        "the wrench": log.wrench_time,
        "the orientation": log.orientation_time,
        "the accelerometer": log.acceleration_time,
    }
    clocks = {name: time for name, time in clocks.items() if time.size}
    begin = max(clocks, key=lambda name: float(clocks[name][0]))
    end = min(clocks, key=lambda name: float(clocks[name][-1]))
    first, last = float(clocks[begin][0]), float(clocks[end][-1])
    if last - first < 1.0:
        raise RecordingError(
            f"{log.source}: {begin} begins at {first:.3f} s and {end} ends at "
            f"{last:.3f} s: their clocks have less than a second in common. Give files "
            "of one run, stamped by one clock."
        )
    rate = 1.0 / float(np.median(np.diff(log.wrench_time)))
    step = 1.0 / min(rate_hz, rate)
    return np.arange(first, last, step)


def _averaged(
    stamps: np.ndarray, values: np.ndarray, time: np.ndarray
) -> Float[np.ndarray, "times channels"]:
    """Values at other times; faster readings are smoothed to the new rate first."""
    rate, target = (
        1.0 / float(np.median(np.diff(stamps))),
        1.0 / float(time[1] - time[0]),
    )
    if rate > 1.2 * target:
        even = np.arange(stamps[0], stamps[-1], 1.0 / rate)
        values = np.stack([np.interp(even, stamps, x) for x in values.T], axis=1)
        values, stamps = _smooth(values, 0.4 * target, rate), even
    return np.stack([np.interp(time, stamps, x) for x in values.T], axis=1)


def _smooth(values: np.ndarray, cutoff_hz: float, rate_hz: float) -> np.ndarray:
    smoothed: np.ndarray = np.apply_along_axis(low_pass, 0, values, cutoff_hz, rate_hz)
    return smoothed


def _turning(
    log: WristLog, time: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Orientation, angular velocity and acceleration, in the sensor's axes."""
    from scipy.interpolate import CubicSpline

    spline = CubicSpline(log.orientation_time, log.orientation)
    R, rate = spline(time), 1.0 / float(time[1] - time[0])
    spin = np.swapaxes(R, 1, 2) @ spline(time, 1)
    omega = 0.5 * np.stack(
        [
            spin[:, 2, 1] - spin[:, 1, 2],
            spin[:, 0, 2] - spin[:, 2, 0],
            spin[:, 1, 0] - spin[:, 0, 1],
        ],
        axis=1,
    )
    omega = _smooth(omega, _MOTION_HZ, rate)
    return R, omega, np.gradient(omega, axis=0) * rate


def _band_hz(up: np.ndarray, rate: float) -> float:
    """Frequency that bounds the turning: above it, accelerometers measure noise.

    Noise in a regressor makes loads lighter; gravity that turns about is exact.
    """
    window = np.hanning(len(up))[:, None]
    power = np.abs(np.fft.rfft((up - up.mean(axis=0)) * window, axis=0)) ** 2
    total = np.cumsum(power.sum(axis=1))
    edge = int(np.searchsorted(total, _TURNING * total[-1]))
    return max(2.0 * edge * rate / len(up), 4.0 * rate / len(up))


def _wrench_sign(
    up: np.ndarray, wrench: np.ndarray, rate: float, source: str
) -> tuple[int, tuple[EstimateWarning, ...]]:
    """Which sign makes the force on the load follow −g, in these axes.

    At low frequencies f = ± m 9.81 up + zero: the part along `up` has the sign.
    """
    u, f = _smooth(up, _SLOW_HZ, rate), _smooth(wrench[:, :3], _SLOW_HZ, rate)
    return _sign(u - u.mean(axis=0), f - f.mean(axis=0), source)


def _sign(
    u: np.ndarray, f: np.ndarray, source: str
) -> tuple[int, tuple[EstimateWarning, ...]]:
    along = float(np.sum(u * f)) / max(float(np.sum(u * u)), 1e-12)
    explained = 1.0 - float(np.sum((f - along * u) ** 2) / np.sum(f**2))
    # Half: contact adds forces, but gravity turned about should show all the same.
    if explained < 0.5:
        raise RecordingError(
            f"{source}: gravity explains {100.0 * max(explained, 0.0):.0f} % of the "
            "force's changes in the axes of the orientation: the wrench is in another "
            "frame or unit, the clocks differ, or the tool is in contact throughout."
        )
    if along > 0:
        return 1, ()
    text = "The wrench was negated: it is what the load exerts on the sensor."
    return -1, (EstimateWarning("wrench-negated", text),)


def _mounted(up: np.ndarray, raw: np.ndarray, rate: float) -> Accelerometer:
    """Axes, zero and unit of an accelerometer, by what it reads of gravity.

    The rotation that fits best (Kabsch); two directions of gravity are enough.
    """
    u, a = _smooth(up, _SLOW_HZ, rate), _smooth(raw, _SLOW_HZ, rate)
    cu, ca = u - u.mean(axis=0), a - a.mean(axis=0)
    U, s, Vt = np.linalg.svd(cu.T @ ca)
    if s[1] < 1e-3 * s[0]:
        raise RecordingError(
            "Gravity turns about in one line only in this log, which leaves the axes "
            "of the accelerometer open. Turn the sensor about by 90° or more."
        )
    Q = U @ np.diag([1.0, 1.0, np.sign(np.linalg.det(U @ Vt))]) @ Vt
    size = float(np.sum((cu @ Q) * ca) / np.sum(cu**2))
    # The arm's own acceleration moves the slope by some per cent: of units near it,
    # the one that exists.
    unit = min(_UNITS, key=lambda x: abs(np.log(x * size / GRAVITY)))
    if abs(np.log(unit * size / GRAVITY)) > 0.1:
        raise RecordingError(
            f"The accelerometer reads gravity as {size:.3g}, which is neither 1 (g) "
            "nor 9.81 (m/s²) nor 1000 (mg): convert it."
        )
    bias = a.mean(axis=0) - GRAVITY / unit * (u.mean(axis=0) @ Q)
    return Accelerometer(Q, bias, unit, np.zeros(3), 0.0, np.inf)


def _delays(
    meter: Accelerometer, log: WristLog, wrench: np.ndarray, time: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How late each axis is beside the force along it, and standard deviations, (3,).

    By the phase of the cross spectrum, frequencies weighed by their coherence (Hannan
    and Thomson 1973), of windows that are shifted onto each other first: windows that
    see different moments draw the delay towards zero.
    """
    rate = 1.0 / float(time[1] - time[0])
    size = min(256, len(time) // 4)  # a second: a dozen overlapping parts in six
    force = _windows(wrench[:, :3] @ meter.rotation, size)
    f = np.fft.rfftfreq(size, 1.0 / rate)
    # Below is the motion, whose shape hides milliseconds; above, resonances of the
    # sensor and half the rate of the orientation.
    used = (f > 1.0) & (f < 50.0)
    turning = 2.0 * np.pi * f[used]
    lags, stds = np.zeros(3), np.zeros(3)
    for k in range(3):
        early = force[:, used, k]
        for reach in (_LARGEST_LAG, 0.1 * _LARGEST_LAG, 0.1 * _LARGEST_LAG):
            read = _averaged(
                log.acceleration_time, log.acceleration[:, [k]], time + lags[k]
            )
            late = _windows(read, size)[:, used, 0]
            lags[k] += _phase_delay(late, early, turning, reach)
        # Each sixth left out in turn: the jackknife, which also knows of stamps that
        # wander.
        parts = np.array_split(np.arange(len(late)), 6)
        others = np.array([
            _phase_delay(
                np.delete(late, part, 0), np.delete(early, part, 0), turning, reach
            )
            for part in parts
        ])  # fmt: skip
        stds[k] = np.sqrt(5.0 / 6.0 * np.sum((others - others.mean()) ** 2))
    return lags, np.maximum(stds, _LAG_STEP)


def _reading_lag(lags: np.ndarray, stds: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Delays of the axes, of a reading's beginning, and its standard deviation.

    Axes that are read in turn differ by one step each, x first or z first. A step of a
    reading is an axis's own, and no one knows where in it the value belongs: half-way,
    ± 0.29 of the step (uniform). One delay for all, where no step shows.
    """
    weight = 1.0 / stds**2
    order = np.arange(3.0) - np.sum(weight * np.arange(3.0)) / weight.sum()
    mean = float(np.sum(weight * lags) / weight.sum())
    spread = float(np.sum(weight * order**2))
    step = float(np.sum(weight * order * lags)) / spread
    deviation = lags - mean - step * order
    # One degree of freedom is left; scatter beyond the jackknife's widens the interval.
    wider = max(1.0, float(np.sum(weight * deviation**2)))
    # Twice its deviation: otherwise one delay is the simpler story.
    if abs(step) < 2.0 * np.sqrt(wider / spread):
        wider = max(1.0, 0.5 * float(np.sum(weight * (lags - mean) ** 2)))
        return np.full(3, mean), mean, float(np.sqrt(wider / weight.sum()))
    start = order[0] - 0.5 if step < 0.0 else order[2] + 0.5
    variance = wider * (1.0 / weight.sum() + start**2 / spread) + step**2 / 12.0
    return mean + step * order, mean + step * start, float(np.sqrt(variance))


_LAG_STEP = 1e-4
"""Steps in [s] in which delays are looked for; deviations are not below one."""


def _windows(x: np.ndarray, size: int) -> np.ndarray:
    """Spectra of windows that overlap by half, (windows, frequencies, channels)."""
    window = np.hanning(size)[:, None]
    parts = [x[i : i + size] for i in range(0, len(x) - size + 1, size // 2)]
    return np.stack([np.fft.rfft((y - y.mean(0)) * window, axis=0) for y in parts])


def _phase_delay(
    late: np.ndarray, early: np.ndarray, turning: np.ndarray, reach: float
) -> float:
    """Delay in [s] of one signal behind another, by their windows' spectra."""
    cross = np.sum(late * np.conj(early), axis=0)
    own, other = (np.sum(np.abs(x) ** 2, axis=0) for x in (late, early))
    coherence = np.clip(np.abs(cross) ** 2 / (own * other + 1e-300), 0.0, 0.99)
    weight = coherence / (1.0 - coherence)
    delays = np.arange(-reach, reach, _LAG_STEP)
    likely = weight @ np.cos(np.angle(cross)[:, None] + turning[:, None] * delays)
    at = min(max(int(np.argmax(likely)), 1), len(delays) - 2)
    # Between the steps, by a parabola.
    before, top, after = likely[at - 1 : at + 2]
    bend = before - 2.0 * top + after
    return float(delays[at] + _LAG_STEP * 0.5 * (before - after) / min(bend, -1e-300))


def _poses(log: WristLog) -> WristPreparation:
    """Every row is a pose: half a second of it, for `StaticPoses`."""
    count = len(log.wrench)
    if len(log.orientation) != count:
        raise RecordingError(
            f"{log.source}: {count} wrenches but {len(log.orientation)} orientations."
        )
    up = log.orientation[:, 2, :]
    cu = up - up.mean(axis=0)
    cf = log.wrench[:, :3] - log.wrench[:, :3].mean(axis=0)
    sign, warnings = _sign(cu, cf, log.source)
    each = 5
    still = np.zeros((each * count, 3))
    samples = WristSamples(
        np.arange(each * count) / 10.0,
        GRAVITY * np.repeat(up, each, axis=0),
        still,
        still,
        sign * np.repeat(log.wrench, each, axis=0),
        tuple(range(0, each * count, each)),
    )
    return WristPreparation(samples, None, sign, warnings)
