"""What is particular to each kind of motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from armwise.arms import Limits, Mimic, load_arm
from armwise.errors import ArgumentError
from armwise.motions import (
    Fourier,
    Hold,
    Polynomial,
    Quintic,
    Sequence,
    Sigmoid,
    Sinusoid,
    Triangle,
    random_motion,
)

A, B = np.array([0.1, -0.5, 0.0]), np.array([1.2, 0.7, 3.0])


def test_quintic_meets_both_ends_exactly_at_rest():
    motion = Quintic(A, B, 1.3)
    for t, posture in ((0.0, A), (1.3, B)):
        q, qd, qdd = motion.sample(t)
        np.testing.assert_array_equal(q, posture)
        assert not qd.any()
        assert not qdd.any()


def test_quintic_of_the_paper_peaks_where_the_paper_says():
    # atkeson1986 App. A: (80, 269.1, −30)→(330, 19.1, 220)° in 1.3 s.
    motion = Quintic(np.radians([80, 269.1, -30]), np.radians([330, 19.1, 220]), 1.3)
    _, qd, qdd = motion.sample(np.linspace(0, 1.3, 100_001))
    assert np.degrees(np.abs(qd).max()) == pytest.approx(360, rel=0.01)
    assert np.degrees(np.abs(qdd).max()) == pytest.approx(854, rel=0.01)


@given(st.floats(0.1, 10.0))
@settings(deadline=None)  # the first example pays for importing SciPy
def test_quintic_is_the_spline_of_order_five(duration):
    t = np.linspace(0, duration, 33)
    quintic = Quintic(A, B, duration)
    spline = Polynomial.through([0, duration], [A, B], order=5)
    for ours, theirs in zip(quintic.sample(t), spline.sample(t), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9 * (1 + duration**-2))


def test_seventh_order_has_no_jerk_at_the_ends():
    motion = Polynomial.seventh_order(A, B, 2.0)
    third = motion.coefficients[0, 3]
    np.testing.assert_allclose(third, 0.0, atol=1e-12)
    h = 1e-4
    np.testing.assert_allclose(motion.sample(2.0 - h).qdd / h, 0.0, atol=1e-1)
    np.testing.assert_allclose(motion.sample(2.0).q, B, atol=1e-12)


def test_spline_passes_points_with_the_derivatives_asked_for():
    times, points = [0.0, 0.4, 1.0, 1.5], np.random.default_rng(0).normal(size=(4, 3))
    start, end = np.ones((2, 3)), -2.0 * np.ones((2, 3))
    motion = Polynomial.through(times, points, 5, start, end)
    np.testing.assert_allclose(motion.sample(times).q, points, atol=1e-12)
    np.testing.assert_allclose(motion.sample(0.0)[1:], start, atol=1e-10)
    np.testing.assert_allclose(motion.sample(1.5)[1:], end, atol=1e-10)


def test_spline_is_smooth_at_via_points():
    motion = Polynomial.through([0.0, 0.4, 1.0], [A, B, A], 5)
    before, after = motion.sample(0.4 - 1e-9), motion.sample(0.4 + 1e-9)
    np.testing.assert_allclose(before.qdd, after.qdd, atol=1e-5)


def test_fourier_is_periodic_about_its_posture():
    rng = np.random.default_rng(1)
    sine, cosine = rng.normal(size=(2, 3, 5))
    motion = Fourier(A, sine, cosine, frequency=0.2, periods=3)
    assert motion.duration == pytest.approx(15.0)
    t = np.arange(100) * 0.05
    for now, later in zip(motion.sample(t), motion.sample(t + 5.0), strict=True):
        np.testing.assert_allclose(now, later, atol=1e-11)
    np.testing.assert_allclose(motion.sample(t).q.mean(0), A, atol=1e-12)


def test_triangle_turns_at_its_amplitude_with_each_joints_period():
    motion = Triangle([0.0, 1.0], [0.5, 0.2], [4.0, 2.0], 8.0)
    q, qd, _ = motion.sample([0.0, 0.5, 1.0, 3.0])
    np.testing.assert_allclose(q[:, 0], [0.0, 0.25, 0.5, -0.5], atol=1e-12)
    np.testing.assert_allclose(q[:, 1], [1.0, 1.2, 1.0, 1.0], atol=1e-12)
    assert qd[0].tolist() == pytest.approx([0.5, 0.4])


def test_triangle_rounding_only_touches_the_corners():
    sharp = Triangle([0.0], [0.5], [4.0], 8.0)
    round_ = Triangle([0.0], [0.5], [4.0], 8.0, rounding=0.2)
    t = np.linspace(0, 8, 801)
    gap = sharp.sample(t).q - round_.sample(t).q
    assert np.abs(gap).max() == pytest.approx(0.5 * 0.5 * 0.2)
    corner = np.abs((t - 1.0) % 2.0)
    far = np.minimum(corner, 2.0 - corner) > 0.2
    np.testing.assert_allclose(gap[far], 0.0, atol=1e-12)


def test_sigmoid_obeys_its_differential_equation():
    motion = Sigmoid([0.0], [1.0], rate=5.0, sigma0=1e-3)
    t = np.linspace(0, motion.duration, 101)
    q, qd, qdd = motion.sample(t)
    np.testing.assert_allclose(qd, 5.0 * q * (1 - q), atol=1e-12)  # Eq. 3.40
    np.testing.assert_allclose(qdd, 25 * q * (1 - q) * (1 - 2 * q), atol=1e-12)  # 3.43
    assert q[0, 0] == pytest.approx(1e-3)
    assert q[-1, 0] == pytest.approx(1 - 1e-3)
    assert Sigmoid.lasting([0.0], [1.0], 2.5).duration == pytest.approx(2.5)


def test_mitchells_standard_sinusoids():
    t = np.linspace(0, 8, 201)
    q = Sinusoid.mitchell(duration=10.0).sample(t).q
    np.testing.assert_allclose(q[:, 0], 1.33 * (1 - np.cos(0.75 * np.pi * t)))
    np.testing.assert_allclose(q[:, 1], 0.75 * np.cos(2 * np.pi * t), atol=1e-12)


def test_sequence_runs_its_parts_in_order():
    motion = Sequence((Quintic(A, B, 1.0), Hold(B, 0.5), Quintic(B, A, 2.0)))
    assert motion.duration == pytest.approx(3.5)
    np.testing.assert_allclose(motion.sample(1.2).q, B)
    np.testing.assert_allclose(motion.sample(2.5).q, (A + B) / 2)
    np.testing.assert_allclose(motion.sample(3.5).q, A)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quintic(A, B[:2], 1.0), "end needs 3 numbers"),
        (lambda: Quintic(A, [0, np.nan, 0], 1.0), "end is not finite at joint 2"),
        (lambda: Quintic(A, B, 0.0), "duration must be a positive number"),
        (lambda: Hold([], 1.0), "posture needs at least one number"),
        (lambda: Polynomial.through([0, 1], [A, B], order=4), "order must be 1, 3"),
        (lambda: Polynomial.through([0, 1, 1], [A, B, A]), "begin at 0 and increase"),
        (lambda: Polynomial.through([0, 1], [A, B], 5, np.ones((1, 3))), "2 finite"),
        (lambda: Polynomial([0, 1], np.ones((2, 3, 3))), "1 pieces"),
        (lambda: Fourier(A, np.ones((2, 4)), np.ones((3, 4)), 1.0), "sine needs one"),
        (lambda: Fourier(A, np.ones((3, 4)), np.ones((3, 2)), 1.0), "same number"),
        (lambda: Triangle(A, B, [1, -1, 1], 1.0), "Every period"),
        (lambda: Triangle(A, B, 1.0, 1.0, rounding=0.3), "quarter of the shortest"),
        (lambda: Sigmoid(A, B, 1.0, sigma0=0.6), "between 0 and 0.5"),
        (lambda: Sequence(()), "at least one motion"),
        (lambda: Sequence((Hold(A, 1.0), Hold(B, 1.0))), "Joint 3 jumps by 3"),
        (lambda: Sequence((Hold(A, 1.0), Hold(B[:2], 1.0))), "moves 3 joints"),
    ],
)
def test_refuses_what_makes_no_motion(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()


@pytest.mark.parametrize("name", ["panda", "ur10", "hand_controller"])
@pytest.mark.parametrize("seed", range(5))
def test_random_motion_stays_within_the_limits(name: str, seed: int) -> None:
    arm = load_arm(name)
    fast = random_motion(arm, seed, 4.0, harmonics=8, reach=0.3, fastest=1.5)
    q, qd, qdd = fast.sample(np.linspace(0.0, 4.0, 4001))
    lower, upper = arm.limits("lower"), arm.limits("upper")
    assert np.all((q >= lower - 1e-3) & (q <= upper + 1e-3))
    speeds = np.minimum(0.8 * arm.limits("velocity"), 1.5)
    used = [np.abs(qd / speeds), np.abs(qdd / (0.8 * arm.limits("acceleration")))]
    # Every joint is as fast as its own limits allow, whatever the others' are.
    np.testing.assert_allclose(np.max(used, axis=(0, 1)), 1.0, atol=3e-3)
    again = random_motion(arm, seed, 4.0, harmonics=8, reach=0.3, fastest=1.5)
    np.testing.assert_array_equal(again.sine, fast.sine)


def test_random_motion_of_ranges_far_from_zero_and_of_followers() -> None:
    arm = load_arm("panda")
    far = replace(arm.joints[0], limits=Limits(3.5, 6.0, 2.0))
    follower = replace(
        arm.joints[6], mimic=Mimic(1, -2.0, 0.1), limits=Limits(-0.4, 0.2, 1.0)
    )
    arm = replace(arm, joints=(far, *arm.joints[1:6], follower))
    motion = random_motion(arm, 0, 4.0, reach=0.3, fastest=1e3)
    q, qd, _ = motion.sample(np.linspace(0.0, 4.0, 4001))
    assert q[:, 0].min() > 3.5
    assert q[:, 0].max() < 6.0
    follows = -2.0 * q[:, 1] + 0.1
    assert follows.min() > -0.4
    assert follows.max() < 0.2
    assert 2.0 * np.abs(qd[:, 1]).max() < 1.0
    assert np.ptp(q, axis=0).min() > 0.05
