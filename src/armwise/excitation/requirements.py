"""Requirements of a motion: limits, clearance, a resting posture; verification."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.excitation.bounds import Bounds
from armwise.excitation.clearance import Clearance
from armwise.excitation.score import STATES
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


# Resting postures, in which motions start.

# Judgement: one evaluation of 600 postures costs about as much as one of a motion;
# the spread halves from round to round.
TRIED, ROUNDS = 600, 6
"""Random postures per round; rounds around the best so far when none will do."""

SETTLED = 0.97
"""Fraction of the allowed at which a posture counts as resting: from there, a motion
can begin in any direction."""

NEARBY = (0.03, 0.1, 0.2, 0.4)
"""How far around a target posture to look for one, as fractions of the range:
growing, so that a near one is preferred."""


def resting_postures(
    arm: Arm,
    requirements: Requirements,
    limit_fraction: float,
    rng: np.random.Generator,
    count: int,
) -> Float[np.ndarray, "count dof"]:
    """Find postures that respect everything at rest, those with most to spare first.

    Raises:
        ArgumentError: If there is none, naming what stands in the way.
    """
    b = requirements.bounds
    reach = limit_fraction * b.half_range
    # Judgement: 10 % off the ends, so that a motion has room to either side.
    q = b.middle + rng.uniform(-0.9, 0.9, (TRIED, arm.dof)) * reach
    # Always tried, so that an easy arm does not depend on luck.
    q[0] = b.middle
    for k in range(ROUNDS):
        usage = _at_rest(requirements, q)
        excess = usage.excess(limit_fraction)
        order = np.argsort(excess)
        if excess[order[0]] < 0.0:
            good = order[: max(1, min(count, int(np.sum(excess < 0.0))))]
            return q[good]
        # Cross-entropy style: draw around the best tenth, ever closer.
        near = q[order[: TRIED // 10]]
        spread = rng.normal(scale=0.5 ** (k + 1), size=(TRIED, arm.dof)) * reach
        tried = near[rng.integers(len(near), size=TRIED)] + spread
        q = np.vstack([near, np.clip(tried, b.middle - reach, b.middle + reach)])
    raise ArgumentError(_complaint(arm, usage, limit_fraction))


def resting_posture_near(
    requirements: Requirements, limit_fraction: float, target: np.ndarray
) -> Float[np.ndarray, " dof"] | None:
    """Find a posture close to a target that respects everything at rest."""
    # A generator of its own: the search's must not depend on repairs.
    b, rng = requirements.bounds, np.random.default_rng(1996)
    for spread in NEARBY:
        q = target + spread * b.half_range * rng.normal(size=(TRIED // 10, b.dof))
        q[0] = target
        good = _at_rest(requirements, q).excess(limit_fraction) < 0.0
        if good.any():
            away = np.linalg.norm((q[good] - target) / b.half_range, axis=1)
            return np.asarray(q[good][int(np.argmin(away))])
    return None


def _at_rest(requirements: Requirements, q: np.ndarray) -> Usage:
    still = np.zeros_like(q)
    return requirements.usage((q, still, still))


def _complaint(arm: Arm, usage: Usage, limit_fraction: float) -> str:
    """Say which requirement the fewest postures respect, and by how much they fail."""
    best = f"{arm.name}: No posture of this arm respects all requirements"
    torque = np.abs(usage.fractions[QUANTITIES.index("effort")])
    room = usage.room.min(axis=0, initial=np.inf)
    if np.mean(room >= 0.0) <= np.mean(torque.max(axis=1) <= limit_fraction):
        return (
            f"{best}; those tried lack {-room.max():.4g} m of clearance or more. Make "
            "the keep-out (floor, boxes, clearance, radius) smaller."
        )
    joint = int(np.argmin(np.mean(torque <= limit_fraction, axis=0)))
    return (
        f"{best}; to hold still, those tried need {torque[:, joint].min():.3g} times "
        f"or more the effort limit of joint {arm.coordinate_names[joint]!r} (allowed: "
        f"{limit_fraction:.3g}). Correct its limits or the masses of the arm."
    )
