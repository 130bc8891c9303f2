"""Arms that are unlike the bundled ones."""

from __future__ import annotations

import numpy as np

from armwise.arms import Arm, Drive, InertialParameters, Joint, Limits, Link, Mimic

UNLIMITED = Limits()


def at(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T


def body(mass: float = 1.0, reach: float = 0.2) -> InertialParameters:
    central = mass * reach**2 / 12 * np.diag([1.0, 1.0, 0.3])
    return InertialParameters.from_center_of_mass(mass, [0.5 * reach, 0, 0], central)


def emps() -> Arm:
    """One prismatic drive, as in shared/data/emps."""
    joint = Joint(
        "slide", "prismatic", -1, np.eye(4), np.array([1.0, 0.0, 0.0]),
        Limits(-0.05, 0.3, 0.15, 1.5, 300.0), Drive(95.1, 203.5, 20.4, -3.2),
    )  # fmt: skip
    return Arm("emps", (joint,), (Link("carriage"),))


def tree(limits: Limits = UNLIMITED) -> Arm:
    """A turning trunk with two forearms, one of which has a follower; prismatic too."""
    y, z = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    joints = (
        Joint("trunk", "revolute", -1, at(z=0.5), z, limits),
        Joint("left", "revolute", 0, at(0.1, 0.3, 0.2), y, limits),
        Joint("right", "revolute", 0, at(0.1, -0.3, 0.2), y, limits),
        Joint("follower", "revolute", 1, at(0.3), y, limits, mimic=Mimic(1, -2.0, 0.1)),
        Joint("rod", "prismatic", 2, at(0.3), np.array([1.0, 0.0, 0.0]), limits),
    )
    links = tuple(Link(f"{joint.name}_link", body()) for joint in joints)
    return Arm("tree", joints, links)
