"""Plants with further friction: they lose what the columns of a regression say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import armwise as aw
from armwise.control import ComputedTorque, FrictionFeedforward
from armwise.errors import ArgumentError
from armwise.identification import FrictionTerm
from armwise.motions import random_motion
from armwise.plants import Friction, Measurement
from armwise.regression import Columns, FrictionModel
from tests.identification.conftest import samples_of, with_drives

TERMS = (
    (FrictionTerm(0, "joint_1", "hysteresis", 0.02), 1.5),
    (FrictionTerm(1, "joint_2", "load"), 0.15),
    (FrictionTerm(1, "joint_2", "stribeck", 0.3), 0.4),
    (FrictionTerm(0, "joint_1", "quadratic"), 0.2),
)

WARM = (
    *TERMS,
    (FrictionTerm(0, "joint_1", "viscous_warming", 9.0), -0.3),
    (FrictionTerm(1, "joint_2", "coulomb_warming", 5.0), -0.2),
    (FrictionTerm(1, "joint_2", "coulomb_temperature", 30.0), -0.01),
    (FrictionTerm(0, "joint_1", "viscous_temperature", 25.0), -0.02),
)


@pytest.mark.parametrize("holds", [True, False])
def test_a_joint_at_rest_withstands_what_it_would_lose_in_motion(arm, holds):
    """Friction of the load is there at rest, too, where MuJoCo's friction holds."""
    pytest.importorskip("mujoco", reason="needs the extra armwise[sim]")
    q = np.array([0.3, 0.4])
    weight = aw.Dynamics(arm).gravity_torque(q[None])[0]
    offset = np.array([joint.drive.offset for joint in arm.joints])
    coulomb = arm.joints[1].drive.coulomb
    loaded = (FrictionTerm(1, "joint_2", "load"), 0.5)
    plant = aw.MujocoArm(arm, friction=Friction(terms=(loaded,)), friction_holds=holds)
    plant.reset(q)
    # Beyond Coulomb friction by half of what the load adds to it.
    push = np.array([0.0, coulomb + 0.25 * abs(weight[1])])
    for _ in range(300):
        measured = plant.step((weight + offset + push)[None])
    assert (abs(np.ravel(measured.q)[1] - q[1]) < 1e-4) == holds


@pytest.fixture(scope="module")
def arm():
    return with_drives(aw.load_arm("two_link_uno"))


def test_springs_and_warmth_are_what_the_motion_before_has_left(arm):
    data = samples_of(arm, seconds=20.0)
    data = replace(data, temperature=np.full(data.q.shape, 30.0))
    period = float(data.time[1] - data.time[0])
    model = FrictionModel(arm, WARM, period=period)
    # A model begins at rest: not the first, which a column knows to have moved before.
    rows = np.array([300, 1250, len(data) - 1])
    stepped = []
    for k, (q, qd) in enumerate(zip(data.q, data.qd, strict=True)):
        model.torque(q[None], qd[None], np.zeros((1, 2)))
        if k in rows:
            stepped.append(model.state["friction_springs"][:, 0])
    columns = Columns(arm, tuple(term for term, _ in WARM))
    states = columns.friction_states(data, rows)
    np.testing.assert_allclose(states, np.transpose(stepped), atol=1e-6)
    assert np.all(np.abs(states[[0, 4, 5]]) > 1e-3)
    # Rows that were cut from a log know what was before them.
    later = columns.friction_states(data[1000:], rows[1:] - 1000)
    np.testing.assert_allclose(later, states[:, 1:], atol=1e-12)


def test_step_by_step_is_what_the_columns_say(arm):
    data = samples_of(arm, seconds=20.0)
    data = replace(data, temperature=np.stack([20.0 + data.time, 40.0 - data.time], 1))
    columns = Columns(arm, tuple(term for term, _ in WARM))
    weights = [coefficient for _, coefficient in WARM]
    expected = columns.friction_columns(data, slice(0, len(data))) @ weights
    bare = arm.parameters.copy()
    bare[arm.layout.drives] = 0.0
    rigid = aw.Dynamics(arm.with_parameters(bare))
    link = rigid.inverse_dynamics(data.q, data.qd, data.qdd)
    model = FrictionModel(arm, WARM, period=1.0 / data.rate_hz)
    found = []
    for k, t in enumerate(link):
        model.temperature = data.temperature[k]
        found.append(model.torque(data.q[k : k + 1], data.qd[k : k + 1], t[None])[0])
    # A model begins at rest, a column as the motion before the log has stretched it:
    # both have forgotten that once they slide.
    widths = [term.scale for term, _ in WARM if term.form == "hysteresis"]
    slides = np.abs(data.q - data.q[0]).min(axis=1) > 2.0 * max(widths)
    first = int(np.argmax(slides))
    assert 0 < first < len(data) // 10
    # Between its knots a column's warmth is a line.
    np.testing.assert_allclose(found[first:], expected[first:], atol=1e-6)
    with pytest.raises(ArgumentError, match="time between two calls"):
        FrictionModel(arm, WARM).torque(data.q[:1], data.qd[:1], link[:1])


@pytest.mark.parametrize(
    "kind", [aw.SimulatedArm, pytest.param(aw.MujocoArm, marks=pytest.mark.slow)]
)
def test_a_plant_moves_with_it_and_an_estimate_finds_it(arm, kind):
    if kind is aw.MujocoArm:
        pytest.importorskip("mujoco")
    plant = kind(arm, friction=Friction(terms=TERMS, smoothing=0.01))
    motion = random_motion(arm, 3, 6.0)
    recording = aw.run(plant, ComputedTorque(arm, 400.0, 40.0), motion)
    truth = aw.prepare(recording, 20.0, arm=arm, lag=0.0005)
    estimate = aw.identify(arm, truth, friction=[term for term, _ in TERMS])
    plain = aw.identify(arm, truth, friction="linear")
    # Not at reversals, where joints stick for a moment.
    ratio = estimate.fit.moving.relative_error / plain.fit.moving.relative_error
    assert ratio[0] < 0.5
    assert ratio[1] < 0.9
    hysteresis, load = (value for _, value in estimate.friction[:2])
    assert hysteresis == pytest.approx(1.5, rel=0.1)
    assert load == pytest.approx(0.15, abs=0.08)
    chosen = {t.name for t in aw.identification.select_friction(arm, truth).terms}
    assert "joint_1.hysteresis(0.016)" in chosen


def test_what_an_estimate_found_can_be_simulated(arm):
    data = samples_of(arm, seconds=20.0)
    estimate = aw.identify(arm, data, friction=[term for term, _ in TERMS])
    terms = estimate.friction
    assert [term for term, _ in terms] == [term for term, _ in TERMS]
    plant = aw.SimulatedArm(estimate.arm, friction=Friction(terms=terms))
    plant.reset([0.1, 0.2])
    plant.step(np.zeros((1, 2)))
    assert np.isfinite(plant.state.q).all()


def test_friction_of_another_arm_is_refused(arm):
    stranger = ((FrictionTerm(4, "joint_5", "load"), 0.1),)
    with pytest.raises(ArgumentError, match="which two_link_uno has not"):
        aw.SimulatedArm(arm, friction=Friction(terms=stranger))


def test_friction_pushed_along_the_reference_halves_the_error(arm):
    """A controller that knows the plant's terms, beside one that does not."""
    motion = random_motion(arm, 3, 1.5)
    errors = []
    for terms in ((), TERMS):
        plant = aw.SimulatedArm(arm, friction=Friction(terms=TERMS, smoothing=0.01))
        inner = ComputedTorque(arm, 100.0, 20.0)
        control = FrictionFeedforward(inner, arm, terms)
        log = aw.run(plant, control, motion)
        time = log["q_1"].time
        wanted = motion.sample(time - time[0]).q
        measured = np.stack([log[f"q_{i + 1}"].values for i in range(arm.dof)], axis=1)
        errors.append(np.sqrt(np.mean((measured - wanted) ** 2, axis=0)))
    assert np.all(errors[1] < 0.5 * errors[0])


def test_friction_feedforward_goes_on_where_it_was(arm):
    motion = random_motion(arm, 3, 2.0)
    measurement = Measurement(q=np.zeros((1, 2)), qd=np.zeros((1, 2)))
    whole = FrictionFeedforward(ComputedTorque(arm, 1.0, 1.0), arm, TERMS)
    whole.reset(1, 1e-2)
    for k in range(100):
        whole.torque(0.01 * k, motion.sample(np.array([0.01 * k])), measurement)
    later = FrictionFeedforward(ComputedTorque(arm, 1.0, 1.0), arm, TERMS)
    later.reset(1, 1e-2)
    later.restore(whole.to_dict())
    sample = motion.sample(np.array([1.0]))
    np.testing.assert_array_equal(
        whole.torque(1.0, sample, measurement), later.torque(1.0, sample, measurement)
    )
    state = whole.to_dict() | {"friction_springs": np.zeros((1, 1))}
    with pytest.raises(ArgumentError, match="friction_springs"):
        later.restore(state)
