"""Information and prices: the definitions, and gradients by finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import load_arm
from armwise.dynamics import Dynamics, base_parameters
from armwise.errors import ArgumentError
from armwise.excitation import (
    KeepOut,
    information_from_covariance,
    score_motion,
    score_motions,
)
from armwise.excitation.design import arrange
from armwise.motions import Fourier
from tests.programs.test_cuda import needs_gpu

RNG = np.random.default_rng(4)


def shaking(dof: int, duration: float = 4.0) -> Fourier:
    amplitudes = RNG.normal(size=(2, dof, 5)) * 0.2
    return Fourier(np.full(dof, -0.5), *amplitudes, 1.0 / duration)


@pytest.mark.parametrize("name", ["panda", "tx40", "ddarm"])
def test_score_is_that_of_the_base_regressor(name):
    arm = load_arm(name)
    motion, noise = shaking(arm.dof), RNG.uniform(0.5, 2.0, arm.dof)
    score = score_motion(arm, motion, torque_std=noise, rate_hz=50.0)
    times = (np.arange(200) + 0.5) * 0.02
    Y = Dynamics(arm).regressor(*motion.sample(times))
    Y = Y[..., list(base_parameters(arm).indices)] / noise[:, None]
    Y = Y.reshape(-1, Y.shape[-1])
    np.testing.assert_allclose(
        score.information, Y.T @ Y, rtol=1e-9, atol=1e-9 * np.abs(Y.T @ Y).max()
    )
    scaled = Y / np.linalg.norm(Y, axis=0)
    expected = np.linalg.cond(scaled)
    assert score.condition_number == pytest.approx(expected, rel=1e-4)


def test_log_det_differences_are_those_of_the_information():
    arm = load_arm("ddarm")
    a, b = (score_motion(arm, shaking(3)) for _ in range(2))
    expected = np.linalg.slogdet(a.information)[1] - np.linalg.slogdet(b.information)[1]
    assert a.log_det - b.log_det == pytest.approx(expected, abs=0.05)


def test_what_is_known_adds_to_what_is_told():
    arm = load_arm("ddarm")
    score = score_motion(arm, shaking(3))
    twice = score_motion(arm, shaking(3), prior=1e6 * score.information)
    # A million times as much of everything: 25 parameters, log 1e6 each.
    gain = 25 * np.log(1e6)
    assert twice.log_det - score.log_det == pytest.approx(gain, abs=1.0)


def test_a_motion_that_tells_nothing_has_infinite_condition():
    arm = load_arm("ddarm")
    still = Fourier(np.ones(3), np.zeros((3, 1)), np.zeros((3, 1)), 1.0)
    assert score_motion(arm, still).condition_number == np.inf


@pytest.mark.parametrize("name", ["panda", "puma260"])
def test_gradient_of_all_that_is_minimised(name):
    """puma260 has Coulomb friction; both come close to themselves."""
    arm = load_arm(name)
    setting = arrange(arm, 4.0, keep_out=KeepOut(floor=0.1), limit_fraction=0.3)
    p = setting.problem
    penalty = p.penalty()
    z = 0.3 * RNG.normal(size=(arm.dof, p.series.free))
    lost = p.lost(penalty, z.shape)
    lost(z.ravel())
    penalty.stiffen()  # so that forces of an earlier round count too
    value, slope = lost(z.ravel())
    way, h = RNG.normal(size=z.size), 1e-6
    ahead, behind = lost(z.ravel() + h * way)[0], lost(z.ravel() - h * way)[0]
    assert value > 100.0  # limits and keep-out are broken here
    assert slope @ way == pytest.approx((ahead - behind) / (2 * h), rel=1e-4)


def test_what_is_known_must_be_information():
    arm, motion = load_arm("ddarm"), shaking(3)
    count = base_parameters(arm).count
    bad = {
        "must be a 25×25 matrix": np.eye(count - 1),
        "not finite": np.full((count, count), np.nan),
        "symmetric": np.triu(np.ones((count, count))),
        "positive semidefinite": -np.eye(count),
    }
    for said, prior in bad.items():
        with pytest.raises(ArgumentError, match=said):
            score_motion(arm, motion, prior=prior)
    with pytest.raises(ArgumentError, match="moves 2 joints"):
        score_motion(arm, shaking(2))
    with pytest.raises(ArgumentError, match="torque_std must be positive"):
        score_motion(arm, motion, torque_std=[1.0, 0.0, 1.0])


def test_covariance_becomes_information():
    root = RNG.normal(size=(4, 4)) * [1e-3, 1.0, 1e3, 1.0]
    covariance = root.T @ root
    found = information_from_covariance(covariance)
    np.testing.assert_allclose(found @ covariance, np.eye(4), atol=1e-6)
    covariance[2] = covariance[:, 2] = 0.0
    covariance[2, 2] = np.inf
    found = information_from_covariance(covariance)
    assert not found[2].any()
    seen = np.ix_([0, 1, 3], [0, 1, 3])
    expected = np.linalg.inv(covariance[seen])
    np.testing.assert_allclose(found[seen], expected, rtol=1e-6)
    with pytest.raises(ArgumentError, match="square"):
        information_from_covariance(np.ones(3))
    with pytest.raises(ArgumentError, match="above zero"):
        information_from_covariance(np.zeros((2, 2)))


def test_the_scatter_of_few_stretches_is_information_too():
    rows = RNG.normal(size=(5, 8)) * 10.0 ** np.arange(-4, 4)
    covariance = rows.T @ rows
    found = information_from_covariance(covariance)
    size = np.sqrt(np.diag(covariance))
    assert np.linalg.eigvalsh(found * np.outer(size, size))[0] > 0.0
    assert np.linalg.eigvalsh(found * np.outer(size, size))[-1] < 20.0


def test_many_motions_score_as_one_by_one():
    arm, motions = load_arm("ddarm"), [shaking(3) for _ in range(4)]
    for one, motion in zip(score_motions(arm, motions), motions, strict=True):
        assert one.log_det == pytest.approx(score_motion(arm, motion).log_det)


def test_motions_of_different_lengths_are_not_compared():
    arm = load_arm("ddarm")
    motions = [shaking(3, duration) for duration in (4.0, 5.0)]
    with pytest.raises(ArgumentError, match="one duration"):
        score_motions(arm, motions)


@needs_gpu
def test_a_gpu_scores_the_same():
    arm, motions = load_arm("panda"), [shaking(7) for _ in range(5)]
    mixed = [*motions[:-1], replace(motions[-1], periods=1.0 + 1e-12)]
    theirs = score_motions(arm, motions)
    for ours in (motions, mixed):
        for one, other in zip(
            score_motions(arm, ours, backend="cuda"), theirs, strict=True
        ):
            assert_same(one, other)


def assert_same(one, other):
    size = np.sqrt(np.diag(other.information))
    difference = (one.information - other.information) / np.outer(size, size)
    assert np.abs(difference).max() < 1e-10
