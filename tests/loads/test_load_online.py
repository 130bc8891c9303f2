"""OnlineLoad: the same estimate by samples or blocks; changes detected in time."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from armwise.arms import InertialParameters
from armwise.errors import ArgumentError
from armwise.loads import LoadEstimate, OnlineLoad, identify_load
from tests.loads import rig

RATE = 1000.0
NOISE = np.repeat([0.2, 0.01], 3)
BIAS = np.array([1.0, -0.5, 0.3, 0.02, -0.03, 0.01])


@cache
def _handling() -> tuple[np.ndarray, ...]:
    """Eight seconds at 1 kHz: the bar picked up at 3 s, put down at 6 s."""
    random = np.random.default_rng(3)
    t = np.arange(8000) / RATE
    q, qd, qdd = rig.motion(7.0).sample(t % 7.0)
    held = ((t >= 3.0) & (t < 6.0))[:, None]
    load = np.where(held, (rig.GRIPPER + rig.BAR).vector, rig.GRIPPER.vector)
    A = rig.body().regressor(q, qd, qdd)
    wrench = np.einsum("tcp,tp->tc", A, load) + BIAS
    wrench = wrench + NOISE * random.normal(size=wrench.shape)
    return t, q, qd, qdd + 0.2 * random.normal(size=qdd.shape), wrench


def _followed(block: int, until: int = 8000) -> tuple[OnlineLoad, dict[float, float]]:
    t, *signals = _handling()
    online = OnlineLoad(rig.puma(), gripper=rig.GRIPPER, noise_std=(0.2, 0.01))
    masses = {}
    for i in range(0, until, block):
        part = slice(i, i + block) if block > 1 else i
        online.update(*(x[part] for x in signals))
        masses[round(float(t[i]) + block / RATE, 3)] = online.mass
    return online, masses


@pytest.mark.parametrize("block", [1, 50])
def test_a_change_is_noticed_within_300_ms_and_weighed_within_a_second(
    block: int,
) -> None:
    online, masses = _followed(block)
    assert [change.kind for change in online.changes] == ["picked up", "put down"]
    up, down = online.changes
    assert 3.0 <= up.time < 3.3
    assert 6.0 <= down.time < 6.3
    assert up.began == pytest.approx(3.0, abs=0.02)
    assert up.mass_change == pytest.approx(1.6, rel=0.15)
    assert masses[4.0] == pytest.approx(1.6, rel=0.02)
    assert masses[6.0] == pytest.approx(1.6, rel=0.005)
    assert masses[8.0] == pytest.approx(0.0, abs=0.02)


def test_blocks_and_single_samples_agree() -> None:
    single, _ = _followed(1, until=2500)
    blocks, _ = _followed(50, until=2500)
    apart = single.parameters.vector - blocks.parameters.vector
    std = np.sqrt(np.diag(single.covariance))
    assert np.abs(apart / std).max() < 0.2
    assert np.sqrt(np.diag(blocks.covariance)) == pytest.approx(std, rel=0.05)


def test_uncertainty_shrinks_and_is_honest() -> None:
    random = np.random.default_rng(0)
    t = np.arange(3000) / RATE
    q, qd, qdd = rig.motion(5.0).sample(t)
    exact = rig.body().regressor(q, qd, qdd) @ rig.BRICK.vector + BIAS
    surprises, widths = [], []
    for _ in range(20):
        online = OnlineLoad(rig.puma(), memory=1e6, noise_std=(0.2, 0.01), drift=0.0)
        noisy = exact + NOISE * random.normal(size=exact.shape)
        online.update(q[:500], qd[:500], qdd[:500], noisy[:500])
        early = online.mass_std
        for part in (slice(i, i + 100) for i in range(500, 3000, 100)):
            online.update(q[part], qd[part], qdd[part], noisy[part])
        widths.append(online.mass_std / early)
        error = online.parameters.vector - rig.BRICK.vector
        surprises.append(error / np.sqrt(np.diag(online.covariance)))
    assert max(widths) < 0.5
    assert 0.7 < np.sqrt(np.mean(np.square(surprises))) < 1.3
    assert not online.changes


def test_a_prior_counts_by_its_covariance() -> None:
    before = identify_load(rig.samples(rig.BRICK), rig.puma())
    online = OnlineLoad(rig.puma(), prior=before)
    assert online.mass == pytest.approx(before.mass)
    assert online.mass_std == pytest.approx(before.std.mass)
    estimate = online.estimate
    assert isinstance(estimate, LoadEstimate)
    assert estimate.std.parameters == pytest.approx(before.std.parameters)
    guess = OnlineLoad(rig.puma(), prior=rig.BRICK)
    assert guess.mass == pytest.approx(rig.BRICK.mass)
    assert guess.mass_std > 1.0


def test_reset_forgets() -> None:
    online, _ = _followed(50, until=1000)
    online.reset()
    assert online.time == 0.0
    assert online.mass == pytest.approx(0.0)
    assert online.changes == ()


def test_bad_settings_and_shapes_are_refused() -> None:
    with pytest.raises(ArgumentError, match="must be positive"):
        OnlineLoad(rig.puma(), rate_hz=0.0)
    with pytest.raises(ArgumentError, match="noise_std must be finite"):
        OnlineLoad(rig.puma(), noise_std=(np.nan, 1.0))
    online = OnlineLoad(rig.puma())
    zeros = np.zeros((5, 6))
    with pytest.raises(ArgumentError, match=r"wrench has shape \(4, 6\)"):
        online.update(zeros, zeros, zeros, zeros[:4])
    with pytest.raises(ArgumentError, match="every joint value must be finite"):
        online.update(np.full(6, np.nan), np.zeros(6), np.zeros(6), np.zeros(6))
    static = LoadEstimate(
        "wrist",
        InertialParameters(np.full(10, np.nan)),
        np.full((10, 10), np.nan),
        np.ones(10),
    )
    with pytest.raises(ArgumentError, match="needs all ten"):
        OnlineLoad(rig.puma(), prior=static)


@pytest.mark.parametrize("block", [1, 500])
def test_an_arm_that_rests_forgets_no_further_than_the_prior(block: int) -> None:
    random = np.random.default_rng(5)
    t = np.arange(4000) / RATE
    moving = rig.motion(4.0).sample(t)
    still = [np.repeat(moving.q[-1:], 12_000, axis=0), *np.zeros((2, 12_000, 6))]
    # A memory of 0.2 s makes 12 s of rest as long as 5 minutes with the default's.
    online = OnlineLoad(rig.puma(), rate_hz=RATE, memory=0.2)
    before = np.diag(online.covariance)
    for signals in (moving, still, moving):
        wrench = rig.body().regressor(*signals) @ rig.BAR.vector
        wrench = wrench + NOISE * random.normal(size=wrench.shape)
        for i in range(0, len(wrench), block):
            part = slice(i, i + block) if block > 1 else i
            online.update(*(x[part] for x in signals), wrench[part])
        assert np.linalg.eigvalsh(online.covariance)[0] > 0.0
        assert np.all(np.diag(online.covariance) <= 1.001 * before)
        off = online.parameters.vector - rig.BAR.vector
        assert np.all(np.abs(off) < 5.0 * np.sqrt(np.diag(online.covariance)))
    assert online.changes == ()


def test_delay_and_false_alarms_of_a_change_are_stated() -> None:
    online = OnlineLoad(rig.puma(), rate_hz=1000.0, noise_std=(0.2, 0.01))
    # 2.9 N are fifteen standard deviations: the largest step, 8 − 3 a sample, to 60.
    assert online.detection(0.3).delay == pytest.approx(0.013)
    assert online.detection(0.3).false_alarms_per_hour < 1e-9
    assert online.detection(0.05).delay == np.inf  # half a newton: below the slack
    # Noise that repeats itself adds up faster.
    slow = online.detection(0.3, correlation=10.0)
    assert 0.01 < slow.false_alarms_per_hour < 1.0


def test_the_bound_on_false_alarms_holds() -> None:
    """A threshold low enough that alarms come, counted against Wald's bound."""
    from armwise.loads.online import ChangeDetector

    rng = np.random.default_rng(0)
    detector = ChangeDetector(6, 1000.0, threshold=1.5, hold_off=0.0)
    alarms = 0
    for value in rng.chisquare(6, size=400_000).tolist():
        if detector.take(value):
            alarms += 1
            detector.restart()
    bound = detector.detection(0.0).false_alarms_per_hour * 400.0 / 3600.0
    assert 0 < alarms <= bound
