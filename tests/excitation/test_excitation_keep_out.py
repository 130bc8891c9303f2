"""Spheres cover what they stand for; distances and their gradients are right."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.arms.arm import Shape
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.excitation import Box, KeepOut
from armwise.excitation.bounds import bounds_of
from armwise.excitation.clearance import (
    Obstacle,
    SphereModel,
    box_distance,
    cover,
    keep_clear,
)
from tests.excitation.arms_for_excitation import at, tree

RNG = np.random.default_rng(8)


def pose() -> np.ndarray:
    R, _ = np.linalg.qr(RNG.normal(size=(3, 3)))
    T = at(*RNG.normal(size=3))
    T[:3, :3] = R * np.sign(np.linalg.det(R))
    return T


def points_in(shape: Shape, count: int = 4000) -> np.ndarray:
    """Random points of a shape, in its link's frame."""
    u = RNG.uniform(-0.5, 0.5, (count, 3))
    if shape.kind == "box":
        inside = u * shape.size
    else:
        radius, length = shape.size[0], shape.size[1] if len(shape.size) > 1 else 0.0
        end = radius if shape.kind in ("sphere", "capsule") else 0.0
        inside = 2 * u * [radius, radius, 0.5 * length + end]
        across = np.hypot(inside[:, 0], inside[:, 1])
        beyond = np.maximum(np.abs(inside[:, 2]) - 0.5 * length, 0.0)
        far = np.hypot(across, beyond) if end else across
        inside = inside[far <= radius]
    return inside @ shape.pose[:3, :3].T + shape.pose[:3, 3]


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("sphere", (0.1,)),
        ("capsule", (0.05, 0.4)),
        ("cylinder", (0.08, 0.3)),
        ("cylinder", (0.3, 0.02)),
        ("box", (0.1, 0.5, 0.2)),
    ],
)
def test_spheres_cover_shapes(kind, size):
    arm = tree()
    shape = Shape(kind, size, pose())
    link = replace(arm.links[4], shapes=(shape,))
    arm = replace(arm, links=(*arm.links[:4], link))
    spheres = [s for s in cover(arm, KeepOut()) if s.link == 4]
    points = points_in(shape)
    assert len(points) > 100
    room = [s.radius - np.linalg.norm(points - s.center, axis=1) for s in spheres]
    assert np.max(room, axis=0).min() > -1e-9


def test_spheres_follow_the_links():
    arm = load_arm("ur10")
    spheres = cover(arm, KeepOut(tools={arm.frames[0].name: 0.1}))
    q = RNG.uniform(-2.0, 2.0, (5, arm.dof))
    centers = SphereModel(arm, spheres, "auto").centers(q)
    dynamics = Dynamics(arm)
    for k, sphere in enumerate(spheres):
        name = arm.base if sphere.link < 0 else arm.links[sphere.link].name
        T = dynamics.link_pose(q, name)
        expected = T[:, :3, :3] @ sphere.center + T[:, :3, 3]
        np.testing.assert_allclose(centers[k].T, expected, atol=1e-12)


def test_lines_reach_every_joint():
    """Each joint of a URDF-like arm lies in a sphere of the link below it."""
    arm = tree()
    spheres = cover(arm, KeepOut(radius=0.05))
    for joint in arm.joints:
        near = [
            np.linalg.norm(s.center - joint.origin[:3, 3])
            for s in spheres
            if s.link == joint.parent
        ]
        assert min(near) < 1e-9


def test_distance_from_a_box_and_where_it_grows():
    box = Obstacle(pose(), np.array([0.2, 0.5, 0.1]))
    points = box.pose[:3, 3:] + RNG.normal(size=(3, 400)) * 0.6
    distance, direction = box_distance(points, box)
    grid = RNG.uniform(-1.0, 1.0, (3, 20_000)) * box.half[:, None]
    side = RNG.integers(3, size=20_000)
    grid[side, np.arange(20_000)] = np.copysign(
        box.half[side], grid[side, np.arange(20_000)]
    )
    surface = box.pose[:3, :3] @ grid + box.pose[:3, 3:]
    gaps = np.linalg.norm(points[:, :, None] - surface[:, None, :5000], axis=0).min(1)
    np.testing.assert_allclose(np.abs(distance), gaps, atol=0.03)
    inside = np.abs(box.pose[:3, :3].T @ (points - box.pose[:3, 3:]))
    np.testing.assert_array_equal(distance < 0, (inside < box.half[:, None]).all(0))
    assert (distance < 0).any()
    assert (distance > 0).any()
    ahead, _ = box_distance(points + 1e-7 * direction, box)
    np.testing.assert_allclose((ahead - distance) / 1e-7, 1.0, atol=1e-4)


def test_gradient_of_the_room_left():
    arm = load_arm("panda")
    box = Box((0.2, 0.2, 0.1), (0.6, 0.5, 0.7))
    bounds = bounds_of(arm)
    clearance, _ = keep_clear(arm, KeepOut(boxes=[box]), bounds)
    q = RNG.uniform(bounds.lower, bounds.upper, (50, 7))
    weights = RNG.normal(size=clearance.room(q).shape)
    slope = clearance.slopes(q, weights)
    way, h = RNG.normal(size=q.shape), 1e-6
    moved = clearance.room(q + h * way) - clearance.room(q - h * way)
    expected = (weights * moved).sum(axis=0) / (2 * h)
    np.testing.assert_allclose(
        (slope * way).sum(axis=1), expected, rtol=1e-4, atol=1e-4
    )


def test_a_folded_arm_touches_itself():
    arm = load_arm("two_link_uno")
    clearance, _ = keep_clear(arm, KeepOut(floor=None), bounds_of(arm))
    straight, folded = np.array([[0.3, 0.0]]), np.array([[0.3, np.pi]])
    assert clearance.room(straight).min() > 0.0
    assert clearance.room(folded).min() < -0.02
    away, _ = keep_clear(arm, KeepOut(floor=None, avoid_self=False), bounds_of(arm))
    assert away is None


def test_floor_is_guessed_where_the_base_is_a_foot():
    panda, ddarm = load_arm("panda"), load_arm("ddarm")
    found, notes = keep_clear(panda, KeepOut(), bounds_of(panda))
    assert found.encounters.low.size
    assert not any("floor" in note for note in notes)
    found, notes = keep_clear(ddarm, KeepOut(), bounds_of(ddarm))
    assert not found.encounters.low.size
    assert any("no floor is kept" in note for note in notes)
    found, _ = keep_clear(ddarm, KeepOut(floor=-0.6), bounds_of(ddarm))
    assert found.encounters.low.size


def test_a_tool_takes_room():
    arm = load_arm("panda")
    bare, _ = keep_clear(arm, KeepOut(), bounds_of(arm))
    armed, _ = keep_clear(arm, KeepOut(tools={"flange": 0.3}), bounds_of(arm))
    tool = len(bare.model.radii)
    assert tool in armed.encounters.low
    met = {int(a) for a, b in armed.encounters.pairs if b == tool}
    spheres = cover(arm, KeepOut())
    assert {spheres[k].link for k in met} >= {-1, 1}  # the base and the upper arm


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Box((0, 0, 0), (1, 0, 1)), "must lie below"),
        (lambda: Box((0, 0), (1, 1)), "three finite numbers"),
        (lambda: KeepOut(floor="low"), "floor must be"),
        (lambda: KeepOut(clearance=-0.1), "clearance must be"),
        (lambda: KeepOut(tools={"flange": np.nan}), "flange must be"),
    ],
)
def test_nonsense_is_refused(make, said):
    with pytest.raises(ArgumentError, match=said):
        make()


def test_frames_must_exist_and_stand_still():
    arm = load_arm("panda")
    bounds, corners = bounds_of(arm), ((0, 0, 0), (1, 1, 1))
    cases = {
        "no link or frame 'gripper'": KeepOut(boxes=[Box(*corners, "gripper")]),
        "the frame 'flange' of panda moves": KeepOut(boxes=[Box(*corners, "flange")]),
        "no link or frame 'hand'": KeepOut(tools={"hand": 0.1}),
    }
    for said, keep_out in cases.items():
        with pytest.raises(ArgumentError, match=said):
            keep_clear(arm, keep_out, bounds)
