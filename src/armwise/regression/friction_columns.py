"""Columns of friction terms over the samples of a run, state and low-pass included."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.errors import RecordingError
from armwise.regression.friction import DriveMotion, FrictionTerm, load_rows
from armwise.regression.low_pass import filter_reach, low_pass
from armwise.regression.signals import Signals, averaged_sign

if TYPE_CHECKING:
    from jaxtyping import Float, Int

# A chunk of 28 columns takes 1.8 MB; its margins are a tenth of it.
_CHUNK = 8000
"""Samples whose sharp columns are filtered at a time."""

# Nyquist's half, less a margin. Such waves are faster than a low-pass of a tenth of the
# rate lets through, and would else be taken for slow ones.
_FASTEST = 0.4
"""Frequency of a wave of the position, over the rate of the rows, from which on the
low-pass is known to leave nothing of it."""

_NOTHING = np.zeros(0)
"""What a form does not use."""


class FrictionColumns:
    """Columns of friction terms over the rows of one run.

    Args:
        terms: The terms.
        drive_rows: Joints that turn each drive.
        samples: The run.
        direction: Every drive's direction as the torque's low-pass shows it.
        heat: What multiplies |v| and v² of each drive for the power it dissipates:
            `heat_coefficients`; None if no term needs it.

    Raises:
        RecordingError: If a term depends on a temperature that was not measured.
    """

    def __init__(
        self,
        terms: Sequence[FrictionTerm],
        drive_rows: Float[np.ndarray, "drives dof"],
        samples: Signals,
        direction: Float[np.ndarray, "samples drives"],
        heat: Float[np.ndarray, "2 drives"] | None = None,
    ) -> None:
        self.terms = tuple(terms)
        self._rows, self._samples, self._direction = drive_rows, samples, direction
        # Where a drive came from, also before its rows were cut off.
        self._whole, self._first = samples.widened()
        # A ripple shakes the drive, faster than the low-pass lets through.
        self._measured = self._whole.measured
        self._loads = load_rows(drive_rows)
        self._heat = np.zeros((2, len(drive_rows))) if heat is None else heat
        self._warmths: dict[tuple[int, float], Warmth] = {}
        lacking = [t.name for t in self.terms if t.kind.uses_temperature]
        if lacking and samples.temperature is None:
            raise RecordingError(
                f"{lacking[0]} depends on the temperature of its drive, which these "
                "data do not hold. Record temperature_1 … of every joint, or identify "
                "without it."
            )
        self._stops: dict[tuple[int, float], _StopOperator] = {}
        self._chunk = slice(0, 0)
        self._filtered: dict[int, np.ndarray] = {}

    def fill(
        self, rows: slice, torque: Callable[[], Float[np.ndarray, "rows dof"]]
    ) -> list[Float[np.ndarray, " rows"]]:
        """Torque of a unit coefficient of every term.

        Args:
            rows: Which rows of the run, every so many of them where it has a step.
            torque: Returns the torque of the links, called if some term uses the load.
        """
        needs_load = any(term.kind.uses_load for term in self.terms)
        loads = torque() @ self._loads.T if needs_load else None
        there = slice(rows.start + self._first, rows.stop + self._first, rows.step)
        self._cover(there)
        first = self._chunk.start
        inside = slice(there.start - first, there.stop - first, rows.step)
        columns = []
        for k, term in enumerate(self.terms):
            if term.kind.is_sharp:
                columns.append(self._filtered[k][inside])
                continue
            load = np.zeros(0) if loads is None else loads[:, term.joint]
            direction = self._direction[rows, term.joint]
            temperature = np.zeros(0)
            if self._samples.temperature is not None:
                # A motor that several joints turn sits at the last of them.
                joint = int(np.flatnonzero(self._rows[term.joint])[-1])
                temperature = self._samples.temperature[rows, joint]
            motion = self._motion(term.joint, there, direction, load, temperature)
            columns.append(term.torque(motion))
        return columns

    def states(self, rows: Int[np.ndarray, " rows"]) -> Float[np.ndarray, "terms rows"]:
        """What the terms' springs are stretched by, or how warm drives are, at rows.

        In [rad] or [m], and in [W]; zero of terms without a state.
        """
        there, every = rows + self._first, slice(0, len(self._whole))
        values = np.zeros((len(self.terms), len(rows)))
        for k, term in enumerate(self.terms):
            if term.kind.remembers:
                stop = self._stop(term.joint, term.scale)
                values[k] = term.scale * stop.values(every)[there]
            elif term.kind.uses_heat:
                values[k] = self._warmth(term.joint, term.scale).values(every)[there]
        return values

    def _motion(
        self,
        drive: int,
        rows: slice,
        direction: np.ndarray,
        load: np.ndarray = _NOTHING,
        temperature: np.ndarray = _NOTHING,
    ) -> DriveMotion:
        """Motion of a drive over rows of the whole."""
        q, qd = (self._along(drive, x[rows]) for x in (self._measured, self._whole.qd))
        return DriveMotion(
            q,
            qd,
            direction,
            load,
            lambda width: self._stop(drive, width).values(rows),
            temperature,
            lambda constant: self._warmth(drive, constant).values(rows),
        )

    def _along(self, drive: int, signal: np.ndarray) -> np.ndarray:
        row = self._rows[drive]
        (joints,) = np.nonzero(row)
        if len(joints) == 1 and row[joints[0]] == 1.0:  # a column already: no copy
            return np.asarray(signal[:, joints[0]])
        return np.asarray(signal @ row)

    def _stop(self, drive: int, width: float) -> _StopOperator:
        if (drive, width) not in self._stops:
            q, segments = self._along(drive, self._whole.q), self._whole.segments
            before = self._travelled(drive)
            self._stops[drive, width] = _StopOperator(q, width, segments, before)
        return self._stops[drive, width]

    def _travelled(self, drive: int) -> Float[np.ndarray, " segments"]:
        """How far a drive had moved one way when a segment began, as far as it shows.

        The beginning of a log is cut off where a low-pass does not know it, and rows
        are missing before others: a drive that moves there has begun to earlier.
        """
        starts = [s.start for s in self._whole.segments if s.stop > s.start]
        speed = self._along(drive, self._whole.qd[starts])
        gains = self._along(drive, self._whole.qdd[starts]) * np.sign(speed)
        # From rest, at this acceleration; one that slows down had moved for longer.
        far = speed**2 / np.maximum(2.0 * gains, 1e-12)
        resolution = self._samples.speed_resolution
        least = float(np.abs(self._rows[drive]) @ resolution) if resolution else 0.0
        return np.where(np.abs(speed) > least, np.sign(speed) * far, 0.0)

    def _warmth(self, drive: int, constant: float) -> Warmth:
        if (drive, constant) not in self._warmths:
            self._warmths[drive, constant] = Warmth(
                self._whole, self._rows[drive], self._heat[:, drive], constant
            )
        return self._warmths[drive, constant]

    def _cover(self, rows: slice) -> None:
        """Filter the chunk that holds these rows, unless it is there."""
        if self._chunk.start <= rows.start and rows.stop <= self._chunk.stop:
            return
        last = self._first + len(self._samples)
        stop = min(last, max(rows.stop, rows.start + _CHUNK))
        self._chunk = slice(rows.start, stop)
        sharp = [k for k, term in enumerate(self.terms) if term.kind.is_sharp]
        if sharp:
            columns = self._sharp([self.terms[k] for k in sharp], self._chunk)
            self._filtered = dict(zip(sharp, columns, strict=True))

    def _sharp(
        self, terms: Sequence[FrictionTerm], rows: slice
    ) -> Float[np.ndarray, "terms rows"]:
        """Sharp terms through the torque's low-pass, segment by segment."""
        bandwidth, rate = self._samples.torque_bandwidth_hz, self._samples.rate_hz
        is_filtered = bandwidth is not None and bandwidth < 0.45 * rate
        margin = filter_reach(bandwidth, rate) if is_filtered and bandwidth else 0
        columns = np.empty((len(terms), rows.stop - rows.start))
        for segment in self._whole.segments:
            start, stop = max(segment.start, rows.start), min(segment.stop, rows.stop)
            if start >= stop:
                continue
            wide = slice(
                max(segment.start, start - margin), min(segment.stop, stop + margin)
            )
            motions = {
                drive: self._motion(drive, wide, self._sign(drive, wide))
                for drive in {term.joint for term in terms}
            }
            values = np.stack(
                [term.torque(motions[term.joint]) for term in terms],
                axis=1,
            )
            if is_filtered and bandwidth:
                for k, term in enumerate(terms):
                    if term.kind.repeats:
                        waves = np.abs(motions[term.joint].qd) / term.scale
                        values[waves > _FASTEST * rate, k] = 0.0
                # Held ends: an odd reflection would double the height of a step there.
                # All at once: a filter costs as much to start as to run.
                values = low_pass(values, bandwidth, rate, "constant")
            inside = slice(start - wide.start, stop - wide.start)
            columns[:, start - rows.start : stop - rows.start] = values[inside].T
        return columns

    def _sign(self, drive: int, rows: slice) -> Float[np.ndarray, " rows"]:
        """Direction of a drive as it is, before any low-pass."""
        resolution = self._samples.speed_resolution
        weights = np.abs(self._rows[drive])
        dead_band = float(weights @ resolution) if resolution else 0.0
        return averaged_sign(self._along(drive, self._whole.qd[rows]), dead_band)


class _StopOperator:
    """Stop operator of a position, stored at its turning points only.

    Between two turning points it is the position, shifted and clipped: its memory of a
    run is as long as the list of reversals.

    Args:
        q: The position.
        width: Where it slides.
        segments: Rows of uninterrupted motion.
        before: What it was stretched by, at most to its width, as each of them began.
    """

    def __init__(
        self,
        q: Float[np.ndarray, " samples"],
        width: float,
        segments: Sequence[slice],
        before: Float[np.ndarray, " segments"],
    ) -> None:
        self._q, self._width = q, width
        is_knot = np.zeros(len(q), dtype=bool)
        steps = np.diff(q)
        # A pause belongs to the motion before it.
        signs = np.sign(steps)
        moving = np.flatnonzero(signs)
        turns = moving[1:][signs[moving[1:]] != signs[moving[:-1]]]
        is_knot[turns] = True
        starts = np.array([s.start for s in segments if s.stop > s.start], dtype=int)
        is_knot[starts] = True
        self._knots = np.flatnonzero(is_knot)
        opens = dict(zip(starts.tolist(), before.tolist(), strict=True))
        values, z, last = [], 0.0, 0.0
        for k, position in zip(
            self._knots.tolist(), q[self._knots].tolist(), strict=True
        ):
            z = min(max(opens.get(k, z + position - last), -width), width)
            last = position
            values.append(z)
        self._values = np.array(values)

    def values(self, rows: slice) -> Float[np.ndarray, " rows"]:
        """Its values over some rows, from −1 to 1."""
        index = np.arange(rows.start, rows.stop, rows.step or 1)
        knot = np.searchsorted(self._knots, index, side="right") - 1
        moved = self._q[rows] - self._q[self._knots[knot]]
        return np.clip((self._values[knot] + moved) / self._width, -1.0, 1.0)


# A thousandth of its time constant, over which warmth changes by as much of the power.
_KNOTS = 1000.0
"""Knots per time constant at which warmth is stored; between them it is a line."""


def _lagging(
    power: Float[np.ndarray, " samples"], fade: float, start: float
) -> Float[np.ndarray, " samples"]:
    """Run yₖ = fade yₖ₋₁ + (1 − fade) xₖ over samples.

    Sums of xₖ / fadeᵏ, in parts over which that grows by e⁹ at most: scipy.signal takes
    longer to import than a log to identify.
    """
    fade = max(fade, 1e-300)
    part = max(1, int(9.0 / max(-np.log(fade), 1e-12)))
    values = np.empty(power.shape)
    for first in range(0, len(power), part):
        own = power[first : first + part]
        weights = fade ** np.arange(1, len(own) + 1)
        sums = (1.0 - fade) * np.cumsum(own / weights)
        values[first : first + part] = weights * (start + sums)
        start = float(values[first : first + part][-1])
    return values


class Warmth:
    """Dissipated power of a drive through a first-order lag, stored at knots.

    It starts cold. Where rows are missing the drive stood still; where time runs back
    another run begins, cold again.

    Args:
        samples: The run.
        row: What multiplies the joints' speeds for the drive's.
        heat: What multiplies |v| and v² for its power.
        constant: Time constant in [s].
    """

    def __init__(
        self,
        samples: Signals,
        row: Float[np.ndarray, " dof"],
        heat: Float[np.ndarray, " 2"],
        constant: float,
    ) -> None:
        period = 1.0 / max(samples.rate_hz, 1e-9)
        stride = max(1, int(constant / period / _KNOTS))
        parts = [(samples.time[rows], samples.qd[rows]) for rows in samples.segments]
        warmth, last = 0.0, None
        knots, values, first = [], [], 0
        for time, qd in parts:
            if not len(time):
                continue
            speed = qd @ row
            power = heat[0] * np.abs(speed) + heat[1] * speed**2
            gap = period if last is None else float(time[0]) - last
            warmth *= 0.0 if gap < 0.0 else np.exp(-max(gap - period, 0.0) / constant)
            step = (time[-1] - time[0]) / (len(time) - 1) if len(time) > 1 else period
            fade = float(np.exp(-step / constant))
            course = _lagging(power, fade, warmth)
            warmth, last = float(course[-1]), float(time[-1])
            index = np.append(np.arange(0, len(time) - 1, stride), len(time) - 1)
            knots.append(first + index)
            values.append(course[index])
            first += len(time)
        self._knots = np.concatenate([*knots, np.zeros(0, dtype=int)])
        self._values = np.concatenate([*values, np.zeros(0)])

    @property
    def largest(self) -> float:
        """The largest of its values in [W]."""
        return float(self._values.max(initial=0.0))

    def values(self, rows: slice) -> Float[np.ndarray, " rows"]:
        """Its values over some rows in [W]."""
        index = np.arange(rows.start, rows.stop, rows.step or 1)
        return np.interp(index, self._knots, self._values)
