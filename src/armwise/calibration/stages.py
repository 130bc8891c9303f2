"""The stages of a calibration by motion, and what each passes on to the next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.calibration.bench import Bench, Trace
from armwise.calibration.expansion import Expansion
from armwise.calibration.plan import Plan
from armwise.calibration.polynomial import CosineFit, fit_exactly
from armwise.calibration.pushes import find_senses
from armwise.calibration.sensor_control import Parabola, SensorComposite, SensorPD
from armwise.calibration.settling import (
    Settled,
    covariance,
    direction_std,
    parabola_gain_std,
)
from armwise.calibration.structure import Structure
from armwise.control import UpdateLaw
from armwise.errors import NotIdentifiable, RecordingError
from armwise.motions import Triangle

if TYPE_CHECKING:
    from jaxtyping import Float

_ATTEMPTS = 3
"""How often an adaptation that ran away is tried again, each time more slowly."""

_HOPELESS = 0.3
"""Relative standard deviation of a gain beyond which nothing was found."""


@dataclass(frozen=True, eq=False)
class GainStage:
    """What one joint's parabola said, arm by arm.

    Attributes:
        trace: What happened.
        fits: The cosines.
        std: Relative standard deviations of the gains.
    """

    trace: Trace
    fits: tuple[CosineFit, ...]
    std: Float[np.ndarray, " batch"]


@dataclass(frozen=True, eq=False)
class OffsetStage:
    """What all joints together said.

    Attributes:
        trace: What happened.
        beta, std: Offsets in [rad] and their standard deviations.
    """

    trace: Trace
    beta: Float[np.ndarray, "batch dof"]
    std: Float[np.ndarray, "batch dof"]


class Stages:
    """Runs the stages on a bench.

    Attributes:
        friction: Coulomb friction found so far in [N m].
        kp, kd: Feedback gains in the readings' units.
    """

    def __init__(
        self, known: Structure, bench: Bench, plan: Plan, effort: np.ndarray
    ) -> None:
        self.known, self.bench, self.plan, self.effort = known, bench, plan, effort
        self.friction = np.zeros_like(bench.x)
        self.kp = self.kd = np.zeros_like(bench.x)

    def find_feedback(self) -> None:
        """Learn directions and inertias; make feedback gains from them."""
        inertia = find_senses(self.bench, self.plan.push * self.effort)
        self.kp = inertia * self.plan.stiffness**2
        self.kd = 2.0 * 0.7 * inertia * self.plan.stiffness
        self._go_to_middle()

    def measure_friction(self, j: int) -> Trace:
        """Move one joint slowly to and fro; half the torques' difference (Eq. 5.2)."""
        period = self.plan.friction_period
        pd = SensorPD(self.kp, self.kd)
        trace = self.bench.follow(pd, self.wave((j,), period, period), 1.25 * period)
        x, u = trace.x[:, :, j], trace.u[:, :, j]
        self._check_moved(j, x)
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

    def adapt_parabola(self, j: int) -> GainStage:
        """Adapt [α m l², a, b, c] of one joint, the others held (Eq. 4.37)."""
        motion = self.wave((j,), self.plan.period, self.plan.gain_time)
        for attempt in range(_ATTEMPTS):
            gain = np.array([0.1, 1.0, 3.0, 8.0]) / 10.0**attempt
            controller = self.adaptive(Parabola(j), (j,), gain)
            settled = Settled(
                lambda c=controller: _gain_std(c),  # type: ignore[misc]
                self.plan.gain_std,
                self.plan.period,
            )
            trace = self.bench.follow(controller, motion, self.plan.gain_time, settled)
            std = _gain_std(controller)
            if not controller.adaptation.stopped.any() and np.all(std < _HOPELESS):
                break
            self._go_to_middle()
        else:
            raise NotIdentifiable(
                f"{self.known.arm.coordinate_names[j]}: gravity does not bend its "
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
        # Torque in the sensor's sense turns the joint by `sense`: so does the reading.
        expansion = Expansion(self.known, gains, self.bench.sense)
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
        self, regressor: Parabola | Expansion, joints: tuple[int, ...], gain: np.ndarray
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
        periods = period * 1.618 ** -np.arange(n)
        rounding = 0.05 * periods.min()
        return Triangle(np.zeros(n), amplitude, periods, duration, 0.0, rounding)

    def _check_moved(self, j: int, x: Float[np.ndarray, "samples batch"]) -> None:
        if np.any(np.ptp(x, axis=0) < 0.5 * self.plan.amplitude):
            raise RecordingError(
                f"{self.known.arm.coordinate_names[j]} hardly moves: its reading spans "
                f"{np.ptp(x, axis=0).min():.2g} of the {2 * self.plan.amplitude:.2g} "
                "it was asked for. Something holds it, or its sensor does not follow."
            )

    def _go_to_middle(self) -> None:
        """Return slowly to readings of zero."""
        start, pd = self.bench.x.copy(), SensorPD(self.kp, self.kd)

        def ramp(t: float) -> tuple[np.ndarray, ...]:
            share = min(t / 1.5, 1.0)
            s = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
            still = np.zeros_like(start)
            return start * (1.0 - s), still, still

        self.bench.follow(pd, ramp, 2.0)


def _gain_std(controller: SensorComposite) -> Float[np.ndarray, " batch"]:
    coefficients = controller.adaptation.parameters[:, 1:]
    return parabola_gain_std(coefficients, covariance(controller)[:, 1:, 1:])


def _hysteresis(x: np.ndarray, u: np.ndarray, way: np.ndarray) -> float:
    """Half the torque between going and coming, at the same reading."""
    late = slice(len(x) // 6, None)
    inner = np.abs(x[late] - x[late].mean()) < 0.4 * np.ptp(x[late])
    rows = [np.ones(inner.sum()), *(x[late][inner] ** k for k in (1, 2, 3))]
    A = np.stack([*rows, way[late][inner]], axis=1)
    return float(max(np.linalg.lstsq(A, u[late][inner], rcond=None)[0][-1], 0.0))
