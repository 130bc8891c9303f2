"""The accumulator: all that linear estimation needs of a log, in constant memory.

For each joint it keeps the R factor of [columns, torque]. Factors of parts of a log
merge exactly, so logs can be split over time, processes and machines; and the factor of
some of the columns is a sub-matrix of the factor of all, made triangular again.

A block is added by Cholesky-QR against a running preconditioner: A R⁻¹ has nearly
orthogonal columns, so forming its Gram matrix loses no digits, and nearly all the work
is two matrix products (Yamamoto et al. 2015). The preconditioner is the factor of a few
samples from all over the log, or of the first block; a block that it does not fit is
added by Householder reflections, and the preconditioner renewed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from armwise.regression.columns import BLOCK, Block, Columns
from armwise.regression.repetition import Cut
from armwise.regression.signals import Signals
from armwise.regression.solution import triangle

if TYPE_CHECKING:
    from jaxtyping import Float


# √ε of float64 is 1.5e-8, rounded up to the next power of ten.
_SMALLEST_PIVOT = 1e-7
"""Smallest pivot of a preconditioner, relative to its column: half of float64's digits,
so that what a few samples leave undetermined can still be determined by others."""

# Judgement: the twelve digits that remain are far more than torques have.
_LARGEST_GROWTH = 1e4
"""Squared size of a preconditioned column beyond which a block does not fit: its Gram
matrix would lose four of sixteen digits."""

# The first block of a stretch is factored by reflections in any case, so products pay
# only from the later ones on. Three is a judgement.
_LONG_STRETCH = 3 * BLOCK
"""Samples of a stretch from which on Cholesky-QR is faster than Householder's."""


# Products beat reflections by a factor of two, and cost four more factorisations.
_FEW = 8
"""Rows for each column below which they wait for others, or at the end are reflected:
what few rows precondition does not fit the next ones either."""

# Fewer rows at once leave out more zeros and call BLAS more often: from 14 to 84
# columns twelve take 20 to 35 % less time than all at once.
_ROWS_AT_ONCE = 12
"""Rows of a triangular matrix that are multiplied by one call of BLAS."""


class ColumnSource(Protocol):
    """Anything that turns samples into columns per joint."""

    @property
    def support(self) -> tuple[np.ndarray, ...]:
        """For each joint, which columns can move its torque."""
        ...

    def blocks(self, data: Sequence[Signals]) -> Iterator[Block]:
        """Yield the columns of recorded samples, block by block."""
        ...


@dataclass
class Accumulator:
    """R factors of [columns, torque], one per joint.

    Attributes:
        columns: What the columns are.
        samples: How many samples went in.
        factors: For each joint an upper triangular (k + 1) × (k + 1) matrix over its
            support and its torque.
        trusted: How many of the samples each joint is learnt from: not those in which
            its friction reverses.
        torque: Sum of those samples' torque in [N m], per joint.
    """

    columns: ColumnSource
    samples: float = 0.0
    factors: list[Float[np.ndarray, "width width"]] = field(default_factory=list)
    trusted: Float[np.ndarray, " joints"] = None  # type: ignore[assignment]
    torque: Float[np.ndarray, " joints"] = None  # type: ignore[assignment]
    _sums: list[FactorSum] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if not self.factors:
            sizes = [support.size + 1 for support in self.columns.support]
            self.factors = [np.zeros((size, size)) for size in sizes]
        if self.trusted is None:
            self.trusted = np.full(len(self.factors), self.samples)
        if self.torque is None:
            # Sums that came without their torque do not know its mean.
            unknown = np.nan if self.samples else 0.0
            self.torque = np.full(len(self.factors), unknown)

    def add(
        self,
        data: Signals | Sequence[Signals],
        weights: Sequence[np.ndarray] | None = None,
    ) -> Accumulator:
        """Add samples; returns itself.

        Args:
            data: Motion and torque, or several runs of them.
            weights: Per run an array (samples, joints) that multiplies the rows.
        """
        runs = list(data) if isinstance(data, Sequence) else [data]
        for number, run in enumerate(runs):
            weight = None if weights is None else weights[number]
            # A single block is factored as it is.
            if len(run) > BLOCK:
                self._precondition(run, weight)
            for block in self.columns.blocks([run]):
                self.add_block(block, weight)
        self.settle()
        return self

    def _precondition(self, run: Signals, weights: np.ndarray | None) -> None:
        """Precondition with a few samples from all over a run."""
        self._open()
        # One block at most, spread evenly: its factor then has every motion of the log
        # in it, and the preconditioner rarely needs to be renewed.
        stride = max(1, -(-len(run) // BLOCK))
        scale = None if weights is None else weights[::stride]
        for block in self.columns.blocks([run[::stride]]):
            for i, one in enumerate(self._sums):
                one.precondition(_weighted(block, i, scale))

    def _open(self) -> None:
        if not self._sums:
            self._sums = [FactorSum(factor) for factor in self.factors]

    def add_block(self, block: Block, weights: np.ndarray | None = None) -> None:
        """Add one block, whose memory is used up; `settle` must follow the last."""
        self._open()
        self.torque += _summed_torque(block, weights)
        for i, one in enumerate(self._sums):
            one.add(_weighted(block, i, weights))
        self.count_rows(block)

    def count_rows(self, block: Block) -> None:
        """Count a block's samples, and those that each joint is learnt from."""
        self.samples += block.count
        trusted = block.count if block.trust is None else block.trust.sum(axis=0)
        self.trusted = self.trusted + trusted

    def settle(self) -> None:
        """Turn what was added into R factors."""
        if self._sums:
            self.factors = [one.factor() for one in self._sums]
            self._sums = []

    def merge(self, *others: Accumulator) -> Accumulator:
        """Return the accumulator of all logs together."""
        every = (self, *others)
        return Accumulator(
            self.columns,
            sum(one.samples for one in every),
            [
                # Stacked R factors have the Gram matrix of all rows: QR merges them
                # without ever squaring the condition number.
                triangle(np.vstack(factors))
                for factors in zip(*(one.factors for one in every), strict=True)
            ],
            np.sum([one.trusted for one in every], axis=0),
            np.sum([one.torque for one in every], axis=0),
        )

    def restrict(self, columns: Columns) -> Accumulator:
        """Return the accumulator of some of the columns, without a look at the data.

        Args:
            columns: The same arm's, with fewer friction terms.
        """
        factors = []
        supports = zip(self.columns.support, columns.support, strict=True)
        for (old, new), factor in zip(supports, self.factors, strict=True):
            labels = _labels(self.columns, old)
            index = [labels.index(label) for label in _labels(columns, new)]
            # Dropping columns of R keeps all inner products of those that stay.
            factors.append(triangle(factor[:, [*index, -1]]))
        return replace(self, columns=columns, factors=factors, _sums=[])

    def forget(self, factor: float) -> None:
        """Let what was learnt so far weigh `factor` times as much as new samples."""
        self.settle()
        # Squares fade by the factor, rows by its root.
        self.factors = [np.sqrt(factor) * r for r in self.factors]
        self.samples *= factor
        self.trusted = factor * self.trusted
        self.torque = factor * self.torque


def _labels(columns: ColumnSource, support: np.ndarray) -> list[object]:
    """Name columns by what they are: a number of the arm's own, or a friction term."""
    if not isinstance(columns, Columns):
        return support.tolist()
    return [columns.labels[k] for k in support]


def accumulate(
    columns: ColumnSource,
    data: Signals | Sequence[Signals],
    weights: Sequence[np.ndarray] | None = None,
) -> Accumulator:
    """Run through samples once and keep what linear estimation needs of them."""
    return Accumulator(columns).add(data, weights)


def accumulate_roughly(
    columns: Columns, parts: Sequence[tuple[Signals, Sequence[slice]]]
) -> Accumulator:
    """Sums of some rows, good to half of the digits, for a first look.

    Args:
        columns: What explains the torque.
        parts: Runs, and which of their rows.
    """
    total = Accumulator(columns)
    sums = [GramSum() for _ in columns.support]
    for run, rows in parts:
        for block in columns.blocks([run], rows):
            for i, one in enumerate(sums):
                one.add(_weighted(block, i, None).T)
            total.torque += _summed_torque(block, None)
            total.count_rows(block)
    total.factors = [one.factor() for one in sums]
    return total


def accumulate_stretches(
    columns: ColumnSource, samples: Signals, count: int
) -> list[Accumulator]:
    """Run through samples once and keep stretches of equal length apart.

    Columns are those of all samples, cut afterwards: what filters see at the ends of a
    stretch is what they see in the whole, so stretches add up to `accumulate`.

    Args:
        columns: What explains the torque.
        samples: One run.
        count: How many stretches; fewer if there are fewer samples.
    """
    # Equal in length to within a sample: the jackknife gives every stretch the same
    # weight.
    edges = np.linspace(0, len(samples), min(count, len(samples)) + 1).astype(int)
    is_long = len(samples) > _LONG_STRETCH * (len(edges) - 1)
    stretches: list[Accumulator] = []
    for block in columns.blocks([samples]):
        for k, part in _split(block, edges):
            if k == len(stretches):
                stretches.append(Accumulator(columns))
            if is_long:
                stretches[k].add_block(part)
            else:
                _reflect(stretches[k], part)
    for stretch in stretches:
        stretch.settle()
    return stretches


@dataclass(frozen=True, eq=False)
class FoldSums:
    """Inner products of [columns, torque], stretch by stretch.

    Attributes:
        fitted: For each joint those of its trusted rows.
        every: The same of all rows: those that are not fitted are still predicted.
    """

    fitted: tuple[Float[np.ndarray, "folds width width"], ...]
    every: tuple[Float[np.ndarray, "folds width width"], ...]

    def __len__(self) -> int:
        return len(self.fitted[0])

    @classmethod
    def joined(cls, parts: Sequence[FoldSums]) -> FoldSums:
        """Stretches of several runs, one after another."""
        fitted = zip(*(part.fitted for part in parts), strict=True)
        every = zip(*(part.every for part in parts), strict=True)
        return cls(
            tuple(np.concatenate(grams) for grams in fitted),
            tuple(np.concatenate(grams) for grams in every),
        )


def accumulate_folds(
    columns: Columns, run: Signals, cut: Cut, step: int = 1
) -> tuple[FoldSums, Accumulator]:
    """Run through samples once: inner products of stretches, and sums of the whole.

    As for `accumulate_stretches` columns are those of all samples, cut afterwards:
    friction remembers where a joint came from.

    Args:
        columns: What explains the torque, evaluated in the whole run.
        run: The samples.
        cut: Its stretches.
        step: One sample in so many is used; if more than one, the sums of the whole are
            good to half of the digits.
    """
    starts = [part.start for part, _ in cut]
    rows = [slice(part.start, part.stop, step) for part, _ in cut]
    number = 1 + max(k for _, k in cut)
    widths = [support.size + 1 for support in columns.support]
    fitted = [np.zeros((number, width, width)) for width in widths]
    every = [np.zeros((number, width, width)) for width in widths]
    total = Accumulator(columns)
    # What no term describes is not predicted either where terms are selected.
    sticks = None if columns.fits_reversals else columns.sticks(run)
    for block in columns.blocks([run], rows):
        k = cut[bisect_right(starts, block.rows.start) - 1][1]
        for i, matrix in enumerate(block.joints):
            trusted = _weighted(block, i, None)
            gram = trusted @ trusted.T
            masked: np.ndarray | float = 0.0
            if block.trust is not None:
                is_masked = block.trust[:, i] == 0.0
                if sticks is not None:
                    is_masked &= ~sticks[block.rows, i]
                few = matrix[:, is_masked]
                masked = few @ few.T
            fitted[i][k] += gram
            every[i][k] += gram + masked
        if step == 1:
            total.add_block(block)
        else:
            total.torque += [
                _weighted(block, i, None)[-1].sum() for i in range(len(widths))
            ]
            total.count_rows(block)
    total.settle()
    if step > 1:
        total.factors = [factor_of_gram(grams.sum(axis=0)) for grams in fitted]
    return FoldSums(tuple(fitted), tuple(every)), total


def _reflect(stretch: Accumulator, block: Block) -> None:
    """Add a short block by Householder's reflections."""
    matrices = [_weighted(block, i, None) for i in range(len(block.joints))]
    pairs = zip(stretch.factors, matrices, strict=True)
    stretch.factors = [triangle(np.vstack([R, m.T])) for R, m in pairs]
    stretch.torque += _summed_torque(block, None)
    stretch.count_rows(block)


def _split(block: Block, edges: np.ndarray) -> Iterator[tuple[int, Block]]:
    """Cut a block where stretches end: (number of the stretch, its part)."""
    begin, end = block.rows.start, block.rows.stop
    first = int(np.searchsorted(edges, begin, side="right")) - 1
    # Left and right: an edge that falls on the block's end opens no empty part.
    last = int(np.searchsorted(edges, end, side="left"))
    for k in range(first, last):
        part = slice(max(edges[k] - begin, 0), min(edges[k + 1], end) - begin)
        yield (
            k,
            replace(
                block,
                rows=slice(begin + part.start, begin + part.stop),
                joints=tuple(matrix[:, part] for matrix in block.joints),
                trust=None if block.trust is None else block.trust[part],
            ),
        )


def _weighted(
    block: Block, i: int, weights: np.ndarray | None
) -> Float[np.ndarray, "width samples"]:
    """A joint's columns and torque, each sample by its weight and trust."""
    matrix = block.joints[i]
    if weights is not None:
        matrix = matrix * weights[block.rows, i]
    return matrix if block.trust is None else matrix * block.trust[:, i]


def _summed_torque(
    block: Block, weights: np.ndarray | None
) -> Float[np.ndarray, " joints"]:
    """Sum of every joint's torque over a block, each sample by weight and trust."""
    torque = np.stack([matrix[-1] for matrix in block.joints])
    if weights is not None:
        torque *= weights[block.rows].T
    if block.trust is not None:
        torque *= block.trust.T
    return np.asarray(torque.sum(axis=1))


class FactorSum:
    """Adds blocks of rows to one R factor through a preconditioner.

    Args:
        factor: R of what is there already; zeros if nothing is.
    """

    def __init__(self, factor: np.ndarray) -> None:
        self._settled = factor
        self._preconditioner: np.ndarray | None = None
        self._gram = np.zeros(factor.shape)
        self._whitened = np.empty((len(factor), 0))
        self._short: list[np.ndarray] = []

    def precondition(self, matrix: Float[np.ndarray, "width samples"]) -> None:
        """Expect more samples like these."""
        self._settled = self.factor()
        self._renew(triangle(np.vstack([self._settled, matrix.T])))

    def add(self, matrix: Float[np.ndarray, "width samples"]) -> None:
        """Add samples; few of them wait for others."""
        if matrix.shape[1] >= _FEW * len(matrix):
            self._add(matrix)
            return
        # A copy: blocks are filled again.
        self._short.append(matrix.copy())
        if sum(part.shape[1] for part in self._short) >= _FEW * len(matrix):
            self._flush()

    def _flush(self) -> None:
        short, self._short = self._short, []
        if short:
            self._add(np.hstack(short))

    def _add(self, matrix: Float[np.ndarray, "width samples"]) -> None:
        """Add samples, by products if a preconditioner fits them."""
        if self._preconditioner is None:
            is_first = not self._settled.any()
            if is_first or matrix.shape[1] < _FEW * len(matrix):
                # The first samples are what later ones are preconditioned with.
                rows = matrix.T if is_first else np.vstack([self._settled, matrix.T])
                self._settled = triangle(rows)
                return
            self._renew(self._settled)
        # The inverse is formed once; a block then costs one product, and another one
        # with its own transpose, each of which is half a matrix.
        assert self._preconditioner is not None
        if self._whitened.shape[1] != matrix.shape[1]:
            self._whitened = np.empty(matrix.shape)
        whitened, inverse = self._whitened, self._preconditioner.T
        # Its lower half: that is what `eigh` reads.
        gram = np.zeros(self._gram.shape)
        for start in range(0, len(matrix), _ROWS_AT_ONCE):
            stop = min(start + _ROWS_AT_ONCE, len(matrix))
            own = whitened[start:stop]
            np.matmul(inverse[start:stop, :stop], matrix[:stop], out=own)
            np.matmul(own, whitened[:stop].T, out=gram[start:stop, :stop])
        # Its diagonal is the squared size of the block's preconditioned columns.
        if gram.diagonal().max() <= _LARGEST_GROWTH:
            self._gram += gram
            return
        self._settled = triangle(np.vstack([self._factor(), matrix.T]))
        self._renew(self._settled)

    def _renew(self, factor: np.ndarray) -> None:
        """Precondition with a factor from here on."""
        size = np.linalg.norm(factor, axis=0)
        # Rows of a small multiple of one bound every pivot from below, as a ridge does;
        # they only shape the preconditioner and are not part of the sum.
        floor = np.diag(_SMALLEST_PIVOT * np.where(size > 0, size, 1.0))
        guarded = triangle(np.vstack([factor, floor]))
        self._preconditioner = np.triu(np.linalg.inv(guarded))
        self._gram = np.zeros(factor.shape)

    def factor(self) -> np.ndarray:
        """Return the R factor of all that was added."""
        self._flush()
        return self._factor()

    def _factor(self) -> np.ndarray:
        if self._preconditioner is None:
            return self._settled
        # Eigenvalues instead of Cholesky: columns that no row has moved make it
        # singular.
        values, vectors = np.linalg.eigh(self._gram)
        root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
        # Back to the columns themselves, then joined by QR to what was settled before.
        added = np.linalg.solve(self._preconditioner.T, root.T).T
        return triangle(np.vstack([self._settled, added]))


class GramSum:
    """Sums AᵀA over blocks of rows, and factors it: cheaper than `FactorSum`, and good
    to half as many digits.

    Columns are scaled to one first, and a trace of noise (1e-13) is added to their
    squares: what is smaller than 3e-7 of a column cannot be told from nothing.
    """

    def __init__(self) -> None:
        self._sum: np.ndarray | float = 0.0

    def add(self, rows: Float[np.ndarray, "*rows width"]) -> None:
        """Add rows, in any number of leading dimensions."""
        matrix = rows.reshape(-1, rows.shape[-1])
        self._sum = self._sum + matrix.T @ matrix

    def factor(self) -> Float[np.ndarray, "width width"]:
        """Upper triangular R with RᵀR = AᵀA."""
        gram = np.asarray(self._sum)
        size = np.sqrt(np.diag(gram))
        # A column of zeros stays one; dividing by its size would make it NaN.
        size[size == 0.0] = 1.0
        scaled = gram / np.outer(size, size)
        # Rounding may leave a tiny negative eigenvalue, which Cholesky refuses.
        scaled[np.diag_indices_from(scaled)] += 1e-13
        R: np.ndarray = np.linalg.cholesky(scaled).T * size
        return R


def factor_of_gram(
    gram: Float[np.ndarray, "width width"],
) -> Float[np.ndarray, "width width"]:
    """R with RᵀR = gram, by eigenvalues: singular matrices are no trouble."""
    # Scaled to one before eigenvalues, or small columns would drown in the rounding of
    # large ones; 1e-300 only keeps a zero column from dividing by zero.
    size = np.sqrt(np.maximum(np.diag(gram), 1e-300))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return triangle(root * size)
