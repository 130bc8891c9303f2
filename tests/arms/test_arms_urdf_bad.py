"""Every way a URDF goes wrong: one error, naming the file, the place and the remedy."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from armwise.arms import load_arm, save_arm
from armwise.errors import ArmError, NotPhysical

GOOD_INERTIA = '<inertia ixx="1" iyy="1" izz="1"/>'


def robot(
    joints: str = "",
    *,
    mass: str = "1",
    inertia: str = GOOD_INERTIA,
    joint: str = '<axis xyz="0 0 1"/>',
    kind: str = "revolute",
) -> str:
    return (
        '<robot name="r">\n<link name="a"/>\n'
        f'<link name="b"><inertial><mass value="{mass}"/>{inertia}</inertial></link>\n'
        f'<joint name="one" type="{kind}"><parent link="a"/><child link="b"/>{joint}'
        f"</joint>\n{joints}</robot>"
    )


def joint(name: str, parent: str, child: str) -> str:
    return (
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/>'
        f'<child link="{child}"/><axis xyz="0 0 1"/></joint>'
    )


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(
        f'<!ENTITY {new} "{f"&{old};" * 10}">'
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + ']><robot name="&i;"><link name="base"/></robot>'
)
ENTITY = (
    '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]>'
    '<robot name="&x;"><link name="a"/></robot>'
)

CASES = {
    "empty": ("", ["is empty"]),
    "noise": ("\x00\x01\x02 not xml", ["line 1", "not well-formed"]),
    "not a robot": ("<html/>", ["<html>", "<robot>"]),
    "no model": ("<sdf/>", ["<sdf>", "no model"]),
    "unclosed": ('<robot name="r">', ["not well-formed", "mend it"]),
    "xacro": (
        '<robot xmlns:xacro="x"><xacro:macro name="m"/></robot>',
        ["xacro", "expand"],
    ),
    "no links": ('<robot name="r"/>', ["<robot", "no <link>"]),
    "nothing moves": ('<robot name="r"><link name="a"/></robot>', ["no joint"]),
    "cycle": (
        '<robot name="r"><link name="a"/><link name="b"/>'
        + joint("1", "a", "b")
        + joint("2", "b", "a")
        + "</robot>",
        ["cycle", "cut one joint"],
    ),
    "cycle beside the tree": (
        robot(
            '<link name="c"/><link name="d"/>'
            + joint("x", "c", "d")
            + joint("y", "d", "c")
        ),
        ['<joint name="x">', "cycle"],
    ),
    "missing parent": (
        robot('<link name="c"/>' + joint("two", "zz", "c")),
        ["line 5", 'parent "zz"', "It has: a, b, c"],
    ),
    "two parents": (
        robot('<link name="c"/>' + joint("two", "c", "b")),
        ['<joint name="two">', '"one" carries too'],
    ),
    "two roots": (robot('<link name="c"/>'), ['<link name="c">', "hangs on nothing"]),
    "same name twice": (robot('<link name="a"/>'), ["line 2", "rename one"]),
    "zero axis": (
        robot(joint='<axis xyz="0 0 0"/>'),
        ["line 4", '<joint name="one">', "length zero", "direction"],
    ),
    "short axis": (robot(joint='<axis xyz="0 1"/>'), ["3 numbers", "not 2"]),
    "negative mass": (robot(mass="-2"), ['<link name="b">', "negative mass -2"]),
    "nan mass": (robot(mass="nan"), ["line 3", "<mass>", 'value="nan"', "finite"]),
    "huge mass": (robot(mass="1e999"), ["<mass>", "finite"]),
    "sun's mass squared": (robot(mass="4e60"), ["<mass>", "sensible size"]),
    "word for mass": (robot(mass="heavy"), ["<mass>", "heavy"]),
    "impossible inertia": (
        robot(inertia='<inertia ixx="-1" iyy="1" izz="1"/>'),
        ['<link name="b">', "no body can have", "allow_unphysical"],
    ),
    "no inertia": (robot(inertia=""), ["<inertial>", "no <inertia>"]),
    "half an inertia": (robot(inertia='<inertia ixx="1"/>'), ['"iyy"']),
    "limits swapped": (
        robot(joint='<limit lower="1" upper="-1"/>'),
        ['<joint name="one">', "lower limit 1 > upper -1", "swap"],
    ),
    "negative speed": (robot(joint='<limit velocity="-1"/>'), ["negative velocity"]),
    "floating alone": (robot(kind="floating"), ["no joint that moves"]),
    "screw": (robot(kind="screw"), ['"screw"', "Supported: revolute"]),
    "no child": (
        '<robot name="r"><link name="a"/><joint name="j" type="fixed">'
        '<parent link="a"/></joint></robot>',
        ['<joint name="j">', "<child>"],
    ),
    "mimics nothing": (
        robot(joint='<mimic joint="zz"/>'),
        ['<joint name="one">', '"zz"', "There are: one"],
    ),
    "mimics itself": (robot(joint='<mimic joint="one"/>'), ["circle"]),
    "bomb": (BOMB, ["line 1", "DOCTYPE", "remove"]),
    "external entity": (ENTITY, ["DOCTYPE", "refused"]),
    "unknown coupling": (
        robot(
            '<armwise><coupling name="m"><weight joint="q" value="1"/></coupling>'
            "</armwise>"
        ),
        ["<coupling", "unknown joint"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_file_gives_one_clear_error(case: str, tmp_path: Path) -> None:
    text, says = CASES[case]
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    start = time.process_time()
    with pytest.raises(ArmError) as error:
        load_arm(path)
    assert time.process_time() - start < 1
    message = str(error.value)
    assert str(path) in message
    for part in says:
        assert part in message, message
    assert "root:" not in message


def test_wrong_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "latin.urdf"
    path.write_bytes(robot().replace('"r"', '"größe"').encode("latin-1"))
    with pytest.raises(ArmError, match="encoding"):
        load_arm(path)
    path.write_bytes(b'<?xml version="1.0" encoding="klingon"?><robot/>')
    with pytest.raises(ArmError, match=r"encoding|klingon"):
        load_arm(path)


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.urdf"
    path.write_text("<a>" * 200_000)
    with pytest.raises(ArmError, match="levels"):
        load_arm(path)


def test_huge_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "huge.urdf"
    with path.open("wb") as file:
        file.truncate(200 * 2**20)
    with pytest.raises(ArmError, match="larger than 64 MB"):
        load_arm(path)


def test_folders_and_unknown_names(tmp_path: Path) -> None:
    with pytest.raises(ArmError, match="not a file"):
        load_arm(tmp_path)
    with pytest.raises(ArmError, match="Did you mean 'panda'"):
        load_arm("pandda")


def test_negative_numbers_load_when_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "odd.urdf"
    path.write_text(robot(mass="-2"))
    arm = load_arm(path, allow_unphysical=True)
    assert "negative" in arm.defects()["b"]


def test_a_broken_triangle_loads_and_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "odd.urdf"
    path.write_text(robot(inertia='<inertia ixx="1" iyy="1" izz="3"/>'))
    arm = load_arm(path)
    assert "triangle" in arm.defects()["b"]
    # MuJoCo reads no such file; another description says what this one does.
    with pytest.raises(NotPhysical, match="b: the principal moments break"):
        save_arm(arm, tmp_path / "odd.xml")
    assert not (tmp_path / "odd.xml").exists()
    save_arm(arm, tmp_path / "odd.xml", allow_unphysical=True)
    save_arm(arm, tmp_path / "same.urdf")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("log.csv", "time,q_1,tau_1\n0,0,0\n", "is a table, such as a log"),
        ("report.html", "<!doctype html><html></html>", "is a page for people"),
    ],
)
def test_files_that_are_no_descriptions_are_called_what_they_are(
    tmp_path, name, text, said
):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ArmError, match=said):
        load_arm(path)
