"""Periods of torque ripples: waves of a drive's position in what friction leaves.

A wave is tried beside other friction of its drive, as the torque's low-pass shows it:
of the waves of a gear, hundreds to a turn, only slow motion shows any. Its period is
chosen without the stretch that it is judged on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.identification.friction_guards import MOST
from armwise.recordings import Samples
from armwise.regression import (
    RIPPLES,
    SLOW_MOTION,
    Columns,
    FrictionTerm,
    low_pass,
    low_pass_gain,
)

if TYPE_CHECKING:
    from jaxtyping import Float

# Three periods in the range of motion tell a wave from a slope or a bow; four to the
# turn leave out what gravity and inertia do.
_LEAST_PERIODS, _LEAST_WAVES = 3.0, 4.0
"""Periods of a ripple in the range of a drive, and in a turn."""

# Four waves a turn of the motor through a gear of 160 to 1 are 640.
_MOST_WAVES = 700.0
"""Waves to a turn up to which they are looked for."""

# On drives without a ripple 0.13 at most, since the period is not chosen on the
# stretch that is judged; on those with one 0.3 and more.
_PLAIN_WAVE = 0.25
"""Squared error, of what other friction leaves, that a wave must explain on stretches
left out if it shows at the drive's usual speeds."""

# Slow motion is met at a few turning points only, where any wave explains something:
# up to 0.47 on real drives whose other logs show none, 0.5 to 0.95 on those of which
# every part shows the same.
_SLOW_WAVE = MOST
"""The same if only slow motion shows it, and other waves explain about as much."""

# On drives with a wave others explain a third of what it does, or half; on drives with
# none, and where turning points let many waves through, 0.58 and more.
_RIVAL = 0.5
"""Fraction of what a wave explains that no other may for it to stand out."""

_APART = 6.0
"""Steps of the grid from which on a wave is another one: beyond its own peak."""

_STRETCHES = 10
"""Stretches of a log of which each is left out."""

_PARTS, _ROWS = 10, 300
"""Parts of the log that are looked at, and rows of each."""

# A wave eight times as fast as the bandwidth would be taken for a slower one.
_INPUTS = 16.0
"""Rows per period of the torque's bandwidth that waves are sampled at."""

# Nyquist's two, and as many again for the filter's roll-off.
_OUTPUTS = 4
"""Every so manieth of these rows is compared."""

_REACH = 32
"""Rows beyond a part whose waves the low-pass carries into it: two periods."""

_FINENESS = 4.0
"""Wave numbers tried per wave in the range of motion: the phase at its ends is then
off by an eighth of a turn at most."""

_REFINED = 9
"""Wave numbers tried from one of the grid to the next but one, for the best ones."""

# Judgement: rows next to slow motion show it, by the low-pass, too.
_LEAST_SHOWN = 0.25
"""Fraction of a filtered row that comes from slow motion from which on it shows it."""

# Judgement: Stribeck's speeds are near the root, and more columns than these leave
# little of a short log.
_BESIDE = ("asymmetric", "root", "quadratic", "hysteresis")
"""Forms of friction that a wave is tried beside."""

_OFFERED = 4
"""Waves of a drive that are offered: turning points lie far apart, and several phases
from one to the next explain them alike."""

_RIDGE = 1e-3
"""Ridge beside columns of one: a wave that is hardly seen is not determined."""


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the log, thinned to what the torque's bandwidth needs.

    Attributes:
        q, speed: Motion of every drive, also a little before and after the part.
        first: Where the part begins in it.
        residual: What a first fit leaves of every joint's torque in the part.
        own: Columns of other friction of every joint in the part.
        band: Bandwidth of the torque in [Hz].
        rate: Rows a second.
    """

    q: Float[np.ndarray, "wide drives"]
    speed: Float[np.ndarray, "wide drives"]
    first: int
    residual: Float[np.ndarray, "rows dof"]
    own: tuple[Float[np.ndarray, "columns rows"], ...]
    band: float
    rate: float

    @property
    def inside(self) -> slice:
        """The part's rows."""
        return slice(self.first, self.first + len(self.residual))

    @property
    def response(self) -> Float[np.ndarray, "compared wide"]:
        """The torque's low-pass as a matrix, at rows that are compared."""
        whole = _response(len(self.q), self.band, self.rate)
        return np.asarray(whole[self.inside][::_OUTPUTS])


def ripple_terms(
    columns: Columns,
    runs: Sequence[Samples],
    parameters: Float[np.ndarray, " parameters"],
    friction: Sequence[FrictionTerm],
) -> tuple[FrictionTerm, ...]:
    """Sine and cosine of the wave that stands out of what friction leaves of a drive.

    Args:
        columns: What the torque is explained by without further friction.
        runs: The samples.
        parameters: Those of a first fit.
        friction: Terms that a wave is tried beside.
    """
    arm = columns.arm
    beside = tuple(term for term in friction if term.form in _BESIDE)
    parts = list(_parts(replace(columns, friction=beside), runs, parameters))
    terms: list[FrictionTerm] = []
    tried = {term.joint for term in friction}
    for joint, drive in enumerate(arm.coordinates):
        # A drive that leaves nothing but noise has no friction to try.
        if drive not in tried:
            continue
        for number in _waves(parts, joint, drive):
            name, period = arm.driven[drive].name, float(2.0 * np.pi / number)
            terms += [FrictionTerm(drive, name, form, period) for form in RIPPLES]
    return tuple(terms)


def _parts(
    columns: Columns, runs: Sequence[Samples], parameters: np.ndarray
) -> Iterator[_Part]:
    """Parts from all over the log."""
    terms = len(columns.friction)
    weights = columns.user @ np.append(parameters, np.zeros(terms))
    first = columns.count - columns.lags.size - terms
    friction = range(first, first + terms)
    turned = columns.dynamics.mechanism.drive_rows
    total = sum(len(run) / rows_apart(run) for run in runs)
    for run in runs:
        step, count = (
            rows_apart(run),
            round(_PARTS * len(run) / rows_apart(run) / total),
        )
        rows = _spans(len(run), step, max(count, 1) if total > _PARTS * _ROWS else None)
        # A part is a block: what is read of it here is overwritten by the next.
        for block in columns.blocks([run], rows):
            residual, own = [], []
            for support, matrix in zip(columns.support, block.joints, strict=True):
                residual.append(matrix[-1] - weights[support] @ matrix[:-1])
                is_own = [int(column) in friction for column in support]
                own.append(np.array(matrix[:-1][is_own]))
            start, stop = block.rows.start, block.rows.stop
            before = min(_REACH, start // step)
            wide = slice(start - before * step, stop + _REACH * step, step)
            yield _Part(
                run.measured[wide] @ turned.T,
                run.qd[wide] @ turned.T,
                before,
                np.stack(residual, axis=1),
                tuple(own),
                _band(run),
                run.rate_hz / step,
            )


def _spans(rows: int, step: int, count: int | None) -> list[slice]:
    """So many parts of some rows, each of every so manieth; all of them if None."""
    length = _ROWS * step
    if count is None:
        starts = np.arange(0, rows, length)
    else:
        starts = np.linspace(0, max(rows - length, 0), count).astype(int)
        # Parts that overlap are one.
        starts = starts[np.diff(starts, prepend=-length) >= length]
    return [slice(int(k), min(int(k) + length, rows), step) for k in starts]


def _band(run: Samples) -> float:
    """Bandwidth in [Hz] of what the torque shows."""
    return float(min(run.torque_bandwidth_hz or np.inf, 0.4 * run.rate_hz))


def rows_apart(run: Samples) -> int:
    """Every so manieth row is enough for the bandwidth of the torque."""
    return max(1, int(run.rate_hz / (_INPUTS * _band(run))))


class _Sums(NamedTuple):
    """Sums over the rows of stretches, for every wave number k.

    Attributes:
        numbers: The wave numbers.
        products: Of cosine and of sine with the residual.
        squares: Of cosine² , sine² and their product.
    """

    numbers: Float[np.ndarray, " waves"]
    products: Float[np.ndarray, "2 stretches waves"]
    squares: Float[np.ndarray, "3 stretches waves"]


def _waves(parts: Sequence[_Part], joint: int, drive: int) -> list[float]:
    """Wave numbers that explain enough of what other friction of a drive leaves."""
    q = np.concatenate([part.q[part.inside, drive] for part in parts])
    speed = np.concatenate([part.speed[part.inside, drive] for part in parts])
    reach, rms_speed = float(np.ptp(q)), float(np.sqrt(np.mean(speed**2)))
    if reach <= 0.0 or rms_speed <= 0.0:
        return []
    own = np.concatenate([part.own[joint] for part in parts], axis=1)
    own = np.vstack([own, speed, np.ones(q.size)])
    residual = np.concatenate([part.residual[:, joint] for part in parts])
    stretch = np.minimum(np.arange(q.size) * _STRETCHES // q.size, _STRETCHES - 1)
    band = min(part.band for part in parts)
    least = max(2.0 * np.pi * _LEAST_PERIODS / reach, _LEAST_WAVES)
    # Shorter waves are seen in slow motion only.
    middle = max(2.0 * np.pi * SLOW_MOTION * band / rms_speed, least)
    basis = _basis(own)
    remainder = _beside(basis, residual)
    plain = _plain_waves(q, speed / band, remainder, stretch, (least, middle))
    if plain is not None and _worth(plain, remainder) >= _PLAIN_WAVE:
        first = _strongest(plain, remainder, 1)[0]
        return [_refined(q, speed / band, remainder, basis, first)]
    starts = np.cumsum([0, *(len(part.residual) for part in parts)])
    thin = np.concatenate([np.arange(a, b, _OUTPUTS) for a, b in pairwise(starts)])
    basis = _basis(own[:, thin])
    remainder = _beside(basis, residual[thin])
    slow = _SlowWaves(parts, drive, basis, remainder, stretch[thin])
    fine = 2.0 * np.pi / (reach * _FINENESS)
    sums = slow.search(middle, fine)
    if sums is None:
        return []
    stands_out = _rival(sums, remainder, fine) <= _RIVAL
    if _worth(sums, remainder) >= (_PLAIN_WAVE if stands_out else _SLOW_WAVE):
        return slow.refine(_strongest(sums, remainder, _OFFERED), fine)
    return []


def _basis(own: Float[np.ndarray, "columns rows"]) -> Float[np.ndarray, "rows basis"]:
    """An orthonormal basis of columns."""
    size = np.linalg.norm(own, axis=1, keepdims=True)
    return np.asarray(np.linalg.qr((own / np.maximum(size, 1e-300)).T)[0])


def _beside(
    basis: Float[np.ndarray, "rows basis"], values: Float[np.ndarray, "rows ..."]
) -> Float[np.ndarray, "rows ..."]:
    """What a basis does not explain of some values."""
    return np.asarray(values - basis @ (basis.T @ values))


# Within a sixteenth of the shortest wave a sine hardly changes: 0.6 % of it is lost.
_BINS, _BINS_PER_WAVE = 4096, 16
"""Positions that the range of a drive is cut into at most, and of the shortest wave."""


def _plain_waves(
    q: np.ndarray,
    lengths: np.ndarray,
    residual: np.ndarray,
    stretch: np.ndarray,
    numbers: tuple[float, float],
) -> _Sums | None:
    """Sums of waves that pass the torque's low-pass at some speeds.

    Sums of the residual at every position: their Fourier transform is what all rows
    show of every wave, for the price of one.

    Args:
        q: Position of the drive.
        lengths: Its speed over the torque's bandwidth: what a period of that is long.
        residual: What other friction leaves.
        stretch: Which stretch a row belongs to.
        numbers: Least and largest wave number.
    """
    reach = float(np.ptp(q))
    shortest = max(2.0, _BINS_PER_WAVE * reach * numbers[1] / (2.0 * np.pi))
    bins = min(_BINS, 2 ** int(np.ceil(np.log2(shortest))))
    index = ((q - q.min()) * ((bins - 1) / reach)).astype(int) + stretch * bins
    # Twice as fine as the range resolves; eight bins to a wave at least.
    unit = np.pi * (bins - 1) / (reach * bins)
    every, sums = np.arange(bins // 4), list[_Sums]()
    first = numbers[0]
    while first < numbers[1]:
        # Half an octave: the low-pass does about the same to all of them.
        last = min(np.sqrt(2.0) * first, numbers[1])
        waves = every[(every * unit >= first) & (every * unit < last)]
        # What the low-pass leaves of a wave at a steady speed.
        middle = np.sqrt(first * last) / (2.0 * np.pi)
        shown = low_pass_gain(middle * np.abs(lengths))
        binned = [
            np.bincount(index, x, _STRETCHES * bins).reshape(_STRETCHES, bins)
            for x in (shown * residual, shown**2)
        ]
        product = np.fft.rfft(binned[0].astype(np.float32), 2 * bins, axis=1)
        # Twice the wave number of a transform that is twice as fine.
        square = np.fft.rfft(binned[1].astype(np.float32), axis=1)
        twice, rows = square[:, waves], square[:, :1].real
        squares = [rows + twice.real, rows - twice.real, -twice.imag]
        own = product[:, waves]
        sums.append(
            _Sums(
                waves * unit, np.stack([own.real, -own.imag]), 0.5 * np.stack(squares)
            )
        )
        first = last
    return _joined(sums)


def _refined(
    q: np.ndarray,
    lengths: np.ndarray,
    residual: np.ndarray,
    basis: Float[np.ndarray, "rows basis"],
    number: float,
) -> float:
    """Wave number at which a wave explains most of a residual, near another.

    A wave whose phase runs away over the range has other coefficients. Gauss–Newton on
    the wave number beside sine, cosine and what the residual was taken beside.
    """
    centred, refined = q - 0.5 * (q.min() + q.max()), number
    # Steps shrink by an order of magnitude: the first is a fraction of the resolution.
    for _ in range(4):
        shown = low_pass_gain(refined / (2.0 * np.pi) * np.abs(lengths))
        sine, cosine = np.sin(refined * centred), np.cos(refined * centred)
        columns = _beside(basis, np.stack([shown * sine, shown * cosine], axis=1))
        (a, b), *_ = np.linalg.lstsq(columns, residual, rcond=None)
        slope = shown * centred * (a * cosine - b * sine)
        every = np.column_stack([columns, _beside(basis, slope)])
        refined += float(np.linalg.lstsq(every, residual, rcond=None)[0][-1])
        # Half of what the range resolves: beyond it lies another peak.
        if not abs(refined - number) < np.pi / max(float(np.ptp(q)), 1e-300):
            return number
    return refined


@dataclass(frozen=True, eq=False)
class _SlowWaves:
    """Waves that only slow motion shows, as they are through the torque's low-pass.

    Attributes:
        parts: Parts of the log.
        drive: Whose waves.
        basis: Of other friction, at the rows that are compared.
        residual: What that leaves.
        stretch: Which stretch a row belongs to.
    """

    parts: Sequence[_Part]
    drive: int
    basis: Float[np.ndarray, "rows basis"]
    residual: Float[np.ndarray, " rows"]
    stretch: np.ndarray

    def search(self, first: float, fine: float) -> _Sums | None:
        """Sums of all wave numbers from one on, so far apart."""
        sums: list[_Sums] = []
        power = float(self.residual @ self.residual)
        while first < _MOST_WAVES:
            # Waves that show elsewhere cannot explain enough.
            shown = self.residual[self._shows(first)]
            if shown @ shown < _SLOW_WAVE * power:
                break
            last = min(2.0 * first, _MOST_WAVES)
            sums.append(self.sums(np.arange(first, last, fine)))
            first = last
        return _joined(sums)

    def refine(self, numbers: Sequence[float], fine: float) -> list[float]:
        """Wave numbers near some, so far apart until now, that explain most."""
        steps = np.linspace(-1.0, 1.0, _REFINED) * fine
        near = np.asarray(numbers)[:, None] + steps
        sums = self.sums(near.ravel())
        total = sums.products.sum(axis=1), sums.squares.sum(axis=1)
        gain = _fitted(*total, self.residual.size)[1].reshape(near.shape)
        best = np.argmax(gain, axis=1)
        return [float(row[k]) for row, k in zip(near, best, strict=True)]

    def sums(self, numbers: Float[np.ndarray, " waves"]) -> _Sums:
        """Sums of waves beside other friction, stretch by stretch."""
        waves = [_seen(part, self.drive, numbers) for part in self.parts]
        columns = _beside(self.basis, np.concatenate(waves))
        cosine, sine = np.split(columns, 2, axis=1)
        pairs = ((cosine, cosine), (sine, sine), (cosine, sine))
        # Rows of a stretch follow each other.
        edges = np.searchsorted(self.stretch, np.arange(_STRETCHES + 1))
        rows = [slice(a, b) for a, b in pairwise(edges.tolist())]
        products = [[self.residual[r] @ x[r] for r in rows] for x in (cosine, sine)]
        squares = [[np.einsum("rk,rk->k", x[r], y[r]) for r in rows] for x, y in pairs]
        return _Sums(numbers, np.array(products), np.array(squares))

    def _shows(self, number: float) -> np.ndarray:
        """At which rows a wave, or a shorter one, shows."""
        shown = []
        for part in self.parts:
            frequency = np.abs(part.speed[:, self.drive]) * number / (2.0 * np.pi)
            is_slow = frequency <= part.band
            shown.append(part.response @ is_slow > _LEAST_SHOWN)
        return np.concatenate(shown)


def _joined(sums: Sequence[_Sums]) -> _Sums | None:
    """Sums of all wave numbers; None of a handful, of which none stands out."""
    if sum(one.numbers.size for one in sums) < 16:
        return None
    return _Sums(*(np.concatenate(x, axis=-1) for x in zip(*sums, strict=True)))


def _seen(part: _Part, drive: int, numbers: np.ndarray) -> np.ndarray:
    """Cosines, then sines, of a part's positions as the torque shows them."""
    # Faster ones would look slow at this many rows a second, and are gone anyway.
    fastest = 0.5 * np.pi * _INPUTS * part.band / numbers.min()
    slow = np.flatnonzero(np.abs(part.speed[:, drive]) <= fastest)
    # Single precision: of thousands of radians four digits are left, at half the price.
    phase = np.outer(part.q[slow, drive], numbers).astype(np.float32)
    response = part.response[:, slow].astype(np.float32)
    return np.concatenate([response @ np.cos(phase), response @ np.sin(phase)], axis=1)


@lru_cache(maxsize=4)
def _response(rows: int, band: float, rate: float) -> np.ndarray:
    """The torque's low-pass as a matrix."""
    return low_pass(np.eye(rows), band, rate, "constant")


def _worth(sums: _Sums, residual: np.ndarray) -> float:
    """Fraction of the squared error that a wave explains where it was not chosen."""
    total = sums.products.sum(axis=1), sums.squares.sum(axis=1)
    gained = 0.0
    for i in range(_STRETCHES):
        products, squares = sums.products[:, i], sums.squares[:, i]
        fit, gain = _fitted(total[0] - products, total[1] - squares, residual.size)
        k = int(np.argmax(gain))
        (a, b), (cc, ss, cs) = fit[:, k], squares[:, k]
        gained += 2.0 * float(fit[:, k] @ products[:, k])
        gained -= float(a**2 * cc + b**2 * ss + 2.0 * a * b * cs)
    return gained / max(float(residual @ residual), 1e-300)


def _rival(sums: _Sums, residual: np.ndarray, fine: float) -> float:
    """What another wave explains at most, as a fraction of what the best one does."""
    total = sums.products.sum(axis=1), sums.squares.sum(axis=1)
    gain = _fitted(*total, residual.size)[1]
    best = int(np.argmax(gain))
    is_other = np.abs(sums.numbers - sums.numbers[best]) > _APART * fine
    return float(np.max(gain, where=is_other, initial=0.0) / max(gain[best], 1e-300))


def _strongest(sums: _Sums, residual: np.ndarray, count: int) -> list[float]:
    """Wave numbers of the highest peaks."""
    total = sums.products.sum(axis=1), sums.squares.sum(axis=1)
    gain = np.pad(_fitted(*total, residual.size)[1], 1, constant_values=-np.inf)
    peaks = np.flatnonzero((gain[1:-1] > gain[:-2]) & (gain[1:-1] >= gain[2:]))
    highest = peaks[np.argsort(gain[1:-1][peaks])[::-1][:count]]
    return [float(number) for number in sums.numbers[highest]]


def _fitted(
    products: Float[np.ndarray, "2 waves"],
    squares: Float[np.ndarray, "3 waves"],
    rows: int,
) -> tuple[Float[np.ndarray, "2 waves"], Float[np.ndarray, " waves"]]:
    """Coefficients of cosine and sine of every wave, and the power they explain."""
    (c, s), (cc, ss, cs) = products, squares
    cc, ss = cc + _RIDGE * rows, ss + _RIDGE * rows
    fit = np.stack([ss * c - cs * s, cc * s - cs * c]) / (cc * ss - cs**2)
    return fit, np.sum(fit * products, axis=0)
