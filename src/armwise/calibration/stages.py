"""Stages of a calibration by motion: sense of rotation, friction, gains, offsets.

Each stage moves the plant and passes on what the next one needs. An adaptation ends
when its own uncertainty is small enough: under least squares with forgetting P is the
inverse of the information gathered, so that with prediction errors of spectral density
S the parameters' covariance is S P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.gravity_expansion import (
    CosineFit,
    GravityExpansion,
    fit_exactly,
)
from armwise.calibration.sensor_control import (
    Bench,
    Parabola,
    SensorComposite,
    SensorPD,
    Trace,
)
from armwise.calibration.structure import Structure
from armwise.control import UpdateLaw
from armwise.errors import NotIdentifiable, RecordingError
from armwise.motions import Triangle

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Plan:
    """How the arm is moved; times in [s], amplitudes of the scaled reading.

    Attributes:
        amplitude: Of the triangular waves, as a fraction of the sensors' scale.
        friction_period: Of the slow wave that shows friction.
        period: Of the wave of the first joint; others differ by the golden ratio.
        gain_time: Longest adaptation of one joint's parabola.
        offset_time: Longest adaptation of all joints together.
        push: Fraction of the effort limit used to find directions.
        stiffness: Natural frequency of PD control in [rad/s].
        forgetting: λ0 in [1/s].
        gain_std: Relative standard deviation of a gain at which its adaptation ends.
        offset_std: Standard deviation of offsets in [rad] at which theirs ends.
    """

    # A fifth of the scale is left for tracking errors.
    amplitude: float = 0.8
    # Slow: inertia and viscous friction are small beside dry friction.
    friction_period: float = 12.0
    period: float = 5.0
    gain_time: float = 30.0
    offset_time: float = 45.0
    # Enough to overcome friction, too little to hurt in a hundredth of a second.
    push: float = 0.2
    stiffness: float = 60.0
    # Forgetting over 20 s, four waves: the start, far off, is forgotten by then.
    forgetting: float = 0.05
    # Together less than half of the 1.5° over the whole range that are asked for.
    gain_std: float = 0.012
    offset_std: float = float(np.deg2rad(0.15))


_ATTEMPTS = 3
"""How often an adaptation that diverged is tried, each time ten times more slowly."""

_LARGEST_GAIN_STD = 0.3
"""Relative standard deviation of a gain beyond which gravity does not determine it: at
a third, a curvature of zero is within three standard deviations."""

_LARGEST_FRICTION = 0.8
"""Dry friction over half the range of a joint's torque from which on gravity is hidden:
the rest would be less than the friction's own variation."""

_INITIAL_GAINS = (0.1, 1.0, 3.0, 8.0)
"""P0 of inertia, a, b and c of one joint (`astley1996` §5.2.6)."""

_GOLDEN_RATIO = 1.618
"""Between the periods of joints that move together: the least rational number, so that
their waves never repeat as a pair."""


@dataclass(frozen=True, eq=False)
class GainStage:
    """Result of one joint's adaptation, arm by arm.

    Attributes:
        trace: Recorded run.
        fits: The cosines.
        std: Relative standard deviations of the gains.
    """

    trace: Trace
    fits: tuple[CosineFit, ...]
    std: Float[np.ndarray, " batch"]


@dataclass(frozen=True, eq=False)
class OffsetStage:
    """Result of the adaptation of all joints together.

    Attributes:
        trace: Recorded run.
        beta, std: Offsets in [rad] and their standard deviations.
    """

    trace: Trace
    beta: Float[np.ndarray, "batch dof"]
    std: Float[np.ndarray, "batch dof"]


class Stages:
    """Runs the stages on a bench.

    Attributes:
        friction: Coulomb friction measured so far in [N m].
        kp, kd: Feedback gains in the readings' units.
    """

    def __init__(
        self, structure: Structure, bench: Bench, plan: Plan, effort: np.ndarray
    ) -> None:
        self.structure, self.bench, self.plan, self.effort = (
            structure,
            bench,
            plan,
            effort,
        )
        self._names = structure.arm.coordinate_names
        self.friction = np.zeros_like(bench.x)
        self.kp = self.kd = np.zeros_like(bench.x)

    def find_feedback(self) -> None:
        """Measure senses of rotation and inertias; set feedback gains from them."""
        inertia = find_senses(self.bench, self.plan.push * self.effort)
        self.kp = inertia * self.plan.stiffness**2
        self.kd = 2.0 * 0.7 * inertia * self.plan.stiffness  # damping ratio 0.7
        self._go_to_middle()

    def measure_friction(self, j: int) -> Trace:
        """Move one joint slowly to and fro; half the torques' difference (Eq. 5.2)."""
        period = self.plan.friction_period
        pd = SensorPD(self.kp, self.kd)
        trace = self.bench.follow(pd, self.wave((j,), period, period), 1.25 * period)
        x, u = trace.x[:, :, j], trace.u[:, :, j]
        self._check_moved(j, x)
        direction = np.sign(trace.reference_speed[:, :, j])
        for b in range(x.shape[1]):
            self.friction[b, j] = _hysteresis(x[:, b], u[:, b], direction[:, b])
        load = np.ptp(u, axis=0).mean() / 2.0
        if np.any(self.friction[:, j] > _LARGEST_FRICTION * load):
            raise NotIdentifiable(
                f"{self._names[j]}: dry friction of "
                f"{self.friction[:, j].max():.3g} N m is most of its torque; gravity "
                "cannot be distinguished from it."
            )
        return trace

    def adapt_parabola(self, j: int) -> GainStage:
        """Adapt [α m l², a, b, c] of one joint, the others held (Eq. 4.37)."""
        motion = self.wave((j,), self.plan.period, self.plan.gain_time)
        for attempt in range(_ATTEMPTS):
            gain = np.array(_INITIAL_GAINS) / 10.0**attempt
            controller = self.adaptive(Parabola(j), (j,), gain)
            settled = Settled(
                lambda c=controller: _gain_std(c),  # type: ignore[misc]
                self.plan.gain_std,
                self.plan.period,
            )
            trace = self.bench.follow(controller, motion, self.plan.gain_time, settled)
            std = _gain_std(controller)
            if not controller.adaptation.stopped.any() and np.all(
                std < _LARGEST_GAIN_STD
            ):
                break
            self._go_to_middle()
        else:
            raise NotIdentifiable(
                f"{self._names[j]}: gravity does not bend its "
                "torque: it acts along the joint's axis, or the joint moved too little "
                "or not long enough."
            )
        reach = (float(trace.x[:, :, j].min()), float(trace.x[:, :, j].max()))
        rows = controller.adaptation.parameters[:, 1:]
        self._go_to_middle()
        return GainStage(trace, tuple(fit_exactly(row, reach) for row in rows), std)

    def adapt_offsets(self, gains: Float[np.ndarray, "batch dof"]) -> OffsetStage:
        """Adapt all joints together, gravity expanded by the offsets' cosines."""
        n, plan = gains.shape[1], self.plan
        # A torque in the sensor's sense turns the joint by `sense`, like the reading.
        expansion = GravityExpansion(self.structure, gains, self.bench.sense)
        inertial = expansion.count - 2 * n
        gain = np.concatenate([np.full(2 * n, 1.0), np.full(inertial, 0.01)])
        joints = tuple(range(n))
        controller = self.adaptive(expansion, joints, gain)

        def std() -> np.ndarray:
            values = controller.adaptation.parameters
            pairs = values[:, : 2 * n].reshape(len(values), n, 2)
            return direction_std(pairs, covariance(controller))

        trace = self.bench.follow(
            controller,
            self.wave(joints, plan.period, plan.offset_time),
            plan.offset_time,
            Settled(std, plan.offset_std, plan.period),
        )
        beta = expansion.offsets(controller.adaptation.parameters)
        return OffsetStage(trace, beta, std())

    def adaptive(
        self,
        regressor: Parabola | GravityExpansion,
        joints: tuple[int, ...],
        gain: np.ndarray,
    ) -> SensorComposite:
        """Composite control with half of PD's gains, as the thesis advises."""
        return SensorComposite(
            regressor,
            joints,
            UpdateLaw.bounded_gain(gain, self.plan.forgetting, 100.0, 2e-3),
            rate=0.5 * self.plan.stiffness,
            kd=0.5 * self.kd,
            friction=self.friction,
            hold_kp=self.kp,
            effort=self.effort,
        )

    def wave(self, joints: tuple[int, ...], period: float, duration: float) -> Triangle:
        """Triangular waves of some joints, their periods a golden ratio apart."""
        n = self.bench.x.shape[1]
        amplitude = np.zeros(n)
        amplitude[list(joints)] = self.plan.amplitude
        periods = period * _GOLDEN_RATIO ** -np.arange(n)
        rounding = 0.05 * periods.min()
        return Triangle(np.zeros(n), amplitude, periods, duration, 0.0, rounding)

    def _check_moved(self, j: int, x: Float[np.ndarray, "samples batch"]) -> None:
        if np.any(np.ptp(x, axis=0) < 0.5 * self.plan.amplitude):
            raise RecordingError(
                f"{self._names[j]} hardly moves: its reading spans "
                f"{np.ptp(x, axis=0).min():.2g} of the {2 * self.plan.amplitude:.2g} "
                "of its reference. Something holds it, or its sensor does not follow."
            )

    def _go_to_middle(self) -> None:
        """Return slowly to readings of zero."""
        start, pd = self.bench.x.copy(), SensorPD(self.kp, self.kd)

        def ramp(t: float) -> tuple[np.ndarray, ...]:
            z = min(t / 1.5, 1.0)
            s = z**3 * (10.0 - 15.0 * z + 6.0 * z**2)  # at rest at both ends
            still = np.zeros_like(start)
            return start * (1.0 - s), still, still

        self.bench.follow(pd, ramp, 2.0)


def _gain_std(controller: SensorComposite) -> Float[np.ndarray, " batch"]:
    coefficients = controller.adaptation.parameters[:, 1:]
    return parabola_gain_std(coefficients, covariance(controller)[:, 1:, 1:])


def _hysteresis(x: np.ndarray, u: np.ndarray, direction: np.ndarray) -> float:
    """Half the torque between going and coming, at the same reading."""
    # Without the start, and away from the ends, where the direction reverses. A cubic
    # stands for gravity, whatever its phase.
    late = slice(len(x) // 6, None)
    inner = np.abs(x[late] - x[late].mean()) < 0.4 * np.ptp(x[late])
    powers = [np.ones(inner.sum()), *(x[late][inner] ** k for k in (1, 2, 3))]
    A = np.stack([*powers, direction[late][inner]], axis=1)
    return float(max(np.linalg.lstsq(A, u[late][inner], rcond=None)[0][-1], 0.0))


# Sense of rotation and inertia of each joint, from a pattern of short pushes.

_PULSE = 0.005
"""Length of a push in [s]: a joint moves by a fraction of a degree."""

_SIGNIFICANT = 5.0
"""Standard deviations that a response must differ from zero by: a t-test with five
degrees of freedom, which noise alone passes in one of 250 joints that do not respond at
all; the joint is then seen not to move."""

_HARDER = 2.0
"""Factor between one series of pushes and the next, for joints that did not respond."""


_SERIES = 3
"""Series of the hardest pushes after the first of them, before a joint is given up."""


def find_senses(
    bench: Bench, effort: np.ndarray, gentlest: float = 1.0
) -> Float[np.ndarray, "batch dof"]:
    """Set the bench's sense of every joint; return the joints' inertias.

    All joints are pushed at once, each by signs of its own: an arm that nothing holds
    yet falls while it is pushed, and must not for long. Joints that responded are held
    while the others are pushed harder.

    Args:
        bench: With a plant at rest.
        effort: Torque to push each joint with at most in [N m].
        gentlest: Fraction of it to begin with.

    Returns:
        Inertia of each joint in [N m s²] per unit of the reading, the others free.

    Raises:
        NotIdentifiable: If a joint does not respond.
    """
    inertia = np.full_like(bench.x, np.nan)
    names, fraction, hardest = bench.plant.joint_names, gentlest, 0
    total, weight = np.zeros_like(inertia), np.zeros_like(inertia)
    while True:
        # Heavy joints answer to longer pushes, once harder ones are not allowed.
        pulse = _PULSE * _HARDER**hardest
        response, std = _responses(bench, fraction * effort, inertia, pulse)
        is_pushed = np.isnan(inertia)
        # Series add up, each weighted by its own precision.
        # No deviation at all: a reading that does not change.
        precision = np.where(is_pushed & (std > 0.0), std, np.inf) ** -2.0
        total += response * precision
        weight += precision
        is_clear = is_pushed & (np.abs(total) > _SIGNIFICANT * np.sqrt(weight))
        bench.sense[is_clear] = np.sign(total[is_clear])
        inertia[is_clear] = (weight / np.abs(total))[is_clear]
        if np.isfinite(inertia).all():
            return inertia
        hardest += fraction >= 1.0
        if hardest > _SERIES:
            j = int(np.isnan(inertia).any(axis=0).argmax())
            raise NotIdentifiable(
                f"{names[j]} does not respond to a push of {effort[j]:.3g} N m: its "
                "sensor does not move, or friction holds it."
            )
        fraction = min(1.0, _HARDER * fraction)


def _responses(
    bench: Bench, effort: np.ndarray, inertia: np.ndarray, pulse: float
) -> tuple[np.ndarray, np.ndarray]:
    """Acceleration of each reading for one [N m], arm by arm, and its deviation.

    Zero for joints of known inertia in every arm, which are held meanwhile.
    """
    is_held, start = np.isfinite(inertia), bench.x.copy()
    pushed = np.flatnonzero(~is_held.all(axis=0))
    steps = max(1, round(pulse / bench.period))
    signs = _push_signs(pushed.size)
    stiff = np.where(is_held, inertia, 0.0) * _HOLDING**2
    readings = [start]
    for row in signs:
        push = np.zeros(effort.size)
        push[pushed] = row * effort[pushed]
        for _ in range(steps):
            hold = stiff * (start - bench.x - 1.4 / _HOLDING * bench.speed)
            bench.step(np.where(is_held, hold, push))
        readings.append(bench.x)
    change = np.diff(np.array(readings), n=2, axis=0) / (steps * bench.period) ** 2
    late = min(_LATENESS, key=lambda x: _cost(signs, effort[pushed], x, change))
    A, fit, variance = _fitted(signs, effort[pushed], late, change)
    spread = np.linalg.inv(A.T @ A)
    response, std = np.zeros_like(start), np.ones_like(start)
    for k, j in enumerate(pushed):
        response[:, j] = fit[k, :, j]
        std[:, j] = np.sqrt(variance[:, j] * spread[k, k])
    return response, std


def _fitted(
    signs: np.ndarray, effort: np.ndarray, late: float, change: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Columns, their coefficients, and the variance they leave of each reading."""
    A = _push_columns(signs, effort, late)
    fit = np.tensordot(np.linalg.pinv(A), change, axes=1)
    residual = change - np.tensordot(A, fit, axes=1)
    return A, fit, np.sum(residual**2, axis=0) / (len(A) - A.shape[1])


def _cost(
    signs: np.ndarray, effort: np.ndarray, late: float, change: np.ndarray
) -> float:
    """Minus the logarithm of the likelihood of all readings, each in its own units."""
    A, _, variance = _fitted(signs, effort, late, change)
    # Readings that do not change at all say nothing.
    logarithms = np.log(np.maximum(variance, 1e-300)).sum()
    doubt = 0.0 if late == 0.5 else _DOUBT
    return float(0.5 * len(A) * logarithms + doubt)


_DOUBT = 15.0
"""Logarithm of the odds that torques are held exactly: with few rows a wrong delay
fits by chance, and inertias come out three times too small."""

_LATENESS = np.linspace(0.0, 1.0, 11)
"""How much of a push shows one reading later that are tried: a half where torques are
held exactly from one reading to the next, else with the delays of a bus, or the steps
of a simulator. A wrong one leaves residuals that grow with the push."""

_HOLDING = 30.0
"""Natural frequency in [rad/s] at which joints of known sense are held meanwhile."""


def _push_columns(
    signs: Float[np.ndarray, "pulses joints"],
    effort: Float[np.ndarray, " joints"],
    late: float = 0.5,
) -> Float[np.ndarray, "rows columns"]:
    """What second differences of readings are made of: pushes, and gravity.

    With torque w in one pulse and w' in the next, x'' averages (w + w')/2. Gravity
    accelerates a reading by a constant, and as the arm falls by a parabola.
    """
    pushes = effort * ((1.0 - late) * signs[1:] + late * signs[:-1])
    ramp = np.linspace(-1.0, 1.0, len(pushes))
    return np.column_stack([pushes, np.ones_like(ramp), ramp, ramp**2])


@cache
def _push_signs(joints: int) -> Float[np.ndarray, "pulses joints"]:
    """Signs of successive pushes, one column per joint, that tell joints apart."""
    # Nine pulses more than joints leave five degrees of freedom for the test; the best
    # of two hundred random patterns is near an orthogonal one.
    random, best, lowest = np.random.default_rng(0), None, np.inf
    for _ in range(200):
        signs = random.choice([-1.0, 1.0], (joints + 9, joints))
        A = _push_columns(signs, np.ones(joints))
        if np.linalg.matrix_rank(A) < A.shape[1]:
            continue
        # Even sums leave joints about where they were.
        cost = np.trace(np.linalg.inv(A.T @ A)) + np.abs(signs.sum(axis=0)).max()
        if cost < lowest:
            best, lowest = signs, cost
    assert best is not None
    return best


# Uncertainty of adapted parameters, and when it is small enough.

_WAVES = 2.5
"""Waves that must have passed before an adaptation may end: one to forget the start,
one and a half for every reading in both directions."""


def covariance(controller: SensorComposite) -> Float[np.ndarray, "batch p p"]:
    """Covariance S P of adapted parameters: prediction errors times gain matrix."""
    density = controller.error_density.mean(axis=-1)
    spread: np.ndarray = density[:, None, None] * controller.adaptation.gain
    return spread


def parabola_gain_std(
    coefficients: Float[np.ndarray, "batch 3"], spread: Float[np.ndarray, "batch 3 3"]
) -> Float[np.ndarray, " batch"]:
    """Relative standard deviation of α, α² = −2 c/m, m = a − b²/4c, of a + b q + c q².

    By propagation of errors: half the gradient of log(−c/m). Infinite where c and m
    have the same sign, as no cosine's parabola has.
    """
    a, b, c = coefficients.T
    c = np.where(c == 0.0, 1e-300, c)
    m = a - b**2 / (4.0 * c)
    m = np.where(m == 0.0, 1e-300, m)
    slope = np.stack(
        [-0.5 / m, b / (4.0 * c * m), 0.5 / c - b**2 / (8.0 * c**2 * m)], axis=-1
    )
    std = np.sqrt(np.einsum("bi,bij,bj->b", slope, spread, slope))
    return np.where(c * m < 0.0, std, np.inf)


def direction_std(
    pairs: Float[np.ndarray, "batch dof 2"], spread: Float[np.ndarray, "batch p p"]
) -> Float[np.ndarray, "batch dof"]:
    """Standard deviation in [rad] of the steps between successive pairs' directions.

    By propagation of errors: the angle of (x, y) changes by (−y, x)·d(x, y)/(x² + y²).
    """
    batch, n, _ = pairs.shape
    size = np.maximum(np.sum(pairs**2, axis=2), 1e-300)
    slope = np.zeros((batch, n, spread.shape[1]))
    for j in range(n):
        turn = np.stack([-pairs[:, j, 1], pairs[:, j, 0]], axis=-1) / size[:, j, None]
        slope[:, j, 2 * j : 2 * j + 2] = turn
        if j + 1 < n:
            slope[:, j + 1, 2 * j : 2 * j + 2] = -turn
    return np.asarray(np.sqrt(np.einsum("bji,bik,bjk->bj", slope, spread, slope)))


class Settled:
    """Ends an adaptation when its uncertainty is small enough.

    Args:
        uncertainty: Standard deviations now, of every arm.
        enough: What they must come down to.
        period: Of the slowest wave in [s].
    """

    def __init__(
        self, uncertainty: Callable[[], np.ndarray], enough: float, period: float
    ) -> None:
        self._uncertainty, self._enough = uncertainty, enough
        self._earliest = _WAVES * period

    def __call__(self, t: float) -> bool:
        """Whether to end at a time since the beginning in [s]."""
        if t < self._earliest:
            return False
        return bool(np.all(self._uncertainty() < self._enough))
