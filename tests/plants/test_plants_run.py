"""Running controllers on plants: rates, recordings, determinism, running away."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.errors import ArgumentError, PlantDiverged
from armwise.motions import Hold, Quintic
from armwise.plants import (
    Actuator,
    Encoder,
    Measurement,
    Payload,
    SimulatedArm,
    Tachometer,
    TorqueSensor,
    WristSensor,
    run,
    run_batch,
)
from armwise.recordings import Recording

from .arms_under_test import Pd, Push, flywheel, with_drives

PANDA = load_arm("panda")
GAINS = np.array([1, 1, 1, 1, 0.1, 0.1, 0.02])
MOTION = Quintic(np.zeros(7), 0.3 * np.ones(7), 0.2)
NOISY = (
    Encoder(resolution=1e-4, noise_std=1e-5),
    Tachometer(noise_std=1e-2, drift=1e-3),
    TorqueSensor(noise_std=0.1, bias=0.2, ripple=0.1),
    WristSensor("flange", noise_std=0.1, drift=0.01, resonance_hz=50.0),
)


def _pd() -> Pd:
    return Pd(100.0 * GAINS, 20.0 * GAINS)


def test_a_recording_holds_what_was_measured_asked_for_and_true():
    controller = _pd()
    plant = SimulatedArm(PANDA, sensors=NOISY)
    recording = run(plant, controller, MOTION)
    assert isinstance(recording, Recording)
    assert controller.resets == [(1, 0.001)]
    assert recording.dof == recording.count("qd") == recording.count("tau") == 7
    assert recording.has_wrench
    assert recording.joint_names == PANDA.coordinate_names
    assert recording["q_1"].time.size == 201
    np.testing.assert_allclose(recording["q_1"].time, 1e-3 * np.arange(201), atol=1e-12)
    error = recording["q_3"].values - recording["true_q_3"].values
    assert 0 < np.abs(error).max() < 2e-4
    np.testing.assert_allclose(
        recording["reference_q_2"].values, MOTION.sample(1e-3 * np.arange(200)).q[:, 1]
    )
    command, applied = recording["command_4"], recording["true_tau_4"]
    np.testing.assert_allclose(command.values, applied.values[1:])
    assert command.time[0] == 0.0
    assert recording["fx"].unit == "N"
    assert recording["tx"].unit == "N m"


def test_the_same_seed_gives_the_same_recording_and_another_does_not():
    def channels(seed: int, plant: SimulatedArm | None = None) -> np.ndarray:
        plant = plant or SimulatedArm(PANDA, sensors=NOISY, seed=seed)
        recording = run(plant, _pd(), MOTION)
        return np.stack(
            [c.values for n, c in recording.channels.items() if n[0] in "qt"][:14]
        )

    plant = SimulatedArm(PANDA, sensors=NOISY, seed=3)
    first = channels(3, plant)
    np.testing.assert_array_equal(first, channels(3, plant))
    np.testing.assert_array_equal(first, channels(3))
    assert not np.array_equal(first, channels(4))


def test_earlier_measurements_are_not_overwritten():
    load = Payload("flange", PANDA.links[3].inertia)
    exact = (Encoder(), Tachometer(), TorqueSensor())
    springy = WristSensor("flange", resonance_hz=50.0)
    plant = SimulatedArm(PANDA, sensors=(*exact, springy), payload=load)
    before = plant.reset(np.zeros(7))
    kept = [np.array(x) for x in before if x is not None]
    for _ in range(5):
        plant.step(np.ones((1, 7)))
    for now, then in zip([x for x in before if x is not None], kept, strict=True):
        np.testing.assert_array_equal(now, then)


def test_sensors_at_other_rates_keep_their_own_time():
    sensors = (
        Encoder(),
        Tachometer(rate_hz=240.0),
        TorqueSensor(rate_hz=4000.0),
    )
    plant = SimulatedArm(
        flywheel(), sensors=sensors, control_rate_hz=133.0, plant_rate_hz=4000.0
    )
    recording = run(plant, Push(lambda t: [np.sin(20 * t)]), Hold([0.0], 1.0))
    assert plant.control_period == pytest.approx(1 / 133)
    np.testing.assert_allclose(np.diff(recording["q_1"].time), 1 / 133, rtol=1e-9)
    slow = recording["qd_1"].time
    assert slow.size in (240, 241)
    np.testing.assert_allclose(
        slow, np.arange(slow.size) / 240, atol=plant.plant_period
    )
    assert recording["tau_1"].time.size > 3900
    # Held between its samples: the controller sees the last one.
    true = np.interp(slow, recording["true_qd_1"].time, recording["true_qd_1"].values)
    np.testing.assert_allclose(recording["qd_1"].values, true, atol=2e-3)


@pytest.mark.parametrize("delay", [0.0, 0.0005, 0.003, 0.0125])
def test_torque_arrives_after_its_delay(delay):
    plant = SimulatedArm(flywheel(0.5), actuator=Actuator(delay=delay))
    recording = run(plant, Push(lambda t: [1.0]), Hold([0.0], 0.05))
    t, speed = recording["true_qd_1"].time, recording["true_qd_1"].values
    expected = 2.0 * np.maximum(t - delay, 0.0)
    np.testing.assert_allclose(speed, expected, atol=1e-12)


def test_coasting_is_stepping_without_measuring():
    stepped, coasted = SimulatedArm(PANDA), SimulatedArm(PANDA)
    for plant in (stepped, coasted):
        plant.reset(np.linspace(0, 1, 7))
    for _ in range(20):
        stepped.step(np.ones((1, 7)))
    state = coasted.coast(np.ones(7), 40)
    np.testing.assert_allclose(state.q, stepped.state.q, atol=1e-12)
    assert coasted.time == stepped.time == pytest.approx(0.02)
    assert len(coasted.logs["q"]) == 1
    coasted.step(np.zeros((1, 7)))
    np.testing.assert_allclose(coasted.logs["q"].time, [0.0, 0.021])


def test_a_batch_gives_a_recording_each():
    motions = [Quintic(np.zeros(7), k * np.ones(7), 0.1) for k in (0.1, 0.2)]
    plant = SimulatedArm(PANDA, batch=2, keeps_truth=True)
    recordings = run_batch(plant, _pd(), motions)
    assert len(recordings) == 2
    for k, (recording, motion) in enumerate(zip(recordings, motions, strict=True)):
        alone = run(SimulatedArm(PANDA), _pd(), motion)
        for name in ("q_2", "tau_5", "reference_q_1", "true_qdd_3", "command_7"):
            np.testing.assert_allclose(
                recording[name].values, alone[name].values, rtol=1e-8, atol=1e-9
            )
        assert plant.diverged[k] == 0


def test_a_shared_motion_is_kept_once():
    first, second = run_batch(SimulatedArm(PANDA, batch=2), _pd(), MOTION)
    assert np.shares_memory(
        first["reference_q_1"].values, second["reference_q_1"].values
    )
    assert "true_q_1" not in first


def test_an_arm_that_runs_away_is_stopped_and_what_was_measured_is_kept():
    plant = SimulatedArm(flywheel())
    with pytest.raises(PlantDiverged, match=r"ran away at t = \d\.\d+ s") as caught:
        run(plant, Pd(-500.0, 0.0), Hold([0.1], 10.0), q=[0.0])
    recording = caught.value.recording
    assert isinstance(recording, Recording)
    assert 10 < recording["q_1"].time.size < 2000
    assert np.all(np.isfinite(recording["true_qd_1"].values))
    assert np.abs(recording["true_qd_1"].values).max() < 1e3
    assert "ran away" in recording.notes[0]


@pytest.mark.parametrize("backend", ["c", "numpy"])
def test_in_a_batch_the_others_go_on(backend):
    class Mixed(Pd):
        def torque(self, t, reference, measurement):
            return (
                np.array([[100.0], [-5e4], [100.0]]) * (reference.q - measurement.q)
                - 5.0 * measurement.qd
            )

    plant = SimulatedArm(flywheel(), batch=3, backend=backend)
    calm, wild, same = run_batch(plant, Mixed(), Hold([0.1], 0.3), q=[0.0])
    assert plant.diverged.tolist() == [False, True, False]
    assert calm["q_1"].time.size == 301
    assert wild["q_1"].time.size < 200
    assert np.all(np.isfinite(wild["q_1"].values))
    np.testing.assert_allclose(calm["q_1"].values, same["q_1"].values)
    assert calm.notes == ()
    assert "ran away" in wild.notes[0]


@pytest.mark.parametrize("backend", ["c", "numpy"])
def test_an_arm_that_overflows_does_not_disturb_its_neighbour(backend):
    rates = {"control_rate_hz": 50.0, "plant_rate_hz": 1000.0}
    pair = SimulatedArm(PANDA, batch=2, backend=backend, **rates)
    alone = SimulatedArm(PANDA, backend=backend, **rates)
    pair.reset(np.zeros(7))
    alone.reset(np.zeros(7))
    pair.step(np.array([[1e200] * 7, [1.0] * 7]))
    alone.step(np.ones((1, 7)))
    assert pair.diverged.tolist() == [True, False]
    np.testing.assert_allclose(pair.state.q[1], alone.state.q[0], atol=1e-12)
    assert np.all(np.isfinite(pair.state.q))


def test_a_plant_recovers_on_reset():
    plant = SimulatedArm(flywheel())
    with pytest.raises(PlantDiverged):
        run(plant, Pd(-500.0, 0.0), Hold([0.1], 10.0), q=[0.0])
    run(plant, Pd(100.0, 20.0), Hold([0.1], 0.1), q=[0.0])
    assert not plant.diverged.any()


def test_a_measurement_says_which_sensor_is_missing():
    seen = Measurement(q=np.zeros((1, 2)))
    with pytest.raises(
        ArgumentError, match="needs 'qd', but the plant only measures q"
    ):
        seen.need("qd")
    plant = SimulatedArm(flywheel(), sensors=(Encoder(),))
    with pytest.raises(ArgumentError, match="only measures q"):
        run(plant, Pd(), Hold([0.0], 1.0))


def test_begins_where_the_motion_begins_and_lasts_as_long_as_asked():
    arm = with_drives(PANDA, viscous=1.0)
    motion = Quintic(0.2 * np.ones(7), np.zeros(7), 5.0)
    recording = run(SimulatedArm(arm), _pd(), motion, duration=0.05)
    assert recording["q_1"].values[0] == 0.2
    assert recording.duration == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: run(p, _pd(), Hold([0.0], 1.0)), "moves 1 joints; the plant has 7"),
        (lambda p: run_batch(p, _pd(), [MOTION] * 2), "2 motions for 1 plants"),
        (lambda p: run(p, _pd(), MOTION, q=np.full(7, np.nan)), "q is not finite"),
        (lambda p: p.reset(np.zeros(6)), r"q has the shape \(6,\)"),
        (lambda p: p.reset(np.zeros((3, 7))), "for 3 arms; this plant has 1"),
        (lambda p: p.step(np.zeros((1, 8))), "tau has the shape"),
    ],
)
def test_refuses_what_does_not_fit(call, message):
    with pytest.raises(ArgumentError, match=message):
        call(SimulatedArm(PANDA))


def test_run_is_for_one_plant():
    with pytest.raises(ArgumentError, match="Use run_batch"):
        run(SimulatedArm(PANDA, batch=2), _pd(), MOTION)
