"""`mitchell1997` chapter 2: the mechanisms of its figures.

Masses, lengths, springs and bounds are the thesis'; it does not print λ, the starting
poses and where nails and springs are anchored, so those are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from armwise.arms import Arm, Frame, Joint, Link
from armwise.motions import Sinusoid
from armwise.worlds import (
    ArticulatedBody,
    CashKarp,
    Hinge,
    Point,
    PointToNail,
    RigidBody,
    Run,
    Spring,
    World,
    planar_chain,
    rod,
    simulate,
)

LAMBDA = 5.0
"""λ of the cylinder's nail in [1/s]; the thesis does not give it."""

END, OTHER = Point("cylinder", (0.0, 0.0, 0.5)), Point("cylinder", (0.0, 0.0, -0.5))


@dataclass(frozen=True)
class Cylinder:
    """The 1 kg cylinder of Figures 2.2 to 2.7 on its nail.

    Attributes:
        has_gravity, has_spring: What acts besides the nail.
        gap: Distance of the held end from the nail at the start in [m].
    """

    has_gravity: bool = False
    has_spring: bool = False
    gap: float = 0.5

    def world(self) -> World:
        """Return the world: the rod lies across, its end to be pulled to the nail."""
        turn = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]])
        pose = np.eye(4)
        pose[:3, :3] = turn
        pose[:3, 3] = (-0.5, 0.0, 0.0)
        segment = rod(1.0, (0.0, 0.0, -0.5), (0.0, 0.0, 0.5), 0.05)
        body = RigidBody.from_segments("cylinder", [segment], pose)
        direction = np.array([0.36, 0.48, 0.8])
        x, y, z = (self.gap * direction).tolist()
        spring = Spring("spring", OTHER, (-1.0, 0.0, 0.5), 10.0, damping=3.0)
        return World(
            (body,),
            (PointToNail("nail", END, (x, y, z), LAMBDA),),
            (spring,) if self.has_spring else (),
            (0.0, 0.0, -9.81 if self.has_gravity else 0.0),
            name="cylinder on a nail",
        )

    @cache  # noqa: B019  (frozen, and a handful of them)
    def run(self, duration: float = 10.0) -> Run:
        """Simulate it with RK4 at 1 ms."""
        return simulate(self.world(), duration)


def three_link_world(max_force: float = 200_000.0) -> World:
    """Return the arm of Figures 2.9 to 2.11, stretched out at its singularity."""
    tip = Point("arm", link="tip")
    middle = Point("arm", (0.5, 0.0, 0.0), "link_3")
    return World(
        (ArticulatedBody("arm", planar_chain(3)),),
        (PointToNail("nail", tip, (0.0, 0.0, 1.5), 3.0, max_force),),
        (Spring("spring", middle, (0.0, 0.0, 0.5), 10.0, damping=3.0),),
        name="three links on a nail",
    )


def elbow_world() -> World:
    """Return a three-joint elbow arm whose nail is carried in and out of reach.

    The nail swings from 1.2 m to 1.998 m of the 2 m that the arm reaches.
    """
    center, amplitude = np.array([1.599, 0.0, 0.0]), np.array([0.399, 0.3, 0.2])
    carried = Sinusoid(center, amplitude, np.array([2.0, 1.0, 1.0]), 20.0, 1.5)
    body = ArticulatedBody("elbow", elbow_arm(), q=(0.0, -0.9, 1.8))
    tip = Point("elbow", link="tip")
    nail = PointToNail("nail", tip, carried, 5.0, max_force=2000.0)
    return World((body,), (nail,), name="elbow arm")


def elbow_arm() -> Arm:
    """Return an arm that turns about the vertical, then bends twice."""
    link = rod(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.03)
    post = rod(1.0, (0.0, 0.0, -0.2), (0.0, 0.0, 0.0), 0.05)
    out = np.eye(4)
    out[0, 3] = 1.0
    up, across = np.array([0.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0])
    joints = (
        Joint("turn", "revolute", -1, np.eye(4), up),
        Joint("shoulder", "revolute", 0, np.eye(4), across),
        Joint("elbow", "revolute", 1, out, across),
    )
    links = tuple(
        Link(name, part.inertia, (part.shape,))
        for name, part in (("post", post), ("upper", link), ("lower", link))
    )
    return Arm("elbow", joints, links, frames=(Frame("tip", 2, out),))


def critically_damped(run: Run, name: str) -> np.ndarray:
    """Return the D that D̈ + 2λḊ + λ²D = 0 predicts from a run's own start."""
    start, rate = run.deviation(name)[0], run.deviation_rate(name)[0]
    frequency = next(r for r in run.world.relations if r.name == name).frequency
    growth = start + np.outer(run.time, rate + frequency * start)
    return np.asarray(growth * np.exp(-frequency * run.time)[:, None])


@cache
def hinge_run() -> Run:
    """Figure 2.8: a link held by two points; 5 s of it swinging."""
    segment = rod(1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 0.05)
    body = RigidBody.from_segments("link", [segment])
    hinge = Hinge("hinge", Point("link"), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    return simulate(World((body,), (hinge,)), 5.0)


@cache
def breaking_run(max_force: float, max_deviation: float = 0.05) -> Run:
    """§2.3.4: the cylinder held by a nail of finite strength [N]; breaks beyond [m]."""
    world = Cylinder(has_gravity=True, gap=0.0).world()
    nail = PointToNail(
        "nail", END, (0.0, 0.0, 0.0), LAMBDA, max_force, max_deviation=max_deviation
    )
    return simulate(replace(world, constraints=(nail,)), 1.0)


@cache
def three_link_run() -> Run:
    """Figures 2.9 to 2.11: 5 s through the singularity with RK4 at 1 ms."""
    return simulate(three_link_world(), 5.0)


@cache
def elbow_run() -> Run:
    """Figure 2.12: 7 s in and out of reach."""
    return simulate(elbow_world(), 7.0, integrator=CashKarp(1e-8), step=2e-3)
