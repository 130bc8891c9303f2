"""Drift against gravity while the hand takes up and puts down loads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import InertialParameters, load_arm
from armwise.calibration import Calibration, Structure
from armwise.dynamics import Dynamics
from armwise.monitoring import Watchdog, WatchdogSettings
from armwise.monitoring.drift import Baseline, ShiftTest
from armwise.monitoring.gravity_residuals import GravityResiduals
from armwise.motions import Hold, Quintic, Sequence
from armwise.plants import Payload, carrying, perturbed

PERIOD, CYCLE, LOAD = 0.008, 2.4, 0.8
DEGREE = np.deg2rad(1.0)
LOW_THRESHOLD = WatchdogSettings(drift_threshold=60.0, onset_epochs=60)


@pytest.fixture(scope="module")
def arm():
    bare = load_arm("panda")
    joints = tuple(
        replace(j, drive=replace(j.drive, coulomb=0.2, viscous=0.3))
        for j in bare.joints
    )
    return replace(bare, joints=joints)


@pytest.fixture(scope="module")
def work(arm):
    """Two minutes of pick and place by an arm 1 % other than its model."""
    random = np.random.default_rng(0)
    body = InertialParameters.from_center_of_mass(LOAD, [0, 0, 0.08], 1e-3 * np.eye(3))
    real = perturbed(arm, 0.01, 3)
    models = [Dynamics(x) for x in (real, carrying(real, Payload("flange", body)))]
    low, high = np.maximum(arm.limits("lower"), -1.5), arm.limits("upper").clip(max=2.0)
    q, tau = [], []
    begin = random.uniform(0.8 * low, 0.8 * high)
    for k in range(50):
        end = random.uniform(0.8 * low, 0.8 * high)
        motion = Sequence((Hold(begin, 0.2), Quintic(begin, end, 1.8), Hold(end, 0.4)))
        state = motion.sample(np.arange(round(CYCLE / PERIOD)) * PERIOD)
        q.append(state.q)
        tau.append(models[k % 2].inverse_dynamics(*state))
        begin = end
    q, tau = np.concatenate(q), np.concatenate(tau)
    tau += random.normal(0.0, 0.05, tau.shape)
    return PERIOD * np.arange(len(q)), np.rint(q / 2e-5) * 2e-5, tau


def watched(arm, time, q, tau) -> Watchdog:
    given = Calibration.from_values(arm, torque_std=0.05)
    dog = Watchdog(arm, given, PERIOD, learning=50.0)
    dog.update(time, q, tau)
    return dog


@pytest.fixture(scope="module")
def undisturbed(arm, work):
    return watched(arm, *work)


def test_loads_are_no_drift(undisturbed):
    assert undisturbed.alarms == []
    assert not undisturbed.is_learning
    assert undisturbed.evidence < 0.5


def test_what_a_load_adds_to_any_motion_is_expected(arm):
    """Else a joint that rests while others swing a load would seem to be stuck."""
    body = InertialParameters.from_center_of_mass(1.0, [0, 0, 0.08], 1e-3 * np.eye(3))
    loaded, bare = Dynamics(carrying(arm, Payload("flange", body))), Dynamics(arm)
    residuals = GravityResiduals(Structure(arm), 1.0)
    for motion in np.random.default_rng(0).normal(size=(50, 3, 7)):
        added = loaded.inverse_dynamics(*motion) - bare.inverse_dynamics(*motion)
        assert np.all(np.abs(added) < residuals.largest_change(motion))


def test_the_load_is_estimated(arm, work):
    """The last epoch of an odd cycle has it, that of an even one does not."""
    masses = []
    for cycles in (49, 50):
        kept = slice(round((cycles * CYCLE - 0.3) / PERIOD))
        masses.append(watched(arm, *(x[kept] for x in work)).tracked.load)
    assert masses[1] - masses[0] == pytest.approx(LOAD, abs=0.15)


def test_what_gravity_cannot_determine_is_predicted(undisturbed):
    shifts = [row.drift for row in undisturbed.visible(60.0)]
    assert np.isinf(shifts[0])  # turns about the vertical
    assert np.isinf(shifts[6]) or shifts[6] > 10.0 * DEGREE  # turns the load alone
    assert max(shifts[1:4]) < 1.5 * DEGREE
    assert max(row.jump for row in undisturbed.visible()) < 0.3 * DEGREE


@pytest.mark.parametrize("joint", [1, 3])
def test_a_sensor_that_slipped_unseen_is_found_under_loads(arm, work, joint):
    time, q, tau = work
    moved = q.copy()
    moved[time >= 70.0, joint] += 2.0 * DEGREE
    seen = np.abs(time - 70.0) > 0.5
    (alarm,) = watched(arm, time[seen], moved[seen], tau[seen]).alarms
    assert (alarm.kind, alarm.joint) == ("drift", f"joint_{joint + 1}")
    assert alarm.onset == pytest.approx(70.0, abs=3.0)
    if alarm.quantity == "offset":
        assert alarm.size == pytest.approx(2.0 * DEGREE, abs=0.5 * DEGREE)


def test_evidence_is_what_theory_says():
    """Epochs of known scatter: ratios of undisturbed ones are squares of normals."""
    random = np.random.default_rng(2)
    information = random.uniform(1.0, 50.0, (4000, 2))
    scatter = np.sqrt(4.0 / information + 0.3**2)
    pulls = information * (0.7 + scatter * random.normal(size=information.shape))
    baseline = Baseline.from_epochs(pulls[:2000], information[:2000])
    assert baseline.bias == pytest.approx([0.7, 0.7], abs=0.05)
    assert baseline.wander == pytest.approx([0.09, 0.09], rel=0.4)
    test = ShiftTest(baseline, WatchdogSettings(drift_threshold=1e9, onset_epochs=1))
    ratios = []
    for pull, known in zip(pulls[2000:], information[2000:], strict=True):
        test.add(0.0, pull, known)
        ratios.append(test.evidence)
    assert np.mean(ratios, axis=0) == pytest.approx([1.0, 1.0], abs=0.2)


def test_a_shift_is_dated_and_measured():
    information = np.full((100, 2), 10.0)
    pulls = np.random.default_rng(1).normal(0.0, np.sqrt(10.0), (100, 2))
    baseline = Baseline.from_epochs(pulls, information)
    test = ShiftTest(baseline, LOW_THRESHOLD)
    found = None
    for k in range(100):
        pull = pulls[k] + 10.0 * np.array([0.0, 0.3]) * (k >= 30)
        found = found or test.add(float(k), pull, information[k])
    assert found is not None
    assert found.unknown == 1
    assert found.onset == pytest.approx(30.0, abs=6.0)
    assert found.size == pytest.approx(0.3, abs=4.0 * found.std)


@pytest.mark.parametrize("epochs", [10, 40])
def test_what_is_said_to_be_visible_is_found(epochs):
    random = np.random.default_rng(4)
    information = random.lognormal(7.0, 1.5, (150, 1))
    pulls = np.sqrt(information) * random.normal(size=information.shape)
    baseline = Baseline.from_epochs(pulls, information)
    size = baseline.smallest(epochs, LOW_THRESHOLD)[0]
    is_found = [
        _is_found(baseline, random, fraction * size, epochs) for fraction in (1.3, 0.5)
        for _ in range(20)
    ]  # fmt: skip
    assert np.mean(is_found[:20]) > 0.8
    assert np.mean(is_found[20:]) < 0.2
    assert np.isinf(baseline.smallest(3, LOW_THRESHOLD)[0])  # no three epochs decide


def _is_found(baseline: Baseline, random, size: float, epochs: int) -> bool:
    test = ShiftTest(baseline, LOW_THRESHOLD)
    for known in random.lognormal(7.0, 1.5, epochs):
        pull = np.array([np.sqrt(known) * random.normal() + size * known])
        if test.add(0.0, pull, np.array([known])):
            return True
    return False
