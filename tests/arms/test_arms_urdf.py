"""What is read from URDF, against Pinocchio."""

from __future__ import annotations

import re
import time
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from armwise.arms import BASE, Drive, Limits, load_arm, save_arm
from armwise.arms.readers.urdf import exact_angle
from armwise.dynamics import base_parameters

from .trees import link_poses, random_arm

ROBOT = """<?xml version="1.0"?>
<robot name="r">
  <link name="world"/>
  <joint name="mount" type="fixed">
    <parent link="world"/><child link="base"/>
    <origin xyz="0 0 1" rpy="0 0 1.57079632679"/>
  </joint>
  <link name="base">
    <collision><geometry><sphere radius="0.1"/></geometry></collision>
  </link>
  <joint name="slide" type="prismatic">
    <parent link="arm"/><child link="hand"/><origin xyz="0.5 0 0"/><axis xyz="0 2 0"/>
    <limit lower="-0.1" upper="0.2" velocity="0.3" effort="40"/>
    <dynamics damping="3" friction="2"/>
    <mimic joint="turn" multiplier="0.5" offset="0.01"/>
  </joint>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
    <limit velocity="2" effort="0"/>
  </joint>
  <link name="arm">
    <inertial>
      <origin xyz="0.25 0 0" rpy="0 0.3 0"/><mass value="2"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0.01" izz="0.2"/>
    </inertial>
    <visual><geometry><box size="1 2 3"/></geometry></visual>
    <collision>
      <origin xyz="0 0 0.1"/><geometry><cylinder radius="0.1" length="0.5"/></geometry>
    </collision>
  </link>
  <link name="hand">
    <inertial><mass value="1"/><inertia ixx="0.1" iyy="0.1" izz="0.1"/></inertial>
  </link>
  <joint name="bolt" type="fixed">
    <parent link="hand"/><child link="camera"/><origin xyz="0 0.1 0"/>
  </joint>
  <link name="camera">
    <inertial><mass value="0.5"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>
    <collision><geometry><mesh filename="cam.stl" scale="2 2 2"/></geometry></collision>
  </link>
  <transmission name="t"/><gazebo reference="arm"/>
</robot>
"""


@pytest.fixture
def robot(tmp_path: Path) -> Path:
    path = tmp_path / "r.urdf"
    path.write_text(ROBOT)
    return path


def test_reads_joints_limits_and_friction(robot: Path) -> None:
    arm = load_arm(robot)
    assert [x.name for x in arm.joints] == ["turn", "slide"]
    assert (arm.name, arm.base, arm.dof) == ("r", "world", 1)
    turn, slide = arm.joints
    assert turn.limits == Limits(velocity=2.0)
    assert slide.limits == Limits(-0.1, 0.2, velocity=0.3, effort=40.0)
    assert slide.drive == Drive(viscous=3.0, coulomb=2.0)
    np.testing.assert_array_equal(slide.axis, [0, 1, 0])
    assert slide.mimic is not None
    assert (slide.mimic.multiplier, slide.mimic.offset) == (0.5, 0.01)


@pytest.mark.parametrize(
    ("ratio", "gear"), [("50", 50.0), ("-50.5", 50.5), ("1", None), ("fifty", None)]
)
def test_gears_are_those_of_transmissions(
    robot: Path, ratio: str, gear: float | None
) -> None:
    """One of 1 is what tools write where nobody knows, and no reader minds words."""
    reduction = f"<mechanicalReduction>{ratio}</mechanicalReduction>"
    inside = f'<joint name="turn"/><actuator name="m">{reduction}</actuator>'
    text = ROBOT.replace('name="t"/>', f'name="t">{inside}</transmission>')
    robot.write_text(text)
    turn, slide = load_arm(robot).joints
    assert (turn.gear, slide.gear) == (gear, None)


def test_fixed_links_are_merged_and_kept_as_frames(robot: Path) -> None:
    arm = load_arm(robot)
    frames = {frame.name: frame for frame in arm.frames}
    assert {name: x.link for name, x in frames.items()} == {"base": BASE, "camera": 1}
    assert arm.links[1].inertia.mass == pytest.approx(1.5)
    np.testing.assert_allclose(arm.links[1].inertia.first_moment, [0, 0.05, 0])
    assert frames["camera"].inertia.mass == 0.5
    link, T = arm.find_frame("camera")
    assert link == 1
    np.testing.assert_allclose(T[:3, 3], [0, 0.1, 0])


def test_shapes_are_kept(robot: Path) -> None:
    arm = load_arm(robot)
    assert [x.kind for x in arm.links[0].shapes] == ["cylinder"]
    mesh = arm.links[1].shapes[0]
    assert (mesh.kind, mesh.mesh, mesh.size) == ("mesh", "cam.stl", (2.0, 2.0, 2.0))
    np.testing.assert_allclose(mesh.pose[:3, 3], [0, 0.1, 0])
    assert [x.kind for x in arm.base_shapes] == ["sphere"]
    np.testing.assert_allclose(arm.base_shapes[0].pose[:3, 3], [0, 0, 1])


def test_a_rounded_quarter_turn_is_a_quarter_turn(robot: Path) -> None:
    R = load_arm(robot).joints[0].origin[:3, :3]
    np.testing.assert_array_equal(R, [[0, -1, 0], [1, 0, 0], [0, 0, 1]])


def test_a_small_angle_is_left_alone(robot: Path) -> None:
    robot.write_text(ROBOT.replace("1.57079632679", "1.5702"))
    arm = load_arm(robot)
    assert arm.joints[0].origin[0, 0] == pytest.approx(np.cos(1.5702), rel=1e-12)
    assert not arm.notes


@pytest.mark.parametrize(
    ("word", "exact"),
    [
        ("1.57", np.pi / 2),
        ("-1.5708", -np.pi / 2),
        ("1.5707", np.pi / 2),  # cut off, not rounded
        ("3.1416", np.pi),
        ("15.708e-1", np.pi / 2),
        ("0.7854", np.pi / 4),
        ("0.2618", np.pi / 12),
        ("-3.6732e-06", 0.0),
        # What stands for itself: other digits, or too few of them.
        ("1.58", 1.58),
        ("0.79", 0.79),
        ("1.6", 1.6),
        ("0.0001", 0.0001),
        ("1.5709", 1.5709),
        ("1.57075", 1.57075),
        ("2", 2.0),
    ],
)
def test_an_angle_with_few_digits_is_the_exact_one(word: str, exact: float) -> None:
    assert exact_angle(word, float(word)) == pytest.approx(exact, abs=1e-15)


def test_rounded_angles_change_no_count_of_base_parameters(tmp_path: Path) -> None:
    arm = load_arm("ur5")
    save_arm(arm, tmp_path / "exact.urdf")
    text = (tmp_path / "exact.urdf").read_text()
    rounded = re.sub(
        r'rpy="([^"]*)"',
        lambda m: f'rpy="{" ".join(f"{float(v):.4f}" for v in m[1].split())}"',
        text,
    )
    (tmp_path / "rounded.urdf").write_text(rounded)
    same = load_arm(tmp_path / "rounded.urdf")
    count = base_parameters(load_arm(tmp_path / "exact.urdf")).count
    assert base_parameters(same).count == count
    assert any("few digits" in note for note in same.notes)
    # Written back into the file it came from, frames stay as they were typed.
    save_arm(same, tmp_path / "back.urdf", template=tmp_path / "rounded.urdf")
    typed = re.findall(r'rpy="[^"]*"', rounded)
    assert re.findall(r'rpy="[^"]*"', (tmp_path / "back.urdf").read_text()) == typed


@pytest.mark.parametrize("seed", range(12))
def test_poses_and_inertias_are_pinocchios(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    arm = random_arm(rng, int(rng.integers(1, 11)), anchored=seed % 2 == 0)
    path = tmp_path / "tree.urdf"
    save_arm(arm, path)
    model = pin.buildModelFromUrdf(str(path))
    data = model.createData()
    read = load_arm(path)
    for each in (arm, read):
        q = rng.uniform(-2, 2, arm.dof)
        theirs = np.zeros(model.nq)
        for i, joint in enumerate(arm.joints):
            theirs[model.joints[model.getJointId(joint.name)].idx_q] = q[i]
        pin.framesForwardKinematics(model, data, theirs)
        for link, T in zip(each.links, link_poses(each, q), strict=True):
            placed = data.oMf[model.getFrameId(link.name)].homogeneous
            np.testing.assert_allclose(T, placed, atol=1e-12)
    _compare_inertias(read, model)


def _compare_inertias(arm: object, model: pin.Model) -> None:
    for joint, link in zip(arm.joints, arm.links, strict=True):  # type: ignore[attr-defined]
        body = model.inertias[model.getJointId(joint.name)]
        place = model.frames[model.getFrameId(link.name)].placement
        inner = place.actInv(body)
        xx, xy, xz, yy, yz, zz = link.inertia.vector[4:]
        # Pinocchio: m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin.
        ours = [*link.inertia.vector[:4], xx, xy, yy, xz, yz, zz]
        np.testing.assert_allclose(inner.toDynamicParameters(), ours, atol=1e-11)


def chain(n: int) -> str:
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    links = "".join(f'<link name="l{i}">{body}</link>' for i in range(n))
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/>'
        f'<child link="l{i + 1}"/><axis xyz="0 0 1"/></joint>'
        for i in range(n - 1)
    )
    return f'<robot name="long">{links}{joints}</robot>'


def test_time_grows_with_links_and_not_with_their_square(tmp_path: Path) -> None:
    path = tmp_path / "long.urdf"
    took = []
    for n in (1_500, 7_500):
        path.write_text(chain(n))
        start = time.process_time()
        assert load_arm(path).dof == n - 1
        took.append(time.process_time() - start)
    # Five times, or twenty-five; whatever the machine.
    assert took[1] < 12.0 * took[0]


def test_other_encodings_are_read(tmp_path: Path) -> None:
    path = tmp_path / "latin.urdf"
    text = chain(2).replace('name="long"', 'name="größe"')
    for encoding in ("iso-8859-1", "utf-16", "utf-8"):
        head = f'<?xml version="1.0" encoding="{encoding}"?>'
        path.write_bytes((head + text).encode(encoding))
        assert load_arm(path).name == "größe"


def test_mimics_of_mimics_follow_the_first(tmp_path: Path) -> None:
    text = chain(4)
    for i, leader in ((0, 2), (2, 1)):
        child = f'<child link="l{i + 1}"/>'
        mimic = f'<mimic joint="j{leader}" multiplier="2" offset="1"/>'
        text = text.replace(child, child + mimic)
    path = tmp_path / "mimic.urdf"
    path.write_text(text)
    arm = load_arm(path)
    assert arm.coordinate_names == ("j1",)
    first, third = arm.joints[0].mimic, arm.joints[2].mimic
    assert first is not None
    assert third is not None
    assert (first.leader, first.multiplier, first.offset) == (1, 4.0, 3.0)
    assert (third.leader, third.multiplier, third.offset) == (1, 2.0, 1.0)
