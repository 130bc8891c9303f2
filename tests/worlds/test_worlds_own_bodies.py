"""Bodies of the user's own, in Python or traced, beside the built-in ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from armwise.errors import ArgumentError
from armwise.report import write_world
from armwise.view import make_world_scene
from armwise.worlds import (
    ArticulatedBody,
    Body,
    JointMotor,
    Moving,
    Point,
    PointMotion,
    PointToNail,
    PointToPoint,
    RigidBody,
    Spring,
    Torque,
    World,
    planar_chain,
    simulate,
    sphere,
)


class Twin(Body):
    """Our rigid ball, seen from outside the package: only the four operations.

    With `is_traced` it is compiled; without, it must give the same motion in NumPy.
    """

    def __init__(self, ball: RigidBody, wrong: dict[str, object] | None = None) -> None:
        self.name, self.ball, self.wrong = ball.name, ball, wrong or {}
        self.shapes = ball.shapes

    has_friction = False

    @property
    def quaternions(self) -> tuple[int, ...]:
        return self.ball.quaternions

    def start(self):
        return self.ball.start()

    def move(self, position, velocity, gravity):
        return MovingTwin(self.ball.move(position, velocity, gravity), self.wrong)

    def outline(self):
        return [(Point(self.name), Point(self.name, (0.1, 0.0, 0.0)))]


class TracedTwin(Twin):
    is_traced = True


class MovingTwin(Moving):
    def __init__(self, ball: Moving, wrong: dict[str, object]) -> None:
        self.ball, self.wrong = ball, wrong
        if "position_rate" not in wrong:
            self.position_rate = ball.position_rate
        self.kinetic_energy = ball.kinetic_energy
        self.gravitational_energy = ball.gravitational_energy

    def point(self, point: Point) -> PointMotion:
        return self.ball.point(point)

    def apply_point_force(self, point, force):
        return self.ball.apply_point_force(point, force) * self.wrong.get("load", 1.0)

    def respond(self, force):
        return self.ball.respond(force)[: self.wrong.get("size", 6)]

    def accelerate(self, load):
        return self.ball.accelerate(load)


def pendulum(dress: Callable[[RigidBody], Body], **settings: object) -> World:
    """A ball that hangs, off its centre, from the tip of an arm, and on a spring."""
    pose = np.eye(4)
    pose[:3, 3] = (1.0, 0.0, -0.1)
    ball = RigidBody.from_segments(
        "ball", [sphere(1.0, 0.1)], pose, angular_velocity=(1.0, 2.0, 3.0)
    )
    arm = ArticulatedBody("arm", planar_chain(2, 0.5), qd=(0.2, 0.1))
    top = Point("ball", (0.0, 0.0, 0.1))
    pin = PointToPoint("pin", Point("arm", link="tip"), top)
    spring = Spring("spring", Point("ball"), (1.0, 0.5, 0.0), 20.0)
    return World((arm, dress(ball)), (pin,), (spring,), **settings)


def test_it_moves_as_the_built_in_body_does() -> None:
    ours = simulate(pendulum(lambda ball: ball), 0.04, step=2e-3)
    own = simulate(pendulum(Twin), 0.04, step=2e-3)
    traced = simulate(pendulum(TracedTwin), 0.04, step=2e-3)
    assert own.states == pytest.approx(ours.states, abs=1e-9)
    assert traced.states == pytest.approx(ours.states, abs=1e-12)
    assert own.force("pin") == pytest.approx(ours.force("pin"), abs=1e-6)
    assert own.ledger.energy == pytest.approx(ours.ledger.energy, abs=1e-9)
    # One note, and only where NumPy had to take the steps.
    assert [line.kind for line in own.log] == ["note"]
    assert (own.steps.fast, own.steps.careful) == (0, 20)
    assert traced.log == ()
    assert traced.steps.fast == 20


def test_it_is_written_and_drawn(tmp_path) -> None:
    run = simulate(pendulum(Twin), 0.01, step=2e-3)
    files = write_world(run, tmp_path)
    header = (tmp_path / "states.csv").read_text().splitlines()[0]
    assert "ball.p7" in header
    assert "ball.v6" in header
    assert all(file.exists() for file in files)
    scene = make_world_scene(run)
    assert scene.surroundings.springs.shape[1] == 2  # the spring, and its one line


def test_without_constraints_it_moves_too() -> None:
    run = simulate(World((pendulum(Twin).bodies[1],)), 0.1, step=1e-2)
    assert run.position("ball")[-1, 2] == pytest.approx(-0.1 - 9.81 * 0.1**2 / 2)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: World(("ball",)), "no body of world"),
        (lambda: simulate(World((Nameless(),)), 0.1), "no body of world"),
        (lambda: simulate(World((Shapeless(),)), 0.1), "two rows of numbers"),
        (lambda: run_wrong(size=3), r"respond with an array of shape \(3,\), not"),
        (lambda: run_wrong(load=-1.0), "contradicts itself"),
        (lambda: run_wrong(position_rate=None), "must have a position_rate"),
        (lambda: simulate(pendulum(Twin), 0.1, backend="c"), "cannot be compiled"),
        (lambda: driven(JointMotor("m", "ball", "joint_1", 1.0)), "without any"),
        (lambda: driven(Torque("t", "ball", (0, 0, 1))), "no rigid body"),
        (lambda: held("17"), "names no node"),
    ],
)
def test_a_body_that_breaks_the_rules_is_refused(
    make: Callable[[], object], words: str
) -> None:
    with pytest.raises(ArgumentError, match=words) as problem:
        make()
    assert "\n" not in str(problem.value)


def run_wrong(**wrong: object) -> object:
    return simulate(pendulum(lambda ball: Twin(ball, wrong)), 0.1)


def driven(force: object) -> World:
    world = pendulum(Twin)
    return World(world.bodies, (), (force,))


class Nameless(Twin):
    name = None

    def __init__(self) -> None:
        self.ball = RigidBody.from_segments("ball", [sphere(1.0, 0.1)])


class Shapeless(Nameless):
    name = "shapeless"

    def start(self):
        return 3.0, "fast"


class Choosy(Twin):
    def check_point(self, point: Point, who: str) -> None:
        raise ArgumentError(f"{who} names no node of {self.name!r}.")


def held(link: str) -> World:
    ball = Choosy(RigidBody.from_segments("ball", [sphere(1.0, 0.1)]))
    return World((ball,), (PointToNail("n", Point("ball", link=link), (0, 0, 0)),))
