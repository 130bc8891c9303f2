"""Regression of a mass that moves in the hand, beside a rigid load.

With x its displacement, F = ẍ + 2ω×ẋ + ω̇×x + ω×(ω×x), a mass μ about r adds the force
μF and the moment μ(x×a + r×F + x×F), a = p̈ − g at r: linear in μ and μr but for a,
which differs from the sensor's by ω̇×r + ω×(ω×r).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import wrench_regressor
from armwise.errors import RecordingError
from armwise.loads.problem import WristSamples, build_wrench_problem
from armwise.recordings import Samples, low_pass

_RATE_HZ = 125.0
"""Steps of the simulated loads a second: those of a hand swing at a few Hz."""

_BLOCK = 2
"""Steps whose mean is a row of the regression: 30 Hz are left, and knocks keep their
momentum."""

_LEAST_CUTOFF_HZ = 15.0
"""Low-pass in [Hz] below which noise cannot be told from motion."""

_STRETCHES = 6
"""Stretches that are left out, one after the other."""

_REPEATED = 10.0
"""Rows that count as one: neighbours, and channels, repeat each other."""

_QUIET = 0.385
"""What `Wave.noise` sees of white noise that was low-passed at 30 Hz: four fifths or
less are fast enough, and the quietest tenth of the time is half as loud as the mean."""

_SLOW_HZ = 3.0
"""Frequencies in [Hz] at which an arm turns its hand, and weight shifts in it."""

_KNOCK = 2.0
"""Error of a moment, in medians, beyond which it counts no more."""

_PRUNED_AFTER = 4
"""Steps after which Gauss–Newton goes on from the best two starts."""

_NUDGE = 1e-4
"""Step of numerical slopes: unknowns are angles and logarithms."""

RIDGE = 1e-8
"""Added to the squares of columns of length one, which may repeat each other."""

_SETTLING = 0.5
"""Seconds at the beginning that are not counted: where a loose load lies is unknown."""


class Wave:
    """Motion and wrench at the rate of the simulations.

    Attributes:
        motion: Of the sensor, at 125 Hz.
        base: Columns of a rigid load, weighted and stacked, (rows · 6, p).
        base_directions: The same, orthonormal.
        residual: What they leave of the wrench, (rows · 6,).
    """

    def __init__(
        self, a: np.ndarray, omega: np.ndarray, alpha: np.ndarray, wrench: np.ndarray
    ) -> None:
        self.motion = HandMotion(a, omega, alpha, 1.0 / _RATE_HZ, _BLOCK)
        self._wrench = wrench
        A = wrench_regressor(a, omega, alpha)
        rows, target = block_means(A, _BLOCK), block_means(wrench, _BLOCK)
        flat = rows.reshape(-1, rows.shape[2])
        constant = np.broadcast_to(np.eye(6), (len(rows), 6, 6))
        first = np.concatenate([rows, constant], axis=2)
        self.scale = np.repeat(
            [np.std(target[:, :3]), np.std(target[:, 3:])], 3
        ) + 1e-9  # fmt: skip
        x = np.linalg.lstsq(
            (first / self.scale[:, None]).reshape(-1, 16),
            (target / self.scale).reshape(-1),
            rcond=1e-10,
        )[0]
        # Nothing that a hand holds is farther from it.
        self.center = np.clip(x[1:4] / x[0], -0.3, 0.3)
        load = (flat @ x[:10]).reshape(-1, 6)
        residual = target - first @ x
        # Forces and moments count by what a rigid load leaves of them, floored by a
        # thousandth of what there is.
        for part in (slice(0, 3), slice(3, 6)):
            size = np.std(target[:, part])
            self.scale[part] = max(float(np.std(residual[:, part])), 1e-3 * size)
        # A sensor that is late or turned by a degree is no load that moves.
        late = np.gradient(load, axis=0)[:, :, None]
        turned = np.stack(
            [
                np.concatenate([np.cross(e, load[:, :3]), np.cross(e, load[:, 3:])], 1)
                for e in np.eye(3)
            ],
            axis=2,
        )
        base = np.concatenate([first, late, turned], axis=2)
        # Knocks are short, and no path is known well enough to predict them: moments
        # beyond the usual count as usual ones.
        size = np.sqrt(np.sum((residual / self.scale) ** 2, axis=1))
        self.weight = np.minimum(1.0, _KNOCK * np.median(size) / (size + 1e-12))
        skip = round(_SETTLING * _RATE_HZ / _BLOCK)
        self.used = slice(skip, None)
        self.target = self._weighted(target[:, :, None])[0][:, 0]
        self.base = self._weighted(base)[0]
        self.base_directions = np.ascontiguousarray(np.linalg.qr(self.base)[0])
        Q = self.base_directions
        self.residual = self.target - Q @ (Q.T @ self.target)

    @classmethod
    def of(cls, data: Samples | WristSamples, arm: Arm | None, frame: str) -> Wave:
        """Resample the longest uninterrupted segment."""
        problem, _ = build_wrench_problem(data, arm, frame, None, "segment", False)
        cutoff = data.preparation.cutoff_hz if isinstance(data, Samples) else None
        if cutoff is not None and cutoff < _LEAST_CUTOFF_HZ:
            raise RecordingError(
                f"The kind of a load shows up to {_LEAST_CUTOFF_HZ:g} Hz and more, but "
                f"these samples were low-passed at {cutoff:.3g} Hz: give the recording."
            )
        part = max(problem.rows().segments, key=lambda s: s.stop - s.start)
        time = problem.time[part]
        if time[-1] - time[0] < 3.0:
            raise RecordingError(
                "The kind of a load needs three seconds of uninterrupted motion; the "
                f"longest stretch has {time[-1] - time[0]:.1f} s."
            )
        even = np.arange(time[0], time[-1], 1.0 / _RATE_HZ)
        signals = np.concatenate(
            [problem.frame_motion[part].reshape(len(time), 9), problem.wrench[part]], 1
        )
        if problem.rate_hz > 2.0 * _RATE_HZ and problem.highest_hz > 0.4 * _RATE_HZ:
            signals = np.apply_along_axis(
                low_pass, 0, signals, 0.4 * _RATE_HZ, problem.rate_hz
            )
        x = np.stack([np.interp(even, time, s) for s in signals.T], axis=1)
        band = _motion_band_hz(x[:, :9])
        if band < 0.4 * _RATE_HZ:
            x[:, :9] = np.apply_along_axis(low_pass, 0, x[:, :9], band, _RATE_HZ)
        return cls(x[:, :3], x[:, 3:6], x[:, 6:9], x[:, 9:])

    def beginning(self, fraction: float) -> Wave:
        """The first part of the same log, three seconds of it or more."""
        motion = self.motion
        n = min(len(motion.a), round(max(fraction * len(motion.a), 3.0 * _RATE_HZ)))
        return Wave(motion.a[:n], motion.omega[:n], motion.alpha[:n], self._wrench[:n])

    @cached_property
    def center_pull(self) -> np.ndarray:
        """p̈ − g at the centre of the rigid load, (steps, 3)."""
        return np.asarray(self.motion.pull(self.center[None])[0])

    @cached_property
    def halfway(self) -> np.ndarray:
        """a, ω, ω̇ at the steps and between them, (2 steps + 1, 9)."""
        from scipy.interpolate import CubicSpline

        motion = self.motion
        nine = np.concatenate([motion.a, motion.omega, motion.alpha], axis=1)
        steps = np.arange(len(nine))
        return np.asarray(CubicSpline(steps, nine)(np.arange(2 * len(nine) + 1) / 2.0))

    def _weighted(self, columns: np.ndarray) -> np.ndarray:
        """Rows (…, rows, 6, k) weighted and stacked, (batch, rows · 6, k)."""
        weight = self.weight[self.used, None, None] / self.scale[:, None]
        weighted = columns[..., self.used, :, :] * weight
        k = columns.shape[-1]
        return np.asarray(weighted.reshape(-1, weighted.shape[-3] * 6, k))

    def project(self, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Fit columns (batch, rows, 6, k) beside a rigid load.

        Returns:
            What is left of the wrench, (batch, rows · 6), and coefficients, (batch, k).
        """
        Q, C = self.base_directions, self._weighted(columns)
        C = C - Q @ (Q.T @ C)
        size = np.sqrt(np.sum(C * C, axis=1)) + 1e-300
        C = C / size[:, None]
        k = C.shape[2]
        # Columns that repeat each other are common; the ridge decides among them.
        G = np.swapaxes(C, 1, 2) @ C + RIDGE * np.eye(k)
        x = np.linalg.solve(G, np.swapaxes(C, 1, 2) @ self.residual[:, None])
        return self.residual - (C @ x)[..., 0], x[..., 0] / size

    def score(self, columns: np.ndarray | None, unknowns: int) -> Fit:
        """Squared error of each stretch, by a fit to the others, and its price.

        The first is never left out: it shows where a load was when the log began.
        """
        X = self.base
        if columns is not None:
            X = np.concatenate([X, self._weighted(columns[None])[0]], axis=1)
        X = X / (np.sqrt(np.sum(X * X, axis=0)) + 1e-300)
        parts = np.array_split(np.arange(len(X) // 6), _STRETCHES)
        rows = [(6 * p[:, None] + np.arange(6)).ravel() for p in parts]
        G = [X[r].T @ X[r] for r in rows]
        b = [X[r].T @ self.target[r] for r in rows]
        ridge = 1e-5 * np.eye(X.shape[1])
        total, right = sum(G) + ridge, sum(b)
        errors = [
            np.sum((self.target[r] - X[r] @ np.linalg.solve(total - g, right - y)) ** 2)
            for r, g, y in list(zip(rows, G, b, strict=True))[1:]
        ]
        return Fit(np.array(errors) * self.price(unknowns))

    def errors(self, residual: np.ndarray, unknowns: float) -> np.ndarray:
        """Squared errors of the stretches, of a fit to all of them at once."""
        parts = np.array_split(residual.reshape(-1, 6), _STRETCHES)
        price = self.price(unknowns)
        return price * np.array([np.sum(part**2) for part in parts[1:]])

    def price(self, unknowns: float) -> float:
        """Factor of squared errors: unknowns that were fitted to all stretches take
        part of them, as degrees of freedom of rows that repeat each other would."""
        return 1.0 + 2.0 * unknowns / (len(self.target) / _REPEATED)

    def remainder(self, columns: np.ndarray) -> np.ndarray:
        """Columns (rows, 6, k), weighted, less what a rigid load explains of them."""
        Q, C = self.base_directions, self._weighted(columns)[0]
        return np.asarray(C - Q @ (Q.T @ C))

    @cached_property
    def floor(self) -> np.ndarray:
        """Mean square of noise in each channel: that of fast changes in the quietest
        tenth of the time. Knocks and swings are in other moments, or slower."""
        from scipy.ndimage import uniform_filter1d

        rows = self.residual.reshape(-1, 6)
        fast = rows - uniform_filter1d(rows, 5, axis=0)  # above 6 Hz or so
        width = max(4, round(0.25 * _RATE_HZ / _BLOCK))
        parts = np.array_split(fast, max(1, len(fast) // width))
        power = np.array([np.mean(part**2, axis=0) for part in parts])
        return np.asarray(np.quantile(power, 0.1, axis=0) / _QUIET)

    @property
    def noise(self) -> float:
        """Fraction of a rigid load's squared error that is noise."""
        rows = self.residual.reshape(-1, 6)
        return float(min(1.0, self.floor.sum() / np.mean(rows**2, axis=0).sum()))

    @property
    def unexplained(self) -> float:
        """Largest fraction of force or moment, below 3 Hz, that a rigid load leaves."""
        rate = _RATE_HZ / _BLOCK
        residual, whole = (
            np.apply_along_axis(low_pass, 0, x.reshape(-1, 6), _SLOW_HZ, rate)
            for x in (self.residual, self.target)
        )
        parts = (slice(0, 3), slice(3, 6))
        ratios = [
            np.sum(residual[:, p] ** 2)
            / np.sum((whole[:, p] - whole[:, p].mean(0)) ** 2)
            for p in parts
        ]
        return float(np.sqrt(max(ratios)))


def _motion_band_hz(motion: np.ndarray) -> float:
    """Frequency up to which the motion is known: beyond it differentiated angles are
    noise, which a load on springs would seem to filter away."""
    window = np.hanning(len(motion))[:, None]
    centred = (motion - motion.mean(axis=0)) * window
    power = np.abs(np.fft.rfft(centred, axis=0)) ** 2
    f = np.fft.rfftfreq(len(motion), 1.0 / _RATE_HZ)
    width = max(1, round(len(f) / (0.5 * _RATE_HZ)))  # 1 Hz
    kernel = np.ones(width) / width
    top = (f > 15.0) & (f < 25.0)
    highest = 0.0
    for k in (0, 1, 2, 6, 7, 8):  # accelerations, which are differentiated twice
        smooth = np.convolve(power[:, k], kernel, "same")
        noise = np.median(power[top, k] / f[top] ** 4) / 0.7 * f**4
        clear = np.flatnonzero((smooth > 10.0 * noise) & (f < 25.0))
        highest = max(highest, float(f[clear[-1]]) if clear.size else 0.0)
    return max(1.3 * highest, 3.0)


@dataclass(frozen=True, eq=False)
class HandMotion:
    """Motion of the sensor in even steps.

    Attributes:
        a, omega, alpha: p̈ − g, ω, ω̇ in the sensor's axes, (steps, 3).
        step: In [s].
        block: Steps whose mean is a row of the regression.
    """

    a: np.ndarray
    omega: np.ndarray
    alpha: np.ndarray
    step: float
    block: int

    def pull(self, place: np.ndarray) -> np.ndarray:
        """p̈ − g at places of the hand (batch, 3): (batch, steps, 3)."""
        r = place[:, None]
        turned = cross(self.alpha, r) + cross(self.omega, cross(self.omega, r))
        return np.asarray(self.a + turned)

    def rows(self, x: np.ndarray) -> np.ndarray:
        """Rows of the regression, of arrays (batch, steps, …)."""
        return block_means(x, self.block, 1)


@dataclass(frozen=True, eq=False)
class Fit:
    """Errors of the stretches left out, and what was found."""

    errors: np.ndarray
    values: dict[str, float] = field(default_factory=dict)


def block_means(x: np.ndarray, block: int, axis: int = 0) -> np.ndarray:
    """Means of so many steps."""
    if block == 1:
        return x
    count = x.shape[axis] // block
    x = np.moveaxis(x, axis, 0)[: count * block]
    x = x.reshape(count, block, *x.shape[1:]).mean(axis=1)
    return np.moveaxis(x, 0, axis)


def moving_columns(
    motion: HandMotion, x: np.ndarray, xd: np.ndarray, xdd: np.ndarray, pull: np.ndarray
) -> np.ndarray:
    """Wrench of a unit mass that moves by x, (batch, rows, 6, 5), arrays (batch, steps,
    3): itself, about each axis, and its second order. `pull` is that at its place."""
    om, al = motion.omega, motion.alpha
    F = xdd + 2.0 * cross(om, xd) + cross(al, x) + cross(om, cross(om, x))
    F, moment, second = (motion.rows(v) for v in (F, cross(x, pull), cross(x, F)))
    columns = np.zeros((*F.shape[:2], 6, 5))
    columns[:, :, :3, 0], columns[:, :, 3:, 0] = F, moment
    for i, e in enumerate(np.eye(3)):
        columns[:, :, 3:, 1 + i] = cross(e, F)
    columns[:, :, 3:, 4] = second
    return columns


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cross product; NumPy's own takes several times as long."""
    a, b = np.broadcast_arrays(a, b)
    out = np.empty(b.shape)
    for i, (j, k) in enumerate(((1, 2), (2, 0), (0, 1))):
        out[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return out


# Fits: a scan, then Gauss–Newton where the motion is smooth, or random search.

Residuals = Callable[[np.ndarray], np.ndarray]
"""What is left of the wrench, (batch, rows · 6), by a batch of unknowns."""


def squared_errors(residuals: Residuals, theta: np.ndarray) -> np.ndarray:
    """Squared errors of a batch of unknowns, a few at a time to save memory."""
    parts = [theta[i : i + 96] for i in range(0, len(theta), 96)]
    errors = [np.sum(residuals(p) ** 2, axis=1) for p in parts]
    total = np.concatenate(errors)
    return np.where(np.isfinite(total), total, np.inf)


def gauss_newton(
    residuals: Residuals, starts: np.ndarray, steps: int = 20
) -> np.ndarray:
    """Improve all starts side by side by damped Gauss–Newton; return the best.

    After a few steps only the best two go on: others are in worse valleys.
    """
    count, p = starts.shape
    nudges = np.concatenate([np.zeros((1, p)), _NUDGE * np.eye(p)])
    theta, damping = starts.copy(), np.full(count, 1e-2)
    costs = np.full(count, np.inf)
    running = np.ones(count, dtype=bool)
    for step_number in range(steps):
        if step_number == _PRUNED_AFTER:
            running[np.argsort(costs)[2:]] = False
        at = np.flatnonzero(running)
        if not at.size:
            break
        batch = (theta[at, None] + nudges).reshape(-1, p)
        errors = residuals(batch).reshape(at.size, p + 1, -1)
        trials = np.empty((at.size, 4, p))
        for i, j in enumerate(at):
            costs[j] = float(errors[i, 0] @ errors[i, 0])
            J = (errors[i, 1:] - errors[i, 0]) / _NUDGE
            G, g = J @ J.T, J @ errors[i, 0]
            for m, d in enumerate(damping[j] * 10.0 ** np.arange(-1, 3)):
                step = np.linalg.solve(G + d * np.diag(np.diag(G) + 1e-9), g)
                trials[i, m] = theta[j] - np.clip(step, -0.5, 0.5)
        tried = squared_errors(residuals, trials.reshape(-1, p))
        tried = tried.reshape(trials.shape[:2])
        for i, j in enumerate(at):
            m = int(np.argmin(tried[i]))
            # A step that gains less than a thousandth is the last.
            running[j] = tried[i, m] < 0.999 * costs[j]
            if tried[i, m] < costs[j]:
                theta[j], costs[j] = trials[i, m], tried[i, m]
                damping[j] = np.clip(damping[j] * 10.0 ** (m - 1), 1e-6, 1e3)
            elif damping[j] < 1e3:
                damping[j] *= 100.0
                running[j] = True
    return np.asarray(theta[int(np.argmin(costs))])
