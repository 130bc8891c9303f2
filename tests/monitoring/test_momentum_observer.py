"""Momentum observer: pushes are seen, imperfect models raise no alarm, C agrees."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import armwise as aw
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.identification import FrictionTerm
from armwise.monitoring import MomentumObserver
from armwise.plants import perturbed
from armwise.programs import find_compiler

RATE = 1000.0


@cache
def _log(seed: int, push: float = 0.0, joint: int = 2, at: float = 1.5) -> aw.Samples:
    """A UR10 that moves, and from some moment on is pushed at one joint [N m]."""
    arm = aw.load_arm("ur10")
    t = np.arange(3000) / RATE
    q, qd, qdd = aw.motions.random_motion(arm, seed, 6.0).sample(t)
    tau = Dynamics(arm).inverse_dynamics(q, qd, qdd)
    outside = np.zeros_like(tau)
    outside[t >= at, joint] = push
    noise = 0.5 * np.random.default_rng(seed).normal(size=tau.shape)
    # The motor gives less where something helps.
    return aw.Samples(t, q, qd, qdd, tau - outside + noise)


@cache
def _observer() -> MomentumObserver:
    """Of a model that is wrong by three per cent."""
    observer = MomentumObserver(
        perturbed(aw.load_arm("ur10"), 0.03, seed=1), bandwidth_hz=30.0
    )
    for_all = aw.Samples.concatenate([_log(seed) for seed in range(4)])
    observer.learn(for_all)
    return observer


def test_the_residual_is_the_torque_from_outside() -> None:
    exact = MomentumObserver(aw.load_arm("ur10"), bandwidth_hz=20.0)
    seen = exact.observe(_log(5, push=8.0))
    late = seen.time > 1.7
    assert seen.torque[late, 2].mean() == pytest.approx(8.0, abs=0.2)
    assert np.abs(seen.torque[late][:, [0, 1, 3, 4, 5]].mean(axis=0)).max() < 0.2
    # A first-order low-pass: 63 % after 1/(2π 20 Hz).
    at = int(np.searchsorted(seen.time, 1.5 + 1.0 / (2.0 * np.pi * 20.0)))
    assert seen.torque[at - 3 : at + 3, 2].mean() == pytest.approx(5.06, abs=0.6)


def test_motions_without_contact_raise_no_alarm() -> None:
    for seed in range(10, 18):
        assert _observer().observe(_log(seed)).contacts == ()


def test_pushes_of_a_tenth_of_the_limit_are_seen_in_time() -> None:
    limit = aw.load_arm("ur10").limits("effort")
    delays = []
    for seed in range(20, 30):
        joint = seed % 4
        push = 0.1 * limit[joint] * (-1.0) ** seed
        contacts = _observer().observe(_log(seed, push, joint)).contacts
        delays.append(contacts[0] - 1.5 if contacts else np.inf)
    assert np.min(delays) > 0.0
    assert np.mean(np.array(delays) < 0.02) >= 0.7


def test_thresholds_depend_on_the_state() -> None:
    threshold = _observer().observe(_log(11)).threshold
    # Joints that carry gravity are known worse the more of it they carry.
    assert np.all((threshold.max(axis=0) / threshold.min(axis=0))[1:3] > 1.1)
    thresholds = _observer().thresholds
    assert thresholds is not None
    slow, fast = (thresholds.at(np.zeros(6), np.full(6, near)) for near in (1.0, 0.0))
    assert np.all(slow >= fast)


def test_the_push_is_a_wrench_at_a_frame() -> None:
    arm = aw.load_arm("ur10")
    data = _log(6)
    q = data.q[1000]
    force = np.array([20.0, -10.0, 5.0, 0.0, 0.0, 0.0])
    observer = MomentumObserver(arm)
    observer.torque = Dynamics(arm).jacobian(q[None], "flange")[0].T @ force
    assert observer.wrench(q, "flange") == pytest.approx(force, abs=1e-6)


@pytest.mark.skipif(find_compiler() is None, reason="no C compiler")
def _with_friction() -> aw.Estimate:
    """Of every form without a memory; the quadratic one straight within the log."""
    arm, data = aw.load_arm("ur10"), _log(7)
    forms = ("asymmetric", "stribeck", "root", "quadratic", "load", "load_driving")
    terms = [
        FrictionTerm(j, arm.joints[j].name, form, 0.3) for j, form in enumerate(forms)
    ]
    estimate = aw.identify(arm, data, friction=terms)
    columns, values = estimate.columns, np.array(estimate.all_parameters)
    values[-len(terms) :] = 3.0
    end = 0.5 * float(np.abs(data.qd[:, 3]).max())
    shorter = tuple(replace(t, fastest=end) for t in columns.friction)
    return replace(
        estimate, columns=replace(columns, friction=shorter), all_parameters=values
    )


@pytest.mark.parametrize("has_terms", [False, True])
def test_the_generated_c_agrees(tmp_path: Path, has_terms: bool) -> None:
    compiler = find_compiler()
    assert compiler is not None
    learnt = _observer().thresholds
    assert learnt is not None
    observer = MomentumObserver(
        _with_friction() if has_terms else _observer().arm,
        bandwidth_hz=30.0,
        thresholds=replace(learnt, dry=np.full(6, 2.0)),
    )
    _, source = observer.generate(tmp_path, "touch")
    library = tmp_path / "touch.so"
    subprocess.run(
        [*compiler.command, "-std=c11", "-O2", "-Wall", "-Werror", "-shared", "-fPIC",
         str(source), "-o", str(library), "-lm"],
        check=True,
    )  # fmt: skip
    assert "malloc" not in source.read_text()
    c, state = ctypes.CDLL(str(library)), ctypes.create_string_buffer(4096)
    c.touch_reset(state)
    data = _log(7, 20.0)
    seen = observer.observe(data)
    for k in range(1000, 1800):
        if k == 1000:
            observer.reset()
        row = [np.ascontiguousarray(x[k]) for x in (data.q, data.qd, data.tau)]
        observer.update(*row)
        touched = c.touch_update(state, *(ctypes.c_void_p(x.ctypes.data) for x in row))
        assert touched == observer.contact.sum()
    torque, threshold = np.frombuffer(state.raw, dtype=float, count=18)[6:].reshape(
        2, 6
    )
    assert torque == pytest.approx(observer.torque, rel=1e-9, abs=1e-9)
    same = observer.observe(data[1000:1800]).threshold[-1]
    assert threshold == pytest.approx(same, rel=1e-9)
    assert seen.contacts


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    arm = aw.load_arm("ur10")
    with pytest.raises(ArgumentError, match="bandwidth_hz"):
        MomentumObserver(arm, rate_hz=100.0, bandwidth_hz=50.0)
    with pytest.raises(ArgumentError, match="no thresholds"):
        MomentumObserver(arm).generate(tmp_path)
    with pytest.raises(NotIdentifiable, match="five seconds"):
        MomentumObserver(arm).learn(_log(1)[:50])


def test_thresholds_are_not_learnt_from_another_arms_log() -> None:
    light = MomentumObserver(aw.load_arm("ur5"))
    log = aw.Samples.concatenate([_log(seed) for seed in range(2)])
    other = replace(log, tau=0.01 * np.asarray(log.tau))
    with pytest.raises(NotIdentifiable, match="Is it this arm's log"):
        light.learn(other)


def test_a_whole_log_is_followed_as_sample_by_sample() -> None:
    observer = _observer()
    data = _log(8, 20.0)[:400]
    seen = observer.observe(data)
    observer.reset()
    for k in range(len(data)):
        torque = observer.update(data.q[k], data.qd[k], data.tau[k])
        assert torque == pytest.approx(seen.torque[k], rel=1e-9, abs=1e-9)
        assert np.array_equal(observer.contact, seen.contact[k])


def test_rate_and_delay_are_stated() -> None:
    observer = _observer()
    thresholds = observer.thresholds
    assert thresholds is not None
    assert 0.0 < thresholds.false_alarms_per_hour <= 0.1 + 1e-9
    state = np.zeros(6), np.ones(6)
    modelled = observer._terms(*(x[None] for x in (*state, state[0])))[2]
    limit = thresholds.at(modelled, np.zeros((1, 6)))[0]
    # Twice the threshold passes half way through the low-pass after log 2 / 2πB.
    expected = np.log(2.0) / (2.0 * np.pi * 30.0) + 2e-3
    assert observer.delay(2.0 * limit, *state) == pytest.approx(np.full(6, expected))
    assert np.all(np.isinf(observer.delay(0.9 * limit, *state)))
    other = MomentumObserver(observer.arm, bandwidth_hz=30.0)
    free = aw.Samples.concatenate([_log(seed) for seed in range(3)])
    rarer = other.learn(free, false_alarms_per_hour=1e-4)
    often = other.learn(free, false_alarms_per_hour=100.0)
    assert np.all(rarer.base >= often.base)


def test_the_command_says_when_and_where(tmp_path: Path) -> None:
    import json

    from typer.testing import CliRunner

    from armwise.cli.main import app

    logs = {"work": _log(5, push=40.0), **{f"free{k}": _log(k) for k in range(4)}}
    names = [f"{x}_{j}" for x in ("q", "qd", "tau") for j in range(1, 7)]
    for name, data in logs.items():
        table = np.column_stack([data.time, data.q, data.qd, data.tau])
        header = ",".join(["time", *names])
        path = tmp_path / f"{name}.csv"
        np.savetxt(path, table, delimiter=",", header=header, comments="")
    free = [
        word for k in range(4) for word in ("--free", str(tmp_path / f"free{k}.csv"))
    ]
    words = ["follow-contact", "ur10", str(tmp_path / "work.csv"), *free, "--json"]
    answer = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "c")])
    assert answer.exit_code == 1, answer.output
    report = json.loads(answer.stdout)
    assert report["contacts"][0]["joint"] == 2
    assert report["contacts"][0]["began"] == pytest.approx(1.5, abs=0.05)
    assert (tmp_path / "c" / "observer.c").exists()
    words = ["follow-contact", "ur10", free[1]]
    quiet = CliRunner().invoke(app, [*words, *free[2:]])
    assert quiet.exit_code == 0, quiet.output
    # A log says nothing of itself.
    refused = CliRunner().invoke(app, [*words, *free])
    assert "out of itself" in str(refused.exception)
    assert "no contact" in quiet.output
