"""The engine in NumPy, for machines without a compiler; the same steps as in C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import Mechanism
from armwise.plants.integrators import DormandPrince, Integrator, SemiImplicit
from armwise.plants.numbers import ArmNumbers
from armwise.plants.numpy_equations import NumpyEquations
from armwise.plants.runge_kutta import dormand_prince_span, rk4_step
from armwise.plants.state import State

if TYPE_CHECKING:
    from jaxtyping import Float


class NumpyEngine:
    """Steps a batch of arms with arrays; arguments as in CEngine."""

    def __init__(
        self,
        mechanism: Mechanism,
        numbers: ArmNumbers,
        integrator: Integrator,
        *,
        tick: float,
        smoothing: float,
        speed_bound: float,
    ) -> None:
        batch = len(numbers.bodies)
        self._is_elastic = numbers.springs is not None
        self.state = State.at_rest(batch, mechanism.dof, self._is_elastic)
        self._equations = NumpyEquations(mechanism, numbers, smoothing)
        self._integrator = integrator
        self._tick, self._bound = tick, speed_bound
        self._friction = np.zeros((batch, len(mechanism.drive_rows)))
        self._trial = 0.0

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        state = self.state
        state.time = 0.0
        state.q[:] = state.motor_q[:] = q
        state.qd[:] = state.motor_qd[:] = qd
        state.tau[:] = self._friction[:] = 0.0
        state.diverged[:] = False
        self._trial = 0.0
        self._observe(self._motion())

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        motion = self._motion()
        with np.errstate(over="ignore", invalid="ignore"):
            motion = self._carried(motion, ticks)
            self._observe(motion)

    def _motion(self) -> Float[np.ndarray, "parts batch dof"]:
        s = self.state
        parts = [s.q, s.qd, s.motor_q, s.motor_qd] if self._is_elastic else [s.q, s.qd]
        return np.stack(parts)

    def _carried(self, motion: np.ndarray, ticks: int) -> np.ndarray:
        equations, tau, h = self._equations, self.state.tau, self._tick

        def rate(y: np.ndarray) -> np.ndarray:
            return equations.rate(self._bounded(y), tau)

        if isinstance(self._integrator, DormandPrince):
            motion, self._trial = dormand_prince_span(
                rate, motion, ticks * h, self._trial, self._integrator
            )
            return motion
        for _ in range(ticks):
            motion = self._bounded(motion)
            if isinstance(self._integrator, SemiImplicit):
                motion, self._friction = equations.semi_implicit(
                    motion, tau, self._friction, h
                )
            else:
                motion = rk4_step(rate, motion, h)
        return motion

    def _bounded(self, motion: np.ndarray) -> np.ndarray:
        """Let arms that run away stand still, so that the others can go on."""
        with np.errstate(invalid="ignore"):
            ok = (np.abs(motion[0]) <= 1e9) & (np.abs(motion[1]) <= self._bound)
        lost = ~ok.all(axis=1)
        if not lost.any():
            return motion
        self.state.diverged |= lost
        kept = motion.copy()
        kept[:, lost] = 0.0
        return kept

    def _observe(self, motion: np.ndarray) -> None:
        motion, state = self._bounded(motion), self.state
        qdd, link_tau = self._equations.observed(motion, state.tau, self._friction)
        good = ~state.diverged
        for array, values in (
            *zip((state.q, state.qd), motion, strict=False),
            (state.qdd, qdd),
            (state.link_tau, link_tau),
        ):
            array[good] = values[good]
        if self._is_elastic:
            state.motor_q[good], state.motor_qd[good] = motion[2:, good]
