"""The world around the arm: bodies where they were, forces as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.arms import BASE
from armwise.view.scene import make_scene, make_world_scene
from armwise.view.surroundings import surroundings_of
from armwise.worlds.scenario import read_world

WORLDS = Path(__file__).parents[2] / "examples" / "worlds"


@pytest.fixture(scope="module")
def nail():
    """A cylinder hung on a nail, with a spring."""
    return read_world(WORLDS / "nail.toml").run()


@pytest.mark.parametrize("file", sorted(WORLDS.glob("*.toml")), ids=lambda f: f.stem)
def test_every_example_world_can_be_seen(file: Path):
    scenario = read_world(file)
    around = surroundings_of(scenario.run())
    assert around.time[-1] == pytest.approx(scenario.duration)
    assert around.solids
    frames = around.poses.shape[1]
    assert all(0 <= solid.frame < frames for solid in around.solids)
    assert np.all(np.isfinite(around.poses))
    assert len(around.constraints) == len(scenario.world.relations)


def test_bodies_stand_where_they_were(nail):
    around = surroundings_of(nail)
    R = around.poses[:, 0, :3, :3]
    np.testing.assert_allclose(R @ np.swapaxes(R, 1, 2), np.eye(3) + 0 * R, atol=1e-9)
    (hold,) = around.constraints
    ends = around.poses[:, 0] @ [0.0, 0.0, 0.5, 1.0]
    np.testing.assert_allclose(ends[:, :3], hold.points[:, 0], atol=1e-9)
    np.testing.assert_allclose(hold.anchor, np.broadcast_to([0.6, 0.2, 0.4], (300, 3)))
    np.testing.assert_allclose(
        around.poses[:, 0] @ [0.0, 0.0, -0.5, 1.0],
        np.hstack([around.springs[:, 0, 0], np.ones((300, 1))]),
        atol=1e-9,
    )


def test_a_nail_carries_what_the_spring_does_not(nail):
    """At rest the forces on the cylinder add up to nothing."""
    around = surroundings_of(nail)
    (hold,) = around.constraints
    far, near = around.springs[-1, 0]
    spring = 10.0 * (near - far)
    total = hold.force[-1] + spring + [0.0, 0.0, -9.81]
    np.testing.assert_allclose(total, 0.0, atol=0.1)
    assert around.force_scale == pytest.approx(np.linalg.norm(hold.force[-1]), rel=0.3)


def test_a_point_on_a_line_shows_the_line():
    around = surroundings_of(read_world(WORLDS / "four_bar.toml").run())
    (hold,) = around.constraints
    assert hold.anchor is None
    np.testing.assert_allclose(hold.path.mean(axis=0), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(np.abs(np.diff(hold.path, axis=0)), [[0, 1, 0]])


def test_a_world_alone_needs_no_arm(nail):
    scene = make_world_scene(nail)
    assert (scene.solids, scene.models, scene.playback, scene.notes) == (
        (),
        (),
        None,
        (),
    )
    assert scene.poses(scene.start).shape == (1, 4, 4)
    assert scene.duration == pytest.approx(10.0)
    assert {solid.label for solid in scene.surroundings.solids} == {"cylinder"}
    assert np.ptp(scene.bounds, axis=0).max() > 0.1


def test_an_arm_in_the_world_stands_and_moves_there(tmp_path: Path):
    path = tmp_path / "world.toml"
    path.write_text("""
name = "fall"
duration = 0.2
[[body]]
name = "me"
kind = "articulated"
arm = "two_link_uno"
position = [0.0, 1.0, 2.0]
[[body]]
name = "ball"
segment = [{ kind = "sphere", mass = 1.0, radius = 0.1 }]
""")
    run = read_world(path).run()
    scene = make_scene(aw.load_arm("two_link_uno"), run=run)
    base, first = scene.poses(np.zeros(2))[[BASE, 0], :3, 3]
    np.testing.assert_array_equal(base, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(first, [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(scene.playback.q, run.position("me"))
    assert {solid.label for solid in scene.surroundings.solids} == {"ball"}
    assert not scene.playback.has_torque
    assert scene.duration == pytest.approx(0.2)
    other = make_scene(aw.load_arm("panda"), run=run)
    assert {solid.label for solid in other.surroundings.solids} == {"me", "ball"}
    assert any("does not stand in the world fall" in note for note in other.notes)
