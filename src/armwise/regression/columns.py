"""Columns of the regressor: what the torque of each joint is made of.

Grouped inertial columns and drives come from the traced regressor; further friction
columns are functions of the motion. Of joint i only the columns that can move its
torque are kept: a block of samples is one small dense matrix per joint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from armwise.arms import Arm
from armwise.dynamics import Dynamics, grouped_to_user
from armwise.errors import ArgumentError, RecordingError
from armwise.regression.friction import (
    RIPPLES,
    FrictionTerm,
    check_terms,
    heat_coefficients,
)
from armwise.regression.friction_columns import FrictionColumns, Warmth
from armwise.regression.signals import (
    UNKNOWN_FRICTION,
    Signals,
    friction_direction,
    stuck_or_creeping,
    torque_rate,
)

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from armwise.programs import Kernel


# Columns of all joints, block by block.

# A joint with 60 columns then takes half a megabyte.
BLOCK = 1000
"""Samples at a time: the columns of a block stay in the second-level cache. Not a power
of two, or all columns would fall on the same few cache lines."""

# A filter that puts a fraction p of its weight on the other direction shows 1 − 2p: 0.9
# allows a twentieth. Judgement, as is the fraction below.
SETTLED_DIRECTION = 0.9
"""Fraction of its size that filtered friction reaches while a drive moves one way;
below it, the low-pass still mixes both directions."""

_MOST_REVERSING = 0.25
"""Fraction of its moving time a drive may spend reversing before its rows are used all
the same: masking more would discard the motion that is to be learnt from."""

SLOW_MOTION = 3.0
"""Fraction of the usual speed, as its inverse, that slow motion has."""

_GIVEN_ROWS, _FILTERED_ROWS = "grouped_rows", "directed_rows"
"""Traced programs of the columns: of samples that were given, and of filtered ones,
which take the direction of friction from outside."""

JointBlock = "Float[np.ndarray, 'columns samples']"


@dataclass(frozen=True, eq=False)
class Columns:
    """What explains the torques of an arm, column by column.

    Attributes:
        arm: The arm.
        friction: Friction terms beyond viscous, Coulomb and offset.
        dynamics: Its equations of motion.
        load: Parameters of the arm whose torque loads the gears and whose friction
            warms them, for friction that depends on it; the arm's own if None.
        has_lags: Whether each joint has one more column, −dτ/dt, for what is left of
            the torque's delay; zeros where `shows_lag` says so. No parameter of the arm
            belongs to it.
        fits_reversals: Whether joints with terms that show there are learnt from while
            their friction reverses, too.
    """

    arm: Arm
    friction: tuple[FrictionTerm, ...] = ()
    dynamics: Dynamics = field(default=None)  # type: ignore[assignment]
    load: Float[np.ndarray, " parameters"] | None = None
    has_lags: bool = False
    fits_reversals: bool = True

    def __post_init__(self) -> None:
        if self.dynamics is None:
            object.__setattr__(self, "dynamics", Dynamics(self.arm))
        check_terms(self.friction, self.arm)

    def with_friction(self, terms: tuple[FrictionTerm, ...]) -> Columns:
        """Return the columns with these friction terms.

        Where every joint's friction has a memory no delay is fitted: `shows_lag`.
        """
        columns = replace(self, friction=terms)
        return replace(columns, has_lags=bool(columns.shows_lag.any()))

    @cached_property
    def shows_lag(self) -> Bool[np.ndarray, " dof"]:
        """Which joints the torque's delay is fitted to.

        Friction with a memory follows the motion late, as a torque does that is read
        late: the delay is that of the other joints. Candidates of such friction, whose
        rows at reversals are not fitted, are no reason to leave it out.
        """
        shown = np.full(self.arm.dof, self.has_lags)
        for term in self.friction if self.fits_reversals else ():
            if term.kind.remembers:
                shown &= self.dynamics.mechanism.drive_rows[term.joint] == 0.0
        return shown

    @property
    def follows_estimate(self) -> bool:
        """Whether some friction term depends on the load of the gears or their heat."""
        return any(t.kind.uses_load or t.kind.uses_heat for t in self.friction)

    def seen_in(self, data: Sequence[Signals]) -> Columns:
        """Return the same columns, which know how warm and fast some data are."""
        rows, heat = self.dynamics.mechanism.drive_rows, self.heat
        terms = []
        for term in self.friction:
            j = term.joint
            if term.kind.uses_heat:
                every = (Warmth(run, rows[j], heat[:, j], term.scale) for run in data)
                most = max((one.largest for one in every), default=0.0)
                term = replace(term, warmest=most)
            if term.kind.straightens:
                speeds = (np.abs(run.qd @ rows[j]).max() for run in data if len(run))
                # A drive that never moved shows nothing that could go on.
                fastest = float(max(speeds, default=0.0)) or None
                term = replace(term, fastest=fastest)
            terms.append(term)
        return replace(self, friction=tuple(terms))

    @property
    def heat(self) -> Float[np.ndarray, "2 drives"]:
        """What multiplies |v| and v² of each drive for the power it dissipates."""
        parameters = self.arm.parameters if self.load is None else self.load
        return heat_coefficients(self.arm, parameters)

    @property
    def usual_temperature(self) -> Float[np.ndarray, " dof"] | None:
        """Temperature in [°C] that friction of each joint is about; None: of none."""
        temperature = np.zeros(self.arm.dof)
        terms = [term for term in self.friction if term.kind.uses_temperature]
        rows = self.dynamics.mechanism.drive_rows
        for term in terms:
            temperature[np.flatnonzero(rows[term.joint])[-1]] = term.scale
        return temperature if terms else None

    @cached_property
    def rigid(self) -> Float[np.ndarray, " columns"]:
        """Weights of the columns whose torque the gears pass on: the links' alone."""
        own = np.asarray(self.arm.parameters if self.load is None else self.load)
        parameters = np.zeros(self.user.shape[1])
        # Rotor and friction of a drive are on the motor's side of its gear.
        parameters[self.arm.layout.links] = own[self.arm.layout.links]
        return np.asarray(self.user @ parameters)

    @cached_property
    def non_negative(self) -> np.ndarray:
        """Which parameters cannot be negative: rotors, friction that only brakes."""
        own = self.arm.layout.size
        extra = [own + k for k, term in enumerate(self.friction) if term.kind.brakes]
        return np.concatenate([self.arm.layout.non_negative, extra]).astype(int)

    @cached_property
    def user(self) -> Float[np.ndarray, "columns user"]:
        """G with columns · G = regressor of all parameters, friction terms last."""
        grouped = grouped_to_user(self.dynamics.mechanism)
        rows, width = grouped.shape
        extra = len(self.friction)
        lags = self.arm.dof if self.has_lags else 0
        matrix = np.zeros((rows + extra + lags, width + extra))
        matrix[:rows, :width] = grouped
        matrix[rows : rows + extra, width:] = np.eye(extra)
        return matrix

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of all parameters, friction terms last."""
        return (*self.arm.parameter_names, *[term.name for term in self.friction])

    @property
    def count(self) -> int:
        """Number of columns."""
        return int(self.user.shape[0])

    @property
    def lags(self) -> np.ndarray:
        """Which columns are the joints' lags; none if there are none."""
        lags = self.arm.dof if self.has_lags else 0
        return np.arange(self.count - lags, self.count)

    @cached_property
    def labels(self) -> tuple[object, ...]:
        """What each column is, whatever other friction terms there are."""
        own = self.count - len(self.friction) - self.lags.size
        lags = [("lag", joint) for joint in range(self.lags.size)]
        return (*range(own), *self.friction, *lags)

    @cached_property
    def coulomb(self) -> np.ndarray:
        """Which columns are Coulomb friction, one per drive."""
        # Found by what moves with the Coulomb parameters: coupled motors have columns
        # too.
        of_friction = [name.endswith(".coulomb") for name in self.names]
        return np.flatnonzero(np.any(self.user[:, of_friction] != 0.0, axis=1))

    @cached_property
    def support(self) -> tuple[np.ndarray, ...]:
        """For each joint, which columns can move its torque."""
        output = self.dynamics.program("grouped_rows").output("rows")
        entries = np.asarray(output.nonzero)
        width = output.shape[1] - 1  # the last one is the torque itself
        supports = []
        for i in range(self.arm.dof):
            # The last entry of a joint's row is its torque.
            own = (entries[entries // (width + 1) == i] % (width + 1))[:-1]
            extra = [width + k for k in self._terms_of[i]]
            lag = self.lags[i : i + 1]
            supports.append(np.concatenate([own, extra, lag]).astype(int))
        return tuple(supports)

    @cached_property
    def _terms_of(self) -> tuple[tuple[int, ...], ...]:
        """For each joint, which friction terms act on it: its drives'."""
        rows = self.dynamics.mechanism.drive_rows
        terms = enumerate(self.friction)
        acts = [(k, rows[term.joint] != 0.0) for k, term in terms]
        return tuple(
            tuple(k for k, joints in acts if joints[i]) for i in range(self.arm.dof)
        )

    @cached_property
    def _traced_counts(self) -> np.ndarray:
        extra = [len(terms) for terms in self._terms_of]
        return np.array([s.size for s in self.support]) - extra - self.has_lags

    def blocks(
        self, data: Sequence[Signals], rows: Sequence[slice] | None = None
    ) -> Iterator[Block]:
        """Yield the columns of recorded samples, block by block, in reused memory.

        Args:
            data: The samples, run by run.
            rows: Which rows of every run, every so many of them where a slice has a
                step; all of them if None.
        """
        for samples in data:
            self.check(samples)
            columns = _Buffer(self, samples)
            for part in [slice(0, len(samples))] if rows is None else rows:
                size = BLOCK * (part.step or 1)
                # One after another: filled on another core while one is used, a block
                # would have to be fetched from there, which takes as long.
                for start in range(part.start, part.stop, size):
                    stop = min(start + size, part.stop)
                    yield columns.fill(slice(start, stop, part.step or 1))

    def friction_columns(
        self, samples: Signals, rows: slice
    ) -> Float[np.ndarray, "rows dof terms"]:
        """Torque of a unit coefficient of every friction term, over some rows."""
        columns = np.zeros((rows.stop - rows.start, self.arm.dof, len(self.friction)))
        for block in self.blocks([samples], [rows]):
            part = slice(block.rows.start - rows.start, block.rows.stop - rows.start)
            pairs = zip(self._terms_of, block.joints, strict=True)
            for i, (terms, matrix) in enumerate(pairs):
                first = int(self._traced_counts[i])
                own = matrix[first : first + len(terms)]
                columns[part, i, list(terms)] = own.T
        return columns

    def friction_states(
        self, samples: Signals, rows: Int[np.ndarray, " rows"]
    ) -> Float[np.ndarray, "terms rows"]:
        """How the motion before some rows has left friction terms with a memory.

        For `FrictionModel.restore`: a simulation that goes on from there.
        """
        drives = self.dynamics.mechanism.drive_rows
        # Springs and warmth do not depend on a direction that is shown.
        shown = np.zeros((len(samples), len(drives)))
        terms = FrictionColumns(self.friction, drives, samples, shown, self.heat)
        return terms.states(rows)

    def signals(self, samples: Signals) -> tuple[str, list[np.ndarray]]:
        """Which traced rows explain such samples, and the signals they take.

        What was filtered needs the direction of friction seen through the same filter.
        """
        signals = [samples.q, samples.qd, samples.qdd, samples.tau]
        if not samples.speed_resolution:
            return _GIVEN_ROWS, signals
        direction = friction_direction(samples, self.dynamics.mechanism.drive_rows)
        return _FILTERED_ROWS, [*signals, direction]

    def link_torque(
        self, samples: Signals, parameters: Float[np.ndarray, " parameters"]
    ) -> Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]:
        """Return the torque in [N m] of the links alone, as a function of q, q̇ and q̈.

        Args:
            samples: What the columns explain.
            parameters: The arm's; those of its drives do not count.
        """
        links = np.zeros(self.user.shape[1])
        own = self.arm.layout.links
        links[own] = parameters[own]
        is_given = not samples.speed_resolution
        kernel = self.dynamics.kernel(_GIVEN_ROWS if is_given else _FILTERED_ROWS)
        # The rows are compiled already, inverse dynamics would have to be; of programs
        # that NumPy runs, it is the shorter one.
        if kernel.backend == "numpy":
            arm = self.arm.with_parameters(links[: self.arm.layout.size])
            return Dynamics(arm, backend="numpy").inverse_dynamics
        return partial(self._traced_torque, kernel, self.user @ links)

    def _traced_torque(
        self,
        kernel: Kernel,
        weights: Float[np.ndarray, " columns"],
        q: Float[np.ndarray, "samples dof"],
        qd: Float[np.ndarray, "samples dof"],
        qdd: Float[np.ndarray, "samples dof"],
    ) -> Float[np.ndarray, "samples dof"]:
        # Neither a measured torque nor a direction of friction counts: zeros.
        inputs = kernel.program.inputs[3:]
        idle = [np.zeros((len(q), item.size)) for item in inputs]
        (rows,) = kernel.columns([q, qd, qdd, *idle])
        stops = np.cumsum(self._traced_counts + 1)
        joints = []
        for support, count, stop in zip(
            self.support, self._traced_counts, stops, strict=True
        ):
            # The last row of a joint is the measured torque.
            own = rows[stop - 1 - count : stop - 1]
            joints.append(weights[support[:count]] @ own)
        return np.stack(joints, axis=1)

    def trust(
        self, samples: Signals, direction: Sequence[np.ndarray]
    ) -> Float[np.ndarray, "samples dof"] | None:
        """Which rows of each joint to learn from: 1, or 0 while its friction reverses.

        A joint that turns back may stick for a moment, and what friction does in that
        moment, smeared by the low-pass, is no sign(q̇): the few rows around it would
        bias inertias by more than all noise does.

        Args:
            samples: The samples.
            direction: Friction's direction as the torque shows it, if it was filtered.
        """
        if not direction:
            return None
        rows = self.dynamics.mechanism.drive_rows
        moves = self.moves(samples)
        reverses = np.abs(direction[0]) < self.certainty(moves, direction[0])
        # A motor that several joints turn masks all of them. A drive at rest has no
        # direction either, but masking it would lose every row in which it only holds
        # its load.
        masked = (reverses & moves) @ (rows != 0.0)
        if samples.still is not None:
            # Its size: a low-pass rings, and what it rings with is as unknown.
            masked = masked | (np.abs(samples.still) > UNKNOWN_FRICTION)
        sticks = self.sticks(samples)
        if not self.fits_reversals:
            # Nor from rows in which a joint creeps: terms of any shape explain those.
            masked = masked | stuck_or_creeping(samples)
        # Unless the joint stands still there.
        for term in self.friction if self.fits_reversals else ():
            if self.shows_reversing(term, samples):
                moved = rows[term.joint] != 0.0
                masked[:, moved] = sticks[:, moved]
        return np.where(masked, 0.0, 1.0)

    def shows_reversing(self, term: FrictionTerm, samples: Signals) -> bool:
        """Whether a joint is learnt from while its friction reverses, for a term.

        Friction that builds up over a distance is known there; and waves of the torque
        that are hidden in quicker motion show little elsewhere. Waves of friction turn
        back with it, and how it does is not known.
        """
        is_wave = term.form in RIPPLES and self.is_hidden(term, samples)
        return term.kind.remembers or is_wave

    def is_hidden(self, term: FrictionTerm, samples: Signals) -> bool:
        """Whether a term's waves are so short that the torque's low-pass hides them but
        in slow motion.
        """
        band = samples.torque_bandwidth_hz
        if not term.kind.repeats or band is None:
            return False
        speed = samples.qd @ self.dynamics.mechanism.drive_rows[term.joint]
        rms = float(np.sqrt(np.mean(speed**2))) if len(speed) else 0.0
        return bool(term.scale < rms / (SLOW_MOTION * band))

    def sticks(self, samples: Signals) -> Bool[np.ndarray, "samples dof"]:
        """Where a joint's friction, as the torque shows it, is partly that of sticking.

        Neither speed nor position tell what it is there.
        """
        if samples.stuck is None:
            return np.zeros(samples.q.shape, dtype=bool)
        return np.asarray(samples.stuck > UNKNOWN_FRICTION)

    @staticmethod
    def certainty(
        moves: Bool[np.ndarray, "samples drives"],
        direction: Float[np.ndarray, "samples drives"],
    ) -> Float[np.ndarray, " drives"]:
        """Size of its direction from which on a drive moves one way; 0: at any.

        A drive that turns back most of its time is learnt from throughout.
        """
        reversing = (moves & (np.abs(direction) < SETTLED_DIRECTION)).sum(axis=0)
        # The one in the maximum: a drive that never moves has nothing to mask.
        rarely = reversing <= _MOST_REVERSING * np.maximum(moves.sum(axis=0), 1)
        return np.where(rarely, SETTLED_DIRECTION, 0.0)

    def dead_band(self, samples: Signals) -> Float[np.ndarray, " drives"]:
        """Speed below which a drive's direction is not known."""
        rows = np.abs(self.dynamics.mechanism.drive_rows)
        return rows @ np.asarray(samples.speed_resolution)

    def moves(self, samples: Signals) -> Bool[np.ndarray, "samples drives"]:
        """When drives move, as far as their speed shows it."""
        speeds = samples.qd @ self.dynamics.mechanism.drive_rows.T
        return np.abs(speeds) > self.dead_band(samples)

    def check(self, samples: Signals) -> None:
        """Refuse samples that do not belong to the arm."""
        if samples.dof != self.arm.dof:
            raise ArgumentError(
                f"The samples have {samples.dof} joints, but {self.arm.name} has "
                f"{self.arm.dof} ({', '.join(self.arm.coordinate_names)})."
            )
        if not samples.has_torque:
            raise RecordingError(
                "The samples hold no joint torques. Record motor torque or current, "
                "and map it to tau_1 … tau_n."
            )


@dataclass(frozen=True, eq=False)
class Block:
    """Columns of one block of samples.

    Attributes:
        samples: The recording they belong to.
        rows: Which of its samples.
        joints: For each joint its columns, one row per column of its support, and its
            torque as the last row.
        trust: 1, or 0 where a joint's friction reverses; None where all count.
    """

    samples: Signals
    rows: slice
    joints: tuple[np.ndarray, ...]
    trust: Float[np.ndarray, "rows dof"] | None = None

    @property
    def count(self) -> int:
        """How many samples."""
        return int(self.joints[0].shape[1])


class _Buffer:
    """Memory for one block, filled again and again."""

    def __init__(self, columns: Columns, samples: Signals) -> None:
        self._columns, self._samples = columns, samples
        kind, self._signals = columns.signals(samples)
        self._trust = columns.trust(samples, self._signals[4:])
        self._kernel = columns.dynamics.kernel(kind)
        stored = len(self._kernel.program.output("rows").nonzero)
        # One row per column: splitting it by joint copies nothing.
        self._traced = np.empty((stored, BLOCK))
        stops = np.cumsum(columns._traced_counts + 1)
        self._parts = [slice(a, b) for a, b in pairwise([0, *stops.tolist()])]
        self._friction = self._terms() if columns.friction else None
        self._rate = torque_rate(samples) if columns.has_lags else None

    def _terms(self) -> FrictionColumns:
        rows = self._columns.dynamics.mechanism.drive_rows
        # Filtered once a run for all friction terms, and for the traced columns.
        direction = (
            self._signals[4]
            if len(self._signals) > 4
            else friction_direction(self._samples, rows)
        )
        columns = self._columns
        return FrictionColumns(
            columns.friction, rows, self._samples, direction, columns.heat
        )

    def fill(self, rows: slice) -> Block:
        count = len(range(rows.start, rows.stop, rows.step or 1))
        traced = self._traced[:, :count]
        self._kernel.columns([signal[rows] for signal in self._signals], (), [traced])
        joints = [traced[part] for part in self._parts]
        if self._friction is not None:
            joints = self._widened(self._friction, joints, rows)
        if self._rate is not None:
            rates = np.where(self._columns.shows_lag, -self._rate[rows], 0.0).T
            pairs = zip(joints, rates, strict=True)
            joints = [np.vstack([x[:-1], rate, x[-1:]]) for x, rate in pairs]
        trust = None if self._trust is None else self._trust[rows]
        return Block(self._samples, rows, tuple(joints), trust)

    def _widened(
        self, friction: FrictionColumns, joints: list[np.ndarray], rows: slice
    ) -> list[np.ndarray]:
        """Put the joints' further friction columns before their torque."""

        def torque() -> Float[np.ndarray, "rows dof"]:
            weights = self._columns.rigid
            supports = zip(self._columns.support, joints, strict=True)
            return np.stack(
                [
                    weights[own[: len(block) - 1]] @ block[:-1]
                    for own, block in supports
                ],
                axis=1,
            )

        extra = friction.fill(rows, torque)
        weights = self._columns.dynamics.mechanism.drive_rows
        widened = []
        for i, (terms, block) in enumerate(
            zip(self._columns._terms_of, joints, strict=True)
        ):
            own = [
                extra[k] * weights[self._columns.friction[k].joint, i] for k in terms
            ]
            widened.append(np.vstack([block[:-1], *own, block[-1:]]) if own else block)
        return widened
