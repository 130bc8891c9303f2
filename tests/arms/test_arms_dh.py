"""DH tables in TOML, and specification files of Izaguirre et al. (1992)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from armwise.arms import Arm, Drive, load_arm
from armwise.errors import ArmError

from .trees import link_poses

ROW = "[[joint]]\nalpha_deg = 90\na = 0.3\nd = 0.2\n"
TABLE = f'convention = "modified"\n{ROW}'


def rx(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def rz(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1.0]])


def shift(x: float, z: float) -> np.ndarray:
    T = np.eye(4)
    T[0, 3], T[2, 3] = x, z
    return T


def read(path: Path, text: str) -> Arm:
    path.write_text(text)
    return load_arm(path)


@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_poses_are_the_tables(convention: str, kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = rng.uniform(-2, 2, (4, 4))
    text = f'convention = "{convention}"\n' + "".join(
        f'[[joint]]\nalpha = {al}\na = {a}\nd = {d}\ntheta = {th}\nkind = "{kind}"\n'
        for al, a, d, th in rows
    )
    arm = read(tmp_path / "t.toml", text)
    q = rng.uniform(-2, 2, 4)
    T = np.eye(4)
    for (al, a, d, th), x, ours in zip(rows, q, link_poses(arm, q), strict=True):
        theta, along = (th + x, d) if kind == "revolute" else (th, d + x)
        across = rx(al) @ shift(a, 0)
        turn = rz(theta) @ shift(0, along)
        T = T @ (across @ turn if convention == "modified" else turn @ across)
        np.testing.assert_allclose(ours, T, atol=1e-12)


def test_everything_a_row_can_say(tmp_path: Path) -> None:
    arm = read(
        tmp_path / "arm.toml",
        """
        name = "two"
        convention = "modified"
        gravity = [0, -9.8, 0]
        base = "table"
        [[joint]]
        alpha = 0
        a = 0
        d = 0
        name = "hip"
        link = "thigh"
        limits = {lower_deg = -90, upper_deg = 180, velocity_deg = 90, effort = 5}
        drive = {rotor_inertia = 0.1, viscous = 0.2, coulomb = 0.3, offset = 0.4}
        inertial = {mass = 2, center_of_mass = [1, 0, 0], inertia = [1, 0, 0, 1, 0, 1]}
        [[joint]]
        alpha_deg = 0
        a = 1
        d = 0
        gear = -50
        moments = {m = 1.0, mx = 0.5, Izz = 0.3}
        [[frame]]
        name = "foot"
        link = "link_2"
        xyz = [1, 0, 0]
        rpy_deg = [0, 0, 90]
        [[coupling]]
        name = "belt"
        weights = {hip = 1, joint_2 = -1}
        drive = {viscous = 0.7}
        """,
    )
    assert (arm.name, arm.base) == ("two", "table")
    np.testing.assert_array_equal(arm.gravity, [0, -9.8, 0])
    hip = arm.joints[0]
    assert (hip.name, arm.links[0].name) == ("hip", "thigh")
    assert hip.limits.lower == pytest.approx(-np.pi / 2)
    assert hip.limits.velocity == pytest.approx(np.pi / 2)
    assert hip.limits.acceleration == np.inf
    assert hip.drive == Drive(0.1, 0.2, 0.3, 0.4)
    assert [joint.gear for joint in arm.joints] == [None, 50.0]
    np.testing.assert_allclose(
        arm.links[0].inertia.vector, [2, 2, 0, 0, 1, 0, 0, 3, 0, 3]
    )
    assert arm.links[1].inertia.vector[[0, 1, 9]].tolist() == [1.0, 0.5, 0.3]
    assert arm.find_frame("foot")[1][1, 0] == 1.0
    assert arm.couplings[0].weights.tolist() == [1.0, -1.0]
    assert arm.couplings[0].drive.viscous == 0.7


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TABLE.replace("alpha_deg = 90\n", ""), ['"alpha"', "joint 1", "column"]),
        (TABLE.replace("a = 0.3\n", ""), ['has no "a"']),
        (TABLE.replace("d = 0.2\n", ""), ['has no "d"']),
        (TABLE.replace("0.3", "nan"), ['"a"', "nan"]),
        (TABLE.replace("0.3", '"long"'), ['"a"', "'long'"]),
        (TABLE.replace("0.3", "true"), ['"a"', "True"]),
        (TABLE + "alpha = 1\n", ["both"]),
        (TABLE + "lenght = 1\n", ['unknown key "lenght"', "Known:"]),
        (TABLE + 'kind = "ball"\n', ['"ball"', "revolute"]),
        (TABLE + "limits = {lower = 2, upper = 1}\n", ["lower 2 > upper 1"]),
        (TABLE + "limits = {effort = -3}\n", ['positive "effort"']),
        (TABLE + "limits = {velocity_deg = 0}\n", ['positive "velocity"']),
        (TABLE + "inertial = {mass = inf}\n", ['"mass"', "finite"]),
        (TABLE + "moments = {m = 1e200}\n", ['"m"', "finite"]),
        ("a = " + "[" * 100_000, ["not TOML"]),
        ("a = " + "9" * 5000, ["not TOML"]),
        (TABLE + "inertial = {mass = -1}\n", ["negative mass"]),
        (TABLE + "inertial = {mass = 1, inertia = [1]}\n", ["6 numbers"]),
        (TABLE + "gear = 0\n", ['"gear"', "not zero"]),
        (TABLE + 'parent = "zz"\n', ['parent "zz"', "Known: base"]),
        (TABLE + '[[frame]]\nname = "f"\nlink = "zz"\n', ["frame f", "Known:"]),
        (TABLE + '[[frame]]\nlink = "base"\n', ['text for "name"']),
        (TABLE + "[[coupling]]\nweights = {joint_1 = 1}\n", ['text for "name"']),
        (ROW, ["convention", "standard", "modified"]),
        ('convention = "modified"\n', ["no [[joint]]"]),
        ("joint = 3\n", ["[[joint]]"]),
        ("[[joint\n", ["not TOML"]),
        (TABLE + ROW.replace("[[joint]]", '[[joint]]\nname = "joint_1"'), ["joint_1"]),
    ],
)
def test_bad_tables(text: str, says: list[str], tmp_path: Path) -> None:
    with pytest.raises(ArmError) as error:
        read(tmp_path / "bad.toml", text)
    for part in says:
        assert part in str(error.value)


def test_bytes_that_are_not_text(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(b"name = \xff")
    with pytest.raises(ArmError, match="UTF-8"):
        load_arm(path)


SPECIFICATION = """% the paper's own file, App. A, its two misprints mended
number_links 6
mass 0 0 0 0 0 m6
sigma 0 0 0 0 0 0          % joint types: all revolute
alpha 90 0 -90 90 -90 0
dpar 0 0 d3 d4 0 0
apar 0 a2 0 0 0 0
adyna 0 0 0 ad4 0 0
bdyna 0 0 0 0 0 0
cdyna 0 0 0 cd4 0 0
ddyna 0 0 0 0 0 0
edyna 0 0 0 0 0 0
fdyna 0 0 0 0 0 0
xgrav 0 0 0 0 0 0
ygrav 0 0 0 y4 0 0
zgrav 0 0 0 0 0 z6
ia1 ia2 ia3 ia4 ia5 ia6
option moment
option_update moment
variable m6 2.768114
variable z6 0.014041
variable y4 -0.382190
variable ad4 0.079781
variable cd4 0.077761
variable ia1 0.091631
variable ia2 0.136312
variable ia3 0.030843
variable ia4 0.001781
variable ia5 0.006759
variable ia6 0.001262
constant a2 0.20320
constant d3 0.12624
constant d4 0.20320
"""


def test_the_papers_file_is_the_bundled_arm(tmp_path: Path) -> None:
    path = tmp_path / "puma260.spec"
    arm = read(path, SPECIFICATION)
    bundled = load_arm("puma260")
    for ours, theirs in zip(arm.joints, bundled.joints, strict=True):
        np.testing.assert_array_equal(ours.origin, theirs.origin)
        np.testing.assert_array_equal(ours.axis, theirs.axis)
        np.testing.assert_array_equal(ours.anchor, theirs.anchor)
        assert ours.drive.rotor_inertia == theirs.drive.rotor_inertia
    np.testing.assert_array_equal(arm.parameters[:60], bundled.parameters[:60])


def test_the_paper_s_letters(tmp_path: Path) -> None:
    """d2 and e2 stay of link 2 in Table 1, and so do Ixy and Iyz of its 52."""
    lines = [f"{letter}dyna {k}" for k, letter in enumerate("abcdef", 1)]
    text = "\n".join(["number_links 1", "alpha 0", "dpar 0", "apar 0", *lines])
    arm = read(tmp_path / "one.spec", text)
    p = dict(zip(arm.parameter_names, arm.parameters, strict=True))
    six = [p[f"link_1.{n}"] for n in ("Ixx", "Iyy", "Izz", "Ixy", "Iyz", "Ixz")]
    assert six == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("alpha 90 0 -90 90 -90 0\n", "", '"alpha"'),
        ("alpha 90 ", "alpha ", "line 5: alpha needs 6 values, not 5"),
        ("variable m6 2.768114\n", "", 'line 3: "m6" is not defined'),
        ("adyna", "advna", '"advna" is not a keyword'),
        ("number_links 6", "number_links six", "number_links"),
        ("sigma 0", "sigma 2", "sigma is 0"),
        ("variable z6 0.014041", "variable z6 nan", "finite"),
        ("variable z6 0.014041", "variable z6", "NAME VALUE"),
    ],
)
def test_bad_specifications(old: str, new: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.spec"
    with pytest.raises(ArmError) as error:
        read(path, SPECIFICATION.replace(old, new, 1))
    assert says in str(error.value)
    assert str(path) in str(error.value)
