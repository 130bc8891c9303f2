"""Closed loops against reduced coordinates, integrated by another's integrator."""

from __future__ import annotations

from cmath import rect
from itertools import accumulate
from math import sin

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from armwise import Dynamics
from armwise.worlds import Hinge, Point, RigidBody, World, planar_chain, rod, simulate
from papers.mitchell_rivals import FOUR_BAR, four_bar, four_bar_angles


def turned(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


def angle_about_y(quaternion: np.ndarray) -> np.ndarray:
    return 2 * np.arctan2(quaternion[:, 2], quaternion[:, 0])


def test_a_double_pendulum_of_points_moves_like_the_arm() -> None:
    arm = planar_chain(2)
    dynamics = Dynamics(arm, backend="numpy")

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        return np.append(x[2:], dynamics.forward_dynamics(x[:2], x[2:], np.zeros(2)))

    first = np.array([0.9, 0.0, 0.0, 0.0])
    there = solve_ivp(rate, (0, 10), first, method="DOP853", rtol=1e-11, atol=1e-12)

    segment = rod(1.0, (0, 0, 0), (1, 0, 0), 0.03)
    angles = np.cumsum(first[:2])
    poses = [np.eye(4), np.eye(4)]
    poses[0][:3, :3], poses[1][:3, :3] = turned(angles[0]), turned(angles[1])
    poses[1][:3, 3] = turned(angles[0]) @ [1, 0, 0]
    upper, lower = (
        RigidBody.from_segments(name, [segment], pose)
        for name, pose in zip(("upper", "lower"), poses, strict=True)
    )
    end = Point("upper", (1.0, 0.0, 0.0))
    world = World(
        (upper, lower),
        (
            Hinge("shoulder", Point("upper"), (0.0, 0.0, 0.0), (0, 1, 0)),
            Hinge("elbow", end, Point("lower"), (0, 1, 0)),
        ),
    )
    run = simulate(world, 10.0)
    found = np.column_stack(
        [angle_about_y(run.position(name)[:, 3:]) for name in ("upper", "lower")]
    )
    turn = np.exp(1j * (found[-1] - np.cumsum(there.y[:2, -1])))
    assert np.abs(np.angle(turn)).max() < 1e-6
    assert run.largest_deviation < 1e-8


def four_bar_terms(crank: float) -> tuple[float, float]:
    """Inertia [kg m²] and height energy [J] of the four-bar at a crank angle.

    With a e^{iα} + b e^{iβ} + c e^{iγ} = ground, β′ and γ′ follow by turning the
    derivative's imaginary part against γ and β.
    """
    lengths, masses, _ = FOUR_BAR
    alpha, beta, gamma = accumulate(four_bar_angles(crank))
    a, b, c = lengths
    turns = (
        1.0,
        -a * sin(alpha - gamma) / (b * sin(beta - gamma)),
        -a * sin(alpha - beta) / (c * sin(gamma - beta)),
    )
    place, velocity, inertia, height = 0j, 0j, 0.0, 0.0
    for angle, length, mass, turn in zip(
        (alpha, beta, gamma), lengths, masses, turns, strict=True
    ):
        arm = rect(length, -angle)  # turning about +y takes x to −z
        center, speed = place + arm / 2, velocity - 1j * turn * arm / 2
        about = mass * (0.03**2 / 4 + length**2 / 12)
        inertia += mass * abs(speed) ** 2 + about * turn**2
        height += 9.81 * mass * center.imag
        place, velocity = place + arm, velocity - 1j * turn * arm
    return inertia, height


def reduced_four_bar(duration: float) -> float:
    """Crank angle after a while, by the one coordinate a four-bar has."""

    def rate(t: float, x: np.ndarray) -> list[float]:
        h = 1e-3
        near = [four_bar_terms(x[0] + k * h) for k in (-2, -1, 1, 2)]
        slope = [
            (p[0] - 8 * p[1] + 8 * p[2] - p[3]) / (12 * h)
            for p in zip(*near, strict=True)
        ]
        push = -slope[1] - 0.5 * slope[0] * x[1] ** 2
        return [x[1], push / four_bar_terms(x[0])[0]]

    start = [-np.pi / 2, 0.0]
    done = solve_ivp(rate, (0, duration), start, "DOP853", rtol=1e-10, atol=1e-11)
    return float(done.y[0, -1])


def test_a_four_bar_moves_as_its_one_coordinate_says() -> None:
    run = simulate(four_bar(), 10.0)
    assert run.position("arm")[-1, 0] == pytest.approx(reduced_four_bar(10.0), abs=1e-6)
