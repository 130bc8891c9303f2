"""Loads that move in the hand: their wrench, and their names on MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.errors import RecordingError
from armwise.loads import identify_load_kind
from armwise.loads.moving_mass import Wave, block_means, moving_columns
from armwise.loads.problem import WristSamples

pytest.importorskip("mujoco")
from studies.load_kinds import FRAME, held_load


def _motion(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sensor that turns about, and its specific force, at 125 Hz."""
    t = np.arange(steps) / 125.0
    omega = np.stack([np.sin(t), 0.7 * np.cos(1.3 * t), 0.5 * np.sin(0.6 * t)], 1)
    alpha = np.stack(
        [np.cos(t), -0.91 * np.sin(1.3 * t), 0.3 * np.cos(0.6 * t)], axis=1
    )
    a = 9.81 * np.stack([np.sin(t), np.cos(t), np.sin(0.5 * t)], 1)
    return a, omega, alpha


def test_a_mass_that_moves_has_the_wrench_of_its_acceleration() -> None:
    a, omega, alpha = _motion(625)
    t = np.arange(625) / 125.0
    r = np.array([0.01, -0.02, 0.1])
    x = 0.05 * np.stack([np.sin(3 * t), np.cos(2 * t), np.sin(t + 1)], 1)
    xd = 0.05 * np.stack([3 * np.cos(3 * t), -2 * np.sin(2 * t), np.cos(t + 1)], 1)
    xdd = -0.05 * np.stack([9 * np.sin(3 * t), 4 * np.cos(2 * t), np.sin(t + 1)], 1)
    wave = Wave(a, omega, alpha, np.random.default_rng(0).normal(size=(625, 6)))
    pull = wave.motion.pull(r[None])
    five = moving_columns(wave.motion, x[None], xd[None], xdd[None], pull)[0]
    moved = five @ np.array([1.0, *r, 1.0])
    whole = []
    for at, v, rate in ((r + x, xd, xdd), (r + 0 * x, 0 * xd, 0 * xdd)):
        # A point that moves in a turning frame: its own acceleration, Coriolis's, …
        force = a + rate + 2 * np.cross(omega, v) + np.cross(alpha, at)
        force = force + np.cross(omega, np.cross(omega, at))
        whole.append(np.concatenate([force, np.cross(at, force)], axis=1))
    rest = whole[1]
    expected = whole[0] - rest
    assert moved == pytest.approx(block_means(expected, 2), abs=1e-9)


def test_a_rigid_load_is_rigid() -> None:
    load = held_load("rigid", 3, duration=6.0)
    kind = identify_load_kind(load.log, load.arm, frame=FRAME)
    assert kind.kind == "rigid"
    assert "is rigid" in kind.statement


def test_a_short_log_says_what_it_lacks() -> None:
    a, omega, alpha = _motion(200)
    t = np.arange(200) / 125.0
    data = WristSamples(t, a, omega, alpha, np.ones((200, 6)))
    with pytest.raises(RecordingError, match="three seconds"):
        identify_load_kind(data)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pendulum", "hinged", "slipping"])
def test_loads_that_move_are_named(kind: str) -> None:
    load = held_load(kind, 3)
    answer = identify_load_kind(load.log, load.arm, frame=FRAME)
    assert answer.kind == kind, answer
    assert answer.errors[kind] < 0.2
    if kind == "pendulum":
        length = load.truth["length"]
        assert answer.values["length"] == pytest.approx(length, rel=0.15)
        assert answer.values["moving_mass"] == pytest.approx(
            load.truth["moving_mass"], rel=0.2
        )
