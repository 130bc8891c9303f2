from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, RecordingError
from armwise.identification import identify
from armwise.recordings import Channel, Preparation, Recording, Samples, prepare
from armwise.recordings.alignment.lag import _settled
from armwise.regression import Columns
from tests.recordings.motions import arm_with_friction, motion, recording


def passed(power: int) -> float:
    """∫ x^k / (1 + x⁸)² dx: what the low-pass lets through of ω^k noise."""
    x = np.linspace(0.0, 5.0, 5001)
    return float(np.trapezoid(x**power / (1.0 + x**8) ** 2, x))


def rms(error):
    return np.sqrt(np.mean(error**2, axis=0))


@pytest.mark.parametrize("cutoff", [None, 5.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_recovers_what_the_noise_allows(cutoff, seed):
    """Noise, jitter, 15 ms of torque lag and 3 % missing rows.

    White noise of standard deviation σ at rate r leaves σ √(2 c₀ f / r) after a
    low-pass at f, (2π) σ √(2 c₂ f³ / r) in its first derivative and
    (2π)² σ √(2 c₄ f⁵ / r) in the second: no estimate with this band does better.
    Allowed: 1.35 times that; on torque also what an error of 1.5 ms in the lag makes.
    """
    arm = arm_with_friction(coulomb=0.0)
    sigma_q, sigma_tau, rate = 1e-4, 0.5, 500.0
    rec = recording(
        arm,
        rate=rate,
        lag=0.015,
        position_noise=sigma_q,
        torque_noise=sigma_tau,
        jitter=4e-4,
        missing=0.03,
        seed=seed,
    )
    data = prepare(rec, cutoff, arm=arm)
    done = data.preparation
    assert done.lag == pytest.approx(0.015, abs=0.0015)
    assert len(data.segments) == 1
    f, density = done.cutoff_hz, 2.0 / (0.97 * rate)
    q, qd, qdd = motion(arm.dof, data.time, seed)
    for k, (got, true) in enumerate([(data.q, q), (data.qd, qd), (data.qdd, qdd)]):
        factor = (2 * np.pi) ** k * np.sqrt(density * passed(2 * k) * f ** (2 * k + 1))
        assert np.all(rms(got - true) < 1.35 * sigma_q * factor)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    allowed = 1.35 * sigma_tau * np.sqrt(density * passed(0) * f)
    slope = rms(np.gradient(tau, data.time, axis=0))
    assert np.all(rms(data.tau - tau) < allowed + 0.0015 * slope)


def test_the_lag_can_be_given_or_left():
    arm = arm_with_friction()
    rec = recording(arm, lag=0.02)
    assert prepare(rec, 5.0, arm=arm).preparation.lag == pytest.approx(0.02, abs=1e-4)
    given = prepare(rec, 5.0, lag=0.02)
    _, qd, _ = motion(arm.dof, given.time)
    tau = Dynamics(arm).inverse_dynamics(*motion(arm.dof, given.time))
    friction = 2.0 * (given.direction() - np.sign(qd))
    assert np.all(rms(given.tau - tau - friction) < 5e-3 * rms(tau))
    assert prepare(rec, 5.0, arm=arm, lag=0.0).preparation.lag == 0.0


def test_a_lag_that_was_given_is_taken_out_once():
    """Bandwidth and cut-off come out as if the torque had not been late."""
    arm = arm_with_friction(coulomb=10.0)
    late, prompt = (
        prepare(recording(arm, lag=lag, torque_noise=0.3), arm=arm, lag=lag).preparation
        for lag in (0.03, 0.0)
    )
    assert late.lag == 0.03
    assert late.cutoff_hz == pytest.approx(prompt.cutoff_hz, rel=0.1)
    assert late.torque_bandwidth_hz == pytest.approx(
        prompt.torque_bandwidth_hz, rel=0.1
    )


def test_no_lag_is_invented():
    arm = arm_with_friction()
    rec = recording(arm, torque_noise=0.5, position_noise=1e-5)
    done = prepare(rec, 5.0, arm=arm).preparation
    assert done.lag_std is not None
    assert abs(done.lag) < 3.0 * done.lag_std < 3e-3


def test_a_low_pass_before_the_log_is_found_and_shown_to_friction():
    from armwise.recordings import low_pass

    arm = arm_with_friction(coulomb=10.0)
    rec = recording(arm, rate=200.0)
    channels = dict(rec.channels)
    for j in range(arm.dof):
        channel = channels[f"tau_{j + 1}"]
        slow = low_pass(channel.values, 1.5, 200.0)
        channels[f"tau_{j + 1}"] = replace(channel, values=slow)
    data = prepare(rec.with_channels(channels), 10.0, arm=arm)
    assert data.preparation.torque_bandwidth_hz == pytest.approx(1.5, rel=0.15)
    q, qd, qdd = motion(arm.dof, data.time)
    smooth = Dynamics(arm).inverse_dynamics(q, qd, qdd) - 10.0 * np.sign(qd)
    sharp = rms(data.tau - smooth - 10.0 * np.sign(qd))
    shown = rms(data.tau - smooth - 10.0 * data.direction())
    assert np.all(shown < 0.2 * sharp)


def test_rows_that_an_earlier_low_pass_mixed_with_what_was_not_logged_go():
    data = recording(arm_with_friction())
    like = Preparation(cutoff_hz=20.0, torque_bandwidth_hz=2.0)
    narrow = prepare(data, like=like)
    wide = prepare(data, like=replace(like, torque_bandwidth_hz=None))
    first = data["q_1"].time[0]
    # A period of it, and no more than a twentieth of the log.
    assert narrow.time[0] - first == pytest.approx(0.5, abs=0.05)
    assert wide.time[0] - first == pytest.approx(0.1, abs=0.05)
    slow = prepare(data, like=replace(like, torque_bandwidth_hz=0.05))
    assert slow.time[0] - first == pytest.approx(0.05 * data.duration, abs=0.05)


def test_measured_velocity_is_aligned_and_used_when_it_is_better():
    arm = arm_with_friction()
    rec = recording(arm, position_noise=2e-3, velocity=True)
    time = rec["qd_1"].time
    late = motion(arm.dof, time - 0.01)[1]
    channels = dict(rec.channels)
    for j in range(arm.dof):
        channels[f"qd_{j + 1}"] = Channel(time, late[:, j])
    data = prepare(rec.with_channels(channels), 5.0, arm=arm)
    assert data.preparation.velocity == "measured"
    assert data.preparation.velocity_lag == pytest.approx(0.01, abs=1e-3)
    np.testing.assert_allclose(data.qd, motion(arm.dof, data.time)[1], atol=3e-3)
    plain = prepare(rec.with_channels(channels), 5.0, velocity="position")
    assert plain.preparation.velocity == "position"
    wrong = {
        n: replace(c, values=2 * c.values) for n, c in channels.items() if "qd" in n
    }
    doubled = prepare(rec.with_channels(channels | wrong), 5.0, arm=arm)
    assert doubled.preparation.velocity == "position"
    assert "does not fit the position" in doubled.preparation.notes[0]


def test_nothing_is_filtered_or_differentiated_across_a_gap():
    arm = arm_with_friction()
    whole = recording(arm, rate=200.0, position_noise=1e-5)
    time = whole["q_1"].time
    keep = (time < 8.0) | (time > 9.0)
    stamps = time[keep]
    jump = np.where(stamps > 9.0, 1.0, 0.0)  # the arm was moved meanwhile
    channels = {
        n: Channel(stamps, c.values[keep] + (jump if n[0] == "q" else 0.0))
        for n, c in whole.channels.items()
    }
    data = prepare(Recording.from_channels(channels), 5.0)
    assert data.preparation.gaps == 1
    assert [len(data.time[s]) > 100 for s in data.segments] == [True, True]
    assert not np.any((data.time > 7.9) & (data.time < 9.1))
    _, qd, _ = motion(arm.dof, data.time)
    np.testing.assert_allclose(data.qd, qd, atol=2e-3)


def test_small_holes_are_bridged_and_max_gap_decides():
    arm = arm_with_friction()
    rec = recording(arm, rate=200.0)
    time = rec["q_1"].time
    keep = ~((time > 5.0) & (time < 5.04))
    holed = replace(rec, tables=tuple(table.take(keep) for table in rec.tables))
    assert len(prepare(holed, 5.0).segments) == 1
    assert len(prepare(holed, 5.0, max_gap=0.02).segments) == 2


def test_channels_on_different_clocks_are_joined():
    arm = arm_with_friction(coulomb=0.0)
    rec = recording(arm, rate=500.0)
    slow = np.arange(0.5, 19.5, 1 / 125.0) + 0.0007
    tau = Dynamics(arm).inverse_dynamics(*motion(arm.dof, slow))
    channels = dict(rec.channels)
    for j in range(arm.dof):
        channels[f"tau_{j + 1}"] = Channel(slow, tau[:, j])
    joined = rec.with_channels(channels)
    assert [len(table.columns) for table in joined.tables] == [arm.dof, arm.dof]
    data = prepare(joined, 10.0)
    expected = Dynamics(arm).inverse_dynamics(*motion(arm.dof, data.time))
    np.testing.assert_allclose(data.tau, expected, atol=2e-2)
    assert data.time[0] > 0.5
    assert data.time[-1] < 19.5


def test_rests_are_left_out_unless_asked_for():
    time = np.arange(4000) / 200.0
    q = np.where(time < 10, np.sin(2 * np.pi * 0.5 * time), 0.0)[:, None]
    rec = Recording.from_arrays(time, q=q, tau=q)
    data = prepare(rec, 5.0)
    assert data.time[-1] < 10.5
    assert dict(data.preparation.rows_dropped)["at rest (after decimation)"] > 100
    assert prepare(rec, 5.0, keep_rest=True).time[-1] > 19.0


def test_several_recordings_become_segments_with_one_treatment():
    arm = arm_with_friction()
    recs = [recording(arm, seed=s, duration=10.0 + s, lag=0.01) for s in (0, 1)]
    data = prepare(recs, arm=arm)
    assert len(data.segments) == 2
    assert data.preparation.cutoff_is_automatic
    assert data.preparation.rows_read == 10500
    assert data.preparation.speed_resolution
    other = prepare(recording(arm, seed=3, lag=0.01), like=data)
    for name in ("cutoff_hz", "lag", "decimation", "torque_bandwidth_hz"):
        assert getattr(other.preparation, name) == getattr(data.preparation, name)
    assert not other.preparation.cutoff_is_automatic


def test_a_preparation_repeats_itself():
    arm = arm_with_friction()
    rec = recording(arm, position_noise=1e-4, velocity=True, lag=0.01)
    for options in ({}, {"velocity": "measured"}, {"derivatives": "spline"}):
        data = prepare(rec, 5.0, arm=arm, **options)
        repeated = prepare(rec, like=data.preparation)
        assert repeated.preparation.settings == data.preparation.settings
        for name in ("time", "q", "qd", "qdd", "tau"):
            np.testing.assert_array_equal(getattr(repeated, name), getattr(data, name))
    with pytest.raises(ArgumentError, match="velocity must be one of"):
        replace(data.preparation, velocity="measured velocity, differences")


def test_splines_do_as_well_as_differences():
    arm = arm_with_friction()
    rec = recording(arm, position_noise=1e-4)
    errors = {}
    for kind in ("differences", "spline"):
        data = prepare(rec, 5.0, derivatives=kind)
        errors[kind] = rms(data.qdd - motion(arm.dof, data.time)[2]).max()
    assert errors["spline"] < 2.0 * errors["differences"]


def test_decimation_and_no_filter():
    arm = arm_with_friction()
    rec = recording(arm, rate=500.0)
    assert prepare(rec, 5.0).rate_hz == pytest.approx(50.0)
    assert prepare(rec, 5.0, decimation=7).rate_hz == pytest.approx(500.0 / 7)
    raw = prepare(rec, np.inf)
    assert raw.preparation.cutoff_hz is None
    assert raw.rate_hz == pytest.approx(500.0)
    np.testing.assert_allclose(raw.qdd, motion(arm.dof, raw.time)[2], atol=1e-5)


def test_wrench_alone_can_be_prepared():
    time = np.arange(2000) / 200.0
    q = motion(3, time)[0]
    wrench = np.sin(time)[:, None] * np.arange(1.0, 7.0)
    data = prepare(Recording.from_arrays(time, q=q, wrench=wrench), 5.0)
    assert not data.has_torque
    np.testing.assert_allclose(
        data.wrench, np.sin(data.time)[:, None] * np.arange(1.0, 7.0), atol=1e-3
    )


def test_a_given_lag_moves_the_wrench_too():
    time = np.arange(2000) / 200.0
    q = motion(3, time)[0]
    wrench = np.sin(3 * (time - 0.05))[:, None] * np.ones(6)
    rec = Recording.from_arrays(time, q=q, wrench=wrench)
    data = prepare(rec, 20.0, lag=0.05)
    expected = np.sin(3 * data.time)[:, None] * np.ones(6)
    np.testing.assert_allclose(data.wrench, expected, atol=1e-4)
    again = prepare(rec, like=data)
    np.testing.assert_allclose(again.wrench, data.wrench)


def test_an_arm_that_stands_still_throughout_is_kept():
    time = np.arange(2000) / 200.0
    still = Recording.from_arrays(time, q=np.zeros((2000, 1)), tau=np.ones((2000, 1)))
    assert len(prepare(still, 5.0)) > 100


def test_logs_of_different_rates_come_out_at_one():
    arm = arm_with_friction()
    recs = [recording(arm, rate=r, seed=1) for r in (500.0, 1000.0)]
    data = prepare(recs, 5.0, arm=arm)
    steps = [np.diff(data.time[rows]).mean() for rows in data.segments]
    assert steps[0] == pytest.approx(steps[1], rel=1e-3)


def test_accelerations_that_were_recorded_are_used():
    time = np.arange(2000) / 200.0
    q, qd, qdd = motion(2, time)
    rec = Recording.from_arrays(time, q=q, qd=qd, qdd=qdd + 1.0)
    data = prepare(rec, 10.0)
    np.testing.assert_allclose(data.qdd - motion(2, data.time)[2], 1.0, atol=1e-3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"drop": "tau_2"}, 'has no column "tau_2"'),
        ({"drop": "q_1"}, 'has no column "q_1"'),
        ({"nan": "tau_1"}, "tau_1 is nan in row 101"),
        ({"back": True}, "time runs backwards in row 51"),
        ({"short": True}, "samples in 0.5 s are too few for a cut-off of 2 Hz"),
    ],
)
def test_recordings_that_cannot_be_prepared(change, message):
    rec = recording(arm_with_friction(), rate=100.0)
    channels = {k: v for k, v in rec.channels.items() if k != change.get("drop")}
    if "nan" in change:
        values = channels["tau_1"].values.copy()
        values[100] = np.nan
        channels["tau_1"] = replace(channels["tau_1"], values=values)
    rec = Recording.from_channels(channels)
    if "back" in change:
        time = rec["q_1"].time.copy()
        time[50] = 0.1
        rec = replace(rec, tables=(replace(rec.tables[0], time=time),))
    if "short" in change:
        rec = rec.between(0.0, 0.5)
    with pytest.raises(RecordingError, match=message):
        prepare(rec, 2.0)
    if "nan" in change or "back" in change:
        skipped = prepare(rec, 2.0, skip_bad_rows=True)
        assert dict(skipped.preparation.rows_dropped).popitem()[1] == 1


def test_ten_samples_are_too_few_and_nothing_else_is_said():
    rec = recording(arm_with_friction(), rate=100.0)
    ten = rec.between(0.0, 0.095)
    with pytest.raises(RecordingError, match=r"10 samples in 0.1 s are too few\. R"):
        prepare(ten)
    # Cut apart by gaps, that is said.
    some = rec.between(0.0, 0.3)
    time = some["q_1"].time + 5.0 * (np.arange(some["q_1"].time.size) > 12)
    apart = replace(some, tables=(replace(some.tables[0], time=time),))
    with pytest.raises(RecordingError, match="stretches between gaps, are too few"):
        prepare(apart)


def test_arguments_that_make_no_sense():
    arm = arm_with_friction()
    rec = recording(arm, rate=100.0)
    with pytest.raises(ArgumentError, match="cut-off must be positive"):
        prepare(rec, 0.0)
    with pytest.raises(ArgumentError, match="choose less than 50 Hz, or inf"):
        prepare(rec, 80.0)
    with pytest.raises(ArgumentError, match="at least 1"):
        prepare(rec, 5.0, decimation=0)
    with pytest.raises(ArgumentError, match="no recording"):
        prepare([])
    with pytest.raises(RecordingError, match="velocity was not measured"):
        prepare(rec, 5.0, velocity="measured")
    with pytest.raises(RecordingError, match="3 joints, but panda has 7"):
        prepare(rec, 5.0, arm=arm_with_friction("panda"))


def test_progress_is_told_and_ends():
    told = []
    rec = recording(arm_with_friction(), rate=100.0)
    data = prepare(rec, 5.0, progress=lambda what, share: told.append((what, share)))
    assert isinstance(data, Samples)
    assert told[0][1] == 0.0
    assert told[-1][1] == 1.0


def test_a_joint_that_is_held_in_one_log_is_learnt_from_the_others():
    """Friction at rest is anything up to its limit, and would be learnt as mass."""
    arm = arm_with_friction("ur10", coulomb=5.0)
    whole = recording(arm, torque_noise=0.1)
    time = np.arange(0.0, 60.0, 0.01)
    random = np.random.default_rng(0)
    # A sweep of the third joint; the others hold, and their encoders count to and fro.
    q = np.tile(motion(arm.dof, time[:1])[0], (time.size, 1))
    q[:, 2] += np.sin(0.5 * time)
    qd, qdd = np.zeros(q.shape), np.zeros(q.shape)
    qd[:, 2], qdd[:, 2] = 0.5 * np.cos(0.5 * time), -0.25 * np.sin(0.5 * time)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    tau += np.where(np.arange(6) == 2, 0.0, 4.0)  # what the brakes and gears hold
    q += 2e-5 * random.integers(-3, 4, q.shape)
    sweep = Recording.from_arrays(
        time, q=q, tau=tau, joint_names=arm.coordinate_names, source="sweep.csv"
    )
    alone, both = (prepare(logs, arm=arm) for logs in (whole, [whole, sweep]))
    # The delay and the band are those of the motion of all joints, not of the sweep's.
    assert both.preparation.lag == pytest.approx(alone.preparation.lag, abs=1e-4)
    assert np.all(both.still[len(alone) + 500 :, [0, 1, 3, 4, 5]] == 1.0)
    other = prepare(recording(arm, seed=5), like=both)
    errors = [
        identify(arm, data, friction="linear").validate(other).relative_error
        for data in (alone, both)
    ]
    assert np.all(errors[1] < errors[0] + 0.01)


def test_recordings_of_other_joints_are_refused_in_a_sentence():
    """By number, and by a scale that was found for another arm's torques."""
    small, large = (recording(arm_with_friction(name)) for name in ("ddarm", "ur10"))
    with pytest.raises(ArgumentError, match="differ in their joints"):
        prepare([small, large])
    other = replace(prepare(large, 5.0).preparation, torque_scale=(2.0,) * 6)
    with pytest.raises(ArgumentError, match="another arm's"):
        prepare(small, like=other)


def test_rows_that_ring_of_a_reversal_fit_no_lag():
    arm = arm_with_friction("ddarm")
    samples = prepare(recording(arm, torque_noise=0.3), 5.0, arm=arm)
    settled = _settled(samples, Columns(arm))
    period = samples.rate_hz / samples.torque_bandwidth_hz
    for j in range(arm.dof):
        turns = np.flatnonzero(samples.qd[1:, j] * samples.qd[:-1, j] < 0.0)
        away = np.abs(np.arange(len(samples))[:, None] - turns).min(axis=1)
        masked = settled.still[:, j] == 1.0
        assert masked[away < 0.9 * period].all()
        assert not masked[(away > 1.3 * period)].all()
        assert 0.05 < masked.mean() < 0.5
