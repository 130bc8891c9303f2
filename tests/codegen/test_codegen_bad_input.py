"""Bad input to generate and load_generated: one clear sentence, nothing written."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import armwise as aw
from armwise.codegen.c_text import comment
from armwise.errors import ArgumentError, ArmwiseError, NotPhysical


@pytest.fixture
def arm():
    return aw.load_arm("two_link_uno")


def small(arm, folder, **options):
    return aw.generate(arm, folder, ["gravity_torque"], tries=1, **options)


def test_names_become_identifiers(arm, tmp_path):
    odd = dataclasses.replace(arm, name="7 axis / übung*/ int x;")
    code = small(odd, tmp_path / "out")
    assert code.name == "arm_7_axis_bung_int_x"
    header = (tmp_path / "out" / f"{code.name}.h").read_text()
    assert "*/ int" not in header
    assert header.isascii()


def test_no_identifier_can_be_made(arm, tmp_path):
    odd = dataclasses.replace(arm, name="機械")
    with pytest.raises(ArgumentError, match="name='my_arm'"):
        small(odd, tmp_path / "out")
    assert small(odd, tmp_path / "out", name="my_arm").name == "my_arm"


@pytest.mark.parametrize(
    "name", ["2link", "while", "operator", "linux", "y1", "a b", "", "x" * 60, "ünder"]
)
def test_a_name_that_is_none(arm, tmp_path, name):
    with pytest.raises(ArgumentError, match="cannot begin a C name"):
        small(arm, tmp_path / "out", name=name)
    assert not (tmp_path / "out").exists()


def test_comments_stay_comments():
    assert comment("a */ b /* c\\\nd") == "a * / b / * c/?d"


def test_zero_joints(tmp_path):
    with pytest.raises(ArgumentError, match="no joints"):
        small(aw.Arm("stone", (), ()), tmp_path / "out")


def test_not_an_arm(tmp_path):
    with pytest.raises(ArgumentError, match="needs an Arm or an Estimate, not str"):
        small("puma260", tmp_path / "out")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "half"}, "precision"),
        ({"load": "some"}, "load"),
        ({"parameters": "globals"}, "parameters"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"tolerance": 0.1, "parameters": "struct"}, "Drop one"),
        ({"frame": "moon"}, "no link or frame 'moon'"),
        ({"frame": "base", "load": "arbitrary"}, "carries no load"),
    ],
)
def test_choices_that_are_none(arm, tmp_path, options, message):
    with pytest.raises(ArgumentError, match=message):
        small(arm, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_unknown_function(arm, tmp_path):
    with pytest.raises(ArgumentError, match=r"'dance'.*inverse_dynamics"):
        aw.generate(arm, tmp_path / "out", ["dance"])
    with pytest.raises(ArgumentError, match="at least one"):
        aw.generate(arm, tmp_path / "out", [])


def test_an_arm_that_cannot_be(tmp_path):
    full = aw.load_arm("puma260_full")
    with pytest.raises(NotPhysical, match="allow_unphysical=True"):
        small(full, tmp_path / "out")
    assert small(full, tmp_path / "out", allow_unphysical=True).counts
    with pytest.raises(NotPhysical, match="Forward dynamics"):
        aw.generate(
            full, tmp_path / "b", ["forward_dynamics"], allow_unphysical=True, tries=1
        )
    assert not (tmp_path / "b").exists()


def test_a_folder_with_other_files(arm, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match=r"notes\.txt"):
        small(arm, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["notes.txt"]


def test_a_file_in_place_of_the_folder(arm, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(ArgumentError, match="is a file"):
        small(arm, tmp_path / "out")
    assert (tmp_path / "out").read_text() == "mine"


def test_generated_before_is_replaced_unless_edited(arm, tmp_path):
    first = aw.generate(arm, tmp_path / "out", runtime=True, tries=1)
    second = small(arm, tmp_path / "out")
    assert {p.name for p in (tmp_path / "out").iterdir()} == {
        p.name for p in second.files
    }
    assert len(second.files) < len(first.files)
    path = tmp_path / "out" / f"{second.name}.c"
    path.write_text(path.read_text() + "/* mine */")
    with pytest.raises(ArgumentError, match="was changed"):
        small(arm, tmp_path / "out")
    assert path.read_text().endswith("/* mine */")


def test_loading_what_is_not_generated(arm, tmp_path):
    with pytest.raises(ArgumentError, match="holds no generated code"):
        aw.codegen.load_generated(tmp_path)
    small(arm, tmp_path / "out")
    (tmp_path / "out" / "armwise.json").write_text("{")
    with pytest.raises(ArgumentError, match="cannot be read"):
        aw.codegen.load_generated(tmp_path / "out")


def test_loading_for_another_arm(arm, tmp_path):
    aw.generate(arm, tmp_path / "out", ["inverse_dynamics"], tries=1)
    heavier = arm.with_parameters(1.1 * arm.parameters)
    with pytest.raises(ArmwiseError, match="other parameters"):
        aw.codegen.load_generated(tmp_path / "out", heavier)


def test_calling_with_the_wrong_arrays(arm, tmp_path):
    aw.generate(arm, tmp_path / "out", ["inverse_dynamics"], tries=1)
    library = aw.codegen.load_generated(tmp_path / "out")
    with pytest.raises(ArgumentError, match="must end in 2"):
        library.inverse_dynamics(np.zeros(3), np.zeros(2), np.zeros(2))
    with pytest.raises(ArgumentError, match="takes q, qd, qdd"):
        library.inverse_dynamics(np.zeros(2))
    with pytest.raises(AttributeError, match="It has: inverse_dynamics"):
        _ = library.jacobian
    with pytest.raises(ArgumentError, match="are constants"):
        library.set_load(np.zeros(10))


def test_struct_parameters_follow(arm, tmp_path):
    aw.generate(
        arm, tmp_path / "out", ["inverse_dynamics"], parameters="struct", tries=1
    )
    library = aw.codegen.load_generated(tmp_path / "out", arm)
    from armwise.dynamics import mechanism_of

    other = arm.with_parameters(1.3 * arm.parameters)
    body = mechanism_of(other).grouped(other.parameters)
    drive = other.parameters[arm.layout.drives]
    library.set_parameters(body=body, drive=drive)
    assert library.check_against(other) < 1e-12
    with pytest.raises(ArgumentError, match="finite numbers"):
        library.set_parameters(body=[1.0])
    prepared = dict(library.about["struct"])["prepared"]
    with pytest.raises(ArgumentError, match="must be one of"):
        library.set_parameters(prepared=np.zeros(prepared))
