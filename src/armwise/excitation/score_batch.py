"""Score many motions at once, on the CPU or on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.excitation.bounds import bounds_of
from armwise.excitation.information import InformationModel
from armwise.excitation.score import (
    RATE_HZ,
    MotionScore,
    known_matrix,
    noise_of,
    sample_count,
    score_information,
)
from armwise.motions import Fourier, Motion, MotionSample
from armwise.programs import Backend

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from armwise.programs.cuda_driver import Memory

_TOGETHER = 4_000_000
"""Samples at a time: under a gigabyte on a GPU."""


def score_motions(
    arm: Arm,
    motions: Sequence[Motion],
    *,
    known: ArrayLike | None = None,
    torque_std: ArrayLike | None = None,
    rate_hz: float = RATE_HZ,
    backend: Backend = "auto",
) -> tuple[MotionScore, ...]:
    """Score motions of one duration as `score_motion` scores one.

    Args:
        arm: The arm that makes them.
        motions: The motions.
        known: Information about the base parameters from before.
        torque_std: Standard deviation of each joint's torque noise in [N m] or [N]; 1
            if not given.
        rate_hz: Independent samples a second.
        backend: What runs the programs; "cuda" sums on a GPU, a motion a block.

    Raises:
        ArgumentError: If a motion is not one of this arm, durations differ, or `known`
            does not fit.
    """
    count = _common_count(arm, motions, rate_hz)
    on_gpu = backend == "cuda"
    model = InformationModel(
        arm, bounds_of(arm), noise_of(arm, torque_std), "auto" if on_gpu else backend
    )
    before = known_matrix(model, known)
    gather = _GpuInformation(model, count) if on_gpu else _Information(model, count)
    scores: list[MotionScore] = []
    chunk = max(1, _TOGETHER // count)
    for first in range(0, len(motions), chunk):
        found = gather(motions[first : first + chunk])
        scores += [score_information(model, one, before, count) for one in found]
    return tuple(scores)


def _common_count(arm: Arm, motions: Sequence[Motion], rate_hz: float) -> int:
    counts = {sample_count(motion.duration, rate_hz) for motion in motions}
    if len(counts) != 1:
        raise ArgumentError(
            f"{len(motions)} motions of {len(counts)} different lengths; score motions "
            "of one duration together."
        )
    for motion in motions:
        if motion.dof != arm.dof:
            raise ArgumentError(
                f"A motion moves {motion.dof} joints; {arm.name} has {arm.dof}."
            )
    return counts.pop()


class _Information:
    """Mean information of motions, one after another."""

    def __init__(self, model: InformationModel, count: int) -> None:
        self._model = model
        self._share = (np.arange(count) + 0.5) / count

    def __call__(self, motions: Sequence[Motion]) -> np.ndarray:
        """Return the information of every motion, parameters scaled."""
        return np.stack([self._model.of_states(self._sample(m)) for m in motions])

    def _sample(self, motion: Motion) -> MotionSample:
        """Sample a motion in the middle of equal steps."""
        return motion.sample(self._share * motion.duration)


class _GpuInformation(_Information):
    """The same on a GPU, a motion a block; Fourier series are summed there, too."""

    def __init__(self, model: InformationModel, count: int) -> None:
        from armwise.programs.cuda_driver import device
        from armwise.programs.cuda_gram import GramSums

        super().__init__(model, count)
        widths = [len(row.columns) for row in model.rows]
        self._gram, self._device = GramSums(model.program, widths), device()

    def __call__(self, motions: Sequence[Motion]) -> np.ndarray:
        """Return the information of every motion, parameters scaled."""
        runs, length = len(motions), self._share.size
        sums = self._gram.empty(runs)
        self._gram.add_runs(sums, self._states(motions), runs, length, length)
        products = [found / length for found in self._gram.matrices(sums, runs)]
        return self._model.collect(products)

    def _states(self, motions: Sequence[Motion]) -> Memory:
        """Bring (q, q̇, q̈) × samples × motions to the GPU, or make them there."""
        series = [motion for motion in motions if isinstance(motion, Fourier)]
        kinds = {(m.frequency, m.harmonics, m.periods) for m in series}
        if len(series) == len(motions) and len(kinds) == 1:
            return self._series(series)
        samples = [np.concatenate(self._sample(m), axis=1).T for m in motions]
        return self._device.upload(np.stack(samples, axis=2))

    def _series(self, motions: Sequence[Fourier]) -> Memory:
        """Multiply the coefficients of all motions by the samples of unit ones."""
        from armwise.programs.cuda_band import BandProduct

        terms, count = 1 + 2 * motions[0].harmonics, self._share.size
        coefficients = np.stack(
            [np.column_stack([m.q0, m.sine, m.cosine]) for m in motions], axis=2
        )
        given, dof = self._device.upload(coefficients), motions[0].dof
        one = 8 * dof * count * len(motions)
        states = self._device.empty(3 * one)
        for k, basis in enumerate(self._sample(_unit_series(motions[0]))):
            product = BandProduct(np.zeros(count, dtype=int), basis, terms)
            product(given, dof, len(motions), states.part(k * one, one))
        self._device.wait()
        return states


def _unit_series(like: Fourier) -> Fourier:
    """A motion whose joints have one coefficient of 1 each: q0, sines, cosines."""
    unit = np.eye(1 + 2 * like.harmonics)
    sine, cosine = unit[:, 1 : 1 + like.harmonics], unit[:, 1 + like.harmonics :]
    return Fourier(unit[:, 0], sine, cosine, like.frequency, like.periods)
