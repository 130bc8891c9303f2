"""The command line as its users meet it: what it prints, and how it fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from armwise.cli import main as cli

GOOD = """<robot name="r"><link name="a"/>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="3"/>
</inertial></link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 0 1"/>
</joint></robot>
"""


def run(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["armwise", *words])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    out, err = capsys.readouterr()
    code = exit_.value.code
    return (code if isinstance(code, int) else 0), out, err


@pytest.fixture
def armwise(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *words: run(capsys, monkeypatch, *words)


def test_tables_for_people(armwise: Any) -> None:
    code, out, err = armwise("inspect", "ddarm", "--all")
    assert code == 0
    assert "joint_3" in out
    assert "link_2.Iyz + 0.45·link_3.mz" in out
    assert "\x1b" not in out
    assert "no body can be link_1" in err


def test_an_arm_of_seven_joints_fits_on_one_screen(armwise: Any) -> None:
    code, out, err = armwise("inspect", "panda")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) <= 24
    assert "base parameters" in out
    assert "link_2.Iyz +" not in out


def test_a_part_of_an_arm(armwise: Any) -> None:
    _, out, _ = armwise("inspect", "panda", "--lock", "joint_7=0.5", "--json")
    report = json.loads(out)
    assert (report["dof"], report["locked"]) == (6, {"joint_7": 0.5})
    _, out, _ = armwise("inspect", "panda", "--chain", "link_2..link_5", "--json")
    assert [x["name"] for x in json.loads(out)["joints"]] == [
        "joint_3",
        "joint_4",
        "joint_5",
    ]
    for words in (("--lock", "joint_7"), ("--lock", "=1"), ("--chain", "link_2")):
        code, out, err = armwise("inspect", "panda", *words)
        assert (code, out) == (2, "")
        assert words[0] in err


def test_a_description_without_bodies_is_said(armwise: Any, tmp_path: Path) -> None:
    path = tmp_path / "bare.urdf"
    path.write_text(re.sub(r"(?s)<inertial>.*</inertial>", "", GOOD))
    code, _, err = armwise("inspect", str(path))
    assert code == 0
    assert "no mass or inertia is described at all" in err
    tip = '<link name="c"/><joint name="k" type="continuous"><parent link="b"/>'
    tip += '<child link="c"/></joint></robot>'
    path.write_text(GOOD.replace("</robot>", tip))
    assert "described beyond k:" in armwise("inspect", str(path))[2]
    path.write_text(GOOD)
    assert "no mass" not in armwise("inspect", str(path))[2]


IMPOSSIBLE = GOOD.replace('ixx="1"', 'ixx="-1"')


def test_commands_name_the_remedy_that_they_have(armwise: Any, tmp_path: Path) -> None:
    path, log = tmp_path / "impossible.urdf", tmp_path / "log.csv"
    path.write_text(IMPOSSIBLE)
    commands = (
        ("inspect", path),
        ("simulate", path, "-o", log, "--duration", "2"),
        ("identify", path, log),
        ("generate", path, "-o", tmp_path / "code", "--functions", "gravity_torque"),
        ("export", path, "--to", "mjcf", "-o", tmp_path / "exported"),
    )
    for words in commands:
        code, _, err = armwise(*map(str, words))
        assert code == 1, words
        assert "--allow-unphysical" in err, words
        code, _, err = armwise(*map(str, words), "--allow-unphysical")
        assert code == 0, (words, err)


def test_another_arm_of_a_command_may_be_unphysical(
    armwise: Any, tmp_path: Path
) -> None:
    path = tmp_path / "impossible.urdf"
    path.write_text(IMPOSSIBLE)
    words = ("control", "compare", str(path), "--model", str(path), "--duration", "1")
    assert "--allow-unphysical" in armwise(*words)[2]
    # The plant cannot go anywhere; both descriptions were read.
    _, _, err = armwise(*words, "--allow-unphysical")
    assert "--allow-unphysical" not in err


def test_a_log_of_fewer_joints_may_be_another_arms(
    armwise: Any, tmp_path: Path
) -> None:
    log = str(tmp_path / "ur5.csv")
    armwise("simulate", "ur5", "-o", log, "--duration", "3")
    _, _, err = armwise("inspect-log", log, "--arm", "panda")
    assert "Not in the log, and locked: joint_7" in err
    assert "if the log is not panda's" in err
    # Beside a log of all joints it is.
    other = str(tmp_path / "panda.csv")
    armwise("simulate", "panda", "-o", other, "--duration", "3")
    words = ("identify", "panda", other, "--validate", log, "-o", str(tmp_path / "out"))
    code, _, err = armwise(*words)
    assert (code, "ur5.csv lacks joint_7, which other logs have" in err) == (1, True)


def test_json_for_machines(armwise: Any) -> None:
    code, out, err = armwise("inspect", "panda", "--json", "--counts")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["dof"] == 7
    assert report["joints"][0]["limits"]["effort"] == 87
    assert report["links"][0]["mass"] == 4.970684
    assert report["warnings"] == []
    ours = report["counts"]["inverse_dynamics_without_drives"]
    assert ours["multiplications"] <= ours["sympybotics"]["multiplications"]
    assert ours["additions"] <= ours["sympybotics"]["additions"]
    base = report["base_parameters"]
    assert base["count"] == len(base["expressions"])


def test_unknown_limits_are_null(armwise: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_text(GOOD)
    code, out, _ = armwise("inspect", str(path), "--json")
    report = json.loads(out)
    assert code == 0
    assert report["joints"][0]["limits"]["upper"] is None
    assert "triangle" in report["warnings"][0]
    assert "triangle" in report["links"][0]["defect"]


@pytest.mark.parametrize(
    "text",
    ["", "<robot", GOOD.replace("0 0 1", "0 0 0"), GOOD.replace('"1"/>', '"-1"/>')],
)
def test_a_bad_file_is_one_line(text: str, armwise: Any, tmp_path: Path) -> None:
    path = tmp_path / "bad.urdf"
    path.write_text(text)
    code, out, err = armwise("inspect", str(path))
    assert (code, out) == (1, "")
    assert err.startswith("armwise: ")
    assert str(path) in err
    assert err.count("\n") == 1


def test_long_arms_are_shown_in_part(armwise: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.urdf"
    links = "".join(f'<link name="l{i}"/>' for i in range(60))
    joints = "".join(
        f'<joint name="j{i}" type="continuous"><parent link="l{i}"/>'
        f'<child link="l{i + 1}"/></joint>'
        for i in range(59)
    )
    path.write_text(f'<robot name="long">{links}{joints}</robot>')
    code, out, err = armwise("inspect", str(path), "--counts")
    assert code == 0
    assert "19 more" in out
    assert "l59" not in out
    assert "not worked out" in err


def test_wrong_use_is_two(armwise: Any) -> None:
    for words in (("inspect",), ("inspect", "panda", "--nonsense"), ("dance",)):
        code, _, err = armwise(*words)
        assert code == 2
        assert "Traceback" not in err


def test_unknown_arm_lists_the_known(armwise: Any) -> None:
    code, _, err = armwise("inspect", "pandas")
    assert code == 1
    assert "Did you mean 'panda'?" in err


@pytest.mark.parametrize(
    ("problem", "ends", "says"),
    [
        (KeyboardInterrupt(), 130, "Interrupted."),
        (PermissionError(13, "Not permitted", "x.csv"), 1, "x.csv: Not permitted"),
        (MemoryError("8 EiB"), 1, "Not enough memory. 8 EiB"),
        (ZeroDivisionError("oh"), 1, "A bug in Armwise: ZeroDivisionError: oh"),
    ],
)
def test_no_traceback_ever(
    problem: BaseException,
    ends: int,
    says: str,
    armwise: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr("armwise.arms.load_arm", fail)
    code, _, err = armwise("inspect", "panda")
    assert code == ends
    assert says in err
    assert "Traceback" not in err


def test_help_and_version(armwise: Any) -> None:
    assert "inspect" in armwise("--help")[1]
    assert armwise("--version")[1].startswith("armwise ")


def test_every_command_has_a_file_and_a_sentence(armwise: Any) -> None:
    for name in cli.COMMANDS:
        code, out, _ = armwise(name, "--help")
        assert code == 0
        assert len(out) > 200


def test_starting_up_loads_nothing_heavy() -> None:
    heavy = "numpy scipy polars mujoco plotly rich.table"
    script = (
        "import sys, armwise.cli.main;"
        f"print([m for m in {heavy.split()!r} if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
