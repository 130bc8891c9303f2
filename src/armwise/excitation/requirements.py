"""Requirements of a motion: fractions of limits used, clearance, verification."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.excitation.bounds import Bounds
from armwise.excitation.clearance import Clearance
from armwise.excitation.information import STATES
from armwise.motions import Motion
from armwise.programs import Backend, Kernel, gradient

if TYPE_CHECKING:
    from jaxtyping import Float


QUANTITIES = ("position", "velocity", "acceleration", "effort")
"""What has limits, in the order of a usage's fractions."""

# Judgement: what a thousand random postures never bring within 5 cm seldom limits a
# motion. `verify` measures the final one against everything all the same.
_POSTURES, _NEAR = 1000, 0.05


@dataclass(frozen=True, eq=False)
class Usage:
    """How much of what is allowed a motion uses at every sample.

    Attributes:
        fractions: Signed fractions of the limits, one (samples, dof) for each of
            QUANTITIES; position from the middle of its range.
        room: Distance left in [m], one row per encounter.
    """

    fractions: tuple[Float[np.ndarray, "samples dof"], ...]
    room: Float[np.ndarray, "encounters samples"]

    def excess(self, limit_fraction: float) -> Float[np.ndarray, " samples"]:
        """How far each sample is outside, at most; negative if it is inside."""
        used = np.max([np.abs(s).max(axis=1) for s in self.fractions], axis=0)
        lacking = -self.room.min(axis=0, initial=np.inf)
        # A fraction of a limit and metres of room, compared as they are: the sign
        # decides, and 1 % of a limit ranks with 1 cm.
        return np.maximum(used / limit_fraction - 1.0, lacking)


class Requirements:
    """Limits and keep-out of an arm, over samples of its motion.

    Args:
        arm: The arm; its parameters give the torque.
        bounds: Its limits.
        clearance: Its keep-out, if any.
        backend: What runs the programs.
    """

    def __init__(
        self,
        arm: Arm,
        bounds: Bounds,
        clearance: Clearance | None,
        backend: Backend = "auto",
    ) -> None:
        self.bounds, self.clearance = bounds, clearance
        dynamics = Dynamics(arm, backend)
        self._torque = dynamics.kernel("inverse_dynamics")
        program = self._torque.program
        smooth = {**dynamics.uniforms, "drives": dynamics.uniforms["drives"].copy()}
        coulomb = arm.layout.drive("coulomb", start=0)
        # Dry friction is added at its worst, whichever way the joint moves.
        level = np.abs(smooth["drives"][coulomb])
        self._friction = np.abs(dynamics.mechanism.drive_rows.T) @ level
        smooth["drives"][coulomb] = 0.0
        uniform = [item.name for item in program.inputs if item.is_uniform]
        self._uniforms = [smooth[name] for name in uniform]
        self._torque_gradient = Kernel(gradient(program, STATES), backend)

    def nearby(self) -> Requirements:
        """Return the same without the encounters that random postures are far from."""
        other = copy(self)
        if self.clearance is not None:
            b, rng = self.bounds, np.random.default_rng(1997)
            q = rng.uniform(b.lower, b.upper, (_POSTURES, b.dof))
            near = self.clearance.room(q).min(axis=1) < _NEAR
            other.clearance = self.clearance.narrowed(near) if near.any() else None
        return other

    def usage(self, states: Sequence[np.ndarray]) -> Usage:
        """Measure a motion."""
        if self.clearance is None:
            room = np.zeros((0, len(states[0])))
        else:
            room = self.clearance.room(states[0])
        return Usage(self.fractions(states), room)

    def fractions(self, states: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Signed fractions of position, velocity, acceleration and effort limits.

        Coulomb friction always counts in full, whichever way it acts: near standstill
        no one knows, and the smooth rest has a gradient.
        """
        q, qd, qdd = states
        b = self.bounds
        (torque,) = self._torque(list(states), self._uniforms)
        return (
            (q - b.middle) / b.half_range,
            qd / b.velocity,
            qdd / b.acceleration,
            (torque + np.copysign(self._friction, torque)) / b.effort,
        )

    def slopes(
        self, states: Sequence[np.ndarray], weights: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Gradient of Σ ⟨weights, fractions⟩ by q, q̇, q̈."""
        b = self.bounds
        units = (b.half_range, b.velocity, b.acceleration)
        slopes = [w / unit for w, unit in zip(weights[:3], units, strict=True)]
        push = weights[3] / b.effort
        if push.any():
            inputs = [*states, np.ascontiguousarray(push)]
            more = self._torque_gradient(inputs, self._uniforms)
            slopes = [a + c for a, c in zip(slopes, more, strict=True)]
        return slopes


# Verification of a planned motion on a fine grid.

RATE_HZ = 1000.0
"""Instants a second at which a plan is verified."""

# Judgement: bounds the memory of long motions, two seconds at a time.
_BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Verification:
    """What a motion uses of its limits, at most, over a fine grid of instants.

    Attributes:
        rate_hz: Instants a second.
        instants: How many there were, both ends included.
        position, velocity, acceleration, effort: Largest fraction of each limit;
            position from the middle of its range; Coulomb friction counted in full,
            whichever way it acts; 0 where there is no limit.
        room: Smallest distance left in [m] beyond the required clearance; None if
            there is nothing to keep clear of.
        speed_at_ends: Largest speed at beginning and end, as a fraction of the limit.
    """

    rate_hz: float
    instants: int
    position: Float[np.ndarray, " dof"]
    velocity: Float[np.ndarray, " dof"]
    acceleration: Float[np.ndarray, " dof"]
    effort: Float[np.ndarray, " dof"]
    room: float | None
    speed_at_ends: float

    def is_within(self, limit_fraction: float = 1.0) -> bool:
        """Whether everything holds within a fraction of every limit."""
        used = max(float(getattr(self, name).max()) for name in QUANTITIES)
        return used <= limit_fraction and (self.room is None or self.room >= 0.0)


def verify(motion: Motion, requirements: Requirements) -> Verification:
    """Measure a motion at 1 kHz."""
    instants = max(2, int(np.ceil(motion.duration * RATE_HZ)) + 1)
    times = np.linspace(0.0, motion.duration, instants)
    fractions = np.zeros((len(QUANTITIES), requirements.bounds.dof))
    room = np.inf
    for begin in range(0, instants, _BLOCK):
        usage = _usage(motion, requirements, times[begin : begin + _BLOCK])
        block = [np.abs(fraction).max(axis=0) for fraction in usage.fractions]
        fractions = np.maximum(fractions, block)
        room = min(room, float(usage.room.min(initial=np.inf)))
    ends = motion.sample(times[[0, -1]]).qd / requirements.bounds.velocity
    position, velocity, acceleration, effort = fractions
    return Verification(
        rate_hz=RATE_HZ,
        instants=instants,
        position=position,
        velocity=velocity,
        acceleration=acceleration,
        effort=effort,
        room=None if requirements.clearance is None else room,
        speed_at_ends=float(np.abs(ends).max()),
    )


def _usage(motion: Motion, requirements: Requirements, times: np.ndarray) -> Usage:
    states = [np.ascontiguousarray(part) for part in motion.sample(times)]
    return requirements.usage(states)
