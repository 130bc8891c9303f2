"""Numbers go back into the user's own file, and nothing else of it changes."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pinocchio as pin
import pytest

from armwise.arms import Arm, Drive, InertialParameters, load_arm, save_arm
from armwise.errors import ArmError, NotPhysical

from .trees import random_body

DATA = Path(os.environ.get("ARMWISE_DATA", Path(__file__).parents[3] / "shared/data"))

URDF = """<?xml version='1.0' encoding='utf-8'?>
<!-- été: by hand, do not touch -->
<robot name='mine'   xmlns:xacro="x">
\t<link name="base"/>
  <link   name = 'upper' >
    <!-- <mass value="99"/> an old one -->
    <visual><geometry><box size="1 2 3"/></geometry></visual>
    <inertial>
      <mass   value = '2.0'
      />
      <origin rpy="0 0 0.5" xyz="0.1 0 0"/>
      <inertia ixx="0.1" ixy="0" ixz="0"
               iyy="0.2" iyz="0" izz="0.2"/>   <!-- measured -->
    </inertial>
  </link>
  <joint name="one" type="revolute">
    <parent link="base"/><child link="upper"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="5" velocity="2"/>
    <dynamics friction="0.5"/>
  </joint>
  <link name="lower"/>
  <joint name="two" type="revolute"><parent link="upper"/><child link="lower"/>
    <origin xyz="0.3 0 0"/><axis xyz="0 1 0"/><limit effort="5" velocity="2"/></joint>
  <joint name="bolt" type="fixed"><parent link="lower"/><child link="tool"/></joint>
  <link name="tool"><inertial><mass value="1"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
  </link>
  <transmission name="t"><joint name="one"/></transmission>
</robot>
<!-- the end -->
"""

MJCF = """<mujoco model="mine">
  <!-- hands off -->
  <compiler angle="degree"/>
  <default><joint damping="0.1"/></default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body name="upper" pos="0 0 1">
      <inertial mass="2" pos="0.1 0 0" quat="1 0 0 1" diaginertia="0.1 0.2 0.2"/>
      <joint name="one" axis="0 0 1" range="-90 90" pos="0 0.1 0" ref="20"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0" euler="0 90 0">
        <joint name="two" type="slide" axis="1 0 0" armature="0.2"/>
        <geom name="g" type="box" size="0.1 0.1 0.1" mass="1"/>
        <body name="tool" pos="0 0 0.2">
          <inertial mass="0.5" pos="0 0 0" diaginertia="0.01 0.01 0.01"/>
        </body>
        <site name="tip" pos="0 0 0.3"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="one"/></actuator>
</mujoco>
"""


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "mine.urdf"
    path.write_bytes(URDF.encode())
    return path


@pytest.fixture
def mjcf(tmp_path: Path) -> Path:
    path = tmp_path / "mine.xml"
    path.write_text(MJCF)
    return path


def with_link(arm: Arm, i: int, inertia: InertialParameters) -> Arm:
    links = list(arm.links)
    links[i] = replace(links[i], inertia=inertia)
    return replace(arm, links=tuple(links))


def with_drive(arm: Arm, i: int, drive: Drive) -> Arm:
    joints = list(arm.joints)
    joints[i] = replace(joints[i], drive=drive)
    return replace(arm, joints=tuple(joints))


def identified(arm: Arm, seed: int = 0) -> Arm:
    """The same arm with other, possible, numbers everywhere."""
    rng = np.random.default_rng(seed)
    for i in range(len(arm.links)):
        arm = with_link(arm, i, arm.links[i].inertia + random_body(rng))
        arm = with_drive(arm, i, Drive(*rng.uniform(0.1, 1, 4)))
    return arm


def require_equal(read: Arm, arm: Arm) -> None:
    np.testing.assert_allclose(read.parameters, arm.parameters, rtol=1e-12, atol=1e-12)


NUMBERS = re.compile(
    rb"""(value|xyz|ixx|ixy|ixz|iyy|iyz|izz|damping|friction)(\s*=\s*)("[^"]*"|'[^']*')"""
)


def without_numbers(data: bytes) -> bytes:
    return NUMBERS.sub(rb"\1\2#", data)


def test_an_unchanged_arm_leaves_every_byte(urdf: Path, mjcf: Path) -> None:
    for path in (urdf, mjcf):
        out = path.with_name("out")
        assert save_arm(load_arm(path), out, template=path) == ()
        assert out.read_bytes() == path.read_bytes()


def test_numbers_change_and_nothing_else(urdf: Path, tmp_path: Path) -> None:
    arm = load_arm(urdf)
    new = with_link(arm, 0, random_body(np.random.default_rng(0)))
    out = tmp_path / "out.urdf"
    save_arm(new, out, template=urdf)
    assert without_numbers(out.read_bytes()) == without_numbers(urdf.read_bytes())
    assert out.read_bytes() != urdf.read_bytes()
    require_equal(load_arm(out), new)
    assert b'<mass value="99"/> an old one' in out.read_bytes()


def test_numbers_that_stay_keep_their_spelling(urdf: Path, tmp_path: Path) -> None:
    arm, out = load_arm(urdf), tmp_path / "out.urdf"
    old = arm.links[0].inertia
    new = InertialParameters.from_center_of_mass(
        old.mass, old.center_of_mass, 2 * old.central_inertia
    )
    save_arm(with_link(arm, 0, new), out, template=urdf)
    before, after = URDF.splitlines(), out.read_text().splitlines()
    changed = [x for x, y in zip(before, after, strict=True) if x != y]
    assert all("ixx" in x or "iyy" in x for x in changed)
    assert changed


def test_everything_identified_comes_back(urdf: Path, tmp_path: Path) -> None:
    new, out = identified(load_arm(urdf)), tmp_path / "out.urdf"
    assert save_arm(new, out, template=urdf) == ()
    require_equal(load_arm(out), new)
    text = out.read_text()
    for kept in ("<!-- measured -->", "<!-- the end -->", "<transmission", "été"):
        assert kept in text
    model = pin.buildModelFromUrdf(str(out))
    assert model.friction.tolist() == pytest.approx(
        [x.drive.coulomb for x in new.joints]
    )
    assert mujoco.MjModel.from_xml_path(str(out)).nv == 2


def test_a_template_may_be_overwritten(urdf: Path) -> None:
    new = identified(load_arm(urdf))
    save_arm(new, urdf, template=urdf)
    require_equal(load_arm(urdf), new)
    assert [x.name for x in urdf.parent.iterdir()] == [urdf.name]


def test_lines_end_as_they_did(urdf: Path, tmp_path: Path) -> None:
    urdf.write_bytes(URDF.replace("\n", "\r\n").encode())
    out = tmp_path / "out.urdf"
    save_arm(identified(load_arm(urdf)), out, template=urdf)
    assert out.read_bytes().count(b"\n") == out.read_bytes().count(b"\r\n")


def test_what_is_fixed_keeps_its_inertia_if_it_can(urdf: Path, tmp_path: Path) -> None:
    arm, out = load_arm(urdf), tmp_path / "out.urdf"
    heavy = with_link(
        arm, 1, arm.links[1].inertia + random_body(np.random.default_rng(1))
    )
    assert save_arm(heavy, out, template=urdf) == ()
    assert load_arm(out).frames[0].inertia == arm.frames[0].inertia
    light = InertialParameters(arm.links[1].inertia.vector * 0.5)
    (note,) = save_arm(with_link(arm, 1, light), out, template=urdf)
    assert "lower" in note
    assert "tool" in note
    read = load_arm(out)
    assert 0.0 < read.frames[0].inertia.mass < arm.frames[0].inertia.mass
    np.testing.assert_allclose(read.links[1].inertia.vector, light.vector, atol=1e-15)


def test_gravity_and_couplings_go_in(urdf: Path, tmp_path: Path) -> None:
    arm, out = load_arm(urdf), tmp_path / "out.urdf"
    new = arm.with_gravity([0, 0, -1.62]).with_coupling("m", {"one": 2.0}, Drive(1, 2))
    for _ in range(2):
        save_arm(new, out, template=urdf)
        read = load_arm(out)
        np.testing.assert_array_equal(read.gravity, new.gravity)
        require_equal(read, new)
        urdf, new = out, new.with_gravity([0, 0, -3.7])


def test_impossible_numbers_are_not_written(urdf: Path, tmp_path: Path) -> None:
    arm, out = load_arm(urdf), tmp_path / "out.urdf"
    odd = with_link(arm, 0, InertialParameters(-arm.links[0].inertia.vector))
    with pytest.raises(NotPhysical, match="upper"):
        save_arm(odd, out, template=urdf)
    assert not out.exists()
    save_arm(odd, out, template=urdf, allow_unphysical=True)
    require_equal(load_arm(out, allow_unphysical=True), odd)


def test_another_arms_file_is_refused(urdf: Path, mjcf: Path, tmp_path: Path) -> None:
    for template in (urdf, mjcf):
        with pytest.raises(ArmError, match="no template for panda"):
            save_arm(load_arm("panda"), tmp_path / "out", template=template)


def test_sixteen_bit_templates_are_refused(urdf: Path, tmp_path: Path) -> None:
    urdf.write_bytes(URDF.replace("'utf-8'", "'utf-16'").encode("utf-16"))
    arm = load_arm(urdf)
    with pytest.raises(ArmError, match="UTF-8"):
        save_arm(identified(arm), tmp_path / "out.urdf", template=urdf)


@pytest.mark.parametrize("name", ["ur10/ur10_robot.urdf", "tx40/tx40.urdf"])
def test_published_files_keep_their_bytes(name: str, tmp_path: Path) -> None:
    template = DATA / name
    if not template.exists():
        pytest.skip(f"{template} is not there (ARMWISE_DATA)")
    arm = load_arm(template)
    out = tmp_path / "out.urdf"
    new = arm
    for i in range(len(arm.links)):
        new = with_link(new, i, random_body(np.random.default_rng(i)))
        new = with_drive(new, i, Drive(viscous=0.1 + i, coulomb=0.2 + i))
    save_arm(new, out, template=template)
    require_equal(load_arm(out), new)
    assert without_numbers(out.read_bytes()) == without_numbers(template.read_bytes())


def test_mjcf_numbers_come_back(mjcf: Path, tmp_path: Path) -> None:
    new, out = identified(load_arm(mjcf)), tmp_path / "out.xml"
    assert save_arm(new, out, template=mjcf) == ()
    require_equal(load_arm(out), new)
    text = out.read_text()
    assert "<!-- hands off -->" in text
    assert '<actuator><motor joint="one"/></actuator>' in text
    kept = [
        x for x in MJCF.splitlines() if "joint name" not in x and "<inertial" not in x
    ]
    assert [x for x in kept if x not in text.splitlines()] == []


def test_mjcf_inertia_from_shapes_is_refused(mjcf: Path, tmp_path: Path) -> None:
    mjcf.write_text(MJCF.replace('"degree"', '"degree" inertiafromgeom="true"'))
    with pytest.raises(ArmError, match="inertiafromgeom"):
        save_arm(identified(load_arm(mjcf)), tmp_path / "o.xml", template=mjcf)
