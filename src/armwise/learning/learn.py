"""Learning of a motion by practice through an inverse model, and simulated sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from armwise.arms import Arm
from armwise.control import (
    PD,
    ControllerFactory,
    Playback,
    ResumableController,
    effective_inertia,
    middle_posture,
    tracking_tasks,
    with_friction,
)
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, PlantDiverged
from armwise.learning.analysis import LearningAnalysis, analyse_learning
from armwise.learning.memory import (
    Learned,
    LocalCorrection,
    load_learned,
    save_learned,
)
from armwise.learning.operators import inverse_model_along, linearise_along
from armwise.learning.trial import (
    InverseModel,
    PlantSource,
    Trial,
    ZeroPhase,
    attempt,
    corrected_command,
    nominal_command,
    perfect_feedback,
)
from armwise.motions import Motion, check_limits, require_positive
from armwise.plants import Encoder, Plant, SimulatedArm, Tachometer

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.motions import Motion


@dataclass(frozen=True)
class Stopping:
    """When practice has done what it can.

    Attributes:
        repeats: Attempts with the first command, to learn what cannot be learned; 1
            to do without the noise floor.
        tolerance: Stop when the error is within this factor of the noise floor.
        patience: Stop after so many trials in a row without a better one.
    """

    # Two is the least that shows scatter; averaged over all samples of a trial, that is
    # many degrees of freedom.
    repeats: int = 2
    # Judgement: within 10 % of the noise floor a further trial learns noise.
    tolerance: float = 1.1
    # Judgement: single trials are noisy; three without a new best are not luck.
    patience: int = 3


def learn(
    plant: PlantSource,
    motion: Motion,
    model: Arm | InverseModel,
    trials: int = 4,
    # Judgement: 8 Hz, above what planned motions hold, below where rigid models fail.
    filter: ZeroPhase | None = ZeroPhase(8.0),  # noqa: A002, B008
    *,
    feedback: ResumableController,
    initial: Float[np.ndarray, "samples dof"] | None = None,
    stopping: Stopping = Stopping(),  # noqa: B008
    memory: str | Path | None = None,
    on_trial: Callable[[int, Trial], None] | None = None,
) -> Learned:
    """Improve the command for a motion by executing it again and again.

    The command starts as what the model says the motion takes; after every attempt
    it is corrected by u ← u − [R̂⁻¹(x, ẋ) − R̂⁻¹(x_d, ẋ_d)] (`atkeson1986` ch. 6).
    Of the feedback only the output is used, so any controller will do; what it gives
    when nothing is wrong (computed torque gives much) is left to it.

    Args:
        plant: The plant, or a function that makes one for each trial.
        motion: What to learn.
        model: An arm, or anything with `inverse_dynamics`. An arm's Coulomb friction
            is used for the first command but not to correct it: its sign is not to be
            had from noisy velocities.
        trials: Attempts, counting those `memory` remembers.
        filter: Zero-phase low-pass of data and references alike; None for exact data.
        feedback: The controller that closes the loop; never changed.
        initial: A first command instead of the model's.
        stopping: When to stop before all trials are done.
        memory: An .npz file to go on from and to keep up to date.
        on_trial: Called after every trial.

    Returns:
        The best command and the history. A plant that runs away ends the learning
        with the best command before it.

    Raises:
        ArgumentError: If the motion leaves the model arm's joint limits.
    """
    first, teacher = _models(model)
    period = (plant if isinstance(plant, Plant) else plant(0)).control_period
    if isinstance(model, Arm):
        check_limits(motion, model)
    learned = _begin(first, motion, period, initial, memory, trials)
    perfect = perfect_feedback(feedback, motion, period)
    while learned.trials < trials and learned.ending == "trials done":
        number = learned.trials
        # The repeats for the noise floor take the first seeds.
        play = (plant, number + stopping.repeats - 1, feedback, motion)
        trial = attempt(*play, learned.next_command)
        if number == 0 and stopping.repeats > 1 and not trial.diverged:
            learned = _with_floor(learned, play, trial, stopping.repeats)
        if on_trial is not None:
            on_trial(number, trial)
        following = corrected_command(trial, teacher, filter, perfect)
        learned = _after(learned, trial, following, stopping)
        if memory is not None:
            save_learned(learned, memory)
    return learned


def _models(model: Arm | InverseModel) -> tuple[InverseModel, InverseModel]:
    """The model for the first command, and the one that corrects."""
    if not isinstance(model, Arm):
        return model, model
    smooth = model.parameters.copy()
    # Near rest the sign of a noisy velocity flips: a Coulomb term in the correction
    # would write square waves into the command.
    smooth[model.layout.drive("coulomb")] = 0.0
    return Dynamics(model), Dynamics(model.with_parameters(smooth))


def _begin(
    model: InverseModel,
    motion: Motion,
    period: float,
    initial: np.ndarray | None,
    memory: str | Path | None,
    trials: int,
) -> Learned:
    if trials < 1:
        raise ArgumentError("Learning needs at least one trial.")
    samples = max(1, round(motion.duration / period))
    if memory is not None and Path(memory).exists():
        learned = load_learned(memory)
        if learned.command.shape != (samples, motion.dof) or learned.period != period:
            raise ArgumentError(
                f"{memory} remembers a command of shape {learned.command.shape} every "
                f"{learned.period:g} s; this motion needs {(samples, motion.dof)} "
                f"every {period:g} s. Name another file."
            )
        return replace(learned, ending="trials done")
    command = nominal_command(model, motion, period) if initial is None else initial
    command = np.array(command, dtype=float)
    if command.shape != (samples, motion.dof):
        raise ArgumentError(
            f"The first command has shape {command.shape}; the motion needs "
            f"{(samples, motion.dof)}, one row per control period."
        )
    none = np.zeros((0, motion.dof))
    return Learned(command, command, period, none, none, np.full(motion.dof, np.nan))


def _with_floor(
    learned: Learned,
    play: tuple[PlantSource, int, ResumableController, Motion],
    trial: Trial,
    repeats: int,
) -> Learned:
    """Repeat the first command; what differs is beyond learning."""
    plant, _, feedback, motion = play
    runs = [trial.qd]
    for number in range(repeats - 1):
        repeated = attempt(plant, number, feedback, motion, learned.next_command)
        # A repeat that ran away is shorter and says nothing about scatter.
        if repeated.qd.shape == trial.qd.shape:
            runs.append(repeated.qd)
    if len(runs) < 2:
        return learned
    # Unbiased variance between repeats of one command: what no learning removes.
    scatter = np.var(np.array(runs), axis=0, ddof=1)
    return replace(learned, floor=np.sqrt(np.mean(scatter, axis=0)))


def _after(
    learned: Learned,
    trial: Trial,
    following: Float[np.ndarray, "samples dof"],
    stopping: Stopping,
) -> Learned:
    """Take one attempt into the record, keep the best, and say whether to go on."""
    if trial.diverged or not np.all(np.isfinite(following)):
        return replace(learned, ending="plant diverged")
    learned = learned.with_trial(trial.velocity_error, trial.position_error)
    command = trial.command if learned.best == learned.trials - 1 else learned.command
    learned = replace(learned, command=command, next_command=following)
    if learned.overall_error[-1] <= stopping.tolerance * learned.overall_floor:
        return replace(learned, ending="noise floor")
    if learned.trials - 1 - learned.best >= stopping.patience:
        return replace(learned, ending="no improvement")
    return learned


# What was learned, on motions that were not practised.


def practised_feedforward(
    plant: PlantSource,
    practice: Sequence[Motion],
    motions: Sequence[Motion],
    model: Arm,
    feedback: ControllerFactory,
    trials: int = 4,
) -> Playback:
    """Practise some motions, then command others with local models of what was learned.

    Args:
        plant: The plant to practise on, or a function that makes one for each trial.
        practice: Motions to practise, one after the other.
        motions: Motions to command, one for each plant of a batch, in order.
        model: The assumed arm, which `LocalCorrection` corrects.
        feedback: Makes what closes the loop, in practice and afterwards.
        trials: Attempts at each practised motion; one that runs away at the first
            teaches nothing.
    """
    learned = [learn(plant, x, model, trials, feedback=feedback()) for x in practice]
    period = learned[0].period
    local = LocalCorrection.from_practice(
        model, list(zip(practice, learned, strict=True))
    )
    commands = [local.command(motion, period) for motion in motions]
    # The last row of a motion is held until the longest one ends.
    longest = max(len(x) for x in commands)
    ends = [np.pad(x, ((0, longest - len(x)), (0, 0)), mode="edge") for x in commands]
    return Playback(feedback(), np.stack(ends, axis=1))


# Practice session of any arm in simulation.


@dataclass(frozen=True, eq=False)
class Session:
    """One arm, its assumed model, sensors and feedback.

    Attributes:
        arm: The arm as it is but for friction.
        model: Its assumed model.
        friction: Friction the model does not know, as a fraction of the torque.
        noise: Noise of the velocity sensors in [rad/s] or [m/s].
        duration: Length of the reach in [s].
        natural_hz: Natural frequency of the feedback in [Hz].
        rate_hz: Control rate in [Hz].
    """

    arm: Arm
    model: Arm
    friction: float = 0.02
    noise: float = 0.002
    duration: float = 2.0
    natural_hz: float = 2.0
    rate_hz: float = 500.0

    def __post_init__(self) -> None:
        for name in ("duration", "natural_hz", "rate_hz"):
            require_positive(getattr(self, name), name)

    @property
    def motion(self) -> Motion:
        """A reach through the middle of the arm's range, within its limits."""
        return tracking_tasks(self.arm, 2.0 * self.duration)["reach"]

    @property
    def gains(self) -> tuple[np.ndarray, np.ndarray]:
        """K_p and K_d of the feedback, critically damped."""
        inertia = effective_inertia(self.model, middle_posture(self.model))
        omega = 2.0 * np.pi * self.natural_hz
        return inertia * omega**2, 2.0 * inertia * omega

    def practise(
        self, trials: int, cutoff_hz: float, memory: str | Path | None = None
    ) -> Learned:
        """Execute and correct, with fresh noise in every trial."""
        rough = with_friction(self.arm, self.friction)
        sensors = (Encoder(), Tachometer(noise_std=self.noise))

        def plant(trial: int) -> SimulatedArm:
            return SimulatedArm(
                rough, sensors=sensors, seed=trial, control_rate_hz=self.rate_hz
            )

        return learn(
            plant,
            self.motion,
            self.model,
            trials,
            ZeroPhase(cutoff_hz),
            feedback=PD(*self.gains),
            memory=memory,
        )

    def analyse(self, cutoff_hz: float, samples: int = 60) -> LearningAnalysis:
        """Predict convergence from the true arm, linearised along the motion."""
        motion = self.motion
        loop = linearise_along(Dynamics(self.arm), motion, *self.gains, samples)
        lowpass = ZeroPhase(cutoff_hz)
        operator = inverse_model_along(Dynamics(self.model), motion, samples, lowpass)
        # Judgement: few trials, as in practice; growth shows within the first ones.
        return analyse_learning(loop, operator, updates=5)

    def report(
        self,
        trials: int,
        cutoff_hz: float,
        memory: str | Path | None = None,
        anyway: bool = False,
    ) -> dict[str, Any]:
        """Analyse, practise, and say everything in plain numbers.

        Args:
            trials: Attempts.
            cutoff_hz: Of the correction's low-pass in [Hz].
            memory: File to resume from and save to.
            anyway: Practise although the analysis advises against it.

        Raises:
            NotConverged: If practice would blow up or diverge; nothing is tried.
        """
        analysis = self.analyse(cutoff_hz)
        if not anyway:
            analysis.require_recommended()
        learned = self.practise(trials, cutoff_hz, memory)
        if not learned.trials:
            raise PlantDiverged(
                f"{self.arm.name} ran away in its first attempt: make the feedback "
                "softer (natural_hz), or control faster (rate_hz)."
            )
        return {
            "arm": self.arm.name,
            "analysis": {
                "reason": analysis.reason,
                "verdict": analysis.verdict,
                "spectral_radius": analysis.spectral_radius,
                "largest_singular_value": analysis.largest_singular_value,
                "transient_growth": analysis.transient_growth,
            },
            "velocity_error": learned.velocity_error,
            "position_error": learned.position_error,
            "overall_error": learned.overall_error,
            "floor": learned.floor,
            "overall_floor": learned.overall_floor,
            "best": learned.best,
            "improvement": learned.improvement,
            "ending": learned.ending,
        }
