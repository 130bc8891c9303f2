"""What is read from MJCF, against MuJoCo."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import mujoco
import numpy as np
import pytest

import armwise as aw
from armwise.arms import Drive, Mimic, load_arm
from armwise.arms.poses import exact_rotation, rotation_about, rotation_from_rpy
from armwise.dynamics import base_parameters
from armwise.errors import ArmError, MissingExtra

from .trees import link_poses

MODEL = """<mujoco model="machine">
  <compiler angle="radian"/>
  <option gravity="0 1 -9"/>
  <worldbody>
    <body name="stand" pos="0 0 0.5" quat="1 1 0 0">
      <geom type="sphere" size="0.1"/>
      <body name="upper" pos="0.1 0 0">
        <joint name="lift" type="slide" axis="0 1 0" damping="3"/>
        <joint name="turn" axis="0 1 1" pos="0.1 0.2 0.3" ref="0.4" range="-1 2"
               armature="0.5" frictionloss="0.7" actuatorfrcrange="-9 9"/>
        <geom type="capsule" size="0.1 0.4" density="100"/>
        <body name="wrist" pos="0 0 1" euler="0.3 0.2 0.1">
          <joint name="roll" axis="1 0 0"/>
          <geom type="box" size="0.1 0.2 0.3" density="200"/>
          <body name="tool" pos="0.1 0 0">
            <geom type="cylinder" size="0.1 0.2" density="300"/>
            <site name="tip" pos="0 0 0.2"/>
          </body>
        </body>
        <body name="finger" pos="0 0 0.5">
          <joint name="grip" axis="0 0 1" ref="0.1"/>
          <geom type="sphere" size="0.1" density="150"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><joint joint1="grip" joint2="roll" polycoef="0.2 -3 0 0 0"/></equality>
</mujoco>
"""


def read(tmp_path: Path, text: str = MODEL) -> aw.Arm:
    path = tmp_path / "machine.xml"
    path.write_text(text)
    return load_arm(path)


def test_structure(tmp_path: Path) -> None:
    arm = read(tmp_path)
    assert arm.name == "machine"
    assert [x.name for x in arm.joints] == ["lift", "turn", "roll", "grip"]
    assert [x.name for x in arm.links] == ["upper_lift", "upper", "wrist", "finger"]
    assert arm.coordinate_names == ("lift", "turn", "roll")
    assert {x.name for x in arm.frames} == {"stand", "tool", "tip"}
    np.testing.assert_array_equal(arm.gravity, [0, 1, -9])
    turn = arm.joints[1]
    assert turn.drive == Drive(rotor_inertia=0.5, coulomb=0.7)
    assert (turn.limits.lower, turn.limits.upper, turn.limits.effort) == (-1, 2, 9)
    assert arm.joints[3].mimic == Mimic(2, -3.0, pytest.approx(0.3))
    assert [x.kind for x in arm.links[2].shapes] == ["box", "cylinder"]
    assert arm.links[1].shapes[0].size == pytest.approx((0.1, 0.8))


def test_poses_and_torques_are_mujocos(tmp_path: Path) -> None:
    arm = read(tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "machine.xml"))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(0)
    dyn = aw.Dynamics(arm, backend="numpy")
    C = arm.coupling_matrix
    offset = np.array([0 if x.mimic is None else x.mimic.offset for x in arm.joints])
    for _ in range(5):
        q, qd, qdd = rng.uniform(-1, 1, (3, arm.dof))
        data.qpos[:], data.qvel[:], data.qacc[:] = C @ q + offset, C @ qd, C @ qdd
        mujoco.mj_inverse(model, data)
        for link, T in zip(arm.links[1:], link_poses(arm, q)[1:], strict=True):
            body = data.body(link.name)
            np.testing.assert_allclose(T[:3, 3], body.xpos, atol=1e-12)
            np.testing.assert_allclose(T[:3, :3].ravel(), body.xmat, atol=1e-12)
        M = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, M)
        full = M @ data.qacc + data.qfrc_bias - data.qfrc_passive
        full[1] += 0.7 * np.sign(qd[1])  # MuJoCo keeps dry friction among constraints
        ours = dyn.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(ours, C.T @ full, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('<joint name="roll" axis="1 0 0"/>', "<freejoint/>", "MuJoCo refuses"),
        ('axis="0 0 1" ref', 'axis="0 0 0" ref', "MuJoCo refuses"),
        ("<mujoco", "<!DOCTYPE x><mujoco", "DOCTYPE"),
    ],
)
def test_bad_models(old: str, new: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ArmError) as error:
        read(tmp_path, MODEL.replace(old, new))
    assert says in str(error.value)
    assert "machine.xml" in str(error.value)


def test_nothing_that_moves(tmp_path: Path) -> None:
    with pytest.raises(ArmError, match="no joint that moves"):
        read(tmp_path, "<mujoco><worldbody><body/></worldbody></mujoco>")


def test_missing_mujoco_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtra, match=r"armwise\[sim\]"):
        read(tmp_path)


@pytest.mark.parametrize(
    "bomb",
    [
        '<worldbody><replicate count="10000000"><body/></replicate></worldbody>',
        '<worldbody><replicate count="1000"><replicate count="1000"><geom size="1"/>'
        "</replicate></replicate></worldbody>",
        '<worldbody><flexcomp name="a" count="500 500 500"/></worldbody>',
        '<asset><hfield name="a" nrow="100000" ncol="100000" size="1 1 1 1"/></asset>',
        '<asset><texture name="a" type="2d" builtin="flat" width="90000" '
        'height="90000"/></asset>',
        '<asset><mesh name="a" file="/dev/zero"/></asset>',
        '<asset><mesh name="a" file="../../../../../../../../etc/passwd"/></asset>',
        '<include file="/etc/passwd"/>',
    ],
)
def test_small_files_that_mean_huge_models_are_refused(tmp_path, bomb):
    path = tmp_path / "bomb.xml"
    path.write_text(f"<mujoco>{bomb}</mujoco>")
    with pytest.raises(ArmError, match=r"bomb\.xml") as caught:
        load_arm(path)
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize(
    "attribute", ['damping="nan"', 'damping="1e308"', 'damping="-1"', 'armature="inf"']
)
def test_numbers_that_no_joint_has_are_refused(tmp_path, monkeypatch, attribute):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "joint.xml"
    path.write_text(
        "<mujoco><worldbody><body><inertial mass='1' pos='0 0 0' diaginertia='1 1 1'/>"
        f"<joint name='a' {attribute}/></body></worldbody></mujoco>"
    )
    with pytest.raises(ArmError, match=r"joint\.xml"):
        load_arm(path)
    assert [p.name for p in tmp_path.iterdir()] == ["joint.xml"]  # no MUJOCO_LOG.TXT


def test_a_joint_that_drives_itself_is_named(tmp_path):
    path = tmp_path / "joint.xml"
    body = "<inertial mass='1' pos='0 0 0' diaginertia='1 1 1'/>"
    path.write_text(
        f"<mujoco><worldbody><body>{body}<joint name='a' damping='1'/><body>{body}"
        "<joint name='b' damping='-0.0132'/></body></body></worldbody></mujoco>"
    )
    said = '"b" has the negative damping -0.0132; friction only brakes. Make it 0'
    with pytest.raises(ArmError, match=said):
        load_arm(path)


def test_springs_of_joints_are_noted(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(
        '<mujoco><worldbody><body name="a"><joint name="hinge" axis="0 1 0" '
        'stiffness="0.5"/><geom size="0.1" mass="1"/></body></worldbody></mujoco>'
    )
    assert any("Springs" in note and "hinge" in note for note in load_arm(path).notes)


def test_motors_bound_the_effort_of_their_joint(tmp_path: Path) -> None:
    motors = """<actuator>
    <motor joint="lift" gear="3" ctrlrange="-20 20"/>
    <motor joint="lift" forcerange="-5 5"/>
    <motor joint="turn" ctrlrange="-50 50"/>
    <position joint="roll" kp="10" ctrlrange="-1 1"/>
  </actuator></mujoco>"""
    arm = read(tmp_path, MODEL.replace("</mujoco>", motors))
    assert [joint.limits.effort for joint in arm.joints[:3]] == [65.0, 9.0, np.inf]


def test_rounded_quaternions_change_no_count_of_base_parameters(tmp_path: Path) -> None:
    aw.save_arm(load_arm("ur5"), tmp_path / "exact.xml")
    text = (tmp_path / "exact.xml").read_text()
    # As MuJoCo writes what it read from a URDF of 1.5708.
    tilted = re.sub(
        r'(<body[^>]*quat=")([^"]*)"',
        lambda m: f'{m[1]}{" ".join(f"{float(v) + 2e-6:.6f}" for v in m[2].split())}"',
        text,
    )
    assert tilted != text
    (tmp_path / "tilted.xml").write_text(tilted)
    exact, same = (load_arm(tmp_path / f"{name}.xml") for name in ("exact", "tilted"))
    assert base_parameters(same).count == base_parameters(exact).count
    assert any("few digits" in note for note in same.notes)
    assert not any("few digits" in note for note in exact.notes)


@pytest.mark.parametrize("fine", [0, 1, 5, 9])
@pytest.mark.parametrize("roll", range(4))
@pytest.mark.parametrize("yaw", range(4))
def test_axes_that_are_nearly_axes_are_axes(yaw: int, roll: int, fine: int) -> None:
    R = rotation_from_rpy((np.pi / 2 * roll, 0, np.pi / 2 * yaw))
    R = R @ rotation_about((0, 1, 0), np.pi / 12 * fine)
    for axis in np.eye(3):
        nearly = exact_rotation(R @ rotation_about(axis, 7e-6))
        np.testing.assert_allclose(nearly, R, atol=1e-15)
        tilted = R @ rotation_about(axis, 7e-5)
        np.testing.assert_allclose(exact_rotation(tilted), tilted, atol=1e-15)
