"""Loads that move in the hand: their kind, by models that are compared.

A rigid load leaves noise. One that swings, turns on a hinge, slips, rolls about in a
box or sits on springs leaves the wrench of a mass that moves. What drives it is
different for each kind: that is simulated, and the rest follows by least squares. Kinds
are compared by how well they predict stretches that were left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from armwise.arms import Arm
from armwise.loads.moving_mass import (
    Columns,
    Fit,
    HandMotion,
    Wave,
    cross,
    gauss_newton,
    moving_columns,
    squared_errors,
)
from armwise.loads.problem import WristSamples
from armwise.recordings import Recording, Samples, prepare

KINDS = ("rigid", "loose", "pendulum", "hinged", "slipping", "compliant")
"""What a load may do in the hand: nothing, roll or slosh in a box, swing about a point,
turn about an axis, slide in its grip, give way like a spring."""

_CUTOFF_HZ = 30.0
"""Low-pass of recordings in [Hz]: above it, twice differentiated encoders are noise."""

_IMPROVEMENT = 0.85
"""Prediction error over the rigid load's from which on a load is not rigid: flexible
sensors and errors of the motion leave several per cent that a spring could explain."""

_EXPLAINED = 0.7
"""Fraction of what a rigid load leaves beyond noise that a kind has to explain; if
none does, something moves about in a way that no simple law predicts."""

_ENOUGH = 0.95
"""The same fraction from which on no other kind is tried."""

_NOISE_LEFT = 0.5
"""Fraction of noise in a rigid load's squared error below which something moves."""

_SLIPPED_ONCE, _SLIPPED_OFTEN = 0.5, 0.85
"""The same of a slip: less for a path that stays where it went; more for one that goes
to and fro, as something loose does along the longest side of its box."""

_LAWFUL = 0.7
"""Error over that of the best path of any shape below which a law of few unknowns needs
to explain no more than a slip."""

_LEAST_SHIFT = 0.03
"""Fraction of the slow wrench that a load must leave to be loose: misalignments of a
degree or two leave as much (sin 2° = 0.03); a real rigid load left 0.014."""

_ALL_NOISE = 0.87
"""Fraction of noise above which nothing is left to explain."""

_SELDOM = 0.01
"""Loads that are called rigid at once and are not."""


@dataclass(frozen=True, eq=False)
class LoadKind:
    """What a load does in the hand.

    Attributes:
        kind: One of KINDS.
        probability: That no other kind predicts stretches left out better, by their
            scatter (Student's t). Of a load called rigid at once, because a rigid one
            leaves only noise, it is assumed (0.99), not computed; of a loose one it
            only says how little any law explains (0.5 to 1).
        errors: Prediction error of every kind over the rigid load's, on stretches left
            out; 1 is no better than rigid.
        values: Parameters of this kind: moving_mass [kg], length [m], frequency_hz,
            damping_ratio, shift [kg m] (mass times path); those that it has.
    """

    kind: str
    probability: float
    errors: dict[str, float] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)

    @property
    def statement(self) -> str:
        """The same in words."""
        sure = f"{100.0 * self.probability:.0f} % sure"
        if self.kind == "rigid":
            return f"The load is rigid ({sure})."
        listed = ", ".join(_WORDS[k].format(v) for k, v in self.values.items())
        return (
            f"The load is not rigid: {_KIND_WORDS[self.kind]} ({sure}; "
            f"{100.0 * (1.0 - self.errors[self.kind]):.0f} % of what a rigid load "
            f"leaves is explained): {listed}."
        )


_KIND_WORDS = {
    "loose": "it moves about in a box, as a ball or a liquid",
    "pendulum": "it swings about a point",
    "hinged": "it turns on a hinge",
    "slipping": "it slips in its grip",
    "compliant": "its grip gives way like a spring",
}
_WORDS = {
    "moving_mass": "{:.3g} kg move",
    "length": "length {:.3g} m",
    "frequency_hz": "{:.3g} Hz",
    "damping_ratio": "damping ratio {:.2g}",
    "shift": "shifts by {:.2g} kg m",
}


def identify_load_kind(
    data: Samples | WristSamples | Recording,
    arm: Arm | None = None,
    *,
    frame: str = "wrist",
) -> LoadKind:
    """Tell whether a load is rigid, and if not, what moves and how.

    Args:
        data: Motion and wrench of the wrist, best five seconds or more in which the
            hand turns about; a recording is low-passed at 30 Hz.
        arm: The arm that moved; not for `WristSamples`.
        frame: Frame of the wrist sensor.

    Raises:
        RecordingError: If there is no wrench, or less than three seconds of it.
    """
    if isinstance(data, Recording):
        data = prepare(data, _CUTOFF_HZ, decimation=1, keep_rest=True)
    wave = Wave.of(data, arm, frame)
    # An accelerometer is not where the load is, and its noise is not known: small
    # errors of such a log say nothing.
    is_vague = isinstance(data, WristSamples) and wave.unexplained < _LEAST_SHIFT
    if wave.noise > _ALL_NOISE or is_vague:
        return LoadKind("rigid", 1.0 - _SELDOM, {"rigid": 1.0}, {})
    fits = {"rigid": wave.score(None, 0)}
    least = 1.0
    for kind, fit in _FITS.items():
        fits[kind] = fit(wave, least)
        unexplained = float(fits[kind].errors.sum() / fits["rigid"].errors.sum())
        least = min(least, unexplained)
        if kind != "slipping" and 1.0 - unexplained > _ENOUGH * (1.0 - wave.noise):
            break  # a path of any shape may be as good; no other law will be
    return _compare(wave, fits)


# Pendulum: a bob on a point, under the pull that the hand feels.

_FASTEST = 100.0
"""Bound of a bob's speed in [rad/s]: unknowns that were guessed badly run away."""

_SHORTEST, _LONGEST = 0.025, 2.0
"""Lengths in [m] of pendulums, 3 Hz to a third: what a hand holds is in between."""


def _swing(wave: Wave, theta: np.ndarray) -> np.ndarray:
    """Columns of pendulums: log length, log damping ratio, start (2 angles, 2 speeds),
    place of the pivot (3).

    u̇˙ = −(a + 2ω×Lu̇ + …)/L across u: leapfrog, u kept at length one.
    """
    # Shorter ones are springs by another name.
    L = np.exp(np.clip(theta[:, :1], np.log(_SHORTEST), np.log(_LONGEST)))
    ratio = np.exp(np.clip(theta[:, 1:2], -7.0, 0.5))
    motion = wave.slow_motion
    h, steps = motion.step, len(motion.a)
    felt = motion.pull(theta[:, 6:9])
    damping = 2.0 * ratio * np.sqrt(9.81 / L)
    down = -motion.a[0] / np.linalg.norm(motion.a[0])
    e1 = np.cross(down, np.eye(3)[int(np.argmin(np.abs(down)))])
    e1 /= np.linalg.norm(e1)
    e2 = np.cross(down, e1)
    u = down + theta[:, 2:3] * e1 + theta[:, 3:4] * e2
    u = u / np.linalg.norm(u, axis=1, keepdims=True)
    v = theta[:, 4:5] * e1 + theta[:, 5:6] * e2
    v = v - np.sum(u * v, axis=1, keepdims=True) * u
    turning, coriolis = _turning_matrices(motion)
    pull = np.swapaxes(felt, 0, 1) / L  # (steps, batch, 3)
    x, xd, xdd = np.empty((3, steps, len(theta), 3))
    for k in range(steps):
        rate = u @ turning[k] + v @ coriolis[k] - pull[k] - damping * v
        along = np.einsum("bi,bi->b", u, rate) + np.einsum("bi,bi->b", v, v)
        rate -= along[:, None] * u
        # Leapfrog's speed is half a step behind.
        x[k], xd[k], xdd[k] = u, v + 0.5 * h * rate, rate
        v = np.clip(v + h * rate, -_FASTEST, _FASTEST)
        u = u + h * v
        u /= np.sqrt(np.einsum("bi,bi->b", u, u))[:, None]
    x, xd, xdd = (np.swapaxes(y, 0, 1) for y in (x, xd, xdd))
    columns = moving_columns(motion, x, xd, xdd, felt)
    return _with_moment(motion, columns, cross(x, xd))


def _with_moment(
    motion: HandMotion, columns: np.ndarray, moment: np.ndarray
) -> np.ndarray:
    """One more column: a moment alone, (batch, steps, 3)."""
    more = np.zeros((*columns.shape[:3], 1))
    more[:, :, 3:, 0] = motion.rows(moment)
    return np.concatenate([columns, more], axis=3)


def _turning_matrices(motion: HandMotion) -> tuple[np.ndarray, np.ndarray]:
    """M and N with u M = −(ω̇×u + ω×(ω×u)) and v N = −2ω×v, (steps, 3, 3)."""
    basis = np.eye(3)[None]
    w, al = motion.omega[:, None], motion.alpha[:, None]
    coriolis = -2.0 * cross(w, basis)
    return -cross(al, basis) - cross(w, cross(w, basis)), coriolis


def _fit_pendulum(wave: Wave, least: float) -> Fit:
    # A swing forgets its phase after some turns: 4 % of a frequency are near enough.
    lengths = np.log(np.geomspace(0.03, 0.6, 38))
    ratios = np.log([0.02, 0.1])
    grid = np.array([[L, r, 0, 0, 0, 0, *wave.center] for L in lengths for r in ratios])
    swing = float(np.sqrt(9.81 / 0.1))
    spread = np.array([0.03, 0.0, 0.6, 0.6, 0.6 * swing, 0.6 * swing, *3 * [0.03]])
    theta = _search(wave, _swing, grid, 5, spread, least)
    columns = _swing(wave, theta[None])
    c = wave.project(columns)[1][0]
    L = float(np.clip(np.exp(theta[0]), _SHORTEST, _LONGEST))
    fit = wave.score(columns[0], theta.size)
    return Fit(fit.errors, {
        "moving_mass": float(c[0]) / L,
        "length": L,
        "frequency_hz": float(np.sqrt(9.81 / L) / (2.0 * np.pi)),
        "damping_ratio": float(np.exp(theta[1])),
    })  # fmt: skip


_RESTARTS = 2
"""Searches for another start of the motion, where a fit explains half and not all: the
valleys of those that begin elsewhere are narrow."""


def _search(
    wave: Wave,
    columns: Columns,
    grid: np.ndarray,
    starts: int,
    spread: np.ndarray,
    least: float,
) -> np.ndarray:
    """Unknowns that fit best: a scan, Gauss–Newton, and again from other starts.

    Args:
        wave, columns: What is fitted.
        grid, starts: To scan, and how many of it to improve.
        spread: Deviations of the other starts.
        least: Error of the best kind so far, over the rigid load's.
    """
    costs = squared_errors(wave, columns, grid)
    best = gauss_newton(wave, columns, grid[np.argsort(costs)[:starts]])
    whole, random = float(np.sum(wave.residual**2)), np.random.default_rng(0)
    cost = float(squared_errors(wave, columns, best[None])[0])
    for _ in range(_RESTARTS):
        if not 1.5 * wave.noise + 0.05 < cost / whole < min(0.5, least):
            break
        # The place begins anew: a wrong valley has a wrong one.
        around = np.array([*best[:6], *wave.center])
        around = around + spread * random.normal(size=(192, best.size))
        costs = squared_errors(wave, columns, around)
        other = gauss_newton(wave, columns, around[np.argsort(costs)[:6]])
        tried = float(squared_errors(wave, columns, other[None])[0])
        if tried < cost:
            best, cost = other, tried
    return best


# Hinge: a body that turns about an axis.


def _axes(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axis n (batch, 3) by two angles, and two directions across it."""
    z, f = theta[:, 0], theta[:, 1]
    n = np.stack([np.cos(z) * np.cos(f), np.cos(z) * np.sin(f), np.sin(z)], axis=1)
    e1 = np.stack([-np.sin(f), np.cos(f), np.zeros_like(f)], axis=1)
    return n, e1, cross(n, e1)


def _turn(wave: Wave, theta: np.ndarray) -> np.ndarray:
    """Columns of hinged bodies: axis (2), log length, log damping ratio, angle, speed,
    place of the axis (3).

    θ̈ = −ω̇·n − (n×e)·a / L − (ω·(n×e))(ω·e), L the length of the equal pendulum.
    """
    n, e1, e2 = _axes(theta)
    L = np.exp(np.clip(theta[:, 2], np.log(_SHORTEST), np.log(_LONGEST)))
    ratio = np.exp(np.clip(theta[:, 3], -7.0, 0.5))
    damping = 2.0 * ratio * np.sqrt(9.81 / L)
    motion = wave.slow_motion
    felt, h, steps = motion.pull(theta[:, 6:9]), motion.step, len(motion.a)
    # Everything on the two directions, before the loop.
    a1, a2 = (np.einsum("bti,bi->tb", felt, e) / L for e in (e1, e2))
    w1, w2 = motion.omega @ e1.T, motion.omega @ e2.T
    spin = motion.alpha @ n.T
    angle, speed = theta[:, 4].copy(), theta[:, 5].copy()
    angles, speeds, rates = np.empty((3, steps, len(theta)))
    for k in range(steps):
        c, s = np.cos(angle), np.sin(angle)
        across = w2[k] * c - w1[k] * s
        rate = -spin[k] - (a2[k] * c - a1[k] * s) - damping * speed
        rate -= across * (w1[k] * c + w2[k] * s)
        angles[k], speeds[k], rates[k] = angle, speed + 0.5 * h * rate, rate
        speed = speed + h * rate
        angle = angle + h * speed
    th, thd, thdd = (y.T[..., None] for y in (angles, speeds, rates))
    e = np.cos(th) * e1[:, None] + np.sin(th) * e2[:, None]
    across = np.cos(th) * e2[:, None] - np.sin(th) * e1[:, None]
    moved = e, thd * across, thdd * across - thd**2 * e
    columns = moving_columns(motion, *moved, felt)
    columns = _with_moment(motion, columns, thdd * n[:, None])
    return _with_moment(motion, columns, thd * n[:, None])


def _fit_hinge(wave: Wave, least: float) -> Fit:
    directions = _hemisphere(40)
    lengths = np.log(np.geomspace(0.04, 0.5, 6))
    at_rest = []
    for d in directions:
        theta = np.array([d])
        _, e1, e2 = _axes(theta)
        # It begins where it hangs, unless the search finds otherwise.
        pull = wave.slow_motion.a[0]
        hang = np.arctan2(-pull @ e2[0], -pull @ e1[0])
        at_rest += [[*d, L, np.log(0.1), hang, 0.0, *wave.center] for L in lengths]
    grid = np.array(at_rest)
    spread = np.array([0.1, 0.1, 0.0, 0.0, 2.0, 8.0, *3 * [0.04]])
    theta = _search(wave, _turn, grid, 8, spread, least)
    columns = _turn(wave, theta[None])
    c = wave.project(columns)[1][0]
    L = float(np.clip(np.exp(theta[2]), _SHORTEST, _LONGEST))
    fit = wave.score(columns[0], theta.size)
    return Fit(fit.errors, {
        "moving_mass": abs(float(c[0])) / L,
        "length": L,
        "frequency_hz": float(np.sqrt(9.81 / L) / (2.0 * np.pi)),
        "damping_ratio": float(np.exp(theta[3])),
    })  # fmt: skip


def _hemisphere(count: int) -> np.ndarray:
    """Directions spread evenly over half a sphere, as two angles (Fibonacci)."""
    k = np.arange(count) + 0.5
    return np.stack([np.arcsin(k / count), np.pi * (1 + 5**0.5) * k % (2 * np.pi)], 1)


# Slipping: along one direction, by a path that no law of friction prescribes.

_KNOTS_HZ = 8.0
"""Knots of the path a second: a slip lasts a tenth of one or more."""

_LARGEST_SHIFT = 0.3
"""Prior standard deviation of mass times path in [kg m]: decides where the path does
not show, along gravity."""


def _fit_slip(wave: Wave, least: float) -> Fit:
    """Fit μ s(t) e: s a spline, e a direction; then again, about where it moves."""
    from scipy.interpolate import BSpline

    time = np.arange(len(wave.motion.a)) * wave.motion.step
    inner = np.linspace(0.0, time[-1], max(4, round(time[-1] * _KNOTS_HZ)))
    knots = np.concatenate([3 * [0.0], inner, 3 * [time[-1]]])
    spline = BSpline(knots, np.eye(len(knots) - 4), 3)
    path = [spline.derivative(k)(time) if k else spline(time) for k in range(3)]
    fits, center = [], wave.center
    for _ in range(2):
        fit, e, x = _fit_path(wave, path, center)
        x0, x1, x2 = ((y @ x)[None, :, None] * e for y in path)
        c = wave.project(moving_columns(wave.motion, x0, x1, x2, wave.center_pull))[1][
            0
        ]
        center = np.clip(c[1:4] / c[0], -0.5, 0.5)
        # Mass and path are known by their product only.
        s = path[0] @ x
        fits.append(Fit(fit, {"shift": float(np.ptp(s)), "turns": float(_turns(s))}))
    return min(fits, key=lambda f: float(f.errors.sum()))


def _turns(path: np.ndarray) -> int:
    """How often a path turns back by a third of its range or more."""
    reach, turns, way = np.ptp(path) / 3.0, 0, 0
    low = high = path[0]
    for s in path:
        low, high = min(low, s), max(high, s)
        if way >= 0 and s < high - reach:
            turns, way, low = turns + (way > 0), -1, s
        elif way <= 0 and s > low + reach:
            turns, way, high = turns + (way < 0), 1, s
    return turns


def _fit_path(
    wave: Wave, path: list[np.ndarray], center: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Errors, direction and coefficients of the path that explains most.

    Columns are linear in the direction, and so their products for any direction follow
    from those of the three axes.
    """
    columns = []
    for e in np.eye(3):
        x, xd, xdd = (y.T[..., None] * e for y in path)
        five = moving_columns(wave.motion, x, xd, xdd, wave.center_pull)
        whole = five[..., 0] + five[..., 1:4] @ center
        columns.append(wave.remainder(np.moveaxis(whole, 0, 2)))
    ridge = np.eye(path[0].shape[1]) / _LARGEST_SHIFT**2
    G = np.array([[a.T @ b for b in columns] for a in columns])
    right = np.array([c.T @ wave.residual for c in columns])

    def gain(e: np.ndarray) -> tuple[float, np.ndarray]:
        A = np.einsum("i,ijkl,j->kl", e, G, e) + ridge
        x = np.linalg.solve(A, e @ right)
        return float((e @ right) @ x), x

    # Thirds of a radian apart, then ever nearer.
    best = max(_axes(_hemisphere(40))[0], key=lambda e: gain(e)[0])
    for reach in (0.2, 0.07, 0.02):
        around = best + reach * np.random.default_rng(0).normal(size=(30, 3))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        best = max([best, *around], key=lambda e: gain(e)[0])
    x = gain(best)[1]
    C = np.tensordot(best, np.array(columns), axes=1)
    unknowns = float(np.trace(np.linalg.solve(C.T @ C + ridge, C.T @ C))) + 2.0
    return wave.errors(wave.residual - C @ x, unknowns), best, x


# Compliant grip: springs, linear in small displacements.


_SAG = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of the compliance, which is symmetric."""


def _give(wave: Wave, theta: np.ndarray) -> np.ndarray:
    """Columns of masses on springs, (batch, rows, 6, 12 a mode), by log frequency [Hz]
    and log damping ratio of each mode.

    Its displacement is minus the compliance times the low-passed pull, and whatever
    vibration there was when the log began.
    """
    modes = theta.reshape(len(theta), -1, 2)
    return np.stack(
        [np.concatenate([_mode(wave, *m) for m in each], axis=2) for each in modes]
    )


def _mode(wave: Wave, log_hz: float, log_ratio: float) -> np.ndarray:
    from scipy.signal import lfilter

    w, z = 2.0 * np.pi * np.exp(log_hz), min(np.exp(log_ratio), 0.9)
    # Bilinear, with the resonance where it is.
    step = wave.motion.step
    k = w / np.tan(0.5 * w * step)
    den = np.array([k * k + 2 * z * w * k + w * w, 2 * (w * w - k * k),
                    k * k - 2 * z * w * k + w * w])  # fmt: skip
    shapes = np.array([[1, 2, 1], [k, 0, -k], [k * k, -2 * k * k, k * k]]) * w * w
    pull = wave.center_pull
    first = pull[0]
    driven = [
        -lfilter(shape / den[0], den / den[0], pull - first, axis=0) for shape in shapes
    ]
    driven[0] = driven[0] - first
    paths = []
    for i, j in _SAG:
        x = np.zeros((3, *pull.shape))
        for m, n in {(i, j), (j, i)}:
            x[:, :, m] = [y[:, n] for y in driven]
        paths.append(x)
    root = w * (-z + 1j * np.sqrt(1.0 - z * z))
    decay = np.exp(root * step * np.arange(len(pull))) * 9.81
    free = [
        (f * np.array([1, root, root * root])[:, None] * decay).real for f in (1, 1j)
    ]
    paths += [f[:, :, None] * e for f in free for e in np.eye(3)]
    x, xd, xdd = np.moveaxis(np.array(paths), 1, 0)
    five = moving_columns(wave.motion, x, xd, xdd, pull)
    columns = five[..., 0] + five[..., 1:4] @ wave.center
    return np.moveaxis(columns, 0, 2)


_MODES = 3
"""Most frequencies of a grip: those of its three directions."""


def _fit_compliant(wave: Wave, least: float) -> Fit:
    grid = np.array([
        [np.log(f), np.log(z)]
        for f in np.geomspace(1.5, 14.0, 20)
        for z in (0.02, 0.06, 0.2)
    ])  # fmt: skip
    stored = np.concatenate([_give(wave, g[None]) for g in grid])
    fits_rigid = float(wave.score(None, 0).errors.sum())
    fits, modes, beside = [], np.zeros((1, 0)), np.zeros((1, *stored.shape[1:3], 0))
    for _ in range(_MODES):
        costs = np.concatenate([
            np.sum(wave.project(np.concatenate([beside, s[None]], axis=3))[0] ** 2, 1)
            for s in stored
        ])  # fmt: skip
        start = np.concatenate([modes, grid[[int(np.argmin(costs))]]], axis=1)
        modes = gauss_newton(wave, _give, start, steps=6)[None]
        beside = _give(wave, modes)
        fits.append((wave.score(beside[0], modes.size), modes[0]))
        if fits[-1][0].errors.sum() < 1.1 * wave.noise * fits_rigid:
            break  # nothing is left to explain
    fit, theta = min(fits, key=lambda f: float(f[0].errors.sum()))
    theta = theta.reshape(-1, 2)
    strength = np.abs(wave.project(_give(wave, theta.reshape(1, -1)))[1])
    strength = strength.reshape(len(theta), 12)[:, :6].max(axis=1)
    hz, ratio = np.exp(theta[int(np.argmax(strength))])
    return Fit(fit.errors, {"frequency_hz": float(hz), "damping_ratio": float(ratio)})


_FITS: dict[str, Callable[[Wave, float], Fit]] = {
    "slipping": _fit_slip,
    "pendulum": _fit_pendulum,
    "hinged": _fit_hinge,
    "compliant": _fit_compliant,
}


def _compare(wave: Wave, fits: dict[str, Fit]) -> LoadKind:
    """Choose the kind that predicts best.

    Rigid, unless another is clearly better; loose, if much more than noise is left and
    no kind explains it.
    """
    from scipy.stats import t

    rigid, noise = fits["rigid"].errors, wave.noise
    errors = {k: float(f.errors.sum() / rigid.sum()) for k, f in fits.items()}
    ranked = sorted(fits, key=lambda k: errors[k])
    turns = fits["slipping"].values.pop("turns")
    if ranked[0] == "slipping" and turns >= 2:
        # A path that goes to and fro has many unknowns: a law that explains as much is
        # the simpler story.
        bound = 1.0 - _EXPLAINED * (1.0 - noise)
        ranked.sort(key=lambda k: (k == "slipping" or errors[k] > bound, errors[k]))
    best = ranked[0]
    explained = (1.0 - errors[best]) / max(1.0 - noise, 1e-3)
    gains = np.log(rigid / fits[best].errors)
    # The median: one stretch that extrapolates badly does not decide.
    is_better = errors[best] < _IMPROVEMENT and np.median(gains) > -np.log(_IMPROVEMENT)
    shifts = noise < _NOISE_LEFT and wave.unexplained > _LEAST_SHIFT
    needed = _EXPLAINED
    if errors[best] < _LAWFUL * errors["slipping"]:
        needed = _SLIPPED_ONCE
    if best == "slipping":
        needed = _SLIPPED_ONCE if turns < 2 else _SLIPPED_OFTEN
    if shifts and not (is_better and explained > needed):
        # How sure: between a kind that explains all and one that explains nothing.
        shift = {"shift": fits["slipping"].values["shift"]}
        sure = float(np.clip(1.0 - 0.5 * explained / needed, 0.5, 1.0))
        return LoadKind("loose", sure, errors, shift)
    if not is_better:
        best = "rigid"
    other = next(k for k in ranked if k != best)
    margin = np.log(fits[other].errors / fits[best].errors)
    if best == "rigid":
        margin = margin - np.log(_IMPROVEMENT)
    z = margin.mean() / (margin.std(ddof=1) / np.sqrt(margin.size) + 1e-9)
    sure = float(t.cdf(z, margin.size - 1))
    return LoadKind(best, sure, errors, fits[best].values)
