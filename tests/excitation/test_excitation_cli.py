"""armwise excite: a file to follow, JSON for machines, one line for mistakes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from armwise.arms import load_arm
from armwise.cli.main import app
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.excitation import design_excitation
from armwise.identification import (
    WeightedLeastSquares,
    identify,
    write_estimate,
)
from armwise.recordings import Samples

RUN = ("excite", "two_link_uno", "--duration", "2")


def invoke(*arguments):
    return CliRunner().invoke(app, [*RUN, *arguments])


def test_writes_a_motion_and_says_what_it_is(tmp_path):
    path = tmp_path / "motion.csv"
    result = invoke("-o", str(path), "--json", "--floor", "none")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["condition_number"] < 20.0
    assert max(report["verified"]["velocity"]) <= 0.95
    assert report["file"] == str(path)
    header, *rows = path.read_text().splitlines()
    assert header.startswith("time,q_joint_1,q_joint_2,qd_joint_1")
    assert len(rows) == 201


def test_for_friction_every_load_is_passed_at_every_speed(tmp_path):
    path = tmp_path / "motion.csv"
    result = invoke("-o", str(path), "--json", "--friction", "--duration", "14")
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert report["duration"] == pytest.approx(14.0)
    assert report["speeds"] == [1.0, 0.5, 0.25]
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    time, q, qd = rows[:, 0], rows[:, 1:3], rows[:, 3:5]
    # Two seconds, then four, then eight: the same path, half and a quarter as fast.
    first, second, third = (
        np.stack([np.interp(start + f * np.linspace(0, 2, 9), time, x) for x in q.T])
        for start, f in ((0.0, 1.0), (2.0, 2.0), (6.0, 4.0))
    )
    np.testing.assert_allclose(first, second, atol=2e-3)
    np.testing.assert_allclose(first, third, atol=2e-3)
    tops = [np.abs(qd[(time >= a) & (time <= b)]).max() for a, b in ((0, 2), (6, 14))]
    assert tops[1] == pytest.approx(0.25 * tops[0], rel=0.02)
    with pytest.raises(ArgumentError, match="from 0 to 1"):
        design_excitation(load_arm("two_link_uno"), 2.0, budget_s=0.5).at_speeds([2.0])


def test_shows_a_table():
    result = invoke("--no-keep-out", "--seed", "3")
    assert result.exit_code == 0, result.output
    assert "condition number" in result.output
    assert "joint_2" in result.output
    assert "Closest approach" not in result.output


def test_improves_what_an_estimate_leaves_open(tmp_path):
    arm, rng = load_arm("two_link_uno"), np.random.default_rng(0)
    t = np.arange(0.0, 4.0, 0.01)
    states = (0.3 * rng.normal(size=(t.size, 2)) for _ in range(3))
    q, qd, qdd = states
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd) + 0.01 * rng.normal(size=q.shape)
    estimate = identify(
        arm,
        Samples(time=t, q=q, qd=qd, qdd=qdd, tau=tau),
        WeightedLeastSquares(),
        friction="linear",
    )
    path = tmp_path / "estimate.json"
    write_estimate(estimate, path)
    before, after = invoke("--json"), invoke("--json", "--known", str(path))
    assert after.exit_code == 0, after.output
    told = [json.loads(result.output)["log_det"] for result in (before, after)]
    assert told[1] > told[0] + 3.0  # what was known counts


@pytest.mark.parametrize("bad", [("--floor", "deep"), ("--box", "1,2,3")])
def test_refuses_what_it_cannot_read(bad):
    result = invoke(*bad)
    assert result.exit_code == 2
    assert bad[1] in result.output
