"""Tables for people: their heads."""

from __future__ import annotations

import pytest

from armwise.cli.output import heads


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["j2s7s300_joint_1", "j2s7s300_joint_2"], ["joint_1", "joint_2"]),
        (["shoulder_pan_joint", "elbow_joint"], ["shoulder_pan", "elbow"]),
        (["panda_joint1", "panda_joint2"], ["joint1", "joint2"]),
        (["q_a", "q_a_b"], ["a", "a_b"]),
        (["only_joint"], ["only_joint"]),
        (["a_left/waist", "a_left/wrist_roll"], ["waist", "wrist_roll"]),
    ],
)
def test_heads_leave_out_what_all_names_share(names, expected):
    assert heads(names) == expected
