"""Recognition of objects, grasp verification, and files for robot drivers."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import armwise as aw
from armwise.arms import InertialParameters
from armwise.arms.poses import pose, rotation_about
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.loads import (
    KnownObject,
    LoadEstimate,
    StaticPoses,
    identify_load,
    recognise,
    to_franka_json,
    to_ros_yaml,
    to_ur_script,
    to_urdf,
    verify_grasp,
    write_load,
)
from tests.loads import rig

CATALOGUE = (
    KnownObject.from_parameters("brick", rig.BRICK),
    KnownObject.from_parameters("bar", rig.BAR),
    KnownObject("ball", 1.2, (0.002, 0.002, 0.002)),
)


@cache
def _brick() -> LoadEstimate:
    return identify_load(rig.samples(rig.BRICK, bias=1.0), rig.puma())


def test_the_object_is_recognised_however_it_is_held() -> None:
    held = recognise(_brick(), CATALOGUE)
    assert held.name == "brick"
    assert held.is_certain
    T = pose(rotation_about([0.0, 1.0, 0.0], 1.0), [0.1, 0.2, -0.1])
    moved = recognise(_brick().in_frame(T, "elsewhere"), CATALOGUE)
    assert [m.name for m in moved.matches] == [m.name for m in held.matches]
    assert moved.matches[0].distance == pytest.approx(held.matches[0].distance)


def test_a_stranger_is_not_taken_for_the_nearest() -> None:
    result = recognise(_brick(), CATALOGUE[1:])
    assert result.name is None
    assert "none of the 2 known objects" in result.statement


def test_two_alike_are_both_named() -> None:
    twin = KnownObject.from_parameters("twin", rig.BRICK)
    result = recognise(_brick(), (*CATALOGUE, twin))
    assert result.is_known
    assert not result.is_certain
    assert "brick or twin" in result.statement


def test_a_static_estimate_is_recognised_by_its_mass_alone() -> None:
    still = identify_load(rig.static_samples(rig.BAR), rig.puma(), method=StaticPoses())
    result = recognise(still, CATALOGUE)
    assert result.name == "bar"
    assert "mass alone" in result.statement
    with pytest.raises(ArgumentError, match="catalogue is empty"):
        recognise(still, ())


def test_a_proper_grasp_passes_and_a_shifted_or_turned_one_does_not() -> None:
    T = pose(None, rig.BRICK.center_of_mass)
    own = rig.BRICK.transformed(np.linalg.inv(T))
    good = verify_grasp(_brick(), own, T)
    assert good.is_as_expected, good
    assert np.linalg.norm(good.shift) < 2e-3
    shifted = T.copy()
    shifted[1, 3] += 0.02
    slipped = verify_grasp(_brick(), own, shifted)
    assert not slipped.is_as_expected
    assert verdicts(slipped) == {"position": "beyond", "mass": "within"}
    assert "not held as expected, by its position" in slipped.statement
    # Each quantity has its own tolerance, and passes or fails by it alone.
    assert verify_grasp(_brick(), own, shifted, position_tolerance=0.05).is_as_expected
    assert slipped.shift[1] == pytest.approx(-0.02, abs=2e-3)
    turned = T @ pose(rotation_about([1.0, 0.0, 0.0], 0.5))
    twisted = verify_grasp(_brick(), own, turned)
    assert not twisted.is_as_expected
    assert twisted.turn == pytest.approx(0.5, abs=0.1)
    heavier = InertialParameters(1.3 * own.vector)
    wrong = verify_grasp(_brick(), heavier, T)
    assert not wrong.is_as_expected
    assert wrong.mass_difference == pytest.approx(-0.36, abs=0.02)
    assert verdicts(wrong) == {"position": "within", "mass": "beyond"}
    assert verify_grasp(_brick(), heavier, T, mass_tolerance=0.5).is_as_expected
    with pytest.raises(ArgumentError, match="4×4 pose"):
        verify_grasp(_brick(), own, np.eye(3))


def verdicts(check) -> dict[str, str]:
    return {one.quantity: one.verdict for one in check.checks[:2]}


def test_drivers_get_mass_centre_and_central_inertia(tmp_path: Path) -> None:
    load = _brick()
    line = to_ur_script(load)
    numbers = eval(line.removeprefix("set_target_payload"))
    assert numbers[0] == pytest.approx(load.mass, rel=1e-4)
    assert numbers[1] == pytest.approx(load.center_of_mass, abs=1e-6)
    I = load.central_inertia
    expected = [I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]]
    assert numbers[2] == pytest.approx(expected, rel=1e-4, abs=1e-8)
    franka = json.loads(to_franka_json(load))
    assert pytest.approx(I) == np.reshape(franka["load_inertia"], (3, 3)).T
    assert franka["F_x_Cload"] == pytest.approx(load.center_of_mass)
    yaml = to_ros_yaml(load)
    assert f"  m: {load.mass!r}" in yaml
    assert f"  ixz: {float(I[0, 2])!r}" in yaml
    link = ElementTree.fromstring(f"<robot>{to_urdf(load)}</robot>").find("link")
    assert link is not None
    mass = link.find("inertial/mass")
    assert mass is not None
    assert float(mass.attrib["value"]) == pytest.approx(load.mass)
    for suffix in (".script", ".json", ".yaml", ".urdf"):
        assert write_load(load, tmp_path / f"load{suffix}").read_text().strip()
    with pytest.raises(ArgumentError, match="a load is written as"):
        write_load(load, tmp_path / "load.txt")


def test_the_urdf_link_is_one_that_load_arm_reads(tmp_path: Path) -> None:
    load = _brick()
    limits = '<limit lower="-1" upper="1" effort="1" velocity="1"/>'
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="r"><link name="base"/><link name="wrist"/>'
        '<joint name="j" type="revolute"><parent link="base"/><child link="wrist"/>'
        f'<axis xyz="0 0 1"/>{limits}</joint>{to_urdf(load)}</robot>'
    )
    arm = aw.load_arm(path)
    assert arm.links[0].inertia.vector == pytest.approx(
        load.parameters.vector, rel=1e-6, abs=1e-9
    )


def test_a_static_load_has_only_the_short_ur_line() -> None:
    still = identify_load(rig.static_samples(rig.BAR), rig.puma(), method=StaticPoses())
    assert to_ur_script(still).startswith("set_target_payload(1.")
    with pytest.raises(NotIdentifiable, match="needs an inertia"):
        to_franka_json(still)
