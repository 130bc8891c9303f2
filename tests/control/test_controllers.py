"""What every controller must do, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from armwise.arms import Arm, InertialParameters, load_arm
from armwise.control import (
    PD,
    Feedforward,
    Gating,
    MixtureCompensator,
    Partition,
    Playback,
    ResumableController,
    UpdateLaw,
    WrenchFeedforward,
    load_state,
    save_state,
)
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.motions import MotionSample, Sinusoid
from armwise.plants import (
    Controller,
    Encoder,
    Measurement,
    Payload,
    SimulatedArm,
    Tachometer,
    WristSensor,
    run,
    run_batch,
)

from .conftest import CONTROLLERS, KD, KP, Builder


def tracking_error(recording: object, motion: Sinusoid, after: float) -> np.ndarray:
    time = recording["true_q_1"].time  # type: ignore[index]
    q = [recording[f"true_q_{j + 1}"].values for j in range(motion.dof)]  # type: ignore[index]
    error = np.stack(q, axis=1) - motion.sample(time).q
    result: np.ndarray = np.sqrt(np.mean(error[time >= after] ** 2, axis=0))
    return result


def readings(rng: np.random.Generator, batch: int) -> tuple[MotionSample, Measurement]:
    wanted = MotionSample(*rng.normal(size=(3, batch, 2)))
    q, qd = rng.normal(size=(2, batch, 2))
    return wanted, Measurement(q=wanted.q + 0.01 * q, qd=wanted.qd + 0.01 * qd)


def test_it_is_a_controller(build: Builder, arm: Arm) -> None:
    controller = build(arm)
    assert isinstance(controller, Controller)
    assert isinstance(controller, ResumableController)


def test_it_follows_a_motion_without_running_away(
    build: Builder, arm: Arm, motion: Sinusoid
) -> None:
    plant = SimulatedArm(arm, control_rate_hz=500.0)
    recording = run(plant, build(arm), motion)
    assert tracking_error(recording, motion, 1.5).max() < 0.6


def test_a_batch_equals_its_plants_one_by_one(build: Builder, arm: Arm) -> None:
    rng = np.random.default_rng(0)
    together = build(arm)
    together.reset(3, 1e-3)
    alone = [build(arm) for _ in range(3)]
    for one in alone:
        one.reset(1, 1e-3)
    for k in range(20):
        wanted, seen = readings(rng, 3)
        tau = together.torque(1e-3 * k, wanted, seen)
        assert tau.shape == (3, 2)
        for b, one in enumerate(alone):
            mine = slice(b, b + 1)
            assert seen.q is not None
            assert seen.qd is not None
            same = one.torque(
                1e-3 * k,
                MotionSample(*(x[mine] for x in wanted)),
                Measurement(q=seen.q[mine], qd=seen.qd[mine]),
            )
            np.testing.assert_allclose(tau[mine], same, rtol=1e-8, atol=1e-8)


def test_one_reference_serves_a_whole_batch(build: Builder, arm: Arm) -> None:
    rng = np.random.default_rng(1)
    wanted, seen = readings(rng, 3)
    row = MotionSample(*(x[:1] for x in wanted))
    tall = MotionSample(*(np.repeat(x[:1], 3, axis=0) for x in wanted))
    results = []
    for reference in (row, tall):
        controller = build(arm)
        controller.reset(3, 1e-3)
        controller.torque(0.0, reference, seen)
        results.append(controller.torque(1e-3, reference, seen))
    np.testing.assert_allclose(results[0], results[1])


def test_it_resumes_from_disk_as_if_nothing_had_happened(
    build: Builder, arm: Arm, tmp_path: Path
) -> None:
    rng = np.random.default_rng(2)
    steps = [readings(rng, 2) for _ in range(30)]
    # No tachometer, so that the velocity filter is part of the state; slower than
    # what counts as moved by hand.
    steps = [(wanted, Measurement(q=0.1 * seen.q)) for wanted, seen in steps]
    whole, part = build(arm), build(arm)
    whole.reset(2, 1e-3)
    part.reset(2, 1e-3)
    for k, (wanted, seen) in enumerate(steps):
        if k == 15:
            save_state(part, tmp_path / "state.npz")
            part = build(arm)
            part.reset(2, 1e-3)
            load_state(part, tmp_path / "state.npz")
        a = whole.torque(1e-3 * k, wanted, seen)
        b = part.torque(1e-3 * k, wanted, seen)
        np.testing.assert_array_equal(a, b)


def test_reset_begins_anew(build: Builder, arm: Arm) -> None:
    rng = np.random.default_rng(3)
    steps = [readings(rng, 1) for _ in range(5)]
    controller = build(arm)
    runs = []
    for _ in range(2):
        controller.reset(1, 1e-3)
        runs.append([controller.torque(0.0, *step) for step in steps])
    np.testing.assert_array_equal(runs[0], runs[1])


def test_it_manages_without_a_tachometer(
    build: Builder, arm: Arm, motion: Sinusoid
) -> None:
    plant = SimulatedArm(arm, control_rate_hz=1000.0, sensors=(Encoder(),))
    recording = run(plant, build(arm), motion, duration=1.0)
    assert np.all(np.isfinite(recording["true_q_1"].values))


def test_it_says_which_sensor_is_missing(build: Builder, arm: Arm) -> None:
    controller = build(arm)
    controller.reset(1, 1e-3)
    wanted = MotionSample(*np.zeros((3, 1, 2)))
    with pytest.raises(ArgumentError, match="'q'"):
        controller.torque(0.0, wanted, Measurement(qd=np.zeros((1, 2))))


ORDER = ("pd", "pd + gravity", "feedforward")


def test_knowing_more_tracks_better(arm: Arm, motion: Sinusoid) -> None:
    plant = SimulatedArm(arm)
    errors = [
        tracking_error(run(plant, CONTROLLERS[name](arm), motion), motion, 0.0).max()
        for name in ORDER
    ]
    assert errors[0] > 1.5 * errors[1] > 15 * errors[2]


@pytest.mark.parametrize("name", ["feedforward", "computed torque"])
def test_the_exact_model_leaves_only_the_sampling(
    name: str, arm: Arm, motion: Sinusoid
) -> None:
    peaks = []
    for rate in (250.0, 500.0):
        plant = SimulatedArm(arm, control_rate_hz=rate)
        recording = run(plant, CONTROLLERS[name](arm), motion)
        peaks.append(tracking_error(recording, motion, 1.0).max())
    assert peaks[0] < 5e-3
    assert peaks[1] == pytest.approx(0.5 * peaks[0], rel=0.2)


def test_the_model_is_the_controller_s_own(arm: Arm, motion: Sinusoid) -> None:
    light = arm.with_parameters(0.5 * arm.parameters)
    plant = SimulatedArm(arm)
    believed = [
        tracking_error(
            run(plant, Feedforward(PD(KP, KD), model), motion), motion, 0.0
        ).max()
        for model in (arm, light)
    ]
    assert believed[1] > 10 * believed[0]


@pytest.mark.parametrize(
    "name", ["slotine-li", "indirect", "composite", "craig-hsu-sastry"]
)
def test_adaptation_beats_feedback_with_the_same_gains(
    name: str, arm: Arm, motion: Sinusoid
) -> None:
    long = replace(motion, duration=5.0)
    plant = SimulatedArm(arm, control_rate_hz=500.0)
    adaptive = tracking_error(run(plant, CONTROLLERS[name](arm), long), long, 4.0)
    fixed = tracking_error(run(plant, PD(KP, KD), long), long, 4.0)
    assert np.linalg.norm(adaptive) < 0.1 * np.linalg.norm(fixed)


def test_partition_gives_each_plant_its_own_controller(
    arm: Arm, motion: Sinusoid
) -> None:
    names = ("pd", "composite")
    plant = SimulatedArm(arm, batch=4, control_rate_hz=500.0)
    both = Partition([(CONTROLLERS[name](arm), 2) for name in names])
    together = run_batch(plant, both, motion, duration=0.5)
    single = SimulatedArm(arm, control_rate_hz=500.0)
    for b, name in enumerate(("pd", "pd", "composite", "composite")):
        alone = run(single, CONTROLLERS[name](arm), motion, duration=0.5)
        np.testing.assert_allclose(
            together[b]["q_2"].values, alone["q_2"].values, atol=1e-9
        )
    others = [replace(motion, amplitude=a * motion.amplitude) for a in (1, 0.5, 2, 0.1)]
    each = run_batch(plant, both, others, duration=0.5)
    for b, name in enumerate(("pd", "pd", "composite", "composite")):
        alone = run(single, CONTROLLERS[name](arm), others[b], duration=0.5)
        np.testing.assert_allclose(
            each[b]["q_2"].values, alone["q_2"].values, atol=1e-9
        )
    with pytest.raises(ArgumentError, match="4 plants"):
        both.reset(3, 1e-3)


def test_playback_adds_the_stored_command(arm: Arm) -> None:
    command = np.array([[1.0, 2.0], [3.0, 4.0]])
    playback = Playback(PD(KP, KD), command)
    playback.reset(1, 1e-3)
    still = MotionSample(*np.zeros((3, 1, 2)))
    seen = Measurement(q=np.zeros((1, 2)), qd=np.zeros((1, 2)))
    rows = [playback.torque(1e-3 * k, still, seen)[0] for k in range(3)]
    np.testing.assert_array_equal(rows, [[1, 2], [3, 4], [3, 4]])
    assert playback.applied.shape == (3, 1, 2)


@pytest.mark.parametrize(
    ("gain", "message"),
    [
        (-1.0, "positive, not -1"),
        (0.0, "positive, not 0"),
        ([1.0, -2.0], "smallest eigenvalue is -2"),
        ([[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        (np.nan, "finite"),
    ],
)
def test_gains_that_cannot_stabilise_are_refused(gain: object, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        PD(gain, 1.0)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="kd"):
        PD(1.0, gain)  # type: ignore[arg-type]


def _used(build: Builder, arm: Arm, batch: int = 1) -> ResumableController:
    rng = np.random.default_rng(4)
    controller = build(arm)
    controller.reset(batch, 1e-3)
    for k in range(3):
        wanted, seen = readings(rng, batch)
        controller.torque(1e-3 * k, wanted, Measurement(q=0.01 * seen.q))
    return controller


def _spoilt(state: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """States that no controller saved: one array changed at a time."""
    for name, value in state.items():
        yield {k: v for k, v in state.items() if k != name} | (
            {"last_q": state["last_q"][:0]} if name == "filtered_qd" else {}
        )
        number = value.astype(float)
        yield state | {name: number * np.nan}
        yield state | {name: number + 1e300}
        yield state | {name: np.stack([number] * 3)}
        yield state | {name: np.array(["a"])}


def test_a_spoilt_state_never_becomes_torque(
    build: Builder, arm: Arm, tmp_path: Path
) -> None:
    good = _used(build, arm).to_dict()
    wanted, seen = readings(np.random.default_rng(5), 1)
    for state in _spoilt(good):
        fresh = build(arm)
        fresh.reset(1, 1e-3)
        try:
            fresh.restore(state)
        except ArgumentError:
            continue
        tau = fresh.torque(0.0, wanted, seen)
        assert tau.shape == (1, 2)
        assert np.all(np.abs(tau) < 1e6)


def test_a_changed_state_file_is_refused(
    build: Builder, arm: Arm, tmp_path: Path
) -> None:
    controller = _used(build, arm)
    path = tmp_path / "state.npz"
    save_state(controller, path)
    with np.load(path) as stored:
        arrays = dict(stored)
    arrays["last_q"] = arrays["last_q"] + 0.01
    np.savez(path, **arrays)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="changed after it was saved"):
        load_state(controller, path)
    np.savez(path, **controller.to_dict())  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="another controller"):
        load_state(controller, path)


def test_a_state_of_other_plants_or_another_arm_is_refused(
    build: Builder, arm: Arm, tmp_path: Path
) -> None:
    save_state(_used(build, arm, batch=3), tmp_path / "three.npz")
    with pytest.raises(ArgumentError, match=r"three\.npz"):
        load_state(_used(build, arm), tmp_path / "three.npz")
    other = load_arm("two_link_uno")
    controller = build(other)
    if hasattr(controller, "model"):
        controller.reset(1, 1e-3)
        save_state(controller, tmp_path / "other.npz")
        with pytest.raises(ArgumentError, match="belongs to another controller"):
            load_state(_used(build, arm), tmp_path / "other.npz")


def test_an_arm_moved_by_hand_since_starts_its_velocity_anew() -> None:
    pd = PD(KP, KD)
    pd.reset(1, 1e-3)
    pd.restore({"last_q": np.full((1, 2), 1e5), "filtered_qd": np.zeros((1, 2))})
    still = MotionSample(*np.zeros((3, 1, 2)))
    tau = pd.torque(0.0, still, Measurement(q=np.zeros((1, 2))))
    np.testing.assert_array_equal(tau, 0.0)


def test_a_state_of_another_controller_is_refused(arm: Arm, tmp_path: Path) -> None:
    pd = PD(KP, KD)
    pd.reset(1, 1e-3)
    save_state(pd, tmp_path / "pd.npz")
    mixture = CONTROLLERS["mixture"](arm)
    mixture.reset(1, 1e-3)
    with pytest.raises(ArgumentError, match="belongs to another controller"):
        load_state(mixture, tmp_path / "pd.npz")
    (tmp_path / "noise.npz").write_bytes(b"no state at all")
    with pytest.raises(ArgumentError, match=r"noise\.npz"):
        load_state(mixture, tmp_path / "noise.npz")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["noise.npz", "pd.npz"]


# What holds an arm that is pushed, loaded or heavy.


def test_gravity_is_compensated_where_the_arm_is(arm: Arm) -> None:
    """Pushed aside without any spring, it stays where it is."""
    tilted = arm.with_gravity([0.0, -9.81, 0.0])
    q = np.array([[0.7, -0.4]])
    wanted = MotionSample(np.zeros((1, 2)), np.zeros((1, 2)), np.zeros((1, 2)))
    weak = PD(1e-9, 1e-9)
    held = Feedforward(weak, tilted, "gravity where it is")
    held.reset(1, 0.001)
    tau = held.torque(0.0, wanted, Measurement(q=q, qd=np.zeros((1, 2))))
    np.testing.assert_allclose(tau, Dynamics(tilted).gravity_torque(q), atol=1e-6)
    with pytest.raises(ArgumentError, match="gravity where it is"):
        Feedforward(weak, tilted, "weight")  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", ["link_7", "link_5"])
def test_a_load_that_no_model_knows_is_held_as_it_is_felt(frame: str) -> None:
    panda = load_arm("panda")
    load = InertialParameters.from_center_of_mass(
        3.0, [0.03, 0.0, 0.1], np.diag([0.01, 0.01, 0.01])
    )
    motion = Sinusoid(
        0.5 * (panda.limits("lower") + panda.limits("upper")),
        np.full(7, 0.2), np.full(7, 3.0), 1.0, np.arange(7.0),
    )  # fmt: skip

    def error(is_felt: bool) -> float:
        plant = SimulatedArm(
            panda,
            sensors=(Encoder(), Tachometer(), WristSensor("link_7")),
            payload=Payload("link_7", load),
        )
        back = Feedforward(PD(200.0, 20.0), panda)
        control = WrenchFeedforward(back, panda, "link_7") if is_felt else back
        return float(tracking_error(run(plant, control, motion), motion, 0.2).max())

    if frame == "link_7":
        assert error(True) < 0.25 * error(False)
        return
    # Without load the sensor on its own frame feels the link's weight alone.
    q = np.array([[0.1, 0.2, 0.3, -1.0, 0.4, 1.0, 0.2]])
    felt = np.array([[1.0, 2.0, 3.0, 0.4, 0.5, 0.6]])
    control = WrenchFeedforward(PD(1e-9, 1e-9), panda, frame)
    control.reset(1, 0.001)
    still = MotionSample(q, 0.0 * q, 0.0 * q)
    tau = control.torque(0.0, still, Measurement(q=q, qd=0.0 * q, wrench=felt))
    dyn = Dynamics(panda)
    R = dyn.link_pose(q, frame)[0, :3, :3]
    turned = np.concatenate([R @ felt[0, :3], R @ felt[0, 3:]])
    np.testing.assert_allclose(tau[0], dyn.jacobian(q, frame)[0].T @ turned, atol=1e-6)


def test_with_the_true_model_and_wrench_no_error_is_left(arm: Arm) -> None:
    """But for the age of the wrench, one control period: the error falls with it."""
    heavy = arm.with_gravity([0.0, -9.81, 0.0])
    hand = heavy.links[-1].name
    load = Payload(hand, InertialParameters.from_center_of_mass(
        0.3, [0.1, 0.05, 0.0], np.diag([1e-3, 1e-3, 1e-3])
    ))  # fmt: skip
    motion = Sinusoid(
        np.array([0.3, 0.4]), np.full(2, 0.3), np.array([4.0, 6.0]), 1.0, np.zeros(2)
    )

    def error(rate_hz: float, is_felt: bool = True) -> float:
        plant = SimulatedArm(
            heavy,
            sensors=(Encoder(), Tachometer(), WristSensor(hand)),
            payload=load,
            control_rate_hz=rate_hz,
            plant_rate_hz=4000.0,
        )
        back = Feedforward(PD(KP, KD), heavy)
        felt = WrenchFeedforward(back, heavy, hand, cutoff_hz=1e4)
        log = run(plant, felt if is_felt else back, motion)
        return float(tracking_error(log, motion, 0.3).max())

    fast = error(2000.0)
    assert fast < 0.35 * error(500.0)
    assert fast < 0.02 * error(2000.0, is_felt=False)


def test_a_static_term_holds_an_arm_against_gravity(arm: Arm) -> None:
    heavy = arm.with_gravity([0.0, -9.81, 0.0])
    motion = Sinusoid(np.array([0.3, 0.4]), np.zeros(2), np.ones(2), 4.0, np.zeros(2))
    rest: dict[bool, float] = {}
    for static in (False, True):
        law = UpdateLaw.gradient(200.0)
        gating = Gating(np.zeros((1, 2)), 1.0)
        control = MixtureCompensator(gating, 5.0, KD, law, static=static)
        log = run(SimulatedArm(heavy), control, motion)
        rest[static] = float(tracking_error(log, motion, 3.5).max())
    assert rest[True] < 0.1 * rest[False]


def test_experts_must_not_forget() -> None:
    """An hour of it ends in a runaway, weights bounded or not (studies.endurance)."""
    with pytest.raises(ArgumentError, match="must not forget"):
        MixtureCompensator(
            Gating(np.zeros((1, 2)), 1.0), 5.0, KD, UpdateLaw.exponential(0.1, 0.5)
        )


def test_experts_beyond_the_feedbacks_reach_leak_back(arm: Arm) -> None:
    """What friction teaches them without end is bounded."""
    motion = Sinusoid(np.array([0.3, 0.4]), np.full(2, 0.1), np.ones(2), 3.0)
    sizes = []
    for start in (1e-3, 1e3):
        law = UpdateLaw.gradient(1e-6)
        control = MixtureCompensator(Gating(np.zeros((1, 2)), 1.0), 5.0, KD, law)
        control.reset(1, 0.002)
        control.weights[:] = start
        still = Measurement(q=motion.sample(np.zeros(1)).q)
        for _ in range(1500):
            control.torque(0.0, motion.sample(np.zeros(1)), still)
        sizes.append(np.abs(control.weights).max() / start)
    assert sizes[0] == pytest.approx(1.0, abs=1e-3)
    assert sizes[1] < 0.3
