"""Loads that swing in the hand: pendulums and hinges, in compiled C side by side."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from armwise.errors import ArgumentError
from armwise.loads.moving_mass import (
    RIDGE,
    Fit,
    Residuals,
    Wave,
    cross,
    gauss_newton,
    squared_errors,
)
from armwise.programs import (
    addresses,
    c_function,
    compiled_library,
    fill,
    vector_prelude,
)

_FASTEST = 100.0
"""Bound of a speed in [rad/s]: unknowns that were guessed badly run away."""

_SHORTEST, _LONGEST = 0.025, 2.0
"""Lengths in [m] of pendulums, 3 Hz to a third: what a hand holds is in between."""

MOST_DAMPED = 0.5
"""Largest damping ratio of what still swings; beyond it, a body creeps along a path."""

_LANES = 4
"""Bodies that are simulated at once: one register of AVX2."""


@cache
def _swinging(base: int) -> Callable[..., int]:
    source = fill(
        Path(__file__).parent / "templates" / "swinging.c.in",
        LANES=_LANES,
        BASE=base,
        FASTEST=_FASTEST,
        RIDGE=RIDGE,
    )
    try:
        library = compiled_library(vector_prelude(_LANES) + source, "-O3")
    except ArgumentError as error:
        raise ArgumentError(
            f"{error} How a load moves in the hand is simulated in compiled C: install "
            "cc, gcc or clang, or `pip install ziglang`."
        ) from None
    return c_function(library, "swinging", "ppd")


def _simulate(
    wave: Wave, bodies: np.ndarray, columns: int, has_columns: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Swing bodies in the hand and fit their wrench beside a rigid load's.

    Args:
        wave: Motion and wrench.
        bodies: Numbers of each, (batch, 11) on a point or (batch, 16) on an axis:
            coordinates, speeds, length, damping, place, axes.
        columns: Of each one's wrench.
        has_columns: Whether to return them.

    Returns:
        What is left of the wrench, (batch, rows · 6), and the columns, (batch, rows in
        all, 6, columns).
    """
    motion, base = wave.motion, wave.base_directions
    every, rows = len(wave.weight), len(wave.residual) // 6
    bodies = np.ascontiguousarray(bodies)
    residuals = np.empty((len(bodies), 6 * rows))
    shape = (len(bodies), every, 6, columns) if has_columns else (0,)
    shown = np.empty(shape)
    arrays = [
        bodies,
        wave.halfway,
        wave.weight[:, None] / wave.scale[[0, 3]],
        base,
        wave.residual,
        np.empty(rows * 6 * 7 * _LANES + 8),
        residuals,
        shown,
    ]
    # Vectors must begin at multiples of their size.
    work = arrays[5]
    arrays[5] = work[(-work.ctypes.data // 8) % 8 :]
    width = bodies.shape[1]
    sizes = [1 if width == 16 else 3, len(bodies), motion.block, every, every - rows]
    numbers = np.array([*sizes, columns, width], dtype=np.int64)
    at = addresses(arrays)
    if not has_columns:
        at[7] = None
    _swinging(base.shape[1])(numbers.ctypes.data, at, motion.step)
    return residuals, shown


def _bobs(wave: Wave, theta: np.ndarray) -> np.ndarray:
    """Numbers of pendulums: log length, log damping ratio, start (2 angles, 2 speeds),
    place of the pivot (3).

    ü = −(a + 2ω×Lu̇ + …)/L across u, which keeps the length one.
    """
    L, damping = _length_and_damping(theta[:, 0], theta[:, 1])
    first = wave.motion.a[0]
    down = -first / np.linalg.norm(first)
    e1 = np.cross(down, np.eye(3)[int(np.argmin(np.abs(down)))])
    e1 /= np.linalg.norm(e1)
    e2 = np.cross(down, e1)
    u = down + theta[:, 2:3] * e1 + theta[:, 3:4] * e2
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = theta[:, 4:5] * e1 + theta[:, 5:6] * e2
    v = v - np.sum(u * v, axis=1, keepdims=True) * u
    return np.concatenate([u, v, L[:, None], damping[:, None], theta[:, 6:9]], axis=1)


def _hinges(wave: Wave, theta: np.ndarray) -> np.ndarray:
    """Numbers of hinged bodies: axis (2), log length, log damping ratio, angle, speed,
    place of the axis (3).

    θ̈ = −ω̇·n − (n×e)·a / L − (ω·(n×e))(ω·e), L the length of the equal pendulum.
    """
    L, damping = _length_and_damping(theta[:, 2], theta[:, 3])
    start = np.stack([theta[:, 4], theta[:, 5], L, damping], axis=1)
    return np.concatenate([start, theta[:, 6:9], *axes_across(theta)], axis=1)


def _length_and_damping(
    log_length: np.ndarray, log_ratio: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    # Shorter ones are springs by another name.
    L = np.exp(np.clip(log_length, np.log(_SHORTEST), np.log(_LONGEST)))
    ratio = np.exp(np.clip(log_ratio, -7.0, np.log(MOST_DAMPED)))
    return L, 2.0 * ratio * np.sqrt(9.81 / L)


def fit_pendulum(wave: Wave) -> Fit:
    """Fit a bob on a point, under the pull that the hand feels."""
    # A swing forgets its phase after some turns: 4 % of a frequency are near enough.
    lengths = np.log(np.geomspace(0.03, 0.6, 38))
    ratios = np.log([0.02, 0.1])
    grid = np.array([[L, r, 0, 0, 0, 0, *wave.center] for L in lengths for r in ratios])

    def others(random: np.random.Generator) -> np.ndarray:
        length = random.uniform(np.log(0.04), np.log(0.4), _STARTS)
        angles, speeds = random.normal(size=(2, _STARTS, 2))
        swing = np.sqrt(9.81 / np.exp(length))[:, None]
        starts = wave.center + 0.02 * random.normal(size=(_STARTS, 3))
        ratio = np.full(_STARTS, np.log(0.03))
        return np.column_stack([length, ratio, angles, swing * speeds, starts])

    def law(part: Wave) -> Residuals:
        return lambda x: _simulate(part, _bobs(part, x), 6)[0]

    theta = _search(wave, law, grid, 5, others)
    _, columns = _simulate(wave, _bobs(wave, theta[None]), 6, has_columns=True)
    return _swinging_fit(wave, columns, theta, theta[0], theta[1])


def _swinging_fit(
    wave: Wave, columns: np.ndarray, theta: np.ndarray, length: float, ratio: float
) -> Fit:
    """Errors and values, by the logarithms of length and damping ratio."""
    c = wave.project(columns)[1][0]
    L = float(np.clip(np.exp(length), _SHORTEST, _LONGEST))
    return Fit(wave.score(columns[0], theta.size).errors, {
        "moving_mass": abs(float(c[0])) / L,
        "length": L,
        "frequency_hz": float(np.sqrt(9.81 / L) / (2.0 * np.pi)),
        "damping_ratio": float(min(np.exp(ratio), MOST_DAMPED)),
    })  # fmt: skip


_HORIZONS = (0.3, 0.5, 0.75)
"""Fractions of the log that are fitted first where the whole log is not: swings that
begin a little apart grow apart, so that over long times valleys are narrow."""

_BRIEFLY = 0.25
"""Fraction that a law may leave of the log's beginning to be followed further: what
swings leaves next to nothing of three seconds."""

# Judgement: five unknowns of a start, of which a short beginning forgives much.
_STARTS, _ROUNDS = 1000, 3
"""Other starts of the motion, and the searches among them that go on."""


def _search(
    wave: Wave,
    law: Callable[[Wave], Residuals],
    grid: np.ndarray,
    best_of: int,
    others: Callable[[np.random.Generator], np.ndarray],
) -> np.ndarray:
    """Unknowns that fit best: a scan, Gauss–Newton, and again from the log's beginning.

    Args:
        wave, law: What is fitted, and what a law leaves of it.
        grid, best_of: To scan, and how many of it to improve.
        others: Draws other starts.
    """
    residuals = law(wave)
    costs = squared_errors(residuals, grid)
    best = gauss_newton(residuals, grid[np.argsort(costs)[:best_of]])
    whole = float(np.sum(wave.residual**2))
    cost = float(squared_errors(residuals, best[None])[0])
    if cost < (1.5 * wave.noise + 0.05) * whole:
        return best
    starts = np.concatenate([grid, others(np.random.default_rng(0))])
    for fraction in _HORIZONS:
        part = wave.beginning(fraction)
        first = law(part)
        order = np.argsort(squared_errors(first, starts))
        # Every third: each search has starts of its own.
        groups = [order[k : 6 * _ROUNDS : _ROUNDS] for k in range(_ROUNDS)]
        starts = np.stack([gauss_newton(first, starts[g]) for g in groups if g.size])
        costs = squared_errors(first, starts)
        if costs.min() > (part.noise + _BRIEFLY) * float(np.sum(part.residual**2)):
            return best  # no such motion, not even for a while
    return gauss_newton(residuals, np.concatenate([best[None], starts]))


# Hinge: a body that turns about an axis.


def axes_across(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axis n (batch, 3) by two angles, and two directions across it."""
    z, f = theta[:, 0], theta[:, 1]
    n = np.stack([np.cos(z) * np.cos(f), np.cos(z) * np.sin(f), np.sin(z)], axis=1)
    e1 = np.stack([-np.sin(f), np.cos(f), np.zeros_like(f)], axis=1)
    return n, e1, cross(n, e1)


def fit_hinge(wave: Wave) -> Fit:
    """Fit a body on an axis."""
    directions = hemisphere(40)
    lengths = np.log(np.geomspace(0.04, 0.5, 6))
    at_rest = []
    for d in directions:
        theta = np.array([d])
        _, e1, e2 = axes_across(theta)
        # It begins where it hangs, unless the search finds otherwise.
        pull = wave.motion.a[0]
        hang = np.arctan2(-pull @ e2[0], -pull @ e1[0])
        at_rest += [[*d, L, np.log(0.1), hang, 0.0, *wave.center] for L in lengths]
    grid = np.array(at_rest)

    def others(random: np.random.Generator) -> np.ndarray:
        start = grid[random.integers(len(grid), size=_STARTS)]
        start[:, :2] += 0.2 * random.normal(size=(_STARTS, 2))
        swing = np.sqrt(9.81 / np.exp(start[:, 2]))
        start[:, 4] += 1.5 * random.normal(size=_STARTS)
        start[:, 5] = swing * random.normal(size=_STARTS)
        start[:, 6:] += 0.02 * random.normal(size=(_STARTS, 3))
        return start

    def law(part: Wave) -> Residuals:
        return lambda x: _simulate(part, _hinges(part, x), 7)[0]

    theta = _search(wave, law, grid, 8, others)
    _, columns = _simulate(wave, _hinges(wave, theta[None]), 7, has_columns=True)
    return _swinging_fit(wave, columns, theta, theta[2], theta[3])


def hemisphere(count: int) -> np.ndarray:
    """Directions spread evenly over half a sphere, as two angles (Fibonacci)."""
    k = np.arange(count) + 0.5
    return np.stack([np.arcsin(k / count), np.pi * (1 + 5**0.5) * k % (2 * np.pi)], 1)
