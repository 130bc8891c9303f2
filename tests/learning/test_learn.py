"""Practice makes better: learning one motion on a plant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armwise.arms import Arm, Drive, load_arm
from armwise.control import PD, ComputedTorque, ResumableController
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotConverged
from armwise.learning import (
    DecoupledModel,
    LocalCorrection,
    Stopping,
    Trial,
    ZeroPhase,
    analyse_learning,
    inverse_model_along,
    learn,
    linearise_along,
    load_learned,
    save_learned,
)
from armwise.learning.trial import attempt, nominal_command
from armwise.motions import Polynomial, Quintic
from armwise.plants import Encoder, SimulatedArm, Tachometer

MOTION = Quintic(np.array([0.2, 0.3]), np.array([1.4, 1.5]), 1.0)
KP, KD = np.array([80.0, 30.0]), np.array([16.0, 6.0])
RATE_HZ = 250.0
ONCE = Stopping(repeats=1)


@pytest.fixture(scope="module")
def arm() -> Arm:
    return load_arm("two_link_slotine")


@pytest.fixture(scope="module")
def truth(arm: Arm) -> Arm:
    """The arm with friction that no model knows of."""
    drive = Drive(viscous=0.5, coulomb=0.4)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


@pytest.fixture(scope="module")
def wrong(arm: Arm) -> Arm:
    return arm.with_parameters(0.85 * arm.parameters)


def plant_of(arm: Arm, noise: float = 0.0) -> object:
    sensors = (Encoder(), Tachometer(noise_std=noise))

    def make(trial: int) -> SimulatedArm:
        return SimulatedArm(arm, sensors=sensors, seed=trial, control_rate_hz=RATE_HZ)

    return make


def test_practice_reaches_the_noise_floor(truth: Arm, wrong: Arm) -> None:
    plant = plant_of(truth, noise=0.004)
    learned = learn(plant, MOTION, wrong, 8, feedback=PD(KP, KD))  # type: ignore[arg-type]
    assert learned.ending == "noise floor"
    assert learned.improvement > 5
    assert learned.overall_error[-1] < 1.5 * learned.overall_floor
    np.testing.assert_allclose(learned.floor, 0.004, rtol=0.1)


def test_the_exact_model_needs_one_trial(arm: Arm) -> None:
    plant = SimulatedArm(arm, control_rate_hz=1000.0)
    nothing = np.zeros((1000, 2))
    learned = learn(
        plant, MOTION, arm, 2, None, feedback=PD(KP, KD), initial=nothing, stopping=ONCE
    )
    assert learned.overall_error[1] < 2e-5 * learned.overall_error[0]


@pytest.mark.parametrize("kind", ["pd", "computed torque"])
def test_any_feedback_will_do(kind: str, truth: Arm, wrong: Arm) -> None:
    feedback: ResumableController = (
        PD(KP, KD) if kind == "pd" else ComputedTorque(wrong, 50.0, 14.0)
    )
    plant = plant_of(truth)
    start = nominal_command(Dynamics(wrong), MOTION, 1 / RATE_HZ)
    initial = start if kind == "pd" else 0.0 * start
    learned = learn(
        plant,  # type: ignore[arg-type]
        MOTION,
        wrong,
        5,
        feedback=feedback,
        initial=initial,
        stopping=ONCE,
    )
    assert learned.improvement > 3


def test_it_resumes_from_disk(truth: Arm, wrong: Arm, tmp_path: Path) -> None:
    plant, memory = plant_of(truth, noise=0.002), tmp_path / "practice" / "reach.npz"
    options = {"feedback": PD(KP, KD), "stopping": Stopping(tolerance=0.0)}
    whole = learn(plant, MOTION, wrong, 4, **options)  # type: ignore[arg-type]
    learn(plant, MOTION, wrong, 2, memory=memory, **options)  # type: ignore[arg-type]
    part = learn(plant, MOTION, wrong, 4, memory=memory, **options)  # type: ignore[arg-type]
    np.testing.assert_array_equal(whole.velocity_error, part.velocity_error)
    np.testing.assert_array_equal(whole.command, part.command)
    kept = load_learned(memory)
    np.testing.assert_array_equal(kept.command, part.command)
    assert [p.name for p in memory.parent.iterdir()] == ["reach.npz"]


def test_the_best_command_is_kept_when_learning_makes_it_worse(arm: Arm) -> None:
    heavy = DecoupledModel(np.array([30.0, 30.0]))
    start = nominal_command(Dynamics(arm), MOTION, 1 / RATE_HZ)
    learned = learn(
        SimulatedArm(arm, control_rate_hz=RATE_HZ),
        MOTION,
        heavy,
        8,
        None,
        feedback=PD(KP, KD),
        initial=start,
        stopping=ONCE,
    )
    assert learned.ending in ("no improvement", "plant diverged")
    assert learned.best == 0
    np.testing.assert_array_equal(learned.command, start)


def test_a_runaway_ends_learning_with_what_was_good(arm: Arm) -> None:
    told: list[int] = []

    def tell(number: int, trial: Trial) -> None:
        told.append(number)

    learned = learn(
        SimulatedArm(arm, control_rate_hz=RATE_HZ, speed_bound=20.0),
        MOTION,
        arm,
        4,
        feedback=PD(1e5, 1.0),
        stopping=ONCE,
        on_trial=tell,
    )
    assert learned.ending == "plant diverged"
    assert told == [0]


def test_the_decoupled_model_is_refused_beforehand_and_fails(arm: Arm) -> None:
    dynamics = Dynamics(arm)
    simple = DecoupledModel(np.array([3.34, 0.97]))
    motion = Polynomial.seventh_order([0.0, 2.0], [1.5, 0.3], 0.5)
    omega = 2.0 * np.pi
    kp, kd = simple.inertia * omega**2, 1.414 * omega * simple.inertia
    loop = linearise_along(dynamics, motion, kp, kd, 50)
    analysis = analyse_learning(loop, inverse_model_along(simple, motion, 50), 5)
    with pytest.raises(NotConverged, match="does not converge"):
        analysis.require_recommended()
    learned = learn(
        SimulatedArm(arm, control_rate_hz=RATE_HZ),
        motion,
        simple,
        6,
        None,
        feedback=PD(kp, kd),
        stopping=Stopping(repeats=1, patience=6),
    )
    assert learned.overall_error[-1] >= learned.overall_error[0]


def test_the_linearisation_foretells_small_errors(arm: Arm) -> None:
    """A small push of the command moves the real plant as the lifted loop says."""
    dynamics = Dynamics(arm)
    samples = 100
    loop = linearise_along(dynamics, MOTION, KP, KD, samples)
    plant = SimulatedArm(arm, control_rate_hz=2000.0)
    command = nominal_command(dynamics, MOTION, plant.control_period)
    push = np.zeros((samples, 2))
    push[20:40, 0] = 0.01
    pushed = command + np.repeat(push, len(command) // samples, axis=0)
    trials = [attempt(plant, 0, PD(KP, KD), MOTION, c) for c in (command, pushed)]
    moved = (trials[1].q - trials[0].q)[:: len(command) // samples]
    middle = 0.5 * (moved[1:] + moved[:-1])
    foretold = (loop.error @ push.ravel()).reshape(samples, 6)[:, :2]
    np.testing.assert_allclose(foretold, middle, atol=0.03 * np.abs(middle).max())


def test_the_rigid_body_operator_is_recommended_with_its_filter(arm: Arm) -> None:
    dynamics = Dynamics(arm.with_parameters(0.9 * arm.parameters))
    loop = linearise_along(Dynamics(arm), MOTION, KP, KD, 60)
    operator = inverse_model_along(dynamics, MOTION, 60, ZeroPhase(8.0))
    analysis = analyse_learning(loop, operator, 5)
    # Beyond the cut-off nothing is corrected, so the radius stays near one.
    assert analysis.spectral_radius < 1.0 + 1e-6
    assert analysis.transient_growth < 2.0


def test_practice_helps_similar_motions(truth: Arm, wrong: Arm) -> None:
    plant = SimulatedArm(truth, control_rate_hz=RATE_HZ)
    learned = learn(plant, MOTION, wrong, 4, feedback=PD(KP, KD), stopping=ONCE)
    local = LocalCorrection.from_practice(wrong, [(MOTION, learned)])
    similar = {
        "faster": replace(MOTION, duration=0.8),
        "slower": replace(MOTION, duration=1.3),
        "shifted": Quintic(MOTION.start + 0.15, MOTION.end + 0.15, 1.0),
    }
    for name, motion in similar.items():
        plain = nominal_command(Dynamics(wrong), motion, plant.control_period)
        reused = local.command(motion, plant.control_period)
        errors = [
            np.linalg.norm(attempt(plant, 0, PD(KP, KD), motion, c).position_error)
            for c in (plain, reused)
        ]
        assert errors[1] < 0.5 * errors[0], name


def test_coulomb_friction_starts_the_command_but_does_not_correct_it(
    truth: Arm,
) -> None:
    from armwise.learning.learn import _models

    first, teacher = _models(truth)
    q, back_and_forth = np.zeros((2, 2)), np.array([[1e-6, 1e-6], [-1e-6, -1e-6]])
    jump = np.ptp(first.inverse_dynamics(q, back_and_forth, q), axis=0)
    np.testing.assert_allclose(jump, 0.8, rtol=1e-3)
    assert np.ptp(teacher.inverse_dynamics(q, back_and_forth, q)) < 1e-4


def test_far_from_practice_the_correction_fades(truth: Arm, wrong: Arm) -> None:
    plant = SimulatedArm(truth, control_rate_hz=RATE_HZ)
    learned = learn(plant, MOTION, wrong, 2, feedback=PD(KP, KD), stopping=ONCE)
    local = LocalCorrection.from_practice(wrong, [(MOTION, learned)])
    # States are corrected block by block, each as it would be alone.
    q, qd, qdd = MOTION.sample(np.linspace(0.0, 1.0, 600))
    whole = local.torque(q, qd, qdd)
    alone = [local.torque(q[k, None], qd[k, None], qdd[k, None]) for k in (0, 499, 599)]
    np.testing.assert_allclose(whole[[0, 499, 599]], np.concatenate(alone), atol=1e-9)
    far = np.full((3, 2), 50.0)
    assert np.abs(local.torque(far, far, far)).max() < 1e-6


def test_bad_arguments_are_named(arm: Arm, tmp_path: Path) -> None:
    plant = SimulatedArm(arm, control_rate_hz=RATE_HZ)
    feedback = PD(KP, KD)
    with pytest.raises(ArgumentError, match="at least one trial"):
        learn(plant, MOTION, arm, 0, feedback=feedback)
    with pytest.raises(ArgumentError, match="one row per control period"):
        learn(plant, MOTION, arm, 1, feedback=feedback, initial=np.zeros((3, 2)))
    with pytest.raises(ArgumentError, match="nothing practised"):
        LocalCorrection.from_practice(arm, [])
    with pytest.raises(ArgumentError, match="positive cut-off"):
        ZeroPhase(0.0)
    far = Quintic(MOTION.start, MOTION.end + 50.0, 30.0)
    with pytest.raises(ArgumentError, match="beyond its limit"):
        learn(plant, far, arm, 1, feedback=feedback)
    memory = tmp_path / "learned.npz"
    memory.write_bytes(b"something else")
    with pytest.raises(ArgumentError, match=r"learned\.npz does not hold"):
        learn(plant, MOTION, arm, 1, feedback=feedback, memory=memory)
    short = Quintic(MOTION.start, MOTION.end, 0.5)
    once = learn(plant, short, arm, 1, feedback=feedback, stopping=ONCE)
    save_learned(once, memory)
    with pytest.raises(ArgumentError, match="this motion needs"):
        learn(plant, MOTION, arm, 1, feedback=feedback, memory=memory)


def test_zero_phase_keeps_slow_and_removes_fast_without_delay() -> None:
    t = np.arange(2000) / 1000.0
    slow = np.sin(2 * np.pi * 1.0 * t)[:, None]
    fast = np.sin(2 * np.pi * 100.0 * t)[:, None]
    out = ZeroPhase(8.0).apply(slow + fast, 1000.0)
    inner = slice(300, -300)
    np.testing.assert_allclose(out[inner], slow[inner], atol=5e-3)
    matrix = ZeroPhase(8.0).matrix(100, 100.0)
    signal = np.random.default_rng(0).normal(size=(100, 2))
    np.testing.assert_allclose(
        matrix @ signal, ZeroPhase(8.0).apply(signal, 100.0), atol=1e-10
    )
