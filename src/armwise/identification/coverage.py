"""Do the intervals hold? Simulate, identify, and count how often the truth is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.control import PD, Feedforward
from armwise.errors import ArgumentError
from armwise.identification.columns import Columns
from armwise.identification.methods import (
    Method,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from armwise.identification.problem import Problem, pose_problem
from armwise.identification.uncertainty import STRETCHES, review
from armwise.motions import Fourier, Motion
from armwise.plants import Encoder, SimulatedArm, TorqueSensor, run_batch
from armwise.recordings import Recording, Samples, prepare

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.plants.sensors.sensor import Sensor

Progress = Callable[[str, float], None]
_BATCH = 50
"""Plants that are simulated side by side."""


@dataclass(frozen=True, eq=False)
class CoverageStudy:
    """How often 95 % intervals held the truth.

    Attributes:
        names: The base parameters.
        coverage: Share of experiments whose interval held the truth, per parameter.
        plain_coverage: The same for ordinary least squares with the textbook
            covariance, which takes every sample for new information.
        experiments: How many there were.
    """

    names: tuple[str, ...]
    coverage: Float[np.ndarray, " base"]
    plain_coverage: Float[np.ndarray, " base"]
    experiments: int

    @property
    def total(self) -> float:
        """Share over all parameters and experiments."""
        return float(self.coverage.mean())

    @property
    def plain_total(self) -> float:
        """The same for plain least squares."""
        return float(self.plain_coverage.mean())


def coverage_study(
    arm: Arm,
    motion: Motion | None = None,
    experiments: int = 200,
    *,
    seed: int = 0,
    method: Method | None = None,
    encoder_counts: int = 2**17,
    torque_noise: float = 0.01,
    cutoff_hz: float = 10.0,
    progress: Progress | None = None,
) -> CoverageStudy:
    """Repeat a closed-loop identification with fresh noise, and count.

    Args:
        arm: The true arm; the controller believes in one that is 10 % off.
        motion: What is followed; a random periodic motion within limits if None.
        experiments: How often.
        seed: Of all noise.
        method: Weighted least squares if None.
        encoder_counts: Counts per turn of the joint encoders.
        torque_noise: Noise of a joint's torque, as a fraction of its largest.
        cutoff_hz: Low-pass of the preparation in [Hz].
        progress: Called with what is being done and how much of it is done.
    """
    if experiments < 2:
        raise ArgumentError(
            f"A study needs two experiments or more, not {experiments}."
        )
    wanted = motion or random_motion(arm, seed)
    chosen = method or WeightedLeastSquares()
    inside: list[np.ndarray] = []
    plain: list[np.ndarray] = []
    names: tuple[str, ...] = ()
    first: Samples | None = None
    for recording in _recordings(
        arm, wanted, experiments, seed, encoder_counts, torque_noise
    ):
        first = first or prepare(recording, cutoff_hz, arm=arm, lag=0.0)
        samples = prepare(recording, like=first)
        problem = pose_problem(Columns(arm), [samples])
        names = tuple(problem.base.names[i] for i in problem.base.indices)
        inside.append(_held(problem, chosen))
        plain.append(_held(problem, OrdinaryLeastSquares(), textbook=True))
        if progress:
            progress("experiments", len(inside) / experiments)
    return CoverageStudy(
        names, np.mean(inside, axis=0), np.mean(plain, axis=0), experiments
    )


def random_motion(arm: Arm, seed: int, period: float = 10.0) -> Fourier:
    """A periodic motion that fills a third of every joint's range."""
    rng = np.random.default_rng(seed)
    lower = np.maximum(arm.limits("lower"), -np.pi)
    upper = np.minimum(arm.limits("upper"), np.pi)
    sine, cosine = rng.normal(size=(2, arm.dof, 5)) / np.arange(1, 6)
    size = np.sqrt(np.sum(sine**2 + cosine**2, axis=1))
    scale = (0.12 * (upper - lower) / size)[:, None]
    middle = 0.5 * (lower + upper)
    return Fourier(middle, scale * sine, scale * cosine, 1.0 / period)


def _recordings(
    arm: Arm,
    motion: Motion,
    experiments: int,
    seed: int,
    encoder_counts: int,
    torque_noise: float,
) -> Iterator[Recording]:
    """Closed-loop runs, a batch of plants at a time."""
    rng = np.random.default_rng(seed)
    believed = arm.with_parameters(
        arm.parameters * rng.uniform(0.9, 1.1, arm.parameters.size)
    )
    size = largest_torque(arm, motion)
    feedback = PD(20.0 * size, 2.0 * size)
    sensors: list[Sensor] = [
        Encoder(resolution=2 * np.pi / encoder_counts),
        TorqueSensor(noise_std=torque_noise * size),
    ]
    for start in range(0, experiments, _BATCH):
        plant = SimulatedArm(
            arm,
            sensors=sensors,
            seed=seed + 1 + start,
            batch=min(_BATCH, experiments - start),
        )
        yield from run_batch(plant, Feedforward(feedback, believed), motion)


def largest_torque(arm: Arm, motion: Motion) -> Float[np.ndarray, " dof"]:
    """Largest torque of each joint along a motion, in [N m]."""
    from armwise.dynamics import Dynamics

    times = np.linspace(0.0, motion.duration, 500)
    torque = Dynamics(arm).inverse_dynamics(*motion.sample(times))
    return np.maximum(np.abs(torque).max(axis=0), 1e-3)


def _held(problem: Problem, method: Method, textbook: bool = False) -> np.ndarray:
    """Whether each 95 % interval holds the truth."""
    from scipy.stats import t

    solution = method.solve(problem)
    truth = problem.prior_base
    if textbook:
        std, factor = np.sqrt(np.diag(solution.covariance)), 1.96
    else:
        std = np.sqrt(np.diag(review(problem, solution).covariance))
        factor = float(t.ppf(0.975, STRETCHES - 1))
    return np.abs(solution.values - truth) <= factor * std
