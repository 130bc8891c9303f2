"""What each sensor says of a known truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import Frame, InertialParameters, load_arm
from armwise.errors import ArgumentError
from armwise.plants import (
    Actuator,
    AnalogSensor,
    CurrentSensor,
    Encoder,
    EncoderVelocity,
    JointElasticity,
    Payload,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
    WristSensor,
)
from armwise.plants.altered_arms import carried_beyond
from armwise.plants.sensors import Mount
from armwise.plants.state import State

from .arms_under_test import flywheel, pendulum, with_drives

DOF = 3


def _mount(batch: int = 1, period: float = 1e-3, seed: int = 0, wrench=None) -> Mount:
    return Mount(batch, DOF, period, np.random.default_rng(seed), lambda frame: wrench)


def _state(batch: int = 1, **values: object) -> State:
    state = State.at_rest(batch, DOF, has_motors=True)
    for name, value in values.items():
        getattr(state, name)[:] = value
    return state


def _readings(sensor: object, count: int = 4000, **values: object) -> np.ndarray:
    sample = sensor.mounted(_mount(batch=2))
    state = _state(batch=2, **values)
    return np.stack([sample(state) for _ in range(count)])


def test_an_encoder_rounds_to_counts():
    sample = Encoder(resolution=0.01, offset=[0.0, 0.1, 0.0]).mounted(_mount())
    read = sample(_state(motor_q=[0.123, 0.127, -0.005001], q=9.0))
    np.testing.assert_allclose(read, [[0.12, 0.23, -0.01]], atol=1e-12)
    link = Encoder(side="link").mounted(_mount())(_state(motor_q=1.0, q=2.0))
    np.testing.assert_array_equal(link, [[2.0, 2.0, 2.0]])
    counts = Encoder.from_counts(4096, gear=-100).resolution
    assert counts == pytest.approx(2 * np.pi / 409_600)


@pytest.mark.parametrize(
    ("make", "truth"),
    [
        (Tachometer, "motor_qd"),
        (TorqueSensor, "tau"),
        (lambda **k: TorqueSensor(side="link", **k), "link_tau"),
        (lambda **k: Tachometer(side="link", **k), "qd"),
    ],
)
def test_gain_bias_and_noise_are_as_described(make, truth):
    sensor = make(noise_std=0.2, bias=[0.5, 0.0, -0.5], gain_error=0.1)
    read = _readings(sensor, **{truth: 2.0})
    np.testing.assert_allclose(read.mean((0, 1)), [2.7, 2.2, 1.7], atol=0.012)
    np.testing.assert_allclose(read.std(0), 0.2, rtol=0.06)
    correlation = np.corrcoef(read.reshape(len(read), -1).T) - np.eye(6)
    assert np.abs(correlation).max() < 0.08


def test_drift_grows_with_the_root_of_time():
    ends = []
    for seed in range(150):
        sample = TorqueSensor(drift=0.3).mounted(_mount(period=0.01, seed=seed))
        read = [sample(_state()) for _ in range(101)]
        ends.append((read[25], read[100]))
    early, late = np.array(ends).reshape(150, 2, -1).std(axis=(0, 2))
    assert early == pytest.approx(0.15, rel=0.15)
    assert late == pytest.approx(0.3, rel=0.15)


def test_ripple_repeats_as_the_joint_turns():
    sample = TorqueSensor(ripple=0.4, ripple_cycles=2.0).mounted(_mount())
    turn = np.linspace(0, 2 * np.pi, 400, endpoint=False)
    read = np.array([sample(_state(motor_q=x))[0, 0] for x in turn])
    spectrum = 2 * np.abs(np.fft.rfft(read)) / read.size
    assert spectrum[2] == pytest.approx(0.4, rel=1e-9)
    assert np.delete(spectrum, 2).max() < 1e-9


def test_current_is_torque_over_the_constant():
    sample = CurrentSensor([0.5, 1.0, -2.0], bias=0.1).mounted(_mount())
    read = sample(_state(tau=[1.0, 2.0, 4.0]))
    np.testing.assert_allclose(read, [[2.1, 2.1, -1.9]])


def test_an_analog_sensor_is_a_line_in_steps_between_stops():
    sensor = AnalogSensor(alpha=[-0.2, 0.1, 0.1], beta=0.05, bits=12, full_scale=5.0)
    sample = sensor.mounted(_mount())
    read = sample(_state(q=[0.25, 0.3, 9.0]))[0]
    step = 10.0 / 2**12
    np.testing.assert_allclose(read[:2], [-1.0, 2.5], atol=step / 2)
    np.testing.assert_allclose(read / step, np.round(read / step), atol=1e-9)
    assert read[2] == 5.0 - step
    assert sample(_state(q=-9.0))[0, 1] == -5.0


def test_an_analog_sensors_bow_is_as_large_as_said():
    sensor = AnalogSensor(1.0, 0.0, nonlinearity=0.02, bits=None, full_scale=1.0)
    sample = sensor.mounted(_mount())
    angles = np.linspace(-1, 1, 401)
    bow = np.array([sample(_state(q=x))[0, 0] for x in angles]) - angles
    assert np.abs(bow).max() == pytest.approx(0.02, rel=1e-3)
    np.testing.assert_allclose(bow[[0, 200, 400]], 0.0, atol=1e-12)


def test_velocity_from_an_encoder_follows_with_the_filters_lag():
    sample = EncoderVelocity(cutoff_hz=20.0).mounted(_mount())
    read = [sample(_state(motor_q=3.0 * 1e-3 * k))[0, 0] for k in range(200)]
    assert read[0] == 0.0
    assert read[-1] == pytest.approx(3.0, rel=1e-6)
    rise = np.argmax(np.array(read) > 3.0 * (1 - np.exp(-1))) * 1e-3
    assert rise == pytest.approx(1 / (2 * np.pi * 20.0), abs=1.5e-3)


def test_a_springy_wrist_sensor_rings_at_its_resonance():
    wrench = [np.zeros((1, 6))]
    mount = _mount(wrench=lambda state: wrench[0])
    sample = WristSensor("wrist", resonance_hz=40.0).mounted(mount)
    sample(_state())
    wrench[0] = np.ones((1, 6))
    read = np.array([sample(_state())[0, 2] for _ in range(500)])
    t = 1e-3 * np.arange(1, 501)
    # A ramp over the first millisecond, then the exact ringing of 1 − cos.
    w = 2 * np.pi * 40.0
    expected = 1 - (np.sin(w * t) - np.sin(w * (t - 1e-3))) / (w * 1e-3)
    np.testing.assert_allclose(read, expected, atol=1e-9)
    stiff = WristSensor("wrist").mounted(mount)
    np.testing.assert_array_equal(stiff(_state()), wrench[0])
    damped = WristSensor("wrist", resonance_hz=40.0, damping=0.2).mounted(mount)
    wrench[0] = np.full((1, 6), 2.0)
    assert [damped(_state()) for _ in range(500)][-1] == pytest.approx(2.0, rel=1e-6)


def test_a_crooked_wrist_sensor_turns_force_and_torque_alike():
    wrench = np.array([[0.0, 0.0, -1.0, 0.0, 2.0, 0.0]])
    mount = _mount(wrench=lambda state: wrench)
    read = WristSensor("w", misalignment=(0.1, 0, 0)).mounted(mount)(_state())
    c, s = np.cos(0.1), np.sin(0.1)
    np.testing.assert_allclose(read, [[0, -s, -c, 0, 2 * c, -2 * s]], atol=1e-12)


def test_sides_differ_where_joints_are_elastic():
    arm = with_drives(pendulum(), rotor_inertia=0.01)
    plant = SimulatedArm(
        arm,
        elasticity=JointElasticity(50.0, 1.0),
        sensors=(Encoder(side="motor"), Tachometer(side="link")),
    )
    plant.reset([0.8])
    for _ in range(50):
        read = plant.step(np.zeros((1, 1)))
    assert read.q[0, 0] == plant.state.motor_q[0, 0] != plant.state.q[0, 0]
    assert read.qd[0, 0] == plant.state.qd[0, 0] != plant.state.motor_qd[0, 0]


def test_a_wrist_sensor_carries_the_gripper_and_the_load():
    gripper = InertialParameters.from_center_of_mass(0.7, (0, 0, 0.05), np.eye(3))
    load = InertialParameters.from_center_of_mass(1.1, (0.1, 0, 0), np.eye(3))
    arm = pendulum()
    T = np.eye(4)
    T[2, 3] = -0.4
    arm = replace(arm, frames=(Frame("wrist", 0, T, gripper), Frame("tip", 0, T)))
    carried = carried_beyond(arm, "wrist", Payload("tip", load))
    np.testing.assert_allclose(carried.vector, gripper.vector + load.vector, atol=1e-12)
    np.testing.assert_array_equal(
        carried_beyond(arm, "wrist", None).vector, gripper.vector
    )


def test_a_load_seen_by_a_sensor_on_another_link_is_refused():
    body = InertialParameters.from_center_of_mass(1.0, (0, 0, 0), np.eye(3))
    arm = load_arm("panda")
    with pytest.raises(ArgumentError, match="different links"):
        SimulatedArm(
            arm, sensors=(WristSensor("link_3"),), payload=Payload("flange", body)
        ).reset(np.zeros(7))


@pytest.mark.parametrize(
    ("sensors", "message"),
    [
        ((Encoder(), Encoder()), "Two sensors measure 'q'"),
        ((Encoder(resolution=[0.1, -0.1]),), "fit 1 arms of 1 values"),
        ((Encoder(resolution=-0.1),), "must be positive"),
        ((Tachometer(noise_std=-1.0),), "cannot be negative"),
        ((Tachometer(rate_hz=1e6),), "cannot sample at 1e"),
        ((CurrentSensor(0.0),), "cannot be zero"),
        ((AnalogSensor(0.0, 0.0),), "cannot be zero"),
        ((WristSensor("nowhere"),), "no link or frame 'nowhere'"),
        ((WristSensor("wheel", damping=-1.0),), "damping ≥ 0"),
        ((EncoderVelocity(cutoff_hz=0.0),), "must be positive"),
        ((TorqueSensor(bias=np.nan),), "bias is not finite"),
    ],
)
def test_refuses_sensors_that_cannot_be(sensors, message):
    with pytest.raises(ArgumentError, match=message):
        SimulatedArm(flywheel(), sensors=sensors).reset([0.0])


def test_an_actuator_saturates_rounds_and_errs():
    convert = Actuator(2.0, bits=3, gain_error=[[0.1], [0.0]]).mounted(2, 1)
    np.testing.assert_allclose(convert(np.array([[5.0], [0.7]])), [[2.2], [0.5]])
    np.testing.assert_array_equal(Actuator().mounted(1, 1)(np.array([[7.0]])), [[7.0]])
    for bad, message in (
        (Actuator(0.0), "positive"),
        (Actuator(bits=10), "finite saturation"),
        (Actuator(delay=-1.0), "delay"),
    ):
        with pytest.raises(ArgumentError, match=message):
            SimulatedArm(flywheel(), actuator=bad)


def test_a_wrist_sensor_holds_all_of_the_momentum_that_a_held_torque_gives():
    """Of a light joint with much damping, which settles within a step of the torque."""
    arm = flywheel(inertia=0.001, viscous=10.0)
    load = InertialParameters.from_center_of_mass(1.0, (0, 0, 0), 0.01 * np.eye(3))
    sensors = (Encoder(), WristSensor("wheel"))
    plant = SimulatedArm(arm, sensors=sensors, payload=Payload("wheel", load))
    plant.reset([0.0])
    steps = [plant.step(np.array([[3.0 * np.sin(0.4 * k)]])) for k in range(50)]
    impulse = 1e-3 * sum(measured.wrench[0, 5] for measured in steps)
    assert impulse == pytest.approx(0.01 * plant.state.qd[0, 0], rel=1e-6)
