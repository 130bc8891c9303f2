"""One filter for a joint's torque and each of its columns: residuals become white.

What a model leaves of a torque is slow where friction is not quite as modelled and
strong at some frequencies where something shakes. Weighting every frequency by the
inverse of that spectrum is generalised least squares, the optimal prefilter of
`atkeson1986` ch. 5: the same filter on both sides changes no equation. Its inverse is
an autoregression of the residual, so that the filter is a short sum of past samples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.regression.columns import Block, Columns

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.regression.signals import Signals

_EDGE = 0.7
"""Fraction of a low-pass's cut-off up to which it leaves torques as they are, run both
ways: 95 % of their amplitude."""

_LAGS = 48
"""Samples that a spectrum is computed from: resolves a twentieth of the sampling
rate."""

_ROUNDING = 1e-9
"""Noise no torque is better than, relative to the torque itself."""

_LEAST_FLOOR = 1e-3
"""White noise that residuals are taken to have at least, as a fraction of their
variance: that of 30 dB less is rounding of logs."""


@dataclass(frozen=True, eq=False)
class Prefilter:
    """Sum of a joint's last samples, for its torque and all its columns alike.

    Attributes:
        taps: For each joint what multiplies a sample and those before it; the first is
            one.
    """

    taps: Float[np.ndarray, "joints order+1"]

    @classmethod
    def whitening(
        cls,
        columns: Columns,
        data: Sequence[Signals],
        weights: Float[np.ndarray, " columns"],
        order: int,
    ) -> Prefilter:
        """The filter that makes residuals white, by Yule's and Walker's equations.

        Args:
            columns: What explains the torque.
            data: The samples, run by run.
            weights: What multiplies the columns in the fit so far.
            order: Samples that it remembers.
        """
        joints, lags = len(columns.support), max(order, _LAGS)
        products = np.zeros((joints, lags + 1))
        counts = np.zeros((joints, lags + 1))
        torque = np.zeros(joints)
        for block in _with_memory(columns, data, lags):
            count = block.trust.shape[0] - lags
            for i, support in enumerate(columns.support):
                matrix, is_used = block.joints[i], block.trust[:, i]
                error = is_used * (matrix[-1] - weights[support] @ matrix[:-1])
                torque[i] += np.sum((is_used * matrix[-1])[lags:] ** 2)
                # Each row beside the one k before it.
                for k in range(lags + 1):
                    late = slice(lags - k, lags - k + count)
                    products[i, k] += error[lags:] @ error[late]
                    counts[i, k] += is_used[lags:] @ is_used[late]
        covariance = products / np.maximum(counts, 1.0)
        # Rounding of exact data has no spectrum to go by.
        covariance[:, 0] += _ROUNDING**2 * torque / np.maximum(counts[:, 0], 1.0)
        edge = _edge(data)
        return cls(np.array([_inverse(row, order, edge) for row in covariance]))

    def blocks(self, columns: Columns, data: Sequence[Signals]) -> Iterator[Block]:
        """Columns and torques through the filter, block by block.

        A row whose sum reaches over a gap, or to a row that is not trusted, is not
        trusted either.
        """
        order = self.taps.shape[1] - 1
        for block in _with_memory(columns, data, order):
            count = block.trust.shape[0] - order
            parts = [slice(order - k, order - k + count) for k in range(order + 1)]
            pairs = zip(block.joints, self.taps, strict=True)
            joints = tuple(
                np.asarray(
                    sum(a * x[:, part] for a, part in zip(taps, parts, strict=True))
                )
                for x, taps in pairs
            )
            trust = np.min([block.trust[part] for part in parts], axis=0)
            yield Block(block.samples, block.rows, joints, trust)


@dataclass(frozen=True, eq=False)
class _Remembered:
    """A block, and before it as many samples as a filter remembers."""

    samples: Signals
    rows: slice
    joints: tuple[np.ndarray, ...]
    trust: Float[np.ndarray, "order+rows dof"]


def _with_memory(
    columns: Columns, data: Sequence[Signals], order: int
) -> Iterator[_Remembered]:
    """Blocks with the rows before them; rows before a gap are not trusted."""
    for run in data:
        starts = np.array([part.start for part in run.segments])
        memory = [np.zeros((s.size + 1, order)) for s in columns.support]
        trusted = np.zeros((order, len(memory)))
        for block in columns.blocks([run]):
            count = block.count
            own = np.ones((count, len(memory))) if block.trust is None else block.trust
            pairs = zip(memory, block.joints, strict=True)
            joints = tuple(np.hstack(pair) for pair in pairs)
            trust = np.vstack([trusted, own])
            # The copies outlive the block, whose memory is filled again.
            memory = [x[:, count:].copy() for x in joints]
            trusted = trust[count:].copy()
            yield from _cut(_Remembered(run, block.rows, joints, trust), starts, order)


def _cut(block: _Remembered, starts: np.ndarray, order: int) -> Iterator[_Remembered]:
    """Parts of a block between gaps, none of which remembers what was before."""
    begin, end = block.rows.start, block.rows.stop
    inside = [int(s) for s in starts if begin < s < end]
    for first, last in zip([begin, *inside], [*inside, end], strict=True):
        part = slice(first - begin, last - begin + order)
        trust = block.trust[part].copy()
        age = first - max(int(s) for s in starts if s <= first)
        # A segment that is younger than the memory: what is older is of another.
        trust[: max(order - age, 0)] = 0.0
        joints = tuple(x[:, part] for x in block.joints)
        yield replace(block, rows=slice(first, last), joints=joints, trust=trust)


def _edge(data: Sequence[Signals]) -> float:
    """Where the torques' band ends, as a fraction of the sampling rate; ½: nowhere."""
    bands = [(run.torque_bandwidth_hz, run.rate_hz) for run in data if len(run) > 1]
    edges = [_EDGE * hz / rate for hz, rate in bands if hz is not None]
    return min([0.5, *edges])


def _inverse(
    covariance: Float[np.ndarray, " lags+1"], order: int, edge: float
) -> Float[np.ndarray, " order+1"]:
    """Taps of the filter whose output, for such residuals, is white.

    Beyond their band filtered residuals are next to nothing, and dividing by that would
    weigh what filters leave there: they are taken to go on as at the band's edge.

    Args:
        covariance: Of residuals so many samples apart.
        order: Samples that the filter remembers.
        edge: Where the band ends, as a fraction of the sampling rate.
    """
    size = covariance[0]
    if size <= 0.0:
        return np.eye(order + 1)[0]
    floor = _LEAST_FLOOR * size
    if edge < 0.5:
        k = np.arange(1, covariance.size)
        # Bartlett's window: no power comes out negative but for rounding.
        waves = (1.0 - k / covariance.size) * np.cos(2.0 * np.pi * edge * k)
        floor = max(floor, float(size + 2.0 * covariance[1:] @ waves))
    lags = np.abs(np.subtract.outer(np.arange(order), np.arange(order)))
    matrix = covariance[lags] + floor * np.eye(order)
    return np.concatenate([[1.0], -np.linalg.solve(matrix, covariance[1 : order + 1])])
