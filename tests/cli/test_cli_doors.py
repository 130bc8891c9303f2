"""Commands that watch, follow, recognise and feed forward: files in, an answer out."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import armwise as aw
from armwise.cli.main import app
from armwise.loads import write_load_estimate
from tests.loads import rig


def call(words: str, status: int = 0):
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == status, (done.output, done.exception)
    return json.loads(done.stdout) if "--json" in words else done


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    path = tmp_path_factory.mktemp("watch") / "run.csv"
    call(f"simulate two_link_slotine --duration 24 -o {path}")
    return path


def test_a_sound_log_raises_no_alarm_and_a_jump_does(log, tmp_path):
    assert call(f"watch two_link_slotine {log} --json")["alarms"] == []
    table = pl.read_csv(log)
    jumped = pl.when(table["time"] > 18.0).then(pl.col("q_2") + 0.02)
    bad = tmp_path / "bad.csv"
    table.with_columns(jumped.otherwise(pl.col("q_2")).alias("q_2")).write_csv(bad)
    (alarm,) = call(f"watch two_link_slotine {bad} --json", status=1)["alarms"]
    assert (alarm["kind"], alarm["joint"]) == ("jump", "joint_2")
    assert alarm["onset"] == pytest.approx(18.0, abs=0.05)
    assert alarm["size"] == pytest.approx(0.02, rel=0.05)
    growing = f"watch two_link_slotine {bad} --follow --idle 0.2 --learning 12 --json"
    assert len(call(growing, status=1)["alarms"]) == 1


def test_a_load_is_followed_as_it_is_picked_up(tmp_path):
    none = rig.samples(rig.GRIPPER, duration=6.0)
    held = rig.samples(rig.BAR + rig.GRIPPER, duration=6.0)
    wrench = np.where((none.time < 3.0)[:, None], none.wrench, held.wrench)
    columns = {"time": none.time}
    columns |= {f"q_{j + 1}": none.q[:, j] for j in range(6)}
    names = ("fx", "fy", "fz", "tx", "ty", "tz")
    columns |= dict(zip(names, wrench.T, strict=True))
    pl.DataFrame(columns).write_csv(tmp_path / "pick.csv")
    words = f"follow-load puma600 {tmp_path / 'pick.csv'} --frame wrist --json"
    report = call(words)
    assert report["rows"][-1]["mass"] == pytest.approx(2.5, abs=0.1)
    (change,) = report["changes"]
    assert change["kind"] == "picked up"
    assert change["began"] == pytest.approx(3.0, abs=0.2)


def test_an_object_is_recognised_and_its_grasp_checked(tmp_path):
    load = aw.identify_load(rig.samples(rig.BRICK), rig.puma())
    write_load_estimate(load, tmp_path / "load.json")
    entry = 'name = "{}"\nmass = {}\nixx = 0.004\niyy = 0.006\nizz = 0.009\n'
    (tmp_path / "objects.toml").write_text(
        "[[objects]]\n" + entry.format("brick", 1.2)
        + "position = [0.02, -0.01, 0.06]\n[[objects]]\n" + entry.format("stone", 2.0)
    )  # fmt: skip
    words = f"recognise {tmp_path / 'load.json'} {tmp_path / 'objects.toml'} --json"
    report = call(f"{words} --grasp brick")
    assert report["recognition"]["matches"][0]["name"] == "brick"
    assert report["grasp"]["is_as_expected"]
    slipped = call(f"{words} --grasp brick --position-tolerance 0.00001", status=1)
    assert not slipped["grasp"]["is_as_expected"]
    assert call(f"{words} --grasp stone", status=1)["grasp"]["checks"][1][
        "verdict"
    ] == ("beyond")
    call(f"{words} --grasp cup".replace("--json", ""), status=2)


def test_a_load_motion_determines_what_is_not_known(tmp_path):
    load = aw.identify_load(rig.samples(rig.BRICK, noise=200.0), rig.puma())
    write_load_estimate(load, tmp_path / "load.json")
    words = f"excite-load puma600 --duration 6 -o {tmp_path / 'p.csv'} --json"
    alone = call(words)
    more = call(f"{words} --known {tmp_path / 'load.json'}")
    for name, std in more["std"].items():
        assert std <= more["known"][name] * 1.000001, name
    assert max(more["std"].values()) <= max(alone["std"].values()) * 1.001
    aw.motions.check_limits(
        aw.motions.read_motion(tmp_path / "p.csv", rig.puma()), rig.puma()
    )
    words = words.replace("--json", "--frame link_5")
    other = CliRunner().invoke(app, f"{words} --known {tmp_path / 'load.json'}".split())
    assert "frame" in str(other.exception)


def test_torques_of_a_plan_have_an_interval(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call("simulate ddarm --duration 4 -o run.csv")
    call("identify ddarm run.csv --friction linear -o out")
    arm = aw.load_arm("ddarm")
    motion = aw.motions.random_motion(arm, 3, 4.0)
    aw.motions.write_motion(motion, "plan.csv", 100.0, arm.coordinate_names)
    report = call("feedforward out/estimate.json plan.csv -o effort.json --json")
    points = json.loads((tmp_path / "effort.json").read_text())["points"]
    estimate = aw.read_estimate("out/estimate.json")
    expected = aw.Dynamics(estimate.arm).inverse_dynamics(*motion.sample(1.0))
    np.testing.assert_allclose(points[100]["effort"], expected, atol=1e-5)
    assert np.all(np.array(report["std"]) >= estimate.torque_std)
    # The truth lies within a few of its own standard deviations.
    call("feedforward out/estimate.json plan.csv -o effort.csv")
    table = pl.read_csv(tmp_path / "effort.csv")
    true = aw.Dynamics(arm).inverse_dynamics(*motion.sample(table["time"].to_numpy()))
    for j, name in enumerate(arm.coordinate_names):
        off = (table[f"tau_{name}"] - true[:, j]) / table[f"tau_std_{name}"]
        assert np.abs(off.to_numpy()).max() < 5.0
    assert call("feedforward ddarm plan.csv --json")["std"] is None
