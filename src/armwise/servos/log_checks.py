"""Checks of servo logs: copies, roles of columns, order and signs of joints, motors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, RecordingError
from armwise.regression import low_pass
from armwise.servos.rollout import ServoMotion

if TYPE_CHECKING:
    from jaxtyping import Float


def copied(
    motions: Sequence[ServoMotion], among: Sequence[ServoMotion] | None = None
) -> dict[int, int]:
    """Return which motions repeat another in every sample, and the number of that.

    Args:
        motions: To look for.
        among: Where; None: among themselves, of which the first counts.

    Raises:
        ArgumentError: If the two are said to have other loads or gains.
    """
    listed = motions if among is None else among

    def content(motion: ServoMotion) -> tuple[bytes, ...]:
        arrays = (motion.time, motion.q, motion.goals, motion.powered)
        return tuple(x.tobytes() for x in arrays)

    first: dict[tuple[bytes, ...], int] = {}
    for k, motion in enumerate(listed):
        first.setdefault(content(motion), k)
    pairs = [(k, first.get(content(motion))) for k, motion in enumerate(motions)]
    found = {
        k: other
        for k, other in pairs
        if other is not None and (among is not None or other != k)
    }
    for k, other in found.items():
        one, two = motions[k], listed[other]
        if one.gain != two.gain or not np.array_equal(one.bodies, two.bodies):
            raise ArgumentError(
                f"{one.name} and {two.name} hold the same motion, with other loads or "
                "gains. Name every log once, with what it was recorded with."
            )
    return found


def refuse_unfollowed(motion: ServoMotion) -> None:
    """Refuse a motion whose joints do not follow their commands.

    Raises:
        RecordingError: If commands and positions are exchanged, joints are in another
            order, or run against their commands, or a motor is off.
    """
    on = motion.powered > 0.5
    _check_roles(motion.name, motion.time[on], motion.q[on], motion.goals[on])
    _check_order(motion.name, motion.q[on], motion.goals[on])
    _check_signs(motion.name, motion.q[on], motion.goals[on])
    _check_following(motion.name, motion.time[on], motion.q[on], motion.goals[on])


# Judgement: a servo's delay, and no servo's lag. With as long a search on this side the
# next period of a motion that repeats would do for a lead.
_LONGEST_LEAD = 0.15
"""Time in [s] by which commands of an exchanged log come after positions at most."""

# Judgement: slow set-points of large motions lag by half a second.
_LONGEST_LAG = 0.5
"""Time in [s] by which positions come after commands at most."""


def _check_roles(
    source: str, time: np.ndarray, q: np.ndarray, command: np.ndarray
) -> None:
    """Refuse a log whose commands come after the positions, joint by joint."""
    if len(time) < 3:
        return
    period = float(np.median(np.diff(time)))
    most_after, most_before = (
        min(round(longest / period), len(time) // 2)
        for longest in (_LONGEST_LAG, _LONGEST_LEAD)
    )
    lags = []
    for j in range(q.shape[1]):
        if min(np.ptp(command[:, j]), np.ptp(q[:, j])) < 0.1:
            continue
        own, goal = q[:, j], command[:, j]
        after, before = (
            [_scatter(b[k:] - a[: len(a) - k]) for k in range(most + 1)]
            for a, b, most in ((goal, own, most_after), (own, goal, most_before))
        )
        # Judgement: by a fifth, and 20 ms, beyond what friction and stamps do.
        is_before = min(before) < 0.8 * min(after)
        lags.append(period * int(np.argmin(before)) if is_before else 0.0)
    if lags and min(lags) >= 0.02:
        raise RecordingError(
            f"{source}: commands come {1e3 * np.median(lags):.0f} ms after the "
            "positions, as positions do after commands. Exchange the columns."
        )


def _scatter(x: np.ndarray) -> float:
    """Return how far numbers are from their median: wherever a joint's zero is."""
    return float(np.abs(x - np.median(x)).mean())


def _check_order(source: str, q: np.ndarray, command: np.ndarray) -> None:
    """Refuse a log whose commands follow other joints' positions."""
    moving = [j for j in range(q.shape[1]) if np.ptp(command[:, j]) > 0.1]
    for j in moving:
        gaps = [
            float(np.abs(command[:, j] - q[:, k]).mean()) for k in range(q.shape[1])
        ]
        other = int(np.argmin(gaps))
        # Judgement: a servo lags by some degrees; another joint is ten times as far.
        if other != j and gaps[j] > 0.2 and gaps[other] < 0.1 * gaps[j]:
            raise RecordingError(
                f"{source}: command_{j + 1} is followed by q_{other + 1}, not by "
                f"q_{j + 1}: the joints are in another order. Reorder the columns."
            )


def _check_signs(source: str, q: np.ndarray, command: np.ndarray) -> None:
    """Refuse a log whose joints run against their commands."""
    for j in range(q.shape[1]):
        # Whatever zeros they have.
        own, goal = (x - np.median(x) for x in (q[:, j], command[:, j]))
        along, against = np.abs(own - goal).mean(), np.abs(own + goal).mean()
        # Judgement: as of other orders; a servo lags by less than its way.
        if along > 0.1 and against < 0.2 * along:
            raise RecordingError(
                f"{source}: q_{j + 1} runs against command_{j + 1}: one of them has "
                "the wrong sign. Negate that column (in a mapping: scale = -1)."
            )


def _check_following(
    source: str, time: np.ndarray, q: np.ndarray, command: np.ndarray
) -> None:
    """Refuse a log in which a motor is off while its command moves."""
    for j in range(q.shape[1]):
        if (start := _astray(time, q[:, j], command[:, j])) is not None:
            raise RecordingError(
                f"{source}: joint {j + 1} goes elsewhere than its command from "
                f"{time[start] - time[0]:.1f} s on: its motor is off. Cut the log "
                "there, or log `powered` (0 where off)."
            )
    length = max(4, round(2.0 / float(np.median(np.diff(time)))))
    for j in range(q.shape[1]):
        for start in range(0, len(time) - length, length // 2 + 1):
            rows = slice(start, start + length)
            # Judgement: what is commanded in the last half second may not show yet.
            early = slice(start, start + 3 * length // 4)
            travel, moved = np.ptp(command[early, j]), np.ptp(q[rows, j])
            error = float(np.median(np.abs(command[rows, j] - q[rows, j])))
            # Judgement: commands swing by 30 degrees, the joint by less than one in
            # twenty of that, far from where it should be: friction does not do that.
            if travel > 0.5 and moved < 0.05 * travel and error > 0.3:
                raise RecordingError(
                    f"{source}: joint {j + 1} does not move from "
                    f"{time[start] - time[0]:.1f} s on while its command swings by "
                    f"{np.degrees(travel):.0f}°: its motor is off or blocked. Cut the "
                    "log there, or log `powered` (0 where off)."
                )


def _astray(time: np.ndarray, q: np.ndarray, command: np.ndarray) -> int | None:
    """Return the row from which on a joint moves without regard to its command."""
    period = float(np.median(np.diff(time)))
    # Judgement: four seconds, twice, tell motion that falls and is shaken from lag.
    length, most = round(4.0 / period), round(_LONGEST_LAG / period)
    before = False
    for start in range(0, len(time) - length, length // 2):
        goal, own = (x[start : start + length] for x in (command, q))
        lagging = [_scatter(own[k:] - goal[: length - k]) for k in range(most + 1)]
        # Judgement: farther from any lagging command than if it stood, and tens of
        # degrees off. What is pushed against stands.
        is_astray = np.ptp(goal) > 0.3 and min(lagging) > 1.05 * _scatter(goal)
        is_astray &= float(np.median(np.abs(own - goal))) > 0.3
        if is_astray and before:
            return start - length // 2
        before = is_astray
    return None


def joint_signs(arm: Arm, motions: Sequence[ServoMotion]) -> Float[np.ndarray, " dof"]:
    """Return +1 or −1 per joint: which way its position counts in the description.

    While a joint slides, its servo's error is gravity over stiffness, friction, and
    parts that go with its speed and acceleration. Signs are those that make every
    stiffness positive and explain the errors best; the description's come first.
    """
    q, error, speed, rate = _sliding_rows(motions)
    dynamics = Dynamics(arm)
    size = np.abs(dynamics.gravity_torque(q)).mean(0)
    is_sliding = np.abs(speed) > _LEAST_SPEED
    # Judgement: a joint that carries a tenth of the largest moment shows its sign, in
    # ten seconds of sliding.
    is_loaded = (size > 0.1 * max(float(size.max()), 1e-9)) & (is_sliding.sum(0) >= 50)
    # Eight joints are 256 hypotheses; more would take long and prove little.
    loaded = np.flatnonzero(is_loaded)[:8]
    plain = np.ones(arm.dof)
    best, best_misfit = plain, np.inf
    for flips in product((1.0, -1.0), repeat=len(loaded)):
        signs = plain.copy()
        signs[loaded] = flips
        gravity = dynamics.gravity_torque(q * signs) * signs
        misfits = []
        for j in loaded:
            rows_j = is_sliding[:, j]
            v = speed[rows_j, j]
            X = [gravity[rows_j, j], np.sign(v), v, rate[rows_j, j], np.ones(len(v))]
            stiffness, r = _compliance(np.column_stack(X), error[rows_j, j])
            # A servo pushes back: what gravity pulls down stays below its command.
            misfits.append(np.log(np.abs(r).mean() + 1e-4) if stiffness > 0 else np.inf)
        misfit = float(np.sum(misfits))
        # Judgement: errors of one joint a tenth smaller. A zero that is off makes
        # mirror images of several joints better by up to seven percent; of a joint that
        # counts the other way alone the servo pulls the wrong way.
        if misfit < best_misfit - 0.1:
            best, best_misfit = signs, misfit
    return best


def other_order(arm: Arm, motions: Sequence[ServoMotion]) -> list[int] | None:
    """Return the joints' order in which gravity explains errors clearly better.

    Commands and positions that are both in the wrong order follow each other as well.
    From the description's order, and from tip to base, two joints at a time change
    places for as long as that explains more.

    Returns:
        For each joint of the description its number in the motions; None if that is its
        own.
    """
    rows, own = _sliding_rows(motions), list(range(arm.dof))

    def explained(order: Sequence[int], rows: Sequence[np.ndarray] = rows) -> float:
        return _explained(arm, *(x[:, order] for x in rows))

    def climbed(order: list[int]) -> list[int]:
        best = explained(order), order
        while True:
            orders = [_swapped(best[1], i, j) for i, j in combinations(own, 2)]
            trials = [(explained(one), one) for one in orders]
            # Judgement: errors of one joint a fiftieth smaller.
            if max(trials)[0] < best[0] + 0.02:
                return best[1]
            best = max(trials)

    def gain(order: Sequence[int]) -> float:
        return min(explained(order, part) - explained(own, part) for part in parts)

    turned = own[::-1]
    # Judgement: errors of one joint a fifth smaller, whichever third of the motions is
    # left out: joints in their places gain up to a seventh, others a fifth and more. In
    # two or three motions poses and errors go together by chance.
    least = {1: 1.0, 2: 1.0, 3: 0.5}.get(len(motions), 0.2)
    parts = [rows]
    if len(motions) > 2:
        thirds = [[m for k, m in enumerate(motions) if k % 3 != i] for i in range(3)]
        parts += [_sliding_rows(third) for third in thirds]
    order = max(climbed(own), climbed(turned), turned, key=gain)
    # Judgement: from tip to base is one mistake of all, and half as much no chance.
    if order == turned and len(motions) > 3:
        least = 0.1
    return order if gain(order) > least else None


def _swapped(order: Sequence[int], i: int, j: int) -> list[int]:
    other = list(order)
    other[i], other[j] = other[j], other[i]
    return other


def elsewhere(arm: Arm, motions: Sequence[ServoMotion]) -> list[str]:
    """Say which joints move where the description says they cannot."""
    low, high = (
        np.array([edge(m.q, axis=0) for m in motions]) for edge in (np.min, np.max)
    )
    joints = [
        f"{joint.name} ({low[:, j].min():.2f} … {high[:, j].max():.2f}, described "
        f"{joint.limits.lower:.2f} … {joint.limits.upper:.2f})"
        for j, joint in enumerate(arm.joints)
        if low[:, j].min() > joint.limits.upper or high[:, j].max() < joint.limits.lower
    ]
    if not joints:
        return []
    return [
        f"Outside their limits all along: {', '.join(joints)}. Is this the description "
        "of the arm that was recorded, with its joints in this order?"
    ]


def _explained(
    arm: Arm, q: np.ndarray, error: np.ndarray, speed: np.ndarray, rate: np.ndarray
) -> float:
    """Return by what logarithm gravity lessens the errors of all joints together."""
    gravity, total = Dynamics(arm).gravity_torque(q), 0.0
    for j in range(arm.dof):
        slides = np.abs(speed[:, j]) > _LEAST_SPEED
        # Judgement: as for signs.
        if slides.sum() < 50:
            continue
        v = speed[slides, j]
        X = np.column_stack([np.sign(v), v, rate[slides, j], np.ones(len(v))])
        loaded = np.column_stack([gravity[slides, j], X])
        _, without = _compliance(X, error[slides, j])
        stiffness, beside = _compliance(loaded, error[slides, j])
        # A servo that gives way upwards is none.
        if stiffness > 0.0:
            sizes = [np.abs(r).mean() + 1e-4 for r in (without, beside)]
            total += float(np.log(sizes[0] / sizes[1]))
    return total


# Judgement: friction's direction is sure, and a servo's lag is not large.
_LEAST_SPEED = 0.05
"""Speed in [rad/s] from which a joint slides."""


def _sliding_rows(motions: Sequence[ServoMotion]) -> list[np.ndarray]:
    """Return rows of all motions: position, servo error, speed, acceleration."""
    rows = [_sliding(m) for m in motions]
    joined = [np.concatenate(x) for x in zip(*rows, strict=True)]
    # Judgement: some thousand rows tell signs; more only take time.
    some = slice(0, None, max(1, len(joined[0]) // 3000))
    return [x[some] for x in joined]


def _sliding(motion: ServoMotion) -> tuple[np.ndarray, ...]:
    """Return some rows of smoothed position, servo error, speed and acceleration."""
    rate = 1.0 / float(np.median(np.diff(motion.time)))
    # Judgement: 3 Hz keeps the slow part, where gravity is.
    q = low_pass(motion.q, min(3.0, 0.2 * rate), rate)
    goals = low_pass(motion.goals, min(3.0, 0.2 * rate), rate)
    speed = np.gradient(q, motion.time, axis=0)
    change = np.gradient(speed, motion.time, axis=0)
    rows = slice(0, None, max(1, round(rate / 5.0)))
    return q[rows], (goals - q)[rows], speed[rows], change[rows]


def _compliance(X: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Return the first coefficient, and residuals with outliers weighed down."""
    w: np.ndarray = np.ones(len(y))
    b, r = np.zeros(X.shape[1]), y
    for _ in range(4):
        b = np.linalg.lstsq(X * w[:, None], y * w, rcond=None)[0]
        r = y - X @ b
        w = 1.0 / np.sqrt(1.0 + (r / max(float(np.median(np.abs(r))), 1e-5)) ** 2)
    return float(b[0]), r


# What one joint feels while the others move as they were measured to.
