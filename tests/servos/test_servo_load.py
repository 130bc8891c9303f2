"""Loads found from command and position, their truth known."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t
from typer.testing import CliRunner

import armwise as aw
from armwise.arms import InertialParameters, load_arm
from armwise.cli.identify_servo import _Loads
from armwise.cli.main import app
from armwise.dynamics import mechanism_of
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.servos import ServoLoad, identify_servo_load, read_servo, write_servo
from armwise.servos.load import (
    _moving,
    known_load_errors,
    load_trend,
    loads_found_again,
    misdescribed_loads,
    odd_loads,
)
from armwise.servos.model import half_step_inertia
from armwise.servos.rollout import CORRELATION_S, ServoMotion
from armwise.servos.zeros import mounting_zeros
from tests.servos import rig


def heavier(arm, factor, link=-1):
    """Return the arm with one link of more mass, inertia and all."""
    links = list(arm.links)
    vector = factor * links[link].inertia.vector
    links[link] = replace(links[link], inertia=InertialParameters(vector))
    return replace(arm, links=tuple(links))


def moments(arm, link=-1):
    vector = arm.links[link].inertia.vector
    return 9.81 * np.hypot(vector[1], vector[3]), vector[7]


@pytest.fixture(scope="module")
def pendulum(tmp_path_factory):
    return rig.arm(tmp_path_factory.mktemp("load"), joints=1)


@pytest.fixture(scope="module")
def servo(pendulum):
    """Servos whose friction grows with what they carry."""
    changes = {"driving": 0.15, "back_driven": 0.1, "load_static": 0.1}
    true = rig.truth(pendulum, stiffness=0.4, armature=0.002, **changes)
    return replace(true, load_error=(0.01, 0.03))


@pytest.mark.parametrize("factor", [0.6, 2.5])
def test_a_load_is_found(pendulum, servo, factor):
    held = heavier(pendulum, factor)
    recordings = [rig.recording(servo, k, arm=held, gain=8.0) for k in range(3)]
    load = identify_servo_load(servo, recordings, [8.0] * 3)
    moment, inertia = moments(held)
    assert load.gravity_moment == pytest.approx(moment, rel=0.01)
    assert load.inertia == pytest.approx(inertia, rel=0.1)
    assert abs(load.gravity_moment - moment) < 2.0 * load.gravity_moment_std
    assert abs(load.inertia - inertia) < 2.5 * load.inertia_std
    # A pendulum swings by its moments; its mass alone shows nowhere.
    assert np.isnan(load.mass)
    assert load.error < 1e-3 < load.error_without
    assert "Its mass alone does not show" in load.statement()


def test_a_load_is_found_on_a_rod_that_weighs_next_to_nothing(pendulum, servo):
    """A stranger's bench: the load was thirty times its rod, and refused."""
    bare = replace(servo, arm=heavier(pendulum, 0.03))
    recordings = [rig.recording(servo, k, arm=pendulum, gain=8.0) for k in range(3)]
    load = identify_servo_load(bare, recordings, [8.0] * 3)
    moment, inertia = moments(pendulum)
    assert load.gravity_moment == pytest.approx(moment, rel=0.01)
    assert load.inertia == pytest.approx(inertia, rel=0.1)


def test_a_load_is_found_where_friction_and_zero_have_moved(pendulum, servo):
    """As they do from one mounting to the next."""
    moved = {k: 1.2 * servo.values[k] for k in ("coulomb", "driving", "back_driven")}
    moved |= {"zero": servo.values["zero"] + 0.02}
    other = replace(servo, values=dict(servo.values) | moved)
    held = heavier(pendulum, 1.5)
    recordings = [rig.recording(other, k, arm=held, gain=8.0) for k in range(3)]
    load = identify_servo_load(servo, recordings, [8.0] * 3)
    moment, inertia = moments(held)
    assert load.gravity_moment == pytest.approx(moment, rel=0.01)
    assert load.inertia == pytest.approx(inertia, rel=0.1)


def test_a_mass_shows_where_two_joints_carry_it(tmp_path):
    arm = rig.arm(tmp_path)
    true = replace(rig.truth(arm), load_error=(0.01, 0.03))
    held = heavier(arm, 2.0)
    recordings = [rig.recording(true, k, arm=held) for k in range(3)]
    load = identify_servo_load(true, recordings, joint="j1")
    assert load.mass == pytest.approx(0.12, rel=0.1)
    assert load.gravity_moment == pytest.approx(moments(held)[0], rel=0.02)
    with pytest.raises(ArgumentError, match="It has: j0, j1"):
        identify_servo_load(true, recordings, joint="hand")


FACTORS = (0.7, 1.0, 1.5, 2.0)


@pytest.fixture(scope="module")
def known(pendulum, servo):
    """Motions of one pendulum with four loads, and what they are."""
    arms = [heavier(pendulum, f) for f in FACTORS for _ in range(2)]
    motions = [
        servo.motion(rig.recording(servo, k, arm=arm, gain=8.0), arm, 8.0)
        for k, arm in enumerate(arms)
    ]
    return motions, arms


def test_known_loads_tell_how_far_unknown_ones_are_off(servo, known):
    motions, arms = known
    found, faint = loads_found_again(servo, motions, arms)
    assert not faint
    right = known_load_errors(found)
    assert right is not None
    # Of so many loads, Student's 95 % are that much wider than a normal's.
    few = t.ppf(0.975, len(FACTORS)) / 1.96
    # Two recordings each: friction hides some percent of a light load.
    assert right[0] < 0.04 * few
    assert loads_found_again(servo, motions[:4], arms[:4]) is None
    # A load that is off by a tenth where the others are not is a tenth of doubt.
    odd = found.copy()
    odd[1, 1] *= 1.3
    assert known_load_errors(odd)[0] > 2.0 * right[0]


def test_what_known_loads_are_off_by_is_taken_from_unknown_ones(pendulum, servo, known):
    """A stiffness that is a tenth too high makes all loads a tenth too heavy."""
    stiffer = dict(servo.values) | {"stiffness": 1.1 * servo.values["stiffness"]}
    wrong = replace(servo, values=stiffer)
    held = heavier(pendulum, 1.2)
    recordings = [rig.recording(servo, 9 + k, arm=held, gain=8.0) for k in range(3)]
    moment, _ = moments(held)
    bare = identify_servo_load(wrong, recordings, [8.0] * 3)
    assert bare.gravity_moment > 1.05 * moment
    found, _ = loads_found_again(wrong, *known)
    taught = replace(wrong, known_loads=found, load_error=known_load_errors(found))
    load = identify_servo_load(taught, recordings, [8.0] * 3)
    assert load.gravity_moment == pytest.approx(moment, rel=0.02)
    assert abs(load.gravity_moment - moment) < 2.0 * load.gravity_moment_std


def test_loads_that_were_swapped_are_named(servo, known):
    motions, arms = known
    others = [*arms[6:], *arms[2:6], *arms[:2]]
    right, wrong = (
        misdescribed_loads(
            loads_found_again(
                servo,
                [
                    replace(m, bodies=mechanism_of(arm).grouped(arm.parameters))
                    for m, arm in zip(motions, described, strict=True)
                ],
                described,
            )[0]
        )
        for described in (arms, others)
    )
    assert right == []
    assert len(wrong) == 2
    assert "name each log's own arm" in wrong[0]


def test_a_load_that_does_not_show_is_left_out(pendulum, servo, known):
    """A bare rod, which friction holds wherever it is, ends no fit."""
    bare = heavier(pendulum, 1e-5)
    motions, arms = known
    light = servo.motion(rig.recording(servo, 8, arm=bare, gain=8.0), bare, 8.0)
    still = replace(light, goals=0.0 * light.goals, q=0.0 * light.q)
    found, faint = loads_found_again(servo, [*motions, still], [*arms, bare])
    assert len(found) == len(FACTORS)
    assert faint == [pytest.approx(moments(bare)[0])]


def test_a_load_some_percent_off_is_named():
    moment = np.array([0.5, 1.0, 1.5, 2.0])
    off = np.array([1.01, 0.92, 1.0, 0.99])
    table = np.column_stack([np.ones(4), off * moment, moment, moment, moment])
    (said,) = odd_loads(table)
    assert said.startswith("The load described as 1 N m comes out as 0.92 of")
    table[1, 1] = 1.02
    assert odd_loads(table) == []
    # By a factor it is another load, and said to be.
    table[1, 1] = 3.0
    assert odd_loads(table) == []
    assert len(misdescribed_loads(table)) == 1


def test_trends_of_known_loads_end_at_their_edge():
    gains, moment = np.array([4.0, 8.0, 16.0]), np.array([1.0, 2.0, 4.0])
    # Twice the moment, a tenth more off.
    found = np.column_stack([gains, moment, moment, moment / (1.1 * moment**0.1375)])
    found = np.column_stack([found, moment])
    (inside, edge, beyond), far = load_trend(
        found, np.array([[8.0, 2.0, 2.0], [16.0, 4.0, 4.0], [64.0, 40.0, 40.0]])
    )
    expected = np.log(found[1, 1] / found[1, 3])
    # Three loads that are a fifth off are held somewhat nearer to none.
    assert 0.8 * expected < inside[0] < expected
    assert beyond == pytest.approx(edge)
    assert far == pytest.approx([0.0, 0.0, np.hypot(np.log(4.0), np.log(10.0))])
    assert inside[1] == pytest.approx(0.0, abs=1e-9)


def test_a_rest_counts_once():
    time = np.arange(0.0, 4.0, 0.02)
    q = np.where(time < 2.0, 0.0, time - 2.0)[:, None]
    motion = ServoMotion(
        "log", time, q, q, np.ones(len(time)), np.zeros(3), 1.0, q == q,
        np.zeros(1), np.full(1, 1e-3),
    )  # fmt: skip
    parts = _moving(motion)
    rests = time < 2.0
    assert parts[rests].sum() * 0.02 == pytest.approx(CORRELATION_S, rel=0.02)
    assert parts[~rests][2:].min() == 1.0


def test_bearings_carry_the_load_that_is_sought(pendulum, servo):
    """Friction of bearings is that of the load, which is five times the rod's."""
    worn = replace(servo, values=dict(servo.values) | {"bearing": np.array([0.01])})
    held = heavier(pendulum, 5.0)
    recordings = [rig.recording(worn, k, arm=held, gain=16.0) for k in range(3)]
    load = identify_servo_load(worn, recordings, [16.0] * 3)
    moment, inertia = moments(held)
    assert load.gravity_moment == pytest.approx(moment, rel=0.01)
    assert load.inertia == pytest.approx(inertia, rel=0.1)


def test_friction_of_bearings_is_dry_friction_by_the_weight(pendulum, servo):
    held = heavier(pendulum, 5.0)
    moment, inertia = moments(held)
    weight = moment**2 / (9.81 * inertia)
    worn, rubbing = (
        replace(servo, values=dict(servo.values) | changes)
        for changes in (
            {"bearing": np.array([0.01])},
            {"coulomb": servo.values["coulomb"] + 0.01 * weight},
        )
    )
    one, other, bare = (
        rig.recording(s, 3, arm=held, gain=8.0, is_quantised=False)["q_1"].values
        for s in (worn, rubbing, servo)
    )
    assert one == pytest.approx(other, abs=1e-9)
    assert np.abs(one - bare).max() > 1e-3


def test_a_load_that_is_put_on_askew_has_a_zero_of_its_own(pendulum, servo, tmp_path):
    zeros = (-0.02, 0.0, 0.03)
    arms = [heavier(pendulum, f) for f in (0.7, 1.0, 2.0)]
    groups = []
    for arm, zero in zip(arms, zeros, strict=True):
        askew = dict(servo.values) | {"zero": servo.values["zero"] + zero}
        log = rig.recording(replace(servo, values=askew), 5, arm=arm, gain=8.0)
        groups.append([servo.motion(log, arm, 8.0)])
    values = {name: float(x[0]) for name, x in servo.values.items()}
    values["armature"] -= float(half_step_inertia(servo.values["damping"])[0])
    found = mounting_zeros(servo.roller, groups, values)
    # Where a light load sticks tells little of its zero.
    assert found == pytest.approx(zeros, abs=5e-3)
    loads = [arm.links[-1].inertia.vector for arm in arms]
    taught = replace(servo, mountings=tuple(zip(loads, zeros, strict=True)))
    write_servo(taught, tmp_path / "servo.json")
    again = read_servo(tmp_path / "servo.json")
    log = rig.recording(taught, 5, arm=arms[2], gain=8.0)
    askew = dict(servo.values) | {"zero": servo.values["zero"] + zeros[2]}
    expected = rig.recording(replace(servo, values=askew), 5, arm=arms[2], gain=8.0)
    assert log["q_1"].values == pytest.approx(expected["q_1"].values, abs=1e-6)
    assert again.predict(log, arms[2], 8.0) == pytest.approx(
        taught.predict(log, arms[2], 8.0), abs=1e-9
    )
    # A load that nobody knows has the servo's own.
    other = heavier(pendulum, 1.3)
    bare = servo.predict(log, other, 8.0)
    assert again.predict(log, other, 8.0) == pytest.approx(bare, abs=1e-9)


def test_servos_of_one_load_know_others_to_a_tenth(pendulum, servo):
    alone = replace(servo, load_error=None)
    recording = rig.recording(servo, 1, gain=8.0)
    load = identify_servo_load(alone, recording, [8.0])
    assert load.gravity_moment_std > 0.09 * load.gravity_moment
    assert "one or two loads" in load.notes[0]


def test_a_motion_without_gravity_shows_no_moment(pendulum, servo):
    level = replace(pendulum, gravity=np.zeros(3))
    weightless = replace(servo, arm=level)
    time = np.arange(0.0, 4.0, 0.02)
    still = np.full((len(time), 1), 0.3)
    with pytest.raises(NotIdentifiable, match="do not show the load"):
        identify_servo_load(weightless, rig.of_arrays(time, still, still))


def test_the_command(pendulum, servo, tmp_path):
    held = heavier(pendulum, 2.0)
    log = str(tmp_path / "held.csv")
    aw.write_recording(rig.recording(servo, 3, arm=held, gain=8.0), log)
    write_servo(servo, tmp_path / "servo.json")
    aw.arms.save_arm(pendulum, tmp_path / "arm.urdf")
    words = ["identify-load", str(tmp_path / "arm.urdf"), log]
    words += ["--servo", str(tmp_path / "servo.json"), "--registers", "8"]
    words += ["-o", str(tmp_path / "out"), "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    answer = json.loads(result.stdout)
    assert answer["gravity_moment"] == pytest.approx(moments(held)[0], rel=0.02)
    written = json.loads((tmp_path / "out" / "load.json").read_text())
    assert written["gravity_moment"] == answer["gravity_moment"]
    result = CliRunner().invoke(app, [*words[:-4], "--registers", "8,9"])
    assert result.exit_code != 0


@pytest.fixture
def bench(pendulum, tmp_path):
    """Logs of one pendulum with three loads and two gains, and a table of them."""
    true = rig.truth(pendulum, stiffness=0.4, armature=0.002)
    rows = ["log,arm,gain"]
    for k, factor in enumerate((0.7, 1.0, 2.0, 1.5)):
        arm, gain = heavier(pendulum, factor), (8.0, 16.0)[k % 2]
        aw.arms.save_arm(arm, tmp_path / f"arm{k}.urdf")
        log = rig.recording(true, k, arm=arm, gain=gain)
        aw.write_recording(log, tmp_path / f"log{k}.csv")
        rows.append(f"log{k}.csv,arm{k}.urdf,{gain}")
    # One of them as spreadsheets with decimal commas write it: its gain is 8,0.
    (tmp_path / "semicolons.csv").write_text(
        "\n".join(rows).replace(",", ";").replace(".0", ",0")
    )
    (tmp_path / "loads.csv").write_text("\n".join(rows))
    return tmp_path


def test_a_table_gives_every_log_its_load_and_gain(bench):
    words = ["identify-servo", str(bench / "arm0.urdf"), "--starts", "32"]
    words += [str(bench / f"log{k}.csv") for k in range(3)]
    words += ["--validate", str(bench / "log3.csv"), "-o", str(bench / "out")]
    words += ["--loads", str(bench / "loads.csv"), "--json"]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    answer = json.loads(result.stdout)
    assert answer["values"]["stiffness"][0] == pytest.approx(0.4, rel=0.05)
    # Its own load and gain, or it would be off by a tenth of a radian.
    assert answer["validation"]["mrad"][0] < 2.0
    # Three known loads tell how far unknown ones are off.
    assert answer["load_error"] is not None
    # The first log's register, on the arm that was named.
    text = (bench / "out" / "identified.xml").read_text()
    kp = float(text.split('kp="')[1].split('"')[0])
    assert kp == pytest.approx(8.0 * answer["values"]["stiffness"][0], rel=0.1)
    servo = read_servo(bench / "out" / "servo.json")
    named = load_arm(bench / "arm0.urdf")
    assert servo.arm.parameters == pytest.approx(named.parameters)
    words = ["gap", str(bench / "out" / "servo.json"), str(bench / "log0.csv")]
    result = CliRunner().invoke(app, words)
    assert "identified with gain registers 8, 16" in str(result.exception)
    result = CliRunner().invoke(app, [*words, "--register", "8", "--json"])
    assert json.loads(result.stdout)["gap"]["mrad"][0] < 2.0


def test_a_table_may_be_separated_by_semicolons(bench):
    logs = [bench / f"log{k}.csv" for k in range(4)]
    one, other = (
        _Loads.read(bench / name).of(logs) for name in ("loads.csv", "semicolons.csv")
    )
    assert one[1] == other[1] == [8.0, 16.0, 8.0, 16.0]
    assert [arm.name for arm in one[0]] == [arm.name for arm in other[0]]


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("log,arm\nlog0.csv,arm0.urdf", "lacks the columns gain"),
        ("log,arm,gain\nlog1.csv,arm0.urdf,8", "has no row for log0.csv"),
        ("log,arm,gain\nlog0.csv,arm0.urdf,high", "the gain of log0.csv is 'high'"),
        ("log,arm,gain\nlog0.csv,arm9.urdf,8", "arm9.urdf"),
        ("log,arm,gain\nlog0.csv,two_link_uno,8", "are two arms for these servos"),
        ("", "needs a header log,arm,gain"),
    ],
)
def test_a_table_of_loads_that_is_wrong(bench, table, sentence):
    (bench / "loads.csv").write_text(table)
    words = ["identify-servo", str(bench / "arm0.urdf"), str(bench / "log0.csv")]
    words += ["--loads", str(bench / "loads.csv"), "-o", str(bench / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code != 0
    assert sentence in f"{result.stderr} {result.exception}"
    assert not (bench / "out").exists()


def test_what_does_not_show_is_said_so():
    nothing = InertialParameters.zero()
    load = ServoLoad(
        "j1", 0.1, np.inf, 2e-3, 1e-4, nothing, np.full(10, np.inf), 1e-3, 2e-3
    )
    said = load.statement()
    assert "0.002 ± 0.0002 kg m²" in said
    assert "does not show [N m]" in said
    assert "?" not in said


def test_a_servo_that_holds_one_pose_shows_one_torque_only(pendulum):
    """Neither moment nor inertia: gravity pulls in one direction of the link."""
    free = replace(rig.truth(pendulum, stiffness=0.4, coulomb=1e-4), load_error=None)
    time = np.arange(0.0, 4.0, 0.02)
    still = np.full((len(time), 1), 0.3)
    sagged = free.predict(rig.of_arrays(time, still, still))
    held = rig.of_arrays(time, np.tile(sagged[-1], (len(time), 1)), still)
    with pytest.raises(NotIdentifiable, match="neither the gravity moment"):
        identify_servo_load(free, held)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--joint", "hand"], "has no joint 'hand'. It has: j0."),
        (["--registers", "8,8"], "gain"),
        (["--registers", "eight"], "--registers"),
        (["--servo", "arm.urdf"], "arm.urdf"),
    ],
)
def test_the_command_refuses(pendulum, servo, tmp_path, words, sentence):
    log = str(tmp_path / "held.csv")
    aw.write_recording(rig.recording(servo, 3, gain=8.0), log)
    write_servo(servo, tmp_path / "servo.json")
    aw.arms.save_arm(pendulum, tmp_path / "arm.urdf")
    asked = {"--servo": "servo.json", "--registers": "8"} | dict([words])
    asked["--servo"] = str(tmp_path / asked["--servo"])
    options = [word for pair in asked.items() for word in pair]
    out = tmp_path / "out"
    arguments = ["identify-load", str(tmp_path / "arm.urdf"), log, *options]
    result = CliRunner().invoke(app, [*arguments, "-o", str(out)])
    assert result.exit_code in (1, 2)
    # The program prints such an error as one line; the runner hands it on.
    assert isinstance(result.exception, ArgumentError | SystemExit)
    assert sentence in f"{result.stderr} {result.exception}"
    assert not out.exists()


def test_loads_on_one_line_say_nothing_of_what_lies_beside_it():
    """Longer ones were heavier, too: a plane through them has any slope across."""
    moments_, lengths = np.array([0.17, 0.36, 0.62]), np.array([0.11, 0.12, 0.13])
    random = np.random.default_rng(0)
    rows = []
    for gain in (8.0, 16.0, 32.0):
        true = np.column_stack([moments_, moments_ * lengths / 9.81])
        noisy = true * np.exp(0.003 * random.normal(size=true.shape))
        rows.append(np.column_stack([np.full(3, gain), noisy, true]))
    table = np.vstack(rows)
    short = np.array(
        [[16.0, 0.39, 0.39 * 0.105 / 9.81], [16.0, 0.2, 0.2 * 0.13 / 9.81]]
    )
    trend, _ = load_trend(table, short)
    assert np.abs(trend).max() < 0.01
    assert max(known_load_errors(table)) < 0.02
    # What all are off by is taken off, and what goes with the gain.
    table[:, 1] *= 1.1
    assert load_trend(table, short)[0][:, 0] == pytest.approx(np.log(1.1), abs=0.01)
    table[:, 2] *= (table[:, 0] / 16.0) ** 0.1
    steep = load_trend(table, short * [[2.0, 1.0, 1.0]])[0][:, 1]
    assert steep == pytest.approx(0.1 * np.log(2.0), abs=0.02)
