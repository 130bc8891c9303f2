"""Servos in simulators: their gaps, their exports and what those lose."""

from __future__ import annotations

import ast
import json
from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.errors import ArmwiseError
from armwise.recordings import ERROR_LEVELS
from armwise.servos import ServoScatter, read_servo, write_servo
from armwise.servos.identify import _with_allowed_spread
from armwise.simulators import certificate, measure_gap, servo_export
from tests.servos import rig

mujoco = pytest.importorskip("mujoco")


@pytest.fixture(scope="module")
def servo(tmp_path_factory):
    robot = rig.arm(tmp_path_factory.mktemp("servo"))
    return rig.truth(robot, delay=0.03, slew=2.0)


@pytest.fixture(scope="module")
def log(servo):
    return rig.recording(servo, 1)


def test_true_servos_have_no_gap_and_a_delay_line_has(servo, log):
    gap = measure_gap(servo, [log])
    assert gap.driven_by == "commands"
    assert np.all(gap.position_error < 1e-3)
    assert gap.described.position_error.mean() > 5 * gap.position_error.mean()
    theirs = measure_gap(servo, [log], simulator="mujoco")
    assert np.all(theirs.position_error < 2e-3)
    assert "delay line" in certificate(gap, "servo.json", ["a.csv"])


def test_what_mjcf_loses_of_a_servo_is_what_its_motion_loses(servo, log, tmp_path):
    path = tmp_path / "servo.xml"
    result = aw.export(servo, path, to="mjcf", recordings=[log])
    effects = {loss.effect: loss.cost for loss in result.losses}
    assert {"delay", "slew limit"} <= set(effects)
    assert result.unit == "rad"
    # Measured in the exported file itself, driven by the commands of the log.
    measured = measure_gap(path, [log])
    assert measured.position_error == pytest.approx(result.cost, rel=0.2)
    # mjlab and Isaac Lab have words for delays.
    text = tmp_path / "servo.py"
    other = aw.export(servo, text, to="mjlab", recordings=[log])
    assert "delay" not in {loss.effect for loss in other.losses}
    calls = [
        {word.arg: ast.literal_eval(word.value) for word in node.keywords}
        for node in ast.walk(ast.parse(text.read_text()))
        if isinstance(node, ast.Call)
    ]
    assert [c["delay_max_lag"] for c in calls] == [30] * servo.arm.dof
    assert [c["stiffness"] for c in calls] == servo.values["stiffness"].tolist()
    aw.export(servo, tmp_path / "isaac.py", to="isaaclab")
    assert "DelayedPDActuatorCfg" in (tmp_path / "isaac.py").read_text()


@pytest.fixture(scope="module")
def rough(servo):
    """Servos with what simulators lack, and fitted again for these without it."""
    fitted = {"stiffness": 9.0, "damping": 0.5, "coulomb": 0.1, "derivative": 0.2}
    plain = rig.truth(servo.arm, delay=-0.01, saturation=3.0, **fitted).values
    further = {"static": 0.05, "stribeck_shape": 1.0, "driving": 0.2}
    whole = rig.truth(servo.arm, delay=-0.012, derivative=0.1, **further)
    return replace(whole, plain=plain)


def test_simulators_get_the_servos_that_were_fitted_for_them(rough, tmp_path):
    log = rig.recording(rough, 3)
    path = tmp_path / "servo.xml"
    result = aw.export(rough, path, to="mjcf", recordings=[log])
    effects = {loss.effect: loss.cost for loss in result.losses}
    assert set(effects) == {
        "delay",
        "derivative of the set-point",
        "acceleration limit",
        "load friction, Stribeck friction",
    }
    measured = measure_gap(path, [log])
    assert measured.position_error == pytest.approx(result.cost, rel=0.1)
    # Gains and friction of the one fit, and not some of the other.
    text = tmp_path / "isaac.py"
    other = aw.export(rough, text, to="isaaclab", recordings=[log])
    assert "delay below zero" in {loss.effect for loss in other.losses}
    calls = [
        n for n in ast.walk(ast.parse(text.read_text())) if isinstance(n, ast.Call)
    ]
    for name, kind in (("stiffness", "stiffness"), ("damping", "derivative")):
        own = [word.value for n in calls for word in n.keywords if word.arg == name]
        values = [ast.literal_eval(value) for value in own]
        assert values == pytest.approx(rough.plain[kind].tolist())
    assert not aw.export(rough, tmp_path / "s.json", to="json").losses


def test_a_file_reads_joints_from_where_the_description_does(servo, tmp_path):
    moved = rig.truth(servo.arm, zero=0.03)
    log = rig.recording(moved, 3)
    path = tmp_path / "servo.xml"
    result = aw.export(moved, path, to="mjcf", recordings=[log])
    assert {loss.effect: loss.cost for loss in result.losses}["joint zero"] == (
        pytest.approx(0.03)
    )
    measured = measure_gap(path, [log]).position_error
    assert measured == pytest.approx(result.cost, rel=0.1)


def test_servos_move_the_arm_with_its_load(servo, run):
    values = servo.arm.parameters.copy()
    values[servo.arm.layout.links] *= 3.0
    heavy = servo.arm.with_parameters(values)
    aw.save_arm(heavy, "heavy.urdf")
    write_servo(replace(servo, gains=(1.0, 2.0)), "bench.json")
    aw.write_recording(rig.recording(servo.on(heavy), 1), "log.csv")
    errors = []
    for words in ("", " --on heavy.urdf"):
        line = f"armwise gap bench.json log.csv --register 1 --json{words}"
        code, out, err = run(line)
        assert code == 0, err
        assert ("--on names the arm with the load" in err) == (not words)
        errors.append(max(json.loads(out)["gap"]["mrad"]))
    assert errors[0] > 10.0 > 1.0 > errors[1]
    code, _, err = run("armwise gap bench.json log.csv --register 1 --on panda")
    assert code == 1, err


def test_an_arm_that_runs_away_has_no_figure(rough, log, tmp_path, monkeypatch):
    monkeypatch.setattr(servo_export, "_RUN_AWAY", 1e-3)
    result = aw.export(rough, tmp_path / "s.xml", to="mjcf", recordings=[log])
    assert np.all(np.isposinf(result.cost))
    assert any("the arm runs away under the logged commands" in n for n in result.notes)


def test_a_template_with_an_actuator_is_refused(servo, tmp_path):
    aw.export(servo, tmp_path / "own.xml", to="mjcf")
    with pytest.raises(ArmwiseError, match="had an actuator, and two would fight"):
        aw.export(servo, tmp_path / "x.xml", to="mjcf", template=tmp_path / "own.xml")
    with pytest.raises(ArmwiseError, match="how its parameters scatter"):
        aw.export(servo, tmp_path / "x.xml", to="mjcf", draws=3)
    assert not (tmp_path / "x.xml").exists()


def scattering(servo):
    """The same, of which stiffness and friction are not known well, together."""
    covariance = np.array([[0.04, 0.02], [0.02, 0.09]])
    errors = np.full(len(ERROR_LEVELS), 1e-3)
    one = ServoScatter(("stiffness", "coulomb"), covariance, errors, 1.2)
    return replace(servo, scatter=(one,) * servo.arm.dof)


def test_draws_scatter_as_what_is_known(servo):
    drawn = scattering(servo).sample(4000, seed=3)
    logs = np.log([drawn["stiffness"][:, 1], drawn["coulomb"][:, 1]])
    np.testing.assert_allclose(
        np.cov(logs), [[0.04, 0.02], [0.02, 0.09]], rtol=0.1, atol=1e-9
    )
    between = np.corrcoef(drawn["stiffness"].T)[0, 1]
    assert abs(between) < 0.05
    np.testing.assert_array_equal(
        drawn["delay"], np.tile(servo.values["delay"], (4000, 1))
    )


def test_draws_of_servos_become_files_and_ranges(servo, tmp_path):
    vague = scattering(servo)
    result = aw.export(vague, tmp_path / "arm.xml", to="mjcf", draws=3)
    assert len(result.files) == 4
    gains = [
        mujoco.MjModel.from_xml_path(str(path)).actuator_gainprm[0, 0]
        for path in result.files
    ]
    assert gains[0] == pytest.approx(servo.values["stiffness"][0], rel=1e-6)
    drawn = vague.sample(3)["stiffness"][:, 0]
    np.testing.assert_allclose(gains[1:], drawn, rtol=1e-6)
    joint = servo.arm.joints[0].name
    for to, name in (("isaaclab", "isaac.py"), ("mjlab", "lab.py")):
        aw.export(vague, tmp_path / name, to=to, draws=400)
        tree = ast.parse((tmp_path / name).read_text())
        ranges = next(
            ast.literal_eval(n.value)
            for n in tree.body
            if isinstance(n, ast.Assign) and n.targets[0].id == "RANDOMIZATION"
        )
        own = ranges[f"{joint}.stiffness"]
        assert own["std"] / own["mean"] == pytest.approx(0.2, rel=0.2)
        assert f"{joint}.delay" not in ranges  # known, in these servos
    aw.export(vague, tmp_path / "arm.json", to="json", draws=50)
    content = json.loads((tmp_path / "arm.json").read_text())
    assert content["randomisation"]["draws"] == 50
    again = read_servo(tmp_path / "arm.json")
    np.testing.assert_allclose(again.scatter[0].covariance, vague.scatter[0].covariance)


def test_a_band_is_as_wide_as_its_draws_and_errors(servo, log):
    sure, vague = (
        replace(servo, scatter=tuple(replace(s, covariance=k * s.covariance)
                                     for s in scattering(servo).scatter))
        for k in (1e-12, 1.0)
    )  # fmt: skip
    narrow, wide = sure.band(log), vague.band(log)
    # Between errors of 1 mrad that the fit left and 1.2 on motions left out.
    np.testing.assert_allclose(narrow.width, 2 * np.sqrt(1.2) * 1e-3, rtol=1e-3)
    assert np.all(wide.width > 1.3 * narrow.width)
    assert np.all(narrow.holds(servo.predict(log)) == 1.0)
    with pytest.raises(ArmwiseError, match="between 0 and 1"):
        sure.band(log, 1.0)


def test_draws_that_fitted_motions_refute_count_in_part(servo, log):
    """Draws that move a fitted motion by far more than the fit was off by."""
    vague, motion = scattering(servo), servo.motion(log)
    known = _with_allowed_spread(vague, [motion])
    (spread,) = vague.spread([motion], 0.9)
    allowed = np.array([own.allowed for own in known.scatter])
    assert np.all(allowed < 1.0)
    np.testing.assert_allclose(allowed * np.quantile(spread, 0.9, axis=0), 1e-3)
    assert np.all(known.band(log).width < vague.band(log).width)
    # Errors as large as the spread refute nothing.
    large = tuple(replace(s, errors=1e3 * s.errors) for s in vague.scatter)
    content = _with_allowed_spread(replace(vague, scatter=large), [motion])
    assert [own.allowed for own in content.scatter] == [1.0] * servo.arm.dof


def test_a_scatter_that_cannot_be_is_refused(servo, tmp_path):
    path = tmp_path / "servo.json"
    write_servo(scattering(servo), path)
    for change, said in (
        ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "cannot be"),
        ({"covariance": [[1.0, None], [None, 1.0]]}, "not a file of servos"),
        ({"names": ["stiffness", "spirit"]}, "do not have"),
        ({"left_out_ratio": 0.5}, "finite numbers"),
        ({"allowed": 1.5}, "finite numbers"),
        ({"errors": [1.0]}, "errors per joint"),
    ):
        content = json.loads(path.read_text())
        content["scatter"][0] |= change
        bad = tmp_path / "bad.json"
        bad.write_text(json.dumps(content))
        with pytest.raises(ArmwiseError, match=said):
            read_servo(bad)


def test_the_commands_take_a_file_of_servos(servo, log, tmp_path, run):
    write_servo(servo, "servo.json")
    aw.write_recording(log, "log.csv")
    code, out, err = run("armwise gap servo.json log.csv -o gap.html --json")
    assert code == 0, err
    gap = json.loads(out)["gap"]
    assert set(gap["validation"]["motions"]) == {"log.csv"}
    assert len(gap["validation"]["mrad"]) == servo.arm.dof
    code, out, err = run("armwise gap servo.json log.csv --at-most-mrad 0.000001")
    assert code == 1
    assert "more than the 1e-06 that were allowed" in err
    line = "armwise export servo.json --to mjcf -o a.xml --log log.csv --json"
    code, out, err = run(line)
    assert code == 0, err
    assert json.loads(out)["unit"] == "rad"
