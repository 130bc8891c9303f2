"""Beyond the papers: a Panda in MuJoCo, identified, then driven by that model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm, Drive, load_arm
from armwise.control import PD, Feedforward, ResumableController, effective_inertia
from armwise.identification import WeightedLeastSquares, identify
from armwise.learning import Learned, ZeroPhase, learn
from armwise.motions import Fourier, Motion, Quintic, check_limits
from armwise.plants import Encoder, MujocoArm, Tachometer, TorqueSensor, run
from armwise.recordings import prepare
from papers.rows import Row, own

if TYPE_CHECKING:
    from jaxtyping import Float

SENSORS = (Encoder(1e-5), Tachometer(noise_std=0.002), TorqueSensor(noise_std=0.05))
POSTURE = np.array([0.0, -0.4, 0.0, -1.9, 0.0, 1.8, 0.0])
SWING = np.array([0.6, 0.4, 0.6, 0.5, 0.6, 0.5, 0.8])
MOTION = Quintic(POSTURE - SWING, POSTURE + SWING, 1.5)
"""The motion to be tracked: up to 1.6 rad in 1.5 s on every joint."""


def real_panda() -> Arm:
    """`panda` with rotors and friction that its description does not have."""
    arm = load_arm("panda")
    rotor = (0.6, 0.6, 0.5, 0.5, 0.2, 0.2, 0.1)
    viscous = (2.0, 2.0, 1.5, 1.5, 0.5, 0.5, 0.3)
    coulomb = (2.5, 2.5, 2.0, 2.0, 0.8, 0.6, 0.4)
    drives = map(Drive, rotor, viscous, coulomb)
    joints = zip(arm.joints, drives, strict=True)
    return replace(arm, joints=tuple(replace(j, drive=d) for j, d in joints))


def feedback(natural_hz: float = 3.0) -> PD:
    """Critically damped PD at a natural frequency."""
    omega = 2.0 * np.pi * natural_hz
    inertia = effective_inertia(real_panda(), POSTURE)
    return PD(inertia * omega**2, 2.0 * inertia * omega)


def excitation(arm: Arm, periods: float) -> Fourier:
    """Five harmonics of 0.1 Hz on every joint, within the arm's limits."""
    rng = np.random.default_rng(0)
    amplitude = rng.normal(size=(2, arm.dof, 5)) / np.arange(1, 6)
    room = np.minimum(arm.limits("upper") - POSTURE, POSTURE - arm.limits("lower"))
    reach = 1.1 * np.minimum(room, 1.5)
    amplitude *= (reach / np.abs(amplitude).sum(axis=(0, 2)))[:, None]
    motion = Fourier(POSTURE, amplitude[0], amplitude[1], 0.1, periods)
    check_limits(motion, arm)
    return motion


def identified_panda(periods: float = 2.0) -> Arm:
    """Excite the arm in MuJoCo and identify all it takes to move it."""
    nominal = load_arm("panda")
    plant = MujocoArm(real_panda(), sensors=SENSORS, seed=0)
    hold = Feedforward(feedback(), nominal, "gravity")
    recording = run(plant, hold, excitation(nominal, periods))
    samples = prepare(recording, cutoff_hz=20.0)
    return identify(
        nominal, samples, method=WeightedLeastSquares(), friction="linear"
    ).arm


@dataclass(frozen=True, eq=False)
class Outcome:
    """Root-mean-square tracking errors over all joints in [rad].

    Attributes:
        pd: Of PD alone.
        nominal: Of PD with feedforward from the description as it comes.
        identified: Of PD with feedforward from the identified model.
        learned: What practice with the identified model gave.
    """

    pd: float
    nominal: float
    identified: float
    learned: Learned

    @property
    def practised(self) -> Float[np.ndarray, " trials"]:
        """Position error of every trial of learning."""
        squares: np.ndarray = np.mean(self.learned.position_error**2, axis=1)
        return np.sqrt(squares)


def compare(model: Arm, trials: int = 4) -> Outcome:
    """Track the motion with PD, with either model, and with practice."""

    def plant(trial: int) -> MujocoArm:
        return MujocoArm(real_panda(), sensors=SENSORS, seed=100 + trial)

    forward = {
        name: Feedforward(feedback(), arm)
        for name, arm in (("nominal", load_arm("panda")), ("identified", model))
    }
    return Outcome(
        pd=tracking_error(feedback(), plant(0), MOTION),
        nominal=tracking_error(forward["nominal"], plant(0), MOTION),
        identified=tracking_error(forward["identified"], plant(0), MOTION),
        learned=learn(
            plant, MOTION, model, trials, ZeroPhase(8.0), feedback=feedback()
        ),
    )


def tracking_error(
    controller: ResumableController, plant: MujocoArm, motion: Motion
) -> float:
    """Root-mean-square error over all joints in [rad]."""
    recording = run(plant, controller, motion)
    time = recording["true_q_1"].time
    q = [recording[f"true_q_{j + 1}"].values for j in range(motion.dof)]
    return float(np.sqrt(np.mean((np.stack(q, axis=1) - motion.sample(time).q) ** 2)))


def rows() -> list[Row]:
    """What the identified model is worth on an engine that is not ours."""
    outcome = compare(identified_panda())
    gain = outcome.pd / outcome.identified
    practised = outcome.practised
    further = practised[0] / practised.min()
    note = (
        "MuJoCo, rotors and friction unknown to the description, noise on q, q̇ and τ; "
        f"PD alone {outcome.pd:.2e} rad, feedforward from the description "
        f"{outcome.nominal:.2e} rad. Learning ended: {outcome.learned.ending}."
    )
    experiment = "panda in MuJoCo"
    return [
        own(
            experiment,
            "RMS error of PD over that of identified feedforward",
            "our aim",
            gain,
            above=5.0,
            note=note,
        ),
        own(
            experiment,
            f"RMS error, first of {len(practised)} trials over the best",
            "our aim, within three updates",
            further,
            above=3.0,
            note=note,
        ),
    ]
