"""Designs: within limits by other means than their own, and better than the others."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from armwise.arms import Arm, Drive, Limits, load_arm
from armwise.dynamics import Dynamics, base_parameters
from armwise.errors import ArgumentError
from armwise.excitation import (
    Box,
    ExcitationPlan,
    KeepOut,
    design_excitation,
    score_motion,
)
from armwise.excitation.clearance import THICKNESS, arm_length
from armwise.excitation.design import arrange, one_thread, settle
from armwise.excitation.requirements import verify
from armwise.excitation.search import Candidate, random_start, resting
from armwise.motions import Motion, Quintic, check_limits
from tests.excitation.arms_for_excitation import emps, tree

QUINTICS_DEG = (
    ((330, 289.1, 230), (80, 39.1, -10)),
    ((330, 269.1, -30), (80, 19.1, 220)),
    ((80, 269.1, -30), (330, 19.1, 220)),
)
"""papers/README §2: the identification motions of `aah1986`, 1.3 s each."""


@pytest.fixture(scope="module")
def panda():
    return load_arm("panda")


@pytest.fixture(scope="module")
def plan(panda):
    return design_excitation(panda, duration=20.0, seed=0, budget_s=60.0)


def require_within_limits(arm: Arm, plan: ExcitationPlan) -> None:
    """Judge on a 1 kHz grid by the motions' own check and the inverse dynamics."""
    assert isinstance(plan, Motion)
    check_limits(plan, arm, rate_hz=1000.0)
    times = np.linspace(0.0, plan.duration, round(1000 * plan.duration) + 1)
    tau = Dynamics(arm).inverse_dynamics(*plan.sample(times))
    assert np.all(np.abs(tau) <= arm.limits("effort"))
    for t in (0.0, plan.duration):
        assert np.abs(plan.sample(t).qd).max() < 1e-9
        assert np.abs(plan.sample(t).qdd).max() < 1e-8
    np.testing.assert_allclose(plan.sample(plan.duration).q, plan.start, atol=1e-9)
    assert plan.verified.is_within(plan.limit_fraction)


def condition_of(arm: Arm, plan: ExcitationPlan) -> float:
    """Condition of the base regressor, columns of length one, from the user's Y."""
    times = np.linspace(0.0, plan.duration, 2000, endpoint=False)
    Y = Dynamics(arm).regressor(*plan.sample(times))
    Y = Y[..., list(base_parameters(arm).indices)]
    Y = Y.reshape(-1, Y.shape[-1])
    return float(np.linalg.cond(Y / np.linalg.norm(Y, axis=0)))


def test_panda_is_within_limits_and_well_conditioned(panda, plan):
    require_within_limits(panda, plan)
    assert plan.duration == 20.0
    assert condition_of(panda, plan) < 60.0
    assert plan.condition_number == pytest.approx(condition_of(panda, plan), rel=0.02)
    assert not plan.search.ran_out


def test_panda_keeps_clear_of_floor_and_itself(panda, plan):
    """Judged by points along its lines, from poses of the links, not by spheres."""
    times = np.linspace(0.0, 20.0, 4001)
    poses = Dynamics(panda)
    q = plan.sample(times).q
    ends = {name: poses.link_pose(q, name)[:, :3, 3] for name in _JOINTS}
    along = np.linspace(0.0, 1.0, 15)[:, None, None]

    def line(a, b):
        return ends[a] + along * (ends[b] - ends[a])

    radius = THICKNESS * arm_length(panda)
    upper, forearm = line("link_2", "link_3"), line("link_4", "link_5")
    hand = line("link_7", "flange")
    column = np.zeros((15, 1, 3))
    column[:, 0, 2] = np.linspace(0.0, 0.333, 15)
    for part in (forearm, hand):
        assert part[..., 2].min() > radius
        assert _closest(part, column) > 2 * radius
    assert _closest(hand, upper) > 2 * radius


_JOINTS = ("link_2", "link_3", "link_4", "link_5", "link_7", "flange")


def _closest(a: np.ndarray, b: np.ndarray) -> float:
    return min(float(np.linalg.norm(a - point, axis=-1).min()) for point in b)


def test_same_seed_same_motion_and_other_seed_another():
    first, again, other = (design_excitation(emps(), 3.0, seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.sample(1.0).q, again.sample(1.0).q)
    assert np.abs(first.sample(1.0).q - other.sample(1.0).q).max() > 1e-3


@pytest.mark.slow
def test_better_than_the_best_of_200_random_motions(panda, plan):
    setting = arrange(panda, 20.0, keep_out=KeepOut(), limit_fraction=0.95)
    p, rng = setting.problem.simplified(), np.random.default_rng(1)
    with one_thread():
        postures = setting.postures(rng)
        told = []
        for posture in postures[rng.integers(len(postures), size=200)]:
            z = random_start(p, posture, rng)
            assert p.excess(z) <= 0.0
            told.append(p.log_det(z))
    assert plan.log_det > max(told) + 10.0


def test_better_than_the_three_quintics_of_the_paper():
    arm = load_arm("ddarm")
    plan = design_excitation(arm, 3.9, seed=0)
    require_within_limits(arm, plan)
    quintics = [Quintic(*np.deg2rad(ends), 1.3) for ends in QUINTICS_DEG]
    theirs = sum(score_motion(arm, quintic).information for quintic in quintics)
    base = base_parameters(arm)
    inertial = [k for k, i in enumerate(base.indices) if i < 30]
    assert len(inertial) == 15
    for chosen in (inertial, range(base.count)):
        pick = np.ix_(list(chosen), list(chosen))
        ours = np.linalg.slogdet(plan.information[pick])[1]
        assert ours > np.linalg.slogdet(theirs[pick])[1] + 5.0


@pytest.mark.parametrize(
    "name", [pytest.param("ur10", marks=pytest.mark.slow), "puma560"]
)
def test_other_arms(name):
    arm = load_arm(name)
    plan = design_excitation(arm, 8.0, seed=1)
    require_within_limits(arm, plan)
    assert plan.condition_number < 60.0


def test_one_prismatic_joint():
    arm = emps()
    plan = design_excitation(arm, 5.0)
    require_within_limits(arm, plan)
    assert plan.condition_number < 5.0
    assert plan.information.shape == (4, 4)
    assert plan.verified.effort.max() > 0.1


def test_tree_without_limits_says_what_was_assumed():
    arm = tree()
    plan = design_excitation(arm, 5.0)
    require_within_limits(arm, plan)
    assert np.isfinite(plan.condition_number)
    assert any("speed limit" in note for note in plan.notes)
    assert any("No limit of torque" in note for note in plan.notes)


def test_keeps_out_of_a_box():
    arm = load_arm("two_link_uno")
    free = design_excitation(arm, 3.0, keep_out=None)
    times = np.linspace(0.0, 3.0, 3001)
    tip = arm.frames[0].name
    wanted = Dynamics(arm).link_pose(free.sample(times).q, tip)[:, :3, 3]
    crossed = wanted[np.argmax(np.linalg.norm(wanted, axis=1))]
    box = Box(crossed - 0.05, crossed + 0.05)
    plan = design_excitation(arm, 3.0, keep_out=KeepOut(floor=None, boxes=[box]))
    place = Dynamics(arm).link_pose(plan.sample(times).q, tip)[:, :3, 3]
    outside = np.maximum(np.abs(place - crossed) - 0.05, 0.0)
    assert np.linalg.norm(outside, axis=1).min() > THICKNESS * arm_length(arm)
    assert free.verified.room is None
    assert plan.verified.room >= 0.0


def test_torque_limits_bind_where_gravity_is_strong():
    arm = load_arm("two_link_uno").with_gravity([0.0, -9.81, 0.0])
    free = design_excitation(arm, 3.0)
    tau = Dynamics(arm).inverse_dynamics(*free.sample(np.linspace(0, 3.0, 3001)))
    weak = 0.4 * np.abs(tau).max(axis=0)
    joints = [
        replace(j, limits=replace(j.limits, effort=float(w)), drive=Drive(coulomb=0.01))
        for j, w in zip(arm.joints, weak, strict=True)
    ]
    arm = replace(arm, joints=tuple(joints))
    plan = design_excitation(arm, 3.0)
    require_within_limits(arm, plan)
    assert plan.verified.effort.max() > 0.9


def test_what_is_known_turns_the_search_to_what_is_not():
    """After much is known of all but one parameter, a design tells more of that one."""
    arm = load_arm("ddarm")
    plain = design_excitation(arm, 3.9, harmonics=5)
    count = base_parameters(arm).count
    for k in (4, 12):
        weight = 1e4 * np.diag(np.diag(plain.information))
        weight[k, k] = 0.0
        turned = design_excitation(arm, 3.9, prior=weight, harmonics=5)
        variances = [
            np.linalg.inv(weight + p.information)[k, k] for p in (plain, turned)
        ]
        assert turned.information.shape == (count, count)
        assert variances[1] < 0.9 * variances[0]


def test_a_short_budget_still_gives_a_motion(panda):
    plan = design_excitation(panda, 10.0, budget_s=1e-3)
    require_within_limits(panda, plan)
    assert plan.search.ran_out
    assert np.isfinite(plan.condition_number)


def test_progress_is_told():
    told = []
    design_excitation(emps(), 2.0, progress=lambda *args: told.append(args))
    assert {what for what, _ in told} == {"random motions", "optimising"}
    assert all(0.0 <= share <= 1.0 for _, share in told)
    assert told[-1] == ("optimising", 1.0)


def test_without_a_compiler():
    plan = design_excitation(emps(), 2.0, backend="numpy")
    np.testing.assert_allclose(
        plan.sample(0.7).q, design_excitation(emps(), 2.0).sample(0.7).q, atol=0.05
    )
    require_within_limits(emps(), plan)


def test_a_long_motion_repeats_a_shorter_one():
    arm = emps()
    long = design_excitation(arm, 60.0)
    assert long.motion.periods > 1
    assert long.duration == pytest.approx(long.motion.duration)
    require_within_limits(arm, long)
    slow = design_excitation(arm, 60.0, periods=1)
    assert long.log_det > slow.log_det


def test_a_plan_can_be_repeated(plan):
    twice = plan.repeated(2)
    assert twice.duration == pytest.approx(40.0)
    np.testing.assert_allclose(twice.sample(23.0).q, plan.sample(3.0).q, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"duration": 0.0}, "duration must be a positive number"),
        ({"duration": float("inf")}, "duration must be a positive number"),
        ({"budget_s": -1.0}, "budget_s must be a positive number"),
        ({"rate_hz": 0.0}, "rate_hz must be a positive number"),
        ({"limit_fraction": 1.5}, "limit_fraction must lie above 0"),
        ({"harmonics": 1}, "harmonics must be a whole number"),
        ({"periods": 0}, "periods must be a whole number"),
        ({"prior": np.eye(3)}, "prior must be a 11×11 matrix"),
        ({"torque_std": [1.0]}, "torque_std needs 2 numbers"),
        (
            {"keep_out": KeepOut(boxes=[Box((-5, -5, -5), (5, 5, 5))])},
            "No posture of this arm .* m of clearance or more",
        ),
        ({"keep_out": KeepOut(boxes=[Box((0, 0, 0), (1, 1, 1), "x")])}, "frame 'x'"),
    ],
)
def test_nonsense_is_refused(arguments, said):
    with pytest.raises(ArgumentError, match=said):
        design_excitation(load_arm("two_link_uno"), **arguments)


def test_random_motions_respect_everything():
    setting = arrange(tree(), 4.0, keep_out=KeepOut(), limit_fraction=0.9)
    p, rng = setting.problem, np.random.default_rng(0)
    for posture in setting.postures(rng)[:4]:
        z = random_start(p, posture, rng)
        assert p.excess(z) <= 0.0
        assert p.excess(z + 0.1 * (z - resting(p.series, posture))) > 0.0


def test_a_motion_that_fails_on_the_fine_grid_is_shrunk():
    arm = emps()
    p = arrange(arm, 3.0, limit_fraction=0.9).problem
    still = resting(p.series, p.series.bounds.middle)
    z = still.copy()
    z[0, 1:] = 1.0
    motion, verified = settle(arm, p, Candidate(z, still, 0.0))
    assert not verify(p.series.motion(z), p.requirements).is_within(0.9)
    assert verify(motion, p.requirements).is_within(0.9)
    assert verified.is_within(0.9)
    assert verified.instants == 3001


def test_friction_either_way_counts_at_rest():
    """Coulomb 20.4 N and offset −3.2 N: backwards 23.6 N are needed, forwards 17.2."""
    arm = emps()
    joint = replace(arm.joints[0], limits=replace(arm.joints[0].limits, effort=22.0))
    with pytest.raises(ArgumentError, match="effort limit of joint 'slide'"):
        design_excitation(replace(arm, joints=(joint,)), 3.0)


def test_an_arm_too_weak_to_hold_itself_is_named():
    arm = load_arm("panda")
    upright = replace(arm.joints[1], limits=Limits(1.0, 1.7, 2.0, 7.0, effort=2.0))
    arm = replace(arm, joints=(arm.joints[0], upright, *arm.joints[2:]))
    with pytest.raises(
        ArgumentError, match=r"to hold .* effort limit of joint 'joint_2'"
    ):
        design_excitation(arm, 5.0, keep_out=None)
