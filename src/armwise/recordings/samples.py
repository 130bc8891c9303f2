"""Samples, clean motion and torque on one time base, and how they were prepared."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from armwise.errors import ArgumentError
from armwise.recordings.recording import Recording
from armwise.regression import friction_direction, through_torque_filter

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm

# Preparation: how samples come out of a recording, complete enough to be repeated.

VelocitySource = Literal["given", "measured", "position"]
DerivativeMethod = Literal["given", "differences", "spline"]


# Judgement.
LEAST_KNOWN_LAG = 1e-3
"""Standard error of a lag in [s] from which on it is hardly determined: what it would
be traded against, friction above all, is then known better than the lag."""

LONGEST_LAG = 0.1
"""Largest delay looked for, either way, in [s]: more than buses, filters and control
cycles of an arm add up to."""

UNKNOWN_LAG = LONGEST_LAG / 3**0.5
"""Standard deviation in [s] of a delay of which a log shows nothing: any up to the
longest, either way, are as likely."""


@dataclass(frozen=True)
class Preparation:
    """How samples come out of a recording; the defaults say: given as they are.

    The settings come first; `prepare(..., like=)` repeats them on other recordings.
    What they met in one recording follows, from `speed_resolution` on.

    Attributes:
        cutoff_hz: Cut-off of the zero-phase low-pass in [Hz]; None when not filtered.
        cutoff_is_automatic: Whether the cut-off was chosen from the spectra.
        sample_rate_hz: Rate before decimation in [Hz], for which the decimation is
            meant; None: the decimation holds at any rate.
        decimation: One sample kept out of so many.
        torque_bandwidth_hz: Low-pass the torque went through, ours or the robot's own,
            in [Hz]; what friction's steps look like in the torque. None: untouched.
        lag: Delay of the torque behind the motion, taken out, in [s].
        lag_std: How well that delay is known in [s], where it is to be fitted beside
            all parameters; None: it was given, or is not to be fitted.
        lag_doubt: How far a delay may be off in [s] that is not fitted beside them, as
            it is hardly determined or fast motion alone shows it; infinite where
            nothing does, None where it was given or fitted.
        torque_scale: What each joint's recorded torque was multiplied by, because the
            joints contradicted each other; empty where they do not.
        torque_scale_std: Standard deviation of each of these factors, relative.
        wrench_lag: Delay of the wrench, taken out, in [s].
        velocity_lag: Delay of the measured velocity, taken out, in [s].
        velocity: Whether velocity was measured or made from position.
        derivatives: Central differences of filtered signals, or a smoothing spline.
        ignores_slow: For each joint, whether rows in which it hardly moves are left out
            of a fit: its friction there is a little short of what it is in motion.
        speed_resolution: Speed below which a joint's direction is not known, per joint
            in [rad/s] or [m/s].
        rows_read: Rows of the recording that went in.
        rows_dropped: Why rows went missing → how many.
        gaps: Number of interruptions the samples were cut at.
        notes: What the user should know, in words.
    """

    cutoff_hz: float | None = None
    cutoff_is_automatic: bool = False
    sample_rate_hz: float | None = None
    decimation: int = 1
    torque_bandwidth_hz: float | None = None
    lag: float = 0.0
    lag_std: float | None = None
    lag_doubt: float | None = None
    torque_scale: tuple[float, ...] = ()
    torque_scale_std: tuple[float, ...] = ()
    wrench_lag: float = 0.0
    velocity_lag: float = 0.0
    velocity: VelocitySource = "given"
    derivatives: DerivativeMethod = "given"
    ignores_slow: tuple[bool, ...] = ()
    speed_resolution: tuple[float, ...] = ()
    rows_read: int = 0
    rows_dropped: tuple[tuple[str, int], ...] = ()
    gaps: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, kind in (
            ("velocity", VelocitySource),
            ("derivatives", DerivativeMethod),
        ):
            if getattr(self, name) not in get_args(kind):
                raise ArgumentError(
                    f"{name} must be one of {', '.join(get_args(kind))}, not "
                    f"{getattr(self, name)!r}."
                )

    @property
    def settings(self) -> Preparation:
        """The settings alone, without what they met in one recording."""
        return replace(
            self,
            cutoff_is_automatic=False,
            velocity="measured" if self.velocity == "measured" else "position",
            derivatives="spline" if self.derivatives == "spline" else "differences",
            speed_resolution=(),
            rows_read=0,
            rows_dropped=(),
            gaps=0,
            notes=(),
        )

    @property
    def low_pass_hz(self) -> float:
        """Cut-off of the low-pass in [Hz]; infinite when not filtered."""
        return np.inf if self.cutoff_hz is None else self.cutoff_hz

    @property
    def differentiation(self) -> str:
        """How velocity and acceleration were made, in words."""
        source = "measured velocity, " if self.velocity == "measured" else ""
        return source + self.derivatives


def joined(parts: Sequence[Preparation]) -> Preparation:
    """Describe several preparations as one; what differs between them is dropped."""
    common = {
        f.name: getattr(parts[0], f.name)
        for f in fields(Preparation)
        if len({getattr(p, f.name) for p in parts}) == 1
    }
    dropped: dict[str, int] = {}
    for part in parts:
        for why, count in part.rows_dropped:
            dropped[why] = dropped.get(why, 0) + count
    rates = [p.sample_rate_hz for p in parts if p.sample_rate_hz is not None]
    lag_stds = [p.lag_std for p in parts if p.lag_std is not None]
    doubts = [p.lag_doubt for p in parts if p.lag_doubt is not None]
    resolutions = [p.speed_resolution for p in parts if p.speed_resolution]
    common |= {
        "sample_rate_hz": float(np.mean(rates)) if rates else None,
        # One delay that has to be estimated is enough to look for it in all.
        "lag_std": max(lag_stds, default=None),
        "lag_doubt": max(doubts, default=None),
        # The coarsest of all, since one number serves all rows.
        "speed_resolution": tuple(map(max, zip(*resolutions, strict=True))),
        "rows_read": sum(p.rows_read for p in parts),
        "rows_dropped": tuple(dropped.items()),
        "gaps": sum(p.gaps for p in parts),
        "notes": tuple(dict.fromkeys(n for p in parts for n in p.notes)),
    }
    return Preparation(**common)


# Preparations in files.

LONGEST_STORED_LAG = 10.0
"""In [s]: torque and motion that are further apart are not of one log."""

_RATES = ("cutoff_hz", "sample_rate_hz", "torque_bandwidth_hz")


def preparation_from_dict(stored: dict[str, Any]) -> Preparation:
    """Return a preparation from a file that anyone may have changed.

    Raises:
        ValueError, TypeError, KeyError: If it is none.
    """
    dropped = tuple((str(why), int(rows)) for why, rows in stored["rows_dropped"])
    names = ("speed_resolution", "notes", "ignores_slow")
    lists = {name: tuple(stored[name]) for name in names}
    # Files of earlier versions know of no scale.
    factors = ("torque_scale", "torque_scale_std")
    lists |= {name: tuple(map(plain_number, stored.get(name, ()))) for name in factors}
    if not all(0.0 <= x < math.inf for name in factors for x in lists[name]):
        raise ValueError("a torque scale is none")
    for name in ("lag_std", "lag_doubt"):
        if stored.get(name) is not None:
            doubt = plain_number(stored[name])
            # Written so that NaN is refused; what is not known at all is infinite.
            if not doubt >= 0.0:
                raise ValueError(f"{name} is none")
            stored = stored | {name: min(doubt, LONGEST_STORED_LAG)}
    preparation = Preparation(**stored | lists | {"rows_dropped": dropped})
    for name in _RATES:
        rate = getattr(preparation, name)
        # From one sample a day to a gigahertz: beyond, filters have no meaning.
        if rate is not None and not 1e-5 <= plain_number(rate) <= 1e9:
            raise ValueError(f"{name} is {rate}")
    for name in ("lag", "wrench_lag", "velocity_lag"):
        if not abs(plain_number(getattr(preparation, name))) <= LONGEST_STORED_LAG:
            raise ValueError(f"{name} is none")
    if not all(0.0 <= plain_number(x) < math.inf for x in preparation.speed_resolution):
        raise ValueError("speed_resolution is none")
    for name in ("decimation", "rows_read", "gaps"):
        count = getattr(preparation, name)
        if type(count) is not int or not (name == "decimation") <= count < 2**53:
            raise ValueError(f"{name} is none")
    switches = (preparation.cutoff_is_automatic, *preparation.ignores_slow)
    if not all(type(switch) is bool for switch in switches):
        raise ValueError("a switch is neither on nor off")
    if not all(isinstance(note, str) for note in preparation.notes):
        raise ValueError("notes are no words")
    return preparation


def preparation_to_dict(preparation: Preparation) -> dict[str, Any]:
    """Return plain numbers and words, for JSON; nothing is further off than a limit."""
    plain = asdict(preparation)
    for name in ("lag_std", "lag_doubt"):
        if plain[name] is not None:
            plain[name] = min(plain[name], LONGEST_STORED_LAG)
    return plain


def plain_number(value: Any) -> float:
    """Return a number of a file; refuse words and switches."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("something else than a number")
    return float(value)


_OPTIONAL = ("wrench", "still", "stuck", "temperature", "reference", "jitter")
"""Signals that samples may do without."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Motion and torque, clean, on one time base, samples first.

    Attributes:
        time: In [s]; increasing within each segment.
        q, qd, qdd: Position, velocity, acceleration in [rad] or [m], per [s], per [s²].
        tau: Joint torque in [N m] or force in [N]; no columns if it was not measured.
        wrench: Force [N] and torque [N m] at the sensor, (fx, fy, fz, tx, ty, tz).
        starts: Index of the first sample of every uninterrupted segment.
        preparation: How they were made.
        arm: The arm that moved, where known.
        still: How much of what the filtered torque shows at a sample comes from
            moments at which a joint hardly moved, 0 to 1; None: not known.
        stuck: The same of moments at which a joint did not move at all, for longer than
            a reversal takes; however the low-pass rings about them.
        temperature: Of the joints' drives in [°C]; None: not measured.
        reference: Position that the joints were asked for; None: not recorded.
        jitter: What the low-pass took off the measured position; None: not known.
        whole: What these rows were cut from, and which of its rows is their first:
            friction has a history, and a low-pass mixes in what lies beyond the cut.
            None: they were not cut, or their motion was changed since.
    """

    time: Float[np.ndarray, " samples"]
    q: Float[np.ndarray, "samples dof"]
    qd: Float[np.ndarray, "samples dof"]
    qdd: Float[np.ndarray, "samples dof"]
    tau: Float[np.ndarray, "samples joints"]
    wrench: Float[np.ndarray, "samples 6"] | None = None
    starts: tuple[int, ...] = (0,)
    preparation: Preparation = field(default_factory=Preparation)
    arm: Arm | None = None
    still: Float[np.ndarray, "samples dof"] | None = None
    stuck: Float[np.ndarray, "samples dof"] | None = None
    temperature: Float[np.ndarray, "samples dof"] | None = None
    reference: Float[np.ndarray, "samples dof"] | None = None
    jitter: Float[np.ndarray, "samples dof"] | None = None
    whole: tuple[Samples, int] | None = None

    def __repr__(self) -> str:
        """One line, without the arrays."""
        span = self.time[-1] - self.time[0] if len(self.time) else 0.0
        name = f" of {self.arm.name}" if self.arm else ""
        return (
            f"<Samples{name}: {len(self.time)} of {self.q.shape[1]} joints over "
            f"{span:.4g} s in {len(self.starts)} segments>"
        )

    def __post_init__(self) -> None:
        for name in ("time", "q", "qd", "qdd", "tau", *_OPTIONAL):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _frozen(name, value))
        _check_shapes(self)
        _check_time(self)
        if self.whole is not None and not _is_cut_from(self, *self.whole):
            object.__setattr__(self, "whole", None)

    def __len__(self) -> int:
        return self.time.size

    def __getitem__(self, rows: slice) -> Samples:
        """Return some of the rows, with the segments that are left of them."""
        if not isinstance(rows, slice):
            raise ArgumentError("Samples are indexed by slices, such as data[:1000].")
        index = np.arange(len(self))[rows]
        if rows.step is not None and rows.step < 0:
            raise ArgumentError("Samples cannot run backwards; use a positive step.")
        segment = np.searchsorted(np.asarray(self.starts), index, side="right")
        # Rows whose segment differs from that of the row before begin one.
        new = np.flatnonzero(np.diff(segment, prepend=-1))
        cut = {n: getattr(self, n)[rows] for n in ("time", "q", "qd", "qdd", "tau")}
        for name in _OPTIONAL:
            value = getattr(self, name)
            cut[name] = None if value is None else value[rows]
        starts = tuple(map(int, new)) or (0,)
        return replace(self, **cut, starts=starts, whole=self._around(index, rows.step))

    def _around(self, index: np.ndarray, step: int | None) -> tuple[Samples, int]:
        """What rows are cut from, every so many of them, and which is their first."""
        whole, first = self.whole or (self, 0)
        first += int(index[0]) if index.size else 0
        if step is None or step == 1:
            return whole, first
        # Rows at the start are thinned out themselves, and nothing is before them.
        thin = whole[first % step :: step] if first >= step else whole
        return thin, first // step

    def widened(self, reach: int | None = None) -> tuple[Samples, int]:
        """Return them with rows that they were cut from, and which row is their first.

        Args:
            reach: Most rows on either side; all of them if None.
        """
        if self.whole is None or reach == 0:
            return self, 0
        whole, first = self.whole
        start = 0 if reach is None else max(first - reach, 0)
        stop = len(whole) if reach is None else first + len(self) + reach
        wide = replace(whole[start:stop], preparation=self.preparation, whole=None)
        return wide, first - start

    @property
    def dof(self) -> int:
        """Number of coordinates."""
        return int(self.q.shape[1])

    @property
    def measured(self) -> Float[np.ndarray, "samples dof"]:
        """Position before any low-pass, where that is known."""
        return self.q if self.jitter is None else self.q + self.jitter

    @property
    def has_torque(self) -> bool:
        """Whether joint torques were measured."""
        return bool(self.tau.shape[1])

    @cached_property
    def rate_hz(self) -> float:
        """Usual number of samples a second in [Hz]; zero for fewer than two."""
        # Ten thousand steps are enough for a median, and gaps do not move it.
        steps = np.diff(self.time[:10_000])
        return 1.0 / float(np.median(steps)) if steps.size else 0.0

    @cached_property
    def segments(self) -> tuple[slice, ...]:
        """Rows of every uninterrupted stretch of motion."""
        return tuple(slice(a, b) for a, b in pairwise((*self.starts, len(self))))

    @property
    def speed_resolution(self) -> tuple[float, ...]:
        """Speed below which each joint's direction is unknown; empty: not filtered."""
        return self.preparation.speed_resolution

    @property
    def torque_bandwidth_hz(self) -> float | None:
        """Low-pass the torque went through in [Hz]; None: untouched."""
        return self.preparation.torque_bandwidth_hz

    @property
    def lag_std(self) -> float | None:
        """How well the torque's delay is known in [s]; None: it was given."""
        return self.preparation.lag_std

    def low_passed(
        self, columns: Float[np.ndarray, "samples columns"]
    ) -> Float[np.ndarray, "samples columns"]:
        """Show functions of the motion as they look through the torque's low-pass."""
        return through_torque_filter(self, columns)

    def direction(
        self, weights: Float[np.ndarray, "motors dof"] | None = None
    ) -> Float[np.ndarray, "samples motors"]:
        """Return sign(w·q̇) as Coulomb friction shows it in the torque.

        Args:
            weights: w, one row per motor; the joints themselves when not given.
        """
        return friction_direction(self, weights)

    def split(self, fraction: float) -> tuple[Samples, Samples]:
        """Cut in two by row: the first part, to fit, and the rest, to validate."""
        if not 0.0 < fraction < 1.0:
            raise ArgumentError(
                f"The fraction must lie between 0 and 1, not {fraction}."
            )
        # In one part, not shuffled: filtered neighbours repeat each other.
        cut = round(fraction * len(self))
        return self[:cut], self[cut:]

    @classmethod
    def concatenate(cls, parts: Sequence[Samples]) -> Samples:
        """Join samples of several runs; each run stays its own segments."""
        if not parts:
            raise ArgumentError("There are no samples to join.")
        if len(parts) == 1:
            return parts[0]
        if len({(p.dof, p.tau.shape[1], p.wrench is None) for p in parts}) > 1:
            raise ArgumentError(
                "These samples differ in joints or signals and cannot be joined."
            )
        offsets = np.cumsum([0, *(len(p) for p in parts)])
        starts = [
            int(o) + s for o, p in zip(offsets, parts, strict=False) for s in p.starts
        ]
        blocks: dict[str, Any] = {
            name: np.concatenate([getattr(p, name) for p in parts])
            for name in ("time", "q", "qd", "qdd", "tau")
        }
        for name in _OPTIONAL:
            values = [getattr(p, name) for p in parts]
            is_known = all(value is not None for value in values)
            blocks[name] = np.concatenate(values) if is_known else None
        return cls(
            **blocks,
            starts=tuple(starts),
            preparation=joined([p.preparation for p in parts]),
            arm=parts[0].arm if all(p.arm is parts[0].arm for p in parts) else None,
        )


def _frozen(name: str, value: np.ndarray) -> np.ndarray:
    """Return a read-only float view, refusing what is not finite."""
    array = np.ascontiguousarray(value, dtype=float)
    if not np.all(np.isfinite(array)):
        row = int(np.argmin(np.isfinite(array.reshape(len(array), -1)).all(axis=1)))
        raise ArgumentError(
            f"{name} is not finite in row {row}. Remove such rows, or use prepare()."
        )
    # A view: the caller's own array stays writable.
    view = array.view()
    view.setflags(write=False)
    return view


def _is_cut_from(samples: Samples, whole: Samples, first: int) -> bool:
    """Whether samples still have the time and motion of some rows of a whole."""
    rows = slice(first, first + len(samples))
    return all(
        np.array_equal(getattr(samples, name), getattr(whole, name)[rows])
        for name in ("time", "q", "qd")
    )


def _check_shapes(samples: Samples) -> None:
    if samples.time.ndim != 1 or samples.q.ndim != 2:
        raise ArgumentError(
            f"time must be (N,) and q (N, n), not {samples.time.shape} and "
            f"{samples.q.shape}."
        )
    rows, dof = samples.q.shape
    expected = {
        "time": (rows,),
        "qd": (rows, dof),
        "qdd": (rows, dof),
        # No columns at all, where torque was not measured, or all of them.
        "tau": (rows, samples.tau.shape[-1] and dof),
        "wrench": (rows, 6),
        "still": (rows, dof),
        "stuck": (rows, dof),
        "temperature": (rows, dof),
        "reference": (rows, dof),
        "jitter": (rows, dof),
    }
    for name, shape in expected.items():
        value = getattr(samples, name)
        if value is not None and value.shape != shape:
            raise ArgumentError(
                f"{name} has shape {value.shape}, but q has {rows} rows of {dof} "
                f"joints, so {shape} is needed."
            )


def _check_time(samples: Samples) -> None:
    starts = np.asarray(samples.starts, dtype=int)
    n = len(samples)
    if starts.size == 0 or starts[0] != 0 or np.any(np.diff(starts) <= 0):
        raise ArgumentError("starts must begin with 0 and increase.")
    if n and starts[-1] >= n:
        raise ArgumentError(f"starts names row {starts[-1]}, but there are {n} rows.")
    back = np.flatnonzero(np.diff(samples.time) <= 0) + 1
    bad = np.setdiff1d(back, starts)
    if bad.size:
        row = int(bad[0])
        raise ArgumentError(
            f"time does not increase in row {row} ({samples.time[row - 1]:.9g} s, then "
            f"{samples.time[row]:.9g} s). Use prepare(), or name the row in starts."
        )


ERROR_LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Fractions of errors whose sizes are kept, for bands of any level."""


def error_within(
    errors: Float[np.ndarray, "*joints levels"], level: float
) -> Float[np.ndarray, "*joints"]:
    """Return what a fraction of errors is within, from those of `ERROR_LEVELS`."""
    # No error is below zero; beyond the last level nothing is known.
    levels = (0.0, *ERROR_LEVELS)
    return np.apply_along_axis(
        lambda own: np.interp(level, levels, [0.0, *own]), -1, errors
    )


@dataclass(frozen=True, eq=False)
class PredictionBand:
    """An interval at every sample, of torques or of positions.

    Attributes:
        lower, upper: Its ends.
        level: Fraction of samples that it shall hold.
    """

    lower: Float[np.ndarray, "samples dof"]
    upper: Float[np.ndarray, "samples dof"]
    level: float

    @property
    def width(self) -> Float[np.ndarray, " dof"]:
        """Mean width of each joint's interval."""
        return np.asarray((self.upper - self.lower).mean(axis=0))

    def holds(
        self, measured: Float[np.ndarray, "samples dof"]
    ) -> Float[np.ndarray, " dof"]:
        """Fraction of each joint's samples that are inside."""
        inside = (measured >= self.lower) & (measured <= self.upper)
        return np.asarray(inside.mean(axis=0))


# Summary of a log: its channels, and the samples it was prepared to.


def summarise_log(recording: Recording, samples: Samples) -> dict[str, Any]:
    """Return the channels of a log, and how it was prepared, by name."""
    return {
        "source": recording.source,
        "joints": recording.joint_names,
        "duration_s": recording.duration,
        "skipped_rows": recording.skipped_rows,
        "channels": [_channel(recording, name) for name in recording.channels],
        "samples": len(samples),
        "rate_hz": samples.rate_hz,
        "segments": len(samples.segments),
        "preparation": samples.preparation,
        "ranges": {
            name: {"min": signal.min(axis=0), "max": signal.max(axis=0)}
            for name in ("q", "qd", "qdd", "tau")
            if (signal := getattr(samples, name)).size
        },
    }


def _channel(recording: Recording, name: str) -> dict[str, Any]:
    channel = recording[name]
    steps = np.diff(channel.time)
    return {
        "name": name,
        "unit": channel.unit,
        "rows": int(channel.time.size),
        # All three: a median alone hides gaps and doubled stamps.
        "step_ms": [1e3 * float(f(steps)) for f in (np.min, np.median, np.max)],
        "min": float(np.nanmin(channel.values)),
        "max": float(np.nanmax(channel.values)),
    }
