"""What adaptive controllers promise: laws, convergence, and survival."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import Arm, Drive, InertialParameters, load_arm
from armwise.control import (
    AdaptationMonitor,
    Composite,
    ComputedTorque,
    DriveProjection,
    ModelReference,
    ParameterSet,
    PhysicalProjection,
    RobustTerm,
    SlotineLi,
    UpdateLaw,
)
from armwise.control.adaptive import AdaptiveModel, FilteredRegressor
from armwise.errors import ArgumentError, PlantDiverged
from armwise.motions import Fourier, Sinusoid
from armwise.plants import Actuator, RungeKutta4, SimulatedArm, run

from .conftest import KD, RATE


def with_friction(arm: Arm) -> Arm:
    drive = Drive(rotor_inertia=0.1, viscous=0.4, coulomb=0.3, offset=0.2)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


def slow(motion: Sinusoid, duration: float) -> Sinusoid:
    return replace(motion, duration=duration)


@pytest.mark.parametrize("name", ["two_link_slotine", "ddarm", "puma560"])
def test_the_filtered_regressor_predicts_the_filtered_torque(name: str) -> None:
    arm = with_friction(load_arm(name))
    n, dt, b = arm.dof, 1e-3, 30.0
    motion = Sinusoid(np.full(n, 0.3), np.full(n, 0.5), 1.0 + np.arange(n), 1.0)
    model = AdaptiveModel(ParameterSet.standard(arm), UpdateLaw.gradient(1.0))
    filtered = FilteredRegressor(model, b)
    filtered.reset(dt)
    time = np.arange(1000) * dt
    sample = motion.sample(time)
    tau = model.dynamics.inverse_dynamics(*motion.sample(time - dt / 2))
    reference = np.zeros(n)
    for k in range(1000):
        W, measured = filtered.update(
            sample.q[k][None], sample.qd[k][None], tau[k][None]
        )
        if k:
            reference += (1.0 - np.exp(-b * dt)) * (tau[k] - reference)
    np.testing.assert_allclose(measured[0], reference)
    scale = np.abs(tau).max(axis=0)
    assert np.all(np.abs(W[0] @ arm.parameters - measured[0]) < 2e-3 * scale)


def test_base_and_standard_parameters_give_the_same_torque(arm: Arm) -> None:
    rng = np.random.default_rng(0)
    full = with_friction(arm)
    state = rng.normal(size=(4, 1, 2))
    torques = []
    for parameters in (ParameterSet.standard(full), ParameterSet.base(full)):
        model = AdaptiveModel(parameters, UpdateLaw.gradient(1.0), parameters.values())
        model.reset(1, 1e-3)
        torques.append(model.torque(model.tracking_regressor(*state)))
    np.testing.assert_allclose(torques[0], torques[1], rtol=1e-9)


def test_composite_adaptation_finds_the_truth(arm: Arm) -> None:
    base = ParameterSet.base(arm, ())
    law = UpdateLaw.bounded_gain(10.0, 0.5, 1e3)
    controller = Composite(base, RATE, KD, law)
    rich = Fourier(
        np.array([0.8, 0.5]),
        np.array([[0.9, 0.0, 0.3], [0.0, 0.7, 0.0]]),
        np.array([[0.0, 0.4, 0.0], [0.6, 0.0, 0.4]]),
        0.25,
        1.5,
    )
    run(SimulatedArm(arm, control_rate_hz=500.0), controller, rich)
    error = np.abs(controller.estimate[0] - base.values())
    assert np.all(error < 0.01 * np.abs(base.values()).max())


def test_forgetting_does_not_make_the_arm_run_away(arm: Arm, motion: Sinusoid) -> None:
    # 40/λ0 = 8 s is as long as an unsymmetric gain stays positive definite.
    law = UpdateLaw.bounded_gain(10.0, 5.0, 1e3)
    controller = Composite(ParameterSet.base(arm, ()), RATE, KD, law)
    plant = SimulatedArm(arm, control_rate_hz=250.0)
    long = slow(motion, 16.0)
    q = run(plant, controller, long)["true_q_1"]
    error = np.abs(q.values - long.sample(q.time).q[:, 0])
    assert error[3000:].max() < 0.005
    gain = controller.model.adaptation.gain[0]
    assert np.linalg.eigvalsh(gain)[0] > 0.0


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "Slotine-Li, gradient",
        "composite, bounded gain",
        "indirect, exponential",
    ],
)
def test_minutes_under_friction_and_noise_are_endured(name: str) -> None:
    from studies.endurance import endure

    result = endure(name, minutes=2.0, rate_hz=100.0)
    assert result.endured, result


def test_friction_is_found_as_well(arm: Arm, motion: Sinusoid) -> None:
    truth = with_friction(arm)
    base = ParameterSet.base(truth)
    law = UpdateLaw.bounded_gain(10.0, 0.5, 1e3)
    controller = Composite(base, RATE, KD, law, projection=DriveProjection(base))
    plant = SimulatedArm(truth, control_rate_hz=500.0, plant_rate_hz=2000.0)
    run(plant, controller, slow(motion, 10.0))
    found = dict(zip(base.names, controller.estimate[0], strict=True))
    assert found["joint_1.viscous"] == pytest.approx(0.4, abs=0.05)
    assert found["joint_2.coulomb"] == pytest.approx(0.3, abs=0.05)


def test_the_lyapunov_function_never_grows(arm: Arm, motion: Sinusoid) -> None:
    base = ParameterSet.base(arm, ())
    controller = SlotineLi(base, RATE, KD, UpdateLaw.gradient(1.0))
    watch = AdaptationMonitor(controller, truth=arm, every=5)
    run(SimulatedArm(arm, control_rate_hz=4000.0), watch, motion, duration=1.0)
    seen = watch.history
    V = seen.lyapunov[:, 0]
    assert np.all(np.diff(V) <= 2e-3 * V[0])
    assert V[-1] < 0.9 * V[0]
    assert np.all(seen.excitation[-1] > seen.excitation[1])
    assert seen.parameters.shape == (len(seen.time), 1, base.count)


def test_nothing_is_learned_while_a_torque_is_at_its_limit(
    arm: Arm, motion: Sinusoid
) -> None:
    weak = replace(
        arm,
        joints=tuple(
            replace(j, limits=replace(j.limits, effort=0.5)) for j in arm.joints
        ),
    )
    controller = SlotineLi(
        ParameterSet.base(weak, ()), RATE, KD, UpdateLaw.gradient(1.0)
    )
    plant = SimulatedArm(weak, actuator=Actuator(saturation=0.5))
    run(plant, controller, motion, duration=0.5, q=[1.0, -1.0])
    np.testing.assert_array_equal(controller.estimate, 0.0)


def test_a_plant_that_diverges_is_stopped_and_its_recording_kept(
    arm: Arm, motion: Sinusoid
) -> None:
    law = UpdateLaw.gradient(1e6)
    controller = SlotineLi(ParameterSet.base(arm, ()), RATE, KD, law)
    plant = SimulatedArm(arm, integrator=RungeKutta4(), speed_bound=100.0)
    with pytest.raises(PlantDiverged, match="ran away") as caught:
        run(plant, controller, motion)
    assert caught.value.recording["q_1"].values.size > 1  # type: ignore[attr-defined]
    assert np.all(np.isfinite(controller.estimate))


def test_physical_projection_gives_bodies(arm: Arm) -> None:
    rng = np.random.default_rng(1)
    every = ParameterSet.standard(with_friction(arm))
    wild = rng.normal(size=(5, every.count))
    tame = PhysicalProjection(every)(wild)
    for row in tame:
        for ten in arm.layout.by_link(row):
            assert InertialParameters(ten).is_physical(1e-6)
        assert np.all(arm.layout.by_drive(row)[:, :3] >= 0)
    np.testing.assert_allclose(PhysicalProjection(every)(tame), tame, atol=1e-9)
    free = arm.layout.drive("offset")
    np.testing.assert_array_equal(tame[:, free], wild[:, free])


def test_drive_projection_bounds_friction_but_not_offsets(arm: Arm) -> None:
    base = ParameterSet.base(with_friction(arm))
    names = [n.split(".")[1] for n in base.names]
    kept = DriveProjection(base)(np.full(base.count, -1.0))
    bounded = np.array([n in ("rotor_inertia", "viscous", "coulomb") for n in names])
    np.testing.assert_array_equal(kept, np.where(bounded, 0.0, -1.0))


def test_the_robust_term_pushes_back_and_no_harder_than_it_may() -> None:
    term = RobustTerm(np.array([2.0, 3.0]), boundary=0.1)
    s = np.array([[0.05, -0.05], [1.0, -1.0]])
    np.testing.assert_allclose(term.torque(s), [[-1.0, 1.5], [-2.0, 3.0]])


def test_the_robust_term_covers_unmodelled_friction(arm: Arm, motion: Sinusoid) -> None:
    plant = SimulatedArm(with_friction(arm), control_rate_hz=1000.0)
    errors = []
    for robust in (None, RobustTerm(1.0)):
        recording = run(plant, ComputedTorque(arm, 100.0, 20.0, robust), motion)
        q = recording["true_q_1"]
        errors.append(np.abs(q.values - motion.sample(q.time).q[:, 0])[500:].max())
    assert errors[1] < 0.5 * errors[0]


def test_physical_parameters_are_left_alone() -> None:
    panda = load_arm("panda")
    every = ParameterSet.standard(panda)
    kept = PhysicalProjection(every, floor=0.0)(panda.parameters)
    np.testing.assert_allclose(kept, panda.parameters, atol=1e-12)


def test_projection_of_base_parameters_is_refused(arm: Arm) -> None:
    with pytest.raises(ArgumentError, match="standard"):
        PhysicalProjection(ParameterSet.base(arm))


def test_a_first_estimate_of_the_wrong_length_is_named(arm: Arm) -> None:
    base = ParameterSet.base(arm, ())
    with pytest.raises(ArgumentError, match="3 numbers for 6"):
        SlotineLi(base, RATE, KD, UpdateLaw.gradient(1.0), initial=np.zeros(3))
    with pytest.raises(ArgumentError, match="parameters, not"):
        base.values(load_arm("panda"))


def rohrs(dead_band: float, seconds: float) -> tuple[float, np.ndarray]:
    """Peak output and final gains of Rohrs' plant under first-order adaptation."""
    from papers.astley_adaptive import run_rohrs

    law = UpdateLaw.gradient(1.5, dead_band=dead_band)
    controller = ModelReference(3.0, law, (1.14, -0.65))
    outcome = run_rohrs(controller, seconds, dt=4e-3)
    return float(np.abs(outcome).max()), controller.estimate


def test_rohrs_example_drifts_until_it_is_unstable() -> None:
    peak, _ = rohrs(0.0, 60.0)
    assert peak > 50.0


def test_a_dead_band_cures_rohrs_example() -> None:
    peak, gains = rohrs(0.6, 80.0)
    assert peak < 3.0
    assert np.all(np.abs(gains) < 2.0)
