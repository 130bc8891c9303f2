"""Friction terms: torques of a drive beyond viscous, Coulomb and offset, as columns.

A form is the shape of such a torque, linear in its coefficient: a function of speed, of
the load on the gear, of where the drive came from, or of where it is. A term is a form
of one drive. `FORMS` may be extended: what is in it can be fitted, selected, predicted
and stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from armwise.dynamics import mechanism_of
from armwise.errors import ArgumentError
from armwise.regression.low_pass import low_pass
from armwise.regression.signals import Signals, averaged_sign, friction_direction

if TYPE_CHECKING:
    from jaxtyping import Float

    from armwise.arms import Arm


@dataclass(frozen=True, eq=False)
class DriveMotion:
    """What a friction form may use of one drive, sample by sample.

    Attributes:
        q: Position in [rad] or [m].
        qd: Speed in [rad/s] or [m/s].
        direction: Direction of motion, from −1 to 1: as the torque's low-pass shows it,
            or for sharp forms, which are filtered afterwards, as it is.
        load: Torque in [N m] that the gear passes on to the links; zero for sharp
            forms.
        stop: Stop operator of the position, from −1 to 1, for a width in [rad] or [m]:
            a spring that slides when it is stretched by the width.
    """

    q: Float[np.ndarray, " samples"]
    qd: Float[np.ndarray, " samples"]
    direction: Float[np.ndarray, " samples"]
    load: Float[np.ndarray, " samples"]
    stop: Callable[[float], np.ndarray]


@dataclass(frozen=True)
class FrictionForm:
    """The shape of a friction torque, for a unit coefficient.

    Attributes:
        meaning: What it describes, in words.
        shape: Its torque as a function of the drive's motion and the term's scale.
        brakes: Whether it only ever takes energy: its coefficient is not negative.
        is_sharp: Whether it has steps or waves of its own, so that the torque's
            low-pass changes it.
        remembers: Whether it depends on where the drive came from.
        uses_load: Whether it depends on the load of the gear.
        scale: What the term's scale is; empty if the form has none.
        undecided: What a log must hold for it to be told from the others.
    """

    meaning: str
    shape: Callable[[DriveMotion, float], np.ndarray]
    brakes: bool = False
    is_sharp: bool = False
    remembers: bool = False
    uses_load: bool = False
    scale: str = ""
    undecided: str = "speeds from slow to fast"


_BOTH_LOADS = "loads from light to heavy at the same speeds, in both directions"

_MANY_PERIODS = "slow sweeps over many periods"

FORMS: dict[str, FrictionForm] = {
    "asymmetric": FrictionForm(
        "|q̇|: viscous friction that differs between the two directions",
        lambda m, _: np.abs(m.qd),
        undecided="speeds from slow to fast in both directions",
    ),
    "stribeck": FrictionForm(
        "sign(q̇) exp(−|q̇|/v): friction that falls as motion starts",
        lambda m, speed: m.direction * np.exp(-np.abs(m.qd) / speed),
        brakes=True,
        scale="speed v in [rad/s] or [m/s]",
    ),
    "root": FrictionForm(
        "sign(q̇) √|q̇|: lubricant that thins with speed",
        lambda m, _: m.direction * np.sqrt(np.abs(m.qd)),
    ),
    "quadratic": FrictionForm(
        "q̇ |q̇|: drag that grows faster than speed",
        lambda m, _: m.qd * np.abs(m.qd),
    ),
    "load": FrictionForm(
        "sign(q̇) |τ|: friction that grows with the load of the gear",
        lambda m, _: m.direction * np.abs(m.load),
        brakes=True,
        uses_load=True,
        undecided=_BOTH_LOADS,
    ),
    # With d the direction, |τ| d while τ d > 0 is (|τ| d + τ |d|) / 2: smooth where the
    # filtered direction passes zero.
    "load_driving": FrictionForm(
        "sign(q̇) |τ| while the motor drives the load",
        lambda m, _: (
            0.5 * (m.direction * np.abs(m.load) + np.abs(m.direction) * m.load)
        ),
        brakes=True,
        uses_load=True,
        undecided=_BOTH_LOADS,
    ),
    "load_back_driven": FrictionForm(
        "sign(q̇) |τ| while the load drives the motor",
        lambda m, _: (
            0.5 * (m.direction * np.abs(m.load) - np.abs(m.direction) * m.load)
        ),
        brakes=True,
        uses_load=True,
        undecided=_BOTH_LOADS,
    ),
    "hysteresis": FrictionForm(
        "stop operator of q: friction that builds up over a distance after reversing, "
        "and holds at rest",
        lambda m, width: m.stop(width),
        brakes=True,
        is_sharp=True,
        remembers=True,
        scale="distance in [rad] or [m]",
        undecided="reversals, slow ones among them",
    ),
    # Both, so that the phase is free. Not sharp, but faster than the low-pass when the
    # drive is fast: what it takes away must be missing here, too.
    "ripple_sine": FrictionForm(
        "sin(2π q/p): torque that repeats with the position of motor or gear",
        lambda m, period: np.sin(2.0 * np.pi / period * m.q),
        is_sharp=True,
        scale="period p in [rad] or [m]",
        undecided=_MANY_PERIODS,
    ),
    "ripple_cosine": FrictionForm(
        "cos(2π q/p): torque that repeats with the position of motor or gear",
        lambda m, period: np.cos(2.0 * np.pi / period * m.q),
        is_sharp=True,
        scale="period p in [rad] or [m]",
        undecided=_MANY_PERIODS,
    ),
}
"""Forms of friction by name; add your own before you use it."""


@dataclass(frozen=True)
class FrictionTerm:
    """One more friction torque of one drive: coefficient × form.

    Attributes:
        joint: Which drive: joints first, then motors that several joints turn.
        joint_name: What it is called.
        form: Name of the form.
        scale: The form's speed, distance or period, for forms that have one.
    """

    joint: int
    joint_name: str
    form: str
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.form not in FORMS:
            raise ArgumentError(
                f"There is no friction of the form {self.form!r}. "
                f"Choose from: {', '.join(FORMS)}; or add it to "
                "armwise.regression.FORMS first."
            )
        if not (np.isfinite(self.scale) and self.scale > 0.0):
            raise ArgumentError(
                f"The scale of {self.joint_name}.{self.form} is a positive number, not "
                f"{self.scale}."
            )

    @property
    def kind(self) -> FrictionForm:
        """The form itself."""
        return FORMS[self.form]

    @property
    def name(self) -> str:
        """Name of its coefficient."""
        scale = f"({self.scale:.3g})" if self.kind.scale else ""
        return f"{self.joint_name}.{self.form}{scale}"

    def column(self, samples: Signals) -> Float[np.ndarray, " samples"]:
        """Torque of a unit coefficient of a joint's term, as the torque shows it.

        What depends on the load needs an arm: `Columns.friction_columns`.
        """
        if self.kind.uses_load:
            raise ArgumentError(
                f"{self.name} depends on the load of its gear; take it from "
                "Columns.friction_columns, which knows the arm."
            )
        rows = np.eye(samples.dof)
        direction = friction_direction(samples)
        columns = FrictionColumns((self,), rows, samples, direction)
        return columns.fill(slice(0, len(samples)), lambda: samples.tau)[0]


# Judgement: a factor of four apart; gears wind up by a milliradian or less, bearings
# and belts build friction up over hundredths.
_WIDTHS = (1e-3, 4e-3, 16e-3, 64e-3)
"""Distances in [rad] over which friction may build up after a reversal."""

_LEVER = 0.1
"""Metres of a prismatic joint that count as a radian."""


def hysteresis_terms(arm: Arm) -> tuple[FrictionTerm, ...]:
    """Friction of every drive that builds up over a distance, narrow to wide."""
    # A joint that follows another has no friction of its own that could be seen.
    drives = [*arm.coordinates, *range(len(arm.joints), len(arm.driven))]
    terms = []
    for j in drives:
        is_turning = j >= len(arm.joints) or arm.joints[j].kind != "prismatic"
        scale = 1.0 if is_turning else _LEVER
        name = arm.driven[j].name
        terms += [FrictionTerm(j, name, "hysteresis", scale * w) for w in _WIDTHS]
    return tuple(terms)


def load_rows(
    drive_rows: Float[np.ndarray, "drives dof"],
) -> Float[np.ndarray, "drives dof"]:
    """L with L τ the load of every drive's gear, for torques τ of the joints.

    A motor that several joints turn moves the last of them: with speeds q̇' = W q̇ of the
    motors that do the work, torques are τ' = W⁻ᵀ τ.
    """
    dof = drive_rows.shape[1]
    speeds = np.eye(dof)
    last = [int(np.flatnonzero(row)[-1]) for row in drive_rows]
    shared = np.count_nonzero(drive_rows, axis=1) > 1
    for k in np.flatnonzero(shared):
        speeds[last[k]] = drive_rows[k]
    # The pseudo-inverse: two motors of the same joints share its load in no known way.
    torques = np.linalg.pinv(speeds).T
    rows = zip(shared, drive_rows, last, strict=True)
    ratio = [1.0 if s else row[j] for s, row, j in rows]
    return np.asarray(torques[last] / np.array(ratio)[:, None])


def check_terms(terms: Sequence[FrictionTerm], arm: Arm) -> None:
    """Refuse friction of drives that an arm does not have."""
    names = [driven.name for driven in arm.driven]
    for term in terms:
        if not 0 <= term.joint < len(names) or term.joint_name != names[term.joint]:
            raise ArgumentError(
                f"{term.name} is friction of drive {term.joint}, {term.joint_name!r}, "
                f"which {arm.name} has not. Its drives: "
                f"{', '.join(f'{k} {name}' for k, name in enumerate(names))}."
            )


class FrictionModel:
    """Friction of terms, step by step, with the state that it carries.

    What a controller adds, what a simulated arm loses; the generated C does the same.

    Args:
        arm: Whose drives they are.
        terms: Terms and their coefficients.
        batch: Arms side by side.
        smoothing: Speed in [rad/s] or [m/s] over which a direction is blended through
            zero, v / √(v² + smoothing²); 0: sign(v).
    """

    def __init__(
        self,
        arm: Arm,
        terms: Sequence[tuple[FrictionTerm, float]],
        batch: int = 1,
        smoothing: float = 0.0,
    ) -> None:
        self.terms = tuple(terms)
        check_terms([term for term, _ in self.terms], arm)
        self._rows = mechanism_of(arm).drive_rows
        self._loads = load_rows(self._rows)
        self._smoothing = smoothing
        self._before: Float[np.ndarray, "batch drives"] | None = None
        self._springs = np.zeros((len(self.terms), batch))

    def reset(self) -> None:
        """Forget where the arm came from."""
        self._before = None
        self._springs[:] = 0.0

    @property
    def state(self) -> dict[str, np.ndarray]:
        """Where the drives were and how far their springs are stretched."""
        own = {} if self._before is None else {"friction_position": self._before}
        return {"friction_springs": self._springs.copy()} | own

    def restore(
        self,
        springs: Float[np.ndarray, "terms batch"],
        position: Float[np.ndarray, "batch drives"] | None,
    ) -> None:
        """Go on from a `state`."""
        self._springs[:] = springs
        self._before = None if position is None else np.array(position)

    def torque(
        self,
        q: Float[np.ndarray, "batch dof"],
        qd: Float[np.ndarray, "batch dof"],
        link_torque: Float[np.ndarray, "batch dof"],
    ) -> Float[np.ndarray, "batch dof"]:
        """Friction in [N m] at the next instant, which is remembered.

        Args:
            q, qd: Motion of the joints.
            link_torque: Torque of the links in [N m], which the gears carry.
        """
        position, speed = q @ self._rows.T, qd @ self._rows.T
        loads = link_torque @ self._loads.T
        moved = np.zeros(position.shape)
        if self._before is not None:
            moved = position - self._before
        self._before = position
        direction = np.sign(speed)
        if self._smoothing > 0.0:
            direction = speed / np.sqrt(speed**2 + self._smoothing**2)
        lost = np.zeros(position.shape)
        for k, (term, coefficient) in enumerate(self.terms):
            j, spring = term.joint, self._springs[k]

            def stretched(
                width: float, spring: np.ndarray = spring, j: int = j
            ) -> np.ndarray:
                np.clip(spring + moved[:, j], -width, width, out=spring)
                return spring / width

            motion = DriveMotion(
                position[:, j], speed[:, j], direction[:, j], loads[:, j], stretched
            )
            lost[:, j] += coefficient * term.kind.shape(motion, term.scale)
        return np.asarray(lost @ self._rows)


# Columns of terms over samples, in parts of a run.

# A chunk of 28 columns takes 1.8 MB; its margins are a tenth of it.
_CHUNK = 8000
"""Samples whose sharp columns are filtered at a time."""

# The slowest pole of the low-pass, sin(π/8) of its cut-off, fades by exp(−2.4) a
# period: 3e-9 after eight.
_MARGIN = 8.0
"""Periods of the low-pass beyond either end of a chunk that its filter sees."""


class FrictionColumns:
    """Columns of friction terms over the rows of one run.

    Args:
        terms: The terms.
        drive_rows: Joints that turn each drive.
        samples: The run.
        direction: Every drive's direction as the torque's low-pass shows it.
    """

    def __init__(
        self,
        terms: Sequence[FrictionTerm],
        drive_rows: Float[np.ndarray, "drives dof"],
        samples: Signals,
        direction: Float[np.ndarray, "samples drives"],
    ) -> None:
        self.terms = tuple(terms)
        self._rows, self._samples, self._direction = drive_rows, samples, direction
        self._loads = load_rows(drive_rows)
        self._stops: dict[tuple[int, float], _StopOperator] = {}
        self._chunk = slice(0, 0)
        self._filtered: dict[int, np.ndarray] = {}

    def fill(
        self, rows: slice, torque: Callable[[], Float[np.ndarray, "rows dof"]]
    ) -> list[Float[np.ndarray, " rows"]]:
        """Torque of a unit coefficient of every term.

        Args:
            rows: Which rows of the run, every so many of them where it has a step.
            torque: Returns the torque of the links, called if some term uses the load.
        """
        needs_load = any(term.kind.uses_load for term in self.terms)
        loads = torque() @ self._loads.T if needs_load else None
        self._cover(rows)
        first = self._chunk.start
        inside = slice(rows.start - first, rows.stop - first, rows.step)
        columns = []
        for k, term in enumerate(self.terms):
            if term.kind.is_sharp:
                columns.append(self._filtered[k][inside])
                continue
            load = np.zeros(0) if loads is None else loads[:, term.joint]
            direction = self._direction[rows, term.joint]
            motion = self._motion(term.joint, rows, direction, load)
            columns.append(term.kind.shape(motion, term.scale))
        return columns

    def _motion(
        self, drive: int, rows: slice, direction: np.ndarray, load: np.ndarray
    ) -> DriveMotion:
        q, qd = (
            self._along(drive, x[rows]) for x in (self._samples.q, self._samples.qd)
        )
        return DriveMotion(
            q, qd, direction, load, lambda width: self._stop(drive, width).values(rows)
        )

    def _along(self, drive: int, signal: np.ndarray) -> np.ndarray:
        row = self._rows[drive]
        (joints,) = np.nonzero(row)
        if len(joints) == 1 and row[joints[0]] == 1.0:  # a column already: no copy
            return np.asarray(signal[:, joints[0]])
        return np.asarray(signal @ row)

    def _stop(self, drive: int, width: float) -> _StopOperator:
        if (drive, width) not in self._stops:
            q = self._along(drive, self._samples.q)
            self._stops[drive, width] = _StopOperator(q, width, self._samples.segments)
        return self._stops[drive, width]

    def _cover(self, rows: slice) -> None:
        """Filter the chunk that holds these rows, unless it is there."""
        if self._chunk.start <= rows.start and rows.stop <= self._chunk.stop:
            return
        stop = min(len(self._samples), max(rows.stop, rows.start + _CHUNK))
        self._chunk = slice(rows.start, stop)
        sharp = [k for k, term in enumerate(self.terms) if term.kind.is_sharp]
        if sharp:
            columns = self._sharp([self.terms[k] for k in sharp], self._chunk)
            self._filtered = dict(zip(sharp, columns, strict=True))

    def _sharp(
        self, terms: Sequence[FrictionTerm], rows: slice
    ) -> Float[np.ndarray, "terms rows"]:
        """Sharp terms through the torque's low-pass, segment by segment."""
        bandwidth, rate = self._samples.torque_bandwidth_hz, self._samples.rate_hz
        is_filtered = bandwidth is not None and bandwidth < 0.45 * rate
        margin = int(_MARGIN * rate / bandwidth) + 1 if is_filtered and bandwidth else 0
        columns = np.empty((len(terms), rows.stop - rows.start))
        for segment in self._samples.segments:
            start, stop = max(segment.start, rows.start), min(segment.stop, rows.stop)
            if start >= stop:
                continue
            wide = slice(
                max(segment.start, start - margin), min(segment.stop, stop + margin)
            )
            motions = {
                drive: self._motion(drive, wide, self._sign(drive, wide), np.zeros(0))
                for drive in {term.joint for term in terms}
            }
            values = np.stack(
                [term.kind.shape(motions[term.joint], term.scale) for term in terms],
                axis=1,
            )
            if is_filtered and bandwidth:
                # Held ends: an odd reflection would double the height of a step there.
                # All at once: a filter costs as much to start as to run.
                values = low_pass(values, bandwidth, rate, "constant")
            inside = slice(start - wide.start, stop - wide.start)
            columns[:, start - rows.start : stop - rows.start] = values[inside].T
        return columns

    def _sign(self, drive: int, rows: slice) -> Float[np.ndarray, " rows"]:
        """Direction of a drive as it is, before any low-pass."""
        resolution = self._samples.speed_resolution
        weights = np.abs(self._rows[drive])
        dead_band = float(weights @ resolution) if resolution else 0.0
        return averaged_sign(self._along(drive, self._samples.qd[rows]), dead_band)


class _StopOperator:
    """Stop operator of a position, stored at its turning points only.

    Between two turning points it is the position, shifted and clipped: its memory of a
    run is as long as the list of reversals. It starts unstretched in every segment.
    """

    def __init__(
        self,
        q: Float[np.ndarray, " samples"],
        width: float,
        segments: Sequence[slice],
    ) -> None:
        self._q, self._width = q, width
        is_knot = np.zeros(len(q), dtype=bool)
        steps = np.diff(q)
        # A pause belongs to the motion before it.
        signs = np.sign(steps)
        moving = np.flatnonzero(signs)
        turns = moving[1:][signs[moving[1:]] != signs[moving[:-1]]]
        is_knot[turns] = True
        starts = np.array([s.start for s in segments if s.stop > s.start], dtype=int)
        is_knot[starts] = True
        self._knots = np.flatnonzero(is_knot)
        opens = set(starts.tolist())
        values, z, before = [], 0.0, 0.0
        for k, position in zip(
            self._knots.tolist(), q[self._knots].tolist(), strict=True
        ):
            z = 0.0 if k in opens else min(max(z + position - before, -width), width)
            before = position
            values.append(z)
        self._values = np.array(values)

    def values(self, rows: slice) -> Float[np.ndarray, " rows"]:
        """Its values over some rows, from −1 to 1."""
        index = np.arange(rows.start, rows.stop, rows.step or 1)
        knot = np.searchsorted(self._knots, index, side="right") - 1
        moved = self._q[rows] - self._q[self._knots[knot]]
        return np.clip((self._values[knot] + moved) / self._width, -1.0, 1.0)
