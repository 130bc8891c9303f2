"""Identification online, and validation in closed loop."""

from __future__ import annotations

import numpy as np
import pytest

import armwise as aw
from armwise.control import PD, Feedforward
from armwise.errors import ArgumentError, NotIdentifiable, NotPhysical
from armwise.identification.loop_validation import validate_in_loop
from armwise.identification.online import OnlineIdentification
from armwise.motions import random_motion
from armwise.plants import Encoder, SimulatedArm, TorqueSensor, run
from tests.identification.conftest import samples_of, weighted, with_drives


def test_drops_and_the_whole_give_one_answer(described, data):
    online = OnlineIdentification(described)
    for start in range(0, len(data), 400):
        online.update(data[start : start + 400])
    whole = weighted(described, data)
    now = online.estimate()
    np.testing.assert_allclose(now.base_values, whole.base_values, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(now.fit.rmse, whole.fit.rmse, rtol=1e-6)
    assert online.samples == len(data)


def test_two_observers_merge(described, data):
    first, second = OnlineIdentification(described), OnlineIdentification(described)
    first.update(data[:900])
    second.update(data[900:])
    first.merge(second)
    whole = weighted(described, data)
    np.testing.assert_allclose(
        first.estimate().base_values, whole.base_values, rtol=1e-7, atol=1e-8
    )


def test_forgetting_follows_a_change(arm, described, data):
    heavier = arm.parameters.copy()
    heavier[arm.layout.drives] *= 2.0
    changed = samples_of(arm.with_parameters(heavier), seed=8)
    online = OnlineIdentification(described, forgetting=0.995)
    online.update(data)
    online.update(changed)
    estimate = online.estimate()
    found = dict(zip(estimate.base.indices, estimate.base_values, strict=True))
    place = list(arm.parameter_names).index("joint_2.coulomb")
    assert found[place] == pytest.approx(1.6, rel=0.1)


def test_nothing_known_is_said(described):
    with pytest.raises(NotIdentifiable):
        OnlineIdentification(described).estimate()
    with pytest.raises(ArgumentError):
        OnlineIdentification(described, forgetting=0.0)


def test_the_identified_arm_moves_as_the_real_one():
    real = with_drives(aw.load_arm("two_link_uno"))
    motion = random_motion(real, 4)
    believed = real.with_parameters(0.7 * real.parameters)
    controller = Feedforward(PD(np.full(2, 40.0), np.full(2, 4.0)), believed)
    sensors = [Encoder(resolution=1e-5), TorqueSensor(noise_std=0.01)]
    recording = run(SimulatedArm(real, sensors=sensors, seed=1), controller, motion)
    data = aw.prepare(recording, 20.0, arm=real)
    estimate = weighted(believed, data, aw.PhysicallyConsistent())
    good = validate_in_loop(estimate, recording, controller, motion)
    assert np.all(good.position_rmse < 0.2 * good.tracking_rmse)
    assert np.all(good.torque_error < 0.1)


def test_what_is_no_body_is_not_simulated(described, arm):
    poor = samples_of(arm, seconds=3.0, noise=0.3)
    estimate = weighted(described, poor)
    with pytest.raises(NotPhysical):
        validate_in_loop(estimate, None, None, None)
