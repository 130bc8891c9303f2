"""Loads that move in the hand: their kind, by models that are compared.

A rigid load leaves noise. One that swings, turns on a hinge, slips, rolls about in a
box or sits on springs leaves the wrench of a mass that moves. What drives it is
different for each kind: that is simulated, and the rest follows by least squares. Kinds
are compared by how well they predict stretches that were left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from armwise.arms import Arm
from armwise.loads.moving_mass import (
    RIDGE,
    Fit,
    Wave,
    block_means,
    gauss_newton,
    moving_columns,
)
from armwise.loads.problem import WristSamples
from armwise.loads.swinging import (
    MOST_DAMPED,
    axes_across,
    fit_hinge,
    fit_pendulum,
    hemisphere,
)
from armwise.recordings import Recording, Samples, prepare

KINDS = ("rigid", "loose", "pendulum", "hinged", "slipping", "compliant")
"""What a load may do in the hand: nothing, roll or slosh in a box, swing about a point,
turn about an axis, slide in its grip, give way like a spring."""

_CUTOFF_HZ = 30.0
"""Low-pass of recordings in [Hz]: above it, twice differentiated encoders are noise."""

_IMPROVEMENT = 0.95
"""Prediction error over the rigid load's from which on a load is not rigid: flexible
sensors and errors of the motion leave some per cent that a spring could explain."""

_EXPLAINED = {"pendulum": 0.8, "hinged": 0.8, "compliant": 0.7, "slipping": 0.775}
"""Fraction of what a rigid load leaves beyond noise that a kind has to explain; if
none does, something moves about in a way that no simple law predicts. Pendulums and
hinges are simulated exactly (found, they leave a tenth at most), large displacements on
springs are not. A path of any shape along one line leaves a fifth at most of a slip,
and a quarter or more of what moves about in a box."""

_ENOUGH = 0.95
"""The same fraction from which on no other kind is tried, in a log of little noise."""

_NOISE_LEFT = 0.5
"""Fraction of noise in a rigid load's squared error below which something moves."""

_LAWFUL, _SPRINGS = 0.7, 0.5
"""Error over that of the best path of any shape below which a law is the better story,
and springs need to explain only this fraction."""

_LEAST_SHIFT = 0.03
"""Fraction of the slow wrench that a load must leave to be loose: misalignments of a
degree or two leave as much (sin 2° = 0.03); a real rigid load left 0.014."""

_ALL_NOISE = 0.95
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
        # Nothing may have been fitted to a loose load: no law is needed to call it so.
        if self.kind in self.errors:
            explained = 100.0 * (1.0 - self.errors[self.kind])
            sure += f"; {explained:.0f} % of what a rigid load leaves is explained"
        return f"The load is not rigid: {_KIND_WORDS[self.kind]} ({sure}): {listed}."


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
    for kind, fit in _FITS.items():
        fits[kind] = fit(wave)
        unexplained = float(fits[kind].errors.sum() / fits["rigid"].errors.sum())
        # A path of any shape may be as good as a law; no other law will be, unless
        # noise hides what tells them apart.
        if (
            kind != "slipping"
            and wave.noise < 1.0 - _ENOUGH
            and (1.0 - unexplained > _ENOUGH * (1.0 - wave.noise))
        ):
            break
    return _compare(wave, fits)


# Slipping: along one direction, by a path that no law of friction prescribes.

_KNOTS_HZ = 8.0
"""Knots of the path a second: a slip lasts a tenth of one or more."""

_LARGEST_SHIFT = 0.3
"""Prior standard deviation of mass times path in [kg m]: decides where the path does
not show, along gravity."""


def _fit_slip(wave: Wave) -> Fit:
    """Fit μ s(t) e: s a spline, e a direction; then again, about where it moves."""
    from scipy.interpolate import BSpline

    time = np.arange(len(wave.motion.a)) * wave.motion.step
    inner = np.linspace(0.0, time[-1], max(4, round(time[-1] * _KNOTS_HZ)))
    knots = np.concatenate([3 * [0.0], inner, 3 * [time[-1]]])
    spline = BSpline(knots, np.eye(len(knots) - 4), 3)
    path = [spline.derivative(k)(time) if k else spline(time) for k in range(3)]
    fits, center = [], wave.center
    for _ in range(2):
        fit, error, e, x = _fit_path(wave, path, center)
        x0, x1, x2 = ((y @ x)[None, :, None] * e for y in path)
        c = wave.project(moving_columns(wave.motion, x0, x1, x2, wave.center_pull))[1][
            0
        ]
        center = np.clip(c[1:4] / c[0], -0.5, 0.5)
        # Mass and path are known by their product only.
        s = path[0] @ x
        values = {"shift": float(np.ptp(s)), "turns": float(_turns(s)), "error": error}
        fits.append(Fit(fit, values))
    return min(fits, key=lambda f: f.values["error"])


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
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """Errors, their sum over the rigid load's, direction and coefficients of the path
    that explains most.

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
    best = max(axes_across(hemisphere(40))[0], key=lambda e: gain(e)[0])
    for reach in (0.2, 0.07, 0.02):
        around = best + reach * np.random.default_rng(0).normal(size=(30, 3))
        around /= np.linalg.norm(around, axis=1, keepdims=True)
        best = max([best, *around], key=lambda e: gain(e)[0])
    x = gain(best)[1]
    C = np.tensordot(best, np.array(columns), axes=1)
    unknowns = float(np.trace(np.linalg.solve(C.T @ C + ridge, C.T @ C))) + 2.0
    errors = wave.errors(wave.residual - C @ x, unknowns)
    # The path was fitted to all stretches, the first among them: a slip may be in it.
    unexplained = np.sum((wave.residual - C @ x) ** 2) / np.sum(wave.residual**2)
    rigid = wave.score(None, 0).errors.sum()
    scale = unexplained * wave.price(unknowns) * rigid / errors.sum()
    return scale * errors, float(unexplained), best, x


# Compliant grip: springs, linear in small displacements.


_SAG = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Entries of the compliance, which is symmetric."""


def _springs(wave: Wave) -> Callable[[float, float], np.ndarray]:
    """Return the columns of a mode, (rows, 6, 12), as a function of its log frequency
    [Hz] and log damping ratio.

    Its displacement is minus the compliance times the low-passed pull, and whatever
    vibration there was when the log began.
    """
    from scipy.signal import lfilter

    motion, pull = replace(wave.motion, block=1), wave.center_pull
    step, steps, first = motion.step, len(pull), pull[0]
    # The wrench is linear in displacement, speed and acceleration along each axis.
    one = np.broadcast_to(np.eye(3)[:, None], (3, steps, 3))
    zero = np.zeros_like(one)
    five = [
        moving_columns(motion, x, xd, xdd, pull)
        for x, xd, xdd in ((one, zero, zero), (zero, one, zero), (zero, zero, one))
    ]
    wrench = np.stack([y[..., 0] + y[..., 1:4] @ wave.center for y in five], axis=-1)
    wrench = np.ascontiguousarray(np.moveaxis(wrench, 0, 2)).reshape(steps, 18, 3)

    @cache
    def mode(log_hz: float, log_ratio: float) -> np.ndarray:
        hz = np.clip(np.exp(log_hz), _SOFTEST_HZ, _STIFFEST_HZ)
        w = 2.0 * np.pi * hz
        z = np.clip(np.exp(log_ratio), 1e-3, MOST_DAMPED)
        # Bilinear, with the resonance where it is.
        k = w / np.tan(0.5 * w * step)
        den = np.array([k * k + 2 * z * w * k + w * w, 2 * (w * w - k * k),
                        k * k - 2 * z * w * k + w * w])  # fmt: skip
        shapes = np.array([[1, 2, 1], [k, 0, -k], [k * k, -2 * k * k, k * k]]) * w * w
        paths = np.empty((steps, 3, 5))
        for order, shape in enumerate(shapes):
            paths[:, order, :3] = -lfilter(
                shape / den[0], den / den[0], pull - first, axis=0
            )
        paths[:, 0, :3] -= first
        root = w * (-z + 1j * np.sqrt(1.0 - z * z))
        decay = np.exp(root * step * np.arange(steps)) * 9.81
        for order in range(3):
            paths[:, order, 3] = (root**order * decay).real
            paths[:, order, 4] = (1j * root**order * decay).real
        whole = block_means(wrench @ paths, wave.motion.block).reshape(-1, 6, 3, 5)
        sag = [
            whole[:, :, i, j] + (whole[:, :, j, i] if i != j else 0.0) for i, j in _SAG
        ]
        free = [whole[:, :, i, 3 + f] for f in range(2) for i in range(3)]
        return np.stack([*sag, *free], axis=2)

    return mode


_SOFTEST_HZ, _STIFFEST_HZ = 1.25, 20.0
"""Frequencies in [Hz] of grips: a softer one would sag by g / ω² = 16 cm, and a stiffer
one moves less than the arm's own vibrations."""

_MODES = 3
"""Most frequencies of a grip: those of its three directions."""


def _fit_compliant(wave: Wave) -> Fit:
    grid = np.array([
        [np.log(f), np.log(z)]
        for f in np.geomspace(1.5, 14.0, 20)
        for z in (0.02, 0.06, 0.2)
    ])  # fmt: skip
    mode = _springs(wave)

    def give(theta: np.ndarray) -> np.ndarray:
        """Columns of grips, (batch, rows, 6, 12 a mode)."""
        modes = theta.reshape(len(theta), -1, 2)
        return np.stack(
            [np.concatenate([mode(*map(float, m)) for m in x], axis=2) for x in modes]
        )

    stored = np.stack([wave.remainder(give(g[None])[0]) for g in grid])
    stored /= np.linalg.norm(stored, axis=1, keepdims=True) + 1e-300
    fits_rigid = float(wave.score(None, 0).errors.sum())
    fits, modes, missing = [], np.zeros((1, 0)), wave.residual
    for _ in range(_MODES):
        G = np.swapaxes(stored, 1, 2) @ stored + RIDGE * np.eye(stored.shape[2])
        right = np.swapaxes(stored, 1, 2) @ missing
        gains = np.sum(right * np.linalg.solve(G, right[..., None])[..., 0], axis=1)
        start = np.concatenate([modes, grid[[int(np.argmax(gains))]]], axis=1)
        modes = gauss_newton(lambda x: wave.project(give(x))[0], start, steps=6)[None]
        fits.append((wave.score(give(modes)[0], modes.size), modes[0]))
        if fits[-1][0].errors.sum() < 1.1 * wave.noise * fits_rigid:
            break  # nothing is left to explain
        # The next beside these.
        beside = np.linalg.qr(wave.remainder(give(modes)[0]))[0]
        stored = stored - beside @ (beside.T @ stored)
        missing = wave.project(give(modes))[0][0]
    fit, theta = min(fits, key=lambda f: float(f[0].errors.sum()))
    theta = theta.reshape(-1, 2)
    strength = np.abs(wave.project(give(theta.reshape(1, -1)))[1])
    strength = strength.reshape(len(theta), 12)[:, :6].max(axis=1)
    log_hz, log_ratio = theta[int(np.argmax(strength))]
    return Fit(fit.errors, {
        "frequency_hz": float(np.clip(np.exp(log_hz), _SOFTEST_HZ, _STIFFEST_HZ)),
        "damping_ratio": float(min(np.exp(log_ratio), MOST_DAMPED)),
    })  # fmt: skip


_FITS: dict[str, Callable[[Wave], Fit]] = {
    "slipping": _fit_slip,
    "pendulum": fit_pendulum,
    "hinged": fit_hinge,
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
    slip = fits["slipping"].values
    shift = {"shift": slip["shift"]}
    beyond_noise = max(1.0 - noise, 1e-3)
    explained = {k: (1.0 - e) / beyond_noise for k, e in errors.items()}
    explained["slipping"] = (1.0 - slip["error"]) / beyond_noise
    needed = dict(_EXPLAINED)
    if errors.get("compliant", 1.0) < _LAWFUL * errors["slipping"]:
        needed["compliant"] = _SPRINGS

    def rank(kind: str) -> tuple[bool, float]:
        # A path that goes to and fro has many unknowns: a law that explains as much is
        # the simpler story. One that goes once and stays has few: a hinge that falls
        # over looks alike, while one that swings leaves far less than a path.
        error, is_once = errors[kind], slip["turns"] < 2
        if kind == "slipping":
            error = slip["error"] if is_once else error / _LAWFUL
        elif kind in ("pendulum", "hinged") and is_once:
            error /= _LAWFUL
        return explained[kind] <= needed.get(kind, 1.0), error

    ranked = sorted(fits, key=rank)
    best = ranked[0]
    gains = np.log(rigid / fits[best].errors)
    # The median: one stretch that extrapolates badly does not decide.
    is_better = errors[best] < _IMPROVEMENT and np.median(gains) > -np.log(_IMPROVEMENT)
    shifts = noise < _NOISE_LEFT and wave.unexplained > _LEAST_SHIFT
    if shifts and (rank(best)[0] or not is_better):
        # How sure: between a kind that explains all and one that explains nothing.
        nearest = max(explained[k] / needed[k] for k in fits if k != "rigid")
        sure = float(np.clip(1.0 - 0.5 * nearest, 0.5, 1.0))
        return LoadKind("loose", sure, errors, shift)
    if not is_better:
        best = "rigid"
    other = next(k for k in ranked if k != best)
    margin = np.log(fits[other].errors / fits[best].errors)
    if best == "rigid":
        margin = margin - np.log(_IMPROVEMENT)
    z = margin.mean() / (margin.std(ddof=1) / np.sqrt(margin.size) + 1e-9)
    sure = float(t.cdf(z, margin.size - 1))
    values = shift if best == "slipping" else fits[best].values
    return LoadKind(best, sure, errors, values)
