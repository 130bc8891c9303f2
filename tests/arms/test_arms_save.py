"""What is written is what was there, for us, for Pinocchio and for MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import armwise as aw
from armwise.arms import (
    Arm,
    Drive,
    Frame,
    InertialParameters,
    Mimic,
    Shape,
    bundled_arms,
    load_arm,
    save_arm,
)
from armwise.arms.writers.link_inertia import divide_inertia
from armwise.errors import ArmError, FileError, NotPhysical

from .trees import link_poses, random_arm, random_body

NOT_WRITABLE = {"puma260", "puma260_full", "ddarm_identified"}
WRITABLE = sorted(set(bundled_arms()) - NOT_WRITABLE)


def require_same(ours: Arm, read: Arm) -> None:
    assert [x.name for x in read.joints] == [x.name for x in ours.joints]
    assert [x.name for x in read.links] == [x.name for x in ours.links]
    assert {x.name for x in read.frames} == {x.name for x in ours.frames}
    np.testing.assert_array_equal(read.gravity, ours.gravity)
    scale = 1 + np.abs(ours.parameters).max()
    np.testing.assert_allclose(read.parameters, ours.parameters, atol=1e-12 * scale)
    q = np.random.default_rng(0).uniform(-1, 1, ours.dof)
    for T, S in zip(link_poses(ours, q), link_poses(read, q), strict=True):
        np.testing.assert_allclose(S, T, atol=1e-12)


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
@pytest.mark.parametrize("name", WRITABLE)
def test_bundled_arms_come_back(name: str, suffix: str, tmp_path: Path) -> None:
    if (name, suffix) == ("ddarm", "xml"):
        pytest.skip("MuJoCo refuses the published inertia of link 1")
    arm, path = load_arm(name), tmp_path / f"{name}.{suffix}"
    assert save_arm(arm, path) == ()
    read = load_arm(path)
    require_same(arm, read)
    for ours, theirs in zip(arm.joints, read.joints, strict=True):
        assert theirs.limits.lower == ours.limits.lower
        assert theirs.limits.upper == ours.limits.upper
        assert theirs.limits.effort == ours.limits.effort
        if suffix == "urdf":
            assert theirs.limits == ours.limits


@pytest.mark.parametrize("name", ["panda", "ur10", "puma560", "hand_controller"])
def test_torques_come_back_to_a_billionth(name: str, tmp_path: Path) -> None:
    arm = load_arm(name)
    save_arm(arm, tmp_path / "arm.urdf")
    read = load_arm(tmp_path / "arm.urdf")
    q, qd, qdd = np.random.default_rng(1).uniform(-1, 1, (3, 20, arm.dof))
    ours = aw.Dynamics(arm, backend="numpy").inverse_dynamics(q, qd, qdd)
    theirs = aw.Dynamics(read, backend="numpy").inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(theirs, ours, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [x for x in WRITABLE if x != "ddarm"])
def test_mujoco_and_pinocchio_load_what_is_written(name: str, tmp_path: Path) -> None:
    arm, path = load_arm(name), tmp_path / "arm.urdf"
    save_arm(arm, path)
    assert mujoco.MjModel.from_xml_path(str(path)).nv == arm.dof
    model = pin.buildModelFromUrdf(str(path))
    assert model.nv == model.nq == arm.dof
    assert list(model.names)[1:] == [x.name for x in arm.joints]


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
@pytest.mark.parametrize("seed", range(6))
def test_random_trees_come_back(seed: int, suffix: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    arm = random_arm(rng, int(rng.integers(2, 9)), anchored=True)
    path = tmp_path / f"tree.{suffix}"
    save_arm(arm, path)
    read = load_arm(path)
    order = [read.link_index(link.name) for link in arm.links]
    if order == list(range(len(order))):
        require_same(arm, read)
    for link, i in zip(arm.links, order, strict=True):
        np.testing.assert_allclose(
            read.links[i].inertia.vector, link.inertia.vector, atol=1e-11
        )
        assert read.joints[i].drive == arm.joints[arm.link_index(link.name)].drive


def test_mimics_couplings_and_endless_joints_come_back(tmp_path: Path) -> None:
    arm = load_arm("tx40")
    follower = replace(arm.joints[3], mimic=Mimic(1, -2.0, 0.1))
    endless = replace(arm.joints[0], limits=aw.arms.Limits())
    sliding = replace(
        arm.joints[5],
        kind="prismatic",
        limits=aw.arms.Limits(),
        drive=Drive(offset=0.5),
    )
    joints = (endless, *arm.joints[1:3], follower, arm.joints[4], sliding)
    arm = replace(arm, joints=joints)
    arm = arm.with_coupling("belt", {"joint_5": 1.0, "joint_6": 0.3}, Drive(1, 2, 3, 4))
    save_arm(arm, tmp_path / "arm.urdf")
    read = load_arm(tmp_path / "arm.urdf")
    require_same(arm, read)
    assert read.joints[3].mimic == arm.joints[3].mimic
    assert [x.limits for x in read.joints] == [x.limits for x in arm.joints]
    np.testing.assert_array_equal(read.couplings[0].weights, arm.couplings[0].weights)
    save_arm(replace(arm, couplings=()), tmp_path / "arm.xml")
    assert load_arm(tmp_path / "arm.xml").joints[3].mimic == arm.joints[3].mimic


@pytest.mark.parametrize("suffix", ["urdf", "xml"])
def test_outlines_come_back(suffix: str, tmp_path: Path) -> None:
    T = random_arm(np.random.default_rng(2), 1).joints[0].origin
    solids = (
        Shape("sphere", (0.1,), T),
        Shape("cylinder", (0.1, 0.5), T),
        Shape("box", (0.1, 0.2, 0.3), T),
    )
    arm = load_arm("two_link_uno")
    links = (replace(arm.links[0], shapes=solids), arm.links[1])
    path = tmp_path / f"arm.{suffix}"
    save_arm(replace(arm, links=links, base_shapes=solids[:1]), path)
    read = load_arm(path)
    assert [x.kind for x in read.base_shapes] == ["sphere"]
    for ours, theirs in zip(solids, read.links[0].shapes, strict=True):
        assert theirs.kind == ours.kind
        assert theirs.size == pytest.approx(ours.size)
        np.testing.assert_allclose(theirs.pose, ours.pose, atol=1e-12)


def test_capsules_and_meshes_in_urdf(tmp_path: Path) -> None:
    arm, path = load_arm("two_link_uno"), tmp_path / "arm.urdf"
    shapes = (Shape("capsule", (0.1, 0.5), np.eye(4)),)
    mesh = (Shape("mesh", (1.0, 1.0, 2.0), np.eye(4), "package://a/b.stl"),)
    one, two = arm.links
    save_arm(
        replace(arm, links=(replace(one, shapes=shapes), replace(two, shapes=mesh))),
        path,
    )
    read = load_arm(path)
    assert [x.kind for x in read.links[0].shapes] == ["cylinder", "sphere", "sphere"]
    assert read.links[1].shapes[0].mesh == "package://a/b.stl"
    assert mujoco.MjModel.from_xml_path(str(path)).ngeom == 3


@pytest.mark.parametrize("name", sorted(NOT_WRITABLE))
def test_what_no_file_can_say_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    with pytest.raises(NotPhysical, match="link_"):
        save_arm(load_arm(name), path)
    assert list(tmp_path.iterdir()) == []


def test_impossible_bodies_need_a_word(tmp_path: Path) -> None:
    arm, path = load_arm("panda"), tmp_path / "arm.urdf"
    odd = InertialParameters.from_center_of_mass(-1.0, [0, 0, 0.1], np.eye(3) * 0.01)
    arm = replace(arm, links=(replace(arm.links[0], inertia=odd), *arm.links[1:]))
    with pytest.raises(NotPhysical, match=r"link_1.*negative.*allow_unphysical"):
        save_arm(arm, path)
    assert not path.exists()
    save_arm(arm, path, allow_unphysical=True)
    assert "link_1: no body has this inertia" in path.read_text()
    with pytest.raises(ArmError, match="negative mass"):
        load_arm(path)
    read = load_arm(path, allow_unphysical=True)
    np.testing.assert_allclose(read.links[0].inertia.vector, odd.vector, atol=1e-15)


def test_fixed_links_keep_as_much_inertia_as_they_can(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arm = next(a for a in (random_arm(rng, 3) for _ in range(50)) if a.frames)
    frame, path = arm.frames[0], tmp_path / "arm.urdf"
    save_arm(arm, path)
    kept = {x.name: x for x in load_arm(path).frames}[frame.name]
    np.testing.assert_allclose(kept.inertia.vector, frame.inertia.vector, atol=1e-13)
    light = InertialParameters(random_body(rng).vector * 1e-3)
    links = list(arm.links)
    links[frame.link] = replace(links[frame.link], inertia=light)
    (note,) = save_arm(replace(arm, links=tuple(links)), path)
    assert arm.links[frame.link].name in note
    read = load_arm(path)
    part = {x.name: x for x in read.frames}[frame.name].inertia
    fraction = part.mass / frame.inertia.mass
    assert 0.0 < fraction < 1.0
    np.testing.assert_allclose(part.vector, fraction * frame.inertia.vector, rtol=1e-9)
    own = light - part.transformed(frame.pose)
    assert own.is_physical(0.0)
    np.testing.assert_allclose(
        read.links[frame.link].inertia.vector, light.vector, atol=1e-15
    )


def test_a_thin_link_stays_a_body_beside_what_is_fixed_to_it() -> None:
    # On the brim of what can exist, as a constrained fit may leave a link: what is
    # fixed to it may take no more than its thickness, whatever rounding would forgive.
    thin = InertialParameters.from_center_of_mass(
        3.0, (0.1, 0.0, 0.2), np.diag([0.0054, 0.0677, 0.0731 - 3e-9])
    )
    small = InertialParameters.from_center_of_mass(1e-4, (0, 0, 0), 1e-8 * np.eye(3))
    pose = np.eye(4)
    pose[:3, 3] = 0.0, 0.0, 0.3
    division = divide_inertia(thin, [Frame("visual", 0, pose, inertia=small)])
    assert 0.0 < division.fraction < 1.0
    assert np.linalg.eigvalsh(division.own.pseudo_inertia)[0] > 0.0


def test_what_is_written_touches_others_but_not_itself(tmp_path: Path) -> None:
    """Shapes of neighbours overlap in many descriptions, the base's with the first."""
    arm, ball = load_arm("two_link_uno"), (Shape("sphere", (0.2,), np.eye(4)),)
    links = tuple(replace(link, shapes=ball) for link in arm.links)
    path = tmp_path / "arm.xml"
    save_arm(replace(arm, links=links, base_shapes=ball), path)
    text = path.read_text()
    plane = '<geom type="plane" size="1 1 1"/>'
    for around, touches in (
        (text, 0),
        (text.replace("<worldbody>", f"<worldbody>{plane}"), 1),
    ):
        model = mujoco.MjModel.from_xml_string(around)
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        assert (data.ncon > 0) == bool(touches)


def test_mujoco_takes_rods_points_and_nothing_fixed_to_the_base(tmp_path: Path) -> None:
    arm = load_arm("two_link_uno")
    rod = InertialParameters.from_center_of_mass(1.0, (0, 0, 0), np.diag([0, 0.1, 0.1]))
    point = InertialParameters.from_center_of_mass(0.1, (0, 0, 0.1), np.zeros((3, 3)))
    frames = (Frame("rod", -1, np.eye(4), rod), Frame("point", -1, np.eye(4), point))
    dot = Shape("cylinder", (0.0, 0.0), np.eye(4))
    arm = replace(arm, frames=(*arm.frames, *frames), base_shapes=(dot,))
    save_arm(arm, tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    assert model.nv == 2


def test_names_are_escaped_and_files_are_whole(tmp_path: Path) -> None:
    arm = load_arm("two_link_uno")
    odd = "<\"&'é"
    arm = replace(arm, name=odd, links=(replace(arm.links[0], name=odd), arm.links[1]))
    for suffix in ("urdf", "xml"):
        path = tmp_path / f"a.{suffix}"
        path.write_text("old")
        save_arm(arm, path)
        assert load_arm(path).links[0].name == odd
    with pytest.raises(FileError, match="cannot be written"):
        save_arm(arm, tmp_path / "nowhere" / "a.urdf")
    assert sorted(x.name for x in tmp_path.iterdir()) == ["a.urdf", "a.xml"]
