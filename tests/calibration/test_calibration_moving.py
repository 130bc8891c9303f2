"""Calibration by moving: any axes, either plant; what cannot be known is not told."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from armwise.arms import load_arm
from armwise.calibration import (
    FULL_SCALE,
    Flaws,
    Moves,
    Structure,
    calibrate,
    calibrate_batch,
    prospects,
    rehearse,
)
from armwise.calibration.by_moving import gain_alone
from armwise.calibration.moves import Mover
from armwise.calibration.search import SearchRegion, described_points
from armwise.calibration.sensor_control import Bench
from armwise.calibration.stages import find_senses
from armwise.calibration.variable_projection import Projector
from armwise.cli.main import app
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable, RecordingError
from armwise.plants import Measurement, perturbed
from armwise.recordings import Samples, read_calibration
from studies.moving_calibration import chain


def calibrated(arm, seed, mujoco=False, backlash=0.0):
    rehearsal = rehearse(arm, seed, mujoco=mujoco, backlash=backlash)
    structure = Structure(arm, flaws=Flaws(bend=0.005))
    outlook = prospects(structure, effort=rehearsal.effort)
    result = calibrate(
        rehearsal.plant,
        structure,
        full_scale=FULL_SCALE,
        posture=rehearsal.posture,
        effort=rehearsal.effort,
        outlook=outlook,
    )
    return rehearsal, outlook, result


def check(rehearsal, outlook, result):
    """All that was promised is there and true; nothing else is."""
    n = len(result.joint_names)
    is_sought = outlook.is_sought
    assert np.array_equal(np.isfinite(result.alpha), is_sought[:n])
    assert np.array_equal(np.isfinite(result.beta), is_sought[n:])
    assert np.all(np.isinf(result.beta_std[~is_sought[n:]]))
    alpha, beta = rehearsal.sensors.lines(result.recordings)
    gain = (result.alpha / alpha - 1.0)[is_sought[:n]]
    offset = np.angle(np.exp(1j * (result.beta - beta)))[is_sought[n:]]
    assert np.abs(gain).max(initial=0.0) < 0.01
    assert np.rad2deg(np.abs(offset)).max(initial=0.0) < 0.5
    gain_std = (result.alpha_std / np.abs(result.alpha))[is_sought[:n]]
    assert np.all(np.abs(gain) < 4.0 * gain_std)
    assert np.all(np.abs(offset) < 4.0 * result.beta_std[is_sought[n:]])
    assert gain_std.max(initial=0.0) <= 0.0025
    assert result.beta_std[is_sought[n:]].max(initial=0.0) <= np.deg2rad(0.125)
    assert is_sought.any()


def test_three_links_about_y_x_and_z_are_calibrated_from_nothing():
    rehearsal, outlook, result = calibrated(chain("mixed", 3), seed=1)
    assert outlook.hidden == ("joint_3.offset",)
    check(rehearsal, outlook, result)


@pytest.mark.slow
def test_a_gain_that_was_wrong_alone_is_found_by_all_together(monkeypatch):
    """A cosine of another rate may fit one joint's wave, and look sure."""

    def wrong(sensed, j, guess):
        gain, std = gain_alone(sensed, j, guess)
        return (2.5 * gain, 0.05) if j == 0 else (gain, std)

    monkeypatch.setattr("armwise.calibration.by_moving.gain_alone", wrong)
    check(*calibrated(chain("y", 2), seed=3))


def test_arms_side_by_side_are_calibrated_each_by_itself():
    arm = chain("z", 2)
    rehearsal = rehearse(arm, [1, 2, 3])
    plant = Stops(rehearsal.plant, arm=1, after=1500)
    outlook = prospects(arm, effort=rehearsal.effort)
    answers = calibrate_batch(
        plant, arm, posture=rehearsal.posture, effort=rehearsal.effort, outlook=outlook
    )
    assert isinstance(answers[1], RecordingError)
    for b in (0, 2):
        one = replace(rehearsal, sensors=rehearsal.sensors.of(b))
        check(one, outlook, answers[b])


class Stops:
    """A batch in which one arm's readings stay what they are after some steps."""

    def __init__(self, plant, arm, after):
        self._plant, self._arm, self._after, self._last = plant, arm, after, None

    def __getattr__(self, name):
        return getattr(self._plant, name)

    def step(self, tau):
        volts = self._plant.step(tau).volts
        self._after -= 1
        if self._after == 0:
            self._last = volts[self._arm].copy()
        if self._last is not None:
            volts[self._arm] = self._last
        return Measurement(volts=volts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "links", "seed", "mujoco"),
    [("skew", 2, 2, True), ("mixed", 6, 0, False), ("y", 3, 1, True)],
)
def test_other_axes_and_mujoco(kind, links, seed, mujoco):
    check(*calibrated(chain(kind, links), seed, mujoco))


@pytest.mark.slow
def test_friction_that_rises_towards_rest_does_not_bias_gains():
    """The plant's friction rises by a fifth: a gain was six deviations off by it."""
    check(*calibrated(chain("y", 4), 504))


@pytest.mark.slow
def test_gears_with_backlash_are_calibrated():
    check(*calibrated(chain("mixed", 3), 2, backlash=np.deg2rad(0.2)))


def test_what_gravity_cannot_see_is_named_beforehand():
    outlook = prospects(load_arm("panda"))
    hidden = {p.name: p.reason for p in outlook.prospects if not p.is_calibratable}
    assert "parallel to gravity" in hidden["joint_1.offset"]
    assert "centre of mass is unknown" in hidden["joint_7.offset"]
    assert "joint_3.offset" not in hidden


def test_an_arm_gravity_cannot_calibrate_is_not_moved():
    flat = chain("z", 2).with_gravity([0.0, 0.0, -9.81])
    rehearsal = rehearse(chain("z", 2))
    with pytest.raises(NotIdentifiable, match="Gravity can calibrate nothing"):
        calibrate(rehearsal.plant, flat, effort=rehearsal.effort)
    assert rehearsal.plant.time == 0.0


def test_wrong_arguments_are_said():
    arm = chain("x", 2)
    plant = rehearse(arm).plant
    with pytest.raises(ArgumentError, match="no effort limits"):
        calibrate(plant, arm)
    with pytest.raises(ArgumentError, match="has 2 joints, x3 has 3"):
        calibrate(plant, chain("x", 3), effort=1.0)
    with pytest.raises(ArgumentError, match="full_scale must be positive"):
        calibrate(plant, arm, effort=1.0, full_scale=0.0)
    sliding = replace(
        arm, joints=(arm.joints[0], replace(arm.joints[1], kind="prismatic"))
    )
    with pytest.raises(NotIdentifiable, match="joint_2 slides"):
        calibrate(plant, sliding, effort=1.0)


class Silent:
    """A plant whose readings stay as they are after a second."""

    def __init__(self, plant):
        self.plant = plant

    def __getattr__(self, name):
        return getattr(self.plant, name)

    def step(self, tau):
        before = getattr(self, "last", None)
        if self.plant.time < 1.0 or before is None:
            self.last = self.plant.step(tau)
        return Measurement(volts=self.last.volts)


def test_a_plant_that_stops_answering_is_left():
    arm = chain("mixed", 2)
    rehearsal = rehearse(arm)
    with pytest.raises(RecordingError, match="the reading stays at"):
        calibrate(
            Silent(rehearsal.plant),
            arm,
            posture=rehearsal.posture,
            effort=rehearsal.effort,
        )


def test_steps_of_a_simulator_do_not_hide_the_senses():
    arm = chain("z", 3)
    # MuJoCo's steps show three quarters of a push at once. An arm falls while it is
    # pushed in vain: up to 1.5 of the scale if a half was taken for granted.
    rehearsal = rehearse(arm, list(range(1, 9)), mujoco=True)
    scale = np.full(3, FULL_SCALE)
    bench = Bench(rehearsal.plant, scale, rehearsal.posture, 60.0)
    find_senses(bench, 0.4 * rehearsal.effort, 0.1)
    assert np.array_equal(bench.sense, np.sign(rehearsal.sensors.alpha))
    assert np.abs(bench.x).max() < 0.7


def test_long_chains_stand_up():
    arm = chain("y", 6)
    rehearsal = rehearse(arm, [11, 12])
    bench = Bench(
        rehearsal.plant, np.full(6, FULL_SCALE), rehearsal.posture, 60.0,
        effort=rehearsal.effort,
    )  # fmt: skip
    mover = Mover(Structure(arm), bench, Moves(), rehearsal.effort)
    trace = mover.follow(mover.wave(np.zeros(6), np.full(6, 0.8), 6.0))
    error = np.sqrt(np.mean((trace.x - trace.reference) ** 2, axis=0))
    assert error.max() < 0.1


def test_a_chain_that_stands_does_not_swing():
    """Upright, gravity takes stiffness away: an integral that is too fast swings.

    At 3 per second instead of 1 joint 3 swung beyond the range of its sensor.
    """
    arm = chain("x", 6)
    rehearsal = rehearse(arm, [20000])
    bench = Bench(
        rehearsal.plant, np.full(6, FULL_SCALE), rehearsal.posture, 60.0,
        effort=rehearsal.effort,
    )  # fmt: skip
    mover = Mover(Structure(arm), bench, Moves(), rehearsal.effort)
    amplitude = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.8])
    trace = mover.follow(mover.wave(np.zeros(6), amplitude, 8.0))
    late = trace.time > 4.0
    assert np.abs(trace.x - trace.reference)[late].max() < 0.2


def ringing_mover(monkeypatch, factor):
    """Of an arm one of whose inertias was measured too large."""
    arm = chain("mixed", 3)
    rehearsal = rehearse(arm, [1, 2])
    bench = Bench(
        rehearsal.plant, np.full(3, FULL_SCALE), rehearsal.posture, 60.0,
        effort=rehearsal.effort, goes_on=True,
    )  # fmt: skip

    def too_large(*arguments):
        inertia = find_senses(*arguments)
        inertia[1, 0] *= factor
        return inertia

    monkeypatch.setattr("armwise.calibration.moves.find_senses", too_large)
    return Mover(Structure(arm), bench, Moves(), rehearsal.effort)


def test_a_joint_that_rings_is_softened_and_the_move_repeated(monkeypatch):
    """At power-up a joint may show three times the inertia that it has elsewhere."""
    mover = ringing_mover(monkeypatch, 16.0)
    motion = mover.wave(np.zeros(3), np.full(3, 0.8), 4.0)
    trace = mover.follow(motion)
    assert len(trace.time) == round(4.0 / mover.bench.period)
    # Torque from one sample to the next, of the effort limit: a limit cycle has all.
    jumps = np.diff(trace.u, axis=0)[:, :, 0] / mover.bench._effort[0]
    assert np.sqrt(np.mean(jumps**2, axis=0)).max() < 0.05
    assert not mover.lost


def test_a_joint_that_rings_however_soft_is_given_up(monkeypatch):
    monkeypatch.setattr("armwise.calibration.moves._SOFTEST", 0)
    mover = ringing_mover(monkeypatch, 16.0)
    mover.follow(mover.wave(np.zeros(3), np.full(3, 0.8), 4.0))
    assert "rings" in str(mover.lost[1])


@pytest.mark.slow
def test_an_arm_is_not_taken_for_its_image():
    """Masses that are off pull gains out of range; turned half round it fits as well.

    The offset came out 180° wrong, to within a tenth of a degree.
    """
    rehearsal, outlook, result = calibrated(chain("mixed", 2), seed=307, mujoco=True)
    check(rehearsal, outlook, result)


def test_a_plan_reckons_with_the_friction_of_a_rehearsal():
    arm = chain("mixed", 3)
    plain, rehearsed = prospects(arm), prospects(arm, effort=rehearse(arm).effort)
    assert str(plain) == str(rehearsed)
    strong = prospects(arm, effort=10.0 * rehearse(arm).effort)
    assert strong.prospects[0].std > 2.0 * plain.prospects[0].std


@pytest.mark.parametrize("seed", [0, 3])
def test_senses_of_all_joints_show_at_once(seed):
    arm = chain("mixed", 4)
    rehearsal = rehearse(arm, seed)
    bench = Bench(
        rehearsal.plant, np.full(4, FULL_SCALE), rehearsal.posture, 60.0,
        effort=rehearsal.effort,
    )  # fmt: skip
    inertia = find_senses(bench, 0.4 * rehearsal.effort, 0.1)
    assert np.array_equal(bench.sense[0], np.sign(rehearsal.sensors.alpha))
    assert rehearsal.plant.time < 1.0
    true = rehearsal.plant.true_arms[0]
    M = Dynamics(true).mass_matrix(rehearsal.posture)
    scale = np.abs(rehearsal.sensors.alpha) * FULL_SCALE
    free = scale / np.diag(np.linalg.inv(M))
    assert inertia[0] == pytest.approx(free, rel=0.6)


def test_a_gain_shows_in_the_torque_of_a_joint_that_moves_alone():
    time = np.arange(0.0, 9.0, 0.02)
    s = 5.0 * np.sin(0.9 * time)
    sd, sdd = 4.5 * np.cos(0.9 * time), -0.81 * s
    tau = 3.0 * np.cos(0.16 * s + 1.0) + 0.2 * np.sign(sd) + 0.01 * sdd + 0.1
    columns = [x[:, None] for x in (s, sd, sdd, tau)]
    gain, std = gain_alone(Samples(time, *columns), 0, 0.3)
    assert gain == pytest.approx(0.16, rel=1e-3)
    assert std < 0.01
    noise = np.random.default_rng(0).normal(0.0, 0.01, time.size)
    still = Samples(time, *columns[:3], (0.2 * np.sign(sd) + noise)[:, None])
    assert not gain_alone(still, 0, 0.3)[1] < 0.15


def test_described_masses_point_to_the_offsets():
    """Masses a fifth off, offsets all round: the best start is near the truth."""
    arm = load_arm("ur10")
    random = np.random.default_rng(3)
    time = np.linspace(0.0, 60.0, 240)
    phase = random.uniform(0.0, 6.0, (3, 6))
    rate = random.uniform(0.2, 0.6, 6)
    s = 0.9 * np.sin(rate * time[:, None] + phase[0])
    sd = 0.9 * rate * np.cos(rate * time[:, None] + phase[0])
    sdd = -(rate**2) * s
    beta = random.uniform(-3.0, 3.0, 6)
    torque = Dynamics(perturbed(arm, 0.2, 3)).inverse_dynamics(s + beta, sd, sdd)
    sensed = Samples(time, s, sd, sdd, torque)
    structure = Structure(arm, gains_known=True)
    projector = Projector(structure, sensed, 0.02 * np.maximum(torque.std(0), 1.0))
    region = SearchRegion.from_guess(structure, sensed, 1.0)
    points = described_points(projector, region, np.ones(6, dtype=bool), 0)
    turn = np.angle(np.exp(1j * (points[0].beta - beta)))
    # The wrist is too light for masses a fifth off; the big joints are not.
    assert np.rad2deg(np.abs(turn[1:3])).max() < 15.0
    massless = replace(
        structure, arm=arm.with_parameters(np.zeros(arm.parameters.size))
    )
    bare = Projector(massless, sensed, projector.torque_std)
    assert described_points(bare, region, np.ones(6, dtype=bool), 0) == []


def command(*arguments):
    result = CliRunner().invoke(app, ["calibrate-moving", *arguments])
    return result.exit_code, result.output, result.exception


def test_the_command_says_beforehand_what_it_will_calibrate():
    code, output, _ = command("panda", "--json")
    assert code == 0
    prospects = {p["name"]: p for p in json.loads(output)["prospects"]}
    assert prospects["joint_2.offset"]["is_calibratable"]
    assert not prospects["joint_1.offset"]["is_calibratable"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plant", "nobody"], "simulated, mujoco or FILE.py:NAME"),
        (["--plant", "{file}:nothing"], "has no 'nothing'"),
        (["--plant", "{file}:number"], "is not a Plant"),
        (["--plant", "simulated", "--full-scale", "wide"], "takes numbers"),
    ],
)
def test_what_is_no_plant_is_refused(tmp_path, arguments, said):
    file = tmp_path / "robot.py"
    file.write_text("number = 3\n")
    code, output, problem = command("panda", *(a.format(file=file) for a in arguments))
    assert code != 0
    assert said in output + str(problem)


@pytest.mark.slow
def test_the_command_calibrates_a_users_own_plant(tmp_path):
    """A plant from a file; the result is written, applied, and what is open refused."""
    (tmp_path / "robot.py").write_text(
        "from armwise.arms import load_arm\n"
        "from armwise.calibration import Structure, rehearse\n"
        "def connect():\n"
        "    arm = load_arm('hand_controller')\n"
        "    robot = rehearse(Structure(arm, ('*.my', '*.offset')), 1)\n"
        "    start = robot.plant.reset\n"
        "    robot.plant.reset = lambda q, qd=None: start(robot.posture)\n"
        "    return robot.plant\n"
    )
    file = tmp_path / "sensors.toml"
    code, output, problem = command(
        "hand_controller", "--plant", f"{tmp_path / 'robot.py'}:connect", "--json",
        "-o", str(file), "--known", "*.my", "--known", "*.offset",
    )  # fmt: skip
    assert code == 0, (output, problem)
    joints = json.loads(output)["joints"]
    truth = rehearse(load_arm("hand_controller"), 1).sensors
    gains = np.array([joint["alpha"] for joint in joints])
    assert gains == pytest.approx(truth.alpha, rel=0.02)
    assert read_calibration(file).alpha == pytest.approx(tuple(gains))
