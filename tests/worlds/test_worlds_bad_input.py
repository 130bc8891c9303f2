"""What cannot be is told in words, at the step where it happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
import pytest

from armwise.errors import ArgumentError, WorldError
from armwise.worlds import (
    ArticulatedBody,
    Drag,
    Hinge,
    JointMotor,
    Point,
    PointForce,
    PointToLine,
    PointToNail,
    PointVelocity,
    RigidBody,
    Run,
    SemiImplicit,
    Spring,
    Torque,
    World,
    planar_chain,
    simulate,
    sphere,
)

BALL = RigidBody.from_segments("ball", [sphere(1.0, 0.1)])
ARM = ArticulatedBody("arm", planar_chain(2))
MIDDLE, SIDE = Point("ball"), Point("ball", (0.1, 0.0, 0.0))
ZERO = (0.0, 0.0, 0.0)


def nail(name: str, point: Point = MIDDLE, at: tuple[float, ...] = ZERO) -> PointToNail:
    return PointToNail(name, point, at)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: World(()), "no bodies"),
        (lambda: World((BALL, BALL)), "two bodies called 'ball'"),
        (lambda: World((BALL,), (nail("n"), nail("n", SIDE))), "called 'n'"),
        (lambda: World((BALL,), (nail("a"), nail("b"))), "twice: remove one"),
        (lambda: World((BALL,), (nail("a"), nail("b", at=(0, 0, 1)))), "contradict"),
        (lambda: World((BALL,), (nail("n", Point("bal")),)), "It has: ball"),
        (
            lambda: World((BALL,), (nail("n", Point("ball", ZERO, "x")),)),
            "leave the link",
        ),
        (lambda: World((ARM,), (nail("n", Point("arm")),)), "link_1, link_2"),
        (
            lambda: World((ARM,), (nail("n", Point("arm", ZERO, "l")),)),
            "no link or frame",
        ),
        (lambda: World((BALL,), gravity=(0, 0, np.nan)), "Gravity"),
        (
            lambda: World((BALL,), forces=(Spring("s", MIDDLE, ZERO, -1.0),)),
            "stiffness",
        ),
        (lambda: World((BALL,), forces=(Drag("d", MIDDLE, np.nan),)), "linear"),
        (lambda: World((ARM,), forces=(JointMotor("m", "arm", "j", 1.0),)), "joint_1"),
        (lambda: World((BALL,), forces=(JointMotor("m", "ball", "j", 1.0),)), "rigid"),
        (lambda: World((ARM,), forces=(Torque("t", "arm", (0, 1, 0)),)), "JointMotor"),
        (lambda: PointToNail("n", MIDDLE, ZERO, 0.0).relations(), "positive frequency"),
        (lambda: PointToNail("n", MIDDLE, ZERO, 1.0, -1.0).relations(), "max_force"),
        (lambda: PointToNail("n", MIDDLE, (0, 0, np.inf)).relations(), "finite"),  # type: ignore[arg-type]
        (lambda: PointToLine("n", MIDDLE, ZERO, ZERO).relations(), "length 0"),
        (
            lambda: PointVelocity(
                "n", MIDDLE, ZERO, ((1, 0, 0), (1, 1, 0))
            ).relations(),
            "right angles",
        ),
        (lambda: planar_chain(0), "at least one link"),
        (lambda: planar_chain(3, [1.0, 2.0]), "3 positive lengths"),
    ],
)
def test_a_world_that_makes_no_sense_is_refused(
    make: Callable[[], object], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        make()


def stopped(world: World, duration: float = 5.0, **options: object) -> tuple[str, Run]:
    with pytest.raises(WorldError) as caught:
        simulate(world, duration, **options)  # type: ignore[arg-type]
    return str(caught.value), cast("Run", caught.value.run)


def test_a_nail_out_of_reach_is_told_before_the_first_step() -> None:
    tip = Point("arm", link="tip")
    words, run = stopped(World((ARM,), (nail("far", tip, (3.0, 0, 0)),)))
    assert "(step 0)" in words
    assert "out of reach: it is 3 m from the first joint of 'arm'" in words
    assert "reaches 2 m" in words
    assert len(run.time) == 1


def test_two_nails_too_far_apart_for_their_body_contradict_each_other() -> None:
    pair = (nail("one"), nail("other", SIDE, (0.2, 0, 0)))
    words, _ = stopped(World((BALL,), pair))
    assert "'one' and 'other' contradict each other" in words
    assert "0.1 m apart, their nails 0.2 m" in words


def test_a_contradiction_no_one_foresaw_is_told_when_it_lasts() -> None:
    lines = (
        PointToLine("x", MIDDLE, ZERO, (1, 0, 0), 100.0),
        PointToLine("y", MIDDLE, (0.0, 0.0, 0.1), (0, 1, 0), 100.0),
    )
    words, run = stopped(World((BALL,), lines), 20.0)
    assert "'x' and 'y' cannot be fulfilled" in words or "'y' and 'x'" in words
    assert run.time[-1] == pytest.approx(0.5, abs=0.01)
    assert np.all(np.isfinite(run.states))


def test_a_step_too_large_for_a_constraint_is_refused() -> None:
    world = World((BALL,), (PointToNail("n", SIDE, ZERO, 100.0),))
    with pytest.raises(ArgumentError, match=r"at most 0\.025 s"):
        simulate(world, 1.0, step=0.05)
    with pytest.raises(ArgumentError, match=r"at most 0\.008 s"):
        simulate(world, 1.0, step=0.01, integrator=SemiImplicit())


def test_a_step_too_large_for_a_spring_is_told_where_it_shows() -> None:
    stiff = Spring("stiff", MIDDLE, (0.1, 0.0, 0.0), 1e7)
    words, run = stopped(World((BALL,), forces=(stiff,)))
    assert "step 0.001 s is too large" in words
    assert 0 < run.time[-1] < 1.0
    assert np.all(np.isfinite(run.states))


def test_energy_from_nowhere_is_told_before_anything_overflows() -> None:
    slightly = Spring("stiff", MIDDLE, (0.1, 0.0, 0.0), 8.01e6)
    words, _ = stopped(World((BALL,), forces=(slightly,)), 100.0)
    assert "energy ledger no longer closes" in words


def test_an_effort_that_is_not_a_number_is_named_with_its_time() -> None:
    bad = PointForce("gust", MIDDLE, lambda t: (0.0, 0.0, np.nan if t > 0.1 else 0.0))
    with pytest.raises(ArgumentError, match=r"effort of 'gust' at t = 0\.101"):
        simulate(World((BALL,), forces=(bad,)), 1.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"duration": 0.0}, "duration must be positive"),
        ({"duration": np.nan}, "duration must be positive"),
        ({"duration": 1.0, "step": -1.0}, "step must be a positive"),
        ({"duration": 1.0, "record_every": 0}, "record_every"),
        ({"duration": 1e9}, "record_every"),
    ],
)
def test_a_run_that_makes_no_sense_is_refused(
    options: dict[str, float], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words):
        simulate(World((BALL,)), **options)  # type: ignore[arg-type]


def test_asking_a_run_for_what_it_has_not_names_what_it_has() -> None:
    hinge = Hinge("door", SIDE, (0.1, 0, 0), (0, 0, 1))
    run = simulate(World((BALL,), (hinge,)), 0.01)
    with pytest.raises(ArgumentError, match=r"It has: door\+, door-"):
        run.force("door")
    with pytest.raises(ArgumentError, match="no articulated body and has no joints"):
        run.to_recording("ball")
