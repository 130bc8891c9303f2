"""identify_load recovers what was simulated, by every route, with honest bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.arms import InertialParameters
from armwise.arms.poses import rotation_about
from armwise.dynamics.wrench import wrench_regressor
from armwise.loads import (
    Accelerations,
    IntegralWindows,
    LeastSquares,
    LoadMethod,
    MomentumRate,
    OptimalFilter,
    StaticPoses,
    WristSamples,
    identify_load,
)
from armwise.loads.identify_load import moved_frame
from tests.loads import rig

METHODS: list[LoadMethod] = [
    Accelerations(),
    LeastSquares(),
    IntegralWindows(0.1),
    MomentumRate(10.0),
    OptimalFilter(1e-7),
]


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_every_method_recovers_an_exact_load(method: LoadMethod) -> None:
    data = rig.samples(noise=1e-6, bias=1.0)
    load = identify_load(data, rig.puma(), method=method)
    error = load.parameters.vector - rig.BAR.vector
    assert np.abs(error[:4]).max() < 2e-3
    assert np.abs(error[4:]).max() < 3e-4  # the integral form's trapezoids


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_every_method_is_within_five_standard_deviations(method: LoadMethod) -> None:
    data = rig.samples(noise=1.0, bias=1.0, seed=4)
    load = identify_load(data, rig.puma(), method=method)
    z = (load.parameters.vector - rig.BAR.vector) / load.std.parameters
    assert np.abs(z).max() < 5.0
    assert load.mass == pytest.approx(1.6, abs=0.01)
    assert load.center_of_mass == pytest.approx([0.001, 0, 0.05], abs=1e-3)


def test_bias_is_found_and_drift_is_separated_from_noise() -> None:
    data = rig.samples(noise=1.0, bias=1.0, drift=1.0, seed=1)
    offset = 20.0 * rig.NOISE * _first_normals(1)
    load = identify_load(data, rig.puma())
    assert load.bias is not None
    assert load.noise is not None
    assert load.bias[0] == pytest.approx(offset, abs=8 * rig.NOISE.max())
    assert load.noise.white_std == pytest.approx(rig.NOISE, rel=0.4)
    assert np.all(load.noise.drift_rate < 3 * rig.NOISE)
    quiet = identify_load(rig.samples(noise=1.0, seed=1), rig.puma())
    assert quiet.noise is not None
    assert quiet.noise.drift_rate.sum() < 0.3 * load.noise.drift_rate.sum()


def _first_normals(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    random.normal(size=(2000, 6))
    return random.normal(size=6)


def test_an_assumed_zero_that_is_not_zero_does_harm() -> None:
    data = rig.samples(noise=0.1, bias=1.0)
    right = identify_load(data, rig.puma())
    wrong = identify_load(data, rig.puma(), bias="none", drift=False)
    common = identify_load(data, rig.puma(), bias="common", drift=False)

    def error(load: aw.arms.InertialParameters) -> float:
        return float(np.abs(load.vector - rig.BAR.vector)[:4].max())

    assert error(wrong.parameters) > 10 * error(right.parameters)
    assert error(common.parameters) < 0.1 * error(wrong.parameters)


def test_static_poses_find_mass_and_centre_only() -> None:
    load = identify_load(rig.static_samples(), rig.puma(), method=StaticPoses())
    assert load.mass == pytest.approx(1.6, abs=0.01)
    assert load.center_of_mass == pytest.approx([0.001, 0, 0.05], abs=1e-3)
    assert np.isnan(load.central_inertia).all()
    assert not load.is_complete
    assert "inertia was not determined" in load.statement()
    z = (load.parameters.vector - rig.BAR.vector)[:4] / load.std.parameters[:4]
    assert np.abs(z).max() < 4.0


def test_missing_torques_leave_mass_and_centre() -> None:
    data = rig.samples(bias=1.0)
    load = identify_load(data, rig.puma(), components=("fx", "fy", "fz"))
    assert load.mass == pytest.approx(1.6, abs=0.02)
    assert np.isnan(load.parameters.vector[4:]).all()
    assert load.channels == ("fx", "fy", "fz")
    blind = np.array(data.wrench)
    blind[:, 2] = 0.0
    partial = identify_load(replace(data, wrench=blind), rig.puma())
    assert "fz" not in partial.channels
    assert partial.warnings[0].code == "component-not-measured"
    assert "fz" in partial.warnings[0].text
    assert partial.is_complete
    assert partial.mass == pytest.approx(1.6, abs=0.02)


def test_the_gripper_is_taken_off_given_or_identified() -> None:
    loaded = rig.samples(rig.BRICK + rig.GRIPPER, bias=1.0, seed=5)
    given = identify_load(loaded, rig.puma(), gripper=rig.GRIPPER)
    assert given.mass == pytest.approx(rig.BRICK.mass, abs=0.01)
    before = identify_load(rig.samples(rig.GRIPPER, bias=1.0, seed=6), rig.puma())
    both = identify_load(loaded, rig.puma(), gripper=before)
    assert both.mass == pytest.approx(rig.BRICK.mass, abs=0.01)
    assert both.std.mass > given.std.mass  # the gripper's doubt is added


def test_the_arm_may_be_left_out_for_wrist_samples() -> None:
    data = rig.samples(bias=1.0)
    rows = rig.body().motion(data.q, data.qd, data.qdd)
    wrist = WristSamples(data.time, rows[:, 0], rows[:, 1], rows[:, 2], data.wrench)
    alone = identify_load(wrist)
    with_arm = identify_load(data, rig.puma())
    assert alone.parameters.vector == pytest.approx(with_arm.parameters.vector)
    assert identify_load(data, "puma600").mass == pytest.approx(alone.mass)


def test_the_front_door_needs_no_arm_where_the_samples_carry_one() -> None:
    """design.md: load = aw.identify_load(data_with_wrench, sensor_frame="wrist")."""
    data = replace(rig.samples(bias=1.0), arm=rig.puma())
    load = aw.identify_load(data, sensor_frame="wrist")
    assert load.mass == pytest.approx(1.6, abs=0.01)
    assert load.std.mass < 0.01
    recording = aw.Recording.from_arrays(
        data.time, q=data.q, qd=data.qd, wrench=data.wrench
    )
    carried = aw.prepare(
        replace(recording, arm=rig.puma()), cutoff_hz=10.0, velocity="measured"
    )
    assert carried.arm is rig.puma()
    prepared = aw.identify_load(carried, sensor_frame="wrist")
    assert prepared.mass == pytest.approx(1.6, abs=0.01)
    raw = aw.identify_load(recording, arm=rig.puma(), frame="wrist", cutoff_hz=10.0)
    assert raw.mass == pytest.approx(1.6, abs=0.01)
    assert raw.noise is not None
    both = aw.identify_load([recording, recording], rig.puma(), cutoff_hz=10.0)
    assert both.bias is not None
    assert len(both.bias) == 2 * len(raw.bias)


def test_a_turned_sensor_is_found_by_its_rotation() -> None:
    data = rig.samples(rig.BRICK, noise=0.5, bias=1.0, seed=2)
    turn = np.array([0.03, -0.05, 0.04])
    angle = float(np.linalg.norm(turn))
    R = rotation_about(turn / angle, angle)
    wrench = (np.asarray(data.wrench).reshape(-1, 2, 3) @ R).reshape(-1, 6)
    turned = replace(data, wrench=wrench)
    load = identify_load(turned, rig.puma(), pose_offset="rotation")
    assert load.pose_offset == pytest.approx(turn, abs=3e-3)
    T = np.eye(4)
    T[:3, :3] = R.T
    expected = rig.BRICK.transformed(T)
    z = (load.parameters.vector - expected.vector) / load.std.parameters
    assert np.abs(z).max() < 5.0
    plain = identify_load(turned, rig.puma())
    assert plain.prediction is not None
    assert load.prediction is not None
    assert np.all(plain.prediction.rmse[:2] > 2 * load.prediction.rmse[:2])


def test_a_gripper_is_taken_off_the_wrench_of_a_turned_sensor_too() -> None:
    data = rig.samples(rig.BRICK + rig.GRIPPER, bias=1.0, seed=2)
    load = identify_load(data, rig.puma(), gripper=rig.GRIPPER, pose_offset="rotation")
    assert load.mass == pytest.approx(rig.BRICK.mass, abs=0.01)
    assert load.prediction is not None
    assert load.prediction.rmse == pytest.approx(rig.NOISE, rel=0.1)


def test_a_shifted_and_turned_sensor_is_found_by_its_pose() -> None:
    data = rig.samples(rig.BRICK, noise=0.0, seed=2)
    offset = np.array([0.03, -0.05, 0.04, 0.01, -0.02, 0.015])
    motion = moved_frame(rig.body().motion(data.q, data.qd, data.qdd), offset)
    exact = wrench_regressor(*np.moveaxis(motion, 1, 0)) @ rig.BRICK.vector
    noise = 0.5 * rig.NOISE * np.random.default_rng(0).normal(size=exact.shape)
    load = identify_load(
        replace(data, wrench=exact + noise), rig.puma(), pose_offset="pose"
    )
    assert load.pose_offset == pytest.approx(offset, abs=2e-3)
    z = (load.parameters.vector - rig.BRICK.vector) / load.std.parameters
    assert np.abs(z).max() < 5.0


def test_a_consistent_load_can_exist() -> None:
    weightless = InertialParameters.from_center_of_mass(
        0.3, [0.0, 0.0, 0.03], np.diag([1e-5, 1e-5, 1e-5])
    )
    data = rig.samples(weightless, noise=4.0, seed=3)
    free = identify_load(data, rig.puma())
    assert not free.is_physical
    bound = identify_load(data, rig.puma(), consistent=True)
    assert bound.is_physical
    z = (bound.parameters.vector - free.parameters.vector) / free.std.parameters
    assert np.abs(z).max() < 4.0
    assert bound.warnings[-1].code == "moved-to-physical"
    assert "nearest physical body" in bound.statement()


def test_equal_principal_moments_make_the_axes_ill_determined() -> None:
    bar = identify_load(rig.samples(rig.BAR), rig.puma())
    assert np.isinf(bar.std.principal_axes[1:]).all()
    assert "Only the axis of principal moment 1" in bar.statement()
    brick = identify_load(rig.samples(rig.BRICK, noise=0.2), rig.puma())
    assert np.all(brick.std.principal_axes < 0.3)
    assert "are known to" in brick.statement()


def test_in_another_frame_it_is_the_same_load() -> None:
    load = identify_load(rig.samples(rig.BRICK), rig.puma())
    T = np.eye(4)
    T[:3, :3] = rotation_about([0.0, 0.0, 1.0], 0.7)
    T[:3, 3] = [0.1, 0.0, -0.05]
    moved = load.in_frame(T, "flange")
    assert moved.mass == pytest.approx(load.mass)
    assert moved.principal.moments == pytest.approx(load.principal.moments)
    assert moved.std.principal_moments == pytest.approx(load.std.principal_moments)
    assert moved.center_of_mass == pytest.approx(
        T[:3, :3] @ load.center_of_mass + T[:3, 3]
    )


def test_a_swinging_load_is_not_rigid() -> None:
    data = rig.samples(rig.BRICK, duration=10.0, bias=1.0)
    rigid = identify_load(data, rig.puma()).rigidity
    assert rigid is not None
    assert rigid.is_rigid, rigid
    slosh = _swing(data, mass=0.4, frequency_hz=1.3)
    loose = identify_load(replace(data, wrench=data.wrench + slosh), rig.puma())
    assert loose.rigidity is not None
    assert not loose.rigidity.is_rigid
    assert "slosh" in loose.statement()


def _swing(data: aw.Samples, mass: float, frequency_hz: float) -> np.ndarray:
    """Extra wrench of a mass on springs inside the load, driven by its motion."""
    pull = rig.body().motion(data.q, data.qd, data.qdd)[:, 0]
    omega, damping, step = 2 * np.pi * frequency_hz, 0.05, 0.005
    x, v = pull[0] / omega**2, np.zeros(3)
    extra = np.zeros((len(data), 6))
    for i, a in enumerate(pull):
        v = v + step * (a - omega**2 * x - 2 * damping * omega * v)
        x = x + step * v
        force = mass * (omega**2 * x - a)
        extra[i] = [*force, *np.cross([0.0, 0.0, 0.06], force)]
    return extra


@pytest.mark.slow
def test_intervals_cover_with_bias_and_drift() -> None:
    """Issue 5, line 4: 90 to 99 % of 200 runs; fewer here, all runs in benchmarks."""
    inside = []
    for run in range(40):
        data = rig.samples(duration=4.0, bias=1.0, drift=1.0, seed=run)
        load = identify_load(data, rig.puma(), checked=False)
        low, high = load.interval(0.95).T
        inside.append((low < rig.BAR.vector) & (rig.BAR.vector < high))
    fraction = float(np.mean(inside))
    assert 0.90 <= fraction <= 0.99, np.mean(inside, axis=0)
