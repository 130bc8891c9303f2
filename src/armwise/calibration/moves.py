"""Moves of arms in their readings' units: senses of rotation, PD control, waves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.sensor_control import Bench, SensorPD, Trace
from armwise.calibration.stages import find_senses
from armwise.calibration.structure import Structure
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError, RecordingError
from armwise.motions import Motion, Triangle
from armwise.recordings import Recording

if TYPE_CHECKING:
    from jaxtyping import Float


@dataclass(frozen=True)
class Moves:
    """How the arm is moved; times in [s], distances as fractions of the full scale.

    Attributes:
        amplitude: Reach of the waves.
        period: Of a joint's wave; others differ from it, so that no pair repeats.
        together: Length of one move of all joints.
        longest: Time in motion after which it ends, sure or not.
        stiffness: Natural frequency of PD control in [rad/s].
        push: Largest fraction of the effort limits used to find directions.
        gentlest: Fraction of that to begin with.
        cutoff_hz: Low-pass of readings and torques for the estimation in [Hz].
    """

    # A fifth of the scale is left for tracking errors.
    amplitude: float = 0.8
    # Slow: inertia and viscous friction are small beside gravity.
    period: float = 7.0
    together: float = 20.0
    longest: float = 400.0
    # Half of what a joint behind a gear's spring bears at a few hundred hertz.
    stiffness: float = 30.0
    # Enough to overcome gears' friction, too little to hurt in a hundredth of a second.
    push: float = 0.4
    gentlest: float = 0.1
    cutoff_hz: float = 5.0

    def __post_init__(self) -> None:
        if not 0.0 < self.amplitude <= 1.0:
            raise ArgumentError("amplitude is a fraction of the full scale, 0 to 1.")
        for name in ("period", "together", "longest", "stiffness", "cutoff_hz"):
            if not getattr(self, name) > 0.0:
                raise ArgumentError(f"{name} must be positive.")
        if not (0.0 < self.push <= 1.0 and 0.0 < self.gentlest <= 1.0):
            raise ArgumentError("push and gentlest are fractions, 0 to 1.")


_SPEED = 0.5
"""Fraction of the joints' speed limits that waves may reach."""

_LEAST_TURN = 0.1
"""Angle in [rad] a joint turns by at least between the middle and the end of its scale:
descriptions without the motors' inertia would suggest a hundred times too much."""

_HARDLY = 0.5
"""Fraction of its reference's span below which a joint does not follow."""


_RINGING = 0.1
"""Root mean square of torques about a smooth curve, as a fraction of the effort limit,
from which on a joint rings: loops beyond their limit grow to all of it within a second,
noise of a reading's last bits makes a hundredth."""

_SOFTEST = 3
"""Times feedback is halved: an eighth does not hold an arm up any more."""


@dataclass(frozen=True, eq=False)
class _Ramp:
    """From readings to others in a time in [s], at rest at both ends."""

    start: Float[np.ndarray, "batch dof"]
    end: Float[np.ndarray, " dof"]
    duration: float

    def __call__(self, t: float) -> tuple[np.ndarray, ...]:
        z = min(t / self.duration, 1.0)
        s = z**3 * (10.0 - 15.0 * z + 6.0 * z**2)
        still = np.zeros_like(self.start)
        return self.start + (self.end - self.start) * s, still, still


class Mover:
    """Moves arms side by side, all alike, in their readings' units.

    Attributes:
        gains: First guess of each |α| in [rad] per unit of the scaled reading.
        time: Spent in motion in [s].
    """

    def __init__(
        self, structure: Structure, bench: Bench, moves: Moves, effort: np.ndarray
    ) -> None:
        self.bench, self.moves = bench, moves
        self.names = structure.arm.coordinate_names
        inertia = find_senses(bench, moves.push * effort, moves.gentlest)
        free, held = _inertias(structure)
        self.gains: Float[np.ndarray, "batch dof"] = np.clip(
            inertia / free, _LEAST_TURN, _half_ranges(structure.arm)
        )
        load = _largest_weights(structure.arm) * self.gains
        self._pd = _feedback(inertia, held / free, load, bench, moves.stiffness, effort)
        speed = structure.arm.limits("velocity")
        fastest = np.where(np.isfinite(speed), _SPEED * speed, np.inf) / self.gains
        self._shortest = 4.0 * moves.amplitude / fastest.min(axis=0)
        self.time = 0.0
        self._effort, self._rang = effort, False
        self._halved = np.zeros_like(inertia, dtype=int)
        self.go_to(np.zeros(len(self.names)))

    @property
    def lost(self) -> dict[int, RecordingError]:
        """Why an arm does not move any more, by its index."""
        return self.bench.lost

    def go_to(self, target: np.ndarray) -> None:
        """Go slowly to scaled readings and rest there."""
        while True:
            start = self.bench.x.copy()
            distance = float(np.abs(target - start).max())
            # At most the speed of a wave.
            duration = max(0.5, 0.5 * distance * self.moves.period)
            ramp = _Ramp(start, target, duration)
            if self._run(ramp, duration + 0.3) is not None:
                return

    def wave(
        self,
        center: np.ndarray,
        amplitude: np.ndarray,
        duration: float,
        order: int = 0,
    ) -> Triangle:
        """Triangular waves about scaled readings; periods differ from joint to joint.

        Args:
            center: Middle of each joint's wave.
            amplitude: Its reach; zero for joints that are held.
            duration: In [s].
            order: Other numbers shuffle the periods.
        """
        n = center.size
        # Multiples of the golden ratio, modulo one, are spread most evenly: no two
        # joints keep step for long.
        spread = np.mod((np.arange(n) + 1 + order * n) * 0.618034, 1.0)
        periods = np.maximum(self.moves.period * (0.75 + 0.75 * spread), self._shortest)
        rounding = 0.05 * periods.min()
        return Triangle(center, amplitude, periods, duration, 0.0, rounding)

    def follow(self, motion: Triangle) -> Trace:
        """Go to the middle of a wave, follow it, and return what was recorded."""
        while True:
            self.go_to(motion.center)
            trace = self._run(motion, motion.duration)
            if trace is not None:
                return trace

    def _run(self, motion: Motion | _Ramp, duration: float) -> Trace | None:
        """Follow a motion; None where an arm rang, whose feedback is then softer."""
        self._was_rough = np.zeros_like(self._halved, dtype=bool)
        trace = self.bench.follow(self._pd, motion, duration, rings=self._rings)
        self.time += len(trace.time) * self.bench.period
        return None if self._rang else trace

    def _rings(self, u: Float[np.ndarray, "samples batch dof"]) -> bool:
        """Whether an arm rings; halves the feedback of the joint that does most.

        Inertias are measured in the posture at power-up. Elsewhere a joint may have a
        third of it, so that damping that was right exceeds what the delay allows.
        """
        basis = np.linalg.qr(np.vander(np.linspace(-1.0, 1.0, len(u)), 4))[0]
        # A cubic stands for the motion's own torque.
        smooth = np.tensordot(basis, np.tensordot(basis.T, u, axes=1), axes=1)
        rough = np.sqrt(np.mean((u - smooth) ** 2, axis=0)) / self._effort
        rough[list(self.lost)] = 0.0
        is_rough = rough > _RINGING
        # Twice on end: the jerk of a start is over by then.
        lasting = np.where(is_rough & self._was_rough, rough, 0.0)
        self._was_rough = is_rough
        arms = np.flatnonzero(lasting.any(axis=1))
        for b in arms:
            self._soften(int(b), int(lasting[b].argmax()))
        self._rang = bool(arms.size)
        return self._rang

    def _soften(self, b: int, j: int) -> None:
        """Halve a joint's feedback; give the arm up where that has not helped."""
        self._halved[b, j] += 1
        for gain in self._pd.gains:
            gain[b, j] *= 0.5
        if self._halved[b, j] > _SOFTEST:
            self.bench.lose(
                np.arange(len(self._halved)) == b,
                f"{self.names[j]} rings under feedback, however soft. Its readings or "
                "torques are too late, or too noisy: filter them less, or more.",
            )

    def recording(self, trace: Trace, b: int, amplitude: np.ndarray) -> Recording:
        """One arm's readings and torques along a wave; refuses joints left behind."""
        span = np.ptp(trace.x[:, b], axis=0)
        travel = np.ptp(trace.reference[:, b], axis=0)
        slack = (amplitude > 0.0) & (span < _HARDLY * travel)
        if slack.any():
            j = int(slack.argmax())
            raise RecordingError(
                f"{self.names[j]} hardly moves: its reading spans "
                f"{span[j]:.2g} of the {travel[j]:.2g} of its reference. Something "
                "holds it, its effort limit is too low, or its sensor does not follow."
            )
        return self.bench.recording(trace, b)


_DAMPING = 0.7
"""Damping ratio of PD control."""

_LARGEST_LAG = 0.8
"""Damping times delay from which on a loop rings: a pure delay allows π/2 of it. With
less damping long chains swing slowly."""

_UPRIGHT = 8.0
"""Stiffness over gravity's, which pulls an arm that stands up away from there: one is
needed for a joint by itself, four for chains of six whose joints all bend one way."""

_WEIGHING = 1.0
"""Rate in [1/s] at which the weight of the arm is learnt: far below PD's own. Gravity
takes most of the stiffness of a chain that stands upright; at 3/s six in ten chains of
six links swing there, linearised, at 1/s none of 150."""


def _feedback(
    inertia: Float[np.ndarray, "batch dof"],
    heavier: Float[np.ndarray, " dof"],
    load: Float[np.ndarray, "batch dof"],
    bench: Bench,
    stiffness: float,
    effort: Float[np.ndarray, " dof"],
) -> SensorPD:
    """PD gains and those of the integral, in the readings' units.

    At high frequencies a joint turns as if the others were free; slowly, it carries
    them all. Damping is bounded by the first, stiffness by the second.

    Args:
        inertia: Of each joint, the others free.
        heavier: How much larger it is, the others held.
        load: Gravity's largest torque in [N m] per unit of the reading.
        bench: With the loop's delays.
        stiffness: Natural frequency in [rad/s].
        effort: Largest torques in [N m].
    """
    rate = np.minimum(2.0 * _DAMPING * stiffness * heavier, _LARGEST_LAG / bench.delay)
    corner = np.minimum(
        0.5 * stiffness / _DAMPING, rate / (4.0 * _DAMPING**2 * heavier)
    )
    kd = inertia * rate
    # Long chains ring a little; else those that stand up would fall over.
    kp = np.maximum(kd * corner, _UPRIGHT * load)
    return SensorPD(kp, kd, kp * np.minimum(_WEIGHING, 0.2 * kp / kd), effort)


def _half_ranges(arm: Arm) -> Float[np.ndarray, " dof"]:
    """Half of what each joint may turn in [rad]; half a turn without limits."""
    half = 0.5 * (arm.limits("upper") - arm.limits("lower"))
    return np.where(np.isfinite(half) & (half > _LEAST_TURN), half, np.pi)


def _inertias(structure: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Each joint's inertia with the others free, and held, in [kg m²], as described.

    Medians over random postures. Ones where the description has no masses.
    """
    arm = structure.arm
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, arm.dof))
    if not np.any(arm.parameters[arm.layout.links]):
        return np.ones(arm.dof), np.ones(arm.dof)
    M = Dynamics(arm).mass_matrix(q)
    free = 1.0 / np.diagonal(np.linalg.inv(M), axis1=1, axis2=2)
    held = np.diagonal(M, axis1=1, axis2=2)
    return np.median(free, axis=0), np.median(held, axis=0)


_LEAST_LOAD = 0.05
"""Load of a joint that gravity does not act on, as a fraction of the largest: motors
and gears are made in steps."""


def gravity_loads(arm: Arm) -> Float[np.ndarray, " dof"]:
    """Load of each joint in [N m] that motors are chosen for."""
    load = _largest_weights(arm)
    return np.maximum(load, max(_LEAST_LOAD * float(load.max()), 1e-3))


def _largest_weights(arm: Arm) -> Float[np.ndarray, " dof"]:
    """The largest gravity torque of each joint in [N m], over random postures."""
    q = np.random.default_rng(0).uniform(-np.pi, np.pi, (200, arm.dof))
    return np.asarray(np.abs(Dynamics(arm).gravity_torque(q)).max(axis=0))


def usual_effort(arm: Arm) -> Float[np.ndarray, " dof"]:
    """Effort limits in [N m]; where there are none, four times the joint's load.

    That is what gears and motors are usually chosen for.
    """
    effort = arm.limits("effort")
    is_limited = np.isfinite(effort) & (effort > 0.0)
    return np.where(is_limited, effort, 4.0 * gravity_loads(arm))
