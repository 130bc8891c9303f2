"""The layout of the parameter vector, on trees and couplings, and its only home."""

import re
from pathlib import Path

import numpy as np
import pytest

from armwise import load_arm
from armwise.arms import DRIVE_NAMES, INERTIAL_NAMES, Arm

ROOT = Path(__file__).parents[2]
ARMS = ("two_link_uno", "tx40", "panda")


def marked(name: str) -> tuple[Arm, np.ndarray]:
    """An arm whose every parameter is its own number, from 1."""
    arm = load_arm(name)
    if name == "two_link_uno":
        joints = [joint.name for joint in arm.joints]
        arm = arm.with_coupling("belt", {joints[0]: 1.0, joints[1]: -0.5})
    vector = np.arange(1.0, arm.parameters.size + 1.0)
    return arm.with_parameters(vector), vector


@pytest.mark.parametrize("name", ARMS)
def test_layout_points_at_what_the_arm_itself_holds(name: str) -> None:
    arm, vector = marked(name)
    layout = arm.layout
    for i, link in enumerate(arm.links):
        np.testing.assert_array_equal(vector[layout.link(i)], link.inertia.vector)
    np.testing.assert_array_equal(layout.link(-1), layout.link(len(arm.links) - 1))
    for i, driven in enumerate(arm.driven):
        for kind in DRIVE_NAMES:
            assert vector[layout.joint(i, kind)] == getattr(driven.drive, kind)
    masses = [link.inertia.mass for link in arm.links]
    np.testing.assert_array_equal(vector[layout.mass], masses)
    rows = [driven.drive.vector for driven in arm.driven]
    np.testing.assert_array_equal(layout.by_drive(vector), rows)
    np.testing.assert_array_equal(layout.by_link(vector)[:, 0], masses)


@pytest.mark.parametrize("name", ARMS)
def test_layout_agrees_with_the_parameters_names(name: str) -> None:
    arm, _ = marked(name)
    layout, names = arm.layout, np.array(arm.parameter_names)
    assert layout.size == names.size
    owners = [link.name for link in arm.links], [x.name for x in arm.driven]
    for k, full in enumerate(arm.parameter_names):
        owner = owners[0 if layout.is_inertial[k] else 1][layout.owners[k]]
        assert full == f"{owner}.{layout.kinds[k]}"
    for kind in DRIVE_NAMES:
        expected = [f"{owner}.{kind}" for owner in owners[1]]
        assert names[layout.drive(kind)].tolist() == expected
        shifted = layout.drive(kind, start=3) - 3
        assert names[layout.drives][shifted].tolist() == expected
    pairs = [f"{owner}.{kind}" for owner in owners[0] for kind in ("my", "Ixx")]
    assert names[layout.inertial("my", "Ixx")].tolist() == pairs


@pytest.mark.parametrize("name", ARMS)
def test_every_parameter_is_somewhere_once(name: str) -> None:
    layout = load_arm(name).layout
    every = list(range(layout.size))
    assert every[layout.links] + every[layout.drives] == every
    links = [every[layout.link(i)] for i in range(layout.link_count)]
    assert np.concatenate(links).tolist() == every[layout.links]
    kinds = [layout.inertial(kind) for kind in INERTIAL_NAMES]
    kinds += [layout.drive(kind) for kind in DRIVE_NAMES]
    assert sorted(np.concatenate(kinds).tolist()) == every
    assert sorted(layout.mass_last) == every
    assert layout.mass_last[9] == layout.mass[0]
    is_offset = np.array(layout.kinds) == "offset"
    others = np.flatnonzero(~is_offset & ~layout.is_inertial)
    np.testing.assert_array_equal(layout.non_negative, others)


def test_a_link_or_parameter_that_is_not_there_is_refused() -> None:
    layout = load_arm("two_link_uno").layout
    with pytest.raises(IndexError):
        layout.link(2)
    with pytest.raises(ValueError, match="not in tuple"):
        layout.drive("stribeck")


ARITHMETIC = re.compile(
    r"(?<![.\d-])10 \* [a-z_(]"  # 10 * len(arm.links), 10 * i + k
    r"|(?<![.\d])4 \* (len\(|[a-z_.]*drive|k\])"  # 4 * len(arm.joints), first + 4 * k
    r"|:: ?4\b"  # + 2 :: 4
    r"|links(\)| -|\) (//|%)|,) (10|4)\b|\b[a-z]+ (//|%) 10\b(?!\*)"  # index % 10
    r"|range\(0, .*, (10|4)\)"  # link after link
    r"|reshape\([^()]*(-1|size|links), (10|4)(, 1)?\)"  # rows of ten, rows of four
)
ONE_BODY = {"methods.py", "wrist_signals.py"}
"""Regressors of a single body, a load, which has no layout."""


def test_nobody_else_counts_in_tens_and_fours() -> None:
    """`arm.layout` alone knows how many parameters a link and a drive have."""
    offences = []
    for folder in ("src", "papers", "benchmarks", "studies", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.name in ONE_BODY:
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if ARITHMETIC.search(line):
                    offences.append(f"{path.relative_to(ROOT)}:{number}: {line}")
    assert not offences, "\n".join(offences)
