"""Watch sensors while the arm works: has one jumped, drifted or failed, and when?

Three witnesses hear every sample, each at a constant cost: a step no joint can make
(`jumps`), torques that do not fit the weight of the links (`drift`), and readings that
are missing or stay whatever the torque (`failures`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration import Structure, as_structure
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.monitoring.drift import Drift, Tracked
from armwise.monitoring.failures import Missing, Stillness
from armwise.monitoring.gravity_residuals import Scales
from armwise.monitoring.jumps import Jumps
from armwise.monitoring.stream import CausalDerivatives, Intake, Piece

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from threadpoolctl import ThreadpoolController

    from armwise.arms import Arm
    from armwise.calibration import Calibration
    from armwise.monitoring.drift import Drifted
    from armwise.monitoring.failures import Failure
    from armwise.monitoring.jumps import Jump


# What a watchdog says when something has happened to a sensor.


@dataclass(frozen=True)
class Alarm:
    """Something happened to a joint's sensor.

    Attributes:
        kind: `jump` (the reading stepped as no joint can move), `drift` (gravity says
            that a gain or an offset has moved), `stuck`, `saturated` or `missing`.
        joint: Whose sensor.
        quantity: What is wrong: `offset`, `gain` or `reading`.
        onset: When it began in [s].
        time: When it was noticed in [s].
        size: How much too far positions read since, in [rad] or [m], for gains as a
            share of the motion; NaN where it has no meaning.
        std: Standard deviation of the size.
        message: All of it in a sentence.
    """

    kind: str
    joint: str
    quantity: str
    onset: float
    time: float
    size: float = np.nan
    std: float = np.nan
    message: str = ""


class Wording:
    """Puts what witnesses found into alarms.

    Args:
        structure: The arm, and its sensors' unknowns.
    """

    def __init__(self, structure: Structure) -> None:
        arm = structure.arm
        self._joints, self._unknowns = arm.coordinate_names, structure.unknowns
        slides = {joint.name for joint in arm.joints if joint.kind == "prismatic"}
        self._turns = [name not in slides for name in self._joints]

    def jump(self, found: Jump) -> Alarm:
        """A reading that stepped."""
        joint = self._joints[found.joint]
        size = self._size(found.joint, "offset", found.size, found.std)
        message = (
            f"The reading of {joint} jumped by {size} at t = {found.onset:.3f} s, "
            "as no joint can move."
        )
        return Alarm("jump", joint, "offset", *found[1:], message)

    def drift(self, found: Drifted) -> Alarm:
        """A gain or an offset that moved."""
        unknown, onset, moved, std = found.shift
        joint, quantity = self._unknowns[unknown].rsplit(".", 1)
        index = self._joints.index(joint)
        size = self._size(index, quantity, -moved, std)
        far = "reads too far" if quantity == "offset" else "turns too far"
        message = (
            f"{joint} {far} by {size} since about t = {onset:.0f} s, by the weight of "
            "the links."
        )
        return Alarm("drift", joint, quantity, onset, found.time, -moved, std, message)

    def failure(self, found: Failure) -> Alarm:
        """A sensor that fails."""
        joint = self._joints[found.joint]
        what = {
            "missing": "gives no number",
            "stuck": "stays the same",
            "saturated": "stays at the end of its range",
        }[found.kind]
        message = f"The sensor of {joint} {what} from t = {found.onset:.3f} s on"
        if np.isfinite(found.excess):
            message += (
                f" under {found.excess:.3g} N m (N) more than a joint at rest needs: "
                "it is stuck, or the joint is blocked"
            )
        return Alarm(
            found.kind, joint, "reading", found.onset, found.time, message=f"{message}."
        )

    def _size(self, joint: int, quantity: str, size: float, std: float) -> str:
        if quantity == "gain":
            return f"{size:+.2%} ± {std:.2%}"
        if self._turns[joint]:
            return f"{np.rad2deg(size):+.3f}° ± {np.rad2deg(std):.3f}°"
        return f"{1e3 * size:+.3f} mm ± {1e3 * std:.3f} mm"


# Watch sensors while the arm works: has one jumped, drifted or failed, and when?.

_BANDWIDTH_HZ = 8.0
"""Of the filter that torques and positions pass before they are weighed."""

_LOAD = 0.1
"""Load that a hand may take up unannounced, as a share of the arm's mass."""


class Visible(NamedTuple):
    """What would be noticed of a joint's sensor.

    Attributes:
        joint: The joint's name.
        jump: Smallest clean jump found, in milliseconds, in [rad] or [m].
        drift: Smallest shift of its offset found against gravity within the time asked
            for in [rad] or [m]; infinite where gravity says nothing.
    """

    joint: str
    jump: float
    drift: float


class Watchdog:
    """Watches an arm's sensors during ordinary motion, at a constant cost a sample.

    What it has reported it allows for: a sensor that jumps twice is reported twice.

    Args:
        structure: The arm, and what is known of it.
        calibration: Gains, offsets and parameters as they should be.
        period: Time between two samples in [s].
        learning: How long to learn what undisturbed motion looks like in [s]. Until
            then only jumps are told that the joint's fastest motion cannot explain.
        load: Mass in [kg] that the hand may take up or put down unannounced; a tenth
            of the arm's if None. The more it may be, the less gravity says of a wrist.

    Attributes:
        alarms: All alarms so far.
    """

    def __init__(
        self,
        structure: Structure | Arm,
        calibration: Calibration,
        period: float,
        *,
        learning: float = 150.0,
        load: float | None = None,
    ) -> None:
        if not (0.0 < period <= 0.05 and learning >= 10.0):
            raise ArgumentError(
                "A watchdog needs samples at 20 Hz at least, and ten seconds of "
                f"motion to learn from; not every {period} s and {learning} s."
            )
        self.structure = as_structure(structure)
        arm = self.structure.arm
        self._given, self._words = calibration, Wording(self.structure)
        self._learning = round(learning / period)
        self._intake = Intake(period, arm.dof, self._learning)
        mass = _LOAD * sum(link.inertia.mass for link in arm.links)
        scales = Scales(self.structure, mass if load is None else load)
        model = Dynamics(arm.with_parameters(calibration.parameters))
        self._signals = CausalDerivatives(period, _BANDWIDTH_HZ, arm.dof)
        self._missing = Missing(arm.dof)
        self._jumps = Jumps(model, period, arm.limits("velocity"))
        self._stillness = Stillness(period, model, scales.unexpected)
        self._drift = Drift(
            self.structure, calibration, scales, learning, 2.0 * self._signals.settling
        )
        self._heard = 0
        self.alarms: list[Alarm] = []

    @property
    def is_learning(self) -> bool:
        """Whether it still learns what undisturbed motion looks like."""
        return self._drift.usual is None or self._heard < self._learning

    @property
    def evidence(self) -> float:
        """Evidence of drift at present, as a share of what raises an alarm."""
        return self._drift.evidence

    @property
    def tracked(self) -> Tracked:
        """Gains, offsets, parameters and load as they seem to be now."""
        return self._drift.tracker.now()

    def visible(self, seconds: float = 60.0) -> tuple[Visible, ...]:
        """Tell, joint by joint, what would be noticed within so many seconds."""
        names = self.structure.arm.coordinate_names
        drift = self._drift.smallest(seconds)[-len(names) :]
        rows = zip(names, self._jumps.smallest, drift, strict=True)
        return tuple(Visible(name, float(a), float(b)) for name, a, b in rows)

    def update(
        self, time: ArrayLike, readings: ArrayLike, torque: ArrayLike
    ) -> tuple[Alarm, ...]:
        """Take one sample, or a block of them; return the alarms it raised.

        Args:
            time: In [s], one number or one per sample. Samples may be missing; those
                not later than the one before are passed over.
            readings: Of the sensors, (dof,) or (samples, dof).
            torque: In [N m] or [N], shaped alike.
        """
        t = np.atleast_1d(np.asarray(time, dtype=float))
        s, tau = (np.atleast_2d(np.asarray(x, dtype=float)) for x in (readings, torque))
        dof = self.structure.arm.dof
        if s.shape != tau.shape or s.shape != (t.size, dof):
            raise ArgumentError(
                f"A watchdog of {dof} joints was given readings of "
                f"shape {s.shape}, torques {tau.shape} and {t.size} times."
            )
        raised = list(map(self._words.failure, self._missing.feed(t, s, tau)))
        pieces = self._intake.take(t, self._given.angles(s), tau)
        with _blas().limit(limits=1, user_api="blas"):  # small matrices: one is faster
            for piece in pieces:
                raised += self._watch(piece)
        raised.sort(key=lambda alarm: alarm.time)
        self.alarms += raised
        return tuple(raised)

    def _watch(self, piece: Piece) -> list[Alarm]:
        """Let all witnesses hear a piece."""
        if piece.is_fresh:
            for witness in (self._jumps, self._stillness, self._signals):
                witness.restart()
        t, q, tau = piece[:3]
        jumps = self._jumps.feed(t, q, tau, piece.held)
        raised = list(map(self._words.failure, self._stillness.feed(t, q, tau)))
        data = self._signals.feed(t, q, tau)
        for jump in jumps:
            seen = int(np.searchsorted(data.time, jump.time, side="right"))
            raised += map(self._words.drift, self._drift.take(data.rows(slice(seen))))
            raised.append(self._words.jump(jump))
            self._drift.correct(jump)
            data = data.rows(slice(seen, None))
        raised += map(self._words.drift, self._drift.take(data))
        self._heard += len(t)
        if self._heard == self._learning:
            self._jumps.settle()
            self._stillness.settle(self._jumps.resolution)
        return raised


@cache
def _blas() -> ThreadpoolController:
    """Finding the libraries takes a thousand times longer than limiting them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
