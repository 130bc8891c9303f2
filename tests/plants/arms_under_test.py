"""Arms and controllers that the tests of plants share."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from armwise.arms import Arm, Drive, InertialParameters, Joint, Link

Z = np.array([0.0, 0.0, 1.0])
Y = np.array([0.0, 1.0, 0.0])


def with_drives(arm: Arm, **numbers: float) -> Arm:
    """The arm with the same drive at every joint."""
    drive = Drive(**numbers)
    return replace(arm, joints=tuple(replace(j, drive=drive) for j in arm.joints))


def flywheel(inertia: float = 0.5, **numbers: float) -> Arm:
    """One joint about the vertical: no gravity, constant inertia."""
    body = InertialParameters.from_center_of_mass(1.0, (0, 0, 0), inertia * np.eye(3))
    joint = Joint("spin", "revolute", -1, np.eye(4), Z, drive=Drive(**numbers))
    return Arm("flywheel", (joint,), (Link("wheel", body),))


def pendulum(mass: float = 2.0, length: float = 0.4) -> Arm:
    """One joint about a horizontal axis with a point mass that hangs at q = 0."""
    body = InertialParameters.from_center_of_mass(
        mass, (0, 0, -length), 1e-4 * np.eye(3)
    )
    joint = Joint("swing", "revolute", -1, np.eye(4), Y)
    return Arm("pendulum", (joint,), (Link("bob", body),))


class Pd:
    """τ = kp (q_ref − q) + kd (q̇_ref − q̇), with a gain for every joint."""

    def __init__(self, kp: object = 100.0, kd: object = 20.0) -> None:
        self.kp, self.kd = np.asarray(kp), np.asarray(kd)
        self.resets: list[tuple[int, float]] = []

    def reset(self, batch: int, period: float) -> None:
        self.resets.append((batch, period))

    def torque(self, t, reference, measurement):
        error = reference.q - measurement.need("q")
        return self.kp * error + self.kd * (reference.qd - measurement.need("qd"))


class Push:
    """A torque that is a function of time only."""

    def __init__(self, function) -> None:
        self.function = function

    def reset(self, batch: int, period: float) -> None:
        self.batch = batch

    def torque(self, t, reference, measurement):
        tau = np.atleast_2d(self.function(t))
        return np.broadcast_to(tau, (self.batch, tau.shape[1]))
