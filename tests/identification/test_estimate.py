"""Estimates: honest about what is known, physical when asked, readable again."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import armwise as aw
from armwise.control import simulate_log
from armwise.errors import ArgumentError, ArmwiseError, NotIdentifiable, RecordingError
from armwise.identification import (
    diagnose,
    read_estimate,
    select_friction,
    write_estimate,
)
from armwise.identification.problem import TERMS
from armwise.report import verdicts
from tests.identification.conftest import samples_of, weighted


def replaced(data, **changes):
    parts = {n: getattr(data, n) for n in ("time", "q", "qd", "qdd", "tau")} | changes
    return aw.Samples(**parts)


def test_intervals_account_for_correlated_residuals(described, arm):
    """Each torque repeated ten times tells no more than once."""
    rng = np.random.default_rng(0)
    base = samples_of(arm, noise=0.0, rate=200.0)
    slow = np.repeat(rng.normal(size=(len(base) // 10, arm.dof)), 10, axis=0)
    size = 0.02 * np.abs(base.tau).max(axis=0)
    estimate = weighted(described, replaced(base, tau=base.tau + size * slow))
    z = (
        estimate.base_values - estimate.base.values(arm.parameters)
    ) / estimate.base_std
    assert np.sqrt(np.mean(z**2)) < 1.6
    naive = aw.WeightedLeastSquares()
    from armwise.identification import Columns
    from armwise.identification.problem import pose_problem

    problem = pose_problem(
        Columns(described), [replaced(base, tau=base.tau + size * slow)]
    )
    raw = np.sqrt(np.diag(naive.solve(problem).covariance))
    assert np.median(estimate.base_std / raw) > 2.0


def test_a_joint_that_stands_still_is_said_and_not_invented(described, arm, data):
    q = data.q.copy()
    q[:, 5] = 0.3
    qd, qdd = data.qd.copy(), data.qdd.copy()
    qd[:, 5] = qdd[:, 5] = 0.0
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    still = replaced(data, q=q, qd=qd, qdd=qdd, tau=tau)
    estimate = weighted(described, still)
    lost = [n for n, s in zip(
        [estimate.base.names[i] for i in estimate.base.indices], estimate.base_std,
        strict=True) if not np.isfinite(s)]  # fmt: skip
    assert "joint_6.viscous" in lost
    assert estimate.origin["joint_6.viscous"] == "prior"
    assert np.isinf(estimate.std[list(arm.parameter_names).index("joint_6.viscous")])
    said = {warning.code: warning.text for warning in estimate.warnings}
    assert "joint_6 did not move" in said["joint-did-not-move"]
    assert "determines" in said["undetermined-parameters"]


def test_a_joint_that_hardly_moves_is_said(described, arm, data):
    q, qd, qdd = data.q.copy(), data.qd.copy(), data.qdd.copy()
    middle = q[:, 5].mean()
    for signal in (q, qd, qdd):
        signal[:, 5] *= 0.01
    q[:, 5] += 0.99 * middle
    tau = aw.Dynamics(arm).inverse_dynamics(q, qd, qdd)
    little = weighted(described, replaced(data, q=q, qd=qd, qdd=qdd, tau=tau))
    codes = {warning.code: warning.text for warning in little.warnings}
    assert "joint_6 (" in codes["joint-hardly-moved"]
    plain = {warning.code for warning in weighted(described, data).warnings}
    assert "joint-hardly-moved" not in plain


def test_static_poses_determine_only_gravity(described, data):
    rest = replaced(data, qd=0 * data.qd, qdd=0 * data.qdd)
    estimate = weighted(described, rest)
    known = np.isfinite(estimate.base_std)
    assert 0 < known.sum() < estimate.base.count
    kept = estimate.base.values(described.parameters)
    np.testing.assert_allclose(
        estimate.base_values[~known], kept[~known], rtol=1e-6, atol=1e-6
    )


def test_consistent_fit_has_only_bodies_that_exist(described, arm):
    poor = samples_of(arm, seconds=3.0, noise=0.3)
    free = weighted(described, poor)
    assert free.arm.defects()
    bodies = weighted(described, poor, aw.PhysicallyConsistent())
    assert not bodies.arm.defects()
    split = arm.layout.drives.start
    kinds = np.array([n.rsplit(".")[-1] for n in arm.parameter_names[split:]])
    assert np.all(bodies.parameters[split:][kinds != "offset"] >= -1e-9)
    ratio = bodies.fit.rmse / free.fit.rmse
    assert ratio.max() < 1.1


def test_bounds_on_mass_and_center_hold(described, arm, data):
    method = aw.PhysicallyConsistent(
        mass={"link_3": (6.5, 7.0)},
        center_of_mass={"link_3": ((-0.01, -0.2, -0.2), (0.01, 0.2, 0.2))},
    )
    link = weighted(described, data, method).arm.links[2]
    assert 6.5 - 1e-4 <= link.inertia.mass <= 7.0 + 1e-4
    assert abs(link.inertia.center_of_mass[0]) <= 0.0101


def test_terms_left_out_keep_the_arms_values(arm, data):
    estimate = weighted(arm, data, terms=["links", "viscous", "coulomb", "offset"])
    kept = [k for k, n in enumerate(arm.parameter_names) if n.endswith("rotor_inertia")]
    np.testing.assert_array_equal(estimate.parameters[kept], arm.parameters[kept])
    assert estimate.base.count == 36 + 18
    z = (
        estimate.base_values - estimate.base.values(arm.parameters)
    ) / estimate.base_std
    assert np.abs(z).max() < 5


def test_friction_that_is_there_is_found(arm, described):
    data = samples_of(arm, noise=0.002, seconds=30.0)
    term = aw.identification.FrictionTerm(1, "joint_2", "quadratic")
    tau = data.tau.copy()
    tau[:, 1] += 6.0 * data.qd[:, 1] * np.abs(data.qd[:, 1])
    bent = replaced(data, tau=tau)
    chosen = select_friction(described, bent, TERMS)
    assert {t.joint for t in chosen.terms} == {1}
    assert "quadratic" in {t.form for t in chosen.terms}
    estimate = weighted(described, bent, friction=[term])
    assert estimate.all_parameters[-1] == pytest.approx(6.0, rel=0.1)


def test_friction_that_is_not_there_is_not_found(described, data):
    assert select_friction(described, data, TERMS).terms == ()


def test_an_estimate_is_read_back_as_it_was(described, data, tmp_path):
    term = aw.identification.FrictionTerm(0, "joint_1", "stribeck", 0.1)
    still = replaced(data, q=data.q * [1, 1, 1, 1, 1, 0])
    estimate = aw.identify(described, still, friction=[term], validation=data)
    assert estimate.warnings
    path = tmp_path / "estimate.json"
    aw.write_estimate(estimate, path)
    again = aw.read_estimate(path, described)
    np.testing.assert_array_equal(again.all_parameters, estimate.all_parameters)
    np.testing.assert_array_equal(again.base_std, estimate.base_std)
    np.testing.assert_array_equal(again.predict(data), estimate.predict(data))
    assert again.origin == estimate.origin
    assert again.warnings == estimate.warnings
    np.testing.assert_array_equal(again.validation.rmse, estimate.validation.rmse)


def test_an_estimate_is_an_arm_wherever_one_is_asked_for(described, data, tmp_path):
    estimate = aw.identify(described, data, friction="linear")
    path = tmp_path / "estimate.json"
    aw.write_estimate(estimate, path)
    arm = aw.load_arm(path)
    np.testing.assert_array_equal(arm.parameters, estimate.parameters)
    alone = aw.read_estimate(path)
    np.testing.assert_array_equal(alone.predict(data), estimate.predict(data))
    assert alone.prior_arm.parameter_names == described.parameter_names


def test_another_load_in_validation_is_named(arm, data):
    values = arm.parameters.copy()
    held = arm.layout.link(len(arm.links) - 1)
    # Two kilograms, a tenth of a metre along the last link.
    values[held] += [2.0, 0.0, 0.0, 0.2, 0.02, 0.0, 0.0, 0.02, 0.0, 0.0]
    tau = aw.Dynamics(arm.with_parameters(values)).inverse_dynamics
    other = replaced(data, tau=tau(data.q, data.qd, data.qdd))
    texts = [w.text for w in weighted(arm, data, validation=other).warnings]
    (text,) = [text for text in texts if "In validation the arm carries" in text]
    assert "2 kg more than in the fit" in text
    quiet = weighted(arm, data, validation=data).warnings
    assert not any(w.code == "load-changed" for w in quiet)


def test_terms_of_another_estimate_are_fitted_anew(described, data):
    term = aw.identification.FrictionTerm(0, "joint_1", "stribeck", 0.1)
    first = aw.identify(described, data, friction=[term])
    again = aw.identify(described, data, friction=first.friction)
    assert again.friction == first.friction
    with pytest.raises(ArgumentError, match="'stribeck' is no FrictionTerm"):
        aw.identify(described, data, friction=["stribeck"])


def test_a_file_says_how_other_logs_are_prepared(arm, tmp_path):
    motions = [aw.motions.random_motion(arm, seed, 6.0) for seed in (0, 1)]
    logs = [simulate_log(arm, motion) for motion in motions]
    estimate = aw.identify(arm, logs[0], friction="linear")
    write_estimate(estimate, tmp_path / "estimate.json")
    stored = read_estimate(tmp_path / "estimate.json")
    assert stored.preparation == estimate.samples[0].preparation.settings
    alike = [aw.prepare(logs[1], like=x) for x in (estimate.samples[0], stored)]
    np.testing.assert_array_equal(alike[0].tau, alike[1].tau)
    for neither in (estimate.samples, arm):
        with pytest.raises(ArgumentError, match="does not say how a log was prepared"):
            aw.prepare(logs[1], like=neither)


def test_a_file_without_its_arm_says_so(described, data, tmp_path):
    path = tmp_path / "old.json"
    aw.write_estimate(aw.identify(described, data, friction="linear"), path)
    document = json.loads(path.read_text())
    del document["description"]
    path.write_text(json.dumps(document))
    with pytest.raises(ArmwiseError, match=r"old\.json does not describe an arm"):
        aw.read_estimate(path)
    with pytest.raises(ArmwiseError, match=r"no estimate with its arm"):
        aw.load_arm(path)


@pytest.mark.parametrize(
    "text", ["", "{}", "[1]", '{"version": 99}', '{"version": 1}', "\x00\x01"]
)
def test_a_bad_estimate_file_is_named(described, tmp_path, text):
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(ArmwiseError, match=r"bad\.json"):
        aw.read_estimate(path, described)
    with pytest.raises(ArmwiseError, match=r"bad\.json"):
        aw.load_arm(path)


def test_an_estimate_of_another_arm_is_refused(tmp_path):
    ur5, ur10 = aw.load_arm("ur5"), aw.load_arm("ur10")
    assert ur5.parameter_names == ur10.parameter_names
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.normal(size=(3, 400, 6))
    tau = aw.Dynamics(ur5).inverse_dynamics(q, qd, qdd)
    data = aw.Samples(time=np.arange(400) / 100.0, q=q, qd=qd, qdd=qdd, tau=tau)
    path = tmp_path / "ur5.json"
    aw.write_estimate(aw.identify(ur5, data, friction="linear"), path)
    # Another mount, or other inertias, are the same arm.
    aw.read_estimate(path, ur5.with_gravity([0.0, -9.81, 0.0]))
    with pytest.raises(ArmwiseError, match=r"ur5\.json is an estimate of ur5"):
        aw.read_estimate(path, ur10)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("parameters", lambda x: x[:-1]),
        ("parameters", lambda x: [float("nan"), *x[1:]]),
        ("parameters", lambda x: [10**400, *x[1:]]),
        ("parameters", lambda x: [*x[:-1], -(2**63)]),
        ("condition_number", lambda x: 0.0),
        ("torque_std", lambda x: [-v for v in x]),
        ("fit", lambda x: []),
        ("fit", lambda x: {**x, "relative_error": [1e6] * 6}),
        ("base", lambda x: {**x, "indices": x["indices"][::-1]}),
        ("base", lambda x: {**x, "covariance": [[-1.0] * len(x["values"])] * 36}),
        ("base", lambda x: {**x, "values": [float("inf")] * len(x["values"])}),
        ("notes", lambda x: [1]),
        ("friction", lambda x: [{"joint": 9, "joint_name": "a", "form": "root"}]),
        ("description", lambda x: {**x, "joints": x["joints"][::-1]}),
        ("kinematics", lambda x: "0"),
    ],
)
def test_a_changed_estimate_is_refused(described, data, tmp_path, name, change):
    path = tmp_path / "changed.json"
    aw.write_estimate(_fitted(described, data), path)
    document = json.loads(path.read_text())
    document[name] = change(document[name])
    path.write_text(json.dumps(document))
    with pytest.raises(ArmwiseError, match=r"changed\.json") as caught:
        aw.read_estimate(path)
    assert len(str(caught.value)) <= 300


@cache
def _fitted(described, data):
    return aw.identify(described, data, friction="linear")


def test_numbers_in_the_file_are_plain_json(described, data, tmp_path):
    path = tmp_path / "estimate.json"
    aw.write_estimate(aw.identify(described, data), path)
    assert json.loads(path.read_text())["version"] == 2
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("spoil", "code", "said"),
    [
        (lambda tau: -tau, "torque-sign-flipped", "sign of the torque is flipped"),
        (
            lambda tau: tau * np.array([1, -1, 1, 1, 1, 1]),
            "torque-sign-flipped",
            "joint_2 runs against",
        ),
        (lambda tau: tau[:, [0, 2, 1, 3, 4, 5]], "torques-swapped", "look swapped"),
        (lambda tau: 0.01 * tau, "torque-unit", "check the unit of the torques"),
    ],
)
def test_spoilt_torques_are_suspected(arm, data, spoil, code, said):
    spoilt = replaced(data, tau=spoil(data.tau))
    estimate = weighted(arm, spoilt)
    texts = [warning.text for warning in estimate.warnings if warning.code == code]
    assert said in " ".join(texts)
    assert diagnose(estimate) == estimate.warnings


def test_a_unit_shows_beneath_friction_that_outweighs_links(arm, data):
    """Most of a small arm's torque is friction that its description does not hold."""
    rough = data.tau + 3.0 * data.tau.std(axis=0) * np.sign(data.qd)
    for unit, is_named in ((1.0, False), (1000.0, True)):
        estimate = weighted(arm, replaced(data, tau=unit * rough))
        codes = [warning.code for warning in estimate.warnings]
        assert ("torque-unit" in codes) == is_named


def test_motions_that_cannot_tell_friction_apart_are_named(arm, data):
    """One joint moves one way only, one at one speed, one under one load."""
    q, qd, tau = data.q.copy(), data.qd.copy(), data.tau.copy()
    seconds = data.time - data.time[0]
    q[:, 0], qd[:, 0] = seconds + 0.5 * np.sin(seconds), 1.0 + 0.5 * np.cos(seconds)
    qd[:, 1] = 0.7 * np.sign(qd[:, 1])
    tau[:, 2] = 3.0 * np.sign(qd[:, 2])
    estimate = weighted(arm, data)
    moved = replace(estimate, samples=(replaced(data, q=q, qd=qd, tau=tau),))
    said = {warning.code: warning.text for warning in diagnose(moved)}
    for code, name in zip(
        ("one-direction", "one-speed", "one-load"), "123", strict=True
    ):
        assert said[code].startswith(f"joint_{name} ")
        assert "armwise excite" in said[code]


def _of_place(speed, torque, stuck):
    """Rows of one joint that an error is put into, by what the warning calls them."""
    top = np.abs(speed).max()
    turns = np.flatnonzero(np.diff(np.sign(speed)))
    near = np.abs(np.arange(speed.size)[:, None] - turns).min(axis=1)
    return {
        "sticks": stuck,
        "turning back": near < 8,
        "at low speed": (np.abs(speed) < 0.09 * top) & (near > 12),
        "at high speed": np.abs(speed) > 0.8 * top,
        "under high torque": np.abs(torque) > 0.8 * np.abs(torque).max(),
    }


@pytest.mark.parametrize(
    "place",
    ["sticks", "turning back", "at low speed", "at high speed", "under high torque"],
)
def test_it_is_said_where_in_the_motion_much_is_left_over(arm, data, place):
    stuck = np.zeros(data.q.shape)
    stuck[200:300, 1] = 1.0
    rows = _of_place(data.qd[:, 1], data.tau[:, 1], stuck[:, 1] > 0.0)[place]
    assert rows.any()
    # A sign that changes at random: no parameter explains it.
    signs = np.random.default_rng(0).choice([-1.0, 1.0], rows.size)
    size = 0.2 * np.linalg.norm(data.tau[:, 1]) / np.sqrt(rows.sum())
    tau = data.tau.copy()
    tau[rows, 1] += size * signs[rows]
    bent = replace(data, tau=tau, stuck=stuck)
    warnings = weighted(arm, bent).warnings
    texts = [w.text for w in warnings if w.code == "error-in-part-of-motion"]
    (text,) = texts
    assert place in text
    assert "joint_2 (20 %" in text or "joint_2 (19 %" in text
    # Data that were not fitted count, where there are any.
    assert not [
        w
        for w in weighted(arm, bent, validation=data).warnings
        if w.code == "error-in-part-of-motion"
    ]


def test_it_is_said_that_validation_moves_faster_than_the_fit_saw(arm, data):
    """Friction that grows with the square of the speed, fitted where it is slow."""
    slow, fast = (
        replace(data, qd=k * data.qd, qdd=k**2 * data.qdd) for k in (0.5, 1.0)
    )
    runs = []
    for run in (slow, fast):
        tau = aw.Dynamics(arm).inverse_dynamics(run.q, run.qd, run.qdd)
        tau[:, 1] += 20.0 * run.qd[:, 1] * np.abs(run.qd[:, 1])
        runs.append(replace(run, tau=tau))
    texts = [
        [w.text for w in one.warnings if w.code == "faster-than-fitted"]
        for one in (
            weighted(arm, runs[0], validation=runs[1]),
            weighted(arm, runs[1], validation=runs[0]),
        )
    ]
    ((text,), none) = texts
    assert not none
    assert "joint_2 at up to" in text
    # All the same where the error is not worse, which is no warning.
    quiet = weighted(arm, data, validation=replace(fast, qd=2.0 * data.qd))
    assert aw.identification.faster_motion(weighted(arm, data)) is None
    assert "joint_1 at up to" in aw.identification.faster_motion(quiet)
    assert "joint_1" not in text


def test_noise_is_left_over_everywhere_and_what_is_no_noise_too(arm, data):
    rng = np.random.default_rng(0)
    size = 0.15 * np.linalg.norm(data.tau[:, 1]) / np.sqrt(len(data))
    noise = size * rng.standard_normal(len(data))
    # White, and as slow as a tenth of a second.
    slow = np.convolve(rng.standard_normal(len(data)), np.ones(10), "same")
    slow *= size / np.std(slow)
    for error, is_said in ((noise, False), (slow, True)):
        tau = data.tau.copy()
        tau[:, 1] += error
        codes = {w.text for w in weighted(arm, replace(data, tau=tau)).warnings}
        assert any("throughout the motion" in text for text in codes) == is_said


def test_good_torques_are_not_suspected(described, data):
    assert weighted(described, data).warnings == ()


def test_a_moment_of_motion_has_no_condition_number(described, data):
    moment = aw.identify(described, data[:60], friction="linear")
    assert moment.condition_number == np.inf
    (said,) = [w for w in moment.warnings if w.code == "undetermined-parameters"]
    assert f"of {moment.base.count} base parameters" in said.text
    assert "ill-conditioned" not in {w.code for w in moment.warnings}
    (excited,) = [v for v in verdicts(moment) if "separate" in v.question]
    assert excited.verdict == "fail"
    assert "longer or richer motion" in excited.why


def test_what_does_not_fit_is_refused(described, data):
    with pytest.raises(ArgumentError, match="6 joints"):
        aw.identify(aw.load_arm("panda"), data)
    bare = replaced(data, tau=np.zeros((len(data), 0)))
    with pytest.raises(RecordingError, match="no joint torques"):
        aw.identify(described, bare)
    with pytest.raises(ArgumentError, match="wings"):
        aw.identify(described, data, terms=["wings"])
    with pytest.raises(NotIdentifiable):
        aw.identify(described, data, terms=[])


def test_errors_while_moving_resting_and_reversing_are_kept_apart(arm, data):
    estimate = weighted(arm, data)
    # Joint 1 stands still in the second half, and only there its torque is wrong.
    half = len(data) // 2
    qd, tau = data.qd.copy(), data.tau.copy()
    qd[half:, 0] = 0.0
    held = replaced(data, qd=qd)
    tau[:] = estimate.predict(held)
    tau[half:, 0] += 5.0
    checked = estimate.validate(replaced(held, tau=tau))
    assert checked.moving.relative_error[0] < 1e-9
    assert checked.resting.rmse[0] == pytest.approx(5.0, rel=0.1)
    np.testing.assert_array_equal(checked.moving.rows + checked.resting.rows, len(data))
    turns = np.count_nonzero(np.diff(np.sign(data.qd[:, 1])))
    window = 2 * 0.1 * data.rate_hz
    assert 0.5 * turns * window < checked.reversing.rows[1] < 1.6 * turns * window
    stored = checked.to_dict()
    assert stored["moving"]["rows"][0] + stored["resting"]["rows"][0] == len(data)
    still = estimate.validate(replaced(data, qd=np.zeros_like(data.qd)))
    assert np.isnan(still.moving.relative_error).all()
    assert still.to_dict()["moving"]["relative_error"] == [None] * 6
