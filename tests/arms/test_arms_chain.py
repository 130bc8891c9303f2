"""Locked joints and chains, against Pinocchio's reduced models and MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import armwise as aw
from armwise.arms import Drive, Mimic, load_arm, save_arm, with_locked_joints
from armwise.errors import ArgumentError, ArmError

from .trees import random_arm


def without_drives(arm: aw.Arm) -> aw.Arm:
    """Pinocchio's inverse dynamics has neither friction nor rotors from a URDF."""
    joints = tuple(replace(joint, drive=Drive()) for joint in arm.joints)
    return replace(arm, joints=joints)


@pytest.mark.parametrize("seed", range(6))
def test_locked_arm_is_pinocchios_reduced_model(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    arm = without_drives(random_arm(rng, 6))
    path = tmp_path / "tree.urdf"
    save_arm(arm, path)
    lock = {arm.joints[i].name: rng.uniform(-1, 1) for i in rng.permutation(6)[:3]}
    part = load_arm(path, lock=lock)
    whole = pin.buildModelFromUrdf(str(path))
    held = pin.neutral(whole)
    for name, position in lock.items():
        held[whole.joints[whole.getJointId(name)].idx_q] = position
    numbers = [whole.getJointId(name) for name in lock]
    model = pin.buildReducedModel(whole, numbers, held)
    order = [model.joints[model.getJointId(n)].idx_v for n in part.coordinate_names]
    q, qd, qdd = rng.normal(size=(3, part.dof))
    theirs = pin.rnea(
        model, model.createData(), *(_put(x, order) for x in (q, qd, qdd))
    )
    ours = aw.Dynamics(part, backend="numpy").inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(ours, theirs[order], rtol=1e-9, atol=1e-9)
    assert part.locked == pytest.approx(lock)


def _put(values: np.ndarray, order: list[int]) -> np.ndarray:
    out = np.empty_like(values)
    out[order] = values
    return out


@pytest.mark.parametrize("kind", ["urdf", "xml"])
def test_numbers_go_back_into_the_whole_file(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    arm = random_arm(rng, 6)
    path, out = tmp_path / f"arm.{kind}", tmp_path / f"new.{kind}"
    save_arm(arm, path)
    lock = {"j1": 0.3, "j4": -0.2}
    part = load_arm(path, lock=lock)
    heavier = part.parameters.copy()
    heavier[part.layout.links] *= 1.1
    new = part.with_parameters(heavier)
    save_arm(new, out, template=path)
    again = load_arm(out, lock=lock)
    np.testing.assert_allclose(again.parameters, heavier, rtol=1e-9, atol=1e-12)
    # The locked links keep what they had: only those of the part are changed.
    whole, before = load_arm(out), load_arm(path)
    assert whole.coordinate_names == before.coordinate_names
    for name in ("j1", "j4"):
        i = whole.coordinate_index(name)
        assert whole.joints[i].drive == before.joints[i].drive


def test_chain_keeps_what_lies_between_and_what_follows_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arm = random_arm(rng, 6)
    parents = (-1, 0, 1, 2, 2, 0)
    joints = [replace(j, parent=p) for j, p in zip(arm.joints, parents, strict=True)]
    # j4, off the chain, follows j3, on it: it still moves.
    joints[4] = replace(joints[4], mimic=Mimic(3, 0.5, 0.1))
    path = tmp_path / "arm.urdf"
    save_arm(replace(arm, joints=tuple(joints)), path)
    part = load_arm(path, chain=("l0", "l3"))
    assert [joint.name for joint in part.joints] == ["j1", "j2", "j3", "j4"]
    assert part.locked == {"j0": 0.0, "j5": 0.0}
    assert load_arm(path, chain=("base", "l1"), lock={"j2": 0.7}).locked["j2"] == 0.7


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"lock": {"zz": 0.0}}, "no joint 'zz'"),
        ({"lock": {"joint_1": np.nan}}, "cannot be locked at nan"),
        ({"lock": {"joint_1": 4.0}}, "locked at 4, its range is -2.8973 to 2.8973 rad"),
        ({"lock": {f"joint_{i + 1}": 0.0 for i in range(7)}}, "every joint"),
        ({"chain": ("link_3", "link_1")}, "not carried by 'link_3'"),
        ({"chain": ("link_3", "link_3")}, "no joint moves"),
        ({"chain": ("link_3", "nose")}, "no link or frame 'nose'"),
    ],
)
def test_what_cannot_be_locked_is_refused(choice: dict, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        load_arm("panda", **choice)


def test_a_follower_cannot_be_locked_by_itself() -> None:
    arm = random_arm(np.random.default_rng(1), 3)
    follower = replace(arm.joints[2], mimic=Mimic(0, 2.0, 0.1))
    arm = replace(arm, joints=(*arm.joints[:2], follower))
    with pytest.raises(ArgumentError, match="follows 'j0'"):
        with_locked_joints(arm, {"j2": 0.0})
    assert len(with_locked_joints(arm, {"j0": 0.3}).joints) == 1


# Free, ball and bound joints of MJCF.

SCENE = """<mujoco>
  <worldbody>
    <body name="target" mocap="true"/>
    <body name="cube" pos="1 0 0"><freejoint name="drop"/><geom size="0.1"/></body>
    <body name="trunk" pos="0 0 1"><freejoint name="root"/><geom size="0.2"/>
      <body name="upper" pos="0.1 0 0"><joint name="a" axis="0 1 0"/>
        <geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0"/>
        <body name="fore" pos="0.4 0 0"><joint name="b" axis="0 1 0" ref="0.2"/>
          <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0"/>
          <body name="left" pos="0.3 0.1 0"><joint name="l" axis="0 0 1"/>
            <geom size="0.03"/></body>
          <body name="right" pos="0.3 -0.1 0"><joint name="r" axis="0 0 1"/>
            <geom size="0.03"/></body>
          <body name="tail" pos="0.1 0 0"><joint name="t" type="ball"/>
            <geom size="0.03" pos="0.1 0 0"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <tendon><fixed name="split"><joint joint="l" coef="1"/>
    <joint joint="r" coef="-0.5"/></fixed></tendon>
  <equality>
    <weld body1="target" body2="fore"/>
    {equality}
  </equality>
</mujoco>"""


def scene(tmp_path: Path, equality: str) -> aw.Arm:
    path = tmp_path / "scene.xml"
    path.write_text(SCENE.replace("{equality}", equality))
    return load_arm(path)


def test_free_and_ball_joints_are_held_and_named(tmp_path: Path) -> None:
    arm = scene(tmp_path, '<tendon tendon1="split"/>')
    assert arm.coordinate_names == ("a", "b", "l")
    # l − r / 2 keeps its length: r = 2 l.
    assert arm.joints[3].mimic == Mimic(2, 2.0, 0.0)
    (note,) = arm.notes
    assert "drop, root, t (free or ball)" in note
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "scene.xml"))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(
        aw.Dynamics(arm, backend="numpy").link_pose([0.0, 0.2, 0.0], "fore")[:3, 3],
        data.body("fore").xpos,
        atol=1e-12,
    )
    moved = sum(arm.links[i].inertia.mass for i in range(4))
    names = ("upper", "fore", "left", "right", "tail")
    assert moved == pytest.approx(sum(model.body(n).mass[0] for n in names))


@pytest.mark.parametrize(
    "equality",
    [
        '<connect body1="left" body2="right" anchor="0 0 0"/>',
        '<joint joint1="l" joint2="r" polycoef="0 1 2 0 0"/>',
    ],
)
def test_joints_that_constraints_bind_are_held(equality: str, tmp_path: Path) -> None:
    arm = scene(tmp_path, equality)
    assert arm.coordinate_names == ("a", "b")
    assert arm.locked == {"l": 0.0, "r": 0.0}
    assert "held where described" in arm.notes[1]


def test_a_linkage_alone_is_refused(tmp_path: Path) -> None:
    bound = '<connect body1="left" anchor="0 0 0"/><joint joint1="r"/>'
    with pytest.raises(ArmError, match="bind every joint"):
        scene(tmp_path, bound)


# URDF's base joints, and inertias that rounding spoilt.

ROBOT = """<robot name="r"><link name="world"/><link name="base"/>
<joint name="float" type="{kind}"><parent link="world"/><child link="base"/></joint>
<joint name="turn" type="continuous"><parent link="base"/><child link="arm"/>
<axis xyz="0 1 0"/></joint>
<link name="arm"><inertial><mass value="1"/><inertia ixx="{moving}" iyy="1"
 izz="1"/></inertial></link>
<joint name="f" type="fixed"><parent link="arm"/><child link="antenna"/></joint>
<link name="antenna"><inertial><mass value="0.01"/><inertia ixx="{fixed}" iyy="1e-6"
 izz="2e-6"/></inertial></link></robot>"""


def robot(tmp_path: Path, kind: str, moving: str, fixed: str) -> aw.Arm:
    path = tmp_path / "r.urdf"
    path.write_text(ROBOT.format(kind=kind, moving=moving, fixed=fixed))
    return load_arm(path)


@pytest.mark.parametrize("kind", ["floating", "planar"])
def test_a_base_that_floats_is_fixed_with_a_note(kind: str, tmp_path: Path) -> None:
    arm = robot(tmp_path, kind, "1", "1e-6")
    assert arm.coordinate_names == ("turn",)
    assert arm.notes == (
        f"float ({kind}) is taken as fixed where it is described: an arm's joints turn "
        "or slide.",
    )


def test_a_fixed_links_negligible_deficit_is_repaired(tmp_path: Path) -> None:
    arm = robot(tmp_path, "fixed", "1", "-3.5e-8")
    assert "antenna" in arm.notes[0]
    antenna = next(frame for frame in arm.frames if frame.name == "antenna")
    assert antenna.inertia.is_physical()
    assert robot(tmp_path, "fixed", "-1e-17", "1e-6").notes == ()
    for moving, fixed in (("1", "-2e-7"), ("-1e-8", "1e-6")):
        with pytest.raises(ArmError, match="principal moment is negative"):
            robot(tmp_path, "fixed", moving, fixed)


# SDF, against a URDF of the same arm.


def test_sdf_is_the_same_arm_as_its_urdf(tmp_path: Path) -> None:
    text = """<sdf version="1.7"><model name="m">
    <link name="base"><pose>0 0 0.5 0 0 0.4</pose></link>
    <link name="one"><pose>0.1 0 0.9 0.2 -0.3 0.1</pose><inertial>
      <pose>0.05 0 0.1 0.3 0 0</pose><mass>2</mass>
      <inertia><ixx>0.02</ixx><iyy>0.03</iyy><izz>0.04</izz><ixy>0.001</ixy></inertia>
      </inertial></link>
    <link name="two"><pose relative_to="one">0.3 0 0 0 0 0</pose><inertial>
      <mass>1</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy><izz>0.01</izz></inertia>
      </inertial></link>
    <link name="tool"><pose relative_to="two">0 0.1 0 0 0 0</pose><inertial>
      <mass>0.2</mass><inertia><ixx>1e-3</ixx><iyy>1e-3</iyy><izz>1e-3</izz></inertia>
      </inertial></link>
    <joint name="a" type="revolute"><parent>base</parent><child>one</child>
      <pose>0 0 -0.1 0 0 0</pose><axis><xyz>0 1 0</xyz>
      <limit><lower>-1</lower><upper>2</upper><effort>1e16</effort></limit>
      <dynamics><damping>0.3</damping><friction>0.2</friction></dynamics></axis></joint>
    <joint name="b" type="prismatic"><parent>one</parent><child>two</child>
      <axis><xyz expressed_in="base">1 0 0</xyz></axis></joint>
    <joint name="c" type="fixed"><parent>two</parent><child>tool</child></joint>
    </model></sdf>"""
    path = tmp_path / "m.sdf"
    path.write_text(text)
    arm = load_arm(path)
    assert arm.coordinate_names == ("a", "b")
    assert arm.joints[0].drive == Drive(viscous=0.3, coulomb=0.2)
    limits = arm.joints[0].limits
    assert (limits.lower, limits.upper, limits.effort) == (-1.0, 2.0, np.inf)
    assert [frame.name for frame in arm.frames] == ["base", "tool"]
    assert arm.links[1].inertia.mass == pytest.approx(1.2)
    dyn = aw.Dynamics(arm, backend="numpy")
    # The axis of a passes 0.1 below link one, along its own y axis.
    R = pin.rpy.rpyToMatrix(0.2, -0.3, 0.1)
    on_axis = np.array([0.1, 0, 0.9]) + R @ [0, 0, -0.1]
    T0, T1 = (dyn.link_pose([angle, 0.0], "one") for angle in (0.0, 0.7))
    np.testing.assert_allclose(T0[:3, 3], [0.1, 0, 0.9], atol=1e-12)
    np.testing.assert_allclose(
        T1[:3, :3] @ [0, 0, -0.1] + T1[:3, 3], on_axis, atol=1e-12
    )
    slid = dyn.link_pose([0.0, 0.5], "tool")[:3, 3]
    still = dyn.link_pose([0.0, 0.0], "tool")[:3, 3]
    np.testing.assert_allclose(
        slid - still, 0.5 * pin.rpy.rpyToMatrix(0, 0, 0.4)[:, 0], atol=1e-12
    )
    urdf = tmp_path / "m.urdf"
    save_arm(arm, urdf)
    model = pin.buildModelFromUrdf(str(urdf))
    q, qd, qdd = np.random.default_rng(0).normal(size=(3, 2))
    theirs = pin.rnea(model, model.createData(), q, qd, qdd)
    theirs[0] += 0.3 * qd[0] + 0.2 * np.sign(qd[0])
    np.testing.assert_allclose(dyn.inverse_dynamics(q, qd, qdd), theirs, atol=1e-9)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<sdf><model name='m'/></sdf>", "no model with a joint"),
        (
            "<sdf><model name='m'><link name='a'/><link name='b'/>"
            "<joint name='j' type='revolute'><parent>a</parent><child>zz</child>"
            "</joint></model></sdf>",
            "no <link>",
        ),
        (
            "<sdf><model name='m'><link name='a'/><link name='b'/>"
            "<joint name='j' type='revolute'><parent>a</parent><child>b</child></joint>"
            "<joint name='k' type='revolute'><parent>a</parent><child>b</child></joint>"
            "</model></sdf>",
            "a loop",
        ),
        (
            "<sdf><model name='m'><link name='a'><pose relative_to='b'>0 0 0 0 0 0"
            "</pose></link><link name='b'><pose relative_to='a'>0 0 0 0 0 0</pose>"
            "</link><joint name='j' type='revolute'><parent>a</parent><child>b</child>"
            "<axis/></joint></model></sdf>",
            "circle",
        ),
    ],
)
def test_bad_sdf_is_refused(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.sdf"
    path.write_text(text)
    with pytest.raises(ArmError, match=says):
        load_arm(path)


def test_xacro_needs_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys
    from types import SimpleNamespace

    path = tmp_path / "arm.urdf.xacro"
    path.write_text("<robot/>")
    monkeypatch.setitem(sys.modules, "xacro", None)
    with pytest.raises(ArmError, match="pip install xacro"):
        load_arm(path)
    text = ROBOT.format(kind="fixed", moving="1", fixed="1e-6")
    expanded = SimpleNamespace(toxml=lambda: text)
    stub = SimpleNamespace(process_file=lambda name: expanded)
    monkeypatch.setitem(sys.modules, "xacro", stub)
    assert load_arm(path).coordinate_names == ("turn",)


def test_a_log_of_fewer_numbered_joints_is_the_chain_before_the_hand() -> None:
    arm = random_arm(np.random.default_rng(2), 5)
    serial = [replace(j, parent=k - 1) for k, j in enumerate(arm.joints)]
    arm = replace(arm, joints=tuple(serial))
    assert arm.joints_beyond(3) == ("j3", "j4")
    assert arm.joints_beyond(5) == arm.joints_beyond(0) == ()
    # Two fingers on the third link are still beyond it; a second arm is not.
    hand = (*serial[:4], replace(serial[4], parent=2))
    assert replace(arm, joints=hand).joints_beyond(3) == ("j3", "j4")
    other = (*serial[:4], replace(serial[4], parent=-1))
    assert replace(arm, joints=other).joints_beyond(3) == ()


def test_an_arm_is_shown_in_one_line() -> None:
    assert repr(load_arm("panda")).count("\n") == 0
    assert len(repr(load_arm("panda"))) < 140
    assert "1 locked" in repr(load_arm("panda", lock={"joint_7": 0.0}))


def test_mjcf_goes_back_as_mjcf(tmp_path: Path) -> None:
    from armwise.cli.identify import _write_mjcf

    path = tmp_path / "arm.xml"
    path.write_text(SCENE.replace("{equality}", '<tendon tendon1="split"/>'))
    arm = load_arm(path)
    heavier = arm.parameters.copy()
    heavier[arm.layout.links] *= 1.2
    out = tmp_path / "out"
    out.mkdir()
    written = _write_mjcf(arm.with_parameters(heavier), str(path), out)
    assert "mocap" in written.read_text()
    again = load_arm(written)
    np.testing.assert_allclose(again.parameters, heavier, rtol=1e-9, atol=1e-12)
    mujoco.MjModel.from_xml_path(str(written))
