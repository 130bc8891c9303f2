"""Both engines, every integrator: one conformance suite, then what each promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import InertialParameters, load_arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.plants import (
    DormandPrince,
    Friction,
    JointElasticity,
    Payload,
    RungeKutta4,
    SemiImplicit,
    SimulatedArm,
    perturbed,
)

from .arms_under_test import flywheel, pendulum, with_drives

PANDA = load_arm("panda")
ROUGH = with_drives(PANDA, rotor_inertia=0.05, viscous=0.3, coulomb=0.4, offset=0.1)
SOFT = JointElasticity(3000.0, 1.0)
CASES = {
    "free": (PANDA, RungeKutta4(), {}),
    "rough rk4": (ROUGH, RungeKutta4(), {}),
    "rough": (ROUGH, SemiImplicit(), {}),
    "stick-slip": (ROUGH, SemiImplicit(), {"friction": Friction(static=1.5)}),
    "elastic": (ROUGH, SemiImplicit(), {"elasticity": SOFT}),
    "geared": (ROUGH, SemiImplicit(), {"elasticity": JointElasticity(3e3, 1.0, 4e-3)}),
    "elastic rk4": (ROUGH, RungeKutta4(), {"elasticity": SOFT}),
    "adaptive": (
        ROUGH,
        DormandPrince(1e-7, 1e-8),
        {"friction": Friction(smoothing=0.05)},
    ),
}
cases = pytest.mark.parametrize(
    ("arm", "integrator", "more"), CASES.values(), ids=CASES
)
POSTURES = np.linspace(-1, 1, 21).reshape(3, 7)


def _carried(plant: SimulatedArm, q: np.ndarray, steps: int = 30) -> np.ndarray:
    plant.reset(q)
    for k in range(steps):
        plant.step(3.0 * np.sin(10.0 * q + 0.05 * k))
    s = plant.state
    return np.stack([s.q, s.qd, s.qdd, s.link_tau, s.motor_q, s.motor_qd])


@cases
def test_c_and_numpy_agree(arm, integrator, more):
    ours, theirs = (
        _carried(
            SimulatedArm(arm, batch=3, integrator=integrator, backend=b, **more),
            POSTURES,
        )
        for b in ("c", "numpy")
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


@cases
def test_an_arm_in_a_batch_moves_as_it_would_alone(arm, integrator, more):
    if isinstance(integrator, DormandPrince):
        pytest.skip("arms of a batch share their steps; each is within tolerance")
    many = _carried(SimulatedArm(arm, batch=3, integrator=integrator, **more), POSTURES)
    one = _carried(SimulatedArm(arm, integrator=integrator, **more), POSTURES[1:2])
    np.testing.assert_allclose(many[:, 1:2], one, rtol=1e-9, atol=1e-10)


@cases
def test_what_is_measured_satisfies_the_equations_of_motion(arm, integrator, more):
    if "elasticity" in more:
        pytest.skip("motor and link move apart")
    plant = SimulatedArm(arm, batch=3, integrator=integrator, **more)
    q, qd, qdd, *_ = _carried(plant, POSTURES)
    torque = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    if "static" in repr(more) and more["friction"].static > 1:
        level = 1 + 0.5 / (1 + (qd / 0.05) ** 2)
        torque += 0.4 * np.sign(qd) * (level - 1)
    # What stands still has friction anywhere up to its level.
    stuck, gap = qd == 0.0, torque - plant.state.tau
    assert np.abs(gap[~stuck]).max() < 1e-9
    assert np.all(np.abs(gap[stuck]) <= 0.6)
    rigid = with_drives(arm)
    np.testing.assert_allclose(
        Dynamics(rigid).inverse_dynamics(q, qd, qdd), plant.state.link_tau, atol=1e-9
    )


def test_each_arm_of_a_batch_may_have_its_own_parameters_and_load():
    arms = [perturbed(ROUGH, 0.2, seed) for seed in range(3)]
    loads = [Payload("flange", arm.links[6].inertia) for arm in arms]
    many = _carried(SimulatedArm(PANDA, true_arm=arms, payload=loads), POSTURES)
    for k in range(3):
        alone = SimulatedArm(PANDA, true_arm=arms[k], payload=loads[k])
        one = _carried(alone, POSTURES[k : k + 1])
        np.testing.assert_allclose(many[:, k : k + 1], one, rtol=1e-9, atol=1e-10)
    assert (
        np.abs(many[0, 0] - _carried(SimulatedArm(arms[0]), POSTURES[:1])[0]).max()
        > 1e-4
    )


@pytest.mark.parametrize(
    ("integrator", "order"), [(SemiImplicit(), 1), (RungeKutta4(), 4)]
)
def test_halving_the_step_divides_the_error_by_two_to_the_order(integrator, order):
    arm = with_drives(load_arm("two_link_uno"), viscous=0.1)
    arm = replace(arm, gravity=np.array([0.0, -9.81, 0.0]))

    def end(rate: float, method: object) -> np.ndarray:
        plant = SimulatedArm(
            arm, integrator=method, plant_rate_hz=rate, control_rate_hz=100.0
        )
        plant.reset([1.0, 0.5], [2.0, -1.0])
        for _ in range(50):
            plant.step(np.zeros((1, 2)))
        return plant.state.q.copy()

    exact = end(100.0, DormandPrince(1e-12, 1e-13))
    rates = (100.0, 200.0) if order == 4 else (1000.0, 2000.0)
    coarse, fine = (np.abs(end(rate, integrator) - exact).max() for rate in rates)
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.35)


@pytest.mark.parametrize("name", ["panda", "ur10", "puma560"])
def test_energy_is_conserved_without_friction(name):
    arm = with_drives(load_arm(name))
    dynamics = Dynamics(arm)
    plant = SimulatedArm(arm)
    q0 = np.linspace(0.2, 0.8, arm.dof)
    plant.reset(q0)
    energies, kinetic = [], []
    for _ in range(1000):
        for _ in range(10):
            plant.step(np.zeros((1, arm.dof)))
        q, qd = plant.state.q, plant.state.qd
        kinetic.append(float(dynamics.kinetic_energy(q, qd)[0]))
        energies.append(kinetic[-1] + float(dynamics.potential_energy(q)[0]))
    start = float(dynamics.potential_energy(q0[None])[0])
    drift = np.abs(np.array(energies) - start).max() / np.max(kinetic)
    assert max(kinetic) > 5.0
    assert drift < 1e-6


def test_a_joint_sticks_exactly_below_its_static_friction_and_slips_above():
    arm = flywheel(viscous=0.1, coulomb=1.0)
    plant = SimulatedArm(arm, friction=Friction(static=1.5))
    plant.reset([0.3])
    for torque, moves in ((1.4, False), (-1.4, False), (1.6, True)):
        for _ in range(100):
            plant.step(np.array([[torque]]))
        assert bool(plant.state.qd[0, 0] > 1e-3) is moves
        if not moves:
            assert plant.state.q[0, 0] == 0.3
            assert plant.state.qd[0, 0] == 0.0
            assert abs(plant.state.qdd[0, 0]) < 1e-9


def test_steady_sliding_obeys_the_stribeck_curve():
    arm = flywheel(viscous=0.2, coulomb=1.0)
    plant = SimulatedArm(arm, friction=Friction(static=1.6, stribeck_speed=0.3))
    for speed in (0.5, 1.0, 3.0):
        law = 0.2 * speed + 1.0 + 0.6 / (1 + (speed / 0.3) ** 2)
        plant.reset([0.0], [speed])
        plant.step(np.array([[law]]))
        assert plant.state.qd[0, 0] == pytest.approx(speed, rel=1e-9)
        assert abs(plant.state.qdd[0, 0]) < 1e-9


def test_coulomb_friction_stops_a_wheel_where_mechanics_says():
    # v²/2 = (fc/I) x, and it stays there.
    plant = SimulatedArm(flywheel(0.5, coulomb=1.0), plant_rate_hz=20_000.0)
    plant.reset([0.0], [2.0])
    for _ in range(1500):
        plant.step(np.zeros((1, 1)))
    assert plant.state.qd[0, 0] == 0.0
    assert plant.state.q[0, 0] == pytest.approx(2.0**2 / 2 / (1.0 / 0.5), rel=1e-3)


def test_static_friction_above_coulomb_makes_a_slowly_pulled_joint_jerk():
    def stops(static: float) -> int:
        plant = SimulatedArm(
            flywheel(0.5, coulomb=1.0, viscous=0.2),
            friction=Friction(static=static, stribeck_speed=0.05),
        )
        plant.reset([0.0])
        speeds = []
        for k in range(8000):
            gap = 0.05 * plant.time - plant.state.q[0, 0]
            plant.step(np.array([[20.0 * gap]]))
            speeds.append(plant.state.qd[0, 0] if k > 3000 else 1.0)
        at_rest = np.array(speeds) == 0.0
        return int(np.sum(at_rest[1:] & ~at_rest[:-1]))

    assert stops(1.5) >= 2
    assert stops(1.0) == 0


@pytest.mark.parametrize("integrator", [SemiImplicit(), RungeKutta4(), DormandPrince()])
def test_an_elastic_joint_rings_at_its_frequency(integrator):
    inertia, rotor, k = 0.5, 0.1, 200.0
    plant = SimulatedArm(
        flywheel(inertia, rotor_inertia=rotor),
        elasticity=JointElasticity(k),
        integrator=integrator,
        plant_rate_hz=50_000.0,
    )
    plant.reset([0.0])
    plant.state.motor_q[:] = 0.01 * inertia / (inertia + rotor)
    plant.state.q[:] = -0.01 * rotor / (inertia + rotor)
    omega = np.sqrt(k * (1 / inertia + 1 / rotor))
    stretch = []
    for _ in range(500):
        plant.step(np.zeros((1, 1)))
        stretch.append(plant.state.motor_q[0, 0] - plant.state.q[0, 0])
    expected = 0.01 * np.cos(omega * 1e-3 * np.arange(1, 501))
    tolerance = 2e-3 if isinstance(integrator, SemiImplicit) else 1e-8
    np.testing.assert_allclose(stretch, expected, atol=tolerance)


def test_a_gear_transmits_nothing_within_its_play():
    arm = with_drives(pendulum(), rotor_inertia=0.01, viscous=1.0, coulomb=0.2)
    gear = JointElasticity(100.0, 5.0, backlash=0.02)
    plant = SimulatedArm(arm, elasticity=gear)
    plant.reset([0.0])
    plant.step(np.array([[3.0]]))  # the motor sets out; the link hangs still
    assert 0.0 < plant.state.motor_q[0, 0] < 0.01
    assert plant.state.q[0, 0] == 0.0
    assert plant.state.link_tau[0, 0] == 0.0
    hold = 2.0 * 9.81 * 0.4 * np.sin(0.5)
    for _ in range(6000):
        plant.step(400.0 * (0.5 - plant.state.motor_q) + hold)
    q = plant.state.q[0, 0]
    gravity = 2.0 * 9.81 * 0.4 * np.sin(q)
    twist = plant.state.motor_q[0, 0] - q
    assert twist == pytest.approx(gravity / 100.0 + 0.01, rel=1e-4)
    with pytest.raises(ArgumentError, match="backlash"):
        JointElasticity(100.0, backlash=-0.1)


def test_an_elastic_joint_gives_under_gravity():
    arm = with_drives(pendulum(), rotor_inertia=0.01, viscous=1.0, coulomb=0.2)
    plant = SimulatedArm(arm, elasticity=JointElasticity(100.0, 5.0))
    plant.reset([0.0])
    hold = 2.0 * 9.81 * 0.4 * np.sin(0.5)
    for _ in range(6000):
        error = 0.5 - plant.state.motor_q
        plant.step(400.0 * error + hold)
    q = plant.state.q[0, 0]
    gravity = 2.0 * 9.81 * 0.4 * np.sin(q)
    assert plant.state.motor_q[0, 0] - q == pytest.approx(gravity / 100.0, rel=1e-4)
    assert plant.state.link_tau[0, 0] == pytest.approx(gravity, rel=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SimulatedArm(PANDA, elasticity=SOFT), "'joint_1' has none"),
        (lambda: SimulatedArm(PANDA, true_arm=flywheel()), "another geometry"),
        (lambda: SimulatedArm(PANDA, true_arm=[PANDA] * 2, batch=3), "disagree"),
        (lambda: SimulatedArm(PANDA, batch=0), "at least one arm"),
        (lambda: SimulatedArm(flywheel(coulomb=-1.0)), "push itself"),
        (lambda: SimulatedArm(PANDA, integrator="rk4"), "integrator must be"),
        (lambda: SimulatedArm(PANDA, control_rate_hz=0.0), "control_rate_hz"),
        (lambda: Friction(static=0.5), "less than Coulomb"),
        (lambda: Friction(smoothing=0.0), "must be positive"),
        (lambda: JointElasticity(0.0), "must be positive"),
        (lambda: JointElasticity(1.0, -1.0), "cannot be negative"),
        (lambda: DormandPrince(rtol=2.0), "rtol must lie"),
        (lambda: perturbed(PANDA, 1.5), "between 0 and 1"),
    ],
)
def test_refuses_what_cannot_be_simulated(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


def test_perturbed_arms_are_physical_and_off_by_about_as_much_as_asked():
    masses = [
        perturbed(PANDA, 0.1, seed).links[3].inertia.mass / PANDA.links[3].inertia.mass
        for seed in range(200)
    ]
    assert 0.05 < np.std(masses) < 0.2
    assert not perturbed(ROUGH, 0.3, 1).defects()
    same = perturbed(ROUGH, 0.0).parameters
    np.testing.assert_allclose(same, ROUGH.parameters, rtol=1e-12, atol=1e-15)


def test_a_perturbed_point_at_its_own_frame_stays_one():
    """Descriptions put masses without inertia there; lengths have no unit then."""
    mass = PANDA.links[2].inertia.mass
    point = replace(PANDA.links[2], inertia=InertialParameters(mass * np.eye(10)[0]))
    arm = replace(PANDA, links=(*PANDA.links[:2], point, *PANDA.links[3:]))
    body = perturbed(arm, 0.2, 1).links[2].inertia
    assert body.mass == pytest.approx(mass, rel=0.5)
    assert body.mass != mass
