"""A load from joint torques, on MuJoCo, with friction that no model knows."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import armwise as aw
from armwise.arms import Arm, Drive, InertialParameters
from armwise.calibration import calibrate_torques
from armwise.errors import ArgumentError, RecordingError
from armwise.loads import design_load_excitation, identify_load
from armwise.loads.generalized_least_squares import (
    scatter_of_stretches,
    solve_generalized,
)
from armwise.loads.noise_spectrum import RegressionRows
from armwise.plants import perturbed
from tests.loads import rig

LOAD = InertialParameters.from_center_of_mass(
    2.0, [0.01, -0.02, 0.08], np.diag([0.006, 0.008, 0.004])
)
VISCOUS = (8.0, 8.0, 4.0, 0.6, 0.6, 0.5)
COULOMB = (6.0, 7.0, 4.0, 0.7, 0.6, 0.5)


def _rubbing() -> Arm:
    arm = rig.puma()
    joints = tuple(
        replace(
            joint,
            drive=Drive(joint.drive.rotor_inertia, viscous, coulomb),
        )
        for joint, viscous, coulomb in zip(arm.joints, VISCOUS, COULOMB, strict=True)
    )
    return replace(arm, joints=joints)


@cache
def _run(has_load: bool) -> aw.Samples:
    pytest.importorskip("mujoco")
    payload = aw.plants.Payload("wrist", LOAD) if has_load else None
    plant = aw.MujocoArm(
        _rubbing(),
        payload=payload,
        control_rate_hz=500.0,
        plant_rate_hz=1000.0,
        sensors=[
            aw.plants.Encoder(5e-5),
            aw.plants.Tachometer(1e-3),
            aw.plants.TorqueSensor(0.1),
        ],
        seed=int(has_load),
    )
    controller = aw.control.ComputedTorque(rig.puma(), 400.0, 40.0)
    recording = aw.run(plant, controller, _motion())
    return aw.prepare(recording, cutoff_hz=8.0, lag=0.0)


@cache
def _motion() -> aw.motions.Fourier:
    """Eight seconds from rest to rest, designed to show a load."""
    return design_load_excitation(rig.puma(), duration=8.0, candidates=60).motion


def test_the_difference_of_two_runs_gives_the_load() -> None:
    """Issue 5, line 6: a load of 2 kg to 2 %, its centre to 5 mm."""
    load = identify_load(_run(True), rig.puma(), bare=_run(False))
    assert load.mass == pytest.approx(2.0, rel=0.02)
    assert load.center_of_mass == pytest.approx(LOAD.center_of_mass, abs=5e-3)
    assert load.channels == rig.puma().coordinate_names


def test_a_poor_model_of_the_arm_does_little_harm() -> None:
    poor = perturbed(rig.puma(), 0.1, seed=0)
    load = identify_load(_run(True), poor, bare=_run(False))
    assert load.mass == pytest.approx(2.0, rel=0.02)
    assert load.center_of_mass == pytest.approx(LOAD.center_of_mass, abs=5e-3)


def test_an_identified_arm_does_without_the_bare_run() -> None:
    load = identify_load(_run(True), rig.puma(), gain_std=0.0)
    assert load.mass == pytest.approx(2.0, rel=0.005)
    assert load.center_of_mass == pytest.approx(LOAD.center_of_mass, abs=3e-3)
    # Gains in doubt: as wide as they are.
    low, high = identify_load(_run(True), rig.puma()).interval()[0]
    assert low < 2.0 < high


def test_the_interval_is_as_wide_as_the_gains_are_uncertain() -> None:
    """Torques recorded by wrong constants: ± 10 % of mass, and said why."""
    loaded, bare = _run(True), _run(False)
    scale = np.array([0.92, 1.09, 1.12, 0.95, 1.1, 1.02])
    loaded, bare = (replace(x, tau=x.tau * scale) for x in (loaded, bare))
    load = identify_load(loaded, rig.puma(), bare=bare)
    low, high = load.interval()[0]
    assert low < 2.0 < high
    assert 0.05 < load.std.mass / 2.0 < 0.12
    codes = {warning.code: warning.text for warning in load.warnings}
    assert "armwise calibrate-torques" in codes["gains-dominate"]
    sure = identify_load(loaded, rig.puma(), bare=bare, gain_std=0.0)
    assert sure.std.mass < 0.02
    assert "gains-dominate" not in {warning.code for warning in sure.warnings}


def test_gains_weighed_with_a_known_load_give_the_mass() -> None:
    """Of the known load only the mass is known."""
    loaded, bare = _run(True), _run(False)
    scale = np.array([0.92, 1.09, 1.12, 0.95, 1.1, 1.02])
    loaded, bare = (replace(x, tau=x.tau * scale) for x in (loaded, bare))
    gains = calibrate_torques(rig.puma(), bare, loaded, load_mass=2.0, frame="wrist")
    shown = gains.std < 0.03
    assert shown[[1, 2, 4]].all()
    wrong = np.abs(gains.gain * scale - 1.0)
    assert np.all(wrong[shown] < 4.0 * gains.std[shown])
    # The same load once more: what the gains were weighed by comes out again.
    load = identify_load(loaded, rig.puma(), bare=bare, gains=gains)
    assert load.mass == pytest.approx(2.0, abs=0.01)
    assert load.std.mass < 0.02


def test_a_mass_in_grams_is_refused() -> None:
    with pytest.raises(ArgumentError, match="Is its mass in kg"):
        calibrate_torques(
            rig.puma(), _run(False), _run(True), load_mass=2000.0, frame="wrist"
        )


def test_gains_ask_for_the_log_of_the_estimate() -> None:
    gains = calibrate_torques(
        rig.puma(), _run(False), _run(True), load_mass=2.0, frame="wrist"
    )
    estimate = aw.identify(rig.puma(), _run(False))
    alone = identify_load(_run(True), estimate, gains=gains)
    assert "estimate-of-other-gains" in {warning.code for warning in alone.warnings}
    both = identify_load(_run(True), estimate, bare=_run(False), gains=gains)
    assert not both.warnings
    assert both.mass == pytest.approx(2.0, rel=0.02)


@pytest.mark.parametrize("std", [[0.1, 0.2], -0.1, 2.0, [np.nan] * 6])
def test_nonsense_gains_are_refused(std: object) -> None:
    with pytest.raises(ArgumentError, match="gain_std"):
        identify_load(_run(True), rig.puma(), bare=_run(False), gain_std=std)


def test_clocks_need_not_agree() -> None:
    bare = _run(False)
    later = replace(bare, time=bare.time + 1000.0)
    load = identify_load(_run(True), rig.puma(), bare=later)
    assert load.mass == pytest.approx(2.0, rel=0.02)


def test_another_motion_is_refused() -> None:
    bare = _run(False)
    other = replace(bare, q=bare.q[::-1])
    with pytest.raises(ArgumentError, match="bare motion is not the loaded one"):
        identify_load(_run(True), rig.puma(), bare=other)


def test_without_torques_there_is_nothing_to_subtract() -> None:
    bare = _run(False)
    silent = replace(bare, tau=np.zeros((len(bare), 0)))
    with pytest.raises(RecordingError, match="The bare samples hold neither"):
        identify_load(_run(True), rig.puma(), bare=silent)


def _with_load_friction(has_load: bool, of_all: bool) -> aw.Samples:
    """Exact motion; gears lose a tenth of what they carry, or of what they hold."""
    bare = [replace(joint, drive=Drive()) for joint in rig.puma().joints]
    arm = replace(rig.puma(), joints=tuple(bare))
    if has_load:
        arm = aw.plants.carrying(arm, aw.plants.Payload("wrist", LOAD))
    t = np.arange(1000) / 200.0
    q, qd, qdd = rig.motion(5.0).sample(t)
    torque = aw.dynamics.Dynamics(arm).inverse_dynamics
    whole, held = torque(q, qd, qdd), torque(q, qd, np.zeros_like(qdd))
    lost = 0.1 * np.abs(whole if of_all else held) * np.sign(qd)
    rotors = np.array([joint.drive.rotor_inertia for joint in rig.puma().joints])
    noise = 0.02 * np.random.default_rng(int(has_load)).normal(size=whole.shape)
    return aw.Samples(t, q, qd, qdd, whole + lost + rotors * qdd + noise)


@pytest.mark.parametrize("of_all", [True, False])
def test_a_gear_that_rubs_under_load_makes_no_load(of_all: bool) -> None:
    """By one fit of any bodies 1.994 ± 0.024 kg, the centre off by 6 mm."""
    loaded, bare = (_with_load_friction(has, of_all) for has in (True, False))
    load = identify_load(loaded, rig.puma(), bare=bare, gain_std=0.0)
    assert load.mass == pytest.approx(2.0, rel=0.001)
    assert load.center_of_mass == pytest.approx(LOAD.center_of_mass, abs=5e-4)
    assert load.std.mass < 0.002


def test_rows_where_friction_reverses_say_nothing_of_the_load() -> None:
    """While a joint sticks, friction carries what it likes: here a third of it all.

    Were they rows like others, the mass would be 0.8 % low.
    """
    loaded, bare = _run(True), _run(False)
    turns = np.diff(np.sign(loaded.qd), axis=0, prepend=0.0) != 0.0
    turns[0] = False
    near = np.stack(
        [np.convolve(column, np.ones(5), "same") > 0 for column in turns.T], axis=1
    )
    size = np.sqrt(np.mean(loaded.tau**2, axis=0))
    stuck = replace(loaded, tau=loaded.tau + 0.3 * size * near)
    assert 0.01 < near.mean() < 0.2
    load = identify_load(stuck, rig.puma(), bare=bare, gain_std=0.0)
    assert load.mass == pytest.approx(2.0, rel=0.004)


def test_what_differs_from_stretch_to_stretch_widens():
    """White noise scatters as the covariance says; a fault of some stretches more."""
    rng = np.random.default_rng(3)
    regressor = rng.standard_normal((1200, 1, 2))
    target = regressor @ [1.0, 2.0] + 0.1 * rng.standard_normal((1200, 1))
    rows = RegressionRows(regressor, target, (0,), 100.0, ("a",))
    solution = solve_generalized(rows)
    std = np.sqrt(np.diag(solution.covariance))
    alike = scatter_of_stretches(rows, solution, "segment", 12)
    assert alike == pytest.approx(std, rel=0.7)
    target[:200] += 0.5 * regressor[:200, :, 0]
    faulty = replace(rows, target=target)
    again = solve_generalized(faulty)
    widened = scatter_of_stretches(faulty, again, "segment", 12)
    assert widened[0] > 3.0 * np.sqrt(again.covariance[0, 0])
