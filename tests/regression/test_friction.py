"""Friction terms: laws of their columns, and coefficients that come back."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import armwise as aw
from armwise.errors import ArgumentError, RecordingError
from armwise.identification import (
    FrictionTerm,
    friction_guards,
    friction_ripples,
    friction_search,
    friction_selection,
    select_friction,
)
from armwise.identification.friction_selection import chance_covariance
from armwise.motions import random_motion
from armwise.recordings import Preparation
from armwise.regression import (
    FORMS,
    Columns,
    DriveMotion,
    FrictionColumns,
    FrictionForm,
    load_rows,
    low_pass,
    low_pass_gain,
)
from armwise.regression.friction_columns import _lagging
from studies.friction_terms import known_log, run_once
from tests.identification.conftest import samples_of, with_drives


@pytest.fixture(scope="module")
def arm():
    return with_drives(aw.load_arm("two_link_uno"))


@pytest.fixture(scope="module")
def data(arm):
    return samples_of(arm, noise=0.003, seconds=60.0)


def term(form, joint=0, scale=1.0):
    return FrictionTerm(joint, f"joint_{joint + 1}", form, scale)


def column_of(one, data):
    """Column of a joint's term."""
    columns = FrictionColumns((one,), np.eye(data.dof), data, np.sign(data.qd))
    return columns.fill(slice(0, len(data)), lambda: data.tau)[0]


def stop(q, width, z=0.0):
    """The stop operator as it is defined, sample by sample."""
    before, values = q[0], []
    for position in q:
        z = min(max(z + position - before, -width), width)
        before = position
        values.append(z / width)
    return np.array(values)


def stretched(data, row):
    """What motion from rest has stretched a spring by, fully if that slows down."""
    v, a = data.qd[row, 0], data.qdd[row, 0]
    return np.sign(v) * (v**2 / (2.0 * abs(a)) if v * a > 0.0 else 9.0)


@pytest.mark.parametrize("width", [1e-3, 0.05, 0.7])
def test_hysteresis_is_the_stop_operator_of_each_segment(data, width):
    cut = replace(data, starts=(0, 1234))
    column = column_of(term("hysteresis", scale=width), cut)
    expected = [
        stop(data.q[part, 0], width, stretched(data, part.start))
        for part in cut.segments
    ]
    np.testing.assert_allclose(column, np.concatenate(expected), atol=1e-12)


def test_a_log_that_begins_at_rest_begins_unstretched(data):
    still = replace(data, qd=np.where(np.arange(6000)[:, None] < 5, 0.0, data.qd))
    column = column_of(term("hysteresis", scale=0.05), still)
    np.testing.assert_allclose(column, stop(data.q[:, 0], 0.05), atol=1e-12)


def test_a_log_cut_at_its_beginning_has_the_friction_that_the_whole_has(data):
    """Rows that a low-pass does not know are lost, and what came before them."""
    whole = column_of(term("hysteresis", scale=0.01), data)
    for first in (300, 777, 1900):
        lost = replace(data[first:], whole=None)
        column = column_of(term("hysteresis", scale=0.01), lost)
        np.testing.assert_allclose(column, whole[first:], atol=1e-12)


def test_a_pause_keeps_the_spring_stretched(data):
    q = np.repeat(data.q[:3000:30], 30, axis=0)
    held = replace(data[:3000], q=q, qd=np.zeros((3000, data.dof)))
    column = column_of(term("hysteresis", scale=0.02), held)
    np.testing.assert_allclose(column, stop(q[:, 0], 0.02), atol=1e-12)


def test_chunks_are_filtered_as_the_whole(arm):
    long = samples_of(arm, seconds=200.0)
    seen = Preparation(torque_bandwidth_hz=4.0, speed_resolution=(1e-3, 1e-3))
    long = replace(long, preparation=seen)
    columns = Columns(arm, (term("hysteresis", scale=0.01),))
    sharp = stop(long.q[:, 0], 0.01, stretched(long, 0))
    whole = low_pass(sharp, 4.0, long.rate_hz, "constant")
    found = columns.friction_columns(long, slice(0, len(long)))[:, 0, 0]
    np.testing.assert_allclose(found, whole, atol=1e-7)
    # Another way through the same rows: blocks that begin within a chunk.
    columns = replace(columns, has_lags=True)  # a column of its own, after these
    some = columns.friction_columns(long, slice(9_500, 17_000))[:, 0, 0]
    np.testing.assert_allclose(some, whole[9_500:17_000], atol=1e-7)


def test_a_cut_changes_no_friction(arm, data):
    """The torque was filtered, and friction had its history, before rows were cut."""
    seen = Preparation(torque_bandwidth_hz=1.0, speed_resolution=(1e-3, 1e-3))
    data = replace(data, preparation=seen)
    columns = Columns(arm, (term("hysteresis", scale=0.3), term("load", 1)))
    rows, every = slice(1700, 2100), slice(0, len(data))
    whole = columns.friction_columns(data, every)[rows]
    # However often it was cut, or other torques put in place.
    part = data[1500:][200:600]
    part = replace(part, tau=2.0 * part.tau)
    found = columns.friction_columns(part, slice(0, len(part)))
    np.testing.assert_allclose(found, whole, atol=1e-7)
    np.testing.assert_allclose(part.direction(), data.direction()[rows], atol=1e-7)
    # Without what was around it, the first rows would be held instead.
    alone = replace(part, whole=None)
    assert np.abs(alone.direction() - part.direction()).max() > 0.1
    # Of another motion nothing is known beyond its ends.
    other = replace(part, qd=part.qd + 1.0)
    assert other.whole is None
    # Thinned out, what is around is thinned out as well.
    thin = data[1701:2100:2]
    expected = data[1::2].direction()[850:1050]
    np.testing.assert_allclose(thin.direction(), expected, atol=1e-7)


def test_load_friction_takes_what_the_gear_carries(arm, data):
    columns = Columns(arm, (term("load", 1), term("load_driving", 1)))
    both, driving = columns.friction_columns(data, slice(0, len(data)))[:, 1].T
    bare = arm.parameters.copy()
    bare[arm.layout.drives] = 0.0
    rigid = aw.Dynamics(arm.with_parameters(bare))
    torque = rigid.inverse_dynamics(data.q, data.qd, data.qdd)[:, 1]
    direction = np.sign(data.qd[:, 1])
    np.testing.assert_allclose(both, np.abs(torque) * direction, atol=1e-9)
    np.testing.assert_allclose(
        driving, np.where(torque * direction > 0, both, 0.0), atol=1e-9
    )


def test_a_motor_of_two_joints_carries_what_does_the_work():
    # Motor 3 is turned by joints 1 and 2: power τ·q̇ is that of the motors.
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    torque, speed = np.array([5.0, 2.0]), np.array([0.3, -0.7])
    loads = load_rows(rows) @ torque
    working = [0, 2]
    assert loads[working] @ (rows[working] @ speed) == pytest.approx(torque @ speed)
    np.testing.assert_allclose(loads, [3.0, 2.0, 2.0])


@pytest.mark.parametrize(
    ("terms", "coefficients"),
    [
        ([term("load", 1)], [0.12]),
        ([term("hysteresis", 0, 0.016)], [1.5]),
        ([term("load", 0), term("hysteresis", 1, 0.064)], [0.1, 0.9]),
    ],
)
def test_terms_that_are_there_are_selected_and_measured(arm, data, terms, coefficients):
    truth = Columns(arm, tuple(terms)).friction_columns(data, slice(0, len(data)))
    bent = replace(data, tau=data.tau + truth @ coefficients)
    chosen = select_friction(arm, bent).terms
    assert {(t.joint, t.form) for t in chosen} == {(t.joint, t.form) for t in terms}
    estimate = aw.identify(arm, bent, aw.WeightedLeastSquares(), friction=terms)
    found = estimate.all_parameters[-len(terms) :]
    std = estimate.base_std[-len(terms) :]
    assert np.all(np.abs(found - coefficients) < 4.0 * std + 1e-3)
    assert np.all(std < 0.1 * np.array(coefficients))


def test_friction_that_builds_up_little_by_little_takes_several_widths(
    arm, data, monkeypatch
):
    terms = [term("hysteresis", 0, width) for width in (2e-3, 9e-3, 40e-3, 150e-3)]
    truth = Columns(arm, tuple(terms)).friction_columns(data, slice(0, len(data)))
    bent = replace(data, tau=data.tau + truth @ np.full(4, 0.5))
    # At once, not one after the other.
    monkeypatch.setattr(friction_search, "_MOST_TERMS", 1)
    chosen = select_friction(arm, bent).terms
    assert {(t.joint, t.form) for t in chosen} == {(0, "hysteresis")}
    assert len(chosen) > 1


def bristles(speed, rate, limit, static, slow, reach):
    """Friction of LuGre's bristles: builds up over a reach, then falls with speed."""
    stiffness, z, torque = limit / reach, 0.0, []
    for v in speed:
        most = limit * (1.0 + (static - 1.0) * np.exp(-((v / slow) ** 2)))
        z = (z + v / rate) / (1.0 + stiffness * abs(v) / most / rate)
        torque.append(stiffness * z)
    return np.array(torque)


@pytest.mark.parametrize(
    ("seed", "static", "slow", "reach"),
    [(0, 1.6, 0.2, 4e-3), (1, 1.6, 0.08, 2e-3), (4, 1.6, 0.08, 2e-3)],
)
def test_friction_that_builds_up_and_falls_with_speed_is_selected(
    arm, seed, static, slow, reach
):
    """After a reversal it is short of Coulomb's and then beyond it: on the average over
    slow rows neither."""
    rate = 500.0
    time = np.arange(int(40.0 * rate)) / rate
    q, qd, qdd = random_motion(arm, seed).sample(time % 10.0)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau[:, 0] += bristles(qd[:, 0], rate, 2.0, static, slow, reach)
    noise = np.random.default_rng(seed).standard_normal(tau.shape)
    tau += 0.01 * np.abs(tau).max(axis=0) * noise
    log = aw.prepare(aw.Recording.from_arrays(time, q=q, tau=tau), arm=arm)
    linear, chosen = (
        aw.identify(arm, log, aw.WeightedLeastSquares(), friction=friction)
        for friction in ("linear", "auto")
    )
    before, after = (one.fit.reversing.relative_error[0] for one in (linear, chosen))
    assert before > 0.3
    assert after < 0.3 * before
    assert (0, "hysteresis") in {(t.joint, t.form) for t, _ in chosen.friction}


@pytest.mark.parametrize(("beside", "is_taken"), [(0.0, True), (0.4, False)])
def test_the_narrowest_hysteresis_is_selected_alone_if_plain(
    arm, data, beside, is_taken
):
    """A pause that no encoder shows would look alike, but leave other errors."""
    truth = Columns(arm, (term("hysteresis", 0, 1e-3),))
    shape = truth.friction_columns(data, slice(0, len(data)))[..., 0]
    other = beside * np.sin(3.0 * data.time)[:, None]
    tau = data.tau + 0.3 * shape + other
    widths = [
        t.scale
        for t in select_friction(arm, replace(data, tau=tau)).terms
        if t.form == "hysteresis" and t.joint == 0
    ]
    assert (widths == [1e-3]) == is_taken


def test_hysteresis_is_selected_whatever_else_a_joint_carries(arm, data):
    """A pause is off by no more than friction, of which a load is no part."""
    shape = column_of(term("hysteresis", 0, 0.016), data)[:, None] * [1.0, 0.0]
    tau = data.tau + 0.3 * shape + [100.0, 0.0]
    terms = select_friction(arm, replace(data, tau=tau)).terms
    assert {(t.joint, t.form) for t in terms} == {(0, "hysteresis")}


def test_scales_are_chosen_again_beside_the_others_and_stand_ins_dropped(
    arm, data, monkeypatch
):
    speed = 0.06 * float(np.abs(data.qd[:, 0]).max())
    truth = Columns(arm, (term("stribeck", 0, speed),))
    shape = truth.friction_columns(data, slice(0, len(data)))[..., 0]
    searches = []
    run = friction_search.FrictionSearch.run

    def noted(search):
        searches.append(search)
        return run(search)

    monkeypatch.setattr(friction_search.FrictionSearch, "run", noted)
    select_friction(arm, replace(data, tau=data.tau + 1.5 * shape))
    (search,) = searches
    own = [k for k, t in enumerate(search._terms) if t.joint == 0]
    speeds = {t.scale: k for k in own if (t := search._terms[k]).form == "stribeck"}
    assert search._exchanged([speeds[max(speeds)]]) == [speeds[speed]]
    other = next(k for k in own if search._terms[k].form == "quadratic")
    assert search._needed([speeds[speed], other]) == [speeds[speed]]
    assert search._needed([other, speeds[speed]]) == [speeds[speed]]
    # Hysteresis that was taken beside a term that is dropped must help by itself.
    widths = [k for k in own if search._terms[k].form == "hysteresis"]
    assert search._needed([speeds[speed], *widths, other]) == [speeds[speed]]


@pytest.mark.parametrize(("gain", "is_taken"), [(0.7, True), (0.4, False)])
def test_hysteresis_of_joints_that_stick_takes_half_of_the_error_away(gain, is_taken):
    """Or 2 % of the torque: sticking looks alike, and explains less."""
    before = np.ones((2, 10))
    after = (1.0 - gain) * before * np.linspace(0.9, 1.1, 10)
    # Errors of a hundredth of the torque.
    torque = np.full(2, 10.0) / 0.01**2
    worth = friction_guards.worth_of_terms(before, after, torque, True, sticks=True)
    assert (worth > 0.0) == is_taken
    assert friction_guards.worth_of_terms(before, after, torque, True) > 0.0


@pytest.mark.parametrize(
    ("left", "is_taken"), [((0.57, 1.02), True), ((0.7, 7.3), False)]
)
def test_a_stribeck_speed_is_right_for_fitted_rows_and_for_all(left, is_taken):
    """Rows at which a joint sticks know nothing of speeds, but are not forgotten."""

    class Search(friction_search.FrictionSearch):
        """Two speeds; squared errors beside those of the second."""

        def __init__(self):
            self._terms = (term("stribeck", 0, 0.1), term("stribeck", 0, 0.2))
            self._joints, self._is_seen = [np.array([0])] * 2, np.ones(2, dtype=bool)
            self._reversing = frozenset()

        def _solutions(self, selection, whole, candidates):
            return (np.array(selection),)

        def _errors(self, x, joints):
            errors = left if x[0] == 0 else (1.0, 1.0)
            return np.reshape(errors, (2, 1, 1))

    assert Search()._exchanged([1]) == ([0] if is_taken else [1])


@pytest.mark.parametrize(
    ("forms", "plain", "wrong"),
    [
        (("stribeck", "root", "quadratic"), (-0.1, 0.3), [2]),
        (("stribeck", "root", "quadratic"), (0.1, 0.3), []),
        (("root",), (-0.1, 0.3), []),
        (("root", "quadratic", "hysteresis"), (-0.1, 0.3), []),
    ],
)
def test_functions_of_speed_do_not_stand_for_coulomb_and_viscous_friction(
    forms, plain, wrong
):
    """A stranger's joint had neither, and was 12 % off at three times the speed."""

    class Search(friction_search.FrictionSearch):
        """Coefficients of Coulomb and viscous friction; all of the terms brake."""

        def __init__(self):
            self._terms = tuple(term(form, 0, 0.1) for form in forms)
            self._plain, self._own = {0: [1, 2]}, 3
            self._reversing = frozenset()

        def _solutions(self, selection, whole, candidates):
            return (np.array([[0.0, *plain, *np.ones(len(forms)), -1.0]]),)

    assert Search()._reversed(range(len(forms))) == wrong


def test_friction_with_a_memory_is_learnt_while_it_reverses_but_not_stuck(arm, data):
    """Of a joint at rest, position tells no friction."""
    stuck = np.zeros(data.q.shape)
    stuck[100:200, 0] = 1.0
    still = replace(data.preparation, speed_resolution=(1e-6, 1e-6))
    held = replace(data, stuck=stuck, preparation=still)
    direction = [np.where(np.arange(len(data))[:, None] < 150, 0.0, np.sign(data.qd))]
    plain, remembering = (
        Columns(arm, terms).trust(held, direction)
        for terms in ((), (term("hysteresis", 0, 0.016),))
    )
    assert plain[:150].max() == 0.0
    assert plain[150:200].min() == 1.0
    assert remembering[:100, 0].min() == 1.0
    assert remembering[100:200, 0].max() == 0.0
    assert remembering[200:, 0].min() == 1.0


def test_rows_far_from_a_reversal_may_pay_a_little_for_friction_with_a_memory():
    """All rows are fitted with it; what they gain counts, unless others are harmed."""
    search = object.__new__(friction_search.FrictionSearch)
    # Squared torque and error of fitted rows and of all, in ten stretches.
    search._torque = search._friction = np.array([[1000.0], [1500.0]])
    search._sticking = frozenset()
    before = np.array([np.full(10, 1.0), np.full(10, 9.0)])
    joints = np.array([0])

    def gain(fitted, remembers):
        after = np.array([np.full(10, fitted), np.linspace(3.0, 3.2, 10)])
        return search._gain(before, after, joints, remembers)

    assert gain(1.3, remembers=True) == pytest.approx(1.0 - 3.1 / 9.0)
    assert gain(1.3, remembers=False) == 0.0
    # √20 − √10 is more than a fiftieth of √1000.
    assert gain(2.0, remembers=True) == 0.0
    # Where a fiftieth of the torque is far more, a quarter of their own error is left.
    search._torque *= 50.0
    assert gain(1.5, remembers=True) > 0.0
    assert gain(1.6, remembers=True) == 0.0
    # What takes three quarters of the whole error away may cost a tenth of that.
    before[1] *= 2.0
    assert gain(2.4, remembers=True) > 0.0
    assert gain(2.6, remembers=True) == 0.0
    # Where they surely pay, a fiftieth of the torque must be explained: √149 of √75000
    # is more than twice that, of √750000 less.
    assert gain(1.5, remembers=True) > 0.0
    search._torque *= 10.0
    assert gain(1.5, remembers=True) == 0.0
    assert gain(1.0, remembers=True) > 0.0


def test_friction_with_a_memory_is_taken_for_what_it_explains_around_reversals():
    """Rows far from them are many; what builds up over a distance adds little there."""
    before = np.array([np.full(10, 8.0), np.full(10, 9.0)])
    torque = np.array([80_000.0, 90_000.0])

    def gain(fitted, every, sticks=False):
        after = np.stack([fitted, every])
        return friction_search.worth_of_terms(before, after, torque, True, sticks)

    surely, hardly = np.linspace(7.7, 7.9, 10), np.linspace(7.6, 8.4, 10)
    # Half of the error around reversals, 8 % of all of it.
    assert gain(surely, surely + 0.5) == pytest.approx(1.0 - 8.3 / 9.0)
    assert gain(surely, surely + 0.6) == 0.0
    # A joint that is seen to stick looks alike: it must explain 2 % of its torque.
    assert gain(surely, surely + 0.5, sticks=True) == 0.0
    # Rows far from reversals must know of it, too,
    assert gain(hardly, surely + 0.5) == 0.0
    # and pauses too short to be seen leave as much as half a hundredth of the torque.
    torque *= 10.0
    assert gain(surely, surely + 0.5) == 0.0


def test_rows_of_clear_motion_do_not_pay_for_how_a_joint_is_held():
    """What is plainly there may cost a tenth of its gain, unless a joint sticks."""
    before = np.stack([np.full(10, 1.0), np.full(10, 400.0)])
    after = np.stack([np.full(10, 9.0), np.linspace(40.0, 60.0, 10)])
    torque = np.full(2, 1e6)

    def worth(sticks):
        return friction_guards.worth_of_terms(before, after, torque, True, sticks)

    assert worth(sticks=False) > 0.0
    assert worth(sticks=True) == 0.0
    after[0] = 0.9
    assert worth(sticks=True) > 0.0


@pytest.mark.parametrize("alone", [False, True])
def test_hysteresis_of_a_joint_that_sticks_is_more_than_one_stretch_shows(alone):
    """A joint that stands still once may have more error there than elsewhere."""
    around = np.full(10, 20.0)
    if alone:
        around[1:] = 0.4
        around[0] = 180.0
    fitted = np.full(10, 1.0)
    before = np.stack([fitted, fitted + around])
    after = np.stack([0.9 * fitted, 0.9 * fitted + 0.1 * around])
    torque = np.array([3e4, 4e4])
    plainly = friction_search.worth_of_terms(before, after, torque, True)
    assert plainly > 0.0
    worth = friction_search.worth_of_terms(before, after, torque, True, sticks=True)
    assert (worth == 0.0) == alone


@pytest.mark.parametrize(("turns", "is_taken"), [(7, True), (2, False)])
def test_friction_with_a_memory_need_not_help_where_nothing_reverses(turns, is_taken):
    """But it must wherever something does: a joint that sticks twice looks alike."""
    around = np.where(np.arange(10) < turns, 70.0 / turns, 0.01)
    left_over = np.where(np.arange(10) < turns, 7.0 / turns, 0.009)
    fitted = np.full(10, 1.0)
    # Rows far from reversals pay a little where nothing is gained.
    price = np.where(np.arange(10) < 7, 1.0, 1.05)
    before, after = (
        np.stack([own, own + more])
        for own, more in ((fitted, around), (price, left_over))
    )
    torque = np.array([1e4, 1.2e4])
    worth = friction_search.worth_of_terms(before, after, torque, remembers=True)
    assert (worth > 0.0) == is_taken


@pytest.mark.parametrize(("count", "is_taken"), [(3, True), (2, False)])
def test_hysteresis_is_judged_where_friction_reverses(count, is_taken):
    """Elsewhere it is Coulomb's, and errors change by chance; scatter takes three."""
    reverses = np.arange(10) >= 10 - count
    around = np.where(reverses, 3.0, 0.0)
    chance = np.tile([0.8, 1.2], 5)
    fitted = np.where(reverses, [0.50, 0.52] * 5, chance)
    before = np.stack([np.ones(10), 1.0 + around])
    after = np.stack([fitted, fitted + 0.1 * around])
    torque = np.array([2e4, 4e4])

    def worth(after, **settings):
        return friction_guards.worth_of_terms(before, after, torque, True, **settings)

    assert (worth(after, friction=0.1 * torque) > 0.0) == is_taken
    # A ripple shows in all stretches, and a joint that sticks may do so in any.
    assert worth(after) == 0.0
    assert worth(after, friction=0.1 * torque, sticks=True) == 0.0
    # Nor is it more than a pause if rows far from reversals gain nothing.
    after[:, ~reverses] += 0.3
    assert worth(after, friction=0.1 * torque) == 0.0


def test_hysteresis_that_shows_around_reversals_need_not_show_in_all_rows():
    """Other errors are larger; it takes most of what is around reversals away."""
    before = np.stack([np.full(10, 8.0), np.full(10, 9.0)])
    torque = np.array([6e5, 7e5])

    def worth(left, scale=1.0, friction=0.04):
        fitted = np.tile([6.2, 9.7], 5)
        after = np.stack([fitted, fitted + left])
        size = scale * torque
        return friction_guards.worth_of_terms(
            before, after, size, True, friction=friction**2 * size
        )

    left = np.linspace(0.1, 0.2, 10)
    assert worth(left) == pytest.approx(1.0 - 8.1 / 9.0)
    assert worth(np.linspace(0.5, 0.7, 10)) == 0.0
    # 0.4 % of the torque is as much as pauses leave of much friction, not of little.
    assert worth(left, friction=0.1) == 0.0
    assert worth(left, scale=3.0) == 0.0


def test_what_shows_around_reversals_alone_is_no_function_of_speed():
    """A joint that sticks there looks like one; rows that are fitted do not say so."""
    search = object.__new__(friction_search.FrictionSearch)
    search._torque = search._friction = np.array([[1000.0], [1500.0]])
    search._sticking = frozenset()
    before = np.array([np.full(10, 4.0), np.full(10, 9.0)])
    everywhere = np.linspace(5.0, 5.2, 10)
    for fitted, is_taken in (
        (np.linspace(3.0, 3.2, 10), True),
        # As large a fall on the whole, but of some stretches only.
        (np.tile([1.6, 4.9], 5), False),
    ):
        after = np.array([fitted, everywhere])
        gain = search._gain(before, after, np.array([0]), remembers=False)
        assert (gain > 0.0) == is_taken


def test_terms_that_would_predict_alike_are_part_of_the_spread(arm, data):
    """Each row of it is the way from the fit to one with another shape of friction."""
    own = term("stribeck", 1, 0.06 * float(np.abs(data.qd[:, 1]).max()))
    truth = Columns(arm, (own,)).friction_columns(data, slice(0, len(data)))
    noise = 0.2 * np.random.default_rng(1).normal(size=data.tau.shape)
    bent = replace(data, tau=data.tau + truth @ [1.5] + noise)
    selection = select_friction(arm, bent)
    (chosen,) = selection.terms
    least = aw.WeightedLeastSquares()
    others = [t for t in selection.candidates if t.joint == 1 and not t.kind.remembers]
    fits = {t: aw.identify(arm, bent, least, friction=[t]) for t in others}
    ways = []
    for other in set(others) - {chosen}:
        way = fits[other].base_values - fits[chosen].base_values
        way[-1] = -fits[chosen].base_values[-1]
        ways.append(way / np.linalg.norm(way))
    size = np.linalg.norm(selection.spread, axis=1)
    rows = selection.spread[size > 0.05 * size.max()]
    assert len(rows)
    assert rows.shape[1] == fits[chosen].base_values.size
    for row in rows:
        alike = np.array(ways) @ row / np.linalg.norm(row)
        assert alike.max() > 0.99
    # Others that predict as well take part of what Coulomb friction is to be.
    estimate = aw.identify(arm, bent, least)
    names = [estimate.base.names[i] for i in estimate.base.indices]
    coulomb = names.index("joint_2.coulomb")
    assert estimate.base_std[coulomb] > fits[chosen].base_std[coulomb]


def test_ripple_is_found_by_its_period_where_enough_periods_show_it(arm, data):
    """Seven periods in the range of motion are; two are a slope and a bow."""
    reach = float(np.ptp(data.q[:, 1]))
    for periods, is_seen in ((7.3, True), (2.0, False)):
        period = reach / periods
        waves = [term(f"ripple_{x}", 1, period) for x in ("sine", "cosine")]
        truth = Columns(arm, tuple(waves)).friction_columns(data, slice(0, len(data)))
        bent = replace(data, tau=data.tau + truth @ [0.3, -0.4])
        chosen = [t for t in select_friction(arm, bent).terms if "ripple" in t.form]
        assert {(t.joint, t.form) for t in chosen} == (
            {(1, "ripple_sine"), (1, "ripple_cosine")} if is_seen else set()
        )
        assert all(t.scale == pytest.approx(period, rel=0.01) for t in chosen)


@pytest.mark.parametrize("phase", [0.0, 0.8, 1.57])
def test_a_ripple_has_both_waves_whatever_its_phase(arm, data, phase):
    period = float(np.ptp(data.q[:, 1])) / 7.3
    waves = [term(f"ripple_{x}", 1, period) for x in ("sine", "cosine")]
    truth = Columns(arm, tuple(waves)).friction_columns(data, slice(0, len(data)))
    bent = replace(data, tau=data.tau + truth @ [np.cos(phase), np.sin(phase)])
    forms = {t.form for t in select_friction(arm, bent).terms if t.joint == 1}
    assert forms == {"ripple_sine", "ripple_cosine"}


def geared(arm, *gears):
    """The arm, turns of its motors known."""
    pairs = zip(arm.joints, gears, strict=True)
    return replace(arm, joints=tuple(replace(j, gear=gear) for j, gear in pairs))


def with_friction_wave(arm, data, size, gear=9.0):
    """What friction that repeats with the motor of joint 2 adds, and its terms."""
    waves = [term(f"coulomb_{x}", 1, 2.0 * np.pi / gear) for x in ("sine", "cosine")]
    truth = Columns(arm, tuple(waves)).friction_columns(data, slice(0, len(data)))
    return replace(data, tau=data.tau + truth @ [0.6 * size, -0.8 * size]), waves


def test_friction_that_repeats_with_the_motor_is_found_where_its_gear_is_known(
    arm, data
):
    known = geared(arm, None, 9.0)
    coulomb = arm.joints[1].drive.coulomb
    bent, waves = with_friction_wave(arm, data, 0.5 * coulomb)
    estimate = aw.identify(known, bent)
    found = dict(estimate.friction)
    assert set(found) == set(waves)
    values = [found[wave] for wave in waves]
    np.testing.assert_allclose(values, [0.3 * coulomb, -0.4 * coulomb], rtol=0.03)
    for other, log in ((known, data), (arm, bent)):
        terms = select_friction(other, log).terms
        assert not [t for t in terms if t.form.startswith("coulomb_")]


def test_friction_that_would_drive_at_some_positions_is_not_taken(arm, data):
    """Larger than all dry friction of the joint: something else, but no friction."""
    bent, waves = with_friction_wave(arm, data, 3.0 * arm.joints[1].drive.coulomb)
    assert not set(waves) & set(select_friction(geared(arm, None, 9.0), bent).terms)


def filtered_log(arm, seed, waves):
    """Slow motion whose torque shows waves of joint 2 through a low-pass of 2 Hz."""
    rng = np.random.default_rng(seed)
    shape, t = (3, arm.dof), np.arange(4000) / 100.0
    rate = 2.0 * np.pi * rng.uniform(0.08, 0.25, shape)
    size, start = rng.uniform(0.3, 0.8, shape), rng.uniform(0.0, 6.3, shape)
    phase = t[:, None, None] * rate + start
    q = (size * np.sin(phase)).sum(axis=1)
    qd = (size * rate * np.cos(phase)).sum(axis=1)
    qdd = -(size * rate**2 * np.sin(phase)).sum(axis=1)
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau[:, 1] += 1.5 * np.sin(waves * q[:, 1] + 1.0) if waves else 0.0
    tau += 0.01 * rng.standard_normal(tau.shape)
    return aw.Recording.from_arrays(t, q=q, tau=tau)


@pytest.mark.parametrize(("spots", "stands_out"), [(400, True), (3, False)])
def test_a_wave_that_few_turning_points_show_has_rivals(spots, stands_out):
    """From one to the next, waves of several lengths have the same phase."""
    rng, numbers = np.random.default_rng(0), np.arange(150.0, 250.0, 0.25)
    q = rng.choice(rng.uniform(0.0, 1.5, spots), 400)
    residual = np.sin(200.0 * q + 1.0) + rng.normal(size=q.size)
    waves = np.stack([np.cos(np.outer(q, numbers)), np.sin(np.outer(q, numbers))])
    pairs = ((0, 0), (1, 1), (0, 1))
    parts = [slice(k, k + 40) for k in range(0, 400, 40)]
    products = [[residual[r] @ wave[r] for r in parts] for wave in waves]
    squares = [[(waves[a] * waves[b])[r].sum(axis=0) for r in parts] for a, b in pairs]
    sums = friction_ripples._Sums(numbers, np.array(products), np.array(squares))
    rival = friction_ripples._rival(sums, residual, 1.0)
    assert (rival < friction_ripples._RIVAL) == stands_out
    assert stands_out or rival > 0.9


@pytest.mark.parametrize("waves", [404.0, 250.0])
def test_waves_that_only_slow_motion_shows_are_found_and_predict(arm, waves):
    """At the usual speed they are twenty times as fast as the torque's low-pass."""
    fitted = aw.prepare(filtered_log(arm, 0, waves), 2.0, arm=arm, lag=0.0)
    unseen = aw.prepare(filtered_log(arm, 10, waves), like=fitted)
    terms = select_friction(arm, fitted).terms
    forms = {(t.joint, t.form) for t in terms}
    assert forms == {(1, "ripple_sine"), (1, "ripple_cosine")}
    assert 2.0 * np.pi / terms[0].scale == pytest.approx(waves, abs=0.2)
    plain, all_terms = (
        aw.identify(arm, fitted, friction=some).validate(unseen).relative_error[1]
        for some in ((), terms)
    )
    assert all_terms < 0.5 * plain


def test_slow_motion_shows_no_waves_that_are_not_there(arm):
    for seed in range(3):
        fitted = aw.prepare(filtered_log(arm, seed, 0.0), 2.0, arm=arm, lag=0.0)
        assert select_friction(arm, fitted).terms == ()


def test_a_wave_is_worth_what_it_explains_where_it_was_not_chosen():
    """Of a thousand waves the best explains a fifth of 60 rows of noise, by luck."""
    worth = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        q, noise = rng.uniform(0.0, 6.0, 60), rng.standard_normal(60)
        for residual in (noise, 0.5 * noise + np.sin(80.0 * q)):
            at = (q, np.zeros(60), residual, np.arange(60) // 6, (4.0, 500.0))
            sums = friction_ripples._plain_waves(*at)
            worth.append(friction_ripples._worth(sums, residual))
    by_luck, there = np.mean(np.reshape(worth, (10, 2)), axis=0)
    assert by_luck < 0.0
    # A half in power of the wave over three quarters.
    assert there == pytest.approx(2.0 / 3.0, abs=0.1)


def test_waves_follow_the_position_as_it_was_before_the_low_pass(arm):
    """A drive that its ripple shakes, faster than the low-pass lets through."""
    t = np.arange(3000) / 100.0
    q = np.stack([np.sin(t), np.cos(0.7 * t)], axis=1)
    q[:, 1] += 0.02 * np.sin(2.0 * np.pi * 8.0 * t)
    log = aw.Recording.from_arrays(t, q=q, tau=q)
    samples = aw.prepare(log, 4.0, lag=0.0, decimation=1)[100:-100]
    there = np.searchsorted(t, samples.time - 0.001)
    np.testing.assert_allclose(samples.measured, q[there], atol=1e-9)
    one = term("ripple_sine", 1, 0.3)
    (column,) = Columns(arm, (one,)).friction_columns(samples, slice(0, 2000)).T[:, 1]
    shown = low_pass(np.sin(2.0 * np.pi / 0.3 * q[:, 1]), 4.0, 100.0)[there][:2000]
    np.testing.assert_allclose(column, shown, atol=1e-4)


def test_a_low_pass_leaves_of_a_steady_wave_what_its_gain_says():
    t = np.arange(4000) / 100.0
    for frequency in (1.0, 3.0, 5.0):
        wave = low_pass(np.sin(2.0 * np.pi * frequency * t), 4.0, 100.0)[1000:3000]
        gain = float(low_pass_gain(np.array([frequency / 4.0]))[0])
        # A digital filter falls a little faster than the analogue one beyond it.
        assert np.sqrt(2.0 * np.mean(wave**2)) == pytest.approx(gain, abs=0.02)


def test_the_period_of_a_ripple_is_refined_where_positions_are_visited_unevenly():
    rng = np.random.default_rng(3)
    q = 2.0 + 0.6 * np.sin(rng.uniform(0.0, 6.3, 3000)) + 0.3 * rng.uniform(size=3000)
    ripple = 0.3 * np.sin(2.0 * np.pi / 0.11 * q + 1.0) + 0.1
    noisy = ripple + 0.1 * rng.standard_normal(q.size)
    basis, turn = np.full((q.size, 1), q.size**-0.5), 2.0 * np.pi
    left = noisy - noisy.mean()
    at = (q, np.zeros(q.size), left, basis)
    refined = friction_ripples._refined(*at, turn / 0.1105)
    # Three standard errors: √2 · 0.1 / (0.3 √3000 · 0.43) of 57 waves in 2π.
    assert refined == pytest.approx(turn / 0.11, rel=1e-3)
    # What the range does not resolve is another wave: it stays as it was.
    other = turn / 0.15
    assert friction_ripples._refined(*at, other) == other


def test_the_phase_of_a_ripple_far_from_zero_is_as_sure_as_its_period():
    """A wrist of this plant moves about 90°, fourteen periods from zero."""
    result = run_once("panda", "ripple", "prescribed", 100)
    assert result.inside == (True, True)


def test_periods_are_fitted_beside_all_else_and_their_doubt_turns_the_phase(arm, data):
    reach = float(np.ptp(data.q[:, 1]))
    waves = [term(f"ripple_{x}", 1, reach / 7.0) for x in ("sine", "cosine")]
    # As if the joint moved about a place three ranges away.
    far = replace(data, q=data.q + np.array([0.0, 3.0 * reach]))
    shape = Columns(arm, tuple(waves)).friction_columns(far, slice(0, len(far)))
    tau = aw.Dynamics(arm).inverse_dynamics(far.q, far.qd, far.qdd) + shape @ [0.3, 0.1]
    noise = np.random.default_rng(0).standard_normal(tau.shape)
    far = replace(far, tau=tau + 0.005 * np.abs(tau).max(axis=0) * noise)
    near = [replace(t, scale=1.0005 * t.scale) for t in waves]
    plain = Columns(arm)
    refined, rows = friction_selection._with_scales(
        plain, [far], friction_selection.TERMS, tuple(near)
    )
    (row,) = rows
    error = 2.0 * np.pi * (1.0 / refined[0].scale - 7.0 / reach)
    # What sine and cosine of the phase change by for a change of the wave number.
    turned = np.array([0.1, -0.3]) * far.q[:, 1].mean()
    std = np.linalg.norm(row[-2:]) / np.linalg.norm(turned)
    assert abs(error) < 3.0 * std
    assert abs(error) < 0.5 * 2.0 * np.pi * 7.0 / reach * 0.0005
    cosine = row[-2:] @ turned / np.linalg.norm(row[-2:]) / np.linalg.norm(turned)
    assert abs(cosine) > 0.99


@pytest.mark.parametrize("width", [0.013, 0.016, 0.02])
def test_a_width_that_was_not_tried_is_part_of_the_interval(arm, data, width):
    shape = Columns(arm, (term("hysteresis", 0, width),))
    torque = shape.friction_columns(data, slice(0, len(data)))[..., 0]
    bent = replace(data, tau=data.tau + 1.5 * torque)
    tried = (term("hysteresis", 0, 0.016),)
    same, rows = friction_selection._with_scales(
        Columns(arm), [bent], friction_selection.TERMS, tried
    )
    assert same == tried
    fit = aw.identify(arm, bent, aw.WeightedLeastSquares(), friction=tried)
    error = abs(fit.all_parameters[-1] - 1.5)
    assert error < 2.0 * np.hypot(rows[0][-1], fit.base_std[-1])
    # Little where it is the right one.
    assert (abs(rows[0][-1]) < 0.01) == (width == 0.016)


def test_load_friction_settles_though_the_description_is_wrong(arm, data):
    loaded = Columns(arm, (term("load", 1),))
    tau = data.tau + 0.15 * loaded.friction_columns(data, slice(0, len(data)))[..., 0]
    empty = arm.with_parameters(np.where(arm.layout.is_inertial, 0.3, 0.0))
    bent = replace(data, tau=tau)
    found = aw.identify(
        empty, bent, aw.WeightedLeastSquares(), friction=[term("load", 1)]
    )
    assert found.all_parameters[-1] == pytest.approx(0.15, abs=0.01)
    assert found.fit.relative_error.max() < 0.05


def test_an_estimate_with_load_and_history_is_read_back(arm, data, tmp_path):
    terms = [term("load", 1), term("hysteresis", 0, 0.016)]
    estimate = aw.identify(arm, data, friction=terms)
    aw.write_estimate(estimate, tmp_path / "e.json")
    again = aw.read_estimate(tmp_path / "e.json", arm)
    assert again.columns.friction == tuple(terms)
    np.testing.assert_array_equal(again.predict(data), estimate.predict(data))
    stored = json.loads((tmp_path / "e.json").read_text())
    assert len(stored["std"]) == len(stored["names"]) == len(stored["parameters"])
    assert stored["std"][-2:] == pytest.approx(estimate.base_std[-2:])


def test_braking_terms_are_never_negative(arm, data):
    estimate = aw.identify(arm, data, friction=[term("load", 1), term("load", 0)])
    assert np.all(estimate.all_parameters[-2:] >= -1e-9)


def test_own_forms_are_fitted_and_stored(arm, data, tmp_path):
    shape = FrictionForm("cos q: unbalance", lambda motion, _: np.cos(motion.q))
    FORMS["cosine"] = shape
    try:
        own = term("cosine", 1)
        bent = replace(data, tau=data.tau + [0.0, 1.0] * np.cos(data.q))
        estimate = aw.identify(arm, bent, friction=[own], terms=["viscous", "coulomb"])
        assert estimate.all_parameters[-1] == pytest.approx(1.0, abs=0.05)
        aw.write_estimate(estimate, tmp_path / "e.json")
        again = aw.read_estimate(tmp_path / "e.json", arm)
        np.testing.assert_array_equal(again.predict(data), estimate.predict(data))
    finally:
        del FORMS["cosine"]
    with pytest.raises(
        aw.errors.ArmwiseError, match="no friction of the form 'cosine'"
    ):
        aw.read_estimate(tmp_path / "e.json", arm)


def test_terms_that_cannot_be_are_refused(arm, data):
    with pytest.raises(ArgumentError, match="no friction of the form 'cosq'"):
        term("cosq")
    with pytest.raises(ArgumentError, match="positive number"):
        term("hysteresis", scale=0.0)
    with pytest.raises(ArgumentError, match="which two_link_uno has not"):
        aw.identify(arm, data, friction=[FrictionTerm(7, "joint_8", "root")])
    with pytest.raises(ArgumentError, match="which two_link_uno has not"):
        Columns(arm, (FrictionTerm(0, "elbow", "root"),))
    warm = Columns(arm, (term("coulomb_temperature", scale=30.0),))
    with pytest.raises(RecordingError, match="depends on the temperature of its drive"):
        warm.friction_columns(data, slice(0, 10))


@pytest.mark.parametrize(
    ("kind", "seed"), [("plain", 1), ("load", 0), ("temperature", 0), ("all", 2)]
)
def test_a_known_plant_gets_its_terms_and_no_others(kind, seed):
    """Load friction, hysteresis, ripple and warming at once; and a plant without."""
    result = run_once("ur5", kind, "prescribed", seed)
    assert all(result.there)
    assert result.phantoms == ()
    assert (
        len(result.there) == {"plain": 0, "load": 2, "temperature": 2, "all": 8}[kind]
    )


def test_a_rotor_loads_no_gear_though_torques_do_not_tell_it_from_links():
    """Of the shoulder only bodies that can exist say which inertia is the rotor's."""
    description, log, terms = known_log("ur5", "load", "prescribed", 101)
    estimate = aw.identify(description, log)
    found = dict(estimate.friction)
    leaders = [estimate.base.names[i] for i in estimate.base.indices]
    for one, coefficient in terms:
        assert found[one] == pytest.approx(coefficient, rel=0.03)
        assert estimate.base_std[leaders.index(one.name)] < 0.05 * coefficient
    # Torques are predicted with the load that they were fitted with.
    error = np.vstack([x.tau - estimate.predict(x) for x in estimate.samples])
    rmse = np.sqrt(np.mean(error**2, axis=0))
    np.testing.assert_allclose(rmse, estimate.fit.rmse, rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100, 104])
def test_joints_that_stick_have_no_friction_of_low_speed(seed):
    """A wrist of this plant stops for a tenth of a second wherever it turns back."""
    assert run_once("ur5", "ripple", "simulated", seed).phantoms == ()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [3102, 4000])
def test_joints_that_stick_have_no_hysteresis(seed):
    """Wrists of this plant stop for moments at 16 % of their torque's error."""
    pytest.importorskip("mujoco", reason="needs the extra armwise[sim]")
    assert run_once("ur5", "plain", "mujoco", seed).phantoms == ()


def warmth(power, time, constant):
    """Dissipated power through a first-order lag, step by step, from cold."""
    value, values = 0.0, []
    for k, one in enumerate(power):
        step = time[k] - time[k - 1] if k else time[1] - time[0]
        value += -np.expm1(-step / constant) * (one - value)
        values.append(value)
    return np.array(values)


def test_a_drive_warms_up_by_the_power_it_dissipates(arm, data):
    columns = Columns(arm, (term("coulomb_warming", scale=7.0),))
    column = columns.friction_columns(data, slice(0, len(data)))[:, 0, 0]
    coulomb, viscous = (
        arm.parameters[arm.layout.drive(n)[0]] for n in ("coulomb", "viscous")
    )
    speed = np.abs(data.qd[:, 0])
    expected = warmth(coulomb * speed + viscous * speed**2, data.time, 7.0)
    np.testing.assert_allclose(
        column, np.sign(data.qd[:, 0]) * expected, atol=2e-4 * expected.max()
    )
    # What was cut off has warmed it, too, and so has what was left out in between.
    part = columns.friction_columns(data[1500:][200:], slice(0, 400))[:, 0, 0]
    np.testing.assert_allclose(part, column[1700:2100], atol=1e-3 * expected.max())
    # Another run, whose clock starts again, starts cold.
    both = aw.Samples.concatenate([data, data])
    twice = columns.friction_columns(both, slice(0, len(both)))[:, 0, 0]
    np.testing.assert_allclose(twice[len(data) :], column, atol=1e-12)


def test_a_selected_term_of_which_nothing_is_left_is_left_out(arm, data):
    """It was announced with a coefficient of exactly 0, and blurred the others."""
    idle, load = term("stribeck", 0, 0.2), term("load", 1)
    shapes = Columns(arm, (idle, load)).friction_columns(data, slice(0, len(data)))
    bent = replace(data, tau=data.tau + shapes @ [-0.3, 0.1])
    named = aw.build_problem(arm, bent, friction=(idle, load))
    selected = replace(
        named,
        friction_candidates=(idle, load),
        friction_spread=np.ones((1, named.base.count)),
    )
    kept, freed = aw.identify(named), aw.identify(selected)
    assert dict(kept.friction)[idle] == 0.0
    assert [one for one, _ in freed.friction] == [load]
    alone = aw.identify(arm, bent, friction=(load,))
    np.testing.assert_allclose(freed.parameters, alone.parameters, atol=1e-3)
    assert freed.base.count == alone.base.count


def test_a_motor_at_rest_cools_down(arm, data):
    columns = Columns(arm, (term("viscous_warming", scale=7.0),))
    gap = aw.Samples.concatenate([data[:2000], replace(data, time=data.time + 90.0)])
    column = columns.friction_columns(gap, slice(0, len(gap)))[:, 0, 0]
    fresh = columns.friction_columns(data, slice(0, len(data)))[:, 0, 0]
    np.testing.assert_allclose(column[2000:], fresh, atol=1e-3 * np.abs(fresh).max())


def running_in(arm, data, part):
    """Samples whose first joint's viscous friction changes by a part within seconds."""
    truth = Columns(arm, (term("viscous_warming", scale=7.0),))
    shape = truth.friction_columns(data, slice(0, len(data)))[:, :, 0]
    viscous = float(arm.parameters[arm.layout.drive("viscous")[0]])
    change = part * viscous * np.ptp(data.qd[:, 0]) / np.ptp(shape[:, 0])
    return replace(data, tau=data.tau + change * shape)


@pytest.mark.parametrize(("part", "is_taken"), [(-0.5, True), (0.5, False)])
def test_friction_of_a_drive_that_has_stood_falls_within_seconds(arm, part, is_taken):
    """It falls by shear and warmth; what rises is something else."""
    data = running_in(arm, samples_of(arm, noise=0.003, seconds=30.0), part)
    terms = select_friction(arm, data[:1800]).terms
    forms = {(t.joint, t.form) for t in terms if t.kind.uses_heat}
    assert forms == ({(0, "viscous_warming")} if is_taken else set())
    if is_taken:
        plain, all_terms = (
            aw.identify(arm, data[:1800], friction=x).validate(data[1800:])
            for x in ((), terms)
        )
        assert all_terms.relative_error[0] < 0.5 * plain.relative_error[0]


def test_friction_falls_no_further_than_it_was_seen_to(arm, tmp_path):
    """Work three times as fast would else make a brake drive."""
    data = running_in(arm, samples_of(arm, noise=0.003, seconds=30.0), -0.5)
    one = term("viscous_warming", scale=7.0)
    estimate = aw.identify(arm, data, friction=(one,))
    (kept,) = estimate.columns.friction
    seen = estimate.columns.with_friction((one,))
    column = seen.friction_columns(data, slice(0, len(data)))[:, 0, 0]
    moving = np.abs(data.qd[:, 0]) > 0.1
    largest = np.abs(column[moving] / data.qd[moving, 0]).max()
    assert kept.warmest == pytest.approx(largest, rel=1e-2)
    fast = replace(data, time=data.time / 3.0, qd=3.0 * data.qd, qdd=9.0 * data.qdd)
    column = estimate.columns.friction_columns(fast, slice(0, len(fast)))[:, 0, 0]
    assert np.all(np.abs(column) <= kept.warmest * np.abs(fast.qd[:, 0]) + 1e-12)
    # The fit itself is not bounded by it, nor is one with the terms of another.
    again = aw.identify(arm, fast, friction=estimate.columns.friction)
    assert again.columns.friction[0].warmest > 1.5 * kept.warmest
    path = tmp_path / "estimate.json"
    aw.identification.write_estimate(estimate, path)
    read = aw.identification.read_estimate(path)
    assert read.columns.friction[0].warmest == kept.warmest


def test_friction_goes_on_straight_beyond_the_speeds_seen(arm, tmp_path):
    """A parabola that bends down would drive a joint that is fast enough."""
    data = samples_of(arm, noise=0.003, seconds=10.0)
    estimate = aw.identify(arm, data, friction=(term("quadratic"), term("root")))
    bent, root = estimate.columns.friction
    end = np.abs(data.qd[:, 0]).max()
    assert (bent.fastest, root.fastest) == (pytest.approx(end), None)
    v = np.linspace(-4.0, 4.0, 801) * end
    nothing = np.zeros(v.size)
    motion = DriveMotion(nothing, v, np.sign(v), nothing, np.zeros_like)
    column = bent.torque(motion)
    inside = np.abs(v) <= end
    np.testing.assert_allclose(column[inside], (v * np.abs(v))[inside], atol=1e-12)
    # Continuous, odd, and with the slope of the faster half of the speeds seen.
    np.testing.assert_allclose(column, -column[::-1])
    np.testing.assert_allclose(
        column[~inside],
        (np.sign(v) * (end**2 + 1.5 * end * (np.abs(v) - end)))[~inside],
    )
    np.testing.assert_allclose(root.torque(motion), np.sign(v) * np.sqrt(np.abs(v)))
    # The fit itself is not bounded by it, nor is one with the terms of another.
    fast = replace(data, time=data.time / 3.0, qd=3.0 * data.qd, qdd=9.0 * data.qdd)
    again = aw.identify(arm, fast, friction=estimate.columns.friction)
    assert again.columns.friction[0].fastest == pytest.approx(3.0 * end)
    path = tmp_path / "estimate.json"
    aw.identification.write_estimate(estimate, path)
    read = aw.identification.read_estimate(path)
    assert read.columns.friction[0].fastest == bent.fastest


def test_friction_that_comes_back_has_not_been_worked_warm(arm):
    """Between neighbours every stretch looks explained; an end of the log does not."""
    data = samples_of(arm, noise=0.003, seconds=30.0)
    viscous = float(arm.parameters[arm.layout.drive("viscous")[0]])
    is_less = (data.time > 10.0) & (data.time < 26.0)
    change = -0.5 * viscous * np.where(is_less, data.qd[:, 0], 0.0)
    tau = data.tau + np.stack([change, np.zeros(len(data))], axis=1)
    terms = select_friction(arm, replace(data, tau=tau)).terms
    assert not any(t.kind.uses_heat for t in terms)


def test_intervals_of_chosen_terms_know_that_they_were_chosen():
    """Of a hundred that were tried, one looks as sure as that by luck; another not."""
    root = np.random.default_rng(0).normal(size=(5, 5))
    covariance = root @ root.T
    std = np.sqrt(np.diag(covariance))
    values = np.array([2.5, 12.0]) * std[3:]
    extra = chance_covariance(covariance, values, 100)
    wider = np.sqrt(np.diag(covariance + extra))
    assert 2.0 * wider[3] > values[0]
    # What a term takes along if it goes is as uncertain as it is.
    assert wider[0] > std[0]
    alone = chance_covariance(covariance, np.array([0.0, values[1]]), 100)
    assert np.abs(alone).max() < 1e-9 * covariance.max()
    # Infinity stays where it is.
    covariance[1, 1] = np.inf
    assert np.isfinite(chance_covariance(covariance, values, 100)).all()


@pytest.mark.parametrize("fade", [0.999999, 0.99, 0.5, 1e-3, 0.0])
def test_warmth_follows_power_as_a_filter_of_first_order_does(fade):
    power = np.random.default_rng(0).uniform(0.0, 5.0, 20_000)
    expected = lfilter([1.0 - fade], [1.0, -fade], power, zi=[fade * 2.0])[0]
    np.testing.assert_allclose(_lagging(power, fade, 2.0), expected, atol=1e-12)
