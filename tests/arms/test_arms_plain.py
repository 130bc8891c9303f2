"""An arm as plain numbers: nothing is lost, and nothing else is taken for one."""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import armwise as aw
from armwise.arms import arm_from_dict, arm_to_dict, bundled_arms
from armwise.errors import ArmError


def assert_same(one, other):
    assert type(one) is type(other)
    if is_dataclass(one):
        for field in fields(one):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    elif isinstance(one, tuple):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            assert_same(a, b)
    elif isinstance(one, np.ndarray):
        np.testing.assert_array_equal(one, other)
    else:
        assert one == other


@pytest.mark.parametrize("name", bundled_arms())
def test_an_arm_is_read_back_to_the_last_bit(name):
    arm = aw.load_arm(name)
    assert_same(arm_from_dict(json.loads(json.dumps(arm_to_dict(arm))), "x"), arm)


def test_shapes_mimics_couplings_and_frames_are_read_back(tmp_path):
    path = tmp_path / "gripper.urdf"
    path.write_text(
        """<robot name="g"><link name="base"/>
        <link name="a"><visual><geometry><mesh filename="a.stl" scale="1 1 2"/>
        </geometry></visual></link><link name="b"/><link name="tool"/>
        <joint name="j1" type="prismatic"><parent link="base"/><child link="a"/>
        <axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="1"/>
        </joint>
        <joint name="j2" type="revolute"><parent link="a"/><child link="b"/>
        <mimic joint="j1" multiplier="-2" offset="0.1"/>
        <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
        <joint name="f" type="fixed"><parent link="b"/><child link="tool"/>
        <origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/></joint></robot>"""
    )
    arm = aw.load_arm(path).with_coupling("motor", {"j1": 3.0})
    assert_same(arm_from_dict(json.loads(json.dumps(arm_to_dict(arm))), "x"), arm)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d.pop("joints"),
        lambda d: d.update(colour="red"),
        lambda d: d.update(name=3),
        lambda d: d.update(gravity=[0, 0]),
        lambda d: d["joints"][0].update(axis=[0, 0, float("nan")]),
        lambda d: d["joints"][0].update(kind="ball"),
        lambda d: d["joints"][1].update(parent=5),
        lambda d: d["joints"][0]["origin"][0].__setitem__(0, 3.0),
        lambda d: d["links"][0].update(inertia=[1, 2]),
        lambda d: d["joints"][0].update(limits={"velocity": "fast"}),
    ],
)
def test_what_is_no_arm_is_refused_in_one_sentence(spoil):
    data = arm_to_dict(aw.load_arm("ddarm"))
    spoil(data)
    with pytest.raises(ArmError):
        arm_from_dict(data, "spoilt.json")
