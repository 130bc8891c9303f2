"""Loads that move in the hand: their wrench, and their names on MuJoCo."""

from __future__ import annotations

import numpy as np
import pytest

from armwise.errors import ArgumentError, RecordingError
from armwise.loads import LoadKind, identify_load_kind, swinging
from armwise.loads.moving_mass import Wave, block_means, moving_columns
from armwise.loads.problem import WristSamples

pytest.importorskip("mujoco")
from studies.load_kinds import FRAME, held_load


def _motion(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A sensor that turns about, and its specific force, at 125 Hz."""
    return _motion_at(np.arange(steps) / 125.0)


def _motion_at(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
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


@pytest.mark.parametrize("on_axis", [False, True])
def test_what_swings_follows_newton(on_axis: bool) -> None:
    """Compiled paths against SciPy's integrator, over Cartesian forces."""
    a, omega, alpha = _motion(250)
    wave = Wave(a, omega, alpha, np.random.default_rng(0).normal(size=(250, 6)))
    L, ratio, r = 0.12, 0.05, np.array([0.01, -0.02, 0.1])
    damping = 2.0 * ratio * np.sqrt(9.81 / L)
    if on_axis:
        theta = np.array([[0.4, 1.1, np.log(L), np.log(ratio), 0.3, 2.0, *r]])
        bodies, count = swinging._hinges(wave, theta), 7
        n, e1, e2 = bodies[0, 7:].reshape(3, 3)
        across = np.cos(0.3) * e2 - np.sin(0.3) * e1
        start = [*np.cos(0.3) * e1 + np.sin(0.3) * e2, *2.0 * across]
    else:
        theta = np.array([[np.log(L), np.log(ratio), 0.4, -0.3, 1.0, 2.0, *r]])
        bodies, count, n = swinging._bobs(wave, theta), 6, np.zeros(3)
        start = bodies[0, :6]

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        pull, w, al = (x[0] for x in _motion_at(np.array([t])))
        u, v = y[:3], y[3:]
        felt = pull + np.cross(al, r) + np.cross(w, np.cross(w, r))
        inertial = np.cross(al, u) + np.cross(w, np.cross(w, u)) + 2 * np.cross(w, v)
        free = -inertial - felt / L - damping * v
        free -= n * (n @ free)  # an axis takes what is along it
        return np.concatenate([v, free - (free @ u + v @ v) * u])

    from scipy.integrate import solve_ivp

    times = np.arange(250) / 125.0
    path = solve_ivp(slope, (0, 2), start, t_eval=times, rtol=1e-7, atol=1e-7).y.T
    rates = np.array([slope(t, y)[3:] for t, y in zip(times, path, strict=True)])
    expected = moving_columns(
        wave.motion, path[None, :, :3], path[None, :, 3:], rates[None],
        wave.motion.pull(r[None]),
    )[0]  # fmt: skip
    residuals, columns = swinging._simulate(wave, bodies, count, has_columns=True)
    error = np.abs(columns[0, :, :, :5] - expected).max(axis=(0, 1))
    assert np.all(error < 2e-3 * np.abs(expected).max(axis=(0, 1)))
    # What compiled code leaves of the wrench is what NumPy leaves.
    assert residuals == pytest.approx(wave.project(columns)[0], abs=1e-7)
    # Batches beyond a vector's lanes are the same bodies one by one.
    six = swinging._simulate(wave, np.repeat(bodies, 6, axis=0), count)[0]
    assert six == pytest.approx(np.repeat(residuals, 6, axis=0), abs=1e-12)


def test_a_load_that_moves_asks_for_a_compiler(monkeypatch) -> None:
    from armwise.programs import compiler

    a, omega, alpha = _motion(625)
    t = np.arange(625) / 125.0
    wrench = np.concatenate([a, np.cross([0.0, 0.0, 0.1], a)], axis=1)
    wrench[:, 3] += 0.2 * np.sin(9.0 * t)
    data = WristSamples(t, a, omega, alpha, wrench)
    monkeypatch.setattr(compiler, "find_compiler", lambda: None)
    swinging._swinging.cache_clear()
    with pytest.raises(ArgumentError, match="compiled C: install"):
        identify_load_kind(data)


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


def test_a_loose_load_to_which_nothing_was_fitted_is_stated() -> None:
    kind = LoadKind("loose", 0.8, {"rigid": 1.0}, {"shift": 0.1})
    assert "80 % sure): shifts by 0.1 kg m" in kind.statement
