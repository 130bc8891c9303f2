"""Coverage study: how often confidence intervals contain the true parameters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.errors import ArgumentError
from armwise.identification.methods import (
    Method,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from armwise.identification.problem import Problem, pose_problem
from armwise.identification.validation import review
from armwise.motions import Motion, random_motion
from armwise.progress import Progress
from armwise.recordings import Recording, Samples, prepare
from armwise.regression import Columns, interval_factor

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.plants import Sensor

# Judgement. Noise is seeded batch by batch, so that another size draws other noise.
_BATCH = 50
"""Plants that are simulated side by side: a batch fills the vector registers, and its
recordings still fit in memory."""

# Half of the plant's control period of 1 ms.
TORQUE_LAG = 0.5e-3
"""A torque is logged when its control period ends; it was there in the middle, [s]."""

NORMAL_FACTOR = 1.96
"""Standard deviations of a 95 % interval, as textbooks have it."""


@dataclass(frozen=True, eq=False)
class CoverageStudy:
    """How often 95 % intervals contained the truth.

    Attributes:
        names: The base parameters.
        coverage: Fraction of experiments whose interval contained the truth, per
            parameter.
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


@dataclass(frozen=True, eq=False)
class LoopSetting:
    """A closed loop that many copies of an arm go through, each with its own noise.

    Feedback K_p (q_d − q) + K_v (q̇_d − q̇), with the velocity made from encoder counts
    by a first-order low-pass, and feedforward of a model; joints truly stick.

    Attributes:
        arm: The true arm.
        model: The arm of the feedforward.
        motion: What is followed.
        kp, kd: Gains of the joints in [N m/rad] and [N m s/rad].
        velocity_cutoff_hz: Low-pass of the velocity in [Hz].
        resolution: A count of the encoders in [rad].
        zero_spread: Counts over which the encoders' zeros are spread at random.
        torque_noise: Standard deviation of the measured torques in [N m].
    """

    arm: Arm
    model: Arm
    motion: Motion
    kp: Float[np.ndarray, " dof"]
    kd: Float[np.ndarray, " dof"]
    velocity_cutoff_hz: float
    resolution: float
    zero_spread: float
    torque_noise: Float[np.ndarray, " dof"]


def coverage_study(
    arm: Arm,
    motion: Motion | None = None,
    # With 200, a coverage of 95 % is itself known to ± 1.5 % per parameter (binomial).
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

    Every experiment has its own torque noise, and encoders whose zeros lie anywhere
    within a count, so that rounding errs differently each time.

    Args:
        arm: The true arm; the controller's model of it is 10 % off.
        motion: What is followed; a random periodic motion within limits if None.
        experiments: How often.
        seed: Of all noise.
        method: Weighted least squares if None.
        encoder_counts: Counts per turn of the joint encoders.
        torque_noise: Noise of a joint's torque, as a fraction of its largest.
        cutoff_hz: Low-pass of the preparation in [Hz].
        progress: Called with what is being done and how much of it is done.

    `studies/coverage.py` of a checkout runs a hundred thousand of them on a GPU.
    """
    if experiments < 2:
        raise ArgumentError(
            f"A study needs two experiments or more, not {experiments}."
        )
    solver = method or WeightedLeastSquares()
    report = progress or (lambda step, fraction: None)
    setting = loop_setting(arm, motion, seed, encoder_counts, torque_noise)
    counts = _CoverageCounts(experiments)
    first: Samples | None = None
    for recording in loop_recordings(setting, experiments, seed):
        # Lag and cut-off are decided once: what varies from run to run is then the
        # noise, not the choice of filters.
        first = first or prepare(recording, cutoff_hz, arm=arm, lag=TORQUE_LAG)
        samples = prepare(recording, like=first)
        counts.add(pose_problem(Columns(arm), [samples]), solver)
        report("experiments", len(counts.inside) / experiments)
    return counts.study()


class _CoverageCounts:
    """Counts the intervals that contain the truth."""

    def __init__(self, experiments: int) -> None:
        self.inside: list[np.ndarray] = []
        self._plain: list[np.ndarray] = []
        self._names: tuple[str, ...] = ()
        self._experiments = experiments

    def add(self, problem: Problem, method: Method) -> None:
        """Identify one experiment."""
        # The arm that is described is the true one, so its parameters are the truth.
        truth = problem.prior_base
        solution = method.solve(problem)
        std = np.sqrt(np.diag(review(problem, solution).covariance))
        self.inside.append(np.abs(solution.values - truth) <= interval_factor() * std)
        plain = OrdinaryLeastSquares().solve(problem)
        std = np.sqrt(np.diag(plain.covariance))
        # The textbook interval has its textbook factor: with independent residuals so
        # many degrees of freedom make Student's t normal.
        self._plain.append(np.abs(plain.values - truth) <= NORMAL_FACTOR * std)
        self._names = base_names(problem)

    def study(self) -> CoverageStudy:
        """Return the fractions."""
        robust, plain = (np.mean(x, axis=0) for x in (self.inside, self._plain))
        return CoverageStudy(self._names, robust, plain, self._experiments)


def base_names(problem: Problem) -> tuple[str, ...]:
    """Names of the base parameters of a problem."""
    return tuple(problem.base.names[i] for i in problem.base.indices)


def loop_setting(
    arm: Arm,
    motion: Motion | None,
    seed: int,
    encoder_counts: int,
    torque_noise: float,
) -> LoopSetting:
    """The closed loop that every experiment goes through."""
    from armwise.control import largest_torque
    from armwise.plants import perturbed

    followed = motion or random_motion(arm, seed)
    size = largest_torque(arm, followed)
    return LoopSetting(
        arm=arm,
        model=perturbed(arm, 0.1, seed),
        motion=followed,
        # Judgement: 0.05 rad of error draws the largest torque of the motion, and
        # damping acts on the scale of 0.1 s; the study is about noise, not about
        # control.
        kp=20.0 * size,
        kd=2.0 * size,
        # Judgement: several times the cut-off at which samples are prepared.
        velocity_cutoff_hz=60.0,
        resolution=2.0 * np.pi / encoder_counts,
        zero_spread=1.0,
        torque_noise=torque_noise * size,
    )


def loop_recordings(
    setting: LoopSetting, experiments: int, seed: int
) -> Iterator[Recording]:
    """Closed-loop runs, a batch of plants at a time."""
    # Here, not above: identification itself needs neither, and they take long to load.
    from armwise.control import PD, Feedforward
    from armwise.plants import Encoder, SimulatedArm, TorqueSensor, run_batch

    # A stream of its own: zeros must not repeat the numbers of the plants' noise.
    rng = np.random.default_rng([seed, 1])
    feedback = PD(setting.kp, setting.kd, cutoff_hz=setting.velocity_cutoff_hz)
    controller = Feedforward(feedback, setting.model)
    for start in range(0, experiments, _BATCH):
        batch = min(_BATCH, experiments - start)
        zeros = rng.uniform(-0.5, 0.5, (batch, setting.arm.dof)) * setting.zero_spread
        sensors: list[Sensor] = [
            Encoder(setting.resolution, offset=zeros * setting.resolution),
            TorqueSensor(noise_std=setting.torque_noise),
        ]
        plant = SimulatedArm(
            setting.arm, sensors=sensors, seed=seed + 1 + start, batch=batch
        )
        yield from run_batch(plant, controller, setting.motion)
