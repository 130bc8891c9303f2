"""The same arm on our equations and on an engine no one here wrote."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import (
    Drive,
    Frame,
    InertialParameters,
    Joint,
    Mimic,
    load_arm,
    save_arm,
)
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, ArmError, PlantDiverged
from armwise.motions import Hold
from armwise.plants import (
    MujocoArm,
    Payload,
    Plant,
    RungeKutta4,
    SimulatedArm,
    WristSensor,
    run,
)
from armwise.plants.altered_arms import WristWrench
from armwise.plants.simulation_loop import IDEAL_SENSORS

from .arms_under_test import Pd, Push, flywheel, with_drives

pytest.importorskip("mujoco", reason="needs the extra armwise[sim]")


def _bar() -> InertialParameters:
    """A 1.1 kg bar, 15 cm off the flange, crooked."""
    inertia = np.array([[0.02, 0.001, 0.0], [0.001, 0.004, 0.002], [0.0, 0.002, 0.021]])
    return InertialParameters.from_center_of_mass(1.1, (0.02, -0.03, 0.15), inertia)


@pytest.mark.parametrize("name", ["panda", "ur10", "puma560"])
def test_ten_seconds_of_the_same_torques_end_in_the_same_place(name):
    arm = with_drives(load_arm(name), rotor_inertia=0.1, viscous=3.0, offset=0.2)
    # Strongly damped: what little the engines differ in is not blown up by chaos.
    start, phase = np.linspace(-1, 1, arm.dof), np.arange(arm.dof)
    hold = Dynamics(arm).gravity_torque(start)
    push = Push(lambda t: hold + 2.0 * np.sin(2.0 * t + phase))
    rates = {"control_rate_hz": 200.0, "plant_rate_hz": 2000.0}
    recordings = [
        run(plant, push, Hold(start, 10.0))
        for plant in (
            SimulatedArm(arm, **rates),
            MujocoArm(arm, integrator="rk4", **rates),
        )
    ]
    for signal in ("q", "qd", "qdd", "tau"):
        ours, theirs = (
            np.stack([r[f"true_{signal}_{j + 1}"].values for j in range(arm.dof)])
            for r in recordings
        )
        assert np.ptp(ours) > 0.1
        scale = max(1.0, np.abs(ours).max())
        np.testing.assert_allclose(ours, theirs, atol=1e-7 * scale)


def test_a_load_and_the_wrench_it_takes_agree():
    arm = with_drives(load_arm("panda"), rotor_inertia=0.1, viscous=0.5)
    load = Payload("flange", _bar())
    sensors = (*IDEAL_SENSORS, WristSensor("flange"))
    ours = SimulatedArm(arm, sensors=sensors, payload=load, plant_rate_hz=4000.0)
    theirs = MujocoArm(
        arm, sensors=sensors, payload=load, plant_rate_hz=4000.0, integrator="rk4"
    )
    q, qd = np.linspace(-0.8, 0.9, 7), np.linspace(1.0, -1.0, 7)
    pair = [plant.reset(q, qd) for plant in (ours, theirs)]
    # Ours averages between samples; what it averages is compared at the moment.
    wrench = WristWrench([arm], [load], "flange", "auto")
    for k in range(300):
        tau = 5.0 * np.sin(np.arange(7) + 0.02 * k)[None]
        now = wrench(ours.state)
        np.testing.assert_allclose(now, pair[1].wrench, rtol=1e-6, atol=1e-6)
        pair = [plant.step(tau) for plant in (ours, theirs)]
    np.testing.assert_allclose(pair[0].q, pair[1].q, atol=1e-9)
    np.testing.assert_allclose(ours.state.link_tau, theirs.state.link_tau, atol=1e-6)
    assert np.abs(pair[0].wrench).max() > 1.0


def test_a_wrist_sensor_at_rest_feels_the_weight_it_carries():
    arm = load_arm("panda")
    gripper = InertialParameters.from_center_of_mass(
        0.7, (0, 0, 0.05), np.eye(3) * 1e-3
    )
    link = arm.find_frame("flange")[0]
    links = list(arm.links)
    T = arm.find_frame("flange")[1]
    links[link] = replace(
        links[link], inertia=links[link].inertia + gripper.transformed(T)
    )
    arm = replace(arm, links=tuple(links), frames=(Frame("flange", link, T, gripper),))
    sensors = (*IDEAL_SENSORS, WristSensor("flange"))
    q = np.linspace(0.3, -0.4, 7)
    hold = Dynamics(arm).gravity_torque(q)
    R = Dynamics(arm).link_pose(q, "flange")[:3, :3]
    force = -0.7 * (R.T @ arm.gravity)
    torque = np.cross([0, 0, 0.05], force)
    for kind in (SimulatedArm, MujocoArm):
        plant = kind(arm, sensors=sensors)
        plant.reset(q)
        wrench = plant.step(hold[None]).wrench
        np.testing.assert_allclose(wrench[0], [*force, *torque], atol=1e-2)


def test_arms_of_a_batch_may_differ():
    arm = load_arm("two_link_slotine")
    heavy = arm.with_parameters(1.3 * arm.parameters)
    both, one = MujocoArm([arm, heavy]), MujocoArm(heavy)
    tau = np.array([3.0, -1.0])
    for plant in (both, one):
        plant.reset([0.3, -0.2])
        for _ in range(50):
            plant.step(np.tile(tau, (plant.batch, 1)))
    assert np.array_equal(both.state.q[1], one.state.q[0])
    assert not np.allclose(both.state.q[0], both.state.q[1])
    with pytest.raises(ArgumentError, match="same joints"):
        MujocoArm([arm, load_arm("panda")])
    with pytest.raises(ArgumentError, match="no batch of 3"):
        MujocoArm([arm, heavy], batch=3)


def test_coulomb_friction_holds_in_both():
    arm = flywheel(0.5, coulomb=1.0, rotor_inertia=0.1)
    for kind in (SimulatedArm, MujocoArm):
        plant = kind(arm)
        plant.reset([0.0], [2.0])
        for _ in range(3000):
            plant.step(np.array([[0.5]]))
        assert abs(plant.state.qd[0, 0]) < 1e-3
        # v²/2 = (fc − τ)/I · x
        assert plant.state.q[0, 0] == pytest.approx(4.0 / 2 / (0.5 / 0.6), rel=0.01)


def test_friction_holds_what_gravity_pulls_if_asked_to():
    arm = load_arm("ur5").with_coupling(
        "wrist motor", {"joint_5": 1.0, "joint_6": 1.0}, Drive(0.0, 0.0, 5.0)
    )
    pull = np.abs(Dynamics(arm).gravity_torque(arm.rest))
    values = np.array(arm.parameters)
    values[arm.layout.drive("coulomb")[:6]] = 1.5 * pull + 0.1
    # Held by the coupled motor alone.
    values[arm.layout.drive("coulomb")[4]] = 0.0
    creep = []
    for holds in (True, False):
        plant = MujocoArm(arm.with_parameters(values), friction_holds=holds)
        plant.reset(arm.rest)
        for _ in range(1000):
            plant.step(np.zeros((1, 6)))
        creep.append(np.abs(plant.state.q[0] - arm.rest).max())
    assert creep[0] < 1e-4 < 1e-2 < creep[1]


def test_coupled_motors_and_joints_that_follow_agree():
    base = with_drives(load_arm("puma560"), rotor_inertia=0.2, viscous=1.0)
    arm = base.with_coupling(
        "wrist motor",
        {base.joints[4].name: 1.0, base.joints[5].name: -0.5},
        Drive(0.3, 0.4, 0.0, 0.2),
    )
    ours = SimulatedArm(arm, integrator=RungeKutta4())
    theirs = MujocoArm(arm, integrator="rk4")
    for plant in (ours, theirs):
        plant.reset(np.linspace(-0.5, 0.5, 6))
        for k in range(200):
            plant.step(np.cos(np.arange(6) + 0.05 * k)[None])
    np.testing.assert_allclose(ours.state.q, theirs.state.q, atol=1e-8)
    np.testing.assert_allclose(ours.state.qdd, theirs.state.qdd, atol=1e-5)


def test_a_following_joint_moves_with_its_leader():
    body = InertialParameters.from_center_of_mass(1.0, (0.1, 0, 0), 0.01 * np.eye(3))
    axis, shift = np.array([0.0, 1.0, 0.0]), np.eye(4)
    shift[0, 3] = 0.2
    drive = Drive(rotor_inertia=0.02, viscous=0.1)
    lead = Joint("lead", "revolute", -1, np.eye(4), axis, drive=drive)
    follow = Joint("follow", "revolute", 0, shift, axis, mimic=Mimic(0, -2.0, 0.3))
    base = load_arm("two_link_uno")
    links = tuple(replace(link, inertia=body) for link in base.links)
    arm = replace(
        base,
        joints=(lead, follow),
        links=links,
        gravity=np.array([0, 0, -9.81]),
        frames=(),
    )
    ours = SimulatedArm(arm)
    ours.reset([0.4])
    for _ in range(500):
        ours.step(np.zeros((1, 1)))
    dynamics = Dynamics(arm)
    s = ours.state
    np.testing.assert_allclose(
        dynamics.inverse_dynamics(s.q, s.qd, s.qdd), 0, atol=1e-9
    )
    assert np.abs(s.q - 0.4).max() > 0.1


def test_files_are_plants_too(tmp_path):
    arm = with_drives(load_arm("panda"), rotor_inertia=0.0, viscous=0.5)
    urdf = tmp_path / "panda.urdf"
    save_arm(arm, urdf)
    mjcf = tmp_path / "swing.xml"
    mjcf.write_text(
        """<mujoco><option gravity="0 0 -9.81"/><worldbody><body><joint name="swing"
        axis="0 1 0"/><inertial pos="0 0 -0.4" mass="2" diaginertia="1e-4 1e-4 1e-4"/>
        </body></worldbody><actuator><position joint="swing" kp="1000"/></actuator>
        </mujoco>"""
    )
    here, there = MujocoArm(arm), MujocoArm(urdf)
    assert there.joint_names == here.joint_names
    for plant in (here, there):
        plant.reset(np.zeros(7))
        for _ in range(50):
            plant.step(np.zeros((1, 7)))
    np.testing.assert_allclose(here.state.q, there.state.q, atol=1e-6)
    swing = MujocoArm(mjcf)
    swing.reset([0.5])
    assert swing.joint_names == ("swing",)
    expected = -2 * 9.81 * 0.4 * np.sin(0.5) / (2 * 0.16 + 1e-4)
    assert swing.state.qdd[0, 0] == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ArgumentError, match="needs an Arm"):
        MujocoArm(mjcf, payload=Payload("hand", _bar()))


def test_both_plants_keep_the_protocol():
    arm = load_arm("panda")
    for plant in (SimulatedArm(arm, batch=2), MujocoArm(arm, batch=2)):
        assert isinstance(plant, Plant)
        assert plant.batch == 2
        assert plant.dof == 7
        first = plant.reset(np.zeros((2, 7)))
        assert first.q.shape == first.qd.shape == first.tau.shape == (2, 7)
        assert plant.step(np.ones((2, 7))).q.shape == (2, 7)
        assert plant.time == pytest.approx(plant.control_period)
        assert not plant.diverged.any()


def test_mujoco_says_what_it_cannot_simulate():
    with pytest.raises(ArmError, match=r"ddarm: link_1: the principal moments break"):
        MujocoArm("ddarm")
    with pytest.raises(ArgumentError, match="no integrator 'rk5'"):
        MujocoArm("panda", integrator="rk5")


def test_a_mujoco_arm_that_runs_away_is_noticed():
    plant = MujocoArm("panda")
    plant.reset(np.zeros(7))
    controller = Pd(kp=-1e5, kd=0.0)
    with pytest.raises(PlantDiverged, match="ran away at t = 0"):
        run(plant, controller, Hold(0.1 * np.ones(7), 2.0), q=np.zeros(7))
