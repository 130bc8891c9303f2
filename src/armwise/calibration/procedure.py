"""Calibrate by moving: power up, move, know (`astley1996`, whole)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.calibration.bench import Bench, Trace
from armwise.calibration.expansion import Expansion, is_planar_chain
from armwise.calibration.observability import calibratable
from armwise.calibration.polynomial import CosineFit, fit_by_arccos, fit_exactly
from armwise.calibration.sensor_control import (
    Parabola,
    SensorComposite,
    SensorPD,
)
from armwise.calibration.structure import Structure, as_structure
from armwise.control import UpdateLaw
from armwise.errors import ArgumentError, NotIdentifiable
from armwise.motions import Triangle
from armwise.plants import Plant

if TYPE_CHECKING:
    from jaxtyping import Float
    from numpy.typing import ArrayLike

    from armwise.recordings import Recording


@dataclass(frozen=True)
class Plan:
    """How the arm is moved; times in [s], amplitudes of the scaled reading.

    Attributes:
        amplitude: Of the triangular waves, as a share of the sensors' scale.
        friction_period: Of the slow wave that shows friction.
        period: Of the wave of the first joint; others differ by the golden ratio.
        gain_time: Longest adaptation of one joint's parabola.
        offset_time: Of all joints together.
        push: Share of the effort limit used to find directions.
        stiffness: Natural frequency of PD control in [rad/s].
        forgetting: λ0 in [1/s].
        settled: Relative change of a gain in 2 s below which adaptation ends.
    """

    amplitude: float = 0.8
    friction_period: float = 12.0
    period: float = 5.0
    gain_time: float = 30.0
    offset_time: float = 45.0
    push: float = 0.2
    stiffness: float = 60.0
    forgetting: float = 0.05
    settled: float = 1e-3


@dataclass(frozen=True, eq=False)
class AdaptiveCalibration:
    """What the procedure found, one row per arm.

    Attributes:
        alpha, beta: θ = α v + β in [rad/V] and [rad].
        alpha_by_arccos: α as the thesis reads it off the parabola.
        single_phase: Angle of what each joint carries above the horizontal at a reading
            of zero, the other joints held, in [rad].
        friction: Coulomb friction found in [N m].
        traces: What happened, stage by stage.
        recordings: Per arm, volts and torques of every stage.
        evolution: Adapted parameters of the offset stage, now and then.
    """

    alpha: Float[np.ndarray, "batch dof"]
    beta: Float[np.ndarray, "batch dof"]
    alpha_by_arccos: Float[np.ndarray, "batch dof"]
    single_phase: Float[np.ndarray, "batch dof"]
    friction: Float[np.ndarray, "batch dof"]
    traces: dict[str, Trace]
    recordings: list[list[Recording]]
    fits: tuple[tuple[CosineFit, ...], ...]


def calibrate(
    plant: Plant,
    structure: Structure | Arm,
    *,
    posture: ArrayLike,
    full_scale: ArrayLike = 6.0,
    plan: Plan | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> AdaptiveCalibration:
    """Find θ = α v + β of every joint of a plant by moving it, from nothing.

    Friction is measured by a slow wave; each joint moves alone under composite
    adaptive control with gravity as a parabola, which gives α; then all move together
    with gravity expanded by the offsets' cosines and sines, which gives β.

    Args:
        plant: With sensors that give volts; a batch is calibrated at once.
        structure: The arm; a chain of parallel axes across gravity.
        posture: Where a simulated plant is at power-up, in its own coordinates;
            nothing here looks at it.
        full_scale: Reading in [V] the joints may reach, one number or one per joint.
        plan: How to move.
        progress: Called with what is being done and how much of it is done.

    Raises:
        NotIdentifiable: If gravity does not act on a joint, or friction hides it.
    """
    known, plan = as_structure(structure), plan or Plan()
    _check(plant, known)
    tell = progress or (lambda what, share: None)
    scale = np.broadcast_to(np.asarray(full_scale, float), (known.arm.dof,)).copy()
    bench = Bench(plant, scale, posture, cutoff_hz=40.0)
    run = _Run(known, bench, plan, _effort(known.arm))
    tell("directions", 0.0)
    run.find_gains()
    traces = {}
    for j, name in enumerate(known.arm.coordinate_names):
        tell(f"friction of {name}", 0.05 + 0.1 * j)
        traces[f"friction_{j + 1}"] = run.measure_friction(j)
    fits = []
    for j, name in enumerate(known.arm.coordinate_names):
        tell(f"gain of {name}", 0.3 + 0.2 * j)
        trace, found = run.adapt_parabola(j)
        traces[f"gain_{j + 1}"] = trace
        fits.append(found)
    tell("offsets", 0.8)
    return run.finish(fits, traces)


class _Run:
    """The stages, and what each passes on to the next."""

    def __init__(
        self, known: Structure, bench: Bench, plan: Plan, effort: np.ndarray
    ) -> None:
        self.known, self.bench, self.plan, self.effort = known, bench, plan, effort
        self.friction = np.zeros_like(bench.x)
        self.kp = self.kd = np.zeros_like(bench.x)

    def find_gains(self) -> None:
        """Learn directions and inertias; make feedback gains from them."""
        inertia = self.bench.find_sense(self.plan.push * self.effort)
        self.kp = inertia * self.plan.stiffness**2
        self.kd = 2.0 * 0.7 * inertia * self.plan.stiffness
        self._go_to_middle()

    def measure_friction(self, j: int) -> Trace:
        """Move one joint slowly to and fro; half the torques' difference (Eq. 5.2)."""
        motion = self._wave((j,), self.plan.friction_period, self.plan.friction_period)
        pd = SensorPD(self.kp, self.kd)
        trace = self.bench.follow(pd, motion, 1.25 * self.plan.friction_period)
        x, u = trace.x[:, :, j], trace.u[:, :, j]
        way = np.sign(trace.speed[:, :, j])
        for b in range(x.shape[1]):
            self.friction[b, j] = _hysteresis(x[:, b], u[:, b], way[:, b])
        load = np.ptp(u, axis=0).mean() / 2.0
        if np.any(self.friction[:, j] > 0.8 * load):
            raise NotIdentifiable(
                f"{self.known.arm.coordinate_names[j]}: dry friction of "
                f"{self.friction[:, j].max():.3g} N m is most of its torque; gravity "
                "cannot be told from it."
            )
        return trace

    def adapt_parabola(self, j: int) -> tuple[Trace, tuple[CosineFit, ...]]:
        """Adapt [α m l², a, b, c] of one joint, the others held (Eq. 4.37)."""
        gain = np.array([0.1, 1.0, 3.0, 8.0])
        for attempt in range(3):
            law = UpdateLaw.bounded_gain(
                gain / 10.0**attempt, self.plan.forgetting, 100.0, 2e-3
            )
            controller = self._adaptive(Parabola(j), (j,), law)
            motion = self._wave((j,), self.plan.period, self.plan.gain_time)
            trace = self.bench.follow(
                controller, motion, self.plan.gain_time, _Settled(controller, self.plan)
            )
            if not controller.adaptation.stopped.any():
                break
        reach = (float(trace.x[:, :, j].min()), float(trace.x[:, :, j].max()))
        rows = controller.adaptation.parameters[:, 1:]
        self._go_to_middle()
        return trace, tuple(fit_exactly(row, reach) for row in rows)

    def finish(
        self, fits: list[tuple[CosineFit, ...]], traces: dict[str, Trace]
    ) -> AdaptiveCalibration:
        """Adapt all joints together for the offsets, and put everything together."""
        gains = np.array([[fit.gain for fit in row] for row in fits]).T
        sense, n = self.bench.sense, len(fits)
        # Torque in the sensor's sense turns the joint by `sense`: so does the reading.
        expansion = Expansion(self.known, gains * sense, sense)
        law = UpdateLaw.bounded_gain(
            _expansion_gain(expansion, n), self.plan.forgetting, 100.0, 2e-3
        )
        controller = self._adaptive(expansion, tuple(range(n)), law)
        motion = self._wave(tuple(range(n)), self.plan.period, self.plan.offset_time)
        traces["offsets"] = self.bench.follow(controller, motion, self.plan.offset_time)
        alpha = gains * sense / self.bench.scale
        arccos = [
            [fit_by_arccos(_parabola_of(fit), (-1.0, 1.0)).gain for fit in row]
            for row in fits
        ]
        return AdaptiveCalibration(
            alpha=alpha,
            beta=expansion.offsets(controller.adaptation.parameters),
            alpha_by_arccos=np.array(arccos).T * sense / self.bench.scale,
            single_phase=_joint_phase(fits, sense),
            friction=self.friction,
            traces=traces,
            recordings=self.bench.recordings(),
            fits=tuple(fits),
        )

    def _adaptive(
        self, regressor: Parabola | Expansion, joints: tuple[int, ...], law: UpdateLaw
    ) -> SensorComposite:
        """Composite control with half of PD's gains, as the thesis advises."""
        return SensorComposite(
            regressor,
            joints,
            law,
            rate=0.5 * self.plan.stiffness,
            kd=0.5 * self.kd,
            friction=self.friction,
            hold_kp=self.kp,
            effort=self.effort,
        )

    def _wave(
        self, joints: tuple[int, ...], period: float, duration: float
    ) -> Triangle:
        n = self.bench.x.shape[1]
        amplitude = np.zeros(n)
        amplitude[list(joints)] = self.plan.amplitude
        periods = period * 1.618 ** -np.arange(n)
        rounding = 0.05 * periods.min()
        return Triangle(np.zeros(n), amplitude, periods, duration, 0.0, rounding)

    def _go_to_middle(self) -> None:
        """Return slowly to readings of zero."""
        start, pd = self.bench.x.copy(), SensorPD(self.kp, self.kd)

        def ramp(t: float) -> tuple[np.ndarray, ...]:
            share = min(t / 1.5, 1.0)
            s = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
            still = np.zeros_like(start)
            return start * (1.0 - s), still, still

        self.bench.follow(pd, ramp, 2.0)


class _Settled:
    """Ends an adaptation when its gain no longer changes beyond its uncertainty."""

    def __init__(self, controller: SensorComposite, plan: Plan) -> None:
        self._controller, self._plan = controller, plan
        self._before: list[np.ndarray] = []

    def __call__(self, t: float) -> bool:
        values = self._controller.adaptation.parameters
        bend = np.sqrt(np.abs(values[:, 3] / (np.abs(values[:, 1]) + 1e-12)))
        self._before.append(bend)
        if len(self._before) < 5 or t < 0.5 * self._plan.gain_time:
            return False
        recent = np.array(self._before[-5:])
        return bool(np.all(np.ptp(recent, axis=0) < self._plan.settled * recent[-1]))


def _joint_phase(fits: list[tuple[CosineFit, ...]], sense: np.ndarray) -> np.ndarray:
    """The cosine's phase in the joint's own sense: −m cos(x − φ) = m cos(x − φ + π)."""
    phase = np.array([[fit.phase for fit in row] for row in fits]).T
    turned = np.where(sense > 0.0, phase, np.pi - phase)
    return np.asarray(np.angle(np.exp(1j * turned)))


def _expansion_gain(expansion: Expansion, n: int) -> np.ndarray:
    inertial = expansion.count - 2 * n
    return np.concatenate([np.full(2 * n, 1.0), np.full(inertial, 0.01)])


def _parabola_of(fit: CosineFit) -> np.ndarray:
    """The best parabola of a cosine over the scaled reach."""
    q = np.linspace(-1.0, 1.0, 101)
    curve = fit.moment * np.cos(fit.gain * q + fit.phase)
    return np.asarray(np.polynomial.polynomial.polyfit(q, curve, 2))


def _hysteresis(x: np.ndarray, u: np.ndarray, way: np.ndarray) -> float:
    """Half the torque between going and coming, at the same reading."""
    late = slice(len(x) // 6, None)
    inner = np.abs(x[late] - x[late].mean()) < 0.4 * np.ptp(x[late])
    rows = [np.ones(inner.sum()), *(x[late][inner] ** k for k in (1, 2, 3))]
    A = np.stack([*rows, way[late][inner]], axis=1)
    return float(max(np.linalg.lstsq(A, u[late][inner], rcond=None)[0][-1], 0.0))


def _effort(arm: Arm) -> np.ndarray:
    effort = arm.limits("effort")
    if not np.all(np.isfinite(effort)):
        raise ArgumentError(
            f"{arm.name} has no effort limits; they say how hard joints may be pushed."
        )
    return effort


def _check(plant: Plant, known: Structure) -> None:
    if plant.dof != known.arm.dof:
        raise ArgumentError(
            f"The plant has {plant.dof} joints, {known.arm.name} has {known.arm.dof}."
        )
    outlook = calibratable(known)
    if not is_planar_chain(known.arm):
        hidden = ", ".join(outlook.hidden) or "none"
        raise NotIdentifiable(
            f"{known.arm.name} is not a chain of parallel axes across gravity, which "
            f"this procedure moves joint by joint (hidden at any rate: {hidden}). "
            "Record a motion and use calibrate_recording."
        )
