"""Practice session of any arm in simulation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from armwise.arms import Arm
from armwise.control import (
    PD,
    effective_inertia,
    middle_posture,
    tracking_tasks,
    with_friction,
)
from armwise.dynamics import Dynamics
from armwise.errors import PlantDiverged
from armwise.learning.analysis import LearningAnalysis, analyse_learning
from armwise.learning.learn import learn
from armwise.learning.memory import Learned
from armwise.learning.operators import inverse_model_along, linearise_along
from armwise.learning.trial import ZeroPhase
from armwise.motions import Motion, require_positive
from armwise.plants import Encoder, SimulatedArm, Tachometer


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
