"""Recursive load estimation: a Kalman filter on load and zeros, and its change test.

Between changes the load is constant and old samples fade exponentially, towards the
wide prior and never beyond it (Kulhavý and Zarrop, "On a general concept of
forgetting", Int. J. Control 58, 1993): what a resting arm does not show becomes as
uncertain as it was before the first sample, no more. A
cumulative-sum test on the innovations detects that a load was picked up or put down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from armwise.arms import Arm, InertialParameters
from armwise.dynamics import HeldBody
from armwise.errors import ArgumentError, RecordingError
from armwise.loads.estimate import SCALE, LoadEstimate
from armwise.programs import (
    SCALAR_PRELUDE,
    c_numbers,
    core_source,
    count_uniform,
    write_c,
)
from armwise.recordings import WRENCH_NAMES

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

PRIOR_STD = np.array([5.0, 0.5, 0.5, 0.5, *[0.1] * 6])
"""Standard deviation of the prior in [kg], [kg m], [kg m²]: as wide as loads of arms of
human size, so that a few samples outweigh it."""

_GRAVITY = 9.81
"""Weight of a kilogram in [N]."""

_MOMENT_PER_MASS = _GRAVITY * 0.1
"""Moment [N m] that counts as much as a kilogram: its weight at 0.1 m, a hand's
breadth."""

_SMALLEST_BIAS = 1e-12
"""Variance in [N²] and [N² m²] below which the sensor's zero counts as known."""

_SYMMETRISE_EVERY = 64
"""Samples between making the covariance symmetric: rounding grows by one bit or so in
that time, and averaging at every sample would cost as much as the update."""


_SURE_MASS, _SURE_LEAST, _SURE_MOMENT = 0.01, 0.01, 0.01
"""Standard deviations at which a load is known well enough for a driver: 1 % of its
mass, or 10 g; first moments to 10 g m, some millimetres of a kilogram's centre."""

# Judgement: a wrench in other axes makes loads whose centre is metres away.
_SURE_REACH = 1.0
"""Distance in [m] from its frame beyond which no hand holds a load's centre."""

_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True)
class LoadChange:
    """A load that changed while the arm moved.

    Attributes:
        time: When it was detected in [s].
        began: Estimated onset in [s].
        kind: Whether mass was added or removed.
        mass_change: First guess of the difference in [kg]; the estimate refines it.
    """

    time: float
    began: float
    kind: Literal["picked up", "put down"]
    mass_change: float


class OnlineLoad:
    """A recursive estimate of a load and of the sensor's zero, 16 states in all.

    Constant cost per sample. Old samples fade with `memory`; a sudden change of the
    load is detected and listed in `changes`, and the load's posterior is reset to the
    wide prior, while the sensor's zero keeps its own.

    Args:
        arm: The arm that moves.
        sensor_frame: Frame of the wrist sensor, and of the load.
        rate_hz: Samples per second.
        noise_std: White noise of force [N] and torque [N m], or six numbers.
        memory: Time after which a sample counts for 1/e in [s]; infinite keeps all.
        drift: Random walk of the sensor's zero in [N/√s] and [N m/√s].
        bias_std: Prior standard deviation of the zero in [N] and [N m].
        prior: Load at the start, with its uncertainty if it is an estimate.
        gripper: A body that is always held; not part of the load.
        smallest_change: Mass in [kg] whose coming or going counts as a change.
    """

    def __init__(
        self,
        arm: Arm,
        sensor_frame: str = "wrist",
        *,
        rate_hz: float = 1000.0,
        noise_std: ArrayLike = (0.2, 0.01),
        memory: float = 5.0,
        drift: ArrayLike = (0.01, 0.0005),
        bias_std: ArrayLike = (2.0, 0.1),
        prior: InertialParameters | LoadEstimate | None = None,
        gripper: InertialParameters | None = None,
        smallest_change: float = 0.05,
    ) -> None:
        from scipy.linalg.lapack import dposv

        self._solve = dposv
        self.smallest_change = smallest_change
        if rate_hz <= 0 or memory <= 0:
            raise ArgumentError("rate_hz and memory must be positive.")
        self.arm, self.frame, self.rate_hz = arm, sensor_frame, rate_hz
        self._body = HeldBody(arm, sensor_frame)
        self._noise = np.diag(six_numbers(noise_std, "noise_std") ** 2)
        # Dividing the information by e after `memory` multiplies the standard deviation
        # by √e: half of the exponent a sample.
        self._fade = float(np.exp(0.5 / (memory * rate_hz)))
        self._drift = six_numbers(drift, "drift") ** 2 / rate_hz
        self._bias = six_numbers(bias_std, "bias_std") ** 2
        self._gripper = (gripper or InertialParameters.zero()).vector / SCALE
        self._inputs = [np.zeros((1, arm.dof)) for _ in range(3)]
        self._A = np.zeros((1, 6, 10))
        self._regress = self._body.bound_regressor(self._inputs, self._A)
        self._H = np.zeros((6, 16))
        self._H[:, 10:] = np.eye(6)
        self._right = np.zeros((6, 17), order="F")
        self._fading = np.ones((16, 16))
        self._fading[:10] *= self._fade
        self._fading[:, :10] *= self._fade
        self._wander = np.diag(np.concatenate([np.zeros(10), self._drift]))
        self._prior = scaled_prior(prior)
        # Information per sample that holds the covariance at its widest: there it takes
        # away what fading and wandering add.
        widest = np.maximum((PRIOR_STD / SCALE) ** 2, np.diag(self._prior[1]))
        self._held_load = 1.0 / widest
        self._held_zero = self._drift / np.maximum(self._bias, _SMALLEST_BIAS) ** 2
        load = (self._fade**2 - 1.0) * self._held_load
        self._hold = np.concatenate([load, self._held_zero])
        self.reset()

    def reset(self) -> None:
        """Return to the prior."""
        mean, covariance = self._prior
        self._x = np.concatenate([mean + self._gripper, np.zeros(6)])
        self._P = np.zeros((16, 16))
        self._P[:10, :10] = covariance
        self._P[10:, 10:] = np.diag(self._bias)
        self._count = 0
        self._detector = ChangeDetector(6, self.rate_hz)
        self._pull_sum, self._innovation_sum = np.zeros(6), np.zeros(6)
        self._summed = 0
        self.changes: tuple[LoadChange, ...] = ()

    def update(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, wrench: ArrayLike
    ) -> OnlineLoad:
        """Take one sample, arrays (n,) and (6,), or a block, (N, n) and (N, 6)."""
        w = np.asarray(wrench, dtype=float)
        if w.ndim == 1:
            self._update_one(q, qd, qdd, w)
            return self
        A = self._body.regressor(q, qd, qdd) * SCALE
        if A.shape[0] != w.shape[0] or w.shape[1:] != (6,):
            raise ArgumentError(
                f"wrench has shape {w.shape}, but there are {A.shape[0]} samples of "
                "motion."
            )
        self._update_block(A, w)
        return self

    @property
    def time(self) -> float:
        """Time of the last sample, counted from the first, in [s]."""
        return self._count / self.rate_hz

    @property
    def mass(self) -> float:
        """Mass of the load in [kg]."""
        return float(self._x[0] - self._gripper[0])

    @property
    def mass_std(self) -> float:
        """Standard deviation of the mass in [kg]."""
        return float(np.sqrt(self._P[0, 0]))

    @property
    def parameters(self) -> InertialParameters:
        """The load's ten parameters."""
        return InertialParameters((self._x[:10] - self._gripper) * SCALE)

    @property
    def covariance(self) -> Float[np.ndarray, "10 10"]:
        """Covariance of the ten parameters."""
        return self._P[:10, :10] * np.outer(SCALE, SCALE)

    @property
    def bias(self) -> Float[np.ndarray, " 6"]:
        """Zero of the sensor in [N] and [N m]."""
        return self._x[10:].copy()

    @property
    def is_sure(self) -> bool:
        """Whether the load is known well enough for a robot's driver.

        No load is that no hand holds: of negative mass, or its centre a metre away.
        """
        std = np.sqrt(np.diag(self._P)[:4]) * SCALE[:4]
        bound = max(_SURE_MASS * abs(self.mass), _SURE_LEAST)
        furthest = _SURE_REACH * max(self.mass, 0.0) + 3.0 * _SURE_MOMENT
        moments = np.abs(self.parameters.vector[1:4])
        is_held = self.mass > -3.0 * bound and np.all(moments <= furthest)
        return bool(is_held and std[0] < bound and np.all(std[1:] < _SURE_MOMENT))

    def detection(self, mass_change: float, correlation: float = 1.0) -> Detection:
        """How soon such a change is seen, and how often an alarm comes without one.

        By the weight in the force alone, after the filter has settled: moments and
        accelerations make a change more visible. A change below `smallest_change` is
        never reported.

        Args:
            mass_change: In [kg].
            correlation: Samples over which the sensor's noise repeats itself: the rate
                over twice the frequency of its own low-pass.
        """
        detector = ChangeDetector(6, self.rate_hz)
        force = float(np.mean(np.diag(self._noise)[:3]))
        strength = (_GRAVITY * mass_change) ** 2 / force
        if abs(mass_change) < self.smallest_change:
            strength = 0.0
        return detector.detection(strength, correlation)

    def generate(self, folder: str | Path, name: str = "load_follower") -> list[Path]:
        """Write this filter as C: NAME.h and NAME.c, with its settings as constants.

        Fixed memory, no allocation, the same work for every sample.

        Args:
            folder: Where to; made if need be.
            name: Prefix of all names in C.
        """
        program, detector = (
            self._body.regressor_program,
            ChangeDetector(6, self.rate_hz),
        )
        stored = program.output("A").nonzero
        mean, covariance = self._prior
        prior = np.zeros((16, 16))
        prior[:10, :10], prior[10:, 10:] = covariance, np.diag(self._bias)
        values = {
            "ARM": self.arm.name,
            "FRAME": self.frame,
            "JOINTS": self.arm.dof,
            "PRELUDE": SCALAR_PRELUDE,
            "CORE": core_source(program),
            "PROGRAM": program.name,
            "NONZERO": ", ".join(map(str, stored)),
            "STORED": len(stored),
            "UNIFORMS": max(1, count_uniform(program)),
            "SCALE": c_numbers(SCALE),
            "GRIPPER": c_numbers(self._gripper),
            "NOISE": c_numbers(np.diag(self._noise)),
            "HOLD": c_numbers(self._hold),
            "DRIFT": c_numbers(self._drift),
            "PRIOR_MEAN": c_numbers(
                np.concatenate([mean + self._gripper, np.zeros(6)])
            ),
            "PRIOR": ", ".join(f"{{{c_numbers(row)}}}" for row in prior),
            "WIDE": c_numbers((PRIOR_STD / SCALE) ** 2),
            "FADE": repr(self._fade),
            "RATE": repr(float(self.rate_hz)),
            "LARGEST_RATIO": repr(detector.largest_ratio),
            "SLACK": repr(detector.slack),
            "HOLD_OFF": detector.hold_off,
            "LEVEL_RATE": repr(detector.level_rate),
            "THRESHOLD": repr(detector.threshold),
            "SMALLEST": repr(float(self.smallest_change)),
            "MOMENT_PER_MASS": repr(_MOMENT_PER_MASS),
            "SYMMETRISE": _SYMMETRISE_EVERY,
            "SURE_MASS": repr(_SURE_MASS),
            "SURE_LEAST": repr(_SURE_LEAST),
            "SURE_MOMENT": repr(_SURE_MOMENT),
            "SURE_REACH": repr(_SURE_REACH),
        }
        return write_c(_TEMPLATES / "load_follower", folder, name, values)

    @property
    def estimate(self) -> LoadEstimate:
        """The load with everything that follows from it."""
        return LoadEstimate(
            frame=self.frame,
            parameters=self.parameters,
            covariance=self.covariance,
            degrees_of_freedom=np.full(10, np.inf),
            channels=WRENCH_NAMES,
            bias=self.bias[None],
            bias_std=np.sqrt(np.diag(self._P)[10:])[None],
        )

    def _update_one(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, w: np.ndarray
    ) -> None:
        inputs = self._inputs
        inputs[0][0], inputs[1][0], inputs[2][0] = q, qd, qdd
        self._regress()
        H, P, right = self._H, self._P, self._right
        np.multiply(self._A[0], SCALE, out=H[:, :10])
        # Without excitation fading alone would let the covariance grow without bound;
        # to first order in the time step this is `_faded` of one sample.
        held = (P * self._hold) @ P
        P *= self._fading
        P += self._wander
        P -= held
        innovation = w - H @ self._x
        PH = P @ H.T
        right[:, :16] = PH.T
        right[:, 16] = innovation
        # One Cholesky solve gives the gain and the normalised innovation together.
        K = self._solve(H @ PH + self._noise, right)[1]
        self._count += 1
        if self._detect(float(innovation @ K[:, 16]), H[:, 0], innovation):
            return
        update = PH @ K
        self._x += update[:, 16]
        P -= update[:, :16]
        if self._count % _SYMMETRISE_EVERY == 0:
            P += P.T
            P *= 0.5

    def _update_block(self, A: np.ndarray, w: np.ndarray) -> None:
        """Add a block at once; split it where the load changes."""
        while len(w):
            H = np.concatenate([A, np.broadcast_to(np.eye(6), (len(w), 6, 6))], axis=2)
            innovation = w - H @ self._x
            S = H @ self._P @ np.swapaxes(H, 1, 2) + self._noise
            distance = np.einsum(
                "ti,ti->t",
                innovation,
                np.linalg.solve(S, innovation[..., None])[..., 0],
            )
            at = self._detector.take_block(distance)
            if at < 0:
                self._add(H, w)
                return
            first = max(0, at + 1 - self._detector.since)
            self._add(H[:first], w[:first])
            # From the onset on, the samples belong to the new load.
            late = slice(first, at + 1)
            means = H[late, :, 0].mean(axis=0), innovation[late].mean(axis=0)
            self._count += at + 1 - first
            if not self._confirm(*means):  # then they belong to the old load after all
                self._count -= at + 1 - first
                self._add(H[late], w[late])
            A, w = A[at + 1 :], w[at + 1 :]

    def _add(self, H: np.ndarray, w: np.ndarray) -> None:
        """Add the information of samples that belong to the same load."""
        if not len(w):
            return
        # In information form a block of any length costs two 16 × 16 inverses.
        inverse = self._faded(len(w))
        ages = np.arange(len(w) - 1, -1, -1)
        weight = self._fade ** (-2.0 * ages)[:, None] / np.diag(self._noise)
        flat = (H * np.sqrt(weight)[:, :, None]).reshape(-1, 16)
        information = inverse + flat.T @ flat
        vector = inverse @ self._x + flat.T @ (w * np.sqrt(weight)).reshape(-1)
        P = np.linalg.inv(information)
        self._P = 0.5 * (P + P.T)
        self._x = self._P @ vector
        self._count += len(w)

    def _faded(self, samples: int) -> Float[np.ndarray, "16 16"]:
        """Information after so many samples: the load's faded, the zero's drifted."""
        P = self._P * self._fading**samples + self._wander * samples
        information = np.linalg.inv(P)
        load = (1.0 - self._fade ** (-2.0 * samples)) * self._held_load
        hold = np.concatenate([load, samples * self._held_zero])
        information[range(16), range(16)] += hold
        return information

    def _detect(
        self, distance: float, pull: np.ndarray, innovation: np.ndarray
    ) -> bool:
        """Test one sample for a change; reset the load if it is confirmed."""
        is_suspected = self._detector.take(distance)
        if self._detector.since <= 1:
            self._pull_sum[:], self._innovation_sum[:], self._summed = 0.0, 0.0, 0
        self._pull_sum += pull
        self._innovation_sum += innovation
        self._summed += 1
        return is_suspected and self._confirm(
            self._pull_sum / self._summed, self._innovation_sum / self._summed
        )

    def _confirm(self, pull: np.ndarray, innovation: np.ndarray) -> bool:
        """Accept a change whose mean innovation is worth the smallest change."""
        force, moment = innovation[:3], innovation[3:]
        acceleration = pull[:3]
        square = max(float(acceleration @ acceleration), 1e-9)
        mass_change = float(acceleration @ force) / square
        least = self.smallest_change
        if (
            abs(mass_change) < least
            and float(np.linalg.norm(moment)) < least * _MOMENT_PER_MASS
        ):
            self._detector.accept_level()
            return False
        self._reset_load(mass_change)
        return True

    def _reset_load(self, mass_change: float) -> None:
        began = self.time - self._detector.since / self.rate_hz
        kind = "picked up" if mass_change > 0 else "put down"
        change = LoadChange(self.time, began, kind, mass_change)  # type: ignore[arg-type]
        self.changes = (*self.changes, change)
        # The old load says nothing of the new one; the sensor's zero did not change.
        self._P[:10, :] = 0.0
        self._P[:, :10] = 0.0
        self._P[:10, :10] = np.diag((PRIOR_STD / SCALE) ** 2)
        self._detector.restart()


def follow_lines(
    online: OnlineLoad, lines: Iterable[str], cutoff_hz: float = 20.0
) -> Iterator[float]:
    """Follow a load along CSV lines as they come; yield the time after each.

    The first line names the columns: time, q_1 …, qd_1 …, qdd_1 … if measured, fx … tz.
    Velocity and acceleration that are not there are differences behind a first-order
    low-pass, which a live signal allows.

    Args:
        online: The filter, which is updated.
        lines: From a pipe or a file.
        cutoff_hz: Of that low-pass in [Hz].

    Raises:
        RecordingError: If a column is missing, or a line is not of numbers.
    """
    source = iter(lines)
    names = [name.strip() for name in next(source, "").split(",")]
    joints = range(1, online.arm.dof + 1)
    headings = ["time", *(f"q_{j}" for j in joints), *WRENCH_NAMES]
    if missing := [name for name in headings if name not in names]:
        raise RecordingError(
            f"The first line names no column {missing[0]!r}. It must name time, q_1 …, "
            "qd_1 …, fx, fy, fz, tx, ty, tz."
        )
    columns = {
        quantity: [names.index(f"{quantity}_{j}") for j in joints]
        for quantity in ("q", "qd", "qdd")
        if all(f"{quantity}_{j}" in names for j in joints)
    }
    force = [names.index(name) for name in WRENCH_NAMES]
    when = names.index("time")
    before: tuple[float, list[np.ndarray]] | None = None
    for number, line in enumerate(source, start=2):
        if not line.strip():
            continue
        try:
            values = np.array([float(x) for x in line.split(",")])
        except ValueError:
            values = np.zeros(0)
        if values.size != len(names) or not np.all(np.isfinite(values)):
            raise RecordingError(f"Line {number} does not hold {len(names)} numbers.")
        time = float(values[when])
        rates = [values[columns["q"]]]
        for k, quantity in enumerate(("qd", "qdd")):
            if quantity in columns:
                rates.append(values[columns[quantity]])
            elif before is None or time <= before[0]:
                rates.append(np.zeros(online.arm.dof))
            else:
                step = time - before[0]
                slope = (rates[k] - before[1][k]) / step
                weight = 1.0 - np.exp(-2.0 * np.pi * cutoff_hz * step)
                rates.append(before[1][k + 1] + weight * (slope - before[1][k + 1]))
        q, qd, qdd = rates
        online.update(q, qd, qdd, values[force])
        before = time, rates
        yield time


# Prior and noise.


def six_numbers(values: ArrayLike, name: str) -> Float[np.ndarray, " 6"]:
    """Return six numbers, from themselves or from one for force and one for torque."""
    array = np.asarray(values, dtype=float).ravel()
    six = np.repeat(array, 3) if array.size == 2 else np.broadcast_to(array, (6,))
    if not np.all(np.isfinite(six)) or np.any(six < 0):
        raise ArgumentError(f"{name} must be finite and not negative.")
    return six


def scaled_prior(
    prior: InertialParameters | LoadEstimate | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and covariance of the prior, in units of SCALE."""
    wide = np.diag((PRIOR_STD / SCALE) ** 2)
    if prior is None:
        return np.zeros(10), wide
    if isinstance(prior, InertialParameters):
        return prior.vector / SCALE, wide
    if not prior.is_complete:
        raise ArgumentError("A prior needs all ten parameters; this estimate has not.")
    return prior.parameters.vector / SCALE, prior.covariance / np.outer(SCALE, SCALE)


# Detection of a changed load: a cumulative-sum test, its delay and false alarms.


class Detection(NamedTuple):
    """What a detector promises.

    Attributes:
        delay: Mean time from a change to its alarm in [s].
        false_alarms_per_hour: Bound on alarms without a change.
    """

    delay: float
    false_alarms_per_hour: float


class ChangeDetector:
    """Page's cumulative-sum test on the normalised squared innovation.

    While nothing changes νᵀ S⁻¹ ν is χ² with as many degrees of freedom as channels:
    its mean is their number. The test adds up its excess, relative to that mean, over a
    slack, and a sum above the threshold is a change. The mean level is tracked slowly,
    so that a model that is never quite right does not count as change.

    With the defaults and six channels, white noise practically never raises an alarm
    (`detection`). Model errors may, so `OnlineLoad` confirms a change by its size.

    Args:
        channels: Number of channels.
        rate_hz: Samples per second.
        threshold: Sum at which a change is detected: at the largest step, 12 samples.
        slack: Multiple of the mean level that is subtracted from every sample.
        hold_off: Time after a change without another one, in [s], for the estimate to
            settle on the new load.
    """

    def __init__(
        self,
        channels: int,
        rate_hz: float,
        threshold: float = 60.0,
        slack: float = 3.0,
        hold_off: float = 0.2,
    ) -> None:
        self.threshold = threshold
        self.slack = slack
        self._channels, self.rate_hz = channels, rate_hz
        self.level_rate = 1.0 / (2.0 * rate_hz)  # the level follows within 2 s
        self.hold_off = round(hold_off * rate_hz)
        # One outlier alone must not sum up to a change.
        self.largest_ratio = 8.0
        self.restart()
        self.level = 1.0

    def detection(self, strength: float, correlation: float = 1.0) -> Detection:
        """How soon a change is seen, and how often there is an alarm without one.

        A change of strength λ, the squared mean of the normalised innovation, adds
        (n + λ) / n − slack a sample on average, up to the largest step. Without one the
        rate of alarms is at most exp(−θ · threshold) a sample, θ the root of
        E exp(θ (χ²ₙ / n − slack)) = 1 (Wald 1947, Lorden 1971); noise that repeats
        itself over c samples adds up c times as fast, and divides the exponent by c.

        Args:
            strength: λ; infinite delay if it is too small to be seen.
            correlation: Samples over which noise repeats itself.
        """
        from scipy.optimize import brentq

        n = self._channels
        gain = min(1.0 + strength / n, self.largest_ratio) - self.slack
        samples = self.threshold / gain + 1.0 if gain > 0.0 else np.inf
        # log E exp(θ χ²/n) = −n/2 log(1 − 2θ/n), finite up to n/2.
        theta = brentq(
            lambda x: -0.5 * n * np.log1p(-2.0 * x / n) - x * self.slack,
            1e-3,
            0.5 * n * (1.0 - 1e-12),
        )
        exponent = theta * self.threshold / max(correlation, 1.0)
        alarms = 3600.0 * self.rate_hz * float(np.exp(-exponent))
        return Detection(float(samples) / self.rate_hz, alarms)

    def restart(self) -> None:
        """Start again after a change."""
        self.sum = 0.0
        self._samples = 0
        self.since = 0

    def accept_level(self) -> None:
        """Raise the level to what looked like a change, and go on."""
        if self.since:
            raised = self.level * (self.slack + self.sum / self.since) / self.slack
            self.level = max(self.level, raised)
        self.sum, self.since = 0.0, 0

    def take(self, distance: float) -> bool:
        """Take one sample's νᵀ S⁻¹ ν; return whether the load has changed."""
        self._samples += 1
        ratio = distance / (self._channels * self.level)
        ratio = min(ratio, self.largest_ratio)
        total = self.sum + (ratio - self.slack)
        if total <= 0.0 or self._samples <= self.hold_off:
            self.sum, self.since = 0.0, 0
            self.level *= 1.0 + self.level_rate * (ratio - 1.0)
            self.level = max(self.level, 1.0)
            return False
        self.sum, self.since = total, self.since + 1
        return total > self.threshold

    def take_block(self, distances: np.ndarray) -> int:
        """Take a block; return the index at which the load changed, or −1."""
        for i, value in enumerate(distances.tolist()):
            if self.take(value):
                return i
        return -1
