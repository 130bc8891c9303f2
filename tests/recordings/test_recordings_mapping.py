from __future__ import annotations

import json

import numpy as np
import pytest

from armwise.arms import arm_from_dict, arm_to_dict, load_arm
from armwise.errors import RecordingError
from armwise.recordings import apply_mapping_to_arm, load_mapping, read_recording
from armwise.recordings.channels import three_phase_torque


def mapping(tmp_path, text):
    path = tmp_path / "map.toml"
    path.write_text(text)
    return load_mapping(path)


def table(tmp_path, name, header, values):
    path = tmp_path / name
    text = "\n".join(",".join(f"{x:.15g}" for x in row) for row in values)
    path.write_text((header + "\n" if header else "") + text + "\n")
    return path


def test_gears_couplings_offsets_and_a_rate(tmp_path):
    rng = np.random.default_rng(0)
    q, tau = rng.normal(size=(2, 30, 2))
    gears = np.array([[10.0, 0.0], [4.0, -20.0]])
    motor = (q - [0.5, 0.0]) @ gears.T
    torque = tau @ np.linalg.inv(gears)
    table(tmp_path, "pos.csv", "m1,m2", np.rad2deg(motor))
    table(tmp_path, "cur.csv", "i1,i2", torque / [0.1, 0.2])
    described = mapping(
        tmp_path,
        """
        [time]
        rate_hz = 100.0
        [position]
        file = "pos.csv"
        columns = ["m1", "m2"]
        unit = "deg"
        at = "motor"
        offset = [0.5, 0.0]
        [torque]
        file = "cur.csv"
        columns = ["i1", "i2"]
        unit = "A"
        scale = [0.1, 0.2]
        at = "motor"
        [transmission]
        gears = [10.0, -20.0]
        [[transmission.couplings]]
        motor = 2
        joint = 1
        ratio = 4.0
        """,
    )
    for place in (tmp_path, tmp_path / "pos.csv"):
        rec = read_recording(place, mapping=described)
        for j in range(2):
            np.testing.assert_allclose(rec[f"q_{j + 1}"].values, q[:, j], atol=1e-9)
            np.testing.assert_allclose(rec[f"tau_{j + 1}"].values, tau[:, j], atol=1e-9)
        np.testing.assert_allclose(rec["q_1"].time, np.arange(30) / 100.0)
    # The power at the motors is the power at the joints.
    qd = rng.normal(size=2)
    assert (gears @ qd) @ torque[0] == pytest.approx(qd @ tau[0])


def test_three_phase_currents_give_the_torque(tmp_path):
    """`aah1986` Eq. 22: sinusoidal currents of amplitude I give 1.5 K_T I."""
    time = np.linspace(0, 1, 50)
    q = 2.0 * np.sin(3 * time)
    theta = 4 * q + 0.3
    amplitude = np.cos(5 * time)
    third = 2 * np.pi / 3
    phases = [amplitude * np.sin(theta + k * third) for k in range(3)]
    np.testing.assert_allclose(
        three_phase_torque(tuple(phases), theta, 2.0), 3.0 * amplitude, atol=1e-12
    )
    table(tmp_path, "log.csv", "time,q_1,a,b,c", np.stack([time, q, *phases], axis=1))
    described = mapping(
        tmp_path,
        """
        [position]
        columns = ["q_1"]
        [phases]
        columns = [["a", "b", "c"]]
        constants = [2.0]
        pole_pairs = [4.0]
        angle_offsets = [0.3]
        """,
    )
    rec = read_recording(tmp_path / "log.csv", mapping=described)
    np.testing.assert_allclose(rec["tau_1"].values, 3.0 * amplitude, atol=1e-9)


def test_numbers_one_a_line(tmp_path):
    values = np.arange(12.0).reshape(4, 3)
    (tmp_path / "p.txt").write_text("\n".join(map(str, values.ravel())))
    (tmp_path / "t.txt").write_text("0\n0.1\n0.2\n0.35\n")
    described = mapping(
        tmp_path,
        """
        joints = 3
        [time]
        file = "t.txt"
        [position]
        file = "p.txt"
        layout = "numbers"
        """,
    )
    rec = read_recording(tmp_path, mapping=described)
    np.testing.assert_array_equal(rec["q_2"].values, values[:, 1])
    assert rec["q_1"].time[-1] == 0.35
    (tmp_path / "p.txt").write_text("1\n2\n3\n4\n")
    with pytest.raises(
        RecordingError, match=r"p.txt has 4 numbers, not a multiple of 3"
    ):
        read_recording(tmp_path, mapping=described)
    (tmp_path / "t.txt").write_text("0\n0.1\n0.2\n")
    (tmp_path / "p.txt").write_text("1\n2\n3\n")
    with pytest.raises(RecordingError, match="3 time stamps for 1 rows"):
        read_recording(tmp_path, mapping=described)


def test_columns_by_number_and_joints_by_name(tmp_path):
    arm = load_arm("ddarm")
    values = np.arange(40.0).reshape(10, 4) * 0.01
    table(tmp_path, "log.txt", "", values)
    names = ", ".join(f'"{n}"' for n in reversed(arm.coordinate_names))
    described = mapping(
        tmp_path,
        f"""
        joints = [{names}]
        [time]
        column = 1
        [position]
        columns = [2, 3, 4]
        """,
    )
    rec = read_recording(tmp_path / "log.txt", arm, described)
    np.testing.assert_allclose(rec["q_1"].values, values[:, 3])
    np.testing.assert_allclose(rec["q_3"].values, values[:, 1])


@pytest.mark.parametrize("time", ["stamp_ms", "stamp"])
def test_a_heading_is_named_with_its_unit_or_without(tmp_path, time):
    values = np.arange(30.0).reshape(10, 3)
    table(tmp_path, "log.csv", "stamp_ms,left [deg],right [deg]", values)
    described = mapping(
        tmp_path,
        f"""
        [time]
        column = "{time}"
        [position]
        columns = ["left [deg]", "right"]
        """,
    )
    rec = read_recording(tmp_path / "log.csv", mapping=described)
    np.testing.assert_allclose(rec["q_1"].time, 1e-3 * values[:, 0])
    np.testing.assert_allclose(rec["q_1"].values, np.deg2rad(values[:, 1]))
    np.testing.assert_allclose(rec["q_2"].values, np.deg2rad(values[:, 2]))


def test_gears_of_the_mapping_reach_the_drives(tmp_path):
    """A motor that two joints turn is a drive of its own, if the mapping names it."""
    arm = load_arm("two_link_uno")
    a, b = arm.coordinate_names
    text = (
        "[transmission]\ngears = [32.0, -45.0]\n"
        "[[transmission.couplings]]\nmotor = 2\njoint = 1\nratio = -45.0\n"
    )
    bare = apply_mapping_to_arm(arm, mapping(tmp_path, text))
    assert [joint.gear for joint in bare.joints] == [32.0, None]
    text += f'[[motors]]\nname = "m"\njoints = {{ {a} = 1.0, {b} = 1.0 }}\n'
    both = apply_mapping_to_arm(arm, mapping(tmp_path, text))
    assert [drive.gear for drive in both.driven] == [32.0, None, 45.0]
    again = arm_from_dict(json.loads(json.dumps(arm_to_dict(both))), "x")
    assert [drive.gear for drive in again.driven] == [32.0, None, 45.0]


def test_motors_of_the_mapping_reach_the_arm(tmp_path):
    arm = load_arm("ddarm")
    a, b = arm.coordinate_names[1:]
    text = f'[[motors]]\nname = "m"\njoints = {{ {a} = 1.0, {b} = -2.0 }}\n'
    grown = apply_mapping_to_arm(arm, mapping(tmp_path, text))
    np.testing.assert_array_equal(grown.couplings[0].weights, [0.0, 1.0, -2.0])
    assert len(grown.parameters) == len(arm.parameters) + 4
    again = apply_mapping_to_arm(grown, mapping(tmp_path, text))
    assert len(again.couplings) == 1
    wrong = mapping(tmp_path, '[[motors]]\nname = "m"\njoints = { nose = 1.0 }\n')
    with pytest.raises(RecordingError, match=r"motor m: .*no joint 'nose'"):
        apply_mapping_to_arm(arm, wrong)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nonsense", "is not TOML"),
        ("[positon]", 'unknown key "positon"'),
        ("[position]\ncolums = []", 'unknown key "colums"'),
        ("position = 3", 'needs a table for "position"'),
        ("[position]\nat = 'elbow'", 'needs one of joint, motor for "at"'),
        ("[position]\nat = 'motor'", "need a [transmission]"),
        ("[position]\nscale = ['x']", 'needs a finite number for "scale"'),
        ("[position]\nscale = [nan]", 'needs a finite number for "scale"'),
        ("[time]\nrate_hz = -1", "must be positive"),
        ("[transmission]\nmatrix = [[1.0, 2.0]]", "must be square"),
        ("[transmission]\ngears = [1.0, 0.0]", "singular"),
        (
            "[transmission]\ngears = [1.0]\n"
            "[[transmission.couplings]]\nmotor = 2\njoint = 1\nratio = 1.0",
            "numbers from 1 to 1",
        ),
        (
            "[phases]\ncolumns = [['a', 'b']]\nconstants = [1.0]",
            "three names per joint",
        ),
        ("[[motors]]\nname = 'm'", "needs a name and joints"),
        ("[[bag.channels]]\ntopic = '/x'", "are all needed"),
        ("motors = 3", "needs tables [[motors]]"),
    ],
)
def test_mappings_that_make_no_sense(tmp_path, text, message):
    with pytest.raises(RecordingError) as error:
        mapping(tmp_path, text)
    assert message in str(error.value)
    assert "map.toml" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[position]\ncolumns = ['a', 'gone']", 'has no column "gone"'),
        ("[position]\ncolumns = ['a', '9']", "none is number 9"),
        (
            "[position]\ncolumns = ['a']\nscale = [1.0, 2.0, 3.0]",
            "3 numbers for 1 joints",
        ),
        ("[position]\ncolumns = ['a']\nscale_from = 'g'", "no single number 'g'"),
        ("[position]\nfile = 'gone.csv'\ncolumns = ['a']", "does not exist"),
        ("[position]\ncolumns = ['a']\nunit = 'parsec'", "unit 'parsec' is not known"),
        ("[position]\nlayout = 'numbers'", "how many joints?"),
    ],
)
def test_mappings_that_do_not_fit_the_log(tmp_path, text, message):
    path = table(tmp_path, "log.csv", "time,a,b", np.arange(9.0).reshape(3, 3))
    with pytest.raises(RecordingError) as error:
        read_recording(path, mapping=mapping(tmp_path, text))
    assert message in str(error.value)


def test_a_mapping_for_another_arm(tmp_path):
    path = table(tmp_path, "log.csv", "time,a,b", np.arange(9.0).reshape(3, 3))
    described = mapping(tmp_path, "[position]\ncolumns = ['a', 'b']")
    with pytest.raises(RecordingError, match="names 2 columns for q, but 3 are needed"):
        read_recording(path, load_arm("ddarm"), described)
