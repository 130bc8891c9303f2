"""Do the intervals hold? Simulate, identify, and count how often the truth is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from armwise.arms import Arm
from armwise.control import PD, Feedforward
from armwise.errors import ArgumentError
from armwise.identification.methods import (
    Method,
    OrdinaryLeastSquares,
    WeightedLeastSquares,
)
from armwise.identification.problem import Problem, pose_problem
from armwise.identification.review import review
from armwise.motions import Fourier, Motion
from armwise.plants import Encoder, LoopSetting, SimulatedArm, TorqueSensor, run_batch
from armwise.recordings import Recording, Samples, prepare
from armwise.regression import STRETCHES, Columns

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.plants import Sensor

Progress = Callable[[str, float], None]
_BATCH = 50
"""Plants that are simulated side by side."""

_TORQUE_LAG = 0.5e-3
"""A torque is logged when its control period ends; it was there in the middle, [s]."""

_NORMAL = 1.96
"""Standard deviations of a 95 % interval, as textbooks have it."""


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
    backend: Literal["c", "cuda"] = "c",
    progress: Progress | None = None,
) -> CoverageStudy:
    """Repeat a closed-loop identification with fresh noise, and count.

    Every experiment has its own torque noise, and encoders whose zeros lie anywhere
    within a count, so that rounding errs differently each time.

    Args:
        arm: The true arm; the controller believes in one that is 10 % off.
        motion: What is followed; a random periodic motion within limits if None.
        experiments: How often.
        seed: Of all noise.
        method: Weighted least squares if None.
        encoder_counts: Counts per turn of the joint encoders.
        torque_noise: Noise of a joint's torque, as a fraction of its largest.
        cutoff_hz: Low-pass of the preparation in [Hz].
        backend: "cuda" runs tens of thousands of experiments a second on a GPU; it
            knows weighted least squares only.
        progress: Called with what is being done and how much of it is done.

    Raises:
        CudaError: With backend="cuda", if there is no GPU, or it is too small.
    """
    if experiments < 2:
        raise ArgumentError(
            f"A study needs two experiments or more, not {experiments}."
        )
    chosen = method or WeightedLeastSquares()
    tell = progress or (lambda what, share: None)
    setting = _setting(arm, motion, seed, encoder_counts, torque_noise)
    if backend == "cuda":
        return _study_on_gpu(setting, experiments, seed, chosen, cutoff_hz, tell)
    held = _Held(experiments)
    first: Samples | None = None
    for recording in _recordings(setting, experiments, seed):
        first = first or prepare(recording, cutoff_hz, arm=arm, lag=_TORQUE_LAG)
        samples = prepare(recording, like=first)
        held.add(pose_problem(Columns(arm), [samples]), chosen)
        tell("experiments", len(held.inside) / experiments)
    return held.study()


def _study_on_gpu(
    setting: LoopSetting,
    experiments: int,
    seed: int,
    method: Method,
    cutoff_hz: float,
    tell: Progress,
) -> CoverageStudy:
    from armwise.identification.coverage_gpu import GpuExperiments

    if not isinstance(method, WeightedLeastSquares) or method.torque_std is not None:
        raise ArgumentError(
            "On a GPU a study knows WeightedLeastSquares() only, its noise unknown. "
            'Use backend="c" for other methods.'
        )
    recording = next(_recordings(setting, 1, seed))
    like = prepare(recording, cutoff_hz, arm=setting.arm, lag=_TORQUE_LAG)
    problem = pose_problem(Columns(setting.arm), [like])
    runs = GpuExperiments(
        setting, like, problem.columns, problem.base, method.iterations + 1
    )
    truth, counts = problem.prior_base[:, None], np.zeros((2, problem.base.count))
    for fits in runs.run(experiments, seed, lambda share: tell("experiments", share)):
        if not np.isfinite(fits.values).all():
            raise ArgumentError("This motion does not determine all base parameters.")
        held = np.abs(fits.values - truth) <= _interval() * fits.std
        textbook = np.abs(fits.plain_values - truth) <= _NORMAL * fits.plain_std
        counts += held.sum(axis=1), textbook.sum(axis=1)
    ours, plain = counts / experiments
    return CoverageStudy(_names(problem), ours, plain, experiments)


class _Held:
    """Counts the intervals that held the truth."""

    def __init__(self, experiments: int) -> None:
        self.inside: list[np.ndarray] = []
        self._plain: list[np.ndarray] = []
        self._names: tuple[str, ...] = ()
        self._experiments = experiments

    def add(self, problem: Problem, method: Method) -> None:
        """Identify one experiment."""
        truth = problem.prior_base
        found = method.solve(problem)
        std = np.sqrt(np.diag(review(problem, found).covariance))
        self.inside.append(np.abs(found.values - truth) <= _interval() * std)
        plain = OrdinaryLeastSquares().solve(problem)
        std = np.sqrt(np.diag(plain.covariance))
        self._plain.append(np.abs(plain.values - truth) <= _NORMAL * std)
        self._names = _names(problem)

    def study(self) -> CoverageStudy:
        """Return the shares."""
        ours, plain = (np.mean(held, axis=0) for held in (self.inside, self._plain))
        return CoverageStudy(self._names, ours, plain, self._experiments)


def _names(problem: Problem) -> tuple[str, ...]:
    return tuple(problem.base.names[i] for i in problem.base.indices)


def _interval() -> float:
    """Standard deviations of a 95 % interval from so many stretches."""
    from scipy.stats import t

    return float(t.ppf(0.975, STRETCHES - 1))


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


def _setting(
    arm: Arm,
    motion: Motion | None,
    seed: int,
    encoder_counts: int,
    torque_noise: float,
) -> LoopSetting:
    """The closed loop that every experiment goes through."""
    wanted = motion or random_motion(arm, seed)
    wrong = np.random.default_rng(seed).uniform(0.9, 1.1, arm.parameters.size)
    size = largest_torque(arm, wanted)
    return LoopSetting(
        arm=arm,
        believed=arm.with_parameters(arm.parameters * wrong),
        motion=wanted,
        kp=20.0 * size,
        kd=2.0 * size,
        velocity_cutoff_hz=60.0,
        resolution=2.0 * np.pi / encoder_counts,
        zero_spread=1.0,
        torque_noise=torque_noise * size,
    )


def _recordings(
    setting: LoopSetting, experiments: int, seed: int
) -> Iterator[Recording]:
    """Closed-loop runs, a batch of plants at a time."""
    rng = np.random.default_rng([seed, 1])
    feedback = PD(setting.kp, setting.kd, cutoff_hz=setting.velocity_cutoff_hz)
    controller = Feedforward(feedback, setting.believed)
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


def largest_torque(arm: Arm, motion: Motion) -> Float[np.ndarray, " dof"]:
    """Largest torque of each joint along a motion, in [N m]."""
    from armwise.dynamics import Dynamics

    times = np.linspace(0.0, motion.duration, 500)
    torque = Dynamics(arm).inverse_dynamics(*motion.sample(times))
    return np.maximum(np.abs(torque).max(axis=0), 1e-3)
