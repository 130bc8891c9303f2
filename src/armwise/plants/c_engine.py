"""The engine in generated C: one call carries all arms through many ticks."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from armwise.dynamics import Mechanism
from armwise.errors import ArgumentError
from armwise.plants.integrators import DormandPrince, Integrator, method_number
from armwise.plants.numbers import ArmNumbers
from armwise.plants.state import State
from armwise.plants.stepper_source import stepper_source
from armwise.programs.cache import cached_object
from armwise.programs.compiler import find_compiler


class CEngine:
    """Steps a batch of arms with the compiled stepper.

    Args:
        mechanism: Whose dynamics.
        numbers: What each arm is made of.
        integrator: How time is stepped.
        tick: Time step in [s].
        smoothing: See Friction.
        speed_bound: Speed in [rad/s] or [m/s] beyond which an arm has run away.
    """

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
        is_elastic = numbers.springs is not None
        self.state = State.at_rest(batch, mechanism.dof, is_elastic)
        self._friction = np.zeros((batch, len(mechanism.drive_rows)))
        self._trial = np.zeros(batch)
        springs = np.zeros(1) if numbers.springs is None else numbers.springs
        self._kept = (numbers.drives, springs, numbers.bodies)
        self._function = _compiled(mechanism, is_elastic, batch > 1)
        rtol = atol = 0.0
        if isinstance(integrator, DormandPrince):
            rtol, atol = integrator.rtol, integrator.atol
        self._settings = np.array([tick, speed_bound, smoothing, rtol, atol])
        self._bad = np.zeros(batch, dtype=np.uint8)
        self._arguments = self._bind(batch, method_number(integrator))

    def _bind(self, batch: int, method: int) -> tuple[Any, ...]:
        """Fix all pointers once: a call then costs a microsecond."""
        s, (drives, springs, bodies) = self.state, self._kept
        arrays = [s.q, s.qd, s.motor_q, s.motor_qd, s.tau, self._friction, s.qdd]
        arrays += [s.link_tau, drives, springs, bodies, self._trial]
        pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
        return (
            ctypes.c_long(batch),
            ctypes.c_long(method),
            pointers,
            ctypes.c_void_p(self._bad.ctypes.data),
            ctypes.c_void_p(self._settings.ctypes.data),
        )

    def start(self, q: np.ndarray, qd: np.ndarray) -> None:
        """Put every arm in a posture at a velocity, with no torque, at t = 0."""
        state = self.state
        state.time = 0.0
        state.q[:] = state.motor_q[:] = q
        state.qd[:] = state.motor_qd[:] = qd
        state.tau[:] = self._friction[:] = self._trial[:] = 0.0
        self._bad[:] = 0
        self._call(0)

    def advance(self, tau: np.ndarray, ticks: int) -> None:
        """Hold torques (batch, dof) for some ticks."""
        self.state.tau[:] = tau
        self._call(ticks)

    def _call(self, ticks: int) -> None:
        count, method, pointers, bad, settings = self._arguments
        lost = self._function(count, ticks, method, pointers, bad, settings)
        if lost:
            self.state.diverged[:] = self._bad
        elif self.state.time == 0.0:
            self.state.diverged[:] = False


_loaded: dict[tuple[str, bool, bool], Any] = {}


def _compiled(mechanism: Mechanism, is_elastic: bool, in_lanes: bool) -> Any:
    key = (mechanism.key, is_elastic, in_lanes)
    if key not in _loaded:
        compiler = find_compiler()
        if compiler is None:
            raise ArgumentError("No C compiler was found.")
        source = stepper_source(mechanism, is_elastic, in_lanes)
        library = ctypes.CDLL(str(cached_object(source, compiler, ("-O3",))))
        function = library.advance
        function.restype = ctypes.c_long
        function.argtypes = [
            ctypes.c_long,
            ctypes.c_long,
            ctypes.c_long,
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_void_p,
        ]
        _loaded[key] = function
    return _loaded[key]
