"""The scene: what is drawn, and where."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import armwise as aw
from armwise.arms import BASE, Limits
from armwise.errors import ArgumentError
from armwise.view.forms import Ball, Cuboid, Rod, pose_along
from armwise.view.geometry import arm_length, bones_of
from armwise.view.scene import (
    DESCRIBED,
    ellipsoids_of,
    equivalent_ellipsoid,
    make_scene,
    models_of,
)


def samples(arm: aw.Arm, seed: int = 0) -> aw.Samples:
    """Four seconds of sinusoids and the torque they take."""
    t = np.arange(0.0, 4.0, 0.01)
    w = np.linspace(1.5, 3.0, arm.dof) + 0.2 * seed
    q, qd = 0.5 * np.sin(w * t[:, None]), 0.5 * w * np.cos(w * t[:, None])
    qdd = -(w**2) * q
    return aw.Samples(t, q, qd, qdd, aw.Dynamics(arm).inverse_dynamics(q, qd, qdd))


@pytest.fixture(scope="module")
def arm() -> aw.Arm:
    return aw.load_arm("puma560")


@pytest.mark.parametrize("name", aw.arms.bundled_arms())
def test_every_bundled_arm_has_a_skeleton(name: str):
    described = aw.load_arm(name)
    scene = make_scene(described)
    assert scene.poses(scene.start).shape == (len(described.links) + 1, 4, 4)
    drawn = {solid.frame for solid in scene.solids if solid.layer == "skeleton"}
    assert drawn == {BASE, *range(len(described.links))}
    assert any("bones" in note for note in scene.notes)
    low, high = scene.ranges.T
    assert np.all((low <= scene.start) & (scene.start <= high) & (low < high))


@pytest.mark.parametrize("name", ["ur5", "tx40"])
def test_a_saved_arm_can_be_seen_again(name: str, tmp_path):
    """Its file has links of its own, for axes that miss the origin of their link."""
    path = tmp_path / "arm.urdf"
    aw.save_arm(aw.load_arm(name), path)
    scene = make_scene(aw.load_arm(path), description=path)
    assert len(scene.solids) == len(make_scene(aw.load_arm(name)).solids)


def test_links_stand_where_the_equations_have_them(arm: aw.Arm):
    scene = make_scene(arm)
    q = np.linspace(-1.0, 1.0, arm.dof)
    poses = scene.poses(q)
    for i, link in enumerate(arm.links):
        expected = aw.Dynamics(arm).link_pose(q, link.name)
        np.testing.assert_allclose(poses[i], expected, atol=1e-12)
    np.testing.assert_array_equal(poses[BASE], np.eye(4))


def test_bones_meet_at_the_joints(arm: aw.Arm):
    """The far end of a link's bone is the next joint's axis point, in any posture."""
    scene = make_scene(arm)
    poses = scene.poses(np.linspace(0.3, -1.2, arm.dof))
    for i, joint in enumerate(arm.joints):
        if joint.parent == BASE:
            continue
        origin = poses[i] @ [*joint.anchor, 1.0]
        ends = [
            poses[joint.parent] @ bone.pose @ [0, 0, bone.form.length / 2, 1]
            for bone in bones_of(arm, joint.parent)
        ]
        start = poses[joint.parent][:3, 3]
        distances = [np.linalg.norm(end - origin) for end in ends]
        assert min([*distances, np.linalg.norm(start - origin[:3])]) < 1e-9


def test_a_bone_points_from_one_end_to_the_other():
    a, b = np.array([0.1, 0.2, 0.3]), np.array([-0.4, 0.2, 1.0])
    T = pose_along(a, b)
    half = np.linalg.norm(b - a) / 2
    np.testing.assert_allclose((T @ [0, 0, half, 1])[:3], b, atol=1e-12)
    np.testing.assert_allclose((T @ [0, 0, -half, 1])[:3], a, atol=1e-12)
    np.testing.assert_allclose(T[:3, :3].T @ T[:3, :3], np.eye(3), atol=1e-12)
    assert np.linalg.det(T[:3, :3]) > 0


def test_length_is_what_the_arm_can_reach():
    assert arm_length(aw.load_arm("two_link_uno")) == pytest.approx(0.7, abs=0.2)


@given(
    radii=st.tuples(*[st.floats(0.01, 2.0)] * 3),
    mass=st.floats(0.01, 100.0),
    seed=st.integers(0, 10**6),
)
def test_an_ellipsoid_has_the_inertia_it_stands_for(radii, mass, seed):
    """Its own mass distribution, integrated in closed form, gives the ten numbers."""
    rng = np.random.default_rng(seed)
    R = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    R *= np.sign(np.linalg.det(R))
    center = rng.normal(size=3)
    spread = mass / 5 * R @ np.diag(np.square(radii)) @ R.T
    central = np.trace(spread) * np.eye(3) - spread
    body = aw.arms.InertialParameters.from_center_of_mass(mass, center, central)
    ball, T = equivalent_ellipsoid(body)
    np.testing.assert_allclose(T[:3, 3], center, atol=1e-9)
    second_moments = mass / 5 * T[:3, :3] @ np.diag(np.square(ball.radii)) @ T[:3, :3].T
    np.testing.assert_allclose(second_moments, spread, atol=1e-6 * np.abs(spread).max())
    assert np.linalg.det(T[:3, :3]) > 0


def test_a_link_that_is_no_body_is_named_and_not_drawn(arm: aw.Arm):
    vector = arm.parameters.copy()
    vector[10:20] = [1, 0, 0, 0, 1, 0, 0, 1, 0, 9]  # 1 + 1 < 9
    vector[20:30] = 0.0
    wrong = arm.with_parameters(vector)
    balls, defects = ellipsoids_of(wrong, "inertia 1", (0, 0, 0))
    assert set(defects) == {"link_2"}
    assert {ball.label for ball in balls} == {
        link.name for link in arm.links if link.name not in ("link_2", "link_3")
    }
    (note,) = [note for note in make_scene(wrong).notes if "link_2" in note]
    assert re.search("described.*not physically realisable.*triangle", note)


def test_a_point_mass_can_be_seen():
    body = aw.arms.InertialParameters.from_center_of_mass(
        1.0, [0, 0, 1], np.zeros((3, 3))
    )
    ball, _ = equivalent_ellipsoid(body)
    assert min(ball.radii) > 0


def test_estimates_are_compared_in_two_colours(arm: aw.Arm):
    data = samples(arm)
    estimate = aw.identify(arm, data, aw.WeightedLeastSquares(), friction="linear")
    one = models_of(arm, {"a": estimate})
    assert [model.name for model in one] == [DESCRIBED, "a"]
    both = models_of(arm, {"a": estimate, "b": estimate})
    assert [model.name for model in both] == ["a", "b"]
    assert both[0].color != both[1].color
    np.testing.assert_allclose(both[0].predict(data), estimate.predict(data))
    with pytest.raises(ArgumentError, match="2 at a time"):
        models_of(arm, {"a": estimate, "b": estimate, "c": estimate})


def test_a_description_without_mass_predicts_nothing(arm: aw.Arm):
    bare = arm.with_parameters(np.zeros_like(arm.parameters))
    assert models_of(bare, {}) == ()
    assert make_scene(bare, samples(arm)).playback.predicted is None


def test_a_recording_without_torque_is_played_beside_predictions(arm: aw.Arm):
    data = samples(arm)
    bare = replace(data, tau=np.zeros((len(data), 0)))
    playback = make_scene(arm, bare).playback
    assert playback.measured is None
    assert playback.relative_error is None
    np.testing.assert_allclose(playback.predicted[0], data.tau, atol=1e-9)
    assert len(playback.curves(0, 1.0, 1.0).torque) == 1


def test_errors_are_those_of_a_validation(arm: aw.Arm):
    data = samples(arm)
    estimate = aw.identify(
        arm, samples(arm, 1), aw.WeightedLeastSquares(), friction="linear"
    )
    scene = make_scene(arm, data, {"a": estimate})
    assert scene.playback is not None
    np.testing.assert_allclose(
        scene.playback.relative_error[1], estimate.validate(data).relative_error
    )
    np.testing.assert_allclose(scene.playback.relative_error[0], 0.0, atol=1e-9)


def test_curves_follow_the_time(arm: aw.Arm):
    playback = make_scene(arm, samples(arm)).playback
    assert playback is not None
    assert playback.duration == pytest.approx(3.99)
    for t, first, last in ((0.0, 0.0, 1.0), (2.0, 1.5, 2.5), (9.0, 2.99, 3.99)):
        curves = playback.curves(0, t, 1.0)
        assert curves.time[0] == pytest.approx(first, abs=0.011)
        assert curves.time[-1] == pytest.approx(last, abs=0.011)
        assert len(curves.torque) == 2
        is_past = np.isfinite(curves.past)
        assert is_past[0]  # the browser's plot takes its scale from the first number
        np.testing.assert_array_equal(is_past, curves.time <= max(t, curves.time[0]))
    few = playback.curves(0, 2.0, 4.0, points=50)
    assert few.time.size <= 52
    every = playback.measured[:, 0]
    assert few.torque[0].max() == every.max()


def test_rows_are_found_by_time_even_beyond_the_ends(arm: aw.Arm):
    playback = make_scene(arm, samples(arm)).playback
    assert [playback.row_at(t) for t in (-1.0, 0.0, 0.0149, 99.0)] == [0, 0, 1, 399]


def test_a_recording_of_another_arm_is_refused(arm: aw.Arm):
    with pytest.raises(ArgumentError, match="6"):
        make_scene(arm, samples(aw.load_arm("panda")))


def test_sliders_reach_all_that_was_recorded(arm: aw.Arm):
    data = samples(arm)
    for shift in (5.0, -5.0):
        far = replace(data, q=data.q + shift)
        low, high = make_scene(arm, far).ranges.T
        assert np.all(high >= far.q.max(axis=0))
        assert np.all(low <= far.q.min(axis=0))


def test_bounds_hold_all_of_a_motion(arm: aw.Arm):
    scene = make_scene(arm, samples(arm))
    low, high = scene.bounds
    assert np.all((low <= 0) & (high >= 0))  # the base
    for row in scene.playback.q[:: len(scene.playback.q) // 20]:
        origins = scene.poses(row)[:, :3, 3]
        assert np.all((low - 0.03 <= origins) & (origins <= high + 0.03))
    still = make_scene(arm).bounds
    assert np.ptp(still, axis=0).max() < np.ptp(scene.bounds, axis=0).max()


def test_a_joint_that_slides_is_a_block_and_moves_in_metres(arm: aw.Arm):
    joint = replace(arm.joints[0], kind="prismatic", limits=Limits())
    slide = replace(arm, joints=(joint, *arm.joints[1:]))
    scene = make_scene(slide)
    (block,) = [solid for solid in scene.solids if isinstance(solid.form, Cuboid)]
    assert (block.frame, block.label) == (0, joint.name)
    low, high = scene.ranges[0]
    assert low == -high == -arm_length(slide)


def test_forms_say_what_they_are(arm: aw.Arm):
    scene = make_scene(arm)
    kinds = {
        layer: {type(s.form) for s in scene.solids if s.layer == layer}
        for layer in ("skeleton", "axes", "inertia 1")
    }
    assert kinds["skeleton"] == {Rod}
    assert kinds["axes"] == {Rod, Ball}
    assert kinds["inertia 1"] == {Ball}
