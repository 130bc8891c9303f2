"""Watchdog: jumps, drift and failures of joint sensors while the arm works.

Every sample passes three detectors, each at constant cost: a step no joint can make
(`jumps`), torques that do not fit the weight of the links (`drift`), and readings that
are missing or stay whatever the torque (`failures`). All thresholds are in `settings`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from armwise.calibration import Structure, as_structure
from armwise.dynamics import Dynamics
from armwise.errors import ArgumentError
from armwise.monitoring.drift import DriftDetector, TrackedValues
from armwise.monitoring.faults import JumpDetector, MissingReadings, StuckReadings
from armwise.monitoring.gravity_residuals import GravityResiduals
from armwise.monitoring.settings import DEFAULT_SETTINGS, WatchdogSettings
from armwise.monitoring.stream import CausalDerivatives, Chunk, StreamBuffer

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from threadpoolctl import ThreadpoolController

    from armwise.arms import Arm
    from armwise.calibration import Calibration
    from armwise.monitoring.drift import DriftEvent
    from armwise.monitoring.faults import Failure, Jump


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
            fraction of the motion; NaN where it has no meaning.
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


class Visible(NamedTuple):
    """Smallest faults of a joint's sensor that would be noticed.

    Attributes:
        joint: The joint's name.
        jump: Smallest clean jump found, in milliseconds, in [rad] or [m].
        drift: Smallest shift of its offset found against gravity within the given time
            in [rad] or [m]; infinite where gravity does not act.
    """

    joint: str
    jump: float
    drift: float


class Watchdog:
    """Watches an arm's sensors during ordinary motion, at constant cost per sample.

    What it has reported it allows for: a sensor that jumps twice is reported twice.

    Args:
        structure: The arm, and what is known of it.
        calibration: Gains, offsets and parameters as they should be.
        period: Time between two samples in [s].
        learning: How long to learn what undisturbed motion looks like in [s]. Until
            then only jumps are reported that the joint's fastest motion cannot explain.
        load: Mass in [kg] that the hand may take up or put down unannounced; a tenth
            of the arm's if None. The more it may be, the less gravity says of a wrist.
        settings: Thresholds and time constants.

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
        settings: WatchdogSettings = DEFAULT_SETTINGS,
    ) -> None:
        # Slower than 20 Hz the low-pass of the torques would be above Nyquist's rate;
        # in less than ten epochs no scatter can be learnt.
        if not (0.0 < period <= 0.05 and learning >= 10.0):
            raise ArgumentError(
                "A watchdog needs samples at 20 Hz at least, and ten seconds of "
                f"motion to learn from; not every {period} s and {learning} s."
            )
        self.structure = as_structure(structure)
        arm = self.structure.arm
        self._calibration, self._alarm = calibration, _AlarmWriter(self.structure)
        self._learning = round(learning / period)
        self._stream = StreamBuffer(period, arm.dof, self._learning, settings)
        mass = settings.load_fraction * sum(link.inertia.mass for link in arm.links)
        load = mass if load is None else load
        residuals = GravityResiduals(self.structure, load, settings)
        model = Dynamics(arm.with_parameters(calibration.parameters))
        self._filter = CausalDerivatives(period, arm.dof, settings)
        self._missing = MissingReadings(arm.dof, settings)
        self._jumps = JumpDetector(model, period, arm.limits("velocity"), settings)
        self._stuck = StuckReadings(period, model, residuals.largest_change, settings)
        self._drift = DriftDetector(
            self.structure,
            calibration,
            residuals,
            learning,
            # The jump itself is dated to a few samples: twice the settling is safe.
            2.0 * self._filter.settling,
            settings,
        )
        self._samples = 0
        self.alarms: list[Alarm] = []

    @property
    def is_learning(self) -> bool:
        """Whether it still learns what undisturbed motion looks like."""
        return self._drift.baseline is None or self._samples < self._learning

    @property
    def evidence(self) -> float:
        """Evidence of drift at present, as a fraction of what raises an alarm."""
        return self._drift.evidence

    @property
    def tracked(self) -> TrackedValues:
        """Gains, offsets, parameters and load as estimated now."""
        return self._drift.tracker.now()

    def visible(self, seconds: float = 60.0) -> tuple[Visible, ...]:
        """Smallest faults that would be noticed within so many seconds, by joint."""
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
        raised = list(map(self._alarm.failure, self._missing.feed(t, s, tau)))
        chunks = self._stream.feed(t, self._calibration.angles(s), tau)
        # Threads cost more than they gain on matrices of a few rows.
        with _blas().limit(limits=1, user_api="blas"):
            for chunk in chunks:
                raised += self._inspect(chunk)
        raised.sort(key=lambda alarm: alarm.time)
        self.alarms += raised
        return tuple(raised)

    def _inspect(self, chunk: Chunk) -> list[Alarm]:
        """Pass a chunk through all detectors."""
        if chunk.is_fresh:
            for detector in (self._jumps, self._stuck, self._filter):
                detector.restart()
        t, q, tau = chunk[:3]
        jumps = self._jumps.feed(t, q, tau, chunk.held)
        raised = list(map(self._alarm.failure, self._stuck.feed(t, q, tau)))
        data = self._filter.feed(t, q, tau)
        # Drift is fed up to each jump, then corrected by it: in the order of time, so
        # that blocks of any length give the same alarms.
        for jump in jumps:
            end = int(np.searchsorted(data.time, jump.time, side="right"))
            raised += map(self._alarm.drift, self._drift.feed(data.rows(slice(end))))
            raised.append(self._alarm.jump(jump))
            self._drift.correct(jump)
            data = data.rows(slice(end, None))
        raised += map(self._alarm.drift, self._drift.feed(data))
        self._samples += len(t)
        # The stream is cut here: no chunk holds samples from before and after.
        if self._samples == self._learning:
            self._jumps.end_learning()
            self._stuck.end_learning(self._jumps.resolution)
        return raised


class _AlarmWriter:
    """Writes alarms, with their messages.

    Args:
        structure: The arm, and its sensors' unknowns.
    """

    def __init__(self, structure: Structure) -> None:
        arm = structure.arm
        self._joints, self._unknowns = arm.coordinate_names, structure.unknowns
        slides = {joint.name for joint in arm.joints if joint.kind == "prismatic"}
        self._turns = [name not in slides for name in self._joints]

    def jump(self, jump: Jump) -> Alarm:
        """A reading that stepped."""
        joint = self._joints[jump.joint]
        size = self._size(jump.joint, "offset", jump.size, jump.std)
        message = (
            f"The reading of {joint} jumped by {size} at t = {jump.onset:.3f} s, "
            "as no joint can move."
        )
        return Alarm("jump", joint, "offset", *jump[1:], message)

    def drift(self, event: DriftEvent) -> Alarm:
        """A gain or an offset that moved."""
        unknown, onset, moved, std = event.shift
        joint, quantity = self._unknowns[unknown].rsplit(".", 1)
        index = self._joints.index(joint)
        size = self._size(index, quantity, -moved, std)
        far = "reads too far" if quantity == "offset" else "turns too far"
        message = (
            f"{joint} {far} by {size} since about t = {onset:.0f} s, by the weight of "
            "the links."
        )
        return Alarm("drift", joint, quantity, onset, event.time, -moved, std, message)

    def failure(self, failure: Failure) -> Alarm:
        """A sensor that fails."""
        joint = self._joints[failure.joint]
        what = {
            "missing": "gives no number",
            "stuck": "stays the same",
            "saturated": "stays at the end of its range",
        }[failure.kind]
        message = f"The sensor of {joint} {what} from t = {failure.onset:.3f} s on"
        if np.isfinite(failure.excess):
            message += (
                f" under {failure.excess:.3g} N m (N) more than a joint at rest needs: "
                "it is stuck, or the joint is blocked"
            )
        return Alarm(
            failure.kind,
            joint,
            "reading",
            failure.onset,
            failure.time,
            message=f"{message}.",
        )

    def _size(self, joint: int, quantity: str, size: float, std: float) -> str:
        if quantity == "gain":
            return f"{size:+.2%} ± {std:.2%}"
        if self._turns[joint]:
            return f"{np.rad2deg(size):+.3f}° ± {np.rad2deg(std):.3f}°"
        return f"{1e3 * size:+.3f} mm ± {1e3 * std:.3f} mm"


@cache
def _blas() -> ThreadpoolController:
    """Finding the libraries takes a thousand times longer than limiting them."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
