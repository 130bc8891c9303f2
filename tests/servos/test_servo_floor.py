"""Floors that servo arms touch: statics, and floors of known height found again."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.servos import read_servo, write_servo
from armwise.servos.floor import (
    Floor,
    _Search,
    _split,
    find_floor,
    heights,
    settled_floor,
)
from armwise.simulators import export
from tests.servos import rig

TIP = np.array([0.01, 0.0, -0.16])


@pytest.fixture(scope="module")
def robot(tmp_path_factory):
    return rig.arm(tmp_path_factory.mktemp("floor"))


def on_floor(robot, height, stiffness=2e3, friction=0.0):
    floor = Floor((1,), TIP[None], height, stiffness, friction)
    return replace(rig.truth(robot), floor=floor)


def pressed(robot, friction, command):
    """Return where servos without friction of their own rest on a floor."""
    servo = on_floor(robot, -0.23, friction=friction)
    smooth = dict(servo.values) | {"coulomb": np.full(2, 1e-9)}
    servo = replace(servo, values=smooth)
    log = rig.of_arrays(
        np.arange(len(command)) * 0.02, np.tile(command[0], (len(command), 1)), command
    )
    q = servo.predict(log)[-1:]
    missing = Dynamics(robot).gravity_torque(q)[0]
    missing -= servo.values["stiffness"] * (command[-1] - q[0])
    J = Dynamics(robot).jacobian(q, "l1")[0]
    lever = Dynamics(robot).link_pose(q, "l1")[0, :3, :3] @ TIP
    # Of this planar arm the tip moves along x and z; torques tell both forces.
    moved = (J[:3] + np.cross(J[3:].T, lever).T)[[0, 2]]
    return np.linalg.solve(moved.T, missing), q


def tip_height(robot, q):
    return heights(robot, q, 1) @ [*TIP, 1.0]


def test_at_rest_the_floor_carries_what_servos_press_with(robot):
    """Torques of servos, gravity and one force at the tip are in balance."""
    servo = on_floor(robot, -0.23)
    smooth = {name: np.full(2, 1e-9) for name in ("coulomb",)}
    servo = replace(servo, values=dict(servo.values) | smooth)
    time = np.arange(300) * 0.02
    command = np.where(time[:, None] < 0.5, [0.8, 0.3], [0.3, 0.2])
    log = rig.of_arrays(time, np.tile(command[0], (300, 1)), command)
    q = servo.predict(log)[-1:]
    depth = -0.23 - float(tip_height(robot, q)[0])
    assert 0.0 < depth < 0.01
    gap = command[-1] - q[0]
    missing = Dynamics(robot).gravity_torque(q)[0] - servo.values["stiffness"] * gap
    nudged = [tip_height(robot, q + 1e-6 * e)[0] for e in np.eye(2)]
    lift = (np.array(nudged) - tip_height(robot, q)[0]) / 1e-6
    # Commands are cut off to ticks, of 1.5 mrad.
    assert missing == pytest.approx(2e3 * depth * lift, rel=0.03)


@pytest.mark.parametrize("command", [[0.3, 0.2], [0.4, 0.0]])
def test_friction_holds_within_its_cone(robot, command):
    """Pushed along a rough floor it sticks, on a smooth one it lies where it may."""
    time = np.arange(400) * 0.02
    goals = np.where(time[:, None] < 0.5, [0.8, 0.3], command)
    (along, up), rough = pressed(robot, 0.5, goals)
    assert up > 0.5
    assert abs(along) <= 0.5 * up * 1.01
    (nothing, _), smooth = pressed(robot, 0.0, goals)
    assert abs(nothing) < 0.02 * up < abs(along)
    assert np.abs(rough - smooth).max() > 3e-3


def test_a_sliding_point_is_held_back_by_its_weight_on_the_floor(robot):
    """Drawn along the floor until just now, it rests at the edge of its cone."""
    time = np.arange(400) * 0.02
    ramp = np.clip((time - 0.5) / 7.0, 0.0, 1.0)[:, None]
    goals = [0.4, 0.1] + ramp * np.array([-0.4, 0.2])
    for friction in (0.1, 0.2):
        (along, up), _ = pressed(robot, friction, goals)
        assert up > 5.0
        assert abs(along) == pytest.approx(friction * up, rel=0.02)


def test_a_floor_out_of_reach_changes_nothing(robot):
    log = rig.recording(rig.truth(robot), 1)
    free, above = rig.truth(robot).predict(log), on_floor(robot, -0.4).predict(log)
    assert np.array_equal(free, above)


def logs_on(servo, robot, seeds):
    """Return motions on a floor, and rows in which it holds the arm up."""
    free = replace(servo, floor=None)
    motions, held = [], []
    for seed in seeds:
        log = rig.recording(servo, seed)
        motion = servo.motion(log)
        far = np.abs(free.rollouts([motion])[0] - motion.q) > 0.01
        motions.append(motion)
        held.append(far.any(axis=1))
    return motions, held


def test_a_floor_is_found_to_millimetres(robot):
    servo = on_floor(robot, -0.25)
    motions, held = logs_on(servo, robot, range(3))
    assert 0.02 < np.concatenate(held).mean() < 0.5
    floor, _ = find_floor(robot, replace(servo, floor=None).table, motions, held)
    assert floor is not None
    found = replace(servo, floor=floor)
    [(other, rows)] = [(m[0], h[0]) for m, h in [logs_on(servo, robot, [7])]]
    free, stopped = (
        one.rollouts([other])[0] for one in (replace(servo, floor=None), found)
    )
    off = [np.abs(run - other.q).mean() for run in (free, stopped)]
    assert off[1] < 0.2 * off[0]
    gap = tip_height(robot, stopped) - tip_height(robot, other.q)
    assert np.abs(gap[rows]).mean() < 1e-3


@pytest.mark.parametrize("friction", [0.0, 0.5])
def test_a_floor_of_any_friction_is_where_it_is(robot, friction):
    """A smooth floor that stands for a rough one is millimetres off."""
    servo = on_floor(robot, -0.25, friction=friction)
    motions, held = logs_on(servo, robot, range(3))
    floor, _ = find_floor(robot, replace(servo, floor=None).table, motions, held)
    assert floor is not None
    assert floor.height == pytest.approx(-0.25, abs=2e-3)
    assert floor.points[0, [0, 2]] == pytest.approx(TIP[[0, 2]], abs=3e-3)
    assert floor.friction == pytest.approx(friction, abs=0.03)
    assert floor.height_std < 2e-3
    # A planar arm has no motion that shows where across it the point is.
    assert np.isinf(floor.points_std[0, 1])
    said = floor.statement(robot)
    assert f"l1 up, {1e3 * floor.height:.0f} ± " in said
    assert "± ?" in said
    assert ("of friction 0.5" if friction else "without friction") in said


@pytest.mark.parametrize("friction", [0.0, 0.3])
def test_a_floor_settles_where_its_friction_shows(robot, friction):
    servo = on_floor(robot, -0.25, friction=friction)
    motions, held = logs_on(servo, robot, range(3))
    smooth = replace(servo.floor, height=-0.251, friction=0.0)
    table = replace(servo, floor=None).table
    floor = settled_floor(smooth, robot, table, motions, held)
    assert floor.friction == pytest.approx(friction, abs=0.05)
    # Friction and height make one long valley.
    assert floor.height == pytest.approx(-0.25, abs=4e-3)


def test_no_floor_is_found_where_a_joint_meets_a_wall(robot):
    """It stops at one angle of a joint in one motion, and others go beyond."""
    free = rig.truth(robot)
    walled = replace(free, values=dict(free.values) | {"upper": np.array([9.0, 0.45])})
    motions, held = logs_on(free, robot, range(3))
    log = rig.recording(walled, 3)
    motions.append(free.motion(log))
    far = np.abs(free.rollouts(motions[-1:])[0] - motions[-1].q) > 0.01
    held.append(far.any(axis=1))
    assert held[-1].sum() > 50
    floor, reason = find_floor(robot, free.table, motions, held)
    assert floor is None
    assert reason == "free runs are nowhere below where links were held"


def test_a_floor_that_is_not_taken_is_told_with_its_height(robot, monkeypatch):
    servo = on_floor(robot, -0.25)
    motions, held = logs_on(servo, robot, range(2))
    monkeypatch.setattr("armwise.servos.floor._WORTH", 0.9999)
    floor, reason = find_floor(robot, replace(servo, floor=None).table, motions, held)
    assert floor is None
    best, explained = reason.split(" above the base's origin, explains ")
    assert best.startswith("the best, under l1 -2")
    assert explained.endswith(" % of the errors there, and 100 % is asked")


def test_a_floor_that_only_friction_explains_is_found(robot, monkeypatch):
    """A point that sticks stays where no smooth floor would leave it."""
    servo = on_floor(robot, -0.24, friction=0.9)
    motions, held = logs_on(servo, robot, range(4))
    # A smooth one explains a third here, and a tenth on arms with more joints.
    monkeypatch.setattr("armwise.servos.floor._WORTH", 0.5)
    floor, _ = find_floor(robot, replace(servo, floor=None).table, motions, held)
    assert floor is not None
    assert floor.height == pytest.approx(-0.24, abs=3e-3)
    assert floor.friction == pytest.approx(0.9, abs=0.1)


def test_floors_of_one_point_and_of_two_are_compared(robot):
    """As they are alone: what one lacks pushes nothing."""
    servo = on_floor(robot, -0.23, friction=0.3)
    motions, held = logs_on(servo, robot, range(1))
    search = _Search(robot, replace(servo, floor=None).table, motions, held)
    links, points = (1, 1), np.vstack([TIP, 1.1 * TIP])
    two = replace(servo.floor, links=links, points=points)
    both = [None, servo.floor, two]
    alone = [float(search._costs([floor])[0]) for floor in both]
    assert search._costs(both) == pytest.approx(alone, rel=1e-9)
    assert len(set(alone)) == 3


def test_a_point_is_split_along_what_is_known_least_of_it(robot):
    """But not across the plane of the arm, where motions say nothing."""
    floor = Floor((1,), TIP[None], -0.23, 2e3)
    spread = np.array([[1e-3, np.inf, 2e-2]])
    two = _split(replace(floor, points_std=spread))
    assert two.links == (1, 1)
    assert two.points.mean(axis=0) == pytest.approx(TIP)
    assert np.abs(np.diff(two.points, axis=0))[0].argmax() == 2


def test_rows_that_nothing_holds_make_no_floor(robot):
    """Neither where every floor is worse than none, nor for a model that is wrong."""
    free = rig.truth(robot)
    wrong = dict(free.values) | {"zero": np.array([0.1, -0.05])}
    motions = [free.motion(rig.recording(free, seed)) for seed in (1, 2)]
    random = np.random.default_rng(0)
    held = [random.random(len(m.time)) < 0.3 for m in motions]
    for servo in (free, replace(free, values=wrong)):
        assert find_floor(robot, servo.table, motions, held)[0] is None


def test_a_file_keeps_the_floor(robot, tmp_path):
    servo = on_floor(robot, -0.23, friction=0.4)
    known = replace(servo.floor, points_std=np.array([[1e-3, np.inf, 2e-3]]))
    servo = replace(servo, floor=replace(known, height_std=1e-3))
    write_servo(servo, tmp_path / "servo.json")
    again = read_servo(tmp_path / "servo.json")
    assert again.floor.statement(robot) == servo.floor.statement(robot)
    log = rig.recording(servo, 1)
    assert np.allclose(again.predict(log), servo.predict(log), atol=1e-9)
    plain = json.loads((tmp_path / "servo.json").read_text())
    plain["floor"]["links"] = ["l7"]
    (tmp_path / "other.json").write_text(json.dumps(plain))
    with pytest.raises(ArgumentError, match="its floor touches 'l7'"):
        read_servo(tmp_path / "other.json")


def test_targets_without_floors_say_what_that_costs(robot, tmp_path):
    servo = on_floor(robot, -0.22, friction=0.5)
    log = rig.recording(servo, 4)
    costs = {
        to: {
            loss.effect: loss.cost
            for loss in export(servo, path, to=to, recordings=[log]).losses
        }
        for to, path in (("mjcf", tmp_path / "a.xml"), ("urdf", tmp_path / "a.urdf"))
    }
    assert "floor" not in costs["mjcf"]
    free = replace(servo, floor=None).predict(log)
    change = np.abs(free - servo.predict(log)).mean(axis=0)
    assert costs["urdf"]["floor"] == pytest.approx(change, rel=1e-9)
    assert change.max() > 5e-3
    smooth = on_floor(robot, -0.22).predict(log)
    change = np.abs(smooth - servo.predict(log)).mean(axis=0)
    assert costs["mjcf"]["floor's friction"] == pytest.approx(change, rel=1e-9)


def test_floors_are_ranked_where_none_explains_anything(monkeypatch):
    """A floor that is worse than none is still the best of its kind."""
    floor = Floor((1,), np.zeros((1, 3)), 0.0, 400.0)
    monkeypatch.setattr(
        _Search,
        "_unexplained",
        lambda self, floors: np.array([1.0 if one is None else 2.0 for one in floors]),
    )
    search = object.__new__(_Search)
    assert search._outermost([floor]) is floor


def test_no_floor_is_tried_where_links_move_freely(robot):
    """Though something else holds joints back, high above it."""
    servo = on_floor(robot, -0.25)
    motions, held = logs_on(servo, robot, range(2))
    free = ~np.concatenate(held)
    q = np.concatenate([m.q for m in motions])
    high = tip_height(robot, q) > np.quantile(tip_height(robot, q), 0.6)
    edges = np.cumsum([len(rows) for rows in held])[:-1]
    held = np.split(~free | high, edges)
    search = _Search(robot, replace(servo, floor=None).table, motions, held)
    trials = search._candidates(None)
    assert trials
    for one in trials:
        z = heights(robot, q, one.links[0]) @ [*one.points[0], 1.0]
        # Within what a quantile of few rows is off.
        assert np.mean(z[free & ~high] < one.height) < 0.015
