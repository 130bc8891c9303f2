"""Every example runs, from a folder of its own, is short, and prints what is true."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("[0-9][0-9]_*.py"))
NUMBER = r"-?\d+\.?\d*(?:e[-+]\d+)?"


def test_they_are_numbered_and_short():
    assert [int(path.name[:2]) for path in EXAMPLES] == list(range(1, 15))
    for path in EXAMPLES:
        assert len(path.read_text(encoding="utf-8").splitlines()) < 60, path.name


@pytest.fixture
def printed(request, tmp_path, monkeypatch, capsys) -> str:
    """What an example prints, started in an empty folder."""
    (path,) = (path for path in EXAMPLES if path.name.startswith(request.param))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), str(tmp_path / "out")])
    runpy.run_path(str(path), run_name="__main__")
    return capsys.readouterr().out


def example(number: int):
    return pytest.mark.parametrize("printed", [f"{number:02}_"], indirect=True)


def numbers(text: str, after: str) -> list[float]:
    """All numbers of the lines in which some words stand, after those words."""
    lines = re.findall(f"(?:{after})(.*)", text, re.M)
    assert lines, f"{after!r} is not in:\n{text}"
    return [float(number) for line in lines for number in re.findall(NUMBER, line)]


@example(1)
def test_an_arm_survives_being_written_and_read(printed):
    assert numbers(printed, "panda:") == [7, 98]
    assert numbers(printed, "Motion can reveal")[0] == 69
    assert numbers(printed, "torque differs by")[0] < 1e-12
    assert len(re.findall(r"\d kg$", printed, re.M)) == 7


@example(2)
def test_the_equations_agree(printed):
    assert max(numbers(printed, r"is the same to|returns q̈ to")) < 1e-10
    assert printed.count("is the same to") == 2


@example(3)
def test_limits_are_checked(printed):
    speed = 15 / 8 * 250 / 1.3  # the peak of a quintic over 250° in 1.3 s
    assert numbers(printed, "Peak speed")[0] == pytest.approx(speed, abs=1)
    assert "It stays within" in printed
    assert re.search(r"In 0\.8 s: Joint 'joint_2' .* beyond its limit", printed)
    assert numbers(printed, "and back:") == [pytest.approx(1.3 + 0.5 + 1.3)]


@example(4)
def test_a_designed_motion_beats_a_guess(printed):
    (designed,) = numbers(printed, "Designed: condition number")
    (guess,) = numbers(printed, "by hand: condition number")
    assert designed < guess / 10
    assert numbers(printed, "Base parameters it determines") == [25]
    used = numbers(printed, "Fraction of the speed limits")
    assert 0.9 < max(used) <= 0.95 + 1e-9


@example(5)
def test_preparing_leaves_less_than_the_noise(printed):
    rows, samples = numbers(printed, "^(?=5001)")
    assert rows == 5001
    assert 50 < samples < rows
    cutoff, lag_ms = numbers(printed, "Low-pass at")
    assert 1.0 < cutoff < 50.0
    assert abs(lag_ms) < 0.5
    remainder = numbers(printed, r"of the true model \[N m\]")
    assert np.all(np.array(remainder) < np.array([2.0, 1.0, 0.5]) / 4)


@example(6)
def test_the_better_model_tracks_better(printed):
    errors = np.reshape(numbers(printed, "peak errors"), (4, 3))
    pd, _, feedforward, computed_torque = errors
    assert np.all(feedforward < pd / 3)
    assert np.all(computed_torque < pd / 3)


@example(7)
def test_the_nail_holds_and_energy_balances(printed):
    before, after = numbers(printed, "The tip starts")
    assert after < 1e-3 < before
    assert numbers(printed, "balance to")[0] < 1e-3


@example(8)
def test_the_truth_is_within_the_uncertainty(printed):
    row = rf"^ +({NUMBER}) ± ({NUMBER})  \(true +({NUMBER})\)"
    value, std, true = np.array(re.findall(row, printed, re.M), float).T
    assert value.size == numbers(printed, "^(?=.*combinations)")[0] > 20
    assert np.sqrt(np.mean(((value - true) / std) ** 2)) < 2
    assert max(numbers(printed, "data left out:")) < 0.05


@example(9)
def test_fewer_parameters_explain_as_much(printed):
    counts = [int(x) for x in re.findall(r"%: +(\d+) of 58", printed)]
    assert counts == sorted(counts, reverse=True)
    assert counts[1] < 58 / 2
    assert max(numbers(printed, " 1.0 %.*torque")) < 2.0
    assert numbers(printed, "equals the model to")[0] < 1e-10


@example(10)
def test_practice_helps_at_every_attempt(printed):
    errors = [numbers(printed, f"attempt {k}: velocity error") for k in (1, 2, 3, 4)]
    ratios = np.divide(errors[1:], errors[:-1])
    assert ratios.max() < 0.5


@example(11)
def test_the_dragging_bearing_is_the_one_that_drags(printed):
    assert numbers(printed, "^(?=16 robots)") == [16, 128016]
    flagged = re.findall(r"^(R\d\d): (.*)", printed, re.M)
    assert [robot for robot, _ in flagged] == ["R05"]
    assert flagged[0][1].startswith("dragging bearing at joint_2")


@example(12)
def test_compiled_code_controls_the_arm(printed):
    # It runs in real time: on a machine with other work its background task comes late.
    assert numbers(printed, "compiled C:")[0] < 0.5 * numbers(printed, "PD alone:")[0]
    assert numbers(printed, "the program counted")[0] == 4000


@example(13)
def test_a_robot_behind_a_socket_is_interrupted_and_restarted(printed):
    cut, followed, limited = printed.splitlines()
    assert "does not answer" in cut
    assert 200 <= numbers(cut, "or look at the command.")[0] <= 202
    assert numbers(followed, "Followed to")[0] < 1.0
    assert "beyond its limit 5; it was not sent" in limited


@example(14)
def test_a_lattice_of_ones_own_hangs_on_a_lever(printed):
    assert "lattice: it is Python" in printed
    assert numbers(printed, "off by")[0] < 1e-7
    assert numbers(printed, "store up to")[0] > 0.01
    assert numbers(printed, "balance to")[0] < 1e-6
